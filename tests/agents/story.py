"""One story, told with every agent: it errs, mends it, and errs again in the next session.

What was seen of it is returned as it is; tests and the table of agents judge.
"""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.client_run import daemon_for, place_for
from agents.clients import Client, Shell
from agents.mock_model import Run, Say, Script

EXTERNALS = (
    ("git statsu", 1),
    ("git status --short", 0),
    ("python3 -c 'import sys; sys.exit(3)'", 3),
    ("make missing", 2),
)
"""Commands of one program, with their exit statuses: what a program's stand-in sees as well."""

COMPOUNDS = (
    ("cd sub && cat missing.txt; echo to both >&2; exit 5", 5),
    ("printf 'out\\n'; nosuchprogram --x 2>&1 | cat", 0),
    ('[[ -d sub ]] && export HERE=1 && echo "it\'s $HERE"', 0),
    ("for i in 1 2; do echo $i; done; (exit 4)", 4),
)
"""Commands that only the shell sees as a whole."""

COMMANDS = (*EXTERNALS, *COMPOUNDS)

FIRST: Script = (*(Run(command) for command, _ in COMMANDS), Say("done"))

AGAIN: Script = (Run("git statsu"), Run("git statsu"), Run("git status --short"), Say("done"))
"""Twice, since on a very busy machine the first hint may come too late to be shown."""

SETTINGS = "[rules]\npromote_confirmations = 1\nshare_projects = 1\n"
"""One sighting is proof enough for a story."""

HINT = re.compile(r"flightrec: previously failed .*; try: git status.*\n?")

REMEMBERED = re.compile(r"- `git .*statsu.*`.*; worked: `git .*status.*` \(ERR-\d+-\d+\)")


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of the story."""

    place: Path
    plain: list[str]
    """The results of the first session's commands without flightrec..."""
    recorded: list[str]
    """...and with it."""
    told: str
    """All that the model was told in the second session, by results and beside them."""
    runs: list[tuple[Any, ...]]
    """Command, exit, folder, agent and last output of each run of the first session."""
    rules: list[tuple[Any, ...]]
    """Failure kind and program of what was learned."""
    summary: str
    """The last line on standard error."""
    prompt: str
    """What the model was given at the start of the second session."""

    @property
    def missed(self) -> list[tuple[str, int]]:
        """Commands of the first session that were not recorded with their exit status."""
        seen = {run[:2] for run in self.runs}
        return [command for command in COMMANDS if command not in seen]

    @property
    def doubles(self) -> list[str]:
        """Commands that were recorded more than once, and what nobody asked for."""
        asked = {command for command, _ in COMMANDS}
        times = Counter(run[0] for run in self.runs)
        return [command for command, n in times.items() if n > 1 or command not in asked]

    @property
    def changed(self) -> list[tuple[str, str]]:
        """Results of the first session that are not as without flightrec."""
        return [pair for pair in zip(self.plain, self.recorded, strict=True) if pair[0] != pair[1]]

    @property
    def hints(self) -> int:
        """How many hints the model was given."""
        return len(HINT.findall(self.told))

    @property
    def remembers(self) -> bool:
        """Whether the next session began with what was learned."""
        return REMEMBERED.search(self.prompt) is not None


def tell(client: Client, program: Path, home: Path, shell: str = "/bin/bash") -> Seen:
    """Tell the story in an empty home."""
    with place_for(client, program, home, shell) as place:
        place.write(".config/flightrec/config.toml", SETTINGS)
        plain, done = place.run(FIRST, recorded=False)
        assert done.returncode == 0, done.stderr
        with daemon_for(place) as daemon:
            first, done = place.run(FIRST, recorded=True)
            assert done.returncode == 0, done.stderr
            runs = daemon.query(
                "SELECT command, exit, cwd, agent, tail FROM runs WHERE parent IS NULL ORDER BY id"
            )
            rules = daemon.query("SELECT failure_kind, program FROM rules")
            if client.shell is not Shell.UNSEEN:
                exported = place.flightrec("export", "--agent", client.name)
                assert exported.returncode == 0, exported.stderr
            again, _ = place.run(AGAIN, recorded=True)
    return Seen(
        place=place.project,
        plain=_steady(client, plain.tool_results()),
        recorded=_steady(client, first.tool_results()),
        told=again.conversation(),
        runs=runs,
        rules=rules,
        summary=done.stderr.splitlines()[-1],
        prompt=again.first_prompt(),
    )


def _steady(client: Client, results: list[str]) -> list[str]:
    """Return results without what is another each time: the client's own numbers."""
    return [client.volatile.sub("", text) if client.volatile else text for text in results]
