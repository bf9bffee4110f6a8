"""A rule as a row of the database, and back."""

import sqlite3
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from flightrec.rules import Guard, Origin, Remedy, Rule, Scope, Status, Trigger, Verdict

COLUMNS = (
    "id", "uid", "key", "status", "kind", "failure_kind", "program", "scope", "project", "upstream",
    "seen_in", "origin", "trigger", "remedy", "proven", "verdict", "flagged", "guard", "pardoned",
    "held_back", "r", "c", "d", "used", "failures", "failed", "outcome_us", "created_us", "last_us",
    "promoted_us", "shared_us", "archived_us",
)  # fmt: skip
_USED = COLUMNS.index("used")
NAMES = ", ".join(COLUMNS)
SAVE = (
    f"INSERT INTO rules ({NAMES}, crc) VALUES ({', '.join('?' * len(COLUMNS))}, ?)"  # noqa: S608 - names from above
    " ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in (*COLUMNS[2:], "crc") if name != "used")
)
decode_trigger = msgspec.json.Decoder(Trigger).decode
decode_remedy = msgspec.json.Decoder(Remedy).decode
_decode_list = msgspec.json.Decoder(tuple[str, ...]).decode


def to_row(rule: Rule) -> tuple[object, ...]:
    """Return the values of ``COLUMNS``."""
    return (
        rule.id,
        rule.uid,
        rule.key,
        rule.status.value,
        rule.kind,
        rule.failure_kind,
        rule.program,
        rule.scope.value,
        rule.project,
        rule.upstream,
        msgspec.json.encode(rule.seen_in).decode(),
        f"{rule.origin.value}:{rule.source}" if rule.source else rule.origin.value,
        msgspec.json.encode(rule.trigger).decode(),
        msgspec.json.encode(rule.remedy).decode(),
        int(rule.proven),
        rule.verdict.value,
        int(rule.flagged),
        rule.guard.value,
        rule.pardoned,
        rule.held_back,
        rule.r,
        rule.c,
        rule.d,
        rule.used,
        rule.failures,
        int(rule.failed),
        rule.outcome_us,
        rule.created_us,
        rule.last_us,
        rule.promoted_us,
        rule.shared_us,
        rule.archived_us,
    )


def from_row(row: tuple[Any, ...]) -> Rule:
    """Return the rule from the values of ``COLUMNS``."""
    values = dict(zip(COLUMNS, row, strict=True))
    for derived in ("key", "kind", "failure_kind", "program"):
        del values[derived]
    origin, _, source = values["origin"].partition(":")
    return Rule(
        **{
            **values,
            "status": Status(values["status"]),
            "scope": Scope(values["scope"]),
            "seen_in": _decode_list(values["seen_in"]),
            "origin": Origin(origin),
            "source": source,
            "trigger": decode_trigger(values["trigger"]),
            "remedy": decode_remedy(values["remedy"]),
            "proven": bool(values["proven"]),
            "verdict": Verdict(values["verdict"]),
            "flagged": bool(values["flagged"]),
            "guard": Guard(values["guard"]),
            "failed": bool(values["failed"]),
        }
    )


def row_crc(values: Sequence[object]) -> int:
    """Return the checksum of a rule's row; plain uses are counted in place and left out."""
    kept = (*values[:_USED], *values[_USED + 1 :])
    return zlib.crc32(repr(kept).encode("utf-8", "backslashreplace"))


def damaged_rules(connection: sqlite3.Connection) -> int:
    """Read every rule and return how many differ from their checksum."""
    rows = connection.execute(f"SELECT {NAMES}, crc FROM rules")  # noqa: S608 - our own names
    return sum(row_crc(row[:-1]) != row[-1] for row in rows)
