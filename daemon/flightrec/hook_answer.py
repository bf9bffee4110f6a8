"""The answer to one hook, given once.

Whoever waits for it gets one, whatever is wrong with the event, a rule or a command.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from flightrec.hook_replies import NOTHING
from flightrec.wire import HookFired, HookReply, encode

log = logging.getLogger(__name__)

Send = Callable[[bytes], None]
"""Sends a frame to the helper of one hook."""

_Found = TypeVar("_Found")


class HookAnswer:
    """Called with the bytes for the client; what is said after that is not sent.

    ``is_awaited`` is false where the helper is gone already.
    """

    def __init__(self, fired: HookFired, send: Send) -> None:
        self.agent = fired.agent.decode("ascii", "replace")
        self.is_awaited = fired.wants_reply
        self._id = fired.id
        self._send = send
        self._is_given = not fired.wants_reply

    def __call__(self, text: bytes) -> None:
        """Send the answer, if it is the first."""
        if not self._is_given:
            self._is_given = True
            self._send(encode(HookReply(self._id, text)))

    def by(self, work: Callable[[_Found], None]) -> Callable[[_Found], None]:
        """Return what answers with nothing where ``work`` cannot."""

        def guarded(found: _Found) -> None:
            try:
                work(found)
            except Exception:
                log.exception("could not answer a hook of %s", self.agent)
                self(NOTHING)

        return guarded
