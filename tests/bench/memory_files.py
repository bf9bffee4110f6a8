"""Memory files: what an export costs, and what is lost where everybody writes at once."""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec
from tests.bench.table import Row

from flightrec.agent_files import Kind
from flightrec.export_rows import ExportRow, note
from flightrec.exporter import Exporter
from flightrec.paths import Paths, find_paths, make_private_folder
from flightrec.store import Store
from test_export import make_rule
from test_exporter import keep
from test_memory_crowd import WRITERS, Crowd, let_all_write

TITLE = "Memory files"

RULES = 10_000
FILES = 10
CROWD = Crowd(exporters=4, rounds=400)


def rows() -> list[Row]:
    """Export many rules, and put a file among many writers."""
    return [*_export(), *_crowd()]


def _export() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as folder:
        home = Path(folder)
        paths = find_paths(folder)
        make_private_folder(paths.state)
        store = Store.open(paths.database)
        rules = (make_rule((f"mkae{n}",), ("make",), number=n, c=n) for n in range(1, RULES + 1))
        keep(store, *(msgspec.structs.replace(rule, seen_in=("/src/app",)) for rule in rules))
        files = [home / f"{n}.md" for n in range(FILES)]
        with store.transaction() as connection:
            for path in files:
                note(connection, ExportRow(path, "/src/app", "", Kind.OWN, home))
        written, unchanged = (_time(store, paths, files, anew=anew) for anew in (True, False))
        largest = max(path.stat().st_size for path in files)
        store.close()
    what = f"{RULES:,} rules into {FILES} files"
    return [
        Row(what, written * 1000, "ms", "≤ 200 ms a file", "CPU"),
        Row("the same, all up to date", unchanged * 1000, "ms", "", "CPU"),
        Row("the largest file", largest / 1000, "KB", "25 KB"),
    ]


def _time(store: Store, paths: Paths, files: list[Path], *, anew: bool) -> float:
    """Return how long one round takes, in seconds of CPU; the median of five."""
    took = []
    for _ in range(5):
        for path in files if anew else ():
            path.unlink(missing_ok=True)
        exporter = Exporter(paths, {})
        started = time.process_time()
        exporter.bring_up_to_date(store)
        took.append(time.process_time() - started)
        exporter.settle(at_once=True)
    return statistics.median(took)


def _crowd() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as folder:
        home = Path(folder)
        os.environ["HOME"] = folder
        file = home / "project/MEMORY.md"
        file.parent.mkdir()
        file.write_text("first\n")
        started = time.monotonic()
        let_all_write(CROWD, file, home)
        took_s = time.monotonic() - started
        found = file.read_text().splitlines()
    saves = [f"{kind} {number}" for kind in WRITERS for number in range(CROWD.rounds)]
    lost = sum(line not in found for line in saves)
    doubled = len(found) - len(set(found))
    beside = f"{len(WRITERS)} kinds of writers beside {CROWD.exporters} exporters, {took_s:.0f} s"
    return [
        Row(f"lost of {len(saves):,} saves", lost, "lines", "0", beside),
        Row("said twice", doubled, "lines", "0"),
    ]
