"""Record every new shell: a stable copy of what shells load, and a line in their rc files."""

import argparse
import os

from flightrec.commands.terminal import ask
from flightrec.errors import ExitCode
from flightrec.installation import (
    RcFile,
    add_line,
    copy_files,
    data_folder,
    find_rc_files,
    has_line,
)
from flightrec.lifecycle import check_person
from flightrec.paths import Paths, find_paths

HELP = "record every new shell: adds one guarded line to ~/.bashrc and ~/.zshrc"

EXAMPLES = (
    ("flightrec install", "show what would be added, and ask"),
    ("flightrec install --yes", "do it without asking"),
    ("flightrec install --shell zsh", "only zsh"),
)

WHAT_IS_RECORDED = """\
What is recorded, on this machine only, below {state}:
  - each command line typed in an interactive bash or zsh: where and when it ran, how long, how it
    ended, and the end of its error output where that is seen
  - secrets are taken out before anything reaches the disk; never recorded are lines that begin
    with a space, what runs under sudo or su, and the environment
  - flightrec pause stops it, flightrec forget deletes, flightrec uninstall takes it all back"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--shell", choices=("bash", "zsh"), help="only this shell's rc file")


def run(arguments: argparse.Namespace) -> int:
    """Copy the files, then add the lines that are missing."""
    check_person()
    paths = find_paths()
    rc_files = [
        rc_file
        for rc_file in find_rc_files(paths.home, os.environ)
        if arguments.shell in (None, rc_file.shell)
    ]
    missing = [rc_file for rc_file in rc_files if not has_line(rc_file)]
    print(WHAT_IS_RECORDED.format(state=paths.state))
    for rc_file in missing:
        print(f"\n{rc_file.location.path} gets this line at its end:\n  {rc_file.line}")
    if missing and not ask("\nAdd it?", yes=arguments.yes):
        print("Nothing was changed.")
        return ExitCode.TROUBLE
    _install(missing, paths)
    _say_done(rc_files, missing, paths)
    return ExitCode.OK


def _install(missing: list[RcFile], paths: Paths) -> None:
    copy_files(paths.home)
    for rc_file in missing:
        add_line(paths.home, rc_file, paths)


def _say_done(rc_files: list[RcFile], missing: list[RcFile], paths: Paths) -> None:
    folder = data_folder(paths.home)
    if not rc_files:
        print(f"\nCopied to {folder}. No rc file of bash or zsh was found: nothing loads it yet.")
        return
    if not missing:
        print(f"\nInstalled already; the copy in {folder} is up to date.")
        return
    print("\nInstalled. Open a new terminal, or load it here:")
    for rc_file in missing:
        print(f"  {rc_file.shell}: . {folder}/init.{rc_file.shell}")
