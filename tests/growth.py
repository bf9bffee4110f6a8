"""Whether time grows with the size of what is worked on and not with its square.

Noise on a shared machine only ever adds time, so the best of several rounds is nearest the truth,
and a round that fits is proof enough. A square would not fit in any.
"""

import time
from collections.abc import Callable

ROUNDS = 8
FLOOR_S = 0.002
"""Below this the clock and the collector of garbage are measured, not the work."""


def assert_linear(
    work: Callable[[int], object], small: int, large: int, *, slack: float = 3.0
) -> None:
    """Assert that ``work(large)`` takes at most ``slack`` times its share of ``work(small)``."""
    best = {small: float("inf"), large: float("inf")}
    allowed = 0.0
    for _ in range(ROUNDS):
        for size, so_far in best.items():
            began = time.thread_time()
            work(size)
            best[size] = min(so_far, time.thread_time() - began)
        allowed = slack * large / small * max(best[small], FLOOR_S)
        if best[large] <= allowed:
            return
    message = f"{best[large]:.4f} s for {large}, {best[small]:.4f} s for {small}"
    raise AssertionError(f"{message}: more than {allowed:.4f} s")
