"""Keeps the database below the size and age that the person set: the oldest runs go, rules stay."""

from flightrec.config import Retention
from flightrec.store import Store

RUNS_AT_ONCE = 1000
"""Deleted per step: recording waits for no more than that."""

SHARE = 16
"""Where there is too much, one part in so many goes at a time, before it is measured again."""

_DAY_US = 24 * 3600 * 1_000_000


class Pruner:
    """Deletes step by step; the full-text index gives its space back at the end of each round."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last_id: int | None = None

    def step(self, retention: Retention, now_us: int) -> bool:
        """Delete some of the oldest runs where there are too many; return whether to go on.

        ``now_us`` is wall clock. Space that becomes free is used again; the file does not shrink.
        """
        if self._last_id is None:
            self._last_id = self._find_last(retention, now_us)
        if self._last_id is None:
            return False
        if self._delete(self._last_id) < RUNS_AT_ONCE:
            self._store.connection.execute("INSERT INTO runs_fts (runs_fts) VALUES ('optimize')")
            self._last_id = None
        return True

    def _find_last(self, retention: Retention, now_us: int) -> int | None:
        """Return the newest of the runs that are to go."""
        if used_bytes(self._store) > retention.megabytes * 1_000_000:
            query = "SELECT id FROM runs ORDER BY id LIMIT 1 OFFSET (SELECT count(*) FROM runs) / ?"
            row = self._store.connection.execute(query, (SHARE,)).fetchone()
        elif retention.days:
            # By whole days: once a day is often enough to rewrite the index.
            cutoff_us = (now_us // _DAY_US - retention.days) * _DAY_US
            query = "SELECT max(id) FROM runs WHERE started_us < ?"
            row = self._store.connection.execute(query, (cutoff_us,)).fetchone()
        else:
            return None
        return None if row is None or row[0] is None else int(row[0])

    def _delete(self, last_id: int) -> int:
        with self._store.transaction() as connection:
            deleted = connection.execute(
                "DELETE FROM runs WHERE id IN"
                " (SELECT id FROM runs WHERE id <= ? ORDER BY id LIMIT ?)",
                (last_id, RUNS_AT_ONCE),
            ).rowcount
            if deleted:
                connection.execute(
                    "DELETE FROM sessions WHERE id NOT IN (SELECT session_id FROM runs)"
                )
        return deleted


def used_bytes(store: Store) -> int:
    """Return the size of the pages in use."""
    pages, free, size = (
        store.connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
