"""How much of a run is kept: the person's level, applied before anything else looks at it."""

import msgspec

from flightrec import shell_words
from flightrec.config import Capture, Level
from flightrec.ingest import to_text
from flightrec.secret_output import is_private_tail
from flightrec.unwrap import is_own_tool, unwrap
from flightrec.wire import COMMAND_MAX, CommandFinished, CommandStarting, Source, TailSource

OWN_PROGRAM = "flightrec"

_AGENT_DOORS = frozenset((Source.SH, Source.ENV))
"""Doors that see a whole line which an agent gave a shell."""

_TERMINAL_DOORS = frozenset((Source.RELAY, Source.PTY))
"""Doors that read tails from a person's terminal."""


def asked_for(starting: CommandStarting) -> CommandStarting | None:
    """Return the message with the command that a model asked for, without its agent's wrapping.

    None for what an agent does of its own accord.
    """
    if starting.source is Source.SHIM and starting.parent is None:
        agent, tool = to_text(starting.agent or b""), to_text(starting.command)
        return None if is_own_tool(agent, tool) else starting
    if starting.source not in _AGENT_DOORS:
        return starting
    line = to_text(starting.command)
    command = unwrap(line)
    if command is None or command == line:
        return None if command is None else starting
    raw = command.encode("utf-8", "surrogateescape")[:COMMAND_MAX]
    cut = starting.command_total - len(starting.command)
    return msgspec.structs.replace(starting, command=raw, command_total=len(raw) + cut)


def is_own(starting: CommandStarting) -> bool:
    """Whether the line is a command of ours, perhaps with its output piped on.

    What a person forgets, looks up or exports is not itself a piece of history.
    """
    if OWN_PROGRAM.encode() not in starting.command:
        return False
    line = shell_words.parse(to_text(starting.command))
    programs = [segment.program.rpartition("/")[2] for segment in line.segments if segment.program]
    piped = all(operator.text in ("|", "|&") for operator in line.operators)
    return programs[:1] == [OWN_PROGRAM] and (piped or set(programs) == {OWN_PROGRAM})


def as_wanted(
    starting: CommandStarting, finished: CommandFinished, capture: Capture
) -> tuple[CommandStarting, CommandFinished]:
    """Return the two messages with nothing that the person's settings leave out."""
    no_tail = not capture.tail and starting.source in _TERMINAL_DOORS
    if no_tail or capture.level is not Level.EVIDENCE or _is_private(starting, finished):
        finished = msgspec.structs.replace(finished, tail=b"", tail_source=TailSource.NONE)
    if capture.level is Level.METADATA:
        starting = _programs_only(starting)
    return starting, finished


def _is_private(starting: CommandStarting, finished: CommandFinished) -> bool:
    if not finished.tail:
        return False
    line = shell_words.parse(to_text(starting.command))
    return is_private_tail(line, finished.tail_source, finished.exit)


def _programs_only(starting: CommandStarting) -> CommandStarting:
    """Keep the programs' names. The command counts as cut short, so that no rule is made of it."""
    line = shell_words.parse(to_text(starting.command))
    programs = "; ".join(segment.program for segment in line.segments if segment.program)
    command = programs.encode("utf-8", "surrogateescape")
    total = max(starting.command_total, len(command) + 1)
    return msgspec.structs.replace(starting, command=command, command_total=total)
