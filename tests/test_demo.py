"""The demonstration is the story itself: it must come true, or say that it did not."""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from daemon_process import FLIGHTREC, wait_until
from flightrec.commands import demo
from flightrec.errors import FlightrecError
from flightrec.typed_shell import find_shells


def processes_of(home: str) -> list[str]:
    """Return the processes whose environment or command names this home."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if home.encode() in text:
            found.append(entry.name)
    return found


def test_the_story_comes_true_and_leaves_nothing_behind(home: Path) -> None:
    done = subprocess.run(
        [*FLIGHTREC, "demo"],
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout
    steps = [
        "first terminal",
        "not found",
        "⇒ learned ERR-",
        "second terminal",
        "flightrec: previously failed here (1×: command not found); try: git status",
        "with R = 1",
        "third terminal",
        "flightrec: previously failed here (2×: command not found); try: git status",
        "is promoted with R = 2",
        "── flightrec rules",
        "R2 C3 D0",
        "── flightrec why",
        "MEMORY.md",
        "- `gti ...` failed (command not found, 3 sessions); worked: `git ...` (ERR-",
    ]
    positions = [shown.find(step) for step in steps]
    assert -1 not in positions, shown
    assert positions == sorted(positions), shown
    assert "\x1b" not in shown
    throw_away = re.search(r"/tmp/flightrec-\w+", shown)
    assert throw_away is not None
    assert not Path(throw_away[0]).exists()
    wait_until(lambda: not processes_of(throw_away[0]))
    assert list(home.iterdir()) == []


def test_both_shells_take_part_where_both_are_there() -> None:
    shells = find_shells()
    assert shells
    assert set(shells) <= {"bash", "zsh"}


def test_a_story_that_does_not_come_true_fails_and_cleans_up(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A helper that records nothing."""
    helper = home / "helper"
    helper.write_text("#!/bin/sh\nexit 0\n")
    helper.chmod(0o755)
    real = demo.find_resource
    monkeypatch.setattr(
        demo, "find_resource", lambda name: helper if name == "flightrec-helper" else real(name)
    )
    monkeypatch.setattr(demo, "PATIENCE_S", 3.0)
    monkeypatch.setattr(sys, "argv", [str(Path(sys.executable).parent / "flightrec")])
    with pytest.raises(FlightrecError, match="in vain for a rule"):
        demo.run(argparse.Namespace())
    throw_away = re.search(r"/tmp/flightrec-\w+", capsys.readouterr().out)
    assert throw_away is not None
    assert not Path(throw_away[0]).exists()
    wait_until(lambda: not processes_of(throw_away[0]))


def test_a_machine_without_a_shell_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_shells", list)
    with pytest.raises(FlightrecError, match="neither bash nor zsh"):
        demo.run(argparse.Namespace())


def test_the_typo_of_the_story_is_no_program_that_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.shutil, "which", lambda name: name if name in ("ls", "gti") else None)
    assert demo.choose_story() == ("ls", "sl", "-l")
    monkeypatch.setattr(demo.shutil, "which", lambda name: name)
    with pytest.raises(FlightrecError, match="mistype"):
        demo.choose_story()
