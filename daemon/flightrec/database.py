"""Opens the SQLite file: private, checked, of the right version, and set aside when it is damaged.

SQLite hides damage: a torn log beside the database opens without a word and lacks the newest rows.
So every file is checked when it is opened, every row carries a checksum, and the highest id that
was ever committed is noted in a file of its own, outside the log.
"""

import contextlib
import os
import sqlite3
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from flightrec.errors import FlightrecError
from flightrec.migrations import VERSION, migrate

BUSY_TIMEOUT_S = 5.0
WAL_LIMIT = 4 * 1024 * 1024
"""Bytes to which the log is cut back after a checkpoint."""

_VERSION_AT = 60
_VERSION = struct.Struct(">I")
"""Where a database's header has its version (SQLite file format, section 1.3)."""

_MARK = struct.Struct("<Q")

TROUBLES: tuple[tuple[int, str], ...] = (
    (sqlite3.SQLITE_FULL, "the disk is full"),
    (sqlite3.SQLITE_READONLY, "the database cannot be written (read-only file system?)"),
    (sqlite3.SQLITE_CANTOPEN, "the database cannot be opened (folder not writable?)"),
    (sqlite3.SQLITE_IOERR, "the disk reports errors"),
    (sqlite3.SQLITE_BUSY, "another process holds the database"),
    (sqlite3.SQLITE_LOCKED, "another process holds the database"),
    (sqlite3.SQLITE_PROTOCOL, "the database cannot be locked (network file system?)"),
    (sqlite3.SQLITE_NOLFS, "the database is larger than this file system takes"),
    (sqlite3.SQLITE_NOMEM, "out of memory"),
)
"""Errors that pass by themselves or by the person's hand: nothing that was recorded is at fault."""

VERSION_MAX = 1000
"""No release will have more migrations; a larger version is a broken header."""

DAMAGES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@dataclass(frozen=True, slots=True)
class Opened:
    """A database ready for use, and what was found on the way.

    ``quarantined`` is where a damaged file was put, ``lost`` how many committed rows a torn log
    took along, ``warning`` a limitation that the person should know of.
    """

    connection: sqlite3.Connection
    quarantined: Path | None = None
    lost: int = 0
    warning: str | None = None


def trouble_of(error: BaseException) -> str | None:
    """Return one line about a storage error that may pass, or None where it is something else."""
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError):
        return f"cannot open {error.filename}: {error.strerror}"
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    return next((text for known, text in TROUBLES if code & 0xFF == known), None)


def is_damage(error: BaseException) -> bool:
    """Whether this error says that the file itself is broken."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in DAMAGES


def open_database(path: Path, *, vfs: str = "") -> Opened:
    """Open for writing; a damaged file is set aside and a fresh one begun.

    Raises FlightrecError where the file is a newer program's (nothing is touched), and
    ``sqlite3.Error`` with a trouble (``trouble_of``) where it cannot be opened now.
    """
    try:
        _refuse_newer(_header_version(path))
        connection, warning = _open_checked(path, vfs)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        quarantined = set_aside(path)
        connection, warning = _open_checked(path, vfs)
        return Opened(connection, quarantined=quarantined, warning=warning)
    return Opened(connection, lost=_count_lost(connection, path), warning=warning)


def open_memory() -> sqlite3.Connection:
    """Return an empty database without a file."""
    connection = _configure(sqlite3.connect(":memory:", isolation_level=None))
    migrate(connection)
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open for reading only; where nothing was recorded yet, an empty database is read.

    Raises FlightrecError where the file is damaged or of another version.
    """
    if not path.exists():
        return open_memory()
    try:
        return _open_to_read(path)
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise FlightrecError(
                f"{path} is damaged; `flightrec daemon start` sets it aside and begins a new one"
            ) from None
        reason = trouble_of(error) or type(error).__name__
        raise FlightrecError(f"cannot read {path}: {reason}") from None


