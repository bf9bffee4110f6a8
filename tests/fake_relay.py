"""A helper played by Python: the real protocol on the real socket, for tests and benchmarks."""

import os
import select
import socket
import time
from pathlib import Path
from typing import Self, TypeVar

from flightrec.wire import (
    PROTOCOL,
    AnyMessage,
    CommandFinished,
    CommandStarting,
    Committed,
    FrameReader,
    Hello,
    Phase,
    Reply,
    Source,
    TailSource,
    encode,
)

LIMIT_S = 60.0

_M = TypeVar("_M")


def starting(command: bytes | str, session: bytes, **fields: object) -> CommandStarting:
    """A command about to run in ``session``; ``fields`` override what a plain shell says."""
    raw = command.encode("utf-8", "surrogateescape") if isinstance(command, str) else command
    usual: dict[str, object] = {
        "run": os.urandom(16),
        "session": session,
        "source": Source.RELAY,
        "shell": b"bash",
        "pid": 1,  # there is no agent above it, whoever runs the tests
        "tty": b"/dev/pts/7",
        "cwd": b"/tmp",
        "command": raw,
        "command_total": len(raw),
        "boot": b"boot",
        "mono_us": time.monotonic_ns() // 1000,
        "wall_us": time.time_ns() // 1000,
        "wants_reply": False,
    }
    return CommandStarting(**{**usual, **fields})  # type: ignore[arg-type]  # fields by name


def finished(begun: CommandStarting, status: int | None = 0, **fields: object) -> CommandFinished:
    """The end of a command."""
    usual: dict[str, object] = {
        "run": begun.run,
        "exit": status,
        "signal": None,
        "pipestatus": [] if status is None else [status],
        "usec": 1000,
        "cwd": begun.cwd,
        "mono_us": time.monotonic_ns() // 1000,
        "wall_us": time.time_ns() // 1000,
        "tail_source": TailSource.NONE,
    }
    return CommandFinished(**{**usual, **fields})  # type: ignore[arg-type]  # fields by name


class FakeRelay:
    """One connection to the daemon that plays a shell's helper."""

    def __init__(
        self, path: Path, role: bytes = b"relay", *, protocol: int = PROTOCOL, greet: bool = True
    ) -> None:
        self.session = os.urandom(16)
        self.committed: set[bytes] = set()
        self.inbox: list[AnyMessage] = []
        self.closed = False
        self._reader = FrameReader()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.socket.settimeout(LIMIT_S)
        self.socket.connect(str(path))
        if greet:
            self.send(Hello(protocol, b"0.1.0", role, os.getpid()))
            self.hello = self.wait_for(Hello)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, *messages: AnyMessage) -> None:
        self.socket.sendall(b"".join(encode(message) for message in messages))

    def receive(self, limit_s: float = LIMIT_S) -> bool:
        """Take in what comes next; return False where the daemon hung up."""
        self.socket.settimeout(limit_s)
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            self.closed = True
            return False
        for message in self._reader.feed(data):
            if isinstance(message, Committed):
                self.committed.update(message.runs)
            else:
                self.inbox.append(message)
        return True

    def read_what_is_there(self) -> None:
        """Take in what has come, as a helper does all the time."""
        while select.select([self.socket], [], [], 0)[0] and self.receive():
            pass

    def wait_for(self, kind: type[_M]) -> _M:
        """Return the next message of this kind."""
        while True:
            for message in self.inbox:
                if isinstance(message, kind):
                    self.inbox.remove(message)
                    return message
            if not self.receive():
                raise ConnectionResetError

    def wait_for_commit(self, *runs: bytes, limit_s: float = LIMIT_S) -> None:
        """Return once these runs are acknowledged."""
        deadline = time.monotonic() + limit_s
        while not self.committed.issuperset(runs):
            assert time.monotonic() < deadline
            if not self.receive():
                raise ConnectionResetError

    def wait_for_end(self) -> None:
        """Return once the daemon has hung up."""
        while self.receive():
            pass

    def type(self, command: bytes | str, status: int | None = 0, **fields: object) -> bytes:
        """Run a command as a shell would; return its id."""
        begun = starting(command, self.session, **fields)
        self.send(begun, finished(begun, status))
        return begun.run

    def ask(self, command: bytes | str, **fields: object) -> tuple[CommandStarting, Reply]:
        """Announce a command and return it with the daemon's reply."""
        begun = starting(command, self.session, wants_reply=True, **fields)
        self.send(begun)
        reply = self.wait_for(Reply)
        assert (reply.run, reply.phase) == (begun.run, Phase.START)
        return begun, reply
