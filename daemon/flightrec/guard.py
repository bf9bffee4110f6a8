"""A proved rule that speaks before an agent's command runs: asks, denies or rewrites it.

A gate does more than a hint, so more is asked of it: that the person opted in for this rule or this
project, that the rule is promoted and fit to be read by a model, that it was confirmed three times
and never contradicted, and that its hint would be due right now. What comes from another clone or
another project never gates, and a first contradiction ends it at once.

Nobody is locked in. Who sends the same command again within the hour is let through, and what
becomes of that counts as evidence.
"""

from collections import OrderedDict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import msgspec

from flightrec.dangers import danger_in, danger_of
from flightrec.harmless import make_harmless
from flightrec.hints import (
    COMMAND_MAX,
    LET,
    Due,
    HintContext,
    HintIndex,
    HintRule,
    HintShown,
    can_run,
    is_of_a_clone,
    say,
    says_the_same,
)
from flightrec.matching import (
    SEGMENTS_MAX,
    Location,
    find_remedy,
    find_trigger,
    rewrite,
    segment_values,
)
from flightrec.redact import PLACEHOLDER
from flightrec.rule_text import working_text
from flightrec.rules import Guard, Remedy
from flightrec.shell_words import parse
from flightrec.wire import Phase

CONFIRMED_MIN = 3
"""Confirmations that a gate needs; contradictions may be none."""

INSISTS_FOR_US = 60 * 60 * 1_000_000
"""Who was denied a command and sends it again in this time is let through."""

DENIALS_MAX = 3
"""By one rule in one session in this time, whatever words vary; then it keeps silent."""

SESSIONS_MAX = 1024

ALL_MODES = frozenset((Guard.ASK, Guard.DENY, Guard.REWRITE))

_KIND_TO_REWRITE = "replace"
_RAISE_RIGHTS = frozenset(("sudo", "doas", "su", "pkexec", "run0"))


