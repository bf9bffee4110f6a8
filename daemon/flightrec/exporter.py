"""Which memory files hold which rules, and the edge that keeps them so.

A file is written because the person exported there once, or because it is Claude Code's memory of
a project in which Claude Code was used. What stands in it is a view of the database: a rule that
falls back leaves all files, and the last rule takes the block along.
"""

import functools
import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from flightrec.agent_files import CLAUDE_MEMORY, TARGETS, Holds, MemoryTarget, locate, memory_root
from flightrec.errors import FlightrecError
from flightrec.export import EXPORTED, Form, IsOutside, edit_document, exportable, format_rule
from flightrec.memory_file import Edit, FileUpdate, Location, preview
from flightrec.paths import Paths
from flightrec.places import Place, find_place
from flightrec.programs import Where, where_is
from flightrec.rulebook import Rulebook
from flightrec.rules import Rule, Scope, Status
from flightrec.store import Store, to_bytes

log = logging.getLogger(__name__)

OWN_FILE = MemoryTarget("", "", Holds.PROJECT)
"""A file that the person named with ``--to``."""


@dataclass(frozen=True, slots=True)
class ExportRow:
    """A file that was written to before; ``asked``: because the person said so."""

    path: Path
    agent: str
    project: str
    asked: bool


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A file and the rules that belong into it, strongest first."""

    row: ExportRow
    location: Location
    form: Form
    rules: tuple[Rule, ...]

    @property
    def edit(self) -> Edit:
        """What brings the file's document up to date."""
        return lambda document: edit_document(document, self.rules, self.form)


class Exporter:
    """Keeps the memory files as the rules are; belongs to the process that writes the database."""

    def __init__(self, paths: Paths, environment: Mapping[str, str] | None = None) -> None:
        self._paths = paths
        self._environment = os.environ if environment is None else environment
        self._unsettled: list[FileUpdate] = []

    def bring_up_to_date(self, store: Store) -> bool:
        """Write each file that is out of date; return whether to call ``settle`` in ``SETTLE_S``.

        A file that cannot be written is left as it is, with a line in the log.
        """
        self.settle(at_once=True)
        for file in plan(store.connection, self._paths.home, self._environment):
            self._bring_up_to_date(store, file)
        return bool(self._unsettled)

    def _bring_up_to_date(self, store: Store, file: MemoryFile) -> None:
        try:
            document, wanted = preview(file.location, file.edit)
            if wanted == document:
                return
            self._write(file)
        except FlightrecError as error:
            log.warning("a memory file was left as it is: %s", error)
            return
        with store.transaction() as connection:
            if file.rules or file.row.asked:
                note(connection, file.row, file.rules)
            else:
                forget_file(connection, file.row.path)

    def _write(self, file: MemoryFile) -> None:
        # Somebody who exports by hand holds the lock for seconds; this process has other work.
        update = FileUpdate(file.location, file.edit, self._paths, patience_s=0)
        try:
            update.run()
        except BaseException:
            update.close()
            raise
        self._unsettled.append(update)

    def settle(self, *, at_once: bool = False) -> bool:
        """Look once more at what was displaced; return whether to do so again in ``SETTLE_S``."""
        waiting, self._unsettled = self._unsettled, []
        for update in waiting:
            try:
                if update.settle() and not at_once:
                    self._unsettled.append(update)
                    continue
            except FlightrecError as error:
                log.warning("a memory file was left as it is: %s", error)
            update.close()
        return bool(self._unsettled)


# --- which file holds what -------------------------------------------------------------------


def plan(
    connection: sqlite3.Connection, home: Path, environment: Mapping[str, str]
) -> Iterator[MemoryFile]:
    """Yield the files to look at: those written before, and Claude's memory where it was used."""
    rules = Rulebook(connection).rules(*EXPORTED)
    places = find_places(connection)
    known: set[Path] = set()
    for row in read_rows(connection):
        known.add(row.path)
        yield file_of(row, rules, place_of(row.project, places), home, environment)
    for project in dict.fromkeys(project for rule in rules for project in rule.seen_in):
        place = place_of(project, places)
        location = locate(CLAUDE_MEMORY, place, home, environment)
        # Two projects may have the same name there; the first one has it.
        if location and location.path not in known and location.path.parent.parent.is_dir():
            known.add(location.path)
            row = ExportRow(location.path, CLAUDE_MEMORY.agent, project, asked=False)
            yield file_of(row, rules, place, home, environment)


