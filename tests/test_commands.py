"""Each command as a person or program uses it, on what a real daemon recorded."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from command_line import Cli, stand_in_project
from daemon_process import DaemonProcess
from fake_relay import FakeRelay
from flightrec.agent_files import TARGETS
from flightrec.agent_places import claude_slug
from flightrec.commands.terminal import parse_duration, parse_since
from flightrec.errors import ExitCode, FlightrecError
from flightrec.rules import Guard, Status

HOUR_US = 3_600_000_000


@pytest.fixture(scope="module")
def shared_daemon() -> Iterator[DaemonProcess]:
    """One daemon for all tests that need none of their own."""
    home = Path(tempfile.mkdtemp(prefix="fr-", dir="/tmp"))
    with DaemonProcess(home) as daemon:
        daemon.wait_for_writer()
        yield daemon
    shutil.rmtree(home)


@pytest.fixture
def cli(
    shared_daemon: DaemonProcess,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Cli]:
    """A git project to stand in, and a daemon that has recorded nothing."""
    monkeypatch.setenv("HOME", str(shared_daemon.paths.home))
    with stand_in_project(shared_daemon, monkeypatch, capsys) as made:
        yield made
    shared_daemon.ask("resume")
    shared_daemon.ask("forget", since_us=0)


@pytest.fixture
def claude_memory(fresh_cli: Cli) -> Path:
    """Where Claude Code, which was used in the project, keeps its memory of it."""
    slug = claude_slug(os.path.realpath(fresh_cli.project))
    folder = fresh_cli.daemon.paths.home / ".claude/projects" / slug
    folder.mkdir(parents=True)
    return folder / "memory/MEMORY.md"


@pytest.fixture
def no_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for programs of agents, first on the PATH of somebody who has none."""
    for target in TARGETS:
        if target.folder is not None and target.folder.variable:
            monkeypatch.delenv(target.folder.variable, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


# --- log -------------------------------------------------------------------------------------


def test_log_shows_one_line_for_each_run_the_newest_last(cli: Cli) -> None:
    cli.shell(("first", 0), ("second", 3))
    lines = cli("log").splitlines()
    assert [line.split()[6] for line in lines] == ["first", "second"]
    assert " 3 " in lines[1]
    assert f"~/{cli.project.name}" in lines[1]


def test_log_is_empty_where_nothing_was_recorded(cli: Cli) -> None:
    assert "Nothing recorded" in cli("log")
    assert cli.json("log") == []


def test_log_filters(cli: Cli) -> None:
    home = cli.daemon.paths.home
    session = cli.shell(("gti status", 127), ("git status", 0))
    old = time.time_ns() // 1000 - 3 * HOUR_US
    cli.shell(("elsewhere", 0), cwd=os.fsencode(home), wall_us=old)

    def commands(*words: str) -> list[str]:
        return [item["command"] for item in cli.json("log", *words)]

    assert commands() == ["gti status", "git status", "elsewhere"]
    assert commands("--failed") == ["gti status"]
    assert commands("--here") == ["gti status", "git status"]
    assert commands("--project", str(home)) == ["elsewhere"]
    assert commands("--since", "1h") == ["gti status", "git status"]
    assert commands("--session", session.hex()[:8]) == ["gti status", "git status"]
    assert commands("git") == ["git status"]
    assert commands("-n", "1") == ["elsewhere"]


def test_log_gives_programs_everything(cli: Cli) -> None:
    cli.shell(("gti status", 127))
    [item] = cli.json("log")
    assert (item["exit"], item["failure"], item["program"]) == (127, "command not found", "gti")
    assert (item["cwd"], item["source"]) == (str(cli.project), "relay")


def test_log_never_sends_a_control_code_to_the_terminal(cli: Cli) -> None:
    """T9: a recorded command is shown, not obeyed."""
    cli.shell(("printf '\x1b]0;owned\x07' \u202e\u200b; echo one\necho two \udcff", 0))
    shown = cli("log")
    assert shown.count("\n") == 1
    assert "\\x1b]0;owned\\x07" in shown
    assert "⏎" in shown
    assert all(character.isprintable() for character in shown[:-1])
    json.loads(cli("log", "--json"))


def test_a_pipe_gets_no_colours(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.shell(("false", 1))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert "\x1b[" in cli("log")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in cli("log")
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[" not in cli("log")


@pytest.mark.parametrize(
    "words",
    [
        ("--session", "ffff"),
        ("--since", "yesterday"),
        ("--project", "/nonexistent"),
    ],
)
def test_log_says_what_it_does_not_understand(words: tuple[str, ...], cli: Cli) -> None:
    cli("log", *words, status=ExitCode.USAGE)
    assert cli.err.count("\n") == 1


# --- rules and why ---------------------------------------------------------------------------


def test_rules_lists_what_was_learned(cli: Cli) -> None:
    rule = cli.teach(1)
    assert "gti ... → git ...  [command not found]" in cli("rules")
    [item] = cli.json("rules", "list")
    assert (item["id"], item["status"], item["c"]) == (rule.id, "active", 1)
    assert cli.json("rules", "--status", "promoted") == []
    assert cli.json("rules", "--here") != []


def test_rules_elsewhere_are_not_here(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.teach(1)
    monkeypatch.chdir("/")
    assert cli.json("rules", "--here") == []
    assert "No rules yet" in cli("rules", "--here")


def test_a_rule_is_found_by_its_last_digits(cli: Cli) -> None:
    rule = cli.teach(1)
    assert rule.id in cli("rules", "show", rule.id.rpartition("-")[2])
    assert rule.id in cli("rules", "show", rule.id.lower())
    cli("rules", "show", rule.id[:-3] + "999", status=1)
    assert f"did you mean {rule.id}?" in cli.err


def test_showing_a_rule_says_why_it_is_not_exported(cli: Cli) -> None:
    rule = cli.teach(1)
    assert "not before it is promoted" in cli("rules", "show", rule.id)
    cli.teach(2)
    assert "to memory files" in cli("rules", "show", rule.id)


def test_why_shows_the_runs_behind_a_rule(cli: Cli) -> None:
    rule = cli.teach()
    shown = cli("why", rule.id)
    assert f"~/{cli.project.name} $ gti status   (exit 127)" in shown
    assert f"~/{cli.project.name} $ git status   (exit 0)" in shown
    document = json.loads(cli("why", rule.id, "--json"))
    assert [item["mark"] for item in document["items"]] == ["first", "R", "C", "R", "C"]
    first = document["items"][0]
    assert (first["mended_command"], first["command"]) == ("gti status", "git status")
    assert document["rule"]["id"] == rule.id


@pytest.mark.parametrize(
    ("act", "status"), [("reject", Status.ARCHIVED), ("retire", Status.ARCHIVED)]
)
def test_the_person_overrules(act: str, status: Status, cli: Cli) -> None:
    rule = cli.teach(1)
    assert status.value in cli("rules", act, rule.id)
    [changed] = cli.rules()
    assert changed.status is status


def test_an_approval_counts_as_one_confirmation(cli: Cli) -> None:
    rule = cli.teach(1)
    cli("rules", "approve", rule.id, rule.id)
    [changed] = cli.rules()
    assert (changed.c, changed.verdict.value) == (rule.c + 1, "approved")


def test_an_edited_rule_is_another_one(cli: Cli) -> None:
    rule = cli.teach(1)
    assert "hub" in cli("rules", "edit", rule.id, "hub ...")
    assert {r.id: r.status for r in cli.rules()}[rule.id] is Status.ARCHIVED


def test_a_dismissed_hint_counts_against_its_rule(cli: Cli) -> None:
    cli("dismiss", status=1)
    assert "no hint was shown yet" in cli.err
    rule = cli.teach(1)
    cli("dismiss", rule.id)
    assert cli.rules()[0].d == 1


def test_a_rule_can_be_taught(cli: Cli) -> None:
    assert "pytest ... → uv run pytest ..." in cli("learn", "pytest", "uv run pytest")
    assert "everywhere" in cli("learn", "--everywhere", "gti", "git")
    cli("learn", "x", "x", status=ExitCode.USAGE)
    cli("learn", "curl x", "curl -H 'Authorization: Bearer sk_live_0123456789abcdef0123'", status=1)
    assert "secret" in cli.err


def test_reflect_says_what_each_step_did(cli: Cli) -> None:
    cli.teach(1)
    steps = cli("reflect").split("\n")
    assert [line.split()[0] for line in steps if line] == ["tidy", "promote", "archive", "share"]
    assert [item["step"] for item in cli.json("reflect")] == ["tidy", "promote", "archive", "share"]


def test_stats_counts(cli: Cli) -> None:
    cli.teach()
    shown = cli("stats")
    assert "6 commands of 3 sessions in 1 project" in shown
    assert "3 (50.0 %): command not found 3" in shown
    [item] = cli.json("stats")
    assert item["failures"] == {"command not found": 3}
    assert item["rules"] == {"promoted": 1}
    assert cli.json("stats", "--since", "2020-01-01")[0]["runs"] == 6


# --- export ----------------------------------------------------------------------------------


def test_a_promoted_rule_reaches_claude_s_memory_by_itself(
    fresh_cli: Cli, claude_memory: Path, wait_for: Callable[..., object]
) -> None:
    fresh_cli.teach(2)
    assert not claude_memory.exists()
    rule = fresh_cli.teach(1)
    wait_for(claude_memory.exists, what="MEMORY.md")
    assert f"worked: `git ...` ({rule.id})" in claude_memory.read_text()


def test_a_rule_that_falls_back_leaves_the_memory(
    fresh_cli: Cli, claude_memory: Path, wait_for: Callable[..., object]
) -> None:
    """The block is a view of the rules; the last rule takes the file along that was made for it."""
    rule = fresh_cli.teach()
    wait_for(claude_memory.exists)
    fresh_cli("rules", "reject", rule.id)
    wait_for(lambda: not claude_memory.exists())


def test_nothing_is_written_where_claude_code_was_never_used(fresh_cli: Cli, home: Path) -> None:
    """A file is made in nobody's way."""
    fresh_cli.teach()
    fresh_cli("export", "--agent", "codex", "--dry-run")
    assert not (home / ".claude").exists()
    assert [path.name for path in fresh_cli.project.iterdir()] == [".git"]


@pytest.mark.usefixtures("claude_memory")
def test_off_means_off(home: Path, fresh_cli: Cli) -> None:
    config = fresh_cli.daemon.paths.config
    config.parent.mkdir(parents=True)
    config.write_text("[export]\non_promotion = false\n")
    fresh_cli.daemon.ask("reload")
    before = snapshot(home)
    assert fresh_cli.teach().status is Status.PROMOTED
    fresh_cli.daemon.end(signal.SIGTERM)
    assert snapshot(home) == before


def snapshot(home: Path) -> dict[Path, int]:
    """Everything outside flightrec's own folder, with the time of its last change."""
    return {path: path.stat().st_mtime_ns for path in home.rglob("*") if ".local" not in path.parts}


def test_export_prints_what_would_be_written(cli: Cli) -> None:
    cli.teach(1)
    assert cli("export") == ""
    assert "no rule of this project is proved yet" in cli.err
    assert "git ..." in cli("export", "--all")
    cli.teach(2)
    assert cli("export").startswith("- `gti ...` failed (command not found, 3 sessions);")
    assert [item["status"] for item in cli.json("export")] == ["promoted"]


def test_export_says_what_is_left_out_and_why(cli: Cli) -> None:
    for _ in range(3):
        cli.shell(("gti clone https://example.org/x", 127), ("git clone https://example.org/x", 0))
        cli.shell(("./run.hs", 126), ("./build.sh", 0))
    shown = cli("export")
    left_out = [rule for rule in cli.rules() if rule.id not in shown]
    exported = (Status.PROMOTED, Status.SHARED)
    assert all(rule.id in cli.err for rule in left_out if rule.status in exported)


def test_export_to_an_agent_is_remembered(
    fresh_cli: Cli, home: Path, wait_for: Callable[..., object]
) -> None:
    """The person exported there once: from then on it is kept up to date, without a folder."""
    slug = claude_slug(os.path.realpath(fresh_cli.project))
    memory = home / ".claude/projects" / slug / "memory/MEMORY.md"
    assert "0 rules" in fresh_cli("export", "--agent", "claude")
    assert not memory.exists()
    fresh_cli.teach()
    wait_for(memory.exists, what="MEMORY.md")


def test_export_to_a_file_keeps_what_stands_in_it(
    cli: Cli, wait_for: Callable[..., object]
) -> None:
    notes = cli.project / "NOTES.md"
    notes.write_text("# Mine\n")
    rule = cli.teach()
    assert "+- `gti ...` failed" in cli("export", "--to", "NOTES.md", "--dry-run")
    assert notes.read_text() == "# Mine\n"
    assert "1 rule, written" in cli("export", "--to", "NOTES.md")
    assert notes.read_text().startswith("# Mine\n<!-- flightrec:begin")
    assert "nothing to change" in cli("export", "--to", "NOTES.md")
    cli("rules", "reject", rule.id)
    wait_for(lambda: notes.read_text() == "# Mine\n")


def test_export_for_a_team_goes_into_the_project(
    fresh_cli: Cli, home: Path, no_agents: Path
) -> None:
    """For those agents that somebody uses there: by a file, a folder, or on this machine."""
    fresh_cli.teach()
    (fresh_cli.project / "CLAUDE.md").write_text("ours\n")
    (fresh_cli.project / ".cursor").mkdir()
    (no_agents / "gemini").touch(0o755)
    (home / ".codex").mkdir()
    before = set(fresh_cli.project.rglob("*"))
    fresh_cli("export", "--agent", "all", "--team")

    written = {path for path in fresh_cli.project.rglob("*") if path.is_file()} - before
    assert {str(path.relative_to(fresh_cli.project)) for path in written} == {
        "AGENTS.md", "GEMINI.md", ".cursor/rules/flightrec.mdc"
    }  # fmt: skip
    assert "gti" in (fresh_cli.project / "CLAUDE.md").read_text()
    mdc = (fresh_cli.project / ".cursor/rules/flightrec.mdc").read_text()
    assert mdc.startswith("---\ndescription:")
    assert not (home / ".claude").exists()


def test_a_user_s_file_takes_a_project_s_rules_under_its_name(fresh_cli: Cli, home: Path) -> None:
    fresh_cli.teach()
    assert "1 rule, written" in fresh_cli("export", "--agent", "codex")
    text = (home / ".codex/AGENTS.md").read_text()
    assert f"## Only in the project `{os.path.realpath(fresh_cli.project)}`\n\n- `gti" in text


def test_a_user_s_file_takes_what_was_seen_in_two_projects_for_all(
    fresh_cli: Cli, home: Path
) -> None:
    fresh_cli.teach()
    other = home / "other"
    other.mkdir()
    fresh_cli.shell(("gti status", 127), ("git status", 0), cwd=os.fsencode(other))
    assert fresh_cli.rules()[0].status is Status.SHARED
    assert "1 rule, written" in fresh_cli("export", "--agent", "codex")
    text = (home / ".codex/AGENTS.md").read_text()
    assert "`git ...`" in text
    assert "##" not in text


def test_export_into_a_local_file_shows_what_git_is_told(fresh_cli: Cli) -> None:
    subprocess.run(["git", "init", "-q"], cwd=fresh_cli.project, check=True)
    fresh_cli.teach()
    shown = fresh_cli("export", "--agent", "claude", "--local", "--dry-run")
    assert "+- `gti ...` failed" in shown
    assert "info/exclude" in shown
    assert "+/CLAUDE.local.md" in shown
    assert not (fresh_cli.project / "CLAUDE.local.md").exists()
    assert "1 rule, written" in fresh_cli("export", "--agent", "claude", "--local")
    git = ("git", "-C", fresh_cli.project)
    done = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True)
    assert done.stdout == b""


def test_a_local_file_that_git_tracks_is_left_alone(fresh_cli: Cli) -> None:
    local = fresh_cli.project / "CLAUDE.local.md"
    local.write_text("ours\n")
    for words in (("init", "-q"), ("add", "CLAUDE.local.md")):
        subprocess.run(["git", *words], cwd=fresh_cli.project, check=True)
    fresh_cli.teach()
    fresh_cli("export", "--agent", "claude", "--local", status=1)
    assert "tracked by git" in fresh_cli.err
    assert local.read_text() == "ours\n"


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    done = subprocess.run(
        ["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


LOCAL = ("export", "--agent", "claude", "--local")


def test_stopping_a_local_file_lets_git_see_again_what_it_saw(fresh_cli: Cli) -> None:
    exclude = fresh_cli.project / ".git/info/exclude"
    before = exclude.read_bytes()
    fresh_cli.teach()
    fresh_cli(*LOCAL)
    assert exclude.read_bytes() == before + b"# flightrec\n/CLAUDE.local.md\n"
    shown = fresh_cli(*LOCAL, "--stop", "--dry-run")
    assert "-# flightrec\n-/CLAUDE.local.md\n" in shown
    assert exclude.read_bytes() != before

    fresh_cli(*LOCAL, "--stop")
    assert exclude.read_bytes() == before
    assert (fresh_cli.err, git(fresh_cli.project, "status", "--porcelain")) == ("", "")


def test_stopping_says_which_file_of_the_person_git_sees_again(fresh_cli: Cli) -> None:
    local = fresh_cli.project / "CLAUDE.local.md"
    local.write_text("mine\n")
    fresh_cli.teach()
    fresh_cli(*LOCAL)
    assert git(fresh_cli.project, "status", "--porcelain") == ""
    fresh_cli(*LOCAL, "--stop")
    assert local.read_text() == "mine\n"
    assert fresh_cli.err == f"flightrec: {local} holds what is yours; git sees it again\n"
    assert git(fresh_cli.project, "status", "--porcelain") == "?? CLAUDE.local.md\n"


def test_a_line_that_the_person_wrote_for_git_stays(fresh_cli: Cli) -> None:
    exclude = fresh_cli.project / ".git/info/exclude"
    exclude.write_bytes(b"# mine\n/CLAUDE.local.md\n")
    fresh_cli.teach()
    fresh_cli(*LOCAL)
    fresh_cli(*LOCAL, "--stop")
    assert exclude.read_bytes() == b"# mine\n/CLAUDE.local.md\n"


def test_a_line_for_git_stays_for_another_worktree(
    fresh_cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exclude = fresh_cli.project / ".git/info/exclude"
    before = exclude.read_bytes()
    git(fresh_cli.project, "commit", "-q", "--allow-empty", "-m", "x")
    git(fresh_cli.project, "worktree", "add", "-q", str(home / "other"))
    fresh_cli.teach()
    for folder in (home / "other", fresh_cli.project):
        monkeypatch.chdir(folder)
        fresh_cli(*LOCAL)
    fresh_cli(*LOCAL, "--stop")
    assert b"/CLAUDE.local.md" in exclude.read_bytes()
    assert git(home / "other", "status", "--porcelain") == ""
    monkeypatch.chdir(home / "other")
    fresh_cli(*LOCAL, "--stop")
    assert exclude.read_bytes() == before


def test_git_does_not_see_a_file_in_which_something_of_ours_is_left(fresh_cli: Cli) -> None:
    config = fresh_cli.daemon.paths.config
    config.parent.mkdir(parents=True)
    config.write_text("[export]\non_promotion = false\n")  # the daemon would mend the block
    fresh_cli.daemon.ask("reload")
    fresh_cli.teach()
    fresh_cli(*LOCAL)
    local = fresh_cli.project / "CLAUDE.local.md"
    local.write_text(local.read_text().replace("<!-- flightrec:end -->\n", ""))
    fresh_cli(*LOCAL, "--stop", status=1)
    assert "end marker" in fresh_cli.err
    assert git(fresh_cli.project, "status", "--porcelain") == ""


def test_uninstalling_takes_the_line_for_git_back(fresh_cli: Cli) -> None:
    exclude = fresh_cli.project / ".git/info/exclude"
    before = exclude.read_bytes()
    fresh_cli.teach()
    fresh_cli(*LOCAL)
    assert f"  - flightrec's line in {exclude}\n" in fresh_cli("uninstall", "--yes")
    assert exclude.read_bytes() == before
    assert git(fresh_cli.project, "status", "--porcelain") == ""


def test_a_file_without_room_is_said_so(fresh_cli: Cli, home: Path) -> None:
    """Codex reads 32 KiB of all its files together."""
    memory = home / ".codex/AGENTS.md"
    memory.parent.mkdir()
    memory.write_text("mine\n" * 5000)
    fresh_cli.teach()
    assert "0 rules, nothing to change" in fresh_cli("export", "--agent", "codex")
    assert f"no room for 1 rule in {memory}" in fresh_cli.err
    assert memory.read_text() == "mine\n" * 5000


def test_aider_is_to_be_told_of_its_file(fresh_cli: Cli) -> None:
    fresh_cli.teach()
    assert "1 rule, written" in fresh_cli("export", "--agent", "aider", "--team")
    assert "aider --read CONVENTIONS.md" in fresh_cli.err
    fresh_cli("export", "--agent", "aider", status=1)
    assert "aider reads no file of your own; see --team" in fresh_cli.err


def test_exporting_to_all_agents_says_which_have_no_place(
    fresh_cli: Cli, home: Path, no_agents: Path
) -> None:
    fresh_cli.teach()
    for name in (".codex", ".gemini"):
        (home / name).mkdir()
    (no_agents / "cursor-agent").touch(0o755)
    assert f"{home}/.codex/AGENTS.md: 1 rule, written" in fresh_cli("export", "--agent", "all")
    assert "gemini: it was never used in this project" in fresh_cli.err
    assert "cursor reads no file of your own" in fresh_cli.err
    assert {found.name for found in fresh_cli.project.iterdir()} == {".git"}


def test_all_agents_are_those_that_are_used_here_or_were_exported_to(
    fresh_cli: Cli, home: Path, no_agents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder in the home, a program on the PATH, an export before; nothing is made for others."""
    fresh_cli.teach()
    (fresh_cli.project / "AGENTS.md").write_text("the team's\n")
    fresh_cli("export", "--agent", "all", status=1)
    assert fresh_cli.err == "flightrec: no agent was found here; name one: --agent NAME\n"

    (home / ".qwen").mkdir()
    (no_agents / "cn").touch(0o755)
    monkeypatch.setenv("VIBE_HOME", str(home / "elsewhere"))
    fresh_cli("export", "--agent", "vibe")
    monkeypatch.delenv("VIBE_HOME")
    before = set(home.iterdir())
    shown = fresh_cli("export", "--agent", "all")

    assert [line.split(":")[0] for line in shown.splitlines()] == [
        f"{fresh_cli.project}/.qwen/QWEN.local.md",
        f"{home}/.qwen/QWEN.md",
        f"{home}/.continue/rules/flightrec.md",
        f"{home}/.vibe/AGENTS.md",
    ]
    assert fresh_cli.err == (
        "flightrec: left out: claude, codex, gemini, opencode, copilot, droid, cline, pi, gptme,"
        " which are not used here; --agent NAME names one\n"
    )
    assert set(home.iterdir()) - before == {home / ".continue", home / ".vibe"}
    kept = {item["agent"] for item in fresh_cli.json("status")[0]["exports"]}
    assert kept == {"qwen", "continue", "vibe"}


def test_an_agent_that_is_named_is_written_for_wherever_it_is(
    fresh_cli: Cli, home: Path, no_agents: Path
) -> None:
    fresh_cli.teach()
    assert list(no_agents.iterdir()) == []
    assert "1 rule, written" in fresh_cli("export", "--agent", "droid")
    assert (home / ".factory/AGENTS.md").exists()


def test_stopping_for_all_agents_stops_those_that_are_gone(
    fresh_cli: Cli, home: Path, no_agents: Path
) -> None:
    fresh_cli.teach()
    (no_agents / "droid").touch(0o755)
    fresh_cli("export", "--agent", "all")
    assert (home / ".factory/AGENTS.md").exists()
    (no_agents / "droid").unlink()
    fresh_cli("export", "--agent", "all", "--stop")
    assert not (home / ".factory/AGENTS.md").exists()
    assert "droid" not in {item["agent"] for item in fresh_cli.json("status")[0]["exports"]}


def test_stopping_takes_the_rules_out_and_keeps_them_out(fresh_cli: Cli, home: Path) -> None:
    memory = home / ".codex/AGENTS.md"
    memory.parent.mkdir()
    memory.write_text("mine\n")
    fresh_cli.teach()
    fresh_cli("export", "--agent", "codex")
    assert "gti" in memory.read_text()
    assert str(memory) in fresh_cli("status")
    assert [item["path"] for item in fresh_cli.json("status")[0]["exports"]] == [str(memory)] * 2
    assert "-- `gti ...` failed" in fresh_cli("export", "--agent", "codex", "--stop", "--dry-run")
    assert "left alone from now on" in fresh_cli("export", "--agent", "codex", "--stop")
    assert memory.read_text() == "mine\n"
    assert fresh_cli.json("status")[0]["exports"] == []
    fresh_cli("export", "--agent", "codex", "--stop", status=1)
    assert "nothing is kept up to date there" in fresh_cli.err


def test_no_memory_file_is_remembered_by_a_path_that_holds_a_secret(fresh_cli: Cli) -> None:
    """T7: the database holds where exports go."""
    fresh_cli.teach()
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    folder = fresh_cli.project / secret
    folder.mkdir()
    fresh_cli("export", "--to", str(folder / "NOTES.md"), status=1)
    assert "holds a secret" in fresh_cli.err
    state = fresh_cli.daemon.paths.state
    kept = b"".join(path.read_bytes() for path in state.glob("flightrec.db*"))
    assert secret.encode() not in kept


def test_a_file_is_stopped_by_its_name_from_anywhere(
    fresh_cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_cli.teach()
    fresh_cli("export", "--to", "NOTES.md")
    notes = fresh_cli.project / "NOTES.md"
    monkeypatch.chdir(home)
    assert "left alone" in fresh_cli("export", "--stop", "--to", str(notes))
    assert not notes.exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--dry-run",),
        ("--team",),
        ("--stop",),
        ("--to", "x", "--all"),
        ("--agent", "claude", "--json"),
    ],
)
def test_export_refuses_what_makes_no_sense(words: tuple[str, ...], cli: Cli) -> None:
    cli("export", *words, status=ExitCode.USAGE)


def test_export_for_a_team_refuses_a_home(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    home = cli.daemon.paths.home
    monkeypatch.chdir(home)
    cli("export", "--agent", "claude", "--team", status=1)
    assert "no project" in cli.err
    assert not (home / "CLAUDE.md").exists()


def test_export_leaves_a_file_with_a_damaged_block_alone(cli: Cli) -> None:
    notes = cli.project / "NOTES.md"
    notes.write_text("mine\n<!-- flightrec:end -->\n")
    cli.teach()
    cli("export", "--to", "NOTES.md", status=1)
    assert "begin marker" in cli.err
    assert notes.read_text() == "mine\n<!-- flightrec:end -->\n"


# --- privacy ---------------------------------------------------------------------------------


def test_nothing_is_recorded_during_a_pause(cli: Cli) -> None:
    assert "until you say: flightrec resume" in cli("pause")
    relay = FakeRelay(cli.daemon.paths.socket)
    cli.relays.append(relay)
    relay.ask("secret plan")
    assert "Recording again" in cli("resume")
    cli.shell(("after", 0))
    assert [item["command"] for item in cli.json("log")] == ["after"]


def test_a_pause_ends_by_itself(cli: Cli) -> None:
    assert "Paused in all shells until 20" in cli("pause", "1s")
    until_us = cli.daemon.status()["paused_until_us"]
    while time.time_ns() // 1000 < until_us:
        time.sleep(0.05)
    cli.shell(("after", 0))
    assert [item["command"] for item in cli.json("log")] == ["after"]


def test_forget_says_how_much_and_asks(cli: Cli) -> None:
    rule = cli.teach(1)
    cli("forget", "gti", status=ExitCode.USAGE)
    assert "1 command, 1 rule with 'gti'." in cli.out
    assert "--yes" in cli.err
    assert cli.rules() == [rule]
    assert "Deleted: 1 command, 1 rule." in cli("forget", "gti", "--yes")
    assert [item["command"] for item in cli.json("log")] == ["git status"]
    assert cli.rules() == []
    assert "Nothing is recorded" in cli("forget", "gti", "--yes")


@pytest.mark.parametrize(
    "word",
    ["deny", "promoted", "replace", "words", "not found", "recorded", "first", "user", "ERR",
     "bash", "pts", "[127]"],
)  # fmt: skip
def test_forget_does_not_take_a_word_of_ours_for_one_of_the_person(cli: Cli, word: str) -> None:
    """What a rule is, and how it ended, is in words of ours: kinds, states, and JSON."""
    rule = cli.teach()
    cli("rules", "guard", rule.id, "deny")
    rules, runs, why = cli.rules(), cli.json("log"), cli("why", rule.id)
    assert rules[0].guard is Guard.DENY
    assert "Nothing is recorded" in cli("forget", word, "--yes")
    assert (cli.rules(), cli.json("log"), cli("why", rule.id)) == (rules, runs, why)

    cli.shell((f"echo {word}", 0))
    assert "Deleted: 1 command." in cli("forget", word, "--yes")
    assert (cli.rules(), cli.json("log"), cli("why", rule.id)) == (rules, runs, why)


def test_forget_takes_the_id_of_a_rule(cli: Cli) -> None:
    rule = cli.teach()
    assert "Nothing is recorded" in cli("forget", rule.id[:-1], "--yes")
    assert "Deleted: 1 rule." in cli("forget", rule.id, "--yes")
    assert cli.rules() == []


def test_forget_by_session_and_by_time(cli: Cli) -> None:
    session = cli.shell(("one", 0), ("two", 0))
    cli.shell(("three", 0))
    assert "2 commands" in cli("forget", "--session", session.hex()[:8], "--yes")
    assert "1 command" in cli("forget", "--since", "1h", "--yes")
    assert cli.json("log") == []


def test_forget_takes_the_rule_out_of_memory_files(
    fresh_cli: Cli, claude_memory: Path, wait_for: Callable[..., object]
) -> None:
    fresh_cli.teach()
    wait_for(claude_memory.exists)
    fresh_cli("forget", "gti", "--yes")
    wait_for(lambda: not claude_memory.exists())


@pytest.mark.parametrize("words", [(), ("--since", "x"), ("",), ("a", "--since", "1h")])
def test_forget_wants_to_know_exactly_what(words: tuple[str, ...], cli: Cli) -> None:
    with contextlib.suppress(SystemExit):  # argparse's own way out
        cli("forget", *words, "--yes", status=ExitCode.USAGE)
        return
    assert cli.capture().err


# --- times -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1.5h", 5400), ("2d", 172800), ("1w", 604800)],
)
def test_a_duration_is_written_as_people_do(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds * 1_000_000


@pytest.mark.parametrize("text", ["", "30", "m", "-1h", "1x", "1h 30m", "٣m"])
def test_what_is_no_duration_is_said_so(text: str) -> None:
    with pytest.raises(FlightrecError, match="is no duration"):
        parse_duration(text)


def test_a_time_is_a_duration_ago_or_a_date() -> None:
    assert parse_since("2h", 3 * HOUR_US) == HOUR_US
    day = parse_since("2026-11-30", 0)
    assert parse_since("2026-11-30 01:00", 0) == day + HOUR_US
    assert parse_since("2026-11-30T01:00:00", 0) == day + HOUR_US
