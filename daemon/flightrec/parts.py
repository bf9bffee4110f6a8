"""Parts of a command: what the stand-ins of an agent's tools saw inside a shell's line.

A part is stored with its command's run as its parent, and teaches nothing of its own: the command
is what was typed and what is hinted. But it knows what the line hides, in ``pytest | tail`` or
behind ``|| true``: its exit status and its own last words.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from flightrec.classify import Failure, classify
from flightrec.ingest import CommandRun
from flightrec.redact import Safe
from flightrec.shell_words import CommandLine, SimpleCommand, parse
from flightrec.wire import TAIL_MAX, Source, TailSource

COMMANDS_KEPT = 256
PARTS_KEPT = 16
"""Commands whose end has not come yet; parts of one, failed and passed each."""

_HIDING = frozenset(("|", "|&", ";", "\n"))
"""Operators behind which the status before them is forgotten."""

_EXCUSES = frozenset(("true", ":", "echo"))
"""What stands behind ``||`` where a failure is shrugged off; anything else is an answer to it."""


def is_part(run: CommandRun) -> bool:
    """Whether this run is a part of another one."""
    return run.source is Source.SHIM and run.parent is not None


@dataclass(frozen=True, slots=True)
class PartsOf:
    """What is known of the parts of one command, in the order of their ends."""

    failed: list[CommandRun] = field(default_factory=list)
    passed: list[CommandRun] = field(default_factory=list)


_NO_PARTS = PartsOf()


class Parts:
    """Parts whose command has not ended yet, as far as they came."""

    def __init__(self) -> None:
        self._by_command: OrderedDict[bytes, PartsOf] = OrderedDict()

    def add(self, part: CommandRun) -> None:
        """Remember a part for its command, if its end is known."""
        if part.parent is None or part.exit is None:
            return
        of = self._by_command.setdefault(part.parent, PartsOf())
        parts = of.failed if part.exit else of.passed
        if len(parts) < PARTS_KEPT:
            parts.append(part)
        if len(self._by_command) > COMMANDS_KEPT:
            self._by_command.popitem(last=False)

    def take(self, command: bytes) -> PartsOf:
        """Return the parts of a command that has ended, and forget them."""
        return self._by_command.pop(command, _NO_PARTS)


def hidden_failure(
    run: CommandRun, line: CommandLine, parts: Sequence[CommandRun]
) -> Failure | None:
    """Return how a part of this command failed whose status the line hides, or None."""
    if run.exit != 0 or line.compound:
        return None
    for part in parts:
        part_line = parse(part.command)
        failure = classify(part, part_line)
        index = _segment_of(line, part_line)
        if failure is not None and index is not None and _is_hidden(line, index):
            whole = replace(run, tail=_with_words_of(part, run), tail_source=TailSource.MERGED)
            return replace(failure, run=whole, line=line, segment=index, masked=True)
    return None


def passed_segments(line: CommandLine, parts: PartsOf) -> frozenset[int]:
    """Return the segments that passed whatever the line's own status says: ``git status; echo``.

    One that failed as well, as in a loop, is none of them.
    """
    if line.compound or not parts.passed:
        return frozenset()
    failed, passed = (
        {_segment_of(line, parse(part.command)) for part in some}
        for some in (parts.failed, parts.passed)
    )
    return frozenset(index for index in passed - failed if index is not None)


def _with_words_of(part: CommandRun, run: CommandRun) -> Safe:
    """Return the command's last words with the part's before them, where they do not hold them."""
    if part.tail in run.tail:
        return run.tail
    return Safe(f"{part.tail}\n{run.tail}"[-TAIL_MAX:])


def _segment_of(line: CommandLine, part: CommandLine) -> int | None:
    """Return which segment a part was: the one with its words, or the only one of its program."""
    if not part.segments:
        return None
    told = part.segments[0]
    same = [i for i, segment in enumerate(line.segments) if _name(segment) == _name(told)]
    for index in same:
        if _words(line.segments[index]) == _words(told):
            return index
    return same[0] if len(same) == 1 else None


def _name(segment: SimpleCommand) -> str:
    return segment.program.rpartition("/")[2]


def _words(segment: SimpleCommand) -> list[str]:
    return [word.text for word in segment.arguments]


def _is_hidden(line: CommandLine, index: int) -> bool:
    """Whether the line's status says nothing of this segment's."""
    if line.segments[index].depth or index >= len(line.operators):
        return False
    operator = line.operators[index].text
    after = line.segments[index + 1].program if index + 1 < len(line.segments) else ""
    return operator in _HIDING or (operator == "||" and after in _EXCUSES)
