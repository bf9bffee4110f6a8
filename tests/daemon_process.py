"""A real daemon as a child of the test, in a throw-away home."""

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

import flightrec as flightrec_package
from fake_relay import FakeRelay
from flightrec.client import request
from flightrec.errors import FlightrecError, NoDaemonError
from flightrec.paths import find_paths
from flightrec.store import Store

FLIGHTREC = [sys.executable, "-m", "flightrec"]
LIMIT_S = 60.0

USER = 1234
"""A uid that nobody has."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="switching users needs root")


class DaemonProcess:
    """``flightrec daemon run`` in the foreground; ended and checked for leftovers on leaving."""

    def __init__(
        self,
        home: Path,
        *,
        env: Mapping[str, str] | None = None,
        first: Callable[[], None] | None = None,
        python: str = sys.executable,
    ) -> None:
        self.paths = find_paths(str(home))
        self.process = subprocess.Popen(
            [python, "-m", "flightrec", "daemon", "run"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HOME": str(home), **(env or {})},
            preexec_fn=first,  # noqa: PLW1509 - limits and uids are set in the child
            cwd="/",
        )
        self.line = self._first_line()

    def __enter__(self) -> Self:
        assert self.line.startswith("ready"), self.line + self.log()
        return self

    def __exit__(self, *_: object) -> None:
        writer = self.writer_pid() if self.process.poll() is None else None
        self.end(signal.SIGTERM)
        if writer is not None:
            wait_until(lambda: not is_alive(writer))

    @property
    def pid(self) -> int:
        return self.process.pid

    def _first_line(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT_S)
        return self.process.stdout.readline().decode() if ready else ""

    def end(self, number: signal.Signals) -> int:
        """Signal the daemon (if it is still there) and return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(LIMIT_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def relay(self, role: bytes = b"relay") -> FakeRelay:
        return FakeRelay(self.paths.socket, role)

    def status(self) -> dict[str, Any]:
        return request(self.paths, "status", autostart=False, timeout_s=LIMIT_S)

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return request(self.paths, verb, autostart=False, timeout_s=LIMIT_S, **arguments)

    def status_or_none(self) -> dict[str, Any] | None:
        """The status, or None where the daemon takes nobody in."""
        try:
            return request(self.paths, "status", autostart=False, timeout_s=LIMIT_S)
        except NoDaemonError:
            return None

    def ask_until_ready(self, verb: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Ask, and again while the writer is being started."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                return self.ask(verb, **arguments)
            except FlightrecError:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Read the database."""
        with contextlib.closing(Store.open_read_only(self.paths.database)) as store:
            return list(store.connection.execute(sql))

    def writer_pid(self) -> int | None:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        with contextlib.suppress(OSError):
            pids = children.read_text(encoding="ascii").split()
            return int(pids[0]) if pids else None
        return None

    def wait_for_writer(self) -> int:
        """Return the writer's pid once the database is open."""
        assert self.ask("forget", pattern="no such text", dry_run=True)["runs"] == 0
        pid = self.writer_pid()
        assert pid is not None
        return pid

    def commands(self) -> list[str]:
        """Everything in the database, oldest first."""
        return stored_commands(self.paths.database)

    def tails(self) -> list[str]:
        """The tails of all commands, oldest first."""
        with contextlib.closing(Store.open_read_only(self.paths.database)) as store:
            return [run.tail for run in reversed(store.recent_runs(1_000_000))]

    def log(self) -> str:
        with contextlib.suppress(OSError):
            return self.paths.log.read_text(encoding="utf-8")
        return ""


@contextlib.contextmanager
def lasting_daemon() -> Iterator[DaemonProcess]:
    """A daemon in a home of its own, ready to record, for tests that share one."""
    with (
        tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as home,
        DaemonProcess(Path(home)) as running,
    ):
        running.wait_for_writer()
        yield running


def stored_commands(database: Path) -> list[str]:
    with contextlib.closing(Store.open_read_only(database)) as store:
        return [run.command for run in reversed(store.recent_runs(1_000_000))]


def flightrec(
    *words: str,
    home: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    limit_s: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a command line."""
    return subprocess.run(
        [*FLIGHTREC, *words],
        cwd=cwd,
        env={**os.environ, "HOME": str(home), **(env or {})},
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def is_alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


@functools.cache
def python_of_everybody() -> tuple[str, dict[str, str]]:
    """An interpreter that any user may run, with the variables that let it find flightrec.

    A test's own interpreter may lie in a home that is closed to others.
    """
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folders = [Path(flightrec_package.__file__).parent.parent, Path(msgspec.__file__).parent.parent]
    env = {"PYTHONPATH": ":".join(map(str, folders)), "PYTHONDONTWRITEBYTECODE": "1"}
    for python in (sys.executable, f"/usr/bin/{version}"):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            subprocess.run(
                [python, "-c", "import flightrec, msgspec"],
                preexec_fn=as_user(USER),
                env=env,
                cwd="/",
                capture_output=True,
                check=True,
            )
            return python, env
    pytest.skip("no Python here can be run by another user")


def daemon_of_user(home: Path) -> DaemonProcess:
    """A daemon of another user, whose home this becomes. Only root can start it."""
    python, env = python_of_everybody()
    for folder in (home, *home.rglob("*")):
        os.chown(folder, USER, USER, follow_symlinks=False)
    return DaemonProcess(home, first=as_user(USER), python=python, env=env)


def as_user(uid: int) -> Callable[[], None]:
    """Return what makes a child process another user."""

    def become() -> None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)

    return become


def fork_and_run(work: Callable[[], None], uid: int | None = None) -> None:
    """Run ``work`` in a child process, as another user if asked; fail where it raises."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if uid is not None:
                as_user(uid)()
            work()
            status = 0
        except BaseException:  # noqa: BLE001 - it must not go on as a second test run
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert status == 0
