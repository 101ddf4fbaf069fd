"""Measure the best few schedules of a workload again, in turns, to decide which is the best.

A first measurement may have been lucky. The default schedule takes part, so that a tuned result is
never slower than no tuning at all.

The records that a session trusts: of its setting, by this version of the compiler.

Schedules that were good elsewhere: on a similar machine, with other threads, by another version.

Schedules of a workload that differs only in the sizes of its tensors are seeds, too.  Their times
do not count here, so they are ordinary candidates: measured first, never trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TypeAlias

from tensorwright import schedule
from tensorwright.artifacts import Kernel, build_request, keep_kernel
from tensorwright.base import Target, TensorwrightError
from tensorwright.records import Record, RecordStore, Setting, Status, is_current, rank, with_times
from tensorwright.tuning.measuring.runner import Builder, Runner
from tensorwright.tuning.measuring.timing import Measurement
from tensorwright.tuning.population.population import Candidate
from tensorwright.tuning.selection import Predictor
from tensorwright.tuning.session.result import Comparison
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.strategy import StrategyFactory
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import Scheduler


def records_of(store: RecordStore, setting: Setting, workload: str) -> tuple[Record, ...]:
    """All records of a workload that the session may learn from."""
    records = store.query(**setting.filters(workload))
    return tuple(record for record in records if is_current(record))


def top_of(store: RecordStore, setting: Setting, workload: str, count: int) -> tuple[Record, ...]:
    """The fastest of them."""
    top = store.top(count, **setting.filters(workload))
    if all(is_current(record) for record in top):
        return top
    return rank(records_of(store, setting, workload))[:count]


def standing(records: Sequence[Record], trace: str) -> Record | None:
    """The newest record of a trace, if that one is good."""
    own = [record for record in records if record.trace == trace]
    newest = max(own, key=lambda record: record.when, default=None)
    return newest if newest is not None and newest.status is Status.OK else None


_OF_EACH = 2  # schedules from one machine and version


def seeds_of(
    store: RecordStore, setting: Setting, workload: schedule.Workload, count: int
) -> tuple[Candidate, ...]:
    """The best schedules of a workload from elsewhere, the most similar origin first, each once.

    Schedules that the session trusts anyway are left out, and those of machines of another kind.
    """
    groups: dict[tuple[int, str, str, int, str], list[Record]] = {}
    for record in store.query(workload=workload.key):
        distance = _distance(record, setting)
        if distance is not None:
            origin = (record.target, record.hardware, record.threads, record.tool_version)
            groups.setdefault((distance, *origin), []).append(record)
    trusted = {each.trace for each in records_of(store, setting, workload.key)}
    seeds: dict[str, Candidate] = {}
    for _, records in sorted(groups.items(), key=lambda item: item[0]):
        for record in rank(records)[:_OF_EACH]:
            if record.trace not in trusted:
                seeds.setdefault(record.trace, Candidate(record.trace, "", record.decisions))
    return tuple(seeds.values())[:count]


def best_of_alike(
    store: RecordStore,
    setting: Setting,
    workload: schedule.Workload,
    alike: Sequence[str],
    count: int,
) -> tuple[Candidate, ...]:
    """The best schedules of other workloads, given by their keys, that this one can have, too."""
    state = schedule.state_of(workload)
    bests = [top_of(store, setting, key, 1) for key in alike if key != workload.key]
    traces = {best[0].trace: best[0].decisions for best in bests if best}
    seeds = [
        Candidate(trace, "", decisions)
        for trace, decisions in traces.items()
        if is_replayable(state, trace)
    ]
    return tuple(seeds[:count])


def is_replayable(state: schedule.ScheduleState, trace: str) -> bool:
    """Whether this version can replay a trace from a state."""
    try:
        schedule.replay(state, schedule.parse_trace(trace))
    except TensorwrightError:
        return False
    return True


def _distance(record: Record, setting: Setting) -> int | None:
    """0 for another version here, 1 for other threads, 2 for a similar machine; None: no seed."""
    if record.status is not Status.OK:
        return None
    is_here = record.hardware == setting.hardware and record.target == setting.target.key
    if is_here and record.threads == setting.threads:
        return None if is_current(record) else 0
    if is_here:
        return 1
    is_alike = kind_of(record.hardware) == kind_of(setting.hardware)
    return 2 if is_alike or record.target == setting.target.key else None


def kind_of(hardware: str) -> tuple[str, str]:
    """Architecture and widest instruction set of a fingerprint, "x86_64-2c-avx512f-1a2b3c4d"."""
    parts = hardware.split("-")
    return (parts[0], parts[2]) if len(parts) == 4 else (hardware, "")


_RANKED = 4  # traces of a workload, beside the default
_NEAR = 1.15  # times as slow as the best, after the first two: slower ones do not win
_MOST_RANKINGS = 3

_Turns: TypeAlias = dict[str, tuple[float, ...]]
"""The times of traces that took turns; a trace with a wrong answer has none."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The parts that a session works with.

    predictor      chooses the default schedules and the first races; heuristics if None
    make_default   the heuristic schedule of a task; the first of its space if None
    keeps_kernels  whether kernels of the ranking go into the kernel cache
    has_races      whether the first round of a task tries the predictor's elites
    """

    builder: Builder
    runner: Runner
    scheduler: Scheduler
    make_strategy: StrategyFactory
    make_space: Callable[[Task, Target], Space]
    predictor: Predictor | None = None
    make_default: Callable[[Task, Target], Candidate] | None = None
    keeps_kernels: bool = False
    has_races: bool = True


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best schedule that took turns, and its comparison with the default."""

    trace: str
    compared: Comparison


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks workloads of one setting again."""

    setting: Setting
    store: RecordStore
    tools: Tools
    should_stop: Callable[[], bool]

    def rank(self, workload: schedule.Workload, default: str) -> Ranked | None:
        """Measure until the best on record has taken turns.

        There is a limit: among hundreds of equally fast schedules, some have slightly better
        records by luck.

        default   trace of the default schedule
        """
        ranked: dict[str, _Turns] = {}
        last: _Turns = {}
        for _ in range(_MOST_RANKINGS):
            top = list(top_of(self.store, self.setting, workload.key, _RANKED))
            if not top or top[0].trace in ranked:
                break
            near = [one for one in top[2:] if one.median_s <= _NEAR * top[0].median_s]
            top = [*top[:2], *near]
            records = records_of(self.store, self.setting, workload.key)
            untuned = standing(records, default)
            if untuned is not None and all(one.trace != default for one in top):
                top.append(untuned)
            turns = self._measure(workload, top) if len(top) > 1 else {}
            if not turns:
                break
            last = turns
            ranked |= dict.fromkeys([one.trace for one in top], turns)
        best = top_of(self.store, self.setting, workload.key, 1)
        trace = best[0].trace if best else ""
        return _compared(default, trace, ranked.get(trace, last))

    def _measure(self, workload: schedule.Workload, records: Sequence[Record]) -> _Turns:
        """Store the new times of some records, and return the seconds of those that have times.

        The kernels may be kept: a network needs one of them, and its comparisons need others.
        """
        target = self.setting.target
        requests = [build_request(workload, one.trace, target) for one in records]
        results = self.tools.builder.build(requests, self.should_stop)
        pairs = list(zip(records, results, strict=True))
        built = [(record, result) for record, result in pairs if isinstance(result, Kernel)]
        for record, kernel in built if self.tools.keeps_kernels else ():
            keep_kernel(workload, schedule.parse_trace(record.trace), target, kernel)
        with self.tools.runner.turn(self.should_stop) as is_held:
            if not is_held or not built:
                return {}
            measured = self.tools.runner.measure(
                workload,
                [result for _, result in built],
                self.setting.threads,
                math.inf,
                self.should_stop,
            )
        if measured is None:
            return {}
        fresh = [renewed(record, one) for (record, _), one in zip(built, measured, strict=True)]
        self.store.append(record for record in fresh if record is not None)
        return {each.trace: each.times_s for each in fresh if each is not None}


def _compared(default: str, best: str, turns: _Turns) -> Ranked | None:
    """The comparison of the default schedule and the best, in turns of both; of the fastest if the
    best took no turns.  None if the default took none.
    """
    timed = {trace: times_s for trace, times_s in turns.items() if times_s}
    if default not in timed:
        return None
    if best not in timed:
        best = min(timed, key=lambda trace: median(timed[trace]))
    if best == default:
        return Ranked(best, Comparison.of_same(timed[best]))
    return Ranked(best, Comparison.of(timed[default], timed[best]))


def renewed(record: Record, measured: Measurement) -> Record | None:
    """The record with its new times; None if they belong to another program."""
    if measured.status is Status.OK:
        return with_times(record, measured.times_s)
    if measured.status is Status.WRONG_ANSWER:
        failed = with_times(record, record.times_s)
        return replace(failed, times_s=(), status=measured.status, error=measured.error)
    return None
