"""What was not recorded, and why: counted here by the daemon, and by helpers in a mapped file."""

import enum
import struct
from pathlib import Path

_MAGIC = b"frcount1"

HELPER_COUNTERS = (
    "lost runs",
    "missed replies",
    "foreign servers",
    "bad frames",
    "autostarts",
    "silent panes",
)
"""The numbers of the mapped file in their order (``shim/counters.h``); others may follow."""

HELPER_TROUBLES = frozenset(HELPER_COUNTERS) - {"autostarts"}
"""Those that mean that something went wrong."""


class Missed(enum.StrEnum):
    """Why the daemon did not record a command."""

    RATE = "too many at once in one session"
    BACKLOG = "too many waiting for the disk"
    UNFINISHED = "too many unfinished commands"
    ODD = "not recorded as it should be"
    ODD_HOOK = "events of an agent that could not be read"
    LARGE_HOOK = "events of an agent of more than 1 MiB"
    DEADLY = "ended the recorder every time"


class Refused(enum.StrEnum):
    """Why the daemon closed a connection."""

    FOREIGN = "another user"
    CROWDED = "too many connections"
    SILENT = "no hello in time"
    IDLE = "idle"
    PROTOCOL = "another protocol"
    BAD_FRAME = "not a message"
    SLOW_READER = "does not read"


def read_helper_counters(path: Path) -> dict[str, int]:
    """Return what helpers have counted; empty where they counted nothing yet or the file is odd."""
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    if not data.startswith(_MAGIC):
        return {}
    numbers = len(data[len(_MAGIC) :]) // 8
    values = struct.unpack_from(f"<{numbers}Q", data, len(_MAGIC))
    return dict(zip(HELPER_COUNTERS, values, strict=False))
