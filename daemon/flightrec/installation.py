"""The stable copy that shells load, and the lines in each rc file that load it.

Rc files must not point into a virtual environment: an upgraded or deleted one would break every
new shell. So helper and scripts are copied below ``~/.local/share/flightrec``, the line in the rc
file is guarded, and a manifest says what was written, so that all of it can be taken back.

The line that records goes to the end, behind whatever else changes the prompt. The one that enters
the terminal proxy goes first: the shell starts once more inside, and nothing is to be done twice.
"""

import contextlib
import dataclasses
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from flightrec.agent_session import files_for_shells
from flightrec.commands.init import SHELLS, find_command, quote_path, shell_code
from flightrec.errors import FlightrecError
from flightrec.file_lock import FileLock
from flightrec.file_update import LOCK_PATIENCE_S
from flightrec.hook_documents import Addition
from flightrec.location import Edit, Location, errors_name
from flightrec.memory_file import read_file, update_file
from flightrec.paths import HELPER_NAME, Paths, find_resource

STARTER_NAME = "flightrec"
"""A script beside the helper that starts the program which installed it."""

MARK = "# flightrec"
FIRST_MARK = "# flightrec: know the text of errors"


class Noted(msgspec.Struct):
    """What was added to a settings file of an agent, and the checkout that it lies in, if any."""

    agent: str
    file: str
    project: str
    addition: Addition


class Manifest(msgspec.Struct):
    """What an installation wrote: files with their SHA-256, and the rc files that got a line.

    ``first_lines`` are those at the beginning; ``created`` are the rc files that were not there
    before; ``settings`` are files of agents.
    """

    version: int = 1
    files: dict[str, str] = {}
    rc_files: dict[str, str] = {}
    first_lines: dict[str, str] = {}
    created: list[str] = []
    settings: dict[str, Noted] = {}


@dataclass(frozen=True, slots=True)
class RcFile:
    """One shell's start-up file and a line that it gets, at its end or at its beginning."""

    shell: str
    location: Location
    line: str
    is_first: bool = False


def data_folder(home: Path) -> Path:
    """Return where the stable copy lies."""
    return home / ".local/share/flightrec"


def rc_line(shell: str) -> str:
    """Return the line for an rc file: it does nothing, and says nothing, once the copy is gone."""
    return _guarded_line(f"init.{shell}", MARK)


def first_line(shell: str) -> str:
    """Return the line that enters the proxy, as harmless as the other."""
    return _guarded_line(f"proxy-init.{shell}", FIRST_MARK)


def _guarded_line(name: str, mark: str) -> str:
    file = f'"$HOME/.local/share/flightrec/{name}"'
    return f"if [ -r {file} ]; then . {file}; fi {mark}"


def find_rc_files(home: Path, environment: Mapping[str, str]) -> list[RcFile]:
    """Return the rc files of the shells that are used here: those that exist, and $SHELL's."""
    zdotdir = environment.get("ZDOTDIR", "")
    folders = {"bash": home, "zsh": Path(zdotdir) if zdotdir.startswith("/") else home}
    login_shell = Path(environment.get("SHELL", "")).name
    found = []
    for shell in SHELLS:
        path = folders[shell] / f".{shell}rc"
        if path.exists() or path.is_symlink() or (shell == login_shell and shutil.which(shell)):
            boundary = home if path.is_relative_to(home) else path.parent
            found.append(RcFile(shell, Location(path, boundary), rc_line(shell)))
    return found


def with_proxy(rc_files: Iterable[RcFile]) -> list[RcFile]:
    """Return the same files with the line that enters the proxy."""
    return [
        dataclasses.replace(rc_file, line=first_line(rc_file.shell), is_first=True)
        for rc_file in rc_files
    ]


def has_line(rc_file: RcFile) -> bool:
    """Whether this rc file has its line already."""
    return rc_file.line.encode() in (read_file(rc_file.location) or b"").splitlines()


def find_lines(home: Path, environment: Mapping[str, str]) -> dict[Path, str]:
    """Return the rc files that load flightrec, with the line that does."""
    return _present(read_manifest(home).rc_files, find_rc_files(home, environment))


def find_first_lines(home: Path, environment: Mapping[str, str]) -> dict[Path, str]:
    """Return the rc files that enter the proxy, with the line that does."""
    rc_files = with_proxy(find_rc_files(home, environment))
    return _present(read_manifest(home).first_lines, rc_files)


def _present(noted: Mapping[str, str], rc_files: Iterable[RcFile]) -> dict[Path, str]:
    lines = {Path(path): line for path, line in noted.items()}
    lines |= {rc_file.location.path: rc_file.line for rc_file in rc_files}
    return {
        path: line
        for path, line in lines.items()
        if path.is_file() and line.encode() in path.read_bytes().splitlines()
    }


def copy_files(home: Path) -> Manifest:
    """Put helper, scripts and what rc files load into the stable copy; return what was written."""
    folder = data_folder(home)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FlightrecError(f"cannot create {folder}: {error.strerror}") from None
    manifest = read_manifest(home)
    for path, data in _contents(folder).items():
        path.parent.mkdir(exist_ok=True)
        _replace(path, data, 0o755 if path.name in (HELPER_NAME, STARTER_NAME) else 0o644)
        manifest.files[str(path)] = hashlib.sha256(data).hexdigest()
    write_manifest(home, manifest)
    return manifest


