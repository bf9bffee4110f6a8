"""How a shell gets into the proxy from its rc file, once, and when it is left alone."""

import contextlib
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

import helper_builds
from daemon_process import flightrec
from flightrec.client import request
from flightrec.commands.init import shell_code
from flightrec.errors import FlightrecError
from flightrec.paths import find_paths, find_resource
from flightrec.wire import TailSource
from recording_server import RecordingServer, recording_server
from typed_shell import BOTH, LIMIT_S, PATIENCE_MS, PROMPT, TypedShell

WaitFor = Callable[..., object]

both = pytest.mark.parametrize("kind", BOTH)

BARE = {
    "bash": "bind 'set enable-bracketed-paste off'\n",
    "zsh": "unsetopt zle prompt_sp\n",
}


class Terminal:
    """Starts shells as a terminal does, in a home with rc files."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.helper = helper_builds.helper()
        self.opened: list[TypedShell] = []

    def write_rc(self, kind: str, *, first: str = "", before: str = "", after: str = "") -> Path:
        """Write an rc file that enters the proxy, counts how often it is read, and loads us."""
        loads = [self._code(name, kind) for name in ("proxy", "flightrec")]
        text = f"{first}\n{loads[0]}\necho read >>~/{kind}.read\nPS1='{PROMPT}'\n{BARE[kind]}"
        path = self.home / f".{kind}rc"
        path.write_text(f"{text}{before}\n{loads[1]}\n{after}\n")
        return path

    def _code(self, name: str, kind: str) -> str:
        script = find_resource(f"{name}.{kind}")
        return shell_code(self.helper, Path("/nonexistent/flightrec"), script)

    def environment(self, **more: str) -> dict[str, str]:
        env = {
            "HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "INPUTRC": "/dev/null",
            "FLIGHTREC_PATIENCE_MS": PATIENCE_MS,
        }
        return {**env, **more}

    def open(self, *words: str, env: dict[str, str] | None = None) -> TypedShell:
        """Start a shell; it is at its first prompt."""
        child = pexpect.spawn(
            words[0],
            list(words[1:]),
            env=self.environment(**(env or {})),
            cwd=str(self.home),
            encoding="utf-8",
            echo=False,
            timeout=LIMIT_S,
            dimensions=(40, 200),
        )
        child.delaybeforesend = None
        shell = TypedShell(Path(words[0]).name, child)
        self.opened.append(shell)
        shell.until_prompt()
        return shell

    def times_read(self, kind: str) -> int:
        """How often the rest of the rc file was read."""
        return len((self.home / f"{kind}.read").read_text().splitlines())

    def close(self) -> None:
        for shell in self.opened:
            shell.child.close(force=True)


@pytest.fixture
def terminal(home: Path) -> Iterator[Terminal]:
    with contextlib.closing(Terminal(home)) as opened:
        yield opened


@pytest.fixture
def server(home: Path) -> Iterator[RecordingServer]:  # noqa: ARG001 - where it serves
    with recording_server() as running:
        yield running


def is_inside(shell: TypedShell) -> bool:
    """Whether the shell has the proxy around it, and knows."""
    answer = shell.type(
        'case "$FLIGHTREC_PTY" in "$$":*:*) echo "in"side ;; *) echo "out"side ;; esac'
    )
    return "inside" in answer


# ---- going in -----------------------------------------------------------------------------------


@both
def test_a_new_shell_goes_in_once_and_its_errors_are_known(
    kind: str, terminal: Terminal, server: RecordingServer, wait_for: WaitFor
) -> None:
    terminal.write_rc(kind)
    shell = terminal.open(kind)
    assert is_inside(shell)
    assert terminal.times_read(kind) == 1
    shell.type("ls /nonexistent")
    wait_for(lambda: len(server.finished) == 2, what="two runs")

    finished = server.runs[1].finished
    assert finished is not None
    assert finished.tail_source is TailSource.MERGED
    assert finished.tail == b"ls: cannot access '/nonexistent': No such file or directory\r\n"
    assert shell.leave("exit 7") == 7


STARTS = {
    "bash": (["bash"], ["bash", "-i"], ["bash", "-l"], ["bash", "--login"], ["bash", "-il"]),
    "zsh": (["zsh"], ["zsh", "-i"], ["zsh", "-l"], ["zsh", "--login"], ["zsh", "-i", "-l"]),
}


@pytest.mark.parametrize(
    "words", [pytest.param(w, id=" ".join(w)) for kind in STARTS for w in STARTS[kind]]
)
def test_the_shell_inside_was_started_like_the_one_outside(
    words: list[str], terminal: Terminal
) -> None:
    kind = words[0]
    if not shutil.which(kind):
        pytest.skip(f"no {kind}")
    look = "echo ${0##*/} $SHLVL $#; tr '\\0' ' ' </proc/$$/cmdline; echo; env | sort | grep -v PTY"
    look += "; shopt login_shell" if kind == "bash" else "; [[ -o login ]] && echo login"
    seen = []
    for first in ("", "FLIGHTREC_NO_TAIL=1"):
        terminal.write_rc(kind, first=first)
        (terminal.home / ".bash_profile").write_text(". ~/.bashrc\n")
        shell = terminal.open(*words)
        assert is_inside(shell) is (first == "")
        seen.append(shell.type(look))
    assert seen[0] == seen[1]


def test_a_login_shell_by_its_name_is_one_inside(terminal: Terminal) -> None:
    terminal.write_rc("bash")
    (terminal.home / ".bash_profile").write_text(". ~/.bashrc\n")
    shell = terminal.open("bash", "--norc", "-c", "exec -a -bash bash")
    assert is_inside(shell)
    assert "-bash on" in shell.type("echo $0 $(shopt -q login_shell && echo on)")


def test_what_the_profile_did_to_variables_is_done_once(terminal: Terminal) -> None:
    terminal.write_rc("bash")
    (terminal.home / ".bash_profile").write_text(
        "PATH=$PATH:/added\nexport GUARD=${GUARD-}x\nunset GIVEN\nexport NEW=1\n. ~/.bashrc\n"
    )
    shell = terminal.open("bash", "-l", env={"GIVEN": "two words; $(and more)"})
    assert is_inside(shell)
    assert shell.type("echo ${PATH##*/bin} $GUARD ${GIVEN-none} $NEW") == ":/added x none 1\n"


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh")
def test_what_a_terminal_injects_into_zsh_is_injected_inside_too(terminal: Terminal) -> None:
    """kitty and others point ZDOTDIR at a folder of theirs, which gives it back."""
    terminal.write_rc("zsh")
    injection = terminal.home / "injection"
    injection.mkdir()
    (injection / ".zshenv").write_text(
        "export ZDOTDIR=$THEIR_ZDOTDIR; unset THEIR_ZDOTDIR\n"
        "terminal_integration() { echo 'it is here' }\n"
    )
    env = {"ZDOTDIR": str(injection), "THEIR_ZDOTDIR": str(terminal.home)}
    shell = terminal.open("zsh", env=env)
    assert is_inside(shell)
    assert shell.type("terminal_integration; echo $THEIR_ZDOTDIR $ZDOTDIR") == (
        f"it is here\n{terminal.home}\n"
    )


# ---- staying out --------------------------------------------------------------------------------

ELSEWHERE: dict[str, dict[str, str]] = {
    "tmux": {"TMUX": "/tmp/tmux-0/default,1,0"},
    "screen": {"STY": "1.pts-1.host"},
    "zellij": {"ZELLIJ": "0"},
    "a dumb terminal": {"TERM": "dumb"},
    "the console": {"TERM": "linux"},
    "emacs": {"INSIDE_EMACS": "29.1,comint"},
    "emacs's terminal": {"TERM": "eterm-color"},
    "mc": {"MC_SID": "1"},
    "VS Code": {"TERM_PROGRAM": "vscode"},
    "VS Code's own rc file": {"VSCODE_INJECTION": "1"},
    "Warp": {"TERM_PROGRAM": "WarpTerminal"},
    "JetBrains": {"TERMINAL_EMULATOR": "JetBrains-JediTerm"},
    "a forced command": {"SSH_ORIGINAL_COMMAND": "x"},
    "an agent": {"FLIGHTREC_SESSION": "0" * 32},
    "sudo": {"SUDO_UID": "1000"},
    "off": {"FLIGHTREC_OFF": "1"},
    "no tails": {"FLIGHTREC_NO_TAIL": "1"},
}


@both
@pytest.mark.parametrize("where", ELSEWHERE)
def test_where_it_could_do_harm_a_shell_stays_out(
    kind: str, where: str, terminal: Terminal
) -> None:
    terminal.write_rc(kind)
    shell = terminal.open(kind, env=ELSEWHERE[where])
    assert not is_inside(shell)
    assert terminal.times_read(kind) == 1


@both
@pytest.mark.parametrize("parent", ["mosh-server", "mc", "emacs-29.1", "screen", "tmux", "xterm"])
def test_who_started_the_shell_is_known_where_no_variable_says_it(
    kind: str, parent: str, terminal: Terminal
) -> None:
    terminal.write_rc(kind)
    program = terminal.home / parent
    program.symlink_to("/bin/sh")
    shell = terminal.open(str(program), "-c", f"{kind}; exit $?")
    assert is_inside(shell) is (parent == "xterm")
    assert terminal.times_read(kind) == 1


@both
@pytest.mark.parametrize(
    ("text", "goes_in"),
    [
        ("[capture]\ntail = false\n", False),
        ("[hints]\nhold = true\n[capture] # mine\n  tail=false # no", False),
        ("[capture]\ntail = true\n", True),
        ("[capture]\n# tail = false\n[rules]\n", True),
        ("[capture]\n", True),
    ],
)
def test_the_settings_turn_it_off(
    kind: str, text: str, goes_in: object, terminal: Terminal
) -> None:
    terminal.write_rc(kind)
    config = find_paths().config
    config.parent.mkdir(parents=True)
    config.write_text(text)
    assert is_inside(terminal.open(kind)) is goes_in


@both
def test_a_shell_with_options_of_its_own_stays_out(kind: str, terminal: Terminal) -> None:
    rc = terminal.write_rc(kind)
    words = ["bash", "--rcfile", str(rc)] if kind == "bash" else ["zsh", "-o", "nobeep"]
    assert not is_inside(terminal.open(*words))


@both
def test_a_shell_that_is_no_interactive_one_on_a_terminal_stays_out(
    kind: str, terminal: Terminal
) -> None:
    rc = terminal.write_rc(kind)
    for words in ([kind, "-c", f". {rc}; echo on"], [kind, "-i", "-c", f". {rc}; echo on"]):
        done = subprocess.run(
            words, env=terminal.environment(), capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert "on\n" in done.stdout
    shell = terminal.open(kind, env={"FLIGHTREC_NO_TAIL": "1"})
    shell.type("unset FLIGHTREC_NO_TAIL")
    assert "on" in shell.type(f"{kind} -i -c 'echo on'")


@both
def test_reading_the_rc_file_later_takes_nothing_away(kind: str, terminal: Terminal) -> None:
    rc = terminal.write_rc(kind)
    shell = terminal.open(kind, env={"FLIGHTREC_NO_TAIL": "1"})
    shell.type("unset FLIGHTREC_NO_TAIL; mine=kept")
    shell.type(f". {rc}")
    shell.type(f'eval "$(cat {rc})"')
    assert "kept" in shell.type("echo $mine")
    assert not is_inside(shell)


@both
def test_a_shell_below_stays_out_also_in_another_terminal(kind: str, terminal: Terminal) -> None:
    terminal.write_rc(kind)
    shell = terminal.open(kind)
    assert is_inside(shell)
    shell.type(kind)
    assert not is_inside(shell)
    shell.type("exit")
    spawn = f"import pty; pty.spawn(['{kind}'])"
    shell.type(f'{sys.executable} -c "{spawn}"')
    assert not is_inside(shell)
    shell.type("exit")
    assert is_inside(shell)


@both
def test_what_is_left_of_an_ended_session_keeps_nobody_out(kind: str, terminal: Terminal) -> None:
    terminal.write_rc(kind)
    gone = "1:2:0123456789abcdef:/dev/pts/none:/tmp/none"
    assert is_inside(terminal.open(kind, env={"FLIGHTREC_PTY": gone}))


@both
def test_exec_of_the_shell_inside_stays_inside(kind: str, terminal: Terminal) -> None:
    terminal.write_rc(kind)
    shell = terminal.open(kind)
    shell.type(f"exec {kind}")
    assert is_inside(shell)
    assert terminal.times_read(kind) == 2


@both
def test_where_the_proxy_cannot_be_set_up_the_shell_starts_without(
    kind: str, terminal: Terminal
) -> None:
    (terminal.home / ".local").write_text("no folder\n")
    terminal.write_rc(kind)
    shell = terminal.open(kind)
    assert not is_inside(shell)
    assert terminal.times_read(kind) == 1
    assert shell.leave("exit 3") == 3


BROKEN = {
    "gone": None,
    "of another machine": b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xf3\x00" + bytes(100),
    "empty": b"",
    "failing": b"#!/bin/false\n",
}


@both
@pytest.mark.parametrize("name", BROKEN)
def test_a_helper_that_does_not_run_costs_nobody_a_shell(
    kind: str, name: str, terminal: Terminal
) -> None:
    terminal.helper = terminal.home / "flightrec-helper"
    program = BROKEN[name]
    if program is not None:
        terminal.helper.write_bytes(program)
        terminal.helper.chmod(stat.S_IRWXU)
    terminal.write_rc(kind)
    shell = terminal.open(kind)
    assert not is_inside(shell)
    assert "alive" in shell.type("echo alive")


@both
@pytest.mark.skipif(not shutil.which("script"), reason="script is not installed")
def test_a_recording_of_the_terminal_is_left_alone(kind: str, terminal: Terminal) -> None:
    terminal.write_rc(kind)
    program = shutil.which(kind)
    assert program is not None
    shell = terminal.open("script", "-q", "/dev/null", env={"SHELL": program})
    assert not is_inside(shell)


# ---- by hand ------------------------------------------------------------------------------------


@both
def test_init_prints_what_goes_in_and_records(
    kind: str, terminal: Terminal, wait_for: WaitFor
) -> None:
    code = flightrec("init", kind, "--tail", home=terminal.home).stdout
    plain = flightrec("init", kind, home=terminal.home).stdout
    assert code.endswith(plain)
    rc = terminal.home / f".{kind}rc"
    rc.write_text(f"eval '{code.replace(chr(39), _QUOTE)}'\nPS1='{PROMPT}'\n{BARE[kind]}")
    with _no_daemon_left(terminal.home):
        shell = terminal.open(kind)
        assert is_inside(shell)
        shell.type("ls /nonexistent")
        paths = find_paths()
        wait_for(lambda: _tails(paths.home), what="a tail in the store")


_QUOTE = "'\\''"


@contextlib.contextmanager
def _no_daemon_left(home: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(FlightrecError):
            request(find_paths(str(home)), "stop", autostart=False)


def _tails(home: Path) -> bool:
    shown = flightrec("log", "--json", home=home).stdout
    return "cannot access '/nonexistent'" in shown


@both
def test_flightrec_shell_records_a_shell_that_loads_nothing_by_itself(
    kind: str, terminal: Terminal, wait_for: WaitFor
) -> None:
    rc = f"PS1='{PROMPT}'\n{BARE[kind]}mine=read\n"
    (terminal.home / f".{kind}rc").write_text(rc)
    with _no_daemon_left(terminal.home):
        shell = terminal.open(sys.executable, "-m", "flightrec", "shell", kind)
        assert is_inside(shell)
        assert shell.type("echo $mine; env | grep -E 'ZDOTDIR|FLIGHTREC_(LOAD|Z)'") == "read\n"
        shell.type("ls /nonexistent")
        wait_for(lambda: _tails(terminal.home), what="a tail in the store")
        again = shell.type(f"{sys.executable} -m flightrec shell")
        assert again == "flightrec: the text of errors is known in this shell already\n"
        assert shell.leave("exit 5") == 5


def test_flightrec_shell_needs_a_terminal(home: Path) -> None:
    done = flightrec("shell", home=home)
    assert done.returncode == 1
    assert "needs a terminal" in done.stderr


def test_flightrec_shell_takes_the_person_s_own_shell(terminal: Terminal) -> None:
    for kind in ("bash", "zsh"):
        if shutil.which(kind):
            rc = f"PS1='{PROMPT}'\n{BARE[kind]}"
            (terminal.home / f".{kind}rc").write_text(rc)
            with _no_daemon_left(terminal.home):
                shell = terminal.open(
                    sys.executable, "-m", "flightrec", "shell", env={"SHELL": f"/bin/{kind}"}
                )
                assert kind in shell.type("echo ${0##*/}")


def test_a_zdotdir_of_the_person_s_is_what_the_shell_has(terminal: Terminal) -> None:
    if not shutil.which("zsh"):
        pytest.skip("no zsh")
    own = terminal.home / "dots"
    own.mkdir()
    (own / ".zshenv").write_text("from_zshenv=1\n")
    (own / ".zshrc").write_text(f"PS1='{PROMPT}'\n{BARE['zsh']}")
    with _no_daemon_left(terminal.home):
        shell = terminal.open(
            sys.executable, "-m", "flightrec", "shell", "zsh", env={"ZDOTDIR": str(own)}
        )
        assert shell.type("echo $ZDOTDIR $from_zshenv") == f"{own} 1\n"
