"""``flightrec run`` is the command that it runs, with a recorder beside it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from agent_stage import PATIENCE_S, PLAIN_PATH, open_stage
from daemon_process import (
    FLIGHTREC,
    DaemonProcess,
    is_alive,
    lasting_daemon,
    stored_commands,
    wait_until,
)
from flightrec.agent_session import (
    LEFT_OVER_AFTER_S,
    AgentSession,
    Placed,
    place_files,
    session_environment,
)
from flightrec.commands.run import Summary, _agent_name, describe
from flightrec.errors import FlightrecError
from flightrec.paths import HELPER_NAME, find_paths, find_resource
from flightrec.shimmed_programs import NEVER, SHELLS, shimmed_programs
from helper_builds import helper

NO_SOCKETS = Path(__file__).parent / "agents/no_sockets.py"

AGENT = [sys.executable, "-c"]
AGENT_NAME = Path(sys.executable).name
"""An interpreter is an agent, so what it starts are the commands."""


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    helper()
    with lasting_daemon() as running:
        yield running


@pytest.fixture
def environment(daemon: DaemonProcess) -> dict[str, str]:
    return {
        "HOME": str(daemon.paths.home),
        "PATH": PLAIN_PATH,
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "TERM": "xterm",
    }


def run(
    environment: dict[str, str], *words: str | bytes, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run ``flightrec run WORDS``."""
    return subprocess.run(
        [*FLIGHTREC, "run", *words],
        env=environment,
        input=stdin,
        cwd=environment["HOME"],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )


def session_of(daemon: DaemonProcess, agent: str) -> list[tuple[str, int | None]]:
    """Return command and exit of all commands of the newest session of an agent."""
    return daemon.query(
        "SELECT command, exit FROM runs WHERE parent IS NULL AND session_id ="  # noqa: S608 - a test's own word
        f" (SELECT max(id) FROM sessions WHERE agent = '{agent}') ORDER BY id"
    )


# --- the command is as it would be -----------------------------------------------------------


@pytest.mark.parametrize("status", [0, 1, 7, 126, 255])
def test_it_exits_with_the_command_s_status(environment: dict[str, str], status: int) -> None:
    done = run(environment, "--quiet", "--", *AGENT, f"raise SystemExit({status})")

    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT])
def test_it_ends_by_the_command_s_signal(
    environment: dict[str, str], number: signal.Signals
) -> None:
    code = f"import os, signal; signal.signal({number}, 0) if {number} not in (9,) else 0; os.kill(os.getpid(), {number})"  # noqa: E501 - one command

    done = run(environment, "--quiet", "--", *AGENT, code)

    assert done.returncode == -number


def test_streams_and_words_reach_the_command_unchanged(environment: dict[str, str]) -> None:
    code = "import sys, os; os.write(2, os.fsencode(sys.argv[1])); print(sys.stdin.read(), end='')"

    done = run(environment, "--quiet", "--", *AGENT, code, b"\xff --quiet -- a  b", stdin=b"in")

    assert (done.stdout, done.stderr) == (b"in", b"\xff --quiet -- a  b")


def test_the_command_has_its_usual_signal_dispositions(environment: dict[str, str]) -> None:
    words = ["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"]
    plain = subprocess.run(words, env=environment, capture_output=True, check=True)

    assert run(environment, "--quiet", "--", *words).stdout == plain.stdout


def test_descriptors_reach_the_command(environment: dict[str, str], tmp_path: Path) -> None:
    with (tmp_path / "three").open("w") as file:
        subprocess.run(
            [
                *FLIGHTREC,
                "run",
                "--quiet",
                "--",
                "python3",
                "-c",
                f"import os; os.write({file.fileno()}, b'x')",
            ],
            env=environment,
            pass_fds=(file.fileno(),),
            check=True,
        )

    assert (tmp_path / "three").read_text() == "x"


def test_a_command_that_is_not_there_is_127(environment: dict[str, str]) -> None:
    done = run(environment, "--quiet", "--", "nosuchprogram", "x")

    assert done.returncode == 127
    assert done.stderr == b"flightrec: nosuchprogram: command not found\n"


def test_a_file_that_may_not_be_executed_is_126(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "plain").write_text("echo hi\n")

    done = run(environment, "--quiet", "--", str(tmp_path / "plain"))

    assert done.returncode == 126
    assert b"Permission denied" in done.stderr


