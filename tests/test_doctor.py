"""What doctor finds, and that its canary flies through real shells."""

import contextlib
import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon_process import flightrec, stored_commands, wait_until
from flightrec.agent_files import Kind
from flightrec.client import request
from flightrec.commands import doctor
from flightrec.commands.doctor import State, examine, is_dynamic
from flightrec.errors import FlightrecError
from flightrec.export_rows import ExportRow, note
from flightrec.installation import data_folder
from flightrec.paths import HELPER_NAME, Paths, find_paths, find_resource, make_private_folder
from flightrec.rulebook import Rulebook
from flightrec.store import Store
from flightrec.typed_shell import find_shells


@pytest.fixture
def paths(home: Path) -> Iterator[Paths]:
    """A home in which no daemon is left running."""
    found = find_paths(str(home))
    yield found
    with contextlib.suppress(FlightrecError):
        request(found, "stop", autostart=False)


def find(check: str, *, canary: bool = False) -> list[tuple[str, str, str]]:
    """Return state, text and advice of what one check finds."""
    return [
        (finding.state.value, finding.text, finding.advice)
        for finding in examine(full=True, canary=canary)
        if finding.check == check
    ]


def test_a_healthy_installation_has_nothing_wrong(home: Path, paths: Paths) -> None:
    """The canary arrives through every shell that is installed here."""
    done = flightrec("doctor", "--json", home=home)
    findings = json.loads(done.stdout)["items"]
    assert done.returncode == 0, done.stdout
    assert not [finding for finding in findings if finding["state"] == "trouble"]
    canaries = [finding["text"] for finding in findings if finding["check"] == "canary"]
    assert len(canaries) == len(find_shells())
    typed = stored_commands(paths.database)
    assert len(typed) == len(canaries)
    assert all(command.startswith(": flightrec-canary-") for command in typed)


@pytest.mark.usefixtures("paths")
def test_the_canary_teaches_nothing_and_leaves_no_history(home: Path, paths: Paths) -> None:
    (home / ".bash_history").write_text("mine\n")
    assert flightrec("doctor", home=home).returncode == 0
    with contextlib.closing(Store.open_read_only(paths.database)) as store:
        assert Rulebook(store.connection).rules() == []
    assert (home / ".bash_history").read_text() == "mine\n"
    assert {path.name for path in home.iterdir()} == {".bash_history", ".local"}


def test_doctor_prints_a_line_for_each_finding(home: Path, paths: Paths) -> None:
    make_private_folder(paths.state)
    paths.state.chmod(0o755)
    done = flightrec("doctor", "--no-canary", home=home)
    assert done.returncode == 1
    assert f"is open to other users — run: chmod 700 {paths.state}" in done.stdout
    assert "trouble" in done.stdout.splitlines()[-1]


@pytest.mark.usefixtures("paths")
def test_a_mistake_in_the_settings_is_found(home: Path) -> None:
    (home / ".config/flightrec").mkdir(parents=True)
    (home / ".config/flightrec/config.toml").write_text("[hints]\nenabeld = true\n")
    [(state, text, _)] = find("settings")
    assert state == "trouble"
    assert "enabeld" in text


def test_a_damaged_database_is_found(paths: Paths) -> None:
    make_private_folder(paths.state)
    paths.database.write_bytes(b"SQLite format 3\x00" + b"garbage" * 1000)
    paths.database.chmod(0o600)
    patient = doctor.Patient(paths, full=False)
    with pytest.raises(FlightrecError, match="is damaged"):
        list(doctor.check_database(patient))
    # The daemon sets it aside when it starts; the file stays for a look.
    assert next(doctor.check_daemon(patient))[0] is State.OK
    wait_until(lambda: request(paths, "status")["notes"])
    assert any("was damaged" in text for _, text, _ in doctor.check_daemon(patient))
    assert any("corrupt-" in text for _, text, _ in doctor.check_database(patient))


def test_a_changed_row_is_found_by_a_full_look(paths: Paths) -> None:
    request(paths, "ping")
    with contextlib.closing(Store.open(paths.database)) as store, store.transaction() as change:
        change.execute(
            "INSERT INTO sessions (session, shell, tty, pid, first_us, last_us)"
            " VALUES (x'00', 'bash', '', 1, 0, 0)"
        )
        change.execute(
            "INSERT INTO runs (run, session_id, source, shell, depth, project, worktree, cwd,"
            " command, truncated, secret, word_kind, boot, mono_us, started_us, pipestatus, tail,"
            " tail_source, tail_total, end_cwd, crc)"
            " VALUES (x'00', 1, 0, 'bash', 0, '', '', '', 'rm', 0, 0, 0, '', 0, 0, '[]', '', 0, 0,"
            " '', 1)"
        )
    [(state, text, _)] = find("database")
    assert state == "trouble"
    assert "1 rows" in text


