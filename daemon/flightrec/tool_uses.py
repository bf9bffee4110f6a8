"""One use of an agent's shell tool, told by a hook and by a shell: two stories → one run.

The shell knows how the command ended and where, the hook what it wrote. Either may be the only one,
and they come in any order: what is known of a use waits here for as long as the other story may
still be on its way, and no longer.

Nothing here looks at a clock: ``now_s`` is monotonic.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from flightrec import shell_words
from flightrec.agent_events import End
from flightrec.hints import HintShown
from flightrec.ingest import to_text
from flightrec.link import Feed
from flightrec.wire import TAIL_MAX, CommandFinished, CommandStarting, Source, TailSource

HOLD_S = 2.0
"""How long an end waits for what the other story has: the hook for its status, the shell's for its
output. Some clients tell no hook of a failure."""

SETTLE_S = 0.25
"""How long a hook's own run waits for a shell's word of it, which comes by another connection."""

BACKGROUND_S = 5.0
"""The same for a command that was sent to the background, perhaps before its shell began."""

KEPT_S = 60.0
"""How long a use is remembered that was told, so that what comes late makes no second run."""

ECHO_BEFORE_S = 0.1
ECHO_AFTER_S = 5.0
"""Two hooks of one client may tell the same event: without an id, in this time it is one."""

USES_MAX = 512


@dataclass(slots=True, eq=False)
class ToolUse:
    """One command of an agent's model.

    ``starting`` is the shell's where one is known (``joined``), else made of what the hook says,
    and ``announced_in`` the session of the first of them. ``loose``: a hook named that session by
    what its client calls it, so that a shell's may be another.
    ``lines`` are the texts under which it is known, ``shown`` what the writer is to be told of
    hints once the run's id is sure. ``told`` tells that the run is on its way to the disk,
    ``heard_s`` when something was last heard of it.
    """

    starting: CommandStarting
    announced_in: bytes
    heard_s: float
    by_hook: bool
    lines: set[int]
    loose: bool = False
    joined: bool = False
    has_hint: bool = False
    has_parts: bool = False
    finished: CommandFinished | None = None
    end: End | None = None
    end_us: tuple[int, int] = (0, 0)
    told: bool = False
    due_s: float | None = None
    shown: list[HintShown] = field(default_factory=list)

    @property
    def run(self) -> bytes:
        """The run's id: the shell's, or the hook's where no shell is known."""
        return self.starting.run

    def add_line(self, command: str) -> None:
        """Let the use be known by another text, too: a guard has rewritten it."""
        self.lines.add(_line(command.encode("utf-8", "replace")))


