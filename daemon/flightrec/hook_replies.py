"""What an agent's hook is answered: our words → the JSON of its client, by a table of agents.

A row says which answers reach the client's model, as far as that was seen, and how they are
written. Nothing here gives a command more rights than its client would have given it: a rewritten
one runs unasked only where any command does.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import msgspec

from flightrec.agent_events import AgentEvent, Moment
from flightrec.guard import Gate
from flightrec.rules import Guard
from flightrec.wire import HOOK_REPLY_MAX

Answer = Mapping[str, object]

NOTHING = b""

_SHOW = frozenset((Moment.BEFORE, Moment.AFTER, Moment.SESSION_START))
_AFTERWARDS = frozenset((Moment.AFTER, Moment.SESSION_START))


@dataclass(frozen=True, slots=True)
class Manners:
    """How one client is answered.

    ``shows`` are the moments at which its model reads a context. ``able`` are the gates that it can
    follow, beside REWRITE, which also depends on the moment (``can_rewrite``).
    """

    context: Callable[[AgentEvent, str], Answer]
    gate: Callable[[AgentEvent, Gate], Answer]
    shows: frozenset[Moment]
    able: frozenset[Guard]
    can_rewrite: Callable[[AgentEvent], bool] = lambda _: False


def shows(agent: str, moment: Moment) -> bool:
    """Whether this client's model reads what is answered at this moment."""
    return moment in MANNERS[agent].shows


def able(agent: str, event: AgentEvent) -> AbstractSet[Guard]:
    """Return the gates that this client can follow now."""
    manners = MANNERS[agent]
    rewrite = {Guard.REWRITE} if manners.can_rewrite(event) else set()
    # Who is never asked may not be there at all: Claude Code then takes each question as a no.
    ask = {Guard.ASK} if _asks_nobody(event) else set()
    return (manners.able | rewrite) - ask


def reply_context(agent: str, event: AgentEvent, text: str) -> bytes:
    """Return the answer with a text for the model; nothing where it reaches no model."""
    if not text or not shows(agent, event.moment):
        return NOTHING
    return _encode(MANNERS[agent].context(event, text))


def reply_gate(agent: str, event: AgentEvent, gate: Gate) -> bytes:
    """Return the answer that asks, denies or rewrites; its mode is one that is ``able``."""
    return _encode(MANNERS[agent].gate(event, gate))


def _encode(answer: Answer) -> bytes:
    """Return the bytes; nothing where a client would be given half of them, or what is no text."""
    try:
        text = msgspec.json.encode(answer)
    except UnicodeEncodeError:  # half a pair, in the words of the client
        return NOTHING
    return text if len(text) <= HOOK_REPLY_MAX else NOTHING


def _input_with(event: AgentEvent, command: str | None) -> Answer:
    return {**(event.tool_input or {}), "command": command}


# --- Claude Code, and those with its format ------------------------------------------------------


def _specific(event: AgentEvent, **fields: object) -> Answer:
    return {"hookSpecificOutput": {"hookEventName": event.name, **fields}}


def _claude_context(event: AgentEvent, text: str) -> Answer:
    return _specific(event, additionalContext=text)


def _claude_gate(event: AgentEvent, gate: Gate) -> Answer:
    if gate.mode is Guard.REWRITE:
        return _specific(
            event,
            permissionDecision="allow",
            permissionDecisionReason=gate.reason,
            updatedInput=_input_with(event, gate.rewritten),
            additionalContext=gate.reason,
        )
    return _specific(
        event, permissionDecision=gate.mode.value, permissionDecisionReason=gate.reason
    )


def _asks_nobody(event: AgentEvent) -> bool:
    """Whether the client lets any command run: then to allow a rewritten one is no more."""
    return event.permission_mode == "bypassPermissions"


# --- others --------------------------------------------------------------------------------------


def _gemini_gate(_: AgentEvent, gate: Gate) -> Answer:
    return {"decision": "deny", "reason": gate.reason}


def _copilot_context(_: AgentEvent, text: str) -> Answer:
    return {"additionalContext": text}


def _copilot_gate(_: AgentEvent, gate: Gate) -> Answer:
    return {"permissionDecision": gate.mode.value, "permissionDecisionReason": gate.reason}


def _cursor_context(_: AgentEvent, text: str) -> Answer:
    return {"additional_context": text}


def _cursor_gate(_: AgentEvent, gate: Gate) -> Answer:
    """Return the answer in both of the spellings that versions differ in."""
    words = ("user_message", "agent_message", "userMessage", "agentMessage")
    return {"permission": gate.mode.value, **dict.fromkeys(words, gate.reason)}


def _plugin_context(_: AgentEvent, text: str) -> Answer:
    return {"context": text}


def _plugin_gate(_: AgentEvent, gate: Gate) -> Answer:
    rewritten = {} if gate.rewritten is None else {"command": gate.rewritten}
    return {"decision": gate.mode.value, "reason": gate.reason, **rewritten}


_DENY = frozenset((Guard.DENY,))
_ASK_TOO = frozenset((Guard.DENY, Guard.ASK))

MANNERS: dict[str, Manners] = {
    "claude": Manners(_claude_context, _claude_gate, _SHOW, _ASK_TOO, _asks_nobody),
    "codex": Manners(_claude_context, _claude_gate, _SHOW, _DENY, _asks_nobody),
    "gemini": Manners(_claude_context, _gemini_gate, _AFTERWARDS, _DENY),
    "qwen": Manners(_claude_context, _claude_gate, _AFTERWARDS, _DENY),
    "copilot": Manners(_copilot_context, _copilot_gate, _AFTERWARDS, _DENY),
    "droid": Manners(_claude_context, _claude_gate, _AFTERWARDS, _DENY),
    "cursor": Manners(_cursor_context, _cursor_gate, frozenset((Moment.SESSION_START,)), _ASK_TOO),
    # Our plugins act before their client asks for permission, or where it asks for none.
    "opencode": Manners(_plugin_context, _plugin_gate, _AFTERWARDS, _DENY, lambda _: True),
    "pi": Manners(_plugin_context, _plugin_gate, _AFTERWARDS, _DENY, lambda _: True),
}
"""One row for each agent of ``agent_events.DIALECTS``."""
