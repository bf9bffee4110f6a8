"""The daemon: one event loop over the socket, the writer and the memory between them."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from flightrec import __version__, link
from flightrec.ancestors import agent_above
from flightrec.client_connection import ClientConnection
from flightrec.config import Settings, load_settings
from flightrec.errors import FlightrecError
from flightrec.events_fifo import EventsFifo
from flightrec.front import Front, Peer
from flightrec.hint_file import HintFile
from flightrec.missed import Refused
from flightrec.ownership import BACKLOG, Ownership
from flightrec.paths import Paths
from flightrec.pausing import Pause
from flightrec.wire import PROTOCOL, AnyMessage, Request, Response
from flightrec.writer_process import WriterProcess

log = logging.getLogger(__name__)

CONNECTIONS_MAX = 1024
CONNECTIONS_PER_PROCESS_MAX = 256

Arguments = dict[str, Any]


class _Pause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``session`` is hexadecimal and means that shell alone; ``until_us`` is wall clock."""

    session: str | None = None
    until_us: int | None = None


class Daemon:
    """Owns the socket and all connections; ends when told to, when idle, or when replaced."""

    def __init__(self, paths: Paths, ownership: Ownership, adopted: socket.socket | None) -> None:
        self._paths = paths
        self._ownership = ownership
        self._adopted = adopted
        self._settings = Settings()
        self._config_seen: object = None
        pause = Pause(paths.state / "paused")
        self._front = Front(pause, str(paths.home), self._pump, agent_above)
        self._writer = WriterProcess(paths, self._front)
        self._fifo = EventsFifo(paths.events_fifo, self.receive, HintFile(paths.hint_file))
        self._server: asyncio.Server | None = None
        self._connections: set[ClientConnection] = set()
        self._per_process: Counter[int] = Counter()
        self._refused: Counter[Refused] = Counter()
        self._stop = asyncio.Event()
        self._check_now = asyncio.Event()
        self._started_s = self._heard_s = time.monotonic()
        self._verbs: dict[str, Callable[[Arguments], Arguments]] = {
            "ping": self._ping,
            "status": self._status,
            "pause": self._do_pause,
            "resume": self._do_resume,
            "reload": self._do_reload,
            "stop": self._do_stop,
        }

    def _pump(self) -> None:
        self._writer.pump()

    # --- the life of a daemon ----------------------------------------------------------------

    async def serve(self, ready: Callable[[], None]) -> None:
        """Serve until the end; ``ready`` is called once the socket is there to connect to."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._check_now.set)
        loop.set_exception_handler(_log_fault)
        self._front.pause.load()
        self._follow_config()
        await self._listen()
        self._fifo.open()
        ready()
        await self._writer.start()
        await loop.run_in_executor(None, agent_above, os.getpid())  # loads what it needs
        gc.freeze()  # modules stay: to go through them took 3 ms now and then, while a shell waits
        watch = loop.create_task(self._look_after())
        await self._stop.wait()
        watch.cancel()
        await self._leave()

    async def _listen(self) -> None:
        """Bind the socket (again, where it was deleted) and accept on it."""
        old = self._server
        if self._adopted is not None and old is None:
            self._ownership.adopt()
            listening = self._adopted
        else:
            listening = self._ownership.bind()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: ClientConnection(self), sock=listening, backlog=BACKLOG
        )
        if old is not None:
            old.close()

    async def _leave(self) -> None:
        """Drain: let nobody in, commit what came, tell who sent it, and only then hang up."""
        log.info("ends after %.0f s", time.monotonic() - self._started_s)
        if self._adopted is None:
            self._ownership.remove_socket()
        if self._server is not None:
            self._server.close()
        self._fifo.close()
        self._front.hooks.flush()
        await self._writer.stop()
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)  # the transports send what they hold

    async def _look_after(self) -> None:
        """Every few seconds: is the socket still mine, have settings changed, does anybody care."""
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._check_now.wait(), self._settings.daemon.check_seconds)
            self._check_now.clear()
            try:
                await self._check()
            except Exception:
                log.exception("could not look after myself")

    async def _check(self) -> None:
        self._front.sweep()
        self._follow_config()
        self._fifo.check()
        if not self._ownership.has_lock():
            log.warning("the lock file is not mine any more")
            self._stop.set()
        elif not self._ownership.has_socket():
            log.warning("the socket is gone; it is bound again")
            await self._listen()
        elif self._is_idle():
            log.info("nobody is connected")
            self._stop.set()

    def _is_idle(self) -> bool:
        silent_s = time.monotonic() - self._heard_s
        lasting = any(connection.is_lasting for connection in self._connections)
        busy = lasting or len(self._front.backlog) > 0
        return not busy and silent_s > self._settings.daemon.idle_exit_minutes * 60

    def _follow_config(self) -> None:
        """Read the settings if the file has changed. With a mistake in it, record nothing."""
        found = _fingerprint(self._paths)
        if found == self._config_seen:
            return
        is_first = self._config_seen is None
        self._config_seen = found
        try:
            self._settings = load_settings(self._paths.config)
        except FlightrecError as error:
            log.warning("the settings cannot be used; nothing is recorded")
            self._front.config_error = str(error)
            return
        self._front.config_error = None
        self._front.use(self._settings)
        if not is_first:
            self._writer.reload()

    # --- connections -------------------------------------------------------------------------

    def admit(self, connection: ClientConnection) -> Refused | None:
        """Take the connection in, or say why not."""
        refusal = self._find_refusal(connection)
        if refusal is not None:
            self._refused[refusal] += 1
            return refusal
        self._connections.add(connection)
        self._per_process[connection.pid] += 1
        return None

    def _find_refusal(self, connection: ClientConnection) -> Refused | None:
        if connection.uid != os.geteuid():
            return Refused.FOREIGN
        crowded = (
            len(self._connections) >= CONNECTIONS_MAX
            or self._per_process[connection.pid] >= CONNECTIONS_PER_PROCESS_MAX
        )
        return Refused.CROWDED if crowded else None

    def dismiss(self, connection: ClientConnection, reason: Refused | None) -> None:
        """Take note that the connection is closed."""
        self._connections.discard(connection)
        self._per_process[connection.pid] -= 1
        if self._per_process[connection.pid] <= 0:
            del self._per_process[connection.pid]
        if reason is not None:
            self._refused[reason] += 1
        self._front.lose(connection)

    def receive(self, message: AnyMessage, peer: Peer) -> None:
        """Do what a helper's message asks for."""
        self._heard_s = time.monotonic()
        try:
            self._front.handle(message, peer)
        except Exception:
            # One odd message must not end the connection, and with it all that follow.
            log.exception("could not handle a %s", type(message).__name__)
            self._front.answer_nothing(message, peer)

    # --- requests ----------------------------------------------------------------------------

    def request(self, request: Request, connection: ClientConnection) -> None:
        """Answer the command line, now or later."""
        self._heard_s = time.monotonic()
        verb = request.verb.decode("ascii", "replace")
        if verb not in self._verbs:
            self._writer.ask(
                verb,
                request.arguments,
                lambda answer: connection.answer(_response(request.id, answer)),
            )
            return
        try:
            arguments = msgspec.json.decode(request.arguments, type=dict[str, Any])
            result = msgspec.json.encode(self._verbs[verb](arguments))
        except (FlightrecError, msgspec.DecodeError, ValueError) as error:
            connection.answer(Response(request.id, f"{verb}: {error}".encode()))
        else:
            connection.answer(Response(request.id, None, result))

    def _ping(self, _: Arguments) -> Arguments:
        return {"pid": os.getpid(), "version": __version__, "protocol": PROTOCOL}

    def _status(self, _: Arguments) -> Arguments:
        return {
            **self._ping({}),
            "uptime_s": round(time.monotonic() - self._started_s, 1),
            "socket": str(self._paths.socket),
            "connections": len(self._connections) - 1,
            "writer_pid": self._writer.pid,
            "trouble": self._writer.trouble,
            "notes": self._writer.notes,
            "refused": {str(reason): n for reason, n in self._refused.items() if n},
            **self._front.describe(),
        }

    def _do_pause(self, arguments: Arguments) -> Arguments:
        asked = msgspec.convert(arguments, _Pause)
        if asked.session is not None:
            self._front.pause.make_private(bytes.fromhex(asked.session))
        else:
            self._front.pause.begin(asked.until_us)
        return self._front.describe()

    def _do_resume(self, arguments: Arguments) -> Arguments:
        asked = msgspec.convert(arguments, _Pause)
        if asked.session is not None:
            self._front.pause.make_public(bytes.fromhex(asked.session))
        else:
            self._front.pause.end()
        return self._front.describe()

    def _do_reload(self, _: Arguments) -> Arguments:
        self._follow_config()
        self._check_now.set()  # the next check is due by the new settings
        return {"config_error": self._front.config_error}

    def _do_stop(self, _: Arguments) -> Arguments:
        # After the answer: the loop runs this once the present call is done.
        asyncio.get_running_loop().call_soon(self._stop.set)
        return {"pid": os.getpid()}


def _response(request_id: int, answer: link.Answer) -> Response:
    error = None if answer.error is None else answer.error.encode("utf-8", "replace")
    return Response(request_id, error, answer.result)


def _fingerprint(paths: Paths) -> object:
    """Return what changes when the settings' file does."""
    try:
        found = paths.config.stat()
    except OSError as error:
        return error.errno
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _log_fault(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what asyncio caught, without its text, which may hold data."""
    error = context.get("exception")
    kind = type(error).__name__ if error is not None else "no exception"
    log.error("a fault in the event loop: %s", kind, exc_info=error)
