"""Hints in real shells from a real daemon: before a command, after it failed, and held."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon_process import DaemonProcess, wait_until
from learner import make_program
from typed_shell import BOTH, Rc, ShellMaker, TypedShell

both = pytest.mark.parametrize("kind", BOTH)
pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="no git")

QUESTION = "flightrec: run it?"


@pytest.fixture
def start(home: Path) -> Iterator[ShellMaker]:
    maker = ShellMaker(home)
    with contextlib.closing(maker):
        yield maker


class Terminals:
    """Terminals of one person, opened one after the other."""

    def __init__(self, kind: str, start: ShellMaker, daemon: DaemonProcess) -> None:
        self.bin = start.home / "bin"
        self._kind = kind
        self._start = start
        self._daemon = daemon
        self._recorded = 0

    def open(self) -> TypedShell:
        """Open a terminal whose daemon answers; its directory is known there by then."""
        shell = self._start(self._kind, Rc(before=f"PATH={self.bin}:$PATH"))
        self.type(shell, "git --version")
        return shell

    def type(self, shell: TypedShell, line: str) -> str:
        """Type a line; return what is shown, once the daemon has learned from it."""
        shown = shell.type(line)
        self._recorded += 1
        wait_until(lambda: self._daemon.status()["recorded"] >= self._recorded)
        return shown


def learn(terminals: Terminals) -> None:
    """Mistype git and correct that."""
    shell = terminals.open()
    assert "flightrec" not in terminals.type(shell, "gti --version")
    terminals.type(shell, "git --version")


@both
def test_a_failure_whose_fix_is_known_is_hinted_before_the_next_prompt(
    kind: str, start: ShellMaker, home: Path
) -> None:
    """It was not to be expected: the command passed the last time, so nothing was said before."""
    with DaemonProcess(home) as daemon:
        terminals = Terminals(kind, start, daemon)
        learn(terminals)
        program = make_program(terminals.bin, "gti")
        assert terminals.type(terminals.open(), "gti --version") == ""
        program.unlink()

        shell = terminals.open()
        shown = terminals.type(shell, "gti --version").splitlines()

        assert "not found" in shown[0]
        assert [line.rstrip("\r") for line in shown[1:]] == [
            "flightrec: previously failed here (1×: command not found); try: git --version"
        ]
        assert "flightrec" not in terminals.type(shell, "gti --version"), "once in a session"


@both
def test_a_failure_that_was_hinted_before_is_not_hinted_again_afterwards(
    kind: str, start: ShellMaker, home: Path
) -> None:
    with DaemonProcess(home) as daemon:
        terminals = Terminals(kind, start, daemon)
        learn(terminals)

        shown = terminals.type(terminals.open(), "gti --version").splitlines()

        assert "try: git --version" in shown[0]
        assert "not found" in shown[-1]
        assert len(shown) == 2


@both
def test_a_known_bad_command_is_held_where_the_settings_say_so(
    kind: str, start: ShellMaker, home: Path
) -> None:
    config = home / ".config/flightrec/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[hints]\nhold = true\n")
    with DaemonProcess(home) as daemon:
        terminals = Terminals(kind, start, daemon)
        learn(terminals)
        shell = terminals.open()

        shell.send("gti --version\r")
        shell.until("try: git --version")
        shell.until(QUESTION)
        shell.send("n")

        assert "not found" not in shell.until_prompt()
        assert "git version" in shell.type("git --version")
        wait_until(lambda: daemon.query("SELECT r, c, d FROM rules") == [(0, 2, 0)])
        assert daemon.query("SELECT command FROM runs WHERE exit = 130") == [("gti --version",)]