class ToolUses:
    """What is known of the commands that agents run now, or ran just before."""

    def __init__(self) -> None:
        self._uses: dict[bytes, ToolUse] = {}

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._uses)

    # --- what comes in -----------------------------------------------------------------------

    def announce(self, starting: CommandStarting, now_s: float, *, loose: bool) -> ToolUse:
        """Return the use that a hook says is about to run; a second hook may say so again."""
        known = self._echo(starting, now_s - ECHO_BEFORE_S)
        if known is not None and known.end is None:
            return known
        begun = self._begun(starting, now_s, loose=loose)
        if begun is not None:
            begun.by_hook = True
            begun.starting = _with_names(begun.starting, starting)
            return begun
        return self._add(starting, now_s, by_hook=True, loose=loose)

    def meet(self, starting: CommandStarting, now_s: float) -> ToolUse | None:
        """Return the use that a shell begins to run, None for a part of one.

        What is no part is a use of its own where no hook has announced it.
        """
        known = self._uses.get(starting.run)
        if known is not None:
            return known
        found = self._announced(starting)
        if found is None:
            whole = self._whole_of(starting)
            if whole is not None:
                whole.has_parts = True
                return None
            found = self._add(starting, now_s, by_hook=False)
        else:
            del self._uses[found.run]
            self._uses[starting.run] = found
        found.starting = _with_names(starting, found.starting)
        found.joined = True
        self._plan(found, now_s)
        return found

    def whole_of(self, starting: CommandStarting) -> bytes | None:
        """Return the run of which this tool's is a part, as ``meet`` found it."""
        whole = self._whole_of(starting)
        return None if whole is None else whole.run

    def finish(self, finished: CommandFinished, now_s: float) -> ToolUse | None:
        """Return the use whose shell has ended it; None where it is no agent's command."""
        use = self._uses.get(finished.run)
        if use is not None and use.finished is None:
            use.finished = finished
            self._plan(use, now_s)
        return use

    def conclude(
        self, starting: CommandStarting, end: End, now_s: float, *, loose: bool
    ) -> ToolUse:
        """Return the use whose end a hook tells, in its own words; the first word counts."""
        use = self._ended_by(starting, loose=loose) or self._echo(starting, now_s - ECHO_AFTER_S)
        if use is None:
            use = self._add(starting, now_s, by_hook=True, loose=loose)
        if use.end is None:
            use.end = end
            use.end_us = (starting.mono_us, starting.wall_us)
            self._plan(use, now_s)
        return use

    def has_hinted(self, run: bytes) -> bool:
        """Whether a hook gave a hint for the command of this run."""
        use = self._uses.get(run)
        return use is not None and use.has_hint

    def drop(self, use: ToolUse) -> None:
        """Nothing will come of this: it does not run."""
        self._uses.pop(use.run, None)

    # --- what goes out -----------------------------------------------------------------------

    def due(self, now_s: float) -> list[ToolUse]:
        """Return the uses that are to be told now, oldest first; each is returned once."""
        found = [use for use in self._uses.values() if _is_due(use, now_s)]
        return list(self._taken(sorted(found, key=lambda use: use.starting.mono_us)))

    def next_due_s(self) -> float | None:
        """Return when ``due`` is to be asked again."""
        return min(
            (use.due_s for use in self._uses.values() if use.due_s is not None), default=None
        )

    def take_ended(self, session: bytes | None = None) -> list[ToolUse]:
        """Return what has ended and still waits, of one session or all: nobody waits any longer."""
        return list(
            self._taken(use for use in list(self._uses.values()) if _has_ended(use, session))
        )

    def unsent_hints(self, session: bytes) -> Iterator[ToolUse]:
        """Yield the uses whose hints the writer does not know, though another command ran."""
        for use in self._uses.values():
            if use.shown and not use.joined and use.starting.session == session:
                yield use

    def forget_old(self, now_s: float) -> list[ToolUse]:
        """Forget what is over; return what had something to tell, which is to be told now."""
        for use in list(self._uses.values()):
            if use.told and use.heard_s < now_s - KEPT_S:
                self.drop(use)
        surplus = list(self._uses.values())[: max(0, len(self._uses) - USES_MAX)]
        left = list(self._taken(use for use in surplus if use.has_parts or _has_ended(use, None)))
        for use in surplus:
            self.drop(use)
        return left

    @staticmethod
    def _taken(uses: Iterable[ToolUse]) -> Iterator[ToolUse]:
        for use in uses:
            use.told, use.due_s = True, None
            yield use

    # --- which use is it ---------------------------------------------------------------------

    def _add(
        self, starting: CommandStarting, now_s: float, *, by_hook: bool, loose: bool = False
    ) -> ToolUse:
        lines = {_line(starting.command)}
        use = ToolUse(starting, starting.session, now_s, by_hook, lines, loose)
        self._uses[use.run] = use
        return use

    def _echo(self, starting: CommandStarting, since_s: float) -> ToolUse | None:
        """Return the use of which the same was told since then; with an id, at any time."""
        uses = reversed(self._uses.values())
        return next((use for use in uses if _is_echo(use, starting, since_s)), None)

    def _begun(self, starting: CommandStarting, now_s: float, *, loose: bool) -> ToolUse | None:
        """Return the use that a shell began already: the daemon may hear of both at once."""
        since_s = now_s - HOLD_S
        uses = [u for u in self._uses.values() if not u.by_hook and u.heard_s > since_s]
        return _first_fit(uses, starting, loose=loose)

    def _announced(self, starting: CommandStarting) -> ToolUse | None:
        """Return the use that a hook has announced and this shell begins.

        The newest, since an older one with the same text may have been refused by the person.
        """
        uses = reversed(self._uses.values())
        waiting = [u for u in uses if u.by_hook and not (u.joined or u.told)]
        return _first_fit(waiting, starting, loose=False)

    def _ended_by(self, starting: CommandStarting, *, loose: bool) -> ToolUse | None:
        """Return the use whose end a hook tells: one that a shell ran, or the newest."""
        uses = [use for use in self._uses.values() if use.end is None]
        joined = [use for use in uses if use.joined and use.by_hook]
        announced = [use for use in reversed(uses) if use.by_hook and not use.joined]
        others = [use for use in uses if not use.by_hook]
        return _first_fit([*joined, *announced, *others], starting, loose=loose)

    def _whole_of(self, starting: CommandStarting) -> ToolUse | None:
        """Return the use that a tool which no shell of ours was around is a part of."""
        if starting.source is not Source.SHIM or starting.parent is not None:
            return None
        name = _name_of(to_text(starting.command))
        for use in reversed(self._uses.values()):
            is_open = use.by_hook and not use.joined and not use.told
            if not (is_open and _is_near(use, starting, loose=False)):
                continue
            if name in _programs(use.starting):
                return use
        return None

    # --- when is it told ---------------------------------------------------------------------

    @staticmethod
    def _plan(use: ToolUse, now_s: float) -> None:
        use.heard_s = now_s
        wait_s = None if use.told else _wait_s(use)
        use.due_s = None if wait_s is None else now_s + wait_s


