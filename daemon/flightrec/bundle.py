"""Rules as a file that can be given to somebody else, and such a file judged.

A bundle comes from anywhere. It is data of one fixed shape: commands and kinds of failure, without
counts, folders, patterns or code. Whatever has another shape is refused as a whole; a rule that
would never be offered is left out. What remains waits, as a rule without any evidence, until the
person approves it.
"""

import enum
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec

from flightrec.errors import FlightrecError
from flightrec.failure_kinds import FailureKind
from flightrec.generalise import SEGMENT_MAX
from flightrec.matching import WORDS_MAX
from flightrec.pairing import RecoveryKind
from flightrec.quarantine import why_never, why_suspicious
from flightrec.redact import Redactor
from flightrec.rule_text import failing_text, working_text
from flightrec.rulebook import held_back_reason
from flightrec.rules import (
    Origin,
    Pattern,
    Remedy,
    Rule,
    Scope,
    Slot,
    Status,
    Takes,
    Trigger,
    Verdict,
    rule_key,
)

SCHEMA = 1
BYTES_MAX = 5 * 1024 * 1024
RULES_MAX = 10_000
DEPTH_MAX = 8
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a bundle may be called."""

Text = Annotated[str, msgspec.Meta(max_length=SEGMENT_MAX)]
Number = Annotated[int, msgspec.Meta(ge=0, le=WORDS_MAX)]


class _Slot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words that are carried over from what is typed."""

    slot: Number
    takes: Takes = Takes.WORDS
    prefix: Text = ""


_Words = Annotated[tuple[Text | _Slot, ...], msgspec.Meta(max_length=WORDS_MAX)]
_Lines = Annotated[tuple[Text, ...], msgspec.Meta(max_length=16)]


