"""An open database with all that is needed to record into it: one group of messages at a time."""

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from flightrec import database, failpoints
from flightrec.agent_places import moved_claude_folder
from flightrec.capture import as_wanted
from flightrec.config import Level, Settings
from flightrec.errors import FlightrecError
from flightrec.evidence import Thresholds
from flightrec.export_rows import note_claude_folder
from flightrec.exporter import Exporter
from flightrec.guard_rows import guarded_projects
from flightrec.hints import HintRule, HintShown
from flightrec.ingest import CommandRun, ingest
from flightrec.link import ClaudeFolder, Corrected, Ended, Feed, Recorded, Shown, key_of
from flightrec.paths import Paths
from flightrec.places import Places
from flightrec.recorder import Recorder
from flightrec.redact import Redactor, Safe
from flightrec.rescan import Rescan, Rescanned
from flightrec.retention import Pruner
from flightrec.rules import Guard
from flightrec.store import Store
from flightrec.verbs import do
from flightrec.workplace import Workplace

log = logging.getLogger(__name__)

LOCK_PATIENCE_S = 2.0
"""How long a writer waits for its predecessor, whose front has died, to commit and go."""


@dataclass
class Result:
    """What a group of messages came to.

    ``odd`` messages could not be recorded as they should, ``changed`` goes to the hint index, and
    ``export`` tells that memory files are out of date.
    """

    odd: int = 0
    changed: list[HintRule] = field(default_factory=list)
    export: bool = False


