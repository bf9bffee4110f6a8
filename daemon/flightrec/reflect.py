"""Going over all rules: tidy → promote → archive → share. The same rules give the same answer.

Statuses are kept up to date with every event; this is for what changes without one: programs that
went, a table of dangers that grew, settings, imports. Doing it twice changes nothing more.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from flightrec.evidence import DAY_US, status_of
from flightrec.generalise import remedy_lines
from flightrec.programs import BUILTINS, find_program
from flightrec.rule_text import failing_command, working_command
from flightrec.rulebook import Rulebook, held_back_reason
from flightrec.rules import Rule, Status, Verdict
from flightrec.shell_words import parse

CANDIDATE_DAYS = 90
"""A candidate that nothing confirmed for so long is deleted."""

GONE_DAYS = 30
"""A rule that spoke of a program so recently is not about one that is gone."""

HINT_DAYS = 1
"""A hint whose session said nothing more for so long was ignored."""

USUAL_FOLDERS = (
    "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin:/snap/bin:/opt/homebrew/bin"
    ":~/.local/bin:~/bin:~/.cargo/bin:~/go/bin"
)
"""Looked through besides the PATH of the daemon, which need not be that of the person's shells."""


@dataclass(frozen=True, slots=True)
class Report:
    """What one step did, a line for each rule."""

    step: str
    lines: tuple[str, ...]


def reflect(book: Rulebook, now_us: int, path: str) -> tuple[Report, ...]:
    """Go over all rules and return what was done. ``path`` is a PATH to look for programs on."""
    folders = os.pathsep.join(
        [path, *(str(Path(f).expanduser()) for f in USUAL_FOLDERS.split(":"))]
    )
    return (
        Report("tidy", tuple(_tidy(book, now_us, folders))),
        Report("promote", tuple(_restate(book, Status.ACTIVE, Status.PROMOTED))),
        Report("archive", tuple(_restate(book, Status.ARCHIVED))),
        Report("share", tuple(_restate(book, Status.SHARED))),
    )


def _tidy(book: Rulebook, now_us: int, path: str) -> list[str]:
    lines = []
    ignored = book.close_hints_before(now_us - HINT_DAYS * DAY_US)
    if ignored:
        lines.append(f"hints that nothing answered: {ignored}")
    for rule in book.rules():
        lines += (f"{rule.id} {what}" for what in _tidy_rule(book, rule, now_us, path))
    return lines


def _tidy_rule(book: Rulebook, rule: Rule, now_us: int, path: str) -> list[str]:
    idle_days = (now_us - rule.last_us) / DAY_US
    if rule.status is Status.CANDIDATE and idle_days > CANDIDATE_DAYS:
        book.delete(rule)
        return ["deleted: never confirmed"]
    done = []
    reason = held_back_reason(rule.trigger, rule.remedy)
    if reason != rule.held_back:
        rule = book.update(rule, held_back=reason)
        done.append(f"held back: {reason}" if reason else "no longer held back")
    missing = missing_program(rule, path)
    if missing and rule.verdict is Verdict.NONE and idle_days > GONE_DAYS:
        book.update(rule, verdict=Verdict.GONE)
        done.append(f"retired: {missing} is gone")
    elif not missing and rule.verdict is Verdict.GONE and not rule.remedy.lesson:
        book.update(rule, verdict=Verdict.NONE)
        done.append("back in use: its program is there again")
    return done


def missing_program(rule: Rule, path: str) -> str:
    """Return a program of the remedy that is nowhere to be found; empty where all are there.

    Only names and absolute paths can be judged: what a relative path means depends on where it is
    typed. Names that an alias, a function or a variable may stand for are left alone.
    """
    if rule.remedy.shell_word:
        return ""
    for line in remedy_lines(rule.remedy):
        for segment in parse(line).segments:
            if not _may_be_there(segment.program, path):
                return segment.program
    return ""


def _may_be_there(program: str, path: str) -> bool:
    if program.startswith("/"):
        return Path(program).exists()
    if not program or not program.isascii() or set(program) & set("/$~`*?"):
        return True
    return program in BUILTINS or find_program(program, path) is not None


def _restate(book: Rulebook, *wanted: Status) -> list[str]:
    """Give the status that the counts say to those rules for which it is one of these."""
    lines = []
    for rule in book.rules():
        status = status_of(rule, book.thresholds)
        if status is not rule.status and status in wanted:
            book.update(rule)
            counts = f"R{rule.r} C{rule.c} D{rule.d}"
            lines.append(f"{rule.id} {rule.status} → {status} ({counts}): {describe(rule)}")
    return lines


def describe(rule: Rule) -> str:
    """Return a rule in one line."""
    return f"{failing_command(rule)} → {working_command(rule) or rule.remedy.lesson}"
