"""Which success mended which earlier failure of its session: pure, and silent when in doubt.

A recovery is *proven* only where the failure's own text says so: what the error names is what the
fix changed, or what ran in between is what mends this kind of error. A command that passes again
without such a cause teaches nothing, and closes its failure all the same: the world had changed, an
editor had, or the failure was one of those that pass.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

from flightrec.attempt import Attempt, prose, stands_in
from flightrec.change import Change, compare
from flightrec.classify import Failure
from flightrec.failure_kinds import K
from flightrec.fault import start_of_last_list
from flightrec.ingest import CommandRun
from flightrec.invocation import Invocation, base_name, invocations
from flightrec.likeness import is_typo
from flightrec.redact import PLACEHOLDER
from flightrec.remedies import (
    BY_KIND,
    BY_NAME,
    BY_WORLD,
    NONE,
    Step,
    closeness,
    plain_output,
    variable_mends,
)
from flightrec.remedy_tables import (
    DIRECTORY_KINDS,
    DIRECTORY_OPTIONS,
    DIRECTORY_OPTIONS_OF,
    FILE_OPTIONS,
    MENDING_RUNS,
    PRIVILEGE_KINDS,
)
from flightrec.replacements import is_correction, same_purpose
from flightrec.session_history import (
    RUNS_KEPT,
    Entry,
    Recovery,
    RecoveryKind,
    SessionHistory,
    directory_of,
)
from flightrec.shell_words import CommandLine, SimpleCommand

__all__ = [
    "RUNS_KEPT",
    "Entry",
    "Recovery",
    "RecoveryKind",
    "SessionHistory",
    "find_recoveries",
    "find_recovery",
]

WINDOW_US = 30 * 60 * 1_000_000
"""A failure older than this is not mended by what is typed now."""


def find_recovery(
    success: CommandRun, line: CommandLine, history: SessionHistory
) -> Recovery | None:
    """Return the newest failure that this success mended, with the way it was mended."""
    return next(iter(find_recoveries(success, line, history)), None)


def find_recoveries(
    success: CommandRun,
    line: CommandLine,
    history: SessionHistory,
    seen: frozenset[int] = frozenset(),
) -> tuple[Recovery, ...]:
    """Return what this success mended: nearly always nothing or one failure, newest first.

    It may be several: ``gti comit`` and ``git comit`` are both answered by ``git commit``. The run
    must not be a failure of its own, masked ones included. ``seen`` are segments that are known to
    have passed, whatever stands around them.
    """
    open_failures = history.open_failures
    if success.exit != 0 or success.truncated or not open_failures:
        return ()
    passed = _Passed(success, line, seen)
    found = []
    for failure in reversed(open_failures):
        if failure.run.truncated or success.started_us - failure.run.started_us > WINDOW_US:
            continue
        recovery = _Pairing(failure, passed, history).recovery()
        if recovery is not None:
            found.append(recovery)
    return tuple(found)


class _Passed:
    """The run that passed: what its segments mean, where they ran, which ones surely passed."""

    def __init__(self, run: CommandRun, line: CommandLine, seen: frozenset[int]) -> None:
        self.run = run
        self.line = line
        self.seen = seen
        self.parts = invocations(line)
        self.directories = [directory_of(run, line, i) for i in range(len(self.parts))]

    def sure(self) -> list[int]:
        """Return the segments that must have ended well for the line to end so.

        Members of a pipeline count: an error of theirs would show in the tail.
        """
        operators = [operator.text for operator in self.line.operators]
        unsure = {i for i, text in enumerate(operators) if text in ("||", "&")}
        unsure |= {i + 1 for i, text in enumerate(operators) if text == "||"}
        unsure |= set(range(start_of_last_list(self.line)))
        unsure -= self.seen
        return [i for i in range(len(self.parts)) if i not in unsure]


class _Pairing:
    """One failure beside one pass."""

    def __init__(self, failure: Failure, passed: _Passed, history: SessionHistory) -> None:
        self.failure = failure
        self.passed = passed
        self.failed = invocations(failure.line)[failure.segment]
        self.where = directory_of(failure.run, failure.line, failure.segment)
        self.earlier, self.between = history.before(failure), history.after(failure)
        self.output = plain_output(failure)

    def recovery(self) -> Recovery | None:
        """Return how the pass mended the failure, or None."""
        for index in self.passed.sure():
            later = self.passed.parts[index]
            change = compare(self.failed, later)
            if _differs_in_a_secret(change):
                continue
            found = (
                self._same_command(index, later, change)
                or self._same_files(index, later)
                or self._changed(index, later, change)
            )
            if found is not None:
                return found
        return None

    # one command, and something around it

    def _same_command(self, index: int, later: Invocation, change: Change) -> Recovery | None:
        if not self._is_same(later, change):
            return None
        if self._gained_privilege(later):
            return self._make(index, RecoveryKind.PRIVILEGE)
        if self._gained_variable(later) or self._corrected_variable(index):
            return self._make(index, RecoveryKind.ENVIRONMENT)
        if self.passed.directories[index] != self.where:
            return self._directory_mended(index)
        return self._prepared(index, least=NONE + 1)

    def _is_same(self, later: Invocation, change: Change) -> bool:
        failed = self.failed
        return (
            failed.program == later.program
            and failed.name == later.name
            and failed.code == later.code
            and failed.runner == later.runner
            and (change.nothing or change.only_quietness)
        )

    def _same_files(self, index: int, later: Invocation) -> Recovery | None:
        """Look for the same command on the same files, run elsewhere: ``cd p && pytest tests``."""
        failed, there = self.failed, self.passed.directories[index]
        if self.failure.kind not in DIRECTORY_KINDS or there == self.where:
            return None
        if (failed.program, failed.runner, failed.name) != (
            later.program,
            later.runner,
            later.name,
        ) or len(failed.words) != len(later.words):
            return None
        same = all(
            one == other or _path_from(self.where, one) == _path_from(there, other)
            for one, other in zip(failed.words, later.words, strict=True)
        )
        return self._moved(index) if same else None

    def _gained_privilege(self, later: Invocation) -> bool:
        return (
            later.privileged and not self.failed.privileged and self.failure.kind in PRIVILEGE_KINDS
        )

    def _gained_variable(self, later: Invocation) -> bool:
        fresh = [name for name in later.variables if name not in self.failed.variables]
        return any(variable_mends(self.failure, name, self.output) > NONE for name in fresh)

    def _corrected_variable(self, index: int) -> bool:
        """Whether a variable's value that the error names was mistyped: ``GOOS=linx``."""
        before = _assigned(self.failure.line.segments[self.failure.segment])
        after = _assigned(self.passed.line.segments[index])
        return any(
            stands_in(value, self.output) and is_typo(value, after.get(name, ""))
            for name, value in before.items()
        )

    def _directory_mended(self, index: int) -> Recovery | None:
        return self._moved(index) if self._is_about_the_place() else None

    def _moved(self, index: int) -> Recovery | None:
        inside = any(part.program in ("cd", "pushd") for part in self.passed.parts[:index])
        moves = [e.run for e in self.between if _is_move(e)]
        if not inside and not moves:
            return None
        return self._make(
            index, RecoveryKind.DIRECTORY, () if inside else _last_moves(moves, self.between)
        )

    def _is_about_the_place(self) -> bool:
        """Whether the error can come from where the command ran.

        A file that is missing counts where it was typed; one deep in a build is missing anywhere.
        """
        if self.failure.kind is not K.MISSING_FILE:
            return self.failure.kind in DIRECTORY_KINDS
        typed = [self.failed.program, *self.failed.words]
        bare = {word.removeprefix("./") for word in typed}
        return any(n in typed or base_name(n) in bare for n in self.failure.named)

    # what ran in between

    def _prepared(self, index: int, least: int) -> Recovery | None:
        steps = self._steps(index)
        if not steps:
            return None
        close = [(closeness(self.failure, step, self.output), step) for step in steps]
        best = max(rank for rank, _step in close)
        if best < least:
            return None
        chosen = [step for rank, step in close if rank == best]
        if best == BY_KIND and not self._alone_and_last(chosen, close):
            return None  # something else may have done it, and nothing says which
        if best < BY_NAME:
            chosen = chosen[-1:]
        environment = any(step.changes_environment for step in chosen)
        kind = RecoveryKind.ENVIRONMENT if environment else RecoveryKind.PREREQUISITE
        chosen += _makers(chosen, steps)
        found = self._make(index, kind, self._runs_of(chosen))
        return replace(found, circumstantial=best < BY_NAME)

    def _alone_and_last(self, chosen: Sequence[Step], close: Sequence[tuple[int, Step]]) -> bool:
        """Whether nothing else changed anything, and the pass came right after."""
        if any(rank == NONE and not step.only_looks for rank, step in close):
            return False
        after = [entry for entry in self.between if not _only_waits(entry)]
        last = after[-1].run.run if after else b""
        return chosen[-1].run.run in (last, self.passed.run.run)

    def _runs_of(self, steps: Sequence[Step]) -> tuple[CommandRun, ...]:
        """Return the runs of steps in their order, each once, the passing run itself left out."""
        wanted = {step.run.run for step in steps}
        return tuple(entry.run for entry in self.between if entry.run.run in wanted)

    def _steps(self, index: int) -> list[Step]:
        """Return what ended well between the failure and the segment that passed."""
        steps: list[Step] = []
        before = self._done_before()
        for entry in self.between:
            if entry.failure is None and entry.run.exit == 0:
                steps += self._steps_of(entry.run, entry.line, len(entry.line.segments), before)
        steps += self._steps_of(self.passed.run, self.passed.line, index, before)
        line = self.failure.line
        same = {self._key(segment) for segment in line.segments[: self.failure.segment]}
        return [s for s in steps if not (s.changes_environment and s.text in same)]

    def _done_before(self) -> set[str]:
        """Return what had been run already when the failure happened, its own line included."""
        lines = [entry.line for entry in self.earlier] + [self.failure.line]
        return {self._key(segment) for line in lines for segment in line.segments}

    def _steps_of(
        self, run: CommandRun, line: CommandLine, end: int, before: set[str]
    ) -> list[Step]:
        parts = invocations(line)
        steps: list[Step] = []
        for i in range(end):
            segment = line.segments[i]
            background = i < len(line.operators) and line.operators[i].text == "&"
            background = background or (line.background and i == len(line.segments) - 1)
            step = Step(
                run=run,
                segment=segment,
                invocation=parts[i],
                directory=directory_of(run, line, i),
                text=self._key(segment),
                background=background,
                repeated=self._key(segment) in before,
            )
            steps.append(step)
        return steps

    @staticmethod
    def _key(segment: object) -> str:
        return " ".join(word.text for word in getattr(segment, "core", ()))

    # another command

    def _changed(self, index: int, later: Invocation, change: Change) -> Recovery | None:
        if self._moved_by_option(later, change):
            return self._make(index, RecoveryKind.DIRECTORY)
        if self._gained_privilege(later) and (
            self._much_the_same(later, change) or self._writes_for(later)
        ):
            return self._make(index, RecoveryKind.PRIVILEGE)
        attempt = Attempt(
            failure=self.failure,
            failed=self.failed,
            later=later,
            change=change,
            output=self.output,
            prose=prose(self.output),
            same_chain=self._same_chain(index),
            failed_text=self.failure.line.core_text(self.failure.segment),
            later_text=self.passed.line.core_text(index),
            later_line=self.passed.line.text,
        )
        if self._prepares(later, index):
            return None
        if is_correction(attempt):
            return self._make(index, RecoveryKind.REPLACE, self._runs_of(self._made(later, index)))
        if self._nearly_the_same(later, change):
            return self._prepared(index, least=BY_WORLD if index else BY_NAME)
        return None

    def _prepares(self, later: Invocation, index: int) -> bool:
        """Whether the other command is what mends such an error before the failed one is tried."""
        if later.subcommand == self.failed.subcommand or self.failure.kind is K.LOCKFILE:
            return False  # npm ci, npm install: the other one does the same work
        if same_purpose(later.name, self.failed.name) and later.name != self.failed.name:
            return False
        if later.name != self.failed.name:
            step = self._steps_of(self.passed.run, self.passed.line, index + 1, set())[index]
            return closeness(self.failure, step, self.output) > BY_KIND
        pattern = MENDING_RUNS.get(self.failure.kind)
        return pattern is not None and bool(
            pattern.match(self._key(self.passed.line.segments[index]))
        )

    def _moved_by_option(self, later: Invocation, change: Change) -> bool:
        """Whether an option says where now: ``npm --prefix frontend run build``."""
        return (
            self._is_about_the_place()
            and self.failed.name == later.name
            and not change.removed
            and any(
                _tells_where(later.name, option, value)
                for option, value in zip(change.added, (*change.added[1:], ""), strict=False)
            )
        )

    def _much_the_same(self, later: Invocation, change: Change) -> bool:
        if self.failed.name != later.name:
            return False
        # psql -U postgres, sudo -u postgres psql
        moved = bool(change.removed) and set(change.removed) <= {"-U", "--user", *later.wrappers}
        things = self.failed.operands
        same_things = bool(things) and set(things) <= set(later.words)
        return len(change.kept) > len(change.removed) or moved or same_things

    def _writes_for(self, later: Invocation) -> bool:
        """Whether ``sudo tee`` writes what a redirection could not, which has no sudo."""
        if later.name not in ("tee", "sh", "bash", "dd", "sponge"):
            return False
        segment = self.failure.line.segments[self.failure.segment]
        targets = {r.target.text for r in segment.redirections} & set(self.failure.named)
        return any(t in later.words or t in later.code for t in targets)

    def _nearly_the_same(self, later: Invocation, change: Change) -> bool:
        return (
            self.failed.program == later.program
            and self.failed.subcommand == later.subcommand
            and self.failed.operands[:1] == later.operands[:1]
            and self.failed.code == later.code
            and bool(self.failed.operands or self.failed.subcommand)
            and len(change.added) + len(change.removed) <= 2
        )

    def _same_chain(self, index: int) -> bool:
        """Whether the two lines are the same but for these segments, and are more than these."""
        mine, theirs = self.failure.line, self.passed.line
        if len(mine.segments) < 2 or len(mine.segments) != len(theirs.segments):
            return False
        if index != self.failure.segment:
            return False
        return all(
            self._key(a) == self._key(b)
            for i, (a, b) in enumerate(zip(mine.segments, theirs.segments, strict=True))
            if i != index
        )

    def _made(self, later: Invocation, index: int) -> list[Step]:
        """Return the steps that made what the corrected command uses (``.venv/bin/pip``)."""
        if "/" not in later.program and not later.runner:
            return []
        steps = self._steps(index)
        close = [s for s in steps if closeness(self.failure, s, self.output) == BY_NAME]
        return close or [s for s in steps if _makes(s, later.program)]

    # the result

    def _make(self, index: int, kind: RecoveryKind, needed: Sequence[CommandRun] = ()) -> Recovery:
        return Recovery(
            failure=self.failure,
            fix=self.passed.run,
            fix_line=self.passed.line,
            fix_segment=index,
            kind=kind,
            needed=tuple(needed),
            also_tried=self._also_tried(index),
            proven=self._is_certain(),
        )

    def _is_certain(self) -> bool:
        """Whether the failed part's own exit code was seen, or shows in the line's."""
        return not self.failure.masked or any(self.failure.run.pipestatus)

    def _also_tried(self, index: int) -> tuple[CommandRun, ...]:
        names = {self.failed.name, self.passed.parts[index].name}
        return tuple(
            entry.run
            for entry in self.between
            if entry.failure is not None
            and invocations(entry.line)[entry.failure.segment].name in names
        )


