"""Settings of agents that are odd on purpose: nothing of them is lost or obeyed."""

import functools
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daemon_process import USER, as_user, flightrec, needs_root, python_of_everybody
from flightrec.hook_clients import find_client
from flightrec.hook_documents import Wanted, with_parts, without_parts
from flightrec.hook_parts import Setup
from flightrec.installation import read_manifest

WANTED = Wanted("claude", Setup(Path("/home/ann/.local/share/flightrec")))
SETTINGS = find_client("claude").files[0]


@pytest.mark.parametrize(
    "before",
    [
        b'{\n    "a": 1,\n    "hooks": {}\n}\n',
        b'{"hooks": {"PreToolUse": [], "Stop": []}}',
        b'{"hooks": {"PreToolUse": []}, "hooks": {}}',
        b'{\r\n\t"env": {},\r\n\t"hooks": {\r\n\t}\r\n}',
    ],
)
def test_what_the_person_left_empty_stays(before: bytes) -> None:
    made, addition = with_parts(before, SETTINGS, WANTED, None)

    assert without_parts(made, SETTINGS, addition) == before
    assert without_parts(before, SETTINGS, None) == before


@pytest.mark.parametrize("text", ['{"a": "\x1b]0;pwned\x07\x1b[2J"}', '{"a": "two\nlines"}'])
def test_a_broken_file_is_quoted_in_one_harmless_line(home: Path, text: str) -> None:
    settings = home / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text(text)
    done = flightrec("hook", "install", "claude", "--yes", home=home)

    assert done.returncode == 1
    assert done.stderr.startswith(f"flightrec: {settings}: line 1 is no JSON")
    assert done.stderr.endswith("\n")
    assert done.stderr[:-1].isprintable()
    assert settings.read_text() == text


def test_what_is_no_plain_file_is_named_once(home: Path) -> None:
    settings = home / ".claude/settings.json"
    settings.mkdir(parents=True)
    done = flightrec("hook", "install", "claude", "--yes", home=home)

    assert done.returncode == 1
    assert done.stderr == f"flightrec: {settings}: is no plain file; left alone\n"


def test_a_folder_that_a_link_promised_goes_again(home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / ".claude").symlink_to("dotfiles/claude")
    done = flightrec("hook", "install", "claude", "--yes", home=home)
    assert done.returncode == 0, done.stderr
    assert (home / "dotfiles/claude/settings.json").is_file()

    flightrec("hook", "uninstall", "claude", "--yes", home=home)
    assert list((home / "dotfiles").iterdir()) == []
    assert (home / ".claude").is_symlink()


