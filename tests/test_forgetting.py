"""Forgetting: no byte of it stays in any file, and what was learned elsewhere does."""

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from daemon_process import DaemonProcess, flightrec
from fake_relay import finished, starting
from flightrec.errors import FlightrecError
from flightrec.forgetting import SEARCHED, Forgotten, Wanted, forget
from flightrec.ingest import CommandRun
from flightrec.paths import Paths
from flightrec.recorder import Recorder
from flightrec.redact import Safe
from flightrec.rules import Rule
from flightrec.store import Store
from flightrec.wire import Source, TailSource

CANARY = "Zq9-hunter-canary"

MINUTE_US = 60 * 1_000_000


class Shell:
    """A session that types into the recorder."""

    def __init__(self, store: Store, *, begun_us: int = 1000 * MINUTE_US) -> None:
        self.session = os.urandom(16)
        self._store = store
        self._recorder = Recorder(store)
        self._now_us = begun_us

    def type(self, command: str, status: int = 0, tail: str = "") -> CommandRun:
        self._now_us += MINUTE_US
        run = CommandRun(  # noqa: S604 - shell is a name here
            run=os.urandom(16),
            session=self.session,
            source=Source.RELAY,
            shell="bash",
            tty="/dev/pts/1",
            pid=1,
            project=Safe("/p"),
            worktree=Safe("/p"),
            cwd=Safe("/p"),
            command=Safe(command),
            truncated=False,
            secret=False,
            boot="b",
            mono_us=self._now_us,
            started_us=self._now_us,
            exit=status,
            tail=Safe(tail),
            tail_source=TailSource.STDERR if tail else TailSource.NONE,
            tail_total=len(tail),
        )
        with self._store.transaction():
            self._recorder.record(run)
        return run

    def learn(self, wrong: str, right: str) -> None:
        """Mistype a program and correct it."""
        program = wrong.split(maxsplit=1)[0]
        self.type(wrong, 127, f"bash: {program}: command not found\n")
        self.type(right)


def rules(store: Store) -> list[Rule]:
    return Recorder(store).book.rules()


def forget_all(store: Store, paths: Paths, wanted: Wanted) -> Forgotten:
    return forget(store, paths, wanted, lambda: None)


def holders(paths: Paths, text: str) -> list[str]:
    """Return the names of all files below the state folder that hold the text."""
    files = (path for path in paths.state.rglob("*") if path.is_file())
    return [path.name for path in files if text.encode() in path.read_bytes()]


def test_a_text_is_gone_from_every_file_with_all_that_was_learned_from_it(
    store: Store, paths: Paths
) -> None:
    """T8: rows, free pages, full-text index, log, rules and their evidence."""
    shell = Shell(store)
    for n in range(200):
        shell.type(f"echo {n} {'filler ' * 30}")
    shell.learn(f"gti push {CANARY}", f"git push {CANARY}")
    shell.type(f"make {CANARY}-suffix", 2, f"boom {CANARY} {'long ' * 2000}")
    shell.learn("dcoker ps", "docker ps")
    kept = store.counts().runs - 3
    assert holders(paths, CANARY)

    forgotten = forget_all(store, paths, Wanted(text=CANARY))

    assert forgotten == Forgotten(runs=3, rules=1, files=0)
    assert holders(paths, CANARY) == []
    assert store.counts().runs == kept
    assert [rule.failure_kind for rule in rules(store)] == ["command not found"]
    rows = store.connection.execute("SELECT count(*) FROM runs_fts WHERE runs_fts MATCH 'docker'")
    assert rows.fetchone() == (1,)


@pytest.mark.parametrize("text", ['say "hi"', "back\\slash", "naïve ☃", "tab\there"])
def test_a_text_is_found_in_rules_as_json_writes_it(store: Store, paths: Paths, text: str) -> None:
    with store.transaction() as connection:
        shell = Shell(store)
        shell.learn("gti x", "git x")
        connection.execute("UPDATE rules SET remedy = json_object('words', ?)", (text,))
    assert forget_all(store, paths, Wanted(text=text)).rules == 1
    assert store.counts().rules == {}


OF_US = {
    "runs": {"shell", "boot", "pipestatus", "tool_use_id"},
    "failures": {"kind"},
    "rules": {
        *("key", "status", "kind", "failure_kind", "scope", "upstream", "verdict", "guard"),
        "held_back",
    },
    "evidence": {"rule_id", "kind", "event", "reason"},
    "outcomes": {"rule_id"},
    "hints": {"rule_id", "gate", "outcome"},
    "guards": {"mode"},
    "sessions": {"shell", "tty"},
}
"""Texts of ours, numbers and ids: what a person wants to be forgotten is in none of them."""

ELSEWHERE = {"sessions": {"agent"}}
"""Looked at with the runs: a session goes with its last run."""


