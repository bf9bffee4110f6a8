"""When a hint is due, what it says, and what it costs."""

import os
import time
from pathlib import Path
from typing import Any

import pyte
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flightrec.failure_kinds import FailureKind
from flightrec.hints import COLUMNS_MAX, HintContext, HintIndex, HintRule, Outcome, says_the_same
from flightrec.rules import Origin, Remedy, Scope, Slot, Takes, Trigger
from flightrec.shell_words import parse
from flightrec.wire import Phase, WordKind
from hint_rules import make_hint_rule
from learner import make_program, name_to_id

HOUR = 3600 * 1_000_000
REST = Slot(9)
GTI = Trigger("command not found", ("gti", REST))
GIT = Remedy("replace", words=("git", REST))


def make_rule(number: int = 1, **changes: Any) -> HintRule:  # noqa: ANN401 - fields of HintRule
    fields = {"trigger": GTI, "remedy": GIT, "failures": 3, **changes}
    return make_hint_rule(**{"id": f"ERR-20261130-{number:03}", **fields})


def make_context(command: str = "gti status", **changes: Any) -> HintContext:  # noqa: ANN401 - same
    fields: dict[str, Any] = {
        "session": name_to_id("session"),
        "run": os.urandom(16),
        "command": command,
        "cwd": "/src/app",
        "project": "/src/app",
        "worktree": "/src/app",
        "now_us": 10 * HOUR,
    }
    return HintContext(**{**fields, **changes})


def ask(*rules: HintRule, index: HintIndex | None = None, **context: Any) -> str:  # noqa: ANN401 - same
    index = index or HintIndex()
    index.update(rules)
    hint = index.find(make_context(**context))
    return hint.text if hint is not None else ""


def failed_here(times: int, *, failed: bool = True, worktree: str = "/src/app") -> Outcome:
    return Outcome("/src/app", worktree, failed, times, at_us=1)


# -- text -----------------------------------------------------------------------------------------


def test_a_hint_says_where_how_often_and_how_it_failed_and_what_to_type() -> None:
    assert ask(make_rule(outcomes=(failed_here(2),))) == (
        "flightrec: previously failed here (2×: command not found); try: git status"
    )
    assert ask(make_rule()) == (
        "flightrec: previously failed before (3×: command not found); try: git status"
    )


def test_failures_in_all_worktrees_of_the_project_are_counted() -> None:
    outcomes = (failed_here(2), failed_here(3, worktree="/src/other"))

    assert "(5×:" in ask(make_rule(outcomes=outcomes))


@pytest.mark.parametrize("kind", FailureKind)
def test_no_hint_is_wider_than_three_hundred_columns(kind: FailureKind) -> None:
    rule = make_rule(trigger=Trigger(kind.value, ("gti", REST)), failures=9_999)
    longest = max((ask(rule, command=f"gti {'x' * length}") for length in range(190, 240)), key=len)

    assert COLUMNS_MAX + 50 < len(longest) <= 300


def test_a_newer_outcome_replaces_the_older_one_of_its_worktree() -> None:
    index = HintIndex()
    index.update([make_rule(outcomes=(failed_here(2),))])

    assert "(3×:" in ask(make_rule(outcomes=(failed_here(3),)), index=index)


def test_a_rule_of_the_person_that_never_failed_says_so() -> None:
    rule = make_rule(trigger=Trigger("", ("gti", REST)), origin=Origin.PERSON, failures=0)

    assert ask(rule) == "flightrec: noted by you; try: git status"


class Screen(pyte.Screen):
    """A terminal that counts what it would send to the shell as if it had been typed."""

    answers = 0

    def write_process_input(self, data: str) -> None:
        self.answers += len(data)


HOSTILE = (
    "\x1b]0;t\x07", "\x1b]52;c;eA==\x07", "\x1b]8;;x\x1b\\", "\x1bP1$r\x1b\\", "\x1b[6n", "\x1b[2J",
    "\x1b[?1049h", "\x1b[31m", "\x9b6n", "\x90q\x9c", "\x0e", "\r", "\b", "\x7f", "\u202e",
    "\u2066", "\u200b", "\u2028", "\n", "%{", "%}", "$(id)", "`id`", "\\[", "!!",
)  # fmt: skip
"""What moves a cursor, answers, sets a title or a mode, or means something in a prompt."""

hostile_word = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=3), min_size=1, max_size=6).map(
    "".join
)


