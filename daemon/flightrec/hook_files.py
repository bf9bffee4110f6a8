"""Puts our hooks into the settings of agents, and takes them out again: the edge of it.

The manifest of the installation notes what was added where, so that all of it can be taken back.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flightrec.agent_folders import agent_folder
from flightrec.errors import FlightrecError
from flightrec.git_exclude import exclude_file, excluding, is_tracked
from flightrec.hook_clients import CLIENTS, HookClient, HookFile, Syntax, find_client
from flightrec.hook_documents import (
    Addition,
    Wanted,
    has_any,
    has_parts,
    plugin_text,
    with_parts,
    without_parts,
)
from flightrec.hook_parts import Setup
from flightrec.installation import (
    Noted,
    data_folder,
    read_manifest,
    without_line,
    write_manifest,
)
from flightrec.location import Edit, Location
from flightrec.memory_file import preview, read_file, update_file
from flightrec.paths import Paths, find_resource
from flightrec.places import find_place


@dataclass(frozen=True, slots=True)
class Target:
    """One file of one agent, of the person or of a project."""

    client: HookClient
    file: HookFile
    location: Location
    is_project: bool = False

    @property
    def name(self) -> str:
        """The path below the home or the checkout."""
        return str(self.location.path.relative_to(self.location.boundary))

    @property
    def is_shared(self) -> bool:
        """Whether others get the file, too, with the project."""
        return self.is_project and (
            self.file.shared or is_tracked(self.location.boundary, self.name)
        )


@dataclass(frozen=True, slots=True)
class Person:
    """Whose settings: home and state, and the environment that moves them."""

    paths: Paths
    environment: Mapping[str, str]

    @property
    def setup(self) -> Setup:
        """Where what hooks call lies."""
        shell = Path(self.environment.get("SHELL", "")).name
        return Setup(data_folder(self.paths.home), uses_zsh=shell == "zsh")


def folder_of(client: HookClient, person: Person) -> Path:
    """Return where an agent keeps its settings."""
    return agent_folder(client.folder, person.paths.home, person.environment)


def user_targets(client: HookClient, person: Person) -> list[Target]:
    """Return the person's own files of this agent."""
    folder, home = folder_of(client, person), person.paths.home
    boundary = home if folder.is_relative_to(home) else _nearest_folder(folder)
    return [
        Target(client, file, Location(folder / file.file, boundary))
        for file in client.files
        if file.file
    ]


