"""One conversation with the daemon at the socket, each side sure of the other's uid and version."""

import os
import socket
import struct
import time
from typing import Any, Protocol, TypeVar

import msgspec

from flightrec import __version__
from flightrec.errors import FlightrecError, NoDaemonError
from flightrec.paths import Paths
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

HELLO_TIMEOUT_S = 2.0

NO_TEXT = "this folder's name is not UTF-8 text; go to another one"
"""A daemon that says no hello within this is not serving, whatever its lock says."""

ROLE = b"cli"

_CREDENTIALS = struct.Struct("3i")

_Answer = TypeVar("_Answer", Hello, Response)


class _Connected(Protocol):
    """A socket, or what asyncio shows of one."""

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        """Return an option's raw value."""


def peer_credentials(connected: _Connected) -> tuple[int, int]:
    """Return pid and uid of the process at the other end of a Unix socket."""
    raw = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return int(pid), int(uid)


class Connection:
    """A socket to a daemon of mine that has answered hello. ``pid`` and ``version`` are its own."""

    def __init__(self, paths: Paths) -> None:
        self._reader = FrameReader()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self._socket.settimeout(HELLO_TIMEOUT_S)
            self._socket.connect(str(paths.socket))
            self.pid = self._check_peer()
            hello = self._say_hello()
        except (OSError, WireError) as error:
            self._socket.close()
            raise NoDaemonError(
                f"no flightrec daemon answers at {paths.socket} ({_reason(error)});"
                " start it with: flightrec daemon start"
            ) from None
        except BaseException:
            self._socket.close()
            raise
        self.version = hello.version.decode("ascii", "replace")
        self.protocol = hello.protocol

    @property
    def is_older(self) -> bool:
        """Whether the daemon is of an earlier release than this program."""
        return (self.protocol, _release(self.version)) < (PROTOCOL, _release(__version__))

    def ask(self, verb: str, arguments: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Return the answer to one request. Raises FlightrecError, NoDaemonError."""
        try:
            asked = msgspec.json.encode(arguments)
        except UnicodeEncodeError:
            raise FlightrecError(NO_TEXT) from None
        try:
            self._socket.sendall(encode(Request(1, verb.encode(), asked)))
            response = self._receive(Response, timeout_s)
        except TimeoutError:
            raise FlightrecError(
                f"the daemon (pid {self.pid}) gave no answer within {timeout_s:.0f} s"
            ) from None
        except (OSError, WireError) as error:
            raise NoDaemonError(f"the daemon went away: {_reason(error)}") from None
        if response.error is not None:
            raise FlightrecError(response.error.decode("utf-8", "replace"))
        result: dict[str, Any] = msgspec.json.decode(response.result)
        return result

    def tell(self, message: AnyMessage) -> None:
        """Send what wants no answer. Raises NoDaemonError."""
        try:
            self._socket.sendall(encode(message))
        except OSError as error:
            raise NoDaemonError(f"the daemon went away: {_reason(error)}") from None

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _check_peer(self) -> int:
        """Return the daemon's pid; somebody else's daemon is no daemon."""
        pid, uid = peer_credentials(self._socket)
        if uid != os.geteuid():
            raise FlightrecError(f"the socket is served by uid {uid}, not by you: nothing was sent")
        return pid

    def _say_hello(self) -> Hello:
        self._socket.sendall(encode(Hello(PROTOCOL, __version__.encode(), ROLE, os.getpid())))
        return self._receive(Hello, HELLO_TIMEOUT_S)

    def _receive(self, kind: type[_Answer], timeout_s: float) -> _Answer:
        deadline = time.monotonic() + timeout_s
        while True:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionResetError("the connection was closed")
            for message in self._reader.feed(data):
                if isinstance(message, kind):
                    return message


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparison."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
