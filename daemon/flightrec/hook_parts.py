"""What an agent's settings get: hooks that call the helper, and variables for its shells. Pure.

A part adds itself to a document, knows itself again, and takes itself out of a document that others
have changed since. What an older version of us wrote is known as well.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flightrec.errors import FlightrecError
from flightrec.json_edit import JsonText
from flightrec.paths import HELPER_NAME
from flightrec.toml_edit import TomlText

HOOK_MARK = ": flightrec;"
"""How each of our hooks begins. An agent that runs its hooks in a shell that we see must not have
them recorded as its model's commands: ``unwrap.py`` and ``shim/sh.c`` know it."""

TIMEOUT_S = 5
"""A hook takes milliseconds; this is for a machine that hangs."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Where what was installed lies, and whether the person's shells are zsh."""

    folder: Path
    uses_zsh: bool = False

    @property
    def helper(self) -> Path:
        """The helper, which an upgrade of the package does not move."""
        return self.folder / HELPER_NAME

    @property
    def starter(self) -> Path:
        """What starts the daemon."""
        return self.folder / "flightrec"

    def hook_command(self, agent: str) -> str:
        """Return the line of a hook: silent and successful once the helper is gone."""
        helper, starter = shlex.quote(str(self.helper)), shlex.quote(str(self.starter))
        return f"{HOOK_MARK} [ -x {helper} ] && {helper} hook {agent} {starter} || true"

    def variables(self) -> dict[str, str]:
        """Return what makes an agent's shells pass by the helper.

        SHLVL, since a first bash with a socket as its standard input takes itself for rsh's, and
        does not read BASH_ENV. ZDOTDIR only for people with zsh: programs also write there.
        """
        found = {"BASH_ENV": str(self.folder / "bash-env.bash"), "SHLVL": "1"}
        return found | ({"ZDOTDIR": str(self.folder / "zdotdir")} if self.uses_zsh else {})


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event of an agent, and for which tool: empty for all, or where it is not about tools."""

    name: str
    matcher: str = ""
    limit: int = 0
    """The longest time-out that the agent takes, in its unit; 0 for any."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """A table of hooks below ``hooks``, by event.

    ``nested``: each entry is a group with a matcher and hooks of its own, as Claude Code has them.
    ``command`` and ``timeout`` are keys, ``unit`` is what a second is in that key.
    """

    events: tuple[HookEvent, ...]
    nested: bool = True
    command: str = "command"
    timeout: str = "timeout"
    unit: int = 1
    more: tuple[tuple[str, str], ...] = (("type", "command"),)

    def entries(self, agent: str, setup: Setup) -> dict[str, dict[str, Any]]:
        """Return what each event gets."""
        return {event.name: self._entry(event, setup.hook_command(agent)) for event in self.events}

    def _entry(self, event: HookEvent, line: str) -> dict[str, Any]:
        timeout = TIMEOUT_S * self.unit
        hook: dict[str, Any] = {**dict(self.more), self.command: line}
        if self.timeout:
            hook[self.timeout] = min(timeout, event.limit) if event.limit else timeout
        if not self.nested:
            return hook
        matcher = {"matcher": event.matcher} if event.matcher else {}
        return {**matcher, "hooks": [hook]}

    def is_in(self, document: JsonText, agent: str, setup: Setup) -> bool:
        """Whether all of it is there, and nothing else of ours."""
        wanted = self.entries(agent, setup)
        found = {name: [e for e in entries if _is_ours(e)] for name, entries in _all(document)}
        return {name: ours for name, ours in found.items() if ours} == {
            name: [entry] for name, entry in wanted.items()
        }

    def has_any(self, document: JsonText) -> bool:
        """Whether anything of ours is there."""
        return any(_is_ours(entry) for _, entries in _all(document) for entry in entries)

    def add(self, document: JsonText, agent: str, setup: Setup) -> None:
        """Put it behind what is there."""
        for name, entry in self.entries(agent, setup).items():
            document.append(["hooks", name], entry)

    def remove(self, document: JsonText) -> None:
        """Take out what is ours, and what is empty without it."""
        if not self.has_any(document):
            return
        for name, entries in list(_all(document)):
            for place in reversed(range(len(entries))):
                _remove_from(document, ["hooks", name, place], entries[place])
            if entries and document.get(["hooks", name]) == []:
                document.remove(["hooks", name])
        if document.get(["hooks"]) == {}:
            document.remove(["hooks"])


def _all(document: JsonText) -> Iterator[tuple[str, list[Any]]]:
    hooks = document.get(["hooks"])
    if hooks is not None and not isinstance(hooks, dict):
        raise FlightrecError("hooks is no object")
    for name, entries in (hooks or {}).items():
        if isinstance(entries, list):
            yield name, entries


def _is_ours(entry: object) -> bool:
    """Whether an entry holds a hook of ours."""
    if isinstance(entry, list):
        return any(_is_ours(item) for item in entry)
    if not isinstance(entry, dict):
        return False
    inner = entry.get("hooks")
    lines = (entry.get("command"), entry.get("bash"))
    return _is_ours(inner) or any(isinstance(line, str) and _is_our_line(line) for line in lines)


def _is_our_line(line: str) -> bool:
    return line.startswith(HOOK_MARK) or (HELPER_NAME in line and " hook " in line)


def _remove_from(document: JsonText, path: Sequence[str | int], entry: object) -> None:
    """Remove an entry of ours, but leave a group that the person put more into."""
    if not _is_ours(entry) or not isinstance(entry, dict):
        return
    inner = entry.get("hooks")
    if not isinstance(inner, list) or all(map(_is_ours, inner)):
        document.remove(path)
        return
    for place in reversed(range(len(inner))):
        if _is_ours(inner[place]):
            document.remove([*path, "hooks", place])


# --- variables -----------------------------------------------------------------------------------

KEPT = {"BASH_ENV": "FLIGHTREC_BASH_ENV", "ZDOTDIR": "FLIGHTREC_ZDOTDIR"}
"""Where the person's own value is kept, which our scripts go on to."""

