"""Where everything lies: a pure function of ``$HOME`` and the host's name.

Nothing else moves these paths, neither XDG variables nor TMPDIR nor the config file: a unit, a cron
job, an agent and a login shell have to meet at one socket. ``shim/paths.c`` computes the same.
"""

import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from flightrec.errors import FlightrecError

SUN_PATH_MAX = 107
"""Bytes of a socket's path that the kernel takes (``sun_path`` less its NUL)."""

HELPER_NAME = "flightrec-helper"
PRELOAD_NAME = "flightrec-preload.so"
BASH_DOOR_NAME = "flightrec-bash.so"


def host_hash(name: str) -> str:
    """Return 8 hex digits (FNV-1a, 32 bit) that tell hosts with a shared home apart."""
    value = 0x811C9DC5
    for byte in name.encode("utf-8", "surrogateescape"):
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return f"{value:08x}"


@dataclass(frozen=True, slots=True)
class Paths:
    """Every file of one person's recorder, below ``state``."""

    home: Path
    host: str

    @property
    def state(self) -> Path:
        """The folder of all the rest, mode 0700."""
        return self.home / ".local/state/flightrec"

    @property
    def run(self) -> Path:
        """Sockets, FIFOs, lock and counters: what may be deleted while nothing runs."""
        return self.state / "run"

    @property
    def socket(self) -> Path:
        """The daemon's socket."""
        return self.run / f"{self.host}.sock"

    @property
    def lock(self) -> Path:
        """Who holds its flock owns the socket."""
        return self.run / f"{self.host}.lock"

    @property
    def counters(self) -> Path:
        """Mapped counters of what helpers had to drop; read without a daemon."""
        return self.run / f"{self.host}.counters"

    @property
    def events_fifo(self) -> Path:
        """Where sandboxed helpers write events that no socket would take."""
        return self.run / f"{self.host}.events"

    @property
    def hint_file(self) -> Path:
        """Hints for sandboxed helpers, rewritten by the daemon, read-only for them."""
        return self.run / f"{self.host}.hints"

    @property
    def breaker(self) -> Path:
        """Its time is when a stand-in last waited in vain for the daemon: none does for a while."""
        return self.run / f"{self.host}.breaker"

    @property
    def hook_breaker(self) -> Path:
        """The same for the hooks of agents, which wait longer."""
        return self.run / f"{self.host}.hook-breaker"

    @property
    def hint_words(self) -> Path:
        """Which words rules start from, for helpers that would otherwise have to ask."""
        return self.run / f"{self.host}.words"

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.state / "flightrec.db"

    @property
    def log(self) -> Path:
        """The daemon's log: ids, lengths and kinds of errors, never a command's text."""
        return self.state / "daemon.log"

    @property
    def config(self) -> Path:
        """The person's settings."""
        return self.home / ".config/flightrec/config.toml"


def find_paths(home: str | None = None) -> Paths:
    """Return the paths of the person whose ``$HOME`` (or ``home``) this is.

    Raises FlightrecError where there is no usable home or the socket's path is too long.
    """
    home = os.environ.get("HOME", "") if home is None else home
    if not home.startswith("/"):
        raise FlightrecError("HOME is not set to an absolute path; set it and try again")
    paths = Paths(Path(home), host_hash(socket.gethostname()))
    length = len(os.fsencode(paths.socket))
    if length > SUN_PATH_MAX:
        raise FlightrecError(
            f"the socket's path {paths.socket} has {length} bytes and the system takes"
            f" {SUN_PATH_MAX}; use a shorter HOME"
        )
    return paths


def make_private_folder(folder: Path) -> None:
    """Create ``folder`` and its parents, or check that it is mine and closed to others.

    Raises FlightrecError that names the ``chmod`` to run, or what is in the way.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except FileExistsError:
        raise FlightrecError(f"{folder} is in the way: it is no folder; move it aside") from None
    except OSError as error:
        raise FlightrecError(f"cannot create {folder}: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise FlightrecError(f"{folder} is not a folder of its own (a link?); move it aside")
    if found.st_uid != os.geteuid():
        raise FlightrecError(f"{folder} belongs to uid {found.st_uid}, not to you; move it aside")
    if found.st_mode & 0o077:
        raise FlightrecError(f"{folder} is open to other users; run: chmod 700 {folder}")


def find_resource(name: str) -> Path:
    """Return a file that ships with the package, such as ``flightrec-helper``.

    It lies in the package's ``data`` folder; in an editable install, where the source tree has it.
    Raises FlightrecError where it is missing.
    """
    package = Path(__file__).resolve().parent
    tree = package.parent.parent
    for candidate in (
        package / "data" / name,
        tree / "shim/build" / name,
        tree / "shell-integration" / name,
    ):
        if candidate.exists():
            return candidate
    raise FlightrecError(f"{name} is missing from this installation; install flightrec again")
