"""A file by which helpers know, without asking, that no rule is about a command.

Most commands are in no rule. For those the wait for the daemon's answer is most of what recording
costs the person at the prompt. So the words that a rule's lines start from are put into a Bloom
filter: a command with none of them needs no answer, one with any of them asks as ever. A word that
is not in the filter is in no rule; the other way round it may be wrong now and then, at the price
of one question.

``shim/hint_filter.c`` reads it: 8 bytes of magic, the daemon's pid as a 32-bit little-endian number
(a helper believes the file of the daemon that it talks to and no other), 4 bytes of nothing, and
the bits. Nothing can be read out of it but whether a word that one has is in.
"""

import contextlib
import logging
import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from flightrec.hints import HintRule
from flightrec.shell_words import parse

log = logging.getLogger(__name__)

BITS = 65_536
"""Room for 5,000 words with one needless question in 50."""

_HEADER = struct.Struct("<8sII")
_MAGIC = b"frwords1"

_SEPARATORS = re.compile(rb"[\s;|&()<>`\"'$\\{}]+")
"""The helper cuts a line at these, quoted or not; so the words are cut here, too."""


class HintWords:
    """Keeps the file in step with the rules that the daemon has in memory.

    Where it cannot be written there is none, and helpers ask about every command.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bits = bytearray(BITS // 8)
        self._file: int | None = None

    def publish(self) -> None:
        """Put a file of this process in the place of any other, unless that was done before.

        A file that helpers have open is changed in place from then on.
        """
        if self._file is not None:
            return
        fresh = self._path.with_suffix(".words-new")
        try:
            fresh.unlink(missing_ok=True)
            self._file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.pwrite(self._file, _HEADER.pack(_MAGIC, os.getpid(), 0) + self._bits, 0)
            fresh.replace(self._path)
        except OSError as error:
            log.warning("helpers will ask about every command: %s", error.strerror)
            self._withdraw()

    def add(self, rules: Iterable[HintRule]) -> None:
        """Let helpers ask about what these rules start from, and about what they offer.

        The daemon wants to see the remedy, too: a hint that was followed is not repeated.
        """
        before = bytes(self._bits)
        for rule in rules:
            if rule.offered:
                for word in _words_of(rule):
                    self._set(word)
        if self._bits != before:
            self._write()

    def clear(self) -> None:
        """Know no rule any more."""
        self._bits = bytearray(BITS // 8)
        self._write()

    def close(self) -> None:
        """Let go of the file; it stays where it is, and is nobody's once this process has ended."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self) -> None:
        if self._file is None:
            return
        try:
            os.pwrite(self._file, self._bits, _HEADER.size)
        except OSError:
            self._withdraw()

    def _set(self, word: bytes) -> None:
        if not word:  # it starts from nothing certain: every command has to be asked about
            self._bits = bytearray(b"\xff" * len(self._bits))
        for bit in _bits_of(word):
            self._bits[bit >> 3] |= 1 << (bit & 7)

    def _withdraw(self) -> None:
        """Say by a file without content that nothing can be told from it."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, 0)
        self.close()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def _bits_of(word: bytes) -> tuple[int, int]:
    """Return the two bits of a word: the halves of its FNV-1a hash."""
    value = 0x811C9DC5
    for byte in word:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value & 0xFFFF, value >> 16


def _words_of(rule: HintRule) -> Iterator[bytes]:
    """Yield the words of which a command has at least one if the rule is to be asked about."""
    first = rule.trigger.words[0] if rule.trigger.words else ""
    yield from _pieces(first if isinstance(first, str) else "")
    remedy = rule.remedy
    if remedy.words and isinstance(remedy.words[0], str):
        yield from _pieces(remedy.words[0])
    for word in remedy.prefix[:1]:
        yield from _pieces(word)
    for line in remedy.before:
        for segment in parse(line).segments:
            yield from _pieces(segment.program)


def _pieces(word: str) -> list[bytes]:
    """Return what a word falls into where a line of it is cut; one empty piece for no word."""
    pieces = [piece for piece in _SEPARATORS.split(os.fsencode(word)) if piece]
    return pieces or [b""]
