"""Hooks for one run of an agent, without a change to any file of the person's: a table of ways.

An agent that has our hooks in its settings already gets none here, nor one for which the person has
used the same way. Codex has none: it would run all hooks that were never looked at. opencode has
none: before its first plugin it waits for its registry, for minutes where that is out of reach.
Copilot CLI has none: its option for BASH_ENV is written to its settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from flightrec.hook_clients import HookClient, HookFile, find_client
from flightrec.hook_documents import Wanted, with_parts
from flightrec.hook_files import (
    Person,
    plugin_for,
    project_targets,
    state_of,
    user_targets,
)
from flightrec.hook_parts import Hooks, Setup

QWEN_DEFAULTS = Path("/etc/qwen-code/system-defaults.json")
"""What QWEN_CODE_SYSTEM_DEFAULTS_PATH takes the place of."""

PI_ACTS = frozenset(("install", "remove", "uninstall", "update", "list", "config"))
"""Words of pi that start no session, and take no option before them."""


@dataclass(frozen=True, slots=True)
class Start:
    """How an agent is started: its words, and what is added to its environment."""

    words: tuple[str, ...]
    environment: Mapping[str, str]

    def with_option(self, *option: str) -> "Start":
        """Return the same with an option behind the program's name."""
        return replace(self, words=(self.words[0], *option, *self.words[1:]))

    def with_variable(self, name: str, value: str) -> "Start":
        """Return the same with a variable."""
        return replace(self, environment={**self.environment, name: value})


@dataclass(frozen=True, slots=True)
class HookFolder:
    """Where this run's files may lie, and what hooks are to call."""

    path: Path
    setup: Setup

    def write(self, name: str, data: bytes) -> Path:
        """Write a file of this run."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        path = self.path / name
        path.write_bytes(data)
        return path


def with_hooks(start: Start, folder: HookFolder, person: Person, root: Path) -> Start:
    """Return the start with hooks where this agent can be given them for once.

    ``root`` is the checkout that it is started in. Raises FlightrecError or OSError.
    """
    name = Path(start.words[0]).name
    way = WAYS.get(name)
    if way is None or is_installed(find_client(name), person, root):
        return start
    return way(start, folder)


def is_installed(client: HookClient, person: Person, root: Path) -> bool:
    """Whether this agent will find hooks of ours by itself."""
    targets = [*user_targets(client, person), *project_targets(client, root)]
    return any(
        _has_hooks(target.file) and state_of(target, person) != "missing" for target in targets
    )


def _has_hooks(file: HookFile) -> bool:
    return not file.parts or any(isinstance(part, Hooks) for part in file.parts)


def _settings(agent: str, folder: HookFolder) -> Path:
    """Write a settings file with hooks and nothing else; shells are seen to by the environment."""
    parts = tuple(p for p in find_client(agent).files[0].parts if isinstance(p, Hooks))
    file = HookFile("settings.json", parts=parts)
    data, _ = with_parts(None, file, Wanted(agent, folder.setup), None)
    return folder.write(f"{agent}.json", data)


def _plugin(agent: str, folder: HookFolder) -> Path:
    return folder.write(f"{agent}.js", plugin_for(agent, folder.setup).encode())


def _claude(start: Start, folder: HookFolder) -> Start:
    if any(word.partition("=")[0] == "--settings" for word in start.words):
        return start
    return start.with_option("--settings", str(_settings("claude", folder)))


def _qwen(start: Start, folder: HookFolder) -> Start:
    name = "QWEN_CODE_SYSTEM_DEFAULTS_PATH"
    if name in start.environment or QWEN_DEFAULTS.exists():
        return start
    return start.with_variable(name, str(_settings("qwen", folder)))


def _pi(start: Start, folder: HookFolder) -> Start:
    if start.words[1:2] and start.words[1] in PI_ACTS:
        return start
    return start.with_option("--extension", str(_plugin("pi", folder)))


WAYS: dict[str, Callable[[Start, HookFolder], Start]] = {
    "claude": _claude,
    "qwen": _qwen,
    "pi": _pi,
}
