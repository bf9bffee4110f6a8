"""The edge that keeps memory files as the rules are."""

import logging
import os
from collections.abc import Iterable, Mapping

from flightrec.agent_files import Kind
from flightrec.errors import FlightrecError
from flightrec.export_plan import MemoryFile, View, plan
from flightrec.export_rows import ExportRow, Wanted, forget_row, note
from flightrec.file_update import FileUpdate
from flightrec.git_exclude import exclude_file, excluding, including
from flightrec.location import Edit, Location
from flightrec.managed_block import without_block
from flightrec.memory_file import is_half_done, preview, update_file
from flightrec.paths import Paths
from flightrec.places import find_place
from flightrec.store import Store

log = logging.getLogger(__name__)


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
        for file in plan(View.read(store.connection), self._paths.home, self._environment):
            self._bring_up_to_date(store, file)
        return bool(self._unsettled)

    def _bring_up_to_date(self, store: Store, file: MemoryFile) -> None:
        if not file.location.boundary.is_dir():
            return  # a checkout that is gone, or on a disk that is not there now
        try:
            document, wanted = preview(file.location, file.edit)
            if wanted == document and not is_half_done(file.location, self._paths):
                return
            self._write(file)
        except FlightrecError as error:
            log.warning("a memory file was left as it is: %s", error)
            return
        self._note_automatic(store, file)

    def _write(self, file: MemoryFile) -> None:
        hide_from_git(file, self._paths)
        # Somebody who exports by hand holds the lock for seconds; this process has other work.
        update = FileUpdate(file.location, file.edit, self._paths, bare=without_block, patience_s=0)
        try:
            update.run()
        except BaseException:
            update.close()
            raise
        self._unsettled.append(update)

    @staticmethod
    def _note_automatic(store: Store, file: MemoryFile) -> None:
        """Remember what was written unasked for as long as something stands in it."""
        with store.transaction() as connection:
            for row in file.rows:
                if row.wanted is Wanted.AUTO and file.rules:
                    note(connection, row)
                elif row.wanted is Wanted.AUTO:
                    forget_row(connection, row)

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


def hide_from_git(file: MemoryFile, paths: Paths) -> None:
    """See to it that git does not offer one person's file to everybody. Raises FlightrecError."""
    hidden = hiding(file)
    if hidden is not None:
        update_file(*hidden, paths, settle_s=0)


def hiding(file: MemoryFile) -> tuple[Location, Edit] | None:
    """Return which of git's files has to say so, and how; None for a file that is no such thing."""
    if not file.rules:
        return None
    hidden = next(filter(None, map(_hidden, file.rows)), None)
    return None if hidden is None else (hidden[0], excluding(hidden[1], marked=True))


def showing(row: ExportRow, left: Iterable[ExportRow]) -> tuple[Location, Edit] | None:
    """Return what lets git see a file again that is kept no more; None where another one is left.

    All worktrees have one list of what git does not see.
    """
    hidden = _hidden(row)
    if hidden is None or hidden in map(_hidden, left):
        return None
    return hidden[0], including(hidden[1])


def _hidden(row: ExportRow) -> tuple[Location, str] | None:
    """Return where git is told not to see a file, and its name there; None for other files."""
    if row.kind is not Kind.LOCAL:
        return None
    location = exclude_file(find_place(str(row.boundary)))
    return None if location is None else (location, str(row.path.relative_to(row.boundary)))