def test_a_script_without_an_interpreter_line_is_a_shell_s(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "bare"
    script.write_text('echo "script $1"; exit 3\n')
    script.chmod(0o755)

    done = run(environment, "--quiet", "--", str(script), "one")

    assert (done.returncode, done.stdout) == (3, b"script one\n")


def test_no_command_is_a_mistake_of_usage(environment: dict[str, str]) -> None:
    done = run(environment, "--quiet")

    assert done.returncode == 2
    assert b"say which command" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT])
def test_signals_are_handed_on(environment: dict[str, str], number: signal.Signals) -> None:
    code = (
        "import signal, sys, time\n"
        f"signal.signal({number}, lambda *_: sys.exit(9))\n"
        "print('ready', flush=True)\ntime.sleep(60)"
    )
    process = subprocess.Popen(
        [*FLIGHTREC, "run", "--quiet", "--", *AGENT, code], env=environment, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()

    process.send_signal(number)

    assert process.wait(PATIENCE_S) == 9
    process.stdout.close()


def test_killing_it_ends_the_command(environment: dict[str, str]) -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [*FLIGHTREC, "run", "--quiet", "--", *AGENT, code], env=environment, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())

    process.kill()
    process.wait(PATIENCE_S)
    process.stdout.close()

    wait_until(lambda: not is_alive(pid))


# --- on a terminal ---------------------------------------------------------------------------


def test_an_interrupt_from_the_terminal_is_the_agent_s_alone(environment: dict[str, str]) -> None:
    code = (
        "import os, signal, sys\n"
        # print may be interrupted within print, and does not like that
        "signal.signal(signal.SIGINT, lambda *_: os.write(1, b'interrupted\\n'))\n"
        "print('ready', flush=True)\nsys.stdin.readline()"
    )
    words = [*FLIGHTREC[1:], "run", "--", *AGENT, code]
    child = pexpect.spawn(FLIGHTREC[0], words, env=environment, encoding="utf-8", timeout=20)
    child.expect("ready")

    child.sendintr()
    child.expect("interrupted")
    child.sendline("go on")
    rest = child.read()
    child.close()

    assert child.exitstatus == 0
    assert "interrupted" not in rest  # once
    assert "flightrec: 0 runs" in rest


def test_the_agent_can_be_stopped_and_continued(environment: dict[str, str]) -> None:
    child = pexpect.spawn(
        "/bin/bash", ["--norc", "-i"], env=environment, encoding="utf-8", timeout=20
    )
    child.sendline("PS1='PROMPT''> '")
    child.expect("PROMPT> ")
    child.sendline(f"{' '.join(FLIGHTREC)} run -- cat")
    child.sendline("hello")
    child.expect("hello\r\nhello")

    child.send("\x1a")
    child.expect("Stopped")
    child.expect("PROMPT> ")
    child.sendline("fg")
    child.sendline("again")
    child.expect("again\r\nagain")
    child.sendeof()
    child.expect("PROMPT> ")
    child.sendline("exit")
    child.close()


# --- what is recorded ------------------------------------------------------------------------


def test_an_agent_s_commands_are_recorded_and_summed_up(
    daemon: DaemonProcess, environment: dict[str, str]
) -> None:
    code = (
        "import subprocess as s\n"
        "for text in ('gti status', 'git statsu', 'git --version', 'git statsu | cat'):\n"
        "    s.run(['/bin/bash', '-c', text])"
    )

    done = run(environment, "--", *AGENT, code)

    assert session_of(daemon, AGENT_NAME) == [
        ("gti status", 127),
        ("git statsu", 1),
        ("git --version", 0),
        ("git statsu | cat", 0),
    ]
    last = done.stderr.decode().splitlines()[-1]
    assert re.fullmatch(
        r"flightrec: 4 runs, [2-4] failures, \d recover(y|ies), \d new rules?", last
    )


def test_quiet_says_nothing(environment: dict[str, str]) -> None:
    assert run(environment, "--quiet", "--", "true").stderr == b""


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        (["bash", "-c", "echo hi; exit 3"], ("echo hi; exit 3", 3)),
        (["/bin/sh", "-c", "exit 4"], ("exit 4", 4)),
        (["zsh", "-c", "exit 5"], ("exit 5", 5)),
        (["git", "statsu"], ("git statsu", 1)),
        (["make", "-f", "/tmp/x y"], ("make -f '/tmp/x y'", 2)),
    ],
)
def test_a_single_command_is_recorded_itself(
    daemon: DaemonProcess,
    environment: dict[str, str],
    words: list[str],
    recorded: tuple[str, int],
) -> None:
    done = run(environment, "--", *words)

    assert done.returncode == recorded[1]
    assert session_of(daemon, Path(words[0]).name) == [recorded]
    assert done.stderr.decode().splitlines()[-1].startswith("flightrec: 1 run, 1 failure")


