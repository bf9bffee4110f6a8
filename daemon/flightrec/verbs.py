"""What the writer does when the command line asks for it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from flightrec.config import Settings
from flightrec.errors import FlightrecError
from flightrec.forgetting import Wanted, forget
from flightrec.hints import HintRule
from flightrec.paths import Paths
from flightrec.recorder import Recorder
from flightrec.redact import Redactor
from flightrec.store import Store


@dataclass
class Workplace:
    """What a verb has at hand, and what it leaves for the writer to do.

    A verb opens its own transactions. ``changed`` goes to the hint index; ``start_over`` asks for a
    new recorder, where rules or runs have gone; ``export`` for new memory files.
    """

    store: Store
    paths: Paths
    settings: Settings
    recorder: Recorder
    redactor: Redactor
    changed: list[HintRule] = field(default_factory=list)
    start_over: bool = False
    export: bool = False


Verb = Callable[[Workplace, dict[str, Any]], dict[str, Any]]
"""Takes the request's arguments, returns the answer; raises FlightrecError with one line."""


class _Forget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``session`` is hexadecimal."""

    pattern: str | None = None
    session: str | None = None
    since_us: int | None = None
    dry_run: bool = False


def _forget(place: Workplace, arguments: dict[str, Any]) -> dict[str, Any]:
    asked = msgspec.convert(arguments, _Forget)
    chosen = [asked.pattern, asked.session, asked.since_us]
    if sum(value is not None for value in chosen) != 1 or asked.pattern == "":
        raise FlightrecError("say one of: a pattern, a session, since when")
    session = bytes.fromhex(asked.session) if asked.session is not None else None
    wanted = Wanted(asked.pattern, session, asked.since_us)
    before = place.recorder.hint_rules()
    forgotten = forget(place.store, place.paths, wanted, dry_run=asked.dry_run)
    if not asked.dry_run:
        left = {rule.id: rule for rule in Recorder(place.store).hint_rules()}
        place.changed += [left.get(rule.id) or withdrawn(rule) for rule in before]
        place.start_over = place.export = True
    return asdict(forgotten)


def withdrawn(rule: HintRule) -> HintRule:
    """Return what takes this rule out of the hint index."""
    return msgspec.structs.replace(rule, offered=False)


VERBS: dict[str, Verb] = {
    "forget": _forget,
}


def do(verb: str, place: Workplace, arguments: bytes) -> bytes:
    """Return the answer, as JSON, to a request. Raises FlightrecError with one line."""
    if verb not in VERBS:
        raise FlightrecError(f"the daemon does not know how to {verb}")
    try:
        values = msgspec.json.decode(arguments, type=dict[str, Any])
        return msgspec.json.encode(VERBS[verb](place, values))
    except msgspec.DecodeError as error:
        raise FlightrecError(f"{verb}: {error}") from None
