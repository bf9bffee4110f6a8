"""One run on its way: classify, store, count as evidence, pair, make a rule. The whole story."""

import sqlite3
from dataclasses import dataclass
from typing import Protocol

from flightrec.hints import HintRule, HintShown
from flightrec.ingest import CommandRun
from flightrec.redact import Safe


class RunStore(Protocol):
    """What the recorder asks of the store."""

    @property
    def connection(self) -> sqlite3.Connection:
        """The one connection, inside a transaction whenever the recorder is called."""

    def add_run(self, run: CommandRun) -> int | None:
        """Store a run; return its row id, or None where it was stored before."""


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """``stored`` is false for a run that was recorded before.

    ``changed`` is for the hint index. ``export`` tells that the set of exported rules, or what is
    exported of one, changed.
    """

    stored: bool
    changed: tuple[HintRule, ...] = ()
    export: bool = False


class Recorder:
    """Learns from runs in the order in which they are handed in; not shared between threads.

    ``record`` and ``hint_shown`` write inside the caller's transaction. Where that transaction is
    rolled back, make a new Recorder: what it remembers of the sessions would be ahead of the disk.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def record(self, run: CommandRun) -> RecordOutcome:
        """Store a run and learn from it."""
        return RecordOutcome(self._store.add_run(run) is not None)

    def hint_shown(self, shown: HintShown, remedy: Safe) -> None:
        """Remember that a hint was shown; ``remedy`` is its line after redaction."""

    def hint_rules(self) -> tuple[HintRule, ...]:
        """Return all rules for a new hint index."""
        return ()

    def session_ended(self, session: bytes) -> None:
        """Nothing more will come of this session."""
