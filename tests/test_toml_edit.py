"""Changes in TOML leave everything else to the byte, wherever the table stands."""

import tomllib

import pytest

from flightrec.edited_text import apply
from flightrec.errors import FlightrecError
from flightrec.toml_edit import TomlText

TABLE = ("policy", "set")

TEXTS = (
    "",
    'model = "x"\n',
    "a = 1\n\n[b]\nc = 2\n",
    "a = 1\r\n[x]\r\ny = 2\r\n",
    '[policy]\ninherit = "all"\n',
    '[policy]\nset = { A = "1" }\n',
    "[policy]\nset = {}\n[x]\ny = 1\n",
    '[policy.set]\nA = "1"\n\n[x]\ny = 1\n',
    '[ "policy" . set ] # mine\nA = "1"\n# end\n',
    'policy.set.A = "1"\nb = 2\n',
    '[policy]\nset.A = "1"\n',
    'policy = { set = { A = "1" } }\n',
    's = """\n[policy.set]\nK = "no"\n"""\n',
    "[[x]]\na = 1\n",
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_value_is_added_where_its_table_is(text: str) -> None:
    document = TomlText(text)
    document.set(TABLE, "K", "/a b")
    document.set(TABLE, "L", 'it"s')

    found = tomllib.loads(document.text)
    assert (found["policy"]["set"].pop("K"), found["policy"]["set"].pop("L")) == ("/a b", 'it"s')
    before = tomllib.loads(text)
    before.setdefault("policy", {}).setdefault("set", {})
    assert found == before
    assert apply(document.text, document.undo) == text

    document.remove(TABLE, "K")
    document.remove(TABLE, "L")
    assert document.text == text


def test_a_value_is_replaced_in_its_place() -> None:
    document = TomlText("[policy.set]\nK = 'old' # mine\n[b]\nK = 'old'\n")
    document.set(TABLE, "K", "new")

    assert document.text == "[policy.set]\nK = \"new\" # mine\n[b]\nK = 'old'\n"


def test_a_table_of_the_persons_stays_when_it_is_empty() -> None:
    text = "[policy.set]\n"
    document = TomlText(text)
    document.set(TABLE, "K", "v")
    document.remove(TABLE, "K")

    assert document.text == text


@pytest.mark.parametrize("before", ["", "a = 1\n", "[hooks.state.other]\nx = 1\n"])
def test_whole_tables_go_with_their_blank_lines(before: str) -> None:
    name = '/a b/"hooks".json:pre_tool_use:0:0'
    header = f'[hooks.state."{name}"]'.replace('"hooks"', '\\"hooks\\"')
    document = TomlText(f'{before}\n{header}\ntrusted_hash = "sha256:1"\n')
    document.remove_table(("hooks", "state", name))
    document.remove_table(("hooks", "state", name))

    assert document.text == before


def test_what_is_no_toml_is_refused() -> None:
    with pytest.raises(FlightrecError, match=r"is no TOML: .*line 2"):
        TomlText("a = 1\nb = = 2\n")


def test_where_no_place_is_found_the_person_is_told_what_to_write() -> None:
    odd = '"pol\\u0069cy" = { "s\\u0065t" = { A = "1" } }\n'
    with pytest.raises(FlightrecError, match=r'write K = "v" below \[policy.set\] by hand'):
        TomlText(odd).set(TABLE, "K", "v")
    with pytest.raises(FlightrecError, match="set is no table"):
        TomlText("policy.set = 1\n").set(TABLE, "K", "v")
