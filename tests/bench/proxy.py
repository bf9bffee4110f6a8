"""What the terminal proxy costs: a key, a stream, a command, a new shell, memory.

Each is measured side by side with the same without the proxy, in turns. `script` (util-linux)
copies a session too and does nothing else: it stands beside, as far as it is installed.

Streams and starts are the least of many rounds, keys the lower quartile and commands the median of
very many: what else the machine does falls on all alike, and not on every round.

A key wakes six processes and threads one after the other instead of two. How long an idle
processor takes to wake up is the machine's doing, so keys are measured with processors that are
kept awake (by loops that run only where nothing else does), and with idle ones.
"""

import contextlib
import fcntl
import os
import pty
import random
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench.interactive import PROMPT, SCRIPTS, daemon_home, recording_home, short_home
from tests.bench.table import Row
from tests.helper_builds import helper

from flightrec.installation import first_line, rc_line

TITLE = "The terminal proxy"

LIMIT_S = 60.0
KEYS, KEY_PAUSE_S = 1500, 0.0005
STREAM_BYTES, STREAM_ROUNDS = 35_000_000, 15
STARTS = 60
COMMANDS = 300

PLAIN, INSIDE, OTHER = "plain", "inside the proxy", "inside script"


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str]) -> None:
        program = shutil.which(words[0]) or words[0]
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(program, list(words), dict(env))  # noqa: S606 - what is measured
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def press(self, key: bytes) -> float:
        """Return microseconds from a key to whatever is shown of it."""
        began = time.perf_counter()
        os.write(self.fd, key)
        os.read(self.fd, 4096)
        return (time.perf_counter() - began) * 1e6

    def until(self, text: bytes) -> None:
        """Read until this was shown."""
        heard = b""
        while text not in heard:
            ready, _, _ = select.select([self.fd], [], [], LIMIT_S)
            if not ready:
                raise TimeoutError(repr(heard[-300:]))
            heard = heard[-len(text) :] + os.read(self.fd, 65536)

    def run(self, line: bytes, prompt: bytes = PROMPT) -> float:
        """Return seconds from Enter to the next prompt."""
        began = time.perf_counter()
        os.write(self.fd, line + b"\n")
        self.until(prompt)
        return time.perf_counter() - began

    def close(self) -> None:
        """Hang up."""
        os.close(self.fd)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def wrapped(how: str, words: Sequence[str]) -> list[str]:
    """Return the command line of ``words`` in one of the ways that are compared."""
    if how == PLAIN:
        return list(words)
    if how == OTHER:
        return ["script", "-qec", " ".join(f"'{word}'" for word in words), "/dev/null"]
    program = shutil.which(words[0])
    assert program is not None
    return [str(helper()), "pty", program, "/nonexistent", "--", *words]


def ways() -> list[str]:
    """Return what can be compared here."""
    return [PLAIN, INSIDE, *([OTHER] if shutil.which("script") else [])]


def environment(home: Path) -> dict[str, str]:
    """Return what a shell gets."""
    return {
        "HOME": str(home),
        "ZDOTDIR": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
        "INPUTRC": "/dev/null",
        "SHELL": "/bin/sh",
    }


def shell_words(kind: str, home: Path, rc: str) -> list[str]:
    """Write an rc file; return the shell's command line."""
    text = f"PS1='{PROMPT.decode()}' HISTFILE=\n{rc}\n"
    if kind == "zsh":
        (home / ".zshrc").write_text(f"unsetopt zle prompt_sp\n{text}")
        return ["zsh", "-d", "-i"]
    (home / "rc").write_text(f"bind 'set enable-bracketed-paste off'\n{text}")
    return ["bash", "--noprofile", "--rcfile", str(home / "rc"), "-i"]


def loading(kind: str, *names: str) -> str:
    """Return rc lines that load these scripts of the source tree."""
    lines = [f"__flightrec_helper='{helper()}' __flightrec_command=/nonexistent"]
    return "\n".join([*lines, *(f". '{SCRIPTS}/{name}.{kind}'" for name in names)])


