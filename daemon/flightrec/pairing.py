"""Which success mended which earlier failure of its session: pure, and silent when in doubt."""

import enum
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flightrec.classify import Failure, FailureKind
from flightrec.ingest import CommandRun
from flightrec.shell_words import CommandLine

RUNS_KEPT = 64
"""Runs of one session that pairing looks back over."""

WINDOW_US = 30 * 60 * 1_000_000
"""A failure older than this is not mended by what is typed now."""


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
    ``cd``, the ``export``); ``also_tried`` the attempts in between that failed. Where not ``proven``
    no error text says that this is the remedy: kept as a candidate, neither hinted nor exported.
    """

    failure: Failure
    fix: CommandRun
    fix_line: CommandLine
    fix_segment: int
    kind: RecoveryKind
    needed: tuple[CommandRun, ...]
    also_tried: tuple[CommandRun, ...]
    proven: bool


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
        self._closed: set[bytes] = set()

    @property
    def entries(self) -> Sequence[Entry]:
        """The runs kept, oldest first."""
        return self._entries

    @property
    def open_failures(self) -> tuple[Failure, ...]:
        """Teachable failures that nothing mended yet, oldest first."""
        return tuple(
            entry.failure
            for entry in self._entries
            if entry.failure is not None
            and entry.failure.teachable
            and entry.run.run not in self._closed
        )

    def add(
        self,
        run: CommandRun,
        line: CommandLine,
        failure: Failure | None,
        recoveries: Iterable[Recovery] = (),
    ) -> None:
        """Remember a run; the failures that it mended are closed."""
        self._closed.update(recovery.failure.run.run for recovery in recoveries)
        self._entries.append(Entry(run, line, failure))
        if len(self._closed) > 4 * RUNS_KEPT:
            self._closed &= {entry.run.run for entry in self._entries}


def find_recoveries(
    success: CommandRun, line: CommandLine, history: SessionHistory
) -> tuple[Recovery, ...]:
    """Return what this success mended: nearly always nothing or one failure, newest first.

    It may be several: ``gti comit`` and ``git comit`` are both answered by ``git commit``.
    """
    if success.exit != 0 or not history.open_failures:
        return ()
    found = (_recovery(failure, success, line) for failure in reversed(history.open_failures))
    return tuple(recovery for recovery in found if recovery is not None)[:1]


def find_recovery(
    success: CommandRun, line: CommandLine, history: SessionHistory
) -> Recovery | None:
    """Return the newest failure that this success mended, with the way it was mended."""
    return next(iter(find_recoveries(success, line, history)), None)


def _recovery(failure: Failure, success: CommandRun, line: CommandLine) -> Recovery | None:
    same = [segment.arguments for segment in line.segments] == [
        segment.arguments for segment in failure.line.segments
    ]
    proven = failure.kind is FailureKind.COMMAND_NOT_FOUND and same
    if not line.segments or success.started_us - failure.run.started_us > WINDOW_US:
        return None
    return Recovery(
        failure=failure,
        fix=success,
        fix_line=line,
        fix_segment=min(failure.segment, len(line.segments) - 1),
        kind=RecoveryKind.REPLACE,
        needed=(),
        also_tried=(),
        proven=proven,
    )
