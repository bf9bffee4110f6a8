"""Real agents, start to end: what they run is recorded, learned from, and hinted the next time.

The model is a script; all else is as in earnest: the client, its own shell tool, ``flightrec
run``, the daemon, the memory file. A client that cannot be installed fails its test, unless its
registry is out of reach; the last lines of a test run say which were driven.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.clients import CLIENTS, MORE_CLIENTS, Client, Shell
from agents.installs import NotInstalledError, UnreachableError
from agents.story import COMPOUNDS, tell
from conftest import RecordProperty
from helper_builds import helper


def install(client: Client, record_property: RecordProperty) -> Path:
    """Return the client's program, and let the summary know of it."""
    try:
        program = client.package.install()
    except NotInstalledError as error:
        record_property("not driven", f"{client.title} ({error})")
        if isinstance(error, UnreachableError):
            pytest.skip(str(error))
        raise
    record_property("driven", f"{client.title} {client.package.version}")
    return program


@pytest.fixture
def second_home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize(
    "client",
    [
        *CLIENTS,
        *(pytest.param(client, marks=pytest.mark.full) for client in MORE_CLIENTS),
    ],
    ids=lambda client: client.name,
)
def test_an_agent_is_recorded_learned_from_warned_and_remembers(
    client: Client, home: Path, second_home: Path, record_property: RecordProperty
) -> None:
    helper()

    program = install(client, record_property)

    seen = tell(client, program, home)
    if seen.changed and client.unsteady:
        seen = tell(client, program, second_home)

    if client.shell is Shell.SEEN:
        assert seen.missed == []
        assert seen.summary == "flightrec: 8 runs, 6 failures, 1 recovery, 1 new rule"
    else:
        assert set(seen.missed) <= set(COMPOUNDS)
    if client.shell is not Shell.FED:  # the client rewrites what it feeds, and keeps the folder
        assert seen.doubles == []
        assert {run[2] for run in seen.runs} == {str(seen.place)}
    assert seen.changed == []
    assert {run[3] for run in seen.runs} == {client.package.program}
    tails = {run[0]: run[4] for run in seen.runs}
    assert "'statsu' is not a git command" in tails["git statsu"]
    assert seen.rules == [("unknown subcommand", "git")]
    if client.shell is not Shell.UNSEEN:  # it reads no memory file, and results from one pipe
        assert seen.hints == 1
        assert seen.remembers
