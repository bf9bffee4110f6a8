"""``flightrec status``: what runs, what is recorded, and what is wrong."""

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any

from flightrec import __version__
from flightrec.client import request
from flightrec.commands.terminal import clock, colour, duration, one_line, print_items
from flightrec.config import Level, load_settings
from flightrec.errors import ExitCode, FlightrecError, NoDaemonError
from flightrec.export_rows import ExportRow, Wanted, read_rows
from flightrec.guard_rows import guarded_projects, guarded_rules
from flightrec.missed import HELPER_TROUBLES, read_helper_counters
from flightrec.ownership import owner_pid
from flightrec.paths import Paths, find_paths
from flightrec.store import Store

HELP = "what runs, what is recorded, and what was missed"

EXAMPLES = (
    ("flightrec status", "for you; the exit status is 4 where no daemon runs"),
    ("flightrec status --json", "for a program"),
)

ANSWER_WITHIN_S = 5.0

LEVELS = {
    Level.EVIDENCE: "commands and the end of their error output",
    Level.COMMANDS: "commands, none of their output",
    Level.METADATA: "names of programs only",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Show everything that can be found out, with or without a daemon."""
    found = gather(find_paths())
    if arguments.json:
        print_items([found])
    else:
        for heading, text, look in describe(found):
            line = f"{heading:10} {one_line(text)}"
            print(colour(line, look) if look else line)
    return ExitCode.OK if found["running"] else ExitCode.NO_DAEMON


def gather(paths: Paths) -> dict[str, Any]:
    """Return what the daemon says, what the database holds, and what helpers have counted."""
    daemon = _ask(paths)
    found = {
        "version": __version__,
        "running": daemon is not None,
        "daemon": daemon,
        "lock_pid": owner_pid(paths) if daemon is None else None,
        "socket": str(paths.socket),
        "database": str(paths.database),
        "database_bytes": _size(paths),
        "set_aside": sorted(str(path) for path in paths.state.glob("*.corrupt-*[0-9Z]")),
        "helpers": read_helper_counters(paths.counters),
        "level": None,
        "config_error": None,
    }
    try:
        found["level"] = str(load_settings(paths.config).capture.level)
    except FlightrecError as error:
        found["config_error"] = str(error)
    return {**found, **_count(paths)}


def _ask(paths: Paths) -> dict[str, Any] | None:
    try:
        return request(paths, "status", autostart=False, timeout_s=ANSWER_WITHIN_S)
    except NoDaemonError:
        return None


def _size(paths: Paths) -> int:
    with contextlib.suppress(OSError):
        return paths.database.stat().st_size
    return 0


def _count(paths: Paths) -> dict[str, Any]:
    try:
        with contextlib.closing(Store.open_read_only(paths.database)) as store:
            counts = store.counts()
            guard = {
                "projects": guarded_projects(store.connection),
                "rules": guarded_rules(store.connection),
            }
            exports = [describe_export(row) for row in read_rows(store.connection)]
    except FlightrecError as error:
        return {"database_error": str(error)}
    return {
        "exports": exports,
        "runs": counts.runs,
        "sessions": counts.sessions,
        "failures": counts.failures,
        "rules": counts.rules,
        "guard": guard,
    }


def describe_export(row: ExportRow) -> dict[str, Any]:
    """Return what is wanted of one memory file, for a program."""
    return {
        "path": str(row.path),
        "project": row.project,
        "agent": row.agent,
        "kind": row.kind.value,
        "wanted": row.wanted.value,
    }


Line = tuple[str, str, str]
"""Heading, text and colour; an empty colour is the terminal's own."""


def describe(found: dict[str, Any]) -> Iterator[Line]:
    """Return the lines for a person; what is in order and of no interest has none."""
    daemon = found["daemon"] or {}
    yield _describe_daemon(found, daemon)
    yield _describe_recording(found, daemon)
    if daemon.get("trouble"):
        yield "trouble", f"nothing can be stored: {daemon['trouble']}", "red"
    for note in daemon.get("notes", ()):
        yield "note", note, "yellow"
    yield _describe_store(found)
    yield from _describe_guard(found.get("guard"))
    if daemon:
        running = _amount(daemon["running"], "command")
        yield "now", f"{running} running, {_amount(daemon['connections'], 'helper')} connected", ""
    yield from _describe_missed(found, daemon)
    for path in found["set_aside"]:
        yield "set aside", path, "yellow"
    yield from _describe_exports(found.get("exports", []))
    yield "database", f"{found['database']} ({found['database_bytes'] / 1_000_000:.1f} MB)", ""
    yield "socket", found["socket"], ""


def _describe_daemon(found: dict[str, Any], daemon: dict[str, Any]) -> Line:
    if daemon:
        since = duration(int(daemon["uptime_s"] * 1_000_000))
        return "daemon", f"flightrec {daemon['version']}, pid {daemon['pid']}, for {since}", ""
    if found["lock_pid"] is not None:
        return "daemon", f"pid {found['lock_pid']} is there and does not answer", "red"
    return "daemon", "none runs; the next command in a shell starts it", "yellow"


def _describe_recording(found: dict[str, Any], daemon: dict[str, Any]) -> Line:
    if found["config_error"]:
        return "records", f"nothing: {found['config_error']}", "red"
    if daemon.get("paused"):
        until_us = daemon["paused_until_us"]
        end = f"{clock(until_us)}" if until_us else "flightrec resume"
        return "records", f"nothing: paused until {end}", "yellow"
    private = daemon.get("private_sessions", 0)
    others = f"; nothing of {_amount(private, 'private shell')}" if private else ""
    return "records", LEVELS[Level(found["level"])] + others, ""


def _describe_store(found: dict[str, Any]) -> Line:
    if "database_error" in found:
        return "holds", found["database_error"], "red"
    rules = ", ".join(f"{n} {status}" for status, n in sorted(found["rules"].items()))
    amounts = [_amount(found[f"{noun}s"], noun) for noun in ("run", "session", "failure")]
    return "holds", f"{', '.join(amounts)}; rules: {rules or 'none'}", ""


def _describe_exports(exports: list[dict[str, Any]]) -> Iterator[Line]:
    """Return a line for each memory file that is written to, and each that is not to be."""
    for path in dict.fromkeys(export["path"] for export in exports):
        rows = [export for export in exports if export["path"] == path]
        agent = rows[0]["agent"] or "you"
        if all(row["wanted"] == Wanted.STOPPED for row in rows):
            yield "memory", f"{path} (left alone, as you said)", ""
        else:
            yield "memory", f"{path} (kept up to date for {agent})", ""


def _describe_guard(guard: dict[str, Any] | None) -> Iterator[Line]:
    """Return what may stop an agent's commands, where the person wanted that."""
    if guard is None or not (guard["projects"] or guard["rules"]):
        return
    parts = [f"{mode} in {project}" for project, mode in guard["projects"].items()]
    parts += [f"{mode} by {_amount(n, 'rule')}" for mode, n in guard["rules"].items()]
    yield "guard", "; ".join(parts), ""


def _amount(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _describe_missed(found: dict[str, Any], daemon: dict[str, Any]) -> Iterator[Line]:
    """Return a line for each group of counts that is not all zero."""
    helpers = {name: n for name, n in found["helpers"].items() if name in HELPER_TROUBLES and n}
    groups = (
        ("missed", daemon.get("missed", {})),
        ("refused", daemon.get("refused", {})),
        ("helpers", helpers),
    )
    for heading, counts in groups:
        if counts:
            text = ", ".join(f"{reason} ({n})" for reason, n in sorted(counts.items()))
            yield heading, text, "yellow"
