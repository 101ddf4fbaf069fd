"""Measure how long a call takes: samples long enough for the clock, none averaged away.

A sample is one or more calls in a row, divided by their number. The smallest sample is what the
code can do, the median what a user sees; both are the caller's to take.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Call = Callable[[], object]

_MOST_CALLS = 1 << 24


def measure(call: Call, min_time_s: float = 0.01, repeats: int = 5) -> tuple[float, ...]:
    """Seconds per call, one number for each of `repeats` samples of at least `min_time_s`.

    The calls that find out how many make a sample warm caches and threads up; they do not count.
    """
    count = calls_per_sample(call, min_time_s)
    return tuple(time_calls(call, count) for _ in range(repeats))


def calls_per_sample(call: Call, min_time_s: float) -> int:
    """How many calls last `min_time_s`; runs the call at least once."""
    call()
    count = 1
    while count < _MOST_CALLS:
        elapsed_s = time_calls(call, count) * count
        if elapsed_s >= min_time_s:
            break
        # Aim a little past the goal, but trust a short sample only so far.
        wanted = 1.2 * count * min_time_s / max(elapsed_s, 1e-9)
        count = int(min(max(wanted, count + 1), 16 * count))
    return count


def time_calls(call: Call, count: int) -> float:
    """Seconds per call of `count` calls in a row."""
    turns = range(count)
    start = time.perf_counter()
    for _ in turns:
        call()
    return (time.perf_counter() - start) / count
