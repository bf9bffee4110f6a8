"""Private keys in armour, also where the text begins or stops in the middle of one."""

import re

from flightrec.secret_names import Spans

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_ANY_BEGIN = "-----BEGIN"
_BREAK = re.compile(r"(?:\r?\n|\\r|\\n){1,2}")
_MARGIN = " \t>|+\"',"
"""What output, quotations and source code put around the lines of a key."""

_KEY_LINE = re.compile(
    r"(?:[A-Za-z0-9+/]{16,400}={0,3}|=[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{0,80}={0,3}"
    r"|(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset):.{0,120})\Z"
)
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{16}")
_PUTTY = re.compile(r"Private-Lines:[ \t]{0,4}[0-9]{1,3}((?:\s{1,4}[A-Za-z0-9+/=]{1,80}){1,100}+)")
_PUTTY_MAC = re.compile(r"Private-(?:MAC|Hash):[ \t]{0,4}([0-9a-f]{16,128})")


def find_private_keys(text: str) -> Spans:
    """Yield the bodies of the private keys in ``text``."""
    position = 0
    while (begin := _BEGIN.search(text, position)) is not None:
        end = _END.search(text, begin.end())
        following = _BEGIN.search(text, begin.end())
        if end is not None and (following is None or end.start() < following.start()):
            position = end.start()
        else:
            position = _after_key_lines(text, begin.end())
        if _KEY_BODY.search(text, begin.end(), position):  # and not "..." of a manual
            yield begin.end(), position, "private-key"
    for end in _END.finditer(text):
        start = _before_key_lines(text, end.start())
        if _is_headless(text, end.start()) and _KEY_BODY.search(text, start, end.start()):
            yield start, end.start(), "private-key"
    for pattern in (_PUTTY, _PUTTY_MAC):
        for match in pattern.finditer(text):
            yield *match.span(1), "private-key"


def _is_headless(text: str, end: int) -> bool:
    begin = text.rfind(_ANY_BEGIN, 0, end)
    return begin < 0 or "-----END" in text[begin:end]


def _is_key_line(line: str) -> bool:
    return _KEY_LINE.match(line.strip(_MARGIN)) is not None


def _after_key_lines(text: str, start: int) -> int:
    """Return the end of the lines of a key that begins at ``start`` and is cut off."""
    position = start
    for line_break in _BREAK.finditer(text, start):
        if not _is_key_line(text[position : line_break.start()]):
            return position
        position = line_break.end()
    return len(text) if _is_key_line(text[position:]) else position


def _before_key_lines(text: str, end: int) -> int:
    """Return where the lines begin of a key that ends at ``end`` and lacks its head."""
    breaks = [match.span() for match in _BREAK.finditer(text, 0, end)]
    line_end = position = end
    for break_start, break_end in reversed(breaks):
        if not _is_key_line(text[break_end:line_end]):
            return position
        position, line_end = break_end, break_start
    return 0 if _is_key_line(text[:line_end]) else position
