"""Write rules into the files that coding agents read."""

import argparse
import contextlib
import difflib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from flightrec.agent_files import (
    AGENTS,
    READ_BY_HAND,
    Kind,
    find_target,
    personal_targets,
)
from flightrec.agent_presence import is_used, is_used_in_checkout
from flightrec.client import request
from flightrec.commands.terminal import one_line, plural, print_items
from flightrec.errors import ExitCode, FlightrecError
from flightrec.export import EXPORTED, count_rules, format_rule, why_no_place, why_not
from flightrec.export_plan import (
    MemoryFile,
    View,
    file_of,
    outside_of,
    own_row,
    project_rules,
    rows_for,
)
from flightrec.export_rows import ExportRow, Wanted, path_to_json
from flightrec.exporter import hide_from_git, hiding, showing
from flightrec.file_update import FileUpdate
from flightrec.git_exclude import is_tracked
from flightrec.location import Edit, Location
from flightrec.managed_block import without_block
from flightrec.memory_file import is_half_done, preview, read_file, settle_all, update_file
from flightrec.paths import Paths, find_paths
from flightrec.places import Place, find_place
from flightrec.rulebook import Rulebook
from flightrec.rules import Rule, Status
from flightrec.store import Store

HELP = "write proved rules into the memory files of coding agents"

EXAMPLES = (
    ("flightrec export", "print what would be written for this project"),
    ("flightrec export --agent codex", "into your own files of Codex, from now on"),
    ("flightrec export --agent all", "for every agent that is used here"),
    ("flightrec export --agent claude --local", "into CLAUDE.local.md, which git is kept from"),
    ("flightrec export --agent claude --team --dry-run", "what CLAUDE.md would become"),
    ("flightrec export --agent codex --stop", "take the rules out again, and write no more"),
    ("flightrec export --to NOTES.md", "into a file of your own, from now on"),
    ("flightrec export --all", "print the rules that are not proved yet as well"),
)


