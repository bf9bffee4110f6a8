"""What real interactive shells tell, and that nobody notices: bash and zsh on a terminal."""

import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import helper_builds
from agents.node import NPM
from flightrec.missed import HELPER_COUNTERS, read_helper_counters
from flightrec.paths import find_paths
from flightrec.wire import WordKind
from recording_server import RecordingServer, recording_server
from typed_shell import (
    BOTH,
    DEADLINES,
    IN_STEP,
    PROMPT,
    SCRIPTS,
    Rc,
    ShellMaker,
    TypedShell,
    is_alive,
    relay_of,
    source_line,
    stop,
)

WaitFor = Callable[..., object]
Pair = tuple[str, int | None]
"""A command and its exit status."""

both = pytest.mark.parametrize("kind", BOTH)


@pytest.fixture
def server(home: Path) -> Iterator[RecordingServer]:  # noqa: ARG001 - where it serves
    with recording_server() as running:
        yield running


@pytest.fixture
def start(home: Path) -> Iterator[ShellMaker]:
    maker = ShellMaker(home)
    with contextlib.closing(maker):
        yield maker


@pytest.fixture
def heard(server: RecordingServer, wait_for: WaitFor) -> Callable[[TypedShell], list[Pair]]:
    """``heard(shell)`` is what was recorded of a shell so far, as (command, exit)."""

    def sentinel_arrived(shell: TypedShell) -> bool:
        sentinel = f": sentinel {time.monotonic_ns()}"
        shell.type(sentinel)
        for _ in range(100):
            if (sentinel, 0) in server.finished:
                return True
            time.sleep(0.01)
        return False  # the shell has given up on a relay that was late: once more

    def collect(shell: TypedShell) -> list[Pair]:
        wait_for(lambda: sentinel_arrived(shell), what="what the shell tells")
        return [pair for pair in server.finished if not pair[0].startswith(": sentinel")]

    return collect


Heard = Callable[[TypedShell], list[Pair]]

MISSING = {"bash": 127, "zsh": 127}


# ---- what is recorded ---------------------------------------------------------------------------


@both
def test_text_status_directory_and_shell_arrive(
    kind: str, start: ShellMaker, server: RecordingServer, heard: Heard
) -> None:
    shell = start(kind)
    shell.type("echo one  two")
    shell.type("false")
    shell.type("cd /tmp")
    shell.type("nosuchprogram --x")

    assert heard(shell) == [
        ("echo one  two", 0),
        ("false", 1),
        ("cd /tmp", 0),
        ("nosuchprogram --x", 127),
    ]
    moved = server.runs[2]
    assert moved.finished is not None
    assert (moved.starting.cwd, moved.finished.cwd) == (os.fsencode(start.home), b"/tmp")
    assert (moved.starting.shell, moved.starting.pid) == (kind.encode(), shell.pid)
    assert moved.starting.tty.startswith(b"/dev/pts/")
    assert len({run.starting.session for run in server.runs}) == 1


@both
def test_a_pipeline_tells_each_status(
    kind: str, start: ShellMaker, heard: Heard, server: RecordingServer
) -> None:
    shell = start(kind)
    shell.type("true | (exit 3) | true")
    shell.type("(exit 4) | (exit 5)")

    heard(shell)
    pipes = [run.finished.pipestatus for run in server.runs[:2] if run.finished is not None]
    assert pipes == [[0, 3, 0], [4, 5]]
    assert [run.exit for run in server.runs[:2]] == [0, 5]


@both
def test_a_duration_is_measured(
    kind: str, start: ShellMaker, heard: Heard, server: RecordingServer
) -> None:
    shell = start(kind)
    shell.type("sleep 0.3")
    shell.type("(sleep 0.3)")
    shell.type("true")

    heard(shell)
    slow, late, quick = (run.finished.usec for run in server.runs[:3] if run.finished)
    assert slow is not None
    assert late is not None
    assert quick is not None
    assert slow >= 300_000
    assert late >= 300_000
    assert quick < 300_000


@both
def test_subshells_functions_and_loops_are_one_run_each(
    kind: str, start: ShellMaker, heard: Heard
) -> None:
    shell = start(kind)
    lines = [
        ("(echo a; exit 3)", 3),
        ("f() { echo in; return 4; }", 0),
        ("f a b", 4),
        ("for i in 1 2 3; do echo $i; done", 0),
        ("while false; do :; done; (exit 5)", 5),
        ("{ echo x; false; }", 1),
        ("if true; then false; fi", 1),
        ("x=$(echo y; exit 6)", 6),
        ("echo after && (cd / && false)", 1),
    ]
    for line, _ in lines:
        shell.type(line)

    assert heard(shell) == lines


@both
def test_a_command_over_several_lines_is_one_run(
    kind: str, start: ShellMaker, heard: Heard
) -> None:
    shell = start(kind)
    shell.type("for i in 1 2\rdo false $i\rdone")
    shell.type("cat <<X\rhere it is\rX")
    shell.type("echo a \\\rb")
    shell.type("echo 'one\rtwo'")

    commands = [command for command, _ in heard(shell)]
    assert len(commands) == 4
    assert re.sub(r"[;\s]+", " ", commands[0]) == "for i in 1 2 do false $i done"
    assert commands[1] == "cat <<X\nhere it is\nX"
    assert commands[2] in ("echo a b", "echo a \\\nb")
    assert commands[3] == "echo 'one\ntwo'"


@both
def test_pasted_lines_are_runs_of_their_own(kind: str, start: ShellMaker, heard: Heard) -> None:
    shell = start(kind)
    shell.send("sleep 0.3; echo one\rfalse\r(exit 7)\rnosuchprogram\r")
    for _ in range(4):
        shell.until_prompt()

    assert heard(shell) == [
        ("sleep 0.3; echo one", 0),
        ("false", 1),
        ("(exit 7)", 7),
        ("nosuchprogram", 127),
    ]


@pytest.mark.usefixtures("server")
def test_a_bracketed_paste_never_gives_a_line_another_line_s_status(
    start: ShellMaker, heard: Heard
) -> None:
    shell = start("bash", Rc(after="bind 'set enable-bracketed-paste on'"))
    shell.send("\x1b[200~echo p1\necho p2\n(exit 9)\x1b[201~\r")
    shell.until_prompt()

    assert heard(shell) == [("echo p1", None), ("echo p2", None), ("(exit 9)", 9)]


