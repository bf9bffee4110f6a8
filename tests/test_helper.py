"""The helper between two FIFOs and a socket: what it promises to the shell and to the daemon."""

import contextlib
import fcntl
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import helper_builds
from flightrec.missed import read_helper_counters
from flightrec.paths import Paths, find_paths, host_hash
from flightrec.wire import PROTOCOL, Hello, Reply, SessionEnded, Source, encode
from recording_server import RecordingServer, recording_server
from typed_shell import is_alive, stop

WaitFor = Callable[..., object]

BUILDS = ("released", "sanitized")


@pytest.fixture(params=BUILDS)
def helper(request: pytest.FixtureRequest) -> Path:
    built = helper_builds.helper if request.param == "released" else helper_builds.sanitized_helper
    return built()


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="musl-gcc is not installed")
def test_the_static_helper_is_small() -> None:
    assert helper_builds.helper().stat().st_size < 100_000


@pytest.fixture
def server(home: Path) -> Iterator[RecordingServer]:  # noqa: ARG001 - where it serves
    with recording_server() as running:
        yield running


@dataclass
class Relay:
    """A relay, with this test in the shell's place; ``shell`` is a process that may be ended."""

    helper: Path
    env: dict[str, str]
    shell: subprocess.Popen[bytes]
    starter: str = "/nonexistent"
    kind: str = "bash"
    stdin: int = subprocess.DEVNULL
    pid: int = 0
    to_relay: int = -1
    from_relay: int = -1
    folder: Path = field(default_factory=Path)
    number: int = 1
    said: str = ""

    def start(self) -> bool:
        """Start it as a shell does; return whether it wants to record."""
        done = subprocess.run(
            [self.helper, "relay", self.kind, str(self.shell.pid), self.starter],
            env=self.env,
            stdin=self.stdin,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 0
        assert done.stderr == b""
        self.said = os.fsdecode(done.stdout)
        if not self.said:
            return False
        script = (
            self.said + 'printf "%s\\0" "$__flightrec_in" "$__flightrec_out" "$__flightrec_relay"'
        )
        words = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
        into, out, pid, _ = words.split(b"\0")
        self.pid = int(pid)
        self.folder = Path(os.fsdecode(into)).parent
        self.to_relay = os.open(into, os.O_RDWR | os.O_NONBLOCK)
        self.from_relay = os.open(out, os.O_RDWR | os.O_NONBLOCK)
        return True

    def tell(self, *fields: str | bytes) -> None:
        """Write one record; the last field is its letter with what follows."""
        *rest, mark = [os.fsencode(one) for one in fields]
        data = b"".join(one + b"\0" for one in rest) + b"\1" + mark + b"\0"
        while data:
            try:
                data = data[os.write(self.to_relay, data) :]
            except BlockingIOError:
                select.select([], [self.to_relay], [], 5)

    def answer(self, limit_s: float = 10.0) -> str:
        """Return the next answer, or nothing where none comes in time."""
        ready, _, _ = select.select([self.from_relay], [], [], limit_s)
        return os.read(self.from_relay, 1).decode() if ready else ""

    def starting(
        self, command: str | bytes, flag: str = "+", first: str | bytes | None = None
    ) -> str:
        """Tell that a command is about to run; return the answer."""
        self.number += 1
        text = b"%5d  %s\n" % (self.number, os.fsencode(command))
        self.tell(text, "/tmp", command if first is None else first, f"S1{flag}#{self.number}")
        return self.answer()

    def finished(self, status: int, pipe: str = "") -> str:
        """Tell how it ended; return the answer, if one is due."""
        self.tell(str(status), pipe or str(status), "/tmp", "", "F2")
        return self.answer() if status else ""

    def run(self, command: str, status: int = 0) -> None:
        assert self.starting(command) == "1"
        assert self.finished(status) == ("2" if status else "")

    def close(self) -> None:
        for fd in (self.to_relay, self.from_relay):
            if fd >= 0:
                os.close(fd)
        self.to_relay = self.from_relay = -1
        self.shell.kill()
        self.shell.wait()
        if self.pid and is_alive(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


@pytest.fixture
def new_relay(clean_env: dict[str, str], helper: Path) -> Iterator[Callable[..., Relay]]:
    """Make relays, of the patience that a busy machine needs unless told otherwise."""
    made: list[Relay] = []

    def make(*, patience_ms: int | None = 3000, started: bool = True, **settings: object) -> Relay:
        env = {**clean_env, "ASAN_OPTIONS": "detect_leaks=0"}
        if patience_ms is not None:
            env["FLIGHTREC_PATIENCE_MS"] = str(patience_ms)
        env |= settings.pop("env", {})  # type: ignore[call-overload]  # a dict
        shell = subprocess.Popen(["sleep", "1000"])
        relay = Relay(helper, env, shell, **settings)  # type: ignore[arg-type]  # fields
        made.append(relay)
        if started:
            assert relay.start()
        return relay

    yield make
    for relay in made:
        relay.close()


NewRelay = Callable[..., Relay]


def counted() -> dict[str, int]:
    return read_helper_counters(find_paths().counters)


# ---- starting -------------------------------------------------------------------------------


def test_it_lives_where_python_looks_for_it(new_relay: NewRelay) -> None:
    relay = new_relay()

    assert relay.folder.parent == find_paths().run
    assert relay.folder.name.startswith(f"{host_hash(socket.gethostname())}.{relay.shell.pid}.")


def test_its_folders_are_closed_to_others_whatever_the_umask(new_relay: NewRelay) -> None:
    before = os.umask(0)
    try:
        relay = new_relay()
    finally:
        os.umask(before)

    for folder in (find_paths().state, find_paths().run, relay.folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for fifo in ("i", "o"):
        assert stat.S_ISFIFO((relay.folder / fifo).stat().st_mode)
        assert stat.S_IMODE((relay.folder / fifo).stat().st_mode) == 0o600


def test_it_is_detached_and_keeps_nothing_of_the_starter_open(
    new_relay: NewRelay, wait_for: WaitFor
) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)  # noqa: FBT003 - the system's own form
    relay = new_relay()
    os.close(writer)
    wait_for(lambda: Path(f"/proc/{relay.pid}/cwd").readlink() == Path("/"), what="it to settle")
    fields = Path(f"/proc/{relay.pid}/stat").read_text().rsplit(")", 1)[1].split()
    parent, group, session, terminal = fields[1:5]

    assert os.read(reader, 1) == b""  # nobody else has the other end
    assert (group, session, terminal) == (str(relay.pid), str(relay.pid), "0")
    assert parent != str(os.getpid())
    for standard in (0, 1, 2):
        assert Path(f"/proc/{relay.pid}/fd/{standard}").readlink() == Path(os.devnull)
    os.close(reader)


def test_pipes_keep_their_usual_size(new_relay: NewRelay) -> None:
    relay = new_relay()

    assert fcntl.fcntl(relay.to_relay, fcntl.F_GETPIPE_SZ) <= 64 * 1024


def test_it_takes_little_memory(
    new_relay: NewRelay, helper: Path, server: RecordingServer, wait_for: WaitFor
) -> None:
    if helper.name.endswith("asan"):
        pytest.skip("the sanitizer's own memory")
    relay = new_relay()
    for number in range(20):
        relay.run(f"echo {number}", number % 2)
    wait_for(lambda: len(server.finished) == 20, what="the commands")
    lines = Path(f"/proc/{relay.pid}/status").read_text().splitlines()
    resident_kb = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    assert resident_kb <= 500


@pytest.mark.parametrize("odd", ["it's", 'a "b" c', "$(touch pwned)", "new\nline", "é"])
def test_the_assignments_survive_any_home(
    odd: str, helper: Path, clean_env: dict[str, str], tmp_path: Path
) -> None:
    base = Path(clean_env["HOME"]) / odd
    base.mkdir()
    shell = subprocess.Popen(["sleep", "1000"])
    relay = Relay(helper, {**clean_env, "HOME": str(base)}, shell)
    try:
        assert relay.start()
        assert relay.folder.parent == Paths(base, host_hash(socket.gethostname())).run
        zsh = shutil.which("zsh")
        if zsh:
            script = relay.said + 'print -rn -- "$__flightrec_in"'
            found = subprocess.run(
                [zsh, "-fc", script], capture_output=True, check=True, cwd=tmp_path
            )
            assert os.fsdecode(found.stdout) == str(relay.folder / "i")
    finally:
        relay.close()
    assert not list(tmp_path.iterdir())


def silent(relay: Relay) -> bool:
    return not relay.start() and not relay.said


def test_it_is_silent_without_a_home(new_relay: NewRelay) -> None:
    for home in ("", "relative", "/nonexistent/x"):
        assert silent(new_relay(started=False, env={"HOME": home}))


def test_it_is_silent_under_sudo(new_relay: NewRelay) -> None:
    relay = new_relay(started=False, env={"SUDO_UID": "1000"})

    assert silent(relay)
    assert not find_paths().state.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a home away")
def test_it_is_silent_in_another_s_home(new_relay: NewRelay, home: Path) -> None:
    os.chown(home, 54321, 54321)

    assert silent(new_relay(started=False))
    assert not find_paths().state.exists()


def test_it_is_silent_where_the_socket_s_path_would_be_too_long(
    new_relay: NewRelay, home: Path
) -> None:
    long = home / ("x" * 80)
    long.mkdir()

    assert silent(new_relay(started=False, env={"HOME": str(long)}))


@pytest.mark.parametrize("trouble", ["open to others", "a link", "a file"])
def test_it_is_silent_where_the_state_folder_is_not_safe(
    trouble: str, new_relay: NewRelay, tmp_path: Path
) -> None:
    state = find_paths().state
    state.parent.mkdir(parents=True)
    if trouble == "a link":
        state.symlink_to(tmp_path)
    elif trouble == "a file":
        state.touch()
    else:
        state.mkdir()
        state.chmod(0o755)

    assert silent(new_relay(started=False))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [[], ["relay"], ["relay", "bash"], ["relay", "bash", "x"]])
def test_bad_arguments_break_no_rc_file(
    words: list[str], helper: Path, clean_env: dict[str, str]
) -> None:
    done = subprocess.run([helper, *words], env=clean_env, capture_output=True, check=False)

    assert done.stdout == b""
    assert done.returncode == (0 if words else 2)


def test_folders_of_dead_relays_are_swept_and_others_are_not(new_relay: NewRelay) -> None:
    live = new_relay()
    run = find_paths().run
    host = host_hash(socket.gethostname())
    old = time.time() - 3600
    dead, fresh, foreign = (
        run / name
        for name in (f"{host}.77.dead0000", f"{host}.78.0000beef", "ffffffff.79.00000000")
    )
    for folder in (dead, fresh, foreign):
        folder.mkdir()
        os.mkfifo(folder / "i")
        os.mkfifo(folder / "o")
        if folder != fresh:
            os.utime(folder, (old, old))
    os.utime(live.folder, (old, old))
    new_relay()

    assert not dead.exists()
    assert fresh.exists()
    assert foreign.exists()
    assert live.starting("echo still") == "1"


def test_a_second_relay_for_one_process_replaces_the_first(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    first = new_relay()
    first.run("echo before exec")
    second = Relay(first.helper, first.env, first.shell)
    assert second.start()
    try:
        wait_for(lambda: not is_alive(first.pid), what="the first to leave")
        second.run("echo after")
        wait_for(lambda: len(server.finished) == 2, what="both commands")
    finally:
        os.kill(second.pid, signal.SIGTERM)
    wait_for(lambda: len(server.ended_sessions) == 1, what="word of the first's end")


# ---- recording ------------------------------------------------------------------------------


def test_a_command_arrives_with_everything(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    relay = new_relay(env={"TMUX_PANE": "%7"})
    relay.tell("/usr/bin:/bin", "/venv", "", "E")
    assert relay.starting(b"ls \xff | cat") == "1"
    relay.finished(3, "3 0")
    wait_for(lambda: server.runs and server.runs[0].finished, what="the command")
    run = server.runs[0]
    assert run.finished is not None

    assert run.starting.command == b"ls \xff | cat"
    assert (run.starting.source, run.starting.shell) == (Source.RELAY, b"bash")
    assert (run.starting.pid, run.starting.cwd) == (relay.shell.pid, b"/tmp")
    assert (run.starting.path, run.starting.virtual_env) == (b"/usr/bin:/bin", b"/venv")
    assert (run.starting.conda_prefix, run.starting.tmux_pane) == (None, b"%7")
    assert run.starting.boot == Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    assert abs(run.starting.mono_us / 1e6 - time.monotonic()) < 60
    assert abs(run.starting.wall_us / 1e6 - time.time()) < 60
    assert (run.finished.exit, run.finished.pipestatus) == (3, [3, 0])
    assert run.finished.usec is not None
    assert server.messages[0] == Hello(PROTOCOL, server_version(), b"relay", relay.pid)


def server_version() -> bytes:
    from flightrec import __version__  # noqa: PLC0415 - one use

    return __version__.encode()


def test_the_variables_are_told_again_to_a_new_daemon(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    relay = new_relay()
    relay.tell("/first", "", "", "E")
    relay.run("echo 1")
    relay.run("echo 2")
    wait_for(lambda: len(server.finished) == 2, what="two commands")
    server.stop()
    server.start()
    wait_for(lambda: relay.starting("echo 3") == "1" and len(server.runs) > 2, what="a new link")
    wait_for(lambda: server.connections == 2, what="the new connection")
    relay.run("echo 4")
    wait_for(lambda: "echo 4" in server.commands, what="the fourth")

    paths = {run.command: run.starting.path for run in server.runs}
    assert (paths["echo 1"], paths["echo 2"]) == (b"/first", None)
    assert b"/first" in {paths["echo 3"], paths["echo 4"]}


def test_a_huge_line_is_counted_and_cut(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    relay = new_relay()
    assert relay.starting(b"x" * 2_000_000, first=b"x" * 4096) == "1"
    relay.finished(0)
    assert relay.starting("echo small") == "1"
    relay.finished(0)
    wait_for(lambda: len(server.finished) == 2, what="both commands")

    assert server.runs[0].starting.command == b"x" * 16384
    assert server.runs[0].starting.command_total == 2_000_000
    assert server.runs[1].command == "echo small"


def test_a_huge_path_variable_is_left_out(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    relay = new_relay()
    relay.tell("/p" * 40_000, "/v" * 3000, "/conda", "E")
    relay.run("echo one")
    wait_for(lambda: server.finished, what="the command")

    sent = server.runs[0].starting
    assert (sent.path, sent.virtual_env, sent.conda_prefix) == (None, None, b"/conda")


FIFO_GARBAGE = {
    "NULs": b"\0" * 100,
    "marks": b"\1\0" * 50,
    "an unknown letter": b"\1Q1\0",
    "too many fields": b"a\0b\0c\0d\0e\0f\0g\0",
    "too few fields": b"\1S\0",
    "another's fields": b"x\0\1F\0",
    "all bytes": bytes(range(256)),
    "a huge field": b"\xff" * 200_000 + b"\0",
    "a false successor": b"1\0\1X\0",
    "an empty head": b"\1P\0",
    "an odd head": b"y\0/\0c\0\1S9+#zz\0",
}


@pytest.mark.parametrize("garbage", FIFO_GARBAGE.values(), ids=FIFO_GARBAGE)
def test_garbage_from_the_shell_is_passed_over(
    garbage: bytes, new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    relay = new_relay()
    relay.tell("begin", "/", "", "S1z")
    relay.answer()
    for at in range(0, len(garbage), 4096):
        select.select([], [relay.to_relay], [], 5)
        os.write(relay.to_relay, garbage[at : at + 4096])
    os.write(relay.to_relay, b"\0\1P1\0")
    while relay.answer(0.5):
        pass
    relay.run("echo fine")
    wait_for(lambda: ("echo fine", 0) in server.finished, what="the next command")


def test_the_rest_of_an_interrupted_record_is_no_part_of_the_next(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    relay = new_relay()
    os.write(relay.to_relay, b"    1  echo interrupted\n")
    relay.run("echo whole")
    os.write(relay.to_relay, b"    2  echo again\nsome function\n")
    assert relay.starting("f x", first="f x") == "1"
    wait_for(lambda: len(server.runs) == 2, what="two commands")

    assert server.commands == ["echo whole", "f x"]


def test_a_clock_that_is_set_spoils_no_duration(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    relay = new_relay()
    for measured in ("-5000000", "99999999999"):
        relay.number += 1
        relay.tell(f"{relay.number:5}  (late)\n", "/tmp", "", f"L1+#{relay.number}")
        relay.answer()
        relay.tell("0", "0", "/tmp", measured, "F2")
    wait_for(lambda: len(server.finished) == 2, what="both commands")

    for run in server.runs:
        assert run.finished is not None
        assert run.finished.usec is not None
        assert 0 <= run.finished.usec < 60_000_000


def test_a_command_whose_end_is_never_told_stays_unknown(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    relay = new_relay()
    relay.starting("vanished")
    relay.run("echo next")
    wait_for(lambda: len(server.finished) == 2, what="both commands")

    assert server.finished == [("vanished", None), ("echo next", 0)]


def test_the_shell_s_end_ends_the_session_and_its_open_command(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    relay = new_relay()
    relay.run("echo one")
    relay.starting("exit")
    relay.shell.kill()
    relay.shell.wait()
    wait_for(lambda: server.ended_sessions, what="the session's end")
    wait_for(lambda: not is_alive(relay.pid), what="the relay to leave")

    assert server.finished == [("echo one", 0), ("exit", None)]
    assert isinstance(server.messages[-1], SessionEnded)
    assert not relay.folder.exists()
    assert counted() == {}


# ---- the daemon's moods ---------------------------------------------------------------------


def elapsed(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def test_a_daemon_that_does_not_answer_costs_20_ms_and_then_nothing(
    new_relay: NewRelay, server: RecordingServer
) -> None:
    relay = new_relay(patience_ms=None)
    relay.run("echo one")
    server.manners.replies = False
    first = elapsed(lambda: relay.starting("echo two"))
    later = [elapsed(lambda: relay.starting("echo more")) for _ in range(5)]

    assert first >= 0.019
    assert min(later) < 0.019
    assert counted()["missed replies"] == 1
    last = [m for m in server.messages if getattr(m, "wants_reply", False)]
    assert len(last) == 2


def test_a_stopped_daemon_costs_one_wait_and_gets_everything_when_it_goes_on(
    new_relay: NewRelay, home: Path, wait_for: WaitFor
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "from recording_server import main; main()"],
        cwd=Path(__file__).parent,
        env={**os.environ, "HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        relay = new_relay(patience_ms=None)
        relay.starting("echo one")
        relay.finished(0)
        stop(process.pid)
        times = [elapsed(lambda: relay.starting("echo x") and relay.finished(1)) for _ in range(5)]
        os.kill(process.pid, signal.SIGCONT)
        assert sorted(times)[2] < 0.019

        def told() -> bool:
            relay.shell.kill()
            relay.shell.wait()
            return not is_alive(relay.pid)

        wait_for(told, what="the relay to hand over everything")
        out, _ = process.communicate("", timeout=20)
    finally:
        process.kill()
    assert out.count("echo x") == 5
    assert counted().get("lost runs", 0) == 0


def test_what_was_not_committed_is_sent_again_and_wants_no_reply(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    server.manners.commits = False
    relay = new_relay()
    relay.run("echo one", 1)
    relay.run("echo two")
    wait_for(lambda: len(server.finished) == 2, what="both commands")
    before = len(server.messages)
    server.stop()
    server.manners.commits = True
    server.start()
    relay.run("echo three")
    wait_for(lambda: ("echo three", 0) in server.finished, what="the third command")

    again = [m for m in server.messages[before:] if not isinstance(m, Hello)]
    assert [getattr(m, "wants_reply", None) for m in again[:4]] == [False] * 4
    assert [m.run for m in again[:4]] == [  # type: ignore[union-attr]  # runs all
        server.runs[0].starting.run,
        server.runs[0].starting.run,
        server.runs[1].starting.run,
        server.runs[1].starting.run,
    ]


def test_what_was_committed_is_not_sent_again(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    relay = new_relay()
    relay.run("echo one")
    relay.run("echo two")
    wait_for(lambda: len(server.finished) == 2, what="both commands")
    relay.run("echo three")  # by its answer all before it was taken in
    before = len(server.messages)
    server.stop()
    server.start()
    relay.run("echo four")
    wait_for(lambda: ("echo four", 0) in server.finished, what="the fourth command")

    sent = [m.command for m in server.messages[before:] if hasattr(m, "command")]
    assert b"echo one" not in sent
    assert b"echo two" not in sent


def test_more_than_256_kib_without_a_daemon_loses_the_oldest_and_counts_them(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    server.stop()
    relay = new_relay()
    for number in range(60):
        relay.run(f"echo {number:03} {'x' * 8000}")
    server.start()
    wait_for(lambda: any(c.startswith("echo 059") for c in server.commands), what="the newest")
    wait_for(lambda: server.runs[-1].finished, what="its end")

    kept = [command[:8] for command in server.commands]
    assert 28 <= len(kept) <= 33
    assert kept == [f"echo {number:03}" for number in range(60 - len(kept), 60)]
    assert counted()["lost runs"] == 60 - len(kept)


def test_a_shell_that_ends_without_a_daemon_counts_what_is_lost(
    new_relay: NewRelay, home: Path, wait_for: WaitFor
) -> None:
    assert home.exists()
    relay = new_relay()
    relay.run("echo one")
    relay.run("echo two")
    relay.shell.kill()
    relay.shell.wait()
    wait_for(lambda: not is_alive(relay.pid), what="the relay to give up")

    assert counted()["lost runs"] == 2


SOCKET_GARBAGE = {
    "an empty frame": b"\0\0\0\0",
    "an endless frame": b"\xff\xff\xff\xff",
    "no MessagePack": b"\1\0\0\0\xc1",
    "text in a frame": b"\5\0\0\0hello",
    "another protocol": b"HTTP/1.1 200 OK\r\n\r\n",
    "a far release": encode(Hello(99, b"future")),
}


@pytest.mark.parametrize("garbage", SOCKET_GARBAGE.values(), ids=SOCKET_GARBAGE)
def test_a_server_that_talks_garbage_is_left_alone_and_counted(
    garbage: bytes, new_relay: NewRelay, server: RecordingServer
) -> None:
    relay = new_relay()
    relay.run("echo one")
    server.manners.garbage = garbage
    assert elapsed(lambda: relay.starting("echo two")) < 2
    assert relay.finished(1) == "2"
    heard = len(server.messages)
    relay.run("echo three", 1)

    assert counted()["bad frames"] == 1
    assert len(server.messages) == heard


def test_replies_to_others_and_half_frames_are_waited_past(
    new_relay: NewRelay, server: RecordingServer
) -> None:
    relay = new_relay(patience_ms=300)
    server.manners.garbage = encode(Reply(b"?" * 16, 0, 1, b"not yours")) + b"\x20\0"  # type: ignore[arg-type]  # raw
    assert elapsed(lambda: relay.starting("echo one")) >= 0.29

    assert counted()["missed replies"] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_server_of_another_uid_hears_nothing(
    new_relay: NewRelay, home: Path, wait_for: WaitFor
) -> None:
    relay = new_relay(patience_ms=None)
    assert home.exists()
    path = find_paths().socket
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    ready, heard = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(54321)
        listener.listen(5)
        os.write(ready[1], b"x")
        connection, _ = listener.accept()
        os.write(heard[1], b"got:" + connection.recv(4096) + b".")
        os._exit(0)
    try:
        os.read(ready[0], 1)
        wait_for(lambda: relay.starting("echo secret") and counted(), what="a connection")
        assert os.read(heard[0], 4096) == b"got:."
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert counted()["foreign servers"] >= 1


def test_a_daemon_with_a_full_backlog_is_no_trouble(new_relay: NewRelay, home: Path) -> None:
    relay = new_relay(patience_ms=None)
    assert home.exists()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(find_paths().socket))
    listener.listen(0)
    others = []
    with contextlib.suppress(BlockingIOError):
        while True:
            other = socket.socket(socket.AF_UNIX)
            other.setblocking(False)  # noqa: FBT003 - the system's own form
            others.append(other)
            other.connect(str(find_paths().socket))
    time.sleep(0.3)  # so that the link is tried again

    assert elapsed(lambda: relay.run("echo one", 1)) < 1
    for other in (*others, listener):
        other.close()


def test_a_server_that_reads_nothing_fills_no_memory_and_blocks_nobody(
    new_relay: NewRelay, home: Path
) -> None:
    relay = new_relay(patience_ms=None)
    assert home.exists()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(find_paths().socket))
    listener.listen(5)
    time.sleep(0.3)
    times = [elapsed(lambda: relay.run(f"echo {'y' * 12_000}")) for _ in range(120)]
    listener.close()

    assert sorted(times)[60] < 0.019
    assert counted()["lost runs"] > 0


def test_a_counter_file_that_is_odd_does_no_harm(new_relay: NewRelay, home: Path) -> None:
    relay = new_relay(patience_ms=1)
    assert home.exists()
    find_paths().counters.mkdir()
    relay.shell.kill()
    relay.shell.wait()
    assert find_paths().counters.is_dir()


# ---- autostart ------------------------------------------------------------------------------


def fake_flightrec(folder: Path) -> Path:
    """A program that notes how it was started: its words, its descriptors, its session."""
    program = folder / "flightrec"
    program.write_text(
        "#!/bin/sh\nfds=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2)\n"
        f'printf \'%s\\n\' "$*" "$fds" "$(ps -o sid= -p $$)" >>\'{folder}/started\'\n'
    )
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("place", ["given", "on PATH"])
def test_a_missing_daemon_is_started_once_in_30_s(
    place: str, new_relay: NewRelay, home: Path, wait_for: WaitFor
) -> None:
    program = fake_flightrec(home)
    path = f"relative:.:{home}:/usr/bin:/bin"
    starter = str(program) if place == "given" else ""
    relay = new_relay(starter=starter, env={"PATH": path})
    started = home / "started"
    wait_for(started.exists, what="the start")
    for number in range(3):
        relay.run(f"echo {number}")
    new_relay(starter=starter, env={"PATH": path}).run("echo other shell")
    words = started.read_text().split("\n")

    assert words[:4] == ["daemon start", "/dev/null", "/dev/null", "/dev/null"]
    assert int(words[4]) not in (relay.pid, os.getsid(0))
    assert started.read_text().count("daemon start") == 1
    assert counted()["autostarts"] == 1
    old = time.time() - 31
    os.utime(find_paths().run / f"{host_hash(socket.gethostname())}.autostart", (old, old))
    time.sleep(2)  # a command brings the next try forward to this
    relay.run("echo later")
    wait_for(lambda: started.read_text().count("daemon start") == 2, what="the second start")


def test_nothing_is_started_where_a_daemon_listens(
    new_relay: NewRelay, server: RecordingServer, home: Path
) -> None:
    relay = new_relay(starter=str(fake_flightrec(home)))
    relay.run("echo one")

    assert server.commands == ["echo one"]
    assert not (home / "started").exists()


# ---- the terminal ---------------------------------------------------------------------------


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The two ends of a terminal: a person's and a shell's."""
    person, shell = os.openpty()
    yield person, shell
    os.close(person)
    os.close(shell)


def test_a_hint_is_on_the_terminal_before_the_shell_goes_on(
    new_relay: NewRelay, server: RecordingServer, terminal: tuple[int, int]
) -> None:
    person, shell = terminal
    server.manners.hints = {"gti": "flightrec: try: git"}
    server.manners.late_hints = {"late": "flightrec: too late"}
    relay = new_relay(stdin=shell)
    relay.starting("gti st")
    assert os.read(person, 1000) == b"flightrec: try: git\r\r\n"
    relay.finished(0)
    relay.run("late", 1)
    assert os.read(person, 1000) == b"flightrec: too late\r\r\n"
    flags = fcntl.fcntl(shell, fcntl.F_GETFL)

    assert server.runs[0].starting.tty == os.fsencode(os.ttyname(shell))
    assert not flags & os.O_NONBLOCK


def test_a_terminal_that_takes_nothing_holds_nobody_up(
    new_relay: NewRelay, server: RecordingServer, terminal: tuple[int, int]
) -> None:
    _, shell = terminal
    server.manners.hints = {"gti": "flightrec: " + "x" * 900}
    relay = new_relay(stdin=shell)
    termios.tcflow(shell, termios.TCOOFF)
    try:
        assert max(elapsed(lambda: relay.starting("gti")) for _ in range(30)) < 2
    finally:
        termios.tcflow(shell, termios.TCOON)


# ---- hint and send --------------------------------------------------------------------------


def call(helper: Path, env: dict[str, str], *words: str, stdin: bytes = b"") -> tuple[int, str]:
    done = subprocess.run(
        [helper, *words], env=env, input=stdin, capture_output=True, timeout=20, check=False
    )
    return done.returncode, os.fsdecode(done.stdout)


@pytest.fixture
def patient(clean_env: dict[str, str]) -> dict[str, str]:
    return {**clean_env, "FLIGHTREC_PATIENCE_MS": "3000", "ASAN_OPTIONS": "detect_leaks=0"}


def test_a_script_may_ask_for_a_hint_and_report_the_end(
    helper: Path, patient: dict[str, str], server: RecordingServer, wait_for: WaitFor
) -> None:
    server.manners.hints = {"gti": "flightrec: try: git"}
    run, session = "ab" * 16, "cd" * 16
    ids = ("--run", run, "--session", session)
    assert call(
        helper, patient, "hint", *ids, "--cwd", "/tmp", "--agent", "pi", "--", "gti st"
    ) == (
        0,
        "flightrec: try: git\n",
    )
    ended = ("send", *ids, "--exit", "127", "--usec", "1500", "--tail")
    assert call(helper, patient, *ended, stdin=b"x" * 9000 + b"not found\n") == (0, "")
    wait_for(lambda: server.runs[0].finished, what="the end")
    starting, finished = server.runs[0].starting, server.runs[0].finished
    assert finished is not None

    assert (starting.run, starting.session) == (bytes.fromhex(run), bytes.fromhex(session))
    assert (starting.source, starting.agent, starting.cwd) == (Source.HOOK, b"pi", b"/tmp")
    assert (finished.exit, finished.usec, finished.tail_total) == (127, 1500, 9010)
    assert finished.tail == b"x" * (8192 - 10) + b"not found\n"


def test_a_script_may_report_a_whole_command_at_once(
    helper: Path, patient: dict[str, str], server: RecordingServer
) -> None:
    assert call(helper, patient, "send", "--exit", "0", "--", "--odd command") == (0, "")

    assert server.finished == [("--odd command", 0)]


WRONG_WORDS = {
    "an id": ["--run", "xyz", "c"],
    "a number": ["--exit", "one", "c"],
    "an option": ["--what", "1", "c"],
    "a path": ["--cwd", "/" * 5000, "c"],
    "two commands": ["c", "d"],
    "no value": ["--run"],
}


@pytest.mark.parametrize("role", ["hint", "send"])
@pytest.mark.parametrize("words", WRONG_WORDS.values(), ids=WRONG_WORDS)
def test_wrong_words_say_how_and_fail_nobody(
    role: str, words: list[str], helper: Path, patient: dict[str, str], server: RecordingServer
) -> None:
    done = subprocess.run(
        [helper, role, *words], env=patient, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"flightrec-helper {role}: usage: ")
    assert not server.messages


@pytest.mark.parametrize("role", ["hint", "send"])
def test_without_a_daemon_hooks_are_silent_and_quick(
    role: str, helper: Path, clean_env: dict[str, str]
) -> None:
    assert elapsed(lambda: call(helper, clean_env, role, "--", "ls")) < 5
    assert call(helper, clean_env, role, "--", "ls") == (0, "")


def test_the_version_is_the_package_s(helper: Path, clean_env: dict[str, str]) -> None:
    assert call(helper, clean_env, "--version") == (
        0,
        f"flightrec-helper {server_version().decode()}\n",
    )


def test_relays_that_start_together_do_not_meet(
    new_relay: NewRelay, server: RecordingServer, wait_for: WaitFor
) -> None:
    relays = [new_relay(started=False) for _ in range(16)]
    threads = [threading.Thread(target=relay.start) for relay in relays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for number, relay in enumerate(relays):
        relay.run(f"echo {number}")
    wait_for(lambda: len(server.finished) == 16, what="all commands")

    assert len({relay.folder for relay in relays}) == 16
    assert len({run.starting.session for run in server.runs}) == 16
