"""From a message to a hint, within the deadline and without waiting for any disk.

Where a command runs has to be asked of the file system, which may be a dead network mount. So that
is done by a thread, and an answer that comes too late is no hint.
"""

import asyncio
import contextlib
import logging
import os
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeVar

import msgspec

from flightrec import shell_words
from flightrec.briefing import Briefings
from flightrec.classify import Failure, classify
from flightrec.config import Redaction, Settings
from flightrec.guard import ALL_MODES, Decision, Guards
from flightrec.hints import REPEAT_AFTER_US, Hint, HintContext, HintIndex, HintRule
from flightrec.ingest import ingest, to_text
from flightrec.places import Place, Places, existing_folder, find_place, working_folder
from flightrec.redact import Redactor
from flightrec.rules import Guard
from flightrec.sessions import Session
from flightrec.wire import CommandFinished, CommandStarting, Source

log = logging.getLogger(__name__)

PATIENCE_S = 0.015
HOOK_PATIENCE_S = 0.08
"""How long a place is waited for: shells wait 20 ms for the whole reply, an agent's hook 100 ms."""

SHELLS_OF_PEOPLE = frozenset((Source.RELAY, Source.PTY))

PLACE_LASTS_S = 5.0
"""An older place is used once more while it is looked up again (git init, clone)."""

PLACES_KEPT = 512
LOOKUPS_MAX = 32
"""Lookups that may hang at a time; more are not even begun."""

THREADS = 2

TAIL_MAX = 2048
"""Bytes of error text that are looked at here, where others wait; the writer sees all of it."""


class _Where(NamedTuple):
    """Where a command works, and where the shell is in case there is no such folder."""

    folder: str
    cwd: str


class PlaceFinder:
    """Finds places in threads that may hang without holding anybody up.

    To be used within a running event loop.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[_Where, tuple[Place, float]] = OrderedDict()
        self._questions: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lookups = 0
        for _ in range(THREADS):
            threading.Thread(target=self._work, daemon=True).start()

    def find(
        self,
        command: str,
        cwd: str,
        then: Callable[[Place | None], None],
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Call ``then`` with the place, at once if it is known, with None if that takes long."""
        where = _Where(working_folder(command, cwd), cwd)
        place, found_s = self._known.get(where, (None, 0.0))
        if place is None:
            self._look_up(where, then, patience_s)
            return
        then(place)
        if time.monotonic() - found_s > PLACE_LASTS_S:
            self._look_up(where, lambda _: None)

    def warm(self, cwd: str) -> None:
        """Find the place for the next time."""
        self._look_up(_Where(cwd, cwd), lambda _: None)

    def _look_up(
        self,
        where: _Where,
        then: Callable[[Place | None], None],
        patience_s: float = PATIENCE_S,
    ) -> None:
        if self._lookups >= LOOKUPS_MAX:
            then(None)
            return
        loop = asyncio.get_running_loop()
        answer = _Once(then)
        too_late = loop.call_later(patience_s, answer, None)

        def arrived(place: Place | None) -> None:
            self._lookups -= 1
            too_late.cancel()
            if place is not None:
                self._remember(where, place)
            answer(place)

        def look() -> None:
            place = _find_quietly(where)
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(arrived, place)

        self._lookups += 1
        self._questions.put(look)

    def _remember(self, where: _Where, place: Place) -> None:
        self._known[where] = (place, time.monotonic())
        self._known.move_to_end(where)
        if len(self._known) > PLACES_KEPT:
            self._known.popitem(last=False)

    def _work(self) -> None:
        while True:
            self._questions.get()()


class _Once:
    """Passes on the first value that it is called with."""

    def __init__(self, then: Callable[[Place | None], None]) -> None:
        self._then = then
        self._called = False

    def __call__(self, place: Place | None) -> None:
        if not self._called:
            self._called = True
            self._then(place)


def _find_quietly(where: _Where) -> Place | None:
    try:
        return find_place(existing_folder(where.folder, where.cwd))
    except (OSError, ValueError):  # a NUL in a path that some client made up
        return None


Answer = Callable[[Hint | None], None]
"""Called exactly once, at once or a little later, with the hint that is due or None."""

GateAnswer = Callable[[Decision | None], None]
BriefingAnswer = Callable[[str], None]
"""The same with what a guard decided, and with the text for a new session (empty for none)."""

_Found = TypeVar("_Found")


