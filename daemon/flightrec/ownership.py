"""Who is the daemon, and whose is the socket.

The flock on the lock file is ownership; an answered hello is life. The socket's path says neither:
a stale one is replaced by whoever holds the lock, by binding another name and renaming it, so that
no client ever finds a path that is bound but not served by the owner.
"""

import contextlib
import errno
import fcntl
import os
import socket
import time
from pathlib import Path
from typing import Self

from flightrec.connection import Connection
from flightrec.errors import FlightrecError
from flightrec.paths import Paths

PATIENCE_S = 0.5
"""How long a starting daemon waits for one that is just leaving."""

BACKLOG = 512
"""Connections that wait for accept: a hundred shells may start at once."""


class Ownership:
    """The lock that makes this process the daemon, and the socket that goes with it."""

    def __init__(self, paths: Paths, lock: int, *, locked: bool) -> None:
        self._paths = paths
        self._lock = lock
        self.locked = locked
        self._bound: tuple[int, int] | None = None

    @classmethod
    def take(cls, paths: Paths) -> Self | None:
        """Return the ownership, or None where another daemon has it.

        On a file system without locks it goes to whoever asks while nobody answers at the socket.
        """
        lock = os.open(paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            locked = _lock_patiently(lock)
            owned = locked or not answers(paths)
        except BlockingIOError:
            owned = False
        if not owned:
            os.close(lock)
            return None
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)
        return cls(paths, lock, locked=locked)

    def bind(self) -> socket.socket:
        """Return the listening socket, which is at its path from this moment on."""
        new = self._paths.run / f".{self._paths.host}.new"  # as long as the final name
        listening = socket.socket(
            socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        )
        try:
            new.unlink(missing_ok=True)
            before = os.umask(0o177)  # created closed: a chmod afterwards would come too late
            try:
                listening.bind(str(new))
            finally:
                os.umask(before)
            listening.listen(BACKLOG)
            self._bound = _identity(new)
            new.replace(self._paths.socket)
        except BaseException:
            listening.close()
            raise
        return listening

    def adopt(self) -> None:
        """Take the socket that systemd has bound at the path for ours."""
        self._bound = _identity(self._paths.socket)

    def has_socket(self) -> bool:
        """Whether the path still leads to our socket."""
        return self._bound is not None and _identity(self._paths.socket) == self._bound

    def has_lock(self) -> bool:
        """Whether the lock file is still the one that we hold: a new folder has a new owner."""
        mine = os.fstat(self._lock)
        return _identity(self._paths.lock) == (mine.st_dev, mine.st_ino)

    def remove_socket(self) -> None:
        """Unlink the socket, unless somebody else's is at the path by now."""
        if self.has_lock() and self.has_socket():
            self._paths.socket.unlink(missing_ok=True)

    def release(self) -> None:
        """Let the next daemon in. The lock file stays: unlinking it could make two owners."""
        os.close(self._lock)


def owner_pid(paths: Paths) -> int | None:
    """Return the pid of whoever holds the lock, 0 where it is not readable, None for nobody."""
    with contextlib.suppress(OSError):
        lock = os.open(paths.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.pread(lock, 32, 0).strip()
            return int(text) if text.isdigit() else 0
        finally:
            os.close(lock)
    return None


def answers(paths: Paths) -> bool:
    """Whether a daemon of mine says hello at the socket."""
    try:
        Connection(paths).close()
    except FlightrecError:
        return False
    return True


def _lock_patiently(lock: int) -> bool:
    """Lock, or raise BlockingIOError; return False where the file system has no locks."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                return False
            raise
        else:
            return True


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells this file from any other, None where there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
