"""A stage for agents: a throw-away home with a recorded session, and programs run with and without.

What an agent does is start programs. So a test starts the same program twice, in the environment
that ``flightrec run`` makes and in a plain one, and compares what a caller can see.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from flightrec.agent_session import AgentSession, open_session, session_environment
from flightrec.paths import BASH_DOOR_NAME, find_paths
from flightrec.shimmed_programs import shimmed_programs
from helper_builds import helper
from recording_server import RecordingServer, recording_server

PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What the caller of a program sees."""

    status: int
    output: bytes
    errors: bytes


@dataclass(frozen=True, slots=True)
class Stage:
    """Two environments that differ by the recorder, and a folder to work in."""

    folder: Path
    plain: dict[str, str]
    recorded: dict[str, str]
    session: AgentSession

    def run(
        self,
        words: Sequence[str | bytes],
        environment: dict[str, str] | None = None,
        stdin: bytes = b"",
    ) -> Seen:
        """Start a program as most agents do: three pipes, and wait for the end of all."""
        done = subprocess.run(
            words,
            env=self.recorded if environment is None else environment,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Seen(done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def open_stage(home: Path, **variables: str) -> Iterator[Stage]:
    """Set up a session in ``home``, which is also $HOME; ``variables`` are the person's own."""
    helper()
    folder = home / "work"
    (folder / "sub").mkdir(parents=True)
    plain = {
        "HOME": str(home),
        "PATH": PLAIN_PATH,
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "SHLVL": "1",
        "GIT_CEILING_DIRECTORIES": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    command = Path(sys.executable).parent / "flightrec"
    names = shimmed_programs()
    with open_session(find_paths(), "stage", names, plain["PATH"], command) as session:
        environment = session_environment(plain, session)
        environment["FLIGHTREC_PATIENCE_MS"] = "2000"  # a busy machine is no dead daemon
        environment["FLIGHTREC_COMMAND"] = "/nonexistent/flightrec"  # no daemon beside the test's
        yield Stage(folder, plain, environment, session)


@contextlib.contextmanager
def throwaway_stage() -> Iterator[tuple[Stage, RecordingServer]]:
    """A stage in a home of its own, whose daemon only listens; for a whole module of tests."""
    with (
        tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("HOME", folder)
        with recording_server() as server, open_stage(Path(folder)) as stage:
            yield stage, server


def only(stage: Stage, *doors: str) -> dict[str, str]:
    """Return the recorded environment with these doors open and all others shut.

    Doors are PATH, BASH_ENV, ZDOTDIR and SHELL.
    """
    environment = dict(stage.recorded)
    for door in {"PATH", "BASH_ENV", "ZDOTDIR", "SHELL"} - set(doors):
        if door in stage.plain:
            environment[door] = stage.plain[door]
        else:
            environment.pop(door)
    return environment


def without_library(stage: Stage) -> dict[str, str]:
    """Return the recorded environment as a bash has it that loads no builtins: without ours."""
    placed = stage.session.placed.folder
    copy = placed.with_name("without-library")
    if not copy.exists():
        ignored = shutil.ignore_patterns(BASH_DOOR_NAME)
        shutil.copytree(placed, copy, symlinks=True, ignore=ignored)
    return {
        name: value.replace(f"{placed}/", f"{copy}/") if name != "FLIGHTREC_SCRIPTS" else str(copy)
        for name, value in stage.recorded.items()
    }


def processes_of(session: AgentSession) -> list[int]:
    """Return the pids of all processes of a session that are still there."""
    mark = f"FLIGHTREC_SESSION={session.id.hex()}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]
