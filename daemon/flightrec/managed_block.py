"""One block of lines kept inside a document that belongs to somebody else: bytes in, bytes out.

Everything outside the two marker lines stays byte for byte: line endings, a byte order mark, a
missing final newline. Markers inside a code fence are an example in somebody's text and no block.
The document with its block taken out again is the document that the person had.
"""

import codecs
import re
from collections.abc import Sequence

from flightrec.errors import FlightrecError

BEGIN = "<!-- flightrec:begin (kept by flightrec: edits up to the end marker are replaced) -->"
END = "<!-- flightrec:end -->"

_BEGIN_LINE = re.compile(rb"<!-- flightrec:begin\b[^\r\n]*-->[ \t]*[\r\n]*")
_END_LINE = re.compile(rb"<!-- flightrec:end -->[ \t]*[\r\n]*")
_UNREADABLE = re.compile(rb"\A(?:\xff\xfe|\xfe\xff)|\x00")

Span = tuple[int, int]
"""Lines from the first up to but without the second."""


def set_block(document: bytes, body: Sequence[str]) -> bytes:
    """Return the document with exactly one block that holds ``body``, or none where that is empty.

    Raises FlightrecError where the markers do not pair up or the document is no UTF-8 text.
    """
    if _UNREADABLE.search(document):
        raise FlightrecError("not UTF-8 text; left alone")
    mark = codecs.BOM_UTF8 if document.startswith(codecs.BOM_UTF8) else b""
    lines = document[len(mark) :].splitlines(keepends=True)
    fences = _find_fences(lines)
    blocks = _find_blocks(lines, fences)
    newline = _newline(lines)
    text = newline.join(line.encode("utf-8") for line in (BEGIN, "", *body, END)) if body else b""
    if blocks:
        return mark + _replaced(lines, blocks, text)
    return mark + (_inserted(lines, fences, text, newline) if body else b"".join(lines))


def without_block(document: bytes) -> bytes:
    """Return what is the person's of a document, also of one that is not written to its end yet.

    Raises FlightrecError as ``set_block`` does for any other.
    """
    try:
        return set_block(document, ())
    except FlightrecError:
        lines = document.splitlines(keepends=True)
        begins = [number for number, line in enumerate(lines) if _BEGIN_LINE.fullmatch(line)]
        if not begins:
            raise
        return set_block(b"".join(lines[: begins[-1]]), ())


def _find_blocks(lines: Sequence[bytes], fences: Sequence[Span]) -> list[Span]:
    """Return where blocks stand, markers included."""
    fenced = {number for start, end in fences for number in range(start, end)}
    blocks: list[Span] = []
    begin: int | None = None
    for number, line in enumerate(lines):
        if number in fenced:
            continue
        if _BEGIN_LINE.fullmatch(line):
            if begin is not None:
                raise FlightrecError(_damaged("end", begin))
            begin = number
        elif _END_LINE.fullmatch(line):
            if begin is None:
                raise FlightrecError(_damaged("begin", number))
            blocks.append((begin, number + 1))
            begin = None
    if begin is not None:
        raise FlightrecError(_damaged("end", begin))
    return blocks


def _damaged(missing: str, line: int) -> str:
    return (
        f"flightrec's {missing} marker for line {line + 1} is missing;"
        " delete what is left of the block and try again"
    )


def _find_fences(lines: Sequence[bytes]) -> list[Span]:
    """Return where code fences stand; a list or quote can end one, so it takes a parser."""
    if not any(b"```" in line or b"~~~" in line for line in lines):
        return []
    from markdown_it import MarkdownIt  # noqa: PLC0415 -- 60 ms that most documents do not need

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    text = b"".join(lines).decode("utf-8", "surrogateescape")
    tokens = parser.parse(text)
    return [(token.map[0], token.map[1]) for token in tokens if token.type == "fence" and token.map]


def _newline(lines: Sequence[bytes]) -> bytes:
    """Return how this document ends its lines."""
    ending = re.search(rb"[\r\n]+\Z", lines[0]) if lines else None
    return ending[0] if ending else b"\n"


def _replaced(lines: Sequence[bytes], blocks: Sequence[Span], text: bytes) -> bytes:
    """Return the document with ``text`` for the first block and nothing for any other one."""
    document = b""
    position = 0
    for start, end in blocks:
        document += b"".join(lines[position:start])
        ending = lines[end - 1][len(lines[end - 1].rstrip(b"\r\n")) :]
        if text:
            document += text + ending
        elif not ending:
            document = _without_newline(document)
        text = b""
        position = end
    return document + b"".join(lines[position:])


def _without_newline(document: bytes) -> bytes:
    """Return it without its last line ending, which came with a block at the very end."""
    return re.sub(rb"(?:\r\n|\r|\n)\Z", b"", document)


def _inserted(lines: Sequence[bytes], fences: Sequence[Span], text: bytes, newline: bytes) -> bytes:
    """Return the document with a block at its end, or before a fence that nothing closes.

    A document without a final newline keeps to that: the newline goes before the block, and the
    block's own last line has none.
    """
    for candidate in (len(lines), *(start for start, _ in reversed(fences))):
        before, after = b"".join(lines[:candidate]), b"".join(lines[candidate:])
        if before and not before.endswith((b"\r", b"\n")):
            document = before + newline + text
        else:
            document = before + text + newline + after
        changed = document.splitlines(keepends=True)
        if _find_blocks(changed, _find_fences(changed)):
            return document
    raise FlightrecError("found no place outside its code fences; left alone")
