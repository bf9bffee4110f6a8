"""The command about to run → what worked instead, or None: from memory only, at flat cost."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from flightrec.rules import Origin, Remedy, Scope, Trigger
from flightrec.wire import Phase, WordKind


class Outcome(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What became of a rule's trigger where it was run last, and how often it failed there."""

    project: str
    worktree: str
    failed: bool
    failures: int
    at_us: int


class HintRule(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One rule as hints need it; the writer sends it whenever it changed.

    ``offered`` is false where it is not to be shown (candidate, archived, held back): the index
    forgets it. ``outcomes`` are the places that changed. ``failed`` is the trigger's last outcome
    anywhere, ``failures`` how often it failed anywhere.
    """

    id: str
    offered: bool
    trigger: Trigger
    remedy: Remedy
    scope: Scope
    project: str
    origin: Origin
    c: int
    d: int
    failed: bool
    failures: int
    outcomes: tuple[Outcome, ...] = ()


class HintShown(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The front tells the writer that a hint was shown.

    ``remedy`` is the line that was offered. It holds words of the command as typed, so it is raw
    until the writer has redacted it.
    """

    rule: str
    session: bytes
    run: bytes
    phase: Phase
    remedy: str
    at_us: int


@dataclass(frozen=True, slots=True)
class HintContext:
    """A command about to run, or one that just failed, with what the shell says about itself.

    ``path`` is that shell's PATH where it is known. ``now_us`` is wall clock. ``mine`` is false in
    a repository that belongs to somebody else: nothing is hinted there.
    """

    session: bytes
    run: bytes
    command: str
    cwd: str
    project: str
    worktree: str
    now_us: int
    word_kind: WordKind = WordKind.UNKNOWN
    path: str | None = None
    mine: bool = True


@dataclass(frozen=True, slots=True)
class Hint:
    """``text`` is what the terminal shows, harmless already; ``shown`` is for the writer."""

    text: str
    remedy: str
    shown: HintShown


class HintIndex:
    """All rules that may be hinted, by the words that they start from."""

    def update(self, rules: Iterable[HintRule]) -> None:
        """Take in rules that changed."""

    def find(self, context: HintContext) -> Hint | None:
        """Return the hint that is due before this command runs; it counts as shown."""

    def find_after_failure(self, context: HintContext, failure_kind: str) -> Hint | None:
        """Return the hint for a run that just failed so, unless it had one before it ran."""

    def may_know(self, command: str, project: str) -> bool:
        """Whether any rule is about this command: worth finding out how it failed."""
        return False

    def forget_session(self, session: bytes) -> None:
        """Nothing more will come of this session."""
