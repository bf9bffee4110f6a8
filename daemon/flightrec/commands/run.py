"""``flightrec run -- CMD``: record what an agent does, and be CMD in everything else."""

import argparse
import contextlib
import errno
import os
import resource
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from flightrec.agent_injection import HookFolder, Start, with_hooks
from flightrec.agent_session import (
    ROOT_VARIABLE,
    SESSION_VARIABLE,
    AgentSession,
    open_session,
    place_preload,
    session_environment,
)
from flightrec.client import connect
from flightrec.commands.init import find_command
from flightrec.config import load_settings
from flightrec.connection import Connection
from flightrec.errors import ExitCode, FlightrecError
from flightrec.hook_files import Person
from flightrec.hook_parts import Setup
from flightrec.lifecycle import end_with_parent
from flightrec.paths import Paths, find_paths
from flightrec.places import find_place
from flightrec.rules import Status
from flightrec.shimmed_programs import RUNTIMES, SHELLS, shimmed_programs
from flightrec.store import Store
from flightrec.unwrap import SHELL_AGENTS
from flightrec.wire import SessionEnded

HELP = "run an agent or a command and record what it does"

EXAMPLES = (
    ("flightrec run -- claude", "record every command of this session of Claude Code"),
    ("flightrec run --quiet -- codex exec 'fix the tests'", "the same without a summary"),
    ("flightrec run -- make test", "record one command"),
)

COMMIT_LIMIT_S = 2.0
"""How long the end waits for what is still on its way to the database."""

SETTLING_ROUNDS = 4
"""Answers of the daemon after which it has read what was sent before the first question."""

NOT_FOUND = 127
NOT_EXECUTABLE = 126
"""Statuses of a command that could not be started, as a shell has them."""

_FROM_KERNEL = 128
"""``si_code`` of a signal from the terminal, which the whole group gets anyway."""

_PASSED_ON = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)


@dataclass(frozen=True, slots=True)
class Summary:
    """What one session came to; ``corrections`` are a person's, which wait for his approval."""

    runs: int
    failures: int
    recoveries: int
    rules: int
    corrections: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("--quiet", action="store_true", help="say nothing at the end")
    parser.add_argument(
        "--no-hooks", action="store_true", help="give the agent no hooks for this run"
    )
    parser.add_argument(
        "--preload",
        action="store_true",
        help="catch /bin/sh -c by full path, too, with a library in LD_PRELOAD",
    )
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- CMD", help="the command with its words"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return its exit status, or end by the signal that ended it."""
    words = arguments.command[arguments.command[:1] == ["--"] :]
    if not words:
        raise FlightrecError("say which command: flightrec run -- CMD", ExitCode.USAGE)
    if SESSION_VARIABLE in os.environ:
        _say("this is a recorded session already", quiet=arguments.quiet)
        return _become(words)
    if arguments.preload:
        place_preload(find_paths())  # without it, nothing is run
    with contextlib.ExitStack() as stack:
        try:
            paths, command = find_paths(), find_command()
            with contextlib.closing(connect(paths, autostart=True)) as connection:
                _tell_folder(connection)
            names = _stand_ins(paths)
            agent = _agent_name(words)
            preload = arguments.preload or _preloads_by_settings(
                paths, agent, quiet=arguments.quiet
            )
            session = stack.enter_context(
                open_session(paths, agent, names, os.environ.get("PATH", ""), command)
            )
            session = replace(session, preload=preload)
        except (FlightrecError, OSError) as error:
            _say(f"nothing is recorded: {error}", quiet=arguments.quiet)
            return _become(words)
        start, begun_us = Start(tuple(words), dict(os.environ)), time.time_ns() // 1000
        if not arguments.no_hooks:
            start = _with_hooks(start, session, paths)
        status = _run_agent(start, names, session)
        _conclude(paths, session, begun_us, quiet=arguments.quiet)
    return _end_like(status)


def _say(line: str, *, quiet: bool) -> None:
    if not quiet:
        print(f"flightrec: {line}", file=sys.stderr)


