"""Writing into files that people, editors and agents write to as well."""

import contextlib
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flightrec import exchange
from flightrec.backups import BACKUPS_KEPT, backup_folder
from flightrec.errors import FlightrecError
from flightrec.exchange import Folder
from flightrec.location import Location
from flightrec.managed_block import set_block, without_block
from flightrec.memory_file import is_half_done, read_file, update_file
from flightrec.paths import Paths, find_paths

NOBODY = 65534


@pytest.fixture
def paths(home: Path) -> Paths:
    return find_paths(str(home))


@pytest.fixture
def memory(home: Path) -> Path:
    folder = home / "project"
    folder.mkdir()
    return folder / "MEMORY.md"


def block(*lines: str) -> Callable[[bytes | None], bytes | None]:
    return lambda document: set_block(document or b"", lines)


def at(path: Path) -> Location:
    return Location(path, path.parent)


def update(path: Path, paths: Paths, *lines: str) -> bool:
    return update_file(at(path), block(*lines), paths, settle_s=0)


def test_a_new_file_is_created_with_its_folders(home: Path, paths: Paths) -> None:
    path = home / ".claude/projects/-x/memory/MEMORY.md"
    assert update_file(Location(path, home), block("rule"), paths, settle_s=0)
    assert b"rule" in path.read_bytes()


def test_an_update_that_changes_nothing_touches_nothing(memory: Path, paths: Paths) -> None:
    update(memory, paths, "rule")
    before = memory.stat()
    assert not update(memory, paths, "rule")
    after = memory.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_no_file_is_made_for_nothing(memory: Path, paths: Paths) -> None:
    assert not update_file(at(memory), lambda document: document, paths, settle_s=0)
    assert not memory.exists()


def test_mode_and_extended_attributes_are_kept(memory: Path, paths: Paths) -> None:
    memory.write_text("mine\n")
    memory.chmod(0o640)
    with contextlib.suppress(OSError):
        os.setxattr(memory, "user.flightrec-test", b"1")
    attributes = os.listxattr(memory)
    update(memory, paths, "rule")
    assert stat.S_IMODE(memory.stat().st_mode) == 0o640
    assert os.listxattr(memory) == attributes


def test_a_file_is_removed_where_the_edit_says_so(memory: Path, paths: Paths) -> None:
    memory.write_text("ours\n")
    assert update_file(at(memory), lambda _: None, paths, settle_s=0)
    assert not memory.exists()


def test_nothing_is_left_beside_the_file(memory: Path, paths: Paths) -> None:
    memory.write_text("mine\n")
    for number in range(3):
        update(memory, paths, f"rule {number}")
    assert [entry.name for entry in memory.parent.iterdir()] == ["MEMORY.md"]


def test_replaced_versions_are_kept_and_are_few(memory: Path, paths: Paths) -> None:
    memory.write_text("mine\n")
    for number in range(BACKUPS_KEPT + 3):
        update(memory, paths, f"rule {number}")
    backups = sorted(backup_folder(paths).iterdir())
    assert len(backups) == BACKUPS_KEPT
    assert b"rule 6" in backups[-1].read_bytes()
    assert {stat.S_IMODE(backup.stat().st_mode) for backup in backups} == {0o600}


# Links: followed to a plain file of mine inside the boundary, refused otherwise (T5).


def test_a_link_inside_the_boundary_stays_and_its_target_is_written(
    memory: Path, paths: Paths
) -> None:
    target = memory.parent / "docs" / "AGENTS.md"
    target.parent.mkdir()
    target.write_text("mine\n")
    hop = memory.parent / "hop"
    hop.symlink_to("docs/AGENTS.md")
    memory.symlink_to("hop")
    update(memory, paths, "rule")
    assert memory.is_symlink()
    assert hop.is_symlink()
    assert b"rule" in target.read_bytes()


@pytest.mark.parametrize("target", ["file", "folder"])
def test_a_link_out_of_the_boundary_is_refused(
    target: str, home: Path, memory: Path, paths: Paths
) -> None:
    """T5: what a repository plants must not lead to the person's other files."""
    outside = home / "outside"
    outside.mkdir()
    victim = outside / "MEMORY.md"
    victim.write_text("victim\n")
    if target == "file":
        memory.symlink_to(victim)
        path = memory
    else:
        (memory.parent / "sub").symlink_to(outside)
        path = memory.parent / "sub" / "MEMORY.md"
    with pytest.raises(FlightrecError, match="leads out of"):
        update_file(Location(path, memory.parent), block("rule"), paths)
    assert victim.read_text() == "victim\n"


def test_a_link_to_nothing_is_refused(memory: Path, paths: Paths) -> None:
    memory.symlink_to(memory.parent / "nothing")
    with pytest.raises(FlightrecError, match="link to nothing"):
        update(memory, paths, "rule")
    assert not (memory.parent / "nothing").exists()


