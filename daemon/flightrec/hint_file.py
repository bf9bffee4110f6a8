"""Answers for helpers whose sandbox lets them read files and connect to nothing.

The file is mapped by whoever waits for an answer; ``shim/sandbox.h`` knows its layout. Each answer
takes the next place: its text first and its run's id last, so that nobody finds half of one.
"""

import contextlib
import logging
import os
import struct
from pathlib import Path

from flightrec.wire import FrameReader, Phase, Reply

log = logging.getLogger(__name__)

MAGIC = b"frhints1"
SLOTS = 64
TEXT_MAX = 1000

_SLOT = struct.Struct(f"<16sII{TEXT_MAX}s")
_ID_SIZE = 16
SIZE = len(MAGIC) + SLOTS * _SLOT.size


class HintFile:
    """The peer of a command that came by the FIFO: what it is sent is put into the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._next = 0

    def open(self) -> None:
        """Make the file anew. Without it sandboxes get no hints, and nothing else is amiss."""
        self.close()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._path.unlink(missing_ok=True)
            self._file = os.open(self._path, flags, 0o600)
            os.ftruncate(self._file, SIZE)
            os.pwrite(self._file, MAGIC, 0)
        except OSError as error:
            log.warning("no hints for sandboxes: %s", type(error).__name__)

    def close(self) -> None:
        """Take the file away: nobody answers any more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self._path.unlink(missing_ok=True)

    def send(self, frame: bytes) -> None:
        """Put an answer where its helper looks for it; other frames interest nobody."""
        for message in FrameReader().feed(frame):
            if isinstance(message, Reply) and message.phase is Phase.START:
                with contextlib.suppress(OSError):  # a full disk
                    self._put(message)

    def _put(self, reply: Reply) -> None:
        if self._file is None:
            return
        offset = len(MAGIC) + self._next * _SLOT.size
        self._next = (self._next + 1) % SLOTS
        text = reply.text[:TEXT_MAX]
        os.pwrite(self._file, _SLOT.pack(bytes(_ID_SIZE), reply.verdict, len(text), text), offset)
        os.pwrite(self._file, reply.run, offset)
