"""What opens inside a shell word and where it ends: quotes, brackets, here-documents.

A frame reads until it is closed or until something opens inside it; whoever runs the frames keeps
them on a stack, so depth costs no recursion. Every pattern here is possessive and every stretch of
text is read at most twice, so time is linear in the text's length.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

from flightrec.command_line import Redirection


class Frame(Protocol):
    """Something that is open, from ``start`` on."""

    start: int

    def run(self) -> "Frame | None":
        """Read on until something opens (returned) or this is closed (None)."""


class Source:
    """The text, how far it is read, and what all frames share.

    ``closed`` maps where something opened to where it ended. ``open_list`` makes the frame of the
    commands in ``$( )``, given where it opens.
    """

    __slots__ = (
        "closed",
        "complete",
        "end",
        "has_heredoc",
        "open_list",
        "position",
        "reread",
        "text",
        "zsh",
    )

    def __init__(
        self, text: str, open_list: Callable[["Source", int], Frame], *, zsh: bool
    ) -> None:
        self.text = text
        self.end = len(text)
        self.open_list = open_list
        self.zsh = zsh
        self.position = 0
        self.closed: dict[int, int] = {}
        self.complete = True
        self.has_heredoc = False
        self.reread = 0  # characters that had to be read again

    def cut(self) -> None:
        """Note that something is still open at the end: there is nothing more to read."""
        self.complete = False
        self.position = self.end


Matcher = Callable[[str, int], re.Match[str]]


def matcher(pattern: str) -> Matcher:
    """Return the match function of a pattern that also matches the empty text, so never None."""
    return cast("Matcher", re.compile(pattern, re.DOTALL | re.VERBOSE | re.ASCII).match)


def stretch(*parts: str) -> Matcher:
    """Return a matcher of the longest stretch made of ``parts``."""
    return matcher("(?>(?:" + "|".join(parts) + ")*)")


# Each of these stands for a whole that hides nothing we have to look into.
SINGLE = "'[^']*+'"
ESCAPED = r"\\(?:.|\Z)"
BACKTICKS = r"`(?>(?:[^`\\]++|\\.)*)`"
DOLLAR = r"\$\$|\$\{\w+\}|\$(?![({\['])"
_DOLLAR_QUOTED = r"\$\$|\$\{\w+\}|\$(?![({\[])"
DOUBLE = rf'"(?>(?:[^"\\$`]++|\\.|{_DOLLAR_QUOTED})*)"'
ANSI = r"\$'(?>(?:[^'\\]++|\\.)*)'"
QUOTES = (SINGLE, ESCAPED, DOUBLE, ANSI, BACKTICKS, DOLLAR)
_NO_PROCESS = r"[<>](?!\()"
_COMMENT = r"(?<=[\s(])\#[^\n]*+"

_IN_DOUBLE = stretch(r'[^"\\$`]++', r"\\.", BACKTICKS, _DOLLAR_QUOTED)
_IN_PARENS = stretch(r"""[^'"\\$`()]++""", *QUOTES)
_IN_ARITHMETIC = stretch(r"""[^'"\\$`()]++""", *QUOTES, r"\$(?=\{)")
_IN_ARRAY = stretch(r"""[^'"\\$`()\#]++""", *QUOTES, _COMMENT, r"\#")
_IN_SQUARE = stretch(r"""[^'"\\$`\[\]]++""", *QUOTES, r"\$(?=\{)")
_IN_SUBSCRIPT = stretch(r"""[^'"\\$`\[\]<>]++""", *QUOTES, _NO_PROCESS)
_IN_BRACE = stretch(r"""[^'"\\$`}<>]++""", *QUOTES, _NO_PROCESS)
_IN_QUOTED_BRACE = stretch(r"""[^"\\$`}<>]++""", *QUOTES[1:], _NO_PROCESS)


class Quote:
    """A double quote."""

    __slots__ = ("source", "start")

    def __init__(self, source: Source, start: int) -> None:
        self.source, self.start = source, start
        source.position = start + 1

    def run(self) -> Frame | None:
        """See Frame."""
        source = self.source
        position = source.position = _IN_DOUBLE(source.text, source.position).end()
        if position == source.end:
            source.cut()
        elif source.text[position] == '"':
            source.position += 1
        else:
            return open_here(source, in_quote=True)
        return None


class Pair:
    """A pair of brackets around something else than a list of commands.

    ``nests`` is the bracket that opens one more of the same, ``close`` the one that ends it.
    """

    __slots__ = ("close", "depth", "inside", "nests", "source", "start")

    def __init__(self, source: Source, start: int, inside: Matcher, pair: str) -> None:
        self.source, self.start, self.inside = source, start, inside
        self.nests, self.close = pair[0], pair[1]
        self.depth = 1

    def run(self) -> Frame | None:
        """See Frame."""
        source = self.source
        while self.depth:
            position = source.position = self.inside(source.text, source.position).end()
            if position == source.end:
                source.cut()
                return None
            char = source.text[position]
            if char == self.close:
                self.depth -= 1
            elif char == self.nests:
                self.depth += 1
            else:
                return open_here(source)
            source.position += 1
        return None


def open_here(source: Source, *, in_quote: bool = False) -> Frame | None:
    """Return the frame of what opens here, None (and cut) for a quote that is never closed."""
    text, start = source.text, source.position
    if text[start] == '"':
        return Quote(source, start)
    if text.startswith("$((", start):
        return open_pair(source, start, start + 2, _IN_ARITHMETIC, "()")
    if text.startswith(("$(", "<(", ">("), start):
        source.position = start + 2
        return source.open_list(source, start)
    if text.startswith("${", start):
        # an apostrophe in "${x:-'}" opens a quote in bash and is an apostrophe in zsh
        inside = _IN_QUOTED_BRACE if in_quote and source.zsh else _IN_BRACE
        return open_pair(source, start, start + 2, inside, " }")
    if text.startswith("$[", start):
        return open_pair(source, start, start + 2, _IN_SQUARE, "[]")
    source.cut()
    return None


def open_pair(source: Source, start: int, inside: int, stretches: Matcher, pair: str) -> Pair:
    """Return the frame of a pair that opens at ``start`` and is read from ``inside`` on."""
    source.position = inside
    return Pair(source, start, stretches, pair)


def open_arithmetic(source: Source, start: int) -> Pair:
    """Return the frame of ``((`` up to the first ``)`` of its end."""
    return open_pair(source, start, start + 2, _IN_ARITHMETIC, "()")


def open_array(source: Source, start: int) -> Pair:
    """Return the frame of a list of words in parentheses."""
    return open_pair(source, start, start + 1, _IN_ARRAY, "()")


def open_glob(source: Source, start: int) -> Pair:
    """Return the frame of the parentheses of a pattern."""
    return open_pair(source, start, start + 1, _IN_PARENS, "()")


def open_subscript(source: Source, start: int) -> Pair:
    """Return the frame of an array's subscript."""
    return open_pair(source, start, start + 1, _IN_SUBSCRIPT, "[]")


class Heredoc(NamedTuple):
    """A here-document whose body is still to come."""

    marker: str
    strips_tabs: bool
    quoted: bool
    redirection: Redirection

    def find_end(self, text: str, start: int, *, nested: bool) -> tuple[int, int]:
        """Return where the body from ``start`` ends and where reading goes on, or (-1, -1).

        ``nested``: in ``$( )`` the marker's line may also hold the closing parenthesis.
        """
        place = text.find(self.marker, start)
        while place >= 0:
            line, after = self._line_start(text, start, place), place + len(self.marker)
            if line >= 0:
                if after == len(text) or text[after] == "\n":
                    return line, min(after + 1, len(text))
                if nested and ")" in text[after : _line_end(text, after)]:
                    return line, after
            place = text.find(self.marker, place + 1)
        return -1, -1

    def _line_start(self, text: str, start: int, place: int) -> int:
        """Return the start of the line that the marker at ``place`` begins, -1 if it does not."""
        line = place
        while self.strips_tabs and line > start and text[line - 1] == "\t":
            line -= 1
        if line == start:
            return line
        begins = text[line - 1] == "\n" and (self.quoted or not _is_joined(text, line))
        return line if begins else -1


def _is_joined(text: str, line: int) -> bool:
    """Whether a backslash joins the line that starts at ``line`` to the one before."""
    place = line - 2
    while place >= 0 and text[place] == "\\":
        place -= 1
    return (line - 2 - place) % 2 == 1


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end
