"""``flightrec daemon``: run, start, stop or look at the background process."""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import sys

from flightrec import __version__
from flightrec.client import replace_older
from flightrec.connection import HELLO_TIMEOUT_S, Connection
from flightrec.daemon_log import log_to
from flightrec.errors import ExitCode, FlightrecError, NoDaemonError
from flightrec.lifecycle import (
    DEBUGGABLE,
    READY,
    RUNNING,
    check_person,
    close_inherited,
    detach,
    forbid_inspection,
    let_go,
    make_folders,
    raise_file_limit,
    start_daemon,
    wait_for_end,
)
from flightrec.ownership import Ownership, owner_pid
from flightrec.paths import Paths, find_paths
from flightrec.socket_activation import adopt_socket, first_free_descriptor, tell_systemd

HELP = "start, stop or look at the background process"

EXAMPLES = (
    ("flightrec daemon start", "start it, unless it runs already; shells do so by themselves"),
    ("flightrec daemon stop", "let it store what it has, and end it"),
    ("flightrec daemon status", "is it there, which version, since when"),
    ("flightrec daemon run", "run it here until ^C, for a service manager or to watch it"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="run|start|stop|status")
    run_parser = verbs.add_parser("run", help="run it in this process")
    run_parser.add_argument("--detach", action="store_true", help="go on in the background")
    run_parser.add_argument(
        "--debuggable",
        action="store_true",
        help="allow debuggers and core dumps, which may then hold commands as typed",
    )
    verbs.add_parser("start", help="start it in the background")
    verbs.add_parser("stop", help="end it once everything is stored")
    status_parser = verbs.add_parser("status", help="say whether it runs")
    status_parser.add_argument("--json", action="store_true", help="as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says; return the exit status."""
    os.umask(0o077)
    match arguments.verb:
        case "run":
            return run_daemon(find_paths(), arguments.detach, arguments.debuggable)
        case "start":
            return start(find_paths())
        case "stop":
            return stop(find_paths())
        case _:
            return status(find_paths(), as_json=arguments.json)


def start(paths: Paths) -> int:
    """Start a daemon in the background; an older one is replaced."""
    with contextlib.suppress(NoDaemonError), contextlib.closing(Connection(paths)) as running:
        if not running.is_older:
            print(f"flightrec daemon {running.version} runs already, pid {running.pid}")
            return ExitCode.OK
        replace_older(running)
    start_daemon(paths)
    with contextlib.closing(Connection(paths)) as started:
        print(f"flightrec daemon {started.version} started, pid {started.pid}")
    return ExitCode.OK


def stop(paths: Paths) -> int:
    """End the daemon, and return when it is gone."""
    try:
        with contextlib.closing(Connection(paths)) as running:
            running.ask("stop", {}, HELLO_TIMEOUT_S)
    except NoDaemonError:
        pid = owner_pid(paths)
        if pid is not None:
            raise FlightrecError(
                f"the daemon (pid {pid}) does not answer; end it with: kill -9 {pid}"
            ) from None
        print("no flightrec daemon runs")
        return ExitCode.OK
    wait_for_end(running.pid)
    print(f"flightrec daemon ended, pid {running.pid}")
    return ExitCode.OK


def status(paths: Paths, *, as_json: bool) -> int:
    """Say whether a daemon answers."""
    with contextlib.closing(Connection(paths)) as running:
        found = running.ask("ping", {}, HELLO_TIMEOUT_S)
    if as_json:
        print(json.dumps({"schema": 1, "items": [found]}))
    else:
        print(f"flightrec daemon {found['version']} runs, pid {found['pid']}")
    return ExitCode.OK


def run_daemon(paths: Paths, is_detached: bool, is_debuggable: bool) -> int:  # noqa: FBT001 - as parsed
    """Be the daemon, unless there is one."""
    check_person()
    make_folders(paths)
    close_inherited(first_free_descriptor())
    if is_detached:
        detach(paths.state)
    if is_debuggable:
        os.environ[DEBUGGABLE] = "1"
    forbid_inspection()
    ownership = Ownership.take(paths)
    if ownership is None:
        print(f"{RUNNING} pid {owner_pid(paths)}", flush=True)
        return ExitCode.OK
    return serve(paths, ownership, is_detached=is_detached)


def serve(paths: Paths, ownership: Ownership, *, is_detached: bool) -> int:
    """Serve until told to end."""
    from flightrec.server import Daemon  # noqa: PLC0415 - a loser of the race leaves sooner

    log_to(paths.log)
    log = logging.getLogger(__name__)
    log.info("flightrec %s begins, pid %d", __version__, os.getpid())
    if not ownership.locked:
        log.warning("this file system has no locks: take care to run one daemon only")
    raise_file_limit()

    def ready() -> None:
        print(f"{READY} pid {os.getpid()}", flush=True)
        tell_systemd("READY=1")
        if is_detached:
            let_go()

    try:
        asyncio.run(Daemon(paths, ownership, adopt_socket(paths.socket)).serve(ready))
    except Exception:
        log.exception("the daemon ends")
        raise
    finally:
        ownership.release()
    sys.stdout.flush()
    return ExitCode.OK
