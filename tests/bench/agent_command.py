"""What `flightrec run` adds to one command of an agent, by the way in which it starts shells.

The command is the same with and without, in turns, and the daemon is a real one that records it.
"""

import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.bench.table import Row

sys.path.insert(0, str(Path(__file__).parents[1]))
from agent_stage import Stage, only, open_stage
from daemon_process import DaemonProcess

TITLE = "Time added to an agent's command (`git --version`)"

COMMAND = "git --version"
ROUNDS = 150
BAR = "≤ 3 ms"


@dataclass(frozen=True, slots=True)
class Way:
    """How agents start a shell; ``doors`` are what catches it."""

    agents: str
    shell: Sequence[str]
    doors: Sequence[str]


WAYS = (
    Way("Gemini CLI, Qwen Code: `bash -c`", ("bash", "-c"), ("PATH",)),
    Way("Claude Code, pi, opencode: `/bin/bash -c`", ("/bin/bash", "-c"), ("PATH", "BASH_ENV")),
    Way("Codex, Continue: `/bin/bash -lc`", ("/bin/bash", "-lc"), ("PATH", "BASH_ENV")),
    Way("the same with zsh: `/bin/zsh -c`", ("/bin/zsh", "-c"), ("PATH", "ZDOTDIR")),
    Way("mini-swe-agent: `/bin/sh -c`", ("/bin/sh", "-c"), ("PATH",)),
)


def rows() -> list[Row]:
    """Measure all ways."""
    with (
        tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("HOME", folder)
        with DaemonProcess(Path(folder)), open_stage(Path(folder)) as stage:
            return [_measure(stage, way) for way in WAYS]


def _measure(stage: Stage, way: Way) -> Row:
    environments = {"plain": stage.plain, "recorded": only(stage, *way.doors)}
    taken: dict[str, list[Took]] = {name: [] for name in environments}
    for _ in range(ROUNDS):
        for name in random.sample(list(environments), len(environments)):
            taken[name].append(_run([*way.shell, COMMAND], environments[name], stage.folder))
    plain, recorded = (taken[name] for name in environments)
    walls = [statistics.median(took.wall_ms for took in side) for side in (plain, recorded)]
    least = [min(took.wall_ms for took in side) for side in (plain, recorded)]
    spent = [statistics.median(took.cpu_ms for took in side) for side in (plain, recorded)]
    note = (
        f"{walls[0]:.2f} → {walls[1]:.2f} ms, median of {ROUNDS}; least {least[1] - least[0]:.2f};"
        f" processor time {spent[1] - spent[0]:.2f}"
    )
    return Row(way.agents, walls[1] - walls[0], "ms", BAR, note)


@dataclass(frozen=True, slots=True)
class Took:
    """What one run took, of the clock and of the processors: without the daemon's work."""

    wall_ms: float
    cpu_ms: float


def _run(words: Sequence[str], environment: Mapping[str, str], folder: Path) -> Took:
    """Run a shell to the end of its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(words, env=environment, cwd=folder, capture_output=True, check=True)
    end = time.perf_counter()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Took((end - begin) * 1e3, spent * 1e3)
