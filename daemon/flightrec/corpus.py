"""Labelled sessions from files, played through the learner with no more than the wire carries.

A folder holds ``labels.jsonl`` (one session a line) and any number of ``*.jsonl`` or ``*.jsonl.gz``
files with one observed command a line; ``tests/corpus/README.md`` describes the fields.
"""

import contextlib
import gzip
import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from flightrec.errors import FlightrecError
from flightrec.ingest import CommandRun, ingest
from flightrec.pairing import Recovery
from flightrec.places import Place, Places, working_folder
from flightrec.recorder import Recorder
from flightrec.redact import Redactor
from flightrec.store import Store
from flightrec.wire import (
    COMMAND_MAX,
    TAIL_MAX,
    CommandFinished,
    CommandStarting,
    Source,
    TailSource,
)

LABELS = "labels.jsonl"
_START_US = 1_000_000_000
_LATEST_S = 366 * 24 * 3600.0
_TAIL_MARKS = ("|", ";", "&&", "\n")


class Pair(msgspec.Struct):
    """A failed event and the event that fixed it, as a person judged it."""

    failed: int
    fix: int
    kind: str
    prereq: list[int] = []
    also: list[int] = []
    optional: bool = False
    kind_also: list[str] = []
    value: str = "durable"
    caution: str | None = None

    @property
    def accepted(self) -> set[int]:
        """The events that count as the fix."""
        needed = self.prereq if self.kind in ("prerequisite", "environment", "directory") else []
        return {self.fix, *self.also, *needed}


class Label(msgspec.Struct):
    """What is to be learned from a session; ``nothing`` says why where that is nothing."""

    session: str
    source: str
    family: str = ""
    pairs: list[Pair] = []
    nothing: str | None = None
    negative: str | None = None


class Event(msgspec.Struct):
    """One observed command."""

    session: str
    i: int
    ts: float
    cwd: str
    command: str
    exit: int | None
    shell: str = "bash"
    stderr: str = ""
    stdout_tail: str = ""
    pipestatus: list[int] = []
    dur: float | None = None
    merged: bool = False
    agent: bool | str | None = None


class Prediction(msgspec.Struct):
    """One recovery that the learner found, by the numbers of its events."""

    session: str
    failed: int
    fix: int
    kind: str
    prereq: list[int] = []


@dataclass
class Session:
    """A label and its events in their order."""

    label: Label
    events: list[Event] = field(default_factory=list)


def read_corpus(folder: Path, sources: Collection[str] = ()) -> list[Session]:
    """Return the sessions of a folder, those of some sources where any are given.

    Raises FlightrecError where the folder holds no labels or a line cannot be read.
    """
    labels = [
        label for label in _read(folder / LABELS, Label) if not sources or label.source in sources
    ]
    sessions = {label.session: Session(label) for label in labels}
    for path in sorted(folder.iterdir()):
        if path.name.endswith((".jsonl", ".jsonl.gz")) and path.name != LABELS:
            for event in _read(path, Event):
                if event.session in sessions:
                    sessions[event.session].events.append(event)
    for session in sessions.values():
        session.events.sort(key=lambda event: event.i)
    return list(sessions.values())


_Row = TypeVar("_Row", Label, Event)


def _read(path: Path, kind: type[_Row]) -> Iterator[_Row]:
    """Yield what a file's lines hold."""
    decoder = msgspec.json.Decoder(kind)
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for line in file:
                number += 1
                if line.strip():
                    yield decoder.decode(line)
    except (OSError, EOFError) as error:
        raise FlightrecError(f"cannot read {path}: {error}") from None
    except msgspec.DecodeError as error:
        raise FlightrecError(f"{path}, line {number}: {error}") from None


def predict(sessions: Iterable[Session], *, full: bool = False) -> Iterator[Prediction]:
    """Yield what a recorder finds in sessions; ``full`` hands it every tail, for comparison."""
    with contextlib.closing(Store.open(":memory:")) as store:
        recorder = Recorder(store)
        redactor, places = Redactor(), _OtherPlaces()
        for session in sessions:
            numbers: dict[bytes, int] = {}
            for event in session.events:
                run = _ingested(event, session.events[0].ts, redactor, places, full=full)
                numbers[run.run] = event.i
                for recovery in recorder.record(run).recoveries:
                    if recovery.proven:
                        yield _prediction(event.session, recovery, numbers)


class _OtherPlaces(Places):
    """The places of another machine: what this one has under the same name is not looked at."""

    def find_for(self, command: str, cwd: str, now_s: float) -> Place:  # noqa: ARG002 - time stands still
        """Return the folder that a command line works in, as its words say."""
        folder = working_folder(command, cwd)
        return Place(folder, folder)


def _prediction(session: str, recovery: Recovery, numbers: dict[bytes, int]) -> Prediction:
    return Prediction(
        session=session,
        failed=numbers[recovery.failure.run.run],
        fix=numbers[recovery.fix.run],
        kind=recovery.kind.value,
        prereq=[numbers[run.run] for run in recovery.needed],
    )


def _ingested(
    event: Event, first_s: float, redactor: Redactor, places: Places, *, full: bool
) -> CommandRun:
    """Return the run that the recorder would have seen."""
    identity = hashlib.sha256(f"{event.session}\0{event.i}".encode()).digest()[:16]
    session = hashlib.sha256(event.session.encode()).digest()[:16]
    command = event.command.encode()
    cwd = event.cwd.encode()
    after_us = _START_US + int(min(max(event.ts - first_s, 0.0), _LATEST_S) * 1_000_000)
    tail, tail_source = _tail(event, full=full)
    usec = None if event.dur is None else int(event.dur * 1_000_000)
    starting = CommandStarting(
        run=identity,
        session=session,
        source=Source.SH if event.agent else Source.RELAY,
        shell=event.shell.encode(),
        pid=1,
        tty=b"",
        cwd=cwd,
        command=command[:COMMAND_MAX],
        command_total=len(command),
        boot=b"corpus",
        mono_us=after_us,
        wall_us=after_us,
        agent=b"agent" if event.agent else None,
    )
    finished = CommandFinished(
        run=identity,
        exit=event.exit,
        signal=None,
        pipestatus=event.pipestatus,
        usec=usec,
        cwd=cwd,
        mono_us=after_us + (usec or 0),
        wall_us=after_us + (usec or 0),
        tail_source=tail_source,
        tail=tail[-TAIL_MAX:],
        tail_total=len(tail),
    )
    return ingest(starting, finished, redactor, places)


def _tail(event: Event, *, full: bool) -> tuple[bytes, TailSource]:
    """Return what the helper would send: errors of agents' commands, else both streams as one."""
    sent = full or event.exit != 0 or any(event.pipestatus)
    if not sent and not any(mark in event.command for mark in _TAIL_MARKS):
        return b"", TailSource.NONE
    if event.agent and event.stderr and not event.merged:
        return event.stderr.encode(), TailSource.STDERR
    text = event.stdout_tail + event.stderr
    return text.encode(), TailSource.MERGED if text else TailSource.NONE
