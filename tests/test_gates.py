"""Guards and briefings by a real helper and a real daemon: what an agent's client is answered."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon_process import DaemonProcess, lasting_daemon, wait_until
from fake_relay import FakeRelay, finished, starting
from flightrec.commands import dispatch
from flightrec.rule_text import LABEL
from flightrec.rules import Guard
from flightrec.wire import Source, TailSource
from hook_samples import SAMPLES, Fields, answer_to

RULE = "SELECT r, c, d FROM rules"
GATES = "SELECT gate, outcome FROM hints WHERE gate <> '' ORDER BY id"


class Client:
    """An agent's client in a project: it asks its hook, and runs what it may in a shell."""

    def __init__(self, daemon: DaemonProcess, project: Path, agent: str = "claude") -> None:
        self.daemon, self.project, self.agent = daemon, project, agent
        self.session = os.urandom(16)
        self.shell = FakeRelay(daemon.paths.socket, b"sh")
        self.uses = self.ran = 0

    def hook(self, payload: Fields, **more: object) -> Fields:
        """Return what the client is told, {} for nothing."""
        payload = {**payload, "cwd": str(self.project), **more}
        variables = {"FLIGHTREC_SESSION": self.session.hex()}
        return answer_to(self.agent, payload, self.daemon.paths.home, **variables)

    def ask(self, command: str, **more: object) -> Fields:
        """Return what the client is told before a command."""
        self.uses += 1
        return self.hook(SAMPLES[self.agent].before(command, f"use {self.uses}"), **more)

    def run(self, command: str, status: int = 0, error: str = "") -> None:
        """Run a command that the client has announced, up to its end in the database."""
        begun = starting(
            command,
            self.session,
            source=Source.SH,
            agent=self.agent.encode(),
            cwd=os.fsencode(self.project),
        )
        tail = {"tail": error.encode(), "tail_source": TailSource.STDERR, "tail_total": len(error)}
        self.shell.send(begun, finished(begun, status, **tail))
        sample = SAMPLES[self.agent]
        use = f"use {self.uses}"
        if status == 0 or sample.failed is None:
            self.hook(sample.passed(command, use, error))
        else:
            self.hook(sample.failed(command, use, error, status))
        self.ran += 1
        count = (
            "SELECT count(*) FROM runs JOIN sessions ON sessions.id = session_id"  # noqa: S608 - hex
            f" WHERE session = x'{self.session.hex()}'"
        )
        wait_until(lambda: self.daemon.query(count) == [(self.ran,)])


@pytest.fixture(scope="module")
def lasting() -> Iterator[DaemonProcess]:
    """One daemon for all tests that end none."""
    with lasting_daemon() as running:
        yield running


@pytest.fixture
def daemon(lasting: DaemonProcess) -> Iterator[DaemonProcess]:
    """A daemon that has recorded nothing."""
    yield lasting
    lasting.ask("resume")
    lasting.ask("forget", since_us=0)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return folder


def prove(daemon: DaemonProcess, project: Path) -> str:
    """Mistype git in three shells; return the id of the rule that follows."""
    for _ in range(3):
        with daemon.relay() as relay:
            place = {"cwd": os.fsencode(project)}
            runs = [relay.type("gti status", 127, **place), relay.type("git status", 0, **place)]
            relay.wait_for_commit(*runs)
    ((rule, r, c, d),) = daemon.query("SELECT id, r, c, d FROM rules")
    assert (r, c, d) == (2, 3, 0)
    return str(rule)


@pytest.fixture
def rule(daemon: DaemonProcess, project: Path) -> str:
    return prove(daemon, project)


def decision(answer: Fields) -> dict[str, Any]:
    """Return what Claude Code is told to do with a command."""
    found = dict(answer.get("hookSpecificOutput", {}))
    assert found.pop("hookEventName", "PreToolUse") == "PreToolUse"
    return found


def start_of_session(client: Client) -> str:
    """Return what Claude Code's model is told when a session begins."""
    start = {"hook_event_name": "SessionStart", "session_id": "new", "source": "startup"}
    answer = client.hook(start).get("hookSpecificOutput", {})
    return str(answer.get("additionalContext", ""))


