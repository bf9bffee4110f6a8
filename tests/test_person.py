"""What the person says about rules."""

from dataclasses import replace

import pytest

from flightrec.errors import FlightrecError
from flightrec.person import (
    Act,
    approve,
    correct,
    dismiss,
    edit,
    learn,
    reject,
    retire,
    share,
)
from flightrec.redact import Safe
from flightrec.rule_text import failing_command, working_command
from flightrec.rulebook import Rulebook
from flightrec.rules import Origin, Rule, Scope, Status
from learner import START_US, Learner, not_found

ACT = Act(START_US + 7, "/src/app")


def later(number: int) -> Act:
    return Act(START_US + number, "/src/app")


@pytest.fixture
def learner() -> Learner:
    """Somebody who mistyped ``gti`` once."""
    learner = Learner()
    learner.type("gti status", 127, not_found("gti"))
    learner.type("git status")
    return learner


@pytest.fixture
def book(learner: Learner) -> Rulebook:
    return learner.recorder.book


def teach(book: Rulebook, failing: str, working: str, *, everywhere: bool = True) -> Rule:
    return learn(book, Safe(failing), Safe(working), ACT, everywhere=everywhere)


def test_approving_confirms_once(learner: Learner, book: Rulebook) -> None:
    for number in range(3):
        rule = approve(book, learner.rule.id, later(number))

    assert (rule.c, rule.status) == (2, Status.ACTIVE)


def test_approving_pardons_what_spoke_against_the_rule(learner: Learner, book: Rulebook) -> None:
    for number in range(3):
        rule = dismiss(book, learner.rule.id, later(number))
    assert rule.status is Status.ARCHIVED

    rule = approve(book, learner.rule.id, later(9))

    assert (rule.d, rule.status) == (3, Status.ACTIVE)
    learner.restart()
    assert learner.ask("gti log", session="two")


def test_dismissing_counts_against_a_rule(learner: Learner, book: Rulebook) -> None:
    rule = dismiss(book, learner.rule.id, ACT)

    assert rule.d == 1
    learner.index.update(learner.recorder.take_outcome().changed)
    assert learner.ask("gti log", session="two") == ""


@pytest.mark.parametrize("verb", [reject, retire])
def test_a_rule_that_the_person_does_not_want_stays_away(
    learner: Learner,
    book: Rulebook,
    verb: type,
) -> None:
    verb(book, learner.rule.id, ACT)
    for session in ("two", "three", "four"):
        learner.type("gti status", 127, not_found("gti"), session=session)
        learner.type("git status", session=session)

    assert (learner.rule.status, learner.rule.d) == (Status.ARCHIVED, 1)
    assert learner.ask("gti log", session="five") == ""


def test_a_flagged_rule_is_shared_as_soon_as_it_is_promoted(
    learner: Learner, book: Rulebook
) -> None:
    assert share(book, learner.rule.id).status is Status.ACTIVE
    for session in ("two", "three"):
        learner.type("gti status", 127, not_found("gti"), session=session)

    assert learner.rule.status is Status.SHARED
    assert learner.rule.shared_us is not None


def test_editing_makes_a_new_rule_in_the_old_one_s_place(learner: Learner, book: Rulebook) -> None:
    new = edit(book, learner.rule.id, Safe("git --no-pager ..."), ACT)

    assert new.id == "COR-20261130-001"
    assert working_command(new) == "git --no-pager ..."
    assert (new.origin, new.c, new.status) == (Origin.PERSON, 1, Status.ACTIVE)
    assert {rule.id[:3]: rule.status for rule in book.rules()} == {
        "ERR": Status.ARCHIVED,
        "COR": Status.ACTIVE,
    }
    learner.restart()
    assert learner.ask("gti log", session="two").endswith("try: git --no-pager log")


def test_editing_to_the_same_changes_nothing(learner: Learner, book: Rulebook) -> None:
    rule = learner.rule

    assert edit(book, rule.id, Safe("git ..."), ACT) == rule