def test_what_somebody_deleted_is_forgotten_with_the_copies(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = home / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    for words in (["claude", "--scope", "project"], ["codex"]):
        assert flightrec("hook", "install", *words, "--yes", home=home).returncode == 0
    monkeypatch.chdir(home)
    shutil.rmtree(project)
    shutil.rmtree(home / ".codex")
    done = flightrec("hook", "uninstall", "all", "--yes", home=home)

    assert (done.returncode, done.stderr) == (0, "")
    assert not (home / ".local/share/flightrec").exists()


def test_whoever_installs_at_the_same_time_loses_no_note(home: Path) -> None:
    agents = ("claude", "codex", "gemini", "qwen", "copilot", "droid", "cursor", "pi")
    with ThreadPoolExecutor(len(agents)) as threads:
        install = functools.partial(flightrec, "hook", "install", "--yes", home=home)
        done = list(threads.map(install, agents))
    assert [one.stderr for one in done] == [""] * len(agents)
    assert len(read_manifest(home).settings) == 10

    assert flightrec("hook", "uninstall", "all", "--yes", home=home).returncode == 0
    assert [path.name for path in home.iterdir()] == [".local"]


def test_a_file_that_broke_keeps_no_other_one(home: Path) -> None:
    assert flightrec("hook", "install", "claude", "gemini", "--yes", home=home).returncode == 0
    settings = home / ".claude/settings.json"
    settings.write_text("{")
    done = flightrec("hook", "uninstall", "all", "--yes", home=home)

    assert done.returncode == 1
    assert done.stderr.startswith(f"flightrec: {settings}: line 1 is no JSON")
    assert done.stderr.endswith("; mend that and run this again\n")
    assert done.stderr.count("\n") == 1
    assert settings.read_text() == "{"
    assert not (home / ".gemini").exists()
    assert (home / ".local/share/flightrec/flightrec-helper").exists()


PLAIN_PATH = {"PATH": "/usr/bin:/bin"}
"""Where none of the agents' programs is."""

BROKEN = {
    ".claude/settings.json": ("Claude Code", '{"a": 1,\n}', "line 2 is no JSON"),
    ".codex/config.toml": ("Codex", "a = = 1\n", "is no TOML"),
}
"""Files that nobody can read: whose, what stands there, and what is wrong with it."""


def test_all_others_are_installed_where_some_files_are_broken(home: Path) -> None:
    for name, (_, text, _) in BROKEN.items():
        (home / name).parent.mkdir()
        (home / name).write_text(text)
    for name in (".gemini", ".qwen"):
        (home / name).mkdir()
    done = flightrec("hook", "install", "all", "--yes", home=home, env=PLAIN_PATH)

    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == len(BROKEN)
    for line, (name, (title, text, reason)) in zip(lines, BROKEN.items(), strict=True):
        assert line.startswith(f"flightrec: {title} is left out: {home / name}: {reason}")
        assert line.endswith("; mend that and run this again")
        assert (home / name).read_text() == text
    assert [path.name for path in (home / ".codex").iterdir()] == ["config.toml"]  # all or nothing
    assert done.stdout.count(": installed; ") == 2
    for name in (".gemini", ".qwen"):
        assert "flightrec-helper hook" in (home / name / "settings.json").read_text()
    assert set(read_manifest(home).settings) == {
        f"{home}/{name}/settings.json" for name in (".gemini", ".qwen")
    }


def test_where_all_files_are_broken_nothing_is_made(home: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").write_text("{")
    done = flightrec("hook", "install", "all", "--yes", home=home, env=PLAIN_PATH)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert [path.name for path in home.iterdir()] == [".claude"]


def test_status_says_what_is_wrong_with_a_file_and_goes_on(home: Path) -> None:
    assert flightrec("hook", "install", "qwen", "--yes", home=home).returncode == 0
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").write_text("{")
    done = flightrec("hook", "status", "all", home=home)

    assert done.returncode == 1
    assert f"claude    broken      {home}/.claude/settings.json" in done.stdout
    assert f"qwen      installed   {home}/.qwen/settings.json" in done.stdout
    assert done.stderr.startswith(f"flightrec: {home}/.claude/settings.json: line 1 is no JSON")
    assert done.stderr.endswith("; mend that and run this again\n")
    assert done.stderr.count("\n") == 1


def test_all_in_a_project_means_those_that_have_hooks_for_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".claude", ".copilot", ".qwen", "project"):
        (home / name).mkdir()
    monkeypatch.chdir(home / "project")
    words = ("hook", "install", "all", "--scope", "project", "--yes")
    done = flightrec(*words, home=home, env=PLAIN_PATH)

    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in (home / "project").iterdir()} == {".claude", ".qwen"}


@needs_root
def test_a_folder_that_cannot_be_written_keeps_no_other_agent(home: Path) -> None:
    """Seen only when the file is written; root would write it all the same."""
    python, variables = python_of_everybody()
    environment = {**variables, "HOME": str(home), "PATH": f"{home}/bin:/usr/bin:/bin"}
    for name in ("", "bin", ".gemini", ".qwen"):
        (home / name).mkdir(exist_ok=True)
        os.chown(home / name, USER, USER)
    (home / "bin/flightrec").touch(0o755)

    def hook(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-m", "flightrec", "hook", *words, "all", "--yes"],
            env=environment,
            cwd=home,
            preexec_fn=as_user(USER),
            capture_output=True,
            text=True,
            check=False,
        )

    (home / ".gemini").chmod(0o500)
    done = hook("install")
    assert done.returncode == 1
    assert done.stderr.startswith(f"flightrec: Gemini CLI is left out: {home}/.gemini/settings")
    assert done.stderr.count("\n") == 1
    assert "Qwen Code: installed" in done.stdout
    assert "Gemini CLI: installed" not in done.stdout
    assert set(read_manifest(home).settings) == {f"{home}/.qwen/settings.json"}

    (home / ".gemini").chmod(0o700)
    assert hook("install").returncode == 0
    (home / ".gemini").chmod(0o500)
    done = hook("uninstall")
    assert done.returncode == 1
    assert done.stderr.startswith(f"flightrec: {home}/.gemini/settings.json")
    assert not (home / ".qwen/settings.json").exists()
    assert set(read_manifest(home).settings) == {f"{home}/.gemini/settings.json"}


def test_the_name_of_a_folder_moves_no_cursor(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = home / "a\x1b[2Jb"
    project.mkdir()
    monkeypatch.chdir(project)
    words = ("claude", "gemini", "--scope", "project", "--yes")
    shown = flightrec("hook", "install", *words, home=home).stdout
    shown += flightrec("hook", "status", home=home).stdout
    shown += flightrec("hook", "uninstall", *words, home=home).stdout

    assert f"{home}/a\\x1b[2Jb/.gemini/settings.json" in shown
    assert "\x1b" not in shown