class BundledRule(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """One rule in a bundle. ``uid`` is its identity wherever it goes: 128 bits in hex."""

    uid: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    failure: Text = ""
    failing: _Words
    recovery: RecoveryKind
    working: _Words = ()
    prefix: _Lines = ()
    before: _Lines = ()


class _Head(msgspec.Struct, frozen=True):
    """What tells whether the rest can be understood at all."""

    schema: int


class _Bundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: int
    rules: Annotated[tuple[BundledRule, ...], msgspec.Meta(max_length=RULES_MAX)]


class Fate(enum.Enum):
    """What becomes of a rule of a bundle."""

    NEW = "+"
    KNOWN = "="
    LEFT_OUT = "-"


@dataclass(frozen=True, slots=True)
class Judged:
    """A rule of a bundle and what becomes of it. ``reason`` says why, or what to look at."""

    uid: bytes
    trigger: Trigger
    remedy: Remedy
    fate: Fate
    reason: str


# --- making one ------------------------------------------------------------------------------


def make_bundle(rules: Iterable[Rule], redactor: Redactor) -> bytes:
    """Return the rules that may leave this machine, as a file."""
    fit = sorted((rule for rule in rules if may_leave(rule, redactor)), key=lambda rule: rule.uid)
    bundle = _Bundle(SCHEMA, tuple(map(_bundled, fit[:RULES_MAX])))
    return msgspec.json.format(msgspec.json.encode(bundle), indent=1) + b"\n"


def may_leave(rule: Rule, redactor: Redactor) -> bool:
    """Whether a rule holds everywhere, is proved, and says nothing that others would not import."""
    proved = rule.status in (Status.PROMOTED, Status.SHARED) or _has_word(rule)
    is_general = rule.scope is Scope.USER and not rule.remedy.lesson
    in_folder = rule.trigger.directory is not None or rule.remedy.directory is not None
    if not proved or not is_general or in_folder or rule.held_back or rule.remedy.shell_word:
        return False
    if why_left_out(rule.trigger, rule.remedy, redactor):
        return False
    return _has_word(rule) or not why_to_look(rule.trigger, rule.remedy)


def _has_word(rule: Rule) -> bool:
    """Whether the person stands for a rule that is in use."""
    by_person = rule.verdict is Verdict.APPROVED or rule.origin is Origin.PERSON
    return by_person and rule.status not in (Status.CANDIDATE, Status.ARCHIVED)


def _bundled(rule: Rule) -> BundledRule:
    return BundledRule(
        uid=rule.uid.hex(),
        failure=rule.trigger.kind,
        failing=_to_bundle(rule.trigger.words),
        recovery=RecoveryKind(rule.remedy.kind),
        working=_to_bundle(rule.remedy.words),
        prefix=rule.remedy.prefix,
        before=rule.remedy.before,
    )


def _to_bundle(words: Pattern) -> tuple[str | _Slot, ...]:
    return tuple(
        _Slot(part.number, part.takes, part.prefix) if isinstance(part, Slot) else part
        for part in words
    )


# --- reading one -----------------------------------------------------------------------------


def read_bundle(content: bytes) -> tuple[BundledRule, ...]:
    """Return the rules that a file holds. Raises FlightrecError, with one line, for any other."""
    if len(content) > BYTES_MAX:
        raise FlightrecError(f"the bundle is larger than {BYTES_MAX // 1024 // 1024} MB")
    if _is_deep(content):
        raise FlightrecError(f"the bundle is nested deeper than {DEPTH_MAX} levels")
    try:
        schema = msgspec.json.decode(content, type=_Head).schema
        if schema != SCHEMA:
            raise FlightrecError(f"the bundle has schema {schema}; this flightrec reads {SCHEMA}")
        rules = msgspec.json.decode(content, type=_Bundle).rules
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FlightrecError(f"this is no bundle of rules: {str(error)[:200]}") from None
    check(rules)
    return rules


def check(rules: Iterable[BundledRule]) -> None:
    """Refuse what no bundle of ours holds. Raises FlightrecError."""
    seen: set[str] = set()
    for rule in rules:
        if rule.uid in seen:
            raise FlightrecError(f"the bundle holds the rule {rule.uid} twice")
        seen.add(rule.uid)
        if not all(text.isprintable() for text in _texts(rule)):
            raise FlightrecError(f"the rule {rule.uid} holds characters that cannot be seen")
        if reason := _why_senseless(rule):
            raise FlightrecError(f"the rule {rule.uid} {reason}")


_TOKEN = re.compile(rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"?|[\[{]|[\]}]', re.DOTALL)


def _is_deep(content: bytes) -> bool:
    depth = 0
    for token in _TOKEN.finditer(content):
        first = content[token.start()]
        if first in b"[{":
            depth += 1
        elif first in b"]}":
            depth -= 1
        if depth > DEPTH_MAX:
            return True
    return False


def _texts(rule: BundledRule) -> Iterator[str]:
    for part in (*rule.failing, *rule.working, *rule.prefix, *rule.before):
        yield part.prefix if isinstance(part, _Slot) else part


def _why_senseless(rule: BundledRule) -> str:
    """Return what is wrong with a rule that nobody could have recorded."""
    if not rule.failing or not isinstance(rule.failing[0], str) or not rule.failing[0]:
        return "begins with no program"
    if rule.failure and rule.failure not in set(FailureKind):
        return "fails in a way that does not exist"
    if not (rule.working or rule.prefix or rule.before):
        return "has no remedy"
    numbers = [part.slot for part in rule.failing if isinstance(part, _Slot)]
    if len(set(numbers)) != len(numbers):
        return "has two slots with one number"
    if not {part.slot for part in rule.working if isinstance(part, _Slot)} <= set(numbers):
        return "has a slot in its remedy that its trigger does not have"
    return ""


# --- judging one -----------------------------------------------------------------------------


def judge(
    rules: Iterable[BundledRule], is_known: Callable[[bytes, str], bool], redactor: Redactor
) -> Iterator[Judged]:
    """Yield what becomes of each rule; ``is_known`` is asked with its identity and what it says."""
    for rule in rules:
        uid, trigger, remedy = _from_bundle(rule)
        if is_known(uid, rule_key(trigger, remedy)):
            fate, reason = Fate.KNOWN, "known already"
        elif reason := why_left_out(trigger, remedy, redactor):
            fate = Fate.LEFT_OUT
        else:
            fate, reason = Fate.NEW, why_to_look(trigger, remedy)
        yield Judged(uid, trigger, remedy, fate, reason)


def _from_bundle(rule: BundledRule) -> tuple[bytes, Trigger, Remedy]:
    trigger = Trigger(rule.failure, _to_pattern(rule.failing))
    remedy = Remedy(rule.recovery.value, _to_pattern(rule.working), rule.prefix, rule.before)
    return bytes.fromhex(rule.uid), trigger, remedy


def _to_pattern(words: Iterable[str | _Slot]) -> Pattern:
    return tuple(
        Slot(part.slot, part.takes, part.prefix) if isinstance(part, _Slot) else part
        for part in words
    )


_OWN_PATH = re.compile(r"(?:^|[=\s'\"]|:(?!//))(?:/|~|\.{1,2}/)|/\.\.(?:/|$)")
"""A place in somebody's file system, which means something else here."""


def why_left_out(trigger: Trigger, remedy: Remedy, redactor: Redactor) -> str:
    """Return why a rule neither leaves nor enters a machine; empty where it may."""
    texts = (failing_text(trigger), working_text(trigger, remedy))
    if reason := held_back_reason(trigger, remedy):
        return reason
    if any(redactor.redact_command(text).found for text in texts):
        return "it holds a secret"
    if any(map(_OWN_PATH.search, texts)):
        return "it names a place in a file system"
    return next((f"it {reason}" for reason in map(why_never, texts) if reason), "")


def why_to_look(trigger: Trigger, remedy: Remedy) -> str:
    """Return what a person should look at before approving; empty where nothing stands out."""
    texts = (failing_text(trigger), working_text(trigger, remedy))
    return next((f"it {reason}" for reason in map(why_suspicious, texts) if reason), "")
