"""Everything recorded, in one SQLite file: runs and sessions in, runs and counts out.

The store takes a ``CommandRun`` and nothing rawer. One process writes; any may read. Rules and
their evidence share the connection and are kept by ``rulebook.py``.
"""

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec

from flightrec.database import HighWaterMark, Opened, open_database, open_memory, open_to_read
from flightrec.ingest import CommandRun
from flightrec.who import AGENT_OF_RUN
from flightrec.wire import Source, TailSource

RUN_COLUMNS = (
    "run", "session_id", "parent", "source", "shell", "agent", "tool_use_id", "depth", "project",
    "worktree", "cwd", "command", "truncated", "secret", "word_kind", "boot", "mono_us",
    "started_us", "exit", "signal", "pipestatus", "usec", "tail", "tail_source", "tail_total",
    "end_cwd",
)  # fmt: skip
"""Of a run's row, in the order of its checksum."""

_TEXTS = frozenset(
    ("shell", "agent", "tool_use_id", "project", "worktree", "cwd", "command", "boot", "pipestatus",
     "tail", "end_cwd")
)  # fmt: skip

_ADD_RUN = (
    f"INSERT INTO runs ({', '.join(RUN_COLUMNS)}, crc) VALUES ("  # noqa: S608 - names from above
    + ", ".join("CAST(? AS TEXT)" if name in _TEXTS else "?" for name in RUN_COLUMNS)
    + ", ?) ON CONFLICT (run) DO NOTHING"
)

_ADD_SESSION = """
INSERT INTO sessions (session, parent, shell, agent, tty, pid, first_us, last_us)
VALUES (?1, ?2, CAST(?3 AS TEXT), CAST(?4 AS TEXT), CAST(?5 AS TEXT), ?6, ?7, ?7)
ON CONFLICT (session) DO UPDATE SET
  last_us = max(last_us, excluded.last_us),
  agent = coalesce(agent, excluded.agent),
  ended_us = NULL
RETURNING id
"""

_SELECT_RUNS = f"""
SELECT runs.id, runs.run, sessions.session, runs.parent, runs.source, runs.shell, {AGENT_OF_RUN},
  runs.tool_use_id, runs.depth, runs.project, runs.worktree, runs.cwd, runs.command,
  runs.truncated, runs.secret, runs.started_us, runs.exit, runs.signal, runs.pipestatus,
  runs.usec, runs.tail, runs.tail_source, runs.tail_total, runs.end_cwd,
  failures.kind, failures.program, failures.signature, failures.teachable
FROM runs
JOIN sessions ON sessions.id = runs.session_id
LEFT JOIN failures ON failures.id = (SELECT min(id) FROM failures WHERE run_id = runs.id)
"""  # noqa: S608 - SQL of our own


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run as the store has it. Times are microseconds; ids are 16 bytes.

    ``failure_kind``, ``program`` and ``signature`` are None where it did not fail as a command.
    """

    id: int
    run: bytes
    session: bytes
    parent: bytes | None
    source: Source
    shell: str
    agent: str | None
    tool_use_id: str | None
    depth: int
    project: str
    worktree: str
    cwd: str
    command: str
    truncated: bool
    secret: bool
    started_us: int
    exit: int | None
    signal: int | None
    pipestatus: tuple[int, ...]
    usec: int | None
    tail: str
    tail_source: TailSource
    tail_total: int
    end_cwd: str
    failure_kind: str | None
    program: str | None
    signature: str | None
    teachable: bool | None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are asked for; all conditions given must hold.

    ``before`` is a row id to continue from, ``failed`` asks for runs that failed as commands,
    ``text`` is a part of the command, an empty ``agent`` the person. Without ``parts``, what tools
    did inside an agent's command is left out.
    """

    before: int | None = None
    session: bytes | None = None
    project: str | None = None
    since_us: int | None = None
    failed: bool = False
    text: str | None = None
    parts: bool = True
    agent: str | None = None


