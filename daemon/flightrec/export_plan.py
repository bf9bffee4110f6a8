"""Which memory files there are to look at, and which rules stand in each.

A file is written because the person exported there once, or because it is Claude Code's memory of
a project in which Claude Code was used. What stands in it is a view of the database: a rule that
falls back leaves all files, and the last rule takes the block along.
"""

import functools
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flightrec.agent_files import CLAUDE_MEMORY, Kind, find_target, holds_projects
from flightrec.agent_places import is_project, locate, memory_root
from flightrec.export import (
    EXPORTED,
    Form,
    IsOutside,
    Section,
    edit_document,
    exportable,
    why_no_place,
)
from flightrec.export_rows import ExportRow, Wanted, read_claude_folders, read_rows
from flightrec.location import Edit, Location
from flightrec.places import Place, find_place
from flightrec.programs import Where, where_is
from flightrec.rulebook import Rulebook
from flightrec.rules import Rule, Scope, Status


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A file, why it is written (``rows``), and what belongs into it."""

    rows: tuple[ExportRow, ...]
    location: Location
    form: Form
    sections: tuple[Section, ...]

    @property
    def rules(self) -> int:
        """How many rules belong into it."""
        return sum(len(section.rules) for section in self.sections if not why_no_place(section))

    @property
    def edit(self) -> Edit:
        """What brings the file's document up to date."""
        return lambda document: edit_document(document, self.sections, self.form)


@dataclass(frozen=True, slots=True)
class View:
    """What decides which rules stand where: rules, a place of each project, and all rows.

    ``claude_folders`` are those to which sessions of Claude Code said that it was moved.
    """

    rules: tuple[Rule, ...]
    places: Mapping[str, Place]
    rows: tuple[ExportRow, ...]
    claude_folders: tuple[str, ...] = ()

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> "View":
        """Read it from the database."""
        return cls(
            tuple(Rulebook(connection).rules(*EXPORTED)),
            find_places(connection),
            tuple(read_rows(connection)),
            tuple(read_claude_folders(connection)),
        )

    def place_of(self, project: str) -> Place:
        """Return a place of the project, also where no rule was seen in it yet."""
        path = Path(project)
        return self.places.get(project) or Place(
            project, str(path.parent) if path.name == ".git" else project
        )

    def with_rows(self, rows: Iterable[ExportRow]) -> "View":
        """Return the view as it is once these are asked for as well."""
        asked = {(row.path, row.project): row for row in (*self.rows, *rows)}
        return replace(self, rows=tuple(asked.values()))

    def without_rows(self, rows: Iterable[ExportRow]) -> "View":
        """Return the view as it is once these are stopped."""
        gone = {(row.path, row.project) for row in rows}
        kept = tuple(row for row in self.rows if (row.path, row.project) not in gone)
        return replace(self, rows=kept)

    def rows_of(self, real: Path) -> tuple[ExportRow, ...]:
        """Return why a file is written: nothing for one that is to be left alone."""
        return tuple(row for row in self._kept() if row.real == real)

    def files(self) -> Iterator[tuple[ExportRow, ...]]:
        """Yield why each file is written that is not to be left alone."""
        found: dict[Path, list[ExportRow]] = {}
        for row in self._kept():
            found.setdefault(row.real, []).append(row)
        yield from map(tuple, found.values())

    def _kept(self) -> Iterator[ExportRow]:
        return (row for row in self.rows if row.wanted is not Wanted.STOPPED)


def plan(view: View, home: Path, environment: Mapping[str, str]) -> Iterator[MemoryFile]:
    """Yield the files to look at: those remembered, and Claude's memory where it is used."""
    for rows in view.files():
        yield _file_of(rows[0], rows, view)
    for row in _claude_rows(view, home, environment):
        yield file_of(row, view.with_rows([row]))


def _claude_rows(view: View, home: Path, environment: Mapping[str, str]) -> Iterator[ExportRow]:
    """Yield Claude's memories of projects that have a rule, where nobody spoke of them yet."""
    known = {row.path for row in view.rows}
    known |= {row.real for row in view.rows if row.agent == CLAUDE_MEMORY.agent}
    for project in dict.fromkeys(project for rule in view.rules for project in rule.seen_in):
        for variables in _claude_homes(view, environment):
            location = locate(CLAUDE_MEMORY, view.place_of(project), home, variables)
            # Two projects may have the same name there; the first one has it.
            if location.path in known or not location.path.parent.parent.is_dir():
                continue
            row = ExportRow(
                location.path,
                project,
                CLAUDE_MEMORY.agent,
                CLAUDE_MEMORY.kind,
                location.boundary,
                Wanted.AUTO,
            )
            if row.real not in known:
                known |= {row.path, row.real}
                yield row


