"""Changes in JSON leave everything else to the byte, and can be taken back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightrec.edited_text import apply
from flightrec.errors import FlightrecError
from flightrec.json_edit import JsonText
from flightrec.json_tree import DEPTH_MAX, parse_tree

WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(WORDS, VALUES, max_size=4)
LOOKS = st.sampled_from((None, 1, 2, 4, "\t"))
GROUP = {"matcher": "Bash", "hooks": [{"type": "command"}]}


def written(data: object, look: int | str | None, newline: str = "\n") -> str:
    return json.dumps(data, indent=look, ensure_ascii=False).replace("\n", newline)


@given(OBJECTS, LOOKS, st.sampled_from(("\n", "\r\n")))
def test_a_text_means_what_it_meant_and_the_new_member(
    data: dict[str, Any], look: int | str | None, newline: str
) -> None:
    text = written(data, look, newline)
    document = JsonText(text)
    document.set(["a new one", "inner"], GROUP)

    assert json.loads(document.text) == {**data, "a new one": {"inner": GROUP}}
    assert apply(document.text, document.undo) == text


@given(OBJECTS, LOOKS)
def test_what_was_added_is_removed_again(data: dict[str, Any], look: int | str | None) -> None:
    text = written(data, look)
    document = JsonText(text)
    document.append(["a new one"], GROUP)
    document.append(["a new one"], 2)
    document.remove(["a new one", 0])
    document.remove(["a new one"])

    assert document.text == text


@given(OBJECTS, LOOKS)
def test_each_member_can_go_alone(data: dict[str, Any], look: int | str | None) -> None:
    for key in data:
        document = JsonText(written(data, look))
        document.remove([key])
        assert json.loads(document.text) == {k: v for k, v in data.items() if k != key}


@given(VALUES, LOOKS)
def test_the_tree_is_what_json_reads(data: object, look: int | str | None) -> None:
    assert parse_tree(written(data, look)).value == data
    assert parse_tree(written(data, look), comments=True).value == data


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"x": 1}', '{"x": 1, "a": {"b": 1}}'),
        ('{\n\t"x": 1\n}\n', '{\n\t"x": 1,\n\t"a": {\n\t\t"b": 1\n\t}\n}\n'),
        ('{\r\n "x": 1\r\n}', '{\r\n "x": 1,\r\n "a": {\r\n  "b": 1\r\n }\r\n}'),
        ('{\n  "a": {}\n}\n', '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ('{\n  "a": {"c": 2}\n}\n', '{\n  "a": {"c": 2, "b": 1}\n}\n'),
    ],
)
def test_the_new_member_looks_like_the_others(text: str, expected: str) -> None:
    document = JsonText(text)
    document.set(["a", "b"], 1)

    assert document.text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n  "x": 1 // one\n}\n', '{\n  "x": 1, // one\n  "a": 1\n}\n'),
        ('{\n  "x": 1, // one\n}\n', '{\n  "x": 1, // one\n  "a": 1,\n}\n'),
        ('{\n  "x": 1 /* , */\n  // end\n}\n', '{\n  "x": 1, /* , */\n  "a": 1\n  // end\n}\n'),
        ("{ // none\n}\n", '{ // none\n  "a": 1\n}\n'),
    ],
)
def test_comments_stay_where_they_are(text: str, expected: str) -> None:
    document = JsonText(text, comments=True)
    document.set(["a"], 1)
    assert document.text == expected
    document.remove(["a"])
    assert parse_tree(document.text, comments=True).value == parse_tree(text, comments=True).value


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{\n} x", 2),
        ('{"a": 1,}', 1),
        ('{\n"a": 1\n"b": 2}', 3),
        ("{'a': 1}", 1),
        ('{"a": nul}', 1),
        ('{"a": NaN}', 1),
        ('{"a": "\n"}', 1),
        ("{\n// comment\n}", 2),
        ("[" * (DEPTH_MAX + 2), 1),
        ('{"a"', 1),
    ],
)
def test_what_is_no_json_is_refused_by_line(text: str, line: int) -> None:
    with pytest.raises(FlightrecError, match=f"^line {line} is no JSON"):
        JsonText(text)


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(FlightrecError, match="no JSON object"):
        JsonText("[]")
    with pytest.raises(FlightrecError, match="a is no list"):
        JsonText('{"a": {}}').append(["a"], 1)
    with pytest.raises(FlightrecError, match="a is no object"):
        JsonText('{"a": []}').set(["a", "b"], 1)
