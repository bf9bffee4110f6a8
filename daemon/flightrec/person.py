"""What the person says about rules: approve, reject, retire, dismiss, share, edit, learn, correct.

Each works inside the caller's transaction and returns the rule as it stands afterwards; what it
changed for hints and exports is with the rulebook. All raise FlightrecError with one line where the
rule does not exist or a command cannot be one half of a rule.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from flightrec.errors import FlightrecError
from flightrec.evidence import Mark, Reason
from flightrec.generalise import SEGMENT_MAX, Draft
from flightrec.harmless import is_harmless
from flightrec.matching import is_assignment
from flightrec.pairing import RecoveryKind
from flightrec.redact import Safe
from flightrec.rulebook import Event, Rulebook
from flightrec.rules import (
    Guard,
    Origin,
    Pattern,
    Remedy,
    Rule,
    Scope,
    Slot,
    Takes,
    Trigger,
    Verdict,
    rule_key,
)
from flightrec.shell_words import CommandLine, SimpleCommand, Word, parse, quote

ANYTHING = "..."
"""Stands for words that are carried over, as ``flightrec rules`` shows them."""


@dataclass(frozen=True, slots=True)
class Act:
    """When (wall clock, microseconds) and where the person said something."""

    at_us: int
    project: str = ""
    session: bytes | None = None
    origin: str = ""


def approve(book: Rulebook, rule_id: str, act: Act) -> Rule:
    """Take the person's word that the rule is right: it counts as confirmed, once."""
    rule = find(book, rule_id)
    rule = book.update(rule, verdict=Verdict.APPROVED, pardoned=rule.d)
    return book.count(rule, Mark.C, Reason.APPROVED, _event("approve", act, once=True))


def reject(book: Rulebook, rule_id: str, act: Act) -> Rule:
    """Take the person's word that the rule is wrong: it is never offered again."""
    rule = book.update(find(book, rule_id), verdict=Verdict.REJECTED)
    return book.count(rule, Mark.D, Reason.REJECTED, _event("reject", act))


def retire(book: Rulebook, rule_id: str, act: Act) -> Rule:
    """Take the rule out of use, as if the person had deleted it."""
    rule = book.update(find(book, rule_id), verdict=Verdict.RETIRED)
    return book.count(rule, Mark.D, Reason.RETIRED, _event("retire", act))


def dismiss(book: Rulebook, rule_id: str, act: Act) -> Rule:
    """Count once against a rule whose hint was no help."""
    return book.count(find(book, rule_id), Mark.D, Reason.DISMISSED, _event("dismiss", act))


def share(book: Rulebook, rule_id: str) -> Rule:
    """Flag the rule: it is shared as soon as it is promoted."""
    return book.update(find(book, rule_id), flagged=True)


def guard(book: Rulebook, rule_id: str, mode: Guard) -> Rule:
    """Let the rule do this to an agent's commands before they run; UNSET is as the project says."""
    rule = find(book, rule_id)
    if mode is Guard.REWRITE and rule.kind != RecoveryKind.REPLACE:
        raise FlightrecError(f"a rule of kind {rule.kind} cannot rewrite; say ask or deny")
    return book.update(rule, guard=mode)


def edit(book: Rulebook, rule_id: str, working: Safe, act: Act) -> Rule:
    """Say what really works for this rule's trigger; return the new rule that takes its place.

    ``...`` stands for words that the trigger leaves open, in their order there.
    """
    old = find(book, rule_id)
    slots = [part for part in old.trigger.words if isinstance(part, Slot)]
    remedy = _remedy(_read(working), old.trigger.words, slots)
    if remedy == old.remedy:
        return old
    draft = Draft(old.trigger, remedy, old.scope, bound=False, proven=True)
    new = _enter(book, draft, "COR", act, old.project, old.upstream)
    book.update(book.fresh(old), verdict=Verdict.RETIRED)
    return new


def learn(
    book: Rulebook, failing: Safe, working: Safe, act: Act, *, everywhere: bool = True
) -> Rule:
    """Enter a rule by hand. ``...`` in both commands stands for words that are carried over.

    A trigger of one word holds for all arguments. Not ``everywhere``: in ``act.project`` only.
    """
    return _teach(book, failing, working, act, kind="LRN", everywhere=everywhere)


def correct(
    book: Rulebook, failing: Safe, working: Safe, act: Act, *, everywhere: bool = True
) -> Rule:
    """Enter what the person says works instead of a command that went wrong; else as ``learn``."""
    return _teach(book, failing, working, act, kind="COR", everywhere=everywhere)


def propose(book: Rulebook, failing: Safe, working: Safe, act: Act) -> Rule | None:
    """Enter what the person told an agent to run instead, as a candidate: to be approved first.

    None where there is such a rule already, whatever became of it.
    """
    draft = _draft(failing, working, Scope.PROJECT, proven=False)
    if book.same(rule_key(draft.trigger, draft.remedy), act.project, bound=False) is not None:
        return None
    return book.add(
        draft,
        kind="COR",
        origin=Origin.PERSON,
        project=act.project,
        at_us=act.at_us,
        upstream=act.origin,
    )


def find(book: Rulebook, rule_id: str) -> Rule:
    """Return the rule with this id. Raises FlightrecError where there is none."""
    rule = book.rule(rule_id.upper())
    if rule is None:
        raise FlightrecError(f"there is no rule {rule_id}; see: flightrec rules")
    return rule


