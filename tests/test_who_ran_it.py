"""Whose command it was: a person's or an agent's, by a mark or by the processes above."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from agent_stage import PATIENCE_S, PLAIN_PATH
from daemon_process import FLIGHTREC, DaemonProcess, flightrec, lasting_daemon, wait_until
from fake_relay import starting
from flightrec.agent_marks import MARKS
from flightrec.ancestors import PACKAGES, PROGRAMS, agent_above, agent_of
from flightrec.export_rows import read_claude_folders
from flightrec.front import Front
from flightrec.pausing import Pause
from flightrec.store import Store
from flightrec.wire import CommandStarting, SessionEnded
from helper_builds import helper
from test_front import FakePeer
from typed_shell import BOTH, PROMPT, Rc, ShellMaker

SECRETS = {
    "ANTHROPIC_API_KEY": "sk-ant-canary-0123456789abcdefghij",
    "OPENAI_API_KEY": "canary-openai-plain-words",
    "CLAUDE_CODE_MESSAGING_TOKEN": "canary-messaging-token",
    "HTTPS_PROXY": "http://canaryuser:canarypass@proxy.example:8080",
    "GITHUB_TOKEN": "ghp_canary0123456789abcdefghijklmnopqrst",
    "MY_OWN_VARIABLE": "canary-of-no-known-kind",
}
"""What agents have in the environment of their shells."""


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    helper()
    with lasting_daemon() as running:
        yield running


@pytest.fixture
def shell(daemon: DaemonProcess) -> Iterator[ShellMaker]:
    maker = ShellMaker(daemon.paths.home)
    yield maker
    maker.close()


def agents(daemon: DaemonProcess, command: str) -> list[tuple[str | None, str | None]]:
    """Return who ran a command, by its run and by its session."""
    rows = daemon.query(
        "SELECT command, runs.agent, sessions.agent"
        " FROM runs JOIN sessions ON sessions.id = session_id"
    )
    return [(run, session) for found, run, session in rows if found == command]


def nobody_or_whoever_runs_the_tests() -> str | None:
    return agent_above(os.getpid()) or None


# The table.


@pytest.mark.parametrize(
    ("words", "agent"),
    [
        (["claude", "-p", "x"], "claude"),
        (["/home/me/.local/bin/codex", "exec"], "codex"),
        (["node", "--no-warnings", "/usr/bin/gemini", "-p", "x"], "gemini"),
        (["/usr/bin/python3.11", "/home/me/.local/bin/aider"], "aider"),
        (["python3", "-m", "gptme"], "gptme"),
        (["uv", "run", "vibe"], "vibe"),
        (["node", "/x/node_modules/@qwen-code/qwen-code/cli.js"], "qwen"),
        (["node", "/x/node_modules/cline/dist/hub.js", "--port", "1"], "cline"),
        (["bash", "-c", "claude"], ""),
        (["vim", "claude"], ""),
        (["node", "server.js", "codex"], ""),
        (["node", "app/index.js", "claude"], ""),
        (["python3", "-m", "pytest", "claude"], ""),
        (["python3", "manage.py", "pi"], ""),
        (["node", "/x/node_modules/clinex/cli.js"], ""),
        (["cursor"], ""),
        ([""], ""),
        ([], ""),
    ],
)
def test_an_agent_is_known_by_its_program_or_script(words: list[str], agent: str) -> None:
    assert agent_of(words) == agent


def test_names_are_the_same_wherever_they_come_from() -> None:
    assert {mark.agent for mark in MARKS} <= set(PROGRAMS.values())
    assert set(PACKAGES.values()) <= set(PROGRAMS.values())


@pytest.mark.parametrize("pid", [0, -1, 1 << 22, 1 << 40])
def test_a_pid_that_means_nothing_here_is_nobody(pid: int) -> None:
    assert agent_above(pid) == ""


# In memory: looked up once.


def test_the_processes_above_are_asked_once_a_session(tmp_path: Path) -> None:
    asked: list[int] = []

    def find(pid: int) -> str:
        asked.append(pid)
        return "aider"

    front = Front(Pause(tmp_path / "paused"), "/home/u", lambda: None, find)
    peer = FakePeer()
    one, other = b"1" * 16, b"2" * 16
    messages: list[CommandStarting | SessionEnded] = [
        starting("ls", one),
        starting("pwd", one),
        starting("ls", other, agent=b"codex"),  # it says so itself
        SessionEnded(one),
        starting("ls", one),
    ]
    for message in messages:
        front.handle(message, peer)
    assert len(asked) == 2


# Real shells.


@pytest.mark.parametrize("kind", BOTH)
def test_a_person_s_shell_is_nobody_s(kind: str, daemon: DaemonProcess, shell: ShellMaker) -> None:
    shell(kind).type(f"true person {kind}")
    wait_until(lambda: agents(daemon, f"true person {kind}"))
    whoever = nobody_or_whoever_runs_the_tests()
    assert agents(daemon, f"true person {kind}") == [(whoever, whoever)]


@pytest.mark.parametrize("kind", BOTH)
def test_a_shell_with_a_mark_says_whose_it_is(
    kind: str, daemon: DaemonProcess, shell: ShellMaker
) -> None:
    shell(kind, env={"GEMINI_CLI": "1"}).type(f"true marked {kind}")
    wait_until(lambda: agents(daemon, f"true marked {kind}"))
    assert agents(daemon, f"true marked {kind}") == [("gemini", "gemini")]


def everything_kept(daemon: DaemonProcess) -> bytes:
    """Return every byte of every file of ours."""
    files = (path for path in daemon.paths.state.rglob("*") if path.is_file())
    return b"".join(path.read_bytes() for path in files)


def write_script(folder: Path, name: str, text: str) -> list[str]:
    """Return the words that start a Python script of this name."""
    script = folder / name
    script.write_text(text)
    return [sys.executable, str(script)]


@pytest.mark.parametrize("kind", BOTH)
def test_a_shell_below_an_agent_without_a_mark_is_found_by_its_parents(
    kind: str, daemon: DaemonProcess, shell: ShellMaker, tmp_path: Path
) -> None:
    """As aider's own terminal starts the person's shell, two processes further down.

    T7: what else stands in the agent's command line is nobody's business.
    """
    below = "import subprocess, sys\nsys.exit(subprocess.call(['sh', '-c', '\"$@\"; exit', 'sh'"
    agent = write_script(tmp_path, "aider", f"{below}, *sys.argv[3:]]))\n")
    words = [*agent, "--api-key", "canary-in-the-arguments", *shell.write_rc(kind, Rc())]
    child = pexpect.spawn(
        words[0], words[1:], env=shell.environment(kind), encoding="utf-8", timeout=60
    )
    with contextlib.closing(child):
        child.expect_exact(PROMPT)
        child.send(f"true below {kind}\r")
        child.expect_exact(PROMPT)
        wait_until(lambda: agents(daemon, f"true below {kind}"))
    assert agents(daemon, f"true below {kind}") == [("aider", "aider")]
    assert b"canary-in-the-arguments" not in everything_kept(daemon)


def test_an_agent_that_run_started_has_its_program_s_name(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    agent = write_script(
        tmp_path, "codex", "import subprocess\nsubprocess.run(['bash', '-c', 'true of run'])\n"
    )
    subprocess.run(
        [*FLIGHTREC, "run", *agent],
        env={"HOME": str(daemon.paths.home), "PATH": PLAIN_PATH, "SHELL": "/bin/bash"},
        check=True,
        timeout=PATIENCE_S,
        capture_output=True,
    )
    assert agents(daemon, "true of run") == [("codex", "codex")]


def test_a_run_tells_where_claude_code_has_its_memory(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    environment = {
        "HOME": str(daemon.paths.home),
        "PATH": PLAIN_PATH,
        "CLAUDE_CONFIG_DIR": str(tmp_path / "caf\udce9"),
    }
    words = [*FLIGHTREC, "run", "--", "true"]
    subprocess.run(words, env=environment, check=True, timeout=PATIENCE_S, capture_output=True)
    with contextlib.closing(Store.open_read_only(daemon.paths.database)) as store:
        assert read_claude_folders(store.connection) == [environment["CLAUDE_CONFIG_DIR"]]


def test_a_script_that_tells_the_helper_itself_is_known_by_its_mark(
    daemon: DaemonProcess,
) -> None:
    subprocess.run(
        [helper(), "send", "--exit", "0", "--", "true sent"],
        env={"HOME": str(daemon.paths.home), "PATH": PLAIN_PATH, "QWEN_CODE": "1"},
        check=True,
        timeout=PATIENCE_S,
    )
    wait_until(lambda: agents(daemon, "true sent"))
    assert agents(daemon, "true sent") == [("qwen", "qwen")]


# What is not kept.


@pytest.mark.parametrize("kind", BOTH)
def test_nothing_of_an_agent_s_environment_is_kept(
    kind: str, daemon: DaemonProcess, shell: ShellMaker, tmp_path: Path
) -> None:
    """T7: by a person's shell, a marked one, ``run`` and ``send``; every byte of every file."""
    home = daemon.paths.home
    shell(kind, env={**SECRETS, "CLAUDECODE": "1"}).type("nosuchprogram-in-a-shell")
    environment = {"HOME": str(home), "PATH": PLAIN_PATH, "SHELL": f"/bin/{kind}", **SECRETS}
    agent = write_script(
        tmp_path,
        "opencode",
        f"import subprocess\nsubprocess.run(['{kind}', '-c', 'nosuchprogram-by-run'])\n",
    )
    commands = ([*FLIGHTREC, "run", *agent], [helper(), "send", "--exit", "1", "--", "failed x"])
    for words in commands:
        subprocess.run(words, env=environment, check=True, timeout=PATIENCE_S, capture_output=True)
    for command in ("nosuchprogram-in-a-shell", "nosuchprogram-by-run", "failed x"):
        wait_until(lambda command=command: agents(daemon, command))
    kept = everything_kept(daemon)
    assert b"nosuchprogram-by-run" in kept
    assert [name for name, value in SECRETS.items() if value.encode() in kept] == []


