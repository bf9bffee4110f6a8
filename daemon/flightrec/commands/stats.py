"""Figures: how much was recorded, what goes wrong, and what hints were good for."""

import argparse
import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

from flightrec.commands.rules import show_line
from flightrec.commands.terminal import colour, now_us, one_line, parse_since, plural, print_items
from flightrec.errors import ExitCode
from flightrec.guard_rows import gate_counts, prevented
from flightrec.hints import LET
from flightrec.paths import find_paths
from flightrec.rulebook import Rulebook
from flightrec.rules import Status
from flightrec.store import Store
from flightrec.who import counts_by_agent, show_agent

HELP = "figures: what was recorded, what fails, what hints were good for"

EXAMPLES = (
    ("flightrec stats", "since the beginning"),
    ("flightrec stats --since 7d", "the last week"),
    ("flightrec stats --json", "for a program"),
)

TOP = 5

DID = {"ask": "asked", "deny": "denied", "rewrite": "rewrote", LET: "let pass"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("--since", metavar="WHEN", help="7d, 12h, or 2026-11-01")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the figures."""
    since_us = parse_since(arguments.since, now_us()) if arguments.since else 0
    with contextlib.closing(Store.open_read_only(find_paths().database)) as store:
        figures = gather(store.connection, since_us)
        rules = Rulebook(store.connection).rules(Status.ACTIVE, Status.PROMOTED, Status.SHARED)
    if arguments.json:
        print_items([figures])
        return ExitCode.OK
    for name, text in describe(figures):
        print(f"{colour(f'{name:12}', 'bold')} {text}")
    best = sorted(rules, key=lambda rule: (-rule.failures, rule.id))[:TOP]
    if best:
        print(colour("\nrules about what fails most", "bold"))
        print(*map(show_line, best), sep="\n")
    return ExitCode.OK


def gather(connection: sqlite3.Connection, since_us: int) -> dict[str, Any]:
    """Return all figures since a time.

    ``prevented`` are hints whose remedy was used and worked, and commands that a guard stopped.
    """
    runs, sessions, projects = connection.execute(
        "SELECT count(*), count(DISTINCT session_id), count(DISTINCT project)"
        " FROM runs WHERE started_us >= ? AND (source != 4 OR parent IS NULL)",
        (since_us,),
    ).fetchone()
    hints = dict(
        connection.execute(
            "SELECT coalesce(outcome, 'open'), count(*) FROM hints WHERE at_us >= ?"
            " AND gate = '' GROUP BY 1 ORDER BY 1",
            (since_us,),
        ).fetchall()
    )
    less = prevented(connection, since_us)
    agents = counts_by_agent(connection, since_us)
    return {
        "since_us": since_us,
        "runs": runs,
        "sessions": sessions,
        "projects": projects,
        "failures": _count_by(connection, "kind", since_us),
        "programs": _count_by(connection, "program", since_us),
        "agents": {who: {**n, "prevented": less.get(who, 0)} for who, n in agents.items()},
        "hints": hints,
        "guard": gate_counts(connection, since_us),
        "prevented": sum(less.values()),
        "rules": dict(
            connection.execute("SELECT status, count(*) FROM rules GROUP BY 1 ORDER BY 1")
        ),
    }


def _count_by(connection: sqlite3.Connection, column: str, since_us: int) -> dict[str, int]:
    rows = connection.execute(
        f"SELECT failures.{column}, count(*) FROM failures JOIN runs ON runs.id = run_id"  # noqa: S608 - our own names
        " WHERE started_us >= ? GROUP BY 1 ORDER BY 2 DESC, 1",
        (since_us,),
    )
    return dict(rows.fetchall())


def describe(figures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the figures as lines for a person."""
    yield (
        "recorded",
        (
            f"{figures['runs']} commands of {figures['sessions']} sessions"
            f" in {figures['projects']} projects"
        ),
    )
    failed = sum(figures["failures"].values())
    share = f" ({100 * failed / figures['runs']:.1f} %)" if figures["runs"] else ""
    yield "failed", f"{failed}{share}{_top(figures['failures'])}"
    if any(figures["agents"]):
        yield "run by", _by_agent(figures["agents"])
    if figures["programs"]:
        yield "programs", _top(figures["programs"]).removeprefix(": ")
    shown = sum(figures["hints"].values())
    yield "hints", f"{shown} shown"
    if figures["guard"]:
        yield "guard", ", ".join(f"{DID[gate]} {count}" for gate, count in figures["guard"].items())
    yield "prevented", plural(figures["prevented"], "failure")
    rules = ", ".join(f"{count} {status}" for status, count in figures["rules"].items())
    yield "rules", rules or "none"


def _by_agent(counts: dict[str, dict[str, int]]) -> str:
    """Return who ran how much; they come largest first."""
    return ", ".join(
        f"{one_line(show_agent(agent), 40)} {n['runs']} ({n['failures']} failed"
        + (f", {n['prevented']} prevented)" if n["prevented"] else ")")
        for agent, n in list(counts.items())[:TOP]
    )


def _top(counts: dict[str, int]) -> str:
    """Return the largest counts; they come largest first."""
    first = list(counts.items())[:TOP]
    return ": " * bool(first) + ", ".join(f"{one_line(name, 40)} {count}" for name, count in first)
