"""Inside tmux, without the proxy: after a failure the pane is asked what the command wrote."""

import contextlib
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import helper_builds
from daemon_process import DaemonProcess, wait_until
from flightrec.missed import read_helper_counters
from flightrec.paths import find_paths
from flightrec.wire import Source, TailSource
from recording_server import RecordingServer, Run, recording_server
from tmux_pane import READY, Pane, PaneMaker
from typed_shell import BOTH, DEADLINES, PROMPT, Rc, stop

WaitFor = Callable[..., object]
Told = Callable[[str], Run]

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
both = pytest.mark.parametrize("kind", BOTH)

NOT_THERE = b"ls: cannot access '%s': No such file or directory"


@pytest.fixture
def server(home: Path) -> Iterator[RecordingServer]:  # noqa: ARG001 - where it serves
    with recording_server() as running:
        yield running


@pytest.fixture
def start(home: Path) -> Iterator[PaneMaker]:
    with contextlib.closing(PaneMaker(home)) as maker:
        yield maker


@pytest.fixture
def told(server: RecordingServer, wait_for: WaitFor) -> Told:
    """``told(part)`` waits for the end of the last run whose line holds this."""

    def wait(part: str) -> Run:
        run = wait_for(lambda: server.find_ended(part), what=f"the end of {part!r}")
        assert isinstance(run, Run)
        return run

    return wait


class Typist:
    """``type`` a line; get the run that it was."""

    def __init__(self, pane: Pane, server: RecordingServer, wait_for: WaitFor) -> None:
        self._pane = pane
        self._server = server
        self._wait_for = wait_for

    def type(self, line: str) -> Run:
        count = len(self._server.runs)
        self._pane.type(line)
        self._wait_for(lambda: len(self._server.finished) == count + 1, what=f"the end of {line}")
        return self._server.runs[-1]


def tail_of(run: Run) -> bytes | None:
    """The tail that was told, None where there was none."""
    assert run.finished is not None
    if run.finished.tail_source is TailSource.NONE:
        return None
    assert run.finished.tail_source is TailSource.PANE
    return run.finished.tail


# ---- what is told -------------------------------------------------------------------------------


@both
def test_after_a_failure_the_lines_below_the_typed_one_are_told(
    kind: str, start: PaneMaker, told: Told
) -> None:
    pane = start(kind)
    pane.type("echo before")
    pane.type("ls /nonexistent/file")
    pane.type("echo behind")

    run = told("ls /nonexistent")
    assert (run.exit, run.starting.source) == (2, Source.RELAY)
    assert tail_of(run) == NOT_THERE % b"/nonexistent/file"
    assert run.finished is not None
    assert run.finished.tail_total == 64
    assert [tail_of(told(word)) for word in ("echo before", "echo behind")] == [None, None]


LINES: dict[str, tuple[str, bytes | None]] = {
    "several lines": ("printf 'one\\ntwo\\n\\nfour\\n'; false", b"one\ntwo\n\nfour"),
    "nothing": ("false", b""),
    "no end of line": ("printf unended; false", b"unended"),
    "a line that the pane breaks": (
        f"ls /nonexistent/{'x' * 200}",
        NOT_THERE % f"/nonexistent/{'x' * 200}".encode(),
    ),
    "letters beyond ASCII": (
        "echo 'é ü 漢字'; ls /né",
        "é ü 漢字\n".encode() + NOT_THERE % "/né".encode(),
    ),
    "blanks behind": ("ls /nonexistent   ", NOT_THERE % b"/nonexistent"),
    "more than the pane holds": ("seq 200; false", b"\n".join(b"%d" % n for n in range(1, 201))),
    "more than is kept": ("seq 2000 2900; false", b"\n".join(b"%d" % n for n in range(2000, 2901))),
    "more than is looked at": ("seq 1500; false", None),
    "the screen cleared by it": ("clear; ls /nonexistent", None),
    "a program of the whole screen": (
        r"printf '\033[?1049hpicture'; sleep 0.1; printf '\033[?1049l'; ls /nonexistent",
        NOT_THERE % b"/nonexistent",
    ),
    "the end of a word, in what it wrote": ("fails", b"one\nitfails\ntwo"),
    "more than is read, before it": ("for i in $(seq 300); do printf '%0300d\\n' $i; done", None),
    "and behind that": ("seq 100; false", b"\n".join(b"%d" % n for n in range(1, 101))),
    "one that left its picture": ("picture", None),
    "a success": (r"printf '\033[?1049l'; ls /nonexistent; true", None),
    "a list": ("ls /one; ls /two", b"\n".join(NOT_THERE % name for name in (b"/one", b"/two"))),
    "what was typed, in what it wrote": (
        "sh -c 'echo one; echo try: $0; echo two; exit 1' 'no such'", b"one\ntry: no such\ntwo",
    ),
    "colours and columns": (r"printf '\033[31mred\033[m\tx\rR\n'; false", b"Red     x"),
}  # fmt: skip


