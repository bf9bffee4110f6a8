"""Real agents whose person says what to run instead: kept until it is approved, then told to all.

The person's words come as in earnest, as the next prompt of the same session: in another process of
the agent that goes on with it, or typed into the agent's own screen.
"""

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.client_run import LIMIT_S, Place, daemon_for, place_for
from agents.clients import CLIENTS, KEY, MORE_CLIENTS, PROMPT, Setup
from agents.installs import program_of
from agents.mock_model import MockModel, Run, Say, Script, mock_model
from agents.story import SETTINGS
from agents.turns import strings
from daemon_process import DaemonProcess, wait_until
from flightrec.rule_text import LABEL
from helper_builds import helper

WRONG, RIGHT = "make tests", "make check"
MAKEFILE = "check:\n\t@echo fine\n"

ERRS: Script = (Run(WRONG), Say("I am stuck."))
"""The model runs what fails and gives up: nothing but the person's word tells what works."""

ORDINARY = "Thanks, go on, and then `git add -A`."
CORRECTION = "No, use `make check` instead."

Words = tuple[str, ...]

GOES_ON: dict[str, Callable[[Words], Words]] = {
    **dict.fromkeys(("claude", "pi", "qwen", "copilot"), lambda words: ("--continue", *words)),
    "codex": lambda words: ("exec", "resume", "--last", *words[1:]),
    "gemini": lambda words: ("--resume", "latest", *words),
}
"""How each agent is told to go on with its last session."""

HOOKS = [
    ("claude", "of a run"),
    ("claude", "installed"),
    ("codex", "installed"),
    *(
        pytest.param(name, "installed", marks=pytest.mark.full)
        for name in ("gemini", "pi", "qwen", "copilot")
    ),
]


@pytest.mark.parametrize(("name", "hooks"), HOOKS)
def test_what_a_person_says_instead_is_told_to_no_agent_before_it_is_approved(
    name: str, hooks: str, home: Path
) -> None:
    in_run = hooks == "of a run"  # a new one each time
    with opened(name, home) as place, daemon_for(place) as daemon:
        if not in_run:
            flightrec(place, "hook", "install", name, "--yes")
        if name == "codex":
            flightrec(place, "hook", "install", name, "--trust")

        place.run(ERRS, recorded=in_run)
        goes_on(place, ORDINARY).run(ERRS, recorded=in_run)
        _, done = goes_on(place, CORRECTION).run(ERRS, recorded=in_run)
        rule = waiting_rule(place, daemon)
        assert in_run == done.stderr.endswith("; 1 correction to approve: flightrec rules\n")

        model, _ = place.run(ERRS, recorded=in_run)
        assert "No rule to make target" in told(model)
        assert RIGHT not in told(model)
        assert RIGHT not in flightrec(place, "export", "--agent", name, "--dry-run")
        assert remembered(place) == []

        flightrec(place, "rules", "approve", rule)
        model, _ = place.run(ERRS, recorded=in_run)
        assert LABEL in model.first_prompt()
        assert rule in model.first_prompt()
        assert f"; try: {RIGHT}" in told(model)
        flightrec(place, "export", "--agent", name)
        assert remembered(place)


def test_what_a_person_types_to_claude_code_after_a_failure_waits_for_his_approval(
    home: Path,
) -> None:
    with opened("claude", home) as place, daemon_for(place) as daemon:
        with screen_of_claude(place) as screen:
            screen.asks(PROMPT)
            screen.asks(ORDINARY)
            screen.asks(CORRECTION)
            rule = waiting_rule(place, daemon)
        runs = daemon.query("SELECT command, exit FROM runs WHERE parent IS NULL")
        assert runs == [(WRONG, 2)]

        flightrec(place, "rules", "approve", rule)
        model, _ = place.run(ERRS, recorded=True)
        assert f"; try: {RIGHT}" in told(model)


def test_what_claude_code_says_in_the_person_s_place_is_not_his_word(home: Path) -> None:
    """It tells that a command in the background has ended by a prompt, in the model's words."""
    later = {"run_in_background": True, "description": "Use `make check` instead"}
    with opened("claude", home) as place:
        with daemon_for(place) as daemon:
            model, _ = place.run(
                (Run(f"sleep 0.5; {WRONG}", later), Say("I wait."), Say("I am stuck.")),
                recorded=True,
            )
        assert f'Background command "{later["description"]}" failed' in told(model)
        assert daemon.query("SELECT exit FROM runs WHERE parent IS NULL") == [(2,)]
        assert daemon.query("SELECT id FROM rules") == []


