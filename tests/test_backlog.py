"""The backlog: whatever writers die of, everything is stored once, and only the culprit is not."""

from hypothesis import given
from hypothesis import strategies as st

from flightrec.backlog import STRIKES, STRIKES_OF_A_KILL, WINDOW, WINDOW_BYTES, Backlog


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def fill(backlog: Backlog, numbers: range, size: int = 100) -> list[bytes]:
    return [dropped for n in numbers for dropped in backlog.add(key(n), bytes(size))]


def test_the_writer_is_given_a_bounded_part_in_order() -> None:
    backlog = Backlog()
    fill(backlog, range(WINDOW + 10))
    assert len(backlog.take()) == WINDOW
    assert backlog.take() == []
    backlog.settle([key(0), key(1)])
    assert len(backlog.take()) == 2
    assert len(backlog) == WINDOW + 8
    assert key(0) not in backlog
    assert key(2) in backlog


def test_large_messages_are_given_by_their_size() -> None:
    backlog = Backlog()
    fill(backlog, range(100), size=200_000)
    assert len(backlog.take()) == -(-WINDOW_BYTES // 200_000)


def test_beyond_its_bounds_the_oldest_that_wait_are_dropped() -> None:
    by_number = Backlog(max_messages=3)
    assert fill(by_number, range(5)) == [key(0), key(1)]
    by_size = Backlog(max_bytes=250)
    assert fill(by_size, range(4)) == [key(0), key(1)]
    by_size.take()
    assert fill(by_size, range(4, 6)) == []  # what the writer has does not count


def test_what_a_dead_writer_had_is_given_again_first() -> None:
    backlog = Backlog()
    backlog.add(key(1), b"one")
    backlog.add(key(2), b"two")
    assert backlog.take() == [b"one", b"two"]
    backlog.add(key(3), b"three")
    assert backlog.take_back() is None
    given = []
    while len(backlog):
        frames = backlog.take()
        given += frames
        backlog.settle([key(1 + len(given) - len(frames) + n) for n in range(len(frames))])
    assert given == [b"one", b"two", b"three"]


def test_one_accident_costs_nobody_his_message() -> None:
    """Somebody who kills a writer that has a single message has not proved it deadly."""
    backlog = Backlog()
    backlog.add(key(1), b"x")
    for _ in range(STRIKES - 1):
        backlog.take()
        assert backlog.take_back(STRIKES_OF_A_KILL) is None
    backlog.take()
    backlog.settle([key(1)])
    assert len(backlog) == 0


@given(number=st.integers(1, 60), poison=st.sets(st.integers(0, 59), max_size=3))
def test_exactly_the_messages_that_kill_every_writer_are_given_up(
    number: int, poison: set[int]
) -> None:
    """Each writer stores what comes before the first deadly message, and dies of that."""
    backlog = Backlog()
    fill(backlog, range(number))
    deadly = {key(n) for n in poison if n < number}
    stored: list[bytes] = []
    given_up: list[bytes] = []
    for _ in range(200):
        frames = len(backlog.take())
        taken = list(backlog._given)[:frames]  # noqa: SLF001 - the frames here are all alike
        dies = any(one in deadly for one in taken)
        if not dies:
            stored += taken
            backlog.settle(taken)
        elif (culprit := backlog.take_back()) is not None:
            given_up.append(culprit)
        if not len(backlog):
            break
    assert set(given_up) == deadly
    assert stored == [key(n) for n in range(number) if key(n) not in deadly]
