"""The recent runs of one session, which of them failed, and what has been mended."""

import enum
import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from flightrec.classify import Failure
from flightrec.ingest import CommandRun
from flightrec.invocation import Invocation, invocations
from flightrec.redact import Safe
from flightrec.shell_words import CommandLine

RUNS_KEPT = 64
"""Runs of one session that pairing looks back over."""

OPEN_MAX = 12
"""Open failures of one session; the oldest gives way."""


class RecoveryKind(enum.StrEnum):
    """How a failure was mended."""

    REPLACE = "replace"
    PREREQUISITE = "prerequisite"
    DIRECTORY = "directory"
    ENVIRONMENT = "environment"
    PRIVILEGE = "privilege"


@dataclass(frozen=True, slots=True)
class Recovery:
    """A failure and the run that mended it.

    ``fix`` is the run that passed and ``fix_segment`` the part of it that answers the failed one.
    ``needed`` are the runs in between that made it pass, oldest first (the ``npm install``, the
    ``cd``, the ``export``); ``also_tried`` the attempts in between that failed. Where not
    ``proven`` no error text says that this is the remedy: kept as a candidate, neither hinted nor
    exported. ``circumstantial``: the error does not name what made it pass, so that an edit at the
    same time may have done it.
    """

    failure: Failure
    fix: CommandRun
    fix_line: CommandLine
    fix_segment: int
    kind: RecoveryKind
    needed: tuple[CommandRun, ...]
    also_tried: tuple[CommandRun, ...]
    proven: bool
    circumstantial: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a session as pairing remembers it."""

    run: CommandRun
    line: CommandLine
    failure: Failure | None


class SessionHistory:
    """The recent runs of one session, and which of their failures are still open."""

    def __init__(self, size: int = RUNS_KEPT) -> None:
        self._entries: deque[Entry] = deque(maxlen=size)
        self._open: deque[Entry] = deque(maxlen=OPEN_MAX)

    @property
    def entries(self) -> Sequence[Entry]:
        """The runs kept, oldest first."""
        return self._entries

    @property
    def has_open_failures(self) -> bool:
        """Whether any failure is open, asked for every run."""
        return bool(self._open)

    @property
    def open_failures(self) -> tuple[Failure, ...]:
        """Teachable failures that nothing mended yet, oldest first."""
        return tuple(entry.failure for entry in self._open if entry.failure is not None)

    def add(
        self,
        run: CommandRun,
        line: CommandLine,
        failure: Failure | None,
        recoveries: Iterable[Recovery] = (),
    ) -> None:
        """Remember a run. Failures that it mended, or whose command simply passed, are closed."""
        self._entries.append(_without_tail(run, line, failure))
        if failure is not None:
            if failure.teachable:
                self._open.append(Entry(run, line, failure))
        elif self._open and run.exit == 0:
            self._close(run, line, {r.failure.run.run for r in recoveries if r.proven})

    def _close(self, run: CommandRun, line: CommandLine, mended: set[bytes]) -> None:
        passed = {
            _identity(part, directory_of(run, line, index))
            for index, part in enumerate(invocations(line))
        }
        still_open = [
            entry
            for entry in self._open
            if entry.run.run not in mended and _identity_of(entry) not in passed
        ]
        self._open = deque(still_open, maxlen=OPEN_MAX)

    def before(self, failure: Failure) -> list[Entry]:
        """Return the entries before a failure's run, oldest first; none where it is forgotten."""
        return self._around(failure)[0]

    def after(self, failure: Failure) -> list[Entry]:
        """Return the entries after a failure's run, oldest first; none where it is forgotten."""
        return self._around(failure)[1]

    def _around(self, failure: Failure) -> tuple[list[Entry], list[Entry]]:
        entries = list(self._entries)
        for index, entry in enumerate(entries):
            if entry.run.run == failure.run.run:
                return entries[:index], entries[index + 1 :]
        return [], []


def _without_tail(run: CommandRun, line: CommandLine, failure: Failure | None) -> Entry:
    """Return an entry without the output: it is long, and only open failures' is read again."""
    if not run.tail:
        return Entry(run, line, failure)
    bare = replace(run, tail=Safe(""))
    return Entry(bare, line, None if failure is None else replace(failure, run=bare))


def directory_of(run: CommandRun, line: CommandLine, index: int) -> str:
    """Return where a segment runs: the run's directory after the ``cd`` before it."""
    directory = str(run.cwd)
    for segment in line.segments[:index]:
        if segment.program in ("cd", "pushd") and segment.arguments:
            directory = _moved(directory, segment.arguments[-1].text)
    return directory


def _moved(directory: str, target: str) -> str:
    if target.startswith("~") or "$" in target or target == "-":
        return target
    return os.path.normpath(target if target.startswith("/") else f"{directory}/{target}")


def _identity_of(entry: Entry) -> tuple[object, ...]:
    assert entry.failure is not None  # noqa: S101 - only failures are kept open
    index = entry.failure.segment
    return _identity(invocations(entry.line)[index], directory_of(entry.run, entry.line, index))


def _identity(part: Invocation, directory: str) -> tuple[object, ...]:
    """Return what makes two commands the same command in the same place."""
    return (part.program, part.words, part.variables, part.privileged, part.code, directory)
