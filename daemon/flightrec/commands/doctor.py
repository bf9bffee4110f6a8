"""Find out what is wrong, and say what to do about it."""

import argparse
import contextlib
import enum
import os
import secrets
import shutil
import sqlite3
import stat
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from flightrec import __version__
from flightrec.client import request
from flightrec.commands.init import find_command, shell_code
from flightrec.commands.terminal import colour, now_us, one_line, plural, print_items
from flightrec.config import Level, load_settings
from flightrec.errors import ExitCode, FlightrecError
from flightrec.export_plan import View, plan
from flightrec.installation import data_folder, find_lines, find_rc_files, is_current
from flightrec.lifecycle import check_person
from flightrec.memory_file import preview
from flightrec.missed import HELPER_TROUBLES, read_helper_counters
from flightrec.paths import HELPER_NAME, Paths, find_paths, find_resource
from flightrec.rule_rows import damaged_rules
from flightrec.store import RunFilter, Store
from flightrec.typed_shell import TypedShell, find_shells

HELP = "find out what is wrong, with a command typed into a real shell"

EXAMPLES = (
    ("flightrec doctor", "the exit status is 1 where something is wrong"),
    ("flightrec doctor --full", "also read every row of the database"),
    ("flightrec doctor claude", "whether what this agent runs will be recorded"),
    ("flightrec doctor --json", "for a program"),
)

LEAST_FREE = 50_000_000
"""Bytes of free disk below which recording will soon stop."""

CANARY_PATIENCE_S = 20.0

LEAST_VERSIONS = {"bash": (5, 1), "zsh": (5, 3)}


class State(enum.StrEnum):
    """How bad it is. A note is nothing wrong, but good to know."""

    OK = "ok"
    NOTE = "note"
    TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, how it is, and what to do about it."""

    check: str
    state: State
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Patient:
    """What the checks look at. ``full`` asks for those that take long."""

    paths: Paths
    full: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument(
        "agent", nargs="?", metavar="AGENT", help="an agent's program, hooks, shells, memory"
    )
    parser.add_argument("--full", action="store_true", help="read every row of the database")
    parser.add_argument("--no-canary", action="store_true", help="type nothing into any shell")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Make all checks; print each finding as soon as it is there."""
    findings = []
    if arguments.agent is None:
        found = examine(full=arguments.full, canary=not arguments.no_canary)
    else:
        found = _examine_agent(arguments.agent)
    for finding in found:
        findings.append(finding)
        if not arguments.json:
            print(show(finding), flush=True)
    if arguments.json:
        print_items([asdict(finding) for finding in findings])
    troubles = sum(finding.state is State.TROUBLE for finding in findings)
    if not arguments.json:
        print(plural(troubles, "trouble") if troubles else "Nothing is wrong.")
    return ExitCode.TROUBLE if troubles else ExitCode.OK


def _examine_agent(agent: str) -> Iterator[Finding]:
    """Yield what checks of one agent find. Raises FlightrecError for one that is not known."""
    from flightrec.agent_doctor import AGENTS_KNOWN, examine_agent  # noqa: PLC0415 - it needs us
    from flightrec.hook_files import Person  # noqa: PLC0415 - slow to import

    if agent not in AGENTS_KNOWN:
        names = ", ".join(AGENTS_KNOWN)
        raise FlightrecError(f"{agent!r} is none of: {names}", ExitCode.USAGE)
    check_person()
    for found in examine_agent(agent, Person(find_paths(), os.environ)):
        yield Finding(*found)


def show(finding: Finding) -> str:
    """Return a finding as a line for a person."""
    look = {State.OK: "green", State.NOTE: "yellow", State.TROUBLE: "red"}[finding.state]
    text = finding.text + (f" — {finding.advice}" if finding.advice else "")
    return f"{colour(f'{finding.state.value:8}', look)}{finding.check:14}{one_line(text)}"