def _contents(folder: Path) -> dict[Path, bytes]:
    """Return the files of the stable copy as this release has them."""
    helper = folder / HELPER_NAME
    contents = {helper: find_resource(HELPER_NAME).read_bytes()}
    for shell in SHELLS:
        for name, init in (("flightrec", "init"), ("proxy", "proxy-init")):
            script = folder / f"{name}.{shell}"
            contents[script] = find_resource(script.name).read_bytes()
            code = shell_code(helper, find_command(), script)
            contents[folder / f"{init}.{shell}"] = os.fsencode(code)
    return contents | _contents_for_agents(folder)


def _contents_for_agents(folder: Path) -> dict[Path, bytes]:
    """Return what the shells of agents load whose settings name it."""
    command = quote_path(find_command())
    starter = f'#!/bin/sh\n[ -x {command} ] && exec {command} "$@"\n'
    return {folder / STARTER_NAME: os.fsencode(starter)} | {
        folder / name: source.read_bytes() for name, source in files_for_shells().items()
    }


def is_current(home: Path) -> bool:
    """Whether the stable copy is the one that this release would make."""
    return all(
        path.is_file() and path.read_bytes() == data
        for path, data in _contents(data_folder(home)).items()
    )


def _replace(path: Path, data: bytes, mode: int) -> None:
    """Write a file in one step: a shell may be reading it, a helper may be running from it."""
    if path.is_file() and path.read_bytes() == data:
        path.chmod(mode)
        return
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise FlightrecError(f"cannot write {path}: {error.strerror}") from None


def add_line(home: Path, rc_file: RcFile, paths: Paths) -> bool:
    """Add the line to an rc file, noting it in the manifest first; return whether it was missing.

    Raises FlightrecError where the file is not to be written.
    """
    path = rc_file.location.path
    manifest = read_manifest(home)
    noted = manifest.first_lines if rc_file.is_first else manifest.rc_files
    noted[str(path)] = rc_file.line
    if not path.exists() and str(path) not in manifest.created:
        manifest.created.append(str(path))
    write_manifest(home, manifest)
    edit = with_first_line(rc_file.line) if rc_file.is_first else with_line(rc_file.line)
    return update_file(rc_file.location, edit, paths, settle_s=0)


def remove_line(home: Path, path: Path, line: str, paths: Paths) -> bool:
    """Take the line out of an rc file; a file that held nothing else and was ours goes."""
    created = str(path) in read_manifest(home).created
    boundary = home if path.is_relative_to(home) else path.parent
    edit = without_line(line, created=created)
    return update_file(Location(path, boundary), edit, paths, settle_s=0)


def with_line(line: str) -> Edit:
    """Return an edit that appends a line; a document without a final newline keeps to that."""

    def edit(document: bytes | None) -> bytes:
        document = document or b""
        if line.encode() in document.splitlines():
            return document
        if document and not document.endswith(b"\n"):
            return document + b"\n" + line.encode()
        return document + line.encode() + b"\n"

    return edit


def with_first_line(line: str) -> Edit:
    """Return an edit that puts a line before all others."""

    def edit(document: bytes | None) -> bytes:
        document = document or b""
        if line.encode() in document.splitlines():
            return document
        return line.encode() + b"\n" + document

    return edit


def without_line(line: str, *, created: bool) -> Edit:
    """Return the edit that undoes the two above; ``created``: no file was there before."""

    def edit(document: bytes | None) -> bytes | None:
        if document is None:
            return None
        lines = document.splitlines(keepends=True)
        kept = b"".join(text for text in lines if text.rstrip(b"\r\n") != line.encode())
        if lines and lines[-1] == line.encode():
            kept = kept.removesuffix(b"\n")
        return None if created and not kept else kept

    return edit


def manifest_path(home: Path) -> Path:
    """Return where the manifest lies."""
    return data_folder(home) / "manifest.json"


@contextlib.contextmanager
def one_at_a_time(paths: Paths) -> Iterator[None]:
    """Let other installations wait: all note in one manifest what they wrote.

    Raises FlightrecError after a while.
    """
    manifest = manifest_path(paths.home)
    with errors_name(manifest):
        lock = FileLock(manifest, paths, LOCK_PATIENCE_S)
    with contextlib.closing(lock):
        yield


def read_manifest(home: Path) -> Manifest:
    """Return what earlier installations wrote. Raises FlightrecError where it cannot be read."""
    try:
        return msgspec.json.decode(manifest_path(home).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return Manifest()
    except (OSError, msgspec.DecodeError) as error:
        raise FlightrecError(f"{manifest_path(home)} cannot be read: {error}") from None


def write_manifest(home: Path, manifest: Manifest) -> None:
    """Note what was written. Raises FlightrecError."""
    _replace(manifest_path(home), msgspec.json.format(msgspec.json.encode(manifest)), 0o644)


def remove_files(home: Path) -> list[Path]:
    """Delete the stable copy; return the files that somebody changed and that were left."""
    left = []
    files = read_manifest(home).files
    for name, digest in files.items():
        path = Path(name)
        if not path.is_file():
            continue
        if hashlib.sha256(path.read_bytes()).hexdigest() == digest:
            path.unlink()
        else:
            left.append(path)
    manifest_path(home).unlink(missing_ok=True)
    folders = {Path(name).parent for name in files} | {data_folder(home)}
    for folder in sorted(folders, reverse=True):  # what lies in another one comes before it
        with contextlib.suppress(OSError):
            folder.rmdir()
    return left
