"""What the daemon makes of an agent's hooks: joined with what shells tell, recorded, answered.

Every hook gets one answer, most of them an empty one. Whatever is odd is counted and changes
nothing: a client waits at the other end.
"""

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from typing import Protocol

import msgspec

from flightrec import link
from flightrec.agent_ends import End
from flightrec.agent_events import AgentEvent, Moment, OddPayloadError, read_event
from flightrec.agent_marks import MARKS, session_id
from flightrec.agent_places import folder_of_transcript
from flightrec.guard import Decision
from flightrec.hint_desk import HintDesk
from flightrec.hints import Hint, HintShown
from flightrec.hook_answer import HookAnswer, Send
from flightrec.hook_replies import NOTHING, able, reply_context, reply_gate, shows
from flightrec.hook_story import folder_of, starting_of
from flightrec.missed import Missed
from flightrec.prompt_corrections import read_prompt
from flightrec.rules import Guard
from flightrec.sessions import Session
from flightrec.tool_use import ToolUse, feed_of
from flightrec.tool_uses import ToolUses
from flightrec.wire import (
    CommandFinished,
    CommandStarting,
    HookFired,
    SessionEnded,
    Source,
)

log = logging.getLogger(__name__)

AGENT_SOURCES = frozenset((Source.SH, Source.ENV, Source.SHIM))
"""Doors that see what agents run."""

MARKED = frozenset(mark.agent for mark in MARKS if mark.session)
"""Agents whose shells know the session's name."""

SESSIONS_MAX = 1024


class Memory(Protocol):
    """What hooks ask of the rest of the daemon's memory."""

    desk: HintDesk
    missed: Counter[Missed]

    @property
    def may_answer(self) -> bool:
        """Whether the person wants hints at all."""

    def is_private(self, starting: CommandStarting) -> bool:
        """Whether this command is to leave no trace."""

    def wants(self, starting: CommandStarting) -> bool:
        """Whether this command is to be recorded, as one more of its session."""

    def note(self, starting: CommandStarting, path: bytes | None) -> Session:
        """Return what is known of its session's variables; ``path`` where its PATH is not."""

    def submit(self, message: link.Recorded) -> None:
        """Hand a message to the writer."""

    def end_session(self, ended: SessionEnded) -> None:
        """Take note that a session is over."""