@dataclass(frozen=True, slots=True)
class Gate:
    """What to do with a command about to run: ``mode`` is ASK, DENY or REWRITE.

    ``reason`` is one plain, harmless line of a few hundred characters at most, for the model (for
    ASK: the person); ``remedy`` is the command that it names. ``rewritten`` is the whole line to
    run instead, exact, for REWRITE only. Whoever passes it on must not give it more rights than the
    client would have given the command that was asked for.
    """

    mode: Guard
    rule: str
    reason: str
    remedy: str
    rewritten: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A gate, or None where the agent insists and is let through.

    ``shown`` goes to the writer in both cases: what happens next is evidence.
    """

    gate: Gate | None
    shown: HintShown


class _Stop(msgspec.Struct):
    """That a rule stopped commands in a session: which ones, how often, and when last.

    ``remedy`` is what it offered. ``in_vain``: that is not good enough, so the same command may
    pass. One that was denied needs no more than to be sent again, one that was rewritten must have
    failed in its new words.
    """

    remedy: str
    at_us: int
    commands: frozenset[tuple[str, ...]]
    times: int
    in_vain: bool


class Guards:
    """What the person opted in to, and which commands were stopped in which session."""

    def __init__(self) -> None:
        self._projects: Mapping[str, Guard] = {}
        self._stops: OrderedDict[bytes, dict[str, _Stop]] = OrderedDict()

    def use(self, projects: Mapping[str, Guard]) -> None:
        """Guard these projects by all their rules, and no other ones."""
        self._projects = projects

    def decide(
        self, index: HintIndex, context: HintContext, able: AbstractSet[Guard] = ALL_MODES
    ) -> Decision | None:
        """Return what to do with this command, or None where no rule gates it.

        ``able`` are the modes that the agent can follow: one that cannot rewrite or ask is denied.
        """
        self._note_tries(context)
        for due in index.due(context):
            mode = mode_of(due.rule, self._projects, context)
            gate = None
            if mode is not Guard.OFF:
                gate = make_gate(due, mode, index.reason(due.rule, context), context, able)
            if gate is not None:
                return self._remember(gate, due, index, context)
        return None

    def ended(self, session: bytes, command: str, *, failed: bool) -> None:
        """Take note of how a command ended; ``failed``: as a command, which red tests are not."""
        stops = self._stops.get(session)
        if not stops:
            return
        line = parse(command)
        for stop in stops.values():
            if says_the_same(stop.remedy, line):
                stop.in_vain = failed

    def awaits(self, session: bytes) -> bool:
        """Whether it matters how commands of this session end."""
        return session in self._stops

    def forget_session(self, session: bytes) -> None:
        """Nothing more will come of this session."""
        self._stops.pop(session, None)

    def _note_tries(self, context: HintContext) -> None:
        """Whoever does as he was told is not about to insist: that occasion is over."""
        stops = self._stops.get(context.session)
        if not stops or len(context.command) > COMMAND_MAX:
            return
        line = parse(context.command)
        for rule, stop in list(stops.items()):
            if says_the_same(stop.remedy, line):
                del stops[rule]

    def _remember(self, gate: Gate, due: Due, index: HintIndex, context: HintContext) -> Decision:
        """Note what is stopped, unless the same was stopped before and is to pass now."""
        stops = self._stops.setdefault(context.session, {})
        self._stops.move_to_end(context.session)
        if len(self._stops) > SESSIONS_MAX:
            self._stops.popitem(last=False)
        command = tuple(segment_values(due.line.segments[due.found.segment]))
        offered = gate.rewritten or gate.remedy
        before = _lasting(stops.get(gate.rule), context.now_us)
        if before is not None and gate.mode is not Guard.ASK and _may_pass(before, command):
            return Decision(None, _shown(gate.rule, LET, offered, context))
        if gate.mode is not Guard.ASK:
            stops[gate.rule] = _Stop(
                offered,
                context.now_us,
                frozenset((command,)) | (before.commands if before else frozenset()),
                1 + (before.times if before else 0),
                in_vain=gate.mode is Guard.DENY,
            )
        index.note_shown(due.rule, context, gate.remedy)
        return Decision(gate, _shown(gate.rule, gate.mode.value, offered, context))


def mode_of(rule: HintRule, projects: Mapping[str, Guard], context: HintContext) -> Guard:
    """Return what a rule may do to a command here: OFF unless it was opted in and is clear."""
    wanted = rule.guard or projects.get(context.project, Guard.OFF)
    return wanted if is_clear(rule) and not is_of_a_clone(rule, context) else Guard.OFF


def is_clear(rule: HintRule) -> bool:
    """Whether nothing speaks against the rule and enough for it."""
    is_sure = rule.c >= CONFIRMED_MIN and rule.d == 0
    return is_sure and rule.told is not None and not rule.remedy.shell_word


def make_gate(
    due: Due, mode: Guard, why: str, context: HintContext, able: AbstractSet[Guard]
) -> Gate | None:
    """Return the gate of a rule that is due; None where there is nothing to say instead."""
    if _is_remedy(due, context):
        return None
    remedy = _name_remedy(due, context)
    if remedy is None:
        return None
    rewritten = rewritten_line(due, context) if mode is Guard.REWRITE else None
    if mode not in able or (mode is Guard.REWRITE and rewritten is None):
        mode, rewritten = Guard.DENY, None
    reason = make_harmless(_REASONS[mode].format(why=why, remedy=remedy))
    return Gate(mode, due.rule.id, reason, remedy, rewritten)


def _name_remedy(due: Due, context: HintContext) -> str | None:
    """Return the remedy as typed here; where that is too long to be said, in the rule's words.

    Agents send whole programs in one line.
    """
    rule, line, found = due
    said = say(rule.remedy, line, found, context)
    if said is not None:
        return said
    new = rewrite(rule.remedy, line, found, Location(context.cwd, context.worktree))
    if new is None or not can_run(rule.remedy, context) or danger_in(new.segment) is not None:
        return None
    return working_text(rule.trigger, rule.remedy)


_REASONS = {
    Guard.ASK: "flightrec: {why}; what worked: {remedy}",
    Guard.DENY: "flightrec: not run: {why}; try: {remedy} (sent once more, it runs as it is)",
    Guard.REWRITE: "flightrec: {why}; run instead: {remedy}",
}


def rewritten_line(due: Due, context: HintContext) -> str | None:
    """Return the whole line as the rule wants it, or None where that is not safe and exact.

    Only words are replaced: what is to run first, or elsewhere, or with more rights, is for
    somebody to decide. Every part of the line that the rule is about is rewritten.
    """
    rule, line, found = due
    if not _only_replaces(rule.remedy):
        return None
    here = Location(context.cwd, context.worktree)
    for _ in range(SEGMENTS_MAX):
        new = rewrite(rule.remedy, line, found, here)
        if new is None or new.line is None or PLACEHOLDER.search(new.segment):
            return None
        line = parse(new.line)
        again = find_trigger(rule.trigger, rule.remedy, line, here)
        if again is None or again.segment <= found.segment:
            return new.line if danger_of(line) is None else None
        found = again
    return None


def _only_replaces(remedy: Remedy) -> bool:
    fixed = {word for word in (*remedy.prefix, *remedy.words) if isinstance(word, str)}
    return (
        remedy.kind == _KIND_TO_REWRITE
        and not remedy.before
        and remedy.directory is None
        and not fixed & _RAISE_RIGHTS
    )


def _is_remedy(due: Due, context: HintContext) -> bool:
    """Whether what the rule is about is what it offers: its trigger may fit its own remedy."""
    here = Location(context.cwd, context.worktree)
    at = find_remedy(due.rule.trigger, due.rule.remedy, due.line, here)
    return at is not None and at == due.found.segment


def _lasting(stop: _Stop | None, now_us: int) -> _Stop | None:
    return stop if stop is not None and now_us - stop.at_us < INSISTS_FOR_US else None


def _may_pass(stop: _Stop, command: tuple[str, ...]) -> bool:
    return stop.in_vain and (command in stop.commands or stop.times >= DENIALS_MAX)


def _shown(rule: str, gate: str, remedy: str, context: HintContext) -> HintShown:
    return HintShown(rule, context.session, context.run, Phase.START, remedy, context.now_us, gate)
