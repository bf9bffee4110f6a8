"""How the daemon comes to life, stays alone, and ends: real processes, real signals."""

import configparser
import contextlib
import errno
import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon_process import (
    FLIGHTREC,
    USER,
    DaemonProcess,
    daemon_of_user,
    flightrec,
    fork_and_run,
    is_alive,
    needs_root,
    wait_until,
)
from fake_relay import FakeRelay
from flightrec import __version__
from flightrec.client import request
from flightrec.errors import FlightrecError, NoDaemonError
from flightrec.lifecycle import daemon_environment
from flightrec.ownership import Ownership, owner_pid
from flightrec.paths import Paths, find_paths
from flightrec.wire import PROTOCOL, Hello, Request, Response, encode


@pytest.fixture
def stopped(home: Path) -> Iterator[None]:
    """End whatever daemon a test has started in the background."""
    yield
    pid = owner_pid(find_paths(str(home)))
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def write_config(home: Path) -> Callable[[str], None]:
    """Put the settings where the daemon reads them."""

    def write(text: str) -> None:
        config = find_paths(str(home)).config
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(text, encoding="utf-8")

    return write


# --- start, stop, status -------------------------------------------------------------------------


@pytest.mark.usefixtures("stopped")
def test_start_status_and_stop_say_what_is_there(home: Path) -> None:
    assert flightrec("daemon", "status", home=home).returncode == 4
    begun = flightrec("daemon", "start", home=home)
    again = flightrec("daemon", "start", home=home)
    there = json.loads(flightrec("daemon", "status", "--json", home=home).stdout)
    ended = flightrec("daemon", "stop", home=home)

    pid = there["items"][0]["pid"]
    assert begun.stdout == f"flightrec daemon {__version__} started, pid {pid}\n"
    assert again.stdout == f"flightrec daemon {__version__} runs already, pid {pid}\n"
    assert ended.stdout == f"flightrec daemon ended, pid {pid}\n"
    assert not is_alive(pid)
    assert flightrec("daemon", "stop", home=home).stdout == "no flightrec daemon runs\n"


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("line", ["x=$({}); echo $x", "{} | cat", "{} >/dev/null 2>&1; echo done"])
def test_starting_it_from_a_shell_returns_at_once(home: Path, line: str) -> None:
    """A daemon that kept the pipe open would hold its reader for as long as it lives."""
    command = " ".join([*FLIGHTREC, "daemon", "start"])
    result = subprocess.run(
        ["bash", "-c", line.format(command)],
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        timeout=30,
        check=True,
        text=True,
    )
    assert result.stdout.strip()
    assert request(find_paths(str(home)), "ping", autostart=False)["version"] == __version__


@pytest.mark.usefixtures("stopped")
def test_a_request_starts_the_daemon_where_it_is_missing(home: Path) -> None:
    paths = find_paths(str(home))
    with pytest.raises(NoDaemonError):
        request(paths, "ping", autostart=False)
    first = request(paths, "ping")["pid"]
    assert request(paths, "ping")["pid"] == first


