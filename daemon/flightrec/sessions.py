"""What the daemon remembers of each session, in memory only: its variables and its allowance."""

from collections import OrderedDict
from dataclasses import dataclass

from flightrec.wire import CommandStarting

MAX_SESSIONS = 1024
"""The least recently used one is forgotten beyond that; its shell sends its variables again."""

RATE = 200.0
BURST = 1000.0
"""Commands per second that one session may send for long, and at once."""


@dataclass(slots=True)
class Session:
    """The latest variables of one session's shell; None where it never sent them.

    ``agent`` is the one that its shell runs below, empty for a person, None where nobody looked.
    """

    allowance: float
    seen_s: float
    path: bytes | None = None
    virtual_env: bytes | None = None
    conda_prefix: bytes | None = None
    agent: bytes | None = None


class Sessions:
    """Sessions by id, least recently used first."""

    def __init__(self, size: int = MAX_SESSIONS) -> None:
        self._size = size
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._sessions)

    def note(self, starting: CommandStarting, now_s: float) -> Session:
        """Return the session of this message, with the variables that the message changed."""
        session = self._sessions.get(starting.session)
        if session is None:
            session = self._sessions[starting.session] = Session(BURST, now_s)
            if len(self._sessions) > self._size:
                self._sessions.popitem(last=False)
        else:
            self._sessions.move_to_end(starting.session)
        if starting.path is not None:
            session.path = starting.path
        if starting.virtual_env is not None:
            session.virtual_env = starting.virtual_env
        if starting.conda_prefix is not None:
            session.conda_prefix = starting.conda_prefix
        return session

    def get(self, session: bytes) -> Session | None:
        """Return what is known of a session."""
        return self._sessions.get(session)

    def forget(self, session: bytes) -> None:
        """Drop what is known of a session that has ended."""
        self._sessions.pop(session, None)


def admit(session: Session, now_s: float) -> bool:
    """Whether the session may send one more command now; ``now_s`` is monotonic."""
    refill = max(0.0, now_s - session.seen_s) * RATE
    session.allowance = min(BURST, session.allowance + refill)
    session.seen_s = now_s
    if session.allowance < 1.0:
        return False
    session.allowance -= 1.0
    return True
