"""What commands share in talking to a person or a program: colours, questions, times, JSON."""

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

from flightrec.errors import ExitCode, FlightrecError
from flightrec.harmless import make_harmless

SCHEMA = 1

COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def print_items(items: Sequence[dict[str, Any]], **more: Any) -> None:  # noqa: ANN401 - JSON
    """Print one object for programs. Keys are only ever added."""
    text = json.dumps({"schema": SCHEMA, "items": items, **more}, indent=2)
    print(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def colour(text: str, name: str) -> str:
    """Return the text in a colour where a person reads it on a terminal."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty():
        return text
    return f"\x1b[{COLOURS[name]}m{text}\x1b[0m"


def one_line(text: str, limit: int = 10_000) -> str:
    """Return recorded text as one harmless line of at most ``limit`` characters."""
    shown = make_harmless(text[: limit + 1])
    return shown if len(shown) <= limit else shown[: max(0, limit - 1)] + "…"


def plural(number: int, noun: str) -> str:
    """Return ``1 rule``, ``2 rules``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def ask(question: str, *, yes: bool, default: bool = False) -> bool:
    """Ask the person; ``yes`` is the answer that was given on the command line.

    ``default`` is what a bare Enter means. Raises FlightrecError where nobody can be asked.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise FlightrecError("nobody can be asked here; add --yes to go on", ExitCode.USAGE)
    print(f"{question} {'[Y/n]' if default else '[y/N]'} ", end="", flush=True)
    answer = sys.stdin.readline()
    if default and answer.strip() == "" and answer.endswith("\n"):
        return True
    return answer.strip().lower() in ("y", "yes")


def clock(time_us: int) -> str:
    """Return a wall-clock time in microseconds as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_us / 1_000_000))


def iso(time_us: int | None) -> str | None:
    """Return a wall-clock time for programs."""
    if time_us is None:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_us / 1_000_000))


def duration(usec: int | None) -> str:
    """Return how long something took, in at most six characters."""
    if usec is None:
        return ""
    seconds = usec / 1_000_000
    if seconds < 1:
        return f"{usec // 1000}ms"
    if seconds < 100:
        return f"{seconds:.1f}s"
    minutes = int(seconds // 60)
    return f"{minutes}m" if minutes < 100 else f"{minutes // 60}h"


def parse_duration(text: str) -> int:
    """Return ``90m``, ``1h30m`` or ``2d`` in microseconds. Raises FlightrecError."""
    if not _DURATION.fullmatch(text):
        raise FlightrecError(
            f"{text!r} is no duration; write it like 30m, 2h or 1d12h", ExitCode.USAGE
        )
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))
    return int(seconds * 1_000_000)


def parse_since(text: str, now_us: int) -> int:
    """Return the wall-clock time in microseconds of ``2h`` (ago) or ``2026-11-30 14:00``.

    Raises FlightrecError.
    """
    for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"):
        try:
            return int(time.mktime(time.strptime(text, form)) * 1_000_000)
        except (ValueError, OverflowError):
            continue
    try:
        return now_us - parse_duration(text)
    except FlightrecError:
        raise FlightrecError(
            f"{text!r} is no time; write it like 2h, 3d or '2026-11-30 14:00'", ExitCode.USAGE
        ) from None


def now_us() -> int:
    """Return wall-clock microseconds."""
    return time.time_ns() // 1000
