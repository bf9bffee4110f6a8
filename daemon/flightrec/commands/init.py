"""Print what a shell evaluates to be recorded: ``eval "$(flightrec init bash)"``."""

import argparse
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from flightrec import __version__
from flightrec.errors import ExitCode, FlightrecError
from flightrec.paths import HELPER_NAME, find_resource

HELP = "print what bash or zsh evaluates to record this shell"

EXAMPLES = (
    ('eval "$(flightrec init bash)"', "record this bash, until it ends"),
    ('eval "$(flightrec init zsh)"', "the same in zsh"),
    (
        'eval "$(flightrec init bash --tail)"',
        "as the first line of the rc file: know the text of errors, too",
    ),
    ("flightrec install", "record every new shell"),
)

SHELLS = ("bash", "zsh")

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("shell", choices=SHELLS, help="the shell that evaluates it")
    parser.add_argument(
        "--tail",
        action="store_true",
        help="run the shell inside a terminal proxy, so that the text of errors is known",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the text. The only data in it are three quoted paths: a shell will evaluate it."""
    helper, command = find_resource(HELPER_NAME), find_command()
    names = ("proxy", "flightrec") if arguments.tail else ("flightrec",)
    scripts = [find_resource(f"{name}.{arguments.shell}") for name in names]
    text = "".join(shell_code(helper, command, script) for script in scripts)
    sys.stdout.flush()
    sys.stdout.buffer.write(os.fsencode(text))
    return ExitCode.OK


def shell_code(helper: Path, command: Path, script: Path) -> str:
    """Return code for bash and zsh that loads the integration where its files are still there.

    Raises FlightrecError for a path that no quoting makes safe.
    """
    return (
        f"# flightrec {__version__}\n"
        f"__flightrec_helper={quote_path(helper)}\n"
        f"__flightrec_command={quote_path(command)}\n"
        f'if [ -x "$__flightrec_helper" ] && [ -r {quote_path(script)} ];'
        f" then . {quote_path(script)}; fi\n"
    )


def quote_path(path: Path) -> str:
    """Return a path as one word of any shell. Raises FlightrecError for control characters."""
    text = str(path)
    if _CONTROL.search(text):
        raise FlightrecError(f"a path holds control characters: {text!r}; install elsewhere")
    return shlex.quote(text)


def find_command() -> Path:
    """Return the absolute path of the program that is running, as a shell would start it."""
    for candidate in (sys.argv[0], str(Path(sys.executable).parent / "flightrec")):
        if Path(candidate).name == "flightrec" and os.access(candidate, os.X_OK):
            return Path(os.path.abspath(candidate))  # noqa: PTH100 - a link in it may move on
    found = shutil.which("flightrec")
    if found is None:
        raise FlightrecError("cannot find the flightrec program; put its folder on the PATH")
    return Path(os.path.abspath(found))  # noqa: PTH100 - as above