FUNCTIONS = """
picture() { printf '\\033[?1049hpicture\\nof something\\n'; return 1; }
fails() { echo one; echo itfails; echo two; return 1; }
"""


@both
def test_each_failure_has_exactly_what_it_wrote(
    kind: str, start: PaneMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    typist = Typist(start(kind, Rc(after=FUNCTIONS)), server, wait_for)
    for name, (line, expected) in LINES.items():
        tail = tail_of(typist.type(line))
        assert tail == (None if expected is None else expected[-8192:]), name


PROMPTS = {
    "bash": {
        "two lines": r"PS1='\n\u in \w\n@@> '",
        "colours": r"PS1='\[\e[32m\]me\[\e[m\] \w @@> '",
        "the time": r"PS1='\D{%H:%M:%S.}\# @@> '",
        "at the right": r"PS1='\[\e[s\e[999C\e[5Dright\e[u\]@@> '",
        "no blank behind": "PS1='@@>'",
    },
    "zsh": {
        "two lines": "PS1=$'\\n%n in %~\\n@@> '",
        "colours": "PS1='%F{green}me%f %~ @@> '",
        "the time": "PS1='%D{%H:%M:%S.%.} @@> '",
        "at the right": "setopt zle; RPS1='right %~'",
        "a sign for lines without an end": "setopt zle prompt_sp prompt_cr",
        "no blank behind": "PS1='@@>'",
    },
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, prompts in PROMPTS.items() for name in prompts]
)
def test_the_prompt_may_look_as_it_likes(
    kind: str, name: str, start: PaneMaker, told: Told
) -> None:
    if not shutil.which(kind):
        pytest.skip(f"no {kind}")
    pane = start(kind, Rc(before=PROMPTS[kind][name]), ready=r"@@>( +right \S*|\s*right)?\Z")
    for folder in ("/tmp", "/usr/lib", "/"):
        pane.type(f"cd {folder}; ls /nonexistent{folder}")
        tail = tail_of(told(f"ls /nonexistent{folder}"))
        assert tail == NOT_THERE % f"/nonexistent{folder}".encode()
    pane.type(f"ls /{'long' * 40}")
    assert tail_of(told("ls /long")) == NOT_THERE % f"/{'long' * 40}".encode()


@both
def test_letters_are_what_they_were_whatever_language_the_shell_began_in(
    kind: str, start: PaneMaker, told: Told
) -> None:
    pane = start(kind, Rc(before="LC_ALL=C", after="LC_ALL=C.UTF-8"))
    pane.type("ls /né")
    assert tail_of(told("ls /né")) == NOT_THERE % "/né".encode()


SEVERAL = {
    "a loop": ("for i in 1 2", "do", "ls /none$i", "done"),
    "a continued line": ("ls /none1 \\", "  /none2"),
    "a word over two lines": ("ls /no\\", "ne1 /none2"),
    "a text": ("ls /none1 /none2 $(cat <<X", "one", "", "X", ")"),
    "quotes": ("ls /none1 /none2 'one", "two'"),
}


