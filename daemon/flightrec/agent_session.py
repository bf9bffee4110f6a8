"""The environment of an agent's run: what makes its shells and tools pass by the helper.

Helper and scripts are copied below the state folder first: a virtual environment that is upgraded
or deleted meanwhile must not take the shell out of an agent's hands. ``shim/agent.h`` and
``shell-integration/`` know the variables' names too.
"""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from flightrec import __version__
from flightrec.errors import FlightrecError
from flightrec.paths import (
    BASH_DOOR_NAME,
    HELPER_NAME,
    PRELOAD_NAME,
    Paths,
    find_resource,
    make_private_folder,
)
from flightrec.shimmed_programs import LOCATOR, SHELLS

SESSION_VARIABLE = "FLIGHTREC_SESSION"
"""Who has it is inside a recorded run."""

ROOT_VARIABLE = "FLIGHTREC_ROOT"
"""The pid of the agent, whose own start is no command."""

BASH_SCRIPT = "bash-env.bash"
ZSH_FOLDER = "zdotdir"
_SCRIPTS = (
    BASH_SCRIPT,
    *(f"bash-env/{name}.bash" for name in ("caught", "marked", "persons", "pipeline", "shown")),
    *(f"{ZSH_FOLDER}/{name}" for name in (".zshenv", ".zprofile", ".zshrc", ".zlogin")),
)

_LOADER_READS = re.compile(r"[\s:;$]")
"""Characters that mean something in ``LD_PRELOAD``."""

LEFT_OVER_AFTER_S = 3600
"""A folder of shims whose run has died is removed by a later run when it is this old."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The copies that the shells of all runs use: a folder with the helper under several names."""

    folder: Path

    @property
    def helper(self) -> Path:
        """The helper under its own name."""
        return self.folder / HELPER_NAME

    @property
    def preload(self) -> Path:
        """The library for ``LD_PRELOAD``, where one was built."""
        return self.folder / PRELOAD_NAME

    def shell(self, name: str) -> Path:
        """Return the stand-in to be named by ``$SHELL``."""
        return self.folder / "shells" / name


@dataclass(frozen=True, slots=True)
class AgentSession:
    """One run of an agent: 128 random bits, its name, and the folder that is first on its PATH.

    ``preload``: its shells are caught by the library, too, that ``place_preload`` has placed.
    """

    id: bytes
    agent: str
    shims: Path
    placed: Placed
    command: Path
    preload: bool = False


def session_environment(environment: Mapping[str, str], session: AgentSession) -> dict[str, str]:
    """Return the environment for an agent; the person's own values are kept beside ours."""
    changed = {
        **environment,
        "BASH_ENV": str(session.placed.folder / BASH_SCRIPT),
        "ZDOTDIR": str(session.placed.folder / ZSH_FOLDER),
        SESSION_VARIABLE: session.id.hex(),
        "FLIGHTREC_AGENT": session.agent,
        "FLIGHTREC_COMMAND": str(session.command),
        "FLIGHTREC_HELPER": str(session.placed.helper),
        "FLIGHTREC_SHIMS": str(session.shims),
        "FLIGHTREC_SCRIPTS": str(session.placed.folder),
        "SHLVL": _shell_level(environment.get("SHLVL", "")),
    }
    for name in ("BASH_ENV", "ZDOTDIR", "SHELL"):
        if name in environment:
            changed[f"FLIGHTREC_{name}"] = environment[name]
    if "PATH" in environment:
        changed["PATH"] = f"{session.shims}:{environment['PATH']}"
    if session.preload:
        others = (environment["LD_PRELOAD"],) if "LD_PRELOAD" in environment else ()
        changed["LD_PRELOAD"] = ":".join((str(session.placed.preload), *others))
    shell = Path(environment.get("SHELL", "")).name
    if shell in SHELLS:
        changed["SHELL"] = str(session.placed.shell(shell))
    return changed


def _shell_level(level: str) -> str:
    """Return at least 1: with a socket as standard input, a first bash takes itself for rsh's.

    It then reads ~/.bashrc and not BASH_ENV.
    """
    return level if level.isdigit() and int(level) >= 1 else "1"


@contextlib.contextmanager
def open_session(
    paths: Paths, agent: str, programs: Iterable[str], path: str, command: Path
) -> Iterator[AgentSession]:
    """Set up a session and take its folder away again at the end.

    ``programs`` get a stand-in where ``path`` (the person's PATH) has them. Raises FlightrecError
    where the helper is missing or cannot run.
    """
    make_private_folder(paths.state)  # by itself: parents get the usual mode
    make_private_folder(paths.run)
    placed = place_files(paths)
    _sweep(paths)
    session = AgentSession(
        secrets.token_bytes(16), agent, paths.run / f"shims-{secrets.token_hex(4)}", placed, command
    )
    with _held_folder(session.shims):
        for name in sorted({*programs, LOCATOR}):
            if shutil.which(name, path=path) is not None:
                (session.shims / name).symlink_to(placed.helper)
        for name in SHELLS:
            if shutil.which(name, path=path) is not None:
                (session.shims / name).symlink_to(placed.helper)
        yield session


