"""Answers for sandboxes: the helper in C reads what the daemon in Python writes."""

from pathlib import Path

import pytest

from flightrec.hint_file import MAGIC, SIZE, SLOTS, TEXT_MAX, HintFile
from flightrec.wire import Committed, Phase, Reply, Verdict, encode

SLOT_SIZE = (SIZE - len(MAGIC)) // SLOTS


@pytest.fixture
def hint_file(tmp_path: Path) -> HintFile:
    file = HintFile(tmp_path / "hints")
    file.open()
    return file


def slot(tmp_path: Path, number: int) -> bytes:
    start = len(MAGIC) + number * SLOT_SIZE
    return (tmp_path / "hints").read_bytes()[start : start + SLOT_SIZE]


def reply(number: int, text: bytes = b"", phase: Phase = Phase.START) -> bytes:
    verdict = Verdict.HINT if text else Verdict.NONE
    return encode(Reply(number.to_bytes(16, "big"), phase, verdict, text))


def test_an_answer_stands_under_its_run(hint_file: HintFile, tmp_path: Path) -> None:
    hint_file.send(reply(7, b"try this"))

    found = slot(tmp_path, 0)
    assert found[:16] == (7).to_bytes(16, "big")
    assert found[16:24] == b"\x01\0\0\0\x08\0\0\0"
    assert found[24:].rstrip(b"\0") == b"try this"


def test_only_answers_before_a_command_are_put_there(hint_file: HintFile, tmp_path: Path) -> None:
    hint_file.send(reply(1, b"late", Phase.FINISH))
    hint_file.send(encode(Committed([bytes(16)])))

    assert slot(tmp_path, 0) == bytes(SLOT_SIZE)


def test_the_oldest_answer_makes_room(hint_file: HintFile, tmp_path: Path) -> None:
    for number in range(1, SLOTS + 2):
        hint_file.send(reply(number))

    assert slot(tmp_path, 0)[:16] == (SLOTS + 1).to_bytes(16, "big")
    assert slot(tmp_path, 1)[:16] == (2).to_bytes(16, "big")
    assert (tmp_path / "hints").stat().st_size == SIZE


def test_a_long_hint_is_cut(hint_file: HintFile, tmp_path: Path) -> None:
    hint_file.send(reply(1, b"x" * (TEXT_MAX + 500)))

    assert slot(tmp_path, 0)[24:] == b"x" * TEXT_MAX


def test_the_file_is_private_and_goes_with_the_daemon(hint_file: HintFile, tmp_path: Path) -> None:
    assert (tmp_path / "hints").stat().st_mode & 0o777 == 0o600

    hint_file.close()
    hint_file.send(reply(1))  # nobody is there any more

    assert not (tmp_path / "hints").exists()


def test_what_lies_in_its_place_is_replaced_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "hints").symlink_to("mine")

    HintFile(tmp_path / "hints").open()

    assert (tmp_path / "mine").read_text() == "precious"
    assert not (tmp_path / "hints").is_symlink()
