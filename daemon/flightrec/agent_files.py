"""Where coding agents keep what they read at the start of a session: a table, and how to read it.

Each row was seen with the real agent: a marker put into the file reached the model.
"""

import enum
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flightrec.export import Form
from flightrec.memory_file import Location
from flightrec.places import Place


class Holds(enum.Enum):
    """Which rules belong into a file."""

    PROJECT = "project"  # those seen in this project
    USER = "user"  # those of scope user that are shared


_DEFAULT = Form()
_LARGE = Form(lines_max=400)
_CURSOR = Form(
    header=b"---\ndescription: Commands that failed here and what worked\nalwaysApply: true\n---\n"
)


@dataclass(frozen=True, slots=True)
class MemoryTarget:
    """One file that an agent reads.

    ``folder`` is below the home, or empty for the checkout's root; ``variable`` moves it. ``file``
    may hold ``{slug}``, Claude Code's name for a project. A ``team`` file is usually tracked by
    git: it is written only when it is asked for by that name.
    """

    agent: str
    file: str
    holds: Holds
    folder: str = ""
    variable: str = ""
    team: bool = False
    form: Form = _DEFAULT


def _project(agent: str, file: str, form: Form = _LARGE) -> MemoryTarget:
    return MemoryTarget(agent, file, Holds.PROJECT, team=True, form=form)


def _user(agent: str, folder: str, file: str, variable: str = "") -> MemoryTarget:
    return MemoryTarget(agent, file, Holds.USER, folder, variable, form=_LARGE)


CLAUDE_MEMORY = MemoryTarget(
    "claude",
    "projects/{slug}/memory/MEMORY.md",
    Holds.PROJECT,
    ".claude",
    "CLAUDE_CONFIG_DIR",
)
"""200 lines and 24.4 KB of it are read; the only file that is written without being asked for."""

TARGETS: tuple[MemoryTarget, ...] = (
    CLAUDE_MEMORY,
    _project("claude", "CLAUDE.md"),
    _user("codex", ".codex", "AGENTS.md", "CODEX_HOME"),
    _project("codex", "AGENTS.md"),
    _user("gemini", ".gemini", "GEMINI.md"),
    _project("gemini", "GEMINI.md"),
    _user("qwen", ".qwen", "QWEN.md"),
    _project("qwen", "QWEN.md"),
    _user("opencode", ".config/opencode", "AGENTS.md"),
    _project("opencode", "AGENTS.md"),
    _user("copilot", ".copilot", "copilot-instructions.md"),
    _project("copilot", ".github/copilot-instructions.md"),
    _user("droid", ".factory", "AGENTS.md"),
    _project("droid", "AGENTS.md"),
    _user("cline", "Documents/Cline/Rules", "flightrec.md"),
    _project("cline", ".clinerules/flightrec.md"),
    _user("continue", ".continue/rules", "flightrec.md"),
    _project("continue", ".continue/rules/flightrec.md"),
    _user("pi", ".pi/agent", "AGENTS.md"),
    _project("pi", "AGENTS.md"),
    _user("vibe", ".vibe", "AGENTS.md"),
    _project("vibe", "AGENTS.md"),
    _user("gptme", ".config/gptme", "AGENTS.md"),
    _project("gptme", "AGENTS.md"),
    _project("cursor", ".cursor/rules/flightrec.mdc", _CURSOR),
    _project("windsurf", ".windsurfrules"),
    _project("aider", "CONVENTIONS.md"),
)

AGENTS = tuple(dict.fromkeys(target.agent for target in TARGETS))


def find_targets(agent: str, *, team: bool) -> list[MemoryTarget]:
    """Return the files of one agent: the person's own, or those that a team shares."""
    return [target for target in TARGETS if target.agent == agent and target.team == team]


def locate(
    target: MemoryTarget, place: Place, home: Path, environment: Mapping[str, str]
) -> Location | None:
    """Return where this file is for somebody at ``place``.

    None where there is none: a team's file in a home or in ``/`` would be read everywhere.
    """
    if not target.folder:
        root = Path(place.worktree)
        if root == root.parent or root == Path(os.path.realpath(home)):
            return None
        return Location(root / target.file, root)
    moved = environment.get(target.variable, "") if target.variable else ""
    folder = Path(moved) if moved.startswith("/") else home / target.folder
    boundary = home if folder.is_relative_to(home) else folder
    return Location(folder / target.file.format(slug=claude_slug(memory_root(place))), boundary)


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