def test_what_a_given_tool_starts_is_its_own_affair(
    daemon: DaemonProcess, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "Makefile").write_text("all:\n\t@git --version; bash -c 'exit 3'\n")

    run(environment, "--", "make", "-s", "-C", str(tmp_path))

    assert session_of(daemon, "make") == [(f"make -s -C {tmp_path}", 2)]
    newest = "(SELECT max(id) FROM sessions)"
    assert daemon.query(f"SELECT count(*) FROM runs WHERE session_id = {newest}") == [(1,)]  # noqa: S608 - no data


def test_an_agent_inside_a_given_shell_is_recorded_command_by_command(
    daemon: DaemonProcess, environment: dict[str, str], tmp_path: Path
) -> None:
    agent = tmp_path / "agent"
    agent.write_text(
        "#!/usr/bin/env python3\nimport subprocess\nsubprocess.run(['/bin/bash', '-c', 'exit 6'])\n"
    )
    agent.chmod(0o755)

    run(environment, "--", "bash", "-c", f"cd / && {agent}")

    assert sorted(session_of(daemon, "bash")) == sorted([("exit 6", 6), (f"cd / && {agent}", 0)])


def test_an_agent_that_is_a_tool_is_not_taken_for_a_command(
    daemon: DaemonProcess, environment: dict[str, str], tmp_path: Path
) -> None:
    """``#!/usr/bin/env python3`` finds the stand-in, which steps aside for the agent."""
    agent = tmp_path / "myagent"
    agent.write_text(
        "#!/usr/bin/env python3\nimport os, shutil, subprocess, sys\n"
        "print(sys.executable, 'shims' in shutil.which('git'))\n"
        "subprocess.run(['git', 'statsu'])\n"
    )
    agent.chmod(0o755)

    done = run(environment, "--", str(agent))

    assert done.stdout == b"/usr/bin/python3 True\n"
    assert session_of(daemon, "myagent") == [("git statsu", 1)]


def test_a_run_inside_a_run_says_so_once_and_changes_nothing(
    daemon: DaemonProcess, environment: dict[str, str]
) -> None:
    inner = " ".join([*FLIGHTREC, "run", "--", "git", "statsu"])
    code = f"import subprocess; subprocess.run(['/bin/bash', '-c', {inner!r}])"

    done = run(environment, "--", *AGENT, code)

    lines = done.stderr.decode().splitlines()
    assert lines[0] == "flightrec: this is a recorded session already"
    assert sum(line.startswith("flightrec:") for line in lines) == 2  # and the summary
    assert len(session_of(daemon, AGENT_NAME)) <= 1


def test_the_session_s_folder_is_gone_afterwards(environment: dict[str, str]) -> None:
    code = "import os; f = os.environ['FLIGHTREC_SHIMS']; print(f, 'git' in os.listdir(f))"

    folder, full = run(environment, "--quiet", "--", *AGENT, code).stdout.split()

    assert full == b"True"
    assert not Path(os.fsdecode(folder)).exists()


