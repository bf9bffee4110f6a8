"""The process that owns the database: raw runs in, redacted, learned from, committed in groups.

It is a plain loop over one socket pair. Whatever the front has sent and was not told to be stored
is still the front's, so this process may die at any moment: its successor is given it again. It
ends when the front does.
"""

import contextlib
import itertools
import logging
import math
import os
import select
import signal
import socket
import sqlite3
import sys
import time
from collections.abc import Iterable

from flightrec import failpoints
from flightrec.config import Settings, load_settings
from flightrec.daemon_log import send_to
from flightrec.database import is_damage, trouble_of
from flightrec.errors import FlightrecError
from flightrec.file_update import SETTLE_S
from flightrec.hints import HintRule
from flightrec.lifecycle import end_with_parent, forbid_inspection
from flightrec.link import (
    RULES_PER_FRAME,
    Answer,
    Ask,
    ClaudeFolder,
    Corrected,
    Drain,
    Ended,
    Feed,
    FromWriter,
    Guarded,
    Note,
    Ready,
    Recorded,
    Reload,
    Rules,
    Shown,
    Stored,
    ToWriter,
    Trouble,
    encode,
    key_of,
    reader_of_front,
)
from flightrec.paths import Paths, find_paths
from flightrec.recording import Recording, Result, damage_note
from flightrec.verbs import do
from flightrec.workplace import Workplace

log = logging.getLogger(__name__)

COMMIT_AFTER_S = 0.05
COMMIT_MESSAGES = 500
"""A group is committed when it is this old or this large."""

RETRY_AFTER_S = (1.0, 2.0, 4.0)
"""Waits between attempts while the disk is full or cannot be written."""

EXPORT_EVERY_S = 5.0
LOOK_EVERY_S = 0.5
"""How often memory files are written at most, and looked at where nothing was to be written."""

PRUNE_EVERY_S = 60.0
PRUNE_AGAIN_S = 0.2
"""Between portions, while there is too much in the database."""

RESCAN_EVERY_S = 0.05
RESCAN_RETRY_S = 60.0
"""Between portions of old rows that are redacted anew, and after one that failed."""

LAST_WORDS_S = 10
"""How long a writer whose front has died may take to commit what it was given."""


