"""What an agent's hooks cost: the helper between a client and a real daemon, and a whole command.

All ways take turns in random order, so that a busy machine slows them alike: what is added is the
median of the differences to starting ``/bin/true`` at the same turn.
"""

import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.bench.table import Row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from agent_stage import Stage, open_stage
from daemon_process import DaemonProcess
from helper_builds import helper
from hook_samples import SAMPLES

TITLE = "Hooks of an agent, added to a client's time"

ROUNDS = 200
LARGE = 1_000_000

CLAUDE = SAMPLES["claude"]
COMMAND = "git -C /tmp rev-parse --is-inside-work-tree"


def rows() -> list[Row]:
    """Measure hook calls with a daemon and without one, and commands of an agent."""
    with _stage() as stage:
        return [*_calls(stage), *_commands(stage)]


def _calls(stage: Stage) -> Iterator[Row]:
    call = [helper(), "hook", "claude", "/nonexistent/flightrec"]
    before = _payload("PreToolUse")
    after = json.dumps(CLAUDE.passed(COMMAND, "use", "x" * 2000)).encode()
    large = json.dumps(CLAUDE.passed(COMMAND, "use", "x" * LARGE)).encode()
    nobody = {**stage.recorded, "HOME": "/nonexistent"}
    ways: dict[str, Callable[[], None]] = {
        "": lambda: _run(["/bin/true"], stage.plain),
        "a call before a command": lambda: _run(call, stage.recorded, before()),
        "a call after a command": lambda: _run(call, stage.recorded, after),
        "a call with 1 MB of output": lambda: _run(call, stage.recorded, large),
        "a call without a daemon": lambda: _run(call, nobody, after),
    }
    times = _take_turns(ways)
    for name in list(ways)[1:]:
        bar = "≤ 5 ms" if "1 MB" not in name else ""
        yield _added(name, times[""], times[name], bar)


def _commands(stage: Stage) -> Iterator[Row]:
    """Compare one command of a model: its shell alone, and with all that we have around it."""
    call = [helper(), "hook", "claude", "/nonexistent/flightrec"]
    before = _payload("PreToolUse")
    after = json.dumps(CLAUDE.passed(COMMAND, "use", "")).encode()
    shell = ["-c", COMMAND]

    def hooked() -> None:
        _run(call, stage.recorded, before())
        _run([f"{stage.session.shims}/bash", *shell], stage.recorded)
        _run(call, stage.recorded, after)

    ways: dict[str, Callable[[], None]] = {
        "": lambda: _run(["/bin/bash", *shell], stage.plain),
        "its shell": lambda: _run([f"{stage.session.shims}/bash", *shell], stage.recorded),
        "its shell and both hooks": hooked,
    }
    times = _take_turns(ways)
    yield _added("a command, by its shell", times[""], times["its shell"], "≤ 3 ms")
    both = times["its shell and both hooks"]
    yield _added("a command, by its shell and two hooks", times[""], both, "≤ 13 ms")


def _payload(event: str) -> Callable[[], bytes]:
    """Return what gives a payload with another id at each call."""
    numbers = iter(range(1_000_000))

    def make() -> bytes:
        sample = {**CLAUDE.before(COMMAND, f"use-{next(numbers)}"), "hook_event_name": event}
        return json.dumps(sample).encode()

    return make


def _take_turns(ways: Mapping[str, Callable[[], None]]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    for warm_up in ways.values():
        warm_up()
    for _ in range(ROUNDS):
        for name in random.sample(list(ways), len(ways)):
            begin = time.perf_counter()
            ways[name]()
            times[name].append(time.perf_counter() - begin)
    return times


def _added(what: str, plain: Sequence[float], ours: Sequence[float], bar: str) -> Row:
    added = sorted(1e3 * (our - bare) for our, bare in zip(ours, plain, strict=True))
    slow = added[len(added) * 95 // 100]
    note = f"p95 {slow:.2f}, least {added[0]:.2f}, plain {1e3 * statistics.median(plain):.2f} ms"
    return Row(what, statistics.median(added), "ms", bar, note)


def _run(words: Sequence[str | Path], environment: Mapping[str, str], stdin: bytes = b"") -> None:
    """Start a program as clients do, with pipes for all three streams, and wait for its end."""
    inner, feed = os.pipe()
    output, its_output = os.pipe()
    inherited = [
        (os.POSIX_SPAWN_DUP2, inner, 0),
        (os.POSIX_SPAWN_DUP2, its_output, 1),
        (os.POSIX_SPAWN_DUP2, its_output, 2),
    ]
    pid = os.posix_spawn(words[0], words, environment, file_actions=inherited)
    for end in (inner, its_output):
        os.close(end)
    view = memoryview(stdin)
    while view:
        view = view[os.write(feed, view) :]
    os.close(feed)
    while os.read(output, 65536):
        pass
    os.close(output)
    os.waitpid(pid, 0)


@contextmanager
def _stage() -> Iterator[Stage]:
    with (
        tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("HOME", folder)
        with DaemonProcess(Path(folder)) as daemon, open_stage(Path(folder)) as stage:
            daemon.wait_for_writer()
            yield stage
