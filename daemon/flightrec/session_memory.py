"""What the recorder remembers of recent sessions, and how it finds that again after a restart."""

import dataclasses
import json
import sqlite3
from collections import OrderedDict
from typing import Any

from flightrec.classify import classify
from flightrec.ingest import CommandRun
from flightrec.pairing import RUNS_KEPT, SessionHistory
from flightrec.places import find_place
from flightrec.redact import Safe
from flightrec.shell_words import parse
from flightrec.wire import Source, TailSource, WordKind

SESSIONS_KEPT = 64
"""The least recently used one is read back from the disk when it goes on."""

PARENTS_KEPT = 1024

ONE_SESSION_US = 10 * 1_000_000
"""Shells that one run starts in this distance are one session: ``xargs``, a Makefile, an agent."""

_RUNS = """
SELECT runs.run, runs.source, runs.shell, runs.project, runs.worktree, runs.cwd, runs.command,
  runs.truncated, runs.secret, runs.boot, runs.mono_us, runs.started_us, runs.exit, runs.signal,
  runs.pipestatus, runs.usec, runs.tail, runs.tail_source, runs.tail_total, runs.end_cwd,
  runs.word_kind, runs.parent, runs.depth, runs.agent, runs.tool_use_id, sessions.tty, sessions.pid,
  failures.id IS NOT NULL AS failed, recoveries.id IS NOT NULL AS mended
FROM runs
JOIN sessions ON sessions.id = runs.session_id
LEFT JOIN failures ON failures.run_id = runs.id
LEFT JOIN recoveries ON recoveries.failure_id = failures.id
WHERE sessions.session = ? AND NOT (runs.source = 4 AND runs.parent IS NOT NULL)  -- no parts
ORDER BY runs.id DESC LIMIT ?
"""


class SessionMemory:
    """Histories by session, and which sessions are one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._histories: OrderedDict[bytes, SessionHistory] = OrderedDict()
        self._children: OrderedDict[bytes, tuple[bytes, int]] = OrderedDict()

    def session_of(self, run: CommandRun) -> bytes:
        """Return the session that this run counts for: its own, or a sibling's just before."""
        if run.parent is None:
            return run.session
        session, last_us = self._children.get(run.parent, (run.session, run.started_us))
        if abs(run.started_us - last_us) > ONE_SESSION_US:
            session = run.session
        self._children[run.parent] = (session, run.started_us)
        self._children.move_to_end(run.parent)
        if len(self._children) > PARENTS_KEPT:
            self._children.popitem(last=False)
        return session

    def history(self, session: bytes, *, before: bytes) -> SessionHistory:
        """Return the session's runs; ``before`` is the run that is being recorded now."""
        history = self._histories.get(session)
        if history is None:
            history = self._histories[session] = self._read_back(session, before)
            if len(self._histories) > SESSIONS_KEPT:
                self._histories.popitem(last=False)
        self._histories.move_to_end(session)
        return history

    def forget(self, session: bytes) -> None:
        """Nothing more will come of this session."""
        self._histories.pop(session, None)

    def _read_back(self, session: bytes, before: bytes) -> SessionHistory:
        history = SessionHistory()
        cursor = self._connection.execute(_RUNS, (session, RUNS_KEPT + 1))
        names = [column[0] for column in cursor.description]
        for row in reversed(cursor.fetchall()):
            values = dict(zip(names, row, strict=True))
            if values["run"] != before:
                _remember(history, session, values)
        return history


def _remember(history: SessionHistory, session: bytes, values: dict[str, Any]) -> None:
    """Add a run as it was recorded; a failure that was mended is open no more."""
    failed, mended = values.pop("failed"), values.pop("mended")
    run = _run(session, values)
    line = parse(run.command)
    failure = classify(run, line) if failed and find_place(run.cwd).mine else None
    if failure is not None and mended:
        failure = dataclasses.replace(failure, teachable=False)
    history.add(run, line, failure)


def _run(session: bytes, values: dict[str, Any]) -> CommandRun:
    """Return the run of a row. What the database holds was redacted when it went in."""
    texts = ("project", "worktree", "cwd", "command", "tail", "end_cwd")
    read: dict[str, Safe | None] = {name: Safe(values[name]) for name in texts}
    for name in ("agent", "tool_use_id"):
        read[name] = None if values[name] is None else Safe(values[name])
    return CommandRun(
        **{
            **values,
            **read,
            "session": session,
            "source": Source(values["source"]),
            "truncated": bool(values["truncated"]),
            "secret": bool(values["secret"]),
            "pipestatus": tuple(json.loads(values["pipestatus"])),
            "tail_source": TailSource(values["tail_source"]),
            "word_kind": WordKind(values["word_kind"]),
        }
    )
