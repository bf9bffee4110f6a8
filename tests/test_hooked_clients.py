"""Real clients with our hooks in their settings: what the hooks tell, alone and beside the shells.

Outside ``flightrec run`` the shells of these clients are not seen: there, hooks are all there is.
"""

import contextlib
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from agents.client_run import Place, daemon_for, place_for
from agents.clients import MORE_CLIENTS, Client
from agents.installs import driven
from agents.mock_model import MockModel, Run, Say
from agents.story import COMMANDS, HINT
from conftest import RecordProperty
from daemon_process import DaemonProcess, wait_until
from flightrec.rule_text import LABEL
from flightrec.wire import Source
from helper_builds import helper

pytestmark = pytest.mark.full

LONG = "python3 -c 'import time; print(1, flush=True); time.sleep(60)'"
KILLED = "kill -9 $$"
LATER = "python3 -c 'import sys, time; time.sleep(0.3); sys.exit(3)'"
BELOW = "cat below.txt"

TERMINATED = 128 + 15

ENDINGS = {
    "git statsu": "git: 'statsu' is not a git command. See 'git --help'.\n\n"
    "The most similar command is\n\tstatus",
    COMMANDS[4][0]: "cat: missing.txt: No such file or directory\nto both",
    BELOW: "cat: below.txt: No such file or directory",
}
"""What failing commands write."""


@dataclass(frozen=True, slots=True)
class Hooked:
    """A client, and how its shell tool is told of more than a command.

    ``odd`` are commands that end in another way than by themselves, or do not end while the client
    waits: what is sent, its exit by hooks alone, and by shells besides. ``tells_failures``: whether
    its hooks hear of them. ``names_calls``: whether they say which call of the model it is.
    ``volatile`` is what a result has that is another each time.
    """

    agent: str
    odd: tuple[tuple[Run, int | None, int | None], ...]
    volatile: re.Pattern[str]
    tells_failures: bool = True
    names_calls: bool = False
    folder_option: str = ""
    commands: Mapping[str, int] = field(default_factory=lambda: dict(COMMANDS))

    def differs(self, given: str, usual: str) -> bool:
        """Whether two results differ, and by more than the end of an output.

        That an unsteady client loses now and then, without us, too.
        """
        texts = (text.replace("\nOutput: (empty)\n", "\nOutput: \n") for text in (given, usual))
        shorter, longer = sorted(texts, key=len)
        head, _, tail = shorter.partition("\nError: ")
        cut = longer.startswith(head) and longer.endswith(f"\nError: {tail}")
        return given != usual and not (self.client.unsteady and cut)

    @property
    def client(self) -> Client:
        return next(client for client in MORE_CLIENTS if client.name == self.agent)

    def script(self, place: Place) -> tuple[Run, ...]:
        """Return what the model does; what ends later comes first."""
        usual = [Run(command) for command in self.commands]
        if self.folder_option:
            usual.append(Run(BELOW, {self.folder_option: str(place.project / "sub")}))
        return (*(run for run, *_ in self.odd), *usual)

    def ends(self, *, by_hooks_alone: bool) -> Counter[tuple[str, int | None]]:
        """Return what is to be recorded: each command once, with its exit."""
        usual = {**self.commands, **({BELOW: 1} if self.folder_option else {})}
        odd = [(run.command, exits[0 if by_hooks_alone else 1]) for run, *exits in self.odd]
        silent = by_hooks_alone and not self.tells_failures
        return Counter([*odd, *(end for end in usual.items() if not (silent and end[1]))])


HOOKED = (
    Hooked(
        "qwen",
        (
            (Run(LATER, {"is_background": True}), None, 3),
            (Run(LONG, {"timeout": 1000}), None, TERMINATED),
            (Run(KILLED), 128 + 9, 128 + 9),
        ),
        re.compile(r"bg_\w+|pid: \d+|/background-shells/[\w-]+/"),
        names_calls=True,
        folder_option="directory",
    ),
    Hooked("copilot", ((Run(LATER, {"mode": "async"}), None, 3),), re.compile(r"(?!)")),
    Hooked(
        "droid",
        (
            (Run(LATER, {"fireAndForget": True}), None, 3),
            (Run(LONG, {"timeout": 1}), None, TERMINATED),
        ),
        re.compile(r"PID: \d+|droid-bg-\d+"),
        tells_failures=False,
    ),
)

EACH = pytest.mark.parametrize("hooked", HOOKED, ids=lambda hooked: hooked.agent)


