import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightrec.output import clean_output
from growth import assert_linear


def test_plain_text_stays_as_it_is() -> None:
    text = "error: no such file\n\tat line 3 - größer ✓\n"

    assert clean_output(text) == text


def test_colours_and_titles_are_taken_out() -> None:
    coloured = "\x1b]0;title\x07\x1b[1;31merror\x1b[0m: \x1b[38;5;12mE0425\x1b[m\x1b(B\n"

    assert clean_output(coloured) == "error: E0425\n"


def test_of_a_progress_bar_only_its_last_state_is_left() -> None:
    assert clean_output("10 %\r50 %\r100 %\r\ndone\r\n") == "100 %\ndone\n"


def test_a_line_that_was_blanked_at_last_shows_what_stood_there() -> None:
    assert clean_output("working...\r          \rerror: full\n") == "error: full\n"


def test_backspaces_rub_out_what_is_before_them_in_their_line() -> None:
    assert clean_output("|\b/\b-\b\\\bfailed\n\bx") == "failed\nx"


def test_zsh_s_mark_for_a_line_without_newline_is_not_the_command_s() -> None:
    mark = "\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m" + " " * 79 + "\r \r"

    assert clean_output("no such file\r\n" + mark) == "no such file\n"
    assert clean_output("no newline" + mark) == "no newline"


def test_half_an_escape_at_the_beginning_of_a_tail_is_taken_out() -> None:
    assert clean_output("[31mred\x1b[0m plain", is_cut=True) == "red plain"


def test_half_an_escape_at_the_end_is_taken_out() -> None:
    assert clean_output("failed\x1b[3") == "failed"


def test_bytes_that_are_no_text_survive() -> None:
    raw = b"caf\xe9: not found\n".decode("utf-8", "surrogateescape")

    assert clean_output(raw) == raw


@given(st.text(alphabet="ab \x1b[];?0123hm\r\n\b\x07\\", max_size=300))
def test_nothing_that_moves_a_cursor_is_left_and_a_second_time_changes_nothing(text: str) -> None:
    cleaned = clean_output(text)

    assert not set(cleaned) & {"\x1b", "\r", "\b", "\x07"}
    assert clean_output(cleaned) == cleaned


@pytest.mark.parametrize("piece", ["\x1b", "\x1b]", "\x1b[1m", "\r", " \r", "a\b", "\x1b[7m%"])
def test_cleaning_takes_time_in_proportion_to_the_text(piece: str) -> None:
    assert_linear(lambda size: clean_output(piece * (size // len(piece))), 8_000, 64_000)