def test_for_each_text_it_is_decided_whether_it_may_hold_words_of_a_person(store: Store) -> None:
    columns = store.connection.execute(
        "SELECT tables.name, columns.name FROM sqlite_master AS tables,"
        " pragma_table_info(tables.name) AS columns"
        " WHERE tables.type = 'table' AND columns.type = 'TEXT'"
    )
    texts: dict[str, set[str]] = {}
    for table, column in columns.fetchall():
        texts.setdefault(table, set()).add(column)
    for table, ours in OF_US.items():
        decided = ours | ELSEWHERE.get(table, set()) | set(SEARCHED.get(table, ()))
        assert texts[table] == decided, table
        assert not ours & set(SEARCHED.get(table, ()))
    assert set(texts) - set(OF_US) == {"meta", "anchors", "recoveries", "exports"}


def test_a_rule_goes_by_each_of_its_words_and_none_of_ours(store: Store, paths: Paths) -> None:
    trigger = (
        b'{"kind":"unknown option","words":["tool",[0,"options","--pre="]],'
        b'"directory":"sub","host":"h.example"}'
    )
    remedy = (
        b'{"kind":"replace","words":["gizmo",[0,"options","--pre="]],"prefix":["sudo"],'
        b'"before":["make it"],"directory":"below","lesson":"mind it"}'
    )
    Shell(store).learn("gti x", "git x")
    columns = {
        "trigger": trigger, "remedy": remedy, "seen_in": b'["/elsewhere"]',
        "origin": b"import:acme", "guard": b"deny", "held_back": b"it holds a secret",
        "program": b"tool",
    }  # fmt: skip
    for column, text in columns.items():
        store.connection.execute(f"UPDATE rules SET {column} = CAST(? AS TEXT)", (text,))  # noqa: S608 - our own names
    (rule_id,) = (rule.id for rule in rules(store))

    def holds(text: str) -> bool:
        return forget(store, paths, Wanted(text=text), lambda: None, dry_run=True).rules == 1

    words = (
        *("tool", "--pre=", "sub", "h.example", "gizmo", "sudo", "make it", "below", "mind it"),
        *("/elsewhere", "acme", rule_id),
    )
    ours = (
        *("kind", "words", "prefix", "before", "lesson", "replace", "unknown option", "options"),
        *("import", "deny", "secret", rule_id[:-1], "ERR", "candidate", "active"),
    )
    assert [word for word in words if not holds(word)] == []
    assert [word for word in ours if holds(word)] == []


@pytest.mark.parametrize("table", ["failures", "outcomes"])
def test_the_message_of_a_signature_is_forgotten_and_not_its_kind(
    store: Store, paths: Paths, table: str
) -> None:
    Shell(store).learn("gti x", "git x")
    signature = f"unknown option|gti||{CANARY}"
    store.connection.execute(f"UPDATE {table} SET signature = ?", (signature,))  # noqa: S608 - our own names
    count = f"SELECT count(*) FROM {table}"  # noqa: S608 - our own names
    forget_all(store, paths, Wanted(text="unknown option"))
    assert store.connection.execute(count).fetchone() == (1,)
    forget_all(store, paths, Wanted(text=CANARY))
    assert store.connection.execute(count).fetchone() == (0,)
    assert holders(paths, CANARY) == []


def test_a_rule_that_is_damaged_is_found_all_the_same(store: Store, paths: Paths) -> None:
    Shell(store).learn("gti x", "git x")
    store.connection.execute("UPDATE rules SET remedy = 'no JSON ' || ?", (CANARY,))
    assert forget_all(store, paths, Wanted(text=CANARY)).rules == 1
    assert holders(paths, CANARY) == []


@pytest.mark.parametrize("name", ["runs", "sessions"])
def test_a_program_that_ran_commands_is_forgotten_by_its_name(
    store: Store, paths: Paths, name: str
) -> None:
    own, other = Shell(store), Shell(store)
    own.type("one")
    own.type("two")
    other.type("three")
    store.connection.execute(
        f"UPDATE {name} SET agent = ? WHERE "  # noqa: S608 - our own names
        + ("session = ?" if name == "sessions" else
           "session_id = (SELECT id FROM sessions WHERE session = ?)"),
        (f"{CANARY}-agent", own.session),
    )  # fmt: skip
    assert forget_all(store, paths, Wanted(text=CANARY)).runs == 2
    assert [run.command for run in store.recent_runs()] == ["three"]
    assert holders(paths, CANARY) == []


def test_an_agent_that_everybody_knows_is_no_word(store: Store, paths: Paths) -> None:
    shell = Shell(store)
    shell.type("cat claude.md")
    shell.type("make")
    store.connection.execute("UPDATE runs SET agent = 'claude'")
    store.connection.execute("UPDATE sessions SET agent = 'claude'")
    assert forget_all(store, paths, Wanted(text="claude")).runs == 1
    assert [run.command for run in store.recent_runs()] == ["make"]


