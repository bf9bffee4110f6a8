"""What an agent is told when its session begins: proved rules of its project, few and harmless."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from flightrec.briefing import BYTES_MAX, LINES_MAX, Briefings, make_briefing
from flightrec.evidence import DAY_US, weight
from flightrec.hints import HintRule, Told
from flightrec.rule_text import LABEL
from flightrec.rulebook import hint_rule
from flightrec.rules import Remedy, Rule, Scope, Slot, Status, Trigger, Verdict
from flightrec.told import told_of, why_no_gate, why_not_told
from hint_rules import make_hint_rule
from learner import Learner, make_program, not_found

REST = Slot(9)
HERE = "/src/app"


def make_rule(number: int = 1, **changes: Any) -> HintRule:  # noqa: ANN401 - fields of HintRule
    fields: dict[str, Any] = {
        "id": f"ERR-20261130-{number:03}",
        "trigger": Trigger("command not found", (f"gti{number}", REST)),
        "remedy": Remedy("replace", words=("git", REST)),
        "scope": Scope.PROJECT,
        "project": HERE,
        "told": Told(f"- line {number}", (HERE,), float(number)),
    }
    return make_hint_rule(**{**fields, **changes})


def lines_for(project: str, *rules: HintRule) -> list[str]:
    """Return the briefing's lines below its label."""
    briefings = Briefings()
    briefings.update(rules)
    head, _, body = briefings.brief(project).partition("\n\n")
    assert head == (LABEL if body else "")
    return body.splitlines()


def test_without_a_rule_nothing_is_said() -> None:
    assert Briefings().brief(HERE) == ""
    assert lines_for(HERE, make_rule(told=None)) == []


def test_it_holds_the_rules_of_the_project_and_those_of_all_the_best_first() -> None:
    everywhere = make_rule(3, told=Told("- everywhere", ("",), 2.5))
    elsewhere = make_rule(4, told=Told("- elsewhere", ("/src/other",), 9.0))
    both = make_rule(5, told=Told("- both", ("/src/other", HERE), 1.5))

    assert lines_for(HERE, make_rule(1), make_rule(2), everywhere, elsewhere, both) == [
        "- everywhere",
        "- line 2",
        "- both",
        "- line 1",
    ]


def test_of_rules_about_one_thing_the_best_is_told() -> None:
    same = make_rule(1).trigger

    assert lines_for(HERE, make_rule(1), make_rule(2, trigger=same)) == ["- line 2"]


def test_it_is_short_whatever_there_is_to_tell() -> None:
    many = [make_rule(number) for number in range(1, 100)]
    long = [
        make_rule(number, told=Told("- " + "ä" * 500, (HERE,), float(number)))
        for number in range(1, 30)
    ]

    assert len(lines_for(HERE, *many)) == LINES_MAX - 2
    assert lines_for(HERE, *many)[0] == "- line 99"
    briefings = Briefings()
    briefings.update(long)
    assert BYTES_MAX / 2 < len(briefings.brief(HERE).encode()) <= BYTES_MAX
    assert make_briefing(["x" * BYTES_MAX]) == ""


def test_it_follows_the_rules_as_they_change() -> None:
    briefings = Briefings()
    briefings.update([make_rule(1), make_rule(2)])

    briefings.update([make_rule(1, told=Told("- wider now", ("",), 1.0)), make_rule(2, told=None)])

    assert briefings.brief("/anywhere").endswith("\n\n- wider now")
    assert briefings.brief(HERE).endswith("\n\n- wider now")


def test_a_rule_that_says_something_else_now_is_told_as_it_is_now() -> None:
    briefings = Briefings()
    old = make_rule(1)
    briefings.update([old])
    new = make_rule(1, trigger=Trigger("command not found", ("gut", REST)))

    # as the rulebook hands it on: the rule as it is, and what takes the old one out of the index
    briefings.update([new, msgspec.structs.replace(old, offered=False, told=None)])

    assert briefings.brief(HERE).endswith("\n\n- line 1")


# -- what is told at all ---------------------------------------------------------------------------


@pytest.fixture
def proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rule:
    """A promoted rule: ``gti`` should be ``git``, which this machine has."""
    make_program(tmp_path / "bin", "git")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    learner = Learner(path=str(tmp_path / "bin"))
    for session in ("one", "two", "three"):
        learner.type("gti status", 127, not_found("gti"), session=session)
        learner.type("git status", session=session)
    assert learner.rule.status is Status.PROMOTED
    return learner.rule


def test_a_promoted_rule_is_told_where_it_was_seen_and_a_shared_one_everywhere(
    proved: Rule,
) -> None:
    line = f"- `gti ...` failed (command not found, 3 sessions); worked: `git ...` ({proved.id})"

    told = told_of(proved)
    assert told is not None
    assert (told.line, told.homes) == (line, (HERE,))
    shared = told_of(msgspec.structs.replace(proved, status=Status.SHARED))
    assert shared is not None
    assert shared.homes == ("",)
    bound = told_of(msgspec.structs.replace(proved, scope=Scope.PROJECT, seen_in=(HERE, "/b")))
    assert bound is not None
    assert bound.homes == (HERE,)


@pytest.mark.parametrize("status", [Status.CANDIDATE, Status.ACTIVE, Status.ARCHIVED])
def test_what_is_not_promoted_is_not_told(proved: Rule, status: Status) -> None:
    rule = msgspec.structs.replace(proved, status=status)

    assert told_of(rule) is None
    assert hint_rule(rule).told is None
    assert why_no_gate(rule) == f"it is {status.value}, not promoted"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"held_back": "destructive: rm -r"}, "destructive: rm -r"),
        ({"remedy": Remedy("replace", words=("git", "<!--", REST))}, "could be read as a comment"),
        ({"remedy": Remedy("replace", words=("git", "\u202e"))}, "cannot be seen"),
        (
            {"remedy": Remedy("replace", words=("git", "ignore-all-previous-instructions"))},
            "reads like an instruction",
        ),
        ({"remedy": Remedy("replace", words=("./evil", REST))}, "runs a program of the project"),
        ({"remedy": Remedy("replace", words=("no-such-thing", REST))}, "or an unknown one"),
    ],
)
def test_what_is_not_fit_for_a_model_is_not_told(
    proved: Rule, changes: dict[str, Any], reason: str
) -> None:
    """T10, T11, T12: as in memory files."""
    rule = msgspec.structs.replace(proved, **changes)

    assert told_of(rule) is None
    assert reason in why_not_told(rule)


def test_the_persons_word_lets_a_suspicious_rule_be_told(proved: Rule) -> None:
    remedy = Remedy("replace", words=("./tool", REST))
    rule = msgspec.structs.replace(proved, remedy=remedy, verdict=Verdict.APPROVED)

    assert told_of(rule) is not None


def test_rules_are_ranked_as_their_weights_are(proved: Rule) -> None:
    rules = [
        msgspec.structs.replace(proved, r=r, c=c, d=d, last_us=proved.last_us - age_days * DAY_US)
        for r, c, d in ((2, 3, 0), (5, 3, 1), (9, 9, 0))
        for age_days in (0, 30, 100, 365)
    ]
    now_us = proved.last_us

    def rank(rule: Rule) -> float:
        told = told_of(rule)
        assert told is not None
        return told.rank

    assert sorted(rules, key=rank) == sorted(rules, key=lambda rule: weight(rule, now_us))
