"""Which project and worktree a command line works in, read from the file system without git."""

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from functools import lru_cache

from flightrec.shell_words import SimpleCommand, parse

FILE_MAX = 64 * 1024
"""Bytes of one of git's small files that are read."""

LEAD_MAX = 2048
"""Characters of a line in which a leading ``cd`` is looked for."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command ran.

    ``project`` is the real path of git's common folder (so that all worktrees are one project), or
    of the directory itself outside git. ``worktree`` is the checkout's root, or the directory.
    ``mine`` is false in a repository that belongs to somebody else. ``origin`` is equal for clones
    that name the same origin, and empty where none is named; anybody can name any.
    """

    project: str
    worktree: str
    mine: bool = True
    in_git: bool = False
    origin: str = ""


def find_place(cwd: str) -> Place:
    """Return the place of ``cwd``; a directory that is gone is its own place."""
    real = os.path.realpath(cwd)
    folder = real
    while True:
        dot_git = os.path.join(folder, ".git")
        git_dir = git_folder(folder)
        if git_dir is not None:
            common = _common_folder(git_dir, folder)
            mine = _is_mine(folder, dot_git)
            if common is None:
                return Place(folder, folder, mine)
            origin = _origin_of(common) if mine else ""
            return Place(common, folder, mine, in_git=True, origin=origin)
        parent = os.path.dirname(folder)
        if parent == folder:
            return Place(real, real)
        folder = parent


def git_folder(worktree: str) -> str | None:
    """Return the git folder of the checkout with this root, or None where it is none."""
    dot_git = os.path.join(worktree, ".git")
    if os.path.isdir(dot_git):
        return dot_git if os.path.exists(os.path.join(dot_git, "HEAD")) else None
    line = _read(dot_git).strip()
    if not line.startswith("gitdir:"):
        return None
    return os.path.join(worktree, line.removeprefix("gitdir:").strip())


def _common_folder(git_dir: str, worktree: str) -> str | None:
    """Return the real path of the folder that all worktrees share; None for a borrowed one.

    That of a submodule, or one made with --separate-git-dir, is its own. A checkout from anywhere
    may name any folder of the person's: it is a worktree of those alone that know it.
    """
    own = os.path.realpath(git_dir)
    named = _read(os.path.join(own, "commondir")).strip()
    if not named:
        is_another_ones = os.path.basename(own) == ".git" and os.path.dirname(own) != worktree
        return None if is_another_ones else own
    common = os.path.realpath(os.path.join(own, named))
    known = os.path.join(own, _read(os.path.join(own, "gitdir")).strip())
    is_ours = os.path.realpath(known) == os.path.realpath(os.path.join(worktree, ".git"))
    return common if is_ours and os.path.dirname(own) == f"{common}/worktrees" else None


def _is_mine(*paths: str) -> bool:
    """Whether git would trust a repository made of these files (its safe.directory rule)."""
    me = os.geteuid()
    try:
        return all(os.lstat(path).st_uid == me for path in paths)
    except OSError:
        return False


def _read(path: str) -> str:
    """Return a small file's text, empty where there is none.

    Without waiting: in a repository from anywhere it may be a FIFO that nobody writes to.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.fsdecode(os.read(descriptor, FILE_MAX)) if is_file else ""
    except OSError:
        return ""
    finally:
        os.close(descriptor)


# -- origin --------------------------------------------------------------------------------------

_ORIGIN = re.compile(
    r"^[ \t]*\[remote[ \t]+\"origin\"\][^\n]*\n((?:(?![ \t]*\[)[^\n]*\n?)*)", re.MULTILINE
)
_URL = re.compile(r"^[ \t]*url[ \t]*=[ \t]*\"?([^\s\"#;]+)", re.MULTILINE | re.IGNORECASE)
_WITH_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/@]*@)?([^/:]+)(?::\d+)?/+(.+)", re.IGNORECASE)
_AS_SCP = re.compile(r"(?:[^/@:]*@)?([^/:]+):/*(.+)")


def _origin_of(common: str) -> str:
    section = _ORIGIN.search(_read(os.path.join(common, "config")))
    url = section and _URL.search(section[1])
    return origin_of_url(url[1]) if url else ""


def origin_of_url(url: str) -> str:
    """Return what is equal for all ways to name one repository: a hash, for a URL may hold a token.

    A path that is not absolute says nothing.
    """
    named = _WITH_SCHEME.fullmatch(url) or _AS_SCP.fullmatch(url)
    if named:
        url = f"{named[1].lower()}/{named[2]}"
    elif not url.startswith("/"):
        return ""
    url = url.rstrip("/").removesuffix(".git")
    return hashlib.blake2b(os.fsencode(url), digest_size=12).hexdigest()


# -- cd DIR && … ---------------------------------------------------------------------------------

_BEGINS_WITH_CD = re.compile(r"\s*cd\s")
_HOME = re.compile(r"~(?:/[\w.+@-]+)*/?")
_GOING_ON = ("&&", ";", "\n")


def working_folder(command: str, cwd: str) -> str:
    """Return where a command line does its work: ``cwd``, or where its leading ``cd`` goes.

    ``cd DIR && make`` is a command of DIR's project, wherever it is typed. ``cd DIR`` alone is not,
    nor what goes to a place that only the shell knows.
    """
    if not _BEGINS_WITH_CD.match(command):
        return cwd
    line = parse(command[:LEAD_MAX])
    folder = cwd
    for segment, operator in zip(line.segments, line.operators, strict=False):
        if segment.program != "cd" or segment.depth or operator.text not in _GOING_ON:
            break
        target = _target(segment)
        if target is None:
            return cwd
        folder = os.path.normpath(os.path.join(folder, target))
    return folder


def _target(segment: SimpleCommand) -> str | None:
    """Return where a ``cd`` goes, None where nobody can tell."""
    arguments = [word for word in segment.arguments if word.text != "--"]
    if len(arguments) != 1 or arguments[0].text in ("", "-"):
        return None
    (word,) = arguments
    if word.literal:
        return word.text
    if not word.quoted and _HOME.fullmatch(word.text):
        return os.path.expanduser(word.text)
    return None


class Places:
    """Remembers answers for a while; a ``cd`` loop asks for the same few directories."""

    def __init__(self, size: int = 512) -> None:
        self._cached = lru_cache(maxsize=size)(lambda cwd, _window: find_place(cwd))

    def find(self, cwd: str, now_s: float) -> Place:
        """Return the place of ``cwd``; an answer is at most five seconds old (git init, clone)."""
        return self._cached(cwd, int(now_s / 5))

    def find_for(self, command: str, cwd: str, now_s: float) -> Place:
        """Return the place that a command line works in."""
        return self.find(existing_folder(working_folder(command, cwd), cwd), now_s)


def existing_folder(folder: str, cwd: str) -> str:
    """Return ``folder``, or ``cwd`` where there is no such folder (here; in a container, maybe)."""
    return folder if folder == cwd or os.path.isdir(folder) else cwd
