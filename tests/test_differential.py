"""The same keys in a plain shell and in one inside the proxy: both look the same, in tmux.

What a tool shows is compared as it stands on the screen. A tool that is not installed is skipped.
"""

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from twin_shells import PROMPT, Twins
from typed_shell import BOTH

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")

NODE = shutil.which("node") or shutil.which("node", path=str(Path(sys.executable).parent))
VIM = "vim" if shutil.which("vim") else "vim.tiny"
PIDS = r"\b\d{3,7}\b"


@pytest.fixture(params=BOTH)
def twins(request: pytest.FixtureRequest) -> Iterator[Twins]:
    with contextlib.closing(Twins(request.param)) as shells:
        shells.open()
        yield shells


def needs(*programs: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Skip a test where a program is missing, and say which."""
    missing = [program for program in programs if not shutil.which(program)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def is_program(name: str) -> bool:
    """Whether this is no script that stands in for what was left out of a small system."""
    found = shutil.which(name)
    return found is not None and Path(found).read_bytes()[:4] == b"\x7fELF"


def write(twins: Twins, name: str, text: str) -> None:
    """Put a file into the working folder of both."""
    for folder in twins.folders.values():
        (folder / "work" / name).write_text(text)


def lines(count: int) -> str:
    return "".join(f"line {number} of a text\n" for number in range(1, count + 1))


# ---- plain output -------------------------------------------------------------------------------


def test_output_errors_and_statuses(twins: Twins) -> None:
    twins.type("ls --color=always -d / /nonexistent; echo $?")
    twins.type("nosuchprogram --x; echo $?")
    twins.type("ls /nonexistent | cat; echo ${PIPESTATUS[@]}${pipestatus[@]}")
    twins.type("(exit 3); echo $?; echo $_")
    twins.type("sh -c 'for i in 1 2 3; do echo o$i; echo e$i >&2; done'")
    twins.type("printf 'no newline'")
    twins.type(r"printf 'a\r\nb\rc\n\tx\n\033[31mred\033[m\n'")
    twins.type("if then fi" if twins.kind == "zsh" else "if then")
    twins.same()


def test_lines_over_several_lines_and_here_documents(twins: Twins) -> None:
    twins.type("for i in 1 2", until=r">\Z")
    twins.type("do echo turn$i", until=r">\Z")
    twins.type("ls /nonexistent$i; done")
    twins.type("cat <<X", until=r">\Z")
    twins.type("one", until=r">\Z")
    twins.type("X")
    twins.type("f() { ls /nonexistent; return 7; }; f; echo $?")
    twins.same()


def test_progress_bars_and_cursor_movement(twins: Twins) -> None:
    twins.type(
        r"for i in 1 2 3 4 5; do printf '\r%s%% done' $i; sleep 0.02; done; printf '\r\033[Kok\n'"
    )
    twins.type(r"printf 'one\ntwo\nthree\033[2A\033[5Cover\n\n\n'")
    twins.same()


def test_thirty_five_megabytes_of_output(twins: Twins) -> None:
    twins.type("seq 4900000; echo the end", until=r"the end\nREADY>\Z")
    twins.same()


def test_type_ahead_and_a_long_line(twins: Twins) -> None:
    twins.send("sleep 0.3; echo slept")
    twins.press("Enter")
    twins.send("echo typed ahead")
    twins.press("Enter")
    twins.expect(r"\ntyped ahead\nREADY>\Z")
    twins.same(r"(echo typed ahead|\n)+")  # where it is echoed is a race without us, too
    twins.type("clear")
    twins.type(f"echo {'long ' * 60}")
    twins.same()


def test_editing_and_recalling_a_line(twins: Twins) -> None:
    twins.type("echo one")
    twins.press("Up")
    twins.expect(r"READY> echo one\Z")
    twins.press("C-a")
    twins.send("x")
    twins.expect(r"READY> xecho one\Z")
    twins.press("C-k")
    twins.expect(r"READY> x\Z")
    twins.press("C-c")
    twins.expect(PROMPT)
    twins.same()


# ---- jobs and signals ---------------------------------------------------------------------------


def test_jobs(twins: Twins) -> None:
    twins.type("sleep 60; echo never", until=r"never\Z")
    twins.same_word("#{pane_current_command}", "sleep")
    twins.press("C-z")
    twins.expect(PROMPT)
    twins.type("jobs")
    twins.type("fg; echo", until=r"sleep 60[^\n]*\Z")
    twins.press("C-c")
    twins.expect(PROMPT)
    twins.type("sleep 0.1 & sleep 0.6; wait; echo waited")
    twins.type("(until [ -e go ]; do sleep 0.01; done; echo la''te >&2) &")
    write(twins, "go", "")
    twins.expect(r"READY> late\Z" if twins.kind == "bash" else r"late\n(.*\n)*.*\bdone\b")
    twins.type("wait; echo all")
    # bash says that it is done only where that was before the wait.
    twins.same(PIDS, r"echo all\n(\[1\]\+  Done(.*\n)*?.*1>&2 \)\n)?")


def test_interrupts(twins: Twins) -> None:
    twins.type("sleep 60", until=r"sleep 60\Z")
    twins.same_word("#{pane_current_command}", "sleep")
    twins.press("C-c")
    twins.expect(PROMPT)
    twins.type("echo $?")
    twins.type("cat", until=r"cat\Z")
    twins.same_word("#{pane_current_command}", "cat")
    twins.press("C-\\")
    twins.expect(PROMPT)
    twins.type("echo $?")
    twins.type("trap 'echo trapped' USR1; kill -USR1 $$")
    twins.type("yes >/dev/null & sleep 0.1; kill $!; sleep 0.5; wait $!; echo $?")
    twins.same(PIDS, r" *\(core dumped\)")


def test_flow_control(twins: Twins) -> None:
    twins.type("sh -c 'echo begun; read x; echo $x'", until=r"begun\Z")
    twins.press("C-s")
    twins.send("held back")
    twins.press("Enter")
    twins.press("C-q")
    twins.expect(r"held back\n+held back\nREADY>\Z")
    twins.same()


# ---- questions and passwords --------------------------------------------------------------------


def test_questions_and_passwords(twins: Twins) -> None:
    prompted = "read -p 'name? ' v" if twins.kind == "bash" else "read 'v?name? '"
    silent = "read -sp 'word? ' v" if twins.kind == "bash" else "read -s 'v?word? '"
    twins.type(prompted, until=r"name\?\Z")
    twins.send("bob")
    twins.press("Enter")
    twins.expect(PROMPT)
    twins.type(silent, until=r"word\?\Z")
    twins.send("secret")
    twins.press("Enter")
    twins.expect(PROMPT)
    assert "secret" not in twins.same()
    twins.type("select x in aa bb; do echo picked $x; break; done", until=r"\?#\Z|#\?\Z")
    twins.send("2")
    twins.press("Enter")
    twins.expect(r"picked bb\nREADY>\Z")
    twins.same()


@needs("python3")
def test_a_password_asked_by_a_program(twins: Twins) -> None:
    twins.type("python3 -c 'import getpass; print(len(getpass.getpass()))'", until=r"Password:\Z")
    twins.send("secret")
    twins.press("Enter")
    twins.expect(r"\n6\nREADY>\Z")
    twins.same()


# ---- programs of the whole screen ---------------------------------------------------------------


@needs("less")
def test_less(twins: Twins) -> None:
    write(twins, "text", lines(200))
    twins.type("less text", until=r"line 10\b")
    twins.press("Space")
    twins.expect(r"line 30\b")
    twins.send("/line 77")
    twins.press("Enter")
    twins.expect(r"\Aline 77\b")
    twins.same()
    twins.resize(60, 15)
    twins.same()
    twins.resize(90, 24)
    twins.press("q")
    twins.expect(PROMPT)
    twins.type("clear; cat text | less", until=r"line 10\b")
    twins.press("G")
    twins.expect("line 200")
    twins.same()
    twins.same_word("#{pane_current_command}")
    twins.press("q")
    twins.expect(PROMPT)
    twins.same()


@needs("more")
def test_more(twins: Twins) -> None:
    write(twins, "text", lines(100))
    twins.type("more text", until="--More--")
    twins.same()
    twins.press("Space")
    twins.expect(r"line 40\b")
    twins.press("q")
    twins.expect(PROMPT)
    twins.same()


@needs("man", "less")
@pytest.mark.skipif(not is_program("man"), reason="a system without manual pages: man is a script")
def test_man(twins: Twins) -> None:
    page = ".TH HELLO 1\n.SH NAME\nhello \\- greet\n.SH DESCRIPTION\n" + ".PP\nmore\n" * 40
    write(twins, "hello.1", page)
    twins.type("man ./hello.1", until="DESCRIPTION")
    twins.same()
    twins.press("Space")
    twins.same()
    twins.press("q")
    twins.expect(PROMPT)
    twins.same()


@needs("git", "less")
def test_git_log_in_its_pager(twins: Twins) -> None:
    env = "GIT_AUTHOR_DATE=2026-01-01T00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00Z PAGER=less"
    who = "-c user.name=a -c user.email=a@b"
    twins.type(f"export {env}; git init -q -b main .")
    twins.type(f"for i in $(seq 40); do git {who} commit -q --allow-empty -m c$i; done; clear")
    twins.type("LESS=R git log", until="c37")
    twins.same()
    twins.press("Space")
    twins.expect("c34")
    twins.same()
    twins.press("q")
    twins.expect(PROMPT)
    twins.type("clear; git log --oneline --color=always -5 | cat; git push; echo $?")
    twins.same()


@needs(VIM)
def test_vim(twins: Twins) -> None:
    twins.type(f"{VIM} -u NONE -N -n text", until="text")
    twins.send("ihello")
    twins.press("Enter")
    twins.send("two")
    twins.press("Escape")
    twins.expect("two")
    twins.same()
    twins.resize(60, 15)
    twins.same()
    twins.resize(90, 24)
    twins.same()
    twins.same_word("#{pane_current_command}")
    twins.press("C-z")
    twins.expect(PROMPT)
    twins.type("echo between")
    twins.type("fg", until="hello")
    twins.same()
    twins.send(":wq")
    twins.press("Enter")
    twins.expect(PROMPT)
    twins.type("clear; cat text; stty -a")
    twins.same()


@needs("nano")
def test_nano(twins: Twins) -> None:
    twins.type("nano -I text", until="Exit")
    twins.send("hello")
    twins.press("Enter")
    twins.send("two")
    twins.expect("two")
    twins.same()
    twins.resize(60, 15)
    twins.same()
    twins.resize(90, 24)
    twins.press("C-x")
    twins.expect("Save modified")
    twins.send("y")
    twins.expect("File Name")
    twins.press("Enter")
    twins.expect(PROMPT)
    twins.type("clear; cat text; stty -a")
    twins.same()


@needs("fzf")
def test_fzf(twins: Twins) -> None:
    twins.type("seq 100 | fzf", until="100/100")
    twins.send("77")
    twins.expect(r"\b1/100")
    twins.same()
    twins.press("Enter")
    twins.expect(r"77\nREADY>\Z")
    twins.type("clear; v=$(seq 100 | fzf --height 10); echo got $v", until="100/100")
    twins.send("88")
    twins.expect(r"\b1/100")
    twins.same()
    twins.press("Enter")
    twins.expect(r"got 88\nREADY>\Z")
    twins.type("stty -a")
    twins.same()


@needs("htop")
def test_htop(twins: Twins) -> None:
    twins.type("htop -d 100", until="Quit")
    twins.same_word("#{pane_current_command}")
    twins.press("q")
    twins.expect(PROMPT)
    twins.type("clear; stty -a")
    twins.same()


@needs("top")
def test_top(twins: Twins) -> None:
    twins.type("top -d 9", until="PID USER")
    twins.same_word("#{pane_current_command}")
    twins.press("q")
    twins.expect(PROMPT)
    twins.type("clear; stty -a")
    twins.same()


@needs("dialog")
def test_dialog(twins: Twins) -> None:
    twins.type("dialog --yesno hello 8 40; clear; echo $?", until="Yes")
    twins.same()
    twins.press("Enter")
    twins.expect(r"0\nREADY>\Z")
    twins.type("v=$(dialog --inputbox in 8 40 abc 3>&1 1>&2 2>&3); clear; echo $v", until="OK")
    twins.send("d")
    twins.expect("abcd")
    twins.same()
    twins.press("Enter")
    twins.expect(r"abcd\nREADY>\Z")
    twins.type("stty -a")
    twins.same()


@needs("whiptail")
def test_whiptail(twins: Twins) -> None:
    twins.type("whiptail --yesno hello 8 40; clear; echo $?", until="<Yes>")
    twins.same()
    twins.press("Enter")
    twins.expect(r"0\nREADY>\Z")
    twins.same()


@needs("python3")
def test_a_python_console(twins: Twins) -> None:
    twins.type("python3 -q", until=r">>>\Z")
    twins.send("1+1")
    twins.press("Enter")
    twins.expect(r"\n2\n>>>\Z")
    twins.press("Up")
    twins.expect(r">>> 1\+1\Z")
    twins.press("Enter")
    twins.expect(r"\n2\n>>> 1\+1\n2\n>>>\Z")
    twins.send("1/0")
    twins.press("Enter")
    twins.expect(r"division by zero\n>>>\Z")
    twins.same()
    twins.same_word("#{pane_current_command}")
    twins.press("C-d")
    twins.expect(PROMPT)
    twins.same()


@pytest.mark.skipif(not NODE, reason="not installed: node")
def test_a_node_console(twins: Twins) -> None:
    # What node shows of a line before Enter comes and goes by the clock.
    twins.type(f"{NODE} -e 'require(\"repl\").start({{preview: false}})'", until=r"\n>\Z")
    twins.send("[1,2].map(x => x + 1)")
    twins.press("Enter")
    twins.expect(r"\n\[ 2, 3 \]\n>\Z")
    twins.send("nosuch.thing")
    twins.press("Enter")
    twins.expect(r"not defined\n>\Z")
    twins.press("Up")
    twins.expect(r"> nosuch\.thing\Z")
    twins.same()
    twins.same_word("#{pane_current_command}")
    twins.press("C-u")
    twins.press("C-d")
    twins.expect(PROMPT)
    twins.type("stty -a")
    twins.same()


# ---- the terminal's modes and size --------------------------------------------------------------


def test_raw_mode_and_reset(twins: Twins) -> None:
    twins.type("stty -a")
    read_raw = (
        "stty raw -echo; dd bs=1 count=3 2>/dev/null | od -c >seen; stty sane; clear; cat seen"
    )
    twins.send(read_raw)
    twins.press("Enter")
    twins.same_word("#{pane_current_command}", "dd")
    twins.send("a")
    twins.press("Enter", "C-c")
    twins.expect(r"0000003\nREADY>\Z")
    twins.type("stty -a; stty -echo; stty -a | grep -o -- '-echo '; stty echo")
    assert r"a  \r 003" in twins.same()
    twins.type("reset; stty -a")
    twins.same()


@needs(VIM)
def test_a_program_killed_in_raw_mode(twins: Twins) -> None:
    twins.type(f"{VIM} -u NONE -N -n", until="VIM")
    twins.send(":!kill -9 $PPID")
    twins.press("Enter")
    twins.expect(PROMPT)
    twins.type("stty sane; clear; stty -a; echo back")
    twins.same()


@needs("python3")
def test_the_window_s_size_and_its_changes(twins: Twins) -> None:
    program = (
        "import os, signal, sys\n"
        "def show(*_):\n"
        "    sizes = [tuple(os.get_terminal_size(fd)) for fd in (0, 1, 2)]\n"
        "    os.write(1, f'{sizes}\\n'.encode())\n"
        "signal.signal(signal.SIGWINCH, show)\n"
        "show()\n"
        "sys.stdin.readline()\n"
    )
    write(twins, "size.py", program)
    twins.type("python3 size.py", until=r"\(90, 24\)\]")
    twins.resize(70, 20)
    twins.expect(r"\(70, 20\)\]\Z")
    twins.resize(90, 24)
    twins.expect(r"\(90, 24\)\]\Z")
    twins.press("Enter")
    twins.expect(PROMPT)
    twins.type("tput cols; tput lines; stty size")
    twins.same()


# ---- shells in the shell ------------------------------------------------------------------------


def test_shells_below_and_exec(twins: Twins) -> None:
    twins.type("PS1='BELOW> ' sh -i", until=r"BELOW>\Z")
    twins.send("ls /nonexistent; tty >/dev/null && echo tty")
    twins.press("Enter")
    twins.expect(r"tty\nBELOW>\Z")
    twins.same_word("#{pane_current_command}")
    twins.send("sleep 60")
    twins.press("Enter")
    twins.same_word("#{pane_current_command}", "sleep")
    twins.press("C-z")
    twins.expect(r"BELOW>\Z")
    twins.send("fg")
    twins.press("Enter")
    twins.expect(r"fg\n.*sleep 60\Z")
    twins.same_word("#{pane_current_command}", "sleep")
    twins.press("C-c")
    twins.expect(r"BELOW>\Z")
    twins.send("exit 5")
    twins.press("Enter")
    twins.expect(PROMPT)
    twins.type("echo $?")
    twins.same(PIDS)
    twins.type("clear; (exec 2>err.log; ls /nonexistent); cat err.log")
    twins.same()
    twins.type("PS1='OTHER> ' exec sh -i", until=r"OTHER>\Z")
    twins.same_word("#{pane_current_command}")


def test_names_and_folders_that_others_see(twins: Twins) -> None:
    twins.same_word("#{pane_current_command}", twins.kind)
    twins.type("mkdir -p deep/er; cd deep/er")
    assert twins.same_word("#{pane_current_path}").endswith("deep/er")
    twins.type("ps -o comm= -t $(tty) | sort -u; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo terminal")
    twins.type("sleep 60", until=r"sleep 60\Z")
    twins.same_word("#{pane_current_command}", "sleep")
    twins.press("C-c")
    twins.expect(PROMPT)
    twins.same_word("#{pane_current_command}", twins.kind)
    twins.type("cd; exec 3>&1; echo three >&3; exec 3>&-; echo x >/dev/stderr; echo y >/dev/tty")
    twins.same()


def test_options_that_show_or_end_things(twins: Twins) -> None:
    twins.type("set -u; echo ${nope-none}; set +u")
    twins.type("set -e; true; set +e; false; echo alive")
    twins.type("set -x; echo hi; ls /nonexistent; set +x")
    twins.same()
