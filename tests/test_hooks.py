"""Hooks of agents: a real helper and a real daemon between a client's JSON and the database."""

import itertools
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_stage import Stage, open_stage
from daemon_process import DaemonProcess, lasting_daemon, wait_until
from flightrec.agent_events import DIALECTS
from flightrec.agent_marks import session_id
from flightrec.hook_replies import MANNERS
from flightrec.missed import read_helper_counters
from flightrec.paths import find_paths
from flightrec.wire import CommandStarting, Source, TailSource
from helper_builds import helper, sanitized_helper
from hook_samples import SAMPLES, fire
from hooked_agent import Hooked, missed, stored

CALL = "call_Zq7f0aB3xK9s"
OUTPUT = "fatal: not a git repository (or any of the parent directories): .git"


@pytest.fixture(scope="module")
def lasting() -> Iterator[DaemonProcess]:
    """One daemon for all tests that look at nothing but their own session."""
    with lasting_daemon() as running:
        yield running


@pytest.fixture
def own_daemon(home: Path) -> Iterator[DaemonProcess]:
    with DaemonProcess(home) as running:
        running.wait_for_writer()
        yield running


def which(program: str, stage: Stage) -> str:
    """Return the program that an agent finds on the stage's PATH."""
    return str(shutil.which(program, path=stage.recorded["PATH"]))


# --- the hook alone ------------------------------------------------------------------------------


def test_every_agent_has_a_reader_and_an_answer() -> None:
    assert set(SAMPLES) == set(DIALECTS) == set(MANNERS)


@pytest.mark.parametrize("agent", SAMPLES)
def test_a_command_that_only_a_hook_saw_is_one_run(agent: str, lasting: DaemonProcess) -> None:
    hooked = Hooked(lasting, agent)
    hooked.before("git statsu")
    if hooked.sample.failed is not None:
        hooked.failed("git statsu", OUTPUT, 129)
    hooked.before("git status", use="use-2")
    hooked.passed("git status", "On branch main", use="use-2")

    *failures, success = hooked.runs()
    assert [run.command for run in failures] == ["git statsu"] * (hooked.sample.failed is not None)
    for run in (*failures, success):
        assert (run.source, run.session, run.agent) == (Source.HOOK, hooked.session, agent)
        assert run.cwd == "/tmp"
        assert run.tool_use_id is None or hooked.sample.has_id
    for run in failures:
        assert run.exit == (129 if hooked.sample.knows else None)
        assert (run.failure_kind is not None) is hooked.sample.knows
        assert run.tail == (OUTPUT if hooked.sample.knows else "")
    assert success.command == "git status"
    assert success.exit == (0 if hooked.sample.knows else None)


@pytest.mark.parametrize("agent", ["claude", "gemini"])
def test_a_session_of_its_own_has_the_id_that_its_shells_find_too(
    agent: str, lasting: DaemonProcess
) -> None:
    hooked = Hooked(lasting, agent, in_run=False)
    own = session_id(agent, hooked.client_session)
    hooked.passed("make", "done")
    (run,) = hooked.runs(own)
    assert run.session == own


def test_below_a_recorded_command_another_agent_has_a_session_of_its_own(
    lasting: DaemonProcess,
) -> None:
    hooked = Hooked(lasting, "claude", FLIGHTREC_INSIDE="1")
    own = session_id("claude", hooked.client_session)
    hooked.passed("make", "done")
    (run,) = hooked.runs(own)
    assert run.session == own


def test_claude_s_benign_statuses_and_refusals_and_time_limits_are_told_apart(
    lasting: DaemonProcess,
) -> None:
    hooked = Hooked(lasting, "claude")
    no_match = hooked.sample.passed("grep x y", "use-1", "")
    no_match["tool_response"]["returnCodeInterpretation"] = "No matches found"
    hooked.hook(no_match)
    refused = hooked.sample.failed and hooked.sample.failed("rm -rf x", "use-2", "", 1)
    hooked.hook(
        {**(refused or {}), "error": "The user doesn't want to proceed with this tool use."}
    )
    slow = hooked.sample.failed and hooked.sample.failed("sleep 9", "use-3", "", 143)
    hooked.hook({**(slow or {}), "error": "Exit code 143\nCommand timed out after 1s"})
    stopped = hooked.sample.failed and hooked.sample.failed("sleep 8", "use-4", "", 130)
    hooked.hook({**(stopped or {}), "is_interrupt": True})

    runs = {run.command: run for run in hooked.runs()}
    assert {command: run.exit for command, run in runs.items()} == {
        "grep x y": 1,
        "sleep 9": 143,
        "sleep 8": None,
    }
    assert all(run.failure_kind is None for run in runs.values() if run.command != "sleep 9")


