"""The rows that every bench module returns, and how they are printed."""

import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what was measured, its value in ``unit``, and the bar that it is read against."""

    what: str
    value: float
    unit: str
    bar: str = ""
    note: str = ""


def print_rows(title: str, rows: list[Row]) -> None:
    """Print a Markdown table."""
    print(f"\n### {title}\n\n| what | value | bar | note |\n|---|---:|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.value:.3g} {row.unit} | {row.bar} | {row.note} |")


def describe_machine() -> str:
    """Return one line about the processor, the kernel and Python."""
    models = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    load = Path("/proc/loadavg").read_text(encoding="utf-8").split()[0]
    return (
        f"{len(models)} × {models[0] if models else platform.machine()}, Linux"
        f" {platform.release()}, Python {platform.python_version()}, load {load}"
    )
