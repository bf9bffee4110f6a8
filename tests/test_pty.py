"""A whole session inside the proxy: each command's tail is told, and nobody sees a difference."""

import contextlib
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

import helper_builds
from flightrec.wire import Source, TailSource
from proxied_shell import ProxiedShellMaker, channels, inner_of, proxied, worker_of
from recording_server import RecordingServer, Run, recording_server
from typed_shell import BOTH, Rc, ShellMaker, TypedShell, is_alive

WaitFor = Callable[..., object]

both = pytest.mark.parametrize("kind", BOTH)


@pytest.fixture
def server(home: Path) -> Iterator[RecordingServer]:  # noqa: ARG001 - where it serves
    with recording_server() as running:
        yield running


@pytest.fixture
def start(home: Path) -> Iterator[ProxiedShellMaker]:
    maker = ProxiedShellMaker(home)
    with contextlib.closing(maker):
        yield maker


@pytest.fixture
def plain(home: Path) -> Iterator[ShellMaker]:
    """Starts shells without the proxy, to compare with."""
    maker = ShellMaker(home)
    with contextlib.closing(maker):
        yield maker


@pytest.fixture
def told(server: RecordingServer, wait_for: WaitFor) -> Callable[[str], Run]:
    """``told(part)`` waits for the end of the last run whose line holds this."""

    def wait(part: str) -> Run:
        run = wait_for(lambda: server.find_ended(part), what=f"the end of {part!r}")
        assert isinstance(run, Run)
        return run

    return wait


Told = Callable[[str], Run]


def tail_of(run: Run) -> bytes | None:
    """The tail that was told, None where there was none."""
    assert run.finished is not None
    return None if run.finished.tail_source is TailSource.NONE else run.finished.tail


def with_echo(shell: TypedShell) -> TypedShell:
    """Let the terminal show what is typed, as people's terminals do."""
    shell.type("stty echo")
    return shell


# ---- tails --------------------------------------------------------------------------------------


@both
def test_the_tail_is_what_the_command_wrote_and_nothing_else(
    kind: str, start: ShellMaker, told: Told
) -> None:
    shell = start(kind)
    shell.type("echo before")
    shown = shell.type("ls /nonexistent/file")
    shell.type("echo behind")

    run = told("ls /nonexistent")
    assert shown.endswith("ls: cannot access '/nonexistent/file': No such file or directory\n")
    assert tail_of(run) == b"ls: cannot access '/nonexistent/file': No such file or directory\r\n"
    assert run.finished is not None
    assert (run.finished.tail_source, run.finished.tail_total) == (TailSource.MERGED, 66)
    assert (run.exit, run.starting.source) == (2, Source.PTY)
    assert (run.starting.shell, run.starting.pid) == (kind.encode(), inner_of(shell))


@both
def test_both_streams_stand_in_their_order(kind: str, start: ShellMaker, told: Told) -> None:
    shell = start(kind)
    shell.type("sh -c 'for i in 1 2 3; do echo out$i; echo err$i >&2; done; exit 3'")

    lines = b"".join(b"out%d\r\nerr%d\r\n" % (i, i) for i in (1, 2, 3))
    assert tail_of(told("err$i")) == lines


@both
def test_a_long_output_leaves_its_last_8_kib(kind: str, start: ShellMaker, told: Told) -> None:
    shell = start(kind)
    shell.type("seq 30000; false")

    run = told("seq 30000")
    output = b"".join(b"%d\r\n" % number for number in range(1, 30001))
    assert tail_of(run) == output[-8192:]
    assert run.finished is not None
    assert run.finished.tail_total == len(output)


@both
def test_binary_output_and_invalid_text_are_told_as_they_were(
    kind: str, start: ShellMaker, told: Told
) -> None:
    shell = start(kind)
    shell.type(r"printf '\377\376\000\200caf\303\251\033[31mred\033[m\r\n'; false")

    assert tail_of(told("printf")) == b"\xff\xfe\x00\x80caf\xc3\xa9\x1b[31mred\x1b[m\r\r\n"


