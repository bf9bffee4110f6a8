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
"""

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from flightrec.agent_ends import End, Payload, object_of, read_end, text_of


class Moment(enum.Enum):
    """What has happened."""

    BEFORE = "before"
    AFTER = "after"
    PROMPT = "prompt"
    SESSION_START = "session_start"
    SESSION_END = "session_end"


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """One event of a client.

    ``session`` is the client's own name for it, ``tool_use_id`` empty where it has none.
    ``tool_input`` is the whole input of the shell tool, of which ``command`` is a part, ``prompt``
    what the person typed: raw, and to be kept nowhere. ``permission_mode`` is how the client asks
    the person, ``transcript`` the file in which it keeps the session, each empty where it does not
    say.
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
    transcript: str = ""


class OddPayloadError(Exception):
    """What a hook sent is no JSON object, or lacks what its event must have."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one client writes its events.

    ``events`` names them, ``tools`` are its shell tools (empty: nothing else comes), ``session``,
    ``tool``, ``input``, ``use_id`` and ``transcript`` are keys (an empty ``input``: the event
    itself is it), ``read_name`` finds which event it is.
    """

    events: Mapping[str, Moment]
    tools: frozenset[str] = frozenset()
    session: str = "session_id"
    tool: str = "tool_name"
    input: str = "tool_input"
    use_id: str = "tool_use_id"
    transcript: str = ""
    read_name: Callable[[Payload], str] = lambda payload: text_of(payload, "hook_event_name")


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
    session, cwd = text_of(found, dialect.session), text_of(found, "cwd")
    if moment in (Moment.BEFORE, Moment.AFTER):
        return _read_command(agent, found, AgentEvent(moment, name, session, cwd))
    return AgentEvent(
        moment,
        name,
        session,
        cwd,
        prompt=text_of(found, "prompt"),
        transcript=text_of(found, dialect.transcript),
    )


def _decode(payload: bytes) -> Payload:
    try:
        return msgspec.json.decode(payload, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _decode_broken(payload)


def _decode_broken(payload: bytes) -> Payload:
    """Read what is JSON but for half a surrogate pair: clients cut texts in the middle of one."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise OddPayloadError(type(error).__name__) from None
    if not isinstance(found, dict):
        raise OddPayloadError("not an object")
    return found


def _read_command(agent: str, payload: Payload, event: AgentEvent) -> AgentEvent | None:
    dialect = DIALECTS[agent]
    if dialect.tools and text_of(payload, dialect.tool) not in dialect.tools:
        return None
    tool_input = object_of(payload.get(dialect.input)) if dialect.input else payload
    command = text_of(tool_input, "command")
    if not command.strip():
        raise OddPayloadError("a command without text")
    return AgentEvent(
        event.moment,
        event.name,
        event.session,
        _folder(event.cwd, tool_input),
        tool_use_id=text_of(payload, dialect.use_id),
        command=command,
        tool_input=tool_input,
        end=read_end(agent, payload) if event.moment is Moment.AFTER else None,
        permission_mode=text_of(payload, "permission_mode"),
    )


def _folder(cwd: str, tool_input: Payload) -> str:
    """Return where the command runs: some tools take a folder, below that of the session."""
    folder = text_of(tool_input, "dir_path") or text_of(tool_input, "directory")
    if not folder or folder.startswith("/"):
        return folder or cwd
    return f"{cwd.rstrip('/')}/{folder}"


# --- the table -----------------------------------------------------------------------------------


def _copilot_name(payload: Payload) -> str:
    """Say which event it is: the payload has only its fields to tell."""
    for key, name in (("toolResult", "postToolUse"), ("toolName", "preToolUse")):
        if key in payload:
            return name
    if "prompt" in payload:
        return "userPromptSubmitted"
    return "sessionEnd" if "reason" in payload else "sessionStart" if "source" in payload else ""


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


_GEMINI_TOOLS = frozenset(("run_shell_command",))

_PLUGIN = Dialect(
    _PLUGIN_EVENTS,
    session="session",
    input="",
    use_id="id",
    read_name=lambda payload: text_of(payload, "event"),
)

DIALECTS: dict[str, Dialect] = {
    "claude": Dialect(_CLAUDE_EVENTS, frozenset(("Bash",)), transcript="transcript_path"),
    "codex": Dialect(_CLAUDE_EVENTS, frozenset(("Bash",))),
    "gemini": Dialect(_GEMINI_EVENTS, _GEMINI_TOOLS),
    "qwen": Dialect(_CLAUDE_EVENTS, _GEMINI_TOOLS),
    "copilot": Dialect(
        _COPILOT_EVENTS,
        frozenset(("bash",)),
        session="sessionId",
        tool="toolName",
        input="toolArgs",
        use_id="",
        read_name=_copilot_name,
    ),
    "droid": Dialect(_CLAUDE_EVENTS, frozenset(("Execute",))),
    "cursor": Dialect(_CURSOR_EVENTS, session="conversation_id", input="", use_id=""),
    "opencode": _PLUGIN,
    "pi": _PLUGIN,
}
"""Agents by the name that the helper is started with: ``flightrec-helper hook NAME``."""