def test_a_file_with_two_names_is_refused(home: Path, memory: Path, paths: Paths) -> None:
    victim = home / "victim"
    victim.write_text("victim\n")
    os.link(victim, memory)
    with pytest.raises(FlightrecError, match="hard links"):
        update(memory, paths, "rule")
    assert victim.read_text() == "victim\n"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_refused_at_once(
    make: Callable[[Path], None], memory: Path, paths: Paths
) -> None:
    make(memory)
    started = time.monotonic()
    with pytest.raises(FlightrecError, match="no plain file"):
        update(memory, paths, "rule")
    assert time.monotonic() - started < 2


def test_a_huge_file_is_refused(memory: Path, paths: Paths) -> None:
    memory.write_bytes(b"x" * (exchange.SIZE_MAX + 1))
    with pytest.raises(FlightrecError, match="more than 1024 KiB"):
        update(memory, paths, "rule")


def in_child_as_nobody(action: Callable[[], None]) -> int:
    """Return the exit status of ``action`` run as another user; needs root."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            action()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_belongs_to_somebody_else_is_refused(what: str, home: Path, memory: Path) -> None:
    """T5, with a writer that is not root: root's file or folder may not be replaced."""
    own_home = home / "nobody"
    own_home.mkdir(mode=0o700)
    os.chown(own_home, NOBODY, NOBODY)
    home.chmod(0o755)
    memory.write_text("root's\n")
    memory.chmod(0o666)
    memory.parent.chmod(0o777)
    if what == "file":
        os.chown(memory.parent, NOBODY, NOBODY)

    def attempt() -> None:
        with pytest.raises(FlightrecError, match="belongs to"):
            update(memory, find_paths(str(own_home)), "rule")

    assert in_child_as_nobody(attempt) == 0
    assert memory.read_text() == "root's\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_a_folder_that_cannot_be_written_is_said_so(home: Path, memory: Path) -> None:
    own_home = home / "nobody"
    own_home.mkdir(mode=0o700)
    os.chown(own_home, NOBODY, NOBODY)
    home.chmod(0o755)
    memory.write_text("mine\n")
    os.chown(memory, NOBODY, NOBODY)
    os.chown(memory.parent, NOBODY, NOBODY)
    memory.parent.chmod(0o555)

    def attempt() -> None:
        with pytest.raises(FlightrecError, match=r"MEMORY\.md: Permission denied"):
            update(memory, find_paths(str(own_home)), "rule")

    assert in_child_as_nobody(attempt) == 0
    assert memory.read_text() == "mine\n"


# What happens between reading and writing.


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """``between(action)`` runs the action once, after the file was read and before the exchange."""

    def arrange(action: Callable[[], None]) -> None:
        actions = [action]
        real_exchange = Folder.exchange

        def exchange_after_action(self: Folder, data: bytes, like: exchange.Document) -> object:
            while actions:
                actions.pop()()
            return real_exchange(self, data, like)

        monkeypatch.setattr(Folder, "exchange", exchange_after_action)

    return arrange


