"""Show what was recorded, one line for each run."""

import argparse
import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flightrec.commands.terminal import (
    clock,
    colour,
    duration,
    iso,
    now_us,
    one_line,
    parse_since,
    print_items,
)
from flightrec.config import load_settings
from flightrec.errors import ExitCode, FlightrecError
from flightrec.paths import find_paths
from flightrec.places import find_place
from flightrec.rescan import Rescan
from flightrec.store import RecordedRun, RunFilter, Store
from flightrec.who import PERSON

HELP = "recent commands, the newest last"

EXAMPLES = (
    ("flightrec log", "the last 30"),
    ("flightrec log --failed -n 5", "what went wrong last"),
    ("flightrec log --here --since 2h", "in this project, during the last two hours"),
    ("flightrec log docker", "commands that hold this text"),
    ("flightrec log --agent codex --failed", "what went wrong for Codex"),
    ("flightrec log --session 3f2a --json", "one session, for a program"),
)

SESSION_DIGITS = 6
"""Of a session's id, enough to tell a person's shells apart."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("text", nargs="?", help="only commands that hold this text")
    parser.add_argument("-n", "--number", type=_count, default=30, help="how many (30)")
    parser.add_argument("--failed", action="store_true", help="only those that failed as commands")
    parser.add_argument("--agent", metavar="NAME", help=f"only this agent's; {PERSON}: only yours")
    parser.add_argument("--session", metavar="ID", help="only this session: the first digits do")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--here", action="store_true", help="only in this project")
    where.add_argument("--project", metavar="DIR", help="only in the project of this folder")
    parser.add_argument("--since", metavar="WHEN", help="2h, 3d, or '2026-11-30 14:00'")
    parser.add_argument("--parts", action="store_true", help="also tools inside agents' commands")
    parser.add_argument("--json", action="store_true", help="as JSON, with the errors' tails")


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def run(arguments: argparse.Namespace) -> int:
    """Print the runs that fit."""
    paths = find_paths()
    with contextlib.closing(Store.open_read_only(paths.database)) as store:
        runs = store.recent_runs(arguments.number, _wanted(store, arguments))[::-1]
        rescan = Rescan(store, paths, load_settings(paths.config).redaction)
        if rescan.is_due:
            runs = [rescan.redact(recorded) for recorded in runs]
    if arguments.json:
        print_items([describe(recorded) for recorded in runs])
        return ExitCode.OK
    for recorded in runs:
        print(show(recorded, Path.home()))
    if not runs:
        print("Nothing recorded that fits. (flightrec status says whether anything is recorded.)")
    return ExitCode.OK


def _wanted(store: Store, arguments: argparse.Namespace) -> RunFilter:
    folder = str(Path.cwd()) if arguments.here else arguments.project
    if folder is not None and not Path(folder).is_dir():
        raise FlightrecError(f"{folder} is not a folder", ExitCode.USAGE)
    return RunFilter(
        session=find_session(store, arguments.session) if arguments.session else None,
        project=find_place(folder).project if folder is not None else None,
        since_us=parse_since(arguments.since, now_us()) if arguments.since else None,
        failed=arguments.failed,
        text=arguments.text,
        parts=arguments.parts,
        agent="" if arguments.agent == PERSON else arguments.agent,
    )


def find_session(store: Store, digits: str) -> bytes:
    """Return the one session whose id begins so. Raises FlightrecError."""
    found = store.connection.execute(
        "SELECT session FROM sessions WHERE instr(lower(hex(session)), lower(?)) = 1 LIMIT 2",
        (digits,),
    ).fetchall()
    if len(found) != 1:
        several = "several sessions begin" if found else "no session begins"
        raise FlightrecError(f"{several} with {digits!r}; flightrec log shows them", ExitCode.USAGE)
    return bytes(found[0][0])


def show(recorded: RecordedRun, home: Path) -> str:
    """Return a run as a line for a person."""
    outcome, look = _outcome(recorded)
    kind = f"  ({recorded.failure_kind})" if recorded.failure_kind else ""
    who = colour(f"  by {one_line(recorded.agent, 40)}", "dim") if recorded.agent else ""
    return "  ".join(
        (
            colour(clock(recorded.started_us), "dim"),
            recorded.session.hex()[:SESSION_DIGITS],
            colour(f"{outcome:>4}", look) if look else f"{outcome:>4}",
            f"{duration(recorded.usec):>6}",
            one_line(short_path(recorded.cwd, home), 60),
            one_line(recorded.command, 2000) + kind + who,
        )
    )


def _outcome(recorded: RecordedRun) -> tuple[str, str]:
    if recorded.exit is None:
        return "?", "yellow"
    failed = recorded.exit != 0 or recorded.failure_kind is not None
    return str(recorded.exit), "red" if failed else ""


def short_path(path: str, home: Path) -> str:
    """Return a path with ``~`` for the home."""
    if path == str(home):
        return "~"
    return "~" + path[len(str(home)) :] if path.startswith(f"{home}{os.sep}") else path


def describe(recorded: RecordedRun) -> dict[str, Any]:
    """Return a run for a program."""
    return {
        "id": recorded.run.hex(),
        "session": recorded.session.hex(),
        "parent": recorded.parent.hex() if recorded.parent else None,
        "source": recorded.source.name.lower(),
        "shell": recorded.shell,
        "agent": recorded.agent,
        "started": iso(recorded.started_us),
        "started_us": recorded.started_us,
        "usec": recorded.usec,
        "project": recorded.project,
        "worktree": recorded.worktree,
        "cwd": recorded.cwd,
        "command": recorded.command,
        "truncated": recorded.truncated,
        "secret": recorded.secret,
        "exit": recorded.exit,
        "signal": recorded.signal,
        "pipestatus": _listed(recorded.pipestatus),
        "failure": recorded.failure_kind,
        "program": recorded.program,
        "signature": recorded.signature,
        "tail": recorded.tail,
        "tail_source": recorded.tail_source.name.lower(),
    }


def _listed(values: Iterable[int]) -> list[int]:
    return list(values)
