"""One use of an agent's shell tool, told by a hook and by a shell: two stories → one run.

The shell knows how the command ended and where, the hook what it wrote. Either may be the only one,
and they come in any order: what is known of a use waits for as long as the other story may still be
on its way, and no longer.
"""

from dataclasses import dataclass, field

import msgspec

from flightrec.agent_ends import SILENT_OF_FAILURES, End
from flightrec.hints import HintShown
from flightrec.link import Feed
from flightrec.wire import TAIL_MAX, CommandFinished, CommandStarting, TailSource

HOLD_S = 2.0
"""How long an end waits for what the other story has: the hook for its status, the shell's for its
output. Some clients tell no hook of a failure."""

SETTLE_S = 0.25
"""How long a hook's own run waits for a shell's word of it, which comes by another connection."""


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
        self.lines.add(line_of(command.encode("utf-8", "replace")))

    def plan(self, now_s: float) -> None:
        """Say when the use is to be told, now that something was heard of it."""
        self.heard_s = now_s
        wait_s = None if self.told else _wait_s(self)
        self.due_s = None if wait_s is None else now_s + wait_s

    def is_due(self, now_s: float) -> bool:
        """Whether the use is to be told now."""
        return self.due_s is not None and self.due_s <= now_s

    def has_ended(self, *, final: bool) -> bool:
        """Whether there is an end to tell; ``final``: nothing more comes of the background."""
        if self.told:
            return False
        by_hook = self.end is not None and not self.joined and (final or not self.end.background)
        return self.finished is not None or by_hook


def line_of(command: bytes) -> int:
    """Return what is equal for two spellings of one command line that differ in blanks only."""
    return hash(b" ".join(command.split()))


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
    return None if end.background else SETTLE_S  # its shell may tell at its end only


def _wants_output(use: ToolUse) -> bool:
    """Whether the end of the output says something that a hook may still tell."""
    assert use.finished is not None  # noqa: S101 - asked after an end only
    agent = (use.starting.agent or b"").decode("ascii", "replace")
    if use.finished.tail or (use.finished.exit and agent in SILENT_OF_FAILURES):
        return False
    failed = use.finished.exit != 0 or any(use.finished.pipestatus)
    return failed or any(mark in use.starting.command for mark in (b"|", b";", b"&", b"\n"))


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
