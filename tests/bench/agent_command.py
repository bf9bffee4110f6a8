"""What `flightrec run` adds to one command of an agent, by the way in which it starts shells.

The command is the same with and without, in turns, and the daemon is a real one that records it.
"""

import random
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
    taken: dict[str, list[float]] = {name: [] for name in environments}
    for _ in range(ROUNDS):
        for name in random.sample(list(environments), len(environments)):
            taken[name].append(_run([*way.shell, COMMAND], environments[name], stage.folder))
    plain, recorded = (statistics.median(taken[name]) * 1e3 for name in environments)
    least = (min(taken["recorded"]) - min(taken["plain"])) * 1e3
    note = f"{plain:.2f} → {recorded:.2f} ms, median of {ROUNDS}; least {least:.2f} ms"
    return Row(way.agents, recorded - plain, "ms", BAR, note)


def _run(words: Sequence[str], environment: Mapping[str, str], folder: Path) -> float:
    """Run a shell to the end of its output; return the seconds."""
    begin = time.perf_counter()
    subprocess.run(words, env=environment, cwd=folder, capture_output=True, check=True)
    return time.perf_counter() - begin