ALL = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--to", metavar="FILE", help="a file of your own; kept up to date")
    where.add_argument(
        "--agent",
        choices=(*AGENTS, ALL),
        metavar="NAME",
        help=f"{', '.join(AGENTS)}, or {ALL} that are used here",
    )
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument(
        "--local", action="store_true", help="with --agent: your own file in the checkout"
    )
    whose.add_argument(
        "--team", action="store_true", help="with --agent: the file in the project that git tracks"
    )
    parser.add_argument(
        "--stop", action="store_true", help="take the rules out of that file and write no more"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the difference, write nothing")
    parser.add_argument("--all", action="store_true", help="active rules too; only prints")
    parser.add_argument("--json", action="store_true", help="as JSON; only prints")


def run(arguments: argparse.Namespace) -> int:
    """Print, show the difference, or write."""
    paths = find_paths()
    place = find_place(str(Path.cwd()))
    with contextlib.closing(Store.open_read_only(paths.database)) as store:
        if arguments.to is None and arguments.agent is None:
            return _print(Rulebook(store.connection), place, arguments)
        view = View.read(store.connection)
    if arguments.all or arguments.json:
        raise FlightrecError("--all and --json only print; leave --to and --agent", ExitCode.USAGE)
    if arguments.stop:
        return _stop(list(_rows_to_stop(arguments, view, place, paths)), view, arguments, paths)
    rows = list(_rows_to_keep(arguments, view, place, paths))
    files = _files_of(rows, view.with_rows(rows))
    if arguments.dry_run:
        return _show_differences(files)
    status = _write(files, paths, "kept up to date from now on")
    request(paths, "export_asked", rows=_described(rows))
    return status


# --- printing --------------------------------------------------------------------------------


def _print(rulebook: Rulebook, place: Place, arguments: argparse.Namespace) -> int:
    if arguments.team or arguments.local or arguments.stop or arguments.dry_run:
        raise FlightrecError("say where to: --agent NAME or --to FILE", ExitCode.USAGE)
    rules = rulebook.rules(Status.ACTIVE, *EXPORTED)
    chosen: Sequence[Rule]
    if arguments.all:
        chosen = [rule for rule in rules if place.project in rule.seen_in]
    else:
        chosen = project_rules(rules, place)
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
            _say(f"{rule.id} is left out: {why_not(rule, is_outside) or 'there is no room for it'}")
    if not chosen:
        _say("no rule of this project is proved yet")


def _say(text: str) -> None:
    print(f"flightrec: {one_line(text, 400)}", file=sys.stderr)


# --- which files -----------------------------------------------------------------------------


def _rows_to_keep(
    arguments: argparse.Namespace, view: View, place: Place, paths: Paths
) -> Iterator[ExportRow]:
    """Yield what to remember. Raises FlightrecError where there is nothing to write to."""
    if arguments.to is not None:
        yield own_row(_named(arguments.to), place, paths.home)
        return
    found = False
    troubles = []
    for agent in _agents_used(arguments, view, place, paths):
        try:
            for row in rows_for(agent, _kinds(agent, arguments), place, paths.home, os.environ):
                _check_untracked(row)
                found = True
                yield row
        except FlightrecError as error:
            troubles.append(str(error))
    if not found:
        raise FlightrecError(troubles[0])
    for trouble in troubles:
        _say(trouble)


def _agents_used(
    arguments: argparse.Namespace, view: View, place: Place, paths: Paths
) -> Sequence[str]:
    """Return the agent that was named; of all those that are used, and say which are left out.

    Raises FlightrecError where none is.
    """
    if arguments.agent != ALL:
        return (arguments.agent,)
    asked = {row.agent for row in view.rows if row.wanted is Wanted.ASKED}
    used = [
        agent
        for agent in AGENTS
        if agent in asked
        or is_used(agent, paths.home, os.environ)
        or is_used_in_checkout(agent, _wanted_kinds(agent, arguments), place)
    ]
    if not used:
        raise FlightrecError("no agent was found here; name one: --agent NAME")
    left_out = [a for a in AGENTS if a not in used and _has_any(a, _wanted_kinds(a, arguments))]
    if left_out:
        _say(f"left out: {', '.join(left_out)}, which are not used here; --agent NAME names one")
    return used


def _wanted_kinds(agent: str, arguments: argparse.Namespace) -> Sequence[Kind]:
    if arguments.team or arguments.local:
        return [Kind.TEAM if arguments.team else Kind.LOCAL]
    return [target.kind for target in personal_targets(agent)]


def _has_any(agent: str, kinds: Iterable[Kind]) -> bool:
    return any(find_target(agent, kind) for kind in kinds)


def _kinds(agent: str, arguments: argparse.Namespace) -> Sequence[Kind]:
    """Return which of an agent's files are meant. Raises FlightrecError where it has none."""
    kinds = _wanted_kinds(agent, arguments)
    if not _has_any(agent, kinds):
        where = "in the checkout" if arguments.local else "of your own"
        raise FlightrecError(f"{agent} reads no file {where}; see --team")
    return kinds


def _check_untracked(row: ExportRow) -> None:
    name = str(row.path.relative_to(row.boundary)) if row.kind is Kind.LOCAL else ""
    if name and is_tracked(row.boundary, name):
        raise FlightrecError(f"{name} is tracked by git, so it is not yours alone; left alone")


def _named(path: str) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - links are judged when it is opened


def _files_of(rows: Iterable[ExportRow], view: View) -> list[MemoryFile]:
    return [file_of(row, view) for row in {row.real: row for row in rows}.values()]


# --- differences -----------------------------------------------------------------------------


def _show_differences(files: Iterable[MemoryFile]) -> int:
    for file in files:
        _show_difference(file.location, file.edit)
        hidden = hiding(file)
        if hidden is not None:
            _show_difference(*hidden)
    return ExitCode.OK


def _show_difference(location: Location, edit: Edit) -> None:
    before, after = preview(location, edit)
    name = one_line(str(location.path))
    lines = difflib.unified_diff(_lines(before), _lines(after), name, name, lineterm="")
    changes = [one_line(line) for line in lines]
    print(*(changes or [f"{name}: nothing to change"]), sep="\n")


def _lines(document: bytes | None) -> list[str]:
    return (document or b"").decode("utf-8", "surrogateescape").splitlines()


# --- writing ---------------------------------------------------------------------------------


def _write(files: Iterable[MemoryFile], paths: Paths, from_now_on: str) -> int:
    """Write all files, then wait once for programs that had one of them open."""
    trouble = False
    with contextlib.ExitStack() as opened:
        updates = []
        for file in files:
            try:
                update, standing = _write_one(file, paths, opened)
            except FlightrecError as error:
                _say(str(error))
                trouble = True
                continue
            updates += update
            _explain_gaps(file, standing)
            print(_report(file, standing, from_now_on, written=bool(update)))
        settle_all(updates)
    return ExitCode.TROUBLE if trouble else ExitCode.OK


def _write_one(
    file: MemoryFile, paths: Paths, opened: contextlib.ExitStack
) -> tuple[list[FileUpdate], int]:
    """Write one file where it is out of date; return also how many rules stand there."""
    document, wanted = preview(file.location, file.edit)
    standing = count_rules(wanted)
    if wanted == document and not is_half_done(file.location, paths):
        return [], standing
    hide_from_git(file, paths)
    writing = FileUpdate(file.location, file.edit, paths, bare=without_block)
    update = opened.enter_context(contextlib.closing(writing))
    update.run()
    return [update], standing


def _explain_gaps(file: MemoryFile, standing: int) -> None:
    """Say on stderr what is not in a file, and why; and what is to be done by hand."""
    for section in file.sections:
        reason = why_no_place(section)
        if reason:
            _say(f"the rules of {section.project} are left out: its name {reason}")
    for row in file.rows:
        if row.agent in READ_BY_HAND:
            _say(READ_BY_HAND[row.agent])
    if standing < file.rules:
        left = plural(file.rules - standing, "rule")
        _say(f"there is no room for {left} in {file.location.path}")


def _report(file: MemoryFile, standing: int, from_now_on: str, *, written: bool) -> str:
    """Return the line about one file."""
    state = "written" if written else "nothing to change" if file.rules else "no rule is proved yet"
    count = plural(standing, "rule")
    return f"{one_line(str(file.location.path))}: {count}, {state}; {from_now_on}"


def _described(rows: Iterable[ExportRow]) -> list[dict[str, Any]]:
    return [
        {
            "path": path_to_json(str(row.path)),
            "project": path_to_json(row.project),
            "agent": row.agent,
            "kind": row.kind.value,
            "boundary": path_to_json(str(row.boundary)),
        }
        for row in rows
    ]


# --- stopping --------------------------------------------------------------------------------


def _stop(rows: list[ExportRow], view: View, arguments: argparse.Namespace, paths: Paths) -> int:
    """Write there no more. The daemon hears it first: it would put back what is taken out."""
    if not rows:
        raise FlightrecError("nothing is kept up to date there; flightrec status lists what is")
    left = view.without_rows(rows)
    files = _files_of(rows, left)
    shown = [(row, found) for row in rows if (found := showing(row, left.rows)) is not None]
    if arguments.dry_run:
        status = _show_differences(files)
        for _, of_git in shown:
            _show_difference(*of_git)
        return status
    request(paths, "export_stopped", rows=_described(rows))
    status = _write(files, paths, "left alone from now on")
    for row, of_git in shown:
        try:
            _show_to_git(row, *of_git, paths)
        except FlightrecError as error:
            _say(str(error))
            status = ExitCode.TROUBLE
    return status


def _show_to_git(row: ExportRow, location: Location, edit: Edit, paths: Paths) -> None:
    """Take back that git does not see a file, once nothing of ours is in it."""
    document = read_file(Location(row.path, row.boundary))
    if b"<!-- flightrec:" in (document or b""):
        return  # it could not be taken out
    if update_file(location, edit, paths, settle_s=0) and document is not None:
        _say(f"{row.path} holds what is yours; git sees it again")


def _rows_to_stop(
    arguments: argparse.Namespace, view: View, place: Place, paths: Paths
) -> Iterator[ExportRow]:
    if arguments.to is not None:
        yield from (row for row in view.rows if row.path == _named(arguments.to))
        return
    is_all = arguments.agent == ALL
    for agent in AGENTS if is_all else (arguments.agent,):
        for kind in _wanted_kinds(agent, arguments) if is_all else _kinds(agent, arguments):
            with contextlib.suppress(FlightrecError):  # what has no place was never written
                rows = rows_for(agent, [kind], place, paths.home, os.environ)
                yield from (row for row in rows if _is_to_stop(row, view, place))


def _is_to_stop(row: ExportRow, view: View, place: Place) -> bool:
    """Whether a row ends here: what holds everywhere stays while another project is kept."""
    if row.kind is Kind.MEMORY and row.agent == "claude":
        return True  # it would be written without being asked for
    if row.project == "" and any(_is_kept_elsewhere(other, row, place) for other in view.rows):
        return False
    return any((other.path, other.project) == (row.path, row.project) for other in view.rows)


def _is_kept_elsewhere(other: ExportRow, row: ExportRow, place: Place) -> bool:
    """Whether the person asked for the same agent's own files in another project."""
    return (
        other.agent == row.agent
        and other.kind is not Kind.TEAM
        and other.wanted is Wanted.ASKED
        and other.project not in ("", place.project)
    )
