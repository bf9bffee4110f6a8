"""From recoveries to rules, and from rules to the command at hand."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightrec.generalise import similar
from flightrec.matching import (
    Location,
    anchor_of,
    directory_of,
    find_remedy,
    find_trigger,
    match,
    probes,
    rewrite,
    segment_values,
)
from flightrec.programs import Where, find_program, is_there, where_is
from flightrec.rules import (
    Pattern,
    Remedy,
    Scope,
    Slot,
    Takes,
    Trigger,
    one_for_each_trigger,
    rule_key,
)
from flightrec.shell_words import parse
from learner import SYSTEM_PATH, Learner, make_program, not_found

REST = Slot(9)
OPTIONS = Slot(1, Takes.OPTIONS)
HERE = Location("/src/app", "/src/app")


def apply(trigger: Pattern, remedy: Remedy, line: str, location: Location = HERE) -> str | None:
    """Return the line as the remedy wants it, or None where the rule does not apply."""
    parsed = parse(line)
    found = find_trigger(Trigger("x", trigger), remedy, parsed, location)
    new = rewrite(remedy, parsed, found, location) if found is not None else None
    return new.line if new is not None else None


# -- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "words", "fits"),
    [
        (("gti", REST), "gti", True),
        (("gti", REST), "gti status -s", True),
        (("gti", REST), "git gti", False),
        (("git", OPTIONS, "stauts", REST), "git stauts", True),
        (("git", OPTIONS, "stauts", REST), "git -C /x --no-pager stauts -s", True),
        (("git", OPTIONS, "stauts", REST), "git commit -m stauts", False),
        (("git", OPTIONS, "stauts", REST), "git --work-tree=/x y stauts", False),
        (("git", Slot(1), "commit", Slot(2), "--ammend", REST), "git commit -a --ammend", True),
        (("git", Slot(1), "commit", Slot(2), "--ammend", REST), "git push --ammend", False),
        (("ls", Slot(1), Slot(7, Takes.VALUE, "--colour="), REST), "ls -l --colour=auto x", True),
        (("ls", Slot(1), Slot(7, Takes.VALUE, "--colour="), REST), "ls --colour x", False),
        (("npm", "test"), "npm test", True),
        (("npm", "test"), "npm test -- x", False),
        (("cat", Slot(1, Takes.WORD)), "cat", False),
    ],
)
def test_slots_take_only_what_they_stand_for(pattern: Pattern, words: str, fits: bool) -> None:  # noqa: FBT001 - a table
    values = segment_values(parse(words).segments[0])

    assert (match(pattern, values) is not None) is fits


words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=4)
options = words.map(lambda word: f"--{word}")
fixed = st.one_of(words, options)


@given(
    head=words,
    parts=st.lists(st.one_of(fixed, st.just(Slot(1)), st.just(Slot(2, Takes.WORD))), max_size=4),
    arguments=st.lists(st.one_of(fixed, options.map(lambda option: f"{option}=1")), max_size=6),
)
def test_every_line_that_a_pattern_fits_asks_for_its_anchor(
    head: str, parts: list[str | Slot], arguments: list[str]
) -> None:
    """The index finds rules by anchors alone: one that is not asked for would be lost."""
    pattern = (head, *parts)
    line = [head, *arguments]

    if match(pattern, line) is not None:
        assert anchor_of(pattern) in probes(line)


def test_matching_takes_time_linear_in_the_line() -> None:
    """Three gaps and a word that is never found: every attempt at backtracking would show."""
    pattern = ("git", Slot(1), "a", Slot(2), "a", Slot(3), "a", Slot(4), "z", REST)

    assert match(pattern, ["git", *(["a"] * 100_000)]) is None


# -- rewriting ------------------------------------------------------------------------------------

GIT = Remedy("replace", words=("git", REST))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gti", "git"),
        ("gti status", "git status"),
        ("gti log --format='%h  %s' \"$BRANCH\"", "git log --format='%h  %s' \"$BRANCH\""),
        ("cd /x && gti status 2>&1 | tail -20", "cd /x && git status 2>&1 | tail -20"),
        ("sudo -u web gti pull", "sudo -u web git pull"),
        ("GIT_PAGER=cat timeout 5 gti log", "GIT_PAGER=cat timeout 5 git log"),
        ("gti diff > out.txt 2>/dev/null", "git diff > out.txt 2>/dev/null"),
        ("for d in a b; do gti -C $d pull; done", "for d in a b; do git -C $d pull; done"),
        ("echo gti status", None),
        ("echo 'gti status'", None),
        ("git commit -m gti", None),
        ("x=$(gti status)", None),
        ("cat <<E\ngti status\nE", None),
    ],
)
def test_the_line_at_hand_is_kept_but_for_the_words_that_fail(
    line: str, expected: str | None
) -> None:
    assert apply(("gti", REST), GIT, line) == expected


SUDO = Remedy("privilege", prefix=("sudo",))
VARIABLE = Remedy("environment", prefix=("A=1",))
STEP = Remedy("prerequisite", before=("npm i",))


@pytest.mark.parametrize(
    ("remedy", "line", "expected"),
    [
        (SUDO, "cd /x && make install", "cd /x && sudo make install"),
        (SUDO, "sudo make install", None),
        (VARIABLE, "timeout 5 make install", "A=1 timeout 5 make install"),
        (VARIABLE, "A=2 make install", None),
        (STEP, "make install | tail", "npm i && make install | tail"),
        (STEP, "npm i && make install", None),
        (STEP, "cd x; make install", "cd x; npm i && make install"),
    ],
)
def test_what_is_put_before_a_command_is_not_put_there_twice(
    remedy: Remedy, line: str, expected: str | None
) -> None:
    assert apply(("make", "install"), remedy, line) == expected


@pytest.mark.parametrize(
    ("remedy", "line"),
    [(SUDO, "sudo make install"), (VARIABLE, "A=2 make install"), (STEP, "npm i && make install")],
)
def test_a_line_that_has_the_remedy_in_it_is_no_trigger(remedy: Remedy, line: str) -> None:
    assert find_trigger(Trigger("x", ("make", "install")), remedy, parse(line), HERE) is None


def test_steps_are_not_put_into_the_middle_of_a_pipe() -> None:
    line = parse("yes | make install")
    found = find_trigger(Trigger("x", ("make", "install")), STEP, line, HERE)
    assert found is not None

    new = rewrite(STEP, line, found, HERE)

    assert new is not None
    assert (new.line, new.segment) == (None, "npm i && make install")


@pytest.mark.parametrize(
    ("cwd", "line", "expected"),
    [
        ("/src/app", "npm start", "cd frontend && npm start"),
        ("/src/app/sub", "cd .. && npm start", "cd .. && cd frontend && npm start"),
        ("/src/app/frontend", "npm start", None),
        ("/src/app", "cd frontend && npm start", None),
        ("/src/app", "cd $DIR && npm start", None),
        ("/elsewhere", "npm start", None),
    ],
)
def test_a_directory_s_rule_holds_in_the_directory_where_it_fails(
    cwd: str, line: str, expected: str | None
) -> None:
    location = Location(cwd, "/src/app")
    parsed = parse(line)
    remedy = Remedy("directory", directory="frontend")
    found = find_trigger(Trigger("x", ("npm", "start"), "."), remedy, parsed, location)
    new = rewrite(remedy, parsed, found, location) if found else None

    assert (new.line if new else None) == expected


def test_a_directory_is_followed_through_links(tmp_path: Path) -> None:
    (tmp_path / "real/sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")

    folder = directory_of(parse("cd link && cd sub && make"), 2, str(tmp_path))

    assert folder == str(tmp_path / "real/sub")


def test_a_remedy_is_known_again_in_a_line() -> None:
    trigger = Trigger("x", ("make", "install"))

    assert find_remedy(Trigger("x", ("gti", REST)), GIT, parse("cd x && git log"), HERE) == 1
    assert find_remedy(trigger, SUDO, parse("sudo make install"), HERE) == 0
    assert find_remedy(trigger, SUDO, parse("make install"), HERE) is None
    assert find_remedy(trigger, STEP, parse("npm i && make install"), HERE) == 1
    assert find_remedy(trigger, STEP, parse("make install"), HERE) is None


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    "line",
    [
        "gti 'a b' \"$X y\" c\\ d *.none? {a,b} ~",
        "A=1 gti x >out 2>&1; cat out",
        "cd . && gti x | cat -A",
        "if true; then gti x; fi",
    ],
)
def test_a_real_shell_gives_the_new_program_the_same_arguments(
    tmp_path: Path, shell: str, line: str
) -> None:
    """Both programs print their arguments; only the name differs."""
    for name in ("gti", "git"):
        program = make_program(tmp_path / "bin", name)
        program.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    new = apply(("gti", REST), GIT, line)
    assert new is not None

    outputs = []
    for command in (line, new):
        result = subprocess.run(
            [shutil.which(shell) or shell, "-c", f"setopt nonomatch 2>/dev/null; X=1; {command}"],
            cwd=tmp_path,
            env={"PATH": f"{tmp_path}/bin:{SYSTEM_PATH}", "HOME": "/h"},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        outputs.append(result.stdout)
    assert outputs[0] == outputs[1] != ""


# -- what is learned ------------------------------------------------------------------------------


def learn(
    failing: str, exit_: int, error: str, working: str, path: Path, *programs: str
) -> tuple[str, str, Scope]:
    """Return what the one rule says after this pair, where these programs are installed."""
    for program in programs or (working.split(maxsplit=1)[0],):
        make_program(path / "bin", program)
    learner = Learner(path=f"{path}/bin")
    learner.type(failing, exit_, error)
    learner.type(working)
    ((said_failing, said_working),) = learner.said()
    return said_failing, said_working, learner.rule.scope


@pytest.mark.parametrize(
    ("failing", "working", "rule"),
    [
        ("gti status", "git status", ("gti ...", "git ...")),
        ("gti status", "git status -s", ("gti ...", "git ...")),
        ("pytest", "python3 -m pytest", ("pytest ...", "python3 -m pytest ...")),
        ("docker-compose up", "docker compose up", ("docker-compose ...", "docker compose ...")),
        ("tsc -p .", "npx tsc -p .", ("tsc ...", "npx tsc ...")),
        ("netstat -tln", "ss -tln", ("netstat -tln", "ss -tln")),
        ("ifconfig", "ip addr", ("ifconfig", "ip addr")),
        ("batcat a.py", "less a.py", ("batcat ...", "less ...")),
    ],
)
def test_a_missing_program_s_arguments_are_slots_where_the_remedy_is_the_same_tool(
    tmp_path: Path, failing: str, working: str, rule: tuple[str, str]
) -> None:
    program = failing.split(maxsplit=1)[0]

    assert learn(failing, 127, not_found(program), working, tmp_path) == (*rule, Scope.USER)


def test_other_words_of_another_program_are_not_carried_over(tmp_path: Path) -> None:
    failing, working, scope = learn("yarn build", 127, not_found("yarn"), "npm run build", tmp_path)

    assert (failing, working, scope) == ("yarn build", "npm run build", Scope.USER)


def test_words_behind_a_mistyped_subcommand_are_carried_over(tmp_path: Path) -> None:
    error = (
        "git: 'brnch' is not a git command. See 'git --help'.\n\n"
        "The most similar command is\n\tbranch\n"
    )
    learned = learn("git brnch -a", 1, error, "git branch -a", tmp_path)

    assert learned == ("git ... brnch ...", "git ... branch ...", Scope.USER)


def test_a_mistyped_option_is_a_rule_of_its_subcommand(tmp_path: Path) -> None:
    error = "error: unknown option `ammend'\nusage: git commit [-a]\n"
    learned = learn("git commit -a --ammend", 129, error, "git commit -a --amend", tmp_path)

    assert learned == (
        "git ... commit ... --ammend ...",
        "git ... commit ... --amend ...",
        Scope.USER,
    )


@pytest.mark.parametrize(
    ("failing", "error", "working", "rule"),
    [
        (
            "python3 d.py x --dry_run",
            "d.py: error: unrecognized arguments: --dry_run",
            "python3 d.py x --dry-run",
            ("python3 d.py ... --dry_run ...", "python3 d.py ... --dry-run ...", Scope.PROJECT),
        ),
        (
            "python3 d.py -v snyc",
            "d.py: error: argument cmd: invalid choice: 'snyc' (choose from 'sync')",
            "python3 d.py -v sync",
            ("python3 d.py ... snyc ...", "python3 d.py ... sync ...", Scope.PROJECT),
        ),
        (
            "python3 -m pytest --vv",
            "pytest: error: unrecognized arguments: --vv",
            "python3 -m pytest -vv",
            ("python3 -m pytest ... --vv ...", "python3 -m pytest ... -vv ...", Scope.USER),
        ),
        (
            "python3 -m pip instal x",
            'ERROR: unknown command "instal" - maybe you meant "install"',
            "python3 -m pip install x",
            ("python3 -m pip ... instal ...", "python3 -m pip ... install ...", Scope.USER),
        ),
        (
            "node --chek a.js",
            "node: bad option: --chek",
            "node --check a.js",
            ("node ... --chek ...", "node ... --check ...", Scope.USER),
        ),
    ],
)
def test_what_an_interpreter_understands_depends_on_what_it_runs(
    tmp_path: Path, failing: str, error: str, working: str, rule: tuple[str, str, Scope]
) -> None:
    assert learn(failing, 2, error, working, tmp_path) == rule


def test_the_value_of_a_mistyped_option_is_a_slot(tmp_path: Path) -> None:
    error = "ls: unrecognized option '--colr=auto'\nTry 'ls --help' for more information.\n"
    learned = learn("ls --colr=auto x", 2, error, "ls --color=auto x", tmp_path)

    assert learned[:2] == ("ls ... --colr=... ...", "ls ... --color=... ...")


def test_a_file_that_may_not_be_read_is_no_reason_to_read_others_as_root(tmp_path: Path) -> None:
    error = "cat: /etc/shadow: Permission denied\n"
    learned = learn("cat /etc/shadow", 1, error, "sudo cat /etc/shadow", tmp_path, "cat", "sudo")

    assert learned == ("cat /etc/shadow", "sudo cat /etc/shadow", Scope.PROJECT)


def test_a_branch_without_upstream_is_named_by_head(tmp_path: Path) -> None:
    error = "fatal: The current branch f1 has no upstream branch.\n"
    learned = learn("git push", 128, error, "git push -u origin f1", tmp_path)

    assert learned == ("git push", "git push -u origin HEAD", Scope.PROJECT)


def test_a_project_s_own_targets_are_no_rule_for_other_projects(tmp_path: Path) -> None:
    error = "make: *** No rule to make target 'run_tests'.  Stop.\n"
    learned = learn("make run_tests", 2, error, "make run-tests", tmp_path)

    assert learned == ("make ... run_tests ...", "make ... run-tests ...", Scope.PROJECT)


def test_a_server_that_is_to_run_first_is_not_waited_for(tmp_path: Path) -> None:
    make_program(tmp_path / "bin", "python3")
    make_program(tmp_path / "bin", "serve")
    learner = Learner(path=f"{tmp_path}/bin")
    learner.type("python3 client.py", 1, "ConnectionRefusedError: [Errno 111] Connection refused")
    learner.type("serve --port 80 &")
    learner.type("python3 client.py")
    (said,) = learner.said()

    assert said == ("python3 client.py", "serve --port 80 & python3 client.py")
    assert parse(said[1]).complete
    assert [s.program for s in parse(said[1]).segments] == ["serve", "python3"]


def test_a_mistyped_value_of_a_variable_is_no_rule_about_the_command_without_it() -> None:
    learner = Learner()
    learner.type("GOOS=linx go build", 2, "go: unsupported GOOS/GOARCH pair linx/amd64")
    learner.type("GOOS=linux go build")

    assert learner.rules == []


def test_long_and_unprintable_commands_and_here_documents_become_no_rule() -> None:
    learner = Learner()
    for command in ("x" * 300, "x <<E\ny\nE", "x \x1b[31m", "x \u202e"):
        learner.type(f"gti {command}", 127, not_found("gti"), session=command)
        learner.type(f"git {command}", session=command)

    assert learner.rules == []


def test_a_missing_wrapper_says_nothing_about_the_command_behind_it() -> None:
    learner = Learner()
    learner.type("sudo apt update && sudo apt install jq", 127, not_found("sudo"))
    learner.type("which apt && apt update && apt install jq")

    assert learner.rules == []


def test_equal_rules_have_equal_keys_however_they_were_quoted() -> None:
    learner = Learner()
    for session, name in enumerate(("'pyyaml'", "pyyaml", '"pyyaml"')):
        error = "ERROR: No matching distribution found for yaml\n"
        learner.type("pip install yaml", 1, error, session=str(session))
        learner.type(f"pip install {name}", session=str(session))

    assert learner.rule.c == 3


def test_one_rule_is_kept_for_each_trigger_the_first() -> None:
    learner = Learner()
    for session, fix in enumerate(("pip3", "python3 -m pip", "pip3")):
        learner.type("pip list", 127, not_found("pip"), session=str(session))
        learner.type(f"{fix} list", session=str(session))

    first, second = learner.rules
    assert list(one_for_each_trigger([first, second])) == [first]
    assert list(one_for_each_trigger([second, first])) == [second]


def test_the_key_of_a_rule_is_what_it_says() -> None:
    trigger = Trigger("x", ("gti", REST))

    assert rule_key(trigger, GIT) == rule_key(trigger, Remedy("replace", ("git", REST)))
    assert rule_key(trigger, GIT) != rule_key(trigger, Remedy("replace", ("gut", REST)))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("gti", "git", True), ("pyhton3", "python3", True), ("ls", "ss", True), ("cp", "mv", False),
     ("yarn", "npm", False), ("status", "stash", False), ("g", "git", False)],
)  # fmt: skip
def test_a_slip_is_a_letter_or_two(one: str, other: str, expected: bool) -> None:  # noqa: FBT001 - a table
    assert similar(one, other) is expected


# -- programs -------------------------------------------------------------------------------------


def test_a_program_s_folder_decides_where_it_comes_from_and_not_its_link(tmp_path: Path) -> None:
    inside, outside = tmp_path / "repo/.venv/bin", tmp_path / "usr"
    make_program(outside, "python3")
    inside.mkdir(parents=True)
    (inside / "python3").symlink_to(outside / "python3")
    roots = [str(tmp_path / "repo")]

    assert where_is("python3", f"{inside}:{outside}", roots) is Where.INSIDE
    assert where_is("python3", str(outside), roots) is Where.OUTSIDE
    assert where_is("./python3", str(outside), roots) is Where.INSIDE
    assert where_is("nowhere", str(outside), roots) is Where.UNKNOWN
    assert where_is("source", "", roots) is Where.OUTSIDE


def test_programs_are_found_as_a_shell_finds_them(tmp_path: Path) -> None:
    tool = make_program(tmp_path / "bin", "tool")
    (tmp_path / "bin/data").write_text("")
    path = f"relative::{tmp_path}/none:{tmp_path}/bin"

    assert find_program("tool", path) == str(tool)
    assert find_program("data", path) is None
    assert is_there("bin/tool", "", str(tmp_path))
    assert not is_there("bin/none", "", str(tmp_path))