@both
def test_a_command_may_be_typed_on_several_lines(kind: str, start: PaneMaker, told: Told) -> None:
    pane = start(kind)
    for name, lines in SEVERAL.items():
        for line in lines[:-1]:
            pane.type(line, until=r"> *\Z")
        pane.type(lines[-1])
        tail = tail_of(told(lines[-1].strip()))
        assert tail is not None, name
        assert tail.startswith(NOT_THERE % b"/none1" + b"\n"), name
        assert NOT_THERE % b"/none2" in tail, name
        assert lines[-1].encode() not in tail.splitlines(), name


@both
def test_the_line_may_come_from_history(
    kind: str, start: PaneMaker, told: Told, server: RecordingServer, wait_for: WaitFor
) -> None:
    pane = start(kind, Rc(before="setopt zle" if kind == "zsh" else ""))
    pane.type("ls /nonexistent")
    pane.press("\x1b[A")
    pane.expect(r"@@> ls /nonexistent\Z")
    pane.press("\x01")
    pane.press("LC_ALL=C ")
    pane.expect(r"@@> LC_ALL=C ls /nonexistent\Z")
    pane.press("\r")
    pane.expect(READY)
    assert tail_of(told("LC_ALL=C")) == NOT_THERE % b"/nonexistent"
    again = Typist(pane, server, wait_for).type("!!")
    assert again.command == "LC_ALL=C ls /nonexistent"
    assert tail_of(again) == NOT_THERE % b"/nonexistent"


# ---- what was typed is no output ----------------------------------------------------------------


@both
def test_a_shell_below_is_no_error_text(
    kind: str, start: PaneMaker, told: Told, server: RecordingServer
) -> None:
    pane = start(kind)
    pane.press("PS1='below ' sh -i\r")
    pane.expect(r"below\Z")
    pane.press_later(" echo very private\r")
    pane.expect(r"very private\nbelow\Z")
    pane.press("exit 3\r")
    pane.expect(READY)

    assert tail_of(told("sh -i")) is None
    assert "very private" not in repr(server.messages)


@both
@pytest.mark.parametrize("below", ["@@> ", "/ @@> ", "2 $ ", "➜  "])
def test_a_shell_below_that_a_program_types_to_is_known_by_its_prompt(
    below: str, kind: str, start: PaneMaker, told: Told
) -> None:
    own = {"2 $ ": "1 $ ", "➜  ": "➜  "}.get(below, PROMPT)
    ready = re.escape(own.rstrip()) + r"\Z"
    pane = start(kind, Rc(after=f"PS1='{own}'"), ready=ready)
    pane.tmux("send-keys", "-t", "main", f"PS1='{below}' sh -i", "Enter")
    pane.expect(r"sh -i\n" + re.escape(below.rstrip()) + r"\Z")
    pane.tmux("send-keys", "-t", "main", "echo below; exit 3", "Enter")
    assert tail_of(told("sh -i")) is None


@both
def test_what_is_typed_ahead_is_no_error_text(
    kind: str, start: PaneMaker, told: Told, server: RecordingServer
) -> None:
    pane = start(kind)
    pane.press("sh -c 'echo beg''un; sleep 0.3; exit 1'\r")
    pane.expect("begun")
    pane.press(" echo private ahead\r")
    pane.expect(r"private ahead\n@@>\Z")
    pane.press("sh -c 'echo beg''un; sleep 1.5; exit 2'\r")
    pane.expect(r"begun\Z")
    pane.press_later(" echo half of it")
    pane.expect(r"\n.*echo half of it\s*@@>")

    assert tail_of(told("exit 1")) is None
    assert tail_of(told("exit 2")) is None
    assert "private ahead" not in repr(server.messages)
    assert "half of it" not in repr(server.messages)


