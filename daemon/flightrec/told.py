"""A rule → what a model may be told of it, in briefings and by guards; None is nothing.

The same rules stand in memory files. Whether a remedy's programs come from outside the project is
asked of the file system here, in the writer, so that the front answers from memory.
"""

import functools
import math
import os
from pathlib import Path

from flightrec.evidence import DAY_US, HALF_LIFE_DAYS
from flightrec.export import EXPORTED, format_rule, why_not
from flightrec.guard import CONFIRMED_MIN
from flightrec.hints import Told
from flightrec.programs import Where, where_is
from flightrec.rules import Rule, Scope, Status


def told_of(rule: Rule) -> Told | None:
    """Return what agents are told, where the rule is promoted and its text fit for a model."""
    if rule.status not in EXPORTED or why_not_told(rule):
        return None
    return Told(format_rule(rule), _homes_of(rule), _rank_of(rule))


def why_not_told(rule: Rule) -> str:
    """Return why the rule's text is kept from models; empty where it is not."""
    path = os.environ.get("PATH", os.defpath)
    roots = tuple(map(_root_of, {rule.project, *rule.seen_in} - {""}))
    is_outside = functools.cache(lambda program: where_is(program, path, roots) is Where.OUTSIDE)
    return why_not(rule, is_outside)


def why_no_gate(rule: Rule) -> str:
    """Return why the rule may not gate whatever the person says; empty where it may."""
    if rule.status not in EXPORTED:
        return f"it is {rule.status.value}, not promoted"
    if rule.d > rule.pardoned:
        return "it was contradicted"
    if rule.c < CONFIRMED_MIN:
        return f"it was confirmed {rule.c} of {CONFIRMED_MIN} times"
    if rule.remedy.shell_word:
        return "its remedy is an alias or a function of one shell"
    return why_not_told(rule)


def _root_of(project: str) -> str:
    path = Path(project)
    return str(path.parent if path.name == ".git" else path)


def _homes_of(rule: Rule) -> tuple[str, ...]:
    if rule.scope is Scope.PROJECT:
        return (rule.project,)
    return ("",) if rule.status is Status.SHARED else rule.seen_in


def _rank_of(rule: Rule) -> float:
    """Return what sorts as the rules' weights do, at whatever time one looks."""
    balance = rule.r + 2 * rule.c - 2 * (rule.d - rule.pardoned)
    return math.log2(max(1, balance)) + rule.last_us / (HALF_LIFE_DAYS * DAY_US)