@contextlib.contextmanager
def terminals(
    home: Path, words: Callable[[str], Sequence[str]], names: Sequence[str]
) -> Iterator[dict[str, Terminal]]:
    """Open a terminal for each name; close them all."""
    with contextlib.ExitStack() as stack:
        opened = {}
        for name in names:
            opened[name] = Terminal(words(name), environment(home))
            stack.callback(opened[name].close)
        yield opened


def in_turns(names: Sequence[str], rounds: int) -> Iterator[str]:
    """Yield the names, in another order each round."""
    for _ in range(rounds):
        yield from random.sample(list(names), len(names))


@contextlib.contextmanager
def processors_awake() -> Iterator[None]:
    """Keep every processor from going to sleep, and out of nobody's way."""
    pids = []
    for processor in os.sched_getaffinity(0):
        pid = os.fork()
        if pid == 0:
            os.sched_setaffinity(0, {processor})
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            while True:
                pass
        pids.append(pid)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def quartile(values: Sequence[float]) -> float:
    """Return what a quarter of the values stays below."""
    return statistics.quantiles(values, n=4)[0]


def key_rows(state: str, bar: str) -> list[Row]:
    """Measure from a key to its echo, which the kernel makes: nothing else takes time."""
    words = ["sh", "-c", "stty -icanon; echo ready; exec cat >/dev/null"]
    with short_home() as home, terminals(home, lambda way: wrapped(way, words), ways()) as opened:
        for terminal in opened.values():
            terminal.until(b"ready")
        time.sleep(0.2)
        times: dict[str, list[float]] = {way: [] for way in opened}
        for way in in_turns(list(opened), KEYS):
            times[way].append(opened[way].press(b"x"))
            time.sleep(KEY_PAUSE_S)
    base = quartile(times[PLAIN])
    return [
        Row(f"added to a key, {state}, {way}", quartile(values) - base, "µs",
            bar if way == INSIDE else "", f"{base:.0f} µs without")
        for way, values in times.items()
        if way != PLAIN
    ]  # fmt: skip


def write_stream(path: Path) -> None:
    """Write a text of lines as logs have them."""
    line = "2026-11-30 12:00:00 info: line %d of a log that is about eighty columns wide\n"
    with path.open("w") as file:
        number = 0
        while file.tell() < STREAM_BYTES:
            number += 1
            file.write(line % number)


def stream_rows(kind: str) -> list[Row]:
    """Measure ``cat`` of a large file, typed at the prompt, until the next prompt."""
    with recording_home() as home, contextlib.ExitStack() as stack:
        folders = {way: home / str(number) for number, way in enumerate(ways())}
        write_stream(home / "stream")
        opened = {}
        for way, folder in folders.items():
            folder.mkdir()
            rc = loading(kind, "flightrec") if way == INSIDE else ""
            words = shell_words(kind, folder, rc)
            env = {**environment(folder), "HOME": str(home)}
            opened[way] = Terminal(wrapped(way, words), env)
            stack.callback(opened[way].close)
            opened[way].until(PROMPT)
        times: dict[str, list[float]] = {way: [] for way in opened}
        for way in in_turns(list(opened), STREAM_ROUNDS):
            times[way].append(opened[way].run(f"cat {home}/stream; true".encode()))
        processes = proxy_processes(opened[INSIDE].pid)
        own, share = (sum(memory_kb(pid, what) for pid in processes) for what in ("Private", "Pss"))
    base, middle = min(times[PLAIN]), statistics.median(times[PLAIN])
    bars = {INSIDE: "≤ 1.4×"}
    rows = [
        Row(f"{kind}: cat of 35 MB, {way}", min(values) / base, "×", bars.get(way, ""),
            f"medians {statistics.median(values) / middle:.2f}×; {base:.2f} s without")
        for way, values in times.items()
        if way != PLAIN
    ]  # fmt: skip
    note = f"private pages of holder and worker; {share} KB with their share of others (Pss)"
    return [*rows, Row(f"{kind}: memory after that", own, "KB", "≤ 500 KB", note)]