@both
def test_a_success_of_one_command_has_no_tail_and_one_of_several_has(
    kind: str, start: ShellMaker, told: Told
) -> None:
    shell = start(kind)
    shell.type("echo plain")
    shell.type("echo one && echo two")
    shell.type("false | echo masked")
    shell.type("echo first; echo last")

    assert tail_of(told("echo plain")) is None
    assert tail_of(told("echo one")) == b"one\r\ntwo\r\n"
    assert tail_of(told("masked")) == b"masked\r\n"
    assert tail_of(told("echo last")) == b"first\r\nlast\r\n"


@both
def test_a_command_over_several_lines_has_its_tail(
    kind: str, start: ShellMaker, told: Told
) -> None:
    shell = start(kind, Rc(before="PS2='> '"))
    shell.send("for i in 1 2\r")
    shell.until("> ")
    shell.send("do echo turn$i\r")
    shell.until("> ")
    shell.type("done")

    assert tail_of(told("turn$i")) == b"turn1\r\nturn2\r\n"


@both
def test_pasted_lines_have_their_own_tails(kind: str, start: ShellMaker, told: Told) -> None:
    shell = start(kind)
    shell.send("ls /one\rls /two\rls /three\r")
    for _ in range(3):
        shell.until_prompt()

    for name in ("one", "two", "three"):
        tail = tail_of(told(f"ls /{name}"))
        assert tail is None or f"'/{name}'".encode() in tail
        assert tail is None or tail.count(b"cannot access") == 1
    assert tail_of(told("ls /three")) is not None


@both
@pytest.mark.parametrize("stream", ["", ">&2"])
def test_an_endless_output_can_be_interrupted(
    kind: str, stream: str, start: ShellMaker, told: Told
) -> None:
    shell = with_echo(start(kind))
    shell.send(f"yes endless {stream}\r")
    shell.until("endless\r\nendless\r\nendless")
    shell.send("\x03")
    shell.until_prompt()

    run = told("yes endless")
    tail = tail_of(run)
    assert run.exit == 130
    assert tail is not None
    assert tail.count(b"endless\r\n") > 10
    assert tail.rstrip().endswith(b"^C")


@both
def test_a_program_on_the_alternate_screen_has_no_tail(
    kind: str, start: ShellMaker, told: Told
) -> None:
    shell = start(kind)
    shell.type(r"printf '\033[?1049hpicture\033[?1049l'; false")
    shell.type("ls /nonexistent")

    assert tail_of(told("picture")) is None
    assert tail_of(told("ls /nonexistent")) is not None


@both
def test_a_password_is_nowhere_and_what_follows_it_is_told(
    kind: str, start: ShellMaker, told: Told, server: RecordingServer
) -> None:
    shell = start(kind)
    ask = "import getpass,sys; getpass.getpass('pw? '); sys.exit('access denied')"
    shell.send(f'python3 -c "{ask}"\r')
    shell.until("pw? ")
    shell.send("hunter2-secret\r")
    shell.until_prompt()

    assert tail_of(told("getpass")) == b"pw? \r\naccess denied\r\n"
    assert b"hunter2" not in repr(server.messages).encode()


@both
def test_an_answer_leaves_the_tail_and_a_conversation_does_not(
    kind: str, start: ShellMaker, told: Told
) -> None:
    shell = with_echo(start(kind))
    ask = "sh -c 'printf \"sur%s? \" e; read a; echo failed >&2; exit 1'"
    shell.send(f"{ask} one\r")
    shell.until("sure? ")
    shell.send("yes\r")
    shell.until_prompt()
    shell.send(f"{ask} two\r")
    shell.until("sure? ")
    shell.send("a private matter\r")
    shell.until_prompt()

    assert tail_of(told("' one")) == b"sure? yes\r\nfailed\r\n"
    assert tail_of(told("' two")) is None


