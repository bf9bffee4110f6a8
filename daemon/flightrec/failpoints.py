"""Named places in the code that fail on demand, so that tests can ask what survives.

``FLIGHTREC_FAIL=commit:3:kill`` kills the process the third time it comes by ``commit``;
``full`` and ``error`` raise what SQLite raises on a full disk, or a fault of our own.
"""

import os
import signal
import sqlite3
from collections import Counter

VARIABLE = "FLIGHTREC_FAIL"

_visits: Counter[str] = Counter()


class DemandedError(Exception):
    """A fault of our own, on demand."""


def reach(name: str) -> None:
    """Fail here if the environment says so."""
    demanded = os.environ.get(VARIABLE)
    if demanded is None:
        return
    place, number, action = demanded.split(":")
    if place != name:
        return
    _visits[name] += 1
    if _visits[name] == int(number):
        _fail(action)


def _fail(action: str) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "full":
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error
    raise DemandedError(action)
