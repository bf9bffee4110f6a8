"""Takes out of old rows what redaction finds today and did not find when they were recorded.

A database remembers by which redaction it was gone over last. Another one, a newer release's or one
with other patterns of the person's, goes over it again: in portions, so that recording goes on,
and in the order of recording, so that what a command gave away is found in what followed. What is
taken out is then taken out of the files as well, as if it had been forgotten.
"""

import contextlib
import enum
import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from flightrec.config import Redaction
from flightrec.forgetting import delete_files_that, rewrite
from flightrec.paths import Paths
from flightrec.redact import TEXT_MAX, VERSION, Redactor, Safe
from flightrec.rule_text import failing_command, working_command
from flightrec.rulebook import Rulebook
from flightrec.rules import Pattern, Remedy, Rule, Slot, Trigger
from flightrec.store import RUN_COLUMNS, RecordedRun, Store, row_crc, to_bytes

PORTION = 100
"""Rows at a time: some 30 ms, for which what is recorded meanwhile waits."""

DONE = "redaction"
"""The key of the redaction that went over all rows last."""

PROGRESS = "redaction-progress"
"""The key of how far it is."""

OF_RUNS = ("project", "worktree", "cwd", "end_cwd", "agent", "tool_use_id", "tail")
"""Texts of a run that are redacted as such; its command is redacted as a command, before them."""

BESIDE = {
    "sessions": ("agent",),
    "outcomes": ("project", "worktree", "signature"),
    "evidence": ("project",),
    "hints": ("remedy",),
    "guards": ("project",),
}
"""Tables that hold words of runs, too; they are gone over at the end, value by value."""

_SELECT = (
    f"SELECT id, (SELECT session FROM sessions WHERE sessions.id = session_id),"  # noqa: S608 - our own names
    f" {', '.join(RUN_COLUMNS)} FROM runs WHERE id > ? ORDER BY id LIMIT ?"
)
_COMMAND = RUN_COLUMNS.index("command")
_SECRET = RUN_COLUMNS.index("secret")


def edition(settings: Redaction) -> str:
    """Return the name of a redaction: of its own rules and of the person's patterns."""
    own = hashlib.blake2b(msgspec.json.encode(settings), digest_size=8).hexdigest()
    return f"{VERSION}-{own}"


@dataclass(frozen=True, slots=True)
class Rescanned:
    """What a portion came to: ``done`` where all rows were seen; how many were changed so far."""

    done: bool
    changed: int


class _Phase(enum.IntEnum):
    """What is gone over, in this order.

    Rules come first, for they are shown; and once more after the runs, for new ones may have been
    learned from runs that were not gone over yet.
    """

    RULES = 0
    RUNS = 1
    NEW_RULES = 2
    REST = 3


class _Progress(msgspec.Struct, frozen=True):
    """How far it is; ``after`` is the last row seen in this phase, a rule's id or a run's."""

    edition: str
    phase: _Phase = _Phase.RULES
    after: str = ""
    changed: int = 0
    finished: bool = False


