"""The edge to documents that belong to the person: memory files, rc files, settings."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from flightrec.exchange import Folder
from flightrec.file_lock import is_left_behind
from flightrec.file_update import SETTLE_ROUNDS, SETTLE_S, FileUpdate, data_of, once_it_is_whole
from flightrec.location import Bare, Edit, Location, errors_name, resolve
from flightrec.paths import Paths


def update_file(
    location: Location,
    edit: Edit,
    paths: Paths,
    *,
    bare: Bare = bytes,
    settle_s: float = SETTLE_S,
) -> bool:
    """Bring the file to what ``edit`` makes of it; return whether anything was written.

    ``edit`` may be asked several times, and must leave its own result as it is. ``settle_s`` is
    how long to wait for programs that had the file open; 0 does not wait. Raises FlightrecError,
    with a line that names the file, where it is no plain file of mine or cannot be written.
    """
    if edit(None) is None and not location.path.parent.exists():
        return False  # no folders are made for nothing
    with contextlib.closing(FileUpdate(location, edit, paths, bare=bare)) as update:
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
    with errors_name(location.path):
        return _read(location)


def _read(location: Location) -> bytes | None:
    real, boundary = resolve(location)
    try:
        opened = Folder(real, boundary, create=False)
    except FileNotFoundError:
        return None
    with contextlib.closing(opened) as folder:
        return data_of(folder.read())


def is_half_done(location: Location, paths: Paths) -> bool:
    """Whether a process of ours was killed while it wrote this file: an update puts that right."""
    return is_left_behind(Path(os.path.realpath(location.path)), paths)


def preview(location: Location, edit: Edit) -> tuple[bytes | None, bytes | None]:
    """Return the document as it is and as ``update_file`` would make it. Raises as it does."""
    with errors_name(location.path):
        return once_it_is_whole(lambda: _preview(location, edit), lambda: _read(location))


def _preview(location: Location, edit: Edit) -> tuple[bytes | None, bytes | None]:
    document = _read(location)
    return document, edit(document)