# --- the hook and the shell ----------------------------------------------------------------------

Step = str
ORDERS = [
    order
    for order in itertools.permutations(("before", "start", "finish", "after"))
    if order.index("start") < order.index("finish") and order.index("before") < order.index("after")
]


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_a_hook_and_a_shell_tell_of_one_run_in_whatever_order(
    agent: str, order: tuple[Step, ...], lasting: DaemonProcess
) -> None:
    """The hook of its end is called twice, as where two settings files have it."""
    hooked = Hooked(lasting, agent)
    begun: list[CommandStarting] = []
    steps = {
        "before": lambda: hooked.before("git statsu"),
        "start": lambda: begun.append(hooked.start("git statsu")),
        "finish": lambda: hooked.finish(begun[0], 129),
        "after": lambda: [hooked.failed("git statsu", OUTPUT, 129) for _ in range(2)],
    }
    for step in order:
        steps[step]()
        hooked.fence()

    (run,) = hooked.runs()
    if order.index("after") < order.index("start") and run.source is Source.HOOK:
        return  # on a busy machine the hook's word was not waited with for so long
    assert (run.run, run.source, run.exit) == (begun[0].run, Source.SH, 129)
    if order[:2] != ("start", "finish"):  # else it was told before any hook was heard of
        assert (run.tail, run.tail_source) == (OUTPUT, TailSource.MERGED)
        assert run.failure_kind is not None
        assert run.tool_use_id == ("use-1" if hooked.sample.has_id else None)


@pytest.mark.parametrize("lacks", ["before", "after"])
def test_one_hook_that_never_comes_makes_no_second_run(lacks: str, lasting: DaemonProcess) -> None:
    hooked = Hooked(lasting, "claude")
    if lacks != "before":
        hooked.before("make")
    begun = hooked.start("make")
    hooked.finish(begun, 2, tail=b"make: no rule", tail_total=13, tail_source=TailSource.STDERR)
    hooked.fence()
    if lacks != "after":
        hooked.failed("make", "the hook's words", 2)
    (run,) = hooked.runs()
    assert (run.run, run.exit, run.tail) == (begun.run, 2, "make: no rule")


def test_a_failure_of_which_no_hook_tells_is_stored_all_the_same(lasting: DaemonProcess) -> None:
    hooked = Hooked(lasting, "droid")
    hooked.before("make")
    hooked.finish(hooked.start("make"), 2)
    wait_until(lambda: stored(lasting, hooked.session))
    (run,) = hooked.runs()
    assert (run.exit, run.tail, run.agent) == (2, "", "droid")


def test_a_killed_shell_that_tells_no_end_has_the_client_s(lasting: DaemonProcess) -> None:
    hooked = Hooked(lasting, "claude")
    hooked.before("sleep 100")
    begun = hooked.start("sleep 100", source=Source.ENV)
    hooked.fence()
    failure = SAMPLES["claude"].failed
    assert failure is not None
    error = "Exit code 143\nCommand timed out after 1s"
    hooked.hook({**failure("sleep 100", "use-1", "", 143), "error": error})
    wait_until(lambda: stored(lasting, hooked.session))
    hooked.finish(begun, None)
    hooked.fence()
    (run,) = hooked.runs()
    assert (run.run, run.exit) == (begun.run, 143)


