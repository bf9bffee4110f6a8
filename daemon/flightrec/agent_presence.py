"""Which coding agents somebody uses: by their program, by their folder in the home, by their files.

What is written for all agents is written for these alone.
"""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from flightrec.agent_files import TARGETS, Kind, find_target
from flightrec.agent_folders import CURSOR, Folder, agent_folder
from flightrec.ancestors import PROGRAMS
from flightrec.places import Place

_MORE_FOLDERS = {
    "aider": Folder(".aider"),
    "cline": Folder(".cline", "CLINE_DIR"),
    "cursor": CURSOR,
    "windsurf": Folder(".codeium/windsurf"),
}
"""Folders of agents beside those of their memory files."""


def is_used(agent: str, home: Path, environment: Mapping[str, str]) -> bool:
    """Whether the agent's program is on the PATH, or its folder in the home."""
    folders = {target.folder for target in TARGETS if target.agent == agent}
    folders.add(_MORE_FOLDERS.get(agent))
    if any(agent_folder(folder, home, environment).is_dir() for folder in folders if folder):
        return True
    programs = (program for program, name in PROGRAMS.items() if name == agent)
    path = environment.get("PATH", "")
    return any(shutil.which(program, path=path) for program in programs)


def is_used_in_checkout(agent: str, kinds: Iterable[Kind], place: Place) -> bool:
    """Whether one of these files of the agent is in the checkout, or the folder of its own."""
    targets = (find_target(agent, kind) for kind in kinds)
    signs = (target.sign or target.file for target in targets if target and not target.folder)
    return any(Path(place.worktree, sign).exists() for sign in signs)
