"""A text that is changed in places, and how to take each change back."""

from collections.abc import Iterable
from typing import NamedTuple


class Change(NamedTuple):
    """``new`` in the place of what stood from ``start`` to ``end``."""

    start: int
    end: int
    new: str


class EditedText:
    """A text; ``undo`` are the changes that lead back to where it began, first to last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.undo: list[Change] = []

    def replace(self, start: int, end: int, new: str) -> None:
        """Put ``new`` in the place of what stands from ``start`` to ``end``."""
        old = self.text[start:end]
        if old == new:
            return
        self.undo.insert(0, Change(start, start + len(new), old))
        self.text = self.text[:start] + new + self.text[end:]


def apply(text: str, changes: Iterable[Change]) -> str:
    """Return the text with these changes, each counted in what the one before has made."""
    for change in changes:
        text = text[: change.start] + change.new + text[change.end :]
    return text


def newline_of(text: str) -> str:
    """Return how the lines of a text end, by its first one."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
