"""The daemon under load: answers, round trips, what is sustained without a drop, and what it costs.

A child process plays the shells, so that their work is not counted as the daemon's.
"""

import asyncio
import contextlib
import os
import select
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.bench.hints import known_bad, make_rules
from tests.bench.table import Row

from daemon_process import DaemonProcess, wait_until
from fake_relay import FakeRelay, finished, starting
from flightrec.config import Settings
from flightrec.front import Front
from flightrec.link import Feed
from flightrec.paths import find_paths
from flightrec.pausing import Pause
from flightrec.recording import Recording
from flightrec.wire import CommandFinished, CommandStarting, TailSource

TITLE = "The daemon"

SESSIONS = 10
SECONDS = 15.0
RULES = 100_000
PROBE_EVERY_S = 0.02
PATIENCE_S = 300.0
"""A machine that is busy otherwise shall still give a figure, however bad."""

COMMANDS = (
    "git status",
    "cd /srv/app && pytest -q tests/test_x.py -k name 2>&1 | tail -20",
    "npm run build -- --mode production",
    "ls -la",
    "docker compose -f compose.yml up -d service",
    "make -j4",
    "vim notes.md",
)
TAIL = b"Traceback (most recent call last):\n" + b'  File "x.py", line 1, in <module>\n' * 30
FAILS_EVERY = 7
"""One command in so many fails, with a kilobyte of error text."""


def rows() -> list[Row]:
    """Measure all of it, the quick parts first."""
    return [
        *_answers(),
        *_writing(),
        *_start(),
        *_round_trips(0),
        *_round_trips(1_000),
        *_round_trips(2_000),
    ]


@contextlib.contextmanager
def _home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="fr-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _command(number: int, session: bytes) -> tuple[CommandStarting, CommandFinished]:
    begun = starting(f"{COMMANDS[number % len(COMMANDS)]} {number}", session)
    if number % FAILS_EVERY:
        return begun, finished(begun)
    return begun, finished(begun, 1, tail=TAIL, tail_source=TailSource.STDERR, tail_total=len(TAIL))


