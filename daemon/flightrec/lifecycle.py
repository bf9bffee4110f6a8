"""How a daemon is started, closed off from whoever started it, and ended."""

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from flightrec.errors import FlightrecError, NoDaemonError
from flightrec.ownership import answers, owner_pid
from flightrec.paths import Paths, make_private_folder

START_TIMEOUT_S = 15.0
END_TIMEOUT_S = 15.0

READY = "ready"
RUNNING = "running"
"""First word of a starting daemon's line: its socket is bound now, or another's was before."""

KEPT_VARIABLES = frozenset(
    (
        *("HOME", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "USER", "LOGNAME", "TZ", "SUDO_UID"),
        *("CLAUDE_CONFIG_DIR", "CODEX_HOME"),  # where agents keep their memory
    )
)
KEPT_PREFIXES = ("FLIGHTREC_", "PYTHON")
"""All that a daemon gets of the environment of whoever starts it: the rest may hold secrets."""

FILES_WANTED = 4096
"""Descriptors to ask the system for: the usual limit of 1,024 is less than our own."""

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4


def check_person() -> None:
    """Refuse root in somebody else's home. Raises FlightrecError.

    Root is a person like any other where ``$HOME`` is root's own (containers, CI); under sudo or su
    it would leave files that the person cannot read.
    """
    if os.geteuid() != 0:
        return
    if "SUDO_UID" in os.environ:
        raise FlightrecError("nothing is recorded for root under sudo; run flightrec as yourself")
    home = os.environ.get("HOME", "")
    try:
        owner = Path(home).stat().st_uid
    except OSError:
        raise FlightrecError(f"HOME ({home or 'not set'}) is not there; set it") from None
    if owner != 0:
        raise FlightrecError(f"nothing is recorded for root in the home of uid {owner} ({home})")


def make_folders(paths: Paths) -> None:
    """Create the state folders, or check that they are mine alone. Raises FlightrecError."""
    make_private_folder(paths.state)
    make_private_folder(paths.run)


def start_daemon(paths: Paths) -> None:
    """Start a daemon that outlives this process, and return once one answers.

    Raises FlightrecError where it may not, NoDaemonError with its own line where it does not start.
    """
    check_person()
    make_folders(paths)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "flightrec", "daemon", "run", "--detach"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=paths.state,
        env=daemon_environment(os.environ),
    )
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    with process.stdout as pipe:
        line = _first_line(pipe.fileno(), START_TIMEOUT_S)
    process.wait()  # it leaves at once; the daemon is its child
    if not line.startswith((READY, RUNNING)):
        raise NoDaemonError(f"the daemon did not start: {line or 'it gave no sign of life'}")
    if not _until(lambda: answers(paths), START_TIMEOUT_S):
        pid = owner_pid(paths)
        raise NoDaemonError(f"the daemon (pid {pid}) does not answer; end it with: kill -9 {pid}")


def wait_for_end(pid: int, limit_s: float = END_TIMEOUT_S) -> None:
    """Return once the process is gone. Raises FlightrecError where it stays."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        gone, _, _ = select.select([process], [], [], limit_s)
    finally:
        os.close(process)
    if not gone:
        raise FlightrecError(f"the daemon (pid {pid}) did not end; end it with: kill -9 {pid}")


def daemon_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that a daemon is given."""
    return {
        name: value
        for name, value in environment.items()
        if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }


def detach(folder: Path) -> None:
    """Go on in a child that no terminal, session, folder or pipe of the starter holds back.

    Standard output stays open for the readiness line; ``let_go`` ends that.
    """
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir(folder)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def let_go() -> None:
    """Point standard input, output and error at /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)


def close_inherited(first: int = 3) -> None:
    """Close what the starter left open: a pipe that we keep would hold back its reader for ever."""
    for descriptor in [int(name) for name in os.listdir("/dev/fd")]:  # noqa: PTH208 - names only
        if descriptor >= first:
            with contextlib.suppress(OSError):  # the listing's own is closed already
                os.close(descriptor)


def raise_file_limit() -> None:
    """Allow as many descriptors as the connections that may come."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


DEBUGGABLE = "FLIGHTREC_DEBUGGABLE"
"""A variable that, when it is set, leaves the daemon and its writer open to debuggers."""


def forbid_inspection() -> None:
    """Leave no core dump, and let no process of this uid read the memory or environment.

    Commands are in memory here before they are redacted.
    """
    if os.environ.get(DEBUGGABLE):
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(_PR_SET_DUMPABLE, 0)


def end_with_parent(number: signal.Signals) -> None:
    """Ask the system for this signal when the parent dies."""
    _prctl(_PR_SET_PDEATHSIG, number)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError):  # Linux only
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _first_line(pipe: int, limit_s: float) -> str:
    """Return the first line that comes within the limit, without its end."""
    deadline = time.monotonic() + limit_s
    data = b""
    while b"\n" not in data:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        more = os.read(pipe, 4096) if ready else b""
        if not more:
            break
        data += more
    return data.decode("utf-8", "replace").split("\n", 1)[0]


def _until(condition: Callable[[], bool], limit_s: float) -> bool:
    """Ask often until the condition holds; return whether it did within the limit."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
