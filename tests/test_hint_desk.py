"""The front's answers: in time, from memory, for the place that a command line works in."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from flightrec.config import Hints, Settings
from flightrec.failure_kinds import FailureKind
from flightrec.front import Front
from flightrec.hint_desk import HintDesk
from flightrec.hints import Hint, HintRule
from flightrec.ingest import ingest
from flightrec.pausing import Pause
from flightrec.places import Places, find_place
from flightrec.redact import Redactor
from flightrec.rules import Remedy, Scope, Trigger
from flightrec.sessions import Session
from flightrec.wire import CommandFinished, CommandStarting, FrameReader, Reply, Source, Verdict
from hint_rules import make_hint_rule


def make_repository(folder: Path) -> Path:
    """Make what looks like a repository."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return folder


def make_rule(project: str, **changes: Any) -> HintRule:  # noqa: ANN401 - its fields
    """Return a rule of a project: run ``make`` before ``./serve``."""
    trigger = Trigger(FailureKind.MISSING_FILE.value, ("./serve",))
    remedy = Remedy("prerequisite", before=("make",))
    fields: dict[str, Any] = {"scope": Scope.PROJECT, "project": project, **changes}
    return make_hint_rule(trigger, remedy, **fields)


def starting(command: str, cwd: Path | str) -> CommandStarting:
    return CommandStarting(  # noqa: S604 - shell is a name here
        run=b"r" * 16,
        session=b"s" * 16,
        source=Source.RELAY,
        shell=b"bash",
        pid=1,
        tty=b"",
        cwd=str(cwd).encode(),
        command=command.encode(),
        command_total=len(command.encode()),
        boot=b"b",
        mono_us=1_000_000,
        wall_us=1_000_000,
    )


def ask(rule: HintRule, command: str, cwd: Path) -> str:
    """Return the hint for a command, or ''."""

    async def wait() -> Hint | None:
        desk = HintDesk()
        desk.take([rule])
        answer: asyncio.Future[Hint | None] = asyncio.get_running_loop().create_future()
        desk.before(starting(command, cwd), Session(allowance=1.0, seen_s=0.0), answer.set_result)
        return await answer

    hint = asyncio.run(wait())
    return hint.text if hint is not None else ""


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested must not depend on how busy the machine is."""
    monkeypatch.setattr("flightrec.hint_desk.PATIENCE_S", 20.0)


@pytest.mark.usefixtures("patient")
def test_a_line_that_goes_to_a_project_is_hinted_as_one_typed_there(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    rule = make_rule(find_place(str(app)).project)

    assert ask(rule, f"cd {app} && ./serve", tmp_path).endswith(
        f"; try: cd {app} && make && ./serve"
    )
    assert ask(rule, "./serve", app).endswith("; try: make && ./serve")
    assert ask(rule, "./serve", tmp_path) == ""
    assert ask(rule, f"cd {tmp_path} && ./serve", app) == ""
    # no such folder here: in a container, maybe, that is entered from this one
    assert ask(rule, "cd /nowhere/at/all; ./serve", app).endswith("; make && ./serve")


RULE = "ERR-20261130-001"


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("hold", "source", "verdict"),
    [
        (False, Source.RELAY, Verdict.HINT),
        (True, Source.RELAY, Verdict.HOLD),
        (True, Source.PTY, Verdict.HOLD),
        ((RULE,), Source.RELAY, Verdict.HOLD),
        (("ERR-20261130-002",), Source.RELAY, Verdict.HINT),
        # nobody sits there who could be asked
        (True, Source.SH, Verdict.HINT),
        (True, Source.HOOK, Verdict.HINT),
    ],
)
def test_a_command_is_held_where_the_person_wants_it_and_can_be_asked(
    *, hold: bool | tuple[str, ...], source: Source, verdict: Verdict, tmp_path: Path
) -> None:
    assert replies_of_front(Hints(hold=hold), source, tmp_path) == [verdict]


def replies_of_front(settings: Hints, source: Source, folder: Path) -> list[Verdict]:
    """Return what a helper is told that asks about a command with a hint."""
    peer = RepliesOnly()

    async def start() -> None:
        front = Front(Pause(folder / "paused"), str(folder), lambda: None)
        front.use(Settings(hints=settings))
        front.desk.take([make_rule("", scope=Scope.USER)])
        front.handle(replace(starting("./serve", folder), source=source), peer)
        await peer.replied.wait()

    asyncio.run(start())
    return [reply.verdict for reply in peer.replies]


class RepliesOnly:
    """A connection of which only replies are kept."""

    def __init__(self) -> None:
        self._reader = FrameReader()
        self.replies: list[Reply] = []
        self.replied = asyncio.Event()

    def send(self, frame: bytes) -> None:
        self.replies += [m for m in self._reader.feed(frame) if isinstance(m, Reply)]
        self.replied.set()


def test_a_run_is_filed_under_the_project_that_it_goes_to(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    begun = starting(f"cd {app} && ./serve", tmp_path)
    ended = CommandFinished(begun.run, 0, None, [], 1, begun.cwd, 2_000_000, 2_000_000)

    run = ingest(begun, ended, Redactor(), Places())

    assert (run.project, run.worktree, run.cwd) == (f"{app}/.git", str(app), str(tmp_path))