def _wait_s(use: ToolUse) -> float | None:
    """Return how long what is known waits for more; None: for ever."""
    end = use.end
    if use.finished is not None:
        lacks_output = use.by_hook and end is None and _wants_output(use)
        return HOLD_S if lacks_output else 0.0
    if end is None:
        return None
    if use.joined:  # its shell goes on, or was killed with whoever would tell
        return None if end.background or end.exit is None else HOLD_S
    return BACKGROUND_S if end.background else SETTLE_S


def _wants_output(use: ToolUse) -> bool:
    """Whether the end of the output says something that nobody has told yet."""
    assert use.finished is not None  # noqa: S101 - asked after an end only
    if use.finished.tail:
        return False
    failed = use.finished.exit != 0 or any(use.finished.pipestatus)
    return failed or any(mark in use.starting.command for mark in (b"|", b";", b"&", b"\n"))


def _is_due(use: ToolUse, now_s: float) -> bool:
    return use.due_s is not None and use.due_s <= now_s


def _has_ended(use: ToolUse, session: bytes | None) -> bool:
    is_asked = session is None or use.starting.session == session
    has_ended = use.finished is not None or (use.end is not None and not use.joined)
    return is_asked and not use.told and has_ended


def _first_fit(uses: list[ToolUse], starting: CommandStarting, *, loose: bool) -> ToolUse | None:
    """Return the use that this is: of its session before others, by its id before its text.

    An id alone proves nothing: some models count their calls from 0 in every session.
    """
    near = [use for use in uses if _is_near(use, starting, loose=loose)]
    near.sort(key=lambda use: use.starting.session != starting.session)
    named = (use for use in near if _is_same(use, starting))
    texts = (use for use in near if _line(starting.command) in use.lines)
    return next(named, None) or next((u for u in texts if not _differ(u, starting)), None)


def _is_same(use: ToolUse, starting: CommandStarting) -> bool:
    name = starting.tool_use_id
    return bool(name) and use.starting.tool_use_id == name


def _differ(use: ToolUse, starting: CommandStarting) -> bool:
    both = use.starting.tool_use_id and starting.tool_use_id
    return bool(both) and not _is_same(use, starting)


def _is_echo(use: ToolUse, starting: CommandStarting, since_s: float) -> bool:
    """Whether a hook tells of this use what another hook told already."""
    is_like = use.by_hook and use.announced_in == starting.session
    if not is_like or _line(starting.command) not in use.lines:
        return False
    return _is_same(use, starting) or (not _differ(use, starting) and use.heard_s > since_s)


def _is_near(use: ToolUse, starting: CommandStarting, *, loose: bool) -> bool:
    """Whether both are of one session, or may be: some clients' shells do not know theirs."""
    if use.starting.session == starting.session:
        return True
    same_agent = bool(starting.agent) and use.starting.agent == starting.agent
    return (loose or use.loose) and same_agent and use.starting.cwd == starting.cwd


def _with_names(shell: CommandStarting, hook: CommandStarting) -> CommandStarting:
    return msgspec.structs.replace(
        shell,
        agent=shell.agent or hook.agent,
        tool_use_id=shell.tool_use_id or hook.tool_use_id,
    )


def _line(command: bytes) -> int:
    return hash(b" ".join(command.split()))


def _name_of(command: str) -> str:
    segments = shell_words.parse(command).segments
    return segments[0].program.rpartition("/")[2] if segments else ""


def _programs(starting: CommandStarting) -> set[str]:
    line = shell_words.parse(to_text(starting.command))
    return {segment.program.rpartition("/")[2] for segment in line.segments}


# --- two stories as one --------------------------------------------------------------------------


def feed_of(use: ToolUse) -> Feed:
    """Return the run that both stories tell. An end that nobody knows stays unknown."""
    end = use.end or End()
    finished = use.finished or _as_hook_says(use, end)
    if use.joined:
        finished = _completed(finished, end)
    if end.output and not finished.tail:
        finished = _with_output(finished, end.output)
    return Feed(use.starting, finished)


def _completed(finished: CommandFinished, end: End) -> CommandFinished:
    """Add to a shell's story what only the hook knows.

    A client that ends a command at its time limit knows better than a trap in that shell.
    """
    trapped = end.timed_out and finished.exit == 0 and finished.signal is None
    if (finished.exit is None and finished.signal is None) or trapped:
        return msgspec.structs.replace(finished, exit=end.exit)
    return finished


def _as_hook_says(use: ToolUse, end: End) -> CommandFinished:
    mono_us, wall_us = use.end_us if use.end else (use.starting.mono_us, use.starting.wall_us)
    return CommandFinished(
        run=use.run,
        exit=end.exit,
        signal=None,
        pipestatus=[],
        usec=end.usec if end.usec is not None else (mono_us - use.starting.mono_us) or None,
        cwd=use.starting.cwd,
        mono_us=mono_us,
        wall_us=wall_us,
    )


def _with_output(finished: CommandFinished, output: str) -> CommandFinished:
    raw = output.encode("utf-8", "replace")
    return msgspec.structs.replace(
        finished, tail=raw[-TAIL_MAX:], tail_total=len(raw), tail_source=TailSource.MERGED
    )
