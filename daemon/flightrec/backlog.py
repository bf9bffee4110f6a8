"""Messages on their way to the disk: waiting, then with the writer, until they are committed.

Nothing here is lost when the writer dies: what it had and did not commit is handed out again. A
message that kills every writer is found by handing out fewer and fewer at a time, and given up
alone.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

MAX_MESSAGES = 50_000
MAX_BYTES = 32 * 1024 * 1024

WINDOW = 2_000
WINDOW_BYTES = 4 * 1024 * 1024
"""What the writer is given at a time, so that requests overtake the rest of the queue."""

STRIKES = 30
STRIKES_OF_A_CRASH = 10
STRIKES_OF_A_KILL = 1
"""A message is given up after three writers in a row have crashed with it alone.

One that was killed says little: it was somebody else, or the system for want of memory.
"""


@dataclass
class Backlog:
    """Frames by key, oldest first; ``max_messages`` and ``max_bytes`` bound those that wait."""

    max_messages: int = MAX_MESSAGES
    max_bytes: int = MAX_BYTES
    _waiting: OrderedDict[bytes, bytes] = field(default_factory=OrderedDict)
    _given: dict[bytes, bytes] = field(default_factory=dict)
    _waiting_bytes: int = 0
    _given_bytes: int = 0
    _window: int = WINDOW
    _strikes: int = 0

    def __len__(self) -> int:
        """Return how many messages are not committed."""
        return len(self._waiting) + len(self._given)

    def __contains__(self, key: bytes) -> bool:
        """Whether this message is on its way."""
        return key in self._given or key in self._waiting

    def add(self, key: bytes, frame: bytes) -> list[bytes]:
        """Queue a message; return the keys of the oldest ones that had to be dropped for it."""
        self._waiting[key] = frame
        self._waiting_bytes += len(frame)
        dropped = []
        while len(self._waiting) > self.max_messages or self._waiting_bytes > self.max_bytes:
            oldest, data = self._waiting.popitem(last=False)
            self._waiting_bytes -= len(data)
            dropped.append(oldest)
        return dropped

    def take(self) -> list[bytes]:
        """Return the frames that the writer is to be given now."""
        frames = []
        while self._waiting and self._has_room():
            key, frame = self._waiting.popitem(last=False)
            self._waiting_bytes -= len(frame)
            self._given[key] = frame
            self._given_bytes += len(frame)
            frames.append(frame)
        return frames

    def _has_room(self) -> bool:
        return len(self._given) < self._window and self._given_bytes < WINDOW_BYTES

    def settle(self, keys: Iterable[bytes]) -> None:
        """Forget messages that the writer is done with, and trust it with more."""
        for key in keys:
            self._given_bytes -= len(self._given.pop(key, b""))
        self._window = min(WINDOW, 2 * self._window)
        self._strikes = 0

    def take_back(self, strikes: int = STRIKES_OF_A_CRASH) -> bytes | None:
        """Queue again what a dead writer had; return the key of a message that is given up."""
        culprit = self._strike(strikes) if self._window == 1 else None
        if self._given:
            self._window = max(1, min(self._window, len(self._given)) // 4)
        self._waiting = OrderedDict((*self._given.items(), *self._waiting.items()))
        self._waiting_bytes += self._given_bytes
        self._given = {}
        self._given_bytes = 0
        return culprit

    def _strike(self, strikes: int) -> bytes | None:
        """Count a death with one message alone; on the last strike take the message out."""
        if not self._given:
            return None
        self._strikes += strikes
        if self._strikes < STRIKES:
            return None
        self._strikes = 0
        key, frame = self._given.popitem()
        self._given_bytes -= len(frame)
        return key
