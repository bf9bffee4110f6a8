"""What the daemon makes of each message: join, answer, hand on. No sockets and no disk here.

Every message that wants a reply gets one, and gets it before anything else is done.
"""

import enum
import logging
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from flightrec import link
from flightrec.backlog import STRIKES_OF_A_CRASH, STRIKES_OF_A_KILL, Backlog
from flightrec.capture import asked_for, is_own
from flightrec.config import IgnoreFilter, Settings
from flightrec.hint_desk import HintDesk
from flightrec.hints import Hint
from flightrec.hooks import Hooks
from flightrec.ingest import to_text
from flightrec.missed import Missed
from flightrec.pausing import Pause
from flightrec.places import working_folder
from flightrec.sessions import Session, Sessions, admit
from flightrec.wire import (
    AnyMessage,
    CommandFinished,
    CommandStarting,
    Committed,
    HookFired,
    HookReply,
    Phase,
    Reply,
    SessionEnded,
    Source,
    Verdict,
    encode,
)

log = logging.getLogger(__name__)

OPEN_MAX = 10_000
"""Commands that may be running at a time; the oldest is given up beyond that."""

ORPHANED_AFTER_S = 60.0
"""How long a running command waits for its helper to connect again before its end is unknown."""

BOUND_SOURCES = frozenset((Source.RELAY, Source.PTY, Source.SH, Source.SHIM))
"""Doors whose helper lives as long as the command: one that is gone will not tell its end."""


PERSONS_SOURCES = frozenset((Source.RELAY, Source.PTY))
"""Doors before which a person sits, who can be asked."""


class Peer(Protocol):
    """The connection that a message came by."""

    def send(self, frame: bytes) -> None:
        """Send a frame, or nothing where the connection is closed."""


class Fate(enum.Enum):
    """What becomes of a command that is about to run."""

    RECORD = enum.auto()
    PRIVATE = enum.auto()
    OWN = enum.auto()
    DROPPED = enum.auto()


@dataclass(slots=True)
class OpenRun:
    """A command that runs. ``orphaned_s`` is when its helper's connection was lost."""

    starting: CommandStarting
    peer: Peer
    fate: Fate
    orphaned_s: float | None = None


