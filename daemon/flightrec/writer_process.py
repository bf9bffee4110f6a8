"""The front's hold on its writer: started, fed, and started again when it dies."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

import msgspec

from flightrec import link
from flightrec.front import Front
from flightrec.hint_words import HintWords
from flightrec.lifecycle import daemon_environment
from flightrec.paths import Paths

log = logging.getLogger(__name__)

RESTART_AFTER_S = (0.0, 0.2, 1.0, 5.0)
"""Waits before each new writer; a commit makes them short again."""

DRAIN_LIMIT_S = 5.0
LAST_WAIT_S = 0.5
"""For a process whose end of the connection is closed already."""

Answered = Callable[[link.Answer], None]


class WriterProcess(asyncio.Protocol):
    """The present writer and the connection to it. ``trouble`` is why nothing can be stored."""

    def __init__(self, paths: Paths, front: Front) -> None:
        self.trouble: str | None = None
        self.notes: list[str] = []
        self._paths = paths
        self._front = front
        self._words = HintWords(paths.hint_words)
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.Transport | None = None
        self._reader = link.reader_of_writer()
        self._is_ready = False
        self._deaths = 0
        self._asked: dict[int, Answered] = {}
        self._last_question = 0
        self._pump_is_due = False
        self._stopping = False
        self._starting: asyncio.Task[None] | None = None
        self._gone = asyncio.Event()
        self._news = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The present writer's process id."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start a writer. Raises OSError where the system has no room for another process."""
        self._words.publish()
        connected = self._spawn()
        self._gone.clear()
        self._reader = link.reader_of_writer()
        await asyncio.get_running_loop().create_connection(lambda: self, sock=connected)

    def _spawn(self) -> socket.socket:
        """Start the process; return our end of the connection to it."""
        mine, its = socket.socketpair()
        words = [sys.executable, "-P", "-m", "flightrec.writer"]
        try:
            self._process = subprocess.Popen(
                [*words, str(its.fileno()), str(os.getpid())],
                pass_fds=(its.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=daemon_environment(os.environ),
            )
        except OSError:
            mine.close()
            raise
        finally:
            its.close()
        return mine

    # --- what asyncio calls ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be connected to a new writer, which says when it is ready."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a socket has this one
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take what the writer sends."""
        try:
            messages = self._reader.feed(data)
        except msgspec.DecodeError:
            log.exception("the writer sends nonsense")
            if self._transport is not None:
                self._transport.abort()
            return
        for message in messages:
            self._take(message)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        """Take back what was not committed, and start another writer."""
        status = self._reap(LAST_WAIT_S)
        self._transport = None
        self._is_ready = False
        self._front.writer_died(was_killed=status in (None, -signal.SIGKILL, -signal.SIGTERM))
        for answered in self._asked.values():
            answered(link.Answer(0, "the recorder was interrupted; try again"))
        self._asked.clear()
        self._gone.set()
        self._news.set()
        if not self._stopping:
            self._restart(status)

    # --- messages ----------------------------------------------------------------------------

    def _take(self, message: link.FromWriter) -> None:
        self._news.set()
        match message:
            case link.Stored():
                self._deaths = 0
                self._front.stored(message)
            case link.Rules():
                self._front.desk.take(message.rules)
                self._words.add(message.rules)
            case link.Guarded():
                self._front.desk.guard(message.projects)
            case link.Answer():
                answered = self._asked.pop(message.id, None)
                if answered is not None:
                    answered(message)
            case link.Trouble():
                self.trouble = message.text
            case link.Note():
                log.log(message.level, message.text)
            case link.Ready():
                self._become_ready(message)

    def _become_ready(self, ready: link.Ready) -> None:
        self.trouble = None
        self.notes += [note for note in ready.notes if note not in self.notes]
        if ready.fresh:
            self._front.desk.forget_rules()
            self._words.clear()
        self._is_ready = True
        self.pump()

    def pump(self) -> None:
        """Give the writer what it has room for, once all that came in one go is queued."""
        if not self._pump_is_due:
            self._pump_is_due = True
            asyncio.get_running_loop().call_soon(self._pump_now)

    def _pump_now(self) -> None:
        self._pump_is_due = False
        if self._is_ready and self._transport is not None:
            frames = self._front.backlog.take()
            if frames:
                self._transport.write(b"".join(frames))

    def ask(self, verb: str, arguments: bytes, answered: Answered) -> None:
        """Have the writer do something; it answers when it has, however long that takes."""
        if self._transport is None:
            answered(link.Answer(0, self.trouble or "the recorder is not ready; try again"))
            return
        self._pump_now()  # what came before it is done before it
        self._last_question += 1
        self._asked[self._last_question] = answered
        self._transport.write(link.encode(link.Ask(self._last_question, verb, arguments)))

    def reload(self) -> None:
        """Have the writer read the settings again."""
        if self._transport is not None:
            self._transport.write(link.encode(link.Reload()))

    async def stop(self) -> None:
        """Have everything committed that can be, and end the writer."""
        self._stopping = True
        if self._starting is not None:
            self._starting.cancel()
        if self._transport is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drain(self._transport), DRAIN_LIMIT_S)
        self._reap(LAST_WAIT_S)

    async def _drain(self, transport: asyncio.Transport) -> None:
        while len(self._front.backlog) and self.trouble is None and not self._gone.is_set():
            self._news.clear()
            await self._news.wait()
        transport.write(link.encode(link.Drain()))
        await self._gone.wait()

    # --- the process -------------------------------------------------------------------------

    def _reap(self, patience_s: float) -> int | None:
        """Wait for the process, which is killed if it stays; return its status if it has ended."""
        if self._process is None:
            return None
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in a dead file system
            return self._process.wait(LAST_WAIT_S)
        return None

    def _restart(self, status: int | None) -> None:
        wait_s = RESTART_AFTER_S[min(self._deaths, len(RESTART_AFTER_S) - 1)]
        self._deaths += 1
        log.warning("the writer ended with status %s; another starts in %.1f s", status, wait_s)
        if self._deaths > len(RESTART_AFTER_S):
            self.trouble = "the recorder does not stay alive; see the log"
        self._starting = asyncio.get_running_loop().create_task(self._start_later(wait_s))

    async def _start_later(self, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        while True:
            try:
                await self.start()
            except OSError as error:
                log.warning("cannot start a writer: %s", type(error).__name__)
                await asyncio.sleep(RESTART_AFTER_S[-1])
            else:
                return
