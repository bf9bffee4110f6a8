"""Shell quoting: from a word as written to its value, and back."""

import re
from collections.abc import Mapping

from flightrec.command_line import Word

_SAFE = re.compile(r"[\w@%+:,./-][\w@%+=:,./-]*", re.ASCII)

_ACTIVE = re.compile(r"""['"\\$`*?\[~{(<>]""")
"""A word without any of these is its own value."""

_PARAMETER = r"\$(?:\w+|[@*#?$!~=^+-]|\{\w+\})"
_PART = re.compile(
    rf"""(?s)
      (?P<plain>[^'"\\$`(<>]+)
    | (?P<continuation>\\\n)
    | \\(?P<escaped>.)
    | '(?P<single>[^']*)'
    | \$'(?P<ansi>(?>(?:[^'\\]|\\.)*))'
    | \$?"(?P<double>(?>(?:[^"\\$`]++|\\.)*))"
    | (?P<active>`(?>(?:[^`\\]|\\.)*)` | {_PARAMETER} | [(<>])
    | \$(?P<localized>)(?=")
    | (?P<mixed>"(?>(?:[^"\\`]++|\\.|`(?>(?:[^`\\]|\\.)*)`)*)")
    | (?P<lone>.)
    """,
    re.VERBOSE,
)
_DOUBLE_PART = re.compile(
    rf"""(?s)
      (?P<double>(?>(?:[^"\\$`]++|\\.)+))
    | (?P<active>`(?>(?:[^`\\]|\\.)*)` | {_PARAMETER})
    | (?P<lone>.)
    """,
    re.VERBOSE,
)
_GLOB = re.compile(r"[*?\[]")
_TILDE = re.compile(r"(?:^|[=:])~")
_BRACES = re.compile(r"\{(?>(?:[^{},.]++|\.(?!\.))*)(?:,|\.\.)")

_DOUBLE_ESCAPE = re.compile(r'\\(?:\n|([\\"$`]))')
_ANSI_ESCAPE = re.compile(
    r"(?s)\\(?:(?P<letter>[abeEfnrtv\\'\"?])|(?P<octal>[0-7]{1,3})|x(?P<byte>[0-9A-Fa-f]{1,2})"
    r"|u(?P<short>[0-9A-Fa-f]{1,4})|U(?P<long>[0-9A-Fa-f]{1,8})|c(?P<control>.))"
)
_ANSI_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


def quote(text: str) -> str:
    """Return one word of bash and zsh whose value is ``text``, unquoted where that is safe."""
    if _SAFE.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def make_word(text: str, start: int, end: int, closed: Mapping[int, int]) -> Word:
    """Return the word written between ``start`` and ``end``.

    ``closed`` maps where an expansion or a double quote begins to where it ends.
    """
    raw = text[start:end]
    if _ACTIVE.search(raw) is None or raw in _BRACKETS:
        return Word(raw, start, end, literal=True, quoted=False)
    return _QuoteRemoval(text, start, end, closed).word()


_BRACKETS = frozenset(("[", "[["))


class _QuoteRemoval:
    """Goes through one word, part by part."""

    def __init__(self, text: str, start: int, end: int, closed: Mapping[int, int]) -> None:
        self.text, self.start, self.end, self.closed = text, start, end, closed
        self.value: list[str] = []
        self.literal = True
        self.quoted = False

    def word(self) -> Word:
        position = self.start
        while position < self.end:
            position = self._part(position)
        value = "".join(self.value)
        return Word(value, self.start, self.end, self.literal, self.quoted)

    def _part(self, position: int) -> int:
        after = self.closed.get(position)
        if after is None:
            return self._take(_PART, position, self.end)
        if self.text[position] == '"':
            return self._double_quote(position, after)
        return self._as_written(position, after)

    def _double_quote(self, position: int, after: int) -> int:
        self.quoted = True
        inside, last = position + 1, after - 1
        while inside < last:
            nested = self.closed.get(inside)
            if nested is None:
                inside = self._take(_DOUBLE_PART, inside, last)
            else:
                inside = self._as_written(inside, nested)
        return after

    def _take(self, pattern: re.Pattern[str], position: int, end: int) -> int:
        match = pattern.match(self.text, position, end)
        kind = match.lastgroup if match else None
        if match is None or kind is None:
            return end
        part = match.group(kind)
        if kind == "active":
            return self._as_written(position, match.end())
        if kind == "mixed":
            return self._double_quote(position, match.end())
        if kind == "plain":
            self.literal = self.literal and not _expands(part, first=position == self.start)
        self.quoted = self.quoted or kind in _QUOTES
        self.value.append(_VALUES[kind](part))
        return match.end()

    def _as_written(self, position: int, after: int) -> int:
        self.literal = False
        self.value.append(self.text[position:after])
        return after


def _expands(part: str, *, first: bool) -> bool:
    """Whether an unquoted part of a word holds a glob, a brace expansion or a home directory."""
    if _GLOB.search(part) or _BRACES.search(part):
        return True
    tilde = _TILDE.search(part)
    return tilde is not None and (first or tilde.start() > 0 or part[0] != "~")


def _nothing(_: str) -> str:
    return ""


def _itself(part: str) -> str:
    return part


def _double_value(part: str) -> str:
    return _DOUBLE_ESCAPE.sub(lambda m: m.group(1) or "", part) if "\\" in part else part


def _ansi_value(part: str) -> str:
    r"""Return the value of ``$'…'``; bytes that escapes spell are read as UTF-8."""
    value = _ANSI_ESCAPE.sub(_ansi_escape, part) if "\\" in part else part
    value = value.partition("\0")[0]
    try:
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return value  # half a surrogate pair, from the caller: no bytes are meant


def _ansi_escape(match: re.Match[str]) -> str:
    kind = match.lastgroup or "letter"
    digits = match.group(kind)
    if kind == "letter":
        return _ANSI_LETTERS[digits]
    if kind == "control":
        return chr(ord(digits) & 0x1F) if digits.isascii() else digits
    if kind in ("octal", "byte"):
        byte = int(digits, 8 if kind == "octal" else 16) & 0xFF
        return chr(byte if byte < 0x80 else 0xDC00 + byte)
    code = int(digits, 16)
    return chr(code) if code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"


_VALUES = {
    "plain": _itself,
    "continuation": _nothing,
    "escaped": _itself,
    "single": _itself,
    "ansi": _ansi_value,
    "double": _double_value,
    "localized": _nothing,
    "lone": _itself,
}
_QUOTES = frozenset(("escaped", "single", "ansi", "double", "localized"))
