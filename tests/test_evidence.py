"""What runs say for and against rules, and the statuses that follow."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightrec.classify import classify
from flightrec.evidence import (
    DAY_US,
    LastOutcome,
    Mark,
    Reason,
    Result,
    Sight,
    Thresholds,
    is_offered,
    judge,
    look_for,
    next_outcome,
    result_of,
    status_of,
    weight,
)
from flightrec.rules import Origin, Remedy, Rule, Scope, Slot, Status, Trigger, Verdict
from flightrec.shell_words import parse
from learner import START_US, Learner, name_to_id, not_found

REST = Slot(9)
HERE, ELSEWHERE = name_to_id("here"), name_to_id("elsewhere")
NOT_FOUND = "command not found"


def make_rule(kind: str = "replace", **changes: Any) -> Rule:  # noqa: ANN401 - fields of Rule
    remedies = {
        "replace": Remedy("replace", words=("git", REST)),
        "prerequisite": Remedy("prerequisite", before=("npm install",)),
        "privilege": Remedy("privilege", prefix=("sudo",)),
    }
    rule = Rule(
        id="ERR-20261130-001",
        uid=bytes(16),
        status=Status.ACTIVE,
        trigger=Trigger(NOT_FOUND, ("gti", REST)),
        remedy=remedies[kind],
        scope=Scope.USER,
        project="/src/app",
        origin=Origin.RECORDED,
        proven=True,
        verdict=Verdict.NONE,
        created_us=START_US,
        last_us=START_US,
    )
    return msgspec.structs.replace(rule, **changes)


# -- how a part of a line ended -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "exit_", "more", "results"),
    [
        ("a", 0, {}, "p"),
        ("a && b", 0, {}, "pp"),
        ("a; b", 0, {}, "?p"),
        ("a || b", 0, {}, "?p"),
        ("a | b", 0, {}, "?p"),
        ("a | b", 0, {"pipestatus": (0, 0)}, "pp"),
        ("a && b | c", 0, {"pipestatus": (0, 0)}, "?pp"),
        ("a | b", 0, {"pipestatus": (1, 0)}, "??"),
        ("! a", 0, {}, "?"),
        ("a &", 0, {}, "?"),
        ("(a && b)", 0, {}, "??"),
        ("a", None, {}, "?"),
        ("gti", 127, {}, "f"),
        ("a && gti", 127, {}, "pf"),
        ("a; gti && b", 127, {}, "?f?"),
    ],
)
def test_a_part_of_a_line_ended_as_the_exit_tells_and_no_better(
    line: str, exit_: int | None, more: dict[str, Any], results: str
) -> None:
    run = Learner().run(line, exit_, not_found("gti") if exit_ else "", **more)
    parsed = parse(line)
    failure = classify(run, parsed)

    found = [result_of(parsed, i, run, failure, NOT_FOUND) for i in range(len(parsed.segments))]

    letters = {Result.PASSED: "p", Result.FAILED: "f", Result.UNKNOWN: "?"}
    assert "".join(letters[result] for result in found) == results


def test_another_kind_of_failure_says_nothing_about_the_rule() -> None:
    run = Learner().run("gti x", 126, "bash: gti: Permission denied\n")
    parsed = parse("gti x")
    failure = classify(run, parsed)

    assert result_of(parsed, 0, run, failure, NOT_FOUND) is Result.UNKNOWN
    assert result_of(parsed, 0, run, failure, "") is Result.FAILED


def test_red_tests_are_no_failure_for_a_rule_about_any() -> None:
    run = Learner().run("pytest", 1, "FAILED tests/test_x.py::test_y - assert 1 == 2\n1 failed\n")
    parsed = parse("pytest")

    assert result_of(parsed, 0, run, classify(run, parsed), "") is Result.UNKNOWN


def test_a_line_without_trigger_and_remedy_is_not_seen() -> None:
    run = Learner().run("ls")

    assert look_for(make_rule(), parse("ls"), run, None) is None
    assert look_for(make_rule(), parse("git x"), run, None) == Sight(
        None, Result.PASSED, prepared=False
    )


# -- R, C, D --------------------------------------------------------------------------------------

FAILED = Sight(Result.FAILED, None, prepared=False)
PASSED = Sight(Result.PASSED, None, prepared=False)
REMEDY_FAILED = Sight(None, Result.FAILED, prepared=False)
REMEDY_PASSED = Sight(None, Result.PASSED, prepared=False)


def last(
    session: bytes = HERE, *, failed: bool = True, mended: bool = False, signature: str = "s"
) -> LastOutcome:
    return LastOutcome(session, signature, 1, failed=failed, mended=mended)


def marks(
    rule: Rule, sight: Sight, outcome: LastOutcome | None, signature: str = "s"
) -> list[tuple[Mark, Reason]]:
    found = judge(rule, sight, outcome, HERE, signature)
    return [(judgement.mark, judgement.reason) for judgement in found]


AGAIN = (Mark.R, Reason.AGAIN)
IN_VAIN = (Mark.D, Reason.FAILED_TOO)
NOT_NEEDED = (Mark.D, Reason.PASSED)


@pytest.mark.parametrize(
    ("kind", "sight", "outcome", "expected"),
    [
        ("replace", FAILED, None, [AGAIN]),
        ("replace", FAILED, last(mended=True), [AGAIN]),
        ("prerequisite", FAILED, last(), [AGAIN]),
        ("prerequisite", FAILED, last(mended=True), [AGAIN, IN_VAIN]),
        ("prerequisite", FAILED, last(ELSEWHERE, mended=True), [AGAIN]),
        ("prerequisite", FAILED, last(mended=True, signature="other"), [AGAIN]),
        ("replace", REMEDY_FAILED, None, []),
        ("replace", REMEDY_FAILED, last(), [IN_VAIN]),
        ("replace", REMEDY_FAILED, last(ELSEWHERE), []),
        ("replace", REMEDY_FAILED, last(failed=False), []),
        ("replace", REMEDY_FAILED, last(signature="other"), [IN_VAIN]),
        ("privilege", REMEDY_FAILED, last(), [IN_VAIN]),
        ("privilege", REMEDY_FAILED, last(signature="other"), []),
        ("replace", PASSED, None, []),
        ("replace", PASSED, last(), [NOT_NEEDED]),
        ("replace", PASSED, last(ELSEWHERE), [NOT_NEEDED]),
        ("replace", PASSED, last(mended=True), []),
        ("replace", PASSED, last(failed=False), []),
        ("prerequisite", PASSED, last(), [NOT_NEEDED]),
        ("prerequisite", PASSED, last(ELSEWHERE), []),
        ("prerequisite", PASSED, last(mended=True), []),
        ("replace", REMEDY_PASSED, last(), []),
    ],
)
def test_a_run_counts_for_or_against_a_rule(
    kind: str, sight: Sight, outcome: LastOutcome | None, expected: list[tuple[Mark, Reason]]
) -> None:
    assert marks(make_rule(kind), sight, outcome) == expected


def test_a_remedy_of_a_rule_about_any_failure_fails_the_same_way_or_says_nothing() -> None:
    rule = make_rule(trigger=Trigger("", ("gti", REST)))

    assert marks(rule, REMEDY_FAILED, last(), "other") == []
    assert marks(rule, REMEDY_FAILED, last(), "s") == [IN_VAIN]


sights = st.builds(
    Sight,
    st.sampled_from([None, *Result]),
    st.sampled_from([None, *Result]),
    prepared=st.booleans(),
)
outcomes = st.builds(
    LastOutcome,
    st.sampled_from([HERE, ELSEWHERE]),
    st.sampled_from(["s", "t"]),
    st.integers(0, 5),
    failed=st.booleans(),
    mended=st.booleans(),
)


@given(st.sampled_from(["replace", "prerequisite", "privilege"]), st.lists(sights, max_size=20))
def test_outcomes_follow_from_what_was_seen(kind: str, seen: list[Sight]) -> None:
    """Failures are counted, a pass ends a failure, and only a failure can be mended."""
    outcome: LastOutcome | None = None
    failures = 0
    for sight in seen:
        against = [mark for mark, _ in marks(make_rule(kind), sight, outcome) if mark is Mark.D]
        assert len(against) <= 1
        assert not against or (outcome is not None and outcome.failed)
        outcome = next_outcome(outcome, sight, HERE, "s") or outcome
        failures += sight.trigger is Result.FAILED
        if outcome is not None:
            assert outcome.failures == failures
            assert outcome.failed or not outcome.mended
        if sight.trigger is Result.PASSED:
            assert outcome is not None
            assert not outcome.failed


@given(sights, outcomes)
def test_no_run_counts_against_a_rule_in_a_mended_state_but_by_failing(
    sight: Sight, outcome: LastOutcome
) -> None:
    mended = LastOutcome(HERE, outcome.signature, 1, failed=True, mended=True)
    found = judge(make_rule(), sight, mended, HERE, "s")

    assert all(judgement.reason is not Reason.PASSED for judgement in found)


# -- status ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("r", "c", "d", "status"),
    [
        (0, 1, 0, Status.ACTIVE),
        (1, 2, 0, Status.ACTIVE),
        (2, 1, 0, Status.PROMOTED),
        (0, 3, 0, Status.PROMOTED),
        (2, 1, 1, Status.ACTIVE),
        (2, 2, 1, Status.PROMOTED),
        (9, 9, 2, Status.PROMOTED),
        (9, 9, 3, Status.ARCHIVED),
    ],
)
def test_counts_make_the_status(r: int, c: int, d: int, status: Status) -> None:
    assert status_of(make_rule(r=r, c=c, d=d)) is status


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"proven": False}, Status.CANDIDATE),
        ({"proven": False, "verdict": Verdict.APPROVED}, Status.PROMOTED),
        ({"verdict": Verdict.REJECTED}, Status.ARCHIVED),
        ({"verdict": Verdict.RETIRED}, Status.ARCHIVED),
        ({"verdict": Verdict.GONE}, Status.ARCHIVED),
        ({"seen_in": ("/a", "/b")}, Status.SHARED),
        ({"flagged": True}, Status.SHARED),
        ({"flagged": True, "r": 0, "c": 1}, Status.ACTIVE),
        ({"d": 3, "pardoned": 3}, Status.PROMOTED),
        ({"d": 6, "pardoned": 3}, Status.ARCHIVED),
    ],
)
def test_the_person_s_word_and_places_weigh_in(changes: dict[str, Any], status: Status) -> None:
    assert status_of(make_rule(**{"r": 2, "c": 3, **changes})) is status


def test_thresholds_move_the_status() -> None:
    strict = Thresholds(promote_r=5, promote_c=9, archive_d=1, share_projects=3)

    assert status_of(make_rule(r=4, c=8), strict) is Status.ACTIVE
    assert status_of(make_rule(r=5, c=8, seen_in=("a", "b")), strict) is Status.PROMOTED
    assert status_of(make_rule(r=5, c=8, d=1), strict) is Status.ARCHIVED


@pytest.mark.parametrize(
    ("changes", "offered"),
    [
        ({}, True),
        ({"d": 1}, False),
        ({"d": 1, "pardoned": 1}, True),
        ({"status": Status.CANDIDATE}, False),
        ({"status": Status.ARCHIVED}, False),
        ({"held_back": "destructive: rm"}, False),
        ({"remedy": Remedy("lesson", lesson="wait")}, False),
    ],
)
def test_only_rules_with_more_for_than_against_are_offered(
    changes: dict[str, Any],
    offered: bool,  # noqa: FBT001 - a table
) -> None:
    assert is_offered(make_rule(**{"c": 1, **changes})) is offered


def test_evidence_weighs_half_after_ninety_days() -> None:
    rule = make_rule(r=2, c=3)

    assert weight(rule, START_US) == 8
    assert weight(rule, START_US + 90 * DAY_US) == 4
    assert weight(rule, START_US - DAY_US) == 8