def files_for_shells() -> dict[str, Path]:
    """Return what the shells of agents read, beside the helper: where it ships, by its name there.

    The library for bash may be missing: nobody could build it.
    """
    scripts = find_resource(BASH_SCRIPT).parent
    files = {name: scripts / name for name in _SCRIPTS}
    with contextlib.suppress(FlightrecError):
        files[BASH_DOOR_NAME] = find_resource(BASH_DOOR_NAME)
    return files


def place_files(paths: Paths) -> Placed:
    """Copy helper and scripts to where sessions use them; what is there already stays.

    Raises FlightrecError where that is not possible or the helper cannot be executed.
    """
    placed = Placed(paths.state / "agents")
    try:
        (placed.folder / "shells").mkdir(parents=True, exist_ok=True)
        # The helper first: it understands what older files say to it, and not the other way round.
        _place(find_resource(HELPER_NAME), placed.helper, 0o700)
        files = files_for_shells()
        if BASH_DOOR_NAME not in files:
            (placed.folder / BASH_DOOR_NAME).unlink(missing_ok=True)  # another release's
        for name, source in files.items():
            (placed.folder / name).parent.mkdir(exist_ok=True)
            _place(source, placed.folder / name, 0o600)
        for name in SHELLS:
            _point(placed.shell(name), Path("..", HELPER_NAME))
    except OSError as error:
        raise FlightrecError(f"cannot write {placed.folder}: {error.strerror}") from None
    _check_helper(placed.helper)
    return placed


def place_preload(paths: Paths) -> None:
    """Copy the library for ``LD_PRELOAD`` beside the helper, and see that programs load it.

    Raises FlightrecError where it was not built, or the system's loader would complain of it in
    every program's errors.
    """
    library = Placed(paths.state / "agents").preload
    if _LOADER_READS.search(str(library)):
        raise FlightrecError(f"the loader cannot be told of {library}: it splits such a path")
    source = find_resource(PRELOAD_NAME)
    make_private_folder(paths.state)
    try:
        library.parent.mkdir(exist_ok=True)
        _place(source, library, 0o700)
        result = subprocess.run(
            ["/bin/sh", "-c", "echo loaded"],
            env={"LD_PRELOAD": str(library)},
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FlightrecError(f"{library} cannot be used ({error})") from None
    if (result.stdout, result.stderr) != ("loaded\n", ""):
        raise FlightrecError(f"{library} cannot be used ({result.stderr.strip()[:300]})")


def _place(source: Path, target: Path, mode: int) -> None:
    """Copy a file in one step, since one like it may be running, unless it is there already."""
    data = source.read_bytes()
    if target.is_file() and target.read_bytes() == data:
        return
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), mode)
    Path(temporary).replace(target)


def _point(link: Path, target: Path) -> None:
    """Let ``link`` lead to ``target``, in one step."""
    if link.is_symlink() and link.readlink() == target:
        return
    temporary = link.with_name(f".new-{secrets.token_hex(4)}")
    temporary.symlink_to(target)
    temporary.replace(link)


def _check_helper(helper: Path) -> None:
    """Raise FlightrecError unless the helper runs and is of this release."""
    try:
        result = subprocess.run(
            [helper, "--version"], capture_output=True, text=True, timeout=10, check=False
        )
        answer = result.stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        answer = str(error)
    if answer != f"{HELPER_NAME} {__version__}":
        raise FlightrecError(
            f"{helper} cannot be used ({answer or 'it says nothing'});"
            " is the file system mounted noexec?"
        )


@contextlib.contextmanager
def _held_folder(folder: Path) -> Iterator[None]:
    """Make the folder, hold its lock while it is used, and remove it where nobody uses it still."""
    folder.mkdir(mode=0o700)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # no locks on this file system: its age has to do
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        if not _is_used(folder):
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _sweep(paths: Paths) -> None:
    """Remove what earlier runs left behind: they were killed, or something outlived them."""
    for folder in paths.run.glob("shims-*"):
        with contextlib.suppress(OSError):
            is_old = time.time() - folder.stat().st_mtime > LEFT_OVER_AFTER_S
            if is_old and _is_free(folder) and not _is_used(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_used(folder: Path) -> bool:
    """Whether a process has been given the folder.

    What an agent left running goes on for as long as it likes, and bash remembers where it has
    found a program: without the folder it would find none.
    """
    mark = b"FLIGHTREC_SHIMS=" + os.fsencode(folder) + b"\0"
    return any(mark in _variables(process) for process in Path("/proc").glob("[0-9]*"))


def _variables(process: Path) -> bytes:
    """Return the environment that a process was started with; nothing of another person's."""
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


def _is_free(folder: Path) -> bool:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
