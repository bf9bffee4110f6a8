"""A real interactive shell inside the proxy, typed into key by key."""

import shutil
from pathlib import Path

import helper_builds
from typed_shell import Rc, ShellMaker, TypedShell


class ProxiedShellMaker(ShellMaker):
    """Starts shells inside the proxy; ``pid`` of such a shell is its holder's."""

    def write_rc(self, kind: str, rc: Rc) -> list[str]:
        words = super().write_rc(kind, rc)
        return proxied(words)


def proxied(words: list[str]) -> list[str]:
    """Return the command line that runs this one inside the proxy."""
    program = shutil.which(words[0])
    assert program is not None
    return [str(helper_builds.helper()), "pty", program, "/nonexistent", "--", *words]


def children_of(pid: int) -> list[int]:
    """Return the pids of a process's children, the oldest first."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return sorted(map(int, text.split()))


def shell_in(holder: int) -> int:
    """Return the pid of the shell that a holder runs."""
    return next(pid for pid in children_of(holder) if not is_helper(pid))


def inner_of(shell: TypedShell) -> int:
    """Return the pid of the shell that runs inside."""
    return shell_in(shell.pid)


def worker_of(shell: TypedShell) -> int:
    """Return the pid of the process that copies."""
    return next(pid for pid in children_of(shell.pid) if is_helper(pid))


def is_helper(pid: int) -> bool:
    return Path(f"/proc/{pid}/exe").readlink().name.startswith("flightrec-helper")


def channels(home: Path) -> list[Path]:
    """Return the folders with FIFOs that are there."""
    return [path for path in (home / ".local/state/flightrec/run").iterdir() if path.is_dir()]
