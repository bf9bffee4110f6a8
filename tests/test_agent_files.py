"""Where agents read their memory: the table, and Claude Code's name for a project."""

import subprocess
from pathlib import Path

import pytest

from flightrec.agent_files import (
    AGENTS,
    CLAUDE_MEMORY,
    TARGETS,
    Holds,
    claude_slug,
    find_targets,
    locate,
    memory_root,
)
from flightrec.places import Place, find_place


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        [
            *("git", "-c", "protocol.file.allow=always", "-c", "user.name=x"),
            *("-c", "user.email=x@example.org", *words),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / "my.proj_x y"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("/home/dev/my.proj_x y", "-home-dev-my-proj-x-y"),
        ("/w/Ä1", "-w--1"),
        ("/w/\U0001f600", "-w---"),
        ("/w/\udcff", "-w--"),
    ],
)
def test_a_slug_keeps_only_ascii_letters_and_digits(path: str, slug: str) -> None:
    assert claude_slug(path) == slug


def test_memory_belongs_to_the_git_root(project: Path) -> None:
    (project / "sub").mkdir()
    assert memory_root(find_place(str(project / "sub"))) == str(project)


def test_worktrees_share_the_memory_of_the_main_checkout(project: Path) -> None:
    git(project, "worktree", "add", "-q", "../wt")
    assert memory_root(find_place(str(project.parent / "wt"))) == str(project)


def test_worktrees_of_a_bare_repository_share_its_own(project: Path) -> None:
    git(project, "clone", "-q", "--bare", ".", "../bare.git")
    git(project.parent / "bare.git", "worktree", "add", "-q", "../wt")
    place = find_place(str(project.parent / "wt"))
    assert memory_root(place) == str(project.parent / "bare.git")


def test_a_submodule_is_a_checkout_of_its_own(project: Path, home: Path) -> None:
    outer = home / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", str(project), "inner")
    assert memory_root(find_place(str(outer / "inner"))) == str(outer / "inner")


def test_a_folder_outside_git_is_itself(home: Path) -> None:
    assert memory_root(find_place(str(home))) == str(home)


def test_claude_s_memory_is_below_its_config_folder(home: Path) -> None:
    place = Place("/w/app/.git", "/w/app", in_git=True)
    location = locate(CLAUDE_MEMORY, place, home, {})
    assert location is not None
    assert location.path == home / ".claude/projects/-w-app/memory/MEMORY.md"
    assert location.boundary == home


def test_claude_s_memory_moves_with_its_variable(home: Path) -> None:
    place = Place("/w/app/.git", "/w/app", in_git=True)
    location = locate(CLAUDE_MEMORY, place, home, {"CLAUDE_CONFIG_DIR": "/opt/claude"})
    assert location is not None
    assert location.path == Path("/opt/claude/projects/-w-app/memory/MEMORY.md")
    assert location.boundary == Path("/opt/claude")


def test_a_relative_variable_is_ignored(home: Path) -> None:
    location = locate(CLAUDE_MEMORY, Place("/w", "/w"), home, {"CLAUDE_CONFIG_DIR": "x"})
    assert location is not None
    assert location.path.is_relative_to(home)


@pytest.mark.parametrize("root", ["/", "HOME"])
def test_a_team_s_file_is_never_put_into_a_home_or_root(root: str, home: Path) -> None:
    folder = str(home) if root == "HOME" else root
    for target in TARGETS:
        location = locate(target, Place(folder, folder), home, {})
        assert (location is None) == (not target.folder)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_team_s_files_hold_what_was_seen_in_the_project(agent: str) -> None:
    team = find_targets(agent, team=True)
    assert [target.holds for target in team] == [Holds.PROJECT]
    assert all(target.folder == "" for target in team)
