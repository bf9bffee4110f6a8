"""Named places in the code that fail on demand, so that tests can ask what survives.

``FLIGHTREC_FAIL=commit:3:kill`` kills the process the third time it comes by ``commit``, and
``crash`` lets it end as a fault in C would;
``full`` and ``damage`` raise what SQLite raises then, anything else is a fault of our own.
"""

import os
import signal
import sqlite3
from collections import Counter

VARIABLE = "FLIGHTREC_FAIL"

_SQLITE_ERRORS = {"full": sqlite3.SQLITE_FULL, "damage": sqlite3.SQLITE_CORRUPT}

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
    if action == "crash":
        os.abort()
    if action not in _SQLITE_ERRORS:
        raise DemandedError(action)
    error = sqlite3.DatabaseError(action)
    error.sqlite_errorcode = _SQLITE_ERRORS[action]
    raise error
