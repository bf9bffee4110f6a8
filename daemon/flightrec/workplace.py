"""What a request finds at hand in the writer, and what it leaves to do."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flightrec.config import Settings
from flightrec.exporter import Exporter
from flightrec.hints import HintRule
from flightrec.paths import Paths
from flightrec.recorder import Recorder
from flightrec.redact import Redactor
from flightrec.rules import Guard
from flightrec.store import Store


@dataclass
class Workplace:
    """What a verb has at hand, and what it leaves for the writer to do.

    A verb opens its own transactions. ``changed`` goes to the hint index; ``start_over`` asks for a
    new recorder, where rules or runs have gone; ``export`` for new memory files; ``rescan`` for old
    rows to be redacted anew. ``guarded`` are all guarded projects, where that has changed.
    """

    store: Store
    paths: Paths
    settings: Settings
    recorder: Recorder
    redactor: Redactor
    exporter: Exporter
    changed: list[HintRule] = field(default_factory=list)
    start_over: bool = False
    export: bool = False
    guarded: dict[str, Guard] | None = None
    rescan: bool = False

    def take_changes(self) -> None:
        """Pass on what the rulebook changed, once its transaction is committed."""
        outcome = self.recorder.take_outcome()
        self.changed += outcome.changed
        self.export |= outcome.export


Verb = Callable[[Workplace, dict[str, Any]], dict[str, Any]]
"""Takes the request's arguments, returns the answer; raises FlightrecError with one line."""
