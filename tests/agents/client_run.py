"""Runs a client in a throw-away home: as somebody who is not root, with no network but loopback."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agents.clients import Client
from agents.loopback import Loopback, loopback, put_in_the_place_of
from agents.mock_model import MockModel, Script, mock_model
from agents.node import NODE_FOLDER
from daemon_process import USER, DaemonProcess, as_user, daemon_of_user, python_of_everybody

LIMIT_S = 180

USERS = ".users"
"""A file in the home that stands in for the system's list of users, where root can see to that."""

TEMPORARY = ".temporary"
"""A folder in the home: what some clients leave behind, megabytes at each start, goes with it."""

MARK = "AGENT_OF_TEST"
"""The variable by which all processes of a client are found."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client works: the person's home and project, and the network."""

    client: Client
    program: Path
    home: Path
    project: Path
    network: Loopback
    command: Path
    shell: str = "/bin/bash"
    """The person's own, by $SHELL and by the system's list of users."""

    def run(
        self, script: Script, *, recorded: bool
    ) -> tuple[MockModel, subprocess.CompletedProcess[str]]:
        """Have the client work through the script; return the model and the finished process."""
        before: list[str | Path] = [self.command, "run", "--"] if recorded else []
        with mock_model(script, self.network.listener) as model:
            setup = self.client.setup(model.url)
            for name, text in setup.files.items():
                self.write(name, text)
            for words in setup.before:
                self.start(self.program, *words, variables=setup.environment)
            done = self.start(*before, self.program, *setup.words, variables=setup.environment)
            self.end_leftovers()
        return model, done

    def configured(self) -> "Place":
        """Write the client's own settings once; return a place where they stay as they are then."""
        with mock_model((), self.network.listener) as model:
            files = self.client.setup(model.url).files
        for name, text in files.items():
            self.write(name, text)
        setup = self.client.setup
        client = dataclasses.replace(
            self.client, setup=lambda url: dataclasses.replace(setup(url), files={})
        )
        return dataclasses.replace(self, client=client)

    def flightrec(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command line of ours, with the client on the PATH."""
        path = f"{self.program.parent}:{self.environment()['PATH']}"
        return self.start(self.command, *words, variables={"PATH": path})

    def start(
        self, *words: str | Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end as this person, in the project."""
        return subprocess.run(
            [str(word) for word in words],
            cwd=self.project,
            env={**self.environment(), **(variables or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            preexec_fn=self.enter,
        )

    def end_leftovers(self) -> None:
        """End what a client has left running: it would serve the next one as this one was."""
        mark = f"{MARK}={self.home}".encode()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)

    def environment(self) -> dict[str, str]:
        """Return the variables that everything here is started with."""
        return {
            "HOME": str(self.home),
            "USER": "dev",
            "PATH": f"{NODE_FOLDER}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": self.shell,
            "DO_NOT_TRACK": "1",
            "TMPDIR": str(self.home / TEMPORARY),
            MARK: str(self.home),
            "FLIGHTREC_PATIENCE_MS": "2000",  # a busy machine is no dead daemon
            **self.network.environment,
        }

    def write(self, name: str, text: str) -> None:
        """Write a file in the home, as the person would."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        give(path, *(folder for folder in path.parents if folder.is_relative_to(self.home)))

    def enter(self) -> None:
        """In a child process: become the person, in the network."""
        self.network.enter()
        if is_root():
            put_in_the_place_of("/etc/passwd", self.home / USERS)
            as_user(USER)()
        os.umask(0o022)


def is_root() -> bool:
    return os.geteuid() == 0


def give(*paths: Path) -> None:
    """Let the person own these files and folders."""
    if is_root():
        for path in paths:
            os.chown(path, USER, USER, follow_symlinks=False)


def _command(home: Path) -> Path:
    """Return a flightrec that the person can run."""
    if not is_root():
        return Path(sys.executable).parent / "flightrec"
    python, environment = python_of_everybody()
    command = home / "bin/flightrec"
    command.parent.mkdir()
    command.write_text(
        f"#!{python}\nimport sys\nsys.path[:0] = {environment['PYTHONPATH'].split(':')}\n"
        "from flightrec.main import main\nsys.exit(main())\n"
    )
    command.chmod(0o755)
    return command


@contextlib.contextmanager
def place_for(
    client: Client, program: Path, home: Path, shell: str = "/bin/bash"
) -> Iterator[Place]:
    """A home with a project in it."""
    project = home / "project"
    (project / "sub").mkdir(parents=True)
    (home / TEMPORARY).mkdir()
    subprocess.run(["git", "init", "-q", project], check=True)
    with loopback() as network:
        place = Place(client, program, home, project, network, _command(home), shell)
        place.write(USERS, f"dev:x:{USER}:{USER}::{home}:{shell}\n")
        give(home, *home.rglob("*"))
        yield place


def daemon_for(place: Place) -> DaemonProcess:
    """The person's daemon."""
    return daemon_of_user(place.home) if is_root() else DaemonProcess(place.home)
