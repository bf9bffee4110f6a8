"""Rules + a document → the document with the rules in it, fit to be read by a model.

What agents read as memory they tend to obey, and what failed in a shell may have been put there by
anybody: a repository, a package, a web page. So only structured fields are written, each as a code
span of one line: the command, the remedy, the kind of failure (one of our own words), a count.
What is more than a command stays out (``quarantine.py``).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice, takewhile

from flightrec.evidence import weight
from flightrec.managed_block import BEGIN, END, set_block
from flightrec.quarantine import why_never, why_no_name, why_suspicious
from flightrec.rule_text import (
    LABEL,
    failing_command,
    where_it_fails,
    where_it_works,
    working_command,
)
from flightrec.rules import Origin, Rule, Status, Verdict, one_for_each_trigger
from flightrec.shell_words import parse

EXPORTED = (Status.PROMOTED, Status.SHARED)

RULES_MAX = 100

IsOutside = Callable[[str], bool]
"""Whether a program is a builtin or is found on the PATH outside the project."""


@dataclass(frozen=True, slots=True)
class Form:
    """What one agent's file takes: how much, and how a new file begins."""

    lines_max: int = 190
    bytes_max: int = 24_000
    header: bytes = b""


@dataclass(frozen=True, slots=True)
class Section:
    """Rules, strongest first, of one project's folder; or, without one, of wherever they are read.

    A project is named by a heading over its rules.
    """

    rules: tuple[Rule, ...]
    project: str = ""


def edit_document(document: bytes | None, sections: Iterable[Section], form: Form) -> bytes | None:
    """Return the document with the block of these rules; None for no file at all.

    A file is never created for nothing, and goes again when nothing but its header is left.
    Raises FlightrecError where an old block has lost a marker.
    """
    before = form.header if document is None else document
    bare = set_block(before, ())
    body = make_body(sections, form.lines_max - bare.count(b"\n"), form.bytes_max - len(bare))
    if body:
        return set_block(before, body)
    if document is None or (bare != document and bare in (b"", form.header)):
        return None
    return bare


def count_rules(document: bytes | None) -> int:
    """Return how many rules stand in a document's block."""
    lines = iter((document or b"").splitlines())
    block = takewhile(lambda line: line != END.encode(), dropwhile(_is_no_begin, lines))
    return sum(line.startswith(b"- ") for line in block)


def _is_no_begin(line: bytes) -> bool:
    return line != BEGIN.encode()


def make_body(sections: Iterable[Section], lines_left: int, bytes_left: int) -> tuple[str, ...]:
    """Return the block's lines for as many rules as fit; empty for none.

    Of each section the first come first, and stand ordered by their ids. What one section does not
    need of its share is left to those after it.
    """
    waiting = [section for section in sections if section.rules and not why_no_place(section)]
    lines_left -= 6
    bytes_left -= 400  # the markers and the label
    rules_left = RULES_MAX
    body: list[str] = []
    for number, section in enumerate(waiting):
        shares = len(waiting) - number
        head = _head_of(section)
        room = min(rules_left, lines_left - len(head) * shares) // shares
        chosen = _choose(section.rules, room, bytes_left // shares - _size(head))
        if not chosen:
            continue
        body += [*head, *chosen]
        rules_left -= len(chosen)
        lines_left -= len(head) + len(chosen)
        bytes_left -= _size(head) + _size(chosen)
    return (LABEL, *body) if body else ()


def _head_of(section: Section) -> tuple[str, ...]:
    if not section.project:
        return ("",)
    return ("", f"## Only in the project {code_span(section.project)}", "")


def _choose(rules: Iterable[Rule], rules_left: int, bytes_left: int) -> list[str]:
    """Return the lines of the first rules that fit, ordered by their ids."""
    chosen: list[tuple[str, str]] = []
    for rule in rules:
        line = format_rule(rule)
        bytes_left -= _size((line,))
        if len(chosen) >= rules_left or bytes_left < 0:
            break
        chosen.append((rule.id, line))
    return [line for _, line in sorted(chosen)]


def _size(lines: Sequence[str]) -> int:
    """Return how many bytes lines take, with the longest line ending."""
    return sum(len(line.encode("utf-8", "surrogatepass")) + 2 for line in lines)


def why_no_place(section: Section) -> str:
    """Return why a project's name cannot stand over its rules; empty where it can."""
    return why_no_name(section.project) if section.project else ""


def by_weight(rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules that deserve their place most first; old evidence weighs less.

    Age is counted from the newest rule, so that the same rules always make the same document.
    """
    rules = list(rules)
    newest_us = max((rule.last_us for rule in rules), default=0)
    return sorted(rules, key=lambda rule: (-weight(rule, newest_us), rule.id))


def format_rule(rule: Rule) -> str:
    """Return the rule as one list item."""
    failing, working = code_span(failing_command(rule)), code_span(working_command(rule))
    failing += f" in {code_span(where)}" if (where := where_it_fails(rule)) else ""
    working += f" in {where}" if (where := where_it_works(rule)) else ""
    return (
        f"- {failing} failed ({rule.failure_kind}, {_count(rule)}); worked: {working} ({rule.id})"
    )


def _count(rule: Rule) -> str:
    if rule.origin is Origin.PERSON:
        return "told by the user"
    sessions = rule.r + 1
    return "1 session" if sessions == 1 else f"{sessions} sessions"


def code_span(text: str) -> str:
    """Return ``text`` so that Markdown shows every letter: fenced by more than it holds itself."""
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def exportable(rules: Iterable[Rule], is_outside: IsOutside) -> list[Rule]:
    """Return the rules that may stand in a memory file: the best proved ones, strongest first."""
    promoted = by_weight(rule for rule in rules if rule.status in EXPORTED)
    fit = (rule for rule in promoted if not why_not(rule, is_outside))
    return list(islice(one_for_each_trigger(fit), RULES_MAX))


def why_not(rule: Rule, is_outside: IsOutside) -> str:
    """Return why a rule's text is kept out of memory files; empty where it is not."""
    failing, working, where = failing_command(rule), working_command(rule), where_it_fails(rule)
    if rule.held_back:
        return rule.held_back
    if not working:
        return "no remedy is known"
    texts = [text for text in (failing, working, where) if text]
    if reason := next(filter(None, map(why_never, texts)), ""):
        return reason
    if rule.verdict is Verdict.APPROVED or rule.origin is Origin.PERSON:
        return ""
    reason = next(filter(None, map(why_suspicious, texts)), "")
    if not reason and not _runs_known_programs(failing, working, is_outside):
        reason = "runs a program of the project or an unknown one"
    return f"{reason}: kept out until approved" if reason else ""


def _runs_known_programs(failing: str, working: str, is_outside: IsOutside) -> bool:
    """Whether every program of the remedy is the failed one, or comes from outside the project."""
    known = {"", *(segment.program for segment in parse(failing).segments)}
    programs = {segment.program for segment in parse(working).segments}
    return all(map(is_outside, programs - known))