class Recording:
    """The one place where runs become rows. ``notes`` are lines for the person."""

    def __init__(self, store: Store, lock: int, paths: Paths, settings: Settings) -> None:
        self._store = store
        self._lock = lock
        self._paths = paths
        self._places = Places()
        self._exporter = Exporter(paths)
        self._pruner = Pruner(store)
        self._settings = settings
        self._redactor = Redactor(settings.redaction.allow, settings.redaction.deny)
        self._rescan = Rescan(store, paths, settings.redaction)
        self.start_over()
        self.notes = _notes(store)
        self.is_fresh = store.quarantined is not None

    @classmethod
    def open(cls, paths: Paths, settings: Settings) -> Self:
        """Open the database. Raises FlightrecError, ``sqlite3.Error`` where that is not possible.

        A lock keeps it to one writer even where a home is shared between hosts.
        """
        lock = _take_lock(Path(f"{paths.database}.lock"))
        try:
            return cls(Store.open(paths.database), lock, paths, settings)
        except BaseException:
            os.close(lock)
            raise

    def use(self, settings: Settings) -> None:
        """Follow these settings from now on."""
        if settings.redaction != self._settings.redaction:
            # Only then: a redactor remembers the secrets of running sessions.
            self._redactor = Redactor(settings.redaction.allow, settings.redaction.deny)
            self._rescan = Rescan(self._store, self._paths, settings.redaction)
        self._settings = settings
        self.start_over()

    def start_over(self) -> None:
        """Learn from what is on the disk, not from what was in memory."""
        self._recorder = Recorder(self._store, _thresholds(self._settings))

    def hint_rules(self) -> Iterator[HintRule]:
        """Yield all rules for the hint index; to be read to the end before anything is written."""
        return self._recorder.hint_rules()

    def guarded_projects(self) -> dict[str, Guard]:
        """Return the projects that are guarded by all their rules, and how."""
        return guarded_projects(self._store.connection)

    def workplace(self) -> Workplace:
        """Return what a verb needs."""
        return Workplace(
            self._store,
            self._paths,
            self._settings,
            self._recorder,
            self._redactor,
            self._exporter,
        )

    def prune(self) -> bool:
        """Delete some of the oldest runs where there are too many; return whether to go on soon."""
        return bool(self._chore("prune", self._prune))

    def export(self) -> bool:
        """Bring memory files up to date; return whether ``settle_exports`` is to follow."""
        if not self._settings.export.on_promotion:
            return False
        return bool(self._chore("export", lambda: self._exporter.bring_up_to_date(self._store)))

    def settle_exports(self) -> bool:
        """Look again at the files written a second ago; return whether to do so once more."""
        return bool(self._chore("settle exports", self._exporter.settle))

    def reflect(self) -> Result:
        """Go over all rules, as is done now and then; return what changed.

        Memory files are looked at as well: an editor may have saved what it read long ago.
        """
        place = self.workplace()
        if self._chore("reflect", lambda: do("reflect", place, b"{}")) is None:
            self.start_over()
        return Result(changed=place.changed, export=True)

    @property
    def wants_rescan(self) -> bool:
        """Whether there are rows that another redaction made."""
        return self._rescan.is_due

    def rescan(self) -> Result | None:
        """Redact some old rows anew; return what changed, None where that did not work."""
        place = self.workplace()
        step = self._chore(
            "redact old rows", lambda: self._rescan.step(self._recorder.book, self._refresh_exports)
        )
        place.take_changes()
        if step is None or (isinstance(step, Rescanned) and step.changed and step.done):
            self.start_over()
        return None if step is None else Result(changed=place.changed, export=place.export)

    def _refresh_exports(self) -> None:
        self._exporter.bring_up_to_date(self._store)
        self._exporter.settle(at_once=True)

    def _prune(self) -> bool:
        return self._pruner.step(self._settings.retention, time.time_ns() // 1000)

    def _chore(self, name: str, work: Callable[[], object]) -> object:
        """Do something that nobody waits for; where it fails, the log says so."""
        try:
            return work()
        except Exception:
            log.exception("could not %s", name)
            return None

    def close(self) -> None:
        """Close the database and let the next writer in."""
        self._chore("settle exports", lambda: self._exporter.settle(at_once=True))
        self._store.close()
        os.close(self._lock)

    def set_aside(self) -> Path:
        """Close a damaged database and move it out of the way; return where it is."""
        self.close()
        return database.set_aside(self._paths.database)

    def commit(self, group: Sequence[Recorded]) -> Result:
        """Record the messages in one transaction, all or none. Raises what the database raises."""
        result = Result()
        try:
            with self._store.transaction():
                for message in group:
                    self._apply_alone(message, result)
                failpoints.reach("commit")
        except BaseException:
            self.start_over()
            raise
        return result

    def _apply_alone(self, message: Recorded, result: Result) -> None:
        try:
            with self._store.transaction():
                self._apply(message, result)
        except Exception as error:
            # One odd run must not stop the recording of the next one; a full disk concerns all.
            if database.trouble_of(error) or database.is_damage(error):
                raise
            log.exception("could not record %s %s", type(message).__name__, key_of(message).hex())
            result.odd += 1
            self.start_over()
            self._keep_bare(message)

    def _apply(self, message: Recorded, result: Result) -> None:
        match message:
            case Feed():
                failpoints.reach("record")
                path = message.starting.path
                outcome = self._recorder.record(
                    self._ingest(message), None if path is None else os.fsdecode(path)
                )
                result.changed += outcome.changed
                result.export |= outcome.export
            case Shown(shown):
                self._recorder.hint_shown(shown, self._offered(shown))
            case Corrected():
                self._correct(message)
            case ClaudeFolder():
                result.export |= self._note_folder(os.fsdecode(message.folder))
            case Ended():
                self._store.end_session(message.session, message.wall_us)
                self._recorder.session_ended(message.session)

    def _correct(self, corrected: Corrected) -> None:
        """Keep a command that a person named for one that failed, for him to approve."""

        def redact(text: str) -> Safe:
            return self._redactor.redact_command(text, corrected.session).text

        self._recorder.corrected(corrected.session, corrected.spoken, redact, corrected.at_us)

    def _note_folder(self, folder: str) -> bool:
        """Remember where Claude Code has its files; return whether that is news."""
        moved = moved_claude_folder(folder, self._paths.home, os.environ)
        if not moved or self._redactor.redact_text(moved) != moved:
            return False
        return note_claude_folder(self._store.connection, moved)

    def _offered(self, shown: HintShown) -> Safe:
        """Return the line that was offered; it holds words as typed, so it is kept as those are."""
        if self._settings.capture.level is Level.METADATA:
            return Safe("")
        return self._redactor.redact_command(shown.remedy, shown.session).text

    def _ingest(self, feed: Feed) -> CommandRun:
        starting, finished = as_wanted(feed.starting, feed.finished, self._settings.capture)
        return ingest(starting, finished, self._redactor, self._places)

    def _keep_bare(self, message: Recorded) -> None:
        """Keep at least the run where learning from it failed."""
        if not isinstance(message, Feed):
            return
        try:
            with self._store.transaction():
                self._store.add_run(self._ingest(message))
        except Exception as error:
            if database.trouble_of(error) or database.is_damage(error):
                raise
            log.exception("could not keep %s", key_of(message).hex())


def _thresholds(settings: Settings) -> Thresholds:
    rules = settings.rules
    return Thresholds(
        promote_r=rules.promote_recurrences,
        promote_c=rules.promote_confirmations,
        archive_d=rules.archive_contradictions,
        share_projects=rules.share_projects,
    )


def _take_lock(path: Path) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(lock)
                raise FlightrecError(
                    "another flightrec writes to this database (from another host?)"
                ) from None
            time.sleep(0.02)
        except OSError:
            return lock  # a file system without locks: the daemon's own ownership has to do
        else:
            return lock


def damage_note(aside: Path) -> str:
    """Return the line about a damaged database that was put there."""
    return f"the database was damaged; it is kept as {aside}"


def _notes(store: Store) -> list[str]:
    notes = []
    if store.quarantined:
        notes.append(damage_note(store.quarantined))
    if store.lost:
        notes.append(f"recorded commands lost when the system stopped: {store.lost}")
    if store.warning:
        notes.append(store.warning)
    return notes
