"""Teach a rule by hand."""

import argparse
from pathlib import Path

from flightrec.client import request
from flightrec.commands.rules import find_rule, open_rulebook, show_line
from flightrec.errors import ExitCode, FlightrecError
from flightrec.paths import find_paths

HELP = "teach a rule: what fails, and what to type instead"

EXAMPLES = (
    ("flightrec learn 'pytest' 'uv run pytest'", "in this project"),
    ("flightrec learn --everywhere 'gti' 'git'", "in all projects"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("failing", help="the command that fails, as you would type it")
    parser.add_argument("working", help="the command that works instead")
    parser.add_argument("--everywhere", action="store_true", help="not only in this project")


def run(arguments: argparse.Namespace) -> int:
    """Ask the daemon to keep the rule, and show it."""
    if arguments.failing.strip() == arguments.working.strip():
        raise FlightrecError("both commands are the same", ExitCode.USAGE)
    answer = request(
        find_paths(),
        "rule_learn",
        failing=arguments.failing,
        working=arguments.working,
        cwd=str(Path.cwd()),
        everywhere=arguments.everywhere,
    )
    with open_rulebook() as rulebook:
        print(show_line(find_rule(rulebook, answer["rule"])))
    return ExitCode.OK
