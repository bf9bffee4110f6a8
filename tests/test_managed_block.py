"""A block inside somebody's document: their bytes stay theirs."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flightrec.errors import FlightrecError
from flightrec.managed_block import BEGIN, END, set_block

BODY = ("Recorded.", "", "- `gti status`", "- `pytest`")
BLOCK = "\n".join((BEGIN, "", *BODY, END)).encode()

PIECES = (
    b"# Title",
    b"- item",
    b"  - `nested`",
    b"```",
    b"  ```",
    b"- ```sh",
    b"~~~~",
    b"> ```",
    b"<div>",
    b"<!-- open",
    b"-->",
    b"",
    b"    code",
    b"caf\xc3\xa9",
    b"\xe9t\xe9 in latin-1",
    b"\x85\x0b\x0c",
)

documents = st.builds(
    lambda mark, lines, end: mark + b"".join(a + b for a, b in lines) + end,
    st.sampled_from((b"", b"\xef\xbb\xbf")),
    st.lists(
        st.tuples(
            st.sampled_from(PIECES) | st.text(max_size=20).map(lambda text: text.encode()),
            st.sampled_from((b"\n", b"\r\n", b"\n", b"\r")),
        ),
        max_size=12,
    ),
    st.sampled_from((b"", b"no final newline", b"```")),
).filter(lambda document: b"\x00" not in document)


@given(documents)
@example(b"\xef\xbb\xbf")
@example(b"a\r\n```\r\nunclosed")
@example(b"- item\n  ```\n  in a list\n")
def test_taking_the_block_out_again_gives_the_person_s_document(document: bytes) -> None:
    assert set_block(set_block(document, BODY), ()) == document


@given(documents)
def test_writing_twice_is_writing_once(document: bytes) -> None:
    once = set_block(document, BODY)
    assert set_block(once, BODY) == once
    assert once.count(b"<!-- flightrec:begin") == 1


@given(documents, st.lists(st.sampled_from(("one", "two", "- three")), min_size=1, max_size=4))
def test_another_body_takes_the_place_of_the_first(document: bytes, body: list[str]) -> None:
    assert set_block(set_block(document, BODY), body) == set_block(document, body)


@given(documents, documents)
def test_what_people_write_around_the_block_stays(before: bytes, after: bytes) -> None:
    before = before.replace(b"```", b"").replace(b"~~~", b"")
    after = after.replace(b"```", b"").replace(b"~~~", b"").replace(b"\xef\xbb\xbf", b"")
    document = before + b"\n" + BLOCK + b"\n" + after
    changed = set_block(document, ("new",))
    assert changed.startswith(before + b"\n<!-- flightrec:begin")
    assert changed.endswith(END.encode() + b"\n" + after)


def test_a_document_of_another_line_ending_keeps_it() -> None:
    changed = set_block(b"one\r\ntwo\r\n", BODY)
    assert changed.count(b"\n") == changed.count(b"\r\n")
    assert changed.endswith(b"-->\r\n")


def test_a_document_without_final_newline_still_has_none() -> None:
    assert set_block(b"text", BODY) == b"text\n" + BLOCK


def test_the_byte_order_mark_stays_first() -> None:
    changed = set_block(b"\xef\xbb\xbftext\n", BODY)
    assert changed.startswith(b"\xef\xbb\xbftext\n<!--")


@pytest.mark.parametrize("fence", [b"```", b"~~~~", b"   ```markdown"])
def test_markers_inside_a_code_fence_are_somebody_s_example(fence: bytes) -> None:
    close = fence.strip().replace(b"markdown", b"")
    example_text = b"How it looks:\n" + fence + b"\n" + BLOCK + b"\n" + close + b"\nEnd.\n"
    assert set_block(example_text, ()) == example_text
    assert set_block(example_text, ("x",)).startswith(example_text)


def test_a_fence_inside_a_list_ends_with_the_list() -> None:
    document = b"- item\n  ```\n  never closed\n" + BLOCK + b"\n"
    assert set_block(document, ()) == b"- item\n  ```\n  never closed\n"


def test_a_block_is_put_before_a_fence_that_nothing_closes() -> None:
    changed = set_block(b"text\n```\ncode\n", BODY)
    assert changed == b"text\n" + BLOCK + b"\n```\ncode\n"


def test_two_blocks_become_one() -> None:
    document = b"a\n" + BLOCK + b"\nb\n" + BLOCK + b"\nc\n"
    changed = set_block(document, ("x",))
    assert changed.count(b"flightrec:begin") == 1
    assert set_block(changed, ()) == b"a\nb\nc\n"


@pytest.mark.parametrize(
    "document",
    [
        f"a\n{BEGIN}\nmine\n".encode(),
        f"a\n{END}\nmine\n".encode(),
        f"{BEGIN}\n{BEGIN}\n{END}\n".encode(),
    ],
)
def test_a_block_without_one_of_its_markers_is_left_to_the_person(document: bytes) -> None:
    with pytest.raises(FlightrecError, match=r"marker for line \d is missing"):
        set_block(document, BODY)


@pytest.mark.parametrize("document", ["text\n".encode("utf-16"), b"\x00\x01binary"])
def test_what_is_no_text_is_left_alone(document: bytes) -> None:
    with pytest.raises(FlightrecError, match="not UTF-8"):
        set_block(document, BODY)


def test_markers_with_spaces_or_a_changed_remark_are_still_ours() -> None:
    document = b"<!-- flightrec:begin -->  \r\nold\r\n<!-- flightrec:end --> \r\n"
    assert set_block(document, ()) == b""


def test_a_marker_in_the_middle_of_a_line_is_text() -> None:
    document = f"see {BEGIN} and {END}\n".encode()
    assert set_block(document, ()) == document
