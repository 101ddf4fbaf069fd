"""A schedule that was chosen without a measurement against random ones of its space, or a search.

All are built, then race against the fastest before them, the chosen one first.  It and the fastest
few take turns, which says what the best random one is; in a last race that one, the chosen one and
the heuristic one take turns again, as often for all.  Only the times of the last race are reported:
nothing was chosen by them, and all schedules are measured equally often.  A random schedule that is
dropped early counts as measured: only the best one matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from tensorwright.artifacts import Kernel, build_request
from tensorwright.base import CpuTarget
from tensorwright.records import MemoryStore, Record, Setting, Status
from tensorwright.schedule import Workload, state_of
from tensorwright.tuning.measuring import (
    Builder,
    BuildFailed,
    BuildStopped,
    Measurement,
    MeasureOptions,
)
from tensorwright.tuning.measuring.runner import Runner
from tensorwright.tuning.session import Options, SessionParts, tune
from tensorwright.tuning.space import space_of
from tensorwright.tuning.strategies import RandomSearch
from tensorwright.tuning.task import Task


@dataclass(frozen=True, slots=True)
class Bench:
    """Who builds and who measures, for which target, on how many threads."""

    builder: Builder
    runner: Runner
    target: CpuTarget
    threads: int


def build_all(
    workload: Workload, traces: Sequence[str], bench: Bench
) -> dict[str, Kernel | BuildFailed]:
    """The kernel of each trace, or why there is none; while this runs, nothing is measured."""
    different = tuple(dict.fromkeys(traces))
    requests = [build_request(workload, trace, bench.target) for trace in different]
    built = zip(different, bench.builder.build(requests), strict=True)
    return {trace: result for trace, result in built if not isinstance(result, BuildStopped)}


def race(
    workload: Workload,
    built: Mapping[str, Kernel | BuildFailed],
    bench: Bench,
    best_s: float = math.inf,
) -> dict[str, Measurement]:
    """Measure one after the other, in order; each is dropped where clearly slower than the best of
    those before, and than `best_s`.
    """
    measurements: dict[str, Measurement] = {}
    with bench.runner.turn():
        for trace, result in built.items():
            if isinstance(result, BuildFailed):
                measurements[trace] = Measurement(result.status, error=result.error)
                continue
            measured = bench.runner.measure(workload, [result], bench.threads, best_s)
            assert measured is not None, "nobody stops it"
            (measurements[trace],) = measured
            if measurements[trace].status is Status.OK:
                best_s = min(best_s, *measurements[trace].times_s)
    return measurements


def measure_in_turns(
    workload: Workload, kernels: Mapping[str, Kernel], bench: Bench, rounds: int = 1
) -> dict[str, Measurement]:
    """Measure a few kernels in turns, several times: a slow moment of the machine hits all alike.

    All have as many samples, so none is favoured. One that fails in a round has that failure.
    """
    measurements: dict[str, Measurement] = {}
    for _ in range(rounds):
        with bench.runner.turn():
            measured = bench.runner.measure(workload, [*kernels.values()], bench.threads, math.inf)
        assert measured is not None, "nobody stops it"
        for trace, one in zip(kernels, measured, strict=True):
            before = measurements.get(trace)
            if before is None or not one.times_s:
                measurements[trace] = one
            elif before.times_s:
                measurements[trace] = replace(one, times_s=(*before.times_s, *one.times_s))
    return measurements


def fastest_s(measured: Mapping[str, Measurement]) -> dict[str, float]:
    """Seconds of each that ran, the fastest of its samples."""
    return {trace: min(one.times_s) for trace, one in measured.items() if one.times_s}


_OPTIONS = Options(should_resume=False, should_rank=False, recheck_rounds=0, seeds=0)


def search_trials(
    workload: Workload, bench: Bench, trials: int, seed: int, measuring: MeasureOptions
) -> list[Record]:
    """The measurements of a session of some trials, in order; its first trial is the default.

    measuring   how the runner measures
    Raises:  KeyboardInterrupt where it was interrupted.
    """
    with MemoryStore() as store:
        result = tune(
            [Task(workload)],
            Setting(bench.target, bench.threads),
            store,
            replace(_OPTIONS, trials=trials, seed=seed),
            measuring=measuring,
            parts=SessionParts(builder=bench.builder, runner=bench.runner),
        )
        if result.is_interrupted:
            raise KeyboardInterrupt
        return list(store.query())


def best_after(records: Sequence[Record], counts: Sequence[int], untuned: str) -> tuple[str, ...]:
    """After each number of trials the trace of the fastest until then; the untuned one where
    nothing ran.
    """
    traces: list[str] = []
    for count in counts:
        good = [record for record in records[:count] if record.status is Status.OK]
        best = min(good, key=lambda record: min(record.times_s), default=None)
        traces.append(untuned if best is None else best.trace)
    return tuple(traces)


_FINALISTS = 4
_MOST_TRIED = 2  # give up after this many times the wanted number of tries
_LAST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class RandomComparison:
    """The result of a comparison.

    chosen_s   seconds of the chosen schedule; None where it did not run, or answered wrongly, and
               `failure` says why
    rule_s     of the heuristic schedule; None where that did not run
    best_s     of the fastest random one; None where none ran
    best       its trace
    measured   how many random ones ran     tried   how many were drawn
    wrong      traces of those with a wrong answer, the chosen one included, and what is wrong
    """

    chosen_s: float | None
    rule_s: float | None
    best_s: float | None
    best: str
    measured: int
    tried: int
    wrong: tuple[tuple[str, str], ...]
    failure: str


def compare_with_random(
    workload: Workload, chosen: str, bench: Bench, wanted: int, seed: int
) -> RandomComparison:
    """Compare a schedule with the best of `wanted` random ones that run, or fewer.

    Equal arguments draw equal candidates.
    """
    space = space_of(state_of(workload), bench.target)
    search = RandomSearch(Task(workload), space, seed)
    rule = search.propose(1)[0].trace
    random = [candidate.trace for candidate in search.propose(wanted)]
    built = build_all(workload, [chosen, rule, *random], bench)
    measured = race(workload, built, bench)
    while len(random) < _MOST_TRIED * wanted:
        missing = wanted - _count_measured(random, measured)
        more = [candidate.trace for candidate in search.propose(missing)] if missing else []
        if not more:
            break
        random += more
        added = build_all(workload, more, bench)
        built |= added
        measured |= race(workload, added, bench, min(fastest_s(measured).values(), default=1e9))
    count = _count_measured(random, measured)
    others = [trace for trace in _fastest_first(measured) if trace != chosen][:_FINALISTS]
    turns = _in_turns(workload, (chosen, *others), measured, built, bench)
    best = next((trace for trace in _fastest_first(turns) if trace in random), "")
    measured |= turns
    measured |= _in_turns(workload, (chosen, rule, best), measured, built, bench, _LAST_ROUNDS)
    times_s, first = fastest_s(measured), measured[chosen]
    return RandomComparison(
        times_s.get(chosen),
        times_s.get(rule),
        times_s.get(best),
        best,
        count,
        len(random),
        tuple((t, one.error) for t, one in measured.items() if one.status is Status.WRONG_ANSWER),
        "" if first.times_s else f"{first.status.value}: {first.error}",
    )


def _fastest_first(measured: Mapping[str, Measurement]) -> list[str]:
    """Those that ran, and those that were dropped: they may have been measured in a slow moment."""
    times_s = fastest_s(measured)
    return sorted(times_s, key=times_s.__getitem__)


def _in_turns(
    workload: Workload,
    traces: Sequence[str],
    measured: Mapping[str, Measurement],
    built: Mapping[str, Kernel | BuildFailed],
    bench: Bench,
    rounds: int = 1,
) -> dict[str, Measurement]:
    """Measure those of some schedules by turns that ran before; nothing where that is only one."""
    kernels: dict[str, Kernel] = {}
    for trace in traces:
        kernel = built.get(trace)
        if isinstance(kernel, Kernel) and measured[trace].times_s:
            kernels[trace] = kernel
    return measure_in_turns(workload, kernels, bench, rounds) if len(kernels) > 1 else {}


def _count_measured(traces: list[str], measured: dict[str, Measurement]) -> int:
    """How many ran; one that was stopped because it ran for so long did."""
    statuses = [measured[trace].status for trace in traces if trace in measured]
    return sum(status.is_timed or status is Status.TIMED_OUT for status in statuses)


LIMIT = 3.0
"""The ratio to the best from which on a default schedule counts as a catastrophe."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Of some ratios, lower is better; NaN where there are none.

    mean        geometric                   half, p90, p99   so many of a hundred are not above
    most        the largest                 above            how many are above `LIMIT`
    """

    count: int
    mean: float
    half: float
    p90: float
    p99: float
    most: float
    above: int

    def to_data(self) -> dict[str, float | None]:
        """For JSON, which has no NaN."""
        return {name: None if each != each else each for name, each in asdict(self).items()}


def distribution_of(ratios: Sequence[float]) -> Distribution:
    """Sum ratios up; each is above 0."""
    if not ratios:
        nan = float("nan")
        return Distribution(0, nan, nan, nan, nan, nan, 0)
    values = np.array(ratios)
    half, p90, p99 = (float(np.quantile(values, share)) for share in (0.5, 0.9, 0.99))
    mean = float(np.exp(np.log(values).mean()))
    above = int(np.sum(values > LIMIT))
    return Distribution(len(values), mean, half, p90, p99, float(values.max()), above)