_OURS = {
    "BASH_ENV": ("/flightrec/bash-env.bash",),
    "ZDOTDIR": ("/flightrec/zdotdir",),
    "SHLVL": ("1",),
}


def _is_our_value(name: str, value: object) -> bool:
    return isinstance(value, str) and value.endswith(_OURS[name])


@dataclass(frozen=True, slots=True)
class Variables:
    """Variables for the agent's shells, in the table at ``path`` of a JSON or TOML document.

    ``shells_alone`` tells that nothing but those shells gets them: then there is no need to ask
    whether the person uses zsh.
    """

    path: tuple[str, ...]
    names: tuple[str, ...]
    shells_alone: bool = False

    def _wanted(self, setup: Setup) -> Mapping[str, str]:
        everywhere = replace(setup, uses_zsh=setup.uses_zsh or self.shells_alone)
        return {name: text for name, text in everywhere.variables().items() if name in self.names}

    def is_in(self, document: JsonText | TomlText, _agent: str, setup: Setup) -> bool:
        """Whether all of it is there."""
        wanted, allowed = self._wanted(setup), self._wanted(replace(setup, uses_zsh=True))
        found = {name: self._get(document, name) for name in self.names}
        missing = {name for name in wanted if found[name] is None}
        others = {name for name in KEPT if found.get(name) not in (None, allowed.get(name))}
        return not missing and not any(
            name in wanted or _is_our_value(name, found[name]) for name in others
        )

    def has_any(self, document: JsonText | TomlText) -> bool:
        """Whether anything of ours is there."""
        return any(
            _is_our_value(name, self._get(document, name)) for name in self.names if name in KEPT
        )

    def add(self, document: JsonText | TomlText, _agent: str, setup: Setup) -> None:
        """Set them; the person's own values are kept beside ours."""
        for name, value in self._wanted(setup).items():
            persons = self._get(document, name)
            if persons == value:
                continue
            if persons is not None and name not in KEPT:
                continue  # whatever the person has for SHLVL will do
            if isinstance(persons, str):
                self._set(document, KEPT[name], persons)
            self._set(document, name, value)

    def remove(self, document: JsonText | TomlText) -> None:
        """Give the person's own values back, and take the rest away."""
        had_any = self.has_any(document)
        for name in self.names:
            if not had_any or not _is_our_value(name, self._get(document, name)):
                continue
            kept = KEPT.get(name, "")
            persons = self._get(document, kept) if kept else None
            if isinstance(persons, str):
                self._set(document, name, persons)
                self._remove(document, kept)
            else:
                self._remove(document, name)
        if isinstance(document, JsonText) and had_any and document.get(self.path) == {}:
            document.remove(self.path)

    def _get(self, document: JsonText | TomlText, name: str) -> object:
        if isinstance(document, TomlText):
            return document.get(self.path, name)
        return document.get([*self.path, name])

    def _set(self, document: JsonText | TomlText, name: str, value: str) -> None:
        if isinstance(document, TomlText):
            document.set(self.path, name, value)
        else:
            document.set([*self.path, name], value)

    def _remove(self, document: JsonText | TomlText, name: str) -> None:
        if isinstance(document, TomlText):
            document.remove(self.path, name)
        else:
            document.remove([*self.path, name])


@dataclass(frozen=True, slots=True)
class Default:
    """A setting that has to be there. Where a person has set it to something else, it stays."""

    name: str
    value: bool | int

    def is_in(self, document: JsonText, _agent: str, _setup: Setup) -> bool:
        """Whether it is set, to whatever."""
        return document.get([self.name]) is not None

    def has_any(self, _document: JsonText) -> bool:
        """Nobody knows who has set it."""
        return False

    def add(self, document: JsonText, _agent: str, _setup: Setup) -> None:
        """Set it where it is not set."""
        if document.get([self.name]) is None:
            document.set([self.name], self.value)

    def remove(self, document: JsonText) -> None:
        """Take it out again; only for a document that we added it to."""
        if document.get([self.name]) == self.value:
            document.remove([self.name])


Part = Hooks | Variables | Default
