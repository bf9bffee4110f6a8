"""Whether anybody edited the work tree between a failure and a later pass of its command.

A few files and directories are looked at when the command fails, and again when something would
follow from its passing: git's HEAD and index, the top of the tree, and what the command and the
error name; in a repository also whatever in the tree is newer than the failure. What changed while
one of the session's own commands ran is that command's doing; anything else is an edit. It costs at
most ``LOOKS_MAX`` looks, and ``WALK_MAX`` more where something would follow, and starts no git.
Edits far behind in a larger tree are not seen.
"""

import os
import re
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from flightrec.classify import Failure
from flightrec.places import git_folder
from flightrec.session_history import Entry, directory_of
from flightrec.shell_words import SimpleCommand

LOOKS_MAX = 64
"""Files that are looked at for one failure."""

WALK_MAX = 500
"""Entries of the tree, the uppermost first, that are looked at for what is newer."""

NAMED_MAX = 40
ENTRIES_MAX = 256
"""Names in an error, and entries at the top of a tree, that are considered."""

TEXT_MAX = 4096
"""Characters of an error in which names are looked for, the last ones."""

KEPT = 128
"""Failures whose fingerprints are kept; the oldest give way."""

BESIDE_US = 50_000
"""How far from a command's time a change may lie that is its doing: clocks of files are coarse."""

REFRESHED_US = 2_000_000
"""The same for git's index, which prompts refresh after a command."""

EDITORS = frozenset(
    ("vi", "vim", "nvim", "gvim", "nano", "pico", "micro", "emacs", "emacsclient", "hx", "helix",
     "kak", "joe", "ne", "mcedit", "ed", "ex", "code", "codium", "cursor", "subl", "zed", "gedit",
     "kate", "patch")
)  # fmt: skip
_IN_PLACE = {"sed": re.compile(r"-[a-zA-Z]*i|--in-place"), "perl": re.compile(r"-[a-zA-Z0]*i")}
"""Commands whose changes are edits all the same."""

_OUTPUTS = frozenset(
    ("build", "coverage", "dist", "log", "logs", "node_modules", "out", "target", "temp", "tmp")
)
"""Directories in which programs put things at any time."""

_WRITTEN_BY_PROGRAMS = (
    ".db", ".db-journal", ".lock", ".log", ".pid", ".pyc", ".sock", ".sqlite", ".sqlite3", ".swp",
    ".tmp", "-shm", "-wal", "~",
)  # fmt: skip

_NAME = re.compile(r"[^\s\"'`()<>\[\]{},;|=*?$:]+")
_WITH_ENDING = re.compile(r".*\w\.\w{1,8}")

Stamp = tuple[int, int, int, int]
"""Size, time of content, time of change, inode: what differs after an edit."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What was found at a failure; None where something named was not there.

    ``root`` is the tree to be searched for what is newer than ``taken_us`` (wall clock), empty
    where that is not to be done: outside git a tree may be a whole home.
    """

    stamps: dict[str, Stamp | None]
    index: str
    root: str
    taken_us: int


@dataclass(slots=True)
class _Look:
    """Looks at files as long as there are looks left."""

    stamps: dict[str, Stamp | None] = field(default_factory=dict)
    left: int = LOOKS_MAX

    def at(self, path: str, *, keep_missing: bool = False) -> bool:
        """Note a file (empty is none); return whether it is there."""
        if path in self.stamps:
            return self.stamps[path] is not None
        if not path or self.left == 0:
            return False
        self.left -= 1
        stamp = _stamp(path)
        if stamp is not None or keep_missing:
            self.stamps[path] = stamp
        return stamp is not None


class Fingerprints:
    """Those of recent failures, in memory only: whatever has none counts as not edited."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Fingerprint] = OrderedDict()

    def take(self, failure: Failure) -> None:
        """Look at the work tree in which a command has just failed."""
        found = take_fingerprint(failure)
        if found.stamps:
            self._kept[failure.run.run] = found
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)

    def is_edited(self, failure: Failure, later: Sequence[Entry]) -> bool:
        """Whether the tree was edited since; ``later`` are the session's runs after the failure."""
        found = self._kept.get(failure.run.run)
        if found is None:
            return False
        times = [_time_of(entry) for entry in later if not _edits(entry)]
        return any(
            not _is_within(at_us, times, REFRESHED_US if path == found.index else BESIDE_US)
            for path, at_us in chain(_changes(found), _newer(found))
        )


