"""How a command ended, as the hook of each agent's client tells it: a reader for each client.

An exit is told only where the client says it. None is neither success nor failure.
"""

import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

Payload = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class End:
    """How a command ended, as far as the client says.

    ``ran`` is false where it was refused. ``background`` tells that it still runs, ``timed_out``
    that the client ended it. ``usec`` is microseconds.
    """

    exit: int | None = None
    output: str = ""
    ran: bool = True
    background: bool = False
    timed_out: bool = False
    usec: int | None = None


def text_of(payload: Payload, key: str) -> str:
    """Return the text under a key, empty where there is none."""
    value = payload.get(key) if key else None
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Payload:
    """Return an object; some clients send it as text that holds it."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _microseconds(payload: Payload, key: str) -> int | None:
    value = payload.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value * 1000) if 0 <= value < 10**10 else None


# --- Claude Code ---------------------------------------------------------------------------------

_CLAUDE_EXIT = re.compile(r"\A(?:Error: )?Exit code (\d{1,3})(?:\n|\Z)")
_CLAUDE_TIMEOUT = re.compile(r"^Command timed out after ", re.MULTILINE)

_BENIGN = frozenset(
    (
        "No matches found",
        "Files differ",
        "Condition is false",
        "Some directories were inaccessible",
    )
)
"""Why Claude Code takes an exit status of 1 for a success."""


def _claude_end(payload: Payload) -> End:
    usec = _microseconds(payload, "duration_ms")
    if "error" in payload:
        return _claude_failure(text_of(payload, "error"), payload, usec)
    response = payload.get("tool_response")
    if not isinstance(response, dict):
        return End(None, response if isinstance(response, str) else "", usec=usec)
    output = "\n".join(filter(None, (text_of(response, "stdout"), text_of(response, "stderr"))))
    if response.get("backgroundTaskId"):
        return End(None, output, background=True)
    if response.get("interrupted"):
        return End(None, output, usec=usec)
    meaning = text_of(response, "returnCodeInterpretation")
    benign = 1 if meaning in _BENIGN else None
    return End(benign if meaning else 0, output, usec=usec)


def _claude_failure(error: str, payload: Payload, usec: int | None) -> End:
    """Read a failure's text; without a status in its first line the command never ran."""
    found = _CLAUDE_EXIT.match(error)
    output = error[found.end() :] if found else error
    if payload.get("is_interrupt"):
        return End(None, output, usec=usec)
    if found is None:
        return End(None, "", ran=False)
    timed_out = _CLAUDE_TIMEOUT.search(output[:400]) is not None
    return End(int(found[1]), output, timed_out=timed_out, usec=usec)


# --- Codex ---------------------------------------------------------------------------------------


def _codex_end(payload: Payload) -> End:
    """Read an end that looks the same for success and failure."""
    response = payload.get("tool_response")
    output = text_of(response, "output") if isinstance(response, dict) else response
    return End(None, output if isinstance(output, str) else "")


# --- Gemini CLI and Qwen Code --------------------------------------------------------------------

_GEMINI_REPORT = re.compile(
    r"(?:(?:\A|\n)(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*)+\s*\Z"
)
"""The lines behind the output; each is there only where it has something to say."""

_QWEN_REPORT = re.compile(
    r"\nError: [^\n]*\nExit Code: [^\n]*\nSignal: [^\n]*\nProcess Group PGID: [^\n]*(?=\n\n|\s*\Z)"
)
"""All lines always; behind a blank one, the client has advice for its model now and then."""

_GEMINI_WRAPPING = re.compile(
    r"\A<untrusted_context>\n(.*)\n</untrusted_context>"
    r"(?:\s*\[System\] Tool input parameters \([^)\n]*\) were modified by a hook[^\n]*)?\s*\Z",
    re.DOTALL,
)
"""What the client warns its model with; behind it, that another one's hook changed the command."""

_GEMINI_REFUSED = re.compile(
    r"\A(?:Command injection detected: |Command was cancelled by user before it could start\b)"
)
"""What it says where it has not run the command."""

