"""One run on its way: classify, store, count as evidence, pair, make a rule. The whole story."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from flightrec.classify import Failure, classify
from flightrec.errors import FlightrecError
from flightrec.evidence import (
    DEFAULT_THRESHOLDS,
    LastOutcome,
    Mark,
    Reason,
    Result,
    Sight,
    Thresholds,
    judge,
    look_for,
    next_outcome,
    outcome_of_other,
)
from flightrec.fingerprint import Fingerprints
from flightrec.generalise import Draft, draft_rule
from flightrec.hints import LET, HintRule, HintShown, says_the_same
from flightrec.ingest import CommandRun
from flightrec.lessons import lesson_for
from flightrec.matching import (
    SEGMENTS_MAX,
    anchor_of,
    is_opposite,
    prepares,
    probes,
    remedy_pattern,
    segment_values,
)
from flightrec.pairing import find_recoveries
from flightrec.parts import Parts, PartsOf, hidden_failure, is_part, passed_segments
from flightrec.person import Act, propose
from flightrec.prompt_corrections import Spoken, correction_of
from flightrec.redact import Safe
from flightrec.rulebook import Event, OpenHint, Rulebook, ShownHint
from flightrec.rules import Origin, Rule, Scope, Verdict, rule_key
from flightrec.session_history import Entry, Recovery, RecoveryKind, SessionHistory
from flightrec.session_memory import SessionMemory
from flightrec.shell_words import CommandLine, parse

CORRECTED_WITHIN_US = 30 * 60 * 1_000_000
"""How long after a command failed a person's word may be about it."""

OWN_PROGRAMS = frozenset(("flightrec", "flightrec-helper"))
"""What the person does with the recorder is no work to learn from."""


class RunStore(Protocol):
    """What the recorder asks of the store."""

    @property
    def connection(self) -> sqlite3.Connection:
        """The one connection, inside a transaction whenever the recorder is called."""

    def add_run(self, run: CommandRun) -> int | None:
        """Store a run; return its row id, or None where it was stored before."""


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """``stored`` is false for a run that was recorded before.

    ``changed`` is for the hint index. ``export`` tells that the set of exported rules, or what is
    exported of one, changed. ``recoveries`` is what this run mended.
    """

    stored: bool
    changed: tuple[HintRule, ...] = ()
    export: bool = False
    recoveries: tuple[Recovery, ...] = ()


_NOTHING_NEW = RecordOutcome(stored=True)


@dataclass(frozen=True, slots=True)
class _Step:
    """One run as all the steps see it.

    ``session`` is the one that it counts for, ``history`` what ran there before.
    """

    run: CommandRun
    line: CommandLine
    failure: Failure | None
    recoveries: tuple[Recovery, ...]
    session: bytes
    event: Event
    history: SessionHistory
    path: str

    @property
    def signature(self) -> str:
        return self.failure.signature if self.failure is not None else ""


