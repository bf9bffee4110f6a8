"""The database: what goes in comes out, damage is noticed, nothing newer is touched."""

import contextlib
import os
import random
import sqlite3
import string
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon_process import USER, fork_and_run, needs_root, stored_commands
from flightrec.config import Retention
from flightrec.database import HighWaterMark, is_damage, open_database, trouble_of
from flightrec.errors import FlightrecError
from flightrec.ingest import CommandRun
from flightrec.migrations import VERSION
from flightrec.redact import Safe
from flightrec.retention import Pruner, used_bytes
from flightrec.store import RunFilter, Store
from flightrec.wire import Source, TailSource, WordKind

SECOND_US = 1_000_000

any_text = st.text(max_size=60) | st.binary(max_size=60).map(
    lambda raw: raw.decode("utf-8", "surrogateescape")
)
safe_text = any_text.filter(lambda text: not _is_paired(text)).map(Safe)
number = st.integers(-(2**62), 2**62)


def _is_paired(text: str) -> bool:
    """Whether surrogates in it would come back as a real character: no shell's bytes do that."""
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return True
    return raw.decode("utf-8", "surrogateescape") != text


any_run = st.builds(
    CommandRun,
    run=st.binary(min_size=16, max_size=16),
    session=st.binary(min_size=16, max_size=16),
    source=st.sampled_from(Source),
    shell=safe_text,
    tty=safe_text,
    pid=number,
    project=safe_text,
    worktree=safe_text,
    cwd=safe_text,
    command=safe_text,
    truncated=st.booleans(),
    secret=st.booleans(),
    boot=safe_text,
    mono_us=number,
    started_us=number,
    exit=st.none() | st.integers(-1, 255),
    signal=st.none() | st.integers(0, 64),
    pipestatus=st.lists(st.integers(0, 255), max_size=5).map(tuple),
    usec=st.none() | number,
    tail=safe_text,
    tail_source=st.sampled_from(TailSource),
    tail_total=number,
    end_cwd=safe_text,
    word_kind=st.sampled_from(WordKind),
    parent=st.none() | st.binary(min_size=16, max_size=16),
    depth=st.integers(0, 99),
    agent=st.none() | safe_text,
    tool_use_id=st.none() | safe_text,
)


def make_run(command: str = "git status", **fields: object) -> CommandRun:
    """A run like any other."""
    run = CommandRun(  # noqa: S604 - shell is a name here
        run=os.urandom(16),
        session=b"s" * 16,
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
        mono_us=1,
        started_us=SECOND_US,
        exit=0,
    )
    return replace(run, **fields)  # type: ignore[arg-type]  # fields by name


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "flightrec.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with contextlib.closing(Store.open(path)) as opened:
        yield opened


def keep(store: Store, *runs: CommandRun) -> None:
    with store.transaction():
        for run in runs:
            store.add_run(run)


# --- rows ----------------------------------------------------------------------------------------


@given(run=any_run)
def test_a_run_comes_back_as_it_went_in(run: CommandRun) -> None:
    store = Store.open(":memory:")
    keep(store, run)
    (found,) = store.recent_runs()

    assert {name: getattr(found, name) for name in found.__slots__ if hasattr(run, name)} == {
        name: getattr(run, name) for name in found.__slots__ if hasattr(run, name)
    }
    assert store.damaged_rows() == 0
    store.close()


def test_a_run_that_comes_twice_is_one_run(store: Store) -> None:
    run = make_run()
    with store.transaction():
        assert store.add_run(run) is not None
        assert store.add_run(run) is None
    assert store.counts().runs == 1


