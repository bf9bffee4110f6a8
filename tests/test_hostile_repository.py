"""A repository that fails and succeeds as it likes teaches nothing beyond itself."""

import itertools
import os
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from daemon_process import DaemonProcess, flightrec
from fake_relay import finished, starting
from flightrec.wire import TailSource, Verdict

PAIRS = 1000


class Plant(NamedTuple):
    """A command that the repository makes fail, what it says then, and what it makes work."""

    failing: str
    status: int
    error: str
    working: str


PLANTS = (
    Plant("make deploy", 127, "bash: deployctl: command not found\n", "./evil deploy"),
    Plant("make test", 2, "make: *** No rule to make target 'test'.  Stop.\n", "make evil"),
    Plant("npm run build", 1, 'npm ERR! Missing script: "build"\n', "npm run evil"),
    Plant("pytest", 4, "ERROR: file or directory not found: tests\n", "./pytest"),
    Plant("./configure", 126, "bash: ./configure: Permission denied\n", "sh ./configure"),
    Plant("cargo test", 101, "error: no such command: `test`\n", "cargo evil"),
    Plant(
        "git status",
        1,
        "git: 'status' is not a git command. See 'git --help'.\n\n"
        "The most similar command is\n\tevil-status\n",
        "git evil-status",
    ),
    Plant("ls -l", 127, "bash: ls: command not found\n", "evil -l"),
    Plant("kubectl get pods", 1, 'error: unknown command "get" for "kubectl"\n', "kubectl evil"),
    Plant("tar xf a.tar", 64, "tar: unrecognized option 'x'\n", "tar evil"),
)


TOOLS = ("evil", "ls", "pytest", "git", "tar", "kubectl", "cargo", "npm")
PLUGINS = ("git-evil-status", "cargo-evil", "kubectl-evil", "evil")
HONEST = Plant("gti status", 127, "bash: gti: command not found\n", "git status")


def make_repository(folder: Path) -> Path:
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def plant(daemon: DaemonProcess, folder: Path, path: str, plants: Iterable[Plant]) -> None:
    """Run the pairs one after the other, each in a shell of its own."""
    where = {"cwd": bytes(folder), "path": path.encode()}
    runs: list[bytes] = []
    with daemon.relay() as relay:
        for one in plants:
            session = os.urandom(16)
            failing = starting(one.failing, session, **where)
            working = starting(one.working, session, **where)
            tail = {"tail_source": TailSource.STDERR, "tail": one.error.encode()}
            end = finished(failing, one.status, **tail, tail_total=len(one.error))
            relay.send(failing, end, working, finished(working))
            runs += (failing.run, working.run)
        relay.wait_for_commit(*runs)


def hints(daemon: DaemonProcess, folder: Path) -> dict[str, str]:
    """What somebody is told in this folder before the failing commands."""
    with daemon.relay() as relay:
        asked = {
            one.failing: relay.ask(one.failing, cwd=bytes(folder))[1] for one in (*PLANTS, HONEST)
        }
    return {
        command: reply.text.decode()
        for command, reply in asked.items()
        if reply.verdict is not Verdict.NONE
    }


def exported(folder: Path, home: Path) -> str:
    """What memory files of a project may say, rules that are not proved included."""
    result = flightrec("export", "--all", home=home, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("comes", ["first", "last"])
def test_a_thousand_pairs_of_a_hostile_repository_say_nothing_elsewhere(
    home: Path, comes: str
) -> None:
    """T11: no hint and no export elsewhere, also where its programs are on the person's PATH."""
    trap, other = make_repository(home / "trap"), make_repository(home / "other")
    tools, system = trap / "bin", "/usr/bin:/bin"
    tools.mkdir()
    for name in TOOLS if comes == "first" else PLUGINS:
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    path = f"{tools}:{system}" if comes == "first" else f"{system}:{tools}"
    with DaemonProcess(home) as daemon:
        plant(daemon, other, system, [HONEST])
        plant(daemon, trap, path, itertools.islice(itertools.cycle(PLANTS), PAIRS))
        assert hints(daemon, trap).keys() > {HONEST.failing}
        assert hints(daemon, other).keys() == {HONEST.failing}
        assert "git status" in hints(daemon, other)[HONEST.failing]
        assert "evil" not in exported(other, home)
        assert "gti" in exported(other, home)


def test_a_writer_that_starts_anew_is_told_where_a_shell_looks_for_programs(home: Path) -> None:
    """T11: a shell says its PATH once; a repository that gets the writer killed gains nothing."""
    trap, other = make_repository(home / "trap"), make_repository(home / "other")
    tools = trap / "bin"
    tools.mkdir()
    (tools / "git").write_text("#!/bin/sh\n")
    (tools / "git").chmod(0o755)
    (one,) = (plant for plant in PLANTS if plant.failing == "git status")
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        path = f"{tools}:/usr/bin:/bin".encode()
        relay.wait_for_commit(relay.type("true", cwd=bytes(trap), path=path))
        os.kill(daemon.wait_for_writer(), signal.SIGKILL)
        tail = {"tail_source": TailSource.STDERR, "tail": one.error.encode()}
        failing = starting(one.failing, relay.session, cwd=bytes(trap))
        relay.send(failing, finished(failing, one.status, **tail, tail_total=len(one.error)))
        relay.wait_for_commit(failing.run, relay.type(one.working, cwd=bytes(trap)))
        assert daemon.query("SELECT count(*), max(scope) FROM rules") == [(1, "project")]
        assert one.failing not in hints(daemon, other)
