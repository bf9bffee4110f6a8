"""Two changes to one document in one: nothing that either side added is lost."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flightrec.merge import merge

lines = st.lists(st.sampled_from("abcdefgh"), max_size=8)


def document(letters: list[str], *, ended: bool = True) -> bytes:
    text = "\n".join(letters)
    return (text + "\n" * (ended and bool(text))).encode()


@given(lines, lines)
def test_one_side_s_change_is_taken_as_it_is(ancestor: list[str], changed: list[str]) -> None:
    before, after = document(ancestor), document(changed)
    assert merge(before, before, after) == after
    assert merge(before, after, before) == after
    assert merge(before, after, after) == after


@pytest.mark.parametrize(
    ("ancestor", "mine", "theirs", "both"),
    [
        ("ab", "abc", "xab", "xabc"),
        ("ab", "abc", "abd", "abdc"),
        ("abc", "ac", "abcd", "acd"),
        ("abc", "abxc", "ab", "abx"),
        ("abc", "axc", "ayc", "ayxc"),
        ("", "a", "b", "ba"),
        ("ab", "", "abc", "c"),
        ("ab", "xab", "xab", "xab"),
    ],
)
def test_both_sides_changes_are_there(ancestor: str, mine: str, theirs: str, both: str) -> None:
    merged = merge(*(document(list(text)) for text in (ancestor, mine, theirs)))
    assert merged == document(list(both))


@given(
    lines,
    st.dictionaries(st.integers(0, 8), st.just("mine")),
    st.dictionaries(st.integers(0, 8), st.just("theirs")),
    st.booleans(),
    st.booleans(),
)
@example(["a", "a", "a"], {1: "mine"}, {2: "theirs"}, False, False)  # noqa: FBT003 - as above
def test_what_either_added_is_there_once(
    ancestor: list[str],
    mine: dict[int, str],
    theirs: dict[int, str],
    ended: bool,  # noqa: FBT001 - hypothesis fills it
    theirs_ended: bool,  # noqa: FBT001 - hypothesis fills it
) -> None:
    def changed(added: dict[int, str]) -> list[str]:
        letters = list(ancestor)
        for place in sorted(added, reverse=True):
            letters.insert(place, f"{added[place]} {place}")
        return letters

    merged = merge(
        document(ancestor, ended=ended),
        document(changed(mine), ended=ended),
        document(changed(theirs), ended=theirs_ended),
    )
    found = merged.decode().splitlines()
    for line in (*changed(mine), *changed(theirs)):
        assert line in found
    added = [line for line in found if " " in line]
    assert len(added) == len(set(added)) == len(mine) + len(theirs)


def test_a_line_that_was_half_written_is_the_whole_one_in_the_end() -> None:
    merged = merge(b"one\ntw", b"one\ntw\nmine\n", b"one\ntwo\nthree\n")
    assert merged == b"one\ntwo\nthree\nmine\n"


def test_a_document_without_a_final_newline_stays_so() -> None:
    assert merge(b"a\nb", b"mine\na\nb", b"a\nb\ntheirs") == b"mine\na\nb\ntheirs"


def test_bytes_that_are_no_text_and_other_line_endings_are_kept() -> None:
    merged = merge(b"a\r\n\xff\r\n", b"a\r\n\xff\r\nmine\r\n", b"\xfe\r\na\r\n\xff\r\n")
    assert merged == b"\xfe\r\na\r\n\xff\r\nmine\r\n"


def test_a_long_document_takes_no_long_time() -> None:
    """As large as a file may be: lines that are all alike, and all different."""
    started = time.monotonic()
    for ancestor, mine, theirs in (
        (b"x\n" * 100_000, b"y\n" * 100_000, b"x\n" * 99_999 + b"z\n"),
        (b"".join(b"%d\n" % n for n in range(60_000)), b"mine\n", b"theirs\n"),
    ):
        merged = merge(ancestor, mine, theirs)
        assert mine in merged
        assert theirs.splitlines()[-1] in merged
    assert time.monotonic() - started < 5
