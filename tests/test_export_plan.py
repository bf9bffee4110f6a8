"""Whose rules stand in which file: the person's, the project's, and what the person said."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from flightrec.agent_files import Kind
from flightrec.errors import FlightrecError
from flightrec.export_plan import View, file_of, plan, rows_for
from flightrec.export_rows import (
    ExportRow,
    Wanted,
    note,
    note_claude_folder,
    read_rows,
    stop,
)
from flightrec.paths import Paths
from flightrec.places import find_place
from flightrec.rules import Rule, Scope, Status
from flightrec.store import Store
from test_exporter import drop, export, git_project, keep, rule_of, use_claude_in

SHARED = {"status": Status.SHARED, "scope": Scope.USER}
GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org")

Ask = Callable[..., list[ExportRow]]


@pytest.fixture
def ask(home: Path, store: Store) -> Ask:
    """``ask(agent, kind, project, **variables)`` remembers what somebody wants there."""

    def remember(agent: str, kind: Kind, project: Path, **variables: str) -> list[ExportRow]:
        rows = rows_for(agent, [kind], find_place(str(project)), home, variables)
        with store.transaction() as connection:
            for row in rows:
                note(connection, row)
        return rows

    return remember


def git(folder: Path, *words: str) -> str:
    done = subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def ids_in(path: Path) -> list[str]:
    """Return which rules stand in a file, in their order, and the headings between them."""
    found = []
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            found.append(line.split("`")[1])
        elif line.startswith("- "):
            found.append(line.rsplit("-", 1)[1].rstrip(")"))
    return found


# A user's file of an agent that knows no person's file of a project.


def test_a_project_s_rules_stand_in_the_user_s_file_under_its_name(
    home: Path, paths: Paths, store: Store, ask: Ask
) -> None:
    one, two, other = (git_project(home, name) for name in ("one", "two", "other"))
    ask("codex", Kind.USER, one)
    ask("codex", Kind.USER, two)
    keep(
        store,
        rule_of(one, number=1),
        rule_of(two, number=2),
        rule_of(one, two, number=3, **SHARED),
        rule_of(other, number=4),
    )
    export(store, paths)
    assert ids_in(home / ".codex/AGENTS.md") == ["003", str(one), "001", str(two), "002"]


def test_a_worktree_stands_under_the_main_checkout_s_name(
    home: Path, paths: Paths, store: Store, ask: Ask
) -> None:
    project = git_project(home, "project")
    git(project, "commit", "-q", "--allow-empty", "-m", "x")
    git(project, "worktree", "add", "-q", "../wt")
    ask("codex", Kind.USER, home / "wt")
    ask("codex", Kind.USER, project)
    keep(store, rule_of(home / "wt"))
    export(store, paths)
    assert ids_in(home / ".codex/AGENTS.md") == [str(project), "001"]


def test_a_home_is_no_project_to_stand_under(home: Path, ask: Ask) -> None:
    assert [row.project for row in ask("codex", Kind.USER, home)] == [""]


def test_an_agent_with_a_file_of_the_project_has_no_projects_in_the_user_s(
    home: Path, ask: Ask
) -> None:
    project = git_project(home, "project")
    assert [row.project for row in ask("claude", Kind.USER, project)] == [""]


def test_nothing_is_said_twice_to_one_agent(
    home: Path, paths: Paths, store: Store, ask: Ask
) -> None:
    one, two = git_project(home, "one"), git_project(home, "two")
    memory = use_claude_in(one, home)
    ask("claude", Kind.TEAM, one)
    keep(store, rule_of(one, number=1), rule_of(one, two, number=2, **SHARED))
    export(store, paths)
    assert ids_in(memory) == ["001", "002"]
    ask("claude", Kind.USER, one)
    export(store, paths)
    assert ids_in(memory) == ["001"]
    assert ids_in(home / ".claude/CLAUDE.md") == ["002"]
    assert ids_in(one / "CLAUDE.md") == ["001", "002"]  # a team does not have the person's file


# What the daemon remembers.


def test_the_place_is_remembered_where_the_environment_is_another_one(
    home: Path, paths: Paths, store: Store, ask: Ask, tmp_path: Path
) -> None:
    project = git_project(home, "project")
    ask("codex", Kind.USER, project, CODEX_HOME=str(tmp_path))
    keep(store, rule_of(project))
    export(store, paths)  # with an empty environment
    assert ids_in(tmp_path / "AGENTS.md") == [str(project), "001"]
    assert not (home / ".codex").exists()


def test_a_folder_of_claude_s_is_followed_once_the_person_exported_there(
    home: Path, paths: Paths, store: Store, ask: Ask, tmp_path: Path
) -> None:
    asked, used = git_project(home, "asked"), git_project(home, "used")
    ask("claude", Kind.MEMORY, asked, CLAUDE_CONFIG_DIR=str(tmp_path))
    memory = use_claude_in(used, home)
    moved = tmp_path / memory.relative_to(home / ".claude")
    memory.parent.parent.rmdir()
    moved.parent.parent.mkdir(parents=True)
    keep(store, rule_of(used))
    export(store, paths)
    assert ids_in(moved) == ["001"]
    assert not memory.exists()


def test_a_folder_that_a_session_of_claude_s_had_is_followed(
    home: Path, paths: Paths, store: Store, tmp_path: Path
) -> None:
    project = git_project(home, "project")
    moved = tmp_path / use_claude_in(project, home).relative_to(home / ".claude")
    moved.parent.parent.mkdir(parents=True)
    with store.transaction() as connection:
        assert note_claude_folder(connection, str(tmp_path))
        assert not note_claude_folder(connection, str(tmp_path))
    keep(store, rule_of(project))
    export(store, paths)
    assert ids_in(moved) == ["001"]


def test_a_checkout_that_is_gone_comes_not_back(
    home: Path, paths: Paths, store: Store, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    project = git_project(home, "project")
    ask("codex", Kind.TEAM, project)
    keep(store, rule_of(project))
    project.rename(home / "moved")
    export(store, paths)
    assert not project.exists()
    assert caplog.text == ""
    (home / "moved").rename(project)
    export(store, paths)
    assert ids_in(project / "AGENTS.md") == ["001"]


def test_a_file_of_the_person_s_alone_goes_and_comes_with_its_rules(
    home: Path, paths: Paths, store: Store, ask: Ask
) -> None:
    project = git_project(home, "project")
    ask("codex", Kind.USER, project)
    rule = rule_of(project)
    keep(store, rule)
    export(store, paths)
    drop(store, rule)
    export(store, paths)
    assert not (home / ".codex/AGENTS.md").exists()
    keep(store, rule)
    export(store, paths)
    assert ids_in(home / ".codex/AGENTS.md") == [str(project), "001"]


# Stopping.


def test_what_is_stopped_leaves_the_file_to_the_others(
    home: Path, paths: Paths, store: Store, ask: Ask
) -> None:
    one, two = git_project(home, "one"), git_project(home, "two")
    ask("codex", Kind.USER, two)
    _, last = ask("codex", Kind.USER, one)
    keep(store, rule_of(one, number=1), rule_of(two, number=2))
    export(store, paths)
    with store.transaction() as connection:
        stop(connection, last)
    export(store, paths)
    assert ids_in(home / ".codex/AGENTS.md") == [str(two), "002"]


def test_claude_s_memory_can_be_stopped_before_it_was_written(
    home: Path, paths: Paths, store: Store, ask: Ask
) -> None:
    project = git_project(home, "project")
    memory = use_claude_in(project, home)
    [row] = rows_for("claude", [Kind.MEMORY], find_place(str(project)), home, {})
    with store.transaction() as connection:
        stop(connection, row)
    keep(store, rule_of(project))
    export(store, paths)
    assert not memory.exists()
    assert [row.wanted for row in read_rows(store.connection)] == [Wanted.STOPPED]
    ask("claude", Kind.MEMORY, project)
    export(store, paths)
    assert memory.exists()


# One file under two agents' names.


def test_two_names_of_one_file_are_one_file(
    home: Path, paths: Paths, store: Store, ask: Ask
) -> None:
    one, two = git_project(home, "one"), git_project(home, "two")
    (home / ".claude").mkdir()
    (home / ".codex").mkdir()
    memory = home / ".claude/CLAUDE.md"
    memory.touch()
    (home / ".codex/AGENTS.md").symlink_to("../.claude/CLAUDE.md")
    ask("claude", Kind.USER, one)
    shared, project = ask("codex", Kind.USER, one)
    keep(store, rule_of(one, number=1), rule_of(one, two, number=2, **SHARED))
    export(store, paths)
    first = memory.stat()

    assert ids_in(memory) == ["002", str(one), "001"]
    assert len(list(plan(View.read(store.connection), home, {}))) == 1
    export(store, paths)
    assert memory.stat().st_ino == first.st_ino
    with store.transaction() as connection:
        stop(connection, shared)
        stop(connection, project)
    export(store, paths)
    assert ids_in(memory) == ["002"]


def test_a_file_that_two_agents_read_takes_what_both_of_them_take(home: Path, ask: Ask) -> None:
    project = git_project(home, "project")
    (project / "CLAUDE.md").touch()
    (project / "AGENTS.md").symlink_to("CLAUDE.md")
    rows = [*ask("claude", Kind.TEAM, project), *ask("codex", Kind.TEAM, project)]
    [file] = {file_of(row, View((), {}, tuple(rows))).form for row in rows}

    assert (file.lines_max, file.bytes_max) == (400, 20_000)


# A person's own file in the checkout.


def test_a_local_file_is_kept_from_git_and_nothing_tracked_is_touched(
    home: Path, paths: Paths, store: Store, ask: Ask
) -> None:
    project = git_project(home, "project")
    git(project, "commit", "-q", "--allow-empty", "-m", "x")
    git(project, "worktree", "add", "-q", "../wt")
    for checkout in (project, home / "wt"):
        ask("claude", Kind.LOCAL, checkout)
        ask("qwen", Kind.LOCAL, checkout)
    export(store, paths)
    exclude = project / ".git/info/exclude"
    before = exclude.read_text()
    assert "/CLAUDE.local.md" not in before  # nothing is written where no rule is
    keep(store, rule_of(project))
    export(store, paths)
    for checkout in (project, home / "wt"):
        assert ids_in(checkout / "CLAUDE.local.md") == ["001"]
        assert ids_in(checkout / ".qwen/QWEN.local.md") == ["001"]
        assert git(checkout, "status", "--porcelain") == ""
    assert exclude.read_text() == (
        before + "# flightrec\n/CLAUDE.local.md\n# flightrec\n/.qwen/QWEN.local.md\n"
    )


def test_a_local_file_outside_git_needs_no_hiding(
    home: Path, paths: Paths, store: Store, ask: Ask
) -> None:
    folder = home / "plain"
    folder.mkdir()
    ask("claude", Kind.LOCAL, folder)
    keep(store, rule_of(folder))
    export(store, paths)
    assert [found.name for found in folder.iterdir()] == ["CLAUDE.local.md"]


def test_a_folder_that_only_a_checkout_takes_for_gits_is_left_alone(
    home: Path, paths: Paths, store: Store, ask: Ask
) -> None:
    """T5: a checkout names a folder of the person as its git folder."""
    victim, project = home / "victim", home / "project"
    victim.mkdir()
    project.mkdir()
    (project / ".git").write_text("gitdir: ../victim\n")
    ask("claude", Kind.LOCAL, project)
    keep(store, rule_of(project))
    export(store, paths)

    assert ids_in(project / "CLAUDE.local.md") == ["001"]
    assert list(victim.iterdir()) == []


def test_a_local_file_is_not_written_where_it_cannot_be_hidden(
    home: Path, paths: Paths, store: Store, ask: Ask, tmp_path: Path
) -> None:
    """T5: git's list is a link out of the repository."""
    project = git_project(home, "project")
    exclude = project / ".git/info/exclude"
    exclude.unlink()
    (tmp_path / "victim").write_text("victim\n")
    exclude.symlink_to(tmp_path / "victim")
    ask("claude", Kind.LOCAL, project)
    keep(store, rule_of(project))
    export(store, paths)
    assert (tmp_path / "victim").read_text() == "victim\n"
    assert not (project / "CLAUDE.local.md").exists()