def test_a_memory_file_that_cannot_be_written_is_found(home: Path, paths: Paths) -> None:
    make_private_folder(paths.state)
    damaged = home / "NOTES.md"
    damaged.write_text("<!-- flightrec:end -->\n")
    with contextlib.closing(Store.open(paths.database)) as store, store.transaction() as change:
        note(change, ExportRow(damaged, str(home), "", Kind.OWN, home))
    paths.database.chmod(0o600)
    assert any(state == "trouble" and "NOTES.md" in text for state, text, _ in find("memory files"))


def test_a_pause_is_said_and_no_canary_is_typed(paths: Paths) -> None:
    request(paths, "pause", until_us=None)
    assert ("note", "paused: nothing is recorded", "run: flightrec resume") in find("daemon")
    [(state, text, _)] = find("canary", canary=True)
    assert (state, text) == ("note", "not typed: recording is paused")


@pytest.mark.usefixtures("paths")
def test_a_canary_that_does_not_arrive_is_trouble(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A helper that does nothing: shells go on as ever, and nothing is recorded."""
    helper = tmp_path / HELPER_NAME
    helper.write_text("#!/bin/sh\nexit 0\n")
    helper.chmod(0o755)
    monkeypatch.setattr(doctor, "CANARY_PATIENCE_S", 0.3)
    monkeypatch.setattr(
        doctor, "find_resource", lambda n: helper if n == HELPER_NAME else find_resource(n)
    )
    findings = find("canary", canary=True)
    assert [state for state, _, _ in findings] == ["trouble"] * len(find_shells())
    assert "did not arrive" in findings[0][1]


@pytest.mark.usefixtures("paths")
def test_a_helper_of_another_release_is_trouble(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    helper = tmp_path / HELPER_NAME
    helper.write_text("#!/bin/sh\necho flightrec-helper 9.9\n")
    helper.chmod(0o755)
    monkeypatch.setattr(doctor, "find_resource", lambda _: helper)
    [(state, text, _)] = find("helper")
    assert state == "trouble"
    assert "9.9" in text
    helper.write_text("not a program")
    helper.write_bytes(b"\x7fELF broken")
    assert find("helper")[0][0] == "trouble"


def test_static_and_dynamic_programs_are_told_apart(tmp_path: Path) -> None:
    assert is_dynamic(Path(os.path.realpath("/bin/bash")).read_bytes())
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    built = subprocess.run(["cc", "-static", "-o", tmp_path / "a", source], check=False)
    if built.returncode == 0:
        assert not is_dynamic((tmp_path / "a").read_bytes())
    assert not is_dynamic(b"#!/bin/sh\n")


def test_an_installation_that_is_missing_old_or_by_hand_is_told(home: Path, paths: Paths) -> None:
    assert find("installation") == [
        ("note", "new shells are not recorded", "run: flightrec install")
    ]
    (home / ".bashrc").write_text('eval "$(flightrec init bash)"\n')
    assert find("installation")[0][0] == "ok"
    (home / ".bashrc").write_text("")
    assert flightrec("install", "--yes", home=home).returncode == 0
    # The same program must look: what the copy points to depends on it.
    [item] = [
        item
        for item in json.loads(flightrec("doctor", "--no-canary", "--json", home=home).stdout)[
            "items"
        ]
        if item["check"] == "installation"
    ]
    assert (item["state"], item["text"]) == ("ok", f"loaded by {home}/.bashrc")
    (data_folder(home) / "flightrec.bash").write_text("# an older one\n")
    assert find("installation")[0][:2] == ("trouble", f"{data_folder(home)} is of another release")
    (data_folder(home) / HELPER_NAME).unlink()
    assert find("installation")[0][0] == "trouble"
    assert paths.state.exists()


def test_root_in_somebody_else_s_home_is_told_at_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T2."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    monkeypatch.setenv("SUDO_UID", "1000")
    done = flightrec("doctor", home=home)
    assert done.returncode == 1
    assert done.stdout.startswith("trouble")
    assert "sudo" in done.stdout
    assert not (home / ".local").exists()


def test_sqlite_is_what_the_checks_expect() -> None:
    assert sqlite3.sqlite_version_info >= (3, 35)
