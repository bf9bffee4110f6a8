"""The socket: who may come in, what is refused, and that nobody is harmed by anybody else."""

import asyncio
import contextlib
import os
import resource
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon_process import (
    USER,
    DaemonProcess,
    fork_and_run,
    needs_root,
    wait_until,
)
from fake_relay import FakeRelay, finished, starting
from flightrec import client_connection, wire
from flightrec.client import request
from flightrec.client_connection import ClientConnection
from flightrec.connection import Connection
from flightrec.errors import FlightrecError, NoDaemonError
from flightrec.missed import Refused
from flightrec.paths import find_paths
from flightrec.wire import (
    PROTOCOL,
    AnyMessage,
    CommandStarting,
    Hello,
    Phase,
    Reply,
    Request,
    Response,
    SessionEnded,
    Source,
    TailSource,
    Verdict,
    encode,
)

NOT_FOUND = b"bash: gti: command not found\n"


@pytest.fixture
def daemon(home: Path) -> Iterator[DaemonProcess]:
    with DaemonProcess(home) as running:
        yield running


def teach(relay: FakeRelay, wrong: str, right: str) -> None:
    """Mistype a program and correct it."""
    begun = starting(wrong, relay.session)
    relay.send(begun, finished(begun, 127, tail=NOT_FOUND, tail_source=TailSource.STDERR))
    relay.wait_for_commit(begun.run, relay.type(right))


# --- answers -------------------------------------------------------------------------------------


def test_what_was_mended_in_one_shell_is_known_in_another_before_it_runs(
    daemon: DaemonProcess,
) -> None:
    with daemon.relay() as first:
        teach(first, "gti status", "git status")
    with daemon.relay() as second:
        _, reply = second.ask("gti log")
        assert reply.verdict is Verdict.HINT
        assert reply.text.decode() == (
            "flightrec: previously failed here (1×: command not found); try: git log"
        )
        _, again = second.ask("gti log")
        assert again.verdict is Verdict.NONE  # once in a session


def test_a_failure_whose_remedy_is_known_is_told_after_it_where_it_was_not_before(
    daemon: DaemonProcess,
) -> None:
    with daemon.relay() as first:
        teach(first, "gti status", "git status")
    with daemon.relay() as second:
        begun = starting("gti log", second.session)  # nobody waited before it ran
        second.send(begun, finished(begun, 127, tail=NOT_FOUND, tail_source=TailSource.STDERR,
                                    wants_reply=True))  # fmt: skip
        reply = second.wait_for(Reply)
        assert (reply.phase, reply.verdict) == (Phase.FINISH, Verdict.HINT)
        assert reply.text.endswith(b"try: git log")


def test_a_hint_that_is_followed_counts_for_its_rule(daemon: DaemonProcess) -> None:
    with daemon.relay() as first:
        teach(first, "gti status", "git status")
    with daemon.relay() as second:
        begun, reply = second.ask("gti status")
        assert reply.verdict is Verdict.HINT
        ended = finished(begun, 127, tail=NOT_FOUND, tail_source=TailSource.STDERR)
        second.send(ended)
        second.wait_for_commit(begun.run, second.type("git status"))
    counts = daemon.query("SELECT r, c FROM rules")
    assert counts in ([(1, 3)], [(1, 2)])
    assert daemon.query("SELECT outcome FROM hints") == [("followed",)]


def test_the_deadline_is_kept_while_the_writer_is_stopped(daemon: DaemonProcess) -> None:
    """D4: a wedged disk costs no shell anything."""
    writer = daemon.wait_for_writer()
    with daemon.relay() as relay:
        os.kill(writer, signal.SIGSTOP)
        try:
            slowest = 0.0
            for n in range(200):
                begun = time.monotonic()
                relay.ask(f"echo {n}")
                slowest = max(slowest, time.monotonic() - begun)
            assert slowest < 1  # the relay's patience is 20 ms
            assert daemon.status()["running"] == 200
        finally:
            os.kill(writer, signal.SIGCONT)


# --- other users ---------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize(("folder", "mode"), [(0o700, 0o600), (0o755, 0o600), (0o700, 0o666),
                                              (0o755, 0o666)])  # fmt: skip