def test_real_shells_behind_every_door_and_real_hooks_tell_of_one_run_each(home: Path) -> None:
    doors = (
        ("bash", "-c"),
        ("/bin/bash", "-c"),
        ("/bin/bash", "-lc"),
        ("/bin/zsh", "-c"),
        ("/bin/sh", "-c"),
    )
    with DaemonProcess(home) as daemon, open_stage(home) as stage:
        daemon.wait_for_writer()
        hooked = Hooked(daemon, "copilot", session=stage.session.id, **stage.recorded)
        for number, (shell, option) in enumerate(doors):
            command = f"git stat{number} && echo never"
            hooked.before(command)
            seen = stage.run([which(shell, stage), option, command])
            assert seen.status == 1
            hooked.failed(command, seen.errors.decode())
        runs = [run for run in hooked.runs() if run.parent is None]
    assert [run.command for run in runs] == [f"git stat{n} && echo never" for n in range(5)]
    assert [run.exit for run in runs] == [1] * 5
    assert all(f"'stat{n}' is not a git command" in run.tail for n, run in enumerate(runs))
    assert runs[-1].source is Source.HOOK  # dash reads no script of ours: its tools are parts


def test_a_command_in_the_background_has_the_end_that_its_shell_tells(
    lasting: DaemonProcess,
) -> None:
    hooked = Hooked(lasting, "claude")
    payload = hooked.sample.passed("make watch", "use-1", "")
    payload["tool_response"]["backgroundTaskId"] = "b1"
    hooked.before("make watch")
    hooked.hook(payload)
    begun = hooked.start("make watch")
    hooked.finish(begun, 2)
    hooked.fence()
    (run,) = hooked.runs()
    assert (run.run, run.exit) == (begun.run, 2)


def test_a_command_that_was_refused_and_sent_again_is_one_run(lasting: DaemonProcess) -> None:
    hooked = Hooked(lasting, "claude")
    hooked.before("make deploy", use="refused")
    hooked.before("make deploy", use="granted")
    hooked.finish(hooked.start("make deploy"))
    hooked.fence()
    hooked.passed("make deploy", "done", use="granted")
    (run,) = hooked.runs()
    assert run.tool_use_id == "granted"


def test_two_equal_commands_at_once_are_two_runs(lasting: DaemonProcess) -> None:
    hooked = Hooked(lasting, "claude")
    for use in ("one", "two"):
        hooked.before("make", use=use)
    begun = [hooked.start("make") for _ in range(2)]
    hooked.fence()
    hooked.failed("make", "make: *** 1", 2, use="two")
    for run in begun:
        hooked.finish(run, 2)
    hooked.fence()
    hooked.failed("make", "make: *** 2", 2, use="one")
    runs = hooked.runs()
    assert {run.run for run in runs} == {run.run for run in begun}
    assert {run.tool_use_id for run in runs} == {"one", "two"}


def test_codex_names_the_call_in_its_shell_whatever_became_of_the_text(
    lasting: DaemonProcess,
) -> None:
    hooked = Hooked(lasting, "codex", in_run=False)
    hooked.before("make  build", use=CALL)
    begun = hooked.start("cd sub && make build", tool_use_id=CALL.encode())
    hooked.finish(begun, 2)
    hooked.fence()
    hooked.failed("make  build", "make: ***", 2, use=CALL)
    (run,) = hooked.runs()
    assert (run.session, run.command) == (hooked.session, "cd sub && make build")
    assert run.tail == "make: ***"


def test_shells_that_do_not_know_the_client_s_session_name_it_for_all_that_follows(
    lasting: DaemonProcess,
) -> None:
    """Gemini's shells have no mark of its session: the first command in common tells."""
    hooked = Hooked(lasting, "gemini", in_run=False)
    hooked.before("make")
    hooked.finish(hooked.start("make", cwd=b"/tmp"), 2)
    hooked.fence()
    hooked.failed("make", "make: ***", 2)
    hooked.before("git status")
    hooked.passed("git status", "clean")
    runs = hooked.runs()
    assert [(run.command, run.session) for run in runs] == [
        ("make", hooked.session),
        ("git status", hooked.session),
    ]
    assert [run.source for run in runs] == [Source.SH, Source.HOOK]


