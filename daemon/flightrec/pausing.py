"""Whether the person wants nothing recorded: everywhere for a time, or in one shell."""

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Pause:
    """The pause, kept in a file so that a new daemon does not end it.

    ``until_us`` is wall clock; None lasts until the person resumes. ``private`` are sessions of
    which nothing is recorded; they end with their shell and are in memory only.
    """

    path: Path
    active: bool = False
    until_us: int | None = None
    private: set[bytes] = field(default_factory=set)

    def load(self) -> None:
        """Take over what an earlier daemon was told."""
        with contextlib.suppress(OSError):
            text = self.path.read_text(encoding="ascii", errors="replace").strip()
            self.active = True
            self.until_us = int(text) if text.isdigit() else None

    def begin(self, until_us: int | None) -> None:
        """Record nothing from now on."""
        self.active, self.until_us = True, until_us
        with contextlib.suppress(OSError):  # a full disk: it lasts as long as this daemon
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            file = os.open(self.path, flags, 0o600)
            os.write(file, b"-" if until_us is None else b"%d" % until_us)
            os.close(file)

    def end(self) -> None:
        """Record again."""
        self.active, self.until_us = False, None
        self.path.unlink(missing_ok=True)

    def covers(self, session: bytes, now_us: int) -> bool:
        """Whether nothing of this session is recorded now."""
        if self.active and self.until_us is not None and now_us >= self.until_us:
            self.end()
        return self.active or session in self.private