@both
def test_what_is_typed_ahead_is_not_taken_for_output(
    kind: str, start: ShellMaker, told: Told
) -> None:
    shell = with_echo(start(kind))
    shell.send("sh -c 'echo beg''un; sleep 0.3; exit 1'\r")
    shell.until("begun")
    shell.send(" echo private ahead\r")
    shell.until_prompt()
    shell.until_prompt()
    shell.type("ls /nonexistent")

    assert tail_of(told("echo beg")) is None
    assert tail_of(told("ls /nonexistent")) is not None


@both
def test_blank_lines_pressed_meanwhile_do_no_harm(kind: str, start: ShellMaker, told: Told) -> None:
    shell = with_echo(start(kind))
    shell.send("sh -c 'echo beg''un; read a; read b; exit 1'\r")
    shell.until("begun")
    shell.send("\r\r")
    shell.until_prompt()

    assert tail_of(told("echo beg")) == b"begun\r\n\r\n\r\n"


@both
def test_the_output_of_a_private_line_is_in_no_tail(
    kind: str, start: ShellMaker, told: Told, server: RecordingServer
) -> None:
    shell = start(kind)
    shell.type(" echo very-private; false")
    shell.type("ls /nonexistent")

    tail = tail_of(told("ls /nonexistent"))
    assert tail == b"ls: cannot access '/nonexistent': No such file or directory\r\n"
    assert "very-private" not in repr(server.messages)


@both
def test_marks_that_are_imitated_are_output(kind: str, start: ShellMaker, told: Told) -> None:
    shell = start(kind)
    fake = r"\033]6973;0123456789abcdef;D1\007\033]6973;0123456789abcdef;C\007"
    shell.type(f"printf 'one{fake}two'; false")

    fake = "\x1b]6973;0123456789abcdef;D1\x07\x1b]6973;0123456789abcdef;C\x07"
    assert tail_of(told("printf")) == f"one{fake}two".encode()


@both
def test_the_tail_is_whole_though_nobody_reads_the_terminal(
    kind: str, start: ShellMaker, told: Told
) -> None:
    shell = start(kind)
    shell.send("seq 4000; false\r")

    run = told("seq 4000")  # while the terminal holds back what it was sent
    output = b"".join(b"%d\r\n" % number for number in range(1, 4001))
    assert tail_of(run) == output[-8192:]
    assert shell.until_prompt().endswith("3999\n4000\n")


def test_zsh_s_sign_for_a_line_without_an_end_is_no_obstacle(start: ShellMaker, told: Told) -> None:
    shell = start("zsh", Rc(after="setopt zle prompt_sp prompt_cr"))
    shell.type("printf 'no newline'; false")

    tail = tail_of(told("printf"))
    assert tail is not None
    assert tail.startswith(b"no newline")


@pytest.mark.parametrize("line", ["(ls /nonexistent)", "set -x; ls /nonexistent"])
def test_lines_that_bash_tells_late_have_their_tail(
    line: str, start: ShellMaker, told: Told
) -> None:
    shell = start("bash")
    shell.type("echo before")
    shell.type(line)
    if "set -x" in line:
        shell.type("ls /nonexistent again")

    tail = tail_of(told("ls /nonexistent"))
    assert tail is not None
    assert b"cannot access" in tail
    assert b"before" not in tail


@both
def test_background_output_of_an_earlier_job_stays_what_it_is(
    kind: str, start: ShellMaker, told: Told
) -> None:
    """Nobody can tell it from the command's own; it must only be in its place."""
    shell = start(kind)
    shell.type("(sleep 0.2; echo late) &")
    shell.type("sh -c 'sleep 0.6; echo mine; exit 1'")

    tail = tail_of(told("echo mine"))
    assert tail is not None
    assert tail.index(b"late\r\n") < tail.index(b"mine\r\n")


