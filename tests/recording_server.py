"""A daemon's socket without a daemon: speaks the wire, keeps what it hears, answers as told."""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from flightrec.client_connection import read_unread
from flightrec.paths import find_paths
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
    SessionEnded,
    Verdict,
    WireError,
    encode,
)


@dataclass
class Run:
    """What was heard of one command."""

    starting: CommandStarting
    finished: CommandFinished | None = None

    @property
    def command(self) -> str:
        return os.fsdecode(self.starting.command)

    @property
    def exit(self) -> int | None:
        assert self.finished is not None, f"{self.command!r} has not finished"
        return self.finished.exit

    @property
    def pair(self) -> tuple[str, int | None]:
        return self.command, self.exit


@dataclass
class Manners:
    """How the server behaves; may be changed at any time."""

    hints: dict[str, str] = field(default_factory=dict)
    """Part of a command → hint before it runs."""
    late_hints: dict[str, str] = field(default_factory=dict)
    """Part of a command → hint after it failed."""
    hold: bool = False
    """Whether a command with a hint is to be asked about."""
    private: tuple[str, ...] = ()
    replies: bool = True
    commits: bool = True
    protocol: int = PROTOCOL
    pid: int = 0
    """Told in the hello; 0 is a daemon that does not say."""
    garbage: bytes = b""
    """Sent instead of every answer."""


class RecordingServer:
    """Listens where the daemon of ``$HOME`` would, in a thread of its own."""

    def __init__(self, socket_path: Path | None = None) -> None:
        self.path = socket_path or find_paths().socket
        self.manners = Manners()
        self.messages: list[AnyMessage] = []
        self.by_id: dict[bytes, Run] = {}
        self.connections = 0
        self._open: set[asyncio.Transport] = set()
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None

    @property
    def runs(self) -> list[Run]:
        """Every run once, in the order of their beginning."""
        return list(self.by_id.values())

    @property
    def finished(self) -> list[tuple[str, int | None]]:
        """Command and exit status of each run that has ended."""
        return [run.pair for run in self.runs if run.finished is not None]

    def find_ended(self, part: str) -> Run | None:
        """Return the last run that has ended and whose line holds ``part``, None for none yet."""
        ended = (run for run in reversed(self.runs) if run.finished is not None)
        return next((run for run in ended if part in run.command), None)

    @property
    def commands(self) -> list[str]:
        return [run.command for run in self.runs]

    @property
    def ended_sessions(self) -> list[bytes]:
        return [m.session for m in self.messages if isinstance(m, SessionEnded)]

    def start(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.path.parent, self.path.parent.parent):
            folder.chmod(0o700)
        self.path.unlink(missing_ok=True)
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(10)

    def stop(self) -> None:
        """Hang up on everybody and take the socket away."""
        if self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._thread = None
        self.path.unlink(missing_ok=True)

    def hello(self) -> Hello:
        """Return what is said first."""
        return Hello(self.manners.protocol, b"test", b"daemon", self.manners.pid)

    def hear(self, message: AnyMessage, transport: asyncio.Transport) -> None:
        """Keep one message and answer it."""
        self.messages.append(message)
        if isinstance(message, CommandStarting):
            self.by_id.setdefault(message.run, Run(message))
            if message.wants_reply:
                self._reply(transport, message.run, Phase.START, self.manners.hints)
        elif isinstance(message, CommandFinished):
            run = self.by_id.get(message.run)
            if run is not None:
                run.finished = message
            if message.wants_reply:
                self._reply(transport, message.run, Phase.FINISH, self.manners.late_hints)
            if self.manners.commits:
                transport.write(encode(Committed([message.run])))

    def _reply(
        self, transport: asyncio.Transport, run: bytes, phase: Phase, hints: dict[str, str]
    ) -> None:
        command = self.by_id[run].command if run in self.by_id else ""
        if not self.manners.replies:
            return
        if self.manners.garbage:
            transport.write(self.manners.garbage)
            return
        verdict, text = Verdict.NONE, ""
        if any(part in command for part in self.manners.private):
            verdict = Verdict.PRIVATE
            self.by_id.pop(run)
        for part, hint in hints.items():
            if part in command:
                is_held = self.manners.hold and phase is Phase.START
                verdict, text = Verdict.HOLD if is_held else Verdict.HINT, hint
        transport.write(encode(Reply(run, phase, verdict, text.encode())))

    def _serve(self, ready: threading.Event) -> None:
        loop = self._loop = asyncio.new_event_loop()
        server = loop.run_until_complete(
            loop.create_unix_server(lambda: _Conversation(self), str(self.path))
        )
        ready.set()
        loop.run_forever()
        server.close()
        for transport in list(self._open):
            transport.abort()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


class _Conversation(asyncio.Protocol):
    def __init__(self, server: RecordingServer) -> None:
        self._server = server
        self._reader = FrameReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections += 1
        self._server._open.add(transport)  # noqa: SLF001 - one class in two halves

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            for data in read_unread(self._transport):
                self.data_received(data)
        self._server._open.discard(self._transport)  # noqa: SLF001 - one class in two halves

    def data_received(self, data: bytes) -> None:
        try:
            messages = self._reader.feed(data)
        except WireError as error:
            print(f"recording server: {error}", file=sys.stderr)
            self._transport.abort()
            return
        for message in messages:
            if isinstance(message, Hello):
                self._transport.write(encode(self._server.hello()))
            self._server.hear(message, self._transport)


@contextlib.contextmanager
def recording_server(socket_path: Path | None = None) -> Iterator[RecordingServer]:
    """A server that is up inside the block."""
    server = RecordingServer(socket_path)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def main() -> None:
    """Serve ``$HOME`` until standard input ends; print each finished run as a line of JSON."""
    with recording_server() as server:
        print("ready", flush=True)
        sys.stdin.read()
        for run in server.runs:
            print(msgspec.json.encode(run.pair).decode())


if __name__ == "__main__":
    main()
