"""Real agents, start to end: what they run is recorded, learned from, and hinted the next time.

The model is a script; all else is as in earnest: the client, its own shell tool, ``flightrec
run``, the daemon, the memory file. A client that cannot be installed fails its test, unless its
registry is out of reach; the last lines of a test run say which were driven.
"""

from pathlib import Path

import pytest

from agents.clients import CLIENTS, Client
from agents.installs import NotInstalledError, UnreachableError
from agents.story import COMMANDS, COMPOUNDS, tell
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


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_an_agent_is_recorded_learned_from_warned_and_remembers(
    client: Client, home: Path, record_property: RecordProperty
) -> None:
    helper()

    seen = tell(client, install(client, record_property), home)

    assert seen.missed == [] if client.shells else list(COMPOUNDS)
    assert seen.doubles == []
    assert seen.changed == []
    assert {(run[2], run[3]) for run in seen.runs} == {(str(seen.place), client.name)}
    tails = {run[0]: run[4] for run in seen.runs}
    assert "'statsu' is not a git command" in tails[COMMANDS[0][0]]
    assert seen.rules == [("unknown subcommand", "git")]
    assert seen.summary == "flightrec: 8 runs, 6 failures, 1 recovery, 1 new rule"
    assert seen.hints == 1
    assert seen.remembers
