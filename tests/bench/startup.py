"""How long the command line takes to start, against a bare Python."""

import statistics
import subprocess
import sys
import time

from tests.bench.table import Row

TITLE = "Start of the command line"
ROUNDS = 25


def rows() -> list[Row]:
    """Return medians of interleaved runs and their ratios to ``python -c pass``."""
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "flightrec --version": [sys.executable, "-m", "flightrec", "--version"],
        "flightrec --help": [sys.executable, "-m", "flightrec", "--help"],
        "flightrec init bash": [sys.executable, "-m", "flightrec", "init", "bash"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            times[name].append(1000 * (time.perf_counter() - began))
    median = {name: statistics.median(values) for name, values in times.items()}
    base = median["python -c pass"]
    bars = {"flightrec --version": "≤ 1.5×"}
    return [
        Row(name, value, "ms", bars.get(name, ""), f"{value / base:.2f}× a bare Python")
        for name, value in median.items()
    ]
