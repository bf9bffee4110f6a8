"""Where coding agents keep what they read at the start of a session: a table, one row a file.

Each row was seen with the real agent, or read in its source: what is put into the file reaches the
model. Limits are the agent's own where it has one.
"""

import enum
from dataclasses import dataclass

from flightrec import agent_folders
from flightrec.agent_folders import Folder
from flightrec.export import Form


class Kind(enum.StrEnum):
    """Whose a file is, and so what belongs into it.

    A person's file of an agent that has neither MEMORY nor LOCAL also takes the rules of the
    projects in which the person exported, each under the project's name.
    """

    MEMORY = "memory"  # the agent's own memory of one project, in the person's home
    LOCAL = "local"  # in the checkout, for one person: git must not track it
    USER = "user"  # in the person's home, read in all projects
    TEAM = "team"  # in the checkout, tracked by git as a rule
    OWN = "own"  # a file that the person named


_DEFAULT = Form()


@dataclass(frozen=True, slots=True)
class MemoryTarget:
    """One file that an agent reads: in ``folder``, or below the checkout's root where that is None.

    ``file`` may hold ``{claude}`` or ``{gemini}``: these agents' names for a project. ``sign`` is
    what shows in a checkout that the agent is used there, where that is not the file itself.
    """

    agent: str
    kind: Kind
    file: str
    folder: Folder | None = None
    form: Form = _DEFAULT
    sign: str = ""

    @property
    def shown(self) -> str:
        """The path as documents show it."""
        path = f"~/{self.folder.path}/{self.file}" if self.folder else self.file
        return path.format(claude="PROJECT", gemini="PROJECT")


_LARGE = Form(lines_max=400)

_CODEX = Form(lines_max=400, bytes_max=20_000)
_CODEX_USER = Form(lines_max=400, bytes_max=12_000)
"""Codex cuts what it finds in all AGENTS.md together at 32 KiB."""

_WINDSURF = Form(lines_max=400, bytes_max=6_000)

_CURSOR = Form(
    header=b"---\ndescription: Commands that failed here and what worked\nalwaysApply: true\n---\n"
)

CLAUDE_MEMORY = MemoryTarget(
    "claude",
    Kind.MEMORY,
    "projects/{claude}/memory/MEMORY.md",
    agent_folders.CLAUDE,
    Form(lines_max=190),
)
"""200 lines and 24.4 KB of it are read; the only file that is written without being asked for."""

# Qwen Code has a MEMORY.md as well, and writes it anew from other files whenever it remembers
# something: a block in it would not last. Its QWEN.local.md is the person's.
TARGETS: tuple[MemoryTarget, ...] = (
    CLAUDE_MEMORY,
    MemoryTarget("claude", Kind.LOCAL, "CLAUDE.local.md"),
    MemoryTarget("claude", Kind.USER, "CLAUDE.md", agent_folders.CLAUDE, _LARGE),
    MemoryTarget("claude", Kind.TEAM, "CLAUDE.md", form=_LARGE),
    MemoryTarget("codex", Kind.USER, "AGENTS.md", agent_folders.CODEX, _CODEX_USER),
    MemoryTarget("codex", Kind.TEAM, "AGENTS.md", form=_CODEX),
    MemoryTarget("gemini", Kind.MEMORY, "tmp/{gemini}/memory/MEMORY.md", agent_folders.GEMINI),
    MemoryTarget("gemini", Kind.USER, "GEMINI.md", agent_folders.GEMINI, _LARGE),
    MemoryTarget("gemini", Kind.TEAM, "GEMINI.md", form=_LARGE),
    MemoryTarget("qwen", Kind.LOCAL, ".qwen/QWEN.local.md"),
    MemoryTarget("qwen", Kind.USER, "QWEN.md", agent_folders.QWEN, _LARGE),
    MemoryTarget("qwen", Kind.TEAM, "QWEN.md", form=_LARGE),
    MemoryTarget("opencode", Kind.USER, "AGENTS.md", agent_folders.OPENCODE, _LARGE),
    MemoryTarget("opencode", Kind.TEAM, "AGENTS.md", form=_CODEX),
    MemoryTarget("copilot", Kind.USER, "copilot-instructions.md", agent_folders.COPILOT, _LARGE),
    MemoryTarget("copilot", Kind.TEAM, ".github/copilot-instructions.md", form=_LARGE),
    MemoryTarget("droid", Kind.USER, "AGENTS.md", agent_folders.DROID, _LARGE),
    MemoryTarget("droid", Kind.TEAM, "AGENTS.md", form=_CODEX),
    MemoryTarget("cline", Kind.USER, "flightrec.md", agent_folders.CLINE, _LARGE),
    MemoryTarget("cline", Kind.TEAM, ".clinerules/flightrec.md", form=_LARGE, sign=".clinerules"),
    MemoryTarget("continue", Kind.USER, "rules/flightrec.md", agent_folders.CONTINUE, _LARGE),
    MemoryTarget(
        "continue", Kind.TEAM, ".continue/rules/flightrec.md", form=_LARGE, sign=".continue"
    ),
    MemoryTarget("pi", Kind.USER, "AGENTS.md", agent_folders.PI, _LARGE),
    MemoryTarget("pi", Kind.TEAM, "AGENTS.md", form=_CODEX),
    MemoryTarget("vibe", Kind.USER, "AGENTS.md", agent_folders.VIBE, _LARGE),
    MemoryTarget("vibe", Kind.TEAM, "AGENTS.md", form=_CODEX),
    MemoryTarget("gptme", Kind.USER, "AGENTS.md", agent_folders.GPTME, _LARGE),
    MemoryTarget("gptme", Kind.TEAM, "AGENTS.md", form=_CODEX),
    MemoryTarget("cursor", Kind.TEAM, ".cursor/rules/flightrec.mdc", form=_CURSOR, sign=".cursor"),
    MemoryTarget("windsurf", Kind.TEAM, ".windsurfrules", form=_WINDSURF),
    MemoryTarget("aider", Kind.TEAM, "CONVENTIONS.md", form=_LARGE),
)

AGENTS = tuple(dict.fromkeys(target.agent for target in TARGETS))

READ_BY_HAND = {"aider": "aider reads it when told to: aider --read CONVENTIONS.md"}
"""What to do for agents that read no file by themselves."""


def find_target(agent: str, kind: Kind) -> MemoryTarget | None:
    """Return the row of an agent's file of one kind; None where it has none."""
    return next((t for t in TARGETS if (t.agent, t.kind) == (agent, kind)), None)


def personal_targets(agent: str) -> list[MemoryTarget]:
    """Return an agent's files for one person alone: of the project, and of all projects."""
    project = find_target(agent, Kind.MEMORY) or find_target(agent, Kind.LOCAL)
    user = find_target(agent, Kind.USER)
    return [target for target in (project, user) if target is not None]


def holds_projects(agent: str) -> bool:
    """Whether an agent has no file for one person's one project, so that its user's takes that."""
    return all(target.kind is Kind.USER for target in personal_targets(agent))
