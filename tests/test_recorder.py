"""Sessions in, rules and evidence out: the whole way of a command through the writer."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flightrec.evidence import Thresholds
from flightrec.matching import anchor_of
from flightrec.recorder import Recorder
from flightrec.rules import Scope, Status
from flightrec.wire import WordKind
from learner import DAY, Learner, make_program, name_to_id, not_found

PIP_OPTION = "ERROR: no such option: --quite\n\nUsage: pip install [options]\n"
GIT_STAUTS = (
    "git: 'stauts' is not a git command. See 'git --help'.\n\n"
    "The most similar command is\n\tstatus\n"
)


def mistype(learner: Learner, session: str, **more: Any) -> str:  # noqa: ANN401 - fields of CommandRun
    return learner.type("gti status", 127, not_found("gti"), session=session, **more)


def test_a_mistyped_program_becomes_a_rule_a_hint_and_is_promoted_in_the_third_session() -> None:
    learner = Learner()

    assert mistype(learner, "first") == ""
    assert learner.type("git status", session="first") == ""
    rule = learner.rule
    assert rule.id == "ERR-20261130-001"
    assert (rule.status, learner.counts()) == (Status.ACTIVE, (0, 1, 0))

    hint = mistype(learner, "second")
    assert hint == ("flightrec: previously failed here (1×: command not found); try: git status")
    assert learner.counts() == (1, 1, 0)
    learner.type("git status", session="second")
    assert learner.counts() == (1, 2, 0)

    assert "(2×: command not found)" in mistype(learner, "third")
    assert (learner.rule.status, learner.counts()) == (Status.PROMOTED, (2, 2, 0))


def test_a_program_of_a_module_is_run_with_python_whatever_its_arguments() -> None:
    learner = Learner()
    learner.type("pytest x", 127, not_found("pytest"))
    learner.type("python3 -m pytest x")

    hint = learner.ask("pytest tests/x.py -k 'a b' 2>&1 | tail -5", session="two")

    assert hint.endswith("try: python3 -m pytest tests/x.py -k 'a b' 2>&1 | tail -5")


@pytest.mark.parametrize(
    ("failing", "exit_", "error", "working", "later", "hinted"),
    [
        ("git stauts -s", 1, GIT_STAUTS, "git status -s", "git -C x stauts", "git -C x status"),
        (
            "pip install --quite six",
            2,
            PIP_OPTION,
            "pip install --quiet six",
            "pip install --quite -r requirements.txt",
            "pip install --quiet -r requirements.txt",
        ),
        (
            "apt-get install jq",
            100,
            "E: Could not open lock file /var/lib/dpkg/lock - open (13: Permission denied)",
            "sudo apt-get install jq",
            "apt-get install tree",
            "sudo apt-get install tree",
        ),
    ],
)
def test_words_on_which_the_failure_does_not_depend_are_carried_over(  # noqa: PLR0917 - a table
    tmp_path: Path, failing: str, exit_: int, error: str, working: str, later: str, hinted: str
) -> None:
    for program in ("git", "pip", "apt-get", "sudo"):
        make_program(tmp_path / "bin", program)
    learner = Learner(path=str(tmp_path / "bin"))
    learner.type(failing, exit_, error)
    learner.type(working)

    assert learner.ask(later, session="two").endswith(f"try: {hinted}")


def test_a_prerequisite_is_hinted_when_the_command_failed_last_and_not_when_it_passed() -> None:
    learner = Learner()
    error = "Error: Cannot find module 'express'\n  code: 'MODULE_NOT_FOUND'\n"
    learner.type("node app.js", 1, error)
    learner.type("npm install express")
    learner.type("node app.js")
    assert learner.rule.kind == "prerequisite"
    assert learner.ask("node app.js", session="two") == ""

    assert learner.type("node app.js", 1, error, session="two") == ""
    hint = learner.ask("node app.js", session="three")

    assert hint.endswith("try: npm install express && node app.js")
    assert "failed here (2×: missing module)" in hint


def test_a_prerequisite_that_was_run_since_is_not_hinted() -> None:
    learner = Learner()
    error = "Error: Cannot find module 'express'\n  code: 'MODULE_NOT_FOUND'\n"
    for session in ("one", "two"):
        learner.type("node app.js", 1, error, session=session)
        learner.type("npm install express", session=session)
        assert learner.type("node app.js", session=session) == ""
    learner.type("node app.js", 1, error, session="three")
    learner.type("npm install express", session="another terminal")
    learner.restart()

    assert learner.ask("node app.js", session="four") == ""


def test_a_directory_is_hinted_from_wherever_the_command_is_typed(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "frontend").mkdir(parents=True)
    learner = Learner()
    error = (
        "npm error code ENOENT\nnpm error enoent Could not read package.json: Error: ENOENT:"
        f" no such file or directory, open '{work}/package.json'\n"
    )
    learner.type("npm start", 254, error, cwd=work)
    learner.type("cd frontend && npm start", cwd=work)

    assert learner.ask("npm start", session="two", cwd=work).endswith(
        "try: cd frontend && npm start"
    )
    assert learner.ask("npm start", session="two", cwd=work / "frontend", project=str(work)) == ""


def test_a_secret_in_a_remedy_is_never_offered() -> None:
    learner = Learner()
    learner.type("psql -h db -c 'select 1'", 2, "psql: error: fe_sendauth: no password supplied\n")
    learner.type("PGPASSWORD=h4nter2-really psql -h db -c 'select 1'")

    assert all(rule.held_back for rule in learner.rules if not rule.remedy.lesson)
    assert learner.ask("psql -h db -c 'select 1'", session="two") == ""


def test_a_dangerous_remedy_is_counted_and_never_offered() -> None:
    learner = Learner()
    error = "rm: cannot remove 'build': Is a directory\n"
    for session in ("one", "two", "three", "four"):
        assert learner.type("rm build", 1, error, session=session) == ""
        learner.type("rm -r build", session=session)

    assert learner.rule.held_back == "destructive: rm"
    assert (learner.rule.status, learner.counts()) == (Status.PROMOTED, (3, 4, 0))
    assert learner.ask("rm build", session="five") == ""


# -- what teaches nothing -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"mine": False},
        {"truncated": True},
        {"project": "/src/caf\udce9", "cwd": "/src/caf\udce9"},
    ],
    ids=["somebody else's repository", "a truncated command", "a path that is no UTF-8"],
)
def test_runs_that_are_not_to_be_learned_from_leave_no_rule(more: dict[str, Any]) -> None:
    learner = Learner()
    mistype(learner, "one", **more)
    learner.type("git status", **more)

    assert learner.rules == []
    assert learner.store.counts().runs == 2


def test_what_the_person_does_with_flightrec_is_no_work_to_learn_from() -> None:
    learner = Learner()
    learner.type("flightrec rules --jsn", 2, "flightrec: error: unrecognized arguments: --jsn\n")
    learner.type("flightrec rules --json")

    assert learner.rules == []


def test_an_unknown_exit_is_neither_a_failure_nor_a_fix() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status", None)

    assert learner.rules == []


def test_a_failure_is_mended_once() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status")
    learner.type("git status")

    assert learner.counts() == (0, 1, 0)
    assert learner.rule.used == 1


def test_runs_of_other_sessions_mend_nothing() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status", session="two")

    assert learner.rules == []


@settings(max_examples=60, deadline=None)
@given(
    command=st.sampled_from(
        ["gti status", "git stauts", "npm test", "python3 x.py", "make", "./x"]
    ),
    exit_=st.sampled_from([1, 2, 126, 127]),
    error=st.sampled_from(["", not_found("gti"), GIT_STAUTS, "Permission denied\n"]),
    times=st.integers(1, 4),
)
def test_an_unchanged_re_run_never_gives_a_rule(
    command: str, exit_: int, error: str, times: int
) -> None:
    learner = Learner()
    for _ in range(times):
        learner.type(command, exit_, error)
    learner.type(command)

    assert [rule for rule in learner.rules if not rule.remedy.lesson] == []


# -- evidence -------------------------------------------------------------------------------------


def test_one_session_counts_as_one_recurrence_however_often_it_failed() -> None:
    learner = Learner()
    for session in ("one", "two"):
        for _ in range(3):
            mistype(learner, session)
            learner.type("git status", session=session)

    assert learner.counts() == (1, 6, 0)


def test_shells_that_one_run_starts_at_once_are_one_session() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status")
    parent = name_to_id("xargs")
    for child in ("a", "b", "c"):
        mistype(learner, child, parent=parent)

    assert learner.counts() == (1, 1, 0)


def test_the_remedy_after_a_hint_counts_where_the_bad_command_was_never_run() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status")
    hint = learner.index.find(learner.context(learner.run("gti status", session="two")))
    assert hint is not None
    learner.note_shown(hint)
    learner.type("git status", session="two")

    assert learner.counts() == (0, 2, 0)
    assert hint_outcomes(learner) == ["followed"]


def test_another_command_after_a_hint_counts_for_nothing() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status")
    mistype(learner, "two")
    learner.type("git log", session="two")
    learner.type("ls", session="two")

    assert hint_outcomes(learner) == ["ignored"]


def test_what_ran_already_when_the_hint_was_shown_does_not_answer_it() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status")
    background = learner.run("git status", session="two")
    mistype(learner, "two")
    learner.record(background)

    assert hint_outcomes(learner) == [None]
    assert learner.rule.c == 1


def test_a_remedy_that_fails_like_the_trigger_counts_against_the_rule() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status")
    mistype(learner, "two")
    learner.type("git status", 127, not_found("git"), session="two")

    assert learner.counts() == (1, 1, 1)
    assert hint_outcomes(learner) == ["failed"]


def test_a_trigger_that_passes_where_it_failed_counts_against_the_rule_and_is_hinted_no_more() -> (
    None
):
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status")
    mistype(learner, "two")
    learner.type("gti status", session="two")

    assert learner.counts() == (1, 1, 1)
    assert learner.ask("gti status", session="three") == ""


def test_a_pass_after_the_remedy_ran_says_nothing() -> None:
    learner = Learner()
    error = "Error: Cannot find module 'express'\n"
    for session in ("one", "two"):
        learner.type("node app.js", 1, error, session=session)
        learner.type("npm install express", session="elsewhere")
        learner.type("npm install express", session=session)
        learner.type("node app.js", session=session)
    learner.type("node app.js", 1, error, session="three")
    learner.type("npm install express", session="another terminal")
    learner.type("node app.js", session="three")

    assert learner.rule.d == 0


def test_a_pass_right_after_the_first_recovery_says_nothing() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status")
    learner.type("gti status")

    assert learner.counts() == (0, 1, 0)


def test_another_remedy_that_worked_does_not_contradict_the_known_one() -> None:
    learner = Learner()
    error = "Error: Cannot find module 'express'\n"
    for session, step in (("one", "npm install express"), ("two", "yarn add express")):
        learner.type("node app.js", 1, error, session=session)
        learner.type(step, session=session)
        learner.type("node app.js", session=session)

    assert [rule.d for rule in learner.rules] == [0, 0]


def test_opposite_remedies_count_against_each_other_once_for_each_pair() -> None:
    learner = Learner()
    for session, (bad, good) in enumerate(
        [("pip", "pip3"), ("pip3", "pip"), ("pip", "pip3"), ("pip", "pip3")]
    ):
        learner.type(f"{bad} list", 127, not_found(bad), session=str(session))
        learner.type(f"{good} list", session=str(session))

    forth, back = learner.rules
    assert (forth.c, forth.d) == (3, 1)
    assert (back.c, back.d) == (1, 1)


def test_three_contradictions_archive_a_rule() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status")
    for session in ("two", "three", "four"):
        mistype(learner, session)
        learner.type("git status", 127, not_found("git"), session=session)

    assert learner.rule.status is Status.ARCHIVED
    assert learner.ask("gti status", session="five") == ""


def test_thresholds_are_settings() -> None:
    learner = Learner()
    learner.recorder = Recorder(learner.store, Thresholds(promote_r=1))
    mistype(learner, "one")
    learner.type("git status")
    mistype(learner, "two")

    assert learner.rule.status is Status.PROMOTED


# -- scope ----------------------------------------------------------------------------------------


def test_a_project_s_rule_holds_everywhere_once_a_second_project_confirmed_it() -> None:
    learner = Learner()
    error = "Error: Cannot find module 'express'\n"
    for project in ("/src/a", "/src/b"):
        learner.type("node app.js", 1, error, cwd=project, session=project)
        learner.type("npm install express", cwd=project, session=project)
        learner.type("node app.js", cwd=project, session=project)
        expected = Scope.PROJECT if project == "/src/a" else Scope.USER
        assert learner.rule.scope is expected

    assert learner.counts() == (0, 2, 0)
    assert learner.rule.seen_in == ("/src/a", "/src/b")


def test_a_remedy_that_only_the_project_has_never_leaves_it(tmp_path: Path) -> None:
    learner = Learner()
    for project in ("a", "b"):
        folder = tmp_path / project
        make_program(folder / "bin", "tool")
        for _ in range(1000 if project == "a" else 1):
            learner.type("tool x", 127, not_found("tool"), cwd=folder, session=project)
            learner.type("./bin/tool x", cwd=folder, session=project)

    assert [rule.scope for rule in learner.rules] == [Scope.PROJECT, Scope.PROJECT]
    assert learner.ask("tool x", cwd="/src/c", session="c") == ""


def test_a_rule_of_the_person_s_typing_is_hinted_in_other_projects() -> None:
    learner = Learner()
    mistype(learner, "one", cwd="/src/a")
    learner.type("git status", cwd="/src/a")

    assert learner.rule.scope is Scope.USER
    assert "previously failed before (1×: command not found)" in mistype(
        learner, "two", cwd="/src/b"
    )


# -- clones --------------------------------------------------------------------------------------

SERVE = ("./serve", 1, "Error: Cannot find module './lib/table'\n")
INSTALLED = "npm install"


def clone(name: str, origin: str = "u") -> dict[str, Any]:
    return {"cwd": f"/src/{name}", "session": name, "origin": origin}


def learn_in(learner: Learner, name: str, origin: str = "u") -> None:
    for command in (SERVE, (INSTALLED, 0, ""), ("./serve", 0, "")):
        learner.type(*command, **clone(name, origin))


def test_a_clone_is_shown_a_project_s_rule_and_counts_nothing_for_it() -> None:
    learner = Learner()
    learn_in(learner, "a")
    (rule,) = learner.rules
    learner.type(*SERVE, **clone("a"))

    assert "npm install && ./serve" in learner.type(*SERVE, **clone("b"))
    learner.type("npm install && ./serve", **clone("b"))
    after = learner.recorder.book.fresh(rule)
    assert (after.r, after.c, after.d, after.scope) == (0, 1, 0, Scope.PROJECT)
    assert (after.seen_in, after.failures, after.used) == (("/src/a",), 2, 0)


def test_what_a_clone_finds_out_is_a_rule_of_its_own() -> None:
    learner = Learner()
    learn_in(learner, "a")
    learn_in(learner, "b")

    assert [(rule.project, rule.scope, rule.c) for rule in learner.rules] == [
        ("/src/a", Scope.PROJECT, 1),
        ("/src/b", Scope.PROJECT, 1),
    ]


def test_what_contradicts_a_rule_in_a_clone_says_nothing_against_it_and_is_respected_there() -> (
    None
):
    learner = Learner()
    learn_in(learner, "a")
    learner.type(*SERVE, **clone("a"))
    learner.type("./serve", **clone("b"))

    assert learner.counts() == (0, 1, 0)
    assert learner.ask("./serve", **clone("b") | {"session": "later"}) == ""
    assert learner.ask("./serve", **clone("a") | {"session": "later"}) != ""


def test_a_second_project_that_is_no_clone_lets_a_rule_hold_everywhere() -> None:
    learner = Learner()
    learn_in(learner, "a")
    learn_in(learner, "b", origin="other")

    assert (learner.rule.scope, learner.rule.c) == (Scope.USER, 2)


def test_a_project_that_has_another_origin_now_is_no_clone_any_more() -> None:
    learner = Learner()
    learn_in(learner, "a")
    learner.type(*SERVE, **clone("a", "other"))
    (rule,) = learner.rules
    words = [anchor_of(rule.trigger.words)]

    assert learner.recorder.book.about("/src/b", words, "u") == []
    assert learner.recorder.book.about("/src/b", words, "other") == [rule]


def test_clones_are_known_across_a_restart_and_by_a_later_origin() -> None:
    learner = Learner()
    learn_in(learner, "a", origin="")
    learner.type(*SERVE, **clone("a", "named since"))
    learner.restart()

    assert "npm install" in learner.ask("./serve", **clone("b", "named since"))
    learner.type("./serve", **clone("b", "named since"))
    learner.restart()
    assert learner.ask("./serve", **clone("b", "named since") | {"session": "later"}) == ""
    assert learner.counts() == (0, 1, 0)


# -- restarts, replays, order ---------------------------------------------------------------------


def test_a_pair_is_found_across_a_restart() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.restart()
    learner.type("git status")
    learner.restart()
    mistype(learner, "two")
    learner.restart()
    learner.type("git status", session="two")

    assert learner.counts() == (1, 2, 0)


def test_a_mended_failure_stays_mended_across_a_restart() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status")
    learner.restart()
    learner.type("git status")

    assert learner.counts() == (0, 1, 0)


SCRIPT = [
    ("one", "gti status", 127, not_found("gti")),
    ("one", "git status", 0, ""),
    ("two", "gti log", 127, not_found("gti")),
    ("two", "git log", 0, ""),
    ("three", "git stauts", 1, GIT_STAUTS),
    ("three", "git status", 0, ""),
    ("three", "gti log", 127, not_found("gti")),
    ("two", "gti diff", 127, not_found("gti")),
    ("two", "git diff", 127, not_found("git")),
]


def state(learner: Learner) -> list[tuple[object, ...]]:
    """Return what was learned, without ids and times."""
    return sorted(
        (rule.key, rule.status, rule.r, rule.c, rule.d, rule.failures, rule.scope)
        for rule in learner.rules
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(SCRIPT) - 1), st.booleans()), max_size=25))
def test_no_event_counts_twice_however_often_it_is_sent_and_the_daemon_restarts(
    extras: list[tuple[int, bool]],
) -> None:
    """Each extra is a run sent again at any later moment, perhaps after a restart."""
    plain, noisy = Learner(), Learner()
    runs = [
        plain.run(command, exit_, error, session=session)
        for session, command, exit_, error in SCRIPT
    ]
    for run in runs:
        plain.record(run)
    for number, run in enumerate(runs):
        noisy.record(run)
        for again, restart in extras:
            if restart:
                noisy.restart()
            if again <= number:
                noisy.record(runs[again])

    assert state(noisy) == state(plain)


SESSIONS = {
    "a": [("gti status", 127, not_found("gti")), ("git status", 0, "")],
    "b": [("ls", 0, ""), ("gti log", 127, not_found("gti")), ("git log", 0, "")],
    "c": [("git stauts", 1, GIT_STAUTS), ("git status", 0, "")],
    "d": [("pip list", 127, not_found("pip")), ("pip3 list", 0, "")],
    "e": [("pip3 list", 127, not_found("pip3")), ("pip list", 0, "")],
    "f": [("gti diff", 127, not_found("gti")), ("git diff", 0, "")] * 2,
    "g": [("git status", 0, ""), ("git stauts -s", 1, GIT_STAUTS), ("git status -s", 0, "")],
}


@pytest.mark.parametrize("order", list(itertools.permutations(SESSIONS))[::97], ids="".join)
def test_the_order_of_independent_sessions_does_not_matter(order: tuple[str, ...]) -> None:
    """Whole recoveries, each session in a project of its own; what was the same stays the same."""
    assert learned_in(order) == learned_in(tuple(SESSIONS))


def learned_in(order: tuple[str, ...]) -> list[tuple[object, ...]]:
    learner = Learner()
    for session in order:
        for command, exit_, error in SESSIONS[session]:
            learner.type(command, exit_, error, session=session, cwd=f"/src/{session}")
    return state(learner)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.permutations([name for name in SESSIONS for _ in SESSIONS[name]]))
def test_interleaved_sessions_are_kept_apart(turns: list[str]) -> None:
    """Commands of several terminals come in any order; rules and confirmations are the same."""
    learner = Learner()
    left = {name: list(script) for name, script in SESSIONS.items()}
    for session in turns:
        command, exit_, error = left[session].pop(0)
        learner.type(command, exit_, error, session=session, cwd=f"/src/{session}")

    expected = {(key, c) for key, _, _, c, *_ in learned_in(tuple(SESSIONS))}
    assert {(rule.key, rule.c) for rule in learner.rules} == expected


PIECES = st.sampled_from(
    [
        *("gti git status -s --ammend x.py $(ls) a=1 sudo cd .. /tmp export source .env".split()),  # noqa: SIM905 - read more easily
        *("npm install test rm -rf && ; | || ( ) { } if then fi # > 2>&1 & ! * ~ <<E E".split()),  # noqa: SIM905 - same
        "'a b'", '"$X"', "'", '"', "\\", "\n", "é", "☃", "\udce9", "\x1b",
    ]
)  # fmt: skip
ERRORS = st.sampled_from(
    ["", not_found("gti"), GIT_STAUTS, "Permission denied\n", "sh: 1: npm: not found\n",
     "error: unknown option `ammend'\n", "ModuleNotFoundError: No module named 'x'\n",
     "curl: (22) The requested URL returned error: 403\n", "\udcff\x1b[31m\n"]
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.lists(PIECES, max_size=7).map(" ".join),
            st.sampled_from([0, 0, 1, 2, 126, 127, 130, None]),
            ERRORS,
            st.sampled_from(["one", "two"]),
            st.sampled_from(["/src/a", "/src/b", "/src/caf\udce9"]),
        ),
        max_size=12,
    )
)
def test_any_session_can_be_recorded_hinted_and_read_back(
    typed: list[tuple[str, int | None, str, str, str]],
) -> None:
    learner = Learner()
    for command, exit_, error, session, cwd in typed:
        text = learner.type(command, exit_, error, session=session, cwd=cwd)
        assert text.isprintable()
    before = learner.rules
    learner.restart()

    assert learner.rules == before
    for rule in before:
        learner.recorder.book.why(rule.id)
        if "secret" not in rule.held_back:
            assert "‹secret" not in str(rule.remedy)


# -- the rest -------------------------------------------------------------------------------------


def test_what_a_true_success_wrote_is_not_kept() -> None:
    learner = Learner()
    learner.record(learner.run("git push", 0, "To example.org:me/x\n", session="one"))

    (tail,) = learner.store.connection.execute("SELECT tail FROM runs").fetchone()
    assert tail == ""


def test_a_failure_that_nothing_mends_is_a_lesson_from_its_second_session_on() -> None:
    learner = Learner()
    error = "curl: (22) The requested URL returned error: 429\n"
    for number, session in enumerate(("one", "two", "three")):
        learner.type("curl -fsS https://api.example.org/v1/x", 22, error, session=session)
        expected = Status.CANDIDATE if number == 0 else Status.ACTIVE
        assert learner.rule.status is expected

    assert learner.rule.id.startswith("GAP-20261130-")
    assert learner.rule.trigger.host == "api.example.org"
    assert learner.counts() == (2, 0, 0)
    assert learner.ask("curl -fsS https://api.example.org/v1/x", session="four") == ""


@pytest.mark.parametrize("command", ["curl -f http://localhost:1/x", "curl -f http://127.0.0.1/x"])
def test_the_own_machine_is_no_site_that_a_lesson_is_about(command: str) -> None:
    learner = Learner()
    learner.type(command, 22, "curl: (22) The requested URL returned error: 429\n")

    assert learner.rule.trigger.host == ""
    assert learner.rule.scope is Scope.PROJECT


def test_a_lesson_needs_a_site_where_the_program_may_do_anything() -> None:
    learner = Learner()
    learner.type("python3 x.py", 1, "requests.exceptions.HTTPError: 429 Too Many Requests\n")

    assert learner.rules == []


def test_an_alias_as_remedy_is_offered_although_no_file_has_its_name() -> None:
    learner = Learner()
    learner.type("dply", 127, not_found("dply"))
    learner.type("deply", word_kind=WordKind.FUNCTION)

    assert learner.rule.remedy.shell_word
    assert learner.rule.scope is Scope.PROJECT
    assert learner.ask("dply", session="two").endswith("try: deply")


def test_ids_are_counted_by_day() -> None:
    learner = Learner()
    mistype(learner, "one")
    learner.type("git status")
    learner.type("pip list", 127, not_found("pip"))
    learner.type("pip3 list")
    learner.now_us += DAY
    learner.type("pyhton3 x.py", 127, not_found("pyhton3"))
    learner.type("python3 x.py")

    assert [rule.id for rule in learner.rules] == [
        "ERR-20261130-001",
        "ERR-20261130-002",
        "ERR-20261201-001",
    ]


def hint_outcomes(learner: Learner) -> list[str | None]:
    rows = learner.store.connection.execute("SELECT outcome FROM hints ORDER BY id")
    return [row[0] for row in rows]
