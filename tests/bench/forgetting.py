"""What it costs to go over old rows: redaction that finds more, and forgetting.

Recording waits for each portion, and for the database's rewriting at the end.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.bench.table import Row

from flightrec.config import Redaction
from flightrec.forgetting import Wanted, forget
from flightrec.paths import Paths, find_paths, make_private_folder
from flightrec.recorder import Recorder
from flightrec.rescan import PORTION, Rescan
from flightrec.store import Store
from learner import Learner

TITLE = "Going over old rows"

RUNS = 20_000
ERROR = "Traceback (most recent call last):\n" + "  at step of the canary's build 4711\n" * 26
"""About 1 KB, in every seventh run."""


def rows() -> list[Row]:
    """Fill a database, redact it anew, and forget something of it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = find_paths(folder)
        make_private_folder(paths.state)
        store = Store.open(paths.database)
        _fill(store)
        size = paths.database.stat().st_size / 1e6
        found = [*_rescan(store, paths), _forget(store, paths)]
        store.close()
    return [Row("the database", size, "MB", "", f"{RUNS:,} runs"), *found]


def _fill(store: Store) -> None:
    learner = Learner(store=store)
    for start in range(0, RUNS, 500):
        with store.transaction():
            for n in range(start, start + 500):
                failed = n % 7 == 0
                learner.recorder.record(
                    learner.run(
                        f"make part-{n} VERBOSE=1 canary-{n % 1000}",
                        int(failed),
                        ERROR if failed else "",
                        session=f"session {n % 50}",
                    )
                )


def _rescan(store: Store, paths: Paths) -> list[Row]:
    """Return what one more pattern of the person's costs, one run in a thousand holding it."""
    rescan = Rescan(store, paths, Redaction(deny=("canary-77[0-9]",)))
    book = Recorder(store).book
    steps_s = []
    while True:
        began = time.monotonic()
        step = rescan.step(book, lambda: None)
        steps_s.append(time.monotonic() - began)
        if step.done:
            break
    *portions, last = steps_s
    return [
        Row(f"a portion of {PORTION} rows, median", 1e3 * statistics.median(portions), "ms"),
        Row("a portion, the longest", 1e3 * max(portions), "ms"),
        Row("the last one, which rewrites the file", 1e3 * last, "ms"),
        Row("all", sum(steps_s), "s", "", f"{step.changed} rows changed"),
    ]


def _forget(store: Store, paths: Paths) -> Row:
    began = time.monotonic()
    forgotten = forget(store, paths, Wanted(text="canary-123"), lambda: None)
    return Row(
        "forget a text", 1e3 * (time.monotonic() - began), "ms", "", f"{forgotten.runs} runs"
    )
