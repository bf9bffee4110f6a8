"""The person's own regular expressions, bounded so that no text makes them slow.

Python's ``re`` backtracks, so what a person writes could take minutes on an unlucky line. Patterns
are therefore rewritten: ``*``, ``+`` and ``{n,}`` take at most 256 characters, and give nothing
back where what follows cannot begin with them (``ACME-[0-9]+-x``). One repeat of a pattern may be
ambiguous (``.*secret``); it takes at most 64. Back-references, looking around and repeated groups
other than ``(…)?`` and ``(…){n}`` are refused. What is left is linear in the text's length.
"""

import re
from collections.abc import Iterator, Sequence

from flightrec.errors import FlightrecError

REPEAT_MAX = 256
AMBIGUOUS_MAX = 64
COUNT_MAX = 1000
GROUP_MAX = 16
PATTERNS_MAX = 200

_PIECE = re.compile(
    r"(?P<atom>\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[^0-9]|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|[^\\\[(){}|*+?])"
    r"|(?P<open>\((?:\?:)?(?!\?))|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<repeat>[*+?]|\{(?P<least>\d{0,4})(?P<comma>,?)(?P<most>\d{0,4})\})(?P<lazy>[?+]?)"
)
_FLAGS = re.compile(r"\(\?i\)")


def compile_patterns(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Return the bounded forms. Raises FlightrecError that names the pattern and the reason."""
    if len(patterns) > PATTERNS_MAX:
        raise FlightrecError(f"more than {PATTERNS_MAX} patterns for redaction")
    return tuple(compile_pattern(pattern) for pattern in patterns)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the bounded form of one pattern. Raises FlightrecError."""
    try:
        compiled = re.compile("".join(_bounded(pattern)))
    except re.error as error:
        raise FlightrecError(f"{pattern!r} is no regular expression: {error}") from None
    except _RefusedError as error:
        raise FlightrecError(f"{pattern!r} could be slow: {error}") from None
    if compiled.match(""):
        raise FlightrecError(f"{pattern!r} would match everywhere, also where there is nothing")
    return compiled


class _RefusedError(Exception):
    """Why a pattern cannot be bounded."""


def _bounded(pattern: str) -> Iterator[str]:
    flags = _FLAGS.match(pattern)
    ignored = re.IGNORECASE if flags else re.NOFLAG
    if flags:
        yield flags[0]
    ambiguous = multiplied = 0
    pieces = _pieces(pattern, flags.end() if flags else 0)
    for index, piece in enumerate(pieces):
        if not piece["repeat"]:
            yield piece[0]
            continue
        before = pieces[index - 1] if index else None
        if before is None or not (before["atom"] or before["close"]):
            raise _RefusedError("a repeat stands where there is nothing to repeat")
        least, most = _bounds(piece)
        if before["close"]:
            multiplied += _is_multiplied(least, most)
            yield f"{{{least},{most}}}"
            continue
        certain = least == most or _is_certain(pieces, index, ignored)
        if not certain:
            ambiguous += 1
            most = max(least, min(most, AMBIGUOUS_MAX))
        yield f"{{{least},{most}}}" + ("+" if certain and least != most else "")
    if ambiguous > 1 or (ambiguous and multiplied):
        raise _RefusedError("two repeats may take the same text, as in .*a.*b")


def _is_multiplied(least: int, most: int) -> bool:
    """Tell whether a group is repeated more than once; refuse what is open-ended."""
    if (least, most) != (0, 1) and (least != most or least > GROUP_MAX):
        raise _RefusedError(f"a group may be followed by ? or {{n}}, n up to {GROUP_MAX}")
    return most > 1


def _pieces(pattern: str, start: int) -> list[re.Match[str]]:
    pieces = []
    while start < len(pattern):
        piece = _PIECE.match(pattern, start)
        if piece is None:
            raise _RefusedError("a back-reference, a condition or a look around")
        pieces.append(piece)
        start = piece.end()
    return pieces


def _bounds(piece: re.Match[str]) -> tuple[int, int]:
    if piece["repeat"] in {"*", "+", "?"}:
        least = int(piece["repeat"] == "+")
        return least, 1 if piece["repeat"] == "?" else REPEAT_MAX
    least = int(piece["least"] or 0)
    most = int(piece["most"] or max(least, REPEAT_MAX)) if piece["comma"] else least
    if max(least, most) > COUNT_MAX:
        raise _RefusedError(f"a repeat of more than {COUNT_MAX}")
    return least, most


def _is_certain(pieces: Sequence[re.Match[str]], index: int, flags: re.RegexFlag) -> bool:
    """Tell whether a repeat may keep all it took: nothing follows that could begin with it."""
    if index + 1 == len(pieces):
        return True
    following = pieces[index + 1]
    optional = index + 2 < len(pieces) and pieces[index + 2]["repeat"]
    if not following["atom"] or (optional and _bounds(pieces[index + 2])[0] == 0):
        return False
    repeated, next_atom = (re.compile(p["atom"], flags) for p in (pieces[index - 1], following))
    characters = map(chr, (*range(0x250), 0x2028, 0x4E00))
    return not any(repeated.fullmatch(c) and next_atom.fullmatch(c) for c in characters)
