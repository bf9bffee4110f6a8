"""Raw messages in, a safe run out: the only way to the store."""

import os
from dataclasses import dataclass

from flightrec.output import clean_output
from flightrec.places import Places
from flightrec.redact import Redactor, Safe
from flightrec.wire import CommandFinished, CommandStarting, Source, TailSource, WordKind


@dataclass(frozen=True, slots=True)
class CommandRun:
    """One observed command line, redacted.

    Bytes that are no UTF-8 are kept as lone surrogates (``surrogateescape``). ``exit`` is None
    where nobody could see it. ``usec`` is microseconds; ``mono_us`` orders the runs of one
    ``boot``; ``started_us`` is wall clock and for people. ``secret`` tells that the command held
    one. ``mine`` is false in a repository that belongs to somebody else: nothing is learned there.
    ``project`` and ``worktree`` are those that the command works in, as after ``cd DIR &&``;
    ``origin`` is what the project shares with other clones.
    """

    run: bytes
    session: bytes
    source: Source
    shell: str
    tty: str
    pid: int
    project: Safe
    worktree: Safe
    cwd: Safe
    command: Safe
    truncated: bool
    secret: bool
    boot: str
    mono_us: int
    started_us: int
    exit: int | None
    signal: int | None = None
    pipestatus: tuple[int, ...] = ()
    usec: int | None = None
    tail: Safe = Safe("")
    tail_source: TailSource = TailSource.NONE
    tail_total: int = 0
    end_cwd: Safe = Safe("")
    word_kind: WordKind = WordKind.UNKNOWN
    parent: bytes | None = None
    depth: int = 0
    agent: Safe | None = None
    tool_use_id: Safe | None = None
    mine: bool = True
    origin: str = ""


def to_text(raw: bytes) -> str:
    """Return bytes from a shell as text, without loss."""
    return raw.decode("utf-8", "surrogateescape")


def ingest(
    starting: CommandStarting,
    finished: CommandFinished,
    redactor: Redactor,
    places: Places,
) -> CommandRun:
    """Return the run that the two messages describe, with every text redacted."""
    session = starting.session
    typed = to_text(starting.command)
    place = places.find_for(typed, os.fsdecode(starting.cwd), starting.mono_us / 1_000_000)
    command = redactor.redact_command(typed, session)
    cwd, end_cwd = to_text(starting.cwd), to_text(finished.cwd)
    folders = {cwd, end_cwd, place.project, place.worktree}  # nearly always the same one
    safe = {folder: redactor.redact_text(folder, session) for folder in folders}
    return CommandRun(
        run=starting.run,
        session=session,
        source=starting.source,
        shell=to_text(starting.shell),
        tty=to_text(starting.tty),
        pid=starting.pid,
        project=safe[place.project],
        worktree=safe[place.worktree],
        cwd=safe[cwd],
        command=command.text,
        truncated=starting.truncated,
        secret=command.found,
        boot=to_text(starting.boot),
        mono_us=starting.mono_us,
        started_us=starting.wall_us,
        exit=finished.exit,
        signal=finished.signal,
        pipestatus=tuple(finished.pipestatus),
        usec=finished.usec,
        tail=redactor.redact_text(_shown(finished), session),
        tail_source=finished.tail_source,
        tail_total=finished.tail_total,
        end_cwd=safe[end_cwd],
        word_kind=starting.word_kind,
        parent=starting.parent,
        depth=starting.depth,
        agent=_optional(starting.agent, redactor, session),
        tool_use_id=_optional(starting.tool_use_id, redactor, session),
        mine=place.mine,
        origin=place.origin,
    )


def _shown(finished: CommandFinished) -> str:
    """Return the tail as a terminal would have shown it."""
    return clean_output(to_text(finished.tail), is_cut=finished.tail_total > len(finished.tail))


def _optional(raw: bytes | None, redactor: Redactor, session: bytes) -> Safe | None:
    return None if raw is None else redactor.redact_text(to_text(raw), session)
