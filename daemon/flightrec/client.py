"""Ask the daemon something, and start it where it is missing."""

import contextlib
from typing import Any

from flightrec.connection import HELLO_TIMEOUT_S, Connection
from flightrec.errors import NoDaemonError
from flightrec.lifecycle import start_daemon, wait_for_end
from flightrec.paths import Paths

REQUEST_TIMEOUT_S = 60.0
"""For the whole answer: forgetting rewrites the database."""


def request(
    paths: Paths,
    verb: str,
    *,
    autostart: bool = True,
    timeout_s: float = REQUEST_TIMEOUT_S,
    **arguments: Any,  # noqa: ANN401 - whatever JSON can hold
) -> dict[str, Any]:
    """Return the daemon's answer to ``verb``.

    A missing daemon is started first, an older one replaced, unless ``autostart`` is false. Raises
    NoDaemonError where nobody answers, FlightrecError with the daemon's own line where it refuses.
    """
    with contextlib.closing(connect(paths, autostart=autostart)) as connection:
        return connection.ask(verb, arguments, timeout_s)


def connect(paths: Paths, *, autostart: bool) -> Connection:
    """Return a connection whose daemon has said hello. Raises NoDaemonError, FlightrecError."""
    try:
        connection = Connection(paths)
    except NoDaemonError:
        if not autostart:
            raise
        start_daemon(paths)
        return Connection(paths)
    if not (autostart and connection.is_older):
        return connection
    with contextlib.closing(connection):
        replace_older(connection)
    start_daemon(paths)
    return Connection(paths)


def replace_older(connection: Connection) -> None:
    """Ask a daemon of an earlier release to store what it has and go; return when it is gone."""
    with contextlib.suppress(NoDaemonError):  # another client was faster
        connection.ask("stop", {}, HELLO_TIMEOUT_S)
    wait_for_end(connection.pid)
