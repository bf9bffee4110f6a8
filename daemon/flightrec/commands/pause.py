"""Stop recording for a while."""

import argparse

from flightrec.client import request
from flightrec.commands.terminal import clock, now_us, parse_duration
from flightrec.errors import ExitCode
from flightrec.paths import find_paths

HELP = "record nothing and hint nothing, until resume or for a while"

EXAMPLES = (
    ("flightrec pause", "until flightrec resume"),
    ("flightrec pause 30m", "for half an hour"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("duration", nargs="?", help="how long: 30m, 2h, 1d12h")


def run(arguments: argparse.Namespace) -> int:
    """Ask the daemon to stop recording."""
    until_us = now_us() + parse_duration(arguments.duration) if arguments.duration else None
    request(find_paths(), "pause", until_us=until_us)
    end = f"until {clock(until_us)}" if until_us else "until you say: flightrec resume"
    print(f"Paused in all shells {end}.")
    return ExitCode.OK
