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


class FileLock:
    """Keeps our other writers of this file out until ``close``.

    It lies in our own folder: beside the file it would be in people's way. In it stands the name of
    the file that its owner makes just then, which somebody has to look after if the owner dies.
    Raises FlightrecError after ``patience_s``.
    """

    def __init__(self, real: Path, paths: Paths, patience_s: float) -> None:
        path = _lock_path(real, paths)
        make_private_folder(paths.state)
        make_private_folder(path.parent)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._is_alone = _lock(self._descriptor, patience_s)
        except BaseException:
            os.close(self._descriptor)
            raise

    def close(self) -> None:
        """Let others write."""
        os.close(self._descriptor)

    def note(self, name: str) -> None:
        """Put down what is made now; nothing, once it is done."""
        if self._is_alone:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, os.fsencode(name), 0)

    def left_behind(self) -> str:
        """Return what an owner who died had made; empty where none did."""
        return os.fsdecode(os.pread(self._descriptor, 1000, 0)) if self._is_alone else ""


def is_left_behind(real: Path, paths: Paths) -> bool:
    """Whether somebody makes something there just now, or died while doing so."""
    try:
        return _lock_path(real, paths).stat().st_size > 0
    except OSError:
        return False


def _lock_path(real: Path, paths: Paths) -> Path:
    return paths.state / "locks" / digest(real)


def _lock(descriptor: int, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise FlightrecError("another flightrec is writing it; try again") from None
            time.sleep(0.02)
        except OSError:
            return False  # no locks on this file system: exchanging alone has to do
        else:
            return True