@pytest.mark.usefixtures("stopped")
def test_the_background_process_holds_nothing_of_its_starter(home: Path) -> None:
    """Session, folder, descriptors and environment are its own (T21)."""
    leaked_read, leaked_write = os.pipe()
    os.set_inheritable(leaked_write, True)  # noqa: FBT003 - its only way
    env = {**os.environ, "HOME": str(home), "SECRET_TOKEN": "canary", "LC_ALL": "C.UTF-8"}
    subprocess.run([*FLIGHTREC, "daemon", "start"], env=env, check=True, close_fds=False,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    os.close(leaked_write)
    paths = find_paths(str(home))
    pid = request(paths, "ping", autostart=False)["pid"]

    assert os.read(leaked_read, 1) == b""
    os.close(leaked_read)
    assert os.getsid(pid) != os.getsid(0)
    assert Path(f"/proc/{pid}/cwd").readlink() == paths.state
    standard = {Path(f"/proc/{pid}/fd/{number}").readlink() for number in range(3)}
    assert standard == {Path("/dev/null")}
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"canary" not in environment
    assert b"LC_ALL=C.UTF-8" in environment


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize(
    "line", ['x=$({start} 2>&1); echo "$x"', "{start} 2>&1 | cat", "({start}) < /dev/null"]
)
def test_whatever_waits_for_the_end_of_its_starter_s_output_does_not_wait_for_it(
    line: str, home: Path
) -> None:
    """T21: a substitution, a pipe and whoever (as ssh does) reads to the end are done at once."""
    start = f"{shlex.join(FLIGHTREC)} daemon start"
    done = subprocess.run(
        ["bash", "-c", line.format(start=start)],
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout
    assert request(find_paths(str(home)), "ping", autostart=False)["version"] == __version__


def test_only_harmless_variables_reach_a_daemon() -> None:
    given = {"HOME": "/h", "PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "x", "FLIGHTREC_FAIL": "a:1:b"}
    assert set(daemon_environment(given)) == {"HOME", "PATH", "FLIGHTREC_FAIL"}


def is_closed_off(writer: int | None) -> bool:
    """Whether the writer has begun (after its exec) and made itself unreadable."""
    process = Path(f"/proc/{writer}")
    begun = b"flightrec.writer" in (process / "cmdline").read_bytes()
    return begun and (process / "environ").stat().st_uid == 0


@needs_root
def test_no_process_of_the_same_user_may_read_the_daemon_s_memory(home: Path) -> None:
    with daemon_of_user(home) as daemon:
        wait_until(daemon.writer_pid)
        pids = [daemon.pid, daemon.writer_pid()]
        wait_until(lambda: is_closed_off(pids[1]))

        def try_to_read() -> None:
            for pid in pids:
                with pytest.raises(PermissionError):
                    Path(f"/proc/{pid}/environ").read_bytes()
                with pytest.raises(PermissionError):
                    Path(f"/proc/{pid}/fd/0").readlink()

        fork_and_run(try_to_read, uid=USER)
        for pid in pids:
            limits = Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
            (core,) = [line.split() for line in limits.splitlines() if "core file" in line]
            assert core[4:6] == ["0", "0"]


# --- one owner -----------------------------------------------------------------------------------


def race(home: Path, number: int) -> list[DaemonProcess]:
    """Start so many daemons at once; return them with the one that serves first."""
    racers: list[DaemonProcess] = []
    lock = threading.Lock()

    def start() -> None:
        racer = DaemonProcess(home)
        with lock:
            racers.append(racer)

    threads = [threading.Thread(target=start) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(racers, key=lambda racer: not racer.line.startswith("ready"))


def leave_stale_files(paths: Paths) -> None:
    """What a daemon that was killed leaves: a socket that nobody serves, a lock with its pid."""
    paths.run.mkdir(parents=True, mode=0o700)
    paths.state.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(paths.socket))
    paths.lock.write_text(f"{os.getpid()}\n")  # a pid that is somebody else's by now


@pytest.mark.parametrize("before", [lambda _: None, leave_stale_files])
def test_of_many_daemons_that_start_at_once_one_serves_and_the_others_leave(
    home: Path, before: Callable[[Paths], None]
) -> None:
    """D15: also over a stale socket and a lock file that names a living pid."""
    before(find_paths(str(home)))
    winner, *losers = race(home, 20)
    try:
        assert [loser.process.wait(60) for loser in losers] == [0] * 19
        assert {loser.line.split()[0] for loser in losers} == {"running"}
        assert winner.status()["pid"] == winner.pid
    finally:
        for racer in [winner, *losers]:
            racer.end(signal.SIGTERM)


def test_twenty_first_requests_at_once_start_one_daemon(home: Path) -> None:
    paths = find_paths(str(home))
    pids: list[int] = []
    threads = [
        threading.Thread(target=lambda: pids.append(request(paths, "ping")["pid"]))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 20
    assert len(set(pids)) == 1
    request(paths, "stop")
    wait_until(lambda: not is_alive(pids[0]))


def test_a_loser_leaves_within_a_second(home: Path) -> None:
    with DaemonProcess(home):
        begun = time.monotonic()
        loser = DaemonProcess(home)
        assert loser.process.wait(60) == 0
        assert time.monotonic() - begun < 10  # 0.7 s on a quiet machine; the bar is 1 s


def test_a_socket_that_was_deleted_is_bound_again(
    home: Path, write_config: Callable[[str], None]
) -> None:
    write_config("[daemon]\ncheck_seconds = 0.1\n")
    with DaemonProcess(home) as daemon, daemon.relay() as old:
        daemon.paths.socket.unlink()
        wait_until(daemon.paths.socket.exists)
        assert daemon.status()["pid"] == daemon.pid
        run = old.type("still connected")
        old.wait_for_commit(run)


def test_a_socket_that_somebody_put_in_the_place_of_ours_is_replaced(
    home: Path, write_config: Callable[[str], None]
) -> None:
    write_config("[daemon]\ncheck_seconds = 0.1\n")
    with DaemonProcess(home) as daemon, socket.socket(socket.AF_UNIX) as impostor:
        daemon.paths.socket.unlink()
        impostor.bind(str(daemon.paths.socket))
        impostor.listen()
        wait_until(lambda: daemon_answers(daemon))


def daemon_answers(daemon: DaemonProcess) -> bool:
    try:
        return bool(
            request(daemon.paths, "ping", autostart=False, timeout_s=1)["pid"] == daemon.pid
        )
    except FlightrecError:
        return False


def test_a_daemon_whose_folder_was_deleted_leaves_and_another_begins_anew(
    home: Path, write_config: Callable[[str], None]
) -> None:
    write_config("[daemon]\ncheck_seconds = 0.1\n")
    with DaemonProcess(home) as old:
        # It makes this file last; what appears while the folder is being deleted is in the way.
        wait_until(lambda: any(old.paths.run.glob("*.words")))
        shutil.rmtree(old.paths.state)
        with DaemonProcess(home) as new:
            assert old.process.wait(60) == 0
            assert new.status()["pid"] == new.pid  # the old one has not taken the new socket along
            with new.relay() as relay:
                relay.wait_for_commit(relay.type("ls"))
            assert new.commands() == ["ls"]


def test_a_file_system_without_locks_still_has_one_daemon(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D16: the answered hello decides where flock does not work."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    paths = find_paths(str(home))
    with DaemonProcess(home):
        monkeypatch.setattr(fcntl, "flock", no_locks)
        assert Ownership.take(paths) is None
    taken = Ownership.take(paths)
    assert taken is not None
    assert not taken.locked
    taken.release()


# --- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_everything_is_stored(home: Path, number: signal.Signals) -> None:
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        runs = [relay.type(f"echo {n}") for n in range(300)]
        daemon.ask("ping")  # has come after them on another connection: they are read by now
        relay.ask("last")
        assert daemon.end(number) == 0
        relay.wait_for_end()
        assert relay.committed == set(runs)
        assert daemon.commands() == [f"echo {n}" for n in range(300)]
        assert not daemon.paths.socket.exists()


def test_it_leaves_when_nobody_is_connected_for_long_enough(
    home: Path, write_config: Callable[[str], None]
) -> None:
    write_config("[daemon]\ncheck_seconds = 0.05\nidle_exit_minutes = 0.001\n")
    with DaemonProcess(home) as daemon:
        assert daemon.process.wait(60) == 0


def test_it_stays_while_a_shell_is_connected(
    home: Path, write_config: Callable[[str], None]
) -> None:
    write_config("[daemon]\ncheck_seconds = 0.05\nidle_exit_minutes = 0.001\n")
    with DaemonProcess(home) as daemon:
        with daemon.relay() as relay:
            begun = time.monotonic()
            while time.monotonic() - begun < 0.5:  # ten times as long as it would stay alone
                relay.ask("true")
            socket_before = daemon.paths.socket.stat()
            wait_until(lambda: time.monotonic() - begun > 1)
            assert daemon.process.poll() is None
            assert daemon.paths.socket.stat() == socket_before
        assert daemon.process.wait(60) == 0


def test_an_older_daemon_is_asked_to_leave_by_a_newer_client(home: Path) -> None:
    """T22, with an old daemon that knows hello and stop, as all do."""
    paths = find_paths(str(home))
    paths.run.mkdir(parents=True, mode=0o700)
    paths.state.chmod(0o700)
    old = subprocess.Popen([sys.executable, "-c", OLD_DAEMON, str(paths.socket), str(paths.lock)],
                           stdout=subprocess.PIPE)  # fmt: skip
    assert old.stdout is not None
    assert old.stdout.readline() == b"ready\n"
    reaper = threading.Thread(target=old.wait)
    reaper.start()

    found = request(paths, "ping")

    assert (found["version"], found["protocol"]) == (__version__, PROTOCOL)
    reaper.join(60)
    assert old.returncode == 0
    old.stdout.close()
    request(paths, "stop")
    wait_until(lambda: not is_alive(found["pid"]))


OLD_DAEMON = f"""
import fcntl, socket, sys
from flightrec.wire import *
lock = open(sys.argv[2], "w"); fcntl.flock(lock, fcntl.LOCK_EX)
listening = socket.socket(socket.AF_UNIX); listening.bind(sys.argv[1]); listening.listen()
print("ready", flush=True)
while True:
    connected, _ = listening.accept()
    reader = FrameReader()
    while data := connected.recv(65536):
        for message in reader.feed(data):
            if isinstance(message, Hello):
                connected.sendall(encode(Hello({PROTOCOL}, b"0.0.9", b"daemon")))
            if isinstance(message, Request) and message.verb == b"stop":
                connected.sendall(encode(Response(message.id, None)))
                sys.exit(0)
"""


def test_a_client_of_an_unknown_protocol_may_still_end_it(home: Path) -> None:
    with DaemonProcess(home) as daemon:
        with FakeRelay(daemon.paths.socket, b"cli", protocol=PROTOCOL + 7) as newer:
            assert newer.hello.protocol == PROTOCOL
            newer.send(Request(1, b"stop"))
            assert newer.wait_for(Response).error is None
        assert daemon.process.wait(60) == 0


# --- systemd -------------------------------------------------------------------------------------

LIKE_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_FDS"], os.environ["LISTEN_PID"] = "1", str(os.getpid())
os.execv(sys.executable, [sys.executable, "-m", "flightrec", "daemon", "run"])
"""


def test_a_socket_that_systemd_holds_is_served_and_left_where_it_is(home: Path) -> None:
    paths = find_paths(str(home))
    paths.run.mkdir(parents=True, mode=0o700)
    paths.state.chmod(0o700)
    with (
        socket.socket(socket.AF_UNIX) as held,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
    ):
        held.bind(str(paths.socket))
        held.listen()
        manager.bind(str(home / "notify"))
        early = socket.socket(socket.AF_UNIX)  # connects before there is a daemon, as is the point
        early.connect(str(paths.socket))
        activated = subprocess.Popen(
            [sys.executable, "-c", LIKE_SYSTEMD, str(held.fileno())],
            pass_fds=[held.fileno()],
            env={**os.environ, "HOME": str(home), "NOTIFY_SOCKET": str(home / "notify")},
            stdout=subprocess.DEVNULL,
        )
        manager.settimeout(60)
        assert manager.recv(100) == b"READY=1"
        early.sendall(encode(Hello(PROTOCOL, b"0", b"cli")))
        assert early.recv(1000)
        early.close()
        assert request(paths, "ping", autostart=False)["pid"] == activated.pid
        activated.terminate()
        assert activated.wait(60) == 0
        assert paths.socket.exists()


def test_units_for_systemd_are_well_formed() -> None:
    units = Path(__file__).parent.parent / "packaging/systemd"
    for unit, wanted in (("flightrec.service", "ExecStart"), ("flightrec.socket", "ListenStream")):
        parser = configparser.ConfigParser(strict=True, interpolation=None)
        parser.optionxform = str  # type: ignore[assignment]  # systemd minds the case
        parser.read(units / unit)
        kind = "Service" if unit.endswith("service") else "Socket"
        assert wanted in parser[kind]
