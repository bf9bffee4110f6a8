"""Which memory files are written, when, and what happens to those that cannot be."""

import logging
import os
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from flightrec.agent_files import Kind
from flightrec.agent_places import claude_slug
from flightrec.export_plan import View, plan
from flightrec.export_rows import ExportRow, note, read_rows
from flightrec.exporter import Exporter
from flightrec.file_update import FileUpdate
from flightrec.location import Location
from flightrec.memory_file import update_file
from flightrec.paths import Paths
from flightrec.places import find_place
from flightrec.rule_rows import SAVE, row_crc, to_row
from flightrec.rules import Rule, Scope, Status
from flightrec.store import Store
from test_export import make_rule


def export(store: Store, paths: Paths) -> None:
    """Bring all memory files up to date."""
    exporter = Exporter(paths, {})
    exporter.bring_up_to_date(store)
    exporter.settle(at_once=True)


def keep(store: Store, *rules: Rule) -> None:
    with store.transaction() as connection:
        for rule in rules:
            row = to_row(rule)
            connection.execute(SAVE, (*row, row_crc(row)))


def drop(store: Store, rule: Rule) -> None:
    with store.transaction() as connection:
        connection.execute("DELETE FROM rules WHERE id = ?", (rule.id,))


def rule_of(*projects: Path | str, number: int = 1, **changes: object) -> Rule:
    rule = make_rule((f"gti{number}",), ("git",), number=number)
    seen = tuple(find_place(str(project)).project for project in projects)
    return msgspec.structs.replace(rule, project=seen[0], seen_in=seen, **changes)


def git_project(home: Path, name: str) -> Path:
    folder = home / name
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def use_claude_in(project: Path, home: Path) -> Path:
    folder = home / ".claude/projects" / claude_slug(os.path.realpath(project))
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "memory/MEMORY.md"


def test_only_projects_in_which_claude_was_used_get_a_file(
    home: Path, paths: Paths, store: Store
) -> None:
    used, unused = git_project(home, "used"), git_project(home, "unused")
    memory = use_claude_in(used, home)
    keep(store, rule_of(used, unused))
    export(store, paths)
    assert memory.exists()
    assert len(list(home.rglob("*.md"))) == 1


def test_a_rule_stands_only_where_it_was_seen(home: Path, paths: Paths, store: Store) -> None:
    one, two = git_project(home, "one"), git_project(home, "two")
    first, second = use_claude_in(one, home), use_claude_in(two, home)
    keep(store, rule_of(one, number=1), rule_of(two, number=2), rule_of(one, two, number=3))
    export(store, paths)
    assert [f"-00{n}" in first.read_text() for n in (1, 2, 3)] == [True, False, True]
    assert [f"-00{n}" in second.read_text() for n in (1, 2, 3)] == [False, True, True]


def test_a_worktree_and_its_main_checkout_share_one_file(
    home: Path, paths: Paths, store: Store
) -> None:
    project = git_project(home, "project")
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org")
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=project, check=True)
    subprocess.run([*git, "worktree", "add", "-q", "../wt"], cwd=project, check=True)
    memory = use_claude_in(project, home)
    keep(store, rule_of(home / "wt"))
    export(store, paths)
    assert memory.exists()
    assert len(list(home.rglob("MEMORY.md"))) == 1


def test_two_projects_of_one_name_do_not_fight_over_a_file(
    home: Path, paths: Paths, store: Store
) -> None:
    """Claude Code calls my_app and my-app the same; the first one has the file."""
    one, two = git_project(home, "my_app"), git_project(home, "my-app")
    memory = use_claude_in(one, home)
    assert use_claude_in(two, home) == memory
    keep(store, rule_of(one, number=1))
    export(store, paths)
    keep(store, rule_of(two, number=2))
    before = memory.read_bytes()
    export(store, paths)
    assert memory.read_bytes() == before
    assert b"-001" in before


def test_a_file_goes_with_its_last_rule_and_is_forgotten(
    home: Path, paths: Paths, store: Store
) -> None:
    project = git_project(home, "project")
    memory = use_claude_in(project, home)
    rule = rule_of(project)
    keep(store, rule)
    export(store, paths)
    assert [row.path for row in read_rows(store.connection)] == [memory]
    drop(store, rule)
    export(store, paths)
    assert not memory.exists()
    assert read_rows(store.connection) == []


def test_what_claude_wrote_itself_stays(home: Path, paths: Paths, store: Store) -> None:
    project = git_project(home, "project")
    memory = use_claude_in(project, home)
    memory.parent.mkdir()
    memory.write_text("- [x](x.md) - mine\n")
    rule = rule_of(project)
    keep(store, rule)
    export(store, paths)
    assert memory.read_text().startswith("- [x](x.md) - mine\n<!-- flightrec:begin")
    drop(store, rule)
    export(store, paths)
    assert memory.read_text() == "- [x](x.md) - mine\n"