class Recorder:
    """Learns from runs in the order in which they are handed in; not shared between threads.

    ``record`` and ``hint_shown`` write inside the caller's transaction. Where that transaction is
    rolled back, or runs or rules are deleted, make a new Recorder: what this one remembers would be
    ahead of the disk. ``path`` is the PATH on which a remedy's programs are looked up where that of
    a run's shell is not known.
    """

    def __init__(
        self,
        store: RunStore,
        thresholds: Thresholds = DEFAULT_THRESHOLDS,
        path: str | None = None,
    ) -> None:
        self._store = store
        self.book = Rulebook(store.connection, thresholds)
        self._path = os.environ.get("PATH", os.defpath) if path is None else path
        self._memory = SessionMemory(store.connection)
        self._fingerprints = Fingerprints()
        self._parts = Parts()
        self._waiting = self.book.sessions_with_open_hints()

    def record(self, run: CommandRun, path: str | None = None) -> RecordOutcome:
        """Store a run and learn from it; a part of a command says something about the command.

        ``path`` is the PATH of the run's shell, which is not stored.
        """
        if is_part(run):
            self._parts.add(run)
            self._store.add_run(run if run.exit else _without_tail(run))
            return _NOTHING_NEW
        line = parse(run.command)
        parts = self._parts.take(run.run)
        failure = classify(run, line) or hidden_failure(run, line, parts.failed)
        run = run if failure is None else failure.run
        row = self._store.add_run(run if failure is not None else _without_tail(run))
        if row is None:
            return RecordOutcome(stored=False)
        if failure is not None:
            self.book.add_failure(row, failure)
        recoveries = self._learn(run, line, failure, parts, path) if _teaches(run, line) else ()
        outcome = self.take_outcome()
        return replace(outcome, recoveries=recoveries) if recoveries else outcome

    def take_outcome(self) -> RecordOutcome:
        """Return what changed since this was called last, for the hint index and the exports."""
        if not self.book.has_changes:
            return _NOTHING_NEW
        changes = self.book.take_changes()
        return RecordOutcome(stored=True, changed=changes.rules, export=changes.export)

    def hint_shown(self, shown: HintShown, remedy: Safe) -> None:
        """Remember that a hint was shown; ``remedy`` is its line after redaction."""
        if shown.gate:
            self._close_earlier_gates(shown)
        self.book.add_hint(
            ShownHint(
                shown.rule,
                shown.session,
                shown.run,
                int(shown.phase),
                remedy,
                shown.at_us,
                shown.gate,
            )
        )
        self._waiting.add(shown.session)

    def _close_earlier_gates(self, shown: HintShown) -> None:
        """Note that nothing came of what the guard decided before, or that the agent insists."""
        outcome = "insisted" if shown.gate == LET else "ignored"
        for hint in self.book.open_hints(shown.session):
            if hint.gate and hint.rule == shown.rule:
                self.book.close_hint(hint.row, outcome)

    def corrected(
        self, session: bytes, spoken: Spoken, redact: Callable[[str], Safe], at_us: int
    ) -> None:
        """Keep as a candidate what a person told an agent to run, if a command has just failed."""
        entries = self._memory.history(session, before=b"").entries
        last = entries[-1] if entries else None
        failure = last.failure if last is not None else None
        if last is None or failure is None or not failure.teachable:
            return
        if at_us - last.run.started_us > CORRECTED_WITHIN_US:
            return
        segment = last.line.segments[failure.segment]
        failed = Safe(last.line.text[segment.start : segment.end])
        named = correction_of(failed, spoken)
        if named is not None:
            act = Act(at_us, last.run.project, session, last.run.origin)
            with contextlib.suppress(FlightrecError):  # it can be no half of a rule
                propose(self.book, failed, redact(named), act)

    def hint_rules(self) -> Iterator[HintRule]:
        """Return all rules for a new hint index."""
        return self.book.hint_rules()

    def session_ended(self, session: bytes) -> None:
        """Nothing more will come of this session."""
        for hint in self.book.open_hints(session) if session in self._waiting else ():
            self.book.close_hint(hint.row, "ignored")
        self._waiting.discard(session)
        self._memory.forget(session)

    # -- learning -------------------------------------------------------------------------------

    def _learn(
        self,
        run: CommandRun,
        line: CommandLine,
        failure: Failure | None,
        parts: PartsOf,
        path: str | None,
    ) -> tuple[Recovery, ...]:
        """Let a run speak for and against the known rules; return what it mended itself."""
        session = self._memory.session_of(run)
        history = self._memory.history(session, before=run.run)
        recoveries: tuple[Recovery, ...] = ()
        if failure is None and history.has_open_failures:
            recoveries = self._find_recoveries(run, line, history, passed_segments(line, parts))
        # Most runs passed, mended nothing, and are about no rule: they are only remembered.
        if failure or recoveries or run.session in self._waiting or self._is_about_a_rule(line):
            event = Event(run.run.hex(), session, run.project, run.started_us)
            self._learn_from(
                _Step(run, line, failure, recoveries, session, event, history, path or self._path)
            )
        history.add(run, line, failure, recoveries)
        return recoveries

    def _is_about_a_rule(self, line: CommandLine) -> bool:
        return any(self.book.is_about(s.program) for s in line.segments[:SEGMENTS_MAX])

    def _learn_from(self, step: _Step) -> None:
        """Count what a run says about hints, known rules and lessons; take in what it mended."""
        followed = self._follow_up(step) if step.run.session in self._waiting else None
        self._weigh_known_rules(step, followed)
        if step.failure is not None:
            self._remember_lesson(step, step.failure)
            if step.failure.teachable:
                self._fingerprints.take(step.failure)
        fresh: set[str] = set()
        for recovery in step.recoveries:
            self._take_in(recovery, step, fresh)

    def _weigh_known_rules(self, step: _Step, followed: str | None) -> None:
        """Count what this run says about the rules that it is about."""
        for rule in self._known_rules(step):
            sight = look_for(rule, step.line, step.run, step.failure)
            if sight is not None:
                self._weigh(rule, sight, step, is_plain=rule.id != followed)

    def _known_rules(self, step: _Step) -> list[Rule]:
        asked: list[str] = []
        for segment in step.line.segments[:SEGMENTS_MAX]:
            if self.book.is_about(segment.program):
                asked += probes(segment_values(segment))
        return self.book.about(step.run.project, asked, step.run.origin) if asked else []

    def _weigh(self, rule: Rule, sight: Sight, step: _Step, *, is_plain: bool) -> None:
        run, session = step.run, step.session
        last = self.book.last_outcome(rule.id, run.project, run.worktree)
        is_own = rule.belongs_to(run.project)  # else a clone's: hints want to know its outcome here
        if is_own and not (step.recoveries and sight.trigger is Result.PASSED):
            for judgement in judge(rule, sight, last, session, step.signature):
                if judgement.reason is Reason.PASSED and self._is_edited_since(last, step):
                    continue  # that the tree is another one now may be why it passed
                rule = self.book.count(rule, judgement.mark, judgement.reason, step.event)
        outcome = next_outcome(last, sight, session, step.signature)
        if outcome is not None:
            if is_own and sight.trigger is not None:
                rule = self._note_trigger(rule, step, failed=outcome.failed)
            self.book.note_outcome(rule, outcome, step.event, run.worktree)
        if is_own and sight.remedy is Result.PASSED and is_plain and not step.recoveries:
            self.book.count_use(rule)

    def _note_trigger(self, rule: Rule, step: _Step, *, failed: bool) -> Rule:
        """Keep the trigger's latest outcome anywhere, and how often it failed."""
        at_us = step.run.started_us
        latest = failed if at_us >= rule.outcome_us else rule.failed
        is_home = step.run.project == rule.project
        return self.book.update(
            rule,
            upstream=step.run.origin if is_home else rule.upstream,
            failures=rule.failures + failed,
            failed=latest,
            outcome_us=max(at_us, rule.outcome_us),
        )

    # -- recoveries -----------------------------------------------------------------------------

    def _find_recoveries(
        self, run: CommandRun, line: CommandLine, history: SessionHistory, seen: frozenset[int]
    ) -> tuple[Recovery, ...]:
        """Return what this run mended.

        Nothing that failed after it had begun, as in the background; nor what an edit of the work
        tree may have mended just as well as anything that was run.
        """
        return tuple(
            found
            for found in find_recoveries(run, line, history, seen)
            if not _began_before(run, found.failure.run)
            and not (found.circumstantial and self._is_edited(found.failure, run, line, history))
        )

    def _is_edited(
        self, failure: Failure, run: CommandRun, line: CommandLine, history: SessionHistory
    ) -> bool:
        """Whether the work tree was edited between a failure and this run."""
        later = [*history.after(failure), Entry(run, line, None)]
        return self._fingerprints.is_edited(failure, later)

    def _is_edited_since(self, last: LastOutcome | None, step: _Step) -> bool:
        """Whether the work tree was edited since a trigger failed in this session."""
        for entry in reversed(step.history.entries):
            failure = entry.failure
            if failure is not None and last is not None and failure.signature == last.signature:
                return self._is_edited(failure, step.run, step.line, step.history)
        return False

    def _take_in(self, recovery: Recovery, step: _Step, fresh: set[str]) -> None:
        """Count a recovery for its rule, which may be new; ``fresh`` are those made by this run."""
        if not self.book.add_recovery(recovery):
            return
        draft = draft_rule(recovery, step.path)
        if draft is None:
            return
        rule = self._rule_for(draft, recovery, step, fresh)
        self.book.explain_recovery(recovery, rule)
        if draft.proven and not rule.proven:
            rule = self.book.update(rule, proven=True)
        project = recovery.failure.run.project
        event = replace(step.event, project=project)
        if rule.id in fresh:
            rule = self._born(rule, recovery, event)
        else:
            rule = self.book.count(rule, Mark.C, Reason.RECOVERED, event)
        self._contradict(rule, event)
        self._close_lesson(recovery.failure)

    def _rule_for(self, draft: Draft, recovery: Recovery, step: _Step, fresh: set[str]) -> Rule:
        """Return the rule that says this, made or widened where need be."""
        project = recovery.failure.run.project
        upstream = _origin_of(project, recovery.failure.run, step.run)
        core = rule_key(draft.trigger, draft.remedy)
        known = self.book.same(
            core, project, bound=draft.bound, origin=upstream, quarantined=draft.scope is Scope.USER
        )
        if known is None:
            known = self.book.add(
                draft,
                kind="ERR",
                origin=Origin.RECORDED,
                project=project,
                at_us=step.event.at_us,
                upstream=upstream,
            )
            fresh.add(known.id)
        elif known.scope is Scope.PROJECT and known.project != project:
            known = self.book.widen(known)
        return known

    def _born(self, rule: Rule, recovery: Recovery, event: Event) -> Rule:
        """Give a new rule its first evidence, and what is known of its trigger so far."""
        rule = self.book.count(rule, Mark.FIRST, Reason.FIRST, event)
        run, failure = recovery.failure.run, recovery.failure
        passed = recovery.kind is not RecoveryKind.REPLACE and _is_trigger(rule, recovery)
        failed = Sight(Result.FAILED, None, prepared=False)
        outcome = next_outcome(
            self.book.last_outcome(rule.id, run.project, run.worktree),
            failed,
            event.session or b"",
            failure.signature,
        )
        assert outcome is not None  # noqa: S101 - a failure always is one
        outcome = replace(outcome, failed=not passed, mended=True)
        rule = self.book.update(
            rule, failures=rule.failures + 1, failed=not passed, outcome_us=event.at_us
        )
        return self.book.note_outcome(rule, outcome, event, run.worktree)

    def _contradict(self, rule: Rule, event: Event) -> None:
        """Count against both a rule and its opposite, each sighting of one against one of other."""
        pattern = remedy_pattern(rule.remedy)
        if rule.kind != RecoveryKind.REPLACE or not pattern:
            return
        for other in self.book.about(event.project, [anchor_of(pattern)]):
            if not is_opposite(rule.trigger, rule.remedy, other.trigger, other.remedy):
                continue
            if self.book.recoveries_counted(rule.id) <= self.book.recoveries_counted(other.id):
                self.book.count(self.book.fresh(rule), Mark.D, Reason.OPPOSITE, event)
                self.book.count(other, Mark.D, Reason.OPPOSITE, event)

    # -- hints ----------------------------------------------------------------------------------

    def _follow_up(self, step: _Step) -> str | None:
        """Say what became of hints shown before; return the rule whose remedy this run was."""
        followed = None
        open_hints = self.book.open_hints(step.run.session)
        for hint in open_hints:
            if _is_too_early(step.run, hint):
                continue
            rule = self.book.rule(hint.rule)
            if rule is None or not self._answers(hint, rule, step):
                continue
            followed = rule.id
        if not self.book.open_hints(step.run.session):
            self._waiting.discard(step.run.session)
        return followed

    def _answers(self, hint: OpenHint, rule: Rule, step: _Step) -> bool:
        """Close a hint by the command that came next; return whether that was its remedy."""
        if not says_the_same(hint.remedy, step.line):
            self._note_other(hint, rule, step)
            return False
        is_own = rule.belongs_to(step.run.project)
        if step.failure is None and step.run.exit == 0:
            self.book.close_hint(hint.row, "followed")
            if is_own:
                self._count_followed(hint, rule, step.event)
            return True
        self.book.close_hint(hint.row, "failed")
        if not is_own:
            return True
        if step.failure is not None and step.failure.kind.value == rule.failure_kind:
            self.book.count(rule, Mark.D, Reason.FAILED_TOO, step.event)
        return True

    def _count_followed(self, hint: OpenHint, rule: Rule, event: Event) -> None:
        """Count a remedy that worked; what a guard brings about proves no more than once a session.

        Else a rule that rewrites would prove itself all day.
        """
        if not hint.gate:
            self.book.count(rule, Mark.C, Reason.FOLLOWED, event)
        elif self.book.has_counted(rule.id, Reason.GUARDED, event.session):
            self.book.count_use(rule)
        else:
            self.book.count(rule, Mark.C, Reason.GUARDED, event)

    def _note_other(self, hint: OpenHint, rule: Rule, step: _Step) -> None:
        """Take note of a command that is not the remedy that was offered before it."""
        sight = look_for(rule, step.line, step.run, step.failure)
        is_own = rule.belongs_to(step.run.project)
        mended = self._is_mended(rule, step.run)
        outcome = outcome_of_other(hint.gate, sight, mended=mended)
        if outcome is None or prepares(rule.remedy, step.line):
            return
        self.book.close_hint(hint.row, outcome)
        if outcome == "followed" and is_own:
            self._count_followed(hint, rule, step.event)
        elif outcome == "passed" and is_own and not mended:
            self.book.count(rule, Mark.D, Reason.LET_THROUGH, step.event)

    def _is_mended(self, rule: Rule, run: CommandRun) -> bool:
        """Whether the command may pass as it is, since what the rule wants to run first has run."""
        last = self.book.last_outcome(rule.id, run.project, run.worktree)
        return rule.kind != RecoveryKind.REPLACE and last is not None and last.mended

    # -- lessons --------------------------------------------------------------------------------

    def _remember_lesson(self, step: _Step, failure: Failure) -> None:
        """Count a failure that no command mends; it is worth a word from its second session on."""
        draft = lesson_for(failure)
        if draft is None:
            return
        project = step.run.project
        known = self._lesson(draft, project)
        if known is None:
            known = self.book.add(
                draft, kind="GAP", origin=Origin.RECORDED, project=project, at_us=step.event.at_us
            )
            self.book.count(known, Mark.FIRST, Reason.LESSON, step.event)
            return
        known = self.book.count(known, Mark.R, Reason.AGAIN, step.event)
        if known.r and not known.proven:
            self.book.update(known, proven=True)

    def _lesson(self, draft: Draft, project: str) -> Rule | None:
        core = rule_key(draft.trigger, draft.remedy)
        return self.book.same(core, project, bound=draft.scope is Scope.PROJECT)

    def _close_lesson(self, failure: Failure) -> None:
        """Take a lesson back: a remedy was found after all."""
        draft = lesson_for(failure)
        if draft is None:
            return
        known = self._lesson(draft, failure.run.project)
        if known is not None and known.verdict is Verdict.NONE:
            self.book.update(known, verdict=Verdict.GONE)