@settings(max_examples=500, deadline=None)
@example(carried="\udc9b", fixed="x", step="x", is_quoted=False)  # a byte that is no UTF-8
@given(carried=hostile_word, fixed=hostile_word, step=hostile_word, is_quoted=st.booleans())
def test_a_terminal_only_prints_a_hint_whatever_is_in_it(
    carried: str, fixed: str, step: str, *, is_quoted: bool
) -> None:
    """T9: in words carried over from what was typed, and in a rule's own, were it offered."""
    remedy = Remedy("replace", words=("git", fixed, REST), before=(f"echo {step}",))
    typed = f"gti '{carried}'" if is_quoted else f"gti {carried}"
    screen = Screen(400, 3)
    before = (screen.title, set(screen.mode), screen.cursor.attrs, screen.charset)

    for text in (ask(make_rule(), command=typed), ask(make_rule(remedy=remedy), command=typed)):
        assert text.isprintable()
        assert len(text) <= 300
        screen.reset()
        pyte.Stream(screen).feed(text)
        assert (screen.title, set(screen.mode), screen.cursor.attrs, screen.charset) == before
        assert (screen.answers, screen.cursor.y) == (0, 0)


def test_the_line_is_shown_whole_where_it_fits_and_is_harmless() -> None:
    rule = make_rule()

    assert ask(rule, command="cd /x && gti log | less").endswith("try: cd /x && git log | less")
    assert ask(rule, command="echo a\ngti log").endswith("try: git log")
    assert ask(rule, command="rm -rf build && gti log").endswith("try: git log")
    assert ask(rule, command=f"echo {'x' * COLUMNS_MAX}; gti log").endswith("try: git log")


@pytest.mark.parametrize(
    "command",
    [
        "gti push --force",
        "gti reset --hard",
        f"gti add {'x' * COLUMNS_MAX}",
        "gti add 'a\x1b[31m'",
        "gti clone https://‹secret:url›@x",
        "gti commit -m 'a\nb'",
        "gti log '",
        "gti " + "x" * 5000,
    ],
)
def test_what_cannot_be_said_whole_or_is_dangerous_is_not_said(command: str) -> None:
    assert ask(make_rule(), command=command) == ""


@settings(max_examples=200)
@given(st.text(max_size=60))
def test_a_hint_is_one_printable_line_whatever_was_typed(words: str) -> None:
    text = ask(make_rule(), command=f"gti {words}")

    assert text.isprintable()
    assert len(text) <= 300


def test_the_hint_for_the_writer_names_rule_session_run_and_phase() -> None:
    index = HintIndex()
    index.update([make_rule()])
    context = make_context()

    hint = index.find(context)

    assert hint is not None
    shown = hint.shown
    assert (shown.rule, shown.session, shown.run) == (
        "ERR-20261130-001",
        context.session,
        context.run,
    )
    assert (shown.phase, shown.remedy, shown.at_us) == (Phase.START, "git status", context.now_us)


# -- due ------------------------------------------------------------------------------------------


def test_a_rule_that_is_not_offered_any_more_is_forgotten() -> None:
    index = HintIndex()
    index.update([make_rule()])

    assert ask(make_rule(offered=False), index=index) == ""


def test_a_project_s_rule_is_hinted_in_its_project_only_until_it_is_widened() -> None:
    index = HintIndex()
    rule = make_rule(scope=Scope.PROJECT)

    assert ask(rule, index=index, project="/src/other") == ""
    assert ask(make_rule(), index=index, project="/src/other", worktree="/src/other")
    assert ask(make_rule(offered=False), index=index, session=name_to_id("2")) == ""


@pytest.mark.parametrize(
    ("outcomes", "failed", "due"),
    [
        ((failed_here(1),), True, True),
        ((failed_here(1, failed=False),), True, False),
        ((failed_here(1), failed_here(0, failed=False, worktree="/src/two")), True, True),
        ((failed_here(1, worktree="/src/two"),), False, True),
        ((failed_here(0, failed=False, worktree="/src/two"),), True, False),
        ((), True, True),
        ((), False, False),
        ((Outcome("/other", "/other", failed=False, failures=0, at_us=1),), True, True),
    ],
    ids=[
        "failed here",
        "passed here",
        "passed in another worktree",
        "failed in another worktree only",
        "passed in another worktree only",
        "never ran here, failed elsewhere",
        "never ran here, passed elsewhere",
        "passed in another project",
    ],
)
def test_a_hint_is_due_where_the_trigger_s_last_outcome_was_a_failure(
    outcomes: tuple[Outcome, ...],
    failed: bool,  # noqa: FBT001 - a table
    due: bool,  # noqa: FBT001 - a table
) -> None:
    assert bool(ask(make_rule(outcomes=outcomes, failed=failed))) is due


