"""One file in a folder, replaced in one step so that the version that was displaced is in hand.

The folder is opened step by step below a boundary, so that no link can lead out of it while we
look. What is no plain file of mine with one name is refused and put back.
"""

import contextlib
import ctypes
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from flightrec import failpoints
from flightrec.errors import FlightrecError

SIZE_MAX = 1024 * 1024
"""Bytes; a larger file is no memory file."""

_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_NO_SUCH_CALL = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
_NO_PLAIN_FILE = (errno.ELOOP, errno.ENXIO, errno.EISDIR)


@dataclass(frozen=True, slots=True)
class Document:
    """A version of the file. Of a displaced one, ``descriptor`` reads what is written to it yet."""

    data: bytes
    status: os.stat_result
    attributes: tuple[tuple[str, bytes], ...]
    descriptor: int = -1


class _GoneError(FileNotFoundError):
    """The file was taken away or replaced between opening and reading it."""


def _nothing(_name: str) -> None:
    """Nobody wants to know."""


class Folder:
    """The folder of ``real`` (a path without links), which lies below ``boundary``.

    ``note`` is told the name of a file that is made beside it, and nothing once it is gone again.
    Raises OSError where it cannot be opened (or made, with ``create``), FlightrecError where it
    belongs to somebody else.
    """

    def __init__(
        self, real: Path, boundary: Path, *, create: bool, note: Callable[[str], None] = _nothing
    ) -> None:
        self._name = real.name
        self._displaced: list[int] = []
        self._note = note
        self._folder = os.open(boundary, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in real.parent.relative_to(boundary).parts:
                self._enter(part, create=create)
            self._check_mine()
        except BaseException:
            os.close(self._folder)
            raise

    def _enter(self, part: str, *, create: bool) -> None:
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=self._folder)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        inner = os.open(part, flags, dir_fd=self._folder)
        os.close(self._folder)
        self._folder = inner

    def _check_mine(self) -> None:
        if os.fstat(self._folder).st_uid != os.geteuid():
            raise FlightrecError("its folder belongs to somebody else; left alone")

    def close(self) -> None:
        """Let go of the folder and of all versions that were displaced."""
        for descriptor in (*self._displaced, self._folder):
            os.close(descriptor)

    def read(self) -> Document | None:
        """Return what stands there, None for nothing. Raises FlightrecError for no plain file."""
        while True:
            try:
                return self._read(self._name)
            except _GoneError:
                continue  # what replaced it is there
            except FileNotFoundError:
                return None

    def take_away(self, name: str) -> bytes | None:
        """Remove a file that a killed process of ours has left there; return what it was."""
        try:
            document = self._read(name)
        except (OSError, FlightrecError):
            return None
        self._unlink(name)
        return document.data

    def create(self, data: bytes, like: Document | None) -> None:
        """Put the first version there. Raises FileExistsError where somebody else did."""
        with self._temporary(data, like) as temporary:
            self._rename(temporary, self._name, _RENAME_NOREPLACE)

    def exchange(self, data: bytes, like: Document) -> Document:
        """Put a new version there, with the mode of ``like``; return the one that it displaced.

        Raises FileNotFoundError where there is none any more, FlightrecError where it was no plain
        file (which stands there again).
        """
        with self._temporary(data, like) as temporary:
            self._rename(temporary, self._name, _RENAME_EXCHANGE)
            failpoints.reach("exchanged")
            try:
                return self._read(temporary, keep=True)
            except (OSError, FlightrecError):
                self._put_back(temporary, data)
                raise

    def _put_back(self, temporary: str, ours: bytes) -> None:
        """Undo an exchange, unless a third version took the place of ours meanwhile."""
        self._rename(temporary, self._name, _RENAME_EXCHANGE)
        if self._read(temporary).data != ours:
            self._rename(temporary, self._name, _RENAME_EXCHANGE)

    def remove(self) -> Document:
        """Take the file away and return it. Raises as ``exchange`` does."""
        temporary = self._temporary_name()
        self._note(temporary)
        self._plain_rename(self._name, temporary)
        try:
            document = self._read(temporary, keep=True)
        except (OSError, FlightrecError):
            self._rename(temporary, self._name, _RENAME_NOREPLACE)
            raise
        self._unlink(temporary)
        self._note("")
        return document

    def _read(self, name: str, *, keep: bool = False) -> Document:
        # Without O_NONBLOCK a FIFO would keep us waiting for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, dir_fd=self._folder)
        except OSError as error:
            if error.errno in _NO_PLAIN_FILE:
                raise FlightrecError("is no plain file; left alone") from None
            raise
        try:
            status = os.fstat(descriptor)
            _check_plain(status)
            document = Document(read_all(descriptor), status, _attributes(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        if keep:
            self._displaced.append(descriptor)
            return replace(document, descriptor=descriptor)
        os.close(descriptor)
        return document

    def _temporary_name(self) -> str:
        return f".{self._name[:200]}.flightrec-{secrets.token_hex(6)}"

    @contextlib.contextmanager
    def _temporary(self, data: bytes, like: Document | None) -> Iterator[str]:
        """Make a file under another name; whatever has that name in the end is deleted."""
        name = self._temporary_name()
        self._note(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600 if like else 0o666, dir_fd=self._folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                if like:
                    _copy_status(descriptor, like)
                file.flush()
                os.fsync(descriptor)
            yield name
        finally:
            self._unlink(name)
            self._note("")

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._folder)

    def _rename(self, source: str, target: str, flag: int) -> None:
        try:
            rename_with_flag(self._folder, source, target, flag)
        except OSError as error:
            if error.errno not in _NO_SUCH_CALL:
                raise
            self._rename_without_flag(source, target, flag)

    def _rename_without_flag(self, source: str, target: str, flag: int) -> None:
        """Do nearly the same where the file system cannot (NFS).

        A second link keeps the displaced file. What an editor renames into place between the two
        calls would be lost: a window of microseconds.
        """
        if flag == _RENAME_NOREPLACE:
            self._link(source, target)
            return
        kept = self._temporary_name()
        self._link(target, kept)
        self._plain_rename(source, target)
        self._plain_rename(kept, source)

    def _link(self, source: str, target: str) -> None:
        os.link(
            source,
            target,
            src_dir_fd=self._folder,
            dst_dir_fd=self._folder,
            follow_symlinks=False,
        )

    def _plain_rename(self, source: str, target: str) -> None:
        os.rename(source, target, src_dir_fd=self._folder, dst_dir_fd=self._folder)


def _check_plain(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise FlightrecError("is no plain file; left alone")
    if status.st_uid != os.geteuid():
        raise FlightrecError(f"belongs to uid {status.st_uid}, not to you; left alone")
    if status.st_nlink == 0:
        raise _GoneError
    if status.st_nlink != 1:
        raise FlightrecError(f"has {status.st_nlink} names (hard links); left alone")
    if status.st_size > SIZE_MAX:
        raise FlightrecError(f"has more than {SIZE_MAX // 1024} KiB; left alone")


def read_all(descriptor: int) -> bytes:
    """Return the whole content, from its start, whatever its position is."""
    parts: list[bytes] = []
    position = 0
    while part := os.pread(descriptor, 65536, position):
        parts.append(part)
        position += len(part)
        if position > SIZE_MAX:
            raise FlightrecError(f"has more than {SIZE_MAX // 1024} KiB; left alone")
    return b"".join(parts)


def _copy_status(descriptor: int, like: Document) -> None:
    """Give a new version the group, mode and, where possible, extended attributes of the old."""
    if os.fstat(descriptor).st_gid != like.status.st_gid:
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, -1, like.status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.status.st_mode))
    with contextlib.suppress(OSError):
        for name, value in like.attributes:
            os.setxattr(descriptor, name, value)


def _attributes(descriptor: int) -> tuple[tuple[str, bytes], ...]:
    with contextlib.suppress(OSError):
        return tuple((name, os.getxattr(descriptor, name)) for name in os.listxattr(descriptor))
    return ()


def _find_renameat2() -> Callable[..., int] | None:
    """Return the C library's function; old ones have none."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        function.argtypes = (
            ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint,
        )  # fmt: skip
    return function


_renameat2 = _find_renameat2()


def rename_with_flag(folder: int, source: str, target: str, flag: int) -> None:
    """Rename inside one folder with a flag of renameat2(2). Raises OSError."""
    if _renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if _renameat2(folder, os.fsencode(source), folder, os.fsencode(target), flag) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), target)