def test_what_outlives_the_run_still_finds_its_programs(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """A bash remembers where it has found a program."""
    fifo, out = tmp_path / "fifo", tmp_path / "out"
    os.mkfifo(fifo)
    text = f"git --version; read -r line <{fifo}; git --version; echo $FLIGHTREC_SHIMS"
    code = (
        f"import subprocess as s; out = open({str(out)!r}, 'w');"
        f" s.Popen(['bash', '-c', {text!r}], stdout=out, stderr=out)"
    )

    run(environment, "--quiet", "--", *AGENT, code)
    fifo.write_text("go on\n")
    wait_until(lambda: "shims-" in out.read_text())

    first, second, folder = out.read_text().splitlines()
    assert second == first
    assert Path(folder).is_dir()  # for a later run to remove


def test_what_a_killed_run_left_is_removed_later(
    daemon: DaemonProcess, environment: dict[str, str]
) -> None:
    left_over, fresh = (daemon.paths.run / f"shims-{name}" for name in ("0", "1"))
    for folder in (left_over, fresh):
        folder.mkdir()
        (folder / "git").symlink_to("nowhere")
    old = time.time() - LEFT_OVER_AFTER_S - 10
    os.utime(left_over, (old, old))

    run(environment, "--quiet", "--", "true")

    assert not left_over.exists()
    assert fresh.exists()
    fresh.joinpath("git").unlink()
    fresh.rmdir()


def test_the_person_s_settings_add_and_remove_stand_ins(
    daemon: DaemonProcess, environment: dict[str, str]
) -> None:
    daemon.paths.config.parent.mkdir(parents=True)
    daemon.paths.config.write_text('[shims]\nalso = ["id", "sudo", "../x"]\nnever = ["git"]\n')
    code = "import os; print(*sorted(os.listdir(os.environ['FLIGHTREC_SHIMS'])))"
    try:
        done = run(environment, "--quiet", "--", *AGENT, code)
    finally:
        daemon.paths.config.unlink()

    names = set(done.stdout.split())
    assert {b"id", b"make"} <= names
    assert names.isdisjoint({b"git", b"sudo", b"x"})


# --- hints -----------------------------------------------------------------------------------

LEARN = (
    "import subprocess as s; [s.run(['/bin/bash', '-c', t]) for t in ('gti log -1', 'git log -1')]"
)
FAIL_AGAIN = (
    "import subprocess as s; [s.run([*{before}, 'bash', '-c', 'gti log -1']) for _ in '12']"
)
"""Twice, since on a very busy machine the first hint may come too late to be shown."""


@pytest.mark.parametrize("sandboxed", [False, True], ids=["socket", "sandbox"])
def test_what_one_session_learned_is_hinted_in_the_next(home: Path, *, sandboxed: bool) -> None:
    """Also where sockets are forbidden: by the FIFO, and back by a file."""
    before = [sys.executable, str(NO_SOCKETS)] if sandboxed else []
    environment = {"HOME": str(home), "PATH": PLAIN_PATH, "SHELL": "/bin/bash"}
    environment["FLIGHTREC_PATIENCE_MS"] = "2000"  # a busy machine is no dead daemon
    subprocess.run(["git", "init", "-q", home], check=True)
    commit = ["-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(["git", "-C", home, *commit], check=True)
    helper()

    with DaemonProcess(home) as daemon:
        first = run(environment, "--", *AGENT, LEARN)
        second = run(environment, "--", *AGENT, FAIL_AGAIN.format(before=before))
        stored = session_of(daemon, AGENT_NAME)

    assert b"1 new rule" in first.stderr
    hint = r"flightrec: previously failed here \([12]×: command not found\); try: git log -1\n"
    assert len(re.findall(hint, second.stderr.decode())) == 1
    assert stored == [("gti log -1", 127)] * 2


# --- when there is nothing to record with --------------------------------------------------------


def test_without_a_daemon_the_command_runs_unrecorded(home: Path) -> None:
    (home / ".local/state").mkdir(parents=True)
    (home / ".local/state/flightrec").write_text("in the way")
    environment = {"HOME": str(home), "PATH": PLAIN_PATH}

    done = run(environment, "--", "sh", "-c", "echo out; exit 3")
    quiet = run(environment, "--quiet", "--", "sh", "-c", "exit 3")

    assert (done.returncode, done.stdout) == (3, b"out\n")
    assert done.stderr.startswith(b"flightrec: nothing is recorded: ")
    assert len(done.stderr.splitlines()) == 1
    assert (quiet.returncode, quiet.stderr) == (3, b"")


def test_without_a_home_the_command_runs_unrecorded() -> None:
    done = run_without_home("sh", "-c", "exit 3")

    assert done.returncode == 3
    assert done.stderr.startswith(b"flightrec: nothing is recorded: HOME")


def run_without_home(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*FLIGHTREC, "run", "--", *words],
        env={"PATH": PLAIN_PATH},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_it_starts_the_daemon_where_none_is(clean_env: dict[str, str]) -> None:
    helper()
    try:
        done = run(clean_env, "--", "bash", "-c", "exit 3")
    finally:
        subprocess.run([*FLIGHTREC, "daemon", "stop"], env=clean_env, check=False, timeout=30)

    assert done.returncode == 3
    assert done.stderr == b"flightrec: 1 run, 1 failure, 0 recoveries, 0 new rules\n"


# --- the environment -------------------------------------------------------------------------


def session(home: Path) -> AgentSession:
    return AgentSession(
        bytes(16), "agent", home / "shims", Placed(home / "agents"), home / "bin/flightrec"
    )


def test_the_person_s_own_values_are_kept_beside_ours(tmp_path: Path) -> None:
    person = {
        "BASH_ENV": "$HOME/env",
        "ZDOTDIR": "/home/me/zsh",
        "SHELL": "/opt/bin/zsh",
        "PATH": "/a:/b",
        "SHLVL": "3",
        "OTHER": "x",
    }

    changed = session_environment(person, session(tmp_path))

    assert changed["FLIGHTREC_BASH_ENV"] == "$HOME/env"
    assert changed["FLIGHTREC_ZDOTDIR"] == "/home/me/zsh"
    assert changed["FLIGHTREC_SHELL"] == "/opt/bin/zsh"
    assert changed["SHELL"] == str(tmp_path / "agents/shells/zsh")
    assert changed["PATH"] == f"{tmp_path}/shims:/a:/b"
    assert changed["SHLVL"] == "3"
    assert changed["OTHER"] == "x"
    assert changed["FLIGHTREC_SESSION"] == "0" * 32


def test_a_bare_environment_gets_no_more_than_it_needs(tmp_path: Path) -> None:
    changed = session_environment({}, session(tmp_path))

    assert changed["SHLVL"] == "1"
    assert {
        "PATH",
        "SHELL",
        "FLIGHTREC_SHELL",
        "FLIGHTREC_BASH_ENV",
        "FLIGHTREC_ZDOTDIR",
    }.isdisjoint(changed)


@pytest.mark.parametrize("level", ["", "0", "-1", "x"])
def test_a_shell_level_of_at_least_one_is_set(tmp_path: Path, level: str) -> None:
    assert session_environment({"SHLVL": level}, session(tmp_path))["SHLVL"] == "1"


def test_a_shell_that_we_cannot_stand_in_for_stays(tmp_path: Path) -> None:
    assert (
        session_environment({"SHELL": "/usr/bin/fish"}, session(tmp_path))["SHELL"]
        == "/usr/bin/fish"
    )


def test_no_name_that_is_dangerous_can_get_a_stand_in() -> None:
    programs = shimmed_programs(also=[*NEVER, "/bin/x", "a b", "", "mytool"])

    assert programs.isdisjoint(NEVER)
    assert programs.isdisjoint(SHELLS)
    assert "mytool" in programs
    assert all("/" not in name and " " not in name for name in programs)


@pytest.mark.usefixtures("home")
def test_copies_are_made_once_and_replaced_when_they_differ() -> None:
    helper()
    placed = place_files(find_paths())
    first = placed.helper.stat()
    assert place_files(find_paths()).helper.stat().st_ino == first.st_ino

    placed.helper.write_bytes(b"an older helper")
    place_files(find_paths())

    assert placed.helper.stat().st_size == first.st_size
    assert placed.shell("bash").resolve() == placed.helper
    assert [entry.name for entry in placed.folder.rglob(".new-*")] == []


def test_a_helper_that_cannot_run_is_said_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper()
    fake = home / HELPER_NAME
    fake.write_text("no program")

    def find(name: str) -> Path:
        return fake if name == HELPER_NAME else find_resource(name)

    monkeypatch.setattr("flightrec.agent_session.find_resource", find)

    with pytest.raises(FlightrecError, match="cannot be used"):
        place_files(find_paths())


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["claude", "-p", "x"], "claude"),
        (["/opt/bin/codex"], "codex"),
        (["npx", "-y", "codex", "exec"], "codex"),
        (["node", "--max-old-space-size=1", "/opt/pi.js"], "pi.js"),
        (["python3", "-m", "aider"], "aider"),
        (["python3", "-c", "print()"], "python3"),
        (["uv", "run", "mini"], "mini"),
        (["node"], "node"),
    ],
)
def test_an_agent_has_the_name_that_people_call_it(words: list[str], name: str) -> None:
    assert _agent_name(words) == name


