"""Rules and what speaks for and against them, in SQLite: the only place with SQL about rules.

It works on a connection handed in and inside the caller's transaction. What changed since it was
asked last is kept for the hint index and the exports.
"""

import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from flightrec.classify import Failure
from flightrec.evidence import (
    DEFAULT_THRESHOLDS,
    LastOutcome,
    Mark,
    Reason,
    Thresholds,
    is_offered,
    status_of,
)
from flightrec.generalise import Draft, remedy_lines
from flightrec.harmless import why_held_back
from flightrec.hints import HintRule, Outcome, Told
from flightrec.ingest import CommandRun
from flightrec.matching import anchor_of, remedy_pattern
from flightrec.pairing import Recovery
from flightrec.rule_rows import (
    NAMES,
    SAVE,
    decode_remedy,
    decode_trigger,
    from_row,
    row_crc,
    to_row,
)
from flightrec.rules import (
    Guard,
    Origin,
    Remedy,
    Rule,
    Scope,
    Status,
    Trigger,
    Verdict,
    key_of,
    rule_key,
)
from flightrec.shell_words import parse
from flightrec.told import told_of

PROJECTS_KEPT = 16
"""Projects of one rule that are listed; two are enough for everything that depends on them."""

LOOKUPS_KEPT = 1024
"""Answers that are kept until a rule changes: people type the same few commands all day."""

CLONES_MAX = 8
"""Other clones of a repository whose rules are looked at."""

RULES_AT_ONCE = 32
"""Rules about one command that are looked at, the best first: a bound, not a choice."""

_OFFERED = """
SELECT id, trigger, remedy, scope, project, upstream, origin, c, d - pardoned, failed, failures,
  guard, status
FROM rules
WHERE status IN ('active', 'promoted', 'shared') AND c > d - pardoned AND held_back = ''
  AND kind <> 'lesson'
ORDER BY id
"""
_ALL_OUTCOMES = """
SELECT rule_id, project, worktree, failed, mended, failures, at_us FROM outcomes ORDER BY rule_id
"""
_FAILURE_ROW = (
    "SELECT failures.id FROM failures JOIN runs ON runs.id = run_id WHERE run = ?1 AND segment = ?2"
)
_ADD_RECOVERY = (
    "INSERT OR IGNORE INTO recoveries (failure_id, run_id, kind, needed, also_tried)"  # noqa: S608 - from above
    f" SELECT failure, fix, ?3, ?4, ?5 FROM (SELECT ({_FAILURE_ROW}) AS failure, id AS fix"
    " FROM runs WHERE run = ?6) WHERE failure IS NOT NULL"
)
_EXPORTED = (Status.PROMOTED, Status.SHARED)


@dataclass(frozen=True, slots=True)
class Event:
    """A real event that may count: ``id`` names it for ever (a run in hex, or a person's act).

    ``session`` is None for what happened in none. ``at_us`` is wall clock.
    """

    id: str
    session: bytes | None
    project: str
    at_us: int
    origin: str = Origin.RECORDED.value


@dataclass(frozen=True, slots=True)
class ShownHint:
    """A hint that was shown for a run, at its start (phase 0) or after it failed (phase 1)."""

    rule: str
    session: bytes
    run: bytes
    phase: int
    remedy: str
    at_us: int
    gate: str = ""


@dataclass(frozen=True, slots=True)
class OpenHint:
    """A hint of which nobody knows yet whether it was followed. ``remedy`` is its whole line.

    ``gate`` is what a guard did besides, and empty for a mere hint.
    """

    row: int
    rule: str
    run: bytes
    remedy: str
    at_us: int
    gate: str