@pytest.mark.parametrize("exchanges", [True, False], ids=["exchange", "no-exchange"])
def test_what_an_editor_saved_in_between_is_the_base(
    exchanges: bool,  # noqa: FBT001 - a parametrised test
    memory: Path,
    paths: Paths,
    between: Callable[[Callable[[], None]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not exchanges:
        monkeypatch.setattr(exchange, "_renameat2", None)
    memory.write_text("old\n")

    def save() -> None:
        new = memory.with_name("new")
        new.write_text("old\nsaved in between\n")
        new.replace(memory)

    between(save)
    assert update(memory, paths, "rule")
    text = memory.read_text()
    assert text.startswith("old\nsaved in between\n")
    assert "rule" in text
    assert [entry.name for entry in memory.parent.iterdir()] == ["MEMORY.md"]


def test_a_file_deleted_in_between_is_made_again(
    memory: Path, paths: Paths, between: Callable[[Callable[[], None]], None]
) -> None:
    memory.write_text("old\n")
    between(memory.unlink)
    assert update(memory, paths, "rule")
    assert b"old" not in memory.read_bytes()


@pytest.mark.parametrize("plant", ["symlink", "hardlink", "fifo"])
def test_what_was_planted_in_between_is_put_back_and_refused(
    plant: str,
    home: Path,
    memory: Path,
    paths: Paths,
    between: Callable[[Callable[[], None]], None],
) -> None:
    victim = home / "victim"
    victim.write_text("victim\n")
    memory.write_text("old\n")

    def swap() -> None:
        memory.unlink()
        if plant == "symlink":
            memory.symlink_to(victim)
        elif plant == "hardlink":
            os.link(victim, memory)
        else:
            os.mkfifo(memory)

    between(swap)
    with pytest.raises(FlightrecError, match="left alone"):
        update(memory, paths, "rule")
    assert victim.read_text() == "victim\n"
    assert memory.is_symlink() == (plant == "symlink")
    assert memory.is_fifo() == (plant == "fifo")
    assert [entry.name for entry in memory.parent.iterdir()] == ["MEMORY.md"]


def test_a_thousand_swaps_never_reach_the_victim(home: Path, memory: Path, paths: Paths) -> None:
    """T5: a loop that swaps the file for a link and back."""
    victim = home / "victim"
    victim.write_text("victim\n")
    memory.write_text("mine\n")
    link = home / "link"
    link.symlink_to(victim)
    done = threading.Event()

    def swap() -> None:
        spare = memory.with_name("spare")
        for _ in range(1000):
            with contextlib.suppress(OSError):
                exchange.rename_with_flag(-100, str(memory), str(link), 2)
            spare.write_text("mine\n")
        done.set()

    swapper = threading.Thread(target=swap)
    swapper.start()
    number = 0
    while not done.is_set():
        number += 1
        with contextlib.suppress(FlightrecError):
            update(memory, paths, f"rule {number}")
    swapper.join()
    assert victim.read_text() == "victim\n"


def test_an_append_to_the_displaced_file_is_brought_in(memory: Path, paths: Paths) -> None:
    """T6: a program had the file open while it was exchanged."""
    memory.write_text("old\n")
    appender = memory.open("a")

    def append() -> None:
        appender.write("appended\n")
        appender.close()

    threading.Timer(0.05, append).start()
    update_file(at(memory), block("rule"), paths, settle_s=0.3)
    assert memory.read_text().startswith("old\nappended\n")
    assert "rule" in memory.read_text()


def test_an_editor_that_truncated_before_the_exchange_loses_nothing(
    memory: Path, paths: Paths, between: Callable[[Callable[[], None]], None]
) -> None:
    memory.write_text("old\n")

    def truncate() -> None:
        editor = memory.open("w")

        def write() -> None:
            editor.write("old\nand new\n")
            editor.close()

        threading.Timer(0.05, write).start()

    between(truncate)
    update_file(at(memory), block("rule"), paths, settle_s=0.3)
    assert memory.read_text().startswith("old\nand new\n")
    assert memory.read_text().count("flightrec:begin") == 1


def test_what_an_editor_deletes_meanwhile_stays_deleted(
    memory: Path, paths: Paths, between: Callable[[Callable[[], None]], None]
) -> None:
    """In place, while the file is exchanged and somebody appends to the new version."""
    memory.write_text("old\nunwanted\nlast\n")

    def truncate() -> None:
        editor = memory.open("w")

        def write() -> None:
            editor.write("old\nlast\n")
            editor.close()
            with memory.open("a") as file:
                file.write("\nappended\n")

        threading.Timer(0.05, write).start()

    between(truncate)
    update_file(at(memory), block("rule"), paths, bare=without_block, settle_s=0.3)
    lines = memory.read_text().splitlines()
    assert [line for line in lines if line in ("old", "unwanted", "last", "appended")] == [
        "old", "last", "appended",
    ]  # fmt: skip
    assert memory.read_text().count("flightrec:begin") == 1


def test_a_late_append_lands_in_the_version_that_an_editor_saved_meanwhile(
    memory: Path, paths: Paths
) -> None:
    memory.write_text("old\n")
    appender = memory.open("a")

    def save_and_append() -> None:
        new = memory.with_name("new")
        new.write_text("edited")
        new.replace(memory)
        appender.write("appended\n")
        appender.close()

    threading.Timer(0.05, save_and_append).start()
    update_file(at(memory), block("rule"), paths, settle_s=0.3)
    text = memory.read_text()
    assert text.startswith("edited\nappended\n")
    assert text.count("flightrec:begin") == 1


@pytest.mark.parametrize("saved", [True, False], ids=["saved", "not-saved"])
def test_a_killed_exporter_loses_nothing_and_leaves_nothing(
    saved: bool,  # noqa: FBT001 - a parametrised test
    memory: Path,
    paths: Paths,
    between: Callable[[Callable[[], None]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """T6: killed with somebody's new version in its hands."""
    memory.write_text("old\n")

    def save() -> None:
        new = memory.with_name("new")
        new.write_text("old\nsaved in between\n")
        new.replace(memory)

    if saved:
        between(save)
    pid = os.fork()
    if pid == 0:
        try:
            monkeypatch.setenv("FLIGHTREC_FAIL", "exchanged:1:kill")
            update(memory, paths, "rule")
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9
    assert len(list(memory.parent.iterdir())) == 2
    assert is_half_done(at(memory), paths)
    update(memory, paths, "rule")
    assert memory.read_text().startswith("old\nsaved in between\n" if saved else "old\n")
    assert memory.read_text().count("flightrec:begin") == 1
    assert [entry.name for entry in memory.parent.iterdir()] == ["MEMORY.md"]
    assert not is_half_done(at(memory), paths)


def test_what_only_looks_like_ours_is_left_alone(memory: Path, paths: Paths) -> None:
    """T5: a repository may bring along what a killed exporter would have left."""
    planted = memory.with_name(".MEMORY.md.flightrec-0123456789ab")
    planted.write_text("planted\n")
    memory.write_text("old\n")
    update(memory, paths, "rule")
    assert planted.read_text() == "planted\n"
    assert "planted" not in memory.read_text()


def test_reading_shows_what_an_update_would_find(home: Path, memory: Path) -> None:
    assert read_file(at(memory)) is None
    assert read_file(at(home / "no/such/folder/MEMORY.md".replace("MEMORY.md", "x"))) is None
    memory.write_text("mine\n")
    assert read_file(at(memory)) == b"mine\n"