@both
def test_a_flood_of_keys_arrives_whole(kind: str, start: ShellMaker) -> None:
    """More than all buffers on the way hold, to a program that begins to read late."""
    shell = start(kind)
    keys = "".join(f"key {number}\0\r\x03" for number in range(20_000))
    read_all = f"head -c {len(keys)} | md5sum"
    shell.send(f"stty raw -echo; echo rea''dy; sleep 0.3; {read_all}; stty sane -echo\r")
    shell.until("ready")
    shell.send(keys)
    assert hashlib.md5(keys.encode(), usedforsecurity=False).hexdigest() in shell.until_prompt()


# ---- hints --------------------------------------------------------------------------------------


@both
def test_a_hint_stands_between_the_line_and_its_output(
    kind: str, start: ShellMaker, server: RecordingServer, told: Told
) -> None:
    server.manners.hints["ls /nonexistent"] = "try another file"
    shell = start(kind)
    shell.type("echo x")
    shown = shell.type("ls /nonexistent")

    error = "ls: cannot access '/nonexistent': No such file or directory\n"
    assert shown == f"try another file\n{error}"
    assert tail_of(told("ls /nonexistent")) == error.replace("\n", "\r\n").encode()


@both
def test_a_hint_after_a_failure_stands_before_the_prompt(
    kind: str, start: ShellMaker, server: RecordingServer
) -> None:
    server.manners.late_hints["ls /nonexistent"] = "try another file"
    shell = start(kind)
    shown = shell.type("ls /nonexistent")

    assert shown.endswith("No such file or directory\ntry another file\n")


@both
def test_a_hint_waits_behind_output_that_is_not_shown_yet(
    kind: str, start: ShellMaker, server: RecordingServer, told: Told
) -> None:
    server.manners.late_hints["seq"] = "less is more"
    shell = start(kind)
    shell.send("seq 4000; false\r")
    told("seq 4000")

    assert shell.until_prompt().endswith("3999\n4000\nless is more\n")


# ---- shells in the session ----------------------------------------------------------------------


@both
def test_a_shell_below_is_a_session_of_its_own_and_no_error_text(
    kind: str, start: ProxiedShellMaker, told: Told, server: RecordingServer
) -> None:
    shell = with_echo(start(kind))
    shell.type("echo outer")
    words = ShellMaker.write_rc(start, kind, Rc())
    shell.type("export ZDOTDIR=$HOME")
    shell.type(" ".join(words))
    shell.type("ls /nonexistent inner")
    shell.type(" echo private matter")
    shell.type("exit 5")
    shell.type("ls /nonexistent outer")

    inner, outer = told("ls /nonexistent inner"), told("ls /nonexistent outer")
    assert tail_of(inner) is None
    assert tail_of(outer) is not None
    assert inner.starting.session != outer.starting.session
    below = told(words[0] + " -")
    assert (below.exit, tail_of(below)) == (5, None)
    assert "private matter" not in repr(server.messages)


@both
def test_exec_of_the_same_shell_goes_on_in_the_session(
    kind: str, start: ProxiedShellMaker, told: Told, server: RecordingServer
) -> None:
    shell = start(kind)
    shell.type("echo one")
    words = ShellMaker.write_rc(start, kind, Rc())
    shell.type("export ZDOTDIR=$HOME")
    shell.type(f"exec {' '.join(words)}")
    shell.type("ls /nonexistent")

    run = told("ls /nonexistent")
    assert tail_of(run) == b"ls: cannot access '/nonexistent': No such file or directory\r\n"
    assert {run.starting.session for run in server.runs} == {run.starting.session}
    assert server.connections == 1


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh")
def test_exec_of_the_other_shell_goes_on_and_is_told(start: ProxiedShellMaker, told: Told) -> None:
    shell = start("bash")
    shell.type("echo in bash")
    words = ShellMaker.write_rc(start, "zsh", Rc())
    shell.type("export ZDOTDIR=$HOME")
    shell.type(f"exec {' '.join(words)}")
    shell.type("ls /nonexistent zsh")
    words = ShellMaker.write_rc(start, "bash", Rc())
    shell.type(f"exec {' '.join(words)}")
    shell.type("ls /nonexistent bash")

    for kind in ("zsh", "bash"):
        run = told(f"ls /nonexistent {kind}")
        assert run.starting.shell == kind.encode()
        assert tail_of(run) is not None


