"""Where a row of ``agent_files`` lies for somebody: in this checkout, home and environment."""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from flightrec.agent_files import Kind, MemoryTarget
from flightrec.agent_folders import CLAUDE, agent_folder
from flightrec.errors import FlightrecError
from flightrec.location import Location
from flightrec.places import Place


def locate(
    target: MemoryTarget, place: Place, home: Path, environment: Mapping[str, str]
) -> Location:
    """Return where this file is for somebody at ``place``. Raises FlightrecError for nowhere."""
    if target.folder is None:
        root = Path(place.worktree)
        if not is_project(place, home):
            raise FlightrecError(f"{target.agent}: this is no project (a home or /); go into one")
        return Location(root / target.file, root)
    folder = agent_folder(target.folder, home, environment)
    boundary = home if folder.is_relative_to(home) else folder
    return Location(folder / _name(target, folder, place), boundary)


def is_project(place: Place, home: Path) -> bool:
    """Whether a file at the root of this place is read in one project, not in all below a home."""
    root = Path(place.worktree)
    return root != root.parent and not Path(os.path.realpath(home)).is_relative_to(root)


def _name(target: MemoryTarget, folder: Path, place: Place) -> str:
    if target.kind is not Kind.MEMORY:
        return target.file
    if "{gemini}" not in target.file:
        return target.file.format(claude=claude_slug(memory_root(place)))
    name = gemini_name(folder, place.worktree)
    if name is None:
        raise FlightrecError(
            f"{target.agent}: it was never used in this project, so there is no place for it yet;"
            f" start {target.agent} here once, or see --team"
        )
    return target.file.format(gemini=name)


# --- Claude Code: a memory belongs to the git root ---------------------------------------------


def claude_slug(path: str) -> str:
    """Return Claude Code's name for a folder: all but ASCII letters and digits become dashes."""
    # It counts in UTF-16, where some characters are two units.
    return "".join(
        char if char.isascii() and char.isalnum() else "-" * (1 + (ord(char) > 0xFFFF))
        for char in path
    )


def memory_root(place: Place) -> str:
    """Return the folder that Claude Code's memory of this place is named after.

    It belongs to the main checkout, in whichever worktree somebody is. Without one (a bare
    repository with worktrees) it belongs to the git folder; a submodule is a checkout of its own.
    """
    project = Path(place.project)
    if project.name == ".git":
        return str(project.parent)
    if place.project == place.worktree or _is_linked(Path(place.worktree)):
        return place.project
    return place.worktree


def _is_linked(worktree: Path) -> bool:
    """Whether this is one of several worktrees of a git folder elsewhere."""
    try:
        text = (worktree / ".git").read_text("utf-8", "surrogateescape")
    except OSError:
        return False
    return (worktree / text.removeprefix("gitdir:").strip() / "commondir").exists()


def folder_of_transcript(path: str) -> str:
    """Return the folder of Claude Code that a session's transcript is in; empty for another path.

    Where the person has moved the folder, that is all that a session says of it.
    """
    folder, *rest = path.rsplit("/", 3)
    is_one = len(rest) == 3 and rest[0] == "projects" and rest[2].endswith(".jsonl")
    is_plain = folder.startswith("/") and "\0" not in folder and ".." not in folder.split("/")
    return folder if is_one and is_plain else ""


def moved_claude_folder(folder: str, home: Path, environment: Mapping[str, str]) -> str:
    """Return the folder as it is to be remembered; empty where it is the usual one, or no good.

    Anything may have called a hook: so it must be the person's own folder, in the home or with the
    file that Claude Code keeps in a folder that it was moved to.
    """
    real, real_home = os.path.realpath(folder), os.path.realpath(home)
    usual = os.path.realpath(agent_folder(CLAUDE, home, environment))
    if real in (usual, real_home) or not _is_mine(real, stat.S_ISDIR):
        return ""
    if Path(real).is_relative_to(real_home):
        return folder
    return real if _is_mine(f"{real}/.claude.json", stat.S_ISREG) else ""


def _is_mine(path: str, is_kind: Callable[[int], bool]) -> bool:
    """Whether this is mine, no link, and nothing that everybody may write to."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return is_kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o002


# --- Gemini CLI: a memory belongs to the folder in which it was started ------------------------


class _Registry(msgspec.Struct):
    """Gemini CLI's ``projects.json``: its names for folders."""

    projects: dict[str, str]


def gemini_name(folder: Path, worktree: str) -> str | None:
    """Return Gemini CLI's name for a checkout; None where it has not given one.

    Names are given at the first start, made distinct by a number: only the registry knows them.
    """
    try:
        registry = msgspec.json.decode((folder / "projects.json").read_bytes(), type=_Registry)
    except (OSError, msgspec.DecodeError):
        return None
    name = registry.projects.get(worktree, "")
    plain = name.isascii() and name.replace("-", "").isalnum()
    return name if plain else None
