"""Go on recording after a pause."""

import argparse

from flightrec.client import request
from flightrec.errors import ExitCode
from flightrec.paths import find_paths

HELP = "record again after a pause"

EXAMPLES = (("flightrec resume", "in all shells, from the next command on"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(_arguments: argparse.Namespace) -> int:
    """Ask the daemon to go on recording."""
    request(find_paths(), "resume")
    print("Recording again.")
    return ExitCode.OK
