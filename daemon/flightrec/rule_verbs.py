"""What the command line may ask of the writer about rules and memory files."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from flightrec import bundle, person
from flightrec.agent_files import Kind
from flightrec.errors import FlightrecError
from flightrec.export_rows import ExportRow, note, note_claude_folder, path_from_json, stop
from flightrec.generalise import Draft
from flightrec.guard_rows import guard_project, guarded_projects
from flightrec.person import Act
from flightrec.places import Place, find_place
from flightrec.redact import Safe
from flightrec.reflect import reflect
from flightrec.rulebook import Rulebook
from flightrec.rules import Guard, Origin, Rule, Scope
from flightrec.workplace import Verb, Workplace


class _About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``rule`` is an id; ``cwd`` is where the person said it."""

    rule: str
    cwd: str = ""


class _Dismiss(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without a rule it is about the hint that was shown last."""

    rule: str | None = None
    cwd: str = ""


class _GuardRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rule: str
    mode: Guard


class _GuardProject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``cwd`` is anywhere in the project."""

    cwd: str
    mode: Guard


class _Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rule: str
    working: str
    cwd: str = ""


class _Learn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    failing: str
    working: str
    cwd: str
    everywhere: bool


class _ExportRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    project: str
    agent: str
    kind: Kind
    boundary: str


class _Exports(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: tuple[_ExportRow, ...]


def _act(cwd: str) -> Act:
    at_us = time.time_ns() // 1000
    if not cwd:
        return Act(at_us)
    place = _find_place(cwd)
    return Act(at_us, place.project, origin=place.origin)


def _find_place(cwd: str) -> Place:
    """Return a place that rules and settings can name. Raises FlightrecError."""
    place = find_place(cwd)
    try:
        place.project.encode()
    except UnicodeEncodeError:
        raise FlightrecError("this project's path is not UTF-8 text") from None
    return place


def _deciding(decide: Callable[[Rulebook, str, Act], Rule]) -> Verb:
    """Return the verb that lets the person decide about one rule."""

    def verb(place: Workplace, arguments: dict[str, Any]) -> dict[str, Any]:
        asked = msgspec.convert(arguments, _About)
        return _change(place, lambda book: decide(book, asked.rule, _act(asked.cwd)))

    return verb


def _dismiss(place: Workplace, arguments: dict[str, Any]) -> dict[str, Any]:
    asked = msgspec.convert(arguments, _Dismiss)
    rule = asked.rule or _hinted_last(place)
    return _change(place, lambda book: person.dismiss(book, rule, _act(asked.cwd)))


def _hinted_last(place: Workplace) -> str:
    row = place.store.connection.execute(
        "SELECT rule_id FROM hints ORDER BY at_us DESC, id DESC LIMIT 1"
    ).fetchone()
    if row is None:
        raise FlightrecError("no hint was shown yet; name the rule")
    return str(row[0])


def _guard_rule(place: Workplace, arguments: dict[str, Any]) -> dict[str, Any]:
    asked = msgspec.convert(arguments, _GuardRule)
    return _change(place, lambda book: person.guard(book, asked.rule, asked.mode))


def _guard_project(place: Workplace, arguments: dict[str, Any]) -> dict[str, Any]:
    asked = msgspec.convert(arguments, _GuardProject)
    project = place.redactor.redact_text(_find_place(asked.cwd).project)
    with place.store.transaction() as connection:
        guard_project(connection, project, asked.mode, time.time_ns() // 1000)
    place.guarded = guarded_projects(place.store.connection)
    return {"project": project, "mode": asked.mode.value}


def _edit(place: Workplace, arguments: dict[str, Any]) -> dict[str, Any]:
    asked = msgspec.convert(arguments, _Edit)
    working = _without_secret(place, asked.working)
    return _change(place, lambda book: person.edit(book, asked.rule, working, _act(asked.cwd)))


def _learn(place: Workplace, arguments: dict[str, Any]) -> dict[str, Any]:
    asked = msgspec.convert(arguments, _Learn)
    failing, working = (_without_secret(place, text) for text in (asked.failing, asked.working))
    act = _act(asked.cwd)
    return _change(
        place,
        lambda book: person.learn(book, failing, working, act, everywhere=asked.everywhere),
    )


def _without_secret(place: Workplace, text: str) -> Safe:
    redacted = place.redactor.redact_command(text)
    if redacted.found:
        raise FlightrecError("the command holds a secret; a rule is written down and shown")
    return redacted.text


def _reflect(place: Workplace, _arguments: dict[str, Any]) -> dict[str, Any]:
    path = os.environ.get("PATH", os.defpath)
    with _changes(place) as book:
        reports = reflect(book, time.time_ns() // 1000, path)
    return {"steps": [{"step": report.step, "did": list(report.lines)} for report in reports]}


def _exporting(change: Callable[[sqlite3.Connection, ExportRow], None]) -> Verb:
    """Return the verb that remembers what the person wants of memory files."""

    def verb(place: Workplace, arguments: dict[str, Any]) -> dict[str, Any]:
        asked = msgspec.convert(arguments, _Exports)
        rows = [_to_row(row) for row in asked.rows]
        for row in rows:
            _check_no_secret(place, str(row.path), row.project)
        with place.store.transaction() as connection:
            for row in rows:
                change(connection, row)
        place.export = True
        return {"rows": len(rows)}

    return verb


def _check_no_secret(place: Workplace, *paths: str) -> None:
    if any(place.redactor.redact_text(path) != path for path in paths):
        raise FlightrecError("the path holds a secret, which would be written down")


class _Folder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    folder: str


def _claude_folder(place: Workplace, arguments: dict[str, Any]) -> dict[str, Any]:
    """Remember where Claude Code keeps its files: this process may have another environment."""
    folder = path_from_json(msgspec.convert(arguments, _Folder).folder)
    _check_no_secret(place, folder)
    with place.store.transaction() as connection:
        place.export |= note_claude_folder(connection, folder)
    return {"folder": folder}


def _to_row(row: _ExportRow) -> ExportRow:
    path, project, boundary = map(path_from_json, (row.path, row.project, row.boundary))
    return ExportRow(Path(path), project, row.agent, row.kind, Path(boundary))


class _Import(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a bundle, and what the bundle is called."""

    name: str
    rules: tuple[bundle.BundledRule, ...]


def _import(place: Workplace, arguments: dict[str, Any]) -> dict[str, Any]:
    """Enter rules of a bundle, in quarantine; whoever asks, they are judged again."""
    asked = msgspec.convert(arguments, _Import)
    if not bundle.NAME.fullmatch(asked.name):
        raise FlightrecError("a bundle's name has letters, digits, dots and dashes")
    bundle.check(asked.rules)
    at_us = time.time_ns() // 1000
    with _changes(place) as book:
        judged = bundle.judge(asked.rules, book.knows, place.redactor)
        entered = [
            _enter(book, one, asked.name, at_us) for one in judged if one.fate is bundle.Fate.NEW
        ]
    return {"entered": entered}


def _enter(book: Rulebook, judged: bundle.Judged, name: str, at_us: int) -> str:
    draft = Draft(judged.trigger, judged.remedy, Scope.USER, bound=False, proven=False)
    rule = book.add(
        draft,
        kind="ERR",
        origin=Origin.IMPORT,
        project="",
        at_us=at_us,
        uid=judged.uid,
        source=name,
    )
    return rule.id


def _change(place: Workplace, change: Callable[[Rulebook], Rule]) -> dict[str, Any]:
    """Make one change and say what became of the rule."""
    with _changes(place) as book:
        rule = change(book)
    return {"rule": rule.id, "status": rule.status.value}


@contextlib.contextmanager
def _changes(place: Workplace) -> Iterator[Rulebook]:
    """Change rules in a transaction of its own; what it came to is passed on once it is done."""
    try:
        with place.store.transaction():
            yield place.recorder.book
    except BaseException:
        place.start_over = True  # the recorder remembers what was rolled back
        raise
    place.take_changes()


RULE_VERBS: dict[str, Verb] = {
    "rule_approve": _deciding(person.approve),
    "rule_reject": _deciding(person.reject),
    "rule_retire": _deciding(person.retire),
    "rule_share": _deciding(lambda book, rule, _act: person.share(book, rule)),
    "rule_dismiss": _dismiss,
    "rule_guard": _guard_rule,
    "project_guard": _guard_project,
    "rule_edit": _edit,
    "rule_learn": _learn,
    "reflect": _reflect,
    "export_asked": _exporting(note),
    "export_stopped": _exporting(stop),
    "claude_folder": _claude_folder,
    "bundle_import": _import,
}
