"""Fixtures for all tests: a throw-away home, and a guard that keeps tests out of the real one."""

import contextlib
import itertools
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from command_line import Cli, stand_in_project
from daemon_process import DaemonProcess
from flightrec.paths import Paths, find_paths, make_private_folder
from flightrec.store import Store

RecordProperty = Callable[[str, object], None]
"""The type of pytest's fixture of that name."""

for _signal in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    # As of a job in the background or under nohup: whatever is started here would ignore it, too.
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.SIG_DFL)

CLEAN_VARIABLES = ("PATH", "LANG", "LC_ALL", "TERM")


@pytest.fixture(autouse=True)
def _no_real_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test forgets to redirect lands in a folder that cannot be written."""
    monkeypatch.setenv("HOME", "/nonexistent/flightrec-tests")
    for name in list(os.environ):
        if name.startswith(("FLIGHTREC_", "XDG_", "ZDOTDIR", "BASH_ENV", "PROMPT_COMMAND")):
            monkeypatch.delenv(name)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home with a path short enough for a socket below it; ``$HOME`` points there."""
    folder = Path(tempfile.mkdtemp(prefix="fr-", dir="/tmp"))
    monkeypatch.setenv("HOME", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def paths(home: Path) -> Paths:
    """The paths below that home; the folder for what is recorded is there."""
    found = find_paths(str(home))
    make_private_folder(found.state)
    return found


@pytest.fixture
def store(paths: Paths) -> Iterator[Store]:
    """The database below that home."""
    with contextlib.closing(Store.open(paths.database)) as opened:
        yield opened


@pytest.fixture
def fresh_cli(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cli]:
    """The command line with a daemon and a home that no other test has used."""
    with DaemonProcess(home) as daemon:
        daemon.wait_for_writer()
        with stand_in_project(daemon, monkeypatch, capsys) as made:
            yield made


@pytest.fixture
def clean_env(home: Path) -> dict[str, str]:
    """An environment for child processes: the throw-away home and nothing of the person's."""
    env = {name: os.environ[name] for name in CLEAN_VARIABLES if name in os.environ}
    return {"LANG": "C.UTF-8", "TERM": "xterm-256color", **env, "HOME": str(home)}


@pytest.fixture
def wait_for() -> Callable[..., object]:
    """``wait_for(condition)`` polls until the condition is true, or fails after a long while."""

    def wait(condition: Callable[[], object], *, limit_s: float = 20.0, what: str = "") -> object:
        deadline = time.monotonic() + limit_s
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                pytest.fail(f"waited {limit_s} s in vain for {what or condition}")
            time.sleep(0.01)

    return wait


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run of the agents' tests be kept as README's table."""
    parser.addoption("--keep-agents", action="store_true", help="write README's table of agents")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say which agents were driven, with which version, and which were not and why."""
    found: dict[str, list[Any]] = {"driven": [], "not driven": [], "row": []}
    for report in itertools.chain(*terminalreporter.stats.values()):
        if getattr(report, "when", "") == "call":
            for name, value in report.user_properties:
                found.get(name, []).append(value)
    if found["driven"]:
        terminalreporter.write_line("agents driven: " + ", ".join(sorted(set(found["driven"]))))
    for text in sorted(set(found["not driven"])):
        terminalreporter.write_line(f"NOT DRIVEN: {text}")
    if config.getoption("--keep-agents"):
        from agents import support_table  # noqa: PLC0415 - the agents' tests alone need it

        support_table.keep(msgspec.convert(found["row"], list[support_table.Row]))
