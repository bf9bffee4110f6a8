"""What a coding agent's hooks tell: the JSON of its client → one typed event, by a table of agents.

A plugin of ours (opencode, pi) hands the helper an object of our own design for each event::

    {"event": "before", "session": "ses_1", "id": "call_1", "cwd": "/src", "command": "make"}
    {"event": "after", (the same), "output": "…", "exit": 2, "duration_ms": 1200,
     "interrupted": false, "background": false}
    {"event": "prompt", "session": "ses_1", "cwd": "/src", "prompt": "…"}
    {"event": "session_start", "session": "ses_1", "cwd": "/src"}
    {"event": "session_end", "session": "ses_1", "cwd": "/src"}

``exit`` is null or absent where the plugin does not know it; for pi, whose output says it, the
output alone will do. Whatever else is absent is empty or false. It reads nothing, or one object::

    {"context": "text for the model"}
    {"decision": "deny" or "ask", "reason": "…"}
    {"decision": "rewrite", "command": "…", "reason": "…"}

An exit is told only where the client says it. None is neither success nor failure.
"""

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

Payload = Mapping[str, Any]


class Moment(enum.Enum):
    """What has happened."""

    BEFORE = "before"
    AFTER = "after"
    PROMPT = "prompt"
    SESSION_START = "session_start"
    SESSION_END = "session_end"


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


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """One event of a client.

    ``session`` is the client's own name for it, ``tool_use_id`` empty where it has none.
    ``tool_input`` is the whole input of the shell tool, of which ``command`` is a part, ``prompt``
    what the person typed: raw, and to be kept nowhere. ``permission_mode`` is how the client asks
    the person, empty where it does not say.
    """

    moment: Moment
    name: str
    session: str
    cwd: str
    tool_use_id: str = ""
    command: str = ""
    tool_input: Payload | None = None
    end: End | None = None
    prompt: str = ""
    permission_mode: str = ""


class OddPayloadError(Exception):
    """What a hook sent is no JSON object, or lacks what its event must have."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one client writes its events.

    ``events`` names them, ``tools`` are its shell tools (empty: nothing else comes), ``session``,
    ``tool``, ``input`` and ``use_id`` are keys (an empty ``input``: the event itself is it),
    ``read_name`` finds which event it is, ``read_end`` what came of a command.
    """

    events: Mapping[str, Moment]
    read_end: Callable[[Payload], End]
    tools: frozenset[str] = frozenset()
    session: str = "session_id"
    tool: str = "tool_name"
    input: str = "tool_input"
    use_id: str = "tool_use_id"
    read_name: Callable[[Payload], str] = lambda payload: _text(payload, "hook_event_name")


def read_event(agent: str, payload: bytes) -> AgentEvent | None:
    """Return the event, or None where it is none of ours (another tool, another hook).

    Raises OddPayloadError.
    """
    dialect = DIALECTS.get(agent)
    found = _decode(payload)
    if dialect is None:
        raise OddPayloadError(f"no hook of ours is for {agent!r}")
    name = dialect.read_name(found)
    if not name:
        raise OddPayloadError("an event without a name")
    moment = dialect.events.get(name)
    if moment is None:
        return None
    session, cwd = _text(found, dialect.session), _text(found, "cwd")
    if moment in (Moment.BEFORE, Moment.AFTER):
        return _read_command(found, dialect, AgentEvent(moment, name, session, cwd))
    return AgentEvent(moment, name, session, cwd, prompt=_text(found, "prompt"))