def file_of(
    row: ExportRow,
    rules: Iterable[Rule],
    place: Place,
    home: Path,
    environment: Mapping[str, str],
) -> MemoryFile:
    """Return what belongs into one file."""
    target, location = _target_of(row, place, home, environment)
    return MemoryFile(row, location, target.form, choose(rules, target.holds, place))


def _target_of(
    row: ExportRow, place: Place, home: Path, environment: Mapping[str, str]
) -> tuple[MemoryTarget, Location]:
    for target in TARGETS:
        if target.agent == row.agent:
            location = locate(target, place, home, environment)
            if location is not None and location.path == row.path:
                return target, location
    return OWN_FILE, Location(row.path, boundary_of(row.path, home))


def boundary_of(path: Path, home: Path) -> Path:
    """Return what a link at ``path`` must not lead out of: checkout, home, or its own folder."""
    place = find_place(str(path.parent))
    if place.in_git:
        return Path(place.worktree)
    return home if path.is_relative_to(home) else path.parent


def choose(rules: Iterable[Rule], holds: Holds, place: Place) -> tuple[Rule, ...]:
    """Return the rules that belong into a file of somebody at ``place``, strongest first."""
    if holds is Holds.USER:
        wanted = (r for r in rules if r.status is Status.SHARED and r.scope is Scope.USER)
        return tuple(exportable(wanted, outside_of()))
    wanted = (rule for rule in rules if place.project in rule.seen_in)
    return tuple(exportable(wanted, outside_of(place.worktree, memory_root(place))))


def outside_of(*roots: str) -> IsOutside:
    """Return whether a program comes from outside these folders, by this process's PATH."""
    path = os.environ.get("PATH", os.defpath)
    return functools.cache(lambda program: where_is(program, path, roots) is Where.OUTSIDE)


def find_places(connection: sqlite3.Connection) -> dict[str, Place]:
    """Return one place of each project that rules are about."""
    rows = connection.execute("SELECT DISTINCT project, worktree FROM outcomes")
    return {project: Place(project, worktree) for project, worktree in rows}


def place_of(project: str, places: Mapping[str, Place]) -> Place:
    """Return a place of the project, also where no rule was seen in it yet."""
    path = Path(project)
    return places.get(project) or Place(
        project, str(path.parent) if path.name == ".git" else project
    )


# --- what was written before -----------------------------------------------------------------


def read_rows(connection: sqlite3.Connection) -> list[ExportRow]:
    """Return the files that were written before, those first that the person asked for."""
    rows = connection.execute(
        "SELECT path, agent, project, asked FROM exports ORDER BY asked DESC, at_us, path"
    )
    return [
        ExportRow(Path(path), agent, project, bool(asked)) for path, agent, project, asked in rows
    ]


def note(connection: sqlite3.Connection, row: ExportRow, rules: Iterable[Rule] = ()) -> None:
    """Remember that a file was written to, or was asked for; inside a transaction."""
    digest = hashlib.sha256("\n".join(map(format_rule, rules)).encode("utf-8", "replace")).digest()
    connection.execute(
        """
        INSERT INTO exports (path, agent, project, asked, digest, at_us)
        VALUES (CAST(? AS TEXT), ?, CAST(? AS TEXT), ?, ?, ?)
        ON CONFLICT (path) DO UPDATE SET agent = excluded.agent, project = excluded.project,
          asked = max(asked, excluded.asked), digest = excluded.digest, at_us = excluded.at_us
        """,
        (
            os.fsencode(row.path),
            row.agent,
            to_bytes(row.project),
            int(row.asked),
            digest,
            time.time_ns() // 1000,
        ),
    )


def forget_file(connection: sqlite3.Connection, path: Path) -> None:
    """Remember a file no more; inside a transaction."""
    connection.execute("DELETE FROM exports WHERE path = CAST(? AS TEXT)", (os.fsencode(path),))