# Shown.


def test_everybody_is_told_apart(home: Path) -> None:
    commands: tuple[tuple[str, bytes | None], ...] = (
        ("gti status", None),
        ("gti status", b"codex"),
        ("gti status", b"claude"),
    )
    with DaemonProcess(home) as daemon:
        for command, agent in commands:
            with daemon.relay() as relay:
                relay.type(command, 127, agent=agent)
                relay.wait_for_commit(relay.type("git status", agent=agent))

        def ask(*words: str) -> str:
            done = flightrec(*words, home=home)
            assert done.returncode == 0, done.stderr
            return done.stdout

        shown = ask("log")
        assert shown.count("  by codex\n") == 2
        assert ask("log", "--agent", "codex").count("\n") == 2
        assert "by" not in ask("log", "--agent", "you")
        rule = ask("rules").split()[0]
        why = ask("why", rule)
        assert "failed again  by codex" in why
        assert "failed again  by claude" in why
        assert "met by       you, claude, codex" in ask("rules", "show", rule)
        assert "run by       you 2 (1 failed), claude 2 (1 failed), codex 2 (1 failed)" in (
            ask("stats")
        )
        assert '"agent": "codex"' in ask("why", rule, "--json")
        assert '"codex": {' in ask("stats", "--json")


def test_both_halves_know_the_same_marks() -> None:
    text = (Path(__file__).parent.parent / "shim/marks.c").read_text()
    assert [
        mark.agent for mark in MARKS if f'{{"{mark.agent}", "{mark.variable}"' not in text
    ] == []