class FrontLink:
    """The writer's end of the socket pair."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._reader = reader_of_front()
        self.closed = False

    def receive(self, limit_s: float) -> list[ToWriter]:
        """Return what came, nothing after ``limit_s``; ``closed`` tells that the front is gone."""
        ready, _, _ = select.select([self._socket], [], [], limit_s)
        if not ready:
            return []
        try:
            data = self._socket.recv(256 * 1024)
        except OSError:
            data = b""
        self.closed = not data
        return self._reader.feed(data)

    def send(self, message: FromWriter) -> None:
        """Send; a front that is gone is noticed by ``receive``."""
        with contextlib.suppress(OSError):
            self._socket.sendall(encode(message))


class LinkHandler(logging.Handler):
    """Hands log lines to the front: the log file has one owner."""

    def __init__(self, link: FrontLink) -> None:
        super().__init__()
        self._link = link

    def emit(self, record: logging.LogRecord) -> None:
        """Send one line."""
        self._link.send(Note(record.levelno, self.format(record)))


class Writer:
    """The loop: take messages, commit them in groups, answer requests, look after the database."""

    def __init__(self, paths: Paths, link: FrontLink) -> None:
        self._paths = paths
        self._link = link
        self._settings = _settings_or_defaults(paths)
        self._recording: Recording | None = None
        self._damage: str | None = None
        self._pending: list[Recorded] = []
        self._oldest_s = 0.0
        self._failures = 0
        self._retry_at = 0.0
        self._trouble: str | None = None
        self._export_at: float | None = None
        self._next_export_s = 0.0
        self._settle_at: float | None = None
        self._prune_at = 0.0
        self._rescan_at = 0.0
        self._reflect_at = time.monotonic() + self._settings.daemon.reflect_minutes * 60
        self._draining = False

    def run(self) -> None:
        """Serve until the front asks to drain or is gone."""
        self._open()
        while not (self._link.closed or self._draining):
            for message in self._link.receive(self._patience()):
                self._take(message)
            if self._is_due():
                self._commit()
            self._do_chores()
        while self._pending and self._commit():
            pass
        if self._recording is not None:
            if self._export_at is not None:
                self._recording.export()
            self._recording.close()

    def _patience(self) -> float:
        """Return how long nothing but a message may wake the loop."""
        now = time.monotonic()
        if self._trouble is not None:
            return max(0.0, self._retry_at - now)
        moments = [self._prune_at, self._reflect_at, self._rescan_at]
        if self._pending:
            moments.append(self._oldest_s + COMMIT_AFTER_S)
        moments += [at for at in (self._export_at, self._settle_at) if at is not None]
        return max(0.0, min(moments) - now)

    def _is_due(self) -> bool:
        now = time.monotonic()
        if self._trouble is not None:
            return now >= self._retry_at
        full = len(self._pending) >= COMMIT_MESSAGES
        return full or (bool(self._pending) and now >= self._oldest_s + COMMIT_AFTER_S)

    def _take(self, message: ToWriter) -> None:
        match message:
            case Feed() | Shown() | Ended() | Corrected() | ClaudeFolder():
                if not self._pending:
                    self._oldest_s = time.monotonic()
                self._pending.append(message)
            case Ask():
                self._answer(message)
            case Reload():
                self._settings = _settings_or_defaults(self._paths)
                if self._recording is not None:
                    self._recording.use(self._settings)
                self._rescan_at = 0.0
            case Drain():
                self._draining = True

    # --- the database ------------------------------------------------------------------------

    def _open(self) -> bool:
        """Open the database if it is not; tell the front everything. Return whether it is open."""
        if self._recording is not None:
            return True
        try:
            recording = Recording.open(self._paths, self._settings)
        except (FlightrecError, sqlite3.Error, OSError) as error:
            self._fail(error)
            return False
        self._recording = recording
        notes = [*recording.notes, *filter(None, (self._damage,))]
        self._link.send(Ready(notes, recording.is_fresh or self._damage is not None))
        self._send_rules(recording.hint_rules())
        self._link.send(Guarded(recording.guarded_projects()))
        self._clear_trouble()
        self._ask_for_export()  # a predecessor may have died between commit and export
        return True

    def _commit(self) -> bool:
        """Commit the oldest group and tell the front. Return whether the database took it."""
        if not self._open() or self._recording is None:
            return False
        group = self._pending[:COMMIT_MESSAGES]
        try:
            result = self._recording.commit(group)
        except (sqlite3.Error, OSError, MemoryError) as error:
            self._fail(error)
            return False
        except Exception as error:
            log.exception("could not commit %d messages", len(group))
            self._fail(error)
            return False
        failpoints.reach("committed")
        del self._pending[: len(group)]
        self._oldest_s = time.monotonic()
        self._clear_trouble()
        self._follow(result)
        # After the rules: whoever hears that a run is stored may count on the hint.
        self._link.send(Stored([key_of(message) for message in group], result.odd))
        return True

    def _fail(self, error: BaseException) -> None:
        """Note why nothing can be stored now; what is pending stays pending."""
        if is_damage(error) and self._recording is not None:
            log.error("the database is damaged: %s", type(error).__name__)
            self._damage = damage_note(self._recording.set_aside())
            self._recording = None
        trouble = str(error) if isinstance(error, FlightrecError) else trouble_of(error)
        if trouble is None and is_damage(error):
            trouble = "the database is damaged"
        if trouble is None:
            trouble = f"a fault of the recorder: {type(error).__name__} (see {self._paths.log})"
        if trouble != self._trouble:
            log.warning("nothing can be stored: %s", trouble)
            self._link.send(Trouble(trouble))
        self._trouble = trouble
        wait = RETRY_AFTER_S[min(self._failures, len(RETRY_AFTER_S) - 1)]
        self._retry_at = time.monotonic() + wait
        self._failures += 1

    def _clear_trouble(self) -> None:
        self._failures = 0
        if self._trouble is not None:
            log.warning("storing again")
            self._link.send(Trouble(None))
            self._trouble = None

    def _send_rules(self, rules: Iterable[HintRule]) -> None:
        left = iter(rules)
        while frame := list(itertools.islice(left, RULES_PER_FRAME)):
            self._link.send(Rules(frame))

    # --- requests and chores -----------------------------------------------------------------

    def _answer(self, ask: Ask) -> None:
        """Do what is asked, after everything that came before it."""
        while self._pending and self._commit():
            pass
        if not self._open() or self._recording is None:
            self._link.send(Answer(ask.id, self._trouble))
            return
        place = self._recording.workplace()
        error, result = self._do(ask, place)
        if error is not None or place.start_over:
            self._recording.start_over()
        if place.rescan:
            self._rescan_at = 0.0
        self._follow(place)  # first: whoever has the answer may count on what it means for hints
        self._link.send(Answer(ask.id, error, result))

    def _do(self, ask: Ask, place: Workplace) -> tuple[str | None, bytes]:
        """Return the error's line, if any, and the answer."""
        try:
            return None, do(ask.verb, place, ask.arguments)
        except FlightrecError as error:
            return str(error), b"{}"
        except Exception as error:
            log.exception("could not %s", ask.verb)
            reason = trouble_of(error) or f"{type(error).__name__} (see {self._paths.log})"
            return f"{ask.verb}: {reason}", b"{}"

    def _follow(self, done: Workplace | Result) -> None:
        """Let hints and memory files follow what was done."""
        self._send_rules(done.changed)
        if isinstance(done, Workplace) and done.guarded is not None:
            self._link.send(Guarded(done.guarded))
        if done.export:
            self._ask_for_export()

    def _ask_for_export(self) -> None:
        if self._export_at is None:
            self._export_at = max(time.monotonic(), self._next_export_s)

    def _do_chores(self) -> None:
        """Do what is due; a chore that fails is logged and tried again at its next time."""
        if self._recording is None or self._trouble is not None:
            return
        now = time.monotonic()
        if now >= self._prune_at:
            more = self._recording.prune()
            self._prune_at = now + (PRUNE_AGAIN_S if more else PRUNE_EVERY_S)
        if self._export_at is not None and now >= self._export_at:
            self._export_at = None
            wrote = self._recording.export()
            self._next_export_s = now + (EXPORT_EVERY_S if wrote else LOOK_EVERY_S)
            self._settle_at = now + SETTLE_S if wrote else None
        if self._settle_at is not None and now >= self._settle_at:
            self._settle_at = now + SETTLE_S if self._recording.settle_exports() else None
        if now >= self._rescan_at:
            self._rescan_at = now + self._rescan(self._recording)
        if now >= self._reflect_at:
            self._reflect_at = now + self._settings.daemon.reflect_minutes * 60
            self._follow(self._recording.reflect())

    def _rescan(self, recording: Recording) -> float:
        """Redact some old rows anew, where that is due; return when to go on, in seconds."""
        if not recording.wants_rescan:
            return math.inf
        result = recording.rescan()
        if result is None:
            return RESCAN_RETRY_S
        self._follow(result)
        return RESCAN_EVERY_S


def _settings_or_defaults(paths: Paths) -> Settings:
    """Return the settings. While the file is wrong the front sends nothing to record."""
    try:
        return load_settings(paths.config)
    except FlightrecError:
        return Settings()


def _end_soon(*_: object) -> None:
    """Hang no longer than this: the front has died, its last messages are still in the socket."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LAST_WORDS_S)


def main() -> int:
    """Serve the front whose socket and pid the command line gives: ``writer FD PID``."""
    os.umask(0o077)
    descriptor, parent = (int(word) for word in sys.argv[1:3])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ^C in a terminal is the front's to handle
    signal.signal(signal.SIGTERM, _end_soon)
    end_with_parent(signal.SIGTERM)
    if os.getppid() != parent:
        return 0
    forbid_inspection()
    link = FrontLink(socket.socket(fileno=descriptor))
    send_to(LinkHandler(link), "%(name)s: %(message)s")
    paths = find_paths()
    os.environ["SQLITE_TMPDIR"] = str(paths.state)  # what is spilled stays in the private folder
    try:
        Writer(paths, link).run()
    except Exception:
        log.exception("the writer ends")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
