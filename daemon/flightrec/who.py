"""Who ran what: the person, or which agent. An empty name is the person's."""

import sqlite3

AGENT_OF_RUN = "coalesce(runs.agent, sessions.agent)"
"""SQL: a session's first runs may have been recorded before anybody knew."""

PERSON = "you"
"""How people are shown themselves."""


def show_agent(agent: str | None) -> str:
    """Return who it was, for a person."""
    return agent or PERSON


def agent_of_session(connection: sqlite3.Connection, session: bytes | None) -> str:
    """Return the agent of a session."""
    row = connection.execute(
        "SELECT coalesce(agent, '') FROM sessions WHERE session = ?", (session,)
    ).fetchone()
    return "" if row is None else str(row[0])


def agents_by_rule(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return who met each rule: whose runs are evidence about it."""
    rows = connection.execute(
        "SELECT DISTINCT evidence.rule_id, coalesce(sessions.agent, '') FROM evidence"
        " JOIN sessions ON sessions.session = evidence.session ORDER BY 1, 2"
    )
    agents: dict[str, list[str]] = {}
    for rule, agent in rows:
        agents.setdefault(rule, []).append(agent)
    return agents


def counts_by_agent(connection: sqlite3.Connection, since_us: int) -> dict[str, dict[str, int]]:
    """Return how many commands everybody ran since a time, and how many of them failed."""
    rows = connection.execute(
        f"SELECT coalesce({AGENT_OF_RUN}, ''), count(DISTINCT runs.id),"  # noqa: S608 - from above
        " count(DISTINCT failures.run_id)"
        " FROM runs JOIN sessions ON sessions.id = runs.session_id"
        " LEFT JOIN failures ON failures.run_id = runs.id"
        " WHERE runs.started_us >= ? AND (runs.source != 4 OR runs.parent IS NULL)"
        " GROUP BY 1 ORDER BY 2 DESC, 1",
        (since_us,),
    )
    return {agent: {"runs": runs, "failures": failures} for agent, runs, failures in rows}
