"""Places: which project and worktree a directory belongs to, as git would say."""

import os
import subprocess
from pathlib import Path

import pytest

from daemon_process import USER, needs_root
from flightrec.places import Place, Places, find_place, origin_of_url, working_folder


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


@pytest.mark.parametrize("way", ["file", "link", "folder", "worktree", "forged worktree"])
def test_a_checkout_that_says_it_is_another_ones_is_not(
    repository: Path, tmp_path: Path, way: str
) -> None:
    """T5: it came from anywhere, and knows where the person's own repository lies."""
    git("worktree", "add", "-q", str(tmp_path / "wt"), cwd=repository)
    trap, own = tmp_path / "trap", tmp_path / "trap/own"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "commondir").write_text(f"{repository}/.git\n")
    (own / "gitdir").write_text(f"{trap}/.git\n")
    dot_git = trap / ".git"
    if way == "link":
        dot_git.symlink_to(repository / ".git")
    elif way == "folder":
        own.rename(dot_git)
    else:
        named = {"file": "", "worktree": "/worktrees/wt"}.get(way)
        dot_git.write_text(f"gitdir: {own if named is None else f'{repository}/.git{named}'}\n")

    assert find_place(str(trap)) == Place(str(trap), str(trap))
    assert find_place(str(tmp_path / "wt")).project == str(repository / ".git")


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


def test_a_fifo_in_the_place_of_a_git_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert find_place(str(tmp_path)) == Place(str(tmp_path), str(tmp_path))


# -- cd DIR && … ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("make", "/home/u"),
        ("cd /repo && make", "/repo"),
        ("cd /repo; make", "/repo"),
        ("cd /repo\nmake", "/repo"),
        ("cd app && cd lib && make && cd /other", "/home/u/app/lib"),
        ("cd -- '../the app' && make", "/home/the app"),
        ("cd ~/app && make", "/nonexistent/flightrec-tests/app"),
        ("cd ~ && make", "/nonexistent/flightrec-tests"),
        ("cd /repo && cat <<'X'\n" + "long line\n" * 2000 + "X", "/repo"),
        # which of them the shell is in afterwards, nobody knows
        ("cd /repo", "/home/u"),
        ("cd /repo || make", "/home/u"),
        ("cd /repo | make", "/home/u"),
        ("cd /repo & make", "/home/u"),
        ("(cd /repo && make)", "/home/u"),
        ("if cd /repo; then make; fi", "/home/u"),
        ("make && cd /repo && make", "/home/u"),
        ("cd app && (cd lib && make)", "/home/u/app"),
        ("cd - && make", "/home/u"),
        ("cd && make", "/home/u"),
        ('cd "$DIR" && make', "/home/u"),
        ("cd ~bob/app && make", "/home/u"),
        ("cd ~/app* && make", "/home/u"),
        ("cd a b && make", "/home/u"),
        ("cd /a && cd $B && make", "/home/u"),
        ("cdk /repo && make", "/home/u"),
        ("cd '/repo && make", "/home/u"),
        ("echo 'cd /repo && make'", "/home/u"),
    ],
)
def test_a_line_works_where_its_leading_cd_goes(command: str, folder: str) -> None:
    assert working_folder(command, "/home/u") == folder


def test_the_place_of_a_line_is_that_of_the_directory_that_it_goes_to(
    repository: Path, tmp_path: Path
) -> None:
    places = Places()
    typed = f"cd {repository}/deep && make"
    assert places.find_for(typed, str(tmp_path), 1.0) == find_place(str(repository))
    assert places.find_for("make", str(tmp_path), 1.0) == find_place(str(tmp_path))


def test_a_cd_to_nowhere_changes_no_place(repository: Path) -> None:
    """It fails; or it is right inside a container, whose shell stands in a folder known here."""
    for target in ("/nowhere", str(repository / ".git/HEAD"), "a\0b"):
        assert Places().find_for(f"cd '{target}'; make", str(repository), 1.0) == find_place(
            str(repository)
        )


# -- origin --------------------------------------------------------------------------------------


def test_clones_share_the_origin_and_nothing_else(repository: Path, tmp_path: Path) -> None:
    places = []
    for name in ("a", "b"):
        git("clone", "-q", str(repository), name, cwd=tmp_path)
        places.append(assert_as_git(tmp_path / name))
    first, second = places

    assert first.origin
    assert first.origin == second.origin
    assert first.project != second.project
    assert assert_as_git(repository).origin == ""


def test_the_origin_of_a_worktree_is_the_repository_s(repository: Path, tmp_path: Path) -> None:
    git("remote", "add", "fork", "https://example.invalid/fork", cwd=repository)
    git("remote", "add", "origin", "https://example.invalid/x", cwd=repository)
    git("worktree", "add", "-q", str(tmp_path / "w"), cwd=repository)

    assert find_place(str(tmp_path / "w")).origin == origin_of_url("https://example.invalid/x")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.invalid/team/app",
        "https://example.invalid/team/app.git/",
        "https://user:token@example.invalid/team/app.git",
        "ssh://git@Example.invalid:22/team/app",
        "git@example.invalid:team/app.git",
        "example.invalid:/team/app",
    ],
)
def test_all_ways_to_name_one_repository_are_one_origin(url: str) -> None:
    assert origin_of_url(url) == origin_of_url("https://example.invalid/team/app")
    assert "token" not in origin_of_url(url)


def test_other_repositories_are_other_origins() -> None:
    urls = ("https://a.invalid/x", "https://b.invalid/x", "https://a.invalid/X", "/srv/x", "/srv/y")
    assert len({origin_of_url(url) for url in urls}) == len(urls)
    assert origin_of_url("../x") == ""


@pytest.mark.parametrize(
    "config", ["", "[remote]\nurl = /x\n", '[remote "origin"]\n[core]\nurl = /x\n', "\0\xff["]
)
def test_where_no_origin_is_named_there_is_none(config: str, repository: Path) -> None:
    (repository / ".git/config").write_text(config)
    assert find_place(str(repository)).origin == ""
    (repository / ".git/config").unlink()
    os.mkfifo(repository / ".git/config")
    assert find_place(str(repository)).origin == ""
