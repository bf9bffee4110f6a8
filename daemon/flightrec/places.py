"""Which project and worktree a directory belongs to, read from the file system without git."""

import os
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command ran.

    ``project`` is the real path of git's common folder (so that all worktrees are one project), or
    of the directory itself outside git. ``worktree`` is the checkout's root, or the directory.
    ``mine`` is false in a repository that belongs to somebody else.
    """

    project: str
    worktree: str
    mine: bool = True
    in_git: bool = False


def find_place(cwd: str) -> Place:
    """Return the place of ``cwd``; a directory that is gone is its own place."""
    real = os.path.realpath(cwd)
    folder = real
    while True:
        dot_git = os.path.join(folder, ".git")
        common = _common_folder(dot_git)
        if common is not None:
            return Place(common, folder, _is_mine(folder, dot_git), in_git=True)
        parent = os.path.dirname(folder)
        if parent == folder:
            return Place(real, real)
        folder = parent


def _common_folder(dot_git: str) -> str | None:
    """Return the real path of the common git folder behind ``.git``, or None if there is none."""
    if os.path.isdir(dot_git):
        return os.path.realpath(dot_git) if os.path.exists(os.path.join(dot_git, "HEAD")) else None
    try:
        with open(dot_git, encoding="utf-8", errors="surrogateescape") as file:
            line = file.read(4096).strip()
    except OSError:
        return None
    if not line.startswith("gitdir:"):
        return None
    git_dir = os.path.join(os.path.dirname(dot_git), line.removeprefix("gitdir:").strip())
    try:
        with open(os.path.join(git_dir, "commondir"), encoding="utf-8") as file:
            git_dir = os.path.join(git_dir, file.read(4096).strip())
    except OSError:
        pass  # a submodule, or --separate-git-dir: its git folder is its own
    return os.path.realpath(git_dir)


def _is_mine(*paths: str) -> bool:
    """Whether git would trust a repository made of these files (its safe.directory rule)."""
    me = os.geteuid()
    try:
        return all(os.lstat(path).st_uid == me for path in paths)
    except OSError:
        return False


class Places:
    """Remembers answers for a while; a ``cd`` loop asks for the same few directories."""

    def __init__(self, size: int = 512) -> None:
        self._cached = lru_cache(maxsize=size)(lambda cwd, _window: find_place(cwd))

    def find(self, cwd: str, now_s: float) -> Place:
        """Return the place of ``cwd``; an answer is at most five seconds old (git init, clone)."""
        return self._cached(cwd, int(now_s / 5))
