"""One update of one document that belongs to the person.

Such a file has other writers: editors, agents, dotfile managers. So a new version is *exchanged*
with the one that stands there, and the one that comes out is compared with the one that was read:
what somebody saved in between is put together with all else that is known, and is the base of the
next attempt. A second later the versions that came out are looked at once more, for a program that
had one open may still have written to it.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from flightrec.backups import Backups
from flightrec.errors import FlightrecError
from flightrec.exchange import Document, Folder, read_all
from flightrec.file_lock import FileLock
from flightrec.location import Bare, Edit, Location, errors_name, resolve
from flightrec.merge import merge
from flightrec.paths import Paths

Inode = tuple[int, int]
"""Device and number: which of the versions of a file a document is."""

ATTEMPTS = 100
"""People save now and then; whoever comes in between so often does it on purpose."""

LOCK_PATIENCE_S = 30.0

SETTLE_S = 1.0
"""How long a program may take from opening a file to its last write to it."""

SETTLE_ROUNDS = 30
"""As many only where others write all the time: one that finds nothing is the last."""

TROUBLES_MAX = 4
"""Rounds in which a file may be nothing that can be written, since somebody else is at it."""

STEADY_S = 0.005
STEADY_ROUNDS = 20
"""How long a version must stay the same for its last line to be a whole one."""

WRITING_S = 0.05
WRITING_ROUNDS = 20
"""How often to look whether a file that cannot be understood is still being written."""

_T = TypeVar("_T")


def once_it_is_whole(work: Callable[[], _T], read: Callable[[], bytes | None]) -> _T:
    """Do the work; where that fails, again for as long as somebody is still writing the file."""
    for _ in range(WRITING_ROUNDS):
        found = read()
        try:
            return work()
        except FlightrecError:
            time.sleep(WRITING_S)
            if read() == found:
                raise
    return work()


class FileUpdate:
    """One update of one file, which is locked until ``close``: run it, and settle it later.

    ``bare`` returns what is the person's of a document: two versions are put together by that.
    Raises FlightrecError, with a line that names the file, as all its methods do.
    """

    def __init__(
        self,
        location: Location,
        edit: Edit,
        paths: Paths,
        *,
        bare: Bare = bytes,
        patience_s: float = LOCK_PATIENCE_S,
    ) -> None:
        self._path = location.path
        self._edit = edit
        self._bare = bare
        self._rounds = self._troubles = 0
        self._owed: Counter[bytes] = Counter()
        self._ours: bytes | None = None  # what we wrote last, and which version it was made from
        self._source: Inode | None = None
        self._displaced: list[Document] = []
        self._cut: set[int] = set()  # which of these were found cut
        with errors_name(self._path), contextlib.ExitStack() as opened:
            real, boundary = resolve(location)
            lock = opened.enter_context(contextlib.closing(FileLock(real, paths, patience_s)))
            self._folder = opened.enter_context(
                contextlib.closing(Folder(real, boundary, create=True, note=lock.note))
            )
            self._backups = Backups(real, paths)
            self._left_behind = self._folder.take_away(lock.left_behind())
            lock.note("")
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Let others write."""
        self._opened.close()

    def run(self) -> bool:
        """Apply the edit to what stands there; return whether anything was written."""
        with errors_name(self._path):
            if self._left_behind is not None:
                self._recover(self._left_behind)
            return self._run()

    def _recover(self, data: bytes) -> None:
        """Bring in what a killed process of ours had displaced, as far as it is news."""
        ancestor, standing = self._backups.newest(), self._folder.read()
        self._backups.add(data)
        if ancestor is not None and standing is not None:
            self._apply(standing, self._merged(ancestor, standing.data, data), None)

    def settle(self) -> bool:
        """Bring in what was written to displaced versions since; return whether to look again.

        What others are writing cannot be brought in before they are done; where they never are,
        the last of ``SETTLE_ROUNDS`` says so.
        """
        self._rounds += 1
        with errors_name(self._path):
            try:
                go_on = self._settle()
            except FlightrecError:
                self._troubles += 1
                if self._troubles > TROUBLES_MAX:
                    raise
                return True
            if go_on and self._rounds >= SETTLE_ROUNDS:
                raise FlightrecError("is being rewritten all the time; try again later")
            return go_on

    def _settle(self) -> bool:
        owed, self._owed = self._owed, Counter()
        try:
            late = [self._look_at(position) for position in range(len(self._displaced))]
            return self._pay(owed) or self._run() or any(late)
        except BaseException:
            self._owed |= owed
            raise

    def _look_at(self, position: int) -> bool:
        """Bring in what was written to one displaced version; return whether there was any."""
        before = self._displaced[position]
        if read_all(before.descriptor) == before.data:
            return False
        now = replace(before, data=_read_steady(before.descriptor))
        if _is_cut(now.data, before.data) and position not in self._cut:
            self._cut.add(position)  # emptied to be written anew: the rest is to come
            return True
        self._bring_in(before, now)
        self._displaced[position] = now
        return True

    def _pay(self, owed: Counter[bytes]) -> bool:
        """Put lines back that we brought in and that somebody wrote over who had not seen them."""
        standing = self._await_file() if owed else None
        if standing is None:
            return False
        bare = self._bare(standing.data)
        missing = _lines_without(owed.elements(), bare.splitlines())
        if not missing:
            return False
        gap = b"" if not bare or bare.endswith(b"\n") else b"\n"
        return self._apply(standing, bare + gap + b"".join(line + b"\n" for line in missing), None)

    def _run(self) -> bool:
        return once_it_is_whole(self._apply_to_what_stands, lambda: data_of(self._folder.read()))

    def _apply_to_what_stands(self) -> bool:
        standing = self._folder.read()
        return self._apply(standing, data_of(standing), _inode(standing))

    def _apply(self, standing: Document | None, base: bytes | None, source: Inode | None) -> bool:
        """Put the edited ``base``, which ``source`` holds, in the place of ``standing``."""
        expected = data_of(standing)
        like = standing
        for attempt in range(ATTEMPTS):
            wanted = self._edit(base)
            if wanted == expected:
                return attempt > 0
            if attempt == 0:
                self._backups.add(base)
            try:
                displaced = self._put(expected, wanted, like)
            except (FileExistsError, FileNotFoundError):
                found = self._await_file()
                base = self._merged(expected, base, data_of(found))
                source = _inode(found) if base == data_of(found) else None
                expected, like = data_of(found), found or like
                continue
            self._ours, self._source = wanted, source
            self._owe(base, expected)
            if displaced is None or displaced.data == expected:
                return True
            if _is_cut(displaced.data, expected):
                self._displaced[-1] = replace(displaced, data=expected or b"")
                return True
            # Somebody wrote in between, and it is their version that came out.
            base = self._merged(expected, base, displaced.data)
            source = _inode(displaced) if base == displaced.data else None
            expected, like = wanted, displaced
        self._owe(base, expected)  # to go on with a second later
        return True

    def _put(
        self, expected: bytes | None, wanted: bytes | None, like: Document | None
    ) -> Document | None:
        """Write one version and return the one that came out."""
        if expected is None or like is None:
            assert wanted is not None  # noqa: S101 - it differs from what is expected
            self._folder.create(wanted, like)
            return None
        displaced = self._folder.remove() if wanted is None else self._folder.exchange(wanted, like)
        if displaced.data != expected:
            displaced = replace(displaced, data=_read_steady(displaced.descriptor))
        self._displaced.append(displaced)
        return displaced

    def _owe(self, base: bytes | None, seen: bytes | None) -> None:
        """Remember the person's lines of ``base`` that are not in the version that is ``seen``."""
        if base is not None and base != seen:
            new, old = (self._persons_lines(version) for version in (base, seen or b""))
            self._owed |= Counter(_lines_without(new, old))

    def _persons_lines(self, document: bytes) -> list[bytes]:
        try:
            return self._bare(document).splitlines()
        except FlightrecError:
            return document.splitlines()

    def _await_file(self) -> Document | None:
        """Return what stands there, also where a program has it moved away to write it anew."""
        for _ in range(WRITING_ROUNDS):
            found = self._folder.read()
            if found is not None:
                return found
            time.sleep(WRITING_S / 2)
        return None

    def _bring_in(self, before: Document, now: Document) -> None:
        standing = self._await_file()
        current = data_of(standing)
        if current == self._ours and _inode(now) == self._source:
            self._apply(standing, now.data, self._source)
        elif current is not None:
            self._apply(standing, self._merged(before.data, current, now.data), None)
        else:
            self._backups.add(now.data)  # somebody took the file away: kept for the person

    def _merged(
        self, ancestor: bytes | None, mine: bytes | None, theirs: bytes | None
    ) -> bytes | None:
        """Return both changes to a document in one; None for no file."""
        if mine == ancestor:
            return self._whole(theirs)
        bare = [self._bare(version or b"") for version in (ancestor, mine, theirs)]
        return merge(*bare) or (None if theirs is None else b"")

    def _whole(self, document: bytes | None) -> bytes | None:
        """Return a document that can be edited, also where it is not written to its end yet."""
        try:
            self._edit(document)
        except FlightrecError:
            return self._bare(document or b"")
        return document


def _read_steady(descriptor: int) -> bytes:
    """Return the content once nobody is in the middle of writing it, or after a while."""
    data = read_all(descriptor)
    for _ in range(STEADY_ROUNDS):
        time.sleep(STEADY_S)
        before, data = data, read_all(descriptor)
        if data == before:
            break
    return data


def _is_cut(now: bytes, before: bytes | None) -> bool:
    """Whether this is the beginning of an earlier version: most programs empty a file to write."""
    return before is not None and len(now) < len(before) and before.startswith(now)


def _lines_without(lines: Iterable[bytes], others: Iterable[bytes]) -> list[bytes]:
    """Return the lines, blank ones excepted, that stand there more often than among the others."""
    left = Counter(others)
    found = []
    for line in filter(bytes.strip, lines):
        if left[line] > 0:
            left[line] -= 1
        else:
            found.append(line)
    return found


def _inode(document: Document | None) -> Inode | None:
    return None if document is None else (document.status.st_dev, document.status.st_ino)


def data_of(document: Document | None) -> bytes | None:
    """Return what stands in a version; None for no file."""
    return None if document is None else document.data
