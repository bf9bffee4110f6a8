"""The secrets that a session's commands held, so that its other texts can be rid of them.

A program that is given a secret repeats it: in an error, in a URL it made, in base64. Nothing here
is ever written anywhere; it is bounded in number and size and ends with the process.
"""

import base64
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_values import MARK, is_example

SESSIONS_MAX = 256
SECRETS_MAX = 128
CHARACTERS_MAX = 16 * 1024
"""Of one session: secrets and their variants, and the characters of these, forms not counted."""

_PIECE_MAX = 256
_WHOLE_MIN = 12
"""From here on, a secret is looked for inside words too, and where a text cut it in two."""

_CUT_MIN = 8
_ESCAPE = lazy_pattern(r"\\(.)")
_BREAK = lazy_pattern(r"\\[nrt]")
_MARGIN = " \t|>+'\",;:/=$"
_QUOTES = lazy_pattern(r"['\"]")


class SecretMemory:
    """Secrets by session, the sessions least recently used forgotten first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[bytes, OrderedDict[str, frozenset[str]]] = OrderedDict()

    def remember(self, session: bytes, secrets: Iterable[str]) -> None:
        """Keep what is long and odd enough to be recognised."""
        kept = self._sessions.setdefault(session, OrderedDict())
        self._sessions.move_to_end(session)
        for secret in secrets:
            for piece in _pieces(secret):
                if piece not in kept:
                    kept[piece] = _forms(piece)
        while len(kept) > SECRETS_MAX or sum(map(len, kept)) > CHARACTERS_MAX:
            kept.popitem(last=False)
        if not kept:
            del self._sessions[session]
        while len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)

    def find(self, session: bytes, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the session's secrets stand in ``text``, in any of their forms."""
        for secret, forms in self._sessions.get(session, {}).items():
            for form in forms:
                yield from find_all(text, form)
            if len(secret) >= _WHOLE_MIN and len(text) >= _CUT_MIN:
                yield from _find_cut(text, secret)


def find_all(text: str, secret: str) -> Iterator[tuple[int, int]]:
    """Yield all places of a secret; a short one only where it is no part of a word."""
    start = text.find(secret)
    while start >= 0:
        end = start + len(secret)
        if len(secret) >= _WHOLE_MIN or not _is_inside_word(text, start, end):
            yield start, end
        start = text.find(secret, end)


def _is_inside_word(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()


def _find_cut(text: str, secret: str) -> Iterator[tuple[int, int]]:
    """Yield what of a secret stands at an end of the text that was cut off there."""
    head = secret.find(text[:_CUT_MIN])
    if head > 0 and text.startswith(secret[head:]):
        yield 0, len(secret) - head
    tail = secret.find(text[-_CUT_MIN:])
    if tail >= 0 and text.endswith(secret[: tail + _CUT_MIN]):
        yield len(text) - tail - _CUT_MIN, len(text)


def _pieces(secret: str) -> Iterator[str]:
    """Yield a secret as it is looked for: line by line, long lines in parts, without quoting."""
    if MARK in secret:
        return
    for line in secret.splitlines()[:16]:
        for start in range(0, len(line), _PIECE_MAX):
            yield from filter(is_recognisable, _variants(line[start : start + _PIECE_MAX]))


def _variants(piece: str) -> set[str]:
    """Return what a program may make of a piece: without quotes, escapes, margins, a prefix."""
    bare = piece.strip().rstrip("\\")
    unquoted = _ESCAPE.sub(r"\1", _QUOTES.sub("", bare))
    return {bare, unquoted, bare.strip(_MARGIN), bare.rpartition(":")[2], *_BREAK.split(bare)}


def is_recognisable(secret: str) -> bool:
    """Tell whether a secret is no word that texts hold anyway."""
    if is_example(secret):
        return False
    if secret.isalpha():  # "postgres" is a user, a database and a poor password
        return len(secret) >= 12
    return len(secret) >= (8 if secret.isdigit() else 6)


def _forms(secret: str) -> frozenset[str]:
    """Return a secret as it is, and as programs encode it."""
    forms = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    forms |= {quote(secret, safe=safe, errors="surrogatepass") for safe in ("", "/")}
    forms |= {form.lower() for form in forms if "%" in form}
    return frozenset(forms | _base64_forms(secret))


def _base64_forms(secret: str) -> set[str]:
    """Return what of its base64 is the same whatever stands before and behind it."""
    raw = secret.encode("utf-8", "surrogatepass")
    forms = set()
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + raw).decode()
        first = -(-offset * 8 // 6)  # characters that the bytes before it share
        last = (offset + len(raw)) * 8 // 6
        core = encoded[first:last]
        if len(core) >= _CUT_MIN:
            forms |= {core, core.translate(_URL_SAFE)}
    return forms


_URL_SAFE = str.maketrans("+/", "-_")