# The rest.


def test_gemini_s_memory_is_kept_where_gemini_has_one(
    home: Path, paths: Paths, store: Store, ask: Ask
) -> None:
    project = git_project(home, "project")
    with pytest.raises(FlightrecError, match="start gemini here once"):
        ask("gemini", Kind.MEMORY, project)
    (home / ".gemini").mkdir()
    (home / ".gemini/projects.json").write_text(f'{{"projects": {{"{project}": "project-1"}}}}')
    ask("gemini", Kind.MEMORY, project)
    keep(store, rule_of(project))
    export(store, paths)
    assert ids_in(home / ".gemini/tmp/project-1/memory/MEMORY.md") == ["001"]


def test_the_plan_tells_each_file_once(home: Path, store: Store, ask: Ask) -> None:
    one, two = git_project(home, "one"), git_project(home, "two")
    for agent in ("codex", "pi", "opencode"):
        ask(agent, Kind.TEAM, one)
        ask(agent, Kind.USER, one)
        ask(agent, Kind.USER, two)
    keep(store, rule_of(one, two))
    files = list(plan(View.read(store.connection), home, {}))
    found = [file.location.path for file in files]
    assert len(found) == len(set(found)) == 4


def test_a_file_that_is_not_asked_for_holds_nothing(home: Path, store: Store, ask: Ask) -> None:
    project = git_project(home, "project")
    rows = ask("codex", Kind.USER, project)
    rule: Rule = rule_of(project)
    keep(store, rule)
    view = View.read(store.connection)
    assert file_of(rows[0], view).rules == 1
    assert file_of(rows[0], view.without_rows(rows)).rules == 0
