"""Going over all rules, once or many times."""

import os
from pathlib import Path

import pytest

from flightrec.evidence import DAY_US, Thresholds
from flightrec.generalise import Draft
from flightrec.reflect import CANDIDATE_DAYS, GONE_DAYS, reflect
from flightrec.rulebook import Rulebook
from flightrec.rules import Origin, Remedy, Scope, Slot, Trigger, Verdict
from learner import START_US, SYSTEM_PATH, Learner, make_program, not_found

REST = Slot(9)


def go_over(learner: Learner, *, days: float = 0, path: str = "") -> dict[str, tuple[str, ...]]:
    reports = reflect(
        learner.recorder.book, learner.now_us + int(days * DAY_US), path or SYSTEM_PATH
    )
    assert [report.step for report in reports] == ["tidy", "promote", "archive", "share"]
    return {report.step: report.lines for report in reports if report.lines}


def status(learner: Learner) -> str:
    return learner.rule.status.value


@pytest.fixture
def learner() -> Learner:
    """Somebody who mistyped ``gti`` in three sessions."""
    learner = Learner()
    for session in ("one", "two", "three"):
        learner.type("gti status", 127, not_found("gti"), session=session)
        learner.type("git status", session=session)
    return learner


def test_rules_that_stand_as_their_counts_say_are_left_alone(learner: Learner) -> None:
    before = learner.rules

    assert go_over(learner) == {}
    assert learner.rules == before


def test_new_thresholds_move_rules_and_each_step_says_which(learner: Learner) -> None:
    learner.recorder.book.thresholds = Thresholds(promote_r=3, promote_c=9)
    assert go_over(learner) == {
        "promote": ("ERR-20261130-001 promoted → active (R2 C3 D0): gti ... → git ...",)
    }
    learner.recorder.book.thresholds = Thresholds(share_projects=1)
    assert go_over(learner) == {
        "share": ("ERR-20261130-001 active → shared (R2 C3 D0): gti ... → git ...",)
    }
    learner.recorder.book.thresholds = Thresholds(archive_d=0)
    assert go_over(learner) == {
        "archive": ("ERR-20261130-001 shared → archived (R2 C3 D0): gti ... → git ...",)
    }
    assert go_over(learner) == {}


def test_a_rule_whose_program_is_gone_is_retired_and_comes_back_with_it(tmp_path: Path) -> None:
    tool = make_program(tmp_path / "bin", "frobnicate")
    learner = Learner(path=str(tmp_path / "bin"))
    learner.type("frobnicat x", 127, not_found("frobnicat"))
    learner.type("frobnicate x")
    assert status(learner) == "active"
    tool.unlink()

    assert go_over(learner, days=GONE_DAYS - 1, path=learner.path) == {}
    assert go_over(learner, days=GONE_DAYS + 1, path=learner.path) == {
        "tidy": ("ERR-20261130-001 retired: frobnicate is gone",)
    }
    assert status(learner) == "archived"
    make_program(tmp_path / "bin", "frobnicate")
    assert go_over(learner, days=GONE_DAYS + 2, path=learner.path) == {
        "tidy": ("ERR-20261130-001 back in use: its program is there again",)
    }
    assert status(learner) == "active"
    assert go_over(learner, days=GONE_DAYS + 3, path=learner.path) == {}


@pytest.mark.parametrize(
    "remedy",
    [
        Remedy("replace", words=("./run.sh", REST)),
        Remedy("replace", words=("$HOME/bin/x", REST)),
        Remedy("replace", words=("~/bin/x", REST)),
        Remedy("replace", words=("deploy", REST), shell_word=True),
        Remedy("prerequisite", before=("source .env", "export A=1")),
        Remedy("replace", words=("/bin/sh", REST)),
    ],
)
def test_only_what_can_be_judged_from_here_is_called_gone(learner: Learner, remedy: Remedy) -> None:
    enter(learner.recorder.book, remedy)

    assert go_over(learner, days=GONE_DAYS + 1) == {}


def test_a_candidate_that_nothing_confirmed_is_deleted(learner: Learner) -> None:
    rule = enter(learner.recorder.book, Remedy("replace", words=("git", REST)), proven=False)

    assert go_over(learner, days=CANDIDATE_DAYS - 1) == {}
    assert go_over(learner, days=CANDIDATE_DAYS + 1) == {
        "tidy": (f"{rule} deleted: never confirmed",)
    }
    assert go_over(learner, days=CANDIDATE_DAYS + 1) == {}


def test_a_remedy_that_is_known_as_dangerous_by_now_is_held_back(learner: Learner) -> None:
    book = learner.recorder.book
    rule = book.rule(enter(book, Remedy("replace", words=("rm", REST))))
    assert rule is not None
    book.update(rule, held_back="")

    assert go_over(learner) == {"tidy": (f"{rule.id} held back: destructive: rm",)}
    assert go_over(learner) == {}


def test_a_hint_that_nothing_answered_was_ignored(learner: Learner) -> None:
    learner.type("gti status", 127, not_found("gti"), session="four")

    assert go_over(learner) == {}
    assert go_over(learner, days=2) == {"tidy": ("hints that nothing answered: 1",)}
    assert go_over(learner, days=2) == {}


def test_what_the_person_decided_stays(learner: Learner) -> None:
    book = learner.recorder.book
    book.update(learner.rule, verdict=Verdict.REJECTED)

    assert go_over(learner, days=GONE_DAYS + 1, path=os.devnull) == {}
    assert learner.rule.verdict is Verdict.REJECTED


def enter(book: Rulebook, remedy: Remedy, *, proven: bool = True) -> str:
    trigger = Trigger("command not found", ("other", REST))
    draft = Draft(trigger, remedy, Scope.USER, bound=False, proven=proven)
    rule = book.add(draft, kind="ERR", origin=Origin.RECORDED, project="/x", at_us=START_US)
    return book.update(rule, c=1).id
