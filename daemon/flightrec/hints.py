"""The command about to run → what worked instead, or None: from memory only, at flat cost."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from flightrec.dangers import danger_in, danger_of
from flightrec.failure_kinds import UNTEACHABLE, FailureKind
from flightrec.harmless import columns, is_harmless, make_harmless
from flightrec.matching import (
    SEGMENTS_MAX,
    Found,
    Location,
    anchor_of,
    directory_of,
    find_trigger,
    is_assignment,
    probes,
    rewrite,
    word_value,
)
from flightrec.mended import is_mended, may_run_others
from flightrec.programs import BUILTINS, is_there
from flightrec.redact import PLACEHOLDER
from flightrec.rules import Guard, Origin, Remedy, Scope, Trigger
from flightrec.shell_words import CommandLine, SimpleCommand, parse
from flightrec.wire import Phase, WordKind


class Outcome(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What became of a rule's trigger where it was run last, and how often it failed there."""

    project: str
    worktree: str
    failed: bool
    failures: int
    at_us: int


class Told(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a model may be told of a proved rule, as one line; ``rank`` sorts the best first.

    ``homes`` are the projects whose agents are told; an empty one is all of them.
    """

    line: str
    homes: tuple[str, ...]
    rank: float


class HintRule(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One rule as hints need it; the writer sends it whenever it changed.

    ``offered`` is false where it is not to be shown (candidate, archived, held back): the index
    forgets it. ``outcomes`` are the places that changed. ``failed`` is the trigger's last outcome
    anywhere, ``failures`` how often it failed anywhere. ``upstream`` is what clones of ``project``
    share, to which the rule is shown, too. ``guard`` is the person's word, ``told`` is None unless
    the rule is promoted and fit to be read by a model.
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
    upstream: str = ""
    guard: Guard = Guard.UNSET
    told: Told | None = None


LET = "let"
"""What a guard did that let a command through which it had stopped before."""


class HintShown(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The front tells the writer that a hint was shown, or what a guard did (``gate``).

    ``remedy`` is the line that was offered. It holds words of the command as typed, so it is raw
    until the writer has redacted it.
    """

    rule: str
    session: bytes
    run: bytes
    phase: Phase
    remedy: str
    at_us: int
    gate: str = ""


@dataclass(frozen=True, slots=True)
class HintContext:
    """A command about to run, or one that just failed, with what the shell says about itself.

    ``path`` is that shell's PATH where it is known, ``virtual_env`` its VIRTUAL_ENV if any.
    ``now_us`` is wall clock. ``mine`` is false in a repository that belongs to somebody else:
    nothing is hinted there. ``origin`` is what the project shares with other clones.
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
    origin: str = ""
    virtual_env: str | None = None


@dataclass(frozen=True, slots=True)
class Hint:
    """``text`` is what the terminal shows, harmless already; ``shown`` is for the writer."""

    text: str
    remedy: str
    shown: HintShown


REPEAT_AFTER_US = 60 * 60 * 1_000_000
"""A hint whose remedy was not tried is shown again in the same session after this time."""

COLUMNS_MAX = 210
"""Of a remedy in a hint: what is longer would be cut, and half a command is none."""

COMMAND_MAX = 4_000
"""Characters of a line that is looked up; longer ones are data, or were cut on their way."""

RULES_PER_ANCHOR = 32
CLONES_MAX = 8
SESSIONS_MAX = 1024


class Due(NamedTuple):
    """A rule that has something to say before this line runs, and about which part of it."""

    rule: HintRule
    line: CommandLine
    found: Found


class _Shown(msgspec.Struct):
    """When a rule was hinted in a session, for which run, and whether its remedy was tried."""

    run: bytes
    remedy: str
    at_us: int
    tried: bool = False


class HintIndex:
    """All rules that may be hinted, by the words that they start from.

    Rules are kept packed, so that a hundred thousand of them take little room, and are unpacked
    when a command has one of their words.
    """

    def __init__(self, repeat_after_us: int = REPEAT_AFTER_US) -> None:
        self.repeat_after_us = repeat_after_us
        self._rules: dict[int, bytes | tuple[bytes, ...]] = {}
        self._outcomes: dict[int, int] = {}
        self._clones: dict[str, set[str]] = {}
        self._shown: OrderedDict[bytes, dict[str, _Shown]] = OrderedDict()

    def update(self, rules: Iterable[HintRule]) -> None:
        """Take in rules that changed."""
        for rule in rules:
            self._remove(rule)
            if rule.offered:
                home = rule.project if rule.scope is Scope.PROJECT else ""
                key = _key(home, rule.trigger)
                bare = msgspec.structs.replace(rule, outcomes=(), project=home)
                self._rules[key] = _join(self._rules.get(key), _encode(bare))
                if home and rule.upstream:
                    self._clones.setdefault(rule.upstream, set()).add(home)
            for outcome in rule.outcomes:
                self._note_outcome(rule.id, outcome)

    def find(self, context: HintContext) -> Hint | None:
        """Return the hint that is due before this command runs; it counts as shown."""
        for rule, line, found in self.due(context):
            if self._may_show(rule, context):
                hint = self._make(rule, line, found, context, Phase.START)
                if hint is not None:
                    return hint
        return None

    def due(self, context: HintContext) -> Iterator[Due]:
        """Yield the rules that are due before this command, shown in this session or not."""
        line = self._read(context)
        if line is None:
            return
        self._note_tries(context.session, line)
        for rule, found in self._about(line, context):
            if self._is_due(rule, line, found, context):
                yield Due(rule, line, found)

    def find_after_failure(self, context: HintContext, failure_kind: str) -> Hint | None:
        """Return the hint for a run that just failed so, unless it had one before it ran."""
        line = self._read(context)
        if line is None or self._had_hint(context):
            return None
        for rule, found in self._about(line, context):
            if _is_about(rule, failure_kind) and self._may_show(rule, context):
                hint = self._make(rule, line, found, context, Phase.FINISH)
                if hint is not None:
                    return hint
        return None

    def may_know(self, context: HintContext) -> bool:
        """Whether any rule is about this command: worth finding out how it failed."""
        if len(context.command) > COMMAND_MAX:
            return False
        homes = self._homes(context)
        segments = parse(context.command).segments[:SEGMENTS_MAX]
        return any(True for segment in segments for _ in self._under(segment, homes))

    def same_run(self, session: bytes, known: bytes, run: bytes) -> None:
        """Take what was shown for one run as shown for another: both are the same command."""
        for shown in self._shown.get(session, {}).values():
            if shown.run == known:
                shown.run = run

    def forget_session(self, session: bytes) -> None:
        """Nothing more will come of this session."""
        self._shown.pop(session, None)

    # -- rules ----------------------------------------------------------------------------------

    def _remove(self, rule: HintRule) -> None:
        """Take out what is known of a rule, under its project and under all projects."""
        for project in (rule.project, ""):
            key = _key(project, rule.trigger)
            packed = self._rules.get(key)
            if packed is None:
                continue
            left = tuple(one for one in _each(packed) if _decode(one).id != rule.id)
            if left:
                self._rules[key] = left
            else:
                del self._rules[key]

    def _homes(self, context: HintContext) -> tuple[str, ...]:
        """Return the projects whose rules are shown here, and the empty one of those for all."""
        clones = self._clones.get(context.origin, ()) if context.origin else ()
        if not clones:
            return (context.project, "")
        others = sorted(set(clones) - {context.project})[:CLONES_MAX]
        return (context.project, *others, "")

    def _under(self, segment: SimpleCommand, homes: Sequence[str]) -> Iterator[HintRule]:
        """Yield the rules of these projects that this segment may be about."""
        for probe in probes([word.text for word in segment.core]):
            for home in homes:
                packed = self._rules.get(hash((home, probe)))
                if packed is not None:
                    yield from (_decode(one) for one in _each(packed))

    def _about(self, line: CommandLine, context: HintContext) -> list[tuple[HintRule, Found]]:
        """Return the rules that are about this line, the best first for each of its segments."""
        location = Location(context.cwd, context.worktree)
        homes = self._homes(context)
        about: dict[str, tuple[HintRule, Found]] = {}
        for segment in line.segments[:SEGMENTS_MAX]:
            for rule in self._under(segment, homes):
                if not _holds(rule, context):
                    continue
                found = find_trigger(rule.trigger, rule.remedy, line, location)
                if found is not None:
                    about[rule.id] = (rule, found)
        return sorted(_without_doubles(about.values(), context), key=_rank)

    # -- outcomes -------------------------------------------------------------------------------

    def _note_outcome(self, rule_id: str, outcome: Outcome) -> None:
        """Keep a worktree's outcome, and for its project the latest one and all failures."""
        key = hash((rule_id, outcome.project, outcome.worktree))
        before = self._outcomes.get(key, 0) >> 1
        self._outcomes[key] = outcome.failures << 1 | outcome.failed
        project = hash((rule_id, outcome.project))
        failures = (self._outcomes.get(project, 0) >> 1) + outcome.failures - before
        self._outcomes[project] = failures << 1 | outcome.failed

    def _failures_here(self, rule: HintRule, context: HintContext) -> int:
        return self._outcomes.get(hash((rule.id, context.project)), 0) >> 1

    def _failed_last(self, rule: HintRule, context: HintContext) -> bool:
        """Whether the trigger failed last: in this worktree, else in the project, else anywhere."""
        for place in ((rule.id, context.project, context.worktree), (rule.id, context.project)):
            outcome = self._outcomes.get(hash(place))
            if outcome is not None:
                return bool(outcome & 1)
        return rule.failed

    # -- due ------------------------------------------------------------------------------------

    def _read(self, context: HintContext) -> CommandLine | None:
        if not context.mine or len(context.command) > COMMAND_MAX:
            return None
        line = parse(context.command)
        return line if line.complete and line.segments else None

    def _is_due(
        self, rule: HintRule, line: CommandLine, found: Found, context: HintContext
    ) -> bool:
        return self._failed_last(rule, context) and not _is_gone(rule, line, found, context)

    def _may_show(self, rule: HintRule, context: HintContext) -> bool:
        """Whether the rule was not hinted in this session, or in vain and long ago."""
        shown = self._shown.get(context.session, {}).get(rule.id)
        if shown is None:
            return True
        return not shown.tried and context.now_us - shown.at_us >= self.repeat_after_us

    def _had_hint(self, context: HintContext) -> bool:
        shown = self._shown.get(context.session, {})
        return any(one.run == context.run for one in shown.values())

    def _note_tries(self, session: bytes, line: CommandLine) -> None:
        for shown in self._shown.get(session, {}).values():
            if not shown.tried and says_the_same(shown.remedy, line):
                shown.tried = True

    def _make(
        self, rule: HintRule, line: CommandLine, found: Found, context: HintContext, phase: Phase
    ) -> Hint | None:
        remedy = say(rule.remedy, line, found, context)
        if remedy is None:
            return None
        text = make_harmless(f"flightrec: {self.reason(rule, context)}; try: {remedy}")
        self.note_shown(rule, context, remedy)
        told = HintShown(rule.id, context.session, context.run, phase, remedy, context.now_us)
        return Hint(text, remedy, told)

    def note_shown(self, rule: HintRule, context: HintContext, remedy: str) -> None:
        """Remember that the session knows this remedy now."""
        shown = _Shown(context.run, remedy, context.now_us)
        self._shown.setdefault(context.session, {})[rule.id] = shown
        self._shown.move_to_end(context.session)
        if len(self._shown) > SESSIONS_MAX:
            self._shown.popitem(last=False)

    def reason(self, rule: HintRule, context: HintContext) -> str:
        """Return why a rule speaks up: how often its trigger failed, where, and how."""
        here = self._failures_here(rule, context)
        if not here and not rule.failures:
            return "noted by you"
        where, count = ("here", here) if here else ("before", rule.failures)
        kind = rule.trigger.kind or "noted by you"
        return f"previously failed {where} ({count}×: {kind})"


def is_of_a_clone(rule: HintRule, context: HintContext) -> bool:
    """Whether the rule is another clone's."""
    return rule.scope is Scope.PROJECT and rule.project != context.project


def _without_doubles(
    about: Iterable[tuple[HintRule, Found]], context: HintContext
) -> Iterable[tuple[HintRule, Found]]:
    """Leave out rules of other clones that say what a rule of the place's own says."""
    if not context.origin:
        return about
    own = {_says(rule) for rule, _ in about if not is_of_a_clone(rule, context)}
    return [
        (rule, found)
        for rule, found in about
        if not is_of_a_clone(rule, context) or _says(rule) not in own
    ]


def _says(rule: HintRule) -> tuple[Trigger, Remedy]:
    return rule.trigger, rule.remedy


def _holds(rule: HintRule, context: HintContext) -> bool:
    """Whether the rule is for this place: two texts may have one hash, and origins change."""
    if not is_of_a_clone(rule, context):
        return True
    root = rule.project.removesuffix("/.git")
    remedy = rule.remedy
    typed = (*remedy.before, *remedy.prefix, *(w for w in remedy.words if isinstance(w, str)))
    return rule.upstream == context.origin != "" and not any(root in text for text in typed)


def _is_about(rule: HintRule, failure_kind: str) -> bool:
    """Whether the rule is about this kind of failure: a person's is about all that teach."""
    kind = rule.trigger.kind
    return kind == failure_kind or (not kind and failure_kind not in UNTEACHABLE)


def _rank(about: tuple[HintRule, Found]) -> tuple[int, int, int, str]:
    """Sort by the segment, then by evidence."""
    rule, found = about
    return (found.segment, rule.d - rule.c, -rule.c, rule.id)


def _is_gone(rule: HintRule, line: CommandLine, found: Found, context: HintContext) -> bool:
    """Whether the cause is visibly gone: the program that was missing is there, or the modules."""
    steps = rule.remedy.before
    folder = (directory_of(line, found.segment, context.cwd) if steps else None) or context.cwd
    if is_mended(rule.trigger, rule.remedy, folder, context.virtual_env):
        return True
    if rule.trigger.kind != FailureKind.COMMAND_NOT_FOUND:
        return False
    is_first_word = found.segment == 0 and line.segments[0].wrappers == 0
    program = line.segments[found.segment].program
    if steps and may_run_others(program):
        return False
    if program in BUILTINS or (is_first_word and context.word_kind is not WordKind.UNKNOWN):
        return True
    return context.path is not None and is_there(program, context.path, context.cwd)


def can_run(remedy: Remedy, context: HintContext) -> bool:
    """Whether this shell finds the programs that the remedy names, as far as one can tell."""
    if context.path is None or remedy.shell_word:
        return True
    wrappers = [word for word in remedy.prefix[:1] if not is_assignment(word)]
    first = [part for part in remedy.words[:1] if isinstance(part, str)]
    steps = [segment.program for text in remedy.before for segment in parse(text).segments[:1]]
    return all(
        program in BUILTINS or "$" in program or is_there(program, context.path, context.cwd)
        for program in (*steps, *map(word_value, wrappers + first))
        if program
    )


def say(remedy: Remedy, line: CommandLine, found: Found, context: HintContext) -> str | None:
    """Return what to type: the whole line where that can be said, else the segment alone."""
    new = rewrite(remedy, line, found, Location(context.cwd, context.worktree))
    if new is None or not can_run(remedy, context):
        return None
    if not _is_plain(new.segment) or danger_in(new.segment) is not None:
        return None
    whole = new.line
    if whole is None or not _is_plain(whole) or len(line.segments) > SEGMENTS_MAX:
        return new.segment
    return whole if danger_of(line) is None else new.segment


def _is_plain(text: str) -> bool:
    """Whether the terminal shows this text whole, and as it is to be typed."""
    return is_harmless(text) and columns(text) <= COLUMNS_MAX and not PLACEHOLDER.search(text)


def says_the_same(remedy: str, line: CommandLine) -> bool:
    """Whether a line runs what a hint offered, whatever it runs besides."""
    wanted = _words_of(parse(remedy))
    ran = _words_of(line)
    places = range(len(ran) - len(wanted) + 1)
    return bool(wanted) and any(ran[at : at + len(wanted)] == wanted for at in places)


def _words_of(line: CommandLine) -> list[list[str]]:
    return [[word.text for word in (*s.assignments, *s.words)] for s in line.segments]


def _key(home: str, trigger: Trigger) -> int:
    return hash((home, anchor_of(trigger.words)))


def _each(packed: bytes | tuple[bytes, ...]) -> tuple[bytes, ...]:
    return (packed,) if isinstance(packed, bytes) else packed


def _join(packed: bytes | tuple[bytes, ...] | None, new: bytes) -> bytes | tuple[bytes, ...]:
    """Put a rule to the others with its anchor; beyond a bound the weakest goes."""
    if packed is None:
        return new
    joined = (*_each(packed), new)
    if len(joined) <= RULES_PER_ANCHOR:
        return joined
    rules = sorted((_decode(one) for one in joined), key=lambda rule: rule.d - rule.c)
    return tuple(map(_encode, rules[:RULES_PER_ANCHOR]))


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(HintRule).decode
