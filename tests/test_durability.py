"""What survives when a process, the disk or the database fails: all that was acknowledged."""

import contextlib
import fcntl
import os
import random
import resource
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon_process import (
    USER,
    DaemonProcess,
    daemon_of_user,
    flightrec,
    fork_and_run,
    is_alive,
    needs_root,
    stored_commands,
    wait_until,
)
from fake_relay import FakeRelay, finished, starting
from flightrec.migrations import VERSION
from flightrec.paths import Paths, find_paths


class Load:
    """Shells that type without pause, and know what was acknowledged; they reconnect for ever."""

    def __init__(self, paths: Paths, shells: int = 4) -> None:
        self._paths = paths
        self._stop = threading.Event()
        self.sent: dict[bytes, str] = {}
        self.acknowledged: set[bytes] = set()
        self._threads = [threading.Thread(target=self._type, args=(n,)) for n in range(shells)]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Send everything again that was not acknowledged, and wait until it is."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _type(self, shell: int) -> None:
        session = os.urandom(16)
        kept: dict[bytes, tuple[object, object]] = {}
        number = 0
        while not self._stop.is_set() or kept:
            with contextlib.suppress(OSError), FakeRelay(self._paths.socket) as relay:
                relay.session = session
                for begun, ended in kept.values():
                    relay.send(begun, ended)
                while not self._stop.is_set() or kept:
                    if not self._stop.is_set() and len(kept) < 200:
                        begun = starting(f"echo {shell} {number}", session)
                        number += 1
                        kept[begun.run] = begun, finished(begun)
                        self.sent[begun.run] = begun.command.decode()
                        relay.send(*kept[begun.run])
                    with contextlib.suppress(TimeoutError):
                        if not relay.receive(0.002):
                            break
                    for run in relay.committed & kept.keys():
                        del kept[run]
                    self.acknowledged |= relay.committed
            time.sleep(0.01)  # as a relay does, before it connects again


def check_nothing_is_lost(load: Load, database: Path) -> None:
    found = stored_commands(database)
    assert len(found) == len(set(found))
    assert {load.sent[run] for run in load.acknowledged} <= set(found)
    assert set(found) == set(load.sent.values())
    with contextlib.closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def kill_daemons_under_load(home: Path, rounds: int) -> None:
    load = Load(find_paths(str(home)))
    dice = random.Random(rounds)  # noqa: S311 - a dice
    writers = []
    for _ in range(rounds):
        daemon = DaemonProcess(home)
        assert daemon.line.startswith("ready"), daemon.line
        time.sleep(dice.uniform(0.02, 0.5))  # the moment of the kill is what is varied
        writers.append(daemon.writer_pid())
        daemon.end(signal.SIGKILL)
    with DaemonProcess(home) as last:
        load.finish()
        check_nothing_is_lost(load, last.paths.database)
    for writer in writers:
        wait_until(lambda writer=writer: writer is None or not is_alive(writer))


def kill_writers_under_load(home: Path, rounds: int) -> None:
    with DaemonProcess(home) as daemon:
        load = Load(daemon.paths)
        dice = random.Random(rounds)  # noqa: S311 - a dice
        for _ in range(rounds):
            wait_until(daemon.writer_pid)
            time.sleep(dice.uniform(0.02, 0.5))  # as above
            writer = daemon.writer_pid()
            if writer is not None:
                os.kill(writer, signal.SIGKILL)
                wait_until(lambda writer=writer: not is_alive(writer))
        load.finish()
        check_nothing_is_lost(load, daemon.paths.database)
        assert daemon.status()["missed"] == {}


def test_killed_daemons_lose_nothing_that_was_acknowledged(home: Path) -> None:
    """D6, and no writer outlives its daemon."""
    kill_daemons_under_load(home, 6)


def test_killed_writers_lose_nothing_and_store_nothing_twice(home: Path) -> None:
    kill_writers_under_load(home, 4)


