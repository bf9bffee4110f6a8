"""Record every new shell: a stable copy of what shells load, and lines in their rc files."""

import argparse
import os

from flightrec.commands.terminal import ask
from flightrec.errors import ExitCode
from flightrec.installation import (
    RcFile,
    add_line,
    copy_files,
    data_folder,
    find_first_lines,
    find_rc_files,
    has_line,
    one_at_a_time,
    remove_line,
    with_proxy,
)
from flightrec.lifecycle import check_person
from flightrec.paths import Paths, find_paths

HELP = "record every new shell: adds one guarded line to ~/.bashrc and ~/.zshrc"

EXAMPLES = (
    ("flightrec install", "show what would be added, and ask"),
    ("flightrec install --yes", "do it without asking, and without the text of errors"),
    ("flightrec install --tail", "know the text of errors, too: another line, the first"),
    ("flightrec install --shell zsh", "only zsh"),
)

WHAT_IS_RECORDED = """\
What is recorded, on this machine only, below {state}:
  - each command line typed in an interactive bash or zsh: where and when it ran, how long, how it
    ended, and the end of its error output where that is seen
  - secrets are taken out before anything reaches the disk; never recorded are lines that begin
    with a space, what runs under sudo or su, and the environment
  - flightrec pause stops it, flightrec forget deletes, flightrec uninstall takes it all back"""

WHAT_TAILS_ARE_FOR = """
By the text of errors flightrec tells one failure from another; without it, only a missing or
mistyped program teaches. To see it, each new shell runs inside a terminal proxy: it passes
everything on, and keeps the end of what a command wrote if that failed. It stays out of screen,
VS Code and the like, and out of tmux, which is asked after a failure, with or without it.
FLIGHTREC_NO_TAIL=1, or tail = false below [capture] in the settings, turns both off."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--shell", choices=("bash", "zsh"), help="only this shell's rc file")
    parser.add_argument(
        "--tail",
        action=argparse.BooleanOptionalAction,
        help="run new shells inside a terminal proxy, so that the text of errors is known",
    )


def run(arguments: argparse.Namespace) -> int:
    """Copy the files, then add the lines that are missing."""
    check_person()
    paths = find_paths()
    rc_files = [
        rc_file
        for rc_file in find_rc_files(paths.home, os.environ)
        if arguments.shell in (None, rc_file.shell)
    ]
    loading = _missing(rc_files)
    entering = _missing(with_proxy(rc_files)) if arguments.tail else []
    print(WHAT_IS_RECORDED.format(state=paths.state))
    _show(entering + loading)
    if entering + loading and not ask("\nAdd it?", yes=arguments.yes):
        print("Nothing was changed.")
        return ExitCode.TROUBLE
    if loading and arguments.tail is None and not arguments.yes:
        entering = _offer_proxy(rc_files)
    with one_at_a_time(paths):
        copy_files(paths.home)
        for rc_file in entering + loading:
            add_line(paths.home, rc_file, paths)
        if arguments.tail is False:
            _leave_proxy(rc_files, paths)
    _say_done(rc_files, entering + loading, paths)
    return ExitCode.OK


def _missing(rc_files: list[RcFile]) -> list[RcFile]:
    return [rc_file for rc_file in rc_files if not has_line(rc_file)]


def _show(rc_files: list[RcFile]) -> None:
    for rc_file in rc_files:
        place = "beginning" if rc_file.is_first else "end"
        print(f"\n{rc_file.location.path} gets this line at its {place}:\n  {rc_file.line}")


def _offer_proxy(rc_files: list[RcFile]) -> list[RcFile]:
    """Ask whether the text of errors is to be known; return where a line is missing for it."""
    entering = _missing(with_proxy(rc_files))
    print(WHAT_TAILS_ARE_FOR)
    _show(entering)
    return entering if ask("\nAdd it, too?", yes=False, default=True) else []


def _leave_proxy(rc_files: list[RcFile], paths: Paths) -> None:
    chosen = {rc_file.location.path for rc_file in rc_files}
    for path, line in find_first_lines(paths.home, os.environ).items():
        if path in chosen:
            remove_line(paths.home, path, line, paths)


def _say_done(rc_files: list[RcFile], added: list[RcFile], paths: Paths) -> None:
    folder = data_folder(paths.home)
    if not rc_files:
        print(f"\nCopied to {folder}. No rc file of bash or zsh was found: nothing loads it yet.")
        return
    if not added:
        print(f"\nInstalled already; the copy in {folder} is up to date.")
        return
    print("\nInstalled. Open a new terminal, or load it here:")
    for shell in sorted({rc_file.shell for rc_file in added}):
        print(f"  {shell}: . {folder}/init.{shell}")
