"""Command lines as a person types them in a project of his, on what a real daemon records."""

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daemon_process import DaemonProcess
from fake_relay import FakeRelay
from flightrec.commands import dispatch
from flightrec.rulebook import Rulebook
from flightrec.rules import Rule
from flightrec.store import Store


@dataclass
class Cli:
    """Command lines on one home; ``out`` and ``err`` are what the last one printed."""

    daemon: DaemonProcess
    project: Path
    capture: Callable[[], Any]
    out: str = ""
    err: str = ""
    relays: list[FakeRelay] = field(default_factory=list)

    def __call__(self, *words: str, status: int = 0) -> str:
        """Run a command line in the project; check its exit status and return what it printed."""
        self.capture()
        found = dispatch(list(words))
        shown = self.capture()
        self.out, self.err = shown.out, shown.err
        assert found == status, self.out + self.err
        return self.out

    def json(self, *words: str) -> list[dict[str, Any]]:
        document = json.loads(self(*words, "--json"))
        assert document["schema"] == 1
        items: list[dict[str, Any]] = document["items"]
        return items

    def shell(self, *lines: tuple[str, int], **fields: object) -> bytes:
        """Type these lines with these exits into a new shell; return its session's id."""
        relay = FakeRelay(self.daemon.paths.socket)
        self.relays.append(relay)
        place = {"cwd": os.fsencode(self.project), **fields}
        runs = [relay.type(line, status, **place) for line, status in lines]
        relay.wait_for_commit(*runs)
        return relay.session

    def teach(self, times: int = 3) -> Rule:
        """Mistype git in so many shells; three make a promoted rule."""
        for _ in range(times):
            self.shell(("gti status", 127), ("git status", 0))
        return self.rules()[0]

    def rules(self) -> list[Rule]:
        with contextlib.closing(Store.open_read_only(self.daemon.paths.database)) as store:
            return Rulebook(store.connection).rules()


@contextlib.contextmanager
def stand_in_project(
    daemon: DaemonProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cli]:
    project = Path(tempfile.mkdtemp(prefix="project-", dir=daemon.paths.home))
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    monkeypatch.chdir(project)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    made = Cli(daemon, project, capsys.readouterr)
    yield made
    for relay in made.relays:
        relay.socket.close()
