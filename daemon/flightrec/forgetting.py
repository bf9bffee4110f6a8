"""Takes recorded commands out again so that no byte of them stays in any file of ours.

DELETE is not enough: SQLite leaves text in free pages, in the full-text index and in the log. What
cannot be searched (a damaged database that was set aside, a copy of a memory file) goes as a whole
where it may hold what is to be forgotten.
"""

import contextlib
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flightrec.ancestors import PROGRAMS
from flightrec.backups import backup_folder
from flightrec.database import trouble_of
from flightrec.errors import FlightrecError
from flightrec.evidence import Mark
from flightrec.paths import Paths
from flightrec.rulebook import Rulebook
from flightrec.store import Store, to_bytes

_WANTED = "CAST(?1 AS TEXT)"


def _in_text(column: str) -> str:
    return f"instr({column}, {_WANTED}) > 0"


def _in_json(column: str) -> str:
    """Look at the values of a rule's JSON, but for our own words: kinds, and the sorts of slots."""
    return (
        f"CASE WHEN json_valid({column}) THEN EXISTS (SELECT 1 FROM json_tree({column})"  # noqa: S608 - our own names
        f" WHERE type = 'text' AND fullkey <> '$.kind' AND NOT (key = 1 AND path LIKE '$.words[%')"
        f" AND {_in_text('atom')}) ELSE {_in_text(column)} END"
    )


def _in_signature(column: str) -> str:
    """Look behind the kind of failure."""
    return _in_text(f"substr({column}, instr({column}, '|') + 1)")


def _in_source(column: str) -> str:
    """Look at the name of the bundle that it came with."""
    return _in_text(f"substr({column}, nullif(instr({column}, ':'), 0) + 1)")


def _is(column: str) -> str:
    return f"{column} = {_WANTED}"


def _in_agent(_column: str) -> str:
    """Look at a program's name where it is none of the agents that everybody knows."""
    known = ", ".join(f"'{name}'" for name in sorted({*PROGRAMS, *PROGRAMS.values()}))
    either = " OR ".join(
        f"({agent} NOT IN ({known}) AND {_in_text(agent)})"
        for agent in ("runs.agent", "sessions.agent")
    )
    return f"(SELECT {either} FROM sessions WHERE sessions.id = runs.session_id)"  # noqa: S608 - as above