# ---- what a program inside can see --------------------------------------------------------------

LOOKS = (
    "env | sort",
    "ulimit -a",
    "ulimit -aH",
    "umask",
    "stty -a",
    "ls -l /proc/self/fd | wc -l",
    "grep -E 'Sig(Blk|Ign|Cgt)|Umask|CoreDumping|NoNewPrivs|Seccomp' /proc/self/status",
    "python3 -c 'import os; print(os.getpriority(os.PRIO_PROCESS, 0))'",
    "python3 -c 'import os; print(os.get_terminal_size())'",
    "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo terminals",
    "ps -o stat= -p $$ | tr R S | tr -d +",
    "pwd",
    "echo $- $# ${0##*/} $SHLVL",
)
OWN = re.compile(
    r"FLIGHTREC_PTY=.*\n|FLIGHTREC_SHELL.*\n|_=.*\n|GPG_TTY=.*\n|(speed|line) .*?;|/dev/pts/\d+"
)


@pytest.fixture
def _core_limit() -> Iterator[None]:
    """A limit that programs would notice the loss of."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


@both
@pytest.mark.usefixtures("server", "_core_limit")
def test_programs_see_what_they_would_see_without_the_proxy(
    kind: str, start: ShellMaker, plain: ShellMaker
) -> None:
    inside, outside = start(kind), plain(kind)
    for line in LOOKS:
        ours, theirs = (OWN.sub("", shell.type(line)) for shell in (inside, outside))
        assert ours == theirs, line


@both
def test_the_holder_is_called_what_runs_inside_and_is_where_the_shell_is(
    kind: str, start: ShellMaker, tmp_path: Path, wait_for: WaitFor
) -> None:
    shell = start(kind)
    holder = Path(f"/proc/{shell.pid}")

    def called() -> tuple[str, str]:
        words = (holder / "cmdline").read_bytes().split(b"\0")
        return words[0].decode(), (holder / "comm").read_text(encoding="utf-8").strip()

    wait_for(lambda: called() == (kind, kind), what="the shell's name")
    shell.type(f"cd {tmp_path}")
    wait_for(lambda: (holder / "cwd").resolve() == tmp_path.resolve(), what="the shell's folder")
    shell.send("sleep 600\r")
    wait_for(lambda: called() == ("sleep", "sleep"), what="the program's name")
    shell.send("\x03")
    shell.until_prompt()
    wait_for(lambda: called() == (kind, kind), what="the shell's name again")


@both
def test_a_window_that_changes_its_size_is_followed(
    kind: str, start: ShellMaker, wait_for: WaitFor
) -> None:
    shell = start(kind)
    assert "40 200" in shell.type("stty size")
    shell.child.setwinsize(31, 91)
    wait_for(lambda: "31 91" in shell.type("stty size"), what="the new size")


# ---- jobs and signals ---------------------------------------------------------------------------


@both
def test_jobs_stop_and_go_on(kind: str, start: ShellMaker, told: Told) -> None:
    shell = with_echo(start(kind))
    shell.send("cat\r")
    shell.until("cat\r\n")
    shell.send("ready\r")
    shell.until("ready\r\nready\r\n")
    shell.send("\x1a")
    assert re.search("[Ss](topped|uspended)", shell.until_prompt())
    shell.send("fg\r")
    shell.until("fg\r\n")
    shell.until("cat\r\n")
    shell.send("again\r")
    shell.until("again\r\nagain\r\n")
    shell.send("\x04")
    shell.until_prompt()
    assert [told("cat").exit, told("fg").exit] == [148, 0]


@both
def test_the_exit_status_is_the_shell_s(kind: str, start: ShellMaker) -> None:
    assert start(kind).leave("exit 7") == 7
    assert start(kind).leave("exit 0") == 0


@both
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP])
def test_a_shell_that_is_killed_takes_the_session_with_it(
    kind: str, number: signal.Signals, start: ShellMaker, plain: ShellMaker
) -> None:
    ends = []
    for shell, pid in ((plain(kind), None), (start(kind), inner_of)):
        os.kill(shell.pid if pid is None else pid(shell), number)
        shell.child.expect(pexpect.EOF)
        shell.child.close()
        ends.append((shell.child.exitstatus, shell.child.signalstatus))
    assert ends[0] == ends[1]


@both
def test_signals_to_the_holder_reach_the_shell(kind: str, start: ShellMaker) -> None:
    shell = start(kind)
    shell.type("trap 'heard=1' USR1")
    shell.send("until [ $heard ]; do printf t; printf 'urn '; sleep 0.01; done\r")
    shell.until("turn")
    os.kill(shell.pid, signal.SIGUSR1)
    shell.until_prompt()
    os.kill(shell.pid, signal.SIGTERM)  # which an interactive shell ignores
    assert "still here" in shell.type("echo still here")


def test_a_suspended_shell_stops_the_holder_and_goes_on_with_it(
    start: ShellMaker, wait_for: WaitFor
) -> None:
    shell = start("bash")
    before = termios.tcgetattr(shell.child.child_fd)
    shell.send("suspend\r")
    wait_for(lambda: is_stopped(shell.pid), what="the holder to stop")
    assert termios.tcgetattr(shell.child.child_fd)[3] & termios.ICANON
    os.killpg(shell.pid, signal.SIGCONT)
    wait_for(lambda: not is_stopped(inner_of(shell)), what="the shell to go on")
    shell.until_prompt()
    assert "here again" in shell.type("echo here again")
    assert termios.tcgetattr(shell.child.child_fd) == before


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


# ---- trouble ------------------------------------------------------------------------------------


@both
@pytest.mark.usefixtures("server")
def test_without_its_worker_the_session_lives_on(
    kind: str, start: ShellMaker, home: Path, wait_for: WaitFor
) -> None:
    shell = start(kind)
    shell.type("echo before")
    worker = worker_of(shell)
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: not is_alive(worker) and not channels(home), what="the worker's end")

    assert "alive" in shell.type("echo alive")
    assert shell.type("ls /nonexistent").endswith("No such file or directory\n")
    assert shell.type("seq 20000").endswith("20000\n")
    shell.child.setwinsize(33, 93)
    wait_for(lambda: "33 93" in shell.type("stty size"), what="the new size")
    shell.send("sh -c 'echo ready; cat'\r")
    shell.until("ready\r\n")
    shell.send("typed\r")
    shell.until("typed\r\n")
    shell.send("\x03")
    shell.until_prompt()
    assert shell.leave("exit 9") == 9


@both
@pytest.mark.usefixtures("server")
def test_a_worker_that_is_stopped_is_continued(kind: str, start: ShellMaker) -> None:
    shell = start(kind)
    os.kill(worker_of(shell), signal.SIGSTOP)
    assert "goes on" in shell.type("echo goes on")


def kill_holder(shell: TypedShell) -> None:
    os.kill(shell.pid, signal.SIGKILL)


def take_terminal_away(shell: TypedShell) -> None:
    with Path("/dev/null").open("rb") as nothing:
        os.dup2(nothing.fileno(), shell.child.child_fd)


@both
@pytest.mark.parametrize("end", [kill_holder, take_terminal_away])
def test_when_holder_or_terminal_are_gone_nothing_is_left(
    kind: str,
    end: Callable[[TypedShell], None],
    start: ShellMaker,
    server: RecordingServer,
    wait_for: WaitFor,
) -> None:
    shell = start(kind)
    shell.type("echo before")
    inner, worker = inner_of(shell), worker_of(shell)
    end(shell)
    wait_for(lambda: not is_alive(inner), what="the shell's end")
    wait_for(lambda: not is_alive(worker), what="the worker's end")
    assert channels(start.home) == []
    wait_for(lambda: len(server.ended_sessions) == 1, what="word of the session's end")


@both
def test_a_job_that_survives_its_shell_does_not_hold_the_terminal(
    kind: str, start: ShellMaker, home: Path, wait_for: WaitFor
) -> None:
    shell = start(kind)
    shell.type("setopt nohup 2>/dev/null; (trap '' HUP; exec sleep 30) & pid=$!; disown")
    pid = int(re.findall(r"\d+", shell.type("echo $pid"))[-1])
    assert is_alive(pid)
    assert shell.leave("exit 4") == 4
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not channels(home), what="the folder to go")


@both
def test_a_session_passes_the_sanitizers(
    kind: str, start: ProxiedShellMaker, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helper_builds, "helper", helper_builds.sanitized_helper)
    shell = start(kind)
    worker = worker_of(shell)
    for line in ("seq 20000; false", "ls /nonexistent", r"printf '\033]6973;0\377'; false", "cd /"):
        shell.type(line)
    assert tail_of(told("ls /nonexistent")) is not None
    assert is_alive(worker)
    assert shell.leave("exit 6") == 6


@both
@pytest.mark.parametrize("folder", ["/nonexistent/tmp", "/proc", ""])
def test_nothing_depends_on_a_folder_for_temporary_files(
    kind: str, folder: str, start: ShellMaker, told: Told
) -> None:
    shell = start(kind, env={"TMPDIR": folder})
    shell.type("ls /nonexistent")
    assert tail_of(told("ls /nonexistent")) is not None


@both
def test_without_a_daemon_the_session_is_as_ever(kind: str, start: ShellMaker) -> None:
    shell = start(kind)
    assert shell.type("ls /nonexistent").endswith("No such file or directory\n")
    assert shell.leave("exit 3") == 3


@both
def test_commands_of_a_time_without_a_daemon_arrive_with_their_tails(
    kind: str, start: ShellMaker, home: Path, wait_for: WaitFor
) -> None:
    shell = start(kind)
    shell.type("ls /nonexistent")
    with recording_server() as server:
        assert home.exists()

        def tail() -> bytes | None:
            shell.type(":")
            runs = [run for run in server.runs if "nonexistent" in run.command]
            return tail_of(runs[0]) if runs and runs[0].finished else None

        wait_for(tail, what="the tail")


# ---- where there is no proxy --------------------------------------------------------------------


def run_proxy(*words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        proxied(list(words)), env=env, capture_output=True, text=True, timeout=20, check=False
    )


def test_without_a_terminal_the_program_runs_as_it_is(clean_env: dict[str, str]) -> None:
    done = run_proxy(
        "sh", "-c", 'echo "$0 $1 $(( ${FLIGHTREC_PTY} - $$ ))"; exit 3', "a", "b c", env=clean_env
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "a b c 0\n", "")


def test_a_program_that_is_missing_is_said_to_be(clean_env: dict[str, str]) -> None:
    helper = str(helper_builds.helper())
    done = subprocess.run(
        [helper, "pty", "/nonexistent/sh", "", "--", "sh"],
        env=clean_env,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 127
    assert done.stderr == "flightrec: cannot start /nonexistent/sh: No such file or directory\n"


def test_where_nothing_can_be_written_the_shell_starts_without(
    home: Path, start: ShellMaker
) -> None:
    (home / ".local").write_text("no folder\n")
    shell = start("bash")
    assert "alive" in shell.type("echo alive")
    assert f"{shell.pid}" in shell.type("echo $FLIGHTREC_PTY; echo $$")


def test_in_the_background_the_terminal_is_left_alone(plain: ShellMaker, wait_for: WaitFor) -> None:
    shell = plain("bash", Rc(ours=""))
    words = " ".join(f"'{word}'" for word in proxied(["bash", "--norc", "-i"]))
    before = shell.type("stty -a")
    shell.type(f"{words} &")
    wait_for(lambda: "Stopped" in shell.type("jobs"), what="the shell to wait for its terminal")
    assert shell.type("stty -a").splitlines()[1:] == before.splitlines()[1:]
    shell.type("kill -9 %1")