def _nearest_folder(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def project_targets(client: HookClient, root: Path) -> list[Target]:
    """Return this agent's files in the checkout at ``root``; none where it has no good ones."""
    return [
        Target(client, file, Location(root / file.project_file, root), is_project=True)
        for file in client.files
        if file.project_file
    ]


def is_here(client: HookClient, person: Person) -> bool:
    """Whether the person seems to use this agent."""
    found = shutil.which(client.program, path=person.environment.get("PATH"))
    return found is not None or folder_of(client, person).is_dir()


def installed_targets(person: Person) -> Iterator[Target]:
    """Yield every file that has something of ours: what was noted, and the usual places."""
    noted = read_manifest(person.paths.home).settings
    seen = set()
    for path, note in noted.items():
        target = _noted_target(Path(path), note, person)
        if target is not None:
            seen.add(target.location.path)
            yield target
    for client in CLIENTS:
        for target in user_targets(client, person):
            if target.location.path not in seen and _has_any(target):
                yield target


def _noted_target(path: Path, note: Noted, person: Person) -> Target | None:
    with contextlib.suppress(StopIteration):
        client = find_client(note.agent)
        file = next(file for file in client.files if file.file == note.file)
        if not note.project:
            home = person.paths.home
            boundary = home if path.is_relative_to(home) else _nearest_folder(path.parent)
            return Target(client, file, Location(path, boundary))
        return Target(client, file, Location(path, Path(note.project)), is_project=True)
    return None


def _has_any(target: Target) -> bool:
    try:
        data = read_file(target.location)
        return data is not None and has_any(data, target.file)
    except FlightrecError:
        return False


def find_addition(target: Target, person: Person) -> Addition | None:
    """Return what the manifest says of a file."""
    note = read_manifest(person.paths.home).settings.get(str(target.location.path))
    return None if note is None else note.addition


# --- with and without ----------------------------------------------------------------------------


def preview_install(target: Target, person: Person) -> tuple[bytes | None, bytes | None]:
    """Return the file as it is, and as it would be. Raises FlightrecError."""
    edit = _Install(target, person)
    return preview(target.location, edit)


def preview_uninstall(target: Target, person: Person) -> tuple[bytes | None, bytes | None]:
    """Return the file as it is, and as it would be without us. Raises FlightrecError."""
    addition = find_addition(target, person)
    return preview(target.location, lambda data: without_parts(data, target.file, addition))


def state_of(target: Target, person: Person) -> str:
    """Return ``installed``, ``old`` (of another release, or not all of it) or ``missing``.

    Raises FlightrecError where the file cannot be understood.
    """
    data = read_file(target.location)
    if data is None:
        return "missing"
    try:
        if has_parts(data, target.file, wanted_in(target, person)):
            return "installed"
        return "old" if has_any(data, target.file) else "missing"
    except FlightrecError as error:
        raise FlightrecError(f"{target.location.path}: {error}") from None


def wanted_in(target: Target, person: Person) -> Wanted:
    """Return what belongs into this file."""
    plugin = ""
    if target.file.syntax is Syntax.PLUGIN:
        plugin = plugin_for(target.client.name, person.setup)
    return Wanted(target.client.name, person.setup, plugin)


def plugin_for(agent: str, setup: Setup) -> str:
    """Return the program for an agent that runs plugins."""
    template = "".join(
        find_resource(f"plugins/{name}.js").read_text("utf-8") for name in ("ask", agent)
    )
    values = {
        "AGENT": agent,
        "FOLDER": str(setup.folder),
        "HELPER": str(setup.helper),
        "STARTER": str(setup.starter),
    }
    return plugin_text(template, values)


class _Install:
    """An edit that remembers what it added; it may be asked several times, the last one counts."""

    def __init__(self, target: Target, person: Person) -> None:
        self._target = target
        self._wanted = wanted_in(target, person)
        self._before = find_addition(target, person)
        self.addition = Addition("")

    def __call__(self, data: bytes | None) -> bytes:
        made, self.addition = with_parts(data, self._target.file, self._wanted, self._before)
        return made


def install(target: Target, person: Person) -> bool:
    """Add our parts to a file, noting it; return whether anything was missing.

    Raises FlightrecError where the file is not to be written.
    """
    folders = _missing_folders(target.location)
    before = find_addition(target, person)
    edit = _Install(target, person)
    if before is None:
        created = not target.location.path.exists()
        _note(target, person, Addition("", created=created, folders=folders))
    try:
        written = update_file(target.location, edit, person.paths, settle_s=0)
    except FlightrecError:
        if before is None:
            _forget(target, person)
        raise
    edit.addition.folders = before.folders if before is not None else folders
    if before is not None:
        edit.addition.trusted, edit.addition.excluded = before.trusted, before.excluded
    if before is not None and not written:
        edit.addition = before
    if target.is_project and not target.is_shared:
        edit.addition.excluded |= _update_exclude(target, excluding(target.name), person)
    _note(target, person, edit.addition)
    return written


def _update_exclude(target: Target, edit: Edit, person: Person) -> bool:
    """Change what git does not see in this checkout; return whether that was necessary."""
    location = exclude_file(find_place(str(target.location.boundary)))
    return location is not None and update_file(location, edit, person.paths, settle_s=0)


def _missing_folders(location: Location) -> list[str]:
    """Return the folders that have to be made for a file, the outermost first."""
    real, boundary = (Path(os.path.realpath(path)) for path in (location.path, location.boundary))
    above = [folder for folder in real.parents if boundary in folder.parents]
    return [str(folder) for folder in reversed(above) if not folder.exists()]


def uninstall(target: Target, person: Person) -> bool:
    """Take our parts out of a file, and what was made for it; return whether any were there.

    Raises FlightrecError where the file is not to be written.
    """
    addition = find_addition(target, person)
    written = update_file(
        target.location,
        lambda data: without_parts(data, target.file, addition),
        person.paths,
        settle_s=0,
    )
    for folder in reversed(addition.folders if addition is not None else []):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    if addition is not None and addition.excluded:
        _update_exclude(target, without_line(f"/{target.name}", created=False), person)
    _forget(target, person)
    return written


def _note(target: Target, person: Person, addition: Addition) -> None:
    home = person.paths.home
    manifest = read_manifest(home)
    project = str(target.location.boundary) if target.is_project else ""
    manifest.settings[str(target.location.path)] = Noted(
        target.client.name, target.file.file, project, addition
    )
    write_manifest(home, manifest)


def note_trust(names: Sequence[str], target: Target, person: Person) -> None:
    """Note which hooks Codex was made to trust, in the file where it notes them."""
    addition = find_addition(target, person)
    if addition is not None:
        addition.trusted = list(dict.fromkeys((*addition.trusted, *names)))
        _note(target, person, addition)


def _forget(target: Target, person: Person) -> None:
    manifest = read_manifest(person.paths.home)
    if manifest.settings.pop(str(target.location.path), None) is not None:
        write_manifest(person.paths.home, manifest)
