"""Which agent runs a shell, and in which session: by what agents put into its environment.

Only shells that an agent's settings send to us need this; ``flightrec run`` knows. The helper does
the same in ``shim/marks.c``.
"""

from dataclasses import dataclass

ID_SIZE = 16

_OFFSET = 0x6C62272E07BB014262B821756295C58D
_PRIME = (1 << 88) + 0x13B


@dataclass(frozen=True, slots=True)
class Mark:
    """A variable in the shells of an agent's model, and the one that names the session, if any."""

    agent: str
    variable: str
    session: str = ""


CLIENT_SESSION = "FLIGHTREC_CLIENT_SESSION"
"""Set by our plugin where the agent itself does not say which session it is."""

MARKS = (
    Mark("claude", "CLAUDECODE", "CLAUDE_CODE_SESSION_ID"),
    Mark("codex", "CODEX_THREAD_ID", "CODEX_THREAD_ID"),
    Mark("opencode", "OPENCODE", CLIENT_SESSION),
    Mark("pi", "PI_CODING_AGENT", CLIENT_SESSION),
    Mark("copilot", "COPILOT_CLI"),
    Mark("gemini", "GEMINI_CLI"),
    Mark("qwen", "QWEN_CODE"),
)


def session_id(agent: str, session: str) -> bytes:
    """Return our 16 bytes for a session that an agent calls ``session``: FNV-1a, 128 bit.

    Hooks and shells of one session meet in it.
    """
    value = _OFFSET
    for byte in f"{agent}\0{session}".encode("utf-8", "surrogateescape"):
        value = ((value ^ byte) * _PRIME) % (1 << 128)
    return value.to_bytes(ID_SIZE)
