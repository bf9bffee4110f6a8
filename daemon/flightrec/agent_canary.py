"""A harmless command that fails, in a shell as an agent would start it, and what became of it.

No model and no client is needed for that: the shell, its words, streams and variables are the
client's (``agent_shells``), the environment is what ``flightrec run`` or the client's own settings
give it.
"""

import contextlib
import os
import secrets
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from flightrec.agent_shells import ShellStart, Stream
from flightrec.config import Level, load_settings
from flightrec.errors import FlightrecError
from flightrec.paths import Paths
from flightrec.store import RecordedRun, RunFilter, Store

PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Flown:
    """A canary that was let go: its command, what its caller saw, and what the daemon has of it."""

    command: str
    cwd: str
    status: int
    run: RecordedRun | None
    took_s: float


def fly(
    start: ShellStart, agent: str, environment: Mapping[str, str], paths: Paths, cwd: Path
) -> Flown:
    """Run a failing command in such a shell, and wait until the daemon has it, not for ever.

    ``environment`` lacks only what the client itself adds. Raises FlightrecError where the shell
    cannot be started.
    """
    name = f"flightrec-canary-{secrets.token_hex(8)}"
    command = f"test -n x && git --{name}" if start.is_seen else f"git --{name}"
    marks = {key: value.format(session=name) for key, value in start.marks.items()}
    began_us, began_s = time.time_ns() // 1000, time.monotonic()
    status = _run(start, command, {**environment, **marks}, cwd)
    run = None
    while run is None and time.monotonic() - began_s < PATIENCE_S:
        run = _find(paths, name, agent, began_us)
        time.sleep(0 if run else 0.05)
    return Flown(command, str(cwd), status, run, time.monotonic() - began_s)


def what_is_wrong(flown: Flown, agent: str, paths: Paths) -> Iterator[str]:
    """Yield what the daemon has otherwise than it was."""
    run = flown.run
    if run is None:
        yield "it did not arrive"
        return
    level = load_settings(paths.config).capture.level
    if level is not Level.METADATA and run.command != flown.command:
        yield f"its text is {run.command!r}"
    if run.exit != flown.status:
        yield f"its exit status is {run.exit}, not {flown.status}"
    if run.cwd != flown.cwd:
        yield f"its folder is {run.cwd!r}"
    if run.agent != agent:
        yield f"it is taken for {run.agent or 'yours'}"
    if level is Level.EVIDENCE and not run.tail:
        yield "the end of its output is missing"


def _find(paths: Paths, name: str, agent: str, began_us: int) -> RecordedRun | None:
    names_only = load_settings(paths.config).capture.level is Level.METADATA
    wanted = RunFilter(since_us=began_us, agent=agent if names_only else None)
    with contextlib.closing(Store.open_read_only(paths.database)) as store:
        for run in store.recent_runs(50, wanted):
            if name in run.command or (names_only and run.program == "git"):
                return run
    return None


# --- the shell -----------------------------------------------------------------------------------


def _run(start: ShellStart, command: str, environment: Mapping[str, str], cwd: Path) -> int:
    """Run the shell to its end; return its exit status."""
    words = start.words(command, environment.get("SHELL") or "/bin/bash")
    with contextlib.ExitStack() as streams:
        stdin = _stream(start.stdin, streams)
        output = _stream(start.output, streams)
        try:
            done = subprocess.run(
                words,
                cwd=cwd,
                env=dict(environment),
                stdin=stdin,
                stdout=output,
                stderr=output,
                timeout=PATIENCE_S,
                check=False,
                start_new_session=True,
            )
        except OSError as error:
            raise FlightrecError(f"{words[0]} cannot be started: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise FlightrecError(f"{words[0]} hung for {PATIENCE_S:.0f} s") from None
    return done.returncode


def _stream(kind: Stream, opened: contextlib.ExitStack) -> int:
    """Return a descriptor of this kind, with room for what a canary writes."""
    if kind is Stream.NULL:
        return subprocess.DEVNULL
    if kind is Stream.FILE:
        return opened.enter_context(tempfile.TemporaryFile()).fileno()
    if kind is Stream.SOCKET:
        ours, theirs = socket.socketpair()
        opened.enter_context(ours)
        return opened.enter_context(theirs).fileno()
    ours_fd, theirs_fd = os.pipe()
    opened.callback(os.close, ours_fd)
    opened.callback(os.close, theirs_fd)
    return theirs_fd
