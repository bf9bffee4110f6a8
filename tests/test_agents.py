"""A real agent, start to end: what it runs is recorded, learned from, and hinted the next time.

The model is a script; all else is as in earnest: pi, its own shell tool, ``flightrec run``, the
daemon. In continuous integration this is never skipped.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from agents.mock_model import Run, Say, mock_model
from agents.pi_agent import Pi, install
from daemon_process import FLIGHTREC, DaemonProcess
from helper_builds import helper

SCRIPT = (
    Run("git statsu"),
    Run("git status --short"),
    Run("cd sub && cat missing.txt; echo to both >&2; exit 5"),
    Run("printf 'out\\n'; nosuchprogram --x 2>&1 | cat"),
    Say("done"),
)

AGAIN = (Run("git statsu"), Run("git statsu"), Say("done"))
"""Twice, since on a very busy machine the first hint may come too late to be shown."""

RECORDER = [*FLIGHTREC, "run", "--"]


@pytest.fixture
def pi(home: Path) -> Pi:
    try:
        return Pi(install(), home)
    except (OSError, subprocess.SubprocessError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"pi cannot be installed here: {error}")


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / "project"
    (folder / "sub").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def test_pi_is_recorded_learned_from_and_warned(pi: Pi, project: Path) -> None:
    helper()
    with mock_model(SCRIPT) as plain:
        assert pi.run(plain, project).returncode == 0
    with DaemonProcess(pi.home) as daemon:
        with mock_model(SCRIPT) as first:
            done = pi.run(first, project, RECORDER)
        with mock_model(AGAIN) as second:
            again = pi.run(second, project, RECORDER)
        runs = daemon.query(
            "SELECT command, exit, cwd, tail, agent FROM runs WHERE parent IS NULL ORDER BY id"
        )
        rules = daemon.query("SELECT failure_kind, program, status FROM rules")

    assert first.tool_results() == plain.tool_results()
    assert done.returncode == again.returncode == 0
    assert [run[:2] for run in runs] == [
        ("git statsu", 1),
        ("git status --short", 0),
        (SCRIPT[2].command, 5),  # type: ignore[union-attr] # a command
        (SCRIPT[3].command, 0),  # type: ignore[union-attr] # a command
        ("git statsu", 1),
        ("git statsu", 1),
    ]
    assert {run[2] for run in runs} == {str(project)}
    assert {run[4] for run in runs} == {"pi"}
    assert "'statsu' is not a git command" in runs[0][3]
    assert runs[2][3].endswith("to both\n")
    assert rules == [("unknown subcommand", "git", "active")]
    assert done.stderr.splitlines()[-1].startswith("flightrec: 4 runs, ")
    assert "1 new rule" in done.stderr

    told = "".join(second.tool_results())
    assert re.search(
        r"^flightrec: previously failed here \([12]×: unknown subcommand\); try: git status",
        told,
        re.MULTILINE,
    )
    assert told.count("flightrec") == 1
    rest = re.sub(r"flightrec: .*\n", "", told)
    assert rest == 2 * plain.tool_results()[0]