@pytest.mark.parametrize(
    ("failing", "working", "line", "expected"),
    [
        ("pytest", "python3 -m pytest", "pytest -q x", "python3 -m pytest -q x"),
        ("pytest ...", "python3 -m pytest ...", "pytest x", "python3 -m pytest x"),
        ("npm ci", "npm install", "npm ci", "npm install"),
        ("npm ci", "npm install", "npm ci --x", None),
        ("npm test", "npm install && npm test", "npm test", "npm install && npm test"),
        ("make ...", "A=1 make ...", "make all", "A=1 make all"),
        ("apt update", "sudo apt update", "apt update", "sudo apt update"),
        ("ls --colr=...", "ls --color=...", "ls --colr=auto", "ls --color=auto"),
        ("foo ... bar ...", "baz ... qux ...", "foo 1 2 bar 3", "baz 1 2 qux 3"),
        ("say '...'", "say 'dots'", "say ...", "say dots"),
    ],
)  # fmt: skip
def test_a_rule_is_learned_from_two_commands(
    failing: str, working: str, line: str, expected: str | None
) -> None:
    learner = Learner()
    with learner.store.transaction():
        rule = teach(learner.recorder.book, failing, working)
    learner.index.update(learner.recorder.take_outcome().changed)
    context = replace(learner.context(learner.run(line, session="two")), path=None)
    hint = learner.index.find(context)

    assert rule.id == "LRN-20261130-001"
    assert (hint.remedy if hint else None) == expected


def test_what_the_person_taught_counts_the_failures_that_come() -> None:
    learner = Learner()
    teach(learner.recorder.book, "frobnicate ...", "git frob ...")
    for session in ("one", "two"):
        learner.type("frobnicate x", 127, not_found("frobnicate"), session=session)

    assert learner.counts() == (2, 1, 0)
    assert learner.rule.status is Status.PROMOTED


def test_teaching_what_is_known_approves_it(book: Rulebook) -> None:
    one = teach(book, "npm ci", "npm install")
    two = teach(book, "npm ci", "npm install")

    assert two.id == one.id
    assert (one.c, two.c) == (1, 2)


def test_a_rule_can_be_taught_for_one_project_only(book: Rulebook) -> None:
    rule = teach(book, "npm ci", "npm install", everywhere=False)

    assert (rule.scope, rule.project) == (Scope.PROJECT, "/src/app")


def test_a_correction_has_its_own_kind_of_id(book: Rulebook) -> None:
    rule = correct(book, Safe("npm ci"), Safe("npm install"), ACT)

    assert rule.id == "COR-20261130-001"
    assert failing_command(rule) == "npm ci"


def test_a_dangerous_or_secret_remedy_is_kept_and_not_offered(book: Rulebook) -> None:
    assert teach(book, "npm i", "npm i --force").held_back == "forcing: npm --force"
    assert teach(book, "psql", "PGPASSWORD=‹secret:password› psql").held_back == "it holds a secret"


@pytest.mark.parametrize(
    ("failing", "working"),
    [
        ("", "x"),
        ("x", ""),
        ("a && b", "c"),
        ("a", "b | c"),
        ("a", "b 'c"),
        ("a", "a ..."),
        ("a", "if b; then c; fi"),
        ("a", "b ... ... ..."),
        ("a", "... b"),
        ("... a", "b"),
        ("a", "b\nc"),
        ("a", "b \x1b"),
        ("a", "b " * 200),
    ],
)
def test_what_is_no_rule_is_refused_with_one_line(
    book: Rulebook, failing: str, working: str
) -> None:
    before = book.rules()

    with pytest.raises(FlightrecError) as refused:
        teach(book, failing, working)

    assert "\n" not in str(refused.value).replace(working, "").replace(failing, "")
    assert book.rules() == before


def test_an_unknown_rule_is_named(book: Rulebook) -> None:
    with pytest.raises(FlightrecError, match="no rule ERR-1"):
        approve(book, "ERR-1", ACT)


def test_ids_may_be_typed_in_small_letters(learner: Learner, book: Rulebook) -> None:
    assert dismiss(book, learner.rule.id.lower(), ACT).d == 1
