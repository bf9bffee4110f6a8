"""A remedy that has been applied already is not hinted: what was missing is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flightrec.failure_kinds import K
from flightrec.mended import is_mended
from flightrec.rules import Remedy, Trigger
from learner import Learner, make_program

if TYPE_CHECKING:
    from pathlib import Path

    from flightrec.failure_kinds import FailureKind


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module of node, an environment of Python, and a folder for results."""
    for name in ("node_modules/ms", "node_modules/@types/node", ".venv/bin", "out"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "step", "mended"),
    [
        (K.COMMAND_NOT_FOUND, "npm install", True),
        (K.MISSING_MODULE, "npm ci --silent", True),
        (K.MISSING_MODULE, "yarn", True),
        (K.MISSING_MODULE, "npm install ms@2", True),
        (K.MISSING_MODULE, "npm i -D @types/node", True),
        (K.MISSING_MODULE, "npm install ms left-pad", False),
        (K.CONNECTION, "npm install", False),
        (K.MISSING_FILE, "mkdir -p out", True),
        (K.MISSING_FILE, "mkdir out logs", False),
        (K.PERMISSION, "mkdir out", False),
        (K.COMMAND_NOT_FOUND, "source .venv/bin/activate", True),
        (K.COMMAND_NOT_FOUND, ". ./.venv/bin/activate", True),
        (K.COMMAND_NOT_FOUND, "source venv2/bin/activate", False),
        (K.MISSING_VARIABLE, "source .env", False),
        (K.MISSING_FILE, "make generate", False),
    ],
)
def test_a_remedy_is_done_where_its_result_is_seen(
    kind: FailureKind,
    step: str,
    mended: bool,  # noqa: FBT001 - a table
    folder: Path,
) -> None:
    trigger, remedy = Trigger(kind, ("run",)), Remedy("prerequisite", before=(step,))

    assert is_mended(trigger, remedy, str(folder), str(folder / ".venv")) is mended


def test_in_an_environment_nothing_is_managed_from_outside(folder: Path) -> None:
    trigger = Trigger(K.MANAGED_ENVIRONMENT, ("pip", "install", "six"))
    remedy = Remedy("replace", ("pip", "install", "--break-system-packages", "six"))

    assert is_mended(trigger, remedy, str(folder), str(folder / ".venv"))
    assert not is_mended(trigger, remedy, str(folder), None)


def test_no_remedy_is_done_without_a_step_before(folder: Path) -> None:
    trigger, remedy = Trigger(K.COMMAND_NOT_FOUND, ("gti",)), Remedy("replace", ("git",))

    assert not is_mended(trigger, remedy, str(folder), None)


def test_modules_are_hinted_until_they_are_there(tmp_path: Path) -> None:
    for name in ("npm", "git"):
        make_program(tmp_path / "bin", name)
    learner = Learner(path=str(tmp_path / "bin"))
    place = {"cwd": tmp_path, "project": str(tmp_path)}
    learner.type("npm test", 127, "sh: 1: vitest: not found", **place)
    learner.type("npm install", **place)
    learner.type("npm test", **place)
    learner.type("git clean -xfd", session="two", **place)
    learner.type("npm test", 127, "sh: 1: vitest: not found", session="two", **place)

    assert "try: npm install && npm test" in learner.ask("npm test", session="three", **place)
    (tmp_path / "node_modules").mkdir()
    assert learner.ask("npm test", session="four", **place) == ""


def test_a_step_whose_program_this_shell_lacks_is_not_hinted(tmp_path: Path) -> None:
    make_program(tmp_path / "bin", "make")
    make_program(tmp_path / "bin", "apt-get")
    learner = Learner(path=str(tmp_path / "bin"))
    place = {"cwd": tmp_path, "project": str(tmp_path)}
    missing = "a.c:1:10: fatal error: zlib.h: No such file or directory"
    learner.type("make", 2, missing, **place)
    learner.type("apt-get install -y zlib1g-dev", **place)
    learner.type("make", **place)
    learner.type("make", 2, missing, session="two", **place)

    assert "apt-get install" in learner.ask("make", session="three", **place)
    (tmp_path / "bin/apt-get").unlink()
    assert learner.ask("make", session="four", **place) == ""