def _claude_homes(view: View, environment: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Yield environments for all of Claude's folders: ours, the sessions', the exports'."""
    yield environment
    assert CLAUDE_MEMORY.folder is not None  # noqa: S101 - it is a row of the table
    variable = CLAUDE_MEMORY.folder.variable
    asked = {
        str(row.path.parents[3])
        for row in view.rows
        if (row.agent, row.kind) == (CLAUDE_MEMORY.agent, CLAUDE_MEMORY.kind)
    }
    yield from ({variable: folder} for folder in sorted(asked.union(view.claude_folders)))


def file_of(row: ExportRow, view: View) -> MemoryFile:
    """Return what belongs into the file of a row, also for others that are kept there."""
    return _file_of(row, view.rows_of(row.real), view)


def _file_of(row: ExportRow, rows: tuple[ExportRow, ...], view: View) -> MemoryFile:
    location = Location(row.path, row.boundary)
    return MemoryFile(rows, location, _form_of(rows or (row,)), tuple(_sections(rows, view)))


def _form_of(rows: Sequence[ExportRow]) -> Form:
    """Return what all who read a file take; it begins as the first one's does."""
    targets = (find_target(row.agent, row.kind) for row in rows)
    forms = [Form() if target is None else target.form for target in targets]
    lines_max, bytes_max = (min(f.lines_max for f in forms), min(f.bytes_max for f in forms))
    return Form(lines_max, bytes_max, forms[0].header)


def _sections(rows: Sequence[ExportRow], view: View) -> Iterator[Section]:
    """Yield what stands in a file, each project once; what holds everywhere stands first."""
    shared: tuple[Rule, ...] = ()
    one_for_each = {row.project: row for row in reversed(rows)}
    for row in sorted(one_for_each.values(), key=lambda row: (row.project != "", rows.index(row))):
        if row.project == "":
            shared = shared_rules(view.rules)
            yield Section(shared)
            continue
        place = view.place_of(row.project)
        if row.kind in (Kind.LOCAL, Kind.TEAM):
            place = replace(place, worktree=str(row.boundary))
        rules = project_rules(view.rules, place)
        if row.kind is Kind.USER:
            apart = tuple(rule for rule in rules if rule not in shared)
            yield Section(apart, memory_root(place))
        else:
            yield Section(_new_to_its_reader(rules, row, view))


def _new_to_its_reader(rules: tuple[Rule, ...], row: ExportRow, view: View) -> tuple[Rule, ...]:
    """Leave out what the agent reads in the person's file; a team's file is whole for the team."""
    if row.kind not in (Kind.MEMORY, Kind.LOCAL) or not any(
        other.agent == row.agent and other.kind is Kind.USER and other.project == ""
        for other in view.rows
    ):
        return rules
    return tuple(rule for rule in rules if not _is_shared(rule))


def _is_shared(rule: Rule) -> bool:
    return rule.status is Status.SHARED and rule.scope is Scope.USER


def shared_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules that belong into a person's file for all projects, strongest first."""
    return tuple(exportable(filter(_is_shared, rules), outside_of()))


def project_rules(rules: Iterable[Rule], place: Place) -> tuple[Rule, ...]:
    """Return the rules that were seen in a project, strongest first."""
    seen = (rule for rule in rules if place.project in rule.seen_in)
    return tuple(exportable(seen, outside_of(place.worktree, memory_root(place))))


def rows_for(
    agent: str,
    targets: Iterable[Kind],
    place: Place,
    home: Path,
    environment: Mapping[str, str],
) -> list[ExportRow]:
    """Return what to remember where the person wants these files of an agent at ``place``.

    Raises FlightrecError where one of them has no place.
    """
    rows = []
    for kind in targets:
        target = find_target(agent, kind)
        if target is None:
            continue
        location = locate(target, place, home, environment)
        projects = _projects_in(agent, kind, place, home)
        rows += [
            ExportRow(location.path, project, agent, kind, location.boundary)
            for project in projects
        ]
    return rows


def _projects_in(agent: str, kind: Kind, place: Place, home: Path) -> tuple[str, ...]:
    if kind is not Kind.USER:
        return (place.project,)
    return ("", place.project) if holds_projects(agent) and is_project(place, home) else ("",)


def own_row(path: Path, place: Place, home: Path) -> ExportRow:
    """Return what to remember for a file that the person named, at ``place``."""
    return ExportRow(path, place.project, "", Kind.OWN, boundary_of(path, home))


def boundary_of(path: Path, home: Path) -> Path:
    """Return what a link at ``path`` must not lead out of: checkout, home, or its own folder."""
    place = find_place(str(path.parent))
    if place.in_git:
        return Path(place.worktree)
    return home if path.is_relative_to(home) else path.parent


def outside_of(*roots: str) -> IsOutside:
    """Return whether a program comes from outside these folders, by this process's PATH."""
    path = os.environ.get("PATH", os.defpath)
    return functools.cache(lambda program: where_is(program, path, roots) is Where.OUTSIDE)


def find_places(connection: sqlite3.Connection) -> dict[str, Place]:
    """Return one place of each project that rules are about."""
    rows = connection.execute("SELECT DISTINCT project, worktree FROM outcomes")
    return {project: Place(project, worktree) for project, worktree in rows}
