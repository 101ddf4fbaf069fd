"""The last comparison of a search: the untuned and the tuned network in turns.

A schedule is chosen because it looked fast, so the times of the choice are too good; and times on
record come from other moments.  Here the two networks take new turns, as a whole and step by step,
and speed-ups are claimed from these times only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tensorwright.graph import AliasCall, ConcatInPlace, KernelCall, Partition, random_inputs
from tensorwright.processes import never
from tensorwright.runtime import Bound, Executable
from tensorwright.runtime.measuring import faster_half
from tensorwright.tuning.session.result import Comparison, NetworkResult

_TURNS = 40
_LEAST_TURNS = 5
TOO_SHORT = "the time was too short"


@dataclass(slots=True)
class Samples:
    """Seconds of a program, one number for each of its turns; mutable.

    workloads   key -> seconds of all its calls together
    """

    whole: list[float] = field(default_factory=list)
    workloads: dict[str, list[float]] = field(default_factory=dict)


def compare_with_untuned(
    parts: Partition,
    untuned: Executable,
    tuned: Executable,
    schedules: tuple[Mapping[str, str], Mapping[str, str]],
    limit_s: float,
    should_stop: Callable[[], bool] = never,
) -> NetworkResult:
    """Both programs of a network in turns, as a whole and workload by workload.

    tuned     is the untuned program if nothing was faster
    schedules   of both, by workload key: equal ones show that a workload was not changed
    limit_s   about how long it may take; if a few turns do not end within twice that time, there
              is no comparison
    """
    name = parts.graph.name
    samples = take_turns(parts, (untuned, tuned), limit_s, should_stop)
    if samples is None:
        return NetworkResult(name, reason="stopped" if should_stop() else TOO_SHORT)
    before, after = samples
    of_whole = _same if tuned is untuned else _different
    counts = {workload.key: parts.count(workload) for workload in parts.workloads}
    workloads = []
    for key, times in before.workloads.items():
        of_one = _same if schedules[0][key] == schedules[1][key] else _different
        compared = of_one(times, after.workloads[key])
        workloads.append((key, _per_call(compared, counts[key])))
    taken = tuple(sorted(schedules[1].items()))
    return NetworkResult(name, of_whole(before.whole, after.whole), tuple(workloads), taken)


def compare_programs(
    parts: Partition, untuned: Executable, tuned: Executable, limit_s: float
) -> NetworkResult:
    """As `compare_with_untuned`, but only as a whole: the steps of the two may differ."""
    samples = take_turns(parts, (untuned, tuned), limit_s, never)
    if samples is None:
        return NetworkResult(parts.graph.name, reason=TOO_SHORT)
    before, after = samples
    return NetworkResult(parts.graph.name, _different(before.whole, after.whole))


def workloads_of_steps(parts: Partition) -> list[str]:
    """The key of the workload of each step of a plan, "" for the host; copies come after them."""
    return [
        step.workload.key if isinstance(step, KernelCall) else ""
        for step in parts.steps
        if not isinstance(step, AliasCall | ConcatInPlace)
    ]


def take_turns(
    parts: Partition,
    programs: Sequence[Executable],
    limit_s: float,
    should_stop: Callable[[], bool],
) -> list[Samples] | None:
    """The samples of each; None if the first turn shows that a few turns take too long."""
    inputs = random_inputs(parts.graph)
    keys = workloads_of_steps(parts)
    runs = [program.bind(dict(inputs)) for program in programs]
    samples = [Samples() for _ in programs]
    started = time.monotonic()
    for number in range(_TURNS):
        pairs = list(zip(runs, samples, strict=True))
        for run, taken in pairs if number % 2 == 0 else reversed(pairs):
            if should_stop():
                return None
            _take_turn(run, keys, taken)
        passed_s = time.monotonic() - started
        if number == 0 and _LEAST_TURNS * passed_s > 2 * limit_s:
            return None
        if number + 1 >= _LEAST_TURNS and passed_s > limit_s:
            break
    return samples


def _take_turn(run: Bound, keys: Sequence[str], taken: Samples) -> None:
    run.run()
    taken.whole.append(run.run_seconds())
    totals: dict[str, list[float]] = {}
    for key, time_s in zip(keys, run.run_timed(), strict=False):
        totals.setdefault(key, []).append(time_s)
    for key in filter(None, totals):
        taken.workloads.setdefault(key, []).append(math.fsum(totals[key]))


def _different(before: Sequence[float], after: Sequence[float]) -> Comparison:
    return Comparison.of(faster_half(before), faster_half(after))


def _same(before: Sequence[float], after: Sequence[float]) -> Comparison:
    return Comparison.of_same(faster_half([*before, *after]))


def _per_call(compared: Comparison, count: int) -> Comparison:
    """The comparison of one call, from the times of all calls together."""
    untuned_s, tuned_s = compared.untuned_s / count, compared.tuned_s / count
    return replace(compared, untuned_s=untuned_s, tuned_s=tuned_s)