def why(
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
    daemon: DaemonProcess,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """Return what a person is shown of a rule's history."""
    monkeypatch.setenv("HOME", str(daemon.paths.home))
    capsys.readouterr()
    assert dispatch(["why", rule]) == 0
    return capsys.readouterr().out


def guard(daemon: DaemonProcess, rule: str, mode: Guard) -> None:
    daemon.ask("rule_guard", rule=rule, mode=mode.value)


def test_a_denied_command_does_not_run_and_the_remedy_confirms_the_rule(
    daemon: DaemonProcess, project: Path, rule: str
) -> None:
    guard(daemon, rule, Guard.DENY)
    client = Client(daemon, project)

    assert decision(client.ask("gti status")) == {
        "permissionDecision": "deny",
        "permissionDecisionReason": (
            "flightrec: not run: previously failed here (3×: command not found); try: git status"
            " (sent once more, it runs as it is)"
        ),
    }
    assert client.ask("git status") == {}
    client.run("git status")

    assert daemon.query(RULE) == [(2, 4, 0)]
    assert daemon.query(GATES) == [("deny", "followed")]
    commands = daemon.query("SELECT command FROM runs WHERE agent = 'claude'")
    assert commands == [("git status",)]


def test_an_agent_that_insists_is_let_through_and_what_passes_ends_the_gate_at_once(
    daemon: DaemonProcess,
    project: Path,
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    guard(daemon, rule, Guard.DENY)
    client = Client(daemon, project)

    assert decision(client.ask("gti status"))["permissionDecision"] == "deny"
    assert "permissionDecision" not in decision(client.ask("gti status"))
    client.run("gti status")

    assert daemon.query(RULE) == [(2, 3, 1)]
    assert daemon.query(GATES) == [("deny", "insisted"), ("let", "passed")]
    shown = why(rule, monkeypatch, daemon, capsys)
    assert (
        "the guard denied a command; the agent sent it once more\n      offered: git status"
        in shown
    )
    assert "let the command through that it had stopped; it passed\n" in shown
    assert "passed, though the guard had spoken against it" in shown
    assert "permissionDecision" not in decision(Client(daemon, project).ask("gti status"))


def test_the_persons_no_ends_the_gate_at_once(
    daemon: DaemonProcess, project: Path, rule: str
) -> None:
    guard(daemon, rule, Guard.DENY)
    assert decision(Client(daemon, project).ask("gti status")) != {}

    daemon.ask("rule_dismiss")  # the last one that was shown

    assert daemon.query(RULE) == [(2, 3, 1)]
    assert "permissionDecision" not in decision(Client(daemon, project).ask("gti status"))


def test_a_command_is_rewritten_where_its_client_lets_any_command_run(
    daemon: DaemonProcess, project: Path, rule: str
) -> None:
    guard(daemon, rule, Guard.REWRITE)
    line = "cd . && gti log --format='%h  %s' | head -3"
    client = Client(daemon, project)

    told = decision(client.ask(line, permission_mode="bypassPermissions"))
    assert told["permissionDecision"] == "allow"
    rewritten = told["updatedInput"]["command"]
    assert rewritten == "cd . && git log --format='%h  %s' | head -3"
    client.run(rewritten)

    assert daemon.query(RULE) == [(2, 4, 0)]
    assert daemon.query(GATES) == [("rewrite", "followed")]
    # where the person is asked before commands run, to allow one would be to answer for him
    told = decision(Client(daemon, project).ask(line, permission_mode="default"))
    assert told["permissionDecision"] == "deny"


def test_a_rewritten_command_that_fails_in_its_own_way_may_run_as_it_was_sent(
    daemon: DaemonProcess, project: Path, rule: str
) -> None:
    guard(daemon, rule, Guard.REWRITE)
    client = Client(daemon, project)
    bypass = {"permission_mode": "bypassPermissions"}

    told = decision(client.ask("gti staus", **bypass))
    client.run(
        told["updatedInput"]["command"], 1, "git: 'staus' is not a git command. See 'git --help'.\n"
    )
    assert daemon.query("SELECT kind, teachable FROM failures ORDER BY id DESC LIMIT 1") == [
        ("unknown subcommand", 1)
    ]
    assert "updatedInput" not in decision(client.ask("gti staus", **bypass))
    client.run("gti staus", 127, "bash: gti: command not found\n")

    assert daemon.query(RULE) == [(3, 3, 0)]
    assert daemon.query(GATES) == [("rewrite", "failed"), ("let", "recurred")]


def test_whoever_cannot_be_made_to_ask_is_denied(
    daemon: DaemonProcess, project: Path, rule: str
) -> None:
    guard(daemon, rule, Guard.ASK)

    asked = decision(Client(daemon, project).ask("gti status"))
    unasked = Client(daemon, project).ask("gti status", permission_mode="bypassPermissions")
    denied = Client(daemon, project, "gemini").ask("gti status")

    assert asked["permissionDecision"] == "ask"
    assert "what worked: git status" in asked["permissionDecisionReason"]
    assert decision(unasked)["permissionDecision"] == "deny"
    assert denied["decision"] == "deny"
    assert "try: git status" in denied["reason"]


def test_a_guarded_project_is_guarded_in_all_its_folders_and_no_other_one_is(
    daemon: DaemonProcess, project: Path, rule: str, tmp_path: Path
) -> None:
    daemon.ask("project_guard", cwd=str(project), mode="deny")
    (project / "sub").mkdir()

    for folder, wanted in ((project, True), (project / "sub", True), (tmp_path, False)):
        told = decision(Client(daemon, folder).ask("gti status"))
        assert ("permissionDecision" in told) == wanted, folder
    guard(daemon, rule, Guard.OFF)
    assert "permissionDecision" not in decision(Client(daemon, project).ask("gti status"))


def test_a_rule_that_is_not_sure_yet_denies_nothing(daemon: DaemonProcess, project: Path) -> None:
    with daemon.relay() as relay:
        place = {"cwd": os.fsencode(project)}
        runs = [relay.type("gti status", 127, **place), relay.type("git status", 0, **place)]
        relay.wait_for_commit(*runs)
    ((rule,),) = daemon.query("SELECT id FROM rules")
    guard(daemon, str(rule), Guard.DENY)

    assert "permissionDecision" not in decision(Client(daemon, project).ask("gti status"))


def test_guards_outlive_the_daemon(home: Path, project: Path) -> None:
    with DaemonProcess(home) as daemon:
        rule = prove(daemon, project)
        guard(daemon, rule, Guard.DENY)
        daemon.ask("project_guard", cwd=str(project), mode="ask")

    with DaemonProcess(home) as again:
        again.wait_for_writer()
        told = decision(Client(again, project).ask("gti status"))
        assert told["permissionDecision"] == "deny"
        guard(again, rule, Guard.UNSET)
        told = decision(Client(again, project).ask("gti status"))
        assert told["permissionDecision"] == "ask"


def test_nothing_is_stopped_during_a_pause(daemon: DaemonProcess, project: Path, rule: str) -> None:
    guard(daemon, rule, Guard.DENY)
    daemon.ask("pause")

    assert Client(daemon, project).ask("gti status") == {}
    assert start_of_session(Client(daemon, project)) == ""


def test_where_only_names_of_programs_are_kept_no_word_of_a_denied_command_is(
    home: Path, project: Path
) -> None:
    with DaemonProcess(home) as daemon:
        rule = prove(daemon, project)
        guard(daemon, rule, Guard.DENY)
        daemon.paths.config.parent.mkdir(parents=True, exist_ok=True)
        daemon.paths.config.write_text('[capture]\nlevel = "metadata"\n')
        daemon.ask("reload")

        told = decision(Client(daemon, project).ask("gti commit -m private"))
        assert told["permissionDecisionReason"].count("git commit -m private") == 1
        wait_until(lambda: daemon.query(GATES) == [("deny", None)])
        assert daemon.query("SELECT remedy FROM hints WHERE gate = 'deny'") == [("",)]


def test_an_agent_is_told_of_its_project_when_its_session_begins(
    daemon: DaemonProcess, project: Path, tmp_path: Path
) -> None:
    assert start_of_session(Client(daemon, project)) == ""

    rule = prove(daemon, project)

    told = start_of_session(Client(daemon, project))
    assert told.splitlines() == [
        LABEL,
        "",
        f"- `gti ...` failed (command not found, 3 sessions); worked: `git ...` ({rule})",
    ]
    assert start_of_session(Client(daemon, tmp_path)) == ""
    daemon.ask("rule_reject", rule=rule)
    assert start_of_session(Client(daemon, project)) == ""