class Rescan:
    """Goes over a database; ``step`` is to be called until it is done.

    It has a redactor of its own, so that old secrets do not drive those of running sessions out.
    """

    def __init__(self, store: Store, paths: Paths, settings: Redaction) -> None:
        self._store = store
        self._paths = paths
        self._edition = edition(settings)
        self._redactor = Redactor(settings.allow, settings.deny)

    @property
    def is_due(self) -> bool:
        """Whether there are rows that another redaction made."""
        return self._store.get_meta(DONE) != self._edition

    def begin(self) -> None:
        """Go over everything once more, whatever was done before."""
        unfinished = self._unfinished(self._progress())
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM meta WHERE key = ?", (DONE,))
            self._keep(_Progress(self._edition, changed=unfinished))

    def state(self) -> dict[str, int]:
        """Return how many runs are left to go over, and how many rows were changed so far."""
        progress = self._progress()
        left = self._runs_left(progress) if self.is_due else 0
        return {"due": int(self.is_due), "left": left, "changed": progress.changed}

    def _runs_left(self, progress: _Progress) -> int:
        if progress.phase > _Phase.RUNS:
            return 0
        after = int(progress.after or 0) if progress.phase is _Phase.RUNS else 0
        (left,) = self._store.connection.execute(
            "SELECT count(*) FROM runs WHERE id > ?", (after,)
        ).fetchone()
        return int(left)

    def step(self, book: Rulebook, refresh_exports: Callable[[], object]) -> Rescanned:
        """Go over the next portion; the last one takes what was found out of the files, too.

        Raises FlightrecError where a reader keeps old pages, ``sqlite3.Error`` where the disk is
        full: what was seen so far is kept, and the next step goes on from there.
        """
        progress = self._progress()
        with self._store.transaction() as connection:
            after, changed = self._go_over(connection, book, progress)
            progress = msgspec.structs.replace(
                progress, after=after or "", changed=progress.changed + changed
            )
            is_last = progress.phase is _Phase.REST
            if after is None and not is_last:
                progress = msgspec.structs.replace(progress, phase=_Phase(progress.phase + 1))
            self._keep(progress)
        if not is_last:
            return Rescanned(done=False, changed=progress.changed)
        if progress.changed:
            rewrite(self._store.connection)
            refresh_exports()
            delete_files_that(self._paths, self._holds_secrets)
        with self._store.transaction():
            self._keep(msgspec.structs.replace(progress, finished=True))
            self._store.set_meta(DONE, self._edition)
        return Rescanned(done=True, changed=progress.changed)

    def redact(self, run: RecordedRun) -> RecordedRun:
        """Return a run as it will be once it was gone over, for who shows it before that."""
        command = self._redactor.redact_command(run.command, run.session)
        texts: dict[str, Any] = {
            name: self._redactor.redact_text(getattr(run, name), run.session)
            for name in (*OF_RUNS, "program")
            if getattr(run, name) is not None
        }
        if run.signature is not None and texts["tail"] != run.tail:
            texts["signature"] = _without_message(run.signature)
        return replace(run, command=command.text, secret=run.secret or command.found, **texts)

    def _progress(self) -> _Progress:
        with contextlib.suppress(msgspec.DecodeError):
            found = msgspec.json.decode(self._store.get_meta(PROGRESS) or "", type=_Progress)
            if found.edition == self._edition:
                return found
            # What another edition took out may still lie in free pages.
            return _Progress(self._edition, changed=self._unfinished(found))
        return _Progress(self._edition)

    @staticmethod
    def _unfinished(progress: _Progress) -> int:
        """Return how many rows were changed whose old text may still lie in the files."""
        return 0 if progress.finished else progress.changed

    def _keep(self, progress: _Progress) -> None:
        self._store.set_meta(PROGRESS, msgspec.json.encode(progress).decode())

    def _go_over(
        self, connection: sqlite3.Connection, book: Rulebook, progress: _Progress
    ) -> tuple[str | None, int]:
        """Return the last row of a portion, None where there was none, and how many changed."""
        match progress.phase:
            case _Phase.RULES | _Phase.NEW_RULES:
                return self._go_over_rules(connection, book, progress.after)
            case _Phase.RUNS:
                return self._go_over_runs(connection, int(progress.after or 0))
            case _Phase.REST:
                return None, self._go_over_the_rest(connection)

    # -- runs -----------------------------------------------------------------------------------

    def _go_over_runs(self, connection: sqlite3.Connection, after: int) -> tuple[str | None, int]:
        rows = connection.execute(_SELECT, (after, PORTION)).fetchall()
        changed = sum(
            self._go_over_run(connection, row_id, session, values)
            for row_id, session, *values in rows
        )
        return (str(rows[-1][0]) if rows else None), changed

    def _go_over_run(
        self, connection: sqlite3.Connection, row_id: int, session: bytes, old: Sequence[Any]
    ) -> bool:
        command = self._redactor.redact_command(old[_COMMAND], session)
        new = list(old)
        new[_COMMAND] = command.text
        new[_SECRET] = int(bool(old[_SECRET]) or command.found)
        for name in OF_RUNS:
            index = RUN_COLUMNS.index(name)
            if old[index] is not None:
                new[index] = self._redactor.redact_text(old[index], session)
        if new == list(old):
            return False
        names = ("command", *OF_RUNS)
        texts = [new[RUN_COLUMNS.index(name)] for name in names]
        connection.execute(
            f"UPDATE runs SET {', '.join(f'{name} = CAST(? AS TEXT)' for name in names)},"  # noqa: S608 - our own names
            " secret = ?, crc = ? WHERE id = ?",
            (
                *(None if text is None else to_bytes(text) for text in texts),
                new[_SECRET],
                row_crc([to_bytes(value) if isinstance(value, str) else value for value in new]),
                row_id,
            ),
        )
        self._go_over_failures(connection, row_id, session)
        return True

    def _go_over_failures(self, connection: sqlite3.Connection, run: int, session: bytes) -> None:
        """Take out what the run's own command gave away, which nothing later could tell."""
        rows = connection.execute(
            "SELECT program, subcommand, signature, id FROM failures WHERE run_id = ?", (run,)
        )
        for program, subcommand, old, failure in rows.fetchall():
            signature = to_bytes(self._redactor.redact_text(_without_message(old), session))
            texts = [self._redactor.redact_text(text, session) for text in (program, subcommand)]
            connection.execute(
                "UPDATE failures SET program = CAST(? AS TEXT), subcommand = CAST(? AS TEXT),"
                " signature = CAST(? AS TEXT) WHERE id = ?",
                (*map(to_bytes, texts), signature, failure),
            )
            connection.execute(
                "UPDATE outcomes SET signature = CAST(? AS TEXT) WHERE signature = CAST(? AS TEXT)",
                (signature, to_bytes(old)),
            )

    # -- everything else ------------------------------------------------------------------------

    def _go_over_rules(
        self, connection: sqlite3.Connection, book: Rulebook, after: str
    ) -> tuple[str | None, int]:
        rows = connection.execute(
            "SELECT id FROM rules WHERE id > ? ORDER BY id LIMIT ?", (after, PORTION)
        ).fetchall()
        rules = filter(None, [book.rule(rule_id) for (rule_id,) in rows])
        changed = sum(self._go_over_rule(book, rule) for rule in rules)
        return (rows[-1][0] if rows else None), changed

    def _go_over_the_rest(self, connection: sqlite3.Connection) -> int:
        changed = 0
        for table, columns in BESIDE.items():
            for column in columns:
                changed += self._go_over_column(connection, table, column)
        return changed

    def _go_over_column(self, connection: sqlite3.Connection, table: str, column: str) -> int:
        changed = 0
        values = connection.execute(
            f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608 - our own names
        )
        for (value,) in values.fetchall():
            safe = self._redactor.redact_command(value).text
            if safe != value:
                changed += connection.execute(
                    f"UPDATE OR REPLACE {table} SET {column} = CAST(? AS TEXT)"  # noqa: S608 - as above
                    f" WHERE {column} = CAST(? AS TEXT)",
                    (to_bytes(safe), to_bytes(value)),
                ).rowcount
        return changed

    def _go_over_rule(self, book: Rulebook, rule: Rule) -> bool:
        secrets = set(self._secrets_of(rule))
        without = _Without(secrets)
        trigger, remedy = without.trigger(rule.trigger), without.remedy(rule.remedy)
        project = self._redactor.redact_text(rule.project)
        seen_in = tuple(map(self._redactor.redact_text, rule.seen_in))
        is_same = (trigger, remedy) == (rule.trigger, rule.remedy)
        if secrets and is_same:
            book.delete(rule)  # quoted in a way that cannot be taken apart
        elif not is_same or (project, seen_in) != (rule.project, rule.seen_in):
            book.restate(rule, trigger=trigger, remedy=remedy, project=project, seen_in=seen_in)
        else:
            return False
        return True

    def _secrets_of(self, rule: Rule) -> Iterator[str]:
        """Yield what a rule's commands give away, each looked at as a whole line."""
        for line in (failing_command(rule), working_command(rule), *rule.remedy.before):
            for finding in self._redactor.explain(line):
                yield line[finding.start : finding.end]

    def _holds_secrets(self, file: Path) -> bool:
        """Whether a copy of a memory file holds what would be taken out of it today."""
        text = file.read_bytes().decode("utf-8", "surrogateescape")
        lines = (text[at : at + TEXT_MAX] for at in range(0, len(text), TEXT_MAX))
        return any(self._redactor.explain(part) for part in lines)


def _without_message(signature: str) -> str:
    """Return the signature of an error that held a secret: it may hold half of it, changed."""
    return "|".join((*signature.split("|", 3)[:3], "‹secret:rescanned›"))


class _Without:
    """Puts placeholders in the place of known secrets, in the words of a rule."""

    def __init__(self, secrets: set[str]) -> None:
        self._secrets = sorted(secrets, key=len, reverse=True)

    def trigger(self, trigger: Trigger) -> Trigger:
        return msgspec.structs.replace(trigger, words=self._pattern(trigger.words))

    def remedy(self, remedy: Remedy) -> Remedy:
        return msgspec.structs.replace(
            remedy,
            words=self._pattern(remedy.words),
            prefix=tuple(map(self._word, remedy.prefix)),
            before=tuple(map(self._word, remedy.before)),
        )

    def _pattern(self, words: Pattern) -> Pattern:
        return tuple(
            Slot(part.number, part.takes, self._word(part.prefix))
            if isinstance(part, Slot)
            else self._word(part)
            for part in words
        )

    def _word(self, word: str) -> Safe:
        for secret in self._secrets:
            word = word.replace(secret, "‹secret:rescanned›")
        return Safe(word)
