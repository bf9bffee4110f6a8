"""Rules as a file: to give to others, and to take theirs in."""

import argparse
import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from flightrec.bundle import (
    BYTES_MAX,
    NAME,
    BundledRule,
    Fate,
    Judged,
    judge,
    make_bundle,
    read_bundle,
)
from flightrec.client import request
from flightrec.commands.rules import open_rulebook
from flightrec.commands.terminal import ask, colour, one_line, plural
from flightrec.config import load_settings
from flightrec.errors import ExitCode, FlightrecError
from flightrec.paths import find_paths
from flightrec.redact import Redactor
from flightrec.rule_text import failing_text, working_text

HELP = "give rules to others as a file, or take theirs in to look at"

EXAMPLES = (
    ("flightrec bundle export team.json", "proved rules that hold in every project"),
    ("flightrec bundle import team.json", "show them, ask, and keep them in quarantine"),
    ("flightrec bundle import --dry-run team.json", "only show them"),
    ("flightrec rules approve ERR-20261130-007", "only then is an imported rule hinted"),
)

PART_BYTES = 128 * 1024
"""Of a bundle in one request: a frame takes 256 KiB."""

LOOKS = {Fate.NEW: "green", Fate.KNOWN: "dim", Fate.LEFT_OUT: "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    acts = parser.add_subparsers(title="what to do", metavar="ACT", required=True)
    exporting = acts.add_parser("export", help="write the rules that may leave this machine")
    exporting.set_defaults(act=_export)
    exporting.add_argument("file", help="where to; - is standard output")
    importing = acts.add_parser("import", help="take in rules, for you to approve")
    importing.set_defaults(act=_import)
    importing.add_argument("file", help="where from; - is standard input")
    importing.add_argument("--name", help="what to call it; otherwise the file's name")
    importing.add_argument("--dry-run", action="store_true", help="only show what is in it")
    importing.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    status: int = arguments.act(arguments)
    return status


def _redactor() -> Redactor:
    settings = load_settings(find_paths().config).redaction
    return Redactor(settings.allow, settings.deny)


def _export(arguments: argparse.Namespace) -> int:
    with open_rulebook() as rulebook:
        content = make_bundle(rulebook.rules(), _redactor())
    if arguments.file == "-":
        sys.stdout.buffer.write(content)
        return ExitCode.OK
    _write(Path(arguments.file), content)
    print(f"{one_line(arguments.file)}: {plural(len(read_bundle(content)), 'rule')}")
    return ExitCode.OK


def _write(path: Path, content: bytes) -> None:
    """Make a new file; one that is there may be somebody's."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        raise FlightrecError(f"cannot write {one_line(str(path))}: {error.strerror}") from None


def _import(arguments: argparse.Namespace) -> int:
    name = arguments.name or ("stdin" if arguments.file == "-" else Path(arguments.file).stem)
    if not NAME.fullmatch(name):
        raise FlightrecError(
            "a bundle's name has letters, digits, dots and dashes; give one with --name",
            ExitCode.USAGE,
        )
    rules = read_bundle(_read(arguments.file))
    with open_rulebook() as rulebook:
        judged = list(judge(rules, rulebook.knows, _redactor()))
    for one in judged:
        print(_show(one))
    counts = Counter(one.fate for one in judged)
    known, left_out = counts[Fate.KNOWN], counts[Fate.LEFT_OUT]
    print(f"{plural(counts[Fate.NEW], 'new rule')}, {known} known, {left_out} left out.")
    if arguments.dry_run or not counts[Fate.NEW]:
        return ExitCode.OK
    if not ask("Keep the new ones, in quarantine?", yes=arguments.yes):
        print("Nothing was imported.")
        return ExitCode.TROUBLE
    new = [rule for rule, one in zip(rules, judged, strict=True) if one.fate is Fate.NEW]
    _send(name, new)
    return ExitCode.OK


def _read(name: str) -> bytes:
    try:
        with contextlib.ExitStack() as opened:
            stream: BinaryIO = sys.stdin.buffer
            if name != "-":
                stream = opened.enter_context(Path(name).open("rb"))
            return stream.read(BYTES_MAX + 1)
    except OSError as error:
        raise FlightrecError(f"cannot read {one_line(name)}: {error.strerror}") from None


def _show(one: Judged) -> str:
    failing, working = failing_text(one.trigger), working_text(one.trigger, one.remedy)
    kind = f"  [{one.trigger.kind}]" if one.trigger.kind else ""
    reason = f"  ({one.reason})" if one.reason else ""
    line = f"{one.fate.value} {one_line(failing, 200)} → {one_line(working, 400)}{kind}{reason}"
    return colour(line, LOOKS[one.fate])


def _send(name: str, rules: Sequence[BundledRule]) -> None:
    entered: list[str] = []
    for part in _parts(rules):
        answer = request(find_paths(), "bundle_import", name=name, rules=msgspec.to_builtins(part))
        entered += answer["entered"]
    print(f"{plural(len(entered), 'rule')} imported; none is hinted before you approve it:")
    if entered:
        print(f"  flightrec rules list --status candidate; flightrec rules approve {entered[0]}")


def _parts(rules: Sequence[BundledRule]) -> Iterator[list[BundledRule]]:
    """Yield the rules in parts that one request takes."""
    part: list[BundledRule] = []
    size = 0
    for rule in rules:
        length = len(msgspec.json.encode(rule))
        if part and size + length > PART_BYTES:
            yield part
            part, size = [], 0
        part.append(rule)
        size += length
    if part:
        yield part