_GEMINI_EMPTY = "(empty)"
_GEMINI_EXIT = re.compile(r"^Exit Code: (\d{1,3})\s*$", re.MULTILINE)
_GEMINI_SIGNAL = re.compile(r"^Signal: (?:(\d{1,2})|(SIG[A-Z0-9]{2,8}))\s*$", re.MULTILINE)
_GEMINI_ERROR = re.compile(r"^Error: (?!\(none\)\s*$)", re.MULTILINE)
_GEMINI_OUTPUT = re.compile(r"(?:\A|\n)(?:Output|Stdout): ")
_GEMINI_STOPPED = re.compile(
    r"\ACommand (?:was (automatically )?cancelled|(timed out) after"
    r"|finished before the background-promote request)[^\n]*\n?"
)
_GEMINI_BACKGROUND = re.compile(
    r"\A(?:Command (?:moved to|is running in) background|Background (?:command|shell) started"
    r"|Foreground command \".*\" promoted to background as )",
    re.DOTALL,
)
_QWEN_CUT = re.compile(
    r"\ATool output was too large .*\n\.\.\. \[CONTENT TRUNCATED\] \.\.\.\n---\n+", re.DOTALL
)
"""Where it saved the whole, the beginning, and a mark: the end follows."""


def _gemini_end(payload: Payload) -> End:
    response = payload.get("tool_response")
    text = text_of(response, "llmContent") if isinstance(response, dict) else ""
    wrapped = _GEMINI_WRAPPING.match(text)
    return _gemini_text(wrapped[1] if wrapped else text, otherwise=0)


def _qwen_end(payload: Payload) -> End:
    usec = _microseconds(payload, "duration_ms")
    if "error" in payload:
        return replace(_qwen_text(text_of(payload, "error"), otherwise=None), usec=usec)
    response = payload.get("tool_response")
    text = text_of(response, "llmContent") if isinstance(response, dict) else ""
    return replace(_qwen_text(text, otherwise=0), usec=usec)


def _qwen_text(text: str, otherwise: int | None) -> End:
    reports = [*_QWEN_REPORT.finditer(text)]
    return _gemini_text(text[: reports[-1].end()] if reports else text, otherwise)


def _gemini_text(text: str, otherwise: int | None) -> End:
    """Read the text that the model gets; ``otherwise`` is the exit where it names none."""
    if _GEMINI_REFUSED.match(text):
        return End(ran=False)
    if _GEMINI_BACKGROUND.match(text):
        return End(None, background=True)
    stopped = _GEMINI_STOPPED.match(text)
    if stopped:
        return End(None, text[stopped.end() :], timed_out=bool(stopped[1] or stopped[2]))
    report = _GEMINI_REPORT.search(text)
    output = text[: report.start()] if report else text
    begin = _QWEN_CUT.match(output) or _GEMINI_OUTPUT.search(output)
    output = output[begin.end() :] if begin else output
    output = "" if output == _GEMINI_EMPTY else output
    return End(_gemini_status(report[0] if report else "", otherwise if begin else None), output)


def _gemini_status(report: str, otherwise: int | None) -> int | None:
    """Return the exit; what a signal has ended has the one that a shell would tell of it."""
    found = _GEMINI_EXIT.search(report)
    if found:
        return int(found[1])
    killed = _GEMINI_SIGNAL.search(report)
    if killed:
        return _KILLED + int(killed[1]) if killed[1] else _status_of_signal(killed[2])
    return None if _GEMINI_ERROR.search(report) else otherwise


_KILLED = 128


def _status_of_signal(name: str) -> int | None:
    return _KILLED + signal.Signals[name] if name in signal.Signals.__members__ else None


# --- Copilot CLI ---------------------------------------------------------------------------------

_COPILOT_EXIT = re.compile(r"\n?<shellId: [^\s>]{1,64} completed with exit code (\d{1,3})>\s*\Z")
_COPILOT_RUNS = re.compile(
    r"<command (?:with shellId: [^>]{1,200} is still running"
    r"|started in (?:[a-z]+ )?background with shellId: )"
)
_COPILOT_CUT = re.compile(
    r"\AOutput too large to read at once [^\n]*\n.*?\nPreview \(first \d+ chars\):\n", re.DOTALL
)
"""What stands above the beginning of a long output; its end is in a file."""


