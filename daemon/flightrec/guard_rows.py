"""What the person lets guards do in which project, and what guards decided, in SQLite.

It works on a connection handed in; what writes does so inside the caller's transaction.
"""

import sqlite3
from dataclasses import dataclass

from flightrec.rules import Guard
from flightrec.store import to_bytes


@dataclass(frozen=True, slots=True)
class GateRow:
    """One decision about a command: what the guard did (ask, deny, rewrite, or let it pass then).

    ``outcome`` is what happened next: the remedy was followed, failed or was ignored, the agent
    insisted; what it was let passed or recurred; None is not known yet. ``remedy`` is the command
    that it offered.
    """

    gate: str
    at_us: int
    session: bytes
    remedy: str
    outcome: str | None


def guarded_projects(connection: sqlite3.Connection) -> dict[str, Guard]:
    """Return the projects that are guarded by all their rules, and how."""
    rows = connection.execute("SELECT project, mode FROM guards ORDER BY project")
    return {project: Guard(mode) for project, mode in rows}


def guarded_rules(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many rules the person lets ask, deny or rewrite."""
    rows = connection.execute(
        "SELECT guard, count(*) FROM rules WHERE guard NOT IN ('', 'off') GROUP BY 1 ORDER BY 1"
    )
    return dict(rows.fetchall())


def guard_project(connection: sqlite3.Connection, project: str, mode: Guard, at_us: int) -> None:
    """Guard a project, or with OFF no more."""
    connection.execute("DELETE FROM guards WHERE project = CAST(? AS TEXT)", (to_bytes(project),))
    if mode in (Guard.OFF, Guard.UNSET):
        return
    connection.execute(
        "INSERT INTO guards (project, mode, at_us) VALUES (CAST(? AS TEXT), ?, ?)",
        (to_bytes(project), mode.value, at_us),
    )


def gates_of(connection: sqlite3.Connection, rule_id: str, limit: int = 200) -> list[GateRow]:
    """Return a rule's newest decisions, oldest first."""
    rows = connection.execute(
        "SELECT gate, at_us, session, remedy, outcome FROM hints"
        " WHERE rule_id = ? AND gate <> '' ORDER BY at_us DESC, id DESC LIMIT ?",
        (rule_id, limit),
    ).fetchall()
    return [GateRow(*row) for row in reversed(rows)]


def gate_counts(connection: sqlite3.Connection, since_us: int) -> dict[str, int]:
    """Return how many decisions of each sort there were since a time (wall clock)."""
    rows = connection.execute(
        "SELECT gate, count(*) FROM hints WHERE gate <> '' AND at_us >= ? GROUP BY 1 ORDER BY 1",
        (since_us,),
    )
    return dict(rows.fetchall())


def prevented(connection: sqlite3.Connection, since_us: int) -> dict[str, int]:
    """Return how many failures did not happen to whom: the agent, empty for the person.

    These are hints that were followed and commands that a guard stopped, but not those that it
    stopped in vain: the remedy failed, or the agent insisted.
    """
    rows = connection.execute(
        "SELECT coalesce(sessions.agent, ''), count(*) FROM hints"
        " LEFT JOIN sessions ON sessions.session = hints.session"
        " WHERE hints.at_us >= ? AND (outcome = 'followed' OR"
        " (gate IN ('deny', 'rewrite') AND coalesce(outcome, '') NOT IN ('failed', 'insisted')))"
        " GROUP BY 1 ORDER BY 2 DESC, 1",
        (since_us,),
    )
    return dict(rows.fetchall())
