"""What a run says for or against a rule, and what becomes of the rule: pure decisions.

R: the trigger failed again. C: the remedy worked where it was needed. D: it did not, or was not
needed, or the person says no. Each real event counts once; the rulebook's unique keys see to that.
"""

import enum
import math
from dataclasses import dataclass, replace

from flightrec.classify import Failure
from flightrec.hints import LET
from flightrec.ingest import CommandRun
from flightrec.matching import Location, find_remedy, find_trigger, prepares
from flightrec.pairing import RecoveryKind
from flightrec.rules import Guard, Rule, Status, Verdict
from flightrec.shell_words import CommandLine

DAY_US = 24 * 60 * 60 * 1_000_000
HALF_LIFE_DAYS = 90


class Mark(enum.StrEnum):
    """What an event counts as."""

    FIRST = "first"
    R = "R"
    C = "C"
    D = "D"


class Reason(enum.StrEnum):
    """Why it counts, in the words that ``flightrec why`` shows."""

    FIRST = "failed, and a remedy was found"
    LESSON = "failed, and nothing mended it"
    AGAIN = "failed again"
    RECOVERED = "failed, and the remedy worked"
    FOLLOWED = "the remedy worked after the hint"
    GUARDED = "the remedy worked in the place of what the guard stopped"
    FAILED_TOO = "the remedy failed in the same way"
    LET_THROUGH = "passed, though the guard had spoken against it"
    PASSED = "passed without the remedy"
    OPPOSITE = "the opposite was the remedy"
    APPROVED = "approved by the person"
    TAUGHT = "taught by the person"
    DISMISSED = "dismissed by the person"
    REJECTED = "rejected by the person"
    RETIRED = "retired by the person"


