"""Take back every line, hook and file that ``install`` and exports wrote."""

import argparse
import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from flightrec.client import request
from flightrec.commands.terminal import ask
from flightrec.errors import ExitCode, FlightrecError, NoDaemonError
from flightrec.hook_files import Person, Target, installed_targets
from flightrec.hook_files import uninstall as remove_hooks
from flightrec.installation import (
    data_folder,
    find_first_lines,
    find_lines,
    one_at_a_time,
    read_manifest,
    remove_files,
    remove_line,
)
from flightrec.location import Edit, Location
from flightrec.managed_block import without_block
from flightrec.memory_file import preview, read_file, update_file
from flightrec.paths import HELPER_NAME, Paths, find_paths
from flightrec.store import Store

HELP = "take back every line and file that flightrec wrote; keeps the recorded data"

EXAMPLES = (
    ("flightrec uninstall", "ask, then remove lines, files and blocks"),
    ("flightrec uninstall --purge --yes", "the recorded data as well"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--purge", action="store_true", help="delete the recorded data as well")


def run(arguments: argparse.Namespace) -> int:
    """Remove lines, blocks in memory files, files, and with ``--purge`` the data."""
    paths = find_paths()
    lines = [
        *find_first_lines(paths.home, os.environ).items(),
        *find_lines(paths.home, os.environ).items(),
    ]
    blocks = list(_find_blocks(paths))
    hidden = list(_find_hidden(paths))
    person = Person(paths, os.environ)
    hooked = list(installed_targets(person))
    things = [f"flightrec's hooks in {target.location.path}" for target in hooked]
    things += dict.fromkeys(f"flightrec's line in {location.path}" for location, _ in hidden)
    things += _describe(lines, blocks, paths, purge=arguments.purge)
    if not things:
        print("flightrec has written nothing here.")
        return ExitCode.OK
    print("This removes:", *(f"  - {thing}" for thing in things), sep="\n")
    if not ask("Go on?", yes=arguments.yes):
        print("Nothing was changed.")
        return ExitCode.TROUBLE
    with one_at_a_time(paths):
        trouble = [*_remove_lines(lines, paths), *_remove_blocks([*blocks, *hidden], paths)]
        trouble += _remove_hooks(hooked, person)
        _end_processes(paths)
        trouble += [f"{path} is not as installed; left" for path in remove_files(paths.home)]
    if arguments.purge:
        _purge(paths)
    print(*(f"flightrec: {line}" for line in trouble), sep="\n", end="\n" if trouble else "")
    print("Done. Shells that are open are no longer recorded.")
    return ExitCode.TROUBLE if trouble else ExitCode.OK


def _describe(
    lines: list[tuple[Path, str]], blocks: list["Block"], paths: Paths, *, purge: bool
) -> Iterator[str]:
    for path, count in Counter(path for path, _ in lines).items():
        yield f"{'a line' if count == 1 else f'{count} lines'} in {path}"
    yield from (f"flightrec's block in {location.path}" for location, _ in blocks)
    if read_manifest(paths.home).files:
        yield f"the copied files in {data_folder(paths.home)}"
    if purge and paths.state.exists():
        yield f"everything that was recorded, in {paths.state}"
    if purge and paths.config.parent.exists():
        yield f"the settings in {paths.config.parent}"


Block = tuple[Location, Edit]
"""A file with a block of ours, and what takes it out again."""


def _find_blocks(paths: Paths) -> Iterator[Block]:
    """Yield the memory files that a block was written to and still holds one."""
    from flightrec.export_plan import View, file_of  # noqa: PLC0415 - slow to import

    with contextlib.closing(Store.open_read_only(paths.database)) as store:
        view = View.read(store.connection)
    for row in {row.path: row for row in view.rows}.values():
        file = file_of(row, view.without_rows(view.rows))
        with contextlib.suppress(FlightrecError):
            if b"<!-- flightrec:begin" in (read_file(file.location) or b""):
                yield file.location, file.edit


def _find_hidden(paths: Paths) -> Iterator[Block]:
    """Yield git's lists of what it is not to see that hold a line of ours, once for each line."""
    from flightrec.export_rows import read_rows  # noqa: PLC0415 - as above
    from flightrec.exporter import showing  # noqa: PLC0415 - as above

    with contextlib.closing(Store.open_read_only(paths.database)) as store:
        rows = read_rows(store.connection)
    for row in rows:
        of_git = showing(row, ())
        with contextlib.suppress(FlightrecError):
            if of_git is not None and len(set(preview(*of_git))) > 1:
                yield of_git


def _remove_lines(lines: list[tuple[Path, str]], paths: Paths) -> Iterator[str]:
    for path, line in lines:
        try:
            remove_line(paths.home, path, line, paths)
        except FlightrecError as error:
            yield str(error)


def _remove_blocks(blocks: list[Block], paths: Paths) -> Iterator[str]:
    for location, edit in blocks:
        try:
            update_file(location, edit, paths, bare=without_block)
        except FlightrecError as error:
            yield str(error)


def _remove_hooks(targets: list[Target], person: Person) -> Iterator[str]:
    for target in reversed(targets):  # a folder goes after what was put into it later
        try:
            remove_hooks(target, person)
        except FlightrecError as error:
            yield str(error)


def _end_processes(paths: Paths) -> None:
    """End the daemon and the relays, which would start it again."""
    import psutil  # noqa: PLC0415 - slow to import

    helper = str(data_folder(paths.home) / HELPER_NAME)
    for process in psutil.process_iter(["exe", "uids"]):
        if process.info["exe"] == helper and process.info["uids"].effective == os.geteuid():
            with contextlib.suppress(psutil.Error):
                process.terminate()
    with contextlib.suppress(NoDaemonError):
        request(paths, "stop", autostart=False)


def _purge(paths: Paths) -> None:
    """Delete what was recorded; the folders are flightrec's alone."""
    for folder in (paths.state, paths.config.parent):
        if folder.exists():
            shutil.rmtree(folder)
