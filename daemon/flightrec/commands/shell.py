"""``flightrec shell``: the person's shell inside the proxy, so that the text of errors is known."""

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flightrec.commands.init import SHELLS, find_command, shell_code
from flightrec.errors import FlightrecError
from flightrec.lifecycle import check_person
from flightrec.paths import HELPER_NAME, find_resource

HELP = "start your shell with the text of errors known, until it ends"

EXAMPLES = (
    ("flightrec shell", "your shell, as $SHELL names it"),
    ("flightrec shell zsh", "a zsh"),
    ("flightrec install --tail", "the same for every new shell"),
)

PROXY_VARIABLE = "FLIGHTREC_PTY"
"""What a shell inside the proxy has: its pid, the worker's, a nonce, its terminal, its folder."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a shell is started: its words, and what its environment has more."""

    words: tuple[str, ...]
    variables: dict[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("shell", nargs="?", choices=SHELLS, help="another shell than $SHELL")


def run(arguments: argparse.Namespace) -> int:
    """Become the helper, which runs the shell; return only where that cannot be done."""
    check_person()
    if not all(os.isatty(descriptor) for descriptor in (0, 1, 2)):
        raise FlightrecError("a shell needs a terminal; to record a command: flightrec run -- CMD")
    if is_inside(os.environ, os.ttyname(0)):
        raise FlightrecError("the text of errors is known in this shell already")
    name = arguments.shell or _own_shell(os.environ)
    program = shutil.which(name)
    if program is None:
        raise FlightrecError(f"{name} is not installed")
    helper, command = find_resource(HELPER_NAME), find_command()
    start = how_to_start(name, helper, command, os.environ)
    words = (str(helper), "pty", program, str(command), "--", *start.words)
    print("flightrec: errors are recorded with their text here; exit leaves this shell.")
    sys.stdout.flush()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # what Python has changed for itself
        signal.signal(number, signal.SIG_DFL)
    os.execve(  # noqa: S606 - becoming the shell is the purpose
        helper, words, {**os.environ, **start.variables}
    )


def is_inside(environment: Mapping[str, str], terminal: str) -> bool:
    """Whether a shell on this terminal is inside the proxy."""
    parts = environment.get(PROXY_VARIABLE, "").split(":", 4)
    return len(parts) == 5 and parts[3] == terminal and Path(parts[4], "i").is_fifo()


def _own_shell(environment: Mapping[str, str]) -> str:
    """Return bash or zsh: the person's, or else the one that there is."""
    name = Path(environment.get("SHELL", "")).name
    if name in SHELLS:
        return name
    return next((shell for shell in SHELLS if shutil.which(shell)), SHELLS[0])


def how_to_start(name: str, helper: Path, command: Path, environment: Mapping[str, str]) -> Start:
    """Return words and variables with which a shell reads the person's files, and flightrec's."""
    code = shell_code(helper, command, find_resource(f"flightrec.{name}"))
    variables = {"FLIGHTREC_LOAD": code}
    if name == "bash":
        return Start(("bash", "--rcfile", str(find_resource("session.bash"))), variables)
    variables |= {"ZDOTDIR": str(find_resource("session"))}
    if "ZDOTDIR" in environment:
        variables["FLIGHTREC_ZDOTDIR"] = environment["ZDOTDIR"]
    return Start(("zsh",), variables)
