"""A recovery made general: when does the rule apply (trigger), and what is to be typed (remedy).

Two rules of caution decide here. A word becomes a slot only where the failure does not depend on
it; and a rule is hinted outside the project that it comes from only where nothing in it belongs to
that project.
"""

import enum

import msgspec


class Status(enum.StrEnum):
    """Where a rule stands. A candidate is kept and never shown: no error text proves it."""

    CANDIDATE = "candidate"
    ACTIVE = "active"
    PROMOTED = "promoted"
    SHARED = "shared"
    ARCHIVED = "archived"


class Scope(enum.StrEnum):
    """Where a rule is hinted."""

    USER = "user"
    PROJECT = "project"


class Origin(enum.StrEnum):
    """Who says so."""

    RECORDED = "recorded"
    PERSON = "person"
    IMPORT = "import"


class Verdict(enum.StrEnum):
    """What overrules the counts: the person's word, or a remedy that no longer exists."""

    NONE = ""
    APPROVED = "approved"
    REJECTED = "rejected"
    RETIRED = "retired"
    GONE = "gone"


class Takes(enum.StrEnum):
    """What a slot stands for."""

    WORDS = "words"  # any number of words, also none
    OPTIONS = "options"  # the same, but only options (with their values) before a subcommand
    WORD = "word"  # exactly one word
    VALUE = "value"  # what follows the slot's prefix in one word: --colour=VALUE


class Slot(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A place in a trigger whose words are carried over into the remedy's slot of this number."""

    number: int
    takes: Takes = Takes.WORDS
    prefix: str = ""


Pattern = tuple[str | Slot, ...]
"""Words of one segment: fixed ones and slots, without assignments, wrappers and redirections."""


class Trigger(msgspec.Struct, frozen=True, gc=False):
    """Which segments a rule is about.

    ``words`` holds words as the program would see them; the first one is the program.
    ``directory`` is where the segment must run, relative to the worktree's root; None is anywhere.
    """

    kind: str
    words: Pattern
    directory: str | None = None


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What mends it. Words stand as they are typed in a shell, quotes included.

    ``words`` replaces the segment, ``prefix`` is put before it (``sudo``, ``NAME=value``),
    ``before`` are command lines to run first, ``directory`` is where to run it, relative to the
    worktree's root. ``lesson`` is what a rule without a known remedy has to say instead.
    """

    kind: str
    words: Pattern = ()
    prefix: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    directory: str | None = None
    lesson: str = ""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one trigger and one remedy.

    ``r``, ``c``, ``d`` count evidence (``evidence.py``); ``used`` counts plain uses of the remedy.
    ``seen_in`` lists the projects in which it was confirmed, ``project`` being the first.
    ``held_back`` says why it is never offered (a secret, a destructive remedy), and is empty where
    it may be. Times are wall clock in microseconds.
    """

    id: str
    uid: bytes
    status: Status
    failure_kind: str
    trigger: Trigger
    remedy: Remedy
    scope: Scope
    project: str
    origin: Origin
    proven: bool
    verdict: Verdict
    r: int
    c: int
    d: int
    used: int
    created_us: int
    last_us: int
    promoted_us: int | None = None
    shared_us: int | None = None
    archived_us: int | None = None
    seen_in: tuple[str, ...] = ()
    held_back: str = ""

    @property
    def kind(self) -> str:
        """The kind of recovery: ``replace``, ``prerequisite``, …"""
        return self.remedy.kind
