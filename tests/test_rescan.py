"""Old rows are redacted again when more is found than before: no byte of it stays in any file."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from daemon_process import DaemonProcess, flightrec, wait_until
from flightrec import person
from flightrec import rescan as rescan_module
from flightrec.config import Redaction
from flightrec.errors import FlightrecError
from flightrec.paths import Paths
from flightrec.person import Act
from flightrec.recorder import Recorder
from flightrec.redact import Safe
from flightrec.rescan import PORTION, Rescan, Rescanned
from flightrec.store import Store
from test_forgetting import Shell, holders, rules

CANARY = "Zq9hunter2canary"

DENIED = Redaction(deny=("zebra-[0-9]+",))


def go_over(store: Store, paths: Paths, settings: Redaction = DENIED) -> Rescanned:
    """Step until it is done."""
    rescan = Rescan(store, paths, settings)
    while not (step := rescan.step(Recorder(store).book, lambda: None)).done:
        pass
    return step


def test_what_is_found_today_is_gone_from_every_file(store: Store, paths: Paths) -> None:
    """T8: also where only the command before tells that it is a secret, and in the index."""
    shell = Shell(store)
    for n in range(120):
        shell.type(f"echo {n} {'filler ' * 30}")
    shell.type(f"mysql -uroot -p{CANARY} shop", 1, f"boom: {CANARY} refused {'long ' * 900}")
    shell.type(f"cat notes-{CANARY}")
    backups = paths.state / "backups"
    backups.mkdir()
    (backups / "with").write_text(f"- `mysql -uroot -p{CANARY} shop` failed")
    (backups / "without").write_text("- nothing")
    (paths.state / "flightrec.db.corrupt-1").write_text("cannot be searched")
    assert holders(paths, CANARY)

    assert go_over(store, paths).changed == 2

    assert holders(paths, CANARY) == []
    assert [path.name for path in backups.iterdir()] == ["without"]
    assert not (paths.state / "flightrec.db.corrupt-1").exists()
    assert store.damaged_rows() == 0
    signatures = store.connection.execute("SELECT group_concat(signature) FROM failures").fetchone()
    assert "canary" not in str(signatures), "where digits are blanked, no byte is as it was"
    (cat, mysql) = store.recent_runs(2)
    assert cat.command == "cat notes-‹secret:repeated›"
    assert (mysql.command, mysql.secret) == ("mysql -uroot -p‹secret:pass› shop", True)
    assert mysql.tail.startswith("boom: ‹secret:repeated› refused long")
    count = "SELECT count(*) FROM runs_fts WHERE runs_fts MATCH ?"
    assert store.connection.execute(count, (CANARY,)).fetchone() == (0,)
    assert store.connection.execute(count, ("refused",)).fetchone() == (1,)


def teach(store: Store, failing: str, working: str) -> None:
    """Enter a rule as it stands."""
    with store.transaction():
        act = Act(at_us=1_000_000)
        person.learn(Recorder(store).book, Safe(failing), Safe(working), act)


def test_a_rule_that_held_a_secret_is_kept_without_it_and_never_offered(
    store: Store, paths: Paths
) -> None:
    teach(store, "make zebra-12", "make -k zebra-12 && make all")
    teach(store, "dcoker ps", "docker ps")
    assert all(not rule.held_back for rule in rules(store))

    go_over(store, paths)

    assert holders(paths, "zebra-12") == []
    (held_back,) = [rule for rule in rules(store) if rule.held_back]
    assert held_back.held_back == "it holds a secret"
    assert held_back.trigger.words == ("make", "‹secret:rescanned›")
    assert [rule.trigger.words[0] for rule in Recorder(store).hint_rules()] == ["dcoker"]


def test_a_rule_follows_its_project_whose_name_is_a_secret_now(store: Store, paths: Paths) -> None:
    """What is recorded there from now on says the same, and finds the rule."""
    with store.transaction():
        act = Act(at_us=1_000_000, project="/p/zebra-3")
        book = Recorder(store).book
        for everywhere in (False, True):
            failing = Safe(f"make {everywhere}")
            person.learn(book, failing, Safe("make all"), act, everywhere=everywhere)
    go_over(store, paths)
    assert holders(paths, "zebra-3") == []
    assert {rule.project for rule in rules(store)} == {"/p/‹secret:denied›"}
    assert [rule.held_back for rule in rules(store)] == ["", ""]


def test_two_rules_that_differ_in_a_secret_become_one(store: Store, paths: Paths) -> None:
    teach(store, "zebra-1 x", "git x")
    teach(store, "zebra-2 x", "git x")
    assert len(rules(store)) == 2
    go_over(store, paths)
    assert holders(paths, "zebra-1") == holders(paths, "zebra-2") == []
    (rule,) = rules(store)
    assert rule.held_back == "it holds a secret"


def test_it_is_done_in_portions_and_goes_on_where_it_was(store: Store, paths: Paths) -> None:
    shell = Shell(store)
    for n in range(2 * PORTION + 1):
        shell.type(f"echo zebra-{n}")
    book = Recorder(store).book
    changed = [Rescan(store, paths, DENIED).step(book, lambda: None).changed for _ in range(2)]
    assert changed == [0, PORTION], "first the rules, of which there are none"
    state = Rescan(store, paths, DENIED).state()
    assert state == {"due": 1, "left": PORTION + 1, "changed": PORTION}
    assert go_over(store, paths).changed == 2 * PORTION + 1
    assert holders(paths, "zebra-") == []


def test_another_redaction_is_due_and_the_same_is_not(
    store: Store, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    Shell(store).type("ls")
    assert Rescan(store, paths, DENIED).is_due
    go_over(store, paths)
    assert not Rescan(store, paths, DENIED).is_due
    assert Rescan(store, paths, Redaction()).is_due
    monkeypatch.setattr(rescan_module, "VERSION", 1_000)
    assert Rescan(store, paths, DENIED).is_due


def test_a_reader_that_holds_old_pages_puts_the_end_off(store: Store, paths: Paths) -> None:
    Shell(store).type("echo zebra-1")
    store.connection.execute("PRAGMA busy_timeout=50")
    with contextlib.closing(sqlite3.connect(paths.database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM runs").fetchone()
        with pytest.raises(FlightrecError, match="keeps an old copy"):
            go_over(store, paths)
    rescan = Rescan(store, paths, DENIED)
    assert rescan.is_due
    rescan.begin()
    go_over(store, paths)
    assert holders(paths, "zebra-1") == [], "though no row had to be changed the second time"


def record(daemon: DaemonProcess) -> None:
    """Record runs and teach a rule that name what will be a secret."""
    with daemon.relay() as relay:
        relay.wait_for_commit(relay.type("git push zebra-7"))
    place = {"cwd": str(daemon.paths.home), "everywhere": True}
    daemon.ask("rule_learn", failing="make zebra-7", working="make -k zebra-7 all", **place)


def test_a_new_pattern_of_the_persons_cleans_a_running_daemons_records(home: Path) -> None:
    """Also what the daemon has in memory: it hints nothing that is a secret now."""
    with DaemonProcess(home) as daemon:
        record(daemon)
        with daemon.relay() as other:
            _, reply = other.ask("make zebra-7")
            assert b"make -k zebra-7 all" in reply.text
        assert holders(daemon.paths, "zebra-7")
        daemon.paths.config.parent.mkdir(parents=True, exist_ok=True)
        daemon.paths.config.write_text('[redaction]\ndeny = ["zebra-[0-9]+"]\n')
        daemon.ask("reload")
        wait_until(lambda: not daemon.ask("rescan")["due"])
        assert holders(daemon.paths, "zebra-7") == []
        with daemon.relay() as other:
            _, reply = other.ask("make zebra-7")
            assert reply.text == b""


def test_a_daemon_starts_with_cleaning_and_the_command_does_it_once_more(home: Path) -> None:
    with DaemonProcess(home) as daemon:
        record(daemon)
    daemon.paths.config.parent.mkdir(parents=True, exist_ok=True)
    daemon.paths.config.write_text('[redaction]\ndeny = ["zebra-[0-9]+"]\n')
    with DaemonProcess(home) as daemon:
        daemon.wait_for_writer()
        wait_until(lambda: not daemon.ask("rescan")["due"])
        assert holders(daemon.paths, "zebra-7") == []
        result = flightrec("redact", "--rescan", home=home)
        assert (result.stdout, result.stderr) == ("Gone over everything: 0 rows changed.\n", "")
    assert flightrec("redact", "--rescan", "x", home=home).returncode == 2


def test_what_was_not_gone_over_yet_is_not_shown_either(store: Store, paths: Paths) -> None:
    """No daemon runs: the log is redacted as it is printed."""
    Shell(store).type("make zebra-9", 2, "no rule for zebra-9")
    paths.config.parent.mkdir(parents=True)
    paths.config.write_text('[redaction]\ndeny = ["zebra-[0-9]+"]\n')
    for words in (["log"], ["log", "--json"]):
        shown = flightrec(*words, home=paths.home).stdout
        assert "make" in shown
        assert "zebra" not in shown