@pytest.mark.usefixtures("server")
def test_a_bracketed_paste_in_zsh_is_recorded(start: ShellMaker, heard: Heard) -> None:
    shell = start("zsh", Rc(after="setopt zle"))
    shell.send("\x1b[200~echo p1\necho p2\n(exit 9)\x1b[201~\r")
    shell.until_prompt()
    shell.type("setopt nozle")

    pasted = heard(shell)[:-1]
    assert pasted[-1][1] == 9
    assert all(status == 9 or "p" in command for command, status in pasted)


@both
def test_comments_are_part_of_the_line_and_alone_they_are_nothing(
    kind: str, start: ShellMaker, heard: Heard
) -> None:
    rc = Rc(after="setopt interactivecomments" if kind == "zsh" else "")
    shell = start(kind, rc)
    shell.type("echo x # why")
    shell.type("# nothing but words")
    shell.type("false")

    runs = heard(shell)
    assert ("echo x # why", 0) in runs
    assert ("false", 1) in runs
    assert all(status in (0, None) for command, status in runs if command.startswith("#"))


@both
def test_a_syntax_error_never_gets_the_text_before_it(
    kind: str, start: ShellMaker, heard: Heard
) -> None:
    shell = start(kind)
    shell.type("echo good")
    shell.type("echo )")
    shell.type("echo again")

    assert heard(shell) == [("echo good", 0), ("echo again", 0)]


@pytest.mark.parametrize("control", ["ignorespace", "ignoreboth", "ignorespace:erasedups"])
def test_a_private_line_after_a_syntax_error_gets_no_text_at_all(
    control: str, start: ShellMaker, heard: Heard
) -> None:
    shell = start("bash", Rc(after=f"HISTCONTROL={control}"))
    shell.type("echo )")
    shell.type(" false")
    shell.type("echo one")
    shell.type("echo )")
    shell.type(" (exit 3)")

    assert heard(shell) == [("echo one", 0)]


@both
def test_interrupts_are_recorded_and_an_empty_line_is_not(
    kind: str, start: ShellMaker, heard: Heard, wait_for: WaitFor
) -> None:
    shell = start(kind, Rc(after="setopt zle" if kind == "zsh" else ""))
    shell.send("sleep 30\r")
    wait_for(shell.runs_a_job, what="the job")
    shell.send("\x03")
    shell.until_prompt()
    time.sleep(0.1)
    shell.send("\x03")
    shell.get_in_step()
    shell.type("")
    shell.type("true")

    assert heard(shell) == [("sleep 30", 130), (IN_STEP, 0), ("true", 0)]


def test_an_interrupt_at_the_prompt_with_the_person_s_own_handler_records_nothing(
    start: ShellMaker, heard: Heard
) -> None:
    shell = start("bash", Rc(before="trap 'true handler' INT"))
    shell.type("echo one")
    time.sleep(0.1)
    shell.send("\x03")
    shell.get_in_step()
    assert shell.type("trap -p INT") == "trap -- 'true handler' SIGINT\n"

    assert heard(shell) == [("echo one", 0), (IN_STEP, 0), ("trap -p INT", 0)]


@both
def test_stopped_and_continued_jobs_are_runs(
    kind: str, start: ShellMaker, heard: Heard, wait_for: WaitFor
) -> None:
    shell = start(kind)
    shell.send("sleep 1\r")
    wait_for(shell.runs_a_job, what="the job")
    shell.send("\x1a")
    shell.until_prompt()
    shell.type("fg")
    shell.type("echo back")

    stopped = 148
    runs = heard(shell)
    assert runs == [("sleep 1", stopped), ("fg", 0), ("echo back", 0)]


@both
def test_background_jobs_end_at_once_and_disturb_nothing(
    kind: str, start: ShellMaker, heard: Heard
) -> None:
    shell = start(kind)
    shell.type("(sleep 0.2; exit 5) &")
    shell.type("wait $!")
    shell.type("echo done")

    runs = heard(shell)
    assert runs[0] == ("(sleep 0.2; exit 5) &", 0)
    assert runs[1:] == [("wait $!", 5), ("echo done", 0)]


@both
def test_exec_ends_the_run_unseen_and_a_new_shell_takes_over(
    kind: str, start: ShellMaker, server: RecordingServer, heard: Heard, wait_for: WaitFor
) -> None:
    shell = start(kind)
    shell.type("echo before")
    first = relay_of(start.home, shell.pid)
    again = " ".join(start.write_rc(kind, Rc()))
    shell.type(f"exec {again}")

    assert heard(shell) == [("echo before", 0), (f"exec {again}", None)]
    wait_for(lambda: not is_alive(first), what="the first shell's relay to leave")
    assert len({run.starting.session for run in server.runs}) == 2
    wait_for(lambda: server.ended_sessions, what="word of the first session's end")
    assert server.ended_sessions == [server.runs[0].starting.session]


