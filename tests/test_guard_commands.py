"""What the person says and sees of guards and briefings on the command line."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import Cli, stand_in_project
from daemon_process import DaemonProcess, lasting_daemon
from flightrec.errors import ExitCode, FlightrecError
from flightrec.rules import Guard


@pytest.fixture(scope="module")
def lasting() -> Iterator[DaemonProcess]:
    """One daemon for all tests that end none."""
    with lasting_daemon() as running:
        yield running


@pytest.fixture
def cli(
    lasting: DaemonProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cli]:
    """A git project to stand in, and a daemon that has recorded nothing and guards nothing."""
    monkeypatch.setenv("HOME", str(lasting.paths.home))
    with stand_in_project(lasting, monkeypatch, capsys) as made:
        yield made
    lasting.ask("project_guard", cwd=str(made.project), mode="off")
    lasting.ask("forget", since_us=0)


def test_a_rule_is_guarded_by_until_the_person_says_off(cli: Cli) -> None:
    rule = cli.teach()

    for mode in ("ask", "deny", "rewrite"):
        assert cli("rules", "guard", rule.id, mode).startswith(f"{mode:8} {rule.id}  gti ...")
        assert f"guards       {mode}\n" in cli("rules", "show", rule.id)
    assert "guard      rewrite by 1 rule" in cli("status")
    cli("rules", "guard", rule.id, "off")
    assert "guards       no: switched off\n" in cli("rules", "show", rule.id)
    assert "guard" not in cli("status")
    assert cli("rules", "guard", rule.id, "default") == "Nothing is guarded.\n"
    assert cli.rules()[0].guard is Guard.UNSET


def test_a_guard_that_does_not_act_yet_says_why(cli: Cli) -> None:
    rule = cli.teach(times=1)

    assert "not now: it is active, not promoted" in cli("rules", "guard", rule.id, "deny")
    shown = cli("rules", "show", rule.id)
    assert "guards       deny; not now: it is active, not promoted\n" in shown
    (described,) = cli.json("rules", "show", rule.id)
    assert (described["guard"], described["not_guarding"]) == (
        "deny",
        "it is active, not promoted",
    )


def test_a_project_is_guarded_from_anywhere_in_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = cli.teach()
    (cli.project / "sub").mkdir()
    monkeypatch.chdir(cli.project / "sub")
    project = os.path.realpath(cli.project / ".git")

    assert cli("rules", "guard", "--project", "ask") == f"ask      all proved rules in {project}\n"
    assert f"guard      ask in {project}\n" in cli("status")
    assert "guards       ask, in guarded projects\n" in cli("rules", "show", rule.id)
    document = json.loads(cli("rules", "show", rule.id, "--json"))
    assert document["guarded_projects"] == {project: "ask"}
    (status,) = cli.json("status")
    assert status["guard"] == {"projects": {project: "ask"}, "rules": {}}

    monkeypatch.chdir("/")
    assert cli("rules", "guard", "--project", str(cli.project), "off") == "Nothing is guarded.\n"


def test_what_is_guarded_is_kept_where_the_daemon_starts_anew(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with DaemonProcess(home) as daemon, stand_in_project(daemon, monkeypatch, capsys) as cli:
        rule = cli.teach()
        cli("rules", "guard", rule.id, "deny")
        before = cli("rules", "guard", "--project", "ask")
        assert "deny" in before
        assert "ask" in before

    with DaemonProcess(home):
        assert cli("rules", "guard") == before


@pytest.mark.parametrize(
    "words",
    [
        ("deny",),
        ("ERR-20261130-001", "never"),
        ("ERR-20261130-001", "deny", "ask"),
        ("--project", "default"),
        ("--project", ".", ".", "deny"),
        ("--project", "ERR-20261130-001"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line(cli: Cli, words: tuple[str, ...]) -> None:
    cli("rules", "guard", *words, status=ExitCode.USAGE)

    assert cli.err.startswith("flightrec: say: flightrec rules guard RULE ask|deny|rewrite|off|")
    assert cli.err.count("\n") == 1


def test_what_does_not_exist_cannot_be_guarded(cli: Cli) -> None:
    cli("rules", "guard", "--project", "no-such-folder", "deny", status=ExitCode.TROUBLE)
    assert cli.err == "flightrec: no folder no-such-folder\n"

    cli("rules", "guard", "ERR-20261130-777", "deny", status=ExitCode.TROUBLE)
    assert cli.err.startswith("flightrec: no rule ERR-20261130-777")


def test_a_folder_whose_name_is_no_text_is_refused_in_one_line(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = cli.project / os.fsdecode(b"o\xffdd")
    (odd / ".git").mkdir(parents=True)
    (odd / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (cli.project / "link").symlink_to(odd)

    with pytest.raises(FlightrecError, match="this project's path is not UTF-8 text"):
        cli.daemon.ask("project_guard", cwd=str(cli.project / "link"), mode="deny")
    monkeypatch.chdir(odd)
    cli("rules", "guard", "--project", "deny", status=ExitCode.TROUBLE)
    assert cli.err == "flightrec: this folder's name is not UTF-8 text; go to another one\n"
    rule = cli.teach()
    cli("rules", "approve", rule.id, status=ExitCode.TROUBLE)
    assert cli.err == "flightrec: this folder's name is not UTF-8 text; go to another one\n"


def test_forgetting_a_project_ends_its_guard(cli: Cli) -> None:
    cli.teach()
    cli("rules", "guard", "--project", "ask")

    cli("forget", "--yes", str(cli.project))

    assert cli("rules", "guard") == "Nothing is guarded.\n"


def test_a_person_sees_what_agents_are_told(cli: Cli) -> None:
    assert cli("rules", "briefing") == "Nothing: no rule is promoted here.\n"

    rule = cli.teach()

    text = cli("rules", "briefing", str(cli.project))
    assert text.startswith("Recorded by flightrec")
    assert text.endswith(f"worked: `git ...` ({rule.id})\n")
    assert cli("rules", "briefing", "/") == "Nothing: no rule is promoted here.\n"