SEARCHED: Mapping[str, Mapping[str, Callable[[str], str]]] = {
    "runs": {
        **dict.fromkeys(("command", "tail", "project", "worktree", "cwd", "end_cwd"), _in_text),
        "agent": _in_agent,
    },
    "failures": {"program": _in_text, "subcommand": _in_text, "signature": _in_signature},
    "rules": {
        "id": _is,
        "program": _in_text,
        "project": _in_text,
        "origin": _in_source,
        **dict.fromkeys(("seen_in", "trigger", "remedy"), _in_json),
    },
    "evidence": {"project": _in_text, "origin": _in_source},
    "outcomes": {"project": _in_text, "worktree": _in_text, "signature": _in_signature},
    "hints": {"remedy": _in_text},
    "guards": {"project": _in_text},
}
"""Tables whose rows go where one of these columns holds what is to be forgotten: a condition each.

All other texts there are words of ours, numbers and ids: who forgets ``deny`` means no guard.
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be forgotten: one of a text, a session, and all since a time (wall clock)."""

    text: str | None = None
    session: bytes | None = None
    since_us: int | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How much was found: rows of the database, and files deleted as a whole."""

    runs: int
    rules: int
    files: int


def forget(
    store: Store,
    paths: Paths,
    wanted: Wanted,
    refresh_exports: Callable[[], object],
    *,
    dry_run: bool = False,
) -> Forgotten:
    """Delete what is wanted from the database and the files beside it, and return how much it was.

    ``refresh_exports`` brings memory files up to date; that leaves copies of what they were.
    Raises FlightrecError where a reader keeps old pages alive, ``sqlite3.Error`` where the disk
    cannot take the rewritten database.
    """
    since_s = _since_s(store.connection, wanted)
    found = _delete_rows(store, wanted, dry_run=dry_run)
    if not dry_run:
        rewrite(store.connection)
        refresh_exports()
    files = list(_find_files(paths, lambda file: _may_hold(file, wanted.text, since_s)))
    if not dry_run:
        _delete(files)
    return Forgotten(*found, len(files))


def delete_files_that(paths: Paths, may_hold: Callable[[Path], bool]) -> None:
    """Delete copies of memory files that may hold something, and databases set aside."""
    _delete(_find_files(paths, may_hold))


def _delete(files: Iterable[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


class _RehearsalError(Exception):
    """Rolls a rehearsal back."""


def _delete_rows(store: Store, wanted: Wanted, *, dry_run: bool) -> tuple[int, int]:
    found = (0, 0)
    with contextlib.suppress(_RehearsalError), store.transaction() as connection:
        before = _count(connection)
        _mark_runs(connection, wanted)
        if wanted.text is not None:
            _delete_text(connection, wanted.text)
        _delete_of_runs(connection, wanted)
        after = _count(connection)
        found = before[0] - after[0], before[1] - after[1]
        connection.execute("DROP TABLE temp.doomed")
        connection.execute("DROP TABLE temp.touched")
        if dry_run:
            raise _RehearsalError
    return found


def _count(connection: sqlite3.Connection) -> tuple[int, int]:
    runs, rules = connection.execute(
        "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM rules)"
    ).fetchone()
    return int(runs), int(rules)


def _mark_runs(connection: sqlite3.Connection, wanted: Wanted) -> None:
    """Note ids (not texts) of the runs that go, in a temporary table."""
    condition, value = _condition(wanted)
    connection.execute(
        "CREATE TEMP TABLE doomed AS SELECT id, lower(hex(run)) AS event FROM runs"  # noqa: S608 - our own names
        f" WHERE {condition}",
        (value,),
    )
    connection.execute("CREATE TEMP TABLE touched (rule_id TEXT)")


def _condition(wanted: Wanted) -> tuple[str, Any]:
    if wanted.text is not None:
        return _holds_text("runs"), to_bytes(wanted.text)
    if wanted.session is not None:
        return "session_id = (SELECT id FROM sessions WHERE session = ?1)", wanted.session
    return "started_us >= ?1", wanted.since_us


def _holds_text(table: str) -> str:
    """Return a condition on the texts of a table."""
    return " OR ".join(condition(column) for column, condition in SEARCHED[table].items())


def _delete_text(connection: sqlite3.Connection, text: str) -> None:
    """Delete each row that holds the text, as it is or as JSON writes it."""
    written = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    for table in SEARCHED:
        condition = _holds_text(table)
        for form in written:
            connection.execute(f"DELETE FROM {table} WHERE {condition}", (to_bytes(form),))  # noqa: S608 - our own names


def _delete_of_runs(connection: sqlite3.Connection, wanted: Wanted) -> None:
    """Delete the marked runs, what they are evidence for, and rules left without any."""
    about = "event IN (SELECT event FROM temp.doomed) OR session = ?1 OR at_us >= ?2"
    values = (wanted.session, wanted.since_us)
    connection.execute(
        f"INSERT INTO temp.touched SELECT rule_id FROM evidence WHERE {about}",  # noqa: S608 - as above
        values,
    )
    connection.execute(f"DELETE FROM evidence WHERE {about}", values)  # noqa: S608 - as above
    connection.execute(
        "DELETE FROM hints WHERE lower(hex(run)) IN (SELECT event FROM temp.doomed)"
        " OR session = ?1 OR at_us >= ?2",
        values,
    )
    connection.execute("DELETE FROM outcomes WHERE at_us >= ?", (wanted.since_us,))
    connection.execute("DELETE FROM runs WHERE id IN (SELECT id FROM temp.doomed)")
    connection.execute(
        "DELETE FROM rules WHERE id IN (SELECT rule_id FROM temp.touched)"
        " AND id NOT IN (SELECT rule_id FROM evidence)"
    )
    _count_anew(connection)
    connection.execute("DELETE FROM sessions WHERE id NOT IN (SELECT session_id FROM runs)")


def _count_anew(connection: sqlite3.Connection) -> None:
    """Let the counts of rules that lost evidence say what is left of it."""
    book = Rulebook(connection)
    counted = connection.execute(
        "SELECT rules.id, evidence.kind, count(*) FROM rules JOIN evidence ON rule_id = rules.id"
        " WHERE rules.id IN (SELECT rule_id FROM temp.touched) GROUP BY rules.id, evidence.kind"
    ).fetchall()
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for rule_id, kind, number in counted:
        counts[rule_id][kind] = number
    for rule_id, marks in counts.items():
        rule = book.rule(rule_id)
        if rule is not None:
            first = 0 if rule.remedy.lesson else marks[Mark.FIRST]
            book.update(rule, r=marks[Mark.R], c=first + marks[Mark.C], d=marks[Mark.D])


def rewrite(connection: sqlite3.Connection) -> None:
    """Leave no deleted text in the index, in free space or in the log.

    Raises FlightrecError where that cannot be done now; it may be tried again.
    """
    try:
        connection.execute("INSERT INTO runs_fts (runs_fts) VALUES ('optimize')")
        connection.execute("VACUUM")
    except sqlite3.OperationalError as error:
        raise FlightrecError(
            f"deleted, but old pages still hold it: {trouble_of(error) or type(error).__name__};"
            " mend that and run this again"
        ) from None
    (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise FlightrecError(
            "deleted, but a program that reads the database keeps an old copy of it in use;"
            " end it and run this again"
        )


def _find_files(paths: Paths, may_hold: Callable[[Path], bool]) -> Iterator[Path]:
    yield from paths.state.glob(f"{paths.database.name}.corrupt-*")
    for backup in backup_folder(paths).glob("*"):
        if backup.is_file() and may_hold(backup):
            yield backup


def _since_s(connection: sqlite3.Connection, wanted: Wanted) -> float | None:
    """Return from when on a file may hold something of a session or a time."""
    since_us = wanted.since_us
    if wanted.session is not None:
        row = connection.execute(
            "SELECT first_us FROM sessions WHERE session = ?", (wanted.session,)
        ).fetchone()
        since_us = row[0] if row else None
    return None if since_us is None else since_us / 1_000_000


def _may_hold(file: Path, text: str | None, since_s: float | None) -> bool:
    if text is not None:
        return to_bytes(text) in file.read_bytes()
    return since_s is not None and file.stat().st_mtime >= since_s
