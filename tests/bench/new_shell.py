"""What a new shell costs, with the line that `flightrec install` writes, over an empty rc."""

import contextlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.interactive import Setup, Shell, daemon_home
from tests.bench.table import Row

TITLE = "A new shell, until its first prompt"

ROUNDS = 40
BAR_MS = 10


def rows() -> list[Row]:
    """Return medians of shells that were started in turns; a daemon is running."""
    with daemon_home() as home:
        subprocess.run(
            [sys.executable, "-m", "flightrec", "install", "--yes"],
            env={**os.environ, "HOME": str(home)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return [
            row for kind in ("bash", "zsh") if shutil.which(kind) for row in _rows_for(kind, home)
        ]


def _rows_for(kind: str, home: Path) -> list[Row]:
    file = f"{home}/.local/share/flightrec/init.{kind}"
    setups = {
        "an empty rc": Setup("", home),
        "with the line of install": Setup(f"if [ -r '{file}' ]; then . '{file}'; fi", home),
    }
    times: dict[str, list[float]] = {name: [] for name in setups}
    for _ in range(ROUNDS):
        for name in random.sample(list(setups), len(setups)):
            times[name].append(_milliseconds(kind, setups[name]))
    median = {name: statistics.median(values) for name, values in times.items()}
    base, ours = median.values()
    return [
        Row(f"{kind}: an empty rc", base, "ms"),
        Row(f"{kind}: added by flightrec", ours - base, "ms", f"≤ {BAR_MS} ms"),
    ]


def _milliseconds(kind: str, setup: Setup) -> float:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fr-bench-")))
        began = time.perf_counter()
        stack.callback(Shell(kind, setup, folder).close)
        return (time.perf_counter() - began) * 1e3
