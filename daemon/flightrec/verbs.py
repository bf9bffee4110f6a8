"""What the writer does when the command line asks for it."""

from dataclasses import asdict
from typing import Any

import msgspec

from flightrec.errors import FlightrecError
from flightrec.forgetting import Wanted, forget
from flightrec.guard_rows import guarded_projects
from flightrec.hints import HintRule
from flightrec.recorder import Recorder
from flightrec.rescan import Rescan
from flightrec.rule_verbs import RULE_VERBS
from flightrec.workplace import Verb, Workplace


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

    def refresh_exports() -> None:
        place.exporter.bring_up_to_date(place.store)
        place.exporter.settle(at_once=True)

    before = list(place.recorder.hint_rules())
    try:
        return asdict(
            forget(place.store, place.paths, wanted, refresh_exports, dry_run=asked.dry_run)
        )
    finally:  # also where the rows went and the files could not be rewritten
        if not asked.dry_run:
            left = {rule.id: rule for rule in Recorder(place.store).hint_rules()}
            place.changed += [left.get(rule.id) or withdrawn(rule) for rule in before]
            place.guarded = guarded_projects(place.store.connection)
            place.start_over = True


def withdrawn(rule: HintRule) -> HintRule:
    """Return what takes this rule out of the hint index."""
    return msgspec.structs.replace(rule, offered=False)


class _Rescan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``begin``: from the first row on; else only how far it is."""

    begin: bool = False


def _rescan(place: Workplace, arguments: dict[str, Any]) -> dict[str, Any]:
    asked = msgspec.convert(arguments, _Rescan)
    rescan = Rescan(place.store, place.paths, place.settings.redaction)
    if asked.begin:
        rescan.begin()
        place.rescan = True
    return rescan.state()


VERBS: dict[str, Verb] = {"forget": _forget, "rescan": _rescan, **RULE_VERBS}


def do(verb: str, place: Workplace, arguments: bytes) -> bytes:
    """Return the answer, as JSON, to a request. Raises FlightrecError with one line."""
    if verb not in VERBS:
        raise FlightrecError(f"the daemon does not know how to {verb}")
    try:
        values = msgspec.json.decode(arguments, type=dict[str, Any])
        return msgspec.json.encode(VERBS[verb](place, values))
    except (msgspec.DecodeError, ValueError) as error:
        raise FlightrecError(f"{verb}: {error}") from None
