"""The table in README.md of which agents were driven, and what came of it.

A test run with ``--keep-agents`` writes what it saw into ``results.json`` and README.md.
"""

import datetime as dt
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from agents.clients import CLIENTS, MORE_CLIENTS, Client
from agents.story import COMMANDS, Seen
from flightrec.agent_injection import WAYS
from flightrec.hook_clients import CLIENTS as HOOK_CLIENTS

RESULTS = Path(__file__).parent / "results.json"
README = Path(__file__).parent.parent.parent / "README.md"

_BLOCK = re.compile(
    r"(?<=<!-- agents driven: begin -->\n).*(?=<!-- agents driven: end -->)", re.DOTALL
)


class Row(msgspec.Struct, frozen=True):
    """What was seen of one client; ``recorded`` counts the commands of the story."""

    agent: str
    version: str
    recorded: int
    hinted: bool
    remembers: bool
    unchanged: bool
    date: str


def row_of(client: Client, seen: Seen) -> Row:
    """Return what the story came to, today."""
    return Row(
        agent=client.name,
        version=client.package.version,
        recorded=len(COMMANDS) - len(seen.missed),
        hinted=seen.hints == 1,
        remembers=seen.remembers,
        unchanged=not seen.changed,
        date=dt.datetime.now(dt.UTC).date().isoformat(),
    )


def kept_rows() -> list[Row]:
    """Return the rows of the last runs that kept theirs."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=list[Row]) if RESULTS.exists() else []


def keep(new: Iterable[Row]) -> None:
    """Put these rows in the place of older ones of the same clients, here and in README.md."""
    rows = {row.agent: row for row in (*kept_rows(), *new)}
    ordered = [rows[client.name] for client in (*CLIENTS, *MORE_CLIENTS) if client.name in rows]
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")
    README.write_text(_BLOCK.sub(lambda _: render(ordered), README.read_text()))


def table_in_readme() -> str:
    """Return the table as README.md has it."""
    found = _BLOCK.search(README.read_text())
    return "" if found is None else found[0]


def render(rows: Iterable[Row]) -> str:
    """Return the table."""
    lines = (
        f"| {_title(row.agent)} | {row.version} | {row.recorded} of {len(COMMANDS)} |"
        f" {_yes(row.hinted)} | {_yes(row.remembers)} | {_hooks(row.agent)} |"
        f" {_yes(row.unchanged)} | {row.date} |\n"
        for row in rows
    )
    return (
        "| agent | version | recorded | hint | memory file | hooks | results unchanged | on |\n"
        "|---|---|---|---|---|---|---|---|\n" + "".join(lines)
    )


def _title(agent: str) -> str:
    return next(c.title for c in (*CLIENTS, *MORE_CLIENTS) if c.name == agent)


def _yes(value: bool) -> str:  # noqa: FBT001 - a cell of the table
    return "yes" if value else "no"


def _hooks(agent: str) -> str:
    """Return how the agent comes to our hooks."""
    if agent in WAYS:
        return "in each run"
    return "`hook install`" if any(c.name == agent for c in HOOK_CLIENTS) else "none"
