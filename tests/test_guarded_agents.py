"""Real agents that a guard stops, and that are told of their project when a session begins.

Each has hooks in the way that its person would give it some, and shells that are recorded besides.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agents.client_run import Place, daemon_for, place_for
from agents.clients import CLIENTS, Client
from agents.installs import program_of
from agents.mock_model import MockModel, Run, Say
from agents.story import COMPOUNDS
from daemon_process import DaemonProcess, wait_until
from flightrec.rule_text import LABEL
from flightrec.wire import Source
from helper_builds import helper

WRONG, RIGHT = "git statsu", "git status"
PROOF = (Run(WRONG), Run(RIGHT)) * 3
"""Three confirmations: what a gate needs."""

STOPPED = "not run: previously failed here (3×: unknown subcommand); try: git status"
STOPPED_AGAIN = STOPPED.replace("3×", "4×")

SHELLS = frozenset((Source.SH, Source.ENV))
"""The doors through which a shell's own story comes."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """An agent: how it comes by hooks, whether it is started with ``flightrec run``.

    ``install`` are the words behind ``hook install``, empty where ``flightrec run`` brings hooks
    along. ``rewrites``: its hooks may put another command in the place of one that nobody was asked
    about. ``names_calls``: its hooks say which call of the model they are about. ``told_by`` are
    the doors through which its commands come.
    """

    agent: str
    install: tuple[str, ...] = ()
    in_run: bool = True
    rewrites: bool = True
    names_calls: bool = True
    told_by: frozenset[Source] = SHELLS

    @property
    def client(self) -> Client:
        return next(client for client in CLIENTS if client.name == self.agent)

    @property
    def title(self) -> str:
        return self.agent if self.in_run else f"{self.agent}-alone"


_CODEX = ("codex", "--trust")

GUARDED = (
    Guarded("claude"),
    Guarded("pi"),
    Guarded("codex", _CODEX),
    Guarded("codex", _CODEX, in_run=False),
    Guarded("gemini", ("gemini",), rewrites=False, names_calls=False),
    Guarded("opencode", ("opencode",)),
)
SLOWER = (
    Guarded(
        *("gemini", ("gemini",)),
        in_run=False,
        rewrites=False,
        names_calls=False,
        told_by=frozenset((Source.HOOK,)),
    ),
    Guarded("opencode", ("opencode",), in_run=False),
)


@pytest.mark.parametrize(
    "guarded",
    [*GUARDED, *(pytest.param(guarded, marks=pytest.mark.full) for guarded in SLOWER)],
    ids=lambda guarded: guarded.title,
)
def test_an_agent_is_denied_let_through_and_rewritten(guarded: Guarded, home: Path) -> None:
    helper()
    with place_for(guarded.client, program_of(guarded.client.package), home) as bare:
        place = bare.configured()
        with daemon_for(place) as daemon:
            if guarded.install:
                flightrec(place, "hook", "install", "--yes", *guarded.install)

            others = [Run(command) for command, _ in COMPOUNDS]
            assert LABEL not in work(place, guarded, *PROOF, *others).first_prompt()
            wait_until(lambda: len(runs(daemon, "id")) >= len(PROOF) + len(others))
            ((rule, counts),) = daemon.query("SELECT id, r || c || d FROM rules")
            assert counts == "030"
            flightrec(place, "rules", "guard", rule, "deny")

            model = work(place, guarded, Run(WRONG), Run(WRONG), Run(RIGHT))
            first, again, right = model.tool_results()
            assert STOPPED in first
            assert "'statsu' is not a git command" in again
            assert "On branch" in right
            assert LABEL in model.first_prompt()
            assert rule in model.first_prompt()

            flightrec(place, "rules", "guard", rule, "rewrite")
            first, right = work(place, guarded, Run(WRONG), Run(RIGHT)).tool_results()
            assert ("On branch" in first, STOPPED_AGAIN in first) == (
                guarded.rewrites,
                not guarded.rewrites,
            )
            assert "On branch" in right

        # Whatever waited for another story of the same command was told when the daemon ended.
        gates = daemon.query("SELECT gate, outcome FROM hints WHERE gate <> '' ORDER BY id")
        third = "rewrite" if guarded.rewrites else "deny"
        assert gates == [("deny", "insisted"), ("let", "recurred"), (third, "followed")]
        proof = {(1, WRONG, 1): 3, (1, RIGHT, 0): 3}
        insisted = {(2, WRONG, 1): 1, (2, RIGHT, 0): 1}
        followed = {(3, RIGHT, 0): 1 + guarded.rewrites}
        compounds = {(1, command, status): 1 for command, status in COMPOUNDS}
        assert Counter(runs(daemon, "session_id, command, exit")) == {
            **proof, **compounds, **insisted, **followed
        }  # fmt: skip
        assert daemon.query("SELECT count(*) FROM sessions") == [(3,)]
        assert set(runs(daemon, "agent")) == {(guarded.agent,)}
        assert {source for (source,) in runs(daemon, "source")} <= guarded.told_by
        named = [name is not None for (name,) in runs(daemon, "tool_use_id")]
        assert set(named) == {guarded.names_calls}


def runs(daemon: DaemonProcess, columns: str) -> list[tuple[Any, ...]]:
    """Return these columns of every whole command that was recorded."""
    return daemon.query(f"SELECT {columns} FROM runs WHERE parent IS NULL")  # noqa: S608 - ours


def flightrec(place: Place, *words: str) -> None:
    """Run a command line of ours."""
    done = place.flightrec(*words)
    assert done.returncode == 0, done.stdout + done.stderr


def work(place: Place, guarded: Guarded, *commands: Run) -> MockModel:
    """Have the agent send these commands in a new session; return its model."""
    model, done = place.run((*commands, Say("done")), recorded=guarded.in_run)
    assert done.returncode == 0, done.stderr
    return model