class Result(enum.Enum):
    """How one segment of a line ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sight:
    """What one run shows of one rule: how its trigger and its remedy ended, None where absent.

    ``prepared``: something ran of what the remedy wants to run first.
    """

    trigger: Result | None
    remedy: Result | None
    prepared: bool


@dataclass(frozen=True, slots=True)
class LastOutcome:
    """What became of the trigger in this worktree before this run.

    ``session`` and ``signature`` are those of its last failure; ``mended`` tells that something of
    the remedy ran since.
    """

    session: bytes
    signature: str
    failures: int
    failed: bool
    mended: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """A mark that a run earns a rule."""

    mark: Mark
    reason: Reason


def result_of(
    line: CommandLine, index: int, run: CommandRun, failure: Failure | None, kind: str
) -> Result:
    """Return how a segment ended, as far as the line's exit tells.

    FAILED only where it failed with this kind (where empty: with any that teaches something); a
    segment that nobody saw end is UNKNOWN.
    """
    if failure is not None:
        if failure.segment == index:
            same = failure.kind.value == kind or (not kind and failure.teachable)
            return Result.FAILED if same else Result.UNKNOWN
        passed = index < failure.segment and _all_passed(line, index, failure.segment)
        return Result.PASSED if passed else Result.UNKNOWN
    if run.exit != 0 or line.compound or line.background or any(run.pipestatus):
        return Result.UNKNOWN
    last = len(line.segments) - 1
    passed = _all_passed(line, index, last) or _pipe_passed(line, index, len(run.pipestatus))
    return Result.PASSED if passed else Result.UNKNOWN


def _all_passed(line: CommandLine, index: int, last: int) -> bool:
    """Whether reaching ``last`` means that the segment before it passed."""
    chained = all(operator.text == "&&" for operator in line.operators[index:last])
    return chained and not any(segment.negated for segment in line.segments[index : last + 1])


def _pipe_passed(line: CommandLine, index: int, statuses: int) -> bool:
    """Whether the segment stands in the pipe whose statuses (all zero) were seen."""
    after = line.operators[index:]
    return len(after) < statuses and all(operator.text in ("|", "|&") for operator in after)


def look_for(
    rule: Rule, line: CommandLine, run: CommandRun, failure: Failure | None
) -> Sight | None:
    """Return what this run shows of the rule, or None where it is not about it."""
    here = Location(run.cwd, run.worktree)
    found = find_trigger(rule.trigger, rule.remedy, line, here)
    remedy = find_remedy(rule.trigger, rule.remedy, line, here)
    if found is not None and remedy == found.segment:
        remedy = None  # a remedy that leaves a word out fits the trigger too
    sight = Sight(
        None if found is None else result_of(line, found.segment, run, failure, rule.failure_kind),
        None if remedy is None else result_of(line, remedy, run, failure, rule.failure_kind),
        prepares(rule.remedy, line),
    )
    return None if sight == Sight(None, None, prepared=False) else sight


def judge(
    rule: Rule, sight: Sight, last: LastOutcome | None, session: bytes, signature: str
) -> tuple[Judgement, ...]:
    """Return the marks that follow from one run. ``signature`` is that of its failure, or empty.

    A run that is itself the end of a recovery is judged there.
    """
    if sight.trigger is Result.FAILED:
        again = Judgement(Mark.R, Reason.AGAIN)
        in_vain = last is not None and _was_tried_in_vain(rule, last, session, signature)
        return (again, Judgement(Mark.D, Reason.FAILED_TOO)) if in_vain else (again,)
    if sight.remedy is Result.FAILED and last is not None and _is_open(last, session):
        other_words = rule.kind == RecoveryKind.REPLACE and bool(rule.failure_kind)
        if other_words or signature == last.signature:
            return (Judgement(Mark.D, Reason.FAILED_TOO),)
    elif (
        sight.trigger is Result.PASSED and last is not None and _was_not_needed(rule, last, session)
    ):
        return (Judgement(Mark.D, Reason.PASSED),)
    return ()


def _is_open(last: LastOutcome, session: bytes) -> bool:
    """Whether the trigger failed in this session and did not pass since."""
    return last.failed and last.session == session


def _was_tried_in_vain(rule: Rule, last: LastOutcome, session: bytes, signature: str) -> bool:
    """Whether what the remedy wants to run first did run, and it failed the same way again."""
    return (
        bool(rule.remedy.before)
        and last.mended
        and _is_open(last, session)
        and signature == last.signature
    )


def _was_not_needed(rule: Rule, last: LastOutcome, session: bytes) -> bool:
    """Whether a pass says that the remedy is not needed.

    A state that something mended says nothing. What mends a prerequisite, a directory, the
    environment or rights may happen where nobody sees it, so that only the same session counts.
    """
    if not last.failed or last.mended:
        return False
    return rule.kind == RecoveryKind.REPLACE or last.session == session


def outcome_of_other(gate: str, sight: Sight | None, *, mended: bool) -> str | None:
    """Return what becomes of a hint or a gate by a command that is not its remedy; None is nothing.

    ``gate`` is empty for a hint, which is ignored by whatever comes next. What a guard let through,
    or the person allowed, speaks for itself; what it rewrote is still to come. ``mended``: what the
    remedy wants to run first has run, so that a command that was denied may pass now.
    """
    trigger = sight.trigger if sight is not None else None
    if gate == Guard.DENY and mended and trigger is Result.PASSED:
        return "followed"
    if gate in (Guard.ASK, LET) and trigger is not None:
        return _LET_OUTCOMES[trigger]
    return None if gate in (Guard.REWRITE, LET) else "ignored"


_LET_OUTCOMES = {
    Result.PASSED: "passed",
    Result.FAILED: "recurred",
    Result.UNKNOWN: "ignored",
}


def next_outcome(
    last: LastOutcome | None, sight: Sight, session: bytes, signature: str
) -> LastOutcome | None:
    """Return what is to be remembered of the trigger in this worktree; None is nothing new."""
    if sight.trigger is Result.FAILED:
        failures = (last.failures if last else 0) + 1
        return LastOutcome(session, signature, failures, failed=True, mended=False)
    if sight.trigger is Result.PASSED:
        failures = last.failures if last else 0
        return LastOutcome(session, "", failures, failed=False, mended=False)
    ran = sight.prepared or sight.remedy in (Result.PASSED, Result.FAILED)
    if ran and last is not None and last.failed and not last.mended:
        return replace(last, mended=True)
    return None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From when on a rule is promoted or archived; the person's settings may differ."""

    promote_r: int = 2
    promote_c: int = 3
    archive_d: int = 3
    share_projects: int = 2


DEFAULT_THRESHOLDS = Thresholds()

_ENDED = frozenset((Verdict.REJECTED, Verdict.RETIRED, Verdict.GONE))


def status_of(rule: Rule, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Status:
    """Return where the rule stands by its counts and the person's word; nothing else matters.

    So a promoted rule that is contradicted falls back, and the same evidence in any order leads to
    the same status.
    """
    against = rule.d - rule.pardoned
    if rule.verdict in _ENDED or against >= thresholds.archive_d:
        return Status.ARCHIVED
    if not rule.proven and rule.verdict is not Verdict.APPROVED:
        return Status.CANDIDATE
    often = rule.r >= thresholds.promote_r or rule.c >= thresholds.promote_c
    if not often or rule.c <= against:
        return Status.ACTIVE
    shared = rule.flagged or len(rule.seen_in) >= thresholds.share_projects
    return Status.SHARED if shared else Status.PROMOTED


def is_offered(rule: Rule) -> bool:
    """Whether hints may show the rule at all."""
    return (
        rule.status in (Status.ACTIVE, Status.PROMOTED, Status.SHARED)
        and rule.c > rule.d - rule.pardoned
        and not rule.held_back
        and not rule.remedy.lesson
    )


def weight(rule: Rule, now_us: int) -> float:
    """Return how much a rule deserves one of few places: evidence that fades with time."""
    age_days = max(0, now_us - rule.last_us) / DAY_US
    balance = rule.r + 2 * rule.c - 2 * (rule.d - rule.pardoned)
    return balance * math.pow(0.5, age_days / HALF_LIFE_DAYS)
