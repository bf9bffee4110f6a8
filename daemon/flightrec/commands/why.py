"""The runs behind a rule: what happened, when, where, and what it counted as."""

import argparse
import contextlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flightrec.commands.log import SESSION_DIGITS, short_path
from flightrec.commands.rules import describe, find_rule, show_line
from flightrec.commands.terminal import clock, colour, iso, one_line, print_items
from flightrec.errors import ExitCode
from flightrec.evidence import Mark
from flightrec.guard_rows import GateRow, gates_of
from flightrec.hints import LET
from flightrec.paths import find_paths
from flightrec.rulebook import Rulebook, Witness
from flightrec.store import Store
from flightrec.who import agent_of_session

HELP = "the recorded runs behind a rule"

EXAMPLES = (
    ("flightrec why ERR-20261130-001", "each event, with time, folder, command and error"),
    ("flightrec why 001", "the last digits do where they are clear"),
    ("flightrec why 001 --json", "for a program"),
)

MARKS = {Mark.FIRST: "bold", Mark.R: "yellow", Mark.C: "green", Mark.D: "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("rule", help="the rule's id")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the rule and its evidence, oldest first."""
    with contextlib.closing(Store.open_read_only(find_paths().database)) as store:
        rulebook = Rulebook(store.connection)
        rule = find_rule(rulebook, arguments.rule)
        events = find_events(store.connection, rule.id)
        gates = gates_of(store.connection, rule.id)
    if arguments.json:
        print_items(
            [describe_event(event) for event in events],
            rule=describe(rule),
            gates=[describe_gate(gate) for gate in gates],
        )
        return ExitCode.OK
    print(show_line(rule))
    shown = [(event.witness.at_us, show(event)) for event in events]
    shown += [(gate.at_us, show_gate(gate)) for gate in gates]
    for _, lines in sorted(shown, key=lambda event: event[0]):
        print(*lines, sep="\n")
    return ExitCode.OK


@dataclass(frozen=True, slots=True)
class Mended:
    """The failed run that a witness's run put right."""

    run: bytes
    command: str
    cwd: str
    exit: int | None


@dataclass(frozen=True, slots=True)
class Event:
    """One event behind a rule: what was seen, what it mended, and whose doing it was."""

    witness: Witness
    mended: Mended | None
    agent: str


def find_events(connection: sqlite3.Connection, rule: str) -> list[Event]:
    """Return the events behind a rule, oldest first."""
    return [
        Event(
            witness,
            find_mended(connection, witness),
            agent_of_session(connection, witness.session),
        )
        for witness in Rulebook(connection).why(rule)
    ]


def find_mended(connection: sqlite3.Connection, witness: Witness) -> Mended | None:
    """Return the failure that the run of a recovery mended."""
    row = connection.execute(
        """
        SELECT failed.run, failed.command, failed.cwd, failed.exit
        FROM runs AS fix JOIN recoveries ON recoveries.run_id = fix.id
        JOIN failures ON failures.id = recoveries.failure_id
        JOIN runs AS failed ON failed.id = failures.run_id
        WHERE fix.run = ? ORDER BY failed.id DESC LIMIT 1
        """,
        (witness.run,),
    ).fetchone()
    return None if row is None else Mended(*row)


def show(event: Event) -> list[str]:
    """Return one event as lines for a person."""
    witness, mended = event.witness, event.mended
    mark = colour(f"{witness.mark.value:5}", MARKS[witness.mark])
    session = witness.session.hex()[:SESSION_DIGITS] if witness.session else "-"
    who = f"  by {one_line(event.agent, 40)}" if event.agent else ""
    lines = [f"{mark} {clock(witness.at_us)}  {session:{SESSION_DIGITS}}  {witness.reason}{who}"]
    if mended is not None:
        lines.append(_show_run(mended.cwd, mended.command, mended.exit))
    if witness.command is not None:
        lines.append(_show_run(witness.cwd or witness.project, witness.command, witness.exit))
    if witness.error:
        lines.append(f"      {colour(one_line(witness.error, 200), 'dim')}")
    return lines


DID = {
    "ask": "the guard asked",
    "deny": "the guard denied a command",
    "rewrite": "the guard rewrote a command",
    LET: "the guard let the command through that it had stopped",
}

CAME_OF_IT = {
    "followed": "the remedy worked",
    "failed": "the remedy failed",
    "ignored": "something else was run",
    "insisted": "the agent sent it once more",
    "passed": "it passed",
    "recurred": "it failed again",
}


def show_gate(gate: GateRow) -> list[str]:
    """Return a guard's decision as lines for a person."""
    came = f"; {CAME_OF_IT[gate.outcome]}" if gate.outcome else ""
    line = f"{'guard':5} {clock(gate.at_us)}  {gate.session.hex()[:SESSION_DIGITS]}"
    return [f"{line}  {DID[gate.gate]}{came}", f"      offered: {one_line(gate.remedy, 400)}"]


def describe_gate(gate: GateRow) -> dict[str, Any]:
    """Return a guard's decision for a program."""
    return {
        "gate": gate.gate,
        "outcome": gate.outcome,
        "at": iso(gate.at_us),
        "at_us": gate.at_us,
        "session": gate.session.hex(),
        "remedy": gate.remedy,
    }


def _show_run(cwd: str, command: str, status: int | None) -> str:
    where = one_line(short_path(cwd, Path.home()), 80)
    shown = "?" if status is None else status
    return f"      {where} $ {one_line(command, 400)}   (exit {shown})"


def describe_event(event: Event) -> dict[str, Any]:
    """Return one event for a program."""
    witness, mended = event.witness, event.mended
    return {
        "agent": event.agent or None,
        "mark": witness.mark.value,
        "reason": witness.reason,
        "at": iso(witness.at_us),
        "at_us": witness.at_us,
        "origin": witness.origin,
        "project": witness.project,
        "session": witness.session.hex() if witness.session else None,
        "run": witness.run.hex() if witness.run else None,
        "command": witness.command,
        "cwd": witness.cwd,
        "exit": witness.exit,
        "failure": witness.failure_kind,
        "error": witness.error,
        "mended_run": mended.run.hex() if mended else None,
        "mended_command": mended.command if mended else None,
        "mended_exit": mended.exit if mended else None,
    }
