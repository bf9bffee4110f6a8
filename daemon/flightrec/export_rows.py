"""Which memory files the person wants kept, as the database remembers them.

A row holds the place itself: the daemon that keeps a file up to date later has not the environment
of the shell in which somebody asked for it.
"""

import enum
import json
import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from flightrec.agent_files import Kind
from flightrec.store import to_bytes

CLAUDE_FOLDERS_MAX = 20


class Wanted(enum.StrEnum):
    """Whether a file is to be kept up to date."""

    AUTO = "auto"  # nobody said so: Claude Code's memory of a project in which it is used
    ASKED = "asked"  # the person exported there
    STOPPED = "stopped"  # the person wants nothing written there any more


@dataclass(frozen=True, slots=True)
class ExportRow:
    """One project's rules in one file; without a project, those that hold everywhere.

    ``agent`` is empty for a file that the person named. Links at ``path`` must not lead out of
    ``boundary``.
    """

    path: Path
    project: str
    agent: str
    kind: Kind
    boundary: Path
    wanted: Wanted = Wanted.ASKED

    @property
    def real(self) -> Path:
        """The file at the end of all links: many keep one file under two agents' names."""
        return Path(os.path.realpath(self.path))


def path_to_json(path: str) -> str:
    """Return a path as JSON can hold it, whatever its bytes are: each one as a letter."""
    return os.fsencode(path).decode("latin-1")


def path_from_json(text: str) -> str:
    """Return the path. Raises ValueError where ``path_to_json`` did not write the text."""
    return os.fsdecode(text.encode("latin-1"))


def read_rows(connection: sqlite3.Connection) -> list[ExportRow]:
    """Return all rows, those that the person asked for first, and the older ones first."""
    rows = connection.execute(
        "SELECT path, project, agent, kind, boundary, wanted FROM exports"
        " ORDER BY wanted != 'asked', at_us, path, project"
    )
    return [
        ExportRow(Path(path), project, agent, Kind(kind), Path(boundary), Wanted(wanted))
        for path, project, agent, kind, boundary, wanted in rows
    ]


def note(connection: sqlite3.Connection, row: ExportRow) -> None:
    """Remember a row; inside a transaction. What the person asked for is not automatic again."""
    connection.execute(
        """
        INSERT INTO exports (path, project, agent, kind, boundary, wanted, at_us)
        VALUES (CAST(? AS TEXT), CAST(? AS TEXT), ?, ?, CAST(? AS TEXT), ?, ?)
        ON CONFLICT (path, project) DO UPDATE SET agent = excluded.agent, kind = excluded.kind,
          boundary = excluded.boundary, at_us = min(at_us, excluded.at_us),
          wanted = CASE excluded.wanted WHEN 'auto' THEN wanted ELSE excluded.wanted END
        """,
        (
            os.fsencode(row.path),
            to_bytes(row.project),
            row.agent,
            row.kind,
            os.fsencode(row.boundary),
            row.wanted,
            time.time_ns() // 1000,
        ),
    )


_CLAUDE_FOLDERS = "claude_folders"
"""Key of a small value: a JSON list of paths."""


def read_claude_folders(connection: sqlite3.Connection) -> list[str]:
    """Return the folders to which people's sessions of Claude Code moved its files."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (_CLAUDE_FOLDERS,)).fetchone()
    return [path_from_json(text) for text in json.loads(row[0])] if row else []


def note_claude_folder(connection: sqlite3.Connection, folder: str) -> bool:
    """Remember one more such folder, inside a transaction; return whether it is a new one."""
    known = read_claude_folders(connection)
    if folder in known or len(known) >= CLAUDE_FOLDERS_MAX:
        return False
    connection.execute(
        "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
        (_CLAUDE_FOLDERS, json.dumps([path_to_json(path) for path in (*known, folder)])),
    )
    return True


def forget_row(connection: sqlite3.Connection, row: ExportRow) -> None:
    """Remember a row no more; inside a transaction."""
    connection.execute(
        "DELETE FROM exports WHERE path = CAST(? AS TEXT) AND project = CAST(? AS TEXT)",
        (os.fsencode(row.path), to_bytes(row.project)),
    )


def stop(connection: sqlite3.Connection, row: ExportRow) -> None:
    """Write there no more; inside a transaction.

    A file that would be written without being asked for has to remember that.
    """
    if row.kind is Kind.MEMORY and row.agent == "claude":
        stopped = ExportRow(
            row.path, row.project, row.agent, row.kind, row.boundary, Wanted.STOPPED
        )
        note(connection, stopped)
    else:
        forget_row(connection, row)
