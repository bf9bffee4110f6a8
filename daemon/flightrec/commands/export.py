"""Write rules into the files that coding agents read."""

import argparse
import contextlib
import difflib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from flightrec.agent_files import AGENTS, Holds, find_targets, locate
from flightrec.client import request
from flightrec.commands.terminal import one_line, plural, print_items
from flightrec.errors import ExitCode, FlightrecError
from flightrec.export import EXPORTED, format_rule, why_not
from flightrec.exporter import ExportRow, MemoryFile, choose, file_of, outside_of
from flightrec.memory_file import FileUpdate, preview, settle_all
from flightrec.paths import Paths, find_paths
from flightrec.places import Place, find_place
from flightrec.rulebook import Rulebook
from flightrec.rules import Rule, Status
from flightrec.store import Store

HELP = "write proved rules into the memory files of coding agents"

EXAMPLES = (
    ("flightrec export", "print what would be written for this project"),
    ("flightrec export --agent claude", "into Claude Code's memory of this project"),
    ("flightrec export --agent claude --team --dry-run", "what CLAUDE.md would become"),
    ("flightrec export --to NOTES.md", "into a file of your own, from now on"),
    ("flightrec export --all", "print the rules that are not proved yet as well"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--to", metavar="FILE", help="a file of your own; kept up to date")
    where.add_argument(
        "--agent", choices=(*AGENTS, "all"), metavar="NAME", help=f"{', '.join(AGENTS)} or all"
    )
    parser.add_argument(
        "--team", action="store_true", help="with --agent: the file in the project that git tracks"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the difference, write nothing")
    parser.add_argument("--all", action="store_true", help="active rules too; only prints")
    parser.add_argument("--json", action="store_true", help="as JSON; only prints")


def run(arguments: argparse.Namespace) -> int:
    """Print, show the difference, or write."""
    paths = find_paths()
    place = find_place(str(Path.cwd()))
    with contextlib.closing(Store.open_read_only(paths.database)) as store:
        rules = Rulebook(store.connection).rules(Status.ACTIVE, *EXPORTED)
    if arguments.to is None and arguments.agent is None:
        if arguments.team or arguments.dry_run:
            raise FlightrecError("say where to: --agent NAME or --to FILE", ExitCode.USAGE)
        return _print(rules, place, arguments)
    if arguments.all or arguments.json:
        raise FlightrecError("--all and --json only print; leave --to and --agent", ExitCode.USAGE)
    files = list(_find_files(arguments, rules, place, paths))
    if arguments.dry_run:
        return _show_differences(files)
    return _write(files, paths)


# --- printing --------------------------------------------------------------------------------


def _print(rules: Sequence[Rule], place: Place, arguments: argparse.Namespace) -> int:
    chosen: Sequence[Rule]
    if arguments.all:
        chosen = [rule for rule in rules if place.project in rule.seen_in]
    else:
        chosen = choose(rules, Holds.PROJECT, place)
    if arguments.json:
        from flightrec.commands.rules import describe  # noqa: PLC0415 - only here

        print_items([describe(rule) for rule in chosen])
        return ExitCode.OK
    for rule in chosen:
        print(one_line(format_rule(rule)))
    _explain(rules, chosen, place)
    return ExitCode.OK


def _explain(rules: Iterable[Rule], chosen: Sequence[Rule], place: Place) -> None:
    """Say on stderr what was left out and why."""
    is_outside = outside_of(place.worktree)
    for rule in rules:
        if place.project in rule.seen_in and rule.status in EXPORTED and rule not in chosen:
            reason = one_line(why_not(rule, is_outside) or "there is no room for it", 200)
            print(f"flightrec: {rule.id} is left out: {reason}", file=sys.stderr)
    if not chosen:
        print("flightrec: no rule of this project is proved yet", file=sys.stderr)


# --- writing ---------------------------------------------------------------------------------


def _find_files(
    arguments: argparse.Namespace, rules: Sequence[Rule], place: Place, paths: Paths
) -> Iterable[MemoryFile]:
    if arguments.to is not None:
        path = Path(os.path.abspath(arguments.to))  # noqa: PTH100 - links are judged when it is opened
        row = ExportRow(path, "", place.project, asked=True)
        yield file_of(row, rules, place, paths.home, os.environ)
        return
    for agent in AGENTS if arguments.agent == "all" else (arguments.agent,):
        yield from _find_agent_files(agent, rules, place, paths, team=arguments.team)


def _find_agent_files(
    agent: str, rules: Sequence[Rule], place: Place, paths: Paths, *, team: bool
) -> Iterable[MemoryFile]:
    targets = find_targets(agent, team=team)
    if not targets:
        print(f"flightrec: {agent} reads no file of your own; see --team", file=sys.stderr)
    for target in targets:
        location = locate(target, place, paths.home, os.environ)
        if location is None:
            raise FlightrecError(f"{agent}: this is no project (a home or /); go into one")
        project = place.project if target.holds is Holds.PROJECT else ""
        row = ExportRow(location.path, agent, project, asked=True)
        yield file_of(row, rules, place, paths.home, os.environ)


def _show_differences(files: Iterable[MemoryFile]) -> int:
    for file in files:
        before, after = preview(file.location, file.edit)
        name = one_line(str(file.location.path))
        lines = difflib.unified_diff(_lines(before), _lines(after), name, name, lineterm="")
        changes = [one_line(line) for line in lines]
        print(*(changes or [f"{name}: nothing to change"]), sep="\n")
    return ExitCode.OK


def _lines(document: bytes | None) -> list[str]:
    return (document or b"").decode("utf-8", "surrogateescape").splitlines()


def _write(files: Iterable[MemoryFile], paths: Paths) -> int:
    """Write all files, then wait once for programs that had one of them open."""
    trouble = False
    with contextlib.ExitStack() as opened:
        updates = []
        for file in {file.location.path: file for file in files}.values():
            try:
                updates += _write_one(file, paths, opened)
            except FlightrecError as error:
                print(f"flightrec: {error}", file=sys.stderr)
                trouble = True
        settle_all(updates)
    return ExitCode.TROUBLE if trouble else ExitCode.OK


def _write_one(file: MemoryFile, paths: Paths, opened: contextlib.ExitStack) -> list[FileUpdate]:
    """Write one file where it is out of date, and have it kept so from now on."""
    document, wanted = preview(file.location, file.edit)
    updates = []
    if wanted != document:
        update = opened.enter_context(
            contextlib.closing(FileUpdate(file.location, file.edit, paths))
        )
        update.run()
        updates.append(update)
    row = file.row
    request(paths, "export_asked", path=str(row.path), agent=row.agent, project=row.project)
    count = plural(len(file.rules), "rule")
    state = "written" if updates else "nothing to change" if file.rules else "no rule is proved yet"
    print(f"{one_line(str(file.location.path))}: {count}, {state}; kept up to date from now on")
    return updates
