"""Delete recorded data so that no byte of it stays."""

import argparse
import contextlib
from typing import Any

from flightrec.client import request
from flightrec.commands.log import find_session
from flightrec.commands.terminal import ask, clock, now_us, one_line, parse_since, plural
from flightrec.errors import ExitCode, FlightrecError
from flightrec.paths import find_paths
from flightrec.store import Store

HELP = "delete recorded commands for good, with what was learned from them"

EXAMPLES = (
    ("flightrec forget hunter2", "everything that holds this text, anywhere"),
    ("flightrec forget --since 10m", "the last ten minutes"),
    ("flightrec forget --session 3f2a91...", "a whole session: flightrec log --json has its id"),
    ("flightrec forget --yes hunter2", "do not ask"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("text", nargs="?", help="a part of a command, error, folder or rule")
    what.add_argument("--session", metavar="ID", help="everything of one session")
    what.add_argument("--since", metavar="WHEN", help="2h, 3d, or '2026-11-30 14:00'")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run(arguments: argparse.Namespace) -> int:
    """Say how much it is, ask, and delete."""
    wanted, described = _wanted(arguments)
    paths = find_paths()
    found = request(paths, "forget", dry_run=True, **wanted)
    if not any(found.values()):
        print(f"Nothing is recorded {described}.")
        return ExitCode.OK
    print(f"{_count(found)} {described}.")
    if not ask("Delete them for good?", yes=arguments.yes):
        print("Nothing was deleted.")
        return ExitCode.TROUBLE
    print(f"Deleted: {_count(request(paths, 'forget', **wanted))}.")
    return ExitCode.OK


def _wanted(arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    if arguments.since:
        since_us = parse_since(arguments.since, now_us())
        return {"since_us": since_us}, f"since {clock(since_us)}"
    if arguments.session:
        return {"session": _full_session(arguments.session)}, f"of session {arguments.session}"
    if not arguments.text:
        raise FlightrecError("an empty text is in everything; say what to forget", ExitCode.USAGE)
    return {"pattern": arguments.text}, f"with {one_line(arguments.text, 60)!r}"


def _full_session(digits: str) -> str:
    with contextlib.closing(Store.open_read_only(find_paths().database)) as store:
        return find_session(store, digits).hex()


def _count(found: dict[str, Any]) -> str:
    """Return ``3 commands, 1 rule``; files are damaged databases and old copies of exports."""
    names = {"runs": "command", "rules": "rule", "files": "old file"}
    parts = [plural(found[key], name) for key, name in names.items() if found.get(key)]
    return ", ".join(parts) or "nothing"