def _decode(payload: bytes) -> Payload:
    try:
        return msgspec.json.decode(payload, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise OddPayloadError(str(error)) from None


def _read_command(payload: Payload, dialect: Dialect, event: AgentEvent) -> AgentEvent | None:
    if dialect.tools and _text(payload, dialect.tool) not in dialect.tools:
        return None
    tool_input = _object(payload.get(dialect.input)) if dialect.input else payload
    command = _text(tool_input, "command")
    if not command.strip():
        raise OddPayloadError("a command without text")
    return AgentEvent(
        event.moment,
        event.name,
        event.session,
        _folder(event.cwd, tool_input),
        tool_use_id=_text(payload, dialect.use_id),
        command=command,
        tool_input=tool_input,
        end=dialect.read_end(payload) if event.moment is Moment.AFTER else None,
        permission_mode=_text(payload, "permission_mode"),
    )


def _folder(cwd: str, tool_input: Payload) -> str:
    """Return where the command runs: some tools take a folder, below that of the session."""
    folder = _text(tool_input, "dir_path") or _text(tool_input, "directory")
    if not folder or folder.startswith("/"):
        return folder or cwd
    return f"{cwd.rstrip('/')}/{folder}"


def _text(payload: Payload, key: str) -> str:
    value = payload.get(key) if key else None
    return value if isinstance(value, str) else ""


def _object(value: object) -> Payload:
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
        return _claude_failure(_text(payload, "error"), payload, usec)
    response = payload.get("tool_response")
    if not isinstance(response, dict):
        return End(None, response if isinstance(response, str) else "", usec=usec)
    output = "\n".join(filter(None, (_text(response, "stdout"), _text(response, "stderr"))))
    if response.get("backgroundTaskId"):
        return End(None, output, background=True)
    if response.get("interrupted"):
        return End(None, output, usec=usec)
    meaning = _text(response, "returnCodeInterpretation")
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
    output = _text(response, "output") if isinstance(response, dict) else response
    return End(None, output if isinstance(output, str) else "")


# --- Gemini CLI and Qwen Code --------------------------------------------------------------------

_GEMINI_REPORT = re.compile(
    r"(?:(?:\A|\n)(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*)+\s*\Z"
)
"""The lines behind the output; each is there only where it has something to say."""

_GEMINI_EXIT = re.compile(r"^Exit Code: (\d{1,3})\s*$", re.MULTILINE)
_GEMINI_OUTPUT = re.compile(r"(?:\A|\n)(?:Output|Stdout): ")
_GEMINI_CANCELLED = re.compile(r"\ACommand was (?:automatically )?cancelled")
_GEMINI_BACKGROUND = re.compile(r"\A(?:Command moved to background|Background command started)")


def _gemini_end(payload: Payload) -> End:
    response = payload.get("tool_response")
    text = _text(response, "llmContent") if isinstance(response, dict) else ""
    return _gemini_text(text, otherwise=0 if text else None)


def _qwen_end(payload: Payload) -> End:
    if "error" in payload:
        return _gemini_text(_text(payload, "error"), otherwise=None)
    return _gemini_end(payload)


def _gemini_text(text: str, otherwise: int | None) -> End:
    """Read the text that the model gets; ``otherwise`` is the exit where it names none."""
    report = _GEMINI_REPORT.search(text)
    output = text[: report.start()] if report else text
    begin = _GEMINI_OUTPUT.search(output)
    output = output[begin.end() :] if begin else output
    if _GEMINI_BACKGROUND.match(text):
        return End(None, background=True)
    if _GEMINI_CANCELLED.match(text):
        return End(None, output, timed_out="automatically" in text[:40])
    found = _GEMINI_EXIT.search(report[0]) if report else None
    return End(int(found[1]) if found else otherwise, output)


# --- Copilot CLI ---------------------------------------------------------------------------------

_COPILOT_EXIT = re.compile(r"\n?<shellId: [^\s>]{1,64} completed with exit code (\d{1,3})>\s*\Z")
_COPILOT_RUNS = re.compile(r"<command with shellId: [^>]{1,200} is still running")


def _copilot_name(payload: Payload) -> str:
    """Say which event it is: the payload has only its fields to tell."""
    for key, name in (("toolResult", "postToolUse"), ("toolName", "preToolUse")):
        if key in payload:
            return name
    if "prompt" in payload:
        return "userPromptSubmitted"
    return "sessionEnd" if "reason" in payload else "sessionStart" if "source" in payload else ""


def _copilot_end(payload: Payload) -> End:
    result = _object(payload.get("toolResult"))
    text = _text(result, "textResultForLlm")
    found = _COPILOT_EXIT.search(text)
    if found:
        return End(int(found[1]), text[: found.start()])
    if _COPILOT_RUNS.search(text):
        return End(None, background=True)
    return End(None, text, ran=_text(result, "resultType") == "success")


# --- droid, Cursor, and plugins of ours ----------------------------------------------------------


def _droid_end(payload: Payload) -> End:
    """Read an end that droid tells of successes only."""
    response = payload.get("tool_response")
    if isinstance(response, dict):
        response = "\n".join(value for value in response.values() if isinstance(value, str))
    return End(0, response if isinstance(response, str) else "")


def _cursor_end(payload: Payload) -> End:
    return End(None, _text(payload, "output"), usec=_microseconds(payload, "duration"))


def _plugin_end(payload: Payload) -> End:
    status = payload.get("exit")
    known = isinstance(status, int) and not isinstance(status, bool) and 0 <= status <= 255
    return End(
        status if known and not payload.get("interrupted") else None,
        _text(payload, "output"),
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

_CLAUDE_EVENTS = {
    "PreToolUse": Moment.BEFORE,
    "PostToolUse": Moment.AFTER,
    "PostToolUseFailure": Moment.AFTER,
    "UserPromptSubmit": Moment.PROMPT,
    "SessionStart": Moment.SESSION_START,
    "SessionEnd": Moment.SESSION_END,
}
_GEMINI_EVENTS = {
    "BeforeTool": Moment.BEFORE,
    "AfterTool": Moment.AFTER,
    "BeforeAgent": Moment.PROMPT,
    "SessionStart": Moment.SESSION_START,
    "SessionEnd": Moment.SESSION_END,
}
_COPILOT_EVENTS = {
    "preToolUse": Moment.BEFORE,
    "postToolUse": Moment.AFTER,
    "userPromptSubmitted": Moment.PROMPT,
    "sessionStart": Moment.SESSION_START,
    "sessionEnd": Moment.SESSION_END,
}
_CURSOR_EVENTS = {
    "beforeShellExecution": Moment.BEFORE,
    "afterShellExecution": Moment.AFTER,
    "beforeSubmitPrompt": Moment.PROMPT,
    "sessionStart": Moment.SESSION_START,
    "sessionEnd": Moment.SESSION_END,
}
_PLUGIN_EVENTS = {moment.value: moment for moment in Moment}


def _plugin(read_end: Callable[[Payload], End]) -> Dialect:
    return Dialect(
        _PLUGIN_EVENTS,
        read_end,
        session="session",
        input="",
        use_id="id",
        read_name=lambda payload: _text(payload, "event"),
    )


_GEMINI_TOOLS = frozenset(("run_shell_command",))

DIALECTS: dict[str, Dialect] = {
    "claude": Dialect(_CLAUDE_EVENTS, _claude_end, frozenset(("Bash",))),
    "codex": Dialect(_CLAUDE_EVENTS, _codex_end, frozenset(("Bash",))),
    "gemini": Dialect(_GEMINI_EVENTS, _gemini_end, _GEMINI_TOOLS),
    "qwen": Dialect(_CLAUDE_EVENTS, _qwen_end, _GEMINI_TOOLS),
    "copilot": Dialect(
        _COPILOT_EVENTS,
        _copilot_end,
        frozenset(("bash",)),
        session="sessionId",
        tool="toolName",
        input="toolArgs",
        use_id="",
        read_name=_copilot_name,
    ),
    "droid": Dialect(_CLAUDE_EVENTS, _droid_end, frozenset(("Execute",))),
    "cursor": Dialect(_CURSOR_EVENTS, _cursor_end, session="conversation_id", input="", use_id=""),
    "opencode": _plugin(_plugin_end),
    "pi": _plugin(_pi_end),
}
"""Agents by the name that the helper is started with: ``flightrec-helper hook NAME``."""
