"""Time executables in turns, so that a disturbance affects all equally."""

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
    """The typical seconds of one run of each; the arguments are those of `samples_in_turns`."""
    samples = samples_in_turns(executables, inputs, rounds, limit_s, should_stop)
    return None if samples is None else [typical_seconds(taken) for taken in samples]


def samples_in_turns(
    executables: Sequence[Executable],
    inputs: Mapping[str, Array],
    rounds: int,
    limit_s: float,
    should_stop: Callable[[], bool] | None = None,
) -> list[list[float]] | None:
    """Seconds of each executable, one number for each turn; None if `should_stop` became true.

    rounds    turns of each      limit_s   seconds after which no turn begins, except the first two
    """
    deadline = time.monotonic() + limit_s
    runs = [executable.bind(dict(inputs)) for executable in executables]
    samples: list[list[float]] = [[] for _ in runs]
    for number in range(rounds):
        for run, taken in zip(runs, samples, strict=True):
            if should_stop is not None and should_stop():
                return None
            run.run()
            taken.append(run.run_seconds())
        if number + 1 >= _LEAST_ROUNDS and time.monotonic() > deadline:
            break
    return samples


def typical_seconds(times: Sequence[float]) -> float:
    """The median of the faster half, because other load only adds time."""
    return statistics.median(faster_half(times))


def faster_half(times: Sequence[float]) -> list[float]:
    """The smaller half of some times, including the middle one."""
    return sorted(times)[: (len(times) + 1) // 2]