def _tell_folder(connection: Connection) -> None:
    """Say where Claude Code has its memory: the daemon may have been started elsewhere."""
    folder = os.environ.get("CLAUDE_CONFIG_DIR", "")
    if folder.startswith("/"):
        with contextlib.suppress(FlightrecError):  # as good as can be: the run matters more
            as_text = os.fsencode(folder).decode("latin-1")
            connection.ask("claude_folder", {"folder": as_text}, COMMIT_LIMIT_S)


def _stand_ins(paths: Paths) -> frozenset[str]:
    """Return the programs that get one, by the person's settings."""
    wanted = load_settings(paths.config).shims
    return shimmed_programs(wanted.also, wanted.never)


def _preloads_by_settings(paths: Paths, agent: str, *, quiet: bool) -> bool:
    """Whether the settings want the library for ``LD_PRELOAD``, and it could be placed.

    Not where a model's commands are seen without it: what such an agent gives to /bin/sh is its
    own work.
    """
    if agent in SHELL_AGENTS or not load_settings(paths.config).agents.preload:
        return False
    try:
        place_preload(paths)
    except FlightrecError as error:
        _say(f"preload is left out: {error}", quiet=quiet)
        return False
    return True


def _agent_name(words: Sequence[str]) -> str:
    """Return who is running: ``codex``, also in ``npx codex`` and ``node /opt/codex.js``."""
    name = Path(words[0]).name
    if name not in RUNTIMES:
        return name
    for word in words[1:]:
        if word in ("-c", "-e"):
            return name
        if not word.startswith("-") and word not in ("run", "exec"):
            return Path(word).name
    return name


# --- starting ------------------------------------------------------------------------------------


def _with_hooks(start: Start, session: AgentSession, paths: Paths) -> Start:
    """Give an agent hooks for this run where it takes any; without them it runs as well."""
    folder = HookFolder(session.shims / ".hooks", Setup(session.placed.folder))
    try:
        if not load_settings(paths.config).agents.hooks:
            return start
        root = Path(find_place(str(Path.cwd())).worktree)
        return with_hooks(start, folder, Person(paths, os.environ), root)
    except (FlightrecError, OSError):
        return start


def _become(words: list[str]) -> int:
    """Be the command, unrecorded; return only where there is none."""
    _restore_signals()
    return _execute(shutil.which(words[0]) or words[0], words, dict(os.environ))


def _execute(program: str, words: list[str], environment: dict[str, str]) -> int:
    """Execute as a shell would; return the status where that is not possible."""
    try:
        os.execve(program, words, environment)  # noqa: S606 - becoming CMD is the purpose
    except OSError as error:
        if error.errno == errno.ENOEXEC:  # a script without #!
            os.execve("/bin/sh", ["sh", program, *words[1:]], environment)  # noqa: S606 - as above
        missing = error.errno == errno.ENOENT
        reason = "command not found" if missing else error.strerror
        print(f"flightrec: {words[0]}: {reason}", file=sys.stderr)
        return NOT_FOUND if missing else NOT_EXECUTABLE


def _restore_signals() -> None:
    """Undo what Python has changed for itself, which an exec would hand on."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _run_agent(start: Start, names: frozenset[str], session: AgentSession) -> int:
    """Run the command to its end; return its status as ``waitpid`` gives it."""
    watched = {*_PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _be_agent(start, names, session, before)
    return _wait(pid, watched)


def _be_agent(
    start: Start, names: frozenset[str], session: AgentSession, mask: Iterable[int]
) -> NoReturn:
    """In the child: become the command, through the helper where it is itself to be recorded."""
    status = NOT_EXECUTABLE
    try:
        end_with_parent(signal.SIGKILL)  # whoever kills us so means the command
        words = list(start.words)
        environment = session_environment(start.environment, session)
        environment[ROOT_VARIABLE] = str(os.getpid())
        found = shutil.which(words[0], path=os.environ.get("PATH")) or words[0]
        role = _recorded_as(words, names)
        _restore_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if role:
            helper = str(session.placed.helper)
            status = _execute(helper, [helper, *role, found, *words], environment)
        status = _execute(found, words, environment)
    finally:
        sys.stderr.flush()
        os._exit(status)


def _recorded_as(words: Sequence[str], names: frozenset[str]) -> tuple[str, ...]:
    """Return the helper's role for a command that is recorded itself; empty for an agent."""
    name = Path(words[0]).name
    if name in SHELLS:
        return ("sh", "--root")
    return ("shim",) if name in names - RUNTIMES else ()