def _assigned(segment: SimpleCommand) -> dict[str, str]:
    """Return the values of the variables that are set for this command alone."""
    pairs = (word.text.partition("=") for word in segment.assignments)
    return {name: value for name, _, value in pairs}


def _tells_where(program: str, option: str, value: str) -> bool:
    """Whether an option names a folder, or a file in one: ``make -f x.mk`` is about this one."""
    if option in FILE_OPTIONS and "/" in value:
        return True
    own = DIRECTORY_OPTIONS_OF.get(program, frozenset())
    return option in DIRECTORY_OPTIONS | own or option.startswith("-chdir=")


def _path_from(directory: str, word: str) -> str:
    return os.path.normpath(word if word.startswith("/") else f"{directory}/{word}")


def _differs_in_a_secret(change: Change) -> bool:
    """Whether what changed is a secret: its value must never become a rule."""
    return any(PLACEHOLDER.search(word) for word in (*change.removed, *change.added))


def _only_waits(entry: Entry) -> bool:
    return all(segment.program in ("sleep", "wait") for segment in entry.line.segments)


def _is_move(entry: Entry) -> bool:
    return entry.failure is None and any(
        segment.program in ("cd", "pushd", "popd", "z", "j") for segment in entry.line.segments
    )


def _last_moves(moves: list[CommandRun], between: Sequence[Entry]) -> list[CommandRun]:
    """Return the moves that were needed: the last one, and those before a relative one."""
    lines = {entry.run.run: entry.line for entry in between}
    needed: list[CommandRun] = []
    for run in reversed(moves):
        needed.insert(0, run)
        target = lines[run.run].segments[0].arguments[:1]
        if not target or target[0].text.startswith(("/", "~", "$")):
            break
    return needed


def _makers(chosen: Sequence[Step], steps: Sequence[Step]) -> list[Step]:
    """Return the steps that made what the chosen ones use: the venv that was activated."""
    used = [word for step in chosen for word in step.invocation.words if "/" in word]
    return [
        step for step in steps if step not in chosen and any(_makes(step, path) for path in used)
    ]


def _makes(step: Step, path: str) -> bool:
    """Whether a step makes the folder that a path lies in."""
    return step.invocation.name in ("venv", "virtualenv", "uv", "python", "python3") and any(
        path.removeprefix("./").startswith(f"{word.removeprefix('./').rstrip('/')}/")
        for word in step.invocation.words
        if not word.startswith("-")
    )