@pytest.mark.full
def test_killed_daemons_lose_nothing_in_many_rounds(home: Path) -> None:
    kill_daemons_under_load(home, 100)


@pytest.mark.full
def test_killed_writers_lose_nothing_in_many_rounds(home: Path) -> None:
    kill_writers_under_load(home, 100)


@pytest.mark.parametrize("place", ["record:3:kill", "commit:2:kill", "committed:2:kill"])
def test_a_writer_that_dies_around_its_commit_loses_nothing(home: Path, place: str) -> None:
    """Before, in and after the transaction; every writer of this daemon dies there."""
    with DaemonProcess(home, env={"FLIGHTREC_FAIL": place}) as daemon, daemon.relay() as relay:
        for n in range(5):
            relay.wait_for_commit(relay.type(f"echo {n}"))
        assert daemon.commands() == [f"echo {n}" for n in range(5)]


def test_a_command_that_no_writer_survives_is_given_up(home: Path) -> None:
    with DaemonProcess(home, env={"FLIGHTREC_FAIL": "record:1:crash"}) as daemon:
        with daemon.relay() as relay:
            relay.wait_for_commit(relay.type("poison"))
        assert daemon.status()["missed"] == {"ended the recorder every time": 1}
        assert daemon.commands() == []


def test_a_command_that_cannot_be_learned_from_is_kept_and_counted(home: Path) -> None:
    with DaemonProcess(home, env={"FLIGHTREC_FAIL": "record:2:error"}) as daemon:
        with daemon.relay() as relay:
            runs = [relay.type(f"echo {n}") for n in range(3)]
            relay.wait_for_commit(*runs)
        assert daemon.commands() == ["echo 0", "echo 1", "echo 2"]
        assert daemon.status()["missed"] == {"not recorded as it should be": 1}
        assert "DemandedError" in daemon.log()
        assert "echo" not in daemon.log()


@pytest.mark.full
@pytest.mark.parametrize("action", ["kill", "full", "damage", "error"])
@pytest.mark.parametrize("place", ["record", "commit", "committed"])
@pytest.mark.parametrize("number", [2, 3, 5])
def test_whatever_fails_wherever_the_others_are_stored_once(
    home: Path, place: str, number: int, action: str
) -> None:
    """D18, with what fails in one writer only: its successor finds everything in order."""
    with DaemonProcess(home, env={"FLIGHTREC_FAIL": f"{place}:{number}:{action}"}) as daemon:
        with daemon.relay() as relay:
            for n in range(8):
                relay.wait_for_commit(relay.type(f"echo {n}"))
        found = daemon.commands()
        kept = [f"echo {n}" for n in range(8)]
        begun_anew = list(daemon.paths.state.glob("*.corrupt-*Z"))
        if begun_anew:
            found = [*stored_commands(begun_anew[0]), *found]
        if daemon.status()["missed"]:
            assert set(found) <= set(kept)
        else:
            assert found == kept


@pytest.mark.full
def test_a_database_that_others_hold_is_waited_for(home: Path) -> None:
    """D16."""
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        relay.wait_for_commit(relay.type("before"))
        with contextlib.closing(
            sqlite3.connect(daemon.paths.database, isolation_level=None)
        ) as holder:
            holder.execute("BEGIN IMMEDIATE")
            run = relay.type("meanwhile")
            wait_until(lambda: daemon.status()["trouble"])
            assert daemon.status()["trouble"] == "another process holds the database"
            relay.ask("answers go on")
            holder.execute("ROLLBACK")
            relay.wait_for_commit(run)
        assert daemon.status()["trouble"] is None


