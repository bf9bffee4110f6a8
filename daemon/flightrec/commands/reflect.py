"""Put the rules in order now, as the daemon does by itself now and then."""

import argparse

from flightrec.client import request
from flightrec.commands.terminal import one_line, print_items
from flightrec.errors import ExitCode
from flightrec.paths import find_paths

HELP = "put the rules in order now: tidy, promote, archive, share"

EXAMPLES = (("flightrec reflect", "do it, and say what each step did"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask the daemon, and print what each step did."""
    steps = request(find_paths(), "reflect")["steps"]
    if arguments.json:
        print_items(steps)
        return ExitCode.OK
    for step in steps:
        did = step["did"] or ["nothing to do"]
        for line in did:
            print(f"{step['step']:8} {one_line(line)}")
    return ExitCode.OK
