"""Sessions typed into a real recorder and hint index, as the daemon joins the two."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flightrec.hints import Hint, HintContext, HintIndex
from flightrec.ingest import CommandRun
from flightrec.recorder import Recorder, RecordOutcome
from flightrec.redact import Redactor
from flightrec.rule_text import failing_command, working_command
from flightrec.store import Store
from flightrec.wire import Source, TailSource, WordKind

if TYPE_CHECKING:
    from pathlib import Path

    from flightrec.rules import Rule

SECOND = 1_000_000
DAY = 24 * 3600 * SECOND
START_US = 1_796_040_000 * SECOND
"""2026-11-30, noon UTC."""

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


def name_to_id(name: str) -> bytes:
    """Return 128 bits that are the same for the same name."""
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


@dataclass
class Learner:
    """A store with its recorder and hint index, and a clock that goes on by itself.

    ``path`` is the PATH of every shell here, ``last`` the hint that was shown last.
    """

    store: Store = field(default_factory=lambda: Store.open(":memory:"))
    path: str = SYSTEM_PATH
    now_us: int = START_US
    typed: int = 0
    last: Hint | None = None

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget what is only in memory, as after a crash or an upgrade of the daemon."""
        self.recorder = Recorder(self.store, path=self.path)
        self.index = HintIndex()
        self.index.update(self.recorder.hint_rules())

    def run(
        self,
        command: str,
        exit_: int | None = 0,
        error: str = "",
        *,
        session: str = "one",
        cwd: str | Path = "/src/app",
        project: str | None = None,
        word_kind: WordKind = WordKind.UNKNOWN,
        **more: Any,  # noqa: ANN401 - fields of CommandRun
    ) -> CommandRun:
        """Return a run that starts a second after the one before."""
        self.typed += 1
        self.now_us += SECOND
        redact = Redactor()
        folder = str(cwd)
        return CommandRun(
            **{
                "run": name_to_id(f"run {self.typed}"),
                "session": name_to_id(session),
                "source": Source.RELAY,
                "shell": "bash",
                "tty": "/dev/pts/1",
                "pid": 42,
                "project": redact.redact_text(project or folder),
                "worktree": redact.redact_text(project or folder),
                "cwd": redact.redact_text(folder),
                "command": redact.redact_command(command).text,
                "truncated": False,
                "secret": False,
                "boot": "b",
                "mono_us": self.now_us,
                "started_us": self.now_us,
                "exit": exit_,
                "usec": 1000,
                "tail": redact.redact_text(error),
                "tail_source": TailSource.STDERR if error else TailSource.NONE,
                "tail_total": len(error),
                "end_cwd": redact.redact_text(folder),
                "word_kind": word_kind,
                **more,
            }
        )

    def context(self, run: CommandRun) -> HintContext:
        """Return what the daemon's front knows when this run starts."""
        return HintContext(
            session=run.session,
            run=run.run,
            command=run.command,
            cwd=run.cwd,
            project=run.project,
            worktree=run.worktree,
            now_us=run.started_us,
            word_kind=run.word_kind,
            path=self.path,
            mine=run.mine,
            origin=run.origin,
        )

    def record(self, run: CommandRun) -> RecordOutcome:
        """Hand a run to the writer, and what changed to the index."""
        with self.store.transaction():
            outcome = self.recorder.record(run)
        self.index.update(outcome.changed)
        return outcome

    def type(self, command: str, exit_: int | None = 0, error: str = "", **more: Any) -> str:  # noqa: ANN401 - fields of CommandRun
        """Type a command: look for a hint, run it, record it. Return the hint's text or ''."""
        run = self.run(command, exit_, error, **more)
        self.last = self.index.find(self.context(run))
        if self.last is not None:
            self.note_shown(self.last)
        self.record(run)
        return self.last.text if self.last is not None else ""

    def note_shown(self, hint: Hint) -> None:
        """Tell the writer that a hint was shown."""
        with self.store.transaction():
            remedy = Redactor().redact_command(hint.remedy).text
            self.recorder.hint_shown(hint.shown, remedy)

    def ask(self, command: str, **more: Any) -> str:  # noqa: ANN401 - fields of CommandRun
        """Return the hint for a command that is not run after all."""
        hint = self.index.find(self.context(self.run(command, **more)))
        return hint.text if hint is not None else ""

    @property
    def rules(self) -> list[Rule]:
        """All rules, oldest first."""
        return self.recorder.book.rules()

    @property
    def rule(self) -> Rule:
        """The only rule."""
        (rule,) = self.rules
        return rule

    def counts(self, rule: Rule | None = None) -> tuple[int, int, int]:
        """Return R, C and D."""
        rule = rule or self.rule
        return rule.r, rule.c, rule.d

    def said(self) -> list[tuple[str, str]]:
        """Return what each rule says: the failing and the working command."""
        return [(failing_command(rule), working_command(rule)) for rule in self.rules]


def not_found(program: str) -> str:
    """Return what bash writes where there is no such program."""
    return f"bash: {program}: command not found\n"


def make_program(folder: Path, name: str) -> Path:
    """Make a program that does nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    return program