# --- the summary -----------------------------------------------------------------------------


def test_the_summary_is_one_plain_line() -> None:
    assert describe(Summary(0, 0, 0, 0)) == "0 runs, 0 failures, 0 recoveries, 0 new rules"
    assert describe(Summary(1, 1, 1, 1)) == "1 run, 1 failure, 1 recovery, 1 new rule"
    assert describe(Summary(2, 0, 0, 0, 1)).endswith(
        ", 0 new rules; 1 correction to approve: flightrec rules"
    )


def test_what_a_command_has_told_is_kept_though_the_daemon_is_killed_at_once(home: Path) -> None:
    """A stand-in does not wait for the disk; the writer goes on without the daemon's front."""
    with open_stage(home) as stage:
        for number in range(2):
            daemon = DaemonProcess(home)
            assert daemon.line.startswith("ready"), daemon.line + daemon.log()
            writer = daemon.wait_for_writer()
            stage.run(["bash", "-c", f"git statsu; exit {number}"])
            daemon.status()  # all that came before has been read
            daemon.end(signal.SIGKILL)
            wait_until(lambda writer=writer: not is_alive(writer))
    told = stored_commands(find_paths(str(home)).database)

    assert [text for text in told if text != "git statsu"] == [
        f"git statsu; exit {number}" for number in range(2)
    ]
    assert told.count("git statsu") == 2