def _copilot_end(payload: Payload) -> End:
    result = object_of(payload.get("toolResult"))
    text = text_of(result, "textResultForLlm")
    found = _COPILOT_EXIT.search(text)
    if found:
        return End(int(found[1]), _COPILOT_CUT.sub("", text[: found.start()]))
    if _COPILOT_RUNS.search(text):
        return End(None, background=True)
    return End(None, text, ran=text_of(result, "resultType") == "success")


# --- droid, Cursor, and plugins of ours ----------------------------------------------------------


_DROID_EXIT = re.compile(r"\n*\[Process exited with code (\d{1,3})\]\s*\Z")
_DROID_SAVED = re.compile(r"\n\nFull command output saved to: [^\n]*\s*\Z")
_DROID_TIMEOUT = re.compile(
    r"\ACommand timed out after [^\n]* seconds\.[^\n]*(?:\n\nPartial output before timeout:\n)?"
)


def _droid_end(payload: Payload) -> End:
    """Read an end that droid tells of what did not fail: also of what is over its time limit."""
    response = payload.get("tool_response")
    if isinstance(response, dict):
        response = "\n".join(value for value in response.values() if isinstance(value, str))
    text = response if isinstance(response, str) else ""
    found = _DROID_EXIT.search(text)
    output = _DROID_SAVED.sub("", text[: found.start()] if found else text)
    if found:
        return End(int(found[1]), output)
    if text.startswith("Background process started"):
        return End(None, background=True)
    stopped = _DROID_TIMEOUT.match(output)
    return End(None, output[stopped.end() if stopped else 0 :], timed_out=stopped is not None)


def _cursor_end(payload: Payload) -> End:
    return End(None, text_of(payload, "output"), usec=_microseconds(payload, "duration"))


def _plugin_end(payload: Payload) -> End:
    status = payload.get("exit")
    known = isinstance(status, int) and not isinstance(status, bool) and 0 <= status <= 255
    return End(
        status if known and not payload.get("interrupted") else None,
        text_of(payload, "output"),
        background=bool(payload.get("background")),
        usec=_microseconds(payload, "duration_ms"),
    )


_PI_EXIT = re.compile(r"(?:\A|\n\n?)Command exited with code (\d{1,3})\s*\Z")
_PI_STOPPED = re.compile(r"(?:\A|\n\n?)Command (?:aborted|timed out after [^\n]*)\s*\Z")


def _pi_end(payload: Payload) -> End:
    """Read the text that pi gives its model; it names a status where that is not 0."""
    end = _plugin_end(payload)
    stopped = _PI_STOPPED.search(end.output)
    if stopped:
        return End(None, end.output[: stopped.start()], timed_out="timed" in stopped[0])
    found = _PI_EXIT.search(end.output)
    if found:
        return End(int(found[1]), end.output[: found.start()], usec=end.usec)
    knows = "exit" in payload or payload.get("interrupted") or payload.get("background")
    return end if knows else End(0, end.output, usec=end.usec)


# --- the table -----------------------------------------------------------------------------------

READERS: dict[str, Callable[[Payload], End]] = {
    "claude": _claude_end,
    "codex": _codex_end,
    "gemini": _gemini_end,
    "qwen": _qwen_end,
    "copilot": _copilot_end,
    "droid": _droid_end,
    "cursor": _cursor_end,
    "opencode": _plugin_end,
    "pi": _pi_end,
}

SILENT_OF_FAILURES = frozenset(("droid",))
"""Agents whose clients call no hook of ours for a command that has failed."""

SILENCE = frozenset(
    (
        "(no output)",
        "(empty)",
        "(Bash completed with no output)",
        "Command completed successfully",
    )
)
"""What clients say to their models where a command wrote nothing."""


def read_end(agent: str, payload: Payload) -> End:
    """Return the end of the command that this event is about."""
    end = READERS[agent](payload)
    return replace(end, output="") if end.output.strip() in SILENCE else end