def test_runs_are_asked_for_by_any_mixture_of_conditions(store: Store) -> None:
    keep(
        store,
        make_run("make", project=Safe("/a"), started_us=10),
        make_run("make test", project=Safe("/a"), started_us=20),
        make_run("ls", project=Safe("/b"), session=b"t" * 16, started_us=30),
    )

    def commands(**wanted: object) -> list[str]:
        runs = store.recent_runs(10, RunFilter(**wanted))  # type: ignore[arg-type]  # by name
        return [run.command for run in runs]

    assert commands() == ["ls", "make test", "make"]
    assert commands(project="/a") == ["make test", "make"]
    assert commands(session=b"t" * 16) == ["ls"]
    assert commands(since_us=20) == ["ls", "make test"]
    assert commands(text="make", since_us=20) == ["make test"]
    assert commands(before=3, project="/a") == ["make test", "make"]
    assert commands(failed=True) == []
    assert [run.command for run in store.recent_runs(1)] == ["ls"]


def test_the_end_of_a_session_is_kept(store: Store) -> None:
    keep(store, make_run())
    with store.transaction():
        store.end_session(b"s" * 16, 99)
    assert store.connection.execute("SELECT ended_us FROM sessions").fetchone() == (99,)


# --- transactions --------------------------------------------------------------------------------


class OddError(Exception):
    """A fault of ours."""


def fail_after_writing(store: Store) -> None:
    with store.transaction():
        store.add_run(make_run("odd"))
        raise OddError


def test_a_failing_step_takes_back_its_own_writes_only(store: Store) -> None:
    with store.transaction():
        store.add_run(make_run("before"))
        with pytest.raises(OddError):
            fail_after_writing(store)
        store.add_run(make_run("after"))
    assert [run.command for run in store.recent_runs()] == ["after", "before"]


def test_a_failing_transaction_leaves_nothing(store: Store) -> None:
    with pytest.raises(OddError):
        fail_after_writing(store)
    assert store.recent_runs() == []
    keep(store, make_run("later"))
    assert store.counts().runs == 1


# --- opening -------------------------------------------------------------------------------------


def test_only_the_owner_may_read_it_whatever_the_umask(path: Path) -> None:
    """T20."""
    before = os.umask(0)
    try:
        with contextlib.closing(Store.open(path)) as store:
            keep(store, make_run())
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(
        ("flightrec.db", "flightrec.db-wal", "flightrec.db-shm", "flightrec.db.mark"), 0o600
    )


def test_a_database_that_came_open_to_others_is_closed(path: Path) -> None:
    fill(path, 100)
    path.chmod(0o644)
    with contextlib.closing(Store.open(path)) as store:
        keep(store, make_run())
        assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


@pytest.mark.parametrize("opening", [Store.open, Store.open_read_only])
def test_a_newer_database_is_refused_and_not_touched(path: Path, opening: object) -> None:
    """D14."""
    with contextlib.closing(sqlite3.connect(path)) as newer:
        newer.execute("CREATE TABLE tomorrow (x)")
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()

    with pytest.raises(FlightrecError, match="upgrade flightrec"):
        opening(path)  # type: ignore[operator]  # both take a path

    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["flightrec.db"]


def test_a_newer_database_is_refused_also_where_only_its_log_says_so(path: Path) -> None:
    newer = sqlite3.connect(path, isolation_level=None)
    newer.execute("PRAGMA journal_mode=WAL")
    newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(FlightrecError, match="upgrade flightrec"):
        Store.open(path)
    newer.close()


def test_a_file_system_without_shared_memory_costs_speed_and_says_so(path: Path) -> None:
    """D16. SQLite's dot-file locking has no shared memory, as some network file systems."""
    opened = open_database(path, vfs="unix-dotfile")
    assert opened.warning is not None
    assert "slower" in opened.warning
    store = Store(opened, path)
    keep(store, make_run())
    assert store.counts().runs == 1
    store.close()


