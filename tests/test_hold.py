"""``hold``: a command that is known to fail waits for a key, in real shells on a terminal."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recording_server import RecordingServer, recording_server
from typed_shell import BOTH, PROMPT, Rc, ShellMaker, TypedShell

HINT = "flightrec: previously failed here (3×: command not found); try: git status"
QUESTION = "flightrec: run it? (Enter or y: yes; e or n: no) "
both = pytest.mark.parametrize("kind", BOTH)
WaitFor = Callable[..., object]


@pytest.fixture
def server(home: Path) -> Iterator[RecordingServer]:  # noqa: ARG001 - where it serves
    with recording_server() as running:
        running.manners.hints = {"gti": HINT}
        running.manners.hold = True
        yield running


@pytest.fixture
def start(home: Path, server: RecordingServer) -> Iterator[ShellMaker]:  # noqa: ARG001 - up first
    maker = ShellMaker(home)
    with contextlib.closing(maker):
        yield maker


def answer(shell: TypedShell, line: str, keys: str) -> str:
    """Type a line and, when the question stands there, some keys; return what is shown then."""
    shell.send(line + "\r")
    shell.until(HINT)
    shell.until(QUESTION)
    shell.send(keys)
    return shell.until_prompt()


def pairs(server: RecordingServer) -> list[tuple[str, int | None]]:
    return server.finished


@both
@pytest.mark.parametrize("key", ["\r", "\n", "y", "Y"])
def test_enter_or_y_runs_the_line(
    kind: str, key: str, start: ShellMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    shell = start(kind)

    assert "not found" in answer(shell, "gti status", key)
    wait_for(lambda: server.finished == [("gti status", 127)])


@both
@pytest.mark.parametrize("key", ["e", "E", "n", "N", "\x03"])
def test_e_or_n_or_an_interrupt_leaves_the_whole_line_unrun(
    kind: str, key: str, start: ShellMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    shell = start(kind)
    line = "gti status; echo ran >&2 && echo ran | cat; (echo ran)"

    shown = answer(shell, line, key)

    assert "ran" not in shown
    assert "not found" not in shown
    assert shell.type("echo fine") == "fine\n"
    wait_for(lambda: server.finished == [(line, 130), ("echo fine", 0)])


@both
@pytest.mark.parametrize(
    "line",
    [
        "while gti; do echo ran; done",
        "until gti; do echo ran; done",
        "for gti in 1 2; do echo ran; done",
        "gti | cat; echo ran",
        "if gti; then echo ran; else echo ran; fi",
        "gti() { echo ran; }; gti",
        "echo ran | gti",
        "{ gti; echo ran; }",
    ],
)
def test_no_part_of_a_line_runs_whatever_it_is_made_of(
    kind: str, line: str, start: ShellMaker
) -> None:
    shell = start(kind)

    assert "ran" not in answer(shell, line, "n")
    assert shell.type("echo fine") == "fine\n"


@both
def test_other_keys_answer_nothing(kind: str, start: ShellMaker) -> None:
    assert "not found" not in answer(start(kind), "gti", "xq \x1b[A?ün")


@both
def test_a_held_command_s_duration_begins_when_it_runs(
    kind: str, start: ShellMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    shell = start(kind)
    shell.send("gti\r")
    shell.until(QUESTION)
    asked_s = time.monotonic()
    wait_for(lambda: time.monotonic() > asked_s + 1)
    shell.send("y")
    shell.until_prompt()

    wait_for(lambda: server.finished)
    finished = server.runs[0].finished
    assert finished is not None
    assert finished.usec is not None
    assert finished.usec < 900_000


@both
def test_what_was_typed_ahead_is_no_answer(
    kind: str, start: ShellMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    shell = start(kind)
    shell.send("gti\recho next\r")
    shown = shell.until_prompt() + shell.until_prompt()

    assert "not found" in shown
    assert "next" in shown
    assert QUESTION not in shown
    wait_for(lambda: server.finished == [("gti", 127), ("echo next", 0)])


@both
def test_a_question_that_nobody_answers_lets_the_line_run(kind: str, start: ShellMaker) -> None:
    shell = start(kind, Rc(after="__flightrec_hold_s=0.1"))

    assert "not found" in answer(shell, "gti", "")


@both
def test_a_command_without_a_hint_is_not_asked_about(kind: str, start: ShellMaker) -> None:
    shell = start(kind)

    assert shell.type("echo gtx") == "gtx\n"
    assert answer(shell, "gti", "n").count(HINT) == 0
    assert shell.type("echo one") == "one\n"


@both
def test_a_repeated_question_is_asked_again(kind: str, start: ShellMaker) -> None:
    shell = start(kind)
    for key in "nyn":
        assert ("not found" in answer(shell, f"gti {key}", key)) == (key == "y")


@both
def test_the_terminal_and_the_shell_are_as_before(kind: str, start: ShellMaker) -> None:
    shell = start(kind, Rc(before="trap 'traps=$((traps + 1))' DEBUG"))
    before = [shell.type(line) for line in ("stty -a", "trap", "ls -l /proc/self/fd | wc -l")]
    for key in ("n", "y", "\x03"):
        answer(shell, f"gti {key!r}", key)

    after = [shell.type(line) for line in ("stty -a", "trap", "ls -l /proc/self/fd | wc -l")]
    assert before == after
    assert int(shell.type("echo $((traps > 0))")) == 1


def test_a_refused_line_has_the_status_of_an_interrupted_one_in_bash(start: ShellMaker) -> None:
    shell = start("bash")
    answer(shell, "gti", "n")

    assert shell.type("echo $? ${PIPESTATUS[*]}") == "130 130\n"


def test_where_bash_has_an_interrupt_trap_of_the_person_s_nothing_is_held(
    start: ShellMaker,
) -> None:
    shell = start("bash", Rc(after="trap 'echo my trap' INT"))
    shown = shell.type("gti")

    assert QUESTION not in shown
    assert "my trap" not in shown
    assert "not found" in shown
    assert shell.type("trap -p INT") == "trap -- 'echo my trap' SIGINT\n"


def test_an_interrupt_trap_of_the_person_s_in_zsh_is_not_sprung(start: ShellMaker) -> None:
    shell = start("zsh", Rc(after="trap 'echo my trap' INT"))
    for key in ("n", "\x03"):
        shown = answer(shell, "gti", key)
        assert "my trap" not in shown
        assert "not found" not in shown
    assert "my trap" in shell.type("trap")


def test_the_line_editor_of_zsh_is_empty_after_a_refusal(start: ShellMaker) -> None:
    shell = start("zsh", Rc(after="setopt zle; unset zle_bracketed_paste"))
    shell.send("gti\r")
    shell.until(QUESTION)
    shell.send("e")
    shell.until(PROMPT)
    shell.send("echo $((6 * 7))\r")
    shell.until("42")
    shell.until(PROMPT)


@both
def test_a_dead_daemon_holds_nothing(kind: str, start: ShellMaker, server: RecordingServer) -> None:
    shell = start(kind)
    shell.type("true")
    server.stop()

    assert QUESTION not in shell.type("gti")