# --- waiting -------------------------------------------------------------------------------------


def _wait(pid: int, watched: set[signal.Signals]) -> int:
    """Wait for the command and hand signals on to it, those from a terminal excepted."""
    while True:
        info = signal.sigwaitinfo(watched)
        if info.si_signo != signal.SIGCHLD:
            if info.si_code != _FROM_KERNEL:
                os.kill(pid, info.si_signo)
            continue
        ended, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if ended != pid:
            continue
        if not os.WIFSTOPPED(status):
            return status
        os.kill(os.getpid(), signal.SIGSTOP)  # a shell with job control may wait for us
        os.kill(pid, signal.SIGCONT)


def _end_like(status: int) -> int:
    """Return the exit status, or end by the same signal, without another core."""
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    return 128 + number


# --- the end -------------------------------------------------------------------------------------


def _conclude(paths: Paths, session: AgentSession, begun_us: int, *, quiet: bool) -> None:
    """Wait until everything is stored, and say what it came to."""
    try:
        _settle(paths, session)
        with contextlib.closing(Store.open_read_only(paths.database)) as store:
            summary = summarise(store.connection, session.id, begun_us)
    except (FlightrecError, sqlite3.Error, OSError) as error:
        _say(f"no summary: {error}", quiet=quiet)
        return
    _say(describe(summary), quiet=quiet)


def _settle(paths: Paths, session: AgentSession) -> None:
    """End the session and wait, not for ever, until the daemon has nothing more to store."""
    deadline = time.monotonic() + COMMIT_LIMIT_S
    with contextlib.closing(connect(paths, autostart=False)) as connection:
        for _ in range(SETTLING_ROUNDS):
            connection.ask("ping", {}, COMMIT_LIMIT_S)
        connection.tell(SessionEnded(session.id, time.time_ns() // 1000))
        while _is_behind(connection) and time.monotonic() < deadline:
            time.sleep(0.01)


def _is_behind(connection: Connection) -> bool:
    return bool(connection.ask("status", {}, COMMIT_LIMIT_S)["waiting"])


def summarise(connection: sqlite3.Connection, session: bytes, begun_us: int) -> Summary:
    """Count what is stored of a session; parts of a command are not commands.

    A correction may be about the session that this one goes on with: those since it began count.
    """
    runs, failures, recoveries = connection.execute(
        "SELECT count(*) FILTER (WHERE runs.parent IS NULL), count(failures.id),"
        " count(recoveries.id)"
        " FROM runs JOIN sessions ON sessions.id = runs.session_id"
        " LEFT JOIN failures ON failures.run_id = runs.id AND runs.parent IS NULL"
        " LEFT JOIN recoveries ON recoveries.failure_id = failures.id"
        " WHERE sessions.session = ?",
        (session,),
    ).fetchone()
    (rules,) = connection.execute(
        "SELECT count(DISTINCT rule_id) FROM evidence WHERE kind = 'first' AND session = ?",
        (session,),
    ).fetchone()
    (corrections,) = connection.execute(
        "SELECT count(*) FROM rules WHERE id LIKE 'COR-%' AND status = ? AND created_us >= ?",
        (Status.CANDIDATE.value, begun_us),
    ).fetchone()
    return Summary(runs, failures, recoveries, rules, corrections)


def describe(summary: Summary) -> str:
    """Return the line that people read."""
    parts = (
        _count(summary.runs, "run", "runs"),
        _count(summary.failures, "failure", "failures"),
        _count(summary.recoveries, "recovery", "recoveries"),
        _count(summary.rules, "new rule", "new rules"),
    )
    waiting = _count(summary.corrections, "correction", "corrections")
    to_approve = f"; {waiting} to approve: flightrec rules" if summary.corrections else ""
    return ", ".join(parts) + to_approve


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