def test_another_user_never_gets_in(daemon: DaemonProcess, folder: int, mode: int) -> None:
    """T1: with everything open, the check of the peer is the only barrier, and it is enough."""
    opened = [daemon.paths.home, *daemon.paths.run.parents[:4], daemon.paths.run]
    for path in opened:
        if path.is_relative_to(daemon.paths.home):
            path.chmod(0o755)
    daemon.paths.run.chmod(folder)
    daemon.paths.socket.chmod(mode)
    can_connect = folder == 0o755 and mode == 0o666

    def intrude() -> None:
        intruder = socket.socket(socket.AF_UNIX)
        intruder.settimeout(20)
        if not can_connect:
            with pytest.raises(PermissionError):
                intruder.connect(str(daemon.paths.socket))
            return
        intruder.connect(str(daemon.paths.socket))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            intruder.sendall(encode(Hello(PROTOCOL, b"0", b"cli")) + encode(Request(1, b"stop")))
            assert intruder.recv(4096) == b""

    fork_and_run(intrude, uid=USER)
    assert daemon.status()["refused"] == ({"another user": 1} if can_connect else {})
    assert daemon.log().count(f"uid {USER}") == can_connect


@needs_root
def test_a_daemon_of_another_user_is_told_nothing(home: Path) -> None:
    """T4."""
    paths = find_paths(str(home))
    paths.run.mkdir(parents=True, mode=0o700)
    for folder in (home, home / ".local", home / ".local/state", paths.state):
        folder.chmod(0o755)
    os.chown(paths.run, USER, USER)
    ready_read, ready_write = os.pipe()

    def impersonate() -> None:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(paths.socket))
        listening.listen()
        os.write(ready_write, b"x")
        connected, _ = listening.accept()
        connected.settimeout(20)
        assert connected.recv(4096) == b""

    thread = threading.Thread(target=lambda: fork_and_run(impersonate, uid=USER))
    thread.start()
    os.read(ready_read, 1)
    with pytest.raises(FlightrecError, match=f"served by uid {USER}, not by you: nothing was sent"):
        request(paths, "ping")
    thread.join()


def test_a_server_that_sends_garbage_is_no_daemon(home: Path) -> None:
    paths = find_paths(str(home))
    paths.run.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(paths.socket))
        listening.listen()

        def babble() -> None:
            connected, _ = listening.accept()
            with connected, contextlib.suppress(OSError):
                connected.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                connected.recv(4096)

        thread = threading.Thread(target=babble)
        thread.start()
        with pytest.raises(NoDaemonError, match="no flightrec daemon answers"):
            Connection(paths)
        thread.join()


# --- nonsense ------------------------------------------------------------------------------------

odd_bytes = st.one_of(
    st.binary(min_size=1, max_size=300),
    st.sampled_from([0, 1, 2**18 + 1, 2**31, 2**32 - 1]).map(lambda n: struct.pack("<I", n)),
    st.binary(max_size=200).map(lambda body: struct.pack("<I", len(body)) + body),
    st.lists(st.integers(0, 255), max_size=50).map(
        lambda numbers: struct.pack("<I", len(numbers) + 1) + b"\x97" + bytes(numbers)
    ),
    st.just(struct.pack("<I", 60_000) + b"\x91" * 60_000),
)


def check_nonsense(daemon: DaemonProcess, data: bytes, *, greet: bool) -> None:
    with FakeRelay(daemon.paths.socket, greet=greet) as odd:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            odd.socket.sendall(data)
            odd.socket.shutdown(socket.SHUT_WR)
        odd.wait_for_end()


@given(data=odd_bytes, greet=st.booleans())
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_nonsense_ends_its_connection_and_no_other(
    daemon: DaemonProcess,
    data: bytes,
    greet: bool,  # noqa: FBT001 - drawn
) -> None:
    """D13."""
    check_nonsense(daemon, data, greet=greet)
    assert daemon.status()["pid"] == daemon.pid


