"""The runs behind a rule: what happened, when, where, and what it counted as."""

import argparse
from pathlib import Path
from typing import Any

from flightrec.commands.log import SESSION_DIGITS, short_path
from flightrec.commands.rules import describe, find_rule, open_rulebook, show_line
from flightrec.commands.terminal import clock, colour, iso, one_line, print_items
from flightrec.errors import ExitCode
from flightrec.evidence import Mark
from flightrec.rulebook import Witness

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
    with open_rulebook() as rulebook:
        rule = find_rule(rulebook, arguments.rule)
        witnesses = rulebook.why(rule.id)
    if arguments.json:
        print_items([describe_witness(witness) for witness in witnesses], rule=describe(rule))
        return ExitCode.OK
    print(show_line(rule))
    for witness in witnesses:
        for line in show(witness):
            print(line)
    return ExitCode.OK


def show(witness: Witness) -> list[str]:
    """Return one event as lines for a person."""
    mark = colour(f"{witness.mark.value:5}", MARKS[witness.mark])
    session = witness.session.hex()[:SESSION_DIGITS] if witness.session else "-"
    where = one_line(short_path(witness.cwd or witness.project, Path.home()), 80)
    lines = [f"{mark} {clock(witness.at_us)}  {session:{SESSION_DIGITS}}  {witness.reason}"]
    if witness.command is not None:
        status = "?" if witness.exit is None else str(witness.exit)
        lines.append(f"      {where} $ {one_line(witness.command, 400)}   (exit {status})")
    if witness.error:
        lines.append(f"      {colour(one_line(witness.error, 200), 'dim')}")
    return lines


def describe_witness(witness: Witness) -> dict[str, Any]:
    """Return one event for a program."""
    return {
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
    }
