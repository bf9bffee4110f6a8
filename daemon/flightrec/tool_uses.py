"""What is known of the commands that agents run: which hook and which shell tell of the same one.

Nothing here looks at a clock: ``now_s`` is monotonic.
"""

from collections.abc import Iterable, Iterator

import msgspec

from flightrec import shell_words
from flightrec.agent_ends import End
from flightrec.ingest import to_text
from flightrec.tool_use import HOLD_S, ToolUse, line_of
from flightrec.wire import CommandFinished, CommandStarting, Source

KEPT_S = 60.0
"""How long a use is remembered that was told, so that what comes late makes no second run."""

ECHO_BEFORE_S = 0.1
ECHO_AFTER_S = 5.0
"""Two hooks of one client may tell the same event: without an id, in this time it is one."""

RANDOM_ID = 16
"""Characters from which on an id is one of all the world, and no counter of one session's calls."""

USES_MAX = 512


class ToolUses:
    """What is known of the commands that agents run now, or ran just before.

    A shell's command that no hook tells of passes without a look at the others.
    """

    def __init__(self) -> None:
        self._uses: dict[bytes, ToolUse] = {}
        self._announced: dict[bytes, ToolUse] = {}  # by a hook, and no shell has begun them
        self._timed: dict[bytes, ToolUse] = {}  # those that are to be told at some time

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
        found = self._find_announced(starting, now_s)
        if found is None:
            whole = self._whole_of(starting)
            if whole is not None:
                whole.has_parts = True
                return None
            found = self._add(starting, now_s, by_hook=False)
        else:
            self.drop(found)
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
        for known in (self._uses, self._announced, self._timed):
            known.pop(use.run, None)

    # --- what goes out -----------------------------------------------------------------------

    def due(self, now_s: float) -> list[ToolUse]:
        """Return the uses that are to be told now, oldest first; each is returned once."""
        found = [use for use in self._timed.values() if use.is_due(now_s)]
        return list(self._taken(sorted(found, key=lambda use: use.starting.mono_us)))

    def next_due_s(self) -> float | None:
        """Return when ``due`` is to be asked again."""
        moments = (use.due_s for use in self._timed.values())
        return min((due_s for due_s in moments if due_s is not None), default=None)

    def take_ended(self, session: bytes | None, *, final: bool) -> list[ToolUse]:
        """Return what has ended and still waits, of one session or all: it waits no longer.

        ``final``: nothing more will come of what runs in the background either.
        """
        found = [use for use in self._uses.values() if use.has_ended(final=final)]
        return list(self._taken(u for u in found if session in (None, u.starting.session)))

    def unsent_hints(self, session: bytes) -> Iterator[ToolUse]:
        """Yield the uses whose hints the writer does not know, though another command ran."""
        for use in self._announced.values():
            if use.shown and use.starting.session == session:
                yield use

    def forget_old(self, now_s: float) -> list[ToolUse]:
        """Forget what is over; return what had something to tell, which is to be told now."""
        for use in list(self._uses.values()):
            if use.told and use.heard_s < now_s - KEPT_S:
                self.drop(use)
        surplus = list(self._uses.values())[: max(0, len(self._uses) - USES_MAX)]
        left = [use for use in surplus if use.has_parts or use.has_ended(final=True)]
        for use in surplus:
            self.drop(use)
        return list(self._taken(left))

    def _taken(self, uses: Iterable[ToolUse]) -> Iterator[ToolUse]:
        for use in uses:
            use.told, use.due_s = True, None
            self._timed.pop(use.run, None)
            yield use

    def _plan(self, use: ToolUse, now_s: float) -> None:
        use.plan(now_s)
        if use.due_s is None:
            self._timed.pop(use.run, None)
        else:
            self._timed[use.run] = use

    # --- which use is it ---------------------------------------------------------------------

    def _add(
        self, starting: CommandStarting, now_s: float, *, by_hook: bool, loose: bool = False
    ) -> ToolUse:
        lines = {line_of(starting.command)}
        use = ToolUse(starting, starting.session, now_s, by_hook, lines, loose)
        over = [u for u in self._uses.values() if u.told] if len(self._uses) >= USES_MAX else ()
        for old in over[: USES_MAX // 4]:
            self.drop(old)
        self._uses[use.run] = use
        if by_hook:
            self._announced[use.run] = use
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

    def _find_announced(self, starting: CommandStarting, now_s: float) -> ToolUse | None:
        """Return the use that a hook has announced and this shell begins.

        The newest, since an older one with the same text may have been refused by the person. One
        that was told a moment ago is none to be told again.
        """
        uses = list(reversed(self._announced.values()))
        waiting = [use for use in uses if not use.told]
        own = (use for use in uses if use.starting.session == starting.session)
        late = [use for use in own if use.told and use.heard_s > now_s - HOLD_S]
        return _first_fit(waiting, starting) or _first_fit(late, starting)

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
        for use in reversed(self._announced.values()):
            is_open = not use.told and _is_near(use, starting, loose=False)
            if is_open and name in _programs(use.starting):
                return use
        return None


def _first_fit(
    uses: list[ToolUse], starting: CommandStarting, *, loose: bool = False
) -> ToolUse | None:
    """Return the use that this is: of its session before others, by its id before its text.

    An id alone proves nothing: some models count their calls from 0 in every session.
    """
    near = [use for use in uses if _is_near(use, starting, loose=loose)]
    near.sort(key=lambda use: use.starting.session != starting.session)
    named = (use for use in near if _is_same(use, starting))
    texts = (use for use in near if line_of(starting.command) in use.lines)
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
    if not is_like or line_of(starting.command) not in use.lines:
        return False
    return _is_same(use, starting) or (not _differ(use, starting) and use.heard_s > since_s)


def _is_near(use: ToolUse, starting: CommandStarting, *, loose: bool) -> bool:
    """Whether both are of one session, or may be: some clients' shells do not know theirs."""
    if use.starting.session == starting.session:
        return True
    if not starting.agent or use.starting.agent != starting.agent:
        return False
    named = _is_same(use, starting) and len(starting.tool_use_id or b"") >= RANDOM_ID
    return (named or loose or use.loose) and use.starting.cwd == starting.cwd


def _with_names(shell: CommandStarting, hook: CommandStarting) -> CommandStarting:
    return msgspec.structs.replace(
        shell,
        agent=shell.agent or hook.agent,
        tool_use_id=shell.tool_use_id or hook.tool_use_id,
    )


def _name_of(command: str) -> str:
    segments = shell_words.parse(command).segments
    return segments[0].program.rpartition("/")[2] if segments else ""


def _programs(starting: CommandStarting) -> set[str]:
    line = shell_words.parse(to_text(starting.command))
    return {segment.program.rpartition("/")[2] for segment in line.segments}
