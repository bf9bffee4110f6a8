"""How coding agents start a shell for their model's command: a table.

Measured with the real clients. ``flightrec doctor AGENT`` starts a shell in the same way: what it
sees of that, it will see of the agent.
"""

import enum
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


class Stream(enum.Enum):
    """What a client puts in the place of a standard stream."""

    NULL = "null"
    PIPE = "pipe"
    SOCKET = "socket"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class ShellStart:
    """How a shell is started: its words for a command and $SHELL, its streams, and the marks.

    ``marks`` are variables by which a shell knows the agent; ``{session}`` in them is the session's
    name. Without ``passes_bash_env`` the client takes BASH_ENV out of the environment.
    ``needs`` is what the person has to say for its shells to be seen: without that only programs
    on the PATH are.
    """

    words: Callable[[str, str], tuple[str, ...]]
    stdin: Stream
    output: Stream
    marks: Mapping[str, str] = field(default_factory=dict)
    passes_bash_env: bool = True
    needs: str = ""

    @property
    def is_seen(self) -> bool:
        """Whether its shells are seen by themselves."""
        return not self.needs


def _bash(command: str, _shell: str) -> tuple[str, ...]:
    return ("/bin/bash", "-c", command)


def _bash_on_path(command: str, _shell: str) -> tuple[str, ...]:
    return ("bash", "-c", command)


def _sh(command: str, _shell: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", command)


def _login_shell(command: str, shell: str) -> tuple[str, ...]:
    return (shell, "-c", command)


def _claude(command: str, shell: str) -> tuple[str, ...]:
    line = (
        "source /nonexistent/.claude/shell-snapshots/snapshot-bash-0-doctor.sh 2>/dev/null || true"
        f" && eval {shlex.quote(command)} < /dev/null && pwd -P >| /dev/null"
    )
    return (shell, "-c", line)


def _codex(command: str, shell: str) -> tuple[str, ...]:
    line = (
        '__CODEX_SNAPSHOT_OVERRIDE_SET_0="${BASH_ENV+x}"\n'
        f"exec {shlex.quote(shell)} -c {shlex.quote(command)}"
    )
    return (shell, "-c", line)


def _gemini(command: str, _shell: str) -> tuple[str, ...]:
    line = (
        "_bgpids_file=/dev/null\n(\n  trap 'jobs -p >/dev/null' EXIT\n"
        f"{command}\n)\n__code=$?\nexit $__code"
    )
    return ("bash", "-c", line)


_PRELOAD = "flightrec run --preload"

STARTS: dict[str, ShellStart] = {
    "claude": ShellStart(
        _claude,
        Stream.SOCKET,
        Stream.FILE,
        {
            "CLAUDECODE": "1",
            "CLAUDE_CODE_SESSION_ID": "{session}",
            "AI_AGENT": "claude-code_doctor_agent",
        },
    ),
    "codex": ShellStart(_codex, Stream.NULL, Stream.PIPE, {"CODEX_THREAD_ID": "{session}"}),
    "gemini": ShellStart(_gemini, Stream.NULL, Stream.SOCKET, {"GEMINI_CLI": "1"}),
    "qwen": ShellStart(_bash_on_path, Stream.NULL, Stream.SOCKET, {"QWEN_CODE": "1"}),
    "opencode": ShellStart(
        _login_shell,
        Stream.NULL,
        Stream.SOCKET,
        {"OPENCODE": "1", "FLIGHTREC_CLIENT_SESSION": "{session}"},
    ),
    "copilot": ShellStart(
        lambda command, _: ("/bin/bash", "--norc", "--noprofile", "-c", command),
        Stream.NULL,
        Stream.PIPE,
        {"COPILOT_CLI": "1"},
        passes_bash_env=False,
    ),
    "droid": ShellStart(_bash, Stream.NULL, Stream.FILE),
    "pi": ShellStart(
        _bash,
        Stream.NULL,
        Stream.SOCKET,
        {"PI_CODING_AGENT": "true", "FLIGHTREC_CLIENT_SESSION": "{session}"},
    ),
    "cline": ShellStart(_bash, Stream.SOCKET, Stream.SOCKET),
    "continue": ShellStart(
        lambda command, shell: (shell, "-l", "-c", command), Stream.SOCKET, Stream.SOCKET
    ),
    "mini-swe-agent": ShellStart(_sh, Stream.NULL, Stream.PIPE, needs=_PRELOAD),
    "aider": ShellStart(_sh, Stream.NULL, Stream.PIPE, needs=_PRELOAD),
}
"""Agents by their names here. How Cursor starts a shell is not known."""
