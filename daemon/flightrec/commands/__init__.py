"""One module for each subcommand, and what all of them share: parsing, help, errors.

A command's module has ``HELP`` (one line), ``EXAMPLES`` (command line and what it does),
``add_arguments`` and ``run``. It is imported when it is asked for, and imports what is slow to
import where it is used.
"""

import argparse
import difflib
import importlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, cast

from flightrec import __version__
from flightrec.errors import ExitCode, FlightrecError

GROUPS: dict[str, dict[str, str]] = {
    "Set up": {
        "install": "record every new shell: adds one guarded line to ~/.bashrc and ~/.zshrc",
        "uninstall": "take back every line and file that flightrec wrote; keeps the recorded data",
        "init": "print what bash or zsh evaluates to record this shell",
        "shell": "start your shell with the text of errors known, until it ends",
        "run": "run an agent or a command and record what it does",
        "hook": "record an agent wherever it is started: hooks and variables in its own settings",
        "doctor": "find out what is wrong, with a command typed into a real shell",
        "demo": "see it work: three real shells in a throw-away home, nothing of yours is touched",
    },
    "Look": {
        "status": "what runs, what is recorded, and what was missed",
        "log": "recent commands, the newest last",
        "rules": "list, show, approve, reject, retire, share, edit or guard by rules",
        "why": "the recorded runs behind a rule",
        "stats": "figures: what was recorded, what fails, what hints were good for",
    },
    "Teach": {
        "learn": "teach a rule: what fails, and what to type instead",
        "dismiss": "say that the last hint, or a rule, was wrong this time",
        "reflect": "put the rules in order now: tidy, promote, archive, share",
        "bundle": "give rules to others as a file, or take theirs in to look at",
        "export": "write proved rules into the memory files of coding agents",
    },
    "Keep private": {
        "pause": "record nothing and hint nothing, until resume or for a while",
        "resume": "record again after a pause",
        "forget": "delete recorded commands for good, with what was learned from them",
        "redact": "show what is taken out of a text before it is kept",
    },
    "Inside": {
        "daemon": "start, stop or look at the background process",
        "eval": "how well the learner does on labelled sessions",
    },
}
"""All commands as the help shows them; each line is its module's ``HELP``, without the import."""

COMMANDS = {name: line for names in GROUPS.values() for name, line in names.items()}

INTERRUPTED = 130

SUMMARY = """\
usage: flightrec COMMAND [OPTION]...

A flight recorder for shell commands: the same failed command never bites twice."""

Examples = Sequence[tuple[str, str]]


class Command(Protocol):
    """What a module in this package looks like."""

    HELP: str
    EXAMPLES: Examples

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Say which arguments the command takes."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it; return the exit status."""


def load(name: str) -> Command:
    """Return a command's module."""
    return cast("Command", importlib.import_module(f"{__name__}.{name}"))


def dispatch(words: list[str]) -> int:
    """Run one command line; return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without Unicode
    return guarded(lambda: _dispatch(words))


def _dispatch(words: list[str]) -> int:
    name = words[0] if words else "--help"
    if name != "run":  # which hands them on as they are
        words = [_to_text(word) for word in words]
    if name in ("-h", "--help", "help"):
        return _help(words[1:])
    if name not in COMMANDS:
        return _unknown(name)
    command = load(name)
    return command.run(make_parser(name, command).parse_args(words[1:]))


def _to_text(word: str) -> str:
    """Return an argument as UTF-8, whatever the locale says."""
    try:
        return os.fsencode(word).decode("utf-8")
    except UnicodeDecodeError:
        raise FlightrecError("arguments must be UTF-8 text", ExitCode.USAGE) from None


def make_parser(name: str, command: Command) -> argparse.ArgumentParser:
    """Return the parser of one command, with its examples below its help."""
    parser = argparse.ArgumentParser(
        prog=f"flightrec {name}",
        description=command.HELP,
        epilog=_show_examples(command.EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return parser


def _show_examples(examples: Examples) -> str:
    width = max((len(line) for line, _ in examples), default=0)
    lines = (f"  {line:{width}}  {meaning}".rstrip() for line, meaning in examples)
    return "\n".join(("examples:", *lines))


def _help(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        make_parser(words[0], load(words[0])).print_help()
        return ExitCode.OK
    if words:
        return _unknown(words[0])
    print("\n".join(_overview()))
    return ExitCode.OK


def _overview() -> Iterator[str]:
    yield SUMMARY
    for title, names in GROUPS.items():
        yield f"\n{title}:"
        for name, line in names.items():
            yield f"  {name:10} {line}"
    yield "\nflightrec COMMAND --help shows options and examples; flightrec --version the version."


def _unknown(name: str) -> int:
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    print(f"flightrec: no command {name!r}{meant} (see flightrec --help)", file=sys.stderr)
    return ExitCode.USAGE


def guarded(action: Callable[[], int]) -> int:
    """Run ``action`` and turn what it raises into one line and an exit status."""
    try:
        status = action()
        sys.stdout.flush()
    except FlightrecError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has enough; the interpreter must not try to flush once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception as error:  # noqa: BLE001 - the one place that turns a bug into a line
        return _report_bug(error)
    return status


def _fail(text: str, status: int) -> int:
    from flightrec.commands.terminal import one_line  # noqa: PLC0415 - only trouble needs it

    # It may quote a file that anybody wrote.
    print(f"flightrec: {one_line(text)}", file=sys.stderr)
    return status


def _report_bug(error: Exception) -> int:
    """Log where it happened, without a word of what was handled, and say where the log is."""
    import logging  # noqa: PLC0415 - only bugs need it

    from flightrec.daemon_log import log_to  # noqa: PLC0415 - as above
    from flightrec.paths import find_paths  # noqa: PLC0415 - as above

    kind = type(error).__name__
    try:
        log = find_paths().state / "cli.log"
        log_to(log)
        logging.getLogger("flightrec").error("flightrec %s: a bug", __version__, exc_info=error)
    except (OSError, FlightrecError):
        return _fail(f"a bug ({kind}), and no log could be written", ExitCode.BUG)
    return _fail(f"a bug ({kind}); please report what {log} says last", ExitCode.BUG)