def _percentiles(what: str, taken_s: list[float], unit: str, bars: tuple[str, str]) -> list[Row]:
    scale = {"ms": 1e3, "µs": 1e6}[unit]
    taken_s.sort()
    p99 = taken_s[len(taken_s) * 99 // 100]
    return [
        Row(f"{what}: p50", statistics.median(taken_s) * scale, unit, bars[0]),
        Row(f"{what}: p99", p99 * scale, unit, bars[1]),
    ]


# --- in the front, without sockets -----------------------------------------------------------


class _Deaf:
    """A peer that is sent things."""

    def send(self, frame: bytes) -> None:
        """Drop it."""


def _answers() -> list[Row]:
    """Time from a whole message to its reply, with many rules, in the front's own process."""
    measured: list[Row] = []

    async def ask() -> None:
        with _home() as home:
            front = Front(Pause(home / "paused"), str(home), lambda: None)
            front.desk.take(list(make_rules(RULES)))
            for name, commands in (("ordinary", list(COMMANDS)), ("known-bad", known_bad(RULES))):
                await _warm(front, commands)
                taken = [_time_answer(front, commands[n % len(commands)], n) for n in range(5_000)]
                what = f"answer, {name} command, {RULES:,} rules"
                measured.extend(_percentiles(what, taken, "ms", ("≤ 0.15 ms", "≤ 2 ms")))

    asyncio.run(ask())
    return measured


async def _warm(front: Front, commands: Sequence[str]) -> None:
    """Have the places known, as they are after a shell's first command there."""
    for command in commands[:10]:
        front.handle(starting(command, os.urandom(16), wants_reply=True), _Deaf())
        await asyncio.sleep(0.02)


def _time_answer(front: Front, command: str, number: int) -> float:
    begun = starting(f"{command} {number}", number.to_bytes(16, "big"), wants_reply=True)
    start = time.perf_counter()
    front.handle(begun, _Deaf())
    taken = time.perf_counter() - start
    front.handle(finished(begun), _Deaf())
    front.backlog.take()
    front.backlog.settle([begun.run])
    return taken


# --- in the writer, without sockets ----------------------------------------------------------


def _writing() -> list[Row]:
    """CPU time of the writer for a run: redaction, learning and its share of a commit."""
    with _home() as home:
        paths = find_paths(str(home))
        paths.state.mkdir(parents=True, mode=0o700)
        recording = Recording.open(paths, Settings())
        sessions = [os.urandom(16) for _ in range(SESSIONS)]

        def cost(wanted: Callable[[int], bool]) -> float:
            numbers = [n for n in range(30_000) if wanted(n)][:4_000]
            feeds = [Feed(*_command(n, sessions[n % SESSIONS])) for n in numbers]
            before = time.process_time()
            for at in range(0, len(feeds), 100):
                recording.commit(feeds[at : at + 100])
            return (time.process_time() - before) / len(feeds) * 1e6

        success = cost(lambda n: n % FAILS_EVERY != 0)
        failure = cost(lambda n: n % FAILS_EVERY == 0)
        recording.close()
    return [
        Row("writer, a success", success, "µs", "≤ 350 µs"),
        Row("writer, a failure with 1 KB of error text", failure, "µs", "≤ 1,000 µs"),
    ]


# --- the whole daemon ------------------------------------------------------------------------


def _start() -> list[Row]:
    with _home() as home:
        start = time.perf_counter()
        with DaemonProcess(home) as daemon:
            bound = time.perf_counter() - start
            daemon.wait_for_writer()
            ready = time.perf_counter() - start
            memory = [_resident(pid) for pid in (daemon.pid, daemon.writer_pid() or 0)]
    return [
        Row("start until the socket is bound", bound * 1e3, "ms"),
        Row("start until the database is open", ready * 1e3, "ms", "≤ 2,000 ms"),
        Row("memory of the front, idle", memory[0], "MiB", "≤ 80 MiB"),
        Row("memory of the writer, idle", memory[1], "MiB", "≤ 60 MiB"),
    ]


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@dataclass
class _Load:
    """So many commands per second by ``SESSIONS`` shells of another process."""

    socket: Path
    per_second: int

    def run(self) -> tuple[int, float]:
        """Type for ``SECONDS``; return how many commands, and how long the last ones waited."""
        if not self.per_second:
            time.sleep(SECONDS / 3)
            return 0, 0.0
        relays = [FakeRelay(self.socket) for _ in range(SESSIONS)]
        runs: list[list[bytes]] = [[] for _ in relays]
        begun = time.perf_counter()
        sent = 0
        while (now := time.perf_counter() - begun) < SECONDS:
            while sent < now * self.per_second:
                at = sent % SESSIONS
                pair = _command(sent, relays[at].session)
                relays[at].send(*pair)
                runs[at].append(pair[0].run)
                sent += 1
            for relay in select.select(relays, [], [], 0.001)[0]:
                relay.receive()
        for relay, theirs in zip(relays, runs, strict=True):
            relay.wait_for_commit(*theirs, limit_s=PATIENCE_S)
        return sent, time.perf_counter() - begun - SECONDS


def _round_trips(per_second: int) -> list[Row]:
    """Ask for hints while others type."""
    name = f"{per_second:,}/s" if per_second else "idle"
    with _home() as home, DaemonProcess(home) as daemon:
        daemon.wait_for_writer()
        pid, result = _in_background(_Load(daemon.paths.socket, per_second))
        with daemon.relay() as probe:
            kept, fresh = [], []
            while not select.select([result], [], [], PROBE_EVERY_S)[0]:
                kept.append(_time(lambda: probe.ask("gti status")))
                fresh.append(_time(lambda: _connect_and_ask(daemon)))
        sent, waited = os.read(result, 100).decode().split()
        os.waitpid(pid, 0)
        os.close(result)
        wait_until(lambda: daemon.status()["waiting"] == 0, limit_s=PATIENCE_S)
        found = daemon.status()
        memory = [_resident(one) for one in (daemon.pid, daemon.writer_pid() or 0)]
    bars = ("≤ 1.5 ms", "≤ 10 ms" if per_second <= 1_000 else "≤ 15 ms")
    measured = [
        *_percentiles(f"{name}: round trip", kept, "ms", bars),
        *_percentiles(f"{name}: connect and round trip", fresh, "ms", bars),
    ]
    if not per_second:
        return measured
    dropped = sum(found["missed"].values())
    return [
        *measured,
        Row(f"{name}: typed", float(sent), "commands", f"{per_second * SECONDS:,.0f}"),
        Row(f"{name}: dropped", dropped, "commands", "0"),
        Row(f"{name}: all stored after", float(waited), "s", "≤ 1 s"),
        Row(f"{name}: memory of front and writer", sum(memory), "MiB", "≤ 140 MiB"),
    ]


def _in_background(load: _Load) -> tuple[int, int]:
    """Run the load in a child; return its pid and where its result can be read."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            sent, waited = load.run()
            os.write(write, f"{sent} {waited:.3f}".encode())
        finally:
            os._exit(0)
    os.close(write)
    return pid, read


def _connect_and_ask(daemon: DaemonProcess) -> None:
    with daemon.relay(b"hint") as client:
        client.ask("gti status")


def _time(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
