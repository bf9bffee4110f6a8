"""Real agents with our hooks in their settings, started without ``flightrec run``.

The story is that of ``test_agents.py``: nothing is missed, nothing is recorded twice, the model is
told; and afterwards the settings are to the byte what they were.
"""

from collections import Counter
from pathlib import Path

import pytest

from agents.client_run import Place, daemon_for, place_for
from agents.clients import CLIENTS, Client
from agents.installs import program_of
from agents.story import AGAIN, COMMANDS, FIRST, HINT, SETTINGS
from helper_builds import helper

NAMES = ("claude", "codex", "pi")
SLOW = ("opencode",)

ALWAYS_ON = [
    pytest.param(client, id=client.name, marks=[pytest.mark.full] if client.name in SLOW else [])
    for client in CLIENTS
    if client.name in NAMES + SLOW
]


def flightrec(place: Place, *words: str) -> str:
    """Run a command line of ours; return what it prints."""
    done = place.flightrec(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def settings_of(place: Place) -> dict[str, bytes]:
    """Return what stands in the files that installing touches."""
    names = (".claude/settings.json", ".codex/hooks.json", ".codex/config.toml",
             ".pi/agent/extensions/flightrec.js",
             ".config/opencode/plugins/flightrec.js")  # fmt: skip
    return {
        name: (place.home / name).read_bytes() for name in names if (place.home / name).exists()
    }


@pytest.mark.parametrize("client", ALWAYS_ON)
def test_an_agent_is_recorded_by_its_own_settings_alone(client: Client, home: Path) -> None:
    helper()
    with place_for(client, program_of(client.package), home) as bare:
        bare.write(".config/flightrec/config.toml", SETTINGS)
        place = bare.configured()
        before = settings_of(place)
        plain, _ = place.run(FIRST, recorded=False)
        with daemon_for(place) as daemon:
            flightrec(place, "hook", "install", client.name, "--yes")
            first, done = place.run(FIRST, recorded=False)
            assert done.returncode == 0, done.stderr
            runs = daemon.query(
                "SELECT command, exit, cwd, agent FROM runs WHERE parent IS NULL ORDER BY id"
            )
            again, _ = place.run(AGAIN, recorded=False)
            sessions = daemon.query("SELECT count(*) FROM sessions")
            flightrec(place, "hook", "uninstall", client.name, "--yes")

        seen = {run[:2] for run in runs}
        assert [command for command in COMMANDS if command not in seen] == []
        assert Counter(run[0] for run in runs) == Counter(command for command, _ in COMMANDS)
        assert {run[2:] for run in runs} == {(str(place.project), client.name)}
        assert len(first.tool_results()) == len(plain.tool_results())
        assert len(HINT.findall(again.conversation())) == 1
        assert sessions == [(2,)]
        assert settings_of(place) == before


def test_codex_runs_our_hooks_once_they_are_trusted(home: Path) -> None:
    helper()
    client = next(client for client in CLIENTS if client.name == "codex")
    with place_for(client, program_of(client.package), home) as bare:
        place = bare.configured()
        before = settings_of(place)
        with daemon_for(place) as daemon:
            assert "type /hooks" in flightrec(place, "hook", "install", "codex", "--yes")
            _, untrusted = place.run(FIRST, recorded=False)
            assert "5 hooks trusted" in flightrec(place, "hook", "install", "codex", "--trust")
            _, trusted = place.run(FIRST, recorded=False)
            assert "Codex trusts all 5 hooks" in flightrec(place, "doctor", "codex")
            flightrec(place, "hook", "uninstall", "codex", "--yes")

        assert "hook: PreToolUse" not in untrusted.stderr
        assert "hook: PreToolUse" in trusted.stderr
        runs = daemon.query("SELECT session_id, command, exit FROM runs WHERE parent IS NULL")
        of_codex = Counter(run for run in runs if "--flightrec-canary" not in run[1])
        assert of_codex == {(session, *run): 1 for session in (1, 2) for run in COMMANDS}
        assert settings_of(place) == before