def take_fingerprint(failure: Failure) -> Fingerprint:
    """Look at what an edit after this failure would change; only inside its work tree."""
    root = str(failure.run.worktree)
    look = _Look()
    git = git_folder(root)
    index = os.path.join(git, "index") if git is not None else ""
    if git is not None:
        for path in (os.path.join(git, "HEAD"), index, root):
            look.at(path)
    _look_at_named(failure, root, look)
    if git is not None:
        for path in _top_directories(root):
            look.at(path)
    return Fingerprint(look.stamps, index, root if git else "", time.time_ns() // 1000)


def _look_at_named(failure: Failure, root: str, look: _Look) -> None:
    here = os.path.realpath(directory_of(failure.run, failure.line, failure.segment))
    typed = [word.text for segment in failure.line.segments for word in segment.words]
    for name in (*typed[:NAMED_MAX], *failure.named):
        look.at(_inside(root, here, name), keep_missing=True)
    for name in _names_in(failure.run.tail[-TEXT_MAX:]):
        # Tools that go to a directory of their own name files from there, often the root.
        look.at(_inside(root, here, name)) or look.at(_inside(root, root, name))


def _names_in(text: str) -> Iterator[str]:
    """Yield what looks like files in a text, the last ones first: those say most."""
    found = _NAME.findall(text)
    likely = (name for name in reversed(found) if "/" in name or _WITH_ENDING.fullmatch(name))
    return islice(dict.fromkeys(likely), NAMED_MAX)


def _inside(root: str, folder: str, name: str) -> str:
    """Return the path of a name seen in a folder, empty where it is not inside the tree.

    Whatever else an error names may be a dead mount, and is not looked at.
    """
    if name.startswith(("-", "//", "~")):
        return ""
    path = os.path.normpath(os.path.join(folder, name))
    return path if path.startswith(root.rstrip("/") + "/") else ""


def _top_directories(root: str) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return [
                entry.path
                for entry in islice(entries, ENTRIES_MAX)
                if not entry.name.startswith(".")
                and entry.name not in _OUTPUTS
                and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def _changes(before: Fingerprint) -> Iterator[tuple[str, int]]:
    """Yield what is not as it was, with the time of its last change (wall clock)."""
    for path, stamp in before.stamps.items():
        now = _stamp(path)
        if now == stamp:
            continue
        # What is gone changed its directory as it went.
        at = now or _stamp(os.path.dirname(path))
        yield path, at[2] // 1000 if at is not None else 0


def _newer(before: Fingerprint) -> Iterator[tuple[str, int]]:
    """Yield files that changed since, with the time; the uppermost ``WALK_MAX`` are looked at."""
    folders = deque([before.root] if before.root else ())
    left = WALK_MAX
    while folders and left > 0:
        for entry in islice(_entries(folders.popleft()), left):
            left -= 1
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif (changed_us := _changed_us(entry)) > before.taken_us:
                yield entry.path, changed_us


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield what a person may have written in a folder, and the folders in it."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                hidden = entry.name.startswith((".", "__")) or entry.name in _OUTPUTS
                if not hidden and not entry.name.endswith(_WRITTEN_BY_PROGRAMS):
                    yield entry
    except OSError:
        return


def _changed_us(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_ctime_ns // 1000
    except OSError:
        return 0


def _time_of(entry: Entry) -> tuple[int, int]:
    """Return when a run began and ended."""
    began_us = entry.run.started_us
    return began_us, began_us + (entry.run.usec or 0)


def _is_within(at_us: int, times: Iterable[tuple[int, int]], after_us: int) -> bool:
    return any(began - BESIDE_US <= at_us <= ended + after_us for began, ended in times)


def _edits(entry: Entry) -> bool:
    """Whether a run changes files as an editor does, so that its changes say what edits say."""
    return any(map(_is_edit, entry.line.segments))


def _is_edit(segment: SimpleCommand) -> bool:
    program = segment.program.rpartition("/")[2]
    in_place = _IN_PLACE.get(program)
    if in_place is not None:
        return any(in_place.match(word.text) for word in segment.arguments)
    return program in EDITORS
