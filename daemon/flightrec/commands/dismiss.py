"""Say that a hint was wrong."""

import argparse
from pathlib import Path

from flightrec.client import request
from flightrec.commands.rules import find_rule, open_rulebook, show_line
from flightrec.errors import ExitCode
from flightrec.paths import find_paths

HELP = "say that the last hint, or a rule, was wrong this time"

EXAMPLES = (
    ("flightrec dismiss", "the hint that was shown last, in any shell"),
    ("flightrec dismiss ERR-20261130-001", "this rule; three times and it is archived"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("rule", nargs="?", help="the rule's id (the last hint's)")


def run(arguments: argparse.Namespace) -> int:
    """Ask the daemon to count it as a contradiction, and show the rule."""
    asked = None
    if arguments.rule:
        with open_rulebook() as rulebook:
            asked = find_rule(rulebook, arguments.rule).id
    answer = request(find_paths(), "rule_dismiss", rule=asked, cwd=str(Path.cwd()))
    with open_rulebook() as rulebook:
        print(show_line(find_rule(rulebook, answer["rule"])))
    return ExitCode.OK
