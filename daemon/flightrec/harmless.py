"""What may reach a person's terminal: text without control codes, and no dangerous advice."""

import unicodedata
from collections.abc import Iterable

from flightrec.dangers import danger_in
from flightrec.redact import PLACEHOLDER

NEWLINE_MARK = "⏎"

_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Unicode categories of what moves the cursor, turns text around or is not visible."""


def make_harmless(text: str) -> str:
    """Return text of which a terminal only prints every character: no control code survives.

    Newlines become a mark, tabs and other blanks a space, everything else that is not visible is
    spelled out. Doing it twice changes nothing.
    """
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character == "\n":
        return NEWLINE_MARK
    if character == "\t" or unicodedata.category(character) == "Zs":
        return " "
    if unicodedata.category(character) not in _UNSEEN:
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # a byte that is no UTF-8
    return f"\\x{code:02x}" if code < 0x100 else f"<U+{code:04X}>"


def is_harmless(text: str) -> bool:
    """Whether a terminal prints this text as it stands."""
    return make_harmless(text) == text


def columns(text: str) -> int:
    """Return how many columns of a terminal the text takes at most."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WFA" else 1 for c in text)


def why_held_back(commands: Iterable[str], words: Iterable[str]) -> str:
    """Return why a rule is never offered whose remedy runs these commands; empty where it may be.

    ``words`` are those of its trigger: they are shown to nobody who does not type them.
    """
    commands = tuple(commands)
    for text in (*commands, *words):
        if PLACEHOLDER.search(text):
            return "it holds a secret"
        if not is_harmless(text):
            return "it holds characters that a terminal does not print"
    dangers = (danger_in(command) for command in commands)
    return next((danger.reason for danger in dangers if danger is not None), "")
