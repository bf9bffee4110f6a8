"""What agents add to a command is taken away again; what people write stays as it is."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightrec.capture import asked_for
from flightrec.shell_words import quote
from flightrec.unwrap import OUTER_PREFIXES, SILENT_PREFIXES, unwrap
from flightrec.wire import CommandStarting, Source

SNAPSHOT = "/home/dev/.claude/shell-snapshots/snapshot-bash-1764500000000-ab12cd.sh"


def claude(command: str, *, pipeline: bool = False) -> str:
    stdin = "" if pipeline else " < /dev/null"
    return (
        f"source {SNAPSHOT} 2>/dev/null || true"
        " && \\builtin shopt -u extglob 2>/dev/null || true"
        f" && eval {quote(command)}{stdin} && pwd -P >| /tmp/claude-6f3e-cwd"
    )


def vibe(command: str) -> str:
    return f"{{ . /tmp/mistralai-vibe-login-shell-77.sh; }}\neval {quote(command)}"


def gemini(command: str) -> str:
    return (
        "shopt -u promptvars nullglob extglob; _bgpids_file=/tmp/shell_pgrep_9a.tmp\n(\n"
        f"  trap 'jobs -p >/tmp/shell_pgrep_9a.tmp' EXIT\n{command}\n)\n"
        "__code=$?\nexit $__code"
    )


def droid_in_background(command: str) -> str:
    quoted = command.replace("'", "'\\''")
    return f"exec nohup bash -c '{quoted}' > '/tmp/droid-bg-1796076237521.out' 2>&1"


COMMANDS = (
    "ls",
    "git statsu",
    "cd 'my dir' && pytest -q 2>&1 | tail -20",
    'echo "it\'s" $HOME `date` \\$x',
    "python3 - <<'X'\nprint('eval \"x\"')\nX",
    "eval 'echo hi'",
    "printf '%s\\n' 'a'\\''b'",
    "false; echo next || exit 5",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("wrapper", [claude, vibe, gemini, droid_in_background])
def test_the_model_s_command_is_found_in_an_agent_s_line(
    wrapper: Callable[[str], str], command: str
) -> None:
    assert unwrap(wrapper(command)) == command


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=200))
def test_any_command_comes_back_unchanged_from_an_eval(command: str) -> None:
    assert unwrap(claude(command, pipeline=True)) == command


SANDBOXES = (
    "/bin/bash -c '{ socat TCP",
    "/home/dev/.local/state/agents/shells/zsh -c '{ socat TCP",
)


@pytest.mark.parametrize("prefix", SILENT_PREFIXES + OUTER_PREFIXES + SANDBOXES)
def test_an_agent_s_own_work_is_no_command(prefix: str) -> None:
    assert unwrap(prefix + "x'; true") is None


def test_an_agent_that_asks_for_the_environment_is_no_command() -> None:
    assert unwrap("env") is None
    assert unwrap("env | grep PATH") == "env | grep PATH"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_plain_command_stays_as_it_is(command: str) -> None:
    assert unwrap(command) == command


def test_a_line_of_a_snapshot_without_eval_stays_as_it_is() -> None:
    line = f"cat {SNAPSHOT}"

    assert unwrap(line) == line


def test_a_line_that_was_cut_off_still_gives_what_is_there() -> None:
    line = claude("echo " + "x" * 50_000)[: 16 * 1024]

    assert unwrap(line) is not None


def starting(
    command: bytes, source: Source = Source.SH, total: int | None = None
) -> CommandStarting:
    return CommandStarting(  # noqa: S604 - a field of that name
        run=bytes(16),
        session=bytes(16),
        source=source,
        shell=b"bash",
        pid=1,
        tty=b"",
        cwd=b"/",
        command=command,
        command_total=len(command) if total is None else total,
        boot=b"",
        mono_us=0,
        wall_us=0,
    )


def test_the_daemon_records_what_the_model_asked_for() -> None:
    asked = asked_for(starting(claude("git statsu").encode()))

    assert asked is not None
    assert (asked.command, asked.truncated) == (b"git statsu", False)
    assert asked_for(starting(b"SNAPSHOT_FILE=x")) is None


def test_a_tool_that_an_agent_starts_for_itself_is_no_command() -> None:
    tool = starting(b"git ls-files", Source.SHIM)
    by_claude = msgspec.structs.replace(tool, agent=b"claude")

    assert asked_for(by_claude) is None
    assert asked_for(msgspec.structs.replace(by_claude, parent=bytes(16))) is not None
    assert asked_for(msgspec.structs.replace(tool, agent=b"mini")) is not None  # /bin/sh -c
    assert asked_for(tool) is tool


@pytest.mark.parametrize(
    ("agent", "line"),
    [
        ("aider", "git version"),
        ("aider", "git config --get user.email"),
        ("copilot", "git --version"),
        ("copilot", "git --no-optional-locks -C /repo -c core.fsmonitor=false remote -v"),
        ("gptme", "git -c core.fsmonitor= -c core.hooksPath=/dev/null status --short"),
        ("gptme", "git -C /repo rev-parse --abbrev-ref HEAD"),
    ],
)
def test_a_look_at_the_repository_by_an_agent_itself_is_no_command(agent: str, line: str) -> None:
    tool = msgspec.structs.replace(starting(line.encode(), Source.SHIM), agent=agent.encode())

    assert asked_for(tool) is None
    assert asked_for(msgspec.structs.replace(tool, agent=b"mini")) is not None
    assert asked_for(msgspec.structs.replace(tool, command=b"git --versions")) is not None


def test_what_a_person_types_is_never_unwrapped() -> None:
    typed = starting(claude("git statsu").encode(), Source.RELAY)

    assert asked_for(typed) is typed


def test_a_command_that_was_cut_stays_cut() -> None:
    line = claude("echo " + "x" * 50_000).encode()

    asked = asked_for(starting(line[: 16 * 1024], total=len(line)))

    assert asked is not None
    assert asked.truncated


def test_bytes_that_are_no_text_survive_unwrapping() -> None:
    asked = asked_for(starting(b"cat shell-snapshots/x && eval 'echo \xff'"))

    assert asked is not None
    assert asked.command == b"echo \xff"