@EACH
@pytest.mark.parametrize("seen", ["by hooks alone", "by shells as well"])
def test_what_hooks_tell_is_recorded_once_and_changes_no_result(
    hooked: Hooked, seen: str, home: Path, record_property: RecordProperty
) -> None:
    in_run = seen == "by shells as well"
    with place_for(hooked.client, driven_by(hooked, record_property), home) as bare:
        place = bare.configured()
        script = hooked.script(place)
        plain = work(place, *script)
        with daemon_for(place) as daemon:
            flightrec(place, "hook", "install", hooked.agent, "--yes")
            model = work(place, *script, in_run=in_run)

    # Whatever waited for another story of the same command was told when the daemon ended.
    assert Counter(runs(daemon, "command, exit")) == hooked.ends(by_hooks_alone=not in_run)
    told = [command for command, _ in sorted(runs(daemon, "command, id"), key=itemgetter(1))]
    in_order = [command for command in hooked.commands if command in told]
    assert [command for command in told if command in hooked.commands] == in_order
    assert set(runs(daemon, "agent")) == {(hooked.agent,)}
    sources = {source for (source,) in runs(daemon, "source")}
    assert sources <= ({Source.SH, Source.ENV} if in_run else {Source.HOOK})
    named = {name is not None for (name,) in runs(daemon, "tool_use_id")}
    assert named == {hooked.names_calls}
    folders = dict(runs(daemon, "command, cwd"))
    assert folders.pop(BELOW, str(place.project / "sub")) == str(place.project / "sub")
    assert set(folders.values()) == {str(place.project)}
    assert daemon.query("SELECT count(*) FROM sessions") == [(1,)]

    given, usual = results(hooked, model), results(hooked, plain)
    assert given.keys() == usual.keys()
    pairs = [(given[call], usual[call]) for call in given]
    assert [pair for pair in pairs if hooked.differs(*pair)] == []
    tails = dict(runs(daemon, "command, tail"))
    for run, text in zip(script, given.values(), strict=True):
        ending = ENDINGS.get(run.command)
        is_told = in_run or (hooked.tells_failures and str(ending) in text)
        if ending is not None and is_told:
            assert tails[run.command].rstrip("\n") == ending


def results(hooked: Hooked, model: MockModel) -> dict[str, str]:
    """Return what the model was given for each of its calls, less what is another each time."""
    found = {
        call: hooked.volatile.sub("", text)
        for request in model.requests
        if request.is_main and request.interface is not None
        for call, text in request.interface.results(request.body)
        if call.startswith("call_turn")
    }
    assert len(found) == len(model.script) - 1
    return found


# --- what is answered ----------------------------------------------------------------------------

WRONG, RIGHT = "git statsu", "git status"
PROOF = (Run(WRONG), Run(RIGHT)) * 5
"""More confirmations than the three that a gate needs: a client may lose an output."""

UNKNOWN = "'statsu' is not a git command"
STOPPED = re.compile(
    r"not run: previously failed here \(\d×: unknown subcommand\); try: git status"
)
TRIES = 4


class LostError(Exception):
    """The client has lost the output of a command that the test is about."""


@EACH
def test_a_model_is_briefed_hinted_and_denied_by_hooks_alone(
    hooked: Hooked, record_property: RecordProperty
) -> None:
    program = driven_by(hooked, record_property)
    for _ in range(TRIES):
        with (
            contextlib.suppress(LostError),
            tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as home,
            place_for(hooked.client, program, Path(home)) as place,
        ):
            brief_hint_and_deny(hooked, place.configured())
            return
    pytest.fail(f"{hooked.client.title} has lost an output in each of {TRIES} tries")


def brief_hint_and_deny(hooked: Hooked, place: Place) -> None:
    with daemon_for(place) as daemon:
        flightrec(place, "hook", "install", hooked.agent, "--yes")
        model = work(place, *PROOF, in_run=not hooked.tells_failures)
        assert LABEL not in model.first_prompt()
        wait_until(lambda: len(runs(daemon, "id")) == len(PROOF))
        ((rule, confirmed, contradicted),) = daemon.query("SELECT id, c, d FROM rules")
        assert (confirmed >= 3, contradicted) == (True, 0)

        model = work(place, Run(WRONG), Run(RIGHT))
        assert LABEL in model.first_prompt()
        assert rule in model.first_prompt()
        wrong, _ = executed(hooked, model)
        assert len(HINT.findall(wrong)) == hooked.tells_failures

        flightrec(place, "rules", "guard", rule, "deny")
        model = work(place, Run(WRONG), Run(WRONG), Run(RIGHT))
        denied, again, _ = executed(hooked, model)
        assert STOPPED.search(denied)
        assert UNKNOWN in again

    gates = daemon.query("SELECT gate, outcome FROM hints WHERE gate <> '' ORDER BY id")
    assert gates == [
        ("deny", "insisted"),
        ("let", "recurred" if hooked.tells_failures else "followed"),
    ]
    failed = len(PROOF) // 2 + 2 * hooked.tells_failures
    assert Counter(runs(daemon, "command, exit")) == {
        (WRONG, 1): failed,
        (RIGHT, 0): len(PROOF) // 2 + 2,
    }


def executed(hooked: Hooked, model: MockModel) -> list[str]:
    """Return the results of a session. Raises LostError."""
    found = list(results(hooked, model).values())
    failed = [text for text in found[:-1] if not STOPPED.search(text)]
    if hooked.client.unsteady and any(UNKNOWN not in text for text in failed):
        raise LostError
    return found


# --- the client and its person -------------------------------------------------------------------


def driven_by(hooked: Hooked, record_property: RecordProperty) -> Path:
    """Return the client's program; what is recorded needs the helper."""
    helper()
    client = hooked.client
    return driven(client.package, f"{client.title} with hooks", record_property)


def runs(daemon: DaemonProcess, columns: str) -> list[tuple[Any, ...]]:
    """Return these columns of every whole command that was recorded."""
    return daemon.query(f"SELECT {columns} FROM runs WHERE parent IS NULL")  # noqa: S608 - ours


def flightrec(place: Place, *words: str) -> None:
    """Run a command line of ours."""
    done = place.flightrec(*words)
    assert done.returncode == 0, done.stdout + done.stderr


def work(place: Place, *commands: Run, in_run: bool = False) -> MockModel:
    """Have the agent send these commands in a new session; return its model."""
    model, done = place.run((*commands, Say("done")), recorded=in_run)
    assert done.returncode == 0, done.stderr
    return model
