"""The log: no word that somebody typed, and never more than three files of a megabyte."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from flightrec.daemon_log import FILES, MAX_BYTES, FloodFilter, log_to

log = logging.getLogger("flightrec.test")


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield tmp_path / "daemon.log"
    for handler in root.handlers[:]:
        if handler not in before:
            root.removeHandler(handler)
            handler.close()
    root.handlers[:] = before
    root.setLevel(level)
    logging.raiseExceptions = True


def fail_with(text: str) -> None:
    raise ValueError(text)


def test_an_exception_is_its_class_and_places_and_never_its_text(log_file: Path) -> None:
    """T19: it may quote the command that it could not handle."""
    log_to(log_file)
    try:
        fail_with("password=canary")
    except ValueError:
        log.exception("could not record %s (%d bytes)", "0f0f", 12)
    text = log_file.read_text()
    assert "could not record 0f0f (12 bytes)\n  builtins.ValueError\n  test_daemon_log.py:" in text
    assert "in fail_with" in text
    assert "canary" not in text


def test_the_files_are_private_bounded_and_turned_over(log_file: Path) -> None:
    log_to(log_file)
    for number in range(400):
        log.info(f"{number} {'x' * 10_000}")  # noqa: G004 - each is a kind of its own
    files = sorted(log_file.parent.iterdir())
    assert len(files) == FILES
    assert all(file.stat().st_size <= MAX_BYTES for file in files)
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_a_flood_of_one_kind_is_cut_and_says_so() -> None:
    flood = FloodFilter(per_minute=3)
    records = [
        logging.makeLogRecord({"msg": "closed %d", "args": (n,), "created": 600.0 + n / 100})
        for n in range(10)
    ]
    assert [flood.filter(record) for record in records] == [True] * 3 + [False] * 7
    assert records[2].getMessage() == "closed 2 (more of these are left out this minute)"
    other = logging.makeLogRecord({"msg": "something else", "created": 600.0})
    assert flood.filter(other)
    later = logging.makeLogRecord({"msg": "closed %d", "args": (11,), "created": 660.0})
    assert flood.filter(later)


def test_a_disk_that_takes_no_log_raises_nothing(log_file: Path) -> None:
    log_to(log_file)
    handler = logging.getLogger().handlers[-1]
    assert isinstance(handler, logging.FileHandler)
    handler.stream.close()
    handler.stream = open("/dev/full", "w")  # noqa: PTH123, SIM115 - the handler closes it
    log.error("nobody can read this")
    handler.stream = None  # type: ignore[assignment]  # what a closed handler has
