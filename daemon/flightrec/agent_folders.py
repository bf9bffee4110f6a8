"""Where coding agents keep what is theirs in a person's home, and which variables move it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of an agent's in the home; ``variable`` moves it to ``$variable/below``."""

    path: str
    variable: str = ""
    below: str = ""


CLAUDE = Folder(".claude", "CLAUDE_CONFIG_DIR")
CODEX = Folder(".codex", "CODEX_HOME")
GEMINI = Folder(".gemini", "GEMINI_CLI_HOME", ".gemini")
QWEN = Folder(".qwen", "QWEN_HOME")
OPENCODE = Folder(".config/opencode", "XDG_CONFIG_HOME", "opencode")
COPILOT = Folder(".copilot", "COPILOT_HOME")
DROID = Folder(".factory")
CURSOR = Folder(".cursor")
CLINE = Folder("Documents/Cline/Rules")
CONTINUE = Folder(".continue", "CONTINUE_GLOBAL_DIR")
PI = Folder(".pi/agent", "PI_CODING_AGENT_DIR")
VIBE = Folder(".vibe", "VIBE_HOME")
GPTME = Folder(".config/gptme", "XDG_CONFIG_HOME", "gptme")


def agent_folder(folder: Folder, home: Path, environment: Mapping[str, str]) -> Path:
    """Return where an agent's folder is; a variable that is no absolute path moves nothing."""
    moved = environment.get(folder.variable, "") if folder.variable else ""
    return Path(moved) / folder.below if moved.startswith("/") else home / folder.path
