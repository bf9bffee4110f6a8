"""What the clients of agents send to their hooks: one row for each client, in its own format."""

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helper_builds import helper

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """How one client tells of a command before, after success, and after failure.

    ``failed`` is None where the client tells nothing then; ``knows`` tells whether its exit status
    of a failure can be read.
    """

    before: Callable[[str, str], Fields]
    passed: Callable[[str, str, str], Fields]
    failed: Callable[[str, str, str, int], Fields] | None
    knows: bool = True
    has_id: bool = True


def _claude(name: str, command: str, use: str, **more: object) -> Fields:
    return {
        "session_id": "0199b3a8-1111-7000-8000-000000000001",
        "transcript_path": "/nonexistent/t.jsonl",
        "cwd": "/tmp",
        "permission_mode": "default",
        "hook_event_name": name,
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "Runs it"},
        "tool_use_id": use,
        **more,
    }


def _claude_passed(command: str, use: str, output: str) -> Fields:
    response = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    return _claude("PostToolUse", command, use, tool_response=response, duration_ms=12)


def _claude_failed(command: str, use: str, output: str, status: int) -> Fields:
    error = f"Exit code {status}\n{output}"
    return _claude(
        "PostToolUseFailure", command, use, error=error, is_interrupt=False, duration_ms=12
    )


def _codex(name: str, command: str, use: str, **more: object) -> Fields:
    return {**_claude(name, command, use, **more), "turn_id": "t1", "model": "mock"}


def _gemini(name: str, command: str, **more: object) -> Fields:
    return {
        "session_id": "gemini-session",
        "cwd": "/tmp",
        "hook_event_name": name,
        "tool_name": "run_shell_command",
        "tool_input": {"command": command},
        **more,
    }


def _gemini_text(output: str, status: int) -> Fields:
    text = f"Output: {output}" + (f"\nExit Code: {status}" if status else "")
    return {"llmContent": f"{text}\nProcess Group PGID: 4711", "returnDisplay": output}


def _qwen(name: str, command: str, use: str, **more: object) -> Fields:
    return {**_gemini(name, command, **more), "tool_use_id": use}


def _copilot(command: str, **more: object) -> Fields:
    return {
        "sessionId": "copilot-session",
        "timestamp": 1_796_000_000_000,
        "cwd": "/tmp",
        "toolName": "bash",
        "toolArgs": {"command": command, "description": "Runs it"},
        **more,
    }


def _copilot_result(output: str, status: int) -> Fields:
    text = f"{output}\n<shellId: 7 completed with exit code {status}>"
    return {"resultType": "success", "textResultForLlm": text}


def _droid(name: str, command: str, **more: object) -> Fields:
    return {**_claude(name, command, "", **more), "tool_name": "Execute"}


def _cursor(name: str, command: str, **more: object) -> Fields:
    return {
        "conversation_id": "cursor-session",
        "generation_id": "g1",
        "hook_event_name": name,
        "workspace_roots": ["/tmp"],
        "command": command,
        "cwd": "/tmp",
        **more,
    }


def _plugin(event: str, command: str, use: str, **more: object) -> Fields:
    return {
        "event": event,
        "session": "ses_1",
        "id": use,
        "cwd": "/tmp",
        "command": command,
        **more,
    }


def _pi_text(output: str, status: int) -> str:
    return f"{output}\n\nCommand exited with code {status}" if status else output


SAMPLES: Mapping[str, Sample] = {
    "claude": Sample(
        lambda command, use: _claude("PreToolUse", command, use), _claude_passed, _claude_failed
    ),
    "codex": Sample(
        lambda command, use: _codex("PreToolUse", command, use),
        lambda command, use, output: _codex("PostToolUse", command, use, tool_response=output),
        lambda command, use, output, _: _codex("PostToolUse", command, use, tool_response=output),
        knows=False,
    ),
    "gemini": Sample(
        lambda command, _: _gemini("BeforeTool", command),
        lambda command, _, output: _gemini(
            "AfterTool", command, tool_response=_gemini_text(output, 0)
        ),
        lambda command, _, output, status: _gemini(
            "AfterTool", command, tool_response=_gemini_text(output, status)
        ),
        has_id=False,
    ),
    "qwen": Sample(
        lambda command, use: _qwen("PreToolUse", command, use),
        lambda command, use, output: _qwen(
            "PostToolUse", command, use, tool_response=_gemini_text(output, 0)
        ),
        lambda command, use, output, status: _qwen(
            "PostToolUseFailure", command, use, error=_gemini_text(output, status)["llmContent"]
        ),
    ),
    "copilot": Sample(
        lambda command, _: _copilot(command),
        lambda command, _, output: _copilot(command, toolResult=_copilot_result(output, 0)),
        lambda command, _, output, status: _copilot(
            command, toolResult=_copilot_result(output, status)
        ),
        has_id=False,
    ),
    "droid": Sample(
        lambda command, _: _droid("PreToolUse", command),
        lambda command, _, output: _droid(
            "PostToolUse", command, tool_response=f"{output}\n\n[Process exited with code 0]"
        ),
        None,
        has_id=False,
    ),
    "cursor": Sample(
        lambda command, _: _cursor("beforeShellExecution", command),
        lambda command, _, output: _cursor(
            "afterShellExecution", command, output=output, duration=12
        ),
        lambda command, _, output, __: _cursor(
            "afterShellExecution", command, output=output, duration=12
        ),
        knows=False,
        has_id=False,
    ),
    "opencode": Sample(
        lambda command, use: _plugin("before", command, use),
        lambda command, use, output: _plugin("after", command, use, output=output, exit=0),
        lambda command, use, output, status: _plugin(
            "after", command, use, output=output, exit=status
        ),
    ),
    "pi": Sample(
        lambda command, use: _plugin("before", command, use),
        lambda command, use, output: _plugin("after", command, use, output=output),
        lambda command, use, output, status: _plugin(
            "after", command, use, output=_pi_text(output, status)
        ),
    ),
}


def fire(
    agent: str,
    payload: Fields | bytes,
    environment: Mapping[str, str],
    program: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Call the helper as a client does; never may it fail or complain."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    done = subprocess.run(
        [program or helper(), "hook", agent, "/nonexistent/flightrec"],
        input=raw,
        env={"PATH": "/usr/bin:/bin", "FLIGHTREC_PATIENCE_MS": "5000", **environment},
        cwd="/",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done


def answer_to(agent: str, payload: Fields, home: Path, **variables: str) -> Fields:
    """Return what the client is told, {} for nothing."""
    done = fire(agent, payload, {"HOME": str(home), **variables})
    return dict(json.loads(done.stdout)) if done.stdout else {}
