"""Shells of agents whose own settings name our scripts: nothing but BASH_ENV or ZDOTDIR is set."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_stage import PATIENCE_S, PLAIN_PATH
from daemon_process import DaemonProcess, wait_until
from flightrec.agent_marks import MARKS, Mark, session_id
from flightrec.agent_session import open_session, session_environment
from flightrec.hook_parts import Setup
from flightrec.installation import copy_files, data_folder
from flightrec.paths import find_paths
from flightrec.typed_shell import find_shells
from helper_builds import helper
from recording_server import RecordingServer, Run, recording_server

NO_SOCKETS = Path(__file__).parent / "agents/no_sockets.py"

SHELLS = [shell for shell in ("bash", "zsh") if shell in find_shells()]

NAMING = [mark for mark in MARKS if mark.agent not in ("gemini", "qwen")]
"""The agents whose settings can name our scripts."""

MARKED = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "abc-1"}

STARTER = """
import os, subprocess, sys
environment = dict(os.environ)
for word in sys.argv[1].split("\\n"):
    name, _, value = word.partition("=")
    environment[name] = value
sys.exit(subprocess.run(sys.argv[2:], env=environment).returncode)
"""
"""An agent: it has the person's environment, and gives its shells another one."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A home with the installed copy, and a daemon that only listens."""

    home: Path
    server: RecordingServer

    @property
    def plain(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": PLAIN_PATH,
            "LANG": "C.UTF-8",
            "FLIGHTREC_PATIENCE_MS": "2000",
            "GIT_CEILING_DIRECTORIES": str(self.home),
        }

    @property
    def ours(self) -> dict[str, str]:
        return Setup(data_folder(self.home), uses_zsh=True).variables()

    def shell(
        self,
        words: list[str],
        added: dict[str, str],
        persons: dict[str, str] | None = None,
        stdin: bytes = b"",
    ) -> subprocess.CompletedProcess[bytes]:
        """Start a shell as an agent would: ``added`` is what only its shells have."""
        text = "\n".join(f"{name}={value}" for name, value in added.items())
        return subprocess.run(
            ["/usr/bin/python3", "-c", STARTER, text, *words],
            env={**self.plain, **(persons or {})},
            cwd=self.home,
            input=stdin,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def recorded(self) -> list[Run]:
        """Every run so far: what comes last is waited for."""
        self.shell(["/bin/bash", "-c", ": the last"], {**self.ours, **MARKED})
        wait_until(lambda: (": the last", 0) in self.server.finished)
        return [run for run in self.server.runs if run.command != ": the last"]


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    helper()
    with (
        tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("HOME", folder)
        copy_files(Path(folder))
        with recording_server() as server:
            yield Installed(Path(folder), server)


@pytest.fixture(autouse=True)
def _forget(installed: Installed) -> None:
    installed.server.messages.clear()
    installed.server.by_id.clear()


def path_of(shell: str) -> str:
    return f"/bin/{shell}"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("mark", NAMING, ids=lambda mark: mark.agent)
def test_a_marked_shell_is_recorded_as_its_agents(
    installed: Installed, shell: str, mark: Mark
) -> None:
    marks = {mark.variable: "1"} | ({mark.session: "ses_1"} if mark.session else {})
    done = installed.shell([path_of(shell), "-c", "cat /nope; exit 5"], {**installed.ours, **marks})

    assert done.returncode == 5
    (run,) = installed.recorded()
    assert run.pair == ("cat /nope; exit 5", 5)
    assert run.starting.agent == mark.agent.encode()
    assert run.starting.cwd == os.fsencode(installed.home)
    if mark.session:
        assert run.starting.session == session_id(mark.agent, "ses_1")


@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_marked_shell_starts_knows_its_session(installed: Installed, shell: str) -> None:
    """Such as a `flightrec run` below it, which is to leave that alone."""
    words = [path_of(shell), "-c", "env | grep ^FLIGHTREC_SESSION="]
    done = installed.shell(words, {**installed.ours, **MARKED})

    (run,) = installed.recorded()
    assert done.stdout == b"FLIGHTREC_SESSION=" + run.starting.session.hex().encode() + b"\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_without_a_mark_is_as_without_us(installed: Installed, shell: str) -> None:
    line = 'echo "$BASH_ENV|$ZDOTDIR|$_|$-|$0"; env | sort | grep -v "^_="; set -u; echo $SHLVL'
    persons = {"BASH_ENV": "/dev/null", "ZDOTDIR": "/nonexistent"}
    plain = installed.shell([path_of(shell), "-c", line], {"SHLVL": "1"}, persons)
    ours = installed.shell([path_of(shell), "-c", line], installed.ours, persons)
    none = installed.shell([path_of(shell), "-c", line], {"SHLVL": "1"})
    unset = installed.shell([path_of(shell), "-c", line], installed.ours)
    harness = installed.shell(
        [path_of(shell), "-c", line], {**installed.ours, "AI_AGENT": "x_harness"}, persons
    )

    assert (ours.returncode, ours.stdout, ours.stderr) == (0, plain.stdout, plain.stderr)
    assert (unset.returncode, unset.stdout, unset.stderr) == (0, none.stdout, none.stderr)
    assert harness.stdout.replace(b"AI_AGENT=x_harness\n", b"") == plain.stdout
    assert installed.recorded() == []


def test_an_agents_own_work_is_not_recorded(installed: Installed) -> None:
    added = {**installed.ours, **MARKED, "AI_AGENT": "claude-code_harness"}
    assert installed.shell(["/bin/bash", "-c", "exit 3"], added).returncode == 3
    hook = Setup(data_folder(installed.home)).hook_command("claude")
    installed.shell(["/bin/bash", "-c", hook], {**installed.ours, **MARKED}, stdin=b"{}")

    assert installed.recorded() == []


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("words", [["-c"], ["-l", "-c"]], ids=["plain", "login"])
def test_the_persons_own_files_are_read_as_often_as_without_us(
    installed: Installed, tmp_path: Path, shell: str, words: list[str]
) -> None:
    log = tmp_path / "log"
    for name in (".zshenv", ".zprofile", ".zlogin", "env.sh"):
        (tmp_path / name).write_text(f"echo {name} $ZDOTDIR >>{shlex.quote(str(log))}\n")
    persons = {"BASH_ENV": str(tmp_path / "env.sh"), "ZDOTDIR": str(tmp_path)}
    line = f"{path_of(shell)} -c 'bash -c :; echo $BASH_ENV'; zsh -c 'echo $ZDOTDIR'; exit 4"
    seen = []
    for added in ({"SHLVL": "1", **MARKED}, {**installed.ours, **MARKED}):
        log.unlink(missing_ok=True)
        done = installed.shell([path_of(shell), *words, line], added, persons)
        seen.append((done.returncode, done.stdout, done.stderr, log.read_text()))

    assert seen[0][3]
    assert seen[0] == seen[1]
    assert [run.pair for run in installed.recorded()] == [(line, 4)]


@pytest.mark.parametrize("shell", SHELLS)
def test_inside_flightrec_run_nothing_is_recorded_twice(installed: Installed, shell: str) -> None:
    paths = find_paths(str(installed.home))
    with open_session(paths, "claude", (), PLAIN_PATH, Path("/nonexistent/flightrec")) as session:
        environment = session_environment(installed.plain, session)
        environment["FLIGHTREC_COMMAND"] = "/nonexistent/flightrec"
        done = installed.shell(
            [path_of(shell), "-c", f"{path_of(shell)} -c 'exit 6'"],
            {**installed.ours, **MARKED},
            {**environment, "FLIGHTREC_PATIENCE_MS": "2000"},
        )
        expected = session.id

    assert done.returncode == 6
    (run,) = installed.recorded()
    assert run.starting.session == expected


def test_shells_of_one_agent_without_a_session_of_its_own_share_one(installed: Installed) -> None:
    added = {**installed.ours, "COPILOT_CLI": "1"}
    both = "import subprocess\nfor n in 3, 4: subprocess.run(['/bin/bash', '-c', f'exit {n}'])"
    twice = ["/usr/bin/python3", "-c", both]
    installed.shell(twice, added)
    installed.shell(twice, added)
    sessions = [run.starting.session for run in installed.recorded()]

    assert sessions[0] == sessions[1] != sessions[2] == sessions[3]


def test_a_deleted_installation_leaves_shells_as_they_are(
    installed: Installed, tmp_path: Path
) -> None:
    gone = Setup(tmp_path / "gone/flightrec", uses_zsh=True).variables()
    for shell in SHELLS:
        done = installed.shell([path_of(shell), "-c", "echo hi; exit 7"], {**gone, **MARKED})
        assert (done.returncode, done.stdout, done.stderr) == (7, b"hi\n", b"")


def test_secrets_of_the_environment_are_not_sent(installed: Installed) -> None:
    added = {**installed.ours, **MARKED, "CLAUDE_CODE_MESSAGING_TOKEN": "hush-hush-1"}
    installed.shell(["/bin/bash", "-c", "exit 3"], added, {"API_KEY": "hush-hush-2"})
    installed.recorded()

    assert "hush-hush" not in repr(installed.server.messages)


def test_a_sandbox_without_sockets_is_told_of_by_the_fifo(home: Path) -> None:
    copy_files(home)
    ours = Setup(data_folder(home)).variables()
    environment = {"HOME": str(home), "PATH": PLAIN_PATH, **ours, **MARKED}
    with DaemonProcess(home) as daemon:
        words = [sys.executable, NO_SOCKETS, "/bin/bash", "-c", "cat /nope; exit 3"]
        done = subprocess.run(words, env=environment, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (3, b"")
        wait_until(lambda: daemon.commands() == ["cat /nope; exit 3"])
        assert daemon.query("SELECT exit, agent FROM runs") == [(3, "claude")]