ALL_RUNS = RunFilter()


@dataclass(frozen=True, slots=True)
class Counts:
    """How much the store holds. ``rules`` counts them by status."""

    runs: int
    sessions: int
    failures: int
    rules: dict[str, int]


_READ_AS: dict[str, Callable[[Any], object]] = {
    "source": Source,
    "truncated": bool,
    "secret": bool,
    "pipestatus": lambda text: tuple(json.loads(text)),
    "tail_source": TailSource,
    "teachable": lambda flag: None if flag is None else bool(flag),
}


def to_bytes(text: str) -> bytes:
    """Return text for ``CAST(? AS TEXT)``: SQLite takes no lone surrogates in a plain parameter."""
    return text.encode("utf-8", "surrogateescape")


class Store:
    """The database. ``connection`` is in autocommit mode; write inside ``transaction()``."""

    def __init__(self, opened: Opened, path: Path | None = None) -> None:
        self.connection = opened.connection
        self.path = path
        self.quarantined = opened.quarantined
        self.lost = opened.lost
        self.warning = opened.warning
        self._mark = HighWaterMark(path) if path else None
        self._highest = 0

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open for writing, creating it where it is missing; ``":memory:"`` has no file.

        Raises FlightrecError where a newer program made it, ``sqlite3.Error`` where it cannot be
        opened now (``database.trouble_of`` says why).
        """
        if path == ":memory:":
            return cls(Opened(open_memory()))
        return cls(open_database(Path(path)), Path(path))

    @classmethod
    def open_read_only(cls, path: Path | str) -> Self:
        """Open for reading; a database that does not exist yet reads as an empty one."""
        if path == ":memory:":
            return cls(Opened(open_memory()))
        return cls(Opened(open_to_read(Path(path))))

    def close(self) -> None:
        """Close the connection; a last checkpoint folds the log into the database."""
        self.connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit on leaving, roll back on an exception; inside another one it is a savepoint."""
        if self.connection.in_transaction:
            with self._savepoint():
                yield self.connection
            return
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
            self.connection.execute("COMMIT")
        except BaseException:
            # A full disk has rolled everything back already.
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        if self._mark and self._highest:
            self._mark.note(self._highest)
            self._highest = 0

    @contextlib.contextmanager
    def _savepoint(self) -> Iterator[None]:
        self.connection.execute("SAVEPOINT step")
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK TO step")
                self.connection.execute("RELEASE step")
            raise
        self.connection.execute("RELEASE step")

    def add_run(self, run: CommandRun) -> int | None:
        """Store a run and return its row id, or None where it was stored before."""
        values = self._values(run, self._add_session(run))
        cursor = self.connection.execute(_ADD_RUN, (*values, row_crc(values)))
        if cursor.rowcount == 0:
            return None
        row_id = cursor.lastrowid
        assert row_id is not None  # noqa: S101 - rowcount was 1
        self._highest = row_id
        return row_id

    def _add_session(self, run: CommandRun) -> int:
        (session_id,) = self.connection.execute(
            _ADD_SESSION,
            (
                run.session,
                run.parent,
                to_bytes(run.shell),
                _optional(run.agent),
                to_bytes(run.tty),
                run.pid,
                run.started_us,
            ),
        ).fetchone()
        return int(session_id)

    @staticmethod
    def _values(run: CommandRun, session_id: int) -> tuple[int | bytes | None, ...]:
        return (
            run.run,
            session_id,
            run.parent,
            int(run.source),
            to_bytes(run.shell),
            _optional(run.agent),
            _optional(run.tool_use_id),
            run.depth,
            to_bytes(run.project),
            to_bytes(run.worktree),
            to_bytes(run.cwd),
            to_bytes(run.command),
            int(run.truncated),
            int(run.secret),
            int(run.word_kind),
            to_bytes(run.boot),
            run.mono_us,
            run.started_us,
            run.exit,
            run.signal,
            msgspec.json.encode(run.pipestatus),
            run.usec,
            to_bytes(run.tail),
            int(run.tail_source),
            run.tail_total,
            to_bytes(run.end_cwd),
        )

    def end_session(self, session: bytes, wall_us: int) -> None:
        """Note that the session's shell is gone."""
        self.connection.execute(
            "UPDATE sessions SET ended_us = ?2, last_us = max(last_us, ?2) WHERE session = ?1",
            (session, wall_us),
        )

    def run_by_id(self, row_id: int) -> RecordedRun | None:
        """Return one run."""
        return next(iter(self._runs("WHERE runs.id = ?", (row_id,))), None)

    def run_by_uuid(self, run: bytes) -> RecordedRun | None:
        """Return the run with this 128-bit id."""
        return next(iter(self._runs("WHERE runs.run = ?", (run,))), None)

    def recent_runs(self, limit: int = 50, wanted: RunFilter = ALL_RUNS) -> list[RecordedRun]:
        """Return the newest runs that fit, newest first."""
        conditions: list[tuple[str, object]] = [
            ("runs.id < ?", wanted.before),
            ("sessions.session = ?", wanted.session),
            ("runs.project = CAST(? AS TEXT)", _optional(wanted.project)),
            ("runs.started_us >= ?", wanted.since_us),
            ("failures.kind IS NOT NULL AND ?", wanted.failed or None),
            ("instr(runs.command, CAST(? AS TEXT)) > 0", _optional(wanted.text)),
            (f"coalesce({AGENT_OF_RUN}, '') = CAST(? AS TEXT)", _optional(wanted.agent)),
            ("(runs.source != ? OR runs.parent IS NULL)", None if wanted.parts else Source.SHIM),
        ]
        asked = [(clause, value) for clause, value in conditions if value is not None]
        where = "WHERE " + " AND ".join(clause for clause, _ in asked) if asked else ""
        values = (*(value for _, value in asked), limit)
        return self._runs(f"{where} ORDER BY runs.id DESC LIMIT ?", values)

    def _runs(self, rest: str, values: Sequence[object]) -> list[RecordedRun]:
        rows = self.connection.execute(f"{_SELECT_RUNS} {rest}", values)
        return [_recorded(row) for row in rows]

    def counts(self) -> Counts:
        """Return how much is stored."""
        (runs, sessions, failures) = self.connection.execute(
            "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM sessions),"
            " (SELECT count(*) FROM failures)"
        ).fetchone()
        rules = self.connection.execute("SELECT status, count(*) FROM rules GROUP BY status")
        return Counts(runs, sessions, failures, dict(rules.fetchall()))

    def get_meta(self, key: str) -> str | None:
        """Return a small value kept beside the data."""
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Keep a small value beside the data."""
        self.connection.execute(
            "INSERT INTO meta (key, value) VALUES (?, ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def damaged_rows(self) -> int:
        """Read every run and return how many differ from their checksum."""
        names = ", ".join(RUN_COLUMNS)
        rows = self.connection.execute(f"SELECT {names}, crc FROM runs")  # noqa: S608 - as above
        return sum(row_crc([_raw(value) for value in row[:-1]]) != row[-1] for row in rows)


def row_crc(values: Sequence[int | bytes | None]) -> int:
    """Return the checksum of a row's values in the order of its columns."""
    parts = (value if isinstance(value, bytes) else b"%a" % value for value in values)
    return zlib.crc32(b"\x1f".join(parts))


def _optional(text: str | None) -> bytes | None:
    return None if text is None else to_bytes(text)


def _raw(value: Any) -> Any:  # noqa: ANN401 - whatever SQLite holds
    return to_bytes(value) if isinstance(value, str) else value


def _recorded(row: tuple[Any, ...]) -> RecordedRun:
    values = dict(zip(RecordedRun.__slots__, row, strict=True))
    return RecordedRun(**{**values, **{name: to(values[name]) for name, to in _READ_AS.items()}})
