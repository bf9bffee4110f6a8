"""Run the benchmarks: ``python -m tests.bench`` for all, or with the names of some."""

import argparse
import importlib
import pkgutil
import sys

import tests.bench
from tests.bench.table import describe_machine, print_rows

NOT_BENCHES = {"__main__", "table"}


def main() -> int:
    """Run what the command line names, print a table each, and go on where one fails."""
    found = sorted({m.name for m in pkgutil.iter_modules(tests.bench.__path__)} - NOT_BENCHES)
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"some of: {', '.join(found)}")
    chosen = parser.parse_args().benches or found
    unknown = sorted(set(chosen) - set(found))
    if unknown:
        parser.error(f"no bench named {', '.join(unknown)}; there are: {', '.join(found)}")
    print(describe_machine())
    failed = 0
    for name in chosen:
        bench = importlib.import_module(f"tests.bench.{name}")
        try:
            print_rows(bench.TITLE, bench.rows())
        except Exception as error:  # noqa: BLE001 - one broken bench must not hide the others
            failed += 1
            print(f"\n### {bench.TITLE}\n\ncould not be measured: {error!r}")
        sys.stdout.flush()
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
