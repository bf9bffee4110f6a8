"""``flightrec status``: what is there and what is wrong, with and without a daemon."""

import json
import os
import signal
from pathlib import Path

from daemon_process import DaemonProcess, flightrec
from flightrec import __version__
from flightrec.paths import find_paths


def test_without_a_daemon_it_says_so_and_still_counts(home: Path) -> None:
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        relay.wait_for_commit(relay.type("ls"), relay.type("make", 2))
    result = flightrec("status", home=home)
    assert result.returncode == 4
    assert "none runs; the next command in a shell starts it" in result.stdout
    assert "2 runs, 1 session, 1 failure; rules: none" in result.stdout
    assert result.stderr == ""


def test_looking_creates_nothing(home: Path) -> None:
    result = flightrec("status", "--json", home=home)
    assert result.returncode == 4
    assert json.loads(result.stdout)["items"][0]["runs"] == 0
    assert list(home.iterdir()) == []


def test_with_a_daemon_it_is_one_object_for_programs(home: Path) -> None:
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        relay.ask("sleep 100")
        result = flightrec("status", "--json", home=home)
    document = json.loads(result.stdout)
    (found,) = document["items"]
    assert (result.returncode, document["schema"]) == (0, 1)
    assert (found["running"], found["daemon"]["pid"]) == (True, daemon.pid)
    assert found["daemon"]["version"] == found["version"] == __version__
    assert (found["daemon"]["running"], found["daemon"]["connections"]) == (1, 1)
    assert found["level"] == "evidence"


def test_what_helpers_and_the_daemon_could_not_do_is_counted_in_words(home: Path) -> None:
    with DaemonProcess(home) as daemon:
        counters = b"frcount1" + b"".join(n.to_bytes(8, "little") for n in (3, 0, 0, 0, 7))
        daemon.paths.counters.write_bytes(counters)
        with daemon.relay() as odd:
            odd.socket.sendall(b"\xff" * 100)
            odd.wait_for_end()
        shown = flightrec("status", home=home).stdout
    assert "refused    not a message (1)\n" in shown
    assert "helpers    lost runs (3)\n" in shown
    assert "autostarts" not in shown  # nothing is wrong with those


def test_a_daemon_that_does_not_answer_is_told_apart_from_none(home: Path) -> None:
    with DaemonProcess(home) as daemon:
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            result = flightrec("status", home=home)
            ended = flightrec("daemon", "stop", home=home)
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
    assert result.returncode == 4
    assert f"pid {daemon.pid} is there and does not answer" in result.stdout
    assert ended.returncode == 1
    assert f"kill -9 {daemon.pid}" in ended.stderr


def test_a_pause_and_its_end_are_said(home: Path) -> None:
    with DaemonProcess(home):
        flightrec("pause", "2h", home=home)
        assert "records    nothing: paused until 20" in flightrec("status", home=home).stdout
        flightrec("resume", home=home)
        shown = flightrec("status", home=home).stdout
    assert "records    commands and the end of their error output\n" in shown


def test_a_database_that_cannot_be_read_is_one_line(home: Path) -> None:
    paths = find_paths(str(home))
    paths.state.mkdir(parents=True, mode=0o700)
    paths.database.write_bytes(b"garbage" * 1000)
    result = flightrec("status", home=home)
    assert result.returncode == 4
    assert "is damaged; `flightrec daemon start` sets it aside" in result.stdout
