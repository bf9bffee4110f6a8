"""Exporters, editors and a program that appends, all at one memory file at once: nothing is lost.

Everybody else is a real program. Editors and appenders lose each other's lines without us, so these
take turns, by flock(1); nobody waits for us.
"""

import functools
import multiprocessing
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from flightrec.errors import FlightrecError
from flightrec.location import Location
from flightrec.managed_block import set_block, without_block
from flightrec.memory_file import update_file
from flightrec.paths import find_paths

fork = multiprocessing.get_context("fork")

LIMIT_S = 120

WRITERS = {
    "appends": 'printf "%s\\n" "$line" >>"$file"',
    "renames": 'sed -i "1i $line" "$file"',
    "writes-in-place": 'sed "1i $line" "$file" >"$spare"; cat "$spare" >"$file"',
    "writes-twice": 'cat "$file" >"$spare"; { printf "%s\\n" "$line"; cat "$spare"; } >"$file"',
    "moves-away": 'mv "$file" "$file~"; { cat "$file~"; echo "$line"; } >"$file"; rm "$file~"',
}
"""How programs save: >>, most editors, nano, a careless script, vim with a backup."""

SCRIPT = """
file=$1 turn=$2 kind=$3 count=$4 spare=$2.$3
for ((number = 0; number < count; number++)); do
  line="$kind $number"
  exec 9>"$turn"
  flock 9
  {save}
  exec 9>&-
done
"""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Who is at the file, and how often."""

    exporters: int
    rounds: int


def export(file: Path, home: str, name: int, until: Event) -> None:
    """Export something new again and again, as the daemon and ``flightrec export`` do."""
    number = 0
    while not until.is_set():
        number += 1
        body = (f"rule {name}.{number}", "- a", "- b")
        location = Location(file, file.parent)
        edit = functools.partial(set_block_of, body)
        try:
            update_file(location, edit, find_paths(home), bare=without_block)
        except FlightrecError as error:
            assert "another flightrec is writing" in str(error)  # noqa: PT017 - a process of its own


def set_block_of(body: tuple[str, ...], document: bytes | None) -> bytes:
    return set_block(document or b"", body)


def start_writers(file: Path, turn: Path, rounds: int) -> Iterator[subprocess.Popen[bytes]]:
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    for kind, save in WRITERS.items():
        words = (str(file), str(turn), kind, str(rounds))
        script = SCRIPT.replace("{save}", save)
        yield subprocess.Popen(
            ["bash", "-euc", script, kind, *words], env=environment, stderr=subprocess.PIPE
        )


def let_all_write(crowd: Crowd, file: Path, home: Path) -> None:
    until = fork.Event()
    exporters = [
        fork.Process(target=export, args=(file, str(home), name, until), daemon=True)
        for name in range(crowd.exporters)
    ]
    for process in exporters:
        process.start()
    writers = list(start_writers(file, home / "turn", crowd.rounds))
    for writer in writers:
        _, errors = writer.communicate(timeout=LIMIT_S)
        assert (writer.returncode, errors) == (0, b"")
    until.set()
    for process in exporters:
        process.join(LIMIT_S)
        assert process.exitcode == 0


@pytest.mark.parametrize(
    "crowd",
    [
        Crowd(exporters=2, rounds=20),
        pytest.param(Crowd(exporters=4, rounds=400), marks=pytest.mark.full),
    ],
    ids=lambda crowd: f"{crowd.exporters}-exporters-{crowd.rounds}-rounds",
)
def test_everybody_at_once_loses_no_line(crowd: Crowd, home: Path) -> None:
    """T6, D17: whoever saves how, while we put our block there again and again."""
    file = home / "project/MEMORY.md"
    file.parent.mkdir()
    file.write_text("first\n")
    started = time.monotonic()
    let_all_write(crowd, file, home)
    text = file.read_text()
    found = text.splitlines()
    expected = [f"{kind} {number}" for kind in WRITERS for number in range(crowd.rounds)]
    assert [line for line in expected if line not in found] == []
    assert found.count("first") == 1
    assert text.count("<!-- flightrec:begin") == text.count("<!-- flightrec:end") == 1
    assert set(without_block(text.encode()).decode().splitlines()) == {"first", *expected}
    assert [path.name for path in file.parent.iterdir()] == ["MEMORY.md"]
    print(
        f"{len(expected)} saves beside {crowd.exporters} exporters: none lost,"
        f" {len(found)} lines, {time.monotonic() - started:.1f} s"
    )