def test_tools_of_a_line_whose_shell_nobody_saw_are_parts_of_it(lasting: DaemonProcess) -> None:
    """Copilot takes BASH_ENV away: only the tools' stand-ins are left beside its hooks."""
    hooked = Hooked(lasting, "copilot")
    line = "cd sub && pytest -q missing.py | tail -3"
    error = b"ERROR: file or directory not found: missing.py"
    hooked.before(line)
    begun = hooked.start("pytest -q missing.py", source=Source.SHIM)
    hooked.finish(begun, 4, tail=error, tail_total=len(error), tail_source=TailSource.MERGED)
    hooked.fence()
    hooked.passed(line, error.decode())

    runs = hooked.runs()
    whole = next(run for run in runs if run.command == line)
    part = next(run for run in runs if run.command != line)
    assert (part.parent, part.exit, part.source) == (whole.run, 4, Source.SHIM)
    assert (whole.source, whole.exit) == (Source.HOOK, 0)
    assert whole.failure_kind is not None


def test_a_tool_that_is_the_whole_command_is_the_run(lasting: DaemonProcess) -> None:
    hooked = Hooked(lasting, "copilot")
    hooked.before("git statsu")
    hooked.finish(hooked.start("git statsu", source=Source.SHIM), 1)
    hooked.fence()
    hooked.failed("git statsu", OUTPUT)
    (run,) = hooked.runs()
    assert (run.source, run.exit, run.tail) == (Source.SHIM, 1, OUTPUT)


# --- what is not to be recorded ------------------------------------------------------------------


def test_what_is_private_leaves_no_trace_by_a_hook_either(lasting: DaemonProcess) -> None:
    hooked = Hooked(lasting, "claude")
    hooked.before(" make secret")
    hooked.passed(" make secret")
    hooked.passed("flightrec forget --all", use="use-2")
    lasting.ask("pause")
    hooked.before("make paused", use="use-3")
    hooked.passed("make paused", use="use-3")
    lasting.ask("resume")
    hooked.passed("make public", use="use-4")
    assert [run.command for run in hooked.runs()] == ["make public"]


def test_secrets_in_commands_outputs_and_prompts_reach_no_file(
    own_daemon: DaemonProcess, home: Path
) -> None:
    secret = "ghp_" + "Zq7" * 12
    hooked = Hooked(own_daemon, "claude")
    hooked.failed(f"git push https://x:{secret}@host.invalid/r", f"denied: {secret}", 128)
    hooked.hook(
        {
            "session_id": "s",
            "cwd": "/tmp",
            "hook_event_name": "UserPromptSubmit",
            "prompt": f"my favourite colour is mauve; use `git push https://x:{secret}@h.invalid/r`",
        }
    )
    (run,) = hooked.runs()
    assert "‹secret:" in run.command
    kept = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert kept
    assert not any(secret.encode() in data or b"mauve" in data for data in kept)


# --- odd clients and odd daemons -----------------------------------------------------------------


def test_payloads_of_any_size_are_taken_or_counted(own_daemon: DaemonProcess) -> None:
    hooked = Hooked(own_daemon, "claude")
    bare = hooked.named(hooked.sample.passed("cat big", "use-1", ""))
    room = 1024 * 1024 - len(json.dumps(bare))
    hooked.passed("cat big", "x" * room)
    for size in (room + 1, 5 * 1024 * 1024):
        hooked.passed("cat huge", "x" * size, use="use-2")
    assert missed(own_daemon) == {"events of an agent of more than 1 MiB": 2}
    assert [run.command for run in hooked.runs()] == ["cat big"]


def test_half_a_character_is_stored_as_a_mark(lasting: DaemonProcess) -> None:
    hooked = Hooked(lasting, "claude")
    hooked.before("echo \ud83d \0")
    hooked.failed("echo \ud83d \0", "make: \udcff\ud83d", 2)
    failed = SAMPLES["claude"].passed("git log", "use-2", "")
    hooked.hook({**failed, "cwd": "/tmp/\ud83d\0"})
    first, second = hooked.runs()
    assert (first.command, first.exit, first.tail) == ("echo ? \0", 2, "make: ??")
    assert (second.command, second.cwd) == ("git log", "/")