@pytest.mark.full
@given(data=odd_bytes, greet=st.booleans())
@settings(
    max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_much_nonsense_ends_its_connections_and_no_other(
    daemon: DaemonProcess,
    data: bytes,
    greet: bool,  # noqa: FBT001 - drawn
) -> None:
    check_nonsense(daemon, data, greet=greet)


def test_a_frame_that_says_it_is_too_long_is_refused_by_its_length(daemon: DaemonProcess) -> None:
    """T15: before anything of it is kept."""
    with daemon.relay() as odd:
        odd.socket.sendall(struct.pack("<I", wire.FRAME_MAX + 1))
        odd.wait_for_end()
    assert daemon.status()["refused"] == {"not a message": 1}
    assert daemon.log().count("not a message") == 1


def test_what_came_whole_before_the_nonsense_counts(daemon: DaemonProcess) -> None:
    with daemon.relay() as odd:
        begun = starting("ls", odd.session)
        odd.socket.sendall(encode(begun) + encode(finished(begun)) + b"\x01\0\0\0\xc1")
        odd.wait_for_end()
    wait_until(lambda: daemon.commands() == ["ls"])


def test_a_message_may_come_in_any_pieces(daemon: DaemonProcess) -> None:
    with daemon.relay() as relay:
        begun = starting("make " + "x" * 500, relay.session, wants_reply=True)
        for byte in encode(begun):
            relay.socket.send(bytes([byte]))
        assert relay.wait_for(Reply).run == begun.run


def test_odd_text_is_kept_as_it_came(daemon: DaemonProcess) -> None:
    """Bytes that are no UTF-8, NUL, and a command cut at 16 KiB, which is marked."""
    long = b"echo " + b"y" * (wire.COMMAND_MAX - 5)
    with daemon.relay() as relay:
        runs = [relay.type(b"echo \xff\xfe"), relay.type("echo \0 nul")]
        runs.append(relay.type(long, command_total=2_000_000))
        relay.wait_for_commit(*runs)
    assert daemon.commands() == ["echo \udcff\udcfe", "echo \0 nul", long.decode()]
    assert daemon.query("SELECT truncated FROM runs ORDER BY id") == [(0,), (0,), (1,)]


@pytest.mark.parametrize(
    "message",
    [
        starting("x", b"s" * 16, wall_us=2**63),
        starting("x", b"s" * 16, pid=2**63, mono_us=-(2**63)),
        starting("x", b"s" * 16, depth=2**63),
    ],
)
def test_numbers_beyond_the_database_are_counted_and_stop_nothing(
    daemon: DaemonProcess, message: CommandStarting
) -> None:
    with daemon.relay() as relay:
        relay.send(message, finished(message))
        relay.wait_for_commit(message.run, relay.type("after"))
    assert "after" in daemon.commands()


# --- many, slow and silent -----------------------------------------------------------------------


def test_whoever_says_nothing_is_hung_up_on(daemon: DaemonProcess) -> None:
    """T17: a second for hello."""
    silent = [FakeRelay(daemon.paths.socket, greet=False) for _ in range(20)]
    half = FakeRelay(daemon.paths.socket, greet=False)
    half.socket.sendall(encode(Hello(PROTOCOL, b"0"))[:-1])
    for connection in [*silent, half]:
        connection.wait_for_end()
        connection.socket.close()
    assert daemon.status()["refused"] == {"no hello in time": 21}


def test_one_process_holds_so_many_connections_and_others_still_get_in(
    daemon: DaemonProcess,
) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(256):
            stack.enter_context(daemon.relay())
        with pytest.raises((ConnectionError, OSError)):
            daemon.relay()

        def come_in() -> None:
            with daemon.relay() as other:
                other.ask("ls")

        fork_and_run(come_in)
    wait_until(daemon.status_or_none)
    assert daemon.status()["refused"] == {"too many connections": 1}


def test_a_client_that_does_not_read_is_hung_up_on(daemon: DaemonProcess) -> None:
    """T17: its answers wait in 64 KiB at most."""
    with daemon.relay() as deaf:
        question = encode(Request(1, b"status"))
        with contextlib.suppress(OSError):
            deaf.socket.settimeout(5)
            for _ in range(20_000):
                deaf.socket.sendall(question)
        wait_until(lambda: "does not read" in daemon.status()["refused"])


class Hall:
    """A daemon that lets everybody in and does nothing."""

    def __init__(self) -> None:
        self.reasons: list[Refused | None] = []

    def admit(self, _: ClientConnection) -> Refused | None:
        return None

    def dismiss(self, _: ClientConnection, reason: Refused | None) -> None:
        self.reasons.append(reason)

    def receive(self, message: AnyMessage, connection: ClientConnection) -> None:
        pass

    def request(self, request: Request, connection: ClientConnection) -> None:
        pass


@pytest.mark.parametrize(
    ("role", "sent", "expected"),
    [
        (b"cli", b"", Refused.IDLE),
        (b"send", b"", Refused.IDLE),
        (b"relay", encode(SessionEnded(b"s" * 16))[:-1], Refused.IDLE),
        (b"cli", encode(Request(1, b"forget")), None),
        (b"relay", b"", None),
    ],
)
def test_only_shells_and_those_who_wait_for_an_answer_may_be_silent_for_long(
    monkeypatch: pytest.MonkeyPatch, role: bytes, sent: bytes, expected: Refused | None
) -> None:
    """T17: half a message, or a command line that asks nothing, is given up after a while."""
    monkeypatch.setattr(client_connection, "HELLO_WITHIN_S", 0.05)
    monkeypatch.setattr(client_connection, "IDLE_AFTER_S", 0.1)
    hall = Hall()

    async def converse() -> None:
        loop = asyncio.get_running_loop()
        theirs, ours = socket.socketpair()
        await loop.create_connection(lambda: ClientConnection(hall), sock=ours)
        theirs.setblocking(False)  # noqa: FBT003 - its only way
        await loop.sock_sendall(theirs, encode(Hello(PROTOCOL, b"0", role)) + sent)
        deadline = loop.time() + (10 if expected else 0.5)
        while not hall.reasons and loop.time() < deadline:  # noqa: ASYNC110 - as the daemon does
            await asyncio.sleep(0.01)
        assert hall.reasons == ([expected] if expected else [])
        theirs.close()

    asyncio.run(converse())


def test_running_out_of_descriptors_refuses_and_does_not_spin(home: Path) -> None:
    """D12: connections wait, the others are served, and all is well once there is room."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    with DaemonProcess(home, first=limit) as daemon, daemon.relay() as served:
        daemon.wait_for_writer()
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(60)]
        for one in crowd:
            one.setblocking(False)  # noqa: FBT003 - its only way
            with contextlib.suppress(BlockingIOError):
                one.connect(str(daemon.paths.socket))
        before = cpu_seconds(daemon.pid)
        begun = time.monotonic()
        while time.monotonic() - begun < 2:
            served.ask("still answered")
            select.select([], [], [], 0.05)
        assert cpu_seconds(daemon.pid) - before < 1  # the bar is 5 %
        for one in crowd:
            one.close()
        wait_until(daemon.status_or_none)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_many_shells_that_type_at_once_lose_nothing(daemon: DaemonProcess) -> None:
    """D1, in short."""
    with contextlib.ExitStack() as stack:
        relays = [stack.enter_context(daemon.relay()) for _ in range(10)]
        runs: dict[FakeRelay, list[bytes]] = {relay: [] for relay in relays}
        for n in range(300):
            for relay, theirs in runs.items():
                theirs.append(relay.type(f"echo {n}", int(n % 7 == 0)))
                relay.read_what_is_there()
        for relay, theirs in runs.items():
            relay.wait_for_commit(*theirs)
    assert daemon.status()["missed"] == {}
    assert daemon.query("SELECT count(*), count(DISTINCT run) FROM runs") == [(3000, 3000)]


def test_a_shell_that_types_too_much_is_cut_and_every_command_is_accounted_for(
    daemon: DaemonProcess,
) -> None:
    """T16, D2: stored or counted, and its helper keeps nothing."""
    with daemon.relay() as relay:
        runs = []
        for n in range(3000):
            runs.append(relay.type(f"echo {n}"))
            relay.read_what_is_there()
        relay.wait_for_commit(*runs)
    dropped = daemon.status()["missed"]["too many at once in one session"]
    assert dropped > 0
    assert daemon.query("SELECT count(*) FROM runs") == [(3000 - dropped,)]


def crowd_in(daemon: DaemonProcess) -> int:
    """Return the pid of a process that holds 240 connections, asks on some, and reads nothing."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(OSError):
            crowd = [daemon.relay() for _ in range(240)]
            for one in crowd[:25]:
                one.send(*[Request(n, b"ping") for n in range(200)])
            signal.pause()
        os._exit(0)
    return pid


@pytest.mark.full
def test_a_thousand_connections_and_stopped_readers_harm_nobody(daemon: DaemonProcess) -> None:
    """D12, T17."""
    children = [crowd_in(daemon) for _ in range(4)]
    try:
        wait_until(lambda: daemon.status()["connections"] >= 850)  # some may be given up
        took = []
        with daemon.relay() as served:
            for n in range(500):
                begun = time.monotonic()
                served.ask(f"echo {n}")
                took.append(time.monotonic() - begun)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert sorted(took)[495] < 0.2  # the bar is 20 ms
    wait_until(lambda: daemon.status()["connections"] == 0)


# --- sandboxes ------------------------------------------------------------------------------------


def write_to_fifo(path: Path, *messages: AnyMessage) -> None:
    fifo = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    for message in messages:
        os.write(fifo, encode(message))
    os.close(fifo)


def test_a_helper_that_may_not_connect_is_heard_through_the_fifo(daemon: DaemonProcess) -> None:
    fifo = daemon.paths.events_fifo
    assert fifo.stat().st_mode & 0o777 == 0o600
    begun = starting("pytest", b"s" * 16, source=Source.SH, wants_reply=True)
    write_to_fifo(fifo, begun, finished(begun, 1))
    os.write(nonsense := os.open(fifo, os.O_WRONLY | os.O_NONBLOCK), b"nonsense" * 10)
    os.close(nonsense)
    wait_until(lambda: "not a message in the FIFO" in daemon.log())
    later = starting("make", b"s" * 16)
    write_to_fifo(fifo, later, finished(later))
    wait_until(lambda: daemon.commands() == ["pytest", "make"])


def test_the_fifo_replaces_what_is_in_its_place_and_is_closed_at_the_end(home: Path) -> None:
    paths = find_paths(str(home))
    paths.run.mkdir(parents=True, mode=0o700)
    paths.state.chmod(0o700)
    paths.events_fifo.write_text("in the way")
    with DaemonProcess(home):
        assert paths.events_fifo.is_fifo()
        write_to_fifo(paths.events_fifo)
    with pytest.raises(OSError, match="No such device"):  # nobody listens: helpers do not wait
        write_to_fifo(paths.events_fifo)


# --- requests ------------------------------------------------------------------------------------


def test_requests_that_make_no_sense_are_refused_in_one_line(daemon: DaemonProcess) -> None:
    with pytest.raises(FlightrecError, match="does not know how to fly"):
        daemon.ask("fly")
    with pytest.raises(FlightrecError, match="until_us"):
        daemon.ask("pause", until_us="soon")
    with pytest.raises(FlightrecError, match="pause: "):
        daemon.ask("pause", session="no hexadecimal")
    with FakeRelay(daemon.paths.socket, b"cli") as cli:
        for arguments in (b"", b"[1]", b"{", b"\xff", b"null"):
            cli.send(Request(7, b"status", arguments))
            response = cli.wait_for(Response)
            assert response.id == 7
            assert response.error
            assert b"\n" not in response.error


def test_a_request_whose_writer_dies_is_answered_all_the_same(daemon: DaemonProcess) -> None:
    writer = daemon.wait_for_writer()
    os.kill(writer, signal.SIGSTOP)
    with FakeRelay(daemon.paths.socket, b"cli") as cli:
        cli.send(Request(1, b"reflect"))
        daemon.status()  # by now the writer has been asked
        os.kill(writer, signal.SIGKILL)
        response = cli.wait_for(Response)
        assert response.error == b"the recorder was interrupted; try again"
    assert "steps" in daemon.ask_until_ready("reflect")


def test_a_helper_of_the_release_before_is_served(daemon: DaemonProcess) -> None:
    """T22."""
    with FakeRelay(daemon.paths.socket, protocol=PROTOCOL - 1) as older:
        older.wait_for_commit(older.type("ls"))
    with pytest.raises(ConnectionError), FakeRelay(daemon.paths.socket, protocol=PROTOCOL + 1) as x:
        x.wait_for_commit(x.type("not served"))
    assert daemon.commands() == ["ls"]


def test_a_paused_daemon_says_so_and_records_nothing(daemon: DaemonProcess) -> None:
    with daemon.relay() as relay:
        assert daemon.ask("pause")["paused"] is True
        _, reply = relay.ask("secret plans")
        assert reply.verdict is Verdict.PRIVATE
        assert daemon.ask("resume")["paused"] is False
        daemon.ask("pause", session=relay.session.hex())
        _, reply = relay.ask("private plans")
        assert reply.verdict is Verdict.PRIVATE
        with daemon.relay() as other:
            other.wait_for_commit(other.type("public"))
        assert daemon.status()["private_sessions"] == 1
        daemon.ask("resume", session=relay.session.hex())
        relay.wait_for_commit(relay.type("public again"))
    assert daemon.commands() == ["public", "public again"]


def test_looking_for_a_daemon_creates_nothing(home: Path) -> None:
    paths = find_paths(str(home))
    with pytest.raises(NoDaemonError):
        request(paths, "ping", autostart=False)
    assert not paths.state.exists()