# --- the disk ------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(home: Path) -> Iterator[Path]:
    """The state folder on a file system of 3 MB."""
    state = find_paths(str(home)).state
    state.mkdir(parents=True, mode=0o700)
    options = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "tmpfs", str(state)]
    if os.geteuid() != 0 or subprocess.run(options, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    yield state
    subprocess.run(["umount", "--lazy", str(state)], check=True)


def fill(folder: Path) -> Path:
    """Leave no byte free."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return ballast


def test_a_full_disk_is_shown_and_recording_goes_on_when_there_is_room(small_disk: Path) -> None:
    """D8: answers go on meanwhile, and what was waiting is stored then."""
    home = small_disk.parent.parent.parent
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        relay.wait_for_commit(relay.type("before"))
        ballast = fill(small_disk)
        waiting = [relay.type(f"during {n} {'x' * 3000}") for n in range(300)]
        wait_until(lambda: daemon.status()["trouble"])

        assert daemon.status()["trouble"] == "the disk is full"
        relay.ask("answers go on")
        shown = flightrec("status", home=home)
        assert "nothing can be stored: the disk is full" in shown.stdout

        ballast.unlink()
        freed = time.monotonic()
        relay.wait_for_commit(*waiting)
        assert time.monotonic() - freed < 50  # the bar is 5 s
        assert daemon.status()["trouble"] is None
        assert len(daemon.commands()) == 301
        assert daemon.log().count("nothing can be stored") == 1


def test_a_limit_on_file_sizes_is_a_full_disk(home: Path) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    with DaemonProcess(home, first=limit) as daemon, daemon.relay() as relay:
        for n in range(500):
            relay.type(f"{n} {'x' * 3000}")
        wait_until(lambda: daemon.status()["trouble"])
        relay.ask("answers go on")


@needs_root
def test_a_folder_that_cannot_be_written_is_said_in_one_line(home: Path) -> None:
    """D9: as a person, not as root, for whom everything can be written."""
    (home / ".local").mkdir(mode=0o500)
    daemon = daemon_of_user(home)

    assert daemon.process.wait(60) == 1
    assert daemon.line == f"flightrec: cannot create {daemon.paths.state}: Permission denied\n"


@needs_root
def test_a_database_that_cannot_be_written_is_trouble_and_can_be_read(home: Path) -> None:
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        relay.wait_for_commit(relay.type("before"))
    state = daemon.paths.state
    daemon.paths.database.chmod(0o400)
    state.chmod(0o500)
    with daemon_of_user(home) as later:

        def look() -> None:
            wait_until(lambda: later.status()["trouble"])
            assert "cannot be" in str(later.status()["trouble"])
            with later.relay() as relay:
                relay.type("not stored")
                relay.ask("answers go on")
            assert stored_commands(later.paths.database) == ["before"]

        fork_and_run(look, uid=USER)
        state.chmod(0o700)
        daemon.paths.database.chmod(0o600)

        def look_again() -> None:
            both = ["before", "not stored"]
            wait_until(lambda: stored_commands(later.paths.database) == both)
            assert later.status()["trouble"] is None

        fork_and_run(look_again, uid=USER)


# --- the database --------------------------------------------------------------------------------


def test_a_damaged_database_is_set_aside_and_recording_goes_on(home: Path) -> None:
    """D10."""
    paths = find_paths(str(home))
    paths.state.mkdir(parents=True, mode=0o700)
    paths.database.write_bytes(b"no database at all" * 1000)
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        relay.wait_for_commit(relay.type("ls"))
        assert daemon.commands() == ["ls"]
        (aside,) = paths.state.glob("flightrec.db.corrupt-*")
        assert aside.read_bytes() == b"no database at all" * 1000
        assert aside.stat().st_mode & 0o777 == 0o600
        assert daemon.status()["notes"] == [f"the database was damaged; it is kept as {aside}"]
        assert str(aside) in flightrec("status", home=home).stdout


def test_a_database_found_damaged_while_it_is_used_is_set_aside(home: Path) -> None:
    with DaemonProcess(home, env={"FLIGHTREC_FAIL": "commit:2:damage"}) as daemon:
        with daemon.relay() as relay:
            relay.wait_for_commit(relay.type("before"))
            relay.wait_for_commit(relay.type("after"))
        (aside,) = daemon.paths.state.glob("flightrec.db.corrupt-*Z")
        assert daemon.commands() == ["after"]
        assert stored_commands(aside) == ["before"]
        assert daemon.status()["notes"] == [f"the database was damaged; it is kept as {aside}"]


def test_a_newer_database_is_refused_and_left_alone(home: Path) -> None:
    paths = find_paths(str(home))
    paths.state.mkdir(parents=True, mode=0o700)
    with contextlib.closing(sqlite3.connect(paths.database)) as newer:
        newer.execute("CREATE TABLE tomorrow (x)")
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = paths.database.read_bytes()
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        wait_until(lambda: daemon.status()["trouble"])
        assert "upgrade flightrec (nothing was changed)" in str(daemon.status()["trouble"])
        relay.type("not stored")
        relay.ask("answers go on")
    assert paths.database.read_bytes() == before
    assert not list(paths.state.glob("*-wal"))


def test_a_second_writer_waits_for_the_first_one_s_lock(home: Path) -> None:
    """A home on two hosts: SQLite's log does not work there, so the second one stores nothing."""
    paths = find_paths(str(home))
    paths.state.mkdir(parents=True, mode=0o700)
    with paths.database.with_name("flightrec.db.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with DaemonProcess(home) as daemon, daemon.relay() as relay:
            wait_until(lambda: daemon.status()["trouble"])
            assert "another flightrec" in str(daemon.status()["trouble"])
            run = relay.type("later")
            fcntl.flock(lock, fcntl.LOCK_UN)
            relay.wait_for_commit(run)


# --- modes and logs ------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_all_files_are_private_whatever_the_umask(home: Path, umask: int) -> None:
    """T20."""
    with (
        DaemonProcess(home, first=lambda: os.umask(umask) and None) as daemon,
        daemon.relay() as relay,
    ):
        relay.wait_for_commit(relay.type("ls"))
        daemon.ask("pause")
        modes = {
            str(path.relative_to(daemon.paths.state)): path.lstat().st_mode & 0o777
            for path in [daemon.paths.state, *daemon.paths.state.rglob("*")]
        }
    folders = {name: mode for name, mode in modes.items() if name in (".", "run")}
    assert folders == {".": 0o700, "run": 0o700}
    files = {name: mode for name, mode in modes.items() if name not in folders}
    assert len(files) > 5
    assert set(files.values()) == {0o600}, files


def test_no_secret_reaches_any_file(home: Path) -> None:
    """T7, T19: also not through a fault, a log line, an odd message or a request that fails."""
    canary = "hunter2-canary-secret"
    token = "ghp_" + "Zq8" * 12
    with DaemonProcess(home, env={"FLIGHTREC_FAIL": "record:2:error"}) as daemon:
        with daemon.relay() as relay:
            for _ in range(3):
                begun = starting(f"curl -H 'Authorization: Bearer {token}'", relay.session,
                                 path=canary.encode(), cwd=f"/tmp/{token}".encode())  # fmt: skip
                relay.send(begun, finished(begun, 1, tail=f"PASSWORD={canary}".encode()))
                relay.wait_for_commit(begun.run)
        with pytest.raises(Exception, match="unknown"):
            daemon.ask("forget", canary=canary)
        with daemon.relay() as odd:
            odd.socket.sendall(b"\x40\x00\x00\x00" + canary.encode() * 10)
            odd.wait_for_end()
        files = [path for path in daemon.paths.state.rglob("*") if path.is_file()]
        assert {"flightrec.db", "flightrec.db-wal", "daemon.log"} <= {path.name for path in files}
        for path in files:
            assert canary.encode() not in path.read_bytes(), path
            assert token.encode() not in path.read_bytes(), path