def _event(verb: str, act: Act, *, once: bool = False) -> Event:
    name = f"person:{verb}" if once else f"person:{verb}:{act.at_us}"
    return Event(name, act.session, act.project, act.at_us, Origin.PERSON.value)


def _teach(  # noqa: PLR0913 - two public verbs with the same words
    book: Rulebook, failing: Safe, working: Safe, act: Act, *, kind: str, everywhere: bool
) -> Rule:
    scope = Scope.USER if everywhere else Scope.PROJECT
    draft = _draft(failing, working, scope, proven=True)
    return _enter(book, draft, kind, act, act.project, act.origin)


def _draft(failing: Safe, working: Safe, scope: Scope, *, proven: bool) -> Draft:
    trigger_line, remedy_line = _read(failing), _read(working)
    if len(trigger_line.segments) != 1:
        raise FlightrecError("the failing command must be one simple command")
    words = _pattern(trigger_line, trigger_line.segments[0])
    if len(words) == 1 and not _has_anything(remedy_line):
        words = (*words, Slot(1, Takes.WORDS))
        remedy_line = _read(Safe(f"{working} {ANYTHING}"))
    slots = [part for part in words if isinstance(part, Slot)]
    remedy = _remedy(remedy_line, words, slots)
    trigger = Trigger("", tuple(_value(part) for part in words))
    return Draft(trigger, remedy, scope, bound=False, proven=proven)


def _enter(  # noqa: PLR0913, PLR0917 - the rule, and whose it is
    book: Rulebook, draft: Draft, kind: str, act: Act, project: str, upstream: str
) -> Rule:
    """Enter a rule of the person's, or approve the one that says the same."""
    known = book.same(rule_key(draft.trigger, draft.remedy), project, bound=False)
    if known is not None and (known.scope is Scope.USER or known.project == project):
        return approve(book, known.id, act)
    rule = book.add(
        draft,
        kind=kind,
        origin=Origin.PERSON,
        project=project,
        at_us=act.at_us,
        upstream=upstream,
    )
    return book.count(rule, Mark.C, Reason.TAUGHT, _event("teach", act, once=True))


def _read(text: Safe) -> CommandLine:
    line = parse(text.strip())
    if not line.segments or not line.complete or not line.segments[-1].core or line.compound:
        raise FlightrecError(f"not a whole simple command: {text}")
    if len(text) > SEGMENT_MAX or "\n" in text or not is_harmless(text):
        raise FlightrecError(f"a rule's command is one printable line of at most {SEGMENT_MAX}")
    return line


def _has_anything(line: CommandLine) -> bool:
    return any(word.text.endswith(ANYTHING) for word in line.segments[-1].core)


def _remedy(line: CommandLine, trigger: Pattern, slots: list[Slot]) -> Remedy:
    """Return what a command line means as a remedy: steps, a prefix, other words."""
    segment = line.segments[-1]
    steps = _steps(line)
    words = _pattern(line, segment, slots)
    prefix = tuple(
        line.text[word.start : word.end]
        for word in (*segment.assignments, *segment.words[: segment.wrappers])
    )
    same = tuple(map(_value, words)) == tuple(map(_value, trigger))
    if same and not (steps or prefix):
        raise FlightrecError("both commands are the same")
    return Remedy(
        kind=_kind(steps, prefix, same=same),
        words=() if same else words,
        prefix=prefix,
        before=steps,
    )


def _steps(line: CommandLine) -> tuple[str, ...]:
    if any(operator.text not in ("&&", ";") for operator in line.operators):
        raise FlightrecError("steps of a remedy are joined by && or ;")
    return tuple(line.text[segment.start : segment.end] for segment in line.segments[:-1])


def _kind(steps: tuple[str, ...], prefix: tuple[str, ...], *, same: bool) -> str:
    if not same:
        return RecoveryKind.REPLACE.value
    if steps:
        return RecoveryKind.PREREQUISITE.value
    is_variable = all(is_assignment(word) for word in prefix)
    return (RecoveryKind.ENVIRONMENT if is_variable else RecoveryKind.PRIVILEGE).value


def _pattern(line: CommandLine, segment: SimpleCommand, slots: list[Slot] | None = None) -> Pattern:
    """Return a segment's words as typed, ``...`` as slots: new ones, or those given in order."""
    given = iter(slots) if slots is not None else None
    pattern: list[str | Slot] = []
    for word in segment.core:
        if word.text.endswith(ANYTHING) and not word.quoted:
            pattern.append(_slot(word, len(pattern), given))
        else:
            pattern.append(quote(word.text) if word.literal else line.text[word.start : word.end])
    if not pattern or isinstance(pattern[0], Slot):
        raise FlightrecError("a rule's command begins with the name of a program")
    return tuple(pattern)


def _slot(word: Word, number: int, given: Iterator[Slot] | None) -> Slot:
    prefix = word.text.removesuffix(ANYTHING)
    if given is None:
        return Slot(number, Takes.VALUE if prefix else Takes.WORDS, prefix)
    slot = next(given, None)
    if slot is None:
        raise FlightrecError(f"the remedy has more {ANYTHING} than the failing command")
    return Slot(slot.number, slot.takes, prefix)


def _value(part: str | Slot) -> str | Slot:
    if isinstance(part, Slot):
        return Slot(part.number, part.takes, part.prefix)
    return parse(part).segments[0].words[0].text
