"""One client at the daemon's socket, and the bounds that keep it from harming the others."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Iterable, Iterator
from typing import Protocol

from flightrec import __version__
from flightrec.connection import peer_credentials
from flightrec.missed import Refused
from flightrec.wire import (
    PROTOCOL,
    AnyMessage,
    FrameReader,
    Hello,
    Request,
    Response,
    WireError,
    encode,
)

log = logging.getLogger(__name__)

HELLO_WITHIN_S = 1.0
IDLE_AFTER_S = 30.0
UNREAD_MAX = 64 * 1024
"""Bytes that wait for a client that does not read; more close its connection."""

LASTING_ROLES = frozenset((b"relay", b"pty", b"sh", b"shim"))
"""Helpers that live as long as a shell or command and may say nothing for days."""

SERVED = (PROTOCOL, PROTOCOL - 1)


def read_unread(transport: asyncio.BaseTransport) -> Iterator[bytes]:
    """Yield what a client has sent that was not read before its connection was lost.

    asyncio gives a socket up at its first failed write, such as an answer to somebody who is gone,
    with all that is still to be read from it.
    """
    descriptor = transport.get_extra_info("socket").fileno()
    with contextlib.suppress(OSError):  # nothing more, or a reset behind the last byte
        while data := os.read(descriptor, UNREAD_MAX):
            yield data


class Server(Protocol):
    """What a connection asks of the daemon."""

    def admit(self, connection: "ClientConnection") -> Refused | None:
        """Take the connection in, or say why not."""

    def dismiss(self, connection: "ClientConnection", reason: Refused | None) -> None:
        """Take note that the connection is closed."""

    def receive(self, message: AnyMessage, connection: "ClientConnection") -> None:
        """Do what a helper's message asks for."""

    def request(self, request: Request, connection: "ClientConnection") -> None:
        """Answer the command line, now or later."""


class ClientConnection(asyncio.Protocol):
    """Bytes of one client → messages, while it keeps to the rules; no ``role`` before hello."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reason: Refused | None = None
        self._heard_s = 0.0
        self._unanswered = 0
        self._admitted = False
        self.pid = 0
        self.uid = -1
        self.role: bytes | None = None
        self.is_served = False

    @property
    def is_lasting(self) -> bool:
        """Whether this is a helper that lives with its shell."""
        return self.role in LASTING_ROLES

    # --- what asyncio calls ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Look at who it is before a byte is read."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a socket has this one
        self._transport = transport
        self.pid, self.uid = peer_credentials(transport.get_extra_info("socket"))
        refusal = self._server.admit(self)
        if refusal is not None:
            self.close(refusal)
            return
        self._admitted = True
        transport.set_write_buffer_limits(high=UNREAD_MAX)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(HELLO_WITHIN_S, self._expect_hello)

    def data_received(self, data: bytes) -> None:
        """Take in what came, message by message."""
        self._heard_s = time.monotonic()
        try:
            self._take_all(self._reader.feed(data))
        except WireError as error:
            self._take_all(error.before)
            self.close(Refused.BAD_FRAME)

    def pause_writing(self) -> None:
        """Give up a client that does not read its answers."""
        self.close(Refused.SLOW_READER)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the daemon. A helper that has left may have said all before it went."""
        if exc is not None and self._reason is None and self._transport is not None:
            for data in read_unread(self._transport):
                self.data_received(data)
        if self._timer is not None:
            self._timer.cancel()
        if self._admitted:
            self._server.dismiss(self, self._reason)

    # --- messages ----------------------------------------------------------------------------

    def _take_all(self, messages: Iterable[AnyMessage]) -> None:
        for message in messages:
            if self._reason is not None:
                return
            self._take(message)

    def _take(self, message: AnyMessage) -> None:
        match message:
            case Hello():
                self._greet(message)
            case _ if self.role is None:
                self.close(Refused.BAD_FRAME)
            case Request():
                self._unanswered += 1
                self._server.request(message, self)
            case _ if self.is_served:
                self._server.receive(message, self)

    def _greet(self, hello: Hello) -> None:
        """Answer hello. A command line of any protocol may ask for things, and for the end."""
        self.role = hello.role
        self.is_served = hello.protocol in SERVED
        self.send(encode(Hello(PROTOCOL, __version__.encode(), b"daemon", os.getpid())))
        if not self.is_served and self.is_lasting:
            self.close(Refused.PROTOCOL)

    def answer(self, response: Response) -> None:
        """Send the answer to a request."""
        self._unanswered -= 1
        self.send(encode(response))

    def send(self, frame: bytes) -> None:
        """Send a frame, or nothing where the connection is closed."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)

    # --- the end -----------------------------------------------------------------------------

    def close(self, reason: Refused | None = None) -> None:
        """Close now, with a line in the log where the client is at fault."""
        if self._transport is None or self._reason is not None:
            return
        self._reason = reason
        if reason is None:
            self._transport.close()
            return
        log.warning("closed a connection of uid %d, pid %d: %s", self.uid, self.pid, reason)
        self._transport.abort()

    def _expect_hello(self) -> None:
        if self.role is None:
            self.close(Refused.SILENT)
        else:
            self._watch(IDLE_AFTER_S)

    def _watch(self, wait_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._expect_life)

    def _expect_life(self) -> None:
        """Close where half a message hangs, or where a client that should ask and go just stays."""
        left_s = self._heard_s + IDLE_AFTER_S - time.monotonic()
        may_be_silent = self._unanswered or (self.is_lasting and not self._reader.is_amid_frame)
        if left_s <= 0 and not may_be_silent:
            self.close(Refused.IDLE)
        else:
            self._watch(max(left_s, 1.0) if not may_be_silent else IDLE_AFTER_S)