def _origin_of(project: str, *runs: CommandRun) -> str:
    """Return the origin of a project that these runs know; one read back from disk knows none."""
    return next((run.origin for run in runs if run.project == project and run.origin), "")


def _is_too_early(run: CommandRun, hint: OpenHint) -> bool:
    """Whether this is the command that a hint was shown for, or one that ran already.

    What a guard let an agent do may bear the id of what it asked for.
    """
    if hint.run == run.run:
        return not hint.gate
    return run.started_us < hint.at_us


def _began_before(run: CommandRun, other: CommandRun) -> bool:
    if run.boot == other.boot:
        return run.mono_us < other.mono_us
    return run.started_us < other.started_us


def _teaches(run: CommandRun, line: CommandLine) -> bool:
    """Whether anything may be learned from this run: it is whole, mine, and about work."""
    if not run.mine or run.truncated or run.exit is None:
        return False
    if "flightrec" in run.command and _is_own(line):
        return False
    return _is_utf8(run.command + run.project + run.worktree + run.cwd)


def _is_own(line: CommandLine) -> bool:
    return any(segment.program.rpartition("/")[2] in OWN_PROGRAMS for segment in line.segments)


def _is_utf8(text: str) -> bool:
    """Whether a rule can hold this text: bytes of another encoding cannot be typed again."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_tail(run: CommandRun) -> CommandRun:
    """Return the run less what a true success wrote: nobody is to read that."""
    return replace(run, tail=Safe("")) if run.tail else run


def _is_trigger(rule: Rule, recovery: Recovery) -> bool:
    """Whether the run that mended it was the failed command itself, now passing."""
    sight = look_for(rule, recovery.fix_line, recovery.fix, None)
    return sight is not None and sight.trigger is not None
