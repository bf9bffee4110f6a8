"""Takes secrets out of text before anything keeps it.

``Safe`` is text that has been through here. Only this module makes it, so that a type checker
finds every way on which raw text could reach the disk, a screen or a memory file.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType

from flightrec.secret_commands import find_in_command
from flightrec.secret_text import find_in_text

log = logging.getLogger(__name__)

Safe = NewType("Safe", str)
"""Text without secrets. Made by a ``Redactor`` only."""

PLACEHOLDER = re.compile(r"‹secret:[a-z0-9-]+›")
"""What stands where a secret stood. Text that holds one is never offered as runnable."""

UNREDACTABLE = Safe("‹unredactable›")
"""What stands for a whole text that could not be examined."""

MAX_TEXT = 16 * 1024


@dataclass(frozen=True, slots=True)
class RedactedCommand:
    """A command line without its secrets; ``found`` tells whether it held any."""

    text: Safe
    found: bool


class Redactor:
    """Finds secrets and puts placeholders in their place.

    ``allow`` and ``deny`` are the person's own patterns.
    """

    def __init__(self, allow: Sequence[str] = (), deny: Sequence[str] = ()) -> None:
        self._allow = tuple(allow)
        self._deny = tuple(deny)

    def redact_text(self, text: str, session: bytes | None = None) -> Safe:
        """Return any text, such as output or a path, without its secrets."""
        return self.redact_command(text, session).text

    def redact_command(self, text: str, session: bytes | None = None) -> RedactedCommand:  # noqa: ARG002 - the session's memory comes with the rules for programs
        """Return a command line without its secrets."""
        try:
            safe = _replace(text[:MAX_TEXT])
        except Exception:
            log.exception("could not redact a text of %d characters", len(text))
            return RedactedCommand(UNREDACTABLE, found=True)
        return RedactedCommand(Safe(safe), safe != text)


def _replace(text: str) -> str:
    pieces = []
    position = 0
    for start, end, kind, _ in sorted([*find_in_text(text), *find_in_command(text)]):
        if start >= position:
            pieces += [text[position:start], f"‹secret:{kind}›"]
        position = max(position, end)
    return "".join([*pieces, text[position:]])