@dataclass(frozen=True, slots=True)
class Witness:
    """One event behind a rule, for ``why``; what a forgotten or deleted run said is None.

    ``error`` is the last line of what the command wrote when it failed.
    """

    mark: Mark
    reason: str
    at_us: int
    origin: str
    project: str
    session: bytes | None
    run: bytes | None
    command: str | None
    cwd: str | None
    exit: int | None
    failure_kind: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed: rules for the hint index, and whether exported files are out of date."""

    rules: tuple[HintRule, ...]
    export: bool


class Rulebook:
    """All rules. ``thresholds`` say when one is promoted or archived."""

    def __init__(
        self, connection: sqlite3.Connection, thresholds: Thresholds = DEFAULT_THRESHOLDS
    ) -> None:
        self._connection = connection
        self.thresholds = thresholds
        self._known: set[int] | None = None
        self._clones: dict[str, set[str]] | None = None
        self._found: dict[tuple[str, ...], list[Rule]] = {}
        self._last: dict[tuple[str, str, str], LastOutcome | None] = {}
        self._changed: dict[str, Rule] = {}
        self._outcomes: dict[str, list[Outcome]] = {}
        self._export = False

    # -- reading --------------------------------------------------------------------------------

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection that was handed in."""
        return self._connection

    def rule(self, rule_id: str) -> Rule | None:
        """Return the rule with this id."""
        return next(self._rules("WHERE id = ?", rule_id), None)

    def fresh(self, rule: Rule) -> Rule:
        """Return the rule as it stands now."""
        return self.rule(rule.id) or rule

    def knows(self, uid: bytes, core: str) -> bool:
        """Whether there is a rule with this identity, or one for everywhere that says the same."""
        return next(self._rules("WHERE uid = ? OR key = ?", uid, core), None) is not None

    def rules(self, *statuses: Status) -> list[Rule]:
        """Return the rules with one of these statuses, or all, in the order of their ids."""
        if not statuses:
            return list(self._rules("ORDER BY created_us, id"))
        marks = ", ".join("?" * len(statuses))
        return list(self._rules(f"WHERE status IN ({marks}) ORDER BY created_us, id", *statuses))

    def about(self, project: str, probes: Iterable[str], origin: str = "") -> list[Rule]:
        """Return the rules under these anchors that hold in this project, the best first.

        With its ``origin`` also those that it is shown as a clone.
        """
        known = self._known_anchors()
        homes = (project, *self._others_with(origin, project))
        hits = tuple(
            anchor
            for probe in probes
            for anchor in (probe, *(f"{home}\n{probe}" for home in homes))
            if hash(anchor) in known
        )
        if not hits:
            return []
        if hits not in self._found:
            self._found[hits] = self._under(hits)
        return [
            rule
            for rule in self._found[hits]
            if rule.belongs_to(project) or rule.upstream == origin
        ]

    def is_about(self, program: str) -> bool:
        """Whether any rule begins with this program, in whatever project: else none is about it."""
        return hash(f"{program}\0") in self._known_anchors()

    def _under(self, hits: Sequence[str]) -> list[Rule]:
        if len(self._found) >= LOOKUPS_KEPT:
            self._found.clear()
        marks = ", ".join("?" * len(hits))
        where = f"id IN (SELECT rule_id FROM anchors WHERE anchor IN ({marks}))"  # noqa: S608 - as many as there are
        order = f"ORDER BY c - d DESC, c DESC, id LIMIT {RULES_AT_ONCE}"
        return list(self._rules(f"WHERE {where} {order}", *hits))

    def same(
        self,
        core: str,
        project: str,
        *,
        bound: bool,
        origin: str = "",
        quarantined: bool = True,
    ) -> Rule | None:
        """Return the rule with this trigger and remedy that is to count for this project.

        A rule of another project is returned too, so that it may be widened, unless what it says
        is ``bound`` to the project. Not that of another clone with the same ``origin``, which is no
        second project, and may only claim to be a clone. An import that nobody stands for only
        where ``quarantined`` ones do: what one project shows must not let it out of quarantine.
        """
        if bound:
            return next(self._rules("WHERE key = ?", key_of(core, Scope.PROJECT, project)), None)
        found = list(
            self._rules("WHERE key >= ? AND key < ? ORDER BY created_us", core, core + "~")
        )
        own = [
            rule
            for rule in found
            if (rule.belongs_to(project) or not origin or rule.upstream != origin)
            and (quarantined or not rule.is_quarantined)
        ]
        return min(own, key=lambda rule: _nearness(rule, project), default=None)

    def last_outcome(self, rule_id: str, project: str, worktree: str) -> LastOutcome | None:
        """Return what became of the trigger in this worktree the last time."""
        place = (rule_id, project, worktree)
        if place not in self._last:
            if len(self._last) >= LOOKUPS_KEPT:
                self._last.clear()
            self._last[place] = self._read_last(*place)
        return self._last[place]

    def _read_last(self, rule_id: str, project: str, worktree: str) -> LastOutcome | None:
        row = self._connection.execute(
            "SELECT session, signature, failures, failed, mended FROM outcomes"
            " WHERE rule_id = ? AND project = ? AND worktree = ?",
            (rule_id, project, worktree),
        ).fetchone()
        if row is None:
            return None
        return LastOutcome(row[0], row[1], row[2], failed=bool(row[3]), mended=bool(row[4]))

    def recoveries_counted(self, rule_id: str) -> int:
        """Return how often the rule's whole recovery was seen."""
        (count,) = self._connection.execute(
            "SELECT count(*) FROM evidence WHERE rule_id = ? AND kind IN ('first', 'C')"
            " AND origin = 'recorded'",
            (rule_id,),
        ).fetchone()
        return int(count)

    def hint_rules(self) -> Iterator[HintRule]:
        """Yield all rules that may be hinted, with all their outcomes; never all in memory."""
        outcomes = self._connection.execute(_ALL_OUTCOMES)
        row = outcomes.fetchone()
        for rule in self._connection.execute(_OFFERED):
            rule_id, trigger, remedy = rule[0], decode_trigger(rule[1]), decode_remedy(rule[2])
            found: list[Outcome] = []
            while row is not None and row[0] <= rule_id:
                if row[0] == rule_id:
                    found.append(_outcome(remedy, row))
                row = outcomes.fetchone()
            found.sort(key=lambda outcome: outcome.at_us)
            scope, project, upstream, origin, c, d, failed, failures, guard, status = rule[3:]
            yield HintRule(
                id=rule_id,
                offered=True,
                trigger=trigger,
                remedy=remedy,
                scope=Scope(scope),
                project=project,
                origin=Origin(origin.partition(":")[0]),
                c=c,
                d=d,
                failed=bool(failed),
                failures=failures,
                outcomes=tuple(found),
                upstream=upstream,
                guard=Guard(guard),
                told=self._told(rule_id) if status in _EXPORTED else None,
            )

    def _told(self, rule_id: str) -> Told | None:
        rule = self.rule(rule_id)
        return None if rule is None else told_of(rule)

    def why(self, rule_id: str, limit: int = 200) -> tuple[Witness, ...]:
        """Return the newest events behind a rule, oldest first."""
        rows = self._connection.execute(
            "SELECT kind, reason, at_us, origin, project, session, event FROM evidence"
            " WHERE rule_id = ? ORDER BY at_us DESC, id DESC LIMIT ?",
            (rule_id, limit),
        ).fetchall()
        return tuple(self._witness(*row) for row in reversed(rows))

    # -- rules ----------------------------------------------------------------------------------

    def add(  # noqa: PLR0913 - where it comes from
        self,
        draft: Draft,
        *,
        kind: str,
        origin: Origin,
        project: str,
        at_us: int,
        upstream: str = "",
        uid: bytes | None = None,
        source: str = "",
    ) -> Rule:
        """Enter a new rule without any evidence yet; ``kind`` is what its id begins with.

        One from a bundle brings its ``uid`` along, and the bundle's name as its ``source``.
        """
        rule = Rule(
            id=self._new_id(kind, at_us),
            uid=uid or secrets.token_bytes(16),
            status=Status.CANDIDATE,
            trigger=draft.trigger,
            remedy=draft.remedy,
            scope=draft.scope,
            project=project,
            upstream=upstream,
            origin=origin,
            source=source,
            proven=draft.proven,
            verdict=Verdict.NONE,
            held_back=held_back_reason(draft.trigger, draft.remedy),
            created_us=at_us,
            last_us=at_us,
            outcome_us=at_us,
        )
        self._save(rule)
        self._anchor(rule)
        return rule

    def update(self, rule: Rule, **changes: Any) -> Rule:  # noqa: ANN401 - the fields of Rule
        """Change fields of a rule, find its status anew, and keep it."""
        new = msgspec.structs.replace(rule, **changes)
        new = _restate(new, status_of(new, self.thresholds))
        self._save(new)
        if _for_hints(rule) != _for_hints(new):
            self._changed[new.id] = new
        exported = {rule.status, new.status} & set(_EXPORTED)
        if exported and _for_exports(rule) != _for_exports(new):
            self._export = True
        return new

    def count(self, rule: Rule, mark: Mark, reason: Reason, event: Event) -> Rule:
        """Count an event once: an event that was counted before changes nothing."""
        cursor = self._connection.execute(
            "INSERT OR IGNORE INTO evidence"
            " (rule_id, kind, event, origin, reason, session, project, at_us)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                rule.id,
                mark.value,
                event.id,
                event.origin,
                reason.value,
                event.session,
                event.project,
                event.at_us,
            ),
        )
        if cursor.rowcount == 0:
            return rule
        last_us = max(rule.last_us, event.at_us)
        match mark:
            case Mark.R:
                return self.update(rule, r=rule.r + 1, last_us=last_us)
            case Mark.D:
                return self.update(rule, d=rule.d + 1, last_us=last_us)
            case Mark.FIRST | Mark.C:
                seen_in = _with_project(rule.seen_in, event.project)
                counts = not (mark is Mark.FIRST and rule.remedy.lesson)
                return self.update(rule, c=rule.c + counts, seen_in=seen_in, last_us=last_us)

    def count_use(self, rule: Rule) -> None:
        """Count a plain use of the remedy: shown in statistics, evidence of nothing."""
        self._connection.execute("UPDATE rules SET used = used + 1 WHERE id = ?", (rule.id,))

    def widen(self, rule: Rule) -> Rule:
        """Let a project's rule hold everywhere, in the place of an import that says the same.

        What it may do to commands was said for one project, and not for all.
        """
        core = rule_key(rule.trigger, rule.remedy)
        for twin in self._rules("WHERE key = ?", key_of(core, Scope.USER, "")):
            self.delete(twin)
        new = self.update(rule, scope=Scope.USER, guard=Guard.UNSET)
        self._anchor(new)
        return new

    def note_outcome(self, rule: Rule, outcome: LastOutcome, event: Event, worktree: str) -> Rule:
        """Keep what became of the trigger in this worktree."""
        self._last[rule.id, event.project, worktree] = outcome
        self._connection.execute(
            "INSERT INTO outcomes"
            " (rule_id, project, worktree, failed, mended, session, signature, failures, at_us)"
            " VALUES (?, ?, ?, ?, ?, ?, CAST(? AS TEXT), ?, ?)"
            " ON CONFLICT (rule_id, project, worktree) DO UPDATE SET failed = excluded.failed,"
            " mended = excluded.mended, session = excluded.session,"
            " signature = excluded.signature, failures = excluded.failures,"
            " at_us = max(at_us, excluded.at_us)",
            (
                rule.id,
                event.project,
                worktree,
                outcome.failed,
                outcome.mended,
                outcome.session,
                outcome.signature.encode("utf-8", "surrogateescape"),
                outcome.failures,
                event.at_us,
            ),
        )
        shown = _outcome(
            rule.remedy,
            (
                rule.id,
                event.project,
                worktree,
                outcome.failed,
                outcome.mended,
                outcome.failures,
                event.at_us,
            ),
        )
        self._outcomes.setdefault(rule.id, []).append(shown)
        self._changed[rule.id] = rule
        return rule

    def restate(self, rule: Rule, **changes: Any) -> None:  # noqa: ANN401 - the fields of Rule
        """Let a rule say something else: it may have held what is to be known no more.

        It goes where another rule says that already.
        """
        new = msgspec.structs.replace(rule, **changes)
        held_back = held_back_reason(new.trigger, new.remedy)
        if next(self._rules("WHERE key = ? AND id <> ?", new.key, rule.id), None) is not None:
            self.delete(rule)
            return
        self.update(rule, **changes, held_back=held_back)
        # The hint index finds a rule by its trigger: what stood there is to go from it, too.
        self._changed[f"{rule.id} before"] = msgspec.structs.replace(rule, status=Status.ARCHIVED)
        self._anchor(new)
        self._known = self._clones = None

    def delete(self, rule: Rule) -> None:
        """Take a rule and all that is known of it out."""
        self._found.clear()
        self._last.clear()
        self._connection.execute("DELETE FROM rules WHERE id = ?", (rule.id,))
        self._changed[rule.id] = msgspec.structs.replace(rule, status=Status.ARCHIVED)
        self._export |= rule.status in _EXPORTED

    @property
    def has_changes(self) -> bool:
        """Whether anything changed that hints or exports want to know."""
        return bool(self._changed) or self._export

    def take_changes(self) -> Changes:
        """Return what changed since this was called last."""
        rules = tuple(
            hint_rule(rule, self._outcomes.get(rule.id, ())) for rule in self._changed.values()
        )
        changes = Changes(rules, self._export)
        self._changed, self._outcomes, self._export = {}, {}, False
        return changes

    # -- failures, recoveries, hints -------------------------------------------------------------

    def add_failure(self, run_row: int, failure: Failure) -> None:
        """Enter a failure of the run in this row."""
        self._connection.execute(
            "INSERT OR IGNORE INTO failures"
            " (run_id, segment, kind, program, subcommand, signature, teachable)"
            " VALUES (?, ?, ?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ?)",
            (
                run_row,
                failure.segment,
                failure.kind.value,
                _raw(failure.program),
                _raw(failure.subcommand),
                _raw(failure.signature),
                failure.teachable,
            ),
        )

    def add_recovery(self, recovery: Recovery) -> bool:
        """Enter a recovery; return whether the failure had none yet: it is consumed once."""
        cursor = self._connection.execute(
            _ADD_RECOVERY,
            (
                recovery.failure.run.run,
                recovery.failure.segment,
                recovery.kind.value,
                self._rows_of(recovery.needed),
                self._rows_of(recovery.also_tried),
                recovery.fix.run,
            ),
        )
        return cursor.rowcount > 0

    def explain_recovery(self, recovery: Recovery, rule: Rule) -> None:
        """Note which rule follows from a recovery."""
        self._connection.execute(
            f"UPDATE recoveries SET rule_id = ?3 WHERE failure_id = ({_FAILURE_ROW})",  # noqa: S608 - our own words
            (recovery.failure.run.run, recovery.failure.segment, rule.id),
        )

    def add_hint(self, hint: ShownHint) -> None:
        """Enter a hint that was shown; one that was shown for this run before stays as it is."""
        self._connection.execute(
            "INSERT OR IGNORE INTO hints (rule_id, session, run, phase, remedy, at_us, gate)"
            " SELECT id, ?, ?, ?, CAST(? AS TEXT), ?, ? FROM rules WHERE id = ?",
            (
                hint.session,
                hint.run,
                hint.phase,
                _raw(hint.remedy),
                hint.at_us,
                hint.gate,
                hint.rule,
            ),
        )

    def open_hints(self, session: bytes) -> list[OpenHint]:
        """Return the hints of a session of which nobody knows what became of them."""
        rows = self._connection.execute(
            "SELECT id, rule_id, run, remedy, at_us, gate FROM hints"
            " WHERE session = ? AND outcome IS NULL ORDER BY id",
            (session,),
        )
        return [OpenHint(*row) for row in rows]

    def sessions_with_open_hints(self) -> set[bytes]:
        """Return the sessions in which a hint still waits for what comes next."""
        rows = self._connection.execute("SELECT DISTINCT session FROM hints WHERE outcome IS NULL")
        return {row[0] for row in rows}

    def close_hints_before(self, at_us: int) -> int:
        """Note that hints shown before this time were ignored; return how many."""
        cursor = self._connection.execute(
            "UPDATE hints SET outcome = 'ignored' WHERE outcome IS NULL AND at_us < ?", (at_us,)
        )
        return cursor.rowcount

    def close_hint(self, row: int, outcome: str) -> None:
        """Note what became of a hint: followed, failed, ignored; of a gate also more (GateRow)."""
        self._connection.execute("UPDATE hints SET outcome = ? WHERE id = ?", (outcome, row))

    def has_counted(self, rule_id: str, reason: Reason, session: bytes | None) -> bool:
        """Whether something was counted for this reason in this session before."""
        row = self._connection.execute(
            "SELECT 1 FROM evidence WHERE rule_id = ? AND reason = ? AND session = ? LIMIT 1",
            (rule_id, reason.value, session),
        ).fetchone()
        return row is not None

    # -- inside ---------------------------------------------------------------------------------

    def _rules(self, rest: str, *values: object) -> Iterator[Rule]:
        rows = self._connection.execute(f"SELECT {NAMES} FROM rules {rest}", values)  # noqa: S608 - our own words
        return map(from_row, rows.fetchall())

    def _save(self, rule: Rule) -> None:
        self._found.clear()
        if self._clones is not None and rule.upstream:
            self._clones.setdefault(rule.upstream, set()).add(rule.project)
        values = to_row(rule)
        self._connection.execute(SAVE, (*values, row_crc(values)))

    def _anchor(self, rule: Rule) -> None:
        """Enter the words under which the rule is looked up; a lesson is not."""
        self._connection.execute("DELETE FROM anchors WHERE rule_id = ?", (rule.id,))
        if rule.remedy.lesson:
            return
        home = f"{rule.project}\n" if rule.scope is Scope.PROJECT else ""
        for anchor in anchors_of(rule):
            self._connection.execute(
                "INSERT OR IGNORE INTO anchors (anchor, rule_id) VALUES (?, ?)",
                (home + anchor, rule.id),
            )
            self._known_anchors().update((hash(home + anchor), hash(_program_of(anchor))))

    def _known_anchors(self) -> set[int]:
        """Return hashes of all anchors, and of their programs with a NUL behind.

        Most commands are about no rule, and cost no query.
        """
        if self._known is None:
            rows = self._connection.execute("SELECT anchor FROM anchors")
            self._known = set()
            for (anchor,) in rows:
                self._known.add(hash(anchor))
                self._known.add(hash(_program_of(anchor.rpartition("\n")[2])))
        return self._known

    def _others_with(self, origin: str, project: str) -> list[str]:
        """Return other projects with this origin that have rules."""
        if not origin:
            return []
        if self._clones is None:
            self._clones = {}
            for upstream, home in self._connection.execute(
                "SELECT DISTINCT upstream, project FROM rules WHERE upstream <> ''"
            ):
                self._clones.setdefault(upstream, set()).add(home)
        return sorted(self._clones.get(origin, set()) - {project})[:CLONES_MAX]

    def _new_id(self, kind: str, at_us: int) -> str:
        """Return the next id of this kind and day (UTC); no id is given twice."""
        day = time.strftime("%Y%m%d", time.gmtime(at_us / 1_000_000))
        (number,) = self._connection.execute(
            "INSERT INTO meta (key, value) VALUES (?, 1)"
            " ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING value",
            (f"rule-number:{kind}-{day}",),
        ).fetchone()
        return f"{kind}-{day}-{int(number):03d}"

    def _rows_of(self, runs: Iterable[CommandRun]) -> str:
        find = "SELECT id FROM runs WHERE run = ?"
        rows = [self._connection.execute(find, (run.run,)).fetchone() for run in runs]
        return msgspec.json.encode([row[0] for row in rows if row]).decode()

    def _witness(  # noqa: PLR0913, PLR0917 - a row
        self,
        mark: str,
        reason: str,
        at_us: int,
        origin: str,
        project: str,
        session: bytes | None,
        event: str,
    ) -> Witness:
        run = bytes.fromhex(event) if _is_run(event) else None
        row = self._connection.execute(
            "SELECT command, cwd, exit, failures.kind, tail FROM runs"
            " LEFT JOIN failures ON failures.run_id = runs.id WHERE run = ?",
            (run,),
        ).fetchone()
        command, cwd, exit_, kind, tail = row or (None, None, None, None, None)
        lines = (tail or "").strip().splitlines()
        error = lines[-1] if lines and kind else None
        return Witness(
            Mark(mark),
            reason,
            at_us,
            origin,
            project,
            session,
            run,
            command,
            cwd,
            exit_,
            kind,
            error,
        )


