"""The daemon's memory: joins, answers, counts; with peers that only remember what they are sent."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_relay import finished, starting
from flightrec import front, hint_desk, link
from flightrec.backlog import Backlog
from flightrec.capture import is_own
from flightrec.config import Ignore, Settings
from flightrec.front import Front
from flightrec.missed import HELPER_COUNTERS, Missed, read_helper_counters
from flightrec.pausing import Pause
from flightrec.sessions import BURST, RATE, Session, Sessions, admit
from flightrec.wire import (
    CommandStarting,
    Committed,
    FrameReader,
    Phase,
    Reply,
    SessionEnded,
    Source,
    Verdict,
)

SESSION = b"s" * 16


class FakePeer:
    """A connection that keeps what it is sent."""

    def __init__(self) -> None:
        self._reader = FrameReader()
        self.replies: list[Reply] = []
        self.committed: list[bytes] = []

    def send(self, frame: bytes) -> None:
        for message in self._reader.feed(frame):
            if isinstance(message, Reply):
                self.replies.append(message)
            elif isinstance(message, Committed):
                self.committed += message.runs


@pytest.fixture
def make_front(tmp_path: Path) -> Callable[[], Front]:
    return lambda: Front(Pause(tmp_path / "paused"), "/home/u", lambda: None)


@pytest.fixture
def peer() -> FakePeer:
    return FakePeer()


def type_line(to: Front, peer: FakePeer, command: str, **fields: object) -> CommandStarting:
    begun = starting(command, SESSION, wants_reply=True, **fields)
    to.handle(begun, peer)
    to.handle(finished(begun, wants_reply=True), peer)
    return begun


def fed(to: Front) -> list[link.ToWriter]:
    """Return what the writer is given."""
    reader = link.reader_of_front()
    return [message for frame in to.backlog.take() for message in reader.feed(frame)]


def fed_commands(to: Front) -> list[bytes]:
    return [feed.starting.command for feed in fed(to) if isinstance(feed, link.Feed)]


def test_a_command_is_answered_twice_and_acknowledged_once_it_is_stored(
    make_front: Callable[[], Front], peer: FakePeer
) -> None:
    made = make_front()
    run = type_line(made, peer, "ls").run
    assert [(reply.phase, reply.verdict) for reply in peer.replies] == [
        (Phase.START, Verdict.NONE),
        (Phase.FINISH, Verdict.NONE),
    ]
    assert peer.committed == []
    assert fed_commands(made) == [b"ls"]
    made.stored(link.Stored([run]))
    assert peer.committed == [run]
    assert made.recorded == 1


def test_a_paused_person_is_not_recorded_and_helpers_need_keep_nothing(
    make_front: Callable[[], Front], peer: FakePeer
) -> None:
    made = make_front()
    made.pause.begin(None)
    run = type_line(made, peer, "ls").run
    assert peer.replies[0].verdict is Verdict.PRIVATE
    assert set(peer.committed) == {run}
    assert fed_commands(made) == []
    made.pause.end()
    type_line(made, peer, "ls -l")
    assert fed_commands(made) == [b"ls -l"]


def test_a_pause_outlives_the_daemon_and_ends_by_itself(tmp_path: Path) -> None:
    pause = Pause(tmp_path / "paused")
    pause.begin(until_us=100)
    later = Pause(tmp_path / "paused")
    later.load()
    assert later.covers(SESSION, 99)
    assert not later.covers(SESSION, 100)
    assert not (tmp_path / "paused").exists()  # nothing is wished any more
    for_ever = Pause(tmp_path / "paused")
    for_ever.begin(until_us=None)
    again = Pause(tmp_path / "paused")
    again.load()
    assert again.covers(SESSION, 2**60)


def test_a_private_shell_stays_private_under_the_next_daemon(tmp_path: Path) -> None:
    Pause(tmp_path / "paused").make_private(SESSION)
    later = Pause(tmp_path / "paused")
    later.load()
    assert later.covers(SESSION, 0)
    assert not later.covers(b"t" * 16, 0)
    later.make_public(SESSION)
    assert not (tmp_path / "paused").exists()


def test_a_wish_that_cannot_be_read_pauses(tmp_path: Path) -> None:
    (tmp_path / "paused").write_text("{")
    pause = Pause(tmp_path / "paused")
    pause.load()
    assert pause.covers(SESSION, 0)


def test_a_wish_that_cannot_be_written_holds_as_long_as_this_daemon(tmp_path: Path) -> None:
    pause = Pause(tmp_path / "no such folder/paused")
    pause.begin(until_us=100)
    assert pause.covers(SESSION, 99)
    assert not pause.covers(SESSION, 100)


def test_a_message_that_cannot_be_handled_is_answered_all_the_same(
    make_front: Callable[[], Front], peer: FakePeer
) -> None:
    made = make_front()
    begun = starting("ls", SESSION, wants_reply=True)
    made.answer_nothing(begun, peer)
    made.answer_nothing(finished(begun, wants_reply=True), peer)
    made.answer_nothing(finished(begun), peer)
    assert [(reply.phase, reply.verdict) for reply in peer.replies] == [
        (Phase.START, Verdict.NONE),
        (Phase.FINISH, Verdict.NONE),
    ]


def test_a_private_shell_is_private_alone_and_until_it_ends(
    make_front: Callable[[], Front], peer: FakePeer
) -> None:
    made = make_front()
    made.pause.make_private(SESSION)
    type_line(made, peer, "private")
    made.handle(starting("public", b"t" * 16), peer)
    made.handle(SessionEnded(SESSION), peer)
    type_line(made, peer, "public again")
    assert fed_commands(made) == [b"public again"]


def test_ignored_commands_and_directories_leave_no_trace(
    make_front: Callable[[], Front], peer: FakePeer
) -> None:
    made = make_front()
    made.use(Settings(ignore=Ignore(commands=("vault *",), directories=("~/private",))))
    type_line(made, peer, "vault read x")
    type_line(made, peer, "ls", cwd=b"/home/u/private/x")
    type_line(made, peer, "cd private && ls", cwd=b"/home/u")
    type_line(made, peer, "ls")
    assert fed_commands(made) == [b"ls"]
    assert [reply.verdict for reply in peer.replies if reply.phase is Phase.START] == [
        Verdict.PRIVATE,
        Verdict.PRIVATE,
        Verdict.PRIVATE,
        Verdict.NONE,
    ]


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("flightrec log", True),
        ("~/.local/bin/flightrec why ERR-1", True),
        ("flightrec log | less", True),
        ("flightrec pause; flightrec status", True),
        ("cd x && flightrec log", False),
        ("flightrec log && make", False),
        ("echo flightrec", False),
        ("git commit -m 'flightrec log'", False),
    ],
)
def test_our_own_commands_are_no_history(
    command: str,
    own: bool,  # noqa: FBT001 - a table's column
) -> None:
    assert is_own(starting(command, SESSION)) is own


# --- counted exactly -----------------------------------------------------------------------------


def test_more_than_the_allowance_of_a_session_is_dropped_and_counted(
    make_front: Callable[[], Front], peer: FakePeer
) -> None:
    """T16. Another session is not touched by it."""
    made = make_front()
    for n in range(3000):
        type_line(made, peer, f"echo {n}")
    missed = made.missed[Missed.RATE]
    assert 1500 < missed <= 2000
    assert len(made.backlog) == 3000 - missed
    assert len(set(peer.committed)) == missed  # helpers need not keep what is given up
    assert len(peer.replies) == 6000
    other = starting("other", b"t" * 16)
    made.handle(other, peer)
    made.handle(finished(other), peer)
    assert other.run in made.backlog


def test_an_allowance_refills_with_time() -> None:
    session = Session(BURST, 0.0)
    assert sum(admit(session, 0.0) for _ in range(2 * int(BURST))) == BURST
    assert not admit(session, 0.001)
    assert sum(admit(session, 1.0) for _ in range(1000)) == RATE
    assert not admit(session, 0.5)  # a clock that steps back gives nothing


def test_a_backlog_that_is_full_gives_up_the_oldest_and_counts_them(
    make_front: Callable[[], Front], peer: FakePeer
) -> None:
    made = make_front()
    made.backlog = Backlog(max_messages=10)
    runs = [type_line(made, peer, f"echo {n}").run for n in range(25)]
    assert made.missed == {Missed.BACKLOG: 15}
    assert peer.committed == runs[:15]
    made.handle(SessionEnded(SESSION), peer)
    assert made.missed == {Missed.BACKLOG: 16}
    assert len(made.backlog) == 10


def test_unfinished_commands_are_bounded(
    make_front: Callable[[], Front], peer: FakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front, "OPEN_MAX", 5)
    made = make_front()
    begun = [starting(f"sleep {n}", SESSION) for n in range(8)]
    for one in begun:
        made.handle(one, peer)
    assert made.missed == {Missed.UNFINISHED: 3}
    assert peer.committed == [one.run for one in begun[:3]]
    made.handle(finished(begun[0], wants_reply=True), peer)
    assert peer.replies[-1].verdict is Verdict.NONE
    assert fed_commands(made) == []


# --- helpers that go -----------------------------------------------------------------------------


def test_the_end_of_a_session_ends_what_still_runs(
    make_front: Callable[[], Front], peer: FakePeer
) -> None:
    made = make_front()
    made.handle(starting("exit", SESSION), peer)
    made.handle(starting("elsewhere", b"t" * 16), peer)
    made.handle(SessionEnded(SESSION, wall_us=7), peer)
    feed, ended = fed(made)
    assert isinstance(feed, link.Feed)
    assert (feed.starting.command, feed.finished.exit) == (b"exit", None)
    assert ended == link.Ended(SESSION, 7)


def test_a_command_waits_a_while_for_its_helper_to_come_back(
    make_front: Callable[[], Front], peer: FakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_front()
    begun = starting("vim", SESSION)
    by_hook = starting("agent's", SESSION, source=Source.HOOK)
    made.handle(begun, peer)
    made.handle(by_hook, peer)
    made.lose(peer)
    made.sweep()
    assert fed(made) == []

    monkeypatch.setattr(front, "ORPHANED_AFTER_S", 0.0)
    again = FakePeer()
    made.handle(begun, again)  # its helper has connected anew
    made.sweep()
    assert fed(made) == []
    made.lose(again)
    made.sweep()
    assert fed_commands(made) == [b"vim"]
    made.handle(finished(by_hook), again)
    assert fed_commands(made) == [b"agent's"]


def test_what_is_sent_again_is_not_queued_twice_and_acknowledged_to_the_new_connection(
    make_front: Callable[[], Front], peer: FakePeer
) -> None:
    made = make_front()
    begun = starting("make", SESSION)
    ended = finished(begun)
    made.handle(begun, peer)
    made.handle(ended, peer)
    again = FakePeer()
    made.handle(begun, again)
    made.handle(ended, again)
    assert fed_commands(made) == [b"make"]
    made.stored(link.Stored([begun.run]))
    assert (peer.committed, again.committed) == ([], [begun.run])


def test_the_end_of_a_command_that_nobody_announced_need_not_be_kept(
    make_front: Callable[[], Front], peer: FakePeer
) -> None:
    made = make_front()
    ended = finished(starting("lost", SESSION), wants_reply=True)
    made.handle(ended, peer)
    assert peer.committed == [ended.run]
    assert len(peer.replies) == 1


def test_what_a_dead_writer_had_is_fed_again(
    make_front: Callable[[], Front], peer: FakePeer
) -> None:
    made = make_front()
    type_line(made, peer, "ls")
    assert fed_commands(made) == [b"ls"]
    assert fed_commands(made) == []
    made.writer_died(was_killed=True)
    assert fed_commands(made) == [b"ls"]


def test_variables_are_remembered_until_they_change_and_for_so_many_sessions() -> None:
    sessions = Sessions(size=2)
    first = starting("a", SESSION, path=b"/bin", virtual_env=b"/venv")
    assert sessions.note(first, 0.0).path == b"/bin"
    changed = sessions.note(starting("b", SESSION, path=b"/usr/bin"), 0.0)
    assert (changed.path, changed.virtual_env) == (b"/usr/bin", b"/venv")
    sessions.note(starting("c", b"t" * 16), 0.0)
    sessions.note(starting("d", SESSION), 0.0)
    sessions.note(starting("e", b"u" * 16), 0.0)
    assert sessions.get(b"t" * 16) is None
    assert sessions.get(SESSION) is not None
    assert len(sessions) == 2


# --- what helpers have counted -------------------------------------------------------------------


def test_the_counters_of_helpers_are_read_without_a_daemon(tmp_path: Path) -> None:
    file = tmp_path / "counters"
    assert read_helper_counters(file) == {}
    numbers = b"".join(n.to_bytes(8, "little") for n in (3, 0, 2**40))
    file.write_bytes(b"frcount1" + numbers)
    assert read_helper_counters(file) == dict(zip(HELPER_COUNTERS, (3, 0, 2**40), strict=False))
    file.write_bytes(b"frcount1" + numbers + b"\1" * 8 * 20 + b"cut")
    assert len(read_helper_counters(file)) == len(HELPER_COUNTERS)
    file.write_bytes(os.urandom(64))
    assert read_helper_counters(file) == {}


# --- places --------------------------------------------------------------------------------------


def test_a_directory_on_a_dead_mount_costs_the_hint_and_nobody_s_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lookup hangs for good; every answer comes within the relay's patience all the same."""
    hang = threading.Event()
    monkeypatch.setattr(hint_desk, "find_place", lambda _: hang.wait(60) and None)

    async def ask() -> list[float]:
        finder = hint_desk.PlaceFinder()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        answers = [loop.create_future() for _ in range(100)]
        for number, answer in enumerate(answers):
            finder.find("make", f"/dead/{number}", answer.set_result)
        assert await asyncio.gather(*answers) == [None] * 100
        return [loop.time() - begun]

    (took,) = asyncio.run(ask())
    hang.set()
    assert took < 1  # the bar is 20 ms