# --- the agent and its model ---------------------------------------------------------------------


@contextlib.contextmanager
def opened(name: str, home: Path) -> Iterator[Place]:
    """A place where this agent can work, and where one approval is enough for memory files."""
    helper()
    (client,) = (client for client in (*CLIENTS, *MORE_CLIENTS) if client.name == name)
    program = program_of(client.package)
    with place_for(client, program, home) as place:
        place.write(".config/flightrec/config.toml", SETTINGS)
        place.write("project/Makefile", MAKEFILE)
        yield place.configured()


def goes_on(place: Place, prompt: str) -> Place:
    """Return a place where the agent goes on with its last session, at this prompt."""
    client = place.client

    def setup_of(url: str) -> Setup:
        setup = client.setup(url)
        words = tuple(prompt if word == PROMPT else word for word in setup.words)
        return dataclasses.replace(setup, words=GOES_ON[client.name](words))

    return dataclasses.replace(place, client=dataclasses.replace(client, setup=setup_of))


def told(model: MockModel) -> str:
    """Return all that the model was told."""
    return "\n".join(text for request in model.requests for text in strings(request.body))


def flightrec(place: Place, *words: str) -> str:
    """Run a command line of ours; return what it prints."""
    done = place.flightrec(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def remembered(place: Place) -> list[Path]:
    """Return the memory files that hold the person's word."""
    return [path for path in place.home.rglob("*.md") if RIGHT in path.read_text("utf-8")]


def waiting_rule(place: Place, daemon: DaemonProcess) -> str:
    """Return the only rule, which says what the person said, and waits."""
    wait_until(lambda: daemon.query("SELECT id FROM rules"))
    ((rule,),) = daemon.query("SELECT id FROM rules")
    shown = flightrec(place, "rules").strip()
    assert shown == f"{rule}  candidate  R0 C0 D0   project     {WRONG} → {RIGHT}"
    assert rule.startswith("COR-")
    return str(rule)


# --- a screen ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Screen:
    """An agent in a pane of tmux, which a person types into."""

    place: Place
    model: MockModel
    socket: str

    def tmux(self, *words: str) -> str:
        done = self.place.start("tmux", "-u", "-S", self.socket, "-f", "/dev/null", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shows(self, text: str) -> None:
        """Wait until the pane shows this; blanks apart, since lines are broken anywhere."""
        self.wait(lambda: plain(text) in plain(self.tmux("capture-pane", "-p")), text)

    def asks(self, prompt: str) -> None:
        """Type a prompt; wait until the model has it, and has answered."""
        self.tmux("send-keys", "-l", prompt)
        self.shows(prompt)
        self.tmux("send-keys", "Enter")
        self.wait(lambda: prompt in told(self.model), f"{prompt!r} to be sent")
        self.shows("I am stuck.")

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited in vain for {what}:\n{self.tmux('capture-pane', '-p')}")
            time.sleep(0.05)


def plain(text: str) -> str:
    return "".join(text.split())


@contextlib.contextmanager
def screen_of_claude(place: Place) -> Iterator[Screen]:
    """Claude Code as its person left it: known, trusted, and asked not to ask."""
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY]},
        "projects": {str(place.project): {"hasTrustDialogAccepted": True}},
    }
    place.write(".claude.json", json.dumps(known))
    place.write(".claude/settings.json", json.dumps({"skipDangerousModePermissionPrompt": True}))
    with mock_model(ERRS, place.network.listener) as model:
        variables = place.client.setup(model.url).environment
        screen = Screen(place, model, str(place.home / "tmux"))
        words: list[str | Path] = [
            place.command,
            "run",
            "--",
            place.program,
            "--dangerously-skip-permissions",
        ]
        try:
            done = place.start(
                *("tmux", "-u", "-S", screen.socket, "-f", "/dev/null"),
                *("new-session", "-d", "-x", "120", "-y", "40", *words),
                variables=variables,
            )
            assert done.returncode == 0, done.stderr
            screen.shows("bypass permissions on")
            yield screen
        finally:
            place.end_leftovers()