def examine(*, full: bool, canary: bool) -> Iterator[Finding]:
    """Yield what each check finds; one that cannot go on is itself a finding."""
    try:
        check_person()
        patient = Patient(find_paths(), full)
    except FlightrecError as error:
        yield Finding("home", State.TROUBLE, str(error))
        return
    yield Finding("home", State.OK, f"{patient.paths.home}, socket {patient.paths.socket}")
    for name, check in (*CHECKS, *(CANARIES if canary else ())):
        try:
            for state, text, advice in check(patient):
                yield Finding(name, state, text, advice)
        except FlightrecError as error:
            yield Finding(name, State.TROUBLE, str(error))


Found = Iterator[tuple[State, str, str]]
"""State, text and advice."""


# --- files -----------------------------------------------------------------------------------


def check_folders(patient: Patient) -> Found:
    """Look for folders and files that others can read, or that are not mine."""
    state = patient.paths.state
    if not state.exists():
        yield State.OK, f"{state} is not there yet: nothing was recorded", ""
        return
    private = [state, patient.paths.run, patient.paths.database, patient.paths.log]
    private += [Path(f"{patient.paths.database}{suffix}") for suffix in ("-wal", "-shm")]
    private += [state / "backups", *state.glob("*.corrupt-*")]
    wrong = False
    for path in private:
        for text, advice in _what_is_wrong(path):
            wrong = True
            yield State.TROUBLE, text, advice
    if not wrong:
        yield State.OK, f"{state} is yours alone", ""


def _what_is_wrong(path: Path) -> Iterator[tuple[str, str]]:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        yield f"{path} is a link", "move it aside"
    elif found.st_uid != os.geteuid():
        yield f"{path} belongs to uid {found.st_uid}", "move it aside"
    elif found.st_mode & 0o077:
        mode = "700" if path.is_dir() else "600"
        yield f"{path} is open to other users", f"run: chmod {mode} {path}"


def check_settings(patient: Patient) -> Found:
    """Look for a mistake in the settings, which stops recording."""
    settings = load_settings(patient.paths.config)
    where = str(patient.paths.config) if patient.paths.config.exists() else "all defaults"
    yield State.OK, f"{where}; level {settings.capture.level.value}", ""