def anchors_of(rule: Rule) -> set[str]:
    """Return the words under which a rule is looked up: its trigger's, its remedy's, its steps'."""
    pattern = remedy_pattern(rule.remedy)
    steps = (parse(step).segments for step in rule.remedy.before)
    return {
        anchor_of(rule.trigger.words),
        *([anchor_of(pattern)] if pattern else []),
        *(
            anchor_of(tuple(w.text for w in s.core))
            for segments in steps
            for s in segments
            if s.core
        ),
    }


def held_back_reason(trigger: Trigger, remedy: Remedy) -> str:
    """Return why a rule that says this is never offered; empty where it may be."""
    words = [part if isinstance(part, str) else part.prefix for part in trigger.words]
    return why_held_back(remedy_lines(remedy), words)


def hint_rule(rule: Rule, outcomes: Iterable[Outcome] = ()) -> HintRule:
    """Return what the hint index wants to know of a rule."""
    return HintRule(
        id=rule.id,
        offered=is_offered(rule),
        trigger=rule.trigger,
        remedy=rule.remedy,
        scope=rule.scope,
        project=rule.project,
        origin=rule.origin,
        c=rule.c,
        d=rule.d - rule.pardoned,
        failed=rule.failed,
        failures=rule.failures,
        outcomes=tuple(outcomes),
        upstream=rule.upstream,
        guard=rule.guard,
        told=told_of(rule),
    )


