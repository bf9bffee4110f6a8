"""Where Claude Code keeps its memory is known by its hooks, without ``flightrec run``."""

import contextlib
import dataclasses
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.client_run import daemon_for, give, place_for
from agents.clients import CLIENTS
from agents.installs import program_of
from agents.story import AGAIN, FIRST, REMEMBERED, SETTINGS
from command_line import Cli
from daemon_process import USER, DaemonProcess, lasting_daemon, needs_root, wait_until
from flightrec.agent_places import claude_slug, folder_of_transcript
from flightrec.export_rows import read_claude_folders
from flightrec.store import Store
from helper_builds import helper
from hook_samples import fire


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    """One daemon for all tests here; what is noted adds up."""
    with lasting_daemon() as running:
        yield running


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder of mine that is in no home."""
    folder = Path(tempfile.mkdtemp(prefix="claude-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


def session_starts(daemon: DaemonProcess, folder: Path | str, agent: str = "claude") -> None:
    """Call the hook as Claude Code does whose files are in this folder."""
    payload = {
        "session_id": "0199b3a8-1111-7000-8000-000000000001",
        "transcript_path": f"{folder}/projects/-p/0199b3a8.jsonl",
        "cwd": "/tmp",
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    fire(agent, payload, {"HOME": str(daemon.paths.home)})


def noted(daemon: DaemonProcess) -> list[str]:
    with contextlib.closing(Store.open_read_only(daemon.paths.database)) as store:
        return read_claude_folders(store.connection)


def noted_of(daemon: DaemonProcess, *folders: Path | str, agent: str = "claude") -> list[str]:
    """Have sessions start in these folders; return which are noted for that."""
    before = noted(daemon)
    for folder in folders:
        session_starts(daemon, folder, agent)
    with daemon.relay() as relay:
        relay.wait_for_commit(relay.type("true"))  # what came before it is committed, too
    return [name for name in noted(daemon) if name not in before]


def test_a_folder_in_the_home_is_noted_once(daemon: DaemonProcess) -> None:
    work = daemon.paths.home / "work"
    work.mkdir()
    assert noted_of(daemon, work, work) == [str(work)]
    assert noted_of(daemon, work) == []


def test_where_another_agent_keeps_its_sessions_is_not_noted(daemon: DaemonProcess) -> None:
    other = daemon.paths.home / "other"
    other.mkdir()
    assert noted_of(daemon, other, agent="codex") == []


def test_the_usual_folder_and_what_is_none_are_not_noted(daemon: DaemonProcess) -> None:
    home = daemon.paths.home
    (home / ".claude").mkdir()
    (home / "link").symlink_to(".claude")
    (home / "file").touch()
    odd = (home / ".claude", home / "link", home, home / "file", home / "missing", "relative", "")
    assert noted_of(daemon, *odd) == []


def test_a_folder_outside_the_home_is_one_that_claude_code_has_used(
    daemon: DaemonProcess, outside: Path
) -> None:
    assert noted_of(daemon, outside) == []
    (outside / ".claude.json").symlink_to("/etc/passwd")
    assert noted_of(daemon, outside) == []
    (outside / ".claude.json").unlink()
    (outside / ".claude.json").write_text("{}")
    assert noted_of(daemon, outside) == [str(outside)]


def test_a_link_out_of_the_home_is_the_folder_that_it_leads_to(
    daemon: DaemonProcess, outside: Path
) -> None:
    """T5: a memory file is not written through a link out of the home."""
    (daemon.paths.home / "out").symlink_to(outside)
    assert noted_of(daemon, daemon.paths.home / "out") == []
    (outside / ".claude.json").write_text("{}")
    assert noted_of(daemon, daemon.paths.home / "out") == [str(outside)]


def test_a_folder_that_everybody_may_write_to_is_not_noted(
    daemon: DaemonProcess, outside: Path
) -> None:
    (outside / ".claude.json").write_text("{}")
    outside.chmod(0o777)
    open_to_all = daemon.paths.home / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert noted_of(daemon, outside, open_to_all) == []


@needs_root
@pytest.mark.parametrize("name", ["", ".claude.json"])
def test_a_folder_of_somebody_else_is_not_noted(
    daemon: DaemonProcess, outside: Path, name: str
) -> None:
    (outside / ".claude.json").write_text("{}")
    os.chown(outside / name, USER, USER)
    assert noted_of(daemon, outside) == []


def test_a_path_that_holds_a_secret_is_not_noted(daemon: DaemonProcess) -> None:
    secret = daemon.paths.home / ("ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8")
    secret.mkdir()
    assert noted_of(daemon, secret) == []


def test_nothing_is_noted_while_recording_is_paused(daemon: DaemonProcess) -> None:
    work = daemon.paths.home / "paused"
    work.mkdir()
    daemon.ask("pause")
    session_starts(daemon, work)
    daemon.ask("resume")
    noted_of(daemon)
    assert str(work) not in noted(daemon)


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("/home/ann/.claude/projects/-p/1.jsonl", "/home/ann/.claude"),
        ("/x/projects/-p/../1.jsonl", ""),
        ("/home/../etc/projects/-p/1.jsonl", ""),
        ("/home/ann/.codex/sessions/2026/1.jsonl", ""),
        ("/x/projects/-p/1.json", ""),
        ("/projects/-p/1.jsonl", ""),
        ("x/projects/-p/1.jsonl", ""),
        ("/x\0/projects/-p/1.jsonl", ""),
        ("1.jsonl", ""),
        ("", ""),
    ],
)
def test_a_transcript_is_at_one_place_in_its_folder(path: str, folder: str) -> None:
    assert folder_of_transcript(path) == folder


# --- what follows from it --------------------------------------------------------------------


def test_rules_are_written_where_a_session_says_that_its_memory_is(
    fresh_cli: Cli, home: Path, wait_for: Callable[..., object]
) -> None:
    slug = claude_slug(os.path.realpath(fresh_cli.project))
    usual, memory = (
        home / folder / "projects" / slug / "memory/MEMORY.md" for folder in (".claude", "work")
    )
    for path in (usual, memory):
        path.parent.parent.mkdir(parents=True)
    fresh_cli.teach()
    wait_for(usual.exists, what="the usual MEMORY.md")
    assert not memory.exists()
    session_starts(fresh_cli.daemon, home / "work")
    wait_for(memory.exists, what="MEMORY.md")
    assert "`gti ...` failed" in memory.read_text()
    assert str(memory) in fresh_cli("status")


@pytest.mark.parametrize(("stopped", "said"), [("link", "real"), ("real", "link")])
def test_a_memory_that_was_stopped_stays_so_under_another_name(
    fresh_cli: Cli, home: Path, stopped: str, said: str
) -> None:
    slug = claude_slug(os.path.realpath(fresh_cli.project))
    (home / "link").symlink_to("real")
    for name in ("real", "written after that"):
        (home / name / "projects" / slug).mkdir(parents=True)
    fresh_cli.teach()
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("CLAUDE_CONFIG_DIR", str(home / stopped))
        fresh_cli("export", "--agent", "claude", "--stop")
    for name in (said, "written after that"):
        session_starts(fresh_cli.daemon, home / name)
    wait_until((home / "written after that/projects" / slug / "memory/MEMORY.md").exists)
    assert not (home / "real/projects" / slug / "memory").exists()


def test_claude_code_itself_says_where_it_was_moved(home: Path) -> None:
    helper()
    (client,) = (client for client in CLIENTS if client.name == "claude")
    folder = home / "claude of work"

    def moved(url: str) -> object:
        setup = client.setup(url)
        variables = {**setup.environment, "CLAUDE_CONFIG_DIR": str(folder)}
        return dataclasses.replace(setup, environment=variables)

    program = program_of(client.package)
    with place_for(dataclasses.replace(client, setup=moved), program, home) as place:
        place.write(".config/flightrec/config.toml", SETTINGS)
        folder.mkdir()
        give(folder)
        with daemon_for(place) as daemon:
            words = ("hook", "install", "claude", "--yes")
            done = place.start(place.command, *words, variables={"CLAUDE_CONFIG_DIR": str(folder)})
            assert done.returncode == 0, done.stderr
            for script in (FIRST, AGAIN):
                _, done = place.run(script, recorded=False)
                assert done.returncode == 0, done.stderr
            memory = folder / "projects" / claude_slug(str(place.project)) / "memory/MEMORY.md"
            wait_until(memory.exists)
            assert noted(daemon) == [str(folder)]
        assert REMEMBERED.search(memory.read_text())
        assert not (home / ".claude").exists()