@pytest.mark.parametrize(
    "content",
    [b"\0" * 8192, b"garbage" * 2000, b"SQLite format 3\0" + b"\xff" * 5000],
    ids=["zeroes", "garbage", "broken header"],
)
def test_what_is_no_database_is_set_aside_and_a_fresh_one_begun(path: Path, content: bytes) -> None:
    """D10: within a second."""
    path.write_bytes(content)
    begun = time.monotonic()
    store = Store.open(path)
    assert time.monotonic() - begun < 10
    assert store.quarantined is not None
    assert store.quarantined.read_bytes() == content
    keep(store, make_run())
    assert store.counts().runs == 1
    store.close()


def test_an_empty_file_is_a_new_database(path: Path) -> None:
    path.touch()
    with contextlib.closing(Store.open(path)) as store:
        assert store.quarantined is None
        assert store.counts().runs == 0


def test_two_databases_set_aside_in_one_second_are_both_kept(path: Path) -> None:
    for content in (b"one" * 1000, b"two" * 1000):
        path.write_bytes(content)
        Store.open(path).close()
    aside = [file.read_bytes() for file in path.parent.glob("*.corrupt-*")]
    assert sorted(aside) == [b"one" * 1000, b"two" * 1000]


def fill(path: Path, runs: int) -> None:
    with contextlib.closing(Store.open(path)) as store:
        for start in range(0, runs, 100):
            keep(store, *(make_run(f"echo {n} {n * 7919}") for n in range(start, start + 100)))


def test_single_bits_that_flip_in_the_database_are_noticed(path: Path) -> None:
    """D10: by the check at the start or by the rows' own sums; SQLite itself misses most."""
    fill(path, 300)
    whole = path.read_bytes()
    used = range(100, len(whole))
    dice = random.Random(7)  # noqa: S311 - a dice
    noticed = sum(is_noticed(path, whole, dice.choice(used), dice.randrange(8)) for _ in range(40))
    assert noticed >= 30


def is_noticed(path: Path, whole: bytes, byte: int, bit: int) -> bool:
    changed = bytearray(whole)
    changed[byte] ^= 1 << bit
    for file in path.parent.iterdir():
        file.unlink()
    path.write_bytes(changed)
    try:
        with contextlib.closing(Store.open(path)) as store:
            if store.quarantined is not None or store.damaged_rows():
                return True
            rows = store.connection.execute("PRAGMA integrity_check").fetchall()
            found = [run.command for run in store.recent_runs(1000)]
            unused = found == [f"echo {n} {n * 7919}" for n in reversed(range(300))]
            return rows != [("ok",)] or unused
    except (sqlite3.DatabaseError, FlightrecError):
        return True


