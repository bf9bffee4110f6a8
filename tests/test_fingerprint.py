"""What an editor did between a failure and a pass is not put down to what was typed in between."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flightrec import fingerprint
from flightrec.classify import classify
from flightrec.fingerprint import LOOKS_MAX, take_fingerprint
from flightrec.shell_words import parse
from learner import SECOND, Learner

MISSING = "Error: Cannot find module './lib/table'\n    at {root}/src/app.js:3:14\n"


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *identity, *words], cwd=folder, env=env, check=True, capture_output=True)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A repository with a program in it."""
    root = tmp_path / "app"
    (root / "src").mkdir(parents=True)
    (root / "src/app.js").write_text("table\n")
    (root / "start.js").write_text("app\n")
    (root / "package.json").write_text("{}\n")
    (root / "docs/api/v1").mkdir(parents=True)
    (root / "docs/api/v1/table.md").write_text("one\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return root


class Work:
    """Commands in one work tree, told as if they had run before or after all that is done here."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.learner = Learner()

    def type(self, command: str, exit_: int = 0, error: str = "", *, at_s: float) -> None:
        """Record a command that began so many seconds from now and took one."""
        at_us = time.time_ns() // 1000 + int(at_s * SECOND)
        self._record(command, exit_, error, at_us, SECOND)

    def type_now(self, command: str, does: Callable[[], object]) -> None:
        """Record a command that does something to the tree."""
        began_us = time.time_ns() // 1000
        does()
        self._record(command, 0, "", began_us, time.time_ns() // 1000 - began_us)

    def _record(self, command: str, exit_: int, error: str, at_us: int, usec: int) -> None:
        project = f"{self.root}/.git"
        run = self.learner.run(
            command,
            exit_,
            error.format(root=self.root),
            cwd=self.root,
            project=project,
            worktree=str(self.root),
            started_us=at_us,
            mono_us=at_us,
            usec=usec,
        )
        self.learner.record(run)


def fail_install_pass(
    root: Path, edit: Callable[[], object] = lambda: None, install: str = "npm install"
) -> Learner:
    """Play a failure, what mends such failures, somebody's edit, and the pass."""
    work = Work(root)
    work.type("node start.js", 1, MISSING, at_s=-30)
    work.type(install, at_s=-20)
    edit()
    work.type("node start.js", at_s=30)
    return work.learner


EDITS: dict[str, Callable[[Path], object]] = {
    "a file that the error names": lambda root: (root / "src/app.js").write_text("other\n"),
    "a file that the command names": lambda root: (root / "start.js").write_text("other\n"),
    "one that was replaced": lambda root: (root / "start.new").replace(root / "start.js"),
    "a new file at the top": lambda root: (root / "new.js").touch(),
    "a new file below": lambda root: (root / "src/new.js").touch(),
    "a file deep in the tree": lambda root: (root / "docs/api/v1/table.md").write_text("two\n"),
    "a file that is gone": lambda root: (root / "src/app.js").unlink(),
    "another branch": lambda root: git(root, "checkout", "-q", "-b", "other"),
    "what is staged": lambda root: git(root, "rm", "-q", "--cached", "package.json"),
}


def test_a_usual_remedy_counts_where_nothing_was_edited(app: Path) -> None:
    assert fail_install_pass(app).said() == [("node start.js", "npm install && node start.js")]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_pass_after_an_edit_is_no_recovery(edit: Callable[[Path], object], app: Path) -> None:
    (app / "start.new").write_text("app\n")

    assert fail_install_pass(app, lambda: edit(app)).rules == []


def test_what_the_error_itself_names_counts_in_spite_of_an_edit(app: Path) -> None:
    work = Work(app)
    work.type("node start.js", 1, "Error: Cannot find module 'table'\n", at_s=-30)
    work.type("npm install table", at_s=-20)
    EDITS["a file that the command names"](app)
    work.type("node start.js", at_s=30)

    assert work.learner.said() == [("node start.js", "npm install table && node start.js")]


def test_what_a_command_did_to_the_tree_is_no_edit(app: Path) -> None:
    work = Work(app)
    work.type("node start.js", 1, MISSING, at_s=-30)
    work.type_now("npm install", lambda: (app / "package-lock.json").write_text("{}\n"))
    work.type("node start.js", at_s=30)

    assert work.learner.said() == [("node start.js", "npm install && node start.js")]


def test_what_a_command_took_away_is_no_edit(app: Path) -> None:
    work = Work(app)
    work.type("node start.js", 1, MISSING, at_s=-30)
    work.type_now("npm install", (app / "src/app.js").unlink)
    work.type("node start.js", at_s=30)

    assert work.learner.said() == [("node start.js", "npm install && node start.js")]


@pytest.mark.parametrize("editor", ["vim package.json", "sed -i s/a/b/ package.json", "/bin/ed x"])
def test_what_an_editor_did_is_one_although_it_is_a_command(editor: str, app: Path) -> None:
    work = Work(app)
    work.type("node start.js", 1, MISSING, at_s=-30)
    work.type("npm install", at_s=-20)
    work.type_now(editor, lambda: (app / "start.js").write_text("other\n"))
    work.type("node start.js", at_s=30)

    assert work.learner.rules == []


def test_a_prompt_that_refreshes_git_s_index_edits_nothing(app: Path) -> None:
    work = Work(app)
    work.type("node start.js", 1, MISSING, at_s=-30)
    work.type("npm install", at_s=-fingerprint.REFRESHED_US / SECOND)
    os.utime(app / ".git/index")
    work.type("node start.js", at_s=30)

    assert work.learner.said() == [("node start.js", "npm install && node start.js")]


def test_noise_where_programs_write_is_no_edit(app: Path) -> None:
    for name in ("node_modules", "dist", ".cache", "docs/node_modules"):
        (app / name).mkdir()
    written = ["node_modules/x", "dist/x", ".cache/x", "docs/node_modules/x", "docs/api/v1/x.log"]
    (app / "docs/api/v1/x.log").touch()

    def make_noise() -> None:
        for name in written:
            (app / name).write_text("noise\n")

    assert fail_install_pass(app, make_noise).rules != []


def test_without_a_fingerprint_all_is_as_if_nobody_edited(app: Path) -> None:
    work = Work(app)
    work.type("node start.js", 1, MISSING, at_s=-30)
    work.learner.restart()
    work.type("npm install", at_s=-20)
    EDITS["a file that the command names"](app)
    work.type("node start.js", at_s=30)

    assert work.learner.said() == [("node start.js", "npm install && node start.js")]


def test_a_linked_worktree_has_an_index_of_its_own(app: Path) -> None:
    linked = app.with_name("linked")
    git(app, "worktree", "add", "-q", str(linked))

    assert fail_install_pass(linked, lambda: git(app, "add", "-A")).rules != []
    assert fail_install_pass(linked, lambda: EDITS["what is staged"](linked)).rules == []


def test_outside_git_only_what_is_named_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/app.js").write_text("table\n")
    (tmp_path / "start.js").write_text("app\n")

    assert fail_install_pass(tmp_path, (tmp_path / "new").touch).rules != []
    assert fail_install_pass(tmp_path, lambda: (tmp_path / "start.js").write_text("x")).rules == []


@pytest.mark.parametrize("edited", [False, True])
def test_a_pass_after_an_edit_contradicts_no_rule(app: Path, *, edited: bool) -> None:
    learner = fail_install_pass(app)
    work = Work(app)
    work.learner = learner
    work.type("node start.js", 1, MISSING, at_s=100)
    if edited:
        EDITS["a file that the error names"](app)
    work.type("node start.js", at_s=110)

    assert learner.counts() == (0, 1, 0 if edited else 1)


def test_a_large_tree_is_not_searched_to_its_end(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        (app / f"docs/api/v1/{number}").mkdir()
        (app / f"docs/api/v1/{number}/x.md").touch()
    deep = app / "docs/api/v1/7/x.md"

    assert fail_install_pass(app, lambda: deep.write_text("two\n")).rules == []
    monkeypatch.setattr(fingerprint, "WALK_MAX", 40)
    assert fail_install_pass(app, lambda: deep.write_text("three\n")).rules != []


def test_the_looks_are_bounded_and_stay_inside_the_tree(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(500):
        (app / f"folder{number}").mkdir()
    names = [f"{app}/src/x{n}.js:1: src/y{n}.js /srv/z{n}.js ../w{n}.js ~/v.js" for n in range(500)]
    run = Learner().run(
        "node start.js /etc/passwd /net/dead/mount.js " + "x " * 1000,
        1,
        "Error: Cannot find module '/srv/dead/table'\n" + "\n".join(names),
        cwd=app,
        project=f"{app}/.git",
        worktree=str(app),
    )
    failure = classify(run, parse(run.command))
    assert failure is not None
    looked: list[str] = []
    lstat = os.lstat

    def noted(path: str) -> os.stat_result:
        looked.append(path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", noted)

    found = take_fingerprint(failure)

    seen = [path for path in looked if path.startswith(f"{app}/")]
    assert 10 < len(seen) <= LOOKS_MAX
    assert [path for path in looked if "dead" in path or "/srv" in path or "passwd" in path] == []
    assert f"{app}/src/app.js" not in found.stamps
    assert all(path.startswith(str(app)) for path in found.stamps)