class Hooks:
    """All agents' hooks; to be used within a running event loop, which times what waits."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._uses = ToolUses()
        self._sessions: OrderedDict[bytes, bytes] = OrderedDict()
        self._in_runs: OrderedDict[bytes, bytes] = OrderedDict()
        self._folders: OrderedDict[bytes, bytes] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    # --- hooks -------------------------------------------------------------------------------

    def handle(self, fired: HookFired, send: Send) -> None:
        """Do what an event asks for, and answer it, now or a little later."""
        answer = HookAnswer(fired, send)
        event = self._read(fired)
        if event is None or self._is_private(event, fired):
            answer(NOTHING)
            return
        match event.moment:
            case Moment.BEFORE:
                self._before(event, fired, answer)
            case Moment.AFTER:
                self._after(event, fired, answer)
            case Moment.SESSION_START:
                self._begin_session(event, fired, answer)
            case _:
                answer(NOTHING)
                self._take_note(event, fired)
        self._note_folder(event, fired)

    def _read(self, fired: HookFired) -> AgentEvent | None:
        if fired.total > len(fired.payload):
            self._memory.missed[Missed.LARGE_HOOK] += 1
            return None
        try:
            return read_event(fired.agent.decode("ascii", "replace"), fired.payload)
        except OddPayloadError:
            self._memory.missed[Missed.ODD_HOOK] += 1
            return None

    def _is_private(self, event: AgentEvent, fired: HookFired) -> bool:
        """Whether this is to leave no trace; as in a shell, a blank in front says so, too."""
        private = self._memory.is_private(self._starting(event, fired))
        return private or event.command.startswith(" ")

    def _before(self, event: AgentEvent, fired: HookFired, answer: HookAnswer) -> None:
        starting = self._starting(event, fired)
        self._note_run(event, fired)
        use = self._uses.announce(starting, time.monotonic(), loose=_is_loose(fired))
        if not (answer.is_awaited and self._memory.may_answer) or use.run != starting.run:
            answer(NOTHING)
            return
        session = self._memory.note(starting, fired.path)

        def decided(decision: Decision | None) -> None:
            if decision is not None:
                self._show(use, decision.shown)
            if decision is not None and decision.gate is not None:
                if decision.gate.rewritten is not None:
                    use.add_line(decision.gate.rewritten)
                if decision.gate.mode is Guard.DENY:
                    self._give_up(use)
                answer(reply_gate(answer.agent, event, decision.gate))
            elif decision is None and shows(answer.agent, event.moment):
                self._memory.desk.before(starting, session, answer.by(hinted))
            else:
                answer(NOTHING)

        def hinted(hint: Hint | None) -> None:
            if hint is not None:
                self._show(use, hint.shown)
            answer(reply_context(answer.agent, event, "" if hint is None else hint.text))

        modes = able(answer.agent, event)
        self._memory.desk.gate(starting, session, answer.by(decided), modes)

    def _after(self, event: AgentEvent, fired: HookFired, answer: HookAnswer) -> None:
        end = event.end or End()
        starting = self._starting(event, fired)
        self._memory.note(starting, fired.path)
        use = self._uses.conclude(starting, end, time.monotonic(), loose=_is_loose(fired))
        if not end.ran and not use.joined:
            self._give_up(use)
            answer(NOTHING)
            return
        self._answer_after(use, event, fired, answer)
        self._tell_due()

    def _answer_after(
        self, use: ToolUse, event: AgentEvent, fired: HookFired, answer: HookAnswer
    ) -> None:
        feed = feed_of(use)
        if not (answer.is_awaited and self._memory.may_answer and feed.finished.exit):
            answer(NOTHING)
            return

        def hinted(hint: Hint | None) -> None:
            if hint is not None:
                self._memory.submit(link.Shown(hint.shown))
            answer(reply_context(answer.agent, event, "" if hint is None else hint.text))

        if shows(answer.agent, event.moment):
            session = self._memory.note(feed.starting, fired.path)
            self._memory.desk.after(feed.starting, feed.finished, session, answer.by(hinted))
        else:
            answer(NOTHING)

    def _begin_session(self, event: AgentEvent, fired: HookFired, answer: HookAnswer) -> None:
        if not (answer.is_awaited and self._memory.may_answer):
            answer(NOTHING)
            return

        def briefed(text: str) -> None:
            answer(reply_context(answer.agent, event, text))

        self._memory.desk.brief(folder_of(event, fired), answer.by(briefed))

    def _take_note(self, event: AgentEvent, fired: HookFired) -> None:
        is_prompt = event.moment is Moment.PROMPT
        session = (self._last_session if is_prompt else self._session)(event, fired)
        self._tell(self._uses.take_ended(session, final=False))
        if event.moment is Moment.SESSION_END and fired.session is None:
            self._memory.end_session(SessionEnded(session, time.time_ns() // 1000))
        spoken = read_prompt(event.prompt) if is_prompt else None
        if spoken is not None:
            at_us = time.time_ns() // 1000
            self._memory.submit(link.Corrected(session, fired.id, spoken, at_us))

    # --- shells ------------------------------------------------------------------------------

    def shell_started(self, starting: CommandStarting) -> CommandStarting:
        """Return a shell's message with what hooks know about the same command."""
        if starting.source not in AGENT_SOURCES or starting.parent is not None:
            return starting
        use = self._uses.meet(starting, time.monotonic())
        if use is None:
            whole = self._uses.whole_of(starting)
            return msgspec.structs.replace(starting, parent=whole, depth=1)
        if use.by_hook:
            self._became(use)
        self._tell_due()
        return use.starting

    def shell_finished(self, starting: CommandStarting, finished: CommandFinished) -> bool:
        """Take in the end of a shell's command; return whether it is told from here."""
        use = self._uses.finish(finished, time.monotonic())
        if use is None or starting.parent is not None:
            return False
        self._tell_due()
        return True

    def has_hinted(self, run: bytes) -> bool:
        """Whether a hook gave a hint for this command before its shell began."""
        return self._uses.has_hinted(run)

    def _became(self, use: ToolUse) -> None:
        """Let hints that were shown for a hook's run be those of the shell's."""
        for shown in use.shown:
            self._memory.desk.same_run(shown.session, shown.run, use.run)
            same = msgspec.structs.replace(shown, session=use.starting.session, run=use.run)
            self._memory.submit(link.Shown(same))
        use.shown = []
        if use.announced_in != use.starting.session:  # a client's shells do not say its session
            _keep(self._sessions, use.announced_in, use.starting.session)

    # --- towards the writer ------------------------------------------------------------------

    def flush(self, session: bytes | None = None) -> None:
        """Tell all that waits, of one session or all: there is nothing more to wait for."""
        self._tell(self._uses.take_ended(session, final=True))

    def sweep(self) -> None:
        """Forget what is over."""
        self._tell(self._uses.forget_old(time.monotonic()))

    def _show(self, use: ToolUse, shown: HintShown) -> None:
        """Note a hint that was shown; the writer hears of it once the run's id is sure."""
        use.has_hint = True
        use.shown.append(shown)

    def _send_hints(self, use: ToolUse) -> None:
        for shown in use.shown:
            self._memory.submit(link.Shown(shown))
        use.shown = []

    def _give_up(self, use: ToolUse) -> None:
        """Forget a command that does not run."""
        self._send_hints(use)
        self._uses.drop(use)

    def _tell_due(self) -> None:
        now_s = time.monotonic()
        self._tell(self._uses.due(now_s))
        due_s = self._uses.next_due_s()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_s is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, due_s - now_s), self._tell_due)

    def _tell(self, uses: list[ToolUse]) -> None:
        for use in uses:
            try:
                self._tell_one(use)
            except Exception:
                # One odd command must not stop the recording of those that waited with it.
                log.exception("could not tell of a command of an agent")

    def _tell_one(self, use: ToolUse) -> None:
        feed = feed_of(use)
        for other in list(self._uses.unsent_hints(feed.starting.session)):
            self._send_hints(other)
        if use.joined or self._memory.wants(feed.starting):
            self._memory.submit(feed)
        self._memory.desk.ended(feed.starting, feed.finished)

    # --- sessions ----------------------------------------------------------------------------

    def _session(self, event: AgentEvent, fired: HookFired) -> bytes:
        """Return the session of ``flightrec run``, else of the client, or of its shells."""
        if fired.session is not None:
            return fired.session
        own = _own_session(event, fired)
        return self._sessions.get(own, own)

    def _last_session(self, event: AgentEvent, fired: HookFired) -> bytes:
        """Return the session in which the client's ran its last command.

        A person may go on with it in another ``flightrec run``, or without.
        """
        own = _own_session(event, fired)
        return self._in_runs.get(own) or self._sessions.get(own, own)

    def _note_run(self, event: AgentEvent, fired: HookFired) -> None:
        own = _own_session(event, fired)
        if fired.session is not None:
            _keep(self._in_runs, own, fired.session)
        else:
            self._in_runs.pop(own, None)

    def _note_folder(self, event: AgentEvent, fired: HookFired) -> None:
        """Tell the writer where Claude Code keeps its things: as a session begins, or is met."""
        folder = folder_of_transcript(event.transcript).encode("utf-8", "replace")
        own = _own_session(event, fired)
        if folder and (event.moment is Moment.SESSION_START or self._folders.get(own) != folder):
            _keep(self._folders, own, folder)
            self._memory.submit(link.ClaudeFolder(folder))

    def _starting(self, event: AgentEvent, fired: HookFired) -> CommandStarting:
        return starting_of(event, fired, self._session(event, fired))


def _own_session(event: AgentEvent, fired: HookFired) -> bytes:
    """Return the session by what its client calls it, where its shells may find it, too."""
    client = event.session.encode("utf-8", "replace") or fired.client_session
    name = client.decode("utf-8", "replace") if client else f"process {fired.pid}"
    return session_id(fired.agent.decode("ascii", "replace"), name)


def _keep(known: OrderedDict[bytes, bytes], key: bytes, value: bytes) -> None:
    """Remember the latest of not too many."""
    known[key] = value
    known.move_to_end(key)
    if len(known) > SESSIONS_MAX:
        known.popitem(last=False)


def _is_loose(fired: HookFired) -> bool:
    """Whether the shells of this client have no way to know its session."""
    agent = fired.agent.decode("ascii", "replace")
    return fired.session is None and agent not in MARKED
