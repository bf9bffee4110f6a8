"""How long a hint takes in the daemon, by the number of rules, and what the rules weigh.

It is processor time, so that other work on the machine counts less.
"""

from __future__ import annotations

import gc
import random
import resource
import statistics
import time
from typing import TYPE_CHECKING

from tests.bench.table import Row

from flightrec.hints import HintContext, HintIndex, HintRule, Outcome
from flightrec.rules import Origin, Remedy, Scope, Slot, Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE = "A hint in the daemon"

SIZES = (1_000, 10_000, 100_000)
LOOKUPS = 20_000
REST = Slot(9)
PROJECTS = 200
WORDS = "build test deploy lint format serve check install publish release".split()  # noqa: SIM905 - a list of words
PROGRAMS = "git npm python3 cargo docker kubectl make pip go terraform".split()  # noqa: SIM905 - same


def rows() -> list[Row]:
    """Measure lookups of known-bad and of ordinary commands among ever more rules."""
    measured = []
    for size in SIZES:
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        index = HintIndex()
        index.update(make_rules(size))
        gc.freeze()
        weight = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        for name, commands in (("ordinary", ORDINARY), ("known-bad", known_bad(size))):
            p50, p99 = measure(index, commands)
            measured.append(Row(f"{size:,} rules, {name} command: p50", p50, "µs", "≤ 150 µs"))
            measured.append(Row(f"{size:,} rules, {name} command: p99", p99, "µs", "≤ 2,000 µs"))
        measured.append(Row(f"{size:,} rules: memory added", weight, "MiB", "≤ 50 MiB"))
    return measured


def measure(index: HintIndex, commands: list[str]) -> tuple[float, float]:
    """Return the median and the 99th percentile of one lookup in microseconds."""
    taken = []
    for number in range(LOOKUPS):
        context = HintContext(
            session=number.to_bytes(16, "big"),
            run=number.to_bytes(16, "little"),
            command=f"{commands[number % len(commands)]}{number}",
            cwd="/home/me/work",
            project=f"/home/me/p{number % PROJECTS}/.git",
            worktree=f"/home/me/p{number % PROJECTS}",
            now_us=number,
            path="/usr/local/bin:/usr/bin:/bin:/home/me/.local/bin:/home/me/.cargo/bin",
        )
        start = time.thread_time_ns()
        index.find(context)
        taken.append((time.thread_time_ns() - start) / 1000)
    taken.sort()
    return statistics.median(taken), taken[len(taken) * 99 // 100]


ORDINARY = [
    "git status -s ",
    "cd /srv/app && pytest -q tests/test_x.py -k name 2>&1 | tail -",
    "npm run build -- --mode production --n ",
    "for i in 1 2 3; do echo $i; done; ls -la ",
    "docker compose -f compose.yml up -d service",
]


def known_bad(size: int) -> list[str]:
    """Return commands of which rules know, with an argument to come."""
    chosen = random.Random(7).sample(range(0, size, 3), 300)  # noqa: S311 - not for secrets
    return [f"cd /x && {mistyped(number)} --verbose file" for number in chosen]


def mistyped(number: int) -> str:
    """Return a name that is no program, another one for each number."""
    return f"tool{number:x}z"


def make_rules(size: int) -> Iterator[HintRule]:
    """Yield rules of all sorts: missing programs, subcommands, and exact lines of projects."""
    for number in range(size):
        yield (mistyped_program, mistyped_subcommand, exact_in_project)[number % 3](number)


def mistyped_program(number: int) -> HintRule:
    """Return a rule like ``gti`` → ``git``."""
    trigger = Trigger("command not found", (mistyped(number), REST))
    return rule(number, trigger, Remedy("replace", ("git", REST)), Scope.USER)


def mistyped_subcommand(number: int) -> HintRule:
    """Return a rule like ``git stauts`` → ``git status``."""
    program, word = PROGRAMS[number % 10], WORDS[number % 7]
    options = Slot(1)
    trigger = Trigger("unknown subcommand", (program, options, f"{word}{number:x}", REST))
    return rule(number, trigger, Remedy("replace", (program, options, word, REST)), Scope.USER)


def exact_in_project(number: int) -> HintRule:
    """Return a rule like ``npm test`` → ``npm install && npm test`` in one project."""
    trigger = Trigger(
        "missing module", (PROGRAMS[number % 10], WORDS[number % 9], f"{number // 3}")
    )
    return rule(number, trigger, Remedy("prerequisite", before=("npm install",)), Scope.PROJECT)


def rule(number: int, trigger: Trigger, remedy: Remedy, scope: Scope) -> HintRule:
    """Return a rule with one outcome."""
    project = f"/home/me/p{number % PROJECTS}"
    return HintRule(
        id=f"ERR-20261130-{number:03d}",
        offered=True,
        trigger=trigger,
        remedy=remedy,
        scope=scope,
        project=f"{project}/.git",
        origin=Origin.RECORDED,
        c=3,
        d=0,
        failed=True,
        failures=3,
        outcomes=(Outcome(f"{project}/.git", project, failed=True, failures=3, at_us=1),),
    )
