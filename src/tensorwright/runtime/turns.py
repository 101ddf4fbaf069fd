"""How long executables take, each in turn: what disturbs one disturbs the others as much."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from tensorwright.base import Array
from tensorwright.runtime.executable import Executable

_LEAST_ROUNDS = 2


def seconds_in_turns(
    executables: Sequence[Executable],
    inputs: Mapping[str, Array],
    *,
    rounds: int,
    limit_s: float,
    should_stop: Callable[[], bool] | None = None,
) -> list[float] | None:
    """Seconds of one run of each; None where `should_stop` turned true.

    rounds    turns of each               limit_s   fewer turns, but two, where they take longer
    """
    deadline = time.monotonic() + limit_s
    runs = [executable.bind(dict(inputs)) for executable in executables]
    samples: list[list[float]] = [[] for _ in runs]
    for number in range(rounds):
        for run, taken in zip(runs, samples, strict=True):
            if should_stop is not None and should_stop():
                return None
            run.run()
            start = time.perf_counter()
            run.run()
            taken.append(time.perf_counter() - start)
        if number + 1 >= _LEAST_ROUNDS and time.monotonic() > deadline:
            break
    return [typical_seconds(taken) for taken in samples]


def typical_seconds(times: Sequence[float]) -> float:
    """The median of the faster half: foreign load only ever adds time."""
    return statistics.median(faster_half(times))


def faster_half(times: Sequence[float]) -> list[float]:
    """The smaller half of some times, with the one in the middle."""
    return sorted(times)[: (len(times) + 1) // 2]