def _outcome(remedy: Remedy, row: tuple[Any, ...]) -> Outcome:
    """Return what hints are to know of a row of outcomes.

    Once the steps before it were run, the trigger is not to be expected to fail.
    """
    _, project, worktree, failed, mended, failures, at_us = row
    fails = bool(failed) and not (mended and remedy.before)
    return Outcome(project, worktree, fails, failures, at_us)


def _program_of(anchor: str) -> str:
    return anchor.removeprefix("=").partition("\0")[0] + "\0"


def _nearness(rule: Rule, project: str) -> int:
    if rule.scope is Scope.USER:
        return 0
    return 1 if rule.project == project else 2


def _with_project(known: tuple[str, ...], project: str) -> tuple[str, ...]:
    if not project or project in known or len(known) >= PROJECTS_KEPT:
        return known
    return (*known, project)


def _restate(rule: Rule, status: Status) -> Rule:
    """Give the rule its status, with the day on which it came there first."""
    dates = {
        Status.PROMOTED: ("promoted_us",),
        Status.SHARED: ("promoted_us", "shared_us"),
        Status.ARCHIVED: ("archived_us",),
    }.get(status, ())
    new: dict[str, int | None] = {
        name: rule.last_us for name in dates if getattr(rule, name) is None
    }
    if status is not Status.ARCHIVED:
        new["archived_us"] = None
    return msgspec.structs.replace(rule, status=status, **new)


def _for_hints(rule: Rule) -> tuple[object, ...]:
    return (
        is_offered(rule), rule.remedy, rule.scope, rule.c, rule.d, rule.pardoned, rule.failed,
        rule.failures, rule.upstream, rule.guard, rule.status, rule.r, rule.verdict, rule.seen_in,
    )  # fmt: skip


def _for_exports(rule: Rule) -> tuple[object, ...]:
    return (rule.status, rule.remedy, rule.scope, rule.held_back, rule.verdict, rule.r)


def _raw(text: str) -> bytes:
    """Return text for ``CAST(? AS TEXT)``, which takes bytes that are no UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def _is_run(event: str) -> bool:
    return len(event) == 32 and all(letter in "0123456789abcdef" for letter in event)