def test_no_hint_where_the_missing_program_is_there_now(tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    make_program(bin_, "git")

    assert ask(make_rule(), path=str(bin_))
    make_program(bin_, "gti")
    assert ask(make_rule(), path=str(bin_)) == ""
    assert ask(make_rule(), path=str(bin_), command="cd x && gti log") == ""


@pytest.mark.parametrize("kind", [WordKind.ALIAS, WordKind.FUNCTION, WordKind.BUILTIN])
def test_no_hint_where_the_shell_has_its_own_meaning_for_the_word(kind: WordKind) -> None:
    assert ask(make_rule(), word_kind=kind) == ""
    assert ask(make_rule(), word_kind=kind, command="cd x && gti log") != ""
    assert ask(make_rule(trigger=Trigger("command not found", ("source", REST)))) == ""


def test_no_hint_where_the_remedy_s_program_is_missing_in_this_shell(tmp_path: Path) -> None:
    make_program(tmp_path, "other")

    assert ask(make_rule(), path=str(tmp_path)) == ""
    alias = Remedy("replace", words=("git", REST), shell_word=True)
    assert ask(make_rule(remedy=alias), path=str(tmp_path)) != ""


def test_nothing_is_hinted_in_somebody_else_s_repository() -> None:
    assert ask(make_rule(), mine=False) == ""


def test_a_rule_is_hinted_once_in_a_session_and_again_after_an_hour_in_vain() -> None:
    index = HintIndex()

    assert ask(make_rule(), index=index)
    assert ask(index=index, now_us=10 * HOUR + HOUR - 1) == ""
    assert ask(index=index, session=name_to_id("other"))
    assert ask(index=index, now_us=11 * HOUR)


def test_a_rule_whose_remedy_was_tried_is_not_hinted_again_in_that_session() -> None:
    index = HintIndex()
    assert ask(make_rule(), index=index)

    assert ask(index=index, command="cd . && git status | cat") == ""
    assert ask(index=index, now_us=20 * HOUR) == ""


def test_a_session_that_ended_is_forgotten() -> None:
    index = HintIndex()
    assert ask(make_rule(), index=index)
    index.forget_session(name_to_id("session"))

    assert ask(index=index)


def test_the_remedy_with_the_best_evidence_is_hinted() -> None:
    other = Remedy("replace", words=("gitk", REST))
    rules = (make_rule(1), make_rule(2, remedy=other, c=5, d=1), make_rule(3, remedy=other, c=3))

    assert ask(*rules).endswith("try: gitk status")


def test_the_first_failing_part_of_a_line_is_hinted() -> None:
    dokcer = Trigger("command not found", ("dokcer", REST))
    docker = Remedy("replace", words=("docker", REST))
    rules = (make_rule(1), make_rule(2, trigger=dokcer, remedy=docker, c=9))

    assert ask(*rules, command="gti pull && dokcer build .").endswith(
        "try: git pull && dokcer build ."
    )


def test_every_sort_of_anchor_is_found() -> None:
    slot = Slot(7, Takes.VALUE, "--colr=")
    new = Slot(7, Takes.VALUE, "--color=")
    option = make_rule(
        1,
        trigger=Trigger("unknown option", ("ls", Slot(1), slot, REST)),
        remedy=Remedy("replace", words=("ls", Slot(1), new, REST)),
    )
    exact = make_rule(
        2,
        trigger=Trigger("missing module", ("npm", "test")),
        remedy=Remedy("prerequisite", before=("npm install",)),
    )

    assert ask(option, command="ls -l --colr='a b' x").endswith("try: ls -l --color='a b' x")
    assert ask(exact, command="npm test").endswith("try: npm install && npm test")


# -- after a failure ------------------------------------------------------------------------------


def find_after(index: HintIndex, kind: str = "command not found", **context: Any) -> str:  # noqa: ANN401 - same
    hint = index.find_after_failure(make_context(**context), kind)
    return hint.text if hint is not None else ""


def test_a_failure_whose_fix_is_known_is_hinted_afterwards_though_it_passed_before() -> None:
    index = HintIndex()
    index.update([make_rule(outcomes=(failed_here(4, failed=False),))])

    assert ask(index=index) == ""
    assert find_after(index, "permission denied") == ""
    assert find_after(index).endswith("failed here (4×: command not found); try: git status")
    assert find_after(index) == ""


def test_a_run_that_had_its_hint_before_gets_none_afterwards() -> None:
    index = HintIndex()
    other = Remedy("replace", words=("gitk", REST))
    index.update([make_rule(1), make_rule(2, remedy=other)])
    run = name_to_id("run")

    assert ask(index=index, run=run)
    assert find_after(index, run=run) == ""


def test_only_lines_that_a_rule_is_about_are_worth_a_closer_look() -> None:
    index = HintIndex()
    index.update([make_rule(scope=Scope.PROJECT)])

    assert index.may_know(make_context("cd x && gti log"))
    assert not index.may_know(make_context("git log"))
    assert not index.may_know(make_context("gti log", project="/src/other"))


# -- clones --------------------------------------------------------------------------------------


def clones_rule(number: int = 1, **changes: Any) -> HintRule:  # noqa: ANN401 - fields of HintRule
    return make_rule(number, **{"scope": Scope.PROJECT, "upstream": "u", **changes})


def in_clone(origin: str = "u") -> dict[str, Any]:
    return {"project": "/src/clone", "worktree": "/src/clone", "origin": origin}


def test_a_project_s_rule_is_shown_in_its_clones_and_nowhere_else() -> None:
    assert ask(clones_rule(), **in_clone()) == (
        "flightrec: previously failed before (3×: command not found); try: git status"
    )
    assert ask(clones_rule(), **in_clone("other")) == ""
    assert ask(clones_rule(), **in_clone("")) == ""
    assert ask(clones_rule(upstream=""), **in_clone("")) == ""

    index = HintIndex()
    index.update([clones_rule()])
    assert index.may_know(make_context(**in_clone()))
    assert not index.may_know(make_context(**in_clone("other")))


def test_a_clone_s_own_outcome_decides_whether_a_hint_is_due_there() -> None:
    passed = Outcome("/src/clone", "/src/clone", failed=False, failures=0, at_us=1)
    failed = Outcome("/src/clone", "/src/clone", failed=True, failures=1, at_us=1)

    assert ask(clones_rule(outcomes=(passed,)), **in_clone()) == ""
    assert "failed here (1×" in ask(clones_rule(failed=False, outcomes=(failed,)), **in_clone())


def test_a_clone_s_own_rule_stands_for_the_same_one_of_another_clone() -> None:
    index = HintIndex()
    index.update([clones_rule(1, c=9), clones_rule(2, project="/src/clone")])

    first = index.find(make_context(**in_clone()))
    assert first is not None
    assert first.shown.rule == "ERR-20261130-002"
    assert index.find(make_context(**in_clone())) is None


@pytest.mark.parametrize(
    "remedy",
    [
        Remedy("replace", words=("/src/app/bin/git", REST)),
        Remedy("prerequisite", before=("cd /src/app/lib && make",)),
        Remedy("environment", prefix=("HOME=/src/app",)),
    ],
)
@pytest.mark.parametrize("project", ["/src/app", "/src/app/.git"])
def test_what_names_a_clone_s_own_folder_is_not_shown_in_another(
    remedy: Remedy, project: str
) -> None:
    assert ask(clones_rule(remedy=remedy, project=project), **in_clone()) == ""


def test_a_rule_whose_project_has_another_origin_now_is_no_clone_s() -> None:
    index = HintIndex()
    index.update([clones_rule()])
    index.update([clones_rule(upstream="other")])

    assert ask(index=index, **in_clone()) == ""
    assert ask(index=index, **in_clone("other")) != ""


# -- bounds ---------------------------------------------------------------------------------------


def test_many_rules_about_one_command_are_bounded_and_the_best_stay() -> None:
    index = HintIndex()
    for number in range(200):
        remedy = Remedy("replace", words=(f"tool{number}", REST))
        index.update([make_rule(number, remedy=remedy, c=number % 150)])

    assert ask(index=index).endswith("try: tool149 status")


def test_the_cost_of_a_lookup_does_not_grow_with_the_rules() -> None:
    small, large = HintIndex(), HintIndex()
    for index, size in ((small, 100), (large, 20_000)):
        index.update(
            make_rule(number, trigger=Trigger("x", ("git", Slot(1), f"w{number}", REST)))
            for number in range(size)
        )

    def took(index: HintIndex) -> float:
        start = time.thread_time()
        for number in range(300):
            index.find(make_context(f"git log --oneline {number} w1x"))
        return time.thread_time() - start

    took(small)
    assert min(took(large) for _ in range(3)) < 3 * max(min(took(small) for _ in range(3)), 0.003)


@pytest.mark.parametrize(
    ("remedy", "line", "same"),
    [
        ("git status", "git status", True),
        ("git status", "cd x && git  'status' | cat", True),
        ("git status", "git status -s", False),
        ("npm i && npm test", "npm i && npm test", True),
        ("npm i && npm test", "npm test", False),
        ("A=1 make", "make", False),
        ("A=1 make", "A=1 make", True),
        ("", "make", False),
    ],
)
def test_a_line_says_the_same_as_a_remedy_where_it_runs_all_of_it(
    remedy: str,
    line: str,
    same: bool,  # noqa: FBT001 - a table
) -> None:
    assert says_the_same(remedy, parse(line)) is same
