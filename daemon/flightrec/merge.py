"""Two changes to one document put together, line by line: what either added stays.

What one side took out is gone, unless the other side wrote it anew. What both added is there once,
wherever they put it: two versions that share a history would double each other otherwise.
"""

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

COMPARED_MAX = 4_000_000
"""Pairs of lines that are compared; beyond that a stretch counts as rewritten."""

_ENDS = (b"\n", b"\r")
_WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]")


def merge(ancestor: bytes, mine: bytes, theirs: bytes) -> bytes:
    """Return the document with the changes from ``ancestor`` to both of the others."""
    if mine in (ancestor, theirs):
        return theirs
    if theirs == ancestor:
        return mine
    lines, our_lines, other_lines = map(_whole_lines, (ancestor, mine, theirs))
    ours = _find_changes(lines, our_lines)
    other = _find_changes(lines, other_lines)
    known = Counter(line for added in other.added.values() for line in added)
    merged: list[bytes] = []
    for number in range(len(lines) + 1):
        merged += other.added.get(number, [])
        merged += _unknown(ours.added.get(number, []), known)
        if number < len(lines) and number not in ours.gone and number not in other.gone:
            merged.append(lines[number])
    document = b"".join(merged)
    is_open = not mine.endswith(_ENDS) and not theirs.endswith(_ENDS)
    return document.removesuffix(b"\n") if is_open else document


@dataclass(slots=True)
class _Changes:
    """Lines that are gone, by their number, and what was added before which line."""

    gone: set[int] = field(default_factory=set)
    added: dict[int, list[bytes]] = field(default_factory=dict)


def _find_changes(before: Sequence[bytes], after: Sequence[bytes]) -> _Changes:
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    changes = _Changes()
    for first, last, added in _rewritten(old, new):
        changes.gone.update(range(start + first, start + last))
        if added:
            changes.added[start + first] = list(added)
    return changes


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Return how many lines both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _rewritten(
    old: Sequence[bytes], new: Sequence[bytes]
) -> list[tuple[int, int, Sequence[bytes]]]:
    """Return which stretches of the old lines are something else now: from, to, and what."""
    if len(old) * len(new) > COMPARED_MAX:
        return [(0, len(old), new)]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [(i, j, new[k:m]) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]


def _unknown(added: list[bytes], known: Counter[bytes]) -> list[bytes]:
    """Return what is new of some added lines; ``known`` loses what it accounts for.

    Lines without a word, such as blank ones and fences, stay where all words around them are new.
    """
    words = [line for line in added if _WORD.search(line)] or added
    new = []
    for line in words:
        if known[line] > 0:
            known[line] -= 1
        else:
            new.append(line)
    return added if len(new) == len(words) else new


def _whole_lines(document: bytes) -> list[bytes]:
    """Return the lines; a last one without its end is the same line as one with it."""
    lines = document.splitlines(keepends=True)
    if lines and not lines[-1].endswith(_ENDS):
        lines[-1] += b"\n"
    return lines