def proxy_processes(holder: int) -> list[int]:
    """Return holder and worker."""
    children = Path(f"/proc/{holder}/task/{holder}/children").read_text(encoding="ascii").split()
    name = helper().name
    workers = [int(p) for p in children if Path(f"/proc/{p}/exe").readlink().name == name]
    return [holder, *workers]


def memory_kb(pid: int, what: str) -> int:
    """Return a process's memory: the sum of the lines that begin so in ``smaps_rollup``."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return sum(map(int, re.findall(rf"^{what}(?:_Clean|_Dirty)?: +(\d+) kB", text, re.MULTILINE)))


def start_rows(kind: str) -> list[Row]:
    """Measure from a shell's start to its first prompt, with the lines that ``install`` writes."""
    setups = {
        "nothing": "",
        "flightrec, messages only": rc_line(kind),
        "flightrec in the proxy": f"{first_line(kind)}\n{rc_line(kind)}",
    }
    with daemon_home() as home:
        env = {**environment(home), "SHELL": f"/bin/{kind}"}
        install = [sys.executable, "-m", "flightrec", "install", "--yes", "--tail"]
        subprocess.run(install, env={**os.environ, **env}, stdout=subprocess.DEVNULL, check=True)
        times: dict[str, list[float]] = {name: [] for name in setups}
        for name in in_turns(list(setups), STARTS):
            rc = f"{setups[name]}\nPS1='{PROMPT.decode()}' HISTFILE=\n"
            (home / f".{kind}rc").write_text(rc)
            began = time.perf_counter()
            terminal = Terminal([kind], environment(home))
            terminal.until(PROMPT)
            times[name].append((time.perf_counter() - began) * 1e3)
            terminal.close()
    base = min(times["nothing"])
    bars = {"flightrec, messages only": "≤ 10 ms", "flightrec in the proxy": "≤ 15 ms"}
    return [
        Row(f"{kind}: a new shell with {name}", min(values) - base, "ms", bars[name],
            f"{base:.1f} ms with an empty rc file")
        for name, values in times.items()
        if name in bars
    ]  # fmt: skip


def command_rows(kind: str) -> list[Row]:
    """Measure a command that does nothing, from Enter to the next prompt."""
    with recording_home() as home, contextlib.ExitStack() as stack:
        opened = {}
        for name, script, way in (
            ("nothing", "", PLAIN),
            ("messages only", "flightrec", PLAIN),
            ("the proxy", "flightrec", INSIDE),
            ("fork", "", PLAIN),
        ):
            folder = home / name.replace(" ", "-")
            folder.mkdir()
            rc = loading(kind, script) if script else ""
            words = wrapped(way, shell_words(kind, folder, rc))
            opened[name] = Terminal(words, {**environment(folder), "HOME": str(home)})
            stack.callback(opened[name].close)
            opened[name].until(PROMPT)
        times: dict[str, list[float]] = {name: [] for name in opened}
        for name in in_turns(list(opened), COMMANDS):
            times[name].append(opened[name].run(b"/bin/true" if name == "fork" else b":") * 1e6)
    median = {name: statistics.median(values) for name, values in times.items()}
    unit = median["fork"] - median["nothing"]
    return [
        Row(f"{kind}: added to a command with {name}", median[name] - median["nothing"], "µs", "",
            f"{(median[name] - median['nothing']) / unit:.2f} of a fork+exec of /bin/true")
        for name in ("messages only", "the proxy")
    ]  # fmt: skip


def rows() -> list[Row]:
    """Return all figures."""
    with processors_awake():
        found = key_rows("processors awake", "≤ 35 µs")
    found += key_rows("processors idle", "")
    for kind in ("bash", "zsh"):
        if shutil.which(kind):
            found += [*stream_rows(kind), *start_rows(kind), *command_rows(kind)]
    return found
