"""Rules as the daemon knows them, for tests and benchmarks that need no database."""

from typing import Any

from flightrec.hints import HintRule
from flightrec.rules import Origin, Remedy, Scope, Trigger


def make_hint_rule(trigger: Trigger, remedy: Remedy, **changes: Any) -> HintRule:  # noqa: ANN401 - fields of HintRule
    """Return a rule that is due everywhere: its trigger failed, and its remedy worked once."""
    fields: dict[str, Any] = {
        "id": "ERR-20261130-001",
        "offered": True,
        "scope": Scope.USER,
        "project": "/src/app",
        "origin": Origin.RECORDED,
        "c": 1,
        "d": 0,
        "failed": True,
        "failures": 1,
    }
    return HintRule(**{**fields, "trigger": trigger, "remedy": remedy, **changes})
