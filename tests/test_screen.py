"""What the terminal is shown and what a command's tail is, however the bytes arrive."""

import itertools
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import helper_builds

MARK = b"\x1b]6973;0123456789abcdef;"
BEGIN = MARK + b"C\a"
TAIL_SIZE = 8192


def end(digit: int) -> bytes:
    return MARK + b"D%d\a" % digit


@dataclass(frozen=True)
class Seen:
    """What came of one session."""

    shown: bytes
    is_command: bool
    ended: str
    is_full_screen: bool
    total: int
    tail: bytes


class ScreenCheck:
    """The filter, in a process of its own with sanitizers."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [helper_builds.screen_check()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def filter(self, *reads: bytes) -> Seen:
        """Return what comes of these reads, one after the other."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join("x" + read.hex() for read in reads) + "\n")
        self._process.stdin.flush()
        shown, command, ended, full, total, tail = self._process.stdout.readline().split()
        return Seen(
            bytes.fromhex(shown[1:]),
            command == "1",
            ended,
            full == "1",
            int(total),
            bytes.fromhex(tail[1:]),
        )

    def close(self) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(20)


@pytest.fixture(scope="module")
def screen() -> Iterator[ScreenCheck]:
    check = ScreenCheck()
    yield check
    assert check.close() == 0, "a sanitizer complained"


def split(text: bytes, at: Sequence[int]) -> list[bytes]:
    """Cut a text at these places."""
    places = [0, *sorted(at), len(text)]
    return [text[start:stop] for start, stop in itertools.pairwise(places)]


def test_marks_are_taken_out_and_what_stands_between_them_is_the_tail(screen: ScreenCheck) -> None:
    seen = screen.filter(b"$ make\r\n" + BEGIN + b"no rule\r\n" + end(3) + b"$ ")
    assert seen.shown == b"$ make\r\nno rule\r\n$ "
    assert (seen.tail, seen.total, seen.ended) == (b"no rule\r\n", 9, "3")
    assert not seen.is_command


def test_a_session_cut_at_any_byte_is_the_same(screen: ScreenCheck) -> None:
    text = (
        b"\x1b[1m$\x1b[0m x\r\n"
        + BEGIN
        + b"\x1b[31merror\x1b[0m\x1b\x1b]6973;\r\n"
        + end(7)
        + b"$ "
    )
    whole = screen.filter(text)
    assert whole.tail == b"\x1b[31merror\x1b[0m\x1b\x1b]6973;\r\n"
    for at in range(1, len(text)):
        assert screen.filter(*split(text, [at])) == whole, f"cut at {at}"
    assert screen.filter(*(text[i : i + 1] for i in range(len(text)))) == whole


IMITATIONS = {
    "another nonce": b"\x1b]6973;fedcba9876543210;C\a",
    "no nonce": b"\x1b]6973;C\a",
    "a nonce that begins like ours": b"\x1b]6973;0123456789abcdee;D1\a",
    "another number": b"\x1b]133;0123456789abcdef;C\a",
    "another verb": MARK + b"E\a",
    "too long a verb": MARK + b"D12\a",
    "a letter for the digit": MARK + b"Dx\a",
    "another end": MARK + b"C\x1b\\",
    "cut off": MARK + b"C",
    "a mark in a mark": b"\x1b]6973;0123\x1b]6973;0123456789abcde",
}


@pytest.mark.parametrize("name", IMITATIONS)
def test_what_imitates_a_mark_is_shown_and_moves_nothing(name: str, screen: ScreenCheck) -> None:
    fake = IMITATIONS[name]
    text = BEGIN + b"one" + fake + b"two"
    whole = screen.filter(text)
    assert whole.shown == whole.tail == b"one" + fake + b"two"
    assert (whole.is_command, whole.ended) == (True, "-")
    for at in range(1, len(text)):
        assert screen.filter(*split(text, [at])) == whole, f"cut at {at}"


def test_a_mark_right_behind_the_beginning_of_another_counts(screen: ScreenCheck) -> None:
    for size in range(1, len(MARK) + 1):
        seen = screen.filter(BEGIN + MARK[:size] + end(1))
        assert (seen.shown, seen.tail, seen.ended) == (MARK[:size], MARK[:size], "1")


def test_the_tail_is_the_last_8_kib(screen: ScreenCheck) -> None:
    text = b"".join(b"%d\n" % number for number in range(5000))
    seen = screen.filter(BEGIN, *split(text, range(0, len(text), 997)), end(0))
    assert (seen.tail, seen.total) == (text[-TAIL_SIZE:], len(text))


def test_each_command_has_its_own_tail(screen: ScreenCheck) -> None:
    seen = screen.filter(BEGIN + b"one" + end(1) + b"$ typed" + BEGIN + b"two" + end(2))
    assert (seen.tail, seen.total, seen.ended) == (b"two", 3, "2")


def test_a_beginning_without_an_end_before_it_begins_anew(screen: ScreenCheck) -> None:
    seen = screen.filter(BEGIN + b"private" + BEGIN + b"two")
    assert (seen.tail, seen.is_command, seen.ended) == (b"two", True, "-")


FULL_SCREEN = (
    b"\x1b[?1049h",
    b"\x1b[?47h",
    b"\x1b[?1;1047h",
    b"\x1b[?1049;25h",
    b"\x1b\x1b[?1049h",
    b"\x1b[?\x1b[?1049h",
)
OTHER_MODES = (
    b"\x1b[?1049l",
    b"\x1b[?25h",
    b"\x1b[1049h",
    b"\x1b[?10490h",
    b"\x1b[?99991049h",
    b"1049h",
)


@pytest.mark.parametrize("text", [*FULL_SCREEN, *OTHER_MODES])
def test_programs_on_the_alternate_screen_are_told(text: bytes, screen: ScreenCheck) -> None:
    for at in range(len(text) + 1):
        seen = screen.filter(BEGIN, *split(text, [at]), b"x")
        assert seen.is_full_screen is (text in FULL_SCREEN)


def test_the_next_command_is_not_full_screen_by_the_last(screen: ScreenCheck) -> None:
    seen = screen.filter(BEGIN + b"\x1b[?1049hvim\x1b[?1049l" + end(1) + BEGIN + b"no" + end(2))
    assert (seen.is_full_screen, seen.tail) == (False, b"no")


PIECES = st.sampled_from(
    (b"", b"text\r\n", b"\x1b", b"\x1b]", b"\x07", b"\xff\x00", MARK, BEGIN, end(4), b"\x1b[?1049h")
)


@settings(deadline=None, max_examples=300)
@given(pieces=st.lists(PIECES, max_size=12), data=st.data())
def test_no_way_of_cutting_changes_anything(
    pieces: list[bytes], data: st.DataObject, screen: ScreenCheck
) -> None:
    text = b"".join(pieces)
    at = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    assert screen.filter(*split(text, at)) == screen.filter(text)


@settings(deadline=None, max_examples=300)
@given(reads=st.lists(st.binary(max_size=80), max_size=8))
def test_what_holds_no_mark_is_shown_to_the_byte(reads: list[bytes], screen: ScreenCheck) -> None:
    seen = screen.filter(BEGIN, *reads)
    assert seen.shown == seen.tail == b"".join(reads)
