"""What an agent is told when its session begins: the proved rules of its project, from memory.

It is read by a model, so it holds what a memory file may hold and no more: a label, and one
structured line for each rule (``told.py``).
"""

import heapq
from collections.abc import Iterable
from typing import NamedTuple

from flightrec.hints import HintRule, Told
from flightrec.rule_text import LABEL
from flightrec.rules import trigger_key

LINES_MAX = 40
BYTES_MAX = 8_000
"""Of the whole text. Clients cut what hooks say somewhere above that."""

_HEAD = (LABEL, "")


class _Entry(NamedTuple):
    """A rule to be told; of two with one trigger only the better one is."""

    rank: float
    id: str
    trigger: str
    told: Told


class Briefings:
    """All rules that agents may be told, by the projects in which they are."""

    def __init__(self) -> None:
        self._homes: dict[str, dict[str, _Entry]] = {}
        self._known: dict[str, _Entry] = {}

    def update(self, rules: Iterable[HintRule]) -> None:
        """Take in rules that changed."""
        for rule in rules:
            before = self._known.get(rule.id)
            if rule.told is None and before is None:
                continue
            trigger = trigger_key(rule.trigger)
            if rule.told is None and before is not None and before.trigger != trigger:
                continue  # what the rule said once is taken back, not what it says now
            self._remove(rule.id)
            if rule.told is not None:
                self._add(_Entry(rule.told.rank, rule.id, trigger, rule.told))

    def brief(self, project: str) -> str:
        """Return the text for a session in this project; empty where there is no rule."""
        homes = (self._homes.get(project, {}), self._homes.get("", {}))
        best = heapq.nlargest(2 * LINES_MAX, (entry for home in homes for entry in home.values()))
        return make_briefing(_one_for_each_trigger(best))

    def _add(self, entry: _Entry) -> None:
        self._known[entry.id] = entry
        for home in entry.told.homes:
            self._homes.setdefault(home, {})[entry.id] = entry

    def _remove(self, rule: str) -> None:
        entry = self._known.pop(rule, None)
        for home in entry.told.homes if entry is not None else ():
            self._homes[home].pop(rule, None)


def make_briefing(lines: Iterable[str]) -> str:
    """Return as many of these lines as fit below the label, the first first; empty for none."""
    chosen = [*_HEAD]
    size = sum(len(line.encode()) + 1 for line in chosen)
    for line in lines:
        size += len(line.encode()) + 1
        if len(chosen) == LINES_MAX or size > BYTES_MAX:
            break
        chosen.append(line)
    return "\n".join(chosen) if len(chosen) > len(_HEAD) else ""


def _one_for_each_trigger(entries: Iterable[_Entry]) -> Iterable[str]:
    seen: set[str] = set()
    for entry in entries:
        if entry.trigger not in seen:
            seen.add(entry.trigger)
            yield entry.told.line
