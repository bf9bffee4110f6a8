"""``flightrec run`` gives an agent hooks for one run, and leaves every file as it is."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon_process import FLIGHTREC, DaemonProcess, flightrec
from helper_builds import helper

SEES = """#!/bin/sh
printf '%s\\n' "$@"
case $1 in --settings|--extension) cat "$2"; test -O "$2" && stat -c %a "${2%/*}";; esac
printf 'qwen %s\\n' "$QWEN_CODE_SYSTEM_DEFAULTS_PATH"
printf 'opencode %s\\n' "$OPENCODE_CONFIG_CONTENT"
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home with a daemon, for all tests here: each leaves it as it was."""
    helper()
    with (
        tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as folder,
        DaemonProcess(Path(folder)),
    ):
        yield Path(folder)


@pytest.fixture(scope="module")
def bin_folder(home: Path) -> Path:
    """A folder with programs that go by the names of agents, and say what they are given."""
    folder = home / "bin"
    folder.mkdir()
    for name in ("claude", "qwen", "opencode", "pi", "codex", "copilot"):
        (folder / name).write_text(SEES)
        (folder / name).chmod(0o755)
    return folder


def seen(home: Path, bin_folder: Path, *words: str, **variables: str) -> str:
    """What an agent is given by ``flightrec run WORDS``."""
    environment = {"PATH": f"{bin_folder}:{os.environ['PATH']}", **variables}
    done = subprocess.run(
        [*FLIGHTREC, "run", "--quiet", *words],
        env={**os.environ, "HOME": str(home), **environment},
        cwd=home,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_claude_is_given_hooks_and_nothing_else(home: Path, bin_folder: Path) -> None:
    before = {path for path in home.rglob("*") if ".local" not in path.parts}
    told = seen(home, bin_folder, "--", "claude", "-p", "hello")
    option, path, first, second, rest = told.split("\n", 4)

    assert (option, first, second) == ("--settings", "-p", "hello")
    settings, _, end = rest.rpartition("}\n")
    assert set(json.loads(settings + "}")) == {"hooks"}
    assert end.startswith("700\n")
    assert not Path(path).exists()
    assert before == {path for path in home.rglob("*") if ".local" not in path.parts}


@pytest.mark.parametrize(
    "words",
    [
        ("--no-hooks", "--", "claude", "-p"),
        ("--", "claude", "--settings", "mine.json"),
        ("--", "claude", "--settings=mine.json"),
        ("--no-hooks", "--", "pi"),
        ("--", "pi", "list"),
        ("--", "codex", "exec"),
        ("--", "copilot"),
    ],
)
def test_an_agents_words_are_left_alone(
    home: Path, bin_folder: Path, words: tuple[str, ...]
) -> None:
    own = words[words.index("--") + 2 :]
    told = seen(home, bin_folder, *words)
    assert told.startswith("".join(f"{word}\n" for word in own or ("",)))
    assert told.endswith("qwen \nopencode \n")
    assert "hook claude" not in told


def test_opencode_gets_no_plugin_that_it_would_wait_for_its_registry_for(
    home: Path, bin_folder: Path
) -> None:
    assert seen(home, bin_folder, "--", "opencode").endswith("opencode \n")


def test_qwen_is_told_of_a_file_unless_the_person_has_one(home: Path, bin_folder: Path) -> None:
    assert "/.hooks/qwen.json\n" in seen(home, bin_folder, "--", "qwen")
    variable = {"QWEN_CODE_SYSTEM_DEFAULTS_PATH": "/mine"}
    assert "qwen /mine\n" in seen(home, bin_folder, "--", "qwen", **variable)


def test_installed_hooks_are_not_given_once_more(home: Path, bin_folder: Path) -> None:
    assert seen(home, bin_folder, "--", "pi").startswith("--extension\n")
    done = flightrec("hook", "install", "pi", "claude", "--yes", home=home)
    assert done.returncode == 0, done.stderr

    assert not seen(home, bin_folder, "--", "pi").startswith("--extension\n")
    assert not seen(home, bin_folder, "--", "claude").startswith("--settings\n")
    flightrec("hook", "uninstall", "all", "--yes", home=home)
    assert seen(home, bin_folder, "--", "pi").startswith("--extension\n")


def test_settings_switch_it_off(home: Path, bin_folder: Path) -> None:
    settings = home / ".config/flightrec/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("[agents]\nhooks = false\n")
    told = seen(home, bin_folder, "--", "pi")
    settings.unlink()
    assert not told.startswith("--extension\n")