class HintDesk:
    """Knows all rules that may be hinted, and answers for a command about to run or just failed."""

    def __init__(self) -> None:
        self._repeat_after_us = REPEAT_AFTER_US
        self._index = HintIndex()
        self._guards = Guards()
        self._briefings = Briefings()
        self._finder = PlaceFinder()
        self._places = Places()
        self._redaction = Redaction()
        self._redactor = Redactor()
        self._is_empty = True

    def use(self, settings: Settings) -> None:
        """Follow these settings from now on."""
        self._repeat_after_us = int(settings.hints.repeat_after_minutes * 60_000_000)
        self._index.repeat_after_us = self._repeat_after_us
        if settings.redaction != self._redaction:
            # Only then: a redactor remembers the secrets of running sessions.
            self._redaction = settings.redaction
            self._redactor = Redactor(settings.redaction.allow, settings.redaction.deny)

    def take(self, rules: Sequence[HintRule]) -> None:
        """Take in rules that changed."""
        self._index.update(rules)
        self._briefings.update(rules)
        self._is_empty = self._is_empty and not rules

    def guard(self, projects: Mapping[str, Guard]) -> None:
        """Guard these projects by all their rules, and no other ones."""
        self._guards.use(projects)

    def warm(self, cwd: bytes) -> None:
        """Find out about the directory where the next command will run."""
        if cwd and not self._is_empty:
            self._finder.warm(os.fsdecode(cwd))

    def forget_rules(self) -> None:
        """Know no rule any more: the database that they came from is gone."""
        self._index = HintIndex(self._repeat_after_us)
        self._briefings = Briefings()
        self._is_empty = True

    def same_run(self, session: bytes, known: bytes, run: bytes) -> None:
        """Take what was shown for one run as shown for another: both are the same command."""
        self._index.same_run(session, known, run)

    def forget_session(self, session: bytes) -> None:
        """Drop what was shown to a session that has ended."""
        self._index.forget_session(session)
        self._guards.forget_session(session)

    def gate(
        self,
        starting: CommandStarting,
        session: Session,
        answer: GateAnswer,
        able: AbstractSet[Guard] = ALL_MODES,
    ) -> None:
        """Answer for a command that an agent is about to run, by a hook that can stop it.

        ``able`` are the modes that this agent can follow. The decision's ``shown`` is to be handed
        to the writer, also where there is no gate.
        """

        def look(place: Place) -> Decision | None:
            return self._guards.decide(self._index, _context(starting, session, place), able)

        self._answer(starting, look, answer, HOOK_PATIENCE_S)

    def brief(self, cwd: bytes, answer: BriefingAnswer) -> None:
        """Answer with what an agent is told whose session begins in this directory."""

        def placed(place: Place | None) -> None:
            knows = place is not None and place.mine
            answer(self._briefings.brief(place.project) if place is not None and knows else "")

        if self._is_empty:
            answer("")
        else:
            self._finder.find("", os.fsdecode(cwd), placed, HOOK_PATIENCE_S)

    def ended(self, starting: CommandStarting, finished: CommandFinished) -> None:
        """Take note of how a command ended: a rewritten one that failed is not written so again."""
        if finished.exit is None or not self._guards.awaits(starting.session):
            return
        failure = self._failure_of(starting, finished) if finished.exit else None
        failed = failure is not None and failure.teachable
        self._guards.ended(starting.session, to_text(starting.command), failed=failed)

    def before(self, starting: CommandStarting, session: Session, answer: Answer) -> None:
        """Answer for a command about to run."""

        def look(place: Place) -> Hint | None:
            return self._index.find(_context(starting, session, place))

        is_hook = starting.source is Source.HOOK
        self._answer(starting, look, answer, HOOK_PATIENCE_S if is_hook else PATIENCE_S)

    def after(
        self,
        starting: CommandStarting,
        finished: CommandFinished,
        session: Session,
        answer: Answer,
    ) -> None:
        """Answer for a command that has just failed."""

        def look(place: Place) -> Hint | None:
            context = _context(starting, session, place)
            if not self._index.may_know(context):
                return None
            failure = self._failure_of(starting, finished)
            if failure is None:
                return None
            return self._index.find_after_failure(context, failure.kind)

        # An agent's shells ask no more when a command has ended: that is its hook's question.
        is_hook = starting.source not in SHELLS_OF_PEOPLE
        self._answer(starting, look, answer, HOOK_PATIENCE_S if is_hook else PATIENCE_S)

    def _failure_of(self, starting: CommandStarting, finished: CommandFinished) -> Failure | None:
        end = msgspec.structs.replace(finished, tail=finished.tail[-TAIL_MAX:])
        run = ingest(starting, end, self._redactor, self._places)
        return classify(run, shell_words.parse(run.command))

    def _answer(
        self,
        starting: CommandStarting,
        look: Callable[[Place], _Found | None],
        answer: Callable[[_Found | None], None],
        patience_s: float,
    ) -> None:
        def placed(place: Place | None) -> None:
            answer(_guarded(look, place) if place is not None else None)

        if self._is_empty:
            answer(None)
        else:
            command, cwd = to_text(starting.command), os.fsdecode(starting.cwd)
            self._finder.find(command, cwd, placed, patience_s)


def _guarded(look: Callable[[Place], _Found | None], place: Place) -> _Found | None:
    try:
        return look(place)
    except Exception:
        # The shell waits: whatever is wrong with one rule or command, it gets its answer.
        log.exception("could not look for a hint")
        return None


def _context(starting: CommandStarting, session: Session, place: Place) -> HintContext:
    return HintContext(
        session=starting.session,
        run=starting.run,
        command=to_text(starting.command),
        cwd=to_text(starting.cwd),
        project=place.project,
        worktree=place.worktree,
        now_us=time.time_ns() // 1000,
        word_kind=starting.word_kind,
        path=None if session.path is None else os.fsdecode(session.path),
        mine=place.mine,
        origin=place.origin,
        virtual_env=None if not session.virtual_env else os.fsdecode(session.virtual_env),
    )