def test_a_file_that_cannot_be_written_stops_no_other(
    home: Path, paths: Paths, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = git_project(home, "bad"), git_project(home, "good")
    refused, written = use_claude_in(bad, home), use_claude_in(good, home)
    refused.parent.mkdir()
    os.mkfifo(refused)
    keep(store, rule_of(bad, good))
    with caplog.at_level(logging.WARNING):
        export(store, paths)
    assert written.exists()
    assert "no plain file" in caplog.text


def test_a_file_that_somebody_is_writing_by_hand_is_left_for_later(
    home: Path, paths: Paths, store: Store
) -> None:
    project = git_project(home, "project")
    memory = use_claude_in(project, home)
    keep(store, rule_of(project))
    update = FileUpdate(Location(memory, home), lambda document: document, paths)
    started = time.monotonic()
    assert not Exporter(paths).bring_up_to_date(store)
    assert time.monotonic() - started < 2
    update.close()
    export(store, paths)
    assert memory.exists()


def test_a_config_folder_of_claude_s_own_is_followed(
    home: Path, paths: Paths, store: Store, tmp_path: Path
) -> None:
    project = git_project(home, "project")
    slug = claude_slug(os.path.realpath(project))
    (tmp_path / "projects" / slug).mkdir(parents=True)
    keep(store, rule_of(project))
    Exporter(paths, {"CLAUDE_CONFIG_DIR": str(tmp_path)}).bring_up_to_date(store)
    assert (tmp_path / "projects" / slug / "memory/MEMORY.md").exists()
    assert not (home / ".claude").exists()


def test_a_user_s_file_holds_shared_rules_of_every_project(
    home: Path, paths: Paths, store: Store
) -> None:
    path = home / ".codex/AGENTS.md"
    with store.transaction() as connection:
        note(connection, ExportRow(path, "", "codex", Kind.USER, home))
    shared = {"status": Status.SHARED, "scope": Scope.USER}
    keep(
        store,
        rule_of("/a", "/b", number=1, **shared),
        rule_of("/a", number=2),
        rule_of("/a", "/b", number=3, status=Status.SHARED, scope=Scope.PROJECT),
    )
    export(store, paths)
    assert [f"-00{n}" in path.read_text() for n in (1, 2, 3)] == [True, False, False]


def test_a_program_of_the_project_is_kept_out_of_its_file(
    home: Path, paths: Paths, store: Store
) -> None:
    """T11: what a repository brings along waits for the person."""
    project = git_project(home, "project")
    memory = use_claude_in(project, home)
    planted = msgspec.structs.replace(
        rule_of(project, number=2),
        remedy=msgspec.structs.replace(make_rule().remedy, words=("./evil", "status")),
    )
    keep(store, rule_of(project, number=1), planted)
    export(store, paths)
    assert "-001" in memory.read_text()
    assert "evil" not in memory.read_text()


def test_ten_thousand_rules_are_no_burden(home: Path, paths: Paths, store: Store) -> None:
    """D17: 200 ms an export; here with tenfold slack, and without what others do meanwhile."""
    project = git_project(home, "project")
    memory = use_claude_in(project, home)
    first = rule_of(project)
    keep(store, first)
    rules = (make_rule((f"cmd{n}",), ("git",), number=n, c=n) for n in range(2, 10_001))
    where = {"project": first.project, "seen_in": first.seen_in}
    keep(store, *(msgspec.structs.replace(rule, **where) for rule in rules))
    exporter = Exporter(paths, {})
    started = time.process_time()
    exporter.bring_up_to_date(store)
    took_s = time.process_time() - started
    exporter.settle(at_once=True)
    assert memory.stat().st_size < 25_000
    assert took_s < 2.0


def test_the_plan_is_the_same_every_time(home: Path, store: Store) -> None:
    one, two = git_project(home, "one"), git_project(home, "two")
    use_claude_in(one, home)
    use_claude_in(two, home)
    keep(store, *(rule_of(one, two, number=n) for n in range(1, 4)))
    first, second = (list(plan(View.read(store.connection), home, {})) for _ in range(2))
    assert first == second
    assert len(first) == 2


def test_update_file_makes_no_folder_for_nothing(home: Path, paths: Paths) -> None:
    location = Location(home / "a/b/MEMORY.md", home)
    assert not update_file(location, lambda document: document, paths)
    assert not (home / "a").exists()
