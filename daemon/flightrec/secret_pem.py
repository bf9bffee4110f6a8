"""Private keys in armour, also where the text begins or stops in the middle of one."""

from collections.abc import Iterator

from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_names import Spans

_MARKER = lazy_pattern(r"----[- ](?P<edge>BEGIN|END) (?P<label>[A-Z0-9 ]{1,60})-?----")
_PRIVATE = "PRIVATE KEY"
_BREAK = lazy_pattern(r"(?:\r?\n|\\{1,4}[rn]){1,2}")
_MARGIN = " \t>|+\"',"
"""What output, quotations and source code put around the lines of a key."""

_KEY_LINE = lazy_pattern(
    r"(?:[A-Za-z0-9+/]{16,400}={0,3}|=[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{0,80}={0,3}"
    r"|(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset):.{0,120})\Z"
)
_KEY_BODY = lazy_pattern(r"[A-Za-z0-9+/]{16}")
_PUTTY = lazy_pattern(
    r"Private-Lines:[ \t]{0,4}[0-9]{1,3}((?>(?:\s{1,4}[A-Za-z0-9+/=]{1,80}){1,100}))"
)
_PUTTY_MAC = lazy_pattern(r"Private-(?:MAC|Hash):[ \t]{0,4}([0-9a-f]{16,128})")


def find_private_keys(text: str) -> Spans:
    """Yield the bodies of the private keys in ``text``."""
    for start, end in _bodies(text):
        if _KEY_BODY.search(text, start, end):  # and not the "..." of a manual
            yield start, end, "private-key"
    for pattern in (_PUTTY, _PUTTY_MAC):
        for match in pattern.finditer(text):
            yield *match.span(1), "private-key"


def _bodies(text: str) -> Iterator[tuple[int, int]]:
    opened = False  # a private key began at position and has not ended yet
    position = 0
    for marker in _MARKER.finditer(text):
        private = _PRIVATE in marker["label"]
        if opened:
            ended = private and marker["edge"] == "END"
            end = marker.start()
            yield position, end if ended else _after_lines(text, position, end)
        elif private and marker["edge"] == "END":
            yield _before_lines(text, position, marker.start()), marker.start()
        opened = private and marker["edge"] == "BEGIN"
        position = marker.end()
    if opened:
        yield position, _after_lines(text, position, len(text))


def _is_key_line(line: str) -> bool:
    return _KEY_LINE.match(line.strip(_MARGIN)) is not None


def _after_lines(text: str, start: int, end: int) -> int:
    """Return where the lines of a key end that begins at ``start`` and is cut off."""
    position = start
    for line_break in _BREAK.finditer(text, start, end):
        if not _is_key_line(text[position : line_break.start()]):
            return position
        position = line_break.end()
    return end if _is_key_line(text[position:end]) else position


def _before_lines(text: str, start: int, end: int) -> int:
    """Return where the lines of a key begin that ends at ``end`` and lacks its head."""
    line_end = position = end
    for line_break in reversed([*_BREAK.finditer(text, start, end)]):
        if not _is_key_line(text[line_break.end() : line_end]):
            return position
        position, line_end = line_break.end(), line_break.start()
    return start if _is_key_line(text[start:line_end]) else position
