"""Real agents, start to end: what they run is recorded, learned from, and hinted the next time.

The model is a script; all else is as in earnest: the client, its own shell tool, ``flightrec
run``, the daemon, the memory file. A client that cannot be installed fails its test, unless its
registry is out of reach; the last lines of a test run say which were driven.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from agents.client_run import daemon_for, place_for
from agents.clients import AIDER, CLIENTS, MORE_CLIENTS, Client, Shell, sandboxed
from agents.installs import driven
from agents.mock_model import Run, Say, Script
from agents.story import COMPOUNDS, tell
from agents.support_table import kept_rows, render, row_of, table_in_readme
from conftest import RecordProperty
from helper_builds import helper


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

    program = driven(client.package, client.title, record_property)

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
    record_property("row", msgspec.to_builtins(row_of(client, seen)))


@pytest.mark.full
@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "continue"])
def test_an_agent_whose_shell_is_zsh_is_recorded_and_warned(
    name: str, home: Path, record_property: RecordProperty
) -> None:
    helper()
    client = next(client for client in (*CLIENTS, *MORE_CLIENTS) if client.name == name)

    seen = tell(client, driven(client.package, client.title, record_property), home, "/bin/zsh")

    assert any(": command not found: nosuchprogram" in text for text in seen.plain)
    assert (seen.missed, seen.doubles, seen.changed) == ([], [], [])
    assert seen.hints == 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("codex", "workspace-write"),
        pytest.param("codex", "read-only", marks=pytest.mark.full),
        pytest.param("claude", "", marks=pytest.mark.full),
    ],
)
def test_a_sandbox_around_the_commands_hides_none_and_lets_the_hint_through(
    name: str, kind: str, home: Path, record_property: RecordProperty
) -> None:
    helper()
    client = sandboxed(name, kind)

    seen = tell(client, driven(client.package, client.title, record_property), home)

    first = "".join(seen.plain[:1])
    if "not a git command" not in first:  # it takes namespaces, which containers may lack
        record_property("not driven", f"the sandbox of {client.title} ({first.strip()[-80:]})")
        pytest.skip(first)
    assert (seen.missed, seen.doubles, seen.changed) == ([], [], [])
    assert seen.hints == 1
    assert seen.remembers


ENDS = {"exec git statsu": 1, "trap 'echo mine' EXIT; false": 1, "kill -9 $$": 128 + 9}
"""Commands that end without our scripts' help, and how."""

LONG = Run("sleep 9", {"timeout": 1})


@pytest.mark.parametrize("name", ["claude", pytest.param("pi", marks=pytest.mark.full)])
def test_odd_ends_of_commands_are_told_as_they_are(
    name: str, home: Path, record_property: RecordProperty
) -> None:
    helper()
    (client,) = (client for client in CLIENTS if client.name == name)
    limited = [LONG] if name == "pi" else []  # Claude Code lets it go on in the background
    script: Script = [*map(Run, ENDS), *limited, Say("done")]

    with place_for(client, driven(client.package, client.title, record_property), home) as place:
        plain, _ = place.run(script, recorded=False)
        with daemon_for(place) as daemon:
            model, _ = place.run(script, recorded=True)
            runs = daemon.query("SELECT command, exit FROM runs WHERE parent IS NULL ORDER BY id")

    assert model.tool_results() == plain.tool_results()
    assert runs[: len(ENDS)] == list(ENDS.items())
    assert [command for command, status in runs[len(ENDS) :] if status != 0] == [
        run.command for run in limited
    ]


@pytest.mark.full
def test_what_aider_runs_is_recorded_and_what_it_asks_for_itself_is_not(
    home: Path, record_property: RecordProperty
) -> None:
    helper()
    program = driven(AIDER.package, AIDER.title, record_property)

    with place_for(AIDER, program, home) as place, daemon_for(place) as daemon:
        _, done = place.run((), recorded=True)
        runs = daemon.query("SELECT command, exit, agent FROM runs")

    assert "'statsu' is not a git command" in done.stdout
    assert runs == [("git statsu", 1, "aider")]


def test_the_readme_has_the_table_of_the_last_agents_that_were_driven() -> None:
    rows = kept_rows()

    assert table_in_readme() == render(rows)
    assert [(row.agent, row.version) for row in rows] == [
        (client.name, client.package.version) for client in (*CLIENTS, *MORE_CLIENTS)
    ]