def test_the_sanitizers_find_nothing_in_a_hook(own_daemon: DaemonProcess, home: Path) -> None:
    for size in (0, 1, 65_536, 1024 * 1024 - 1, 1024 * 1024, 1024 * 1024 + 1, 5_000_000):
        for place in (home, Path("/nonexistent")):
            environment = {"HOME": str(place), "PATH": "/usr/bin:" * 5000}
            fire("claude", b"x" * size, environment, program=sanitized_helper())
    assert sum(missed(own_daemon).values()) == 7


ODD = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'"PreToolUse"',
    b"{}",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"hook_event_name": 1}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "Bash"}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": "{"}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": 3}}',
)
NOT_OURS = (
    b'{"hook_event_name": "Stop"}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {}}',
)


def test_what_is_no_event_is_answered_with_nothing_and_counted(
    own_daemon: DaemonProcess, home: Path
) -> None:
    for payload in (*ODD, *NOT_OURS):
        done = fire("claude", payload, {"HOME": str(home)})
        assert done.stdout == b"", payload
    assert fire("no-such-agent", b"{}", {"HOME": str(home)}).stdout == b""
    assert missed(own_daemon) == {"events of an agent that could not be read": len(ODD) + 1}
    assert stored(own_daemon) == []


def test_without_a_daemon_a_hook_is_silent(home: Path) -> None:
    done = fire("claude", SAMPLES["claude"].before("make", "use-1"), {"HOME": str(home)})
    assert done.stdout == b""
    for environment in ({}, {"HOME": "relative"}, {"HOME": str(home), "FLIGHTREC_OFF": "1"}):
        assert fire("claude", b"{}", environment).stdout == b""


def test_a_hook_that_finds_no_daemon_starts_one_for_the_next_event(home: Path) -> None:
    starter, started = home / "flightrec", home / "started"
    starter.write_text(f'#!/bin/sh\necho "$@" >"{started}.new" && mv "{started}.new" "{started}"\n')
    starter.chmod(0o700)
    find_paths().run.mkdir(parents=True, mode=0o700)
    payload = json.dumps(SAMPLES["claude"].before("make", "use-1")).encode()
    for _ in range(2):
        done = subprocess.run(
            [helper(), "hook", "claude", starter],
            input=payload,
            env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    wait_until(started.exists)
    assert started.read_text() == "daemon start\n"
    assert read_helper_counters(find_paths().counters)["autostarts"] == 1


def test_in_a_sandbox_that_forbids_sockets_a_hook_is_silent(
    own_daemon: DaemonProcess, home: Path
) -> None:
    sandbox = Path(__file__).parent / "agents/no_sockets.py"
    done = subprocess.run(
        [sys.executable, sandbox, helper(), "hook", "claude"],
        input=b"{}",
        env={"HOME": str(home)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert missed(own_daemon) == {}


def test_a_daemon_that_hangs_costs_one_wait_and_then_none_for_a_while(home: Path) -> None:
    payload = SAMPLES["claude"].before("make", "use-1")
    patience = {"HOME": str(home), "FLIGHTREC_PATIENCE_MS": "300"}
    with DaemonProcess(home) as daemon:
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            assert fire("claude", payload, patience).stdout == b""
            assert time.monotonic() - began >= 0.3
            assert daemon.paths.hook_breaker.exists()
            assert fire("claude", payload, patience).stdout == b""
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        counters = read_helper_counters(daemon.paths.counters)
        assert counters["missed replies"] == 1


def test_a_client_that_never_ends_its_message_is_not_waited_for(
    own_daemon: DaemonProcess, home: Path
) -> None:
    with subprocess.Popen(
        [helper(), "hook", "claude"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"HOME": str(home), "FLIGHTREC_PATIENCE_MS": "5000"},
    ) as process:
        assert process.stdin is not None
        payload = SAMPLES["claude"].passed("make", "use-1", "")
        process.stdin.write(json.dumps(payload).encode())
        process.stdin.flush()
        assert process.wait(60) == 0
    wait_until(lambda: [run.command for run in stored(own_daemon)] == ["make"])
