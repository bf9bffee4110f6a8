"""Forgetting: no byte of it stays in any file, and what was learned elsewhere does."""

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from daemon_process import DaemonProcess, flightrec
from fake_relay import finished, starting
from flightrec.errors import FlightrecError
from flightrec.forgetting import Forgotten, Wanted, forget
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
