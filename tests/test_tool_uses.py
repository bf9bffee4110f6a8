"""Which hook and which shell tell of one command: with a clock of the test's own."""

import os
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_relay import finished, starting
from flightrec.agent_ends import End
from flightrec.link import Feed
from flightrec.tool_use import HOLD_S, SETTLE_S, feed_of
from flightrec.tool_uses import ECHO_AFTER_S, KEPT_S, USES_MAX, ToolUses
from flightrec.wire import CommandStarting, Source, TailSource

SESSION = b"s" * 16
OUTPUT = End(2, "make: *** No rule")


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a model; ``steps`` are who tells of it, in this order."""

    text: str
    name: str
    steps: tuple[str, ...]


class Play:
    """Plays commands' steps into the table and keeps what it tells."""

    def __init__(self, *, with_names: bool = True) -> None:
        self.uses = ToolUses()
        self.with_names = with_names
        self.now_s = 1000.0
        self.shells: dict[str, CommandStarting] = {}
        self.told: list[Feed] = []

    def step(self, step: str, text: str, name: str = "a", end: End = OUTPUT) -> None:
        getattr(self, step)(text, name, end)
        self.wait(0.001)

    def before(self, text: str, name: str, _: End) -> None:
        self.uses.announce(self.hook(text, name), self.now_s, loose=False)

    def after(self, text: str, name: str, end: End) -> None:
        self.uses.conclude(self.hook(text, name), end, self.now_s, loose=False)

    def start(self, text: str, name: str, _: End) -> None:
        begun = starting(text, SESSION, source=Source.SH, agent=b"claude")
        use = self.uses.meet(begun, self.now_s)
        assert use is not None
        self.shells[name] = begun

    def finish(self, _: str, name: str, __: End) -> None:
        assert self.uses.finish(finished(self.shells[name], 2), self.now_s) is not None

    def hook(self, text: str, name: str) -> CommandStarting:
        use = name.encode() if self.with_names else None
        return starting(text, SESSION, source=Source.HOOK, agent=b"claude", tool_use_id=use)

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.told += [feed_of(use) for use in self.uses.due(self.now_s)]

    def end(self) -> list[Feed]:
        self.told += [feed_of(use) for use in self.uses.take_ended(None, final=True)]
        return self.told


WAYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "shells and hooks": (
        ("before", "start", "finish", "after"),
        ("before", "start", "finish", "after", "after"),
        ("before", "before", "start", "after", "finish"),
        ("before", "after", "start", "finish"),
        ("before", "start", "finish"),
    ),
    "shells and what is left of hooks": (
        ("start", "finish", "after"),
        ("start", "before", "finish", "after"),
    ),
    "shells alone": (("start", "finish"),),
    "hooks alone": (("before", "after"), ("after",), ("before", "before", "after", "after")),
}
"""What a client and its shells tell of its commands.

Not both of the last two: what a shell tells of one command and a hook of another one with the same
text is the story of one command.
"""


def commands_of(ways: tuple[tuple[str, ...], ...]) -> st.SearchStrategy[list[Command]]:
    texts = st.sampled_from(("make", "git status", "pytest -q"))
    command = st.builds(Command, texts, st.uuids().map(str), st.sampled_from(ways))
    return st.lists(command, max_size=8)


commands = st.sampled_from(list(WAYS.values())).flatmap(commands_of)


@settings(max_examples=150, deadline=None)
@given(wanted=commands, data=st.data())
def test_however_commands_overlap_each_is_told_once(
    wanted: list[Command], data: st.DataObject
) -> None:
    play = Play()
    left = [(command, list(command.steps)) for command in wanted]
    while left:
        command, steps = data.draw(st.sampled_from(left))
        play.step(steps.pop(0), command.text, command.name)
        left = [pair for pair in left if pair[1]]
    told = play.end()

    assert Counter(feed.starting.command.decode() for feed in told) == Counter(
        command.text for command in wanted
    )
    ids = [feed.starting.run for feed in told]
    assert len(set(ids)) == len(ids)
    assert {begun.run for begun in play.shells.values()} <= set(ids)
    assert all(feed.finished.exit == 2 for feed in told)


@settings(max_examples=100, deadline=None)
@given(wanted=commands)
def test_without_ids_each_of_a_row_of_commands_is_told_once(wanted: list[Command]) -> None:
    play = Play(with_names=False)
    for command in wanted:
        for step in command.steps:
            play.step(step, command.text, command.name)
        play.wait(HOLD_S + ECHO_AFTER_S)
    told = [feed.starting.command.decode() for feed in play.end()]
    assert told == [command.text for command in wanted]


def test_a_failure_waits_for_its_output_and_no_longer_than_that() -> None:
    play = Play()
    for step in ("before", "start", "finish"):
        play.step(step, "make")
    play.wait(HOLD_S / 2)
    assert play.told == []
    play.wait(HOLD_S)
    assert [feed.finished.tail for feed in play.told] == [b""]


def test_a_hook_s_own_run_waits_for_a_shell_and_takes_one_that_is_late_for_the_same() -> None:
    play = Play()
    play.step("before", "make")
    play.step("after", "make")
    assert play.told == []
    play.wait(SETTLE_S)
    assert len(play.told) == 1
    play.step("start", "make")
    play.step("finish", "make")
    assert len(play.end()) == 1


@pytest.mark.parametrize("first", ["after", "start"])
def test_what_runs_in_the_background_waits_for_its_end(first: str) -> None:
    play = Play()
    play.step("before", "make watch")
    for step in (first, "after" if first == "start" else "start"):
        play.step(step, "make watch", end=End(background=True))
    play.wait(3600)
    assert play.told == []
    assert play.uses.take_ended(SESSION, final=False) == []
    play.step("finish", "make watch")
    assert [feed.finished.exit for feed in play.end()] == [2]


def test_an_end_that_nobody_saw_stays_unknown() -> None:
    play = Play()
    play.step("before", "make watch")
    play.step("after", "make watch", end=End(background=True))
    (feed,) = play.end()
    assert (feed.finished.exit, feed.finished.tail_source) == (None, TailSource.NONE)


def test_a_client_s_time_limit_overrules_a_trap_that_saw_a_success() -> None:
    play = Play()
    play.step("before", "sleep 9")
    play.step("start", "sleep 9")
    play.uses.finish(finished(play.shells["a"], 0), play.now_s)
    play.uses.conclude(play.hook("sleep 9", "a"), End(143, timed_out=True), play.now_s, loose=False)
    assert [feed.finished.exit for feed in play.end()] == [143]


def test_the_table_is_bounded_whatever_agents_begin_and_never_end() -> None:
    play = Play()
    for number in range(3 * USES_MAX):
        play.before("make", os.urandom(8).hex(), OUTPUT)
        play.start(f"true {number}", "b", OUTPUT)
        play.finish("", "b", OUTPUT)
    play.uses.forget_old(play.now_s)
    assert len(play.uses) <= 2 * USES_MAX
    play.uses.forget_old(play.now_s + KEPT_S + 1)
    assert len(play.uses) <= USES_MAX


def test_a_command_of_another_session_is_another_one() -> None:
    play = Play()
    play.step("before", "make", name="one")
    other = starting("make", b"t" * 16, source=Source.SH, agent=b"claude", cwd=b"/tmp")
    use = play.uses.meet(other, play.now_s)
    assert use is not None
    assert not use.by_hook