@both
def test_the_end_of_the_shell_is_told(
    kind: str, start: ShellMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    shell = start(kind)
    shell.type("echo one")
    relay = relay_of(start.home, shell.pid)

    assert shell.leave("exit 7") == 7
    wait_for(lambda: server.ended_sessions, what="the session's end")
    assert server.finished == [("echo one", 0), ("exit 7", None)]
    wait_for(lambda: not is_alive(relay), what="the relay to leave")
    assert not [entry for entry in find_paths().run.iterdir() if entry.is_dir()]


@both
@pytest.mark.usefixtures("server")
def test_a_vanished_terminal_leaves_nothing_behind(
    kind: str, start: ShellMaker, wait_for: WaitFor
) -> None:
    shell = start(kind)
    shell.type("echo one")
    relay = relay_of(start.home, shell.pid)
    shell.hang_up()

    wait_for(lambda: not is_alive(relay), what="the relay to leave")
    assert not [entry for entry in find_paths().run.iterdir() if entry.is_dir()]


@both
def test_nested_shells_are_sessions_of_their_own(
    kind: str, start: ShellMaker, server: RecordingServer, heard: Heard
) -> None:
    shell = start(kind)
    again = " ".join(start.write_rc(kind, Rc()))
    shell.type("echo outer")
    shell.type(again)
    shell.type("echo inner")
    shell.type("exit 5")
    shell.type("echo $?")

    assert heard(shell) == [
        ("echo outer", 0),
        (again, 5),
        ("echo inner", 0),
        ("exit 5", None),
        ("echo $?", 0),
    ]
    sessions = [run.starting.session for run in server.runs]
    assert sessions[0] == sessions[1] == sessions[4]
    assert sessions[2] == sessions[3] != sessions[0]


@both
def test_a_nested_shell_is_recorded_where_all_variables_are_exported(
    kind: str, start: ShellMaker, server: RecordingServer, heard: Heard
) -> None:
    shell = start(kind, Rc(before="set -a"))
    shell.type(" ".join(start.write_rc(kind, Rc())))
    shell.type("false")
    shell.type("exit")
    shell.type("(exit 3)")

    assert {("false", 1), ("(exit 3)", 3)} < set(heard(shell))
    assert len({run.starting.session for run in server.runs}) == 2


@both
def test_the_first_word_s_kind_is_told(
    kind: str, start: ShellMaker, server: RecordingServer, heard: Heard
) -> None:
    shell = start(kind, Rc(after="alias gti='true git'\nmyfunction() { :; }"))
    for line in ("gti st", "myfunction x", "pwd", "ls /", "A=1 ls /"):
        shell.type(line)

    heard(shell)
    kinds = [run.starting.word_kind for run in server.runs[:5]]
    assert kinds == [
        WordKind.ALIAS,
        WordKind.FUNCTION,
        WordKind.BUILTIN,
        WordKind.UNKNOWN,
        WordKind.UNKNOWN,
    ]


@both
def test_path_and_virtual_env_are_sent_when_they_change(
    kind: str, start: ShellMaker, server: RecordingServer, heard: Heard
) -> None:
    shell = start(kind)
    for line in (
        "echo 1",
        "echo 2",
        "PATH=/opt/new:$PATH",
        "echo 3",
        "export VIRTUAL_ENV=/v",
        "echo 4",
    ):
        shell.type(line)

    heard(shell)
    sent = [(run.starting.path, run.starting.virtual_env) for run in server.runs[:6]]
    path = b"/usr/local/bin:/usr/bin:/bin"
    assert sent == [
        (path, None),
        (None, None),
        (None, None),
        (b"/opt/new:" + path, None),
        (None, None),
        (b"/opt/new:" + path, b"/v"),
    ]


@both
def test_bytes_that_are_no_utf8_and_odd_locales_survive(
    kind: str, start: ShellMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    shell = start(kind, env={"LC_ALL": "C"})
    shell.type("echo \udcff\udcfe gr\u00fcn >/dev/null")

    wait_for(lambda: server.finished, what="the command")
    assert server.runs[0].starting.command == b"echo \xff\xfe gr\xc3\xbcn >/dev/null"


@both
def test_a_huge_command_is_cut_and_says_so(
    kind: str, start: ShellMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    shell = start(kind)
    (start.home / "big").write_text(f"true {'x' * 2_000_000}\n")
    # Typed by the line editor of no terminal: the history list gets it all the same.
    if kind == "bash":
        shell.type("line=$(<big)")
        shell.type("""bind -x '"\\C-t": READLINE_LINE=$line'""")
        shell.send("\x14")
    else:
        shell.type("setopt zle; line=$(<big)")
        shell.type("load() { BUFFER=$line; zle accept-line; }; zle -N load; bindkey '^T' load")
        shell.send("\x14")
    shell.send("\r")
    wait_for(lambda: [r for r in server.runs if r.starting.truncated], what="the huge one")

    huge = next(run for run in server.runs if run.starting.truncated)
    wait_for(lambda: huge.finished is not None, what="its end")
    assert huge.exit == 0
    assert len(huge.starting.command) == 16 * 1024
    assert huge.starting.command.startswith(b"true xxx")
    assert huge.starting.command_total == 2_000_005


# ---- what is private ----------------------------------------------------------------------------


@both
@pytest.mark.parametrize("control", ["", "ignorespace", "ignoreboth"])
def test_a_leading_space_is_private(
    control: str, kind: str, start: ShellMaker, heard: Heard
) -> None:
    setting = (
        f"HISTCONTROL={control}" if kind == "bash" else "setopt histignorespace" * bool(control)
    )
    shell = start(kind, Rc(after=setting))
    shell.type("cd /tmp && true")
    shell.type(" echo secret")
    shell.type(" cd /tmp && false")
    shell.type(" (exit 3)")
    shell.type("echo public")

    assert heard(shell) == [("cd /tmp && true", 0), ("echo public", 0)]


def test_a_private_variant_of_the_last_command_is_not_taken_for_a_repetition(
    start: ShellMaker, heard: Heard
) -> None:
    shell = start("bash", Rc(after="HISTCONTROL=ignoreboth"))
    for line in (
        "false",
        " false; true",
        " ! false",
        " false | true",
        " false &",
    ):
        shell.type(line)

    assert heard(shell) == [("false", 1)]


def test_a_repetition_is_recorded_where_history_drops_it(start: ShellMaker, heard: Heard) -> None:
    shell = start("bash", Rc(after="HISTCONTROL=ignoreboth"))
    for line in ("false", "false", "ls /nope", "ls /nope", "ls /nope", "(exit 3)"):
        shell.type(line)

    assert heard(shell) == [("false", 1)] * 2 + [("ls /nope", 2)] * 3 + [("(exit 3)", 3)]


def test_erasedups_and_a_short_history_lose_nothing(start: ShellMaker, heard: Heard) -> None:
    shell = start("bash", Rc(after="HISTCONTROL=ignorespace:erasedups\nHISTSIZE=3"))
    lines = (
        "echo a && true",
        "echo b && true",
        "echo a && true",
        "echo c",
        "echo d",
        "echo b && true",
    )
    for line in lines:
        shell.type(line)
        shell.type(" (exit 9)")

    assert heard(shell) == [(line, 0) for line in lines]


def test_histignore_is_private(start: ShellMaker, heard: Heard) -> None:
    shell = start("bash", Rc(after="HISTIGNORE='*secret*:ls*'"))
    for line in ("echo one", "echo secret; false", "ls /nope", "echo two"):
        shell.type(line)

    assert heard(shell) == [("echo one", 0), ("echo two", 0)]


def test_history_ignore_is_private_in_zsh(start: ShellMaker, heard: Heard) -> None:
    shell = start("zsh", Rc(after="HISTORY_IGNORE='(*secret*|ls*)'"))
    for line in ("echo one", "echo secret; false", "ls /nope", "echo two"):
        shell.type(line)

    assert heard(shell) == [("echo one", 0), ("echo two", 0)]


def test_history_off_is_private_and_history_without_a_file_is_not(
    start: ShellMaker, heard: Heard
) -> None:
    shell = start("bash")
    for line in (
        "echo one",
        "set +o history",
        "echo hidden",
        "(exit 3)",
        "set -o history",
        "echo two",
    ):
        shell.type(line)

    runs = heard(shell)
    assert ("echo one", 0) in runs
    assert ("echo two", 0) in runs
    assert not {"echo hidden", "(exit 3)"} & {command for command, _ in runs}


@both
def test_flightrec_off_pauses_one_shell(kind: str, start: ShellMaker, heard: Heard) -> None:
    shell = start(kind)
    for line in ("FLIGHTREC_OFF=1", "echo hidden", "(exit 3)", "unset FLIGHTREC_OFF", "echo two"):
        shell.type(line)

    assert heard(shell) == [("FLIGHTREC_OFF=1", 0), ("echo two", 0)]


@both
def test_flightrec_off_from_the_start_installs_nothing(
    kind: str, start: ShellMaker, server: RecordingServer
) -> None:
    shell = start(kind, env={"FLIGHTREC_OFF": "1"})

    assert shell.type("echo ${__flightrec_state-none}") == "none\n"
    assert not server.messages


@both
def test_what_the_daemon_calls_private_is_forgotten(
    kind: str, start: ShellMaker, server: RecordingServer, heard: Heard
) -> None:
    server.manners.private = ("vault",)
    shell = start(kind)
    shell.type("echo vault; false")
    shell.type("echo open")

    assert heard(shell) == [("echo open", 0)]


# ---- hints --------------------------------------------------------------------------------------


@both
def test_a_hint_stands_before_the_command_s_output(
    kind: str, start: ShellMaker, server: RecordingServer
) -> None:
    server.manners.hints = {"gti": "flightrec: previously failed here (3×); try: git status"}
    shell = start(kind)
    shown = shell.type("gti status")

    assert shown.splitlines()[0].rstrip("\r") == (
        "flightrec: previously failed here (3×); try: git status"
    )
    assert "not found" in shown.splitlines()[-1]


@both
def test_a_hint_after_a_failure_stands_before_the_prompt(
    kind: str, start: ShellMaker, server: RecordingServer
) -> None:
    server.manners.late_hints = {"gti": "flightrec: try: git status"}
    shell = start(kind)
    shown = shell.type("gti status").splitlines()

    assert "not found" in shown[0]
    assert shown[-1].rstrip("\r") == "flightrec: try: git status"
    assert shell.type("true") == ""


@both
def test_a_hostile_hint_commands_no_terminal(
    kind: str, start: ShellMaker, server: RecordingServer
) -> None:
    hostile = "a\x1b]0;t\x07b\x1b[31mc\x9b5nd\u202ee\u200bf\rg\x00h\x7fi\u009b6n\n$(id)\n%{x\nfour"
    server.manners.hints = {"gti": hostile}
    shell = start(kind)
    shown = shell.type("gti").splitlines()

    assert shown[0].rstrip("\r") == "a]0;tb[31mc5ndefg"  # a NUL ends it
    assert "four" not in "".join(shown)


# ---- nobody notices -----------------------------------------------------------------------------

TRANSCRIPT = (
    "echo one two; (exit 3)",
    "echo $? $_",
    "true | false | true",
    "echo ${PIPESTATUS[*]-} ${pipestatus[*]-}",
    "nosuchprogram",
    "echo $?",
    "echo a b c",
    "echo $_",
    "! true",
    "echo $?",
    "x=$(exit 4)",
    "echo $? [$x]",
    "trap 'echo exit trap' EXIT",
    "trap",
    "trap - EXIT",
    "f() { local y=1; return 7; }; f",
    "echo $?",
    "for i in 1 2; do echo $i; done; echo $_",
    "( echo sub )",
    "echo $_ $?",
    "set -u",
    "echo ${unset_variable-empty}",
    "set +u",
    "set -e; true",
    "echo still here",
    "set +e",
    "set -x",
    "echo traced",
    "for i in 1; do echo $i; done",
    "set +x",
    "echo untraced",
    "exec 3>&1; echo to three >&3; exec 3>&-",
    "shopt -s extdebug 2>/dev/null || setopt ksharrays 2>/dev/null",
    "echo options",
    "shopt -u extdebug 2>/dev/null || unsetopt ksharrays 2>/dev/null",
    "stty -a",
    "echo $- ; set -o | sort",
    "echo ${HISTCONTROL-none} ${HISTIGNORE-none} ${HISTTIMEFORMAT-none} $HISTSIZE",
    "ulimit -a",
    "jobs; echo $!",
    "umask",
    "type cd echo | head -n 3",
    "ls -l /proc/self/fd | wc -l",
    "history | tail -n 5 || fc -l -5",
)


def transcript(shell: TypedShell) -> list[tuple[str, str]]:
    """Return each typed line with all that the terminal showed."""
    pid = str(shell.pid)
    return [(line, shell.type(line).replace(pid, "PID")) for line in TRANSCRIPT]


@both
def test_a_session_looks_the_same_with_and_without_us(
    kind: str, start: ShellMaker, server: RecordingServer
) -> None:
    with_us = transcript(start(kind))
    without = transcript(start(kind, Rc(ours="")))

    assert len(server.runs) > len(TRANSCRIPT) // 2
    assert with_us == without


@both
def test_strict_modes_stay_silent_and_recorded(kind: str, start: ShellMaker, heard: Heard) -> None:
    shell = start(kind)
    lines = ("set -u", "echo u", "set -e", "true", "set +eu", "set -x", "set +x", "echo end")
    for line in lines:
        shown = shell.type(line)
        assert "flightrec" not in shown

    assert heard(shell) == [(line, 0) for line in lines]


@both
def test_the_person_s_own_names_and_aliases_are_not_in_the_way(
    kind: str, start: ShellMaker, heard: Heard
) -> None:
    own = """
readonly flag=x reply=x first=x lines=9 found=x result=0 word=x usec=1 i=5 pipe=x
printf() { return 1; }; read() { return 1; }; history() { return 1; }
alias printf=false read=false history=false local=false trap=false type=false set=false
IFS=:
"""
    bash_only = "readonly status=0" if kind == "bash" else ""  # zsh has one of this name itself
    shell = start(kind, Rc(before=own + bash_only))
    shell.type("(exit 5)")
    shell.type("nosuchprogram a b")

    assert heard(shell) == [("(exit 5)", 5), ("nosuchprogram a b", 127)]


def test_posix_mode_changes_nothing(start: ShellMaker, heard: Heard) -> None:
    shell = start("bash", Rc(before="set -o posix"))
    assert "flightrec" not in shell.type("echo one")
    shell.type("false")

    assert heard(shell) == [("echo one", 0), ("false", 1)]


def test_strict_mode_in_the_rc_file_does_not_end_it(start: ShellMaker, heard: Heard) -> None:
    shell = start("bash", Rc(before="set -euo pipefail", after="set +e\nreached=yes"))
    assert shell.type("echo $reached") == "yes\n"

    assert heard(shell) == [("echo $reached", 0)]


@pytest.mark.usefixtures("server")
def test_loops_typed_at_the_prompt_run_at_full_speed(start: ShellMaker) -> None:
    loop = "time for ((i = 0; i < 20000; i++)); do :; done"
    seconds = []
    for rc in (Rc(ours=""), Rc()):
        shell = start("bash", rc, env={"TIMEFORMAT": "%U"})
        seconds.append(min(float(shell.type(loop)) for _ in range(3)))

    plain, recorded = seconds
    assert recorded <= 3 * plain + 0.05


def strace_forks(pid: int, shell: TypedShell, lines: tuple[str, ...], out: Path) -> list[str]:
    """Return the system calls by which the shell started processes while the lines were typed."""
    tracer = subprocess.Popen(
        ["strace", "-f", "-e", "trace=process", "-o", out, "-p", str(pid)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert tracer.stderr is not None
    assert "attached" in tracer.stderr.readline()
    for line in lines:
        shell.type(line)
    tracer.send_signal(signal.SIGINT)
    tracer.communicate(timeout=20)
    return [line for line in out.read_text().splitlines() if re.search(r"fork|clone|execve", line)]


@both
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.usefixtures("server")
def test_no_process_is_started_per_command(
    kind: str, start: ShellMaker, heard: Heard, tmp_path: Path
) -> None:
    shell = start(kind)
    shell.type("echo warm")
    probe = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("processes cannot be traced here")
    lines = ("echo one", "cd /tmp", "false", ":", " :", "", "f() { :; }", "f", "cd")

    forks = strace_forks(shell.pid, shell, lines, tmp_path / "trace")

    assert forks == []
    assert ("false", 1) in heard(shell)


# ---- together with others -----------------------------------------------------------------------

PROMPT_COMMANDS = {
    "string": "PROMPT_COMMAND='seen=$?; (exit 9)'",
    "array": "PROMPT_COMMAND=('seen=$?; (exit 9)' 'other=1' \"${PROMPT_COMMAND[@]}\")",
    "function": "seeing() { seen=$?; return 9; }; PROMPT_COMMAND=seeing",
}
ORDERS = ("before", "after")


def placed(order: str, text: str) -> Rc:
    return Rc(before=text) if order == "before" else Rc(after=text)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", PROMPT_COMMANDS)
def test_a_prompt_command_goes_on_and_sees_the_status(
    form: str, order: str, start: ShellMaker, heard: Heard
) -> None:
    shell = start("bash", placed(order, PROMPT_COMMANDS[form]))
    shell.type("(exit 6)")
    assert shell.type("echo $seen") == "6\n"
    shell.type("nosuchprogram")
    assert shell.type("echo $seen $?") == "127 127\n"

    assert heard(shell) == [
        ("(exit 6)", 6),
        ("echo $seen", 0),
        ("nosuchprogram", 127),
        ("echo $seen $?", 0),
    ]


@pytest.mark.parametrize(
    "change",
    [
        'PROMPT_COMMAND="true front; $PROMPT_COMMAND"',
        'PROMPT_COMMAND="$PROMPT_COMMAND; true back"',
        "PROMPT_COMMAND+=('true more')",
        "PROMPT_COMMAND='true instead'",
        "PROMPT_COMMAND=('true instead' 'true too')",
        "unset PROMPT_COMMAND",
        "PROMPT_COMMAND='history -a; history -c; history -r'; HISTFILE=~/history",
        "PROMPT_COMMAND='(true &)'",
        "PS0=mine",
        "HISTTIMEFORMAT='%F %T '",
    ],
)
def test_what_is_done_to_the_prompt_later_loses_no_status(
    change: str, start: ShellMaker, heard: Heard
) -> None:
    shell = start("bash", Rc(after="HISTCONTROL=ignorespace"))
    shell.type(change)
    for line in ("(exit 3)", "false", "echo one", " echo private", "(exit 4)", "false"):
        assert "flightrec" not in shell.type(line)

    runs = heard(shell)
    assert runs[0] in ((change, 0), (change, None))
    true = {("(exit 3)", 3), ("false", 1), ("echo one", 0), ("(exit 4)", 4)}
    assert {pair for pair in runs[1:] if pair[1] is not None} <= true
    assert ("echo one", 0) in runs
    assert ("(exit 4)", 4) in runs


@pytest.mark.parametrize(
    "rc",
    ["PROMPT_COMMAND=('true instead' 'true too')", "unset PROMPT_COMMAND", "shopt -u promptvars"],
)
def test_where_nothing_can_be_observed_nothing_is_seen_of_us(
    rc: str, start: ShellMaker, server: RecordingServer
) -> None:
    """All of PROMPT_COMMAND replaced before the first prompt, or a PS0 that is not expanded."""
    shell = start("bash", Rc(after=rc))
    assert shell.type("(exit 3)") == ""
    assert shell.type("echo $?") == "3\n"
    assert shell.type("trap -p DEBUG") == ""
    assert not server.finished


def test_a_readonly_prompt_command_is_left_alone(
    start: ShellMaker, server: RecordingServer
) -> None:
    shell = start("bash", Rc(before="readonly PROMPT_COMMAND=", after="reached=yes"))

    assert shell.type("echo $reached") == "yes\n"
    assert not server.runs


@pytest.mark.usefixtures("server")
def test_a_prompt_command_made_readonly_later_breaks_nothing(start: ShellMaker) -> None:
    shell = start("bash")
    shell.type("PROMPT_COMMAND='true mine'; readonly PROMPT_COMMAND")
    assert shell.type("echo one") == "one\n"
    assert shell.type("echo two") == "two\n"


@pytest.mark.parametrize("order", ORDERS)
def test_a_debug_trap_goes_on_firing_and_is_shown_as_it_was(
    order: str, start: ShellMaker, heard: Heard
) -> None:
    shell = start(
        "bash",
        placed(
            order,
            """trap '[[ $BASH_COMMAND != mark* ]] || echo "<$BASH_COMMAND>"' DEBUG
mark() { :; }""",
        ),
    )
    assert shell.type("mark one; mark two") == "<mark one>\n<mark two>\n"
    assert shell.type("trap -p DEBUG").startswith("trap -- '[[ $BASH_COMMAND != mark* ]] || echo")
    shell.type("false")
    shell.type("trap 'echo \"[$BASH_COMMAND]\" >&2' DEBUG")
    assert "[echo new]" in shell.type("echo new")
    assert shell.type("trap - DEBUG; echo gone").endswith("gone\n")
    assert shell.type("trap -p DEBUG") == ""

    assert [pair for pair in heard(shell) if pair[0] in ("false", "echo new")] == [
        ("false", 1),
        ("echo new", 0),
    ]


STARSHIP = r"""
star_preexec() { star_started=1; star_last=$1; }
star_precmd() { local s=$?; star_status=$s; star_pipe=("${PIPESTATUS[@]}"); PS1='@@> '; return $s; }
PS0='${star_ps0[star_armed=1,0]}'"${PS0-}"; star_ps0=('')
star_trap=$(trap -p DEBUG)
[[ $star_trap ]] || trap 'star_preexec "$_"' DEBUG
if [[ $(declare -p PROMPT_COMMAND 2>/dev/null) == 'declare -a'* ]]; then
  PROMPT_COMMAND=(star_precmd "${PROMPT_COMMAND[@]}")
else PROMPT_COMMAND="star_precmd${PROMPT_COMMAND:+;$PROMPT_COMMAND}"; fi
"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_prompt_like_starship_s_goes_on(order: str, start: ShellMaker, heard: Heard) -> None:
    shell = start("bash", placed(order, STARSHIP))
    shell.type("(exit 6)")
    assert shell.type("echo $star_status $star_armed") == "6 1\n"
    shell.type("false")
    assert shell.type("echo $star_status $star_started") == "1 1\n"

    assert [pair for pair in heard(shell) if "star" not in pair[0]] == [
        ("(exit 6)", 6),
        ("false", 1),
    ]


ZSH_PROMPT = r"""
star_precmd() { star_status=$?; star_pipe="$pipestatus" }
star_preexec() { star_started=$1 }
autoload -Uz add-zsh-hook; add-zsh-hook precmd star_precmd; add-zsh-hook preexec star_preexec
setopt promptsubst; PROMPT='@@> '
"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_zsh_prompt_with_hooks_of_its_own_goes_on(
    order: str, start: ShellMaker, heard: Heard
) -> None:
    shell = start("zsh", placed(order, ZSH_PROMPT))
    shell.type("true | (exit 6)")
    assert shell.type("echo $star_status, $star_pipe, $star_started") == (
        "6, 0 6, echo $star_status, $star_pipe, $star_started\n"
    )

    assert heard(shell)[0] == ("true | (exit 6)", 6)


@pytest.fixture(scope="session")
def bash_preexec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bash-preexec as another package ships it, or a visible skip."""
    named = os.environ.get("FLIGHTREC_BASH_PREEXEC")
    if named:
        return Path(named)
    folder = tmp_path_factory.mktemp("bash-preexec")
    package = "@microsoft/inshellisense@0.0.1-rc.16"
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [*NPM, "pack", package],
            cwd=folder,
            capture_output=True,
            check=False,
            timeout=90,
            env={**os.environ, "HOME": str(folder)},
        )
    for archive in folder.glob("*.tgz"):
        shutil.unpack_archive(archive, folder, filter="data")
    found = next(folder.rglob("bash-preexec.sh"), None)
    if found is None:
        pytest.skip("bash-preexec could not be had from npm (or set FLIGHTREC_BASH_PREEXEC)")
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_bash_preexec_and_its_functions_go_on(
    order: str, start: ShellMaker, heard: Heard, bash_preexec: Path
) -> None:
    loaded = f"source '{bash_preexec}'\npreexec() {{ pre=$1; }}\nprecmd() {{ post=$?; }}"
    shell = start("bash", placed(order, loaded))
    shell.type("(exit 6)")
    assert shell.type("echo $post [$pre]") == "6 [echo $post [$pre]]\n"
    shell.type("true | false")
    shell.type(" echo private")
    shell.type("nosuchprogram")

    assert heard(shell) == [
        ("(exit 6)", 6),
        ("echo $post [$pre]", 0),
        ("true | false", 1),
        ("nosuchprogram", 127),
    ]


@both
def test_sourcing_many_times_is_sourcing_once(
    kind: str, start: ShellMaker, heard: Heard, server: RecordingServer
) -> None:
    again = source_line(kind)
    shell = start(kind, Rc(after=f"{again}\n{again}\n{again}"))
    shell.type(again)
    shell.type("false")

    assert heard(shell) == [(again, 0), ("false", 1)]
    assert server.connections == 1


@both
def test_the_text_may_be_evaluated_as_well_as_sourced(
    kind: str, start: ShellMaker, heard: Heard
) -> None:
    text = SCRIPTS / f"flightrec.{kind}"
    ours = f"__flightrec_helper='{helper_builds.helper()}'; eval \"$(<'{text}')\""
    shell = start(kind, Rc(ours=ours, after="reached=yes"))
    assert shell.type("echo $reached") == "yes\n"

    assert heard(shell) == [("echo $reached", 0)]


@both
def test_it_may_begin_in_the_midst_of_a_session(kind: str, start: ShellMaker, heard: Heard) -> None:
    shell = start(kind, Rc(ours=""))
    shell.type("echo unseen")
    shell.type(source_line(kind))
    shell.type("false")

    assert heard(shell) == [("false", 1)]


@both
def test_a_too_old_shell_says_one_line_and_then_nothing(
    kind: str, start: ShellMaker, server: RecordingServer
) -> None:
    """The demand is raised: this shell is older than it, as an old one is than the real demand."""
    ours = f"__flightrec_least_{kind}=9900; {source_line(kind)}; {source_line(kind)}"
    shell = start(kind, Rc(ours=ours, after="reached=yes"), wait=False)
    shown = shell.until_prompt()

    assert shown.count("\n") == 1
    assert shown.startswith(f"flightrec: {kind} ")
    assert "too old" in shown
    assert shell.type("echo $reached; false") == "yes\n"
    assert not server.messages


@both
def test_a_shell_that_is_not_interactive_is_left_alone(
    kind: str, start: ShellMaker, server: RecordingServer
) -> None:
    line = source_line(kind)
    script = f"{line}\necho reached ${{__flightrec_state-none}}\nfalse\n"
    done = subprocess.run(
        [kind, "-c", script],
        env=start.environment(kind),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr, done.returncode) == ("reached none\n", "", 1)
    assert not server.messages
    assert not find_paths().counters.exists()


@both
def test_without_the_helper_the_shell_is_plain(
    kind: str, start: ShellMaker, tmp_path: Path
) -> None:
    script = tmp_path / f"flightrec.{kind}"
    shutil.copy(SCRIPTS / script.name, script)
    shell = start(kind, Rc(ours=f"source '{script}'", after="reached=yes"), wait=False)

    assert shell.until_prompt() == ""
    assert shell.type("echo $reached") == "yes\n"


@both
def test_odd_characters_in_paths_are_only_characters(
    kind: str, start: ShellMaker, wait_for: WaitFor
) -> None:
    odd = start.home / 'it\'s $(touch pwned) "q" `x` é\nline'
    odd.mkdir()
    helper = odd / "flightrec-helper"
    shutil.copy(helper_builds.helper(), helper)
    script = odd / f"flightrec.{kind}"
    shutil.copy(SCRIPTS / script.name, script)
    start.home = odd
    os.environ["HOME"] = str(odd)
    quoted = "$'" + str(script).replace("'", "\\'").replace("\n", "\\n") + "'"
    with recording_server() as server:
        shell = start(kind, Rc(ours=f"source {quoted}", after="reached=yes"))
        assert shell.type("echo $reached") == "yes\n"
        shell.type("false")
        wait_for(lambda: ("false", 1) in server.finished, what="the command")
    assert not list(odd.rglob("pwned"))


# ---- sudo, su, tmux -----------------------------------------------------------------------------

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@both
@needs_root
@pytest.mark.skipif(not shutil.which("sudo"), reason="sudo is not installed")
@pytest.mark.usefixtures("server")
def test_a_shell_under_sudo_is_silent(kind: str, start: ShellMaker, heard: Heard) -> None:
    shell = start(kind)
    start.home.chmod(0o755)
    nested = " ".join(start.write_rc(kind, Rc()))
    variables = f"HOME={start.home} ZDOTDIR={start.home} INPUTRC=/dev/null"
    typed = f"sudo -u nobody {variables} {nested}"
    shell.type(typed)
    assert shell.type("echo uid $UID") == f"uid {pwd.getpwnam('nobody').pw_uid}\n"
    shell.type("false")
    shell.type("exit")
    as_root = f"sudo {variables} {nested}"
    shell.type(as_root)
    shell.type("false")
    shell.type("exit")

    assert heard(shell) == [(typed, 1), (as_root, 1)]


@both
@needs_root
def test_a_shell_of_another_user_in_this_home_is_silent(
    kind: str, start: ShellMaker, heard: Heard
) -> None:
    shell = start(kind)
    start.home.chmod(0o755)
    nested = " ".join(start.write_rc(kind, Rc()))
    typed = f"setpriv --reuid=54321 --clear-groups {nested}"
    shell.type(typed)
    assert shell.type("echo uid $UID") == "uid 54321\n"
    shell.type("false")
    shell.type("exit")

    assert heard(shell) == [(typed, 1)]


@both
@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_a_pane_of_tmux_is_a_session_with_its_pane(
    kind: str, start: ShellMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    command = start.write_rc(kind, Rc())
    socket = start.home / "tmux"
    tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    env = start.environment(kind)
    subprocess.run(
        [*tmux, "new-session", "-d", "-x", "80", "-y", "24", *command], env=env, check=True
    )
    try:
        screen = [*tmux, "capture-pane", "-p"]

        def shown() -> str:
            return subprocess.run(
                screen, env=env, capture_output=True, text=True, check=True
            ).stdout

        wait_for(lambda: PROMPT.strip() in shown(), what="the prompt")
        server.manners.hints = {"gti": "flightrec: try: git"}
        subprocess.run([*tmux, "send-keys", "gti st", "Enter"], env=env, check=True)
        wait_for(lambda: ("gti st", 127) in server.finished, what="the command")
        wait_for(lambda: "flightrec: try: git" in shown(), what="the hint")
    finally:
        subprocess.run([*tmux, "kill-server"], env=env, check=True)
    assert server.runs[0].starting.tmux_pane == b"%0"


# ---- trouble ------------------------------------------------------------------------------------

NO_TROUBLE = dict.fromkeys(HELPER_COUNTERS, 0)

HURT_S = 0.5
"""Far above what a wait of ours may take, far below what a person would call frozen."""


def timed(shell: TypedShell, line: str) -> float:
    began = time.monotonic()
    shell.type(line)
    return time.monotonic() - began


@both
def test_a_dead_daemon_leaves_no_trace_in_the_shell(
    kind: str, start: ShellMaker, server: RecordingServer
) -> None:
    server.stop()
    shell = start(kind, env=DEADLINES)

    assert shell.type("echo one") == "one\n"
    assert shell.type("false; echo $?") == "1\n"
    assert max(timed(shell, "true") for _ in range(5)) < HURT_S


@both
def test_commands_of_a_time_without_a_daemon_arrive_later(
    kind: str, start: ShellMaker, server: RecordingServer, wait_for: WaitFor
) -> None:
    server.stop()
    shell = start(kind)
    for line in ("echo one", "false", "(exit 3)"):
        shell.type(line)
    server.start()

    wait_for(lambda: len(server.finished) == 3, what="the commands from before")
    assert server.finished == [("echo one", 0), ("false", 1), ("(exit 3)", 3)]


@both
def test_a_silent_daemon_costs_one_wait(
    kind: str, start: ShellMaker, server: RecordingServer, heard: Heard
) -> None:
    shell = start(kind, env=DEADLINES)
    shell.type("echo one")
    server.manners.replies = False
    times = [timed(shell, f"echo {number}") for number in range(10)]

    assert max(times) < HURT_S
    assert read_helper_counters(find_paths().counters) == {**NO_TROUBLE, "missed replies": 1}
    assert ("echo one", 0) in heard(shell)  # and what was typed to find out, which is later


@both
@pytest.mark.usefixtures("server")
def test_a_stopped_relay_turns_capture_off_until_it_answers(
    kind: str, start: ShellMaker, heard: Heard
) -> None:
    shell = start(kind, env=DEADLINES)
    shell.type("echo one")
    relay = relay_of(start.home, shell.pid)
    stop(relay)
    times = [timed(shell, f"echo stopped {number}") for number in range(10)]
    os.kill(relay, signal.SIGCONT)
    runs = heard(shell)

    assert max(times) < HURT_S
    assert ("echo one", 0) in runs
    assert ("echo stopped 5", 0) not in runs


def test_a_huge_line_does_not_block_while_the_relay_is_stopped(
    start: ShellMaker, server: RecordingServer, heard: Heard
) -> None:
    keys = "line=$(printf 'true %0150000d' 1); bind -x '\"\\C-t\": READLINE_LINE=$line'"
    shell = start("bash", Rc(after=keys), env=DEADLINES)
    shell.type("echo one")
    relay = relay_of(start.home, shell.pid)
    stop(relay)
    shell.send("\x14\r")
    shell.until_prompt()
    assert shell.type("echo still here") == "still here\n"
    os.kill(relay, signal.SIGCONT)

    assert ("echo one", 0) in heard(shell)
    assert server.connections == 1


def test_after_an_interrupt_in_a_blocked_line_the_shell_goes_on(
    start: ShellMaker, server: RecordingServer
) -> None:
    keys = "line=$(printf 'true; true %0150000d' 1); bind -x '\"\\C-t\": READLINE_LINE=$line'"
    shell = start("bash", Rc(after=keys), env=DEADLINES)
    shell.type("echo one")
    relay = relay_of(start.home, shell.pid)
    stop(relay)
    shell.send("\x14\r")
    for _ in range(2):  # the first ends the system call, which has written a part and is begun anew
        time.sleep(0.5)
        shell.send("\x03")
    shell.until_prompt()
    for number in range(3):
        assert shell.type(f"echo {number}") == f"{number}\n"
        time.sleep(1)
    assert shell.type("(exit 4); echo $?") == "4\n"
    os.kill(relay, signal.SIGCONT)

    assert "echo one" in server.commands


@both
@pytest.mark.usefixtures("server")
def test_a_killed_relay_costs_nothing(kind: str, start: ShellMaker) -> None:
    shell = start(kind, env=DEADLINES)
    shell.type("echo one")
    os.kill(relay_of(start.home, shell.pid), signal.SIGKILL)
    times = [timed(shell, f"echo {number}") for number in range(10)]

    assert shell.type("false; echo $?") == "1\n"
    assert max(times) < HURT_S


@both
@pytest.mark.usefixtures("server")
def test_a_removed_state_folder_breaks_nothing(kind: str, start: ShellMaker) -> None:
    shell = start(kind)
    shell.type("echo one")
    shutil.rmtree(find_paths().state)

    for _ in range(3):
        assert shell.type("echo two") == "two\n"
    assert shell.type("false; echo $?") == "1\n"
    assert not find_paths().state.exists()


@both
@pytest.mark.usefixtures("server")
def test_removed_fifos_are_not_replaced_by_files_with_commands(
    kind: str, start: ShellMaker
) -> None:
    shell = start(kind)
    shell.type("echo one")
    for fifo in find_paths().run.glob("*/[io]"):
        fifo.unlink()
    for _ in range(3):
        assert shell.type("echo two") == "two\n"

    assert not [f for f in find_paths().run.rglob("*") if f.is_file() and b"echo" in f.read_bytes()]


@both
def test_an_unwritable_home_breaks_nothing(kind: str, start: ShellMaker) -> None:
    state = find_paths().state
    state.parent.mkdir(parents=True)
    state.write_text("in the way")
    shell = start(kind, wait=False)

    assert shell.until_prompt() == ""
    assert shell.type("echo one") == "one\n"


@both
def test_interrupts_at_any_moment_give_no_line_another_line_s_status(
    kind: str, start: ShellMaker, server: RecordingServer, heard: Heard
) -> None:
    # An interrupt may swallow half a line: what is left of this one ends no shell.
    four = "four() { return 4; }"
    shell = start(kind, Rc(after=f"{four}; setopt zle" if kind == "zsh" else four), env=DEADLINES)
    for number in range(60):
        server.manners.replies = number % 3 > 0
        shell.send(("true\r", "four\r", "\r")[number % 3])
        time.sleep(number % 20 / 1000)
        shell.send("\x03")
    server.manners.replies = True
    shell.get_in_step()

    told = {(str(command), status) for command, status in heard(shell)}
    expected = {("true", 0), ("four", 4), (IN_STEP, 0)}
    interrupted = {None, 127, 130}
    assert {pair for pair in told if pair[1] not in interrupted} <= expected