def test_a_torn_log_is_noticed_by_the_mark_beside_it(path: Path) -> None:
    """SQLite opens it without a word and lacks the newest rows."""
    store = Store.open(path)
    keep(store, make_run("checkpointed"))
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for n in range(20):
        keep(store, make_run(f"in the log {n}"))
    log = path.with_name("flightrec.db-wal").read_bytes()
    main = path.read_bytes()
    store.close()
    path.write_bytes(main)
    path.with_name("flightrec.db-wal").write_bytes(log[: len(log) // 2])

    with contextlib.closing(Store.open(path)) as torn:
        assert torn.quarantined is None
        assert torn.lost == 21 - torn.counts().runs
        assert torn.lost > 0
    with contextlib.closing(Store.open(path)) as again:
        assert again.lost == 0


def test_power_that_fails_costs_the_end_of_the_log_and_nothing_else(path: Path) -> None:
    """D7: whatever part of the log's end is missing, what is left is a beginning of the story."""
    store = Store.open(path)
    for n in range(100):
        keep(store, make_run(f"echo {n} {'x' * 500}"))
    log = path.with_name("flightrec.db-wal").read_bytes()
    main = path.read_bytes()
    mark = path.with_name("flightrec.db.mark").read_bytes()
    store.close()
    dice = random.Random(11)  # noqa: S311 - a dice
    for _ in range(20):
        end = len(log) - dice.randrange(min(65536, len(log)))
        path.write_bytes(main)
        path.with_name("flightrec.db-wal").write_bytes(log[:end] + os.urandom(len(log) - end))
        path.with_name("flightrec.db.mark").write_bytes(mark)
        with contextlib.closing(Store.open(path)) as left:
            kept = [run.command for run in reversed(left.recent_runs(1000))]
            assert kept == [f"echo {n} {'x' * 500}" for n in range(len(kept))]
            assert left.lost == 100 - len(kept)


def test_the_mark_does_not_complain_after_a_clean_end(path: Path) -> None:
    fill(path, 100)
    assert HighWaterMark(path).read() == 100
    with contextlib.closing(Store.open(path)) as store:
        assert store.lost == 0


def test_only_trouble_that_passes_is_called_trouble() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        with pytest.raises(sqlite3.OperationalError) as no_table:
            connection.execute("SELECT * FROM nothing")
        connection.execute("PRAGMA max_page_count=2")
        with pytest.raises(sqlite3.OperationalError) as full:
            connection.execute("CREATE TABLE t AS SELECT zeroblob(100000)")
    assert trouble_of(no_table.value) is None
    assert not is_damage(no_table.value)
    assert trouble_of(full.value) == "the disk is full"
    assert trouble_of(MemoryError()) == "out of memory"
    assert trouble_of(ValueError()) is None


# --- reading only --------------------------------------------------------------------------------


def test_a_database_that_does_not_exist_reads_as_an_empty_one(path: Path) -> None:
    with contextlib.closing(Store.open_read_only(path)) as store:
        assert store.recent_runs() == []
        assert store.counts().rules == {}
    assert list(path.parent.iterdir()) == []


def test_a_reader_sees_what_is_committed_and_cannot_write(path: Path, store: Store) -> None:
    keep(store, make_run("seen"))
    with contextlib.closing(Store.open_read_only(path)) as reader:
        assert [run.command for run in reader.recent_runs()] == ["seen"]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            keep(reader, make_run("not mine to write"))


def test_a_damaged_database_is_refused_to_a_reader_in_one_line(path: Path) -> None:
    path.write_bytes(b"garbage" * 2000)
    with pytest.raises(FlightrecError, match="is damaged; `flightrec daemon start` sets it aside"):
        Store.open_read_only(path)


@needs_root
def test_a_folder_that_cannot_be_written_can_be_read(home: Path) -> None:
    """D9: SQLite wants to create files beside the database even to read it."""
    path = home / "flightrec.db"
    fill(path, 100)
    path.chmod(0o400)
    os.chown(path, USER, USER)
    os.chown(home, USER, USER)
    home.chmod(0o500)

    def read() -> None:
        with pytest.raises(PermissionError):
            (home / "probe").touch()
        assert len(stored_commands(path)) == 100

    fork_and_run(read, uid=USER)


# --- retention -----------------------------------------------------------------------------------


def test_the_oldest_runs_make_room_and_the_newest_stay(store: Store) -> None:
    """D5."""
    dice = random.Random(1)  # noqa: S311 - a dice
    texts = ("".join(dice.choices(string.printable, k=3000)) for _ in range(2000))
    keep(store, *(make_run(text) for text in texts))
    newest = store.recent_runs(1)
    assert used_bytes(store) > 12_000_000

    pruner = Pruner(store)
    while pruner.step(Retention(megabytes=10), 0):
        pass
    assert 9_000_000 < used_bytes(store) <= 10_000_000
    assert store.recent_runs(1) == newest


def test_runs_older_than_the_person_wants_go(store: Store) -> None:
    day_us = 24 * 3600 * SECOND_US
    keep(store, make_run("old", started_us=day_us), make_run("new", started_us=9 * day_us))
    pruner = Pruner(store)
    while pruner.step(Retention(days=7), 10 * day_us):
        pass
    assert [run.command for run in store.recent_runs()] == ["new"]