@both
def test_a_password_is_nowhere(
    kind: str, start: PaneMaker, told: Told, server: RecordingServer
) -> None:
    pane = start(kind)
    ask = "import getpass,sys; getpass.getpass('pw? '); sys.exit('access denied')"
    pane.press(f'{sys.executable} -c "{ask}"\r')
    pane.expect(r"pw\?\Z")
    pane.press("hunter2-secret\r")
    pane.expect(READY)

    assert tail_of(told("getpass")) in (None, b"pw? \naccess denied")
    assert "hunter2" not in repr(server.messages)


@both
def test_a_private_line_above_is_in_no_tail(
    kind: str, start: PaneMaker, told: Told, server: RecordingServer
) -> None:
    pane = start(kind)
    pane.type(" echo very private; false")
    pane.type("ls /nonexistent")

    assert tail_of(told("ls /nonexistent")) == NOT_THERE % b"/nonexistent"
    assert "very private" not in repr(server.messages)


@both
def test_the_same_line_further_up_is_another_run(
    kind: str, start: PaneMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    """The second one cannot be found: it was cleared with the screen, but the first one was not."""
    pane = start(kind, Rc(after="wipe() { printf '\\033[A\\033[2K'; return 1; }"))
    typist = Typist(pane, server, wait_for)
    assert tail_of(typist.type("wipe")) is None
    typist.type("echo other")
    assert tail_of(typist.type("wipe")) is None


@both
def test_another_terminal_that_was_opened_in_a_pane_is_not_taken_for_it(
    kind: str, start: PaneMaker, told: Told
) -> None:
    pane = start(kind)
    words = " ".join(pane.words)
    spawn = f"import os,pty; pty.spawn('{words}'.split())"
    pane.type(f'{sys.executable} -c "{spawn}"')
    pane.type("ls /nonexistent within")
    run = told("ls /nonexistent within")
    assert run.starting.tmux_pane is not None
    assert tail_of(run) is None


@pytest.mark.parametrize("kind", BOTH)
def test_the_person_s_word_turns_it_off(kind: str, start: PaneMaker, told: Told) -> None:
    pane = start(kind, env={"FLIGHTREC_NO_TAIL": "1"})
    pane.type("ls /nonexistent")
    assert tail_of(told("ls /nonexistent")) is None


# ---- what it costs ------------------------------------------------------------------------------


@pytest.fixture
def asked(home: Path) -> Callable[[], int]:
    """A tmux before the real one on PATH, which counts; where ``slow`` is there it never ends."""
    real = shutil.which("tmux")
    folder = home / "bin"
    folder.mkdir()
    program = folder / "tmux"
    program.write_text(
        f"#!/bin/sh\necho asked >>{home}/asked\n"
        f'[ -e {home}/slow ] && exec sleep 1000\nexec {real} "$@"\n'
    )
    program.chmod(0o755)
    log = home / "asked"
    return lambda: len(log.read_text().splitlines()) if log.exists() else 0


def with_bin(home: Path) -> dict[str, str]:
    """Return what lets a pane find that one."""
    return {"PATH": f"{home}/bin:/usr/local/bin:/usr/bin:/bin"}


@both
def test_a_success_asks_nobody(
    kind: str, start: PaneMaker, home: Path, told: Told, asked: Callable[[], int]
) -> None:
    pane = start(kind, env=with_bin(home))
    pane.type("echo one; echo two")
    pane.type("true")
    told("true")
    assert asked() == 0
    pane.type("ls /nonexistent")
    assert tail_of(told("ls /nonexistent")) is not None
    assert asked() == 1


@both
def test_a_tmux_that_does_not_answer_costs_its_limit_once(
    kind: str, start: PaneMaker, home: Path, told: Told, asked: Callable[[], int]
) -> None:
    (home / "slow").touch()
    pane = start(kind, env={**with_bin(home), "FLIGHTREC_PATIENCE_MS": "400"})
    pane.type("ls /nonexistent one")
    pane.type("ls /nonexistent two")
    pane.type("ls /nonexistent three")

    assert [tail_of(told(word)) for word in ("one", "two", "three")] == [None, None, None]
    assert asked() == 1
    assert not sleepers(home), "the one that hung was ended"
    assert read_helper_counters(find_paths().counters)["silent panes"] == 1


def sleepers(home: Path) -> list[int]:
    """Return processes of this home's tmux that still sleep."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if (
                words == b"sleep\x001000\x00"
                and os.fsencode(home) in (entry / "environ").read_bytes()
            ):
                found.append(int(entry.name))
    return found


@both
def test_a_stopped_server_holds_the_shell_up_no_longer_than_anybody(
    kind: str, start: PaneMaker, home: Path, wait_for: WaitFor, told: Told
) -> None:
    stamp = {
        "bash": "PROMPT_COMMAND+=('echo $EPOCHREALTIME >>~/prompts')",
        "zsh": "zmodload zsh/datetime; stamp() { echo $EPOCHREALTIME >>~/prompts }\n"
        "precmd_functions+=(stamp)",
    }
    pane = start(kind, Rc(after=stamp[kind]), env=DEADLINES)
    prompts = home / "prompts"
    wait_for(prompts.exists, what="the first prompt")
    count = len(prompts.read_text().splitlines())
    server = int(pane.format("#{pid}"))
    wait = "until [ -e go ]; do sleep 0.01; done"
    pane.press(f"sh -c 'echo beg''un; {wait}; date +%s.%N >>end; exit 7'\r")
    pane.expect(r"begun\Z")
    stop(server)
    try:
        (home / "go").touch()
        wait_for(lambda: len(prompts.read_text().splitlines()) > count, what="the prompt")
        ended = float((home / "end").read_text())
        assert float(prompts.read_text().splitlines()[-1]) - ended < 1.0
    finally:
        os.kill(server, signal.SIGCONT)
    assert tail_of(told("exit 7")) in (None, b"begun"), "the relay came late itself"
    pane.expect(READY)


@both
def test_a_server_that_was_killed_leaves_no_relay(
    kind: str, start: PaneMaker, told: Told, server: RecordingServer, wait_for: WaitFor
) -> None:
    pane = start(kind)
    pane.type("ls /nonexistent")
    told("ls /nonexistent")
    os.kill(int(pane.format("#{pid}")), signal.SIGKILL)
    wait_for(lambda: len(server.ended_sessions) == 1, what="word of the session's end")


@both
def test_a_hint_after_the_failure_is_shown_as_ever(
    kind: str, start: PaneMaker, server: RecordingServer, told: Told
) -> None:
    server.manners.late_hints["ls /nonexistent"] = "try another file"
    pane = start(kind)
    shown = pane.type("ls /nonexistent")
    assert re.search(r"No such file or directory\ntry another file\n@@>\Z", shown)
    assert tail_of(told("ls /nonexistent")) == NOT_THERE % b"/nonexistent"


@both
def test_a_session_passes_the_sanitizers(
    kind: str, start: PaneMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    helper = helper_builds.sanitized_helper()
    rc = Rc(before=f"__flightrec_helper={helper}", after=FUNCTIONS)
    typist = Typist(start(kind, rc), server, wait_for)
    for line, expected in LINES.values():
        tail = tail_of(typist.type(line))
        assert (tail is None) is (expected is None), line


# ---- what it is for -----------------------------------------------------------------------------


@both
@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_a_mistyped_subcommand_is_learned_in_plain_tmux(
    kind: str, start: PaneMaker, home: Path
) -> None:
    with DaemonProcess(home) as daemon:
        recorded = 0

        def type_into(pane: Pane, line: str) -> str:
            nonlocal recorded
            shown = pane.type(line)
            recorded += 1
            wait_until(lambda: daemon.status()["recorded"] >= recorded)
            return shown

        first = start(kind)
        type_into(first, "git init -q repository; cd repository")
        type_into(first, "git stauts")
        type_into(first, "git status")
        assert "is not a git command" in "".join(daemon.tails())
        wait_until(lambda: daemon.query("SELECT count(*) FROM rules") == [(1,)])

        second = start(kind)
        type_into(second, "cd repository")
        shown = type_into(second, "git stauts")
        assert "flightrec: previously failed here" in shown
        assert "try: git status" in shown