def set_aside(path: Path) -> Path:
    """Rename a damaged database and its log so that SQLite can still open the pair; return it."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target = path.with_name(f"{path.name}.corrupt-{stamp}")
    number = 1
    while target.exists():
        target = path.with_name(f"{path.name}.corrupt-{stamp}.{number}")
        number += 1
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").replace(f"{target}{suffix}")
    with contextlib.suppress(FileNotFoundError):
        target.chmod(0o600)
    HighWaterMark(path).note(0)  # what was in it is not lost
    return target


class HighWaterMark:
    """The highest id that was ever committed, in a file that no database log can take along."""

    def __init__(self, database: Path) -> None:
        self._path = Path(f"{database}.mark")

    def read(self) -> int:
        """Return the mark; 0 where there is none."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return 0
        return int(_MARK.unpack(data)[0]) if len(data) == _MARK.size else 0

    def note(self, highest: int) -> None:
        """Write the mark. A disk that cannot take it costs the check, never the recording."""
        with contextlib.suppress(OSError):
            mark = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(mark, _MARK.pack(highest), 0)
            finally:
                os.close(mark)


def _open_checked(path: Path, vfs: str) -> tuple[sqlite3.Connection, str | None]:
    _make_private(path)
    query = f"?vfs={vfs}" if vfs else ""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}{query}", uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S
    )
    try:
        _refuse_newer(_version(connection))
        _check(connection)
        warning = _choose_journal(connection)
        _configure(connection)
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection, warning


def _make_private(path: Path) -> None:
    """Create the file closed to others, or close one that came from elsewhere (a backup)."""
    with contextlib.suppress(OSError):  # SQLite says what is wrong
        created = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(created).st_mode & 0o077:
                os.fchmod(created, 0o600)
        finally:
            os.close(created)


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Open read-only; a file system that takes no log beside the file still lets it be read."""
    uri = path.absolute().as_uri()
    for mode in ("mode=ro", "immutable=1"):
        connection = sqlite3.connect(
            f"{uri}?{mode}", uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S
        )
        try:
            version = _version(connection)
        except sqlite3.OperationalError:
            connection.close()
            if mode == "immutable=1":
                raise
            continue
        return _of_my_version(connection, version)
    raise AssertionError  # the loop returns or raises


def _of_my_version(connection: sqlite3.Connection, version: int) -> sqlite3.Connection:
    if version == VERSION:
        connection.text_factory = _decode
        return connection
    connection.close()
    if version == 0:
        return open_memory()  # created a moment ago: nothing in it yet
    _refuse_newer(version)
    raise FlightrecError(
        f"the database has the older version {version}; run: flightrec daemon start"
    )


def _header_version(path: Path) -> int:
    """Return the version in the file's header, read without opening it as a database."""
    try:
        with path.open("rb") as file:
            header = file.read(_VERSION_AT + _VERSION.size)
    except OSError:
        return 0
    if not header.startswith(b"SQLite format 3\0") or len(header) < _VERSION_AT + _VERSION.size:
        return 0
    return int(_VERSION.unpack_from(header, _VERSION_AT)[0])


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _damage(text: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(text)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _refuse_newer(version: int) -> None:
    if not 0 <= version <= VERSION_MAX:
        raise _damage("no version")
    if version > VERSION:
        raise FlightrecError(
            f"the database has version {version}, made by a newer flightrec; this one knows"
            f" {VERSION}: upgrade flightrec (nothing was changed)"
        )


def _check(connection: sqlite3.Connection) -> None:
    (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        raise _damage("quick_check found damage")


def _choose_journal(connection: sqlite3.Connection) -> str | None:
    """Prefer the write-ahead log; where its shared memory does not work, do without."""
    try:
        (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL):
            raise
        mode = None
    if mode == "wal":
        return None
    connection.execute("PRAGMA journal_mode=TRUNCATE")
    return "no shared memory beside the database (network file system?): recording is slower"


def _configure(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.text_factory = _decode
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA secure_delete=ON")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute(f"PRAGMA journal_size_limit={WAL_LIMIT}")
    return connection


def _decode(raw: bytes) -> str:
    """Return text of the database; bytes of a shell that are no UTF-8 come back as they went in."""
    return raw.decode("utf-8", "surrogateescape")


def _count_lost(connection: sqlite3.Connection, path: Path) -> int:
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'runs'").fetchone()
    present = int(row[0]) if row else 0
    mark = HighWaterMark(path)
    lost = max(0, mark.read() - present)
    if lost:
        mark.note(present)
    return lost
