"""Real agents that a guard stops, and that are told of their project when a session begins.

Those of ``tests/agents`` whose hooks ``flightrec run`` brings along: nothing has to be installed.
"""

from pathlib import Path

import pytest

from agents.client_run import Place, daemon_for, place_for
from agents.clients import CLIENTS, Client
from agents.installs import UnreachableError
from agents.mock_model import MockModel, Run, Say
from flightrec.rule_text import LABEL
from helper_builds import helper

WRONG, RIGHT = "git statsu", "git status"
PROOF = (Run(WRONG), Run(RIGHT)) * 3
"""Three confirmations: what a gate needs."""

STOPPED = "not run: previously failed here (3×: unknown subcommand); try: git status"
GUARDED = ("claude", "pi")


@pytest.mark.parametrize("name", GUARDED)
def test_an_agent_is_denied_let_through_and_rewritten(name: str, home: Path) -> None:
    helper()
    client = next(client for client in CLIENTS if client.name == name)

    with place_for(client, install(client), home) as place, daemon_for(place) as daemon:
        assert LABEL not in work(place, *PROOF).first_prompt()
        ((rule, counts),) = daemon.query("SELECT id, r || c || d FROM rules")
        assert counts == "030"
        place.flightrec("rules", "guard", rule, "deny")

        model = work(place, Run(WRONG), Run(WRONG), Run(RIGHT))
        first, again, right = model.tool_results()
        assert STOPPED in first
        assert "'statsu' is not a git command" in again
        assert "On branch" in right
        assert LABEL in model.first_prompt()
        assert rule in model.first_prompt()

        place.flightrec("rules", "guard", rule, "rewrite")
        (rewritten,) = work(place, Run(WRONG)).tool_results()
        assert "On branch" in rewritten

        gates = daemon.query("SELECT gate, outcome FROM hints WHERE gate <> '' ORDER BY id")
        assert gates == [("deny", "insisted"), ("let", "recurred"), ("rewrite", "followed")]
        wrong = f"SELECT count(*) FROM runs WHERE parent IS NULL AND command = '{WRONG}'"  # noqa: S608 - from above
        assert daemon.query(wrong) == [(3 + 1,)]  # neither what was denied nor what was rewritten


def install(client: Client) -> Path:
    try:
        return client.package.install()
    except UnreachableError as error:
        pytest.skip(str(error))


def work(place: Place, *commands: Run) -> MockModel:
    """Have the agent send these commands in a new session; return its model."""
    model, done = place.run((*commands, Say("done")), recorded=True)
    assert done.returncode == 0, done.stderr
    return model
