"""Rules in the database: ids, keys, counting once, and what stands behind a rule."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flightrec.classify import classify
from flightrec.evidence import Mark, Reason, is_offered
from flightrec.generalise import Draft
from flightrec.pairing import Recovery, RecoveryKind
from flightrec.rule_rows import damaged_rules
from flightrec.rulebook import Event, Rulebook
from flightrec.rules import Origin, Remedy, Rule, Scope, Slot, Status, Takes, Trigger
from flightrec.shell_words import parse
from flightrec.store import Store
from learner import DAY, START_US, Learner, name_to_id, not_found

REST = Slot(9)
GTI = Draft(
    Trigger("command not found", ("gti", REST)),
    Remedy("replace", words=("git", REST)),
    Scope.USER,
    bound=False,
    proven=True,
)


@pytest.fixture
def book() -> Rulebook:
    return Rulebook(Store.open(":memory:").connection)


def enter(book: Rulebook, draft: Draft = GTI, project: str = "/src/app") -> Rule:
    return book.add(draft, kind="ERR", origin=Origin.RECORDED, project=project, at_us=START_US)


def event(name: str = "run", session: str = "one", project: str = "/src/app") -> Event:
    return Event(name_to_id(name).hex(), name_to_id(session), project, START_US)


def of_project(draft: Draft = GTI) -> Draft:
    return Draft(draft.trigger, draft.remedy, Scope.PROJECT, bound=False, proven=True)


def test_a_rule_comes_back_as_it_went_in(book: Rulebook) -> None:
    slot = Slot(7, Takes.VALUE, "--colr=")
    draft = Draft(
        Trigger("unknown option", ("ls", Slot(1), slot), "sub", "example.org"),
        Remedy("environment", ("ls", slot), ("A=1",), ("export B=2",), ".", shell_word=True),
        Scope.PROJECT,
        bound=False,
        proven=False,
    )
    rule = book.update(enter(book, draft), failures=3, failed=False, flagged=True)
    book.count_use(rule)
    book.count_use(rule)

    assert book.rule(rule.id) == msgspec.structs.replace(rule, used=2)
    assert book.update(rule, failures=4) != book.rule(rule.id)
    assert book.fresh(rule).used == 2
    assert damaged_rules(book._connection) == 0  # noqa: SLF001 - the same connection


def test_a_changed_row_is_noticed(book: Rulebook) -> None:
    enter(book)
    book._connection.execute("UPDATE rules SET remedy = replace(remedy, 'git', 'rm')")  # noqa: SLF001 - what a disk does

    assert damaged_rules(book._connection) == 1  # noqa: SLF001 - the same connection


def test_ids_go_on_after_a_thousand_and_are_never_given_twice(book: Rulebook) -> None:
    for number in range(1001):
        trigger = Trigger("x", (f"p{number}",))
        rule = enter(book, Draft(trigger, GTI.remedy, Scope.USER, bound=False, proven=True))
    assert rule.id == "ERR-20261130-1001"

    book.delete(rule)

    assert enter(book).id == "ERR-20261130-1002"
    assert book.rules()[0].id == "ERR-20261130-001"


def test_an_event_counts_once_for_each_rule_mark_and_origin(book: Rulebook) -> None:
    rule = enter(book)
    for _ in range(3):
        rule = book.count(rule, Mark.C, Reason.RECOVERED, event())
        rule = book.count(rule, Mark.D, Reason.PASSED, event())
    imported = Event(event().id, None, "/src/app", START_US, "import:team")
    rule = book.count(rule, Mark.C, Reason.RECOVERED, imported)

    assert (rule.r, rule.c, rule.d) == (0, 2, 1)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(list(Mark)), st.integers(0, 5), st.integers(0, 2)), max_size=30
    )
)
def test_counts_are_what_the_evidence_says(events: list[tuple[Mark, int, int]]) -> None:
    book = Rulebook(Store.open(":memory:").connection)
    rule = enter(book)
    for mark, run, session in events:
        rule = book.count(rule, mark, Reason.AGAIN, event(str(run), str(session)))

    rows = book._connection.execute("SELECT kind, count(*) FROM evidence GROUP BY kind")  # noqa: SLF001 - to compare
    counted = dict(rows.fetchall())
    assert rule.r == counted.get("R", 0)
    assert rule.c == counted.get("C", 0) + counted.get("first", 0)
    assert rule.d == counted.get("D", 0)
    sessions = book._connection.execute(  # noqa: SLF001 - to compare
        "SELECT count(*), count(DISTINCT session) FROM evidence WHERE kind IN ('first', 'R')"
    ).fetchone()
    assert sessions[0] == sessions[1]


def test_rules_are_found_by_project_and_words(book: Rulebook) -> None:
    rule = enter(book, of_project())

    assert book.about("/src/app", ["gti"]) == [rule]
    assert book.about("/src/app", ["git"]) == [rule]
    assert book.about("/src/other", ["gti"]) == []
    widened = book.widen(rule)
    assert book.about("/src/other", ["gti"]) == [widened]


def test_a_rulebook_made_anew_finds_the_same_rules(book: Rulebook) -> None:
    rule = enter(book)

    assert Rulebook(book._connection).about("/anywhere", ["x", "gti"]) == [rule]  # noqa: SLF001 - as a restart does


def test_what_a_project_alone_may_say_is_not_taken_from_another(book: Rulebook) -> None:
    rule = enter(book, of_project(), "/src/a")

    core = rule.key.partition("@")[0]
    assert book.same(core, "/src/b", bound=False) == rule
    assert book.same(core, "/src/b", bound=True) is None
    assert book.same(core, "/src/a", bound=True) == rule


def test_changes_are_told_once_and_only_those_that_hints_need(book: Rulebook) -> None:
    rule = book.count(enter(book), Mark.FIRST, Reason.FIRST, event())
    told = book.take_changes()

    assert [(one.id, one.offered, one.c) for one in told.rules] == [(rule.id, True, 1)]
    assert book.take_changes().rules == ()
    book.count_use(rule)
    assert book.take_changes().rules == ()


def test_exports_are_out_of_date_when_a_rule_comes_goes_or_reads_differently(
    book: Rulebook,
) -> None:
    def export() -> bool:
        return book.take_changes().export

    rule = book.count(enter(book), Mark.FIRST, Reason.FIRST, event())
    assert not export()
    rule = book.update(rule, r=2)
    assert export()
    rule = book.count(rule, Mark.C, Reason.RECOVERED, event("2"))
    assert not export()
    rule = book.count(rule, Mark.D, Reason.PASSED, event("3"))
    assert not export()
    rule = book.count(rule, Mark.D, Reason.PASSED, event("4"))
    assert rule.status is Status.ACTIVE
    assert export()


def test_a_rule_keeps_the_day_on_which_it_was_promoted(book: Rulebook) -> None:
    rule = book.count(enter(book), Mark.FIRST, Reason.FIRST, event())
    for number, session in enumerate("abc"):
        seen = Event(str(number), session.encode() * 16, "/x", START_US + number * DAY)
        rule = book.count(rule, Mark.R, Reason.AGAIN, seen)

    assert rule.promoted_us == START_US + DAY
    assert (rule.shared_us, rule.archived_us) == (None, None)


def test_why_shows_the_runs_behind_a_rule_with_place_and_error() -> None:
    learner = Learner()
    learner.type("gti status", 127, not_found("gti"), cwd="/src/a")
    learner.type("git status", cwd="/src/a")
    learner.type("gti log", 127, not_found("gti"), session="two", cwd="/src/b")

    first, again = learner.recorder.book.why(learner.rule.id)

    assert (first.mark, first.reason) == (Mark.FIRST, "failed, and a remedy was found")
    assert (first.command, first.cwd, first.exit, first.error) == (
        "git status",
        "/src/a",
        0,
        None,
    )
    assert (again.mark, again.command, again.cwd) == (Mark.R, "gti log", "/src/b")
    assert (again.exit, again.failure_kind) == (127, "command not found")
    assert again.error == "bash: gti: command not found"
    assert again.at_us > first.at_us


def test_why_still_shows_events_whose_runs_were_deleted() -> None:
    learner = Learner()
    learner.type("gti status", 127, not_found("gti"))
    learner.type("git status")
    learner.store.connection.execute("DELETE FROM runs")

    (first,) = learner.recorder.book.why(learner.rule.id)

    assert (first.mark, first.command, first.error) == (Mark.FIRST, None, None)


def test_a_recovery_keeps_what_was_needed_and_what_was_tried() -> None:
    learner = Learner()
    error = "Error: Cannot find module 'express'\n"
    learner.type("node app.js", 1, error)
    learner.type("npm install express")
    learner.type("node app.js")

    row = learner.store.connection.execute(
        "SELECT kind, needed, also_tried, rule_id FROM recoveries"
    ).fetchone()
    assert row == ("prerequisite", "[2]", "[]", learner.rule.id)


def test_a_failure_is_consumed_by_one_recovery() -> None:
    learner = Learner()
    failed = learner.run("gti status", 127, not_found("gti"))
    fixes = [learner.run("git status"), learner.run("git status")]
    for run in (failed, *fixes):
        learner.store.add_run(run)
    line = parse(failed.command)
    failure = classify(failed, line)
    assert failure is not None
    book = learner.recorder.book
    book.add_failure(1, failure)

    added = [
        book.add_recovery(
            Recovery(failure, fix, line, 0, RecoveryKind.REPLACE, (), (), proven=True)
        )
        for fix in fixes
    ]

    assert added == [True, False]


def test_the_newest_outcome_of_a_project_counts_after_a_restart() -> None:
    """In whatever order the database has the worktrees."""
    for newest in ("/src/a", "/src/b"):
        learner = Learner()
        for tree in sorted(("/src/a", "/src/b"), key=lambda tree: tree == newest):
            places: dict[str, Any] = {"cwd": tree, "project": "/src/git", "session": tree}
            places["worktree"] = tree
            learner.type("gti status", 127, not_found("gti"), **places)
            learner.type("git status", **places)
            if tree != newest:
                learner.type("gti status", **places)
        learner.restart()
        assert learner.ask("gti log", cwd="/src/c", project="/src/git", session="new")


def test_a_store_keeps_all_of_it_on_disk(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("db") / "flightrec.db"
    learner = Learner(Store.open(path))
    for session in ("one", "two"):
        learner.type("gti status", 127, not_found("gti"), session=session)
        learner.type("git status", session=session)
    before = learner.rules
    learner.store.close()

    with_reader = Rulebook(Store.open_read_only(path).connection)

    assert with_reader.rules() == before
    assert [one.id for one in with_reader.hint_rules()] == [rule.id for rule in before]


def test_every_rule_of_a_long_day_can_be_hinted(book: Rulebook) -> None:
    for number, scope in itertools.product(range(50), Scope):
        trigger = Trigger("x", (f"p{number}", REST))
        draft = Draft(trigger, GTI.remedy, scope, bound=False, proven=True)
        rule = enter(book, draft)
        book.count(rule, Mark.FIRST, Reason.FIRST, event(str(number)))

    rules = list(book.hint_rules())

    assert len(rules) == 100
    assert rules == sorted(rules, key=lambda rule: rule.id)
    assert all(msgspec.msgpack.decode(msgspec.msgpack.encode(rule)) for rule in rules)


def test_only_offered_rules_are_given_to_a_new_index_with_their_outcomes() -> None:
    learner = Learner()
    error = "rm: cannot remove 'x': Is a directory\n"
    for session in ("one", "two"):
        learner.type("gti status", 127, not_found("gti"), session=session, cwd=f"/src/{session}")
        learner.type("git status", session=session, cwd=f"/src/{session}")
        learner.type("rm x", 1, error, session=session)
        learner.type("rm -r x", session=session)
        learner.type(
            "curl https://x.org", 22, "The requested URL returned error: 429", session=session
        )
    book = learner.recorder.book

    told = {rule.id: rule for rule in book.hint_rules()}

    assert set(told) == {rule.id for rule in book.rules() if is_offered(rule)}
    assert len(book.rules()) == 3
    (rule,) = told.values()
    assert [(one.project, one.failed, one.failures) for one in rule.outcomes] == [
        ("/src/one", True, 1),
        ("/src/two", True, 1),
    ]
