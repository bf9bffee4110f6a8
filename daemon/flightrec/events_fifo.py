"""A FIFO for helpers whose sandbox lets them connect to nothing; answers go into a file.

A write of at most 4,096 bytes stays in one piece, so frames of many writers do not mix.
"""

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from flightrec.front import Peer
from flightrec.hint_file import HintFile
from flightrec.wire import AnyMessage, FrameReader, WireError

log = logging.getLogger(__name__)

READ_MAX = 64 * 1024


class EventsFifo:
    """Reads the FIFO at ``path`` and hands its messages to ``receive``, answers to ``answers``."""

    def __init__(
        self, path: Path, receive: Callable[[AnyMessage, Peer], None], answers: HintFile
    ) -> None:
        self._path = path
        self._receive = receive
        self._answers = answers
        self._reader = FrameReader()
        self._fifo: int | None = None

    def open(self) -> None:
        """Create the FIFO, or replace what is in its place, and listen to it."""
        self.close()
        self._answers.open()
        try:
            if not is_my_fifo(self._path):
                self._path.unlink(missing_ok=True)
                os.mkfifo(self._path, 0o600)
            # For writing too, so that it does not end when the last helper closes it.
            flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fifo = os.open(self._path, flags)
        except OSError as error:
            log.warning("no FIFO for sandboxes: %s", type(error).__name__)
            return
        asyncio.get_running_loop().add_reader(self._fifo, self._read, self._fifo)

    def close(self) -> None:
        """Listen no more; helpers find nobody at the other end."""
        if self._fifo is not None:
            asyncio.get_running_loop().remove_reader(self._fifo)
            os.close(self._fifo)
            self._fifo = None
        self._answers.close()

    def check(self) -> None:
        """Open it anew where somebody has deleted it."""
        if not is_my_fifo(self._path):
            self.open()

    def _read(self, fifo: int) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                self._receive_all(self._reader.feed(os.read(fifo, READ_MAX)))
            except WireError as error:
                log.warning("not a message in the FIFO")
                self._reader = FrameReader()
                self._receive_all(error.before)

    def _receive_all(self, messages: Iterable[AnyMessage]) -> None:
        for message in messages:
            self._receive(message, self._answers)


def is_my_fifo(path: Path) -> bool:
    """Whether this is a FIFO of mine, and no link to one."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISFIFO(found.st_mode) and found.st_uid == os.geteuid()
