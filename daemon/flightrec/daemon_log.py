"""The daemon's log: ids, lengths and kinds of errors, never a word that somebody typed.

An exception's own text is left out, because it may quote what it could not handle.
"""

import logging
import os
import time
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import IO

MAX_BYTES = 1_000_000
FILES = 3

LINES_PER_MINUTE = 10
"""Of one kind of message: whoever sends nonsense in a loop must not push out the rest."""

LINE = "%(asctime)sZ %(process)d %(levelname)s %(name)s: %(message)s"

_ExceptionInfo = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


class QuietFormatter(logging.Formatter):
    """Writes an exception as its class and the places in our code that it came through."""

    converter = time.gmtime  # type: ignore[assignment]  # typeshed asks for None as argument

    def __init__(self, line: str = LINE) -> None:
        super().__init__(line)

    def formatException(self, ei: _ExceptionInfo) -> str:  # noqa: N802 - logging's name
        """Return one line per frame."""
        kind, _, frames = ei
        if kind is None:
            return ""
        places = (
            f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(frames)
        )
        return "\n".join((f"  {kind.__module__}.{kind.__qualname__}", *places))


class FloodFilter(logging.Filter):
    """Lets so many lines of one kind through per minute, and counts the rest."""

    def __init__(self, per_minute: int = LINES_PER_MINUTE) -> None:
        super().__init__()
        self._per_minute = per_minute
        self._minute = 0
        self._seen: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this line is written."""
        minute = int(record.created // 60)
        if minute != self._minute:
            self._minute, self._seen = minute, {}
        kind = str(record.msg)
        self._seen[kind] = self._seen.get(kind, 0) + 1
        if self._seen[kind] == self._per_minute:
            record.msg = f"{kind} (more of these are left out this minute)"
        return self._seen[kind] <= self._per_minute


class PrivateFileHandler(RotatingFileHandler):
    """A rotating file that only its owner can read, whatever the umask is."""

    def _open(self) -> IO[str]:  # type: ignore[override]  # typeshed names the concrete class
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.fdopen(os.open(self.baseFilename, flags, 0o600), "a", encoding="utf-8")


def log_to(path: Path) -> None:
    """Send all log lines of this process to ``path``."""
    send_to(PrivateFileHandler(path, maxBytes=MAX_BYTES, backupCount=FILES - 1), LINE)


def send_to(handler: logging.Handler, line: str) -> None:
    """Send all log lines of this process to one handler, in the quiet form."""
    handler.setFormatter(QuietFormatter(line))
    handler.addFilter(FloodFilter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.raiseExceptions = False  # a full disk must not be reported to a closed stderr
