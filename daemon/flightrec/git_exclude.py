"""Keep a person's own file in a checkout out of git, without touching what the team tracks.

``info/exclude`` in the git folder does what ``.gitignore`` does, for this person alone and for all
worktrees at once.
"""

import os
import re
import subprocess
from pathlib import Path

from flightrec.location import Edit, Location
from flightrec.places import Place

PATIENCE_S = 10

MARK = b"# flightrec"
"""Above a line that is to be known again as ours."""


def exclude_file(place: Place) -> Location | None:
    """Return the file that lists what git should not see at this place; None outside git."""
    # A checkout may name any folder as its git folder: git looks for HEAD in it, too.
    if not place.in_git or not os.path.lexists(f"{place.project}/HEAD"):
        return None
    return Location(Path(place.project, "info/exclude"), Path(place.project))


def excluding(path: str, *, marked: bool = False) -> Edit:
    """Return the edit that adds a checkout's file, unless a line for it is there."""
    line = b"/" + os.fsencode(path)
    ours = MARK + b"\n" + line if marked else line

    def edit(document: bytes | None) -> bytes:
        document = document or b""
        if any(found.strip() in (line, line[1:]) for found in document.splitlines()):
            return document
        gap = b"" if not document or document.endswith(b"\n") else b"\n"
        return document + gap + ours + b"\n"

    return edit


def including(path: str) -> Edit:
    """Return the edit that takes a line out again that was marked as ours."""
    ours = re.compile(rb"^%s\n/%s(?:\n|\Z)" % (MARK, re.escape(os.fsencode(path))), re.MULTILINE)

    def edit(document: bytes | None) -> bytes | None:
        return None if document is None else ours.sub(b"", document)

    return edit


def is_tracked(root: Path, path: str) -> bool:
    """Whether git tracks this file of a checkout; not, where git cannot be asked."""
    # A repository may name a program that git is to ask about changes; the index knows this alone.
    words = ("git", "-c", "core.fsmonitor=false", "ls-files", "--error-unmatch", "--", path)
    try:
        found = subprocess.run(
            words, cwd=root, capture_output=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return found.returncode == 0