def check_helper(_patient: Patient) -> Found:
    """Look whether the helper is there, runs here, and is of this release."""
    helper = find_resource(HELPER_NAME)
    try:
        done = subprocess.run(
            [helper, "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield State.TROUBLE, f"{helper} does not run: {error}", "install flightrec again"
        return
    version = done.stdout.strip().removeprefix("flightrec-helper ")
    if version != __version__:
        yield State.TROUBLE, f"{helper} is of version {version or '?'}", "install flightrec again"
    elif is_dynamic(helper.read_bytes()):
        yield State.NOTE, f"{helper} is linked dynamically: slower to start", "build with musl-gcc"
    else:
        yield State.OK, f"{helper}, static", ""


def is_dynamic(program: bytes) -> bool:
    """Whether this ELF file asks for an interpreter, as one that was not linked statically does."""
    if program[:4] != b"\x7fELF" or program[4] != 2:
        return False
    offset, size, count = (
        *struct.unpack_from("<Q", program, 32),
        *struct.unpack_from("<HH", program, 54),
    )
    kinds = (struct.unpack_from("<I", program, offset + size * n)[0] for n in range(count))
    return 3 in kinds  # PT_INTERP


def check_installation(patient: Patient) -> Found:
    """Look whether new shells will be recorded, and by this release."""
    home = patient.paths.home
    lines = find_lines(home, os.environ)
    if not lines:
        by_hand = [
            rc.location.path
            for rc in find_rc_files(home, os.environ)
            if _mentions(rc.location.path)
        ]
        if by_hand:
            yield State.OK, f"loaded by {', '.join(map(str, by_hand))}", ""
        else:
            yield State.NOTE, "new shells are not recorded", "run: flightrec install"
        return
    if not (data_folder(home) / HELPER_NAME).exists():
        yield State.TROUBLE, f"nothing is left in {data_folder(home)}", "run: flightrec install"
    elif not is_current(home):
        yield State.TROUBLE, f"{data_folder(home)} is of another release", "run: flightrec install"
    else:
        yield State.OK, f"loaded by {', '.join(map(str, lines))}", ""


def _mentions(path: Path) -> bool:
    try:
        return b"flightrec" in path.read_bytes()
    except OSError:
        return False


def check_shells(_patient: Patient) -> Found:
    """Look whether the shells here are new enough."""
    for shell, least in LEAST_VERSIONS.items():
        if shutil.which(shell) is None:
            continue
        words = [shell, "-c", 'printf %s "${BASH_VERSION-}${ZSH_VERSION-}"']
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
        parts = done.stdout.split(".")[:2]
        version = tuple(int(part) for part in parts if part.isdigit())
        wanted = ".".join(map(str, least))
        if version < least:
            yield State.NOTE, f"{shell} {done.stdout} is too old ({wanted} is needed)", ""
        else:
            yield State.OK, f"{shell} {done.stdout}", ""


def check_hooks(patient: Patient) -> Found:
    """Look whether the hooks in agents' settings are whole, and call this release."""
    from flightrec.hook_files import Person, installed_targets, state_of  # noqa: PLC0415 - slow

    person = Person(patient.paths, os.environ)
    targets = list(installed_targets(person))
    for target in targets:
        if state_of(target, person) != "installed":
            advice = f"run: flightrec hook install {target.client.name}"
            yield State.TROUBLE, f"{target.location.path} is not as installed", advice
    if targets and not is_current(patient.paths.home):
        advice = "run: flightrec hook install all"
        yield State.TROUBLE, f"{data_folder(patient.paths.home)} is of another release", advice
    yield State.OK, f"{plural(len(targets), 'file')} of agents with hooks", ""


# --- what runs and what is stored ------------------------------------------------------------


def check_daemon(patient: Patient) -> Found:
    """Look whether the daemon answers (it is started where it does not run) and is well."""
    status = request(patient.paths, "status", timeout_s=10)
    yield State.OK, f"version {status['version']}, pid {status['pid']} answers", ""
    if status.get("trouble"):
        yield State.TROUBLE, f"nothing can be stored: {status['trouble']}", ""
    if status.get("paused"):
        yield State.NOTE, "paused: nothing is recorded", "run: flightrec resume"
    for text in status.get("notes", ()):
        yield State.NOTE, text, ""
    for reason, count in status.get("refused", {}).items():
        yield State.NOTE, f"{count} connections were closed: {reason}", ""


def check_database(patient: Patient) -> Found:
    """Look for damage."""
    database = patient.paths.database
    with contextlib.closing(Store.open_read_only(database)) as store:
        command = "integrity_check" if patient.full else "quick_check"
        try:
            (answer,) = store.connection.execute(f"PRAGMA {command}(1)").fetchone()
            damaged = _count_damaged(store) if patient.full else 0
        except sqlite3.DatabaseError as error:
            answer, damaged = str(error), 0
        runs = store.counts().runs if answer == "ok" else 0
    advice = "run: flightrec daemon stop; the next start sets it aside"
    if answer != "ok":
        yield State.TROUBLE, f"{database} is damaged: {answer}", advice
    elif damaged:
        yield State.TROUBLE, f"{damaged} rows of {database} differ from their checksum", ""
    else:
        yield State.OK, f"{plural(runs, 'run')}, no damage found", ""
    for path in sorted(patient.paths.state.glob("*.corrupt-*[0-9Z]")):
        yield State.NOTE, f"a damaged database is kept as {path}", "delete it when you like"


def _count_damaged(store: Store) -> int:
    return store.damaged_rows() + damaged_rules(store.connection)


def check_disk(patient: Patient) -> Found:
    """Look whether there is room."""
    folder = next(
        path for path in (patient.paths.state, *patient.paths.state.parents) if path.exists()
    )
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    text = f"{free / 1_000_000:.0f} MB free"
    if not os.access(folder, os.W_OK):
        yield State.TROUBLE, f"{folder} cannot be written", ""
    elif free < LEAST_FREE:
        yield State.TROUBLE, f"only {text}", "make room; recording stops when the disk is full"
    else:
        yield State.OK, text, ""


def check_missed(patient: Patient) -> Found:
    """Look at what helpers could not deliver."""
    counted = read_helper_counters(patient.paths.counters)
    troubles = {name: n for name, n in counted.items() if n and name in HELPER_TROUBLES}
    if troubles:
        text = ", ".join(f"{count} {name}" for name, count in troubles.items())
        yield State.NOTE, f"since the beginning: {text}", ""
    else:
        yield State.OK, "helpers delivered everything", ""


def check_memory_files(patient: Patient) -> Found:
    """Look for memory files that cannot be written as they should be."""
    with contextlib.closing(Store.open_read_only(patient.paths.database)) as store:
        files = list(plan(View.read(store.connection), patient.paths.home, os.environ))
    for file in files:
        try:
            preview(file.location, file.edit)
        except FlightrecError as error:
            yield State.TROUBLE, str(error), ""
    yield State.OK, f"{plural(len(files), 'file')} to keep up to date", ""


# --- the canary ------------------------------------------------------------------------------


def check_canary(patient: Patient) -> Found:
    """Type a command into each real shell, and see whether it arrives in the database."""
    if request(patient.paths, "status", timeout_s=10).get("paused"):
        yield State.NOTE, "not typed: recording is paused", "run: flightrec resume"
        return
    shells = find_shells()
    if not shells:
        yield State.NOTE, "neither bash nor zsh is installed", ""
    for shell in shells:
        took_s = _type_canary(patient, shell)
        if took_s is None:
            text = f"a command typed into {shell} did not arrive within {CANARY_PATIENCE_S:.0f} s"
            yield State.TROUBLE, text, f"see {patient.paths.log}, and flightrec status"
        else:
            yield State.OK, f"a command typed into {shell} arrived after {took_s * 1000:.0f} ms", ""


def _type_canary(patient: Patient, shell: str) -> float | None:
    """Return how long it took, or None where it never came.

    The command does nothing and succeeds, so that there is nothing to learn from it.
    """
    canary = f"flightrec-canary-{secrets.token_hex(8)}"
    began_us = now_us()
    typed = TypedShell(shell, _canary_rc(patient.paths, shell), os.environ)
    with contextlib.closing(typed):
        began_s = time.monotonic()
        typed.type(f": {canary}")
        while not _has_arrived(patient.paths, canary, began_us):
            if time.monotonic() - began_s > CANARY_PATIENCE_S:
                return None
            time.sleep(0.05)
        return time.monotonic() - began_s


def _canary_rc(paths: Paths, shell: str) -> str:
    """Load what the person's shells load: the installed copy, else this package's."""
    installed = data_folder(paths.home)
    if (installed / f"init.{shell}").exists() and find_lines(paths.home, os.environ):
        return shell_code(installed / HELPER_NAME, find_command(), installed / f"flightrec.{shell}")
    return shell_code(
        find_resource(HELPER_NAME), find_command(), find_resource(f"flightrec.{shell}")
    )


def _has_arrived(paths: Paths, canary: str, began_us: int) -> bool:
    names_only = load_settings(paths.config).capture.level is Level.METADATA
    with contextlib.closing(Store.open_read_only(paths.database)) as store:
        runs = store.recent_runs(50, RunFilter(since_us=began_us))
    return any(run.command == ":" if names_only else canary in run.command for run in runs)


CHECKS: tuple[tuple[str, Callable[[Patient], Found]], ...] = (
    ("folders", check_folders),
    ("settings", check_settings),
    ("helper", check_helper),
    ("installation", check_installation),
    ("hooks", check_hooks),
    ("shells", check_shells),
    ("disk", check_disk),
    ("daemon", check_daemon),
    ("database", check_database),
    ("missed", check_missed),
    ("memory files", check_memory_files),
)

CANARIES: tuple[tuple[str, Callable[[Patient], Found]], ...] = (("canary", check_canary),)