def test_a_session_is_gone_and_rules_keep_what_other_sessions_saw(
    store: Store, paths: Paths
) -> None:
    private, other = Shell(store), Shell(store)
    private.learn("gti status", "git status")
    other.learn("gti status", "git status")
    private.learn(f"dcoker {CANARY}", f"docker {CANARY}")
    (both, _) = sorted(rules(store), key=lambda rule: -rule.c)
    assert both.c == 2

    forgotten = forget_all(store, paths, Wanted(session=private.session))

    assert forgotten == Forgotten(runs=4, rules=1, files=0)
    assert holders(paths, CANARY) == []
    (left,) = rules(store)
    assert (left.id, left.c) == (both.id, 1)
    assert store.counts().sessions == 1


def test_the_last_while_is_gone(store: Store, paths: Paths) -> None:
    shell = Shell(store)
    shell.type("before")
    after = shell.type(CANARY)
    shell.learn(f"gti {CANARY}", f"git {CANARY}")
    forget_all(store, paths, Wanted(since_us=after.started_us))
    assert [run.command for run in store.recent_runs()] == ["before"]
    assert store.counts().rules == {}
    assert holders(paths, CANARY) == []


def test_a_rehearsal_counts_and_changes_nothing(store: Store, paths: Paths) -> None:
    Shell(store).learn(f"gti {CANARY}", f"git {CANARY}")
    (paths.state / "flightrec.db.corrupt-x").write_text(CANARY)
    before = list(store.connection.iterdump())
    found = forget(store, paths, Wanted(text=CANARY), lambda: None, dry_run=True)
    assert found == Forgotten(runs=2, rules=1, files=1)
    assert list(store.connection.iterdump()) == before
    assert (paths.state / "flightrec.db.corrupt-x").exists()


def test_files_that_may_hold_it_go_as_a_whole_and_others_stay(store: Store, paths: Paths) -> None:
    """Damaged databases cannot be searched; copies of memory files can."""
    backups = paths.state / "backups"
    backups.mkdir()
    (backups / "with").write_text(f"- {CANARY}")
    (backups / "without").write_text("- nothing")
    for name in ("flightrec.db.corrupt-1", "flightrec.db.corrupt-1-wal"):
        (paths.state / name).write_text("cannot be searched")
    assert forget_all(store, paths, Wanted(text=CANARY)).files == 3
    assert [path.name for path in backups.iterdir()] == ["without"]


def test_copies_that_the_refreshed_exports_leave_go_too(store: Store, paths: Paths) -> None:
    backups = paths.state / "backups"
    backups.mkdir()
    forget(store, paths, Wanted(text=CANARY), lambda: (backups / "x").write_text(CANARY))
    assert list(backups.iterdir()) == []


def test_a_reader_that_holds_old_pages_is_said_and_the_next_try_succeeds(
    store: Store, paths: Paths
) -> None:
    Shell(store).type(CANARY)
    store.connection.execute("PRAGMA busy_timeout=50")
    with contextlib.closing(sqlite3.connect(paths.database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM runs").fetchone()
        with pytest.raises(FlightrecError, match="keeps an old copy"):
            forget_all(store, paths, Wanted(text=CANARY))
    forget_all(store, paths, Wanted(text=CANARY))
    assert holders(paths, CANARY) == []


def test_the_command_leaves_no_byte_and_no_hint_behind(home: Path) -> None:
    """End to end: also the daemon's memory offers it no more."""
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        for _ in range(2):
            begun = starting(f"gti push {CANARY}", relay.session)
            tail = b"bash: gti: command not found\n"
            relay.send(begun, finished(begun, 127, tail=tail, tail_source=TailSource.STDERR))
            relay.wait_for_commit(begun.run, relay.type(f"git push {CANARY}"))
        with daemon.relay() as other:
            _, reply = other.ask(f"gti push {CANARY}")
            assert f"git push {CANARY}" in reply.text.decode()

        result = flightrec("forget", "--yes", CANARY, home=home)
        assert "Deleted: 4 commands, 1 rule." in result.stdout

        with daemon.relay() as third:
            _, reply = third.ask(f"gti push {CANARY}")
            assert reply.text == b""
        assert holders(daemon.paths, CANARY) == []


def test_one_request_asks_for_one_thing(home: Path) -> None:
    with DaemonProcess(home) as daemon:
        for arguments in ({}, {"pattern": ""}, {"pattern": "x", "since_us": 1}):
            with pytest.raises(FlightrecError, match="say one of"):
                daemon.ask("forget", **arguments)
        with pytest.raises(FlightrecError, match="forget: "):
            daemon.ask("forget", session="no hexadecimal")
