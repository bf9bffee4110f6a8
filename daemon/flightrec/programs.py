"""Where a program's name leads: to the shell itself, to a file on the PATH, into the project."""

import enum
import os
from collections.abc import Sequence

_POSIX = """
. : [ alias bg break cd command continue echo eval exec exit export false fc fg getopts hash jobs
kill printf pwd read readonly return set shift test times trap true type ulimit umask unalias unset
wait
"""
_BASH = """
bind builtin caller compgen complete compopt declare dirs disown enable help history let local
logout mapfile popd pushd readarray shopt source suspend typeset
"""
_ZSH = """
autoload bindkey bye chdir compctl comparguments disable echotc echoti emulate float functions
getln integer limit log noglob print pushln rehash sched setopt unfunction unhash unlimit unsetopt
vared whence where which zcompile zformat zle zmodload zparseopts zstat zstyle
"""
BUILTINS = frozenset((_POSIX + _BASH + _ZSH).split())
"""Names that bash or zsh runs without looking at the PATH."""

REPOSITORY_RUNNERS = frozenset(
    ("make", "gmake", "just", "task", "rake", "invoke", "inv", "doit", "nox", "tox")
)
"""Programs that do what a file of the project says: their names say nothing outside of it."""

_PATH_ENTRIES = 64
"""More than this and a PATH is an accident; each entry costs one look at the file system."""


class Where(enum.Enum):
    """Where a program comes from, seen from one project."""

    OUTSIDE = "outside"
    INSIDE = "inside"
    UNKNOWN = "unknown"


def find_program(name: str, path: str) -> str | None:
    """Return the file that ``name`` (without a slash) runs under this PATH, or None."""
    for folder in path.split(os.pathsep)[:_PATH_ENTRIES]:
        candidate = os.path.join(folder, name)
        if folder.startswith("/") and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return candidate
    return None


def is_there(program: str, path: str, cwd: str) -> bool:
    """Whether a shell with this PATH and directory finds a file for ``program`` to run."""
    if "/" not in program:
        return find_program(program, path) is not None
    file = os.path.join(cwd, os.path.expanduser(program))
    return os.access(file, os.X_OK) and os.path.isfile(file)


def where_is(program: str, path: str, roots: Sequence[str]) -> Where:
    """Return where ``program`` comes from for a project with these folders (real paths).

    A name with a relative path is the project's own. The file's folder decides and not what a link
    points to: a virtual environment's ``python`` is a link to the system's.
    """
    if program in BUILTINS:
        return Where.OUTSIDE
    file = os.path.expanduser(program) if "/" in program else find_program(program, path)
    if file is None or not file.isprintable() or "$" in file:
        return Where.UNKNOWN
    if not file.startswith("/"):
        return Where.INSIDE
    folder = os.path.realpath(os.path.dirname(file))
    return Where.INSIDE if any(_is_below(folder, root) for root in roots) else Where.OUTSIDE


def _is_below(folder: str, root: str) -> bool:
    """Whether ``folder`` is ``root`` or lies in it; nothing counts as lying in ``/`` or a home."""
    if root == "/" or not (folder == root or folder.startswith(root + "/")):
        return False
    return root != os.path.realpath(os.path.expanduser("~"))
