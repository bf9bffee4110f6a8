"""A lock that keeps our processes out of each other's way at a file that belongs to the person."""

import fcntl
import hashlib
import os
import time
from pathlib import Path

from flightrec.errors import FlightrecError
from flightrec.paths import Paths, make_private_folder


def digest(real: Path) -> str:
    """Return what our own files about this one are called."""
    return hashlib.sha256(os.fsencode(real)).hexdigest()[:12]


def take_lock(real: Path, paths: Paths, patience_s: float) -> int:
    """Keep our other writers of this file out until the descriptor is closed; return it.

    A lock beside the file would lie in people's way. Raises FlightrecError after ``patience_s``.
    """
    folder = paths.state / "locks"
    make_private_folder(paths.state)
    make_private_folder(folder)
    descriptor = os.open(folder / digest(real), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor, patience_s)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lock(descriptor: int, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise FlightrecError("another flightrec is writing it; try again") from None
            time.sleep(0.02)
        except OSError:
            return  # no locks on this file system: exchanging alone has to do
        else:
            return