class Front:
    """Everything that the daemon has in memory. ``pump`` is called when the backlog has grown.

    ``find_agent`` names the agent above a process, by its pid; empty for none.
    """

    def __init__(
        self,
        pause: Pause,
        home: str,
        pump: Callable[[], None],
        find_agent: Callable[[int], str] = lambda _pid: "",
    ) -> None:
        self.backlog = Backlog()
        self.desk = HintDesk()
        self.missed: Counter[Missed] = Counter()
        self.recorded = 0
        self.config_error: str | None = None
        self.pause = pause
        self._home = home
        self._pump = pump
        self._find_agent = find_agent
        self._sessions = Sessions()
        self._open: OrderedDict[bytes, OpenRun] = OrderedDict()
        self._bringers: dict[bytes, Peer] = {}
        self.hooks = Hooks(self)
        self.use(Settings())

    @property
    def may_answer(self) -> bool:
        """Whether the person wants hints at all."""
        return self._settings.hints.enabled

    def use(self, settings: Settings) -> None:
        """Follow these settings from now on."""
        self._settings = settings
        self.desk.use(settings)
        self._ignore = IgnoreFilter(settings.ignore, self._home)

    def handle(self, message: AnyMessage, peer: Peer) -> None:
        """Do what a helper's message asks for."""
        match message:
            case CommandStarting():
                self._start(message, peer)
            case CommandFinished():
                self._finish(message, peer)
            case SessionEnded():
                self.end_session(message)
            case HookFired():
                self.hooks.handle(message, peer.send)
            case _:
                pass  # what only a daemon says is no harm from a client

    def answer_nothing(self, message: AnyMessage, peer: Peer) -> None:
        """Give a message that could not be handled the reply that its shell waits for."""
        match message:
            case CommandStarting(wants_reply=True):
                peer.send(encode(Reply(message.run, Phase.START, Verdict.NONE)))
            case CommandFinished(wants_reply=True):
                peer.send(encode(Reply(message.run, Phase.FINISH, Verdict.NONE)))
            case HookFired(wants_reply=True):
                peer.send(encode(HookReply(message.id)))

    # --- commands ----------------------------------------------------------------------------

    def _start(self, starting: CommandStarting, peer: Peer) -> None:
        if starting.run in self.backlog:  # sent again: it is on its way already
            self._bringers[starting.run] = peer
            self._reply(starting, peer, Phase.START, Verdict.NONE)
            return
        session = self._sessions.note(starting, time.monotonic())
        asked = asked_for(starting)
        fate = Fate.OWN if asked is None else self._decide(asked, session)
        starting = asked or starting
        if fate is Fate.RECORD:
            starting = self.hooks.shell_started(starting)
        run = OpenRun(starting, peer, fate)
        self._open_run(run)
        if fate is Fate.RECORD:
            self._answer_start(starting, session, peer)
            self._note_agent(run, session)
            return
        verdict = Verdict.PRIVATE if fate is Fate.PRIVATE else Verdict.NONE
        self._reply(starting, peer, Phase.START, verdict)
        peer.send(encode(Committed([starting.run])))

    def is_private(self, starting: CommandStarting) -> bool:
        """Whether this command is to leave no trace."""
        if self.config_error or self.pause.covers(starting.session, _wall_us()):
            return True
        command, cwd = to_text(starting.command), to_text(starting.cwd)
        return any(self._ignore.ignores(command, at) for at in {cwd, working_folder(command, cwd)})

    def wants(self, starting: CommandStarting) -> bool:
        """Whether this command is to be recorded, as one more of its session."""
        session = self._sessions.note(starting, time.monotonic())
        return self._decide(starting, session) is Fate.RECORD

    def _decide(self, starting: CommandStarting, session: Session) -> Fate:
        if self.is_private(starting):
            return Fate.PRIVATE
        if is_own(starting):
            return Fate.OWN
        if not admit(session, time.monotonic()):
            self.missed[Missed.RATE] += 1
            return Fate.DROPPED
        return Fate.RECORD

    def _open_run(self, run: OpenRun) -> None:
        self._open[run.starting.run] = run
        if len(self._open) > OPEN_MAX:
            _, oldest = self._open.popitem(last=False)
            if oldest.fate is Fate.RECORD:
                self.missed[Missed.UNFINISHED] += 1
                oldest.peer.send(encode(Committed([oldest.starting.run])))

    def _note_agent(self, run: OpenRun, session: Session) -> None:
        """Put down which agent it is, where only the processes above can tell: once a session."""
        if run.starting.agent is None:
            if session.agent is None:
                session.agent = self._find_agent(run.starting.pid).encode()
            if session.agent:
                run.starting = msgspec.structs.replace(run.starting, agent=session.agent)

    def _answer_start(self, starting: CommandStarting, session: Session, peer: Peer) -> None:
        if not starting.wants_reply:
            return
        if not self.may_answer or self.hooks.has_hinted(starting.run):
            self._reply(starting, peer, Phase.START, Verdict.NONE)
            return
        self.desk.before(
            starting, session, lambda hint: self._give(hint, starting, peer, Phase.START)
        )

    def _finish(self, finished: CommandFinished, peer: Peer) -> None:
        run = self._open.pop(finished.run, None)
        if run is None or run.fate is not Fate.RECORD:
            if finished.wants_reply:
                peer.send(encode(Reply(finished.run, Phase.FINISH, Verdict.NONE)))
            if finished.run in self.backlog:
                self._bringers[finished.run] = peer
            else:  # nothing will come of it: the helper need not keep it
                peer.send(encode(Committed([finished.run])))
            return
        if finished.wants_reply:
            self._answer_finish(run.starting, finished, peer)
        if finished.cwd != run.starting.cwd:
            self.desk.warm(finished.cwd)
        self._bringers[finished.run] = peer
        self._feed(run.starting, finished)

    def _feed(self, starting: CommandStarting, finished: CommandFinished) -> None:
        """Hand a whole run to the writer, where no hook of an agent may still say more of it."""
        if not self.hooks.shell_finished(starting, finished):
            self.submit(link.Feed(starting, finished))

    def _answer_finish(
        self, starting: CommandStarting, finished: CommandFinished, peer: Peer
    ) -> None:
        session = self._sessions.get(starting.session)
        if session is None or not self.may_answer:
            peer.send(encode(Reply(starting.run, Phase.FINISH, Verdict.NONE)))
            return
        self.desk.after(
            starting,
            finished,
            session,
            lambda hint: self._give(hint, starting, peer, Phase.FINISH),
        )

    def _give(self, hint: Hint | None, starting: CommandStarting, peer: Peer, phase: Phase) -> None:
        """Send the reply, and note a hint before the run that will show what came of it."""
        if hint is None:
            peer.send(encode(Reply(starting.run, phase, Verdict.NONE)))
            return
        text = hint.text.encode("utf-8", "replace")
        holds = phase is Phase.START and self._is_to_hold(hint.shown.rule, starting.source)
        verdict = Verdict.HOLD if holds else Verdict.HINT
        peer.send(encode(Reply(starting.run, phase, verdict, text)))
        self.submit(link.Shown(hint.shown))

    def _is_to_hold(self, rule: str, source: Source) -> bool:
        """Whether the person wants to be asked before a command runs that this rule is about."""
        hold = self._settings.hints.hold
        wanted = hold if isinstance(hold, bool) else rule in hold
        return wanted and source in PERSONS_SOURCES

    def _reply(self, starting: CommandStarting, peer: Peer, phase: Phase, verdict: Verdict) -> None:
        if starting.wants_reply:
            peer.send(encode(Reply(starting.run, phase, verdict)))

    # --- sessions and connections ------------------------------------------------------------

    def note(self, starting: CommandStarting, path: bytes | None) -> Session:
        """Return what is known of its session's variables; ``path`` where its PATH is not."""
        session = self._sessions.note(starting, time.monotonic())
        if session.path is None:
            session.path = path
        return session

    def end_session(self, message: SessionEnded) -> None:
        """Record what still ran with an unknown end, and forget the session."""
        self.hooks.flush(message.session)
        for run in [r for r in self._open.values() if r.starting.session == message.session]:
            self._abandon(run)
        self._sessions.forget(message.session)
        self.desk.forget_session(message.session)
        self.pause.make_public(message.session)
        self.submit(link.Ended(message.session, message.wall_us or _wall_us()))

    def lose(self, peer: Peer) -> None:
        """Note that a connection is closed; its running commands wait for another one."""
        for run in self._open.values():
            if run.peer is peer and run.starting.source in BOUND_SOURCES:
                run.orphaned_s = time.monotonic()

    def sweep(self) -> None:
        """Record commands whose helper has been gone for too long to come back."""
        self.hooks.sweep()
        limit = time.monotonic() - ORPHANED_AFTER_S
        for run in list(self._open.values()):
            if run.orphaned_s is not None and run.orphaned_s < limit:
                self._abandon(run)

    def _abandon(self, run: OpenRun) -> None:
        """Record a command whose end nobody will tell."""
        starting = run.starting
        del self._open[starting.run]
        if run.fate is Fate.RECORD:
            mono_us = time.monotonic_ns() // 1000
            finished = CommandFinished(starting.run, None, None, [], None, b"", mono_us, _wall_us())
            self._bringers[starting.run] = run.peer
            self._feed(starting, finished)

    # --- towards the disk --------------------------------------------------------------------

    def _with_path(self, starting: CommandStarting) -> CommandStarting:
        """Say the session's PATH each time: who takes it in may be another writer than before."""
        session = self._sessions.get(starting.session)
        if session is None or session.path is None:
            return starting
        return msgspec.structs.replace(starting, path=session.path)

    def submit(self, message: link.Recorded) -> None:
        """Queue a message for the writer; the oldest give way where there are too many."""
        if isinstance(message, link.Feed):
            message = link.Feed(self._with_path(message.starting), message.finished)
        dropped = self.backlog.add(link.key_of(message), link.encode(message))
        if dropped:
            self._give_up(dropped, Missed.BACKLOG)
        self._pump()

    def _give_up(self, keys: Iterable[bytes], reason: Missed) -> None:
        runs = [key for key in keys if len(key) == link.RUN_KEY_SIZE]
        self.missed[reason] += len(runs)
        self._tell_committed(runs)

    def stored(self, message: link.Stored) -> None:
        """Take note that the writer is done with some messages, and tell who brought them."""
        self.backlog.settle(message.keys)
        self.missed[Missed.ODD] += message.odd
        runs = [key for key in message.keys if len(key) == link.RUN_KEY_SIZE]
        self.recorded += len(runs)
        self._tell_committed(runs)
        self._pump()

    def writer_died(self, *, was_killed: bool) -> None:
        """Take back what the writer did not commit."""
        culprit = self.backlog.take_back(STRIKES_OF_A_KILL if was_killed else STRIKES_OF_A_CRASH)
        if culprit is not None:
            log.error("gave up %s: no writer survived it", culprit.hex())
            self._give_up([culprit], Missed.DEADLY)

    def _tell_committed(self, runs: Iterable[bytes]) -> None:
        by_peer: defaultdict[Peer, list[bytes]] = defaultdict(list)
        for run in runs:
            peer = self._bringers.pop(run, None)
            if peer is not None:
                by_peer[peer].append(run)
        for peer, theirs in by_peer.items():
            peer.send(encode(Committed(theirs)))

    # --- for status --------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Return what ``flightrec status`` shows of the memory."""
        return {
            "sessions": len(self._sessions),
            "running": sum(run.fate is Fate.RECORD for run in self._open.values()),
            "waiting": len(self.backlog),
            "recorded": self.recorded,
            "paused": self.pause.active,
            "paused_until_us": self.pause.until_us,
            "private_sessions": self.pause.private_sessions,
            "level": str(self._settings.capture.level),
            "config_error": self.config_error,
            "missed": {str(reason): n for reason, n in self.missed.items() if n},
        }


def _wall_us() -> int:
    return time.time_ns() // 1000
