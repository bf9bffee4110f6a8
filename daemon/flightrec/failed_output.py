"""What a failed run printed, made ready to be searched for known wordings."""

import re
from collections.abc import Iterator

from flightrec.failure_tables import Table, Wording, keys_in
from flightrec.languages import to_english
from flightrec.signature import plain

LINE_MAX = 500
"""Code points of a line that are looked at."""

_OCCURRENCES_MAX = 6
_OPTION_LINE = re.compile(r"(?m)^ {1,8}-{1,2}[\w[][\w.[\]-]*(?:,| |=|$)")
_OPTION_TEXT = re.compile(r"(?m)^(?: {1,8}-{1,2}[\w[]| {16,}).*\n?")
_OPTION_LINES_MIN = 4
_ERROR_LINE = re.compile(r"(?i)\b(?:error|fatal|failed|cannot|invalid|unknown|denied|not found)\b")


class FailedOutput:
    """The tail as it is searched: plain, in English, and once more in lower case.

    ``lists_options``: it held a tool's list of its options, which is an answer to a wrong call.
    """

    def __init__(self, tail: str) -> None:
        self.text = plain(tail).replace('\\"', '"')  # as logs quote what they hold
        self.lists_options = len(_OPTION_LINE.findall(self.text[-4096:])) >= _OPTION_LINES_MIN
        if self.lists_options:  # what options there are is no error
            self.text = _OPTION_TEXT.sub("", self.text)
        self.lowered = self.text.lower()
        self._keys = keys_in(self.lowered)
        self._held: dict[str, bool] = {}
        english = to_english(self.text, self.lowered, self._keys)
        if english is not self.text:
            self.text, self.lowered = english, english.lower()
            self._keys = keys_in(self.lowered)
        if len(self.lowered) != len(self.text):  # a letter whose lower case is longer (İ)
            self.text = self.lowered

    def find(self, wordings: Table) -> Iterator[tuple[Wording, tuple[str, ...], str]]:
        """Yield each wording that fits, with the names in it and its line; the last line first."""
        for wording in wordings.among(self._keys):
            if not self._holds(wording.literal):
                continue
            for line in self.lines_with(wording.literal):
                match = wording.pattern.search(line)
                if match is not None:
                    yield wording, _names(match), line
                    break

    def holds_line_of(self, label: str) -> bool:
        """Whether a line begins with a program's name and a colon; ``label`` in lower case."""
        return self.lowered.startswith(f"{label}: ") or f"\n{label}: " in self.lowered

    def _holds(self, literal: str) -> bool:
        held = self._held.get(literal)
        if held is None:
            held = self._held[literal] = literal in self.lowered
        return held

    def lines_with(self, literal: str) -> Iterator[str]:
        """Yield the lines that hold a literal, the last one first, each cut to a bound."""
        position = len(self.lowered)
        for _ in range(_OCCURRENCES_MAX):
            position = self.lowered.rfind(literal, 0, position)
            if position < 0:
                return
            start = self.lowered.rfind("\n", 0, position) + 1
            end = self.lowered.find("\n", position)
            start = max(start, position - LINE_MAX)
            yield self.text[start : end if 0 <= end < start + 2 * LINE_MAX else start + LINE_MAX]
            position = start

    def error_line(self) -> str:
        """Return the line that most looks like the error, for signatures of unknown kinds."""
        lines = [line.strip() for line in self.text[-4096:].splitlines()]
        lines = [line for line in lines if line and not line.startswith("> ")]  # npm's echo
        for line in lines:
            if _ERROR_LINE.search(line[:LINE_MAX]):
                return line[:LINE_MAX]
        return lines[-1][:LINE_MAX] if lines else ""


def _names(match: re.Match[str]) -> tuple[str, ...]:
    """Return what an error names, without the sentence's punctuation; ``cd..`` keeps its own."""
    names = (name.rstrip(":,;") for name in match.groups() if name)
    bare = (n[:-1] if n.endswith(".") and not n.endswith("..") else n for n in names)
    return tuple(name for name in bare if any(map(str.isalnum, name)))
