"""How long a command line takes to be read.

It is processor time, so that other work on the machine counts less. Lines differ by a number at
their end, so that none is answered from memory, except where that is what is measured.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from tests.bench.table import Row

from flightrec.shell_words import TEXT_MAX, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TITLE = "A command line read"

TYPICAL = {
    "one command, 40 characters": "docker compose up --build web worker -n ",
    "quoted words, 44 characters": "git commit -m 'fix the parser' src/a.py b.c ",
    "cd, pipe and redirection, 41 characters": "cd /srv/app && pytest -q 2>&1 | tail -n 2",
    "wrappers and a variable, 47 characters": 'sudo -u web timeout 5 make -j4 "$TARGET" all -l',
    "message in $(cat <<'EOF'), 67 characters": (
        "git commit -m \"$(cat <<'EOF'\nIt's done\nEOF\n)\" && git push origin v"
    ),
    "loop, 53 characters": "for f in *.py; do ruff check $f || exit 1; done; ls -",
}
HOSTILE = ("$(", '"$(', "((a) b) ", "a;", "a|", "} ", "(", "<<E\nE\n", "a[")
ROUNDS = 5_000
LARGE_ROUNDS = 50


def rows() -> list[Row]:
    """Measure typical lines, large ones and the worst that is known."""
    measured = [
        Row(name, median_us(f"{text}{number}" for number in range(ROUNDS)), "µs", "≤ 25 µs")
        for name, text in TYPICAL.items()
    ]
    again = TYPICAL["cd, pipe and redirection, 41 characters"]
    measured.append(Row("the same line once more", median_us([again] * ROUNDS), "µs"))
    for name, make in LARGE.items():
        texts = (make(number) for number in range(LARGE_ROUNDS))
        measured.append(Row(f"{name}, 16 KiB", median_us(texts) / 1000, "ms", "≤ 2 ms"))
    worst, piece = max((median_us([fill(piece, TEXT_MAX)] * 5), piece) for piece in HOSTILE)
    measured.append(Row("worst hostile line, 16 KiB", worst / 1000, "ms", note=repr(piece)))
    return measured


def median_us(texts: Iterable[str]) -> float:
    """Return the median of one reading in microseconds of processor time."""
    taken = []
    for text in texts:
        start = time.thread_time_ns()
        parse(text)
        taken.append((time.thread_time_ns() - start) / 1000)
    return statistics.median(taken)


def fill(piece: str, room: int) -> str:
    """Return ``room`` characters of ``piece`` again and again."""
    return (piece * room)[:room]


def heredoc(number: int) -> str:
    """Return a file that an agent writes."""
    start, end = f"cat <<'EOF' >out{number}.txt\n", "\nEOF\n"
    return enclose(start, "a line of 'text' with $(things) in it\n", end)


def nested_heredoc(number: int) -> str:
    """Return a message that an agent passes as one argument."""
    start, end = f"gh pr create -n {number} --body \"$(cat <<'EOF'\n", '\nEOF\n)"'
    return enclose(start, "It's `code` (see above)\n", end)


def quoted_script(number: int) -> str:
    """Return a program text in quotes."""
    return enclose(f"python3 -c {number} '", 'print("x", $y)\n', "'")


def enclose(start: str, piece: str, end: str) -> str:
    """Return a line of the largest size that is read."""
    return start + fill(piece, TEXT_MAX - len(start) - len(end)) + end


LARGE: dict[str, Callable[[int], str]] = {
    "here-document": heredoc,
    "here-document in a substitution": nested_heredoc,
    "quoted script": quoted_script,
}
