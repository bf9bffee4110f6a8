"""The edge to documents that belong to the person: memory files, rc files.

Such a file has other writers: editors, agents, dotfile managers. So a new version is *exchanged*
with the one that stands there, and the one that comes out is compared with the one that was read:
what somebody saved in between is the base of the next attempt. A second later the versions that
came out are looked at once more, for a program that had one open may still have written to it.
"""

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from flightrec.errors import FlightrecError
from flightrec.exchange import Document, Folder, read_all
from flightrec.paths import Paths, make_private_folder

Edit = Callable[[bytes | None], bytes | None]
"""The document that stands there (None: no file) → the one that should stand there (None: none)."""

Inode = tuple[int, int]
"""Device and number: which of the versions of a file a document is."""

BACKUPS_KEPT = 5

ATTEMPTS = 100
"""People save now and then; whoever comes in between so often does it on purpose."""

LOCK_PATIENCE_S = 30.0

SETTLE_S = 1.0
"""How long a program may take from opening a file to its last write to it."""

SETTLE_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Location:
    """A file, and the folder out of which links on the way to it must not lead."""

    path: Path
    boundary: Path


def update_file(
    location: Location, edit: Edit, paths: Paths, *, settle_s: float = SETTLE_S
) -> bool:
    """Bring the file to what ``edit`` makes of it; return whether anything was written.

    ``edit`` may be asked several times, and must leave its own result as it is. ``settle_s`` is
    how long to wait for programs that had the file open; 0 does not wait. Raises FlightrecError,
    with a line that names the file, where it is no plain file of mine or cannot be written.
    """
    if edit(None) is None and not location.path.parent.exists():
        return False  # no folders are made for nothing
    with contextlib.closing(FileUpdate(location, edit, paths)) as update:
        written = update.run()
        if settle_s > 0:
            settle_all([update] if written else [], settle_s)
        return written


def settle_all(updates: Iterable["FileUpdate"], settle_s: float = SETTLE_S) -> None:
    """Wait for programs that had one of these files open, and bring in what they wrote."""
    waiting = list(updates)
    for _ in range(SETTLE_ROUNDS):
        if not waiting:
            return
        time.sleep(settle_s)
        waiting = [update for update in waiting if update.settle()]


def read_file(location: Location) -> bytes | None:
    """Return the document as ``update_file`` would find it, None for no file. Raises as it does."""
    with _errors_name(location.path):
        real, boundary = _resolve(location)
        try:
            opened = Folder(real, boundary, create=False)
        except FileNotFoundError:
            return None
        with contextlib.closing(opened) as folder:
            return _data(folder.read())


def preview(location: Location, edit: Edit) -> tuple[bytes | None, bytes | None]:
    """Return the document as it is and as ``update_file`` would make it. Raises as it does."""
    document = read_file(location)
    with _errors_name(location.path):
        return document, edit(document)


@contextlib.contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    try:
        yield
    except FlightrecError as error:
        raise FlightrecError(f"{path}: {error}") from None
    except OSError as error:
        raise FlightrecError(f"{path}: {error.strerror}; left alone") from None


def _resolve(location: Location) -> tuple[Path, Path]:
    """Return the file at the end of all links, and the boundary that it must lie in."""
    real = Path(os.path.realpath(location.path))
    boundary = Path(os.path.realpath(location.boundary))
    if boundary not in real.parents:
        raise FlightrecError(f"leads out of {location.boundary} to {real}; left alone")
    if location.path.is_symlink() and not real.exists():
        raise FlightrecError("is a link to nothing; left alone")
    return real, boundary


def _digest(real: Path) -> str:
    return hashlib.sha256(os.fsencode(real)).hexdigest()[:12]


