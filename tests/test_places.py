"""Places: which project and worktree a directory belongs to, as git would say."""

import os
import subprocess
from pathlib import Path

import pytest

from daemon_process import USER, needs_root
from flightrec.places import Place, Places, find_place


def git(*words: str, cwd: Path) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    command = ["git", *identity, "-c", "protocol.file.allow=always", *words]
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"}
    result = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=True)
    return result.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git("init", "-q", cwd=folder)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=folder)
    (folder / "deep/er").mkdir(parents=True)
    return folder


def assert_as_git(cwd: Path) -> Place:
    """Compare with what git itself says."""
    place = find_place(str(cwd))
    common = git("rev-parse", "--path-format=absolute", "--git-common-dir", cwd=cwd)
    assert place.project == os.path.realpath(common)
    assert place.worktree == os.path.realpath(git("rev-parse", "--show-toplevel", cwd=cwd))
    assert place.in_git
    return place


def test_a_repository_is_one_project_from_any_directory_in_it(repository: Path) -> None:
    assert assert_as_git(repository) == assert_as_git(repository / "deep/er")


def test_worktrees_share_the_project_and_not_the_worktree(repository: Path) -> None:
    other = repository.with_name("other")
    git("worktree", "add", "-q", str(other), cwd=repository)
    first, second = assert_as_git(repository), assert_as_git(other)
    assert first.project == second.project
    assert first.worktree != second.worktree


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git("init", "-q", cwd=outer)
    git("submodule", "add", "-q", str(repository), "inner", cwd=outer)
    assert assert_as_git(outer / "inner").project != assert_as_git(outer).project


def test_a_separate_git_folder_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git("init", "-q", f"--separate-git-dir={tmp_path}/elsewhere.git", cwd=folder)
    assert_as_git(folder)


def test_links_lead_to_the_same_place(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository / "deep")
    assert find_place(str(tmp_path / "link/er")) == find_place(str(repository))


def test_outside_git_a_directory_is_its_own_project(tmp_path: Path) -> None:
    place = find_place(str(tmp_path))
    assert place == Place(str(tmp_path), str(tmp_path), mine=True, in_git=False)


def test_a_directory_that_is_gone_is_its_own_place(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone/away")
    assert find_place(gone) == Place(gone, gone)


@pytest.mark.parametrize("content", ["", "nonsense", "gitdir:", "gitdir: /no/where\n", "\0\1"])
def test_an_odd_git_file_raises_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content)
    assert find_place(str(tmp_path)).worktree == str(tmp_path)


def test_an_empty_git_folder_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert not find_place(str(tmp_path)).in_git


def test_bytes_that_are_no_utf8_are_a_path_like_any_other(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(odd)  # noqa: PTH102 - a path of bytes
    assert os.fsencode(find_place(os.fsdecode(odd)).project) == odd


@needs_root
def test_a_repository_of_somebody_else_is_not_mine_and_a_plain_directory_is(
    repository: Path, tmp_path: Path
) -> None:
    """git's safe.directory rule is about repositories: /tmp and /etc are recorded as any."""
    plain = tmp_path / "plain"
    plain.mkdir()
    for folder in (repository, plain):
        os.chown(folder, USER, USER)
    assert not find_place(str(repository / "deep")).mine
    assert find_place(str(plain)).mine
    assert find_place("/etc").mine


def test_answers_are_remembered_for_seconds_only(tmp_path: Path) -> None:
    places = Places()
    assert not places.find(str(tmp_path), 100.0).in_git
    git("init", "-q", cwd=tmp_path)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=tmp_path)
    assert not places.find(str(tmp_path), 101.0).in_git
    assert places.find(str(tmp_path), 106.0).in_git
