"""The redactor: what it finds, what it leaves alone, and what it costs.

Times are of the processor, not of the clock: what else the machine does is not in them.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.bench.table import Row

from flightrec.redact import TEXT_MAX, Redactor
from redaction import corpus

TITLE = "The redactor"

SEEDS = range(1, 6)
ROUNDS = 5
ADVERSARIES = (
    "password='", "key:", "://a:b@", "mysql -pX;", "eyJ", 'sh -c "', "$(", "<<EOF\n", "+ASt",
    "-----BEGIN PRIVATE KEY-----", "echo x | sudo -S y;", "--token=", "cookie: a=b;", '"',
)  # fmt: skip
TAIL = (
    'Traceback (most recent call last):\n  File "/srv/app/shop/orders.py", line 118, in place\n'
    "    charge(order, token=settings.PAYMENT_TOKEN)\nRuntimeError: connection to db:5432 refused\n"
    "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\n2024-01-01 12:00:00 INFO request id=8f3a path=/x\n"
)
IMPORT = (
    "import time; import dataclasses, json, logging, re, flightrec.shell_words;"
    "began = time.process_time(); import flightrec.redact; flightrec.redact.Redactor();"
    "print(1000 * (time.process_time() - began))"
)


def rows() -> list[Row]:
    """Measure the corpus first, then the times."""
    return [*_findings(), *_times(), _start()]


def _findings() -> list[Row]:
    redactor = Redactor()
    samples = [sample for seed in SEEDS for sample in corpus.positives(seed)]
    secrets = [(secret, sample.text) for sample in samples for secret in sample.secrets]
    safe = {sample.text: redactor.redact_command(sample.text).text for sample in samples}
    found = sum(not corpus.leaked(secret, safe[text]) for secret, text in secrets)
    harmless = [line for seed in SEEDS for line in corpus.negatives(seed)]
    changed = sum(redactor.redact_command(line).text != line for line in harmless)
    tokens = [token for seed in SEEDS for _, token in corpus.vendor_tokens(seed)]
    known = sum(_is_gone(redactor, token) for token in tokens)
    return [
        Row("secrets found", 100 * found / len(secrets), "%", "≥ 99 %", f"of {len(secrets)}"),
        Row("harmless lines changed", 100 * changed / len(harmless), "%", "≤ 0.5 %",
            f"of {len(harmless)}"),
        Row("makers' tokens found", 100 * known / len(tokens), "%", "100 %",
            f"of {len({name for name, _ in corpus.vendor_tokens()})} makers"),
    ]  # fmt: skip


def _times() -> list[Row]:
    redactor = Redactor()
    commands = [sample.text for sample in corpus.positives()] + [*corpus.negatives()]
    costs = _costs(redactor.redact_command, commands)
    tail = (TAIL * 20)[:4096]
    screens = _costs(redactor.redact_text, [tail] * 20)
    worst, unit = max(
        (_costs(redactor.redact_command, [(unit * TEXT_MAX)[:TEXT_MAX]])[0], unit)
        for unit in ADVERSARIES
    )
    return [
        Row("a command, median", statistics.median(costs), "µs", "≤ 120 µs"),
        Row("a command, 99 of 100", statistics.quantiles(costs, n=100)[98], "µs", "≤ 1000 µs"),
        Row("4 KiB of output", statistics.median(screens) / 1000, "ms", "≤ 8 ms"),
        Row("16 KiB, the worst of the hostile", worst / 1000, "ms", "≤ 200 ms", repr(unit)),
    ]


def _costs(work: Callable[[str], object], texts: Sequence[str]) -> list[float]:
    """Return for each text the least µs of some rounds; the first round compiles what is lazy."""
    costs = [float("inf")] * len(texts)
    for _ in range(ROUNDS):
        for index, text in enumerate(texts):
            began = time.thread_time()
            work(text)
            costs[index] = min(costs[index], 1e6 * (time.thread_time() - began))
    return costs


def _start() -> Row:
    command = [sys.executable, "-c", IMPORT]
    runs = [
        float(subprocess.run(command, capture_output=True, check=True).stdout)
        for _ in range(ROUNDS)
    ]
    return Row("import, and a first redactor", statistics.median(runs), "ms", "≤ 15 ms")


def _is_gone(redactor: Redactor, token: corpus.Sample) -> bool:
    """Tell whether nothing of a token is left."""
    safe = redactor.redact_text(f"x {token.text} y")
    return not any(corpus.leaked(secret, safe) for secret in token.secrets)