def _take_lock(real: Path, paths: Paths, patience_s: float) -> int:
    """Keep our other writers of this file out; a lock beside the file would lie in people's way."""
    folder = paths.state / "locks"
    make_private_folder(paths.state)
    make_private_folder(folder)
    descriptor = os.open(folder / _digest(real), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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


class FileUpdate:
    """One update of one file, which is locked until ``close``: run it, and settle it later.

    Raises FlightrecError, with a line that names the file, as all its methods do.
    """

    def __init__(
        self, location: Location, edit: Edit, paths: Paths, *, patience_s: float = LOCK_PATIENCE_S
    ) -> None:
        self._path = location.path
        self._edit = edit
        self._ours: bytes | None = None  # what we wrote last, and which version it was made from
        self._source: Inode | None = None
        self._displaced: list[Document] = []
        with _errors_name(self._path), contextlib.ExitStack() as opened:
            real, boundary = _resolve(location)
            opened.callback(os.close, _take_lock(real, paths, patience_s))
            self._folder = opened.enter_context(
                contextlib.closing(Folder(real, boundary, create=True))
            )
            self._backups = Backups(real, paths)
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Let others write."""
        self._opened.close()

    def run(self) -> bool:
        """Apply the edit to what stands there; return whether anything was written."""
        with _errors_name(self._path):
            return self._run()

    def settle(self) -> bool:
        """Bring in what was written to displaced versions since; return whether there was any."""
        with _errors_name(self._path):
            late = list(self._find_late())
            for before, now in late:
                self._bring_in(before, now)
            return self._run() or bool(late)

    def _run(self) -> bool:
        standing = self._folder.read()
        return self._apply(standing, _data(standing), _inode(standing))

    def _apply(self, standing: Document | None, base: bytes | None, source: Inode | None) -> bool:
        """Put the edited ``base``, which ``source`` holds, in the place of ``standing``."""
        expected = _data(standing)
        like = standing
        wrote = False
        for _ in range(ATTEMPTS):
            wanted = self._edit(base)
            if wanted == expected:
                return wrote
            self._backups.add(base)
            try:
                displaced = self._put(expected, wanted, like)
            except (FileExistsError, FileNotFoundError):
                like = self._folder.read()
                base, expected, source = _data(like), _data(like), _inode(like)
                continue
            wrote = True
            self._ours, self._source = wanted, source
            if _data(displaced) == expected:
                return True
            # Somebody wrote in between, and it is their version that came out.
            base = _rebased(base, expected, _data(displaced))
            source = _inode(displaced) if base == _data(displaced) else None
            expected, like = wanted, displaced
        raise FlightrecError("is being rewritten all the time; try again later")

    def _put(
        self, expected: bytes | None, wanted: bytes | None, like: Document | None
    ) -> Document | None:
        """Write one version and return the one that came out."""
        if expected is None or like is None:
            assert wanted is not None  # noqa: S101 - it differs from what is expected
            self._folder.create(wanted, like)
            return None
        displaced = self._folder.remove() if wanted is None else self._folder.exchange(wanted, like)
        self._displaced.append(displaced)
        return displaced

    def _find_late(self) -> Iterator[tuple[Document, Document]]:
        """Yield displaced versions that changed since, as they were and as they are."""
        for position, before in enumerate(self._displaced):
            data = read_all(before.descriptor)
            if data != before.data:
                now = Document(data, before.descriptor, before.status)
                self._displaced[position] = now
                yield before, now

    def _bring_in(self, before: Document, now: Document) -> None:
        standing = self._folder.read()
        current = _data(standing)
        if current == self._ours and _inode(now) == self._source:
            self._apply(standing, now.data, self._source)
        elif current is not None and now.data.startswith(before.data):
            gap = b"" if current.endswith(b"\n") else b"\n"
            added = current + gap + now.data[len(before.data) :]
            self._apply(standing, added, None)
        else:
            self._backups.add(now.data)  # a third program wrote over it: kept for the person


def _rebased(base: bytes | None, expected: bytes | None, found: bytes | None) -> bytes | None:
    """Return the document to go on from where ``found`` stood instead of ``expected``.

    What was appended is appended to all that is known; anything else is somebody's new version.
    """
    if base is not None and expected is not None and found and found.startswith(expected):
        return base + found[len(expected) :]
    return found


def _inode(document: Document | None) -> Inode | None:
    return None if document is None else (document.status.st_dev, document.status.st_ino)


def _data(document: Document | None) -> bytes | None:
    return None if document is None else document.data


class Backups:
    """The last few versions of one file that we replaced."""

    def __init__(self, real: Path, paths: Paths) -> None:
        self._paths = paths
        self._digest = _digest(real)
        self._name = real.name[-100:]

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
