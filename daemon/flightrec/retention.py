"""Keeps the database below the size and age that the person set: the oldest runs go, rules stay."""

from flightrec.config import Retention
from flightrec.store import Store

RUNS_AT_ONCE = 1000
"""Deleted per call: recording waits for no more than that."""

_DAY_US = 24 * 3600 * 1_000_000


def prune(store: Store, retention: Retention, now_us: int) -> bool:
    """Delete some of the oldest runs where there are too many; return whether to call again.

    ``now_us`` is wall clock. Space that becomes free is used again; the file does not shrink.
    """
    cutoff = now_us - retention.days * _DAY_US if retention.days else None
    if used_bytes(store) > retention.megabytes * 1_000_000:
        condition, value = "TRUE OR ?", None
    elif cutoff is not None:
        condition, value = "started_us < ?", cutoff
    else:
        return False
    with store.transaction() as connection:
        deleted = connection.execute(
            f"DELETE FROM runs WHERE id IN"  # noqa: S608 - our own words
            f" (SELECT id FROM runs WHERE {condition} ORDER BY id LIMIT {RUNS_AT_ONCE})",
            (value,),
        ).rowcount
        if deleted:
            connection.execute("DELETE FROM sessions WHERE id NOT IN (SELECT session_id FROM runs)")
    return deleted == RUNS_AT_ONCE


def used_bytes(store: Store) -> int:
    """Return the size of the pages in use."""
    values = [
        store.connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    ]
    pages, free, size = values
    return int((pages - free) * size)
