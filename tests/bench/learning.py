"""What learning from one run costs in the writer, and that it does not grow with what was recorded.

Measured is a recorder on a real database file, in transactions of 50 runs as the writer makes them.
Storing the run is measured the same way and taken off. The words were read before, as they are in
the writer, where the redactor has just read the same line. It is processor time, so that other work
on the machine counts less.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.table import Row

from flightrec.classify import Failure, classify
from flightrec.fingerprint import Fingerprints, take_fingerprint
from flightrec.ingest import CommandRun
from flightrec.recorder import Recorder
from flightrec.redact import Safe
from flightrec.shell_words import parse
from flightrec.store import Store
from flightrec.wire import Source, TailSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TITLE = "Learning in the writer"

GROUP = 50
ROUNDS = 60
HISTORY = (0, 10_000, 100_000)
SUCCESSES = ("ls -la src", "cat README.md", "vim x.py", "make build", "cd /srv/app && ls | wc -l")
KNOWN = ("git status", "git log --oneline", "git diff HEAD")
NOT_FOUND = "bash: gti: command not found\n"


def rows() -> list[Row]:
    """Measure runs of every sort after ever more recorded runs."""
    measured = []
    for runs in HISTORY:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder) / "flightrec.db")
            bench.fill(runs)
            for what, bar, make in SORTS:
                cost = bench.measure(make)
                measured.append(Row(f"{what}, {runs:,} runs before", cost, "µs", bar))
            bench.store.close()
    return [*measured, *fingerprint_rows()]


def fingerprint_rows() -> list[Row]:
    """Measure the look at a work tree that a failure costs, and the one at a pass in doubt."""
    with tempfile.TemporaryDirectory() as name:
        failure = failure_in_tree(Path(name))
        fingerprints = Fingerprints()
        taken = _median_us(lambda: fingerprints.take(failure))
        compared = _median_us(lambda: fingerprints.is_edited(failure, ()))
        looks = len(take_fingerprint(failure).stamps)
    return [
        Row("a failure's fingerprint, taken", taken, "µs", "≤ 1,000", f"{looks} looks"),
        Row("a failure's fingerprint, compared", compared, "µs", "≤ 1,000"),
    ]


def failure_in_tree(root: Path) -> Failure:
    """Return a failure whose text names as many files as are looked at, in a tree with more."""
    (root / ".git").mkdir()
    for name in ("HEAD", "index"):
        (root / ".git" / name).touch()
    for number in range(80):
        (root / f"folder{number}").mkdir()
        (root / f"folder{number}/module.py").touch()
    tail = "".join(f'  File "{root}/folder{n}/module.py", line 3, in <module>\n' for n in range(80))
    run = replace(
        Bench(root / "flightrec.db").run(
            "python -m app", 1, f"{tail}ModuleNotFoundError: No module"
        ),
        worktree=Safe(str(root)),
        cwd=Safe(str(root)),
    )
    failure = classify(run, parse(run.command))
    assert failure is not None
    return failure


def _median_us(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(ROUNDS * 5):
        start = time.thread_time()
        work()
        taken.append(time.thread_time() - start)
    return statistics.median(taken) * 1_000_000


class Bench:
    """A store, a recorder, and runs that come one second after the other."""

    def __init__(self, path: Path) -> None:
        self.store = Store.open(path)
        self.recorder = Recorder(self.store)
        self.number = 0

    def run(self, command: str, exit_: int = 0, tail: str = "", session: int = 1) -> CommandRun:
        """Return the next run."""
        self.number += 1
        at_us = 1_796_040_000_000_000 + self.number * 1_000_000
        return CommandRun(  # noqa: S604 - no shell is started
            run=self.number.to_bytes(16, "big"),
            session=session.to_bytes(16, "big"),
            source=Source.RELAY,
            shell="bash",
            tty="/dev/pts/1",
            pid=1,
            project=Safe("/src/app"),
            worktree=Safe("/src/app"),
            cwd=Safe("/src/app"),
            command=Safe(command),
            truncated=False,
            secret=False,
            boot="b",
            mono_us=at_us,
            started_us=at_us,
            exit=exit_,
            tail=Safe(tail),
            tail_source=TailSource.STDERR if tail else TailSource.NONE,
        )

    def fill(self, runs: int) -> None:
        """Record sessions of ordinary work, one in eight commands mistyped and corrected."""
        for start in range(0, runs, 1000):
            with self.store.transaction():
                for number in range(start, min(start + 1000, runs)):
                    self.recorder.record(self._ordinary(number))

    def _ordinary(self, number: int) -> CommandRun:
        session = number // 100
        if number % 8 == 0:
            return self.run("gti status", 127, NOT_FOUND, session)
        if number % 8 == 1:
            return self.run("git status", session=session)
        return self.run(f"{SUCCESSES[number % 5]} {number % 50}", session=session)

    def measure(self, make: Callable[[Bench, int], Iterator[CommandRun]]) -> float:
        """Return the median cost of a run in microseconds, storing it excepted."""
        learning, storing = [], []
        for number in range(ROUNDS):
            learning.append(self._took(make(self, number), self.recorder.record))
            storing.append(self._took(make(self, number), self.store.add_run))
        return statistics.median(learning) - statistics.median(storing)

    def _took(self, made: Iterator[CommandRun], record: Callable[[CommandRun], object]) -> float:
        runs = list(made)
        for run in runs:
            parse(run.command)  # remembered: as many are kept as make a group
        with self.store.transaction():
            start = time.thread_time()
            for run in runs:
                record(run)
            taken = time.thread_time() - start
        return taken / len(runs) * 1_000_000


def successes(bench: Bench, number: int) -> Iterator[CommandRun]:
    """Yield commands that no rule is about."""
    for index in range(GROUP):
        yield bench.run(f"{SUCCESSES[index % 5]} {number} {index}", session=10_000_000)


def known(bench: Bench, number: int) -> Iterator[CommandRun]:
    """Yield plain uses of what a rule offers."""
    for index in range(GROUP):
        yield bench.run(f"{KNOWN[index % 3]} -n{number}{index}", session=20_000_000)


def failures(bench: Bench, number: int) -> Iterator[CommandRun]:
    """Yield failures that nothing mends, of which a rule knows."""
    for index in range(GROUP):
        yield bench.run(f"gti log {number}{index}", 127, NOT_FOUND, session=30_000_000 + number)


def recoveries(bench: Bench, number: int) -> Iterator[CommandRun]:
    """Yield failures and their fixes in turn."""
    session = 40_000_000 + number
    for index in range(GROUP // 2):
        yield bench.run(f"gti show {number}{index}", 127, NOT_FOUND, session)
        yield bench.run(f"git show {number}{index}", session=session)


SORTS = (
    ("a success that no rule is about", "≤ 30 µs", successes),
    ("a plain use of a known remedy", "≤ 100 µs", known),
    ("a failure", "≤ 1,000 µs", failures),
    ("a failure or the run that mends it", "≤ 1,000 µs", recoveries),
)
