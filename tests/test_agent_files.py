"""Where agents read their memory: the table, and Claude Code's name for a project."""

import subprocess
from pathlib import Path

import pytest

from flightrec.agent_files import (
    AGENTS,
    CLAUDE_MEMORY,
    TARGETS,
    Kind,
    MemoryTarget,
    find_target,
    holds_projects,
    personal_targets,
)
from flightrec.agent_places import claude_slug, locate, memory_root
from flightrec.errors import FlightrecError
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


APP = Place("/w/app/.git", "/w/app", in_git=True)

MOVED = [
    ("claude", Kind.USER, "CLAUDE_CONFIG_DIR", "/elsewhere/CLAUDE.md"),
    ("codex", Kind.USER, "CODEX_HOME", "/elsewhere/AGENTS.md"),
    ("gemini", Kind.USER, "GEMINI_CLI_HOME", "/elsewhere/.gemini/GEMINI.md"),
    ("qwen", Kind.USER, "QWEN_HOME", "/elsewhere/QWEN.md"),
    ("opencode", Kind.USER, "XDG_CONFIG_HOME", "/elsewhere/opencode/AGENTS.md"),
    ("continue", Kind.USER, "CONTINUE_GLOBAL_DIR", "/elsewhere/rules/flightrec.md"),
    ("pi", Kind.USER, "PI_CODING_AGENT_DIR", "/elsewhere/AGENTS.md"),
]


def row_of(agent: str, kind: Kind) -> MemoryTarget:
    found = find_target(agent, kind)
    assert found is not None
    return found


def test_claude_s_memory_is_below_its_config_folder(home: Path) -> None:
    location = locate(CLAUDE_MEMORY, APP, home, {})
    assert location.path == home / ".claude/projects/-w-app/memory/MEMORY.md"
    assert location.boundary == home


def test_claude_s_memory_moves_with_its_variable(home: Path) -> None:
    location = locate(CLAUDE_MEMORY, APP, home, {"CLAUDE_CONFIG_DIR": "/opt/claude"})
    assert location.path == Path("/opt/claude/projects/-w-app/memory/MEMORY.md")
    assert location.boundary == Path("/opt/claude")


@pytest.mark.parametrize(("agent", "kind", "variable", "path"), MOVED)
def test_an_agent_s_own_variable_moves_its_files(
    agent: str, kind: Kind, variable: str, path: str, home: Path
) -> None:
    assert str(locate(row_of(agent, kind), APP, home, {variable: "/elsewhere"}).path) == path
    assert locate(row_of(agent, kind), APP, home, {}).path.is_relative_to(home)


def test_a_relative_variable_is_ignored(home: Path) -> None:
    location = locate(CLAUDE_MEMORY, Place("/w", "/w"), home, {"CLAUDE_CONFIG_DIR": "x"})
    assert location.path.is_relative_to(home)


# Gemini CLI gives each folder a name of its own, and writes it down.


def write_registry(home: Path, text: str) -> None:
    (home / ".gemini").mkdir()
    (home / ".gemini/projects.json").write_text(text)


def test_gemini_s_memory_is_where_its_registry_says(home: Path) -> None:
    write_registry(home, '{"projects": {"/w/app": "app-1", "/x/app": "app"}}')
    location = locate(row_of("gemini", Kind.MEMORY), APP, home, {})
    assert location.path == home / ".gemini/tmp/app-1/memory/MEMORY.md"


@pytest.mark.parametrize(
    "registry",
    [
        None,
        "{}",
        '{"projects": {}}',
        "no json",
        '{"projects": {"/w/app": "../../.ssh"}}',
        '{"projects": {"/w/app": "/etc"}}',
    ],
)
def test_gemini_s_memory_has_no_place_before_it_was_used(registry: str | None, home: Path) -> None:
    if registry is not None:
        write_registry(home, registry)
    with pytest.raises(FlightrecError, match="never used in this project"):
        locate(row_of("gemini", Kind.MEMORY), APP, home, {})


# What stands in a checkout, and what does not.


@pytest.mark.parametrize("root", ["/", "HOME", "ABOVE"])
def test_a_file_in_the_checkout_is_never_put_into_a_home_or_above(root: str, home: Path) -> None:
    folder = {"HOME": str(home), "ABOVE": str(home.parent)}.get(root, root)
    for target in TARGETS:
        if target.folder is None:
            with pytest.raises(FlightrecError, match="no project"):
                locate(target, Place(folder, folder), home, {})


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_has_a_file_for_a_team(agent: str) -> None:
    assert row_of(agent, Kind.TEAM).folder is None


def test_there_is_one_row_of_each_kind() -> None:
    keys = [(target.agent, target.kind) for target in TARGETS]
    assert len(set(keys)) == len(keys)


def test_readers_of_one_file_have_one_limit() -> None:
    forms: dict[str, set[object]] = {}
    for target in TARGETS:
        forms.setdefault(target.shown, set()).add(target.form)
    assert [path for path, found in forms.items() if len(found) > 1] == []


@pytest.mark.parametrize(
    ("agent", "kinds"),
    [
        ("claude", [Kind.MEMORY, Kind.USER]),
        ("gemini", [Kind.MEMORY, Kind.USER]),
        ("qwen", [Kind.LOCAL, Kind.USER]),
        ("codex", [Kind.USER]),
        ("aider", []),
    ],
)
def test_a_person_s_own_files_are_one_of_the_project_and_one_of_all(
    agent: str, kinds: list[Kind]
) -> None:
    assert [target.kind for target in personal_targets(agent)] == kinds
    assert holds_projects(agent) == (Kind.MEMORY not in kinds and Kind.LOCAL not in kinds)


def described(target: MemoryTarget | None) -> str:
    return "" if target is None else f"`{target.shown}`"


def memory_table() -> str:
    """Return the table of the README."""
    lines = [
        "| agent | yours, of one project | yours, of all projects | the team's (`--team`) |",
        "|---|---|---|---|",
    ]
    for agent in AGENTS:
        memory, local = find_target(agent, Kind.MEMORY), find_target(agent, Kind.LOCAL)
        user, team = find_target(agent, Kind.USER), find_target(agent, Kind.TEAM)
        own = described(memory or local)
        if memory and local:
            own += f"; {described(local)} (`--local`)"
        elif user and not own:
            own = "in the next one, under its name"
        lines.append(f"| {agent} | {own} | {described(user)} | {described(team)} |")
    return "\n".join(lines)


def test_the_readme_says_which_file_is_whose() -> None:
    readme = Path(__file__).parent.parent / "README.md"
    assert memory_table() in readme.read_text(), f"the README's table is to be:\n{memory_table()}"
