"""The last few versions of people's files that we replaced, in a folder of our own."""

import os
import time
from pathlib import Path

from flightrec.file_lock import digest
from flightrec.paths import Paths, make_private_folder

BACKUPS_KEPT = 5


class Backups:
    """The last few versions of one file that we replaced."""

    def __init__(self, real: Path, paths: Paths) -> None:
        self._paths = paths
        self._digest = digest(real)
        self._name = real.name[-100:]

    def newest(self) -> bytes | None:
        """Return the version that was kept last."""
        kept = sorted(backup_folder(self._paths).glob(f"{self._digest}-*"))
        return kept[-1].read_bytes() if kept else None

    def add(self, data: bytes | None) -> None:
        """Keep a version; the oldest beyond ``BACKUPS_KEPT`` goes."""
        if not data:
            return
        folder = backup_folder(self._paths)
        make_private_folder(folder)
        kept = sorted(folder.glob(f"{self._digest}-*"))
        if kept and kept[-1].read_bytes() == data:
            return
        target = folder / f"{self._digest}-{time.time_ns():020}-{self._name}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
            file.write(data)
        for old in kept[: max(0, len(kept) + 1 - BACKUPS_KEPT)]:
            old.unlink(missing_ok=True)


def backup_folder(paths: Paths) -> Path:
    """Return where replaced versions are kept."""
    return paths.state / "backups"
