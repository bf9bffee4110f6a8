"""Takes secrets out of text before anything keeps it.

``Safe`` is text that has been through here. Only this module makes it, so that a type checker
finds every way on which raw text could reach the disk, a screen or a memory file.

What a secret looks like stands in the modules ``secret_*``: in ``secret_text`` what any text shows
by itself, in ``secret_commands`` what a program's grammar tells, in ``secret_memory`` what an
earlier command of the session held.
"""

import itertools
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType

from flightrec.secret_commands import find_in_command
from flightrec.secret_memory import SecretMemory, find_all, is_recognisable
from flightrec.secret_patterns import compile_patterns
from flightrec.secret_text import Finding, find_in_text
from flightrec.secret_values import MARK

log = logging.getLogger(__name__)

Safe = NewType("Safe", str)
"""Text without secrets. Made by a ``Redactor`` only."""

PLACEHOLDER = re.compile(r"‹secret:[a-z0-9-]+›")
"""What stands where a secret stood. Text that holds one is never offered as runnable."""

UNREDACTABLE = Safe("‹unredactable›")
"""What stands for a whole text that could not be examined."""

VERSION = 1
"""To be raised when more is found than before: old rows are then gone over again (``rescan``)."""

TEXT_MAX = 16 * 1024
"""Code points that are examined and returned of one text; what is beyond is dropped."""

GOES_MAX = 8
"""How often a text is gone over, until nothing more is found between the placeholders."""

REPEATED_MAX = 64
"""Secrets of one text that are looked for in the rest of it."""

_CUT_MARK = "…"


@dataclass(frozen=True, slots=True)
class RedactedCommand:
    """A command line without its secrets; ``found`` tells whether it held any."""

    text: Safe
    found: bool


class Redactor:
    """Finds secrets and puts placeholders in their place.

    ``allow`` and ``deny`` are the person's own regular expressions: texts that are no secret, and
    texts that are one. They are bounded as ``secret_patterns`` says, which raises FlightrecError
    for one that cannot be. Nothing else here ever raises.
    """

    def __init__(self, allow: Sequence[str] = (), deny: Sequence[str] = ()) -> None:
        self._allow = compile_patterns(allow)
        self._deny = compile_patterns(deny)
        self._memory = SecretMemory()

    def redact_text(self, text: str, session: bytes | None = None) -> Safe:
        """Return any text, such as output or a path, without its secrets.

        What the commands of ``session`` held is a secret in it, too.
        """
        return self._redact(text, session, remember=False).text if text else Safe("")

    def redact_command(self, text: str, session: bytes | None = None) -> RedactedCommand:
        """Return a command line without its secrets, and remember those for its ``session``."""
        return self._redact(text, session, remember=True)

    def explain(self, text: str) -> list[Finding]:
        """Return the secrets in a text in their order, none overlapping another.

        A finding tells place, kind and rule; never show ``text`` beside it.
        """
        return _merged(self._findings(_cut(text), None))

    def _redact(self, text: str, session: bytes | None, *, remember: bool) -> RedactedCommand:
        try:
            text = _cut(text)
            for goes in range(GOES_MAX):
                findings = self._findings(text, session)
                if not findings:
                    return RedactedCommand(Safe(text), found=goes > 0)
                if remember and session is not None:
                    self._memory.remember(session, {text[f.start : f.end] for f in findings})
                text = _cut(_replaced(text, _merged(findings)))
            return RedactedCommand(UNREDACTABLE, found=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, the raw text must not pass
            log.error("a text could not be redacted: %s", type(error).__name__)  # noqa: TRY400 - a traceback could show the text
            return RedactedCommand(UNREDACTABLE, found=True)

    def _findings(self, text: str, session: bytes | None) -> list[Finding]:
        text = PLACEHOLDER.sub(_hide, text)  # their own words must not announce secrets
        found = [*find_in_text(text), *find_in_command(text)]
        for pattern in self._deny:
            found += (Finding(*match.span(), "denied", "deny") for match in pattern.finditer(text))
        found += _repetitions(text, found)
        if session is not None:
            remembered = self._memory.find(session, text)
            found += (Finding(start, end, "repeated", "memory") for start, end in remembered)
        if found and self._allow:
            allowed = [match.span() for pattern in self._allow for match in pattern.finditer(text)]
            found = [f for f in found if not any(a <= f.start and f.end <= b for a, b in allowed)]
        return [f for f in found if MARK not in text[f.start : f.end]]


def _hide(placeholder: re.Match[str]) -> str:
    return MARK * len(placeholder[0])


def _cut(text: str) -> str:
    """Return what is examined: not half a word at the end, which could be half a secret."""
    if len(text) <= TEXT_MAX:
        return text
    end = TEXT_MAX - len(_CUT_MARK)
    blank = max(text.rfind(mark, end // 2, end) for mark in " \n\t")
    return text[: blank + 1 if blank > 0 else end // 2] + _CUT_MARK


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings in order, those that overlap or touch as one; the widest says what it is."""
    merged: list[Finding] = []
    widest = 0
    for finding in sorted(findings):
        if finding.start >= finding.end:
            continue
        if not merged or finding.start > merged[-1].end:
            merged.append(finding)
            widest = finding.end - finding.start
            continue
        last = merged[-1]
        if finding.end - finding.start > widest:
            widest = finding.end - finding.start
            last = last._replace(kind=finding.kind, rule=finding.rule)
        merged[-1] = last._replace(end=max(last.end, finding.end))
    return merged


def _replaced(text: str, findings: Sequence[Finding]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end, kind, _ in findings:
        pieces += (text[position:start], "‹secret:", kind, "›")
        position = end
    return "".join((*pieces, text[position:]))


def _repetitions(text: str, findings: Sequence[Finding]) -> list[Finding]:
    """Return the other places of the secrets in a text, unless they could be words of it."""
    kinds = {text[start:end]: kind for start, end, kind, _ in findings}
    again: list[Finding] = []
    for secret, kind in itertools.islice(kinds.items(), REPEATED_MAX):
        if not secret.isalpha() and is_recognisable(secret) and text.count(secret) > 1:
            again += [Finding(*span, kind, "repeated") for span in find_all(text, secret)]
    return again
