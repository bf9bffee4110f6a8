"""Whether the person wants nothing recorded: everywhere for a time, or in one shell."""

import contextlib
import os
from pathlib import Path
from typing import Annotated

import msgspec

SESSIONS_MAX = 1024
"""Private shells that are remembered; their ids are random and say nothing."""


class _Kept(msgspec.Struct, frozen=True):
    """What the file holds: a pause, if there is one, and private sessions in hexadecimal."""

    active: bool = False
    until_us: int | None = None
    private: Annotated[tuple[str, ...], msgspec.Meta(max_length=SESSIONS_MAX)] = ()


class Pause:
    """The person's wish, kept in a file so that a new daemon does not end it.

    ``until_us`` is wall clock; None lasts until the person resumes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.active = False
        self.until_us: int | None = None
        self._private: dict[bytes, None] = {}

    @property
    def private_sessions(self) -> int:
        """How many shells are private."""
        return len(self._private)

    def load(self) -> None:
        """Take over what an earlier daemon was told. A file that is odd pauses: that is safer."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return
        try:
            kept = msgspec.json.decode(data, type=_Kept)
            self._private = {bytes.fromhex(session): None for session in kept.private}
            self.active, self.until_us = kept.active, kept.until_us
        except ValueError:
            self.active, self.until_us = True, None

    def begin(self, until_us: int | None) -> None:
        """Record nothing from now on."""
        self.active, self.until_us = True, until_us
        self._keep()

    def end(self) -> None:
        """Record again."""
        self.active, self.until_us = False, None
        self._keep()

    def make_private(self, session: bytes) -> None:
        """Record nothing of this session, as long as it lives."""
        self._private[session] = None
        if len(self._private) > SESSIONS_MAX:
            del self._private[next(iter(self._private))]
        self._keep()

    def make_public(self, session: bytes) -> None:
        """Record this session again, or forget that it was private: it has ended."""
        if session in self._private:
            del self._private[session]
            self._keep()

    def covers(self, session: bytes, now_us: int) -> bool:
        """Whether nothing of this session is recorded now."""
        if self.active and self.until_us is not None and now_us >= self.until_us:
            self.end()
        return self.active or session in self._private

    def _keep(self) -> None:
        """Write the file. A disk that takes nothing keeps the wish as long as this daemon."""
        with contextlib.suppress(OSError):
            if not self.active and not self._private:
                self._path.unlink(missing_ok=True)
                return
            private = tuple(session.hex() for session in self._private)
            data = msgspec.json.encode(_Kept(self.active, self.until_us, private))
            new = self._path.with_name(f"{self._path.name}.new")
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            with os.fdopen(os.open(new, flags, 0o600), "wb") as file:
                file.write(data)
            new.replace(self._path)
