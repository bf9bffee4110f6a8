"""Paths: one answer from HOME alone, and folders that are nobody else's."""

import os
import re
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon_process import USER, DaemonProcess, flightrec, needs_root
from flightrec.errors import FlightrecError
from flightrec.paths import SUN_PATH_MAX, find_paths, find_resource, host_hash, make_private_folder

DISTRACTIONS = {
    "XDG_RUNTIME_DIR": "/run/user/1000",
    "XDG_STATE_HOME": "/elsewhere/state",
    "XDG_CONFIG_HOME": "/elsewhere/config",
    "XDG_DATA_HOME": "/elsewhere/data",
    "TMPDIR": "/elsewhere/tmp",
}


def test_nothing_but_home_and_the_host_moves_the_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """T3: a unit, a cron job, an agent and a login shell must meet at one socket."""
    monkeypatch.setenv("HOME", "/home/u")
    before = find_paths()
    for name, value in DISTRACTIONS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir("/")
    assert find_paths() == before
    assert str(before.socket).startswith("/home/u/.local/state/flightrec/run/")


def test_a_shell_with_other_variables_meets_the_same_daemon(home: Path) -> None:
    with DaemonProcess(home, env=DISTRACTIONS) as daemon:
        found = flightrec("daemon", "status", home=home)
        assert f"pid {daemon.pid}" in found.stdout


def test_two_hosts_with_one_home_have_two_sockets() -> None:
    assert host_hash("alpha") != host_hash("beta")
    assert host_hash("") == "811c9dc5"
    assert re.fullmatch("[0-9a-f]{8}", host_hash("näme\udcff"))


@pytest.mark.parametrize("home", ["", "relative/home", "~"])
def test_a_home_that_is_no_absolute_path_is_said(home: str) -> None:
    with pytest.raises(FlightrecError, match="HOME is not set to an absolute path"):
        find_paths(home)


def test_a_home_too_long_for_a_socket_is_said_before_anything_is_tried(home: Path) -> None:
    below = len("/.local/state/flightrec/run/01234567.sock")
    longest = "/" + "h" * (SUN_PATH_MAX - below - 1)
    assert len(str(find_paths(longest).socket)) == SUN_PATH_MAX
    with pytest.raises(FlightrecError, match="108 bytes and the system takes 107; use a shorter"):
        find_paths(f"{longest}h")
    result = flightrec("daemon", "start", home=home / ("long" * 30))
    assert result.returncode == 1
    assert "use a shorter HOME" in result.stderr


def test_the_longest_path_that_is_allowed_can_be_bound(home: Path) -> None:
    padding = SUN_PATH_MAX - len(str(find_paths(str(home)).socket)) - 1
    deep = home / ("d" * padding)
    deep.mkdir()
    with DaemonProcess(deep) as daemon:
        assert len(str(daemon.paths.socket)) == SUN_PATH_MAX
        assert daemon.status()["pid"] == daemon.pid


# --- private folders -----------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_folder_is_closed_to_others_from_the_start(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_private_folder(tmp_path / "a/b")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o700
    make_private_folder(tmp_path / "a/b")


def _loose(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o755)


def _link(folder: Path) -> None:
    target = folder.with_name("target")
    target.mkdir(mode=0o700)
    folder.symlink_to(target)


def _foreign(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, USER, USER)


def _nowhere(folder: Path) -> None:
    folder.symlink_to("nowhere")


PREPARED = [
    (_loose, r"open to other users; run: chmod 700 "),
    (_link, "no folder of its own|not a folder of its own"),
    (_nowhere, "in the way|not a folder of its own"),
    (Path.touch, "it is no folder; move it aside"),
    pytest.param(_foreign, f"belongs to uid {USER}, not to you", marks=needs_root),
]


@pytest.mark.parametrize(("prepare", "expected"), PREPARED)
def test_a_folder_that_is_not_mine_alone_is_refused(
    tmp_path: Path, prepare: Callable[[Path], None], expected: str
) -> None:
    """T20: with the command to run, or what is in the way; nothing is chmodded behind its back."""
    prepare(tmp_path / "state")
    before = (tmp_path / "state").lstat()
    with pytest.raises(FlightrecError, match=expected):
        make_private_folder(tmp_path / "state")
    after = (tmp_path / "state").lstat()
    assert (after.st_ino, after.st_mode, after.st_uid) == (
        before.st_ino,
        before.st_mode,
        before.st_uid,
    )


def test_the_daemon_refuses_a_loose_folder_with_the_way_out(home: Path) -> None:
    paths = find_paths(str(home))
    paths.state.mkdir(parents=True)
    paths.state.chmod(0o775)
    result = flightrec("daemon", "start", home=home)
    assert result.returncode == 1
    assert result.stderr.endswith(f"run: chmod 700 {paths.state}\n")
    assert list(paths.state.iterdir()) == []
    paths.state.chmod(0o700)
    with DaemonProcess(home):
        pass


# --- who is asking -------------------------------------------------------------------------------


@needs_root
def test_root_under_sudo_starts_nothing_in_a_person_s_home(home: Path) -> None:
    """T2."""
    result = flightrec("daemon", "start", home=home, env={"SUDO_UID": "1000"})
    assert (result.returncode, "under sudo" in result.stderr) == (1, True)
    os.chown(home, USER, USER)
    result = flightrec("daemon", "start", home=home)
    assert (result.returncode, f"home of uid {USER}" in result.stderr) == (1, True)
    assert list(home.iterdir()) == []


@needs_root
def test_root_in_a_home_of_its_own_is_a_person_like_any_other(home: Path) -> None:
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        relay.wait_for_commit(relay.type("ls"))


def test_what_ships_with_the_package_is_found_and_what_does_not_is_said() -> None:
    assert find_resource("flightrec.bash").is_file()
    with pytest.raises(FlightrecError, match="is missing from this installation"):
        find_resource("no-such-resource")


def test_the_socket_of_a_host_is_named_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "alpha")
    assert find_paths("/h").socket.name == f"{host_hash('alpha')}.sock"
