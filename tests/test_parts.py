"""Parts of a command are no commands: they tell what a line hides, and are counted nowhere else."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_stage import PLAIN_PATH
from daemon_process import FLIGHTREC, DaemonProcess, lasting_daemon
from flightrec.classify import Failure
from flightrec.failure_kinds import FailureKind
from flightrec.ingest import CommandRun
from flightrec.parts import (
    COMMANDS_KEPT,
    PARTS_KEPT,
    Parts,
    PartsOf,
    hidden_failure,
    is_part,
    passed_segments,
)
from flightrec.redact import Safe
from flightrec.shell_words import parse
from flightrec.wire import Source, TailSource
from helper_builds import helper

COMMAND = CommandRun(  # noqa: S604 - a field of that name
    run=b"c" * 16,
    session=b"s" * 16,
    source=Source.SH,
    shell="bash",
    tty="",
    pid=1,
    project=Safe("/p"),
    worktree=Safe("/p"),
    cwd=Safe("/p"),
    command=Safe("pytest | tail -n 1"),
    truncated=False,
    secret=False,
    boot="",
    mono_us=0,
    started_us=0,
    exit=0,
    tail=Safe("1 failed"),
    tail_source=TailSource.STDOUT,
)
PART = replace(
    COMMAND,
    run=b"p" * 16,
    source=Source.SHIM,
    parent=COMMAND.run,
    command=Safe("git statsu -s"),
    exit=1,
    tail=Safe("git: 'statsu' is not a git command. See 'git --help'.\n"),
)


def hidden(text: str, *parts: CommandRun, status: int = 0) -> Failure | None:
    run = replace(COMMAND, command=Safe(text), exit=status)
    return hidden_failure(run, parse(text), parts)


def test_what_a_line_hides_is_a_failure_of_the_line() -> None:
    failure = hidden("cd x; git statsu -s 2>&1 | tail -n 1", PART)

    assert failure is not None
    assert (failure.kind, failure.program) == (FailureKind.UNKNOWN_SUBCOMMAND, "git")
    assert (failure.segment, failure.masked, failure.teachable) == (1, True, True)
    assert failure.run.run == COMMAND.run
    assert failure.run.tail == f"{PART.tail}\n{COMMAND.tail}"


@pytest.mark.parametrize(
    "text",
    [
        "git statsu -s | cat",
        "git statsu -s; echo done",
        "git statsu -s\necho done",
        "git statsu -s || true",
        "A=1 timeout 5 git statsu -s | cat",
        "git $x | cat",
        "git log; git statsu -s; true",
    ],
)
def test_such_lines_hide_a_failure(text: str) -> None:
    assert hidden(text, PART) is not None


@pytest.mark.parametrize(
    "text",
    [
        "git statsu -s",
        "echo x | git statsu -s",
        "git statsu -s || git status -s",
        "git statsu -s && true",
        "if git statsu -s; then true; fi",
        "(git statsu -s); true",
        "make | cat",
        "git log | cat; git $x | cat",
    ],
)
def test_such_lines_hide_none(text: str) -> None:
    assert hidden(text, PART) is None


def test_a_failure_that_shows_is_the_line_s_own_affair() -> None:
    assert hidden("git statsu -s | cat", PART, status=1) is None
    assert hidden("git statsu -s | cat") is None


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("git status -s; echo $?", {0}),
        ("cd x\ngit status -s | head\necho", {1}),
        ("git status -s || true", {0}),
        ("git log; git $x; true", set()),  # either may be the one
        ("git $x; true", {0}),
        ("make; true", set()),
        ("for i in 1 2; do git status -s; done; true", set()),
    ],
)
def test_what_passed_is_known_whatever_stands_around_it(text: str, known: set[int]) -> None:
    passed = replace(PART, command=Safe("git status -s"), exit=0)

    assert passed_segments(parse(text), PartsOf(passed=[passed])) == known


def test_what_failed_as_well_did_not_pass() -> None:
    passed = replace(PART, exit=0)

    assert passed_segments(parse("git statsu -s; true"), PartsOf([PART], [passed])) == set()


def test_parts_with_an_end_are_kept_and_taken_once() -> None:
    parts = Parts()
    for status in (0, None, 1):
        parts.add(replace(PART, exit=status))

    taken = parts.take(COMMAND.run)
    assert [part.exit for part in (*taken.failed, *taken.passed)] == [1, 0]
    assert parts.take(COMMAND.run) == PartsOf()


def test_parts_of_commands_that_never_end_take_no_room_for_ever() -> None:
    parts = Parts()
    for number in range(COMMANDS_KEPT + 10):
        parts.add(replace(PART, parent=number.to_bytes(16, "big")))
    for _ in range(100):
        parts.add(PART)

    assert parts.take(bytes(16)) == PartsOf()
    assert len(parts.take(COMMAND.run).failed) == PARTS_KEPT


def test_a_tool_that_no_shell_was_seen_around_is_a_command() -> None:
    assert is_part(PART)
    assert not is_part(replace(PART, parent=None))
    assert not is_part(replace(COMMAND, parent=b"x" * 16))


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    helper()
    with lasting_daemon() as running:
        yield running


@pytest.mark.parametrize(
    ("shell", "hiding"),
    [
        *((shell, "2>&1 | tail -n 1") for shell in ("bash", "sh", "zsh", "/bin/bash", "/bin/zsh")),
        ("/bin/bash", '; echo "status $?"'),
        ("zsh", "|| true"),
    ],
)
def test_a_failure_that_a_line_hides_is_one_failure_and_teaches(
    daemon: DaemonProcess, tmp_path: Path, shell: str, hiding: str
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    lines = [f"{command} {hiding}" for command in ("git statsu", "git status --short")]
    code = f"import subprocess as s\nfor text in {lines}: s.run([{shell!r}, '-c', text])"
    environment = {"HOME": str(daemon.paths.home), "PATH": PLAIN_PATH, "SHELL": "/bin/bash"}

    done = subprocess.run(
        [*FLIGHTREC, "run", "--", "python3", "-c", code],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=True,
    )

    assert b"flightrec: 2 runs, 1 failure, 1 recovery" in done.stderr
    assert daemon.query(
        "SELECT runs.command, failures.kind, failures.program FROM failures"
        " JOIN runs ON runs.id = failures.run_id"
        " WHERE runs.session_id = (SELECT max(id) FROM sessions)"
    ) == [(lines[0], "unknown subcommand", "git")]
    assert daemon.query(
        "SELECT command, exit FROM runs WHERE parent IS NOT NULL"
        " AND session_id = (SELECT max(id) FROM sessions)"
    ) == [
        ("git statsu", 1),
        ("git status --short", 0),
    ]
