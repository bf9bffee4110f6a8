"""Takes out of old rows what redaction finds today and did not find when they were recorded.

A database remembers by which redaction it was gone over last. Another one, a newer release's or one
with other patterns of the person's, goes over it again: in portions, so that recording goes on,
and in the order of recording, so that what a command gave away is found in what followed. What is
taken out is then taken out of the files as well, as if it had been forgotten.
"""

import contextlib
import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
from flightrec.store import RUN_COLUMNS, Store, row_crc, to_bytes

PORTION = 100
"""Rows at a time: about a hundredth of a second each, and none of them waits for another."""

DONE = "redaction"
"""The key of the redaction that went over all rows last."""

PROGRESS = "redaction-progress"
"""The key of where it is: the redaction, the run up to which it came, and the rows it changed."""

OF_RUNS = ("project", "worktree", "cwd", "end_cwd", "agent", "tool_use_id", "tail")
"""Texts of a run that are redacted as such; its command is redacted as a command, before them."""

BESIDE = {
    "sessions": ("agent",),
    "failures": ("program", "subcommand", "signature"),
    "outcomes": ("project", "worktree", "signature"),
    "evidence": ("project",),
    "hints": ("remedy",),
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


class _Progress(msgspec.Struct, frozen=True):
    edition: str
    run: int = 0
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
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (DONE, PROGRESS))

    def state(self) -> dict[str, int]:
        """Return how many runs are left to go over, and how many rows were changed so far."""
        progress = self._progress()
        (left,) = self._store.connection.execute(
            "SELECT count(*) FROM runs WHERE id > ?", (progress.run,)
        ).fetchone()
        return {"due": int(self.is_due), "left": left, "changed": progress.changed}

    def step(self, book: Rulebook, refresh_exports: Callable[[], object]) -> Rescanned:
        """Go over the next portion; the last one takes what was found out of the files, too.

        Raises FlightrecError where a reader keeps old pages, ``sqlite3.Error`` where the disk is
        full: what was seen so far is kept, and the next step goes on from there.
        """
        progress = self._progress()
        with self._store.transaction() as connection:
            last, changed = self._go_over_runs(connection, progress)
            if last is None:
                changed += self._go_over_the_rest(connection, book)
            progress = _Progress(self._edition, last or progress.run, progress.changed + changed)
            self._keep(progress)
        if last is not None:
            return Rescanned(done=False, changed=progress.changed)
        if progress.changed:
            rewrite(self._store.connection)
            refresh_exports()
            delete_files_that(self._paths, self._holds_secrets)
        with self._store.transaction():
            self._keep(msgspec.structs.replace(progress, finished=True))
            self._store.set_meta(DONE, self._edition)
        return Rescanned(done=True, changed=progress.changed)

    def _progress(self) -> _Progress:
        with contextlib.suppress(msgspec.DecodeError):
            found = msgspec.json.decode(self._store.get_meta(PROGRESS) or "", type=_Progress)
            if found.edition == self._edition:
                return found
            # What another edition took out may still lie in free pages.
            return _Progress(self._edition, changed=0 if found.finished else found.changed)
        return _Progress(self._edition)

    def _keep(self, progress: _Progress) -> None:
        self._store.set_meta(PROGRESS, msgspec.json.encode(progress).decode())

    # -- runs -----------------------------------------------------------------------------------

    def _go_over_runs(
        self, connection: sqlite3.Connection, progress: _Progress
    ) -> tuple[int | None, int]:
        """Return the last run of the portion, None where there was none, and how many changed."""
        rows = connection.execute(_SELECT, (progress.run, PORTION)).fetchall()
        changed = sum(
            self._go_over_run(connection, row_id, session, values)
            for row_id, session, *values in rows
        )
        return (rows[-1][0] if rows else None), changed

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
        rows = connection.execute("SELECT id, signature FROM failures WHERE run_id = ?", (run,))
        for failure, signature in rows.fetchall():
            safe = self._redactor.redact_text(signature, session)
            connection.execute(
                "UPDATE failures SET signature = CAST(? AS TEXT) WHERE id = ?",
                (to_bytes(safe), failure),
            )

    # -- everything else ------------------------------------------------------------------------

    def _go_over_the_rest(self, connection: sqlite3.Connection, book: Rulebook) -> int:
        changed = sum(self._go_over_rule(book, rule) for rule in book.rules())
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
        if not secrets:
            return False
        without = _Without(secrets)
        book.restate(rule, without.trigger(rule.trigger), without.remedy(rule.remedy))
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
