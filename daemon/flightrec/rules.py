"""What a rule is: when it applies (trigger), what is to be typed (remedy), and how sure it is.

Two rules of caution decide here. A word becomes a slot only where the failure does not depend on
it; and a rule is hinted outside the project that it comes from only where nothing in it belongs to
that project.
"""

import enum
import hashlib
from collections.abc import Iterable, Iterator

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


class Guard(enum.StrEnum):
    """What the person lets a rule do to a command of an agent before it runs.

    UNSET is as the project says. A guard acts only while the evidence is clear (``guard.py``).
    """

    UNSET = ""
    OFF = "off"
    ASK = "ask"
    DENY = "deny"
    REWRITE = "rewrite"


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


class Trigger(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Which segments a rule is about.

    ``kind`` is the kind of failure, empty for any. ``words`` holds words as the program would see
    them; the first one is the program.
    ``directory`` is where the segment must run, relative to the worktree's root; None is anywhere.
    ``host`` is the site that a lesson is about.
    """

    kind: str
    words: Pattern
    directory: str | None = None
    host: str = ""


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What mends it. Words stand as they are typed in a shell, quotes included.

    ``words`` replaces the segment, ``prefix`` is put before it (``sudo``, ``NAME=value``),
    ``before`` are command lines to run first, ``directory`` is where to run it, relative to the
    worktree's root. ``shell_word``: the first word is an alias or a function of the shell that it
    was typed in. ``lesson`` is what a rule without a known remedy has to say instead.
    """

    kind: str
    words: Pattern = ()
    prefix: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    directory: str | None = None
    shell_word: bool = False
    lesson: str = ""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one trigger and one remedy.

    ``r``, ``c``, ``d`` count evidence (``evidence.py``); ``used`` counts plain uses of the remedy.
    ``source`` is the name of the bundle that it came with.
    ``seen_in`` lists the projects in which it was confirmed, ``project`` being the first.
    ``upstream`` is what clones of the project share (``Place.origin``): they are shown its rules,
    and count nothing for them or against them.
    ``held_back`` says why it is never offered (a secret, a destructive remedy), and is empty where
    it may be. ``failures`` is how often the trigger failed, ``failed`` whether it did so the last
    time that it ran, anywhere, at ``outcome_us``. ``pardoned`` are the contradictions that the
    person overruled by approving. ``guard`` is what it may do to an agent's commands. Times are
    wall clock in microseconds.
    """

    id: str
    uid: bytes
    status: Status
    trigger: Trigger
    remedy: Remedy
    scope: Scope
    project: str
    upstream: str = ""
    origin: Origin
    source: str = ""
    proven: bool
    verdict: Verdict
    r: int = 0
    c: int = 0
    d: int = 0
    used: int = 0
    created_us: int
    last_us: int
    promoted_us: int | None = None
    shared_us: int | None = None
    archived_us: int | None = None
    seen_in: tuple[str, ...] = ()
    held_back: str = ""
    flagged: bool = False
    guard: Guard = Guard.UNSET
    pardoned: int = 0
    failures: int = 0
    failed: bool = True
    outcome_us: int = 0

    @property
    def key(self) -> str:
        """What no other rule has: trigger, remedy and for whom."""
        return key_of(rule_key(self.trigger, self.remedy), self.scope, self.project)

    @property
    def kind(self) -> str:
        """The kind of recovery, such as ``replace`` or ``prerequisite``."""
        return self.remedy.kind

    @property
    def is_quarantined(self) -> bool:
        """Whether it came from somebody else, and nothing and nobody here stands for it yet."""
        return self.origin is Origin.IMPORT and not self.proven and self.verdict is Verdict.NONE

    def belongs_to(self, project: str) -> bool:
        """Whether what happens in a project is evidence for or against the rule."""
        return self.scope is Scope.USER or self.project == project

    @property
    def failure_kind(self) -> str:
        """How the trigger fails, such as ``command not found``."""
        return self.trigger.kind

    @property
    def program(self) -> str:
        """The program that the trigger begins with."""
        first = self.trigger.words[0]
        return first if isinstance(first, str) else first.prefix


def trigger_key(trigger: Trigger) -> str:
    """Return what is equal for two rules about the same thing: 128 bits in hex."""
    return _digest(trigger)


def rule_key(trigger: Trigger, remedy: Remedy) -> str:
    """Return what is equal for two rules that say the same, wherever they were born."""
    return _digest((trigger, msgspec.structs.replace(remedy, shell_word=False)))


def key_of(core: str, scope: Scope, project: str) -> str:
    """Return a rule's key from that of what it says: one for all, or one for each project."""
    return core if scope is Scope.USER else f"{core}@{project}"


def _digest(value: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()


def one_for_each_trigger(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Yield the first rule for each trigger, project by project: let the best come first."""
    seen: set[tuple[str, str]] = set()
    for rule in rules:
        home = rule.project if rule.scope is Scope.PROJECT else ""
        key = (trigger_key(rule.trigger), home)
        if key not in seen:
            seen.add(key)
            yield rule
