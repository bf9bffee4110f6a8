"""What the stand-ins of an agent's run cost: the same program with and without, side by side.

Each pair of ways takes turns in random order, so that a busy machine slows both alike; ratios
count. Processor time is that of all processes together: what a machine without a free processor
would take. A server in C that answers at once plays the daemon: a slow one is the daemon's figure.
It has one rule, about `echo`: as with the daemon, nothing else waits for an answer.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.bench.table import Row

from flightrec.hint_words import HintWords
from flightrec.paths import find_paths, make_private_folder
from flightrec.rules import Remedy, Trigger

sys.path.insert(0, str(Path(__file__).parents[1]))
from agent_stage import Stage, only, open_stage, without_library
from hint_rules import make_hint_rule

TITLE = "Stand-ins in an agent's run, as a multiple of the plain program"

SINK = Path(__file__).with_name("sink.c")

SHORT_ROUNDS, LONG_ROUNDS = 250, 9
BYTES = 300_000_000

MAKEFILE = "all:\n" + "\t@/bin/true\n" * 100


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure: the words of both ways, and the environment of the recorded one."""

    what: str
    plain: Sequence[str]
    recorded: Sequence[str]
    environment: Mapping[str, str]
    bar: str
    rounds: int = SHORT_ROUNDS
    typical: Callable[[Sequence[float]], float] = statistics.median


def rows() -> list[Row]:
    """Measure all pairs."""
    with _stage() as stage:
        return [_measure(stage, pair) for pair in _pairs(stage)]


def _pairs(stage: Stage) -> Iterator[Pair]:
    shims, recorded = stage.session.shims, stage.recorded
    for name in ("true", "echo"):
        (shims / name).symlink_to(stage.session.placed.helper)
    (stage.folder / "Makefile").write_text(MAKEFILE)
    flood = f"head -c {BYTES} /dev/zero"
    part = {**recorded, "FLIGHTREC_PARENT": "1" * 32, "FLIGHTREC_INSIDE": "1"}
    parts = os.memfd_create("parts", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)  # until we end
    part["FLIGHTREC_PARTS"] = f"/proc/{os.getpid()}/fd/{parts}"
    yield Pair(
        "`true`, a tool of its own", ["/usr/bin/true"], [f"{shims}/true"], recorded, "≤ 1.65"
    )
    yield Pair("`true`, a part of a command", ["/usr/bin/true"], [f"{shims}/true"], part, "≤ 1.65")
    yield Pair(
        "`echo`, which is in a rule: asked first",
        ["/usr/bin/echo"],
        [f"{shims}/echo"],
        recorded,
        "",
    )
    git = ["/usr/bin/git", "--version"]
    yield Pair("`git --version`", git, [f"{shims}/git", "--version"], recorded, "≤ 1.35")
    bash = ["/bin/bash", "-c", ":"]
    yield Pair("`bash -c :`, stand-in", bash, [f"{shims}/bash", "-c", ":"], recorded, "≤ 1.4")
    door = only(stage, "BASH_ENV")
    yield Pair("`/bin/bash -c :`, BASH_ENV", bash, bash, door, "≤ 1.9")
    without = without_library(stage)
    again = door | {name: without[name] for name in ("BASH_ENV", "FLIGHTREC_HELPER")}
    yield Pair("the same, by a bash that loads no builtins", bash, bash, again, "")
    zsh = ["/bin/zsh", "-c", ":"]
    yield Pair("`/bin/zsh -c :`, ZDOTDIR", zsh, zsh, only(stage, "ZDOTDIR"), "")
    make = ["/bin/bash", "-c", "make -s"]
    # the least: others' load hits a hundred forks at random
    yield Pair(
        "`make` with 100 forks", make, [f"{shims}/bash", *make[1:]], recorded, "≤ 1.05", 160, min
    )
    cat = ["/bin/bash", "-c", flood]
    yield Pair("300 MB of output", cat, [f"{shims}/bash", *cat[1:]], recorded, "≤ 1.5", LONG_ROUNDS)


def _measure(stage: Stage, pair: Pair) -> Row:
    ways: dict[str, Callable[[], Took]] = {
        "plain": lambda: _run(pair.plain, stage.plain, stage.folder),
        "recorded": lambda: _run(pair.recorded, pair.environment, stage.folder),
    }
    taken: dict[str, list[Took]] = {name: [] for name in ways}
    for warm_up in ways.values():
        warm_up()
    for _ in range(pair.rounds):
        for name in random.sample(list(ways), len(ways)):
            taken[name].append(ways[name]())
    plain, recorded = (pair.typical([took.wall_s for took in taken[name]]) for name in ways)
    spent, spent_recorded = (pair.typical([took.cpu_s for took in taken[name]]) for name in ways)
    which = "least" if pair.typical is min else "median"
    note = (
        f"{plain * 1e3:.2f} → {recorded * 1e3:.2f} ms, {which} of {pair.rounds};"
        f" processor time {spent_recorded / spent:.2f} ×"
    )
    return Row(pair.what, recorded / plain, "×", pair.bar, note)


@dataclass(frozen=True, slots=True)
class Took:
    """What one run took, of the clock and of the processors, in seconds."""

    wall_s: float
    cpu_s: float


def _run(words: Sequence[str], environment: Mapping[str, str], folder: Path) -> Took:
    """Start a program with two pipes, read both to their end, and wait for it."""
    begin = time.perf_counter()
    output, its_output = os.pipe()
    errors, its_errors = os.pipe()
    inherited = [(os.POSIX_SPAWN_DUP2, its_output, 1), (os.POSIX_SPAWN_DUP2, its_errors, 2)]
    os.chdir(folder)
    pid = os.posix_spawn(words[0], words, environment, file_actions=inherited)
    for end in (its_output, its_errors):
        os.close(end)
    for end in (output, errors):
        while os.read(end, 65536):
            pass
        os.close(end)
    _, _, used = os.wait4(pid, 0)
    return Took(time.perf_counter() - begin, used.ru_utime + used.ru_stime)


@contextmanager
def _stage() -> Iterator[Stage]:
    before = Path.cwd()
    with (
        tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("HOME", folder)
        make_private_folder(find_paths().state)
        make_private_folder(find_paths().run)
        try:
            with _sink(Path(folder)), _one_rule(), open_stage(Path(folder)) as stage:
                yield stage
        finally:
            os.chdir(before)


@contextmanager
def _one_rule() -> Iterator[None]:
    """Keep the file by which helpers know what no rule is about."""
    trigger = Trigger("unknown option", ("echo",))
    rule = make_hint_rule(trigger, Remedy("replace", ("echo", "-n")))
    words = HintWords(find_paths().hint_words)
    words.publish()
    words.add([rule])
    yield
    words.close()


@contextmanager
def _sink(folder: Path) -> Iterator[None]:
    """Serve at the daemon's socket."""
    program = folder / "sink"
    subprocess.run(["cc", "-O2", "-o", program, SINK], check=True)
    words = [program, find_paths().socket]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    try:
        yield
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()
