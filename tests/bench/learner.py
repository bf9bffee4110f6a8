"""How long the learner takes for one run: a success, a failure, a recovery, and hostile text."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.bench.table import Row

from flightrec.classify import classify
from flightrec.ingest import CommandRun
from flightrec.pairing import SessionHistory, find_recoveries
from flightrec.redact import Redactor
from flightrec.shell_words import parse
from flightrec.wire import Source

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "The learner, for one run"

ROUNDS = 2_000
SECOND = 1_000_000
NOISE = "Compiling dependency v1.2.3 (registry)\n" * 200

SUCCESSES = (
    ("a plain success", "git status --short", ""),
    ("a success with a tail of 8 KiB", "make -j4 2>&1 | tail -20", NOISE),
)
FAILURES = (
    ("command not found", "gti status", 127, "bash: gti: command not found\n"),
    ("an error of a tool", "git psuh", 1, "git: 'psuh' is not a git command. See 'git --help'.\n"),
    (
        "an error below 8 KiB of noise",
        "make all",
        2,
        NOISE + "make: *** [Makefile:2: all] Error 1\n",
    ),
    ("an unknown error of 8 KiB", "./run.sh", 3, NOISE),
)


def rows() -> list[Row]:
    """Measure medians in this process, parsing included where it is cached anyway."""
    measured = [
        Row(what, _success(command, tail), "µs", "≤ 30" if not tail else "", "no open failures")
        for what, command, tail in SUCCESSES
    ]
    measured += [
        Row(f"failure: {what}", _failure(command, status, tail), "µs", "≤ 1000")
        for what, command, status, tail in FAILURES
    ]
    measured.append(Row("a recovery, 12 failures open", _recovery(12), "µs", "≤ 1000"))
    for runs in (10_000, 1_000_000):
        measured.append(
            Row(f"a recovery after {runs:,} runs", _recovery(1, runs), "µs", "≤ 1.2 × of 10,000")
        )
    heredoc = "python3 - <<'EOF'\n" + "print('x' * 10)\n" * 1000 + "EOF"
    measured.append(
        Row("a here-document of 16 KiB that fails", _failure(heredoc, 1, NOISE) / 1000, "ms", "≤ 2")
    )
    return measured


def make_run(number: int, command: str, status: int = 0, tail: str = "") -> CommandRun:
    """Return a run of one session; a second after the one before."""
    safe = Redactor().redact_text
    return CommandRun(  # noqa: S604 - a field, not a process
        run=number.to_bytes(16, "big"),
        session=b"s" * 16,
        source=Source.RELAY,
        shell="bash",
        tty="",
        pid=1,
        project=safe("/p"),
        worktree=safe("/p"),
        cwd=safe("/p"),
        command=safe(command),
        truncated=False,
        secret=False,
        boot="b",
        mono_us=number * SECOND,
        started_us=number * SECOND,
        exit=status,
        tail=safe(tail),
    )


def _success(command: str, tail: str) -> float:
    run, line, history = make_run(1, command, 0, tail), parse(command), SessionHistory()

    def once() -> None:
        failure = classify(run, line)
        history.add(run, line, failure, find_recoveries(run, line, history))

    return _median_us(once)


def _failure(command: str, status: int, tail: str) -> float:
    run, line = make_run(1, command, status, tail), parse(command)
    return _median_us(lambda: classify(run, line), ROUNDS // 10)


def _recovery(open_failures: int, runs: int = 0) -> float:
    history = SessionHistory()
    quiet = make_run(0, "ls")
    line = parse(quiet.command)
    for number in range(runs):
        history.add(replace(quiet, run=number.to_bytes(16, "big")), line, None)
    for number in range(open_failures):
        command = f"gti log -{number}"
        failed = make_run(runs + number, command, 127, "bash: gti: command not found\n")
        history.add(failed, parse(command), classify(failed, parse(command)))
    fix = make_run(runs + 20, "git log -0")
    fix_line = parse(fix.command)
    return _median_us(lambda: find_recoveries(fix, fix_line, history))


def _median_us(once: Callable[[], object], rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        before = time.perf_counter()
        once()
        times.append(time.perf_counter() - before)
    return statistics.median(times) * 1e6
