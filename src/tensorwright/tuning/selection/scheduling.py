"""Which schedule a workload gets: a measured one, a predicted one, or the heuristic one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tensorwright.base import CpuTarget, ScheduleError, Target, knobs, override, without_collection
from tensorwright.expr import named_sizes_of, with_sizes
from tensorwright.graph import Partition, Workload, bind_workload, least_sizes, representative
from tensorwright.machine import detect_hardware
from tensorwright.records import RecordStore, best_trace, load_choice
from tensorwright.schedule import (
    ForKind,
    OpenTrace,
    Trace,
    analyse,
    format_trace,
    open_trace,
    state_of,
    uses_algorithm,
)
from tensorwright.tuning.selection.predictor import Predictor, open_predictor
from tensorwright.tuning.space import default_trace


class Source(StrEnum):
    """Where a schedule comes from, and what a report calls it."""

    GIVEN = "by the caller"
    NETWORK = "measured in the network"
    RECORD = "on record"
    MODEL = "by model"
    RULE = "by heuristic"


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A workload, the schedule chosen for it, and the origin of the schedule.

    The schedule of a workload with named sizes is that of its typical instance.
    """

    workload: Workload
    trace: Trace
    source: Source

    @property
    def is_tuned(self) -> bool:
        """Whether the schedule was measured on this machine."""
        return self.source in (Source.NETWORK, Source.RECORD)


def choose_all(
    parts: Partition, target: Target, threads: int, store: RecordStore
) -> list[Scheduled]:
    """A schedule for each workload of a network: its choice on record, or by `choose`."""
    together = load_choice(store, parts, target, detect_hardware().fingerprint, threads)
    with without_collection():
        return [
            choose(workload, target, threads, store, together.get(workload.key), is_cold=True)
            for workload in parts.workloads
        ]


def choose(
    workload: Workload,
    target: Target,
    threads: int,
    store: RecordStore,
    together: Trace | None = None,
    *,
    is_cold: bool = False,
) -> Scheduled:
    """The best recorded schedule of a workload, or `choose_untuned`.

    together   the schedule that was best inside the network; None if none were compared there
    is_cold    the workload runs in a network: constants come from memory
    """
    if workload.sizes and not isinstance(target, CpuTarget):
        return choose_untuned(workload, target, threads, is_cold=is_cold)
    if workload.sizes and isinstance(target, CpuTarget):
        return _choose_open(workload, target, threads, store, is_cold=is_cold)
    algorithms = knobs.WINOGRAD.get()
    if together is not None and (algorithms or not uses_algorithm(together)):
        return Scheduled(workload, together, Source.NETWORK)
    hardware = detect_hardware().fingerprint
    best = best_trace(store, workload, target, hardware, threads, algorithms=algorithms)
    if best is not None:
        return Scheduled(workload, best, Source.RECORD)
    return choose_untuned(workload, target, threads, is_cold=is_cold)


def _choose_open(
    workload: Workload, target: CpuTarget, threads: int, store: RecordStore, *, is_cold: bool
) -> Scheduled:
    """The schedule of the typical instance; that of the least where it gains more there than it
    loses; and where no variant of these holds for all sizes, one without other algorithms, or one
    that does nothing.
    """
    sizes = workload.sizes
    typical, least = (
        bind_workload(workload, values) for values in (representative(sizes), least_sizes(sizes))
    )
    for algorithms in dict.fromkeys((knobs.WINOGRAD.get(), False)):
        with override(winograd=algorithms):
            chosen = choose(typical, target, threads, store, is_cold=is_cold)
            opened = _opened(workload, chosen.trace, target)
            if opened is None:
                continue
            if not chosen.is_tuned and _has_idle_threads(opened, least_sizes(sizes), threads):
                other = choose(least, target, threads, store, is_cold=is_cold)
                predictor = open_predictor(target, threads, is_cold=is_cold)
                if predictor is not None and _opened(workload, other.trace, target) is not None:
                    lost = _quotient(predictor, typical, other.trace, chosen.trace)
                    gained = _quotient(predictor, least, chosen.trace, other.trace)
                    chosen = other if gained > lost else chosen
            return Scheduled(workload, chosen.trace, chosen.source)
    return Scheduled(workload, (), Source.RULE)


def _opened(workload: Workload, trace: Trace, target: CpuTarget) -> OpenTrace | None:
    """The trace for all sizes; None where it has no form that holds for them."""
    try:
        return open_trace(state_of(workload), trace, target.vector_bytes)
    except ScheduleError:
        return None


def _has_idle_threads(opened: OpenTrace, values: Mapping[str, int], threads: int) -> bool:
    """Whether a parallel loop has fewer iterations than there are threads, for some sizes."""
    nests = analyse(opened.state).nests
    for stage in opened.state.stages:
        for loop, kind in stage.marks:
            extent = nests[stage.name].extents.get(loop, 1)
            if kind is ForKind.PARALLEL and named_sizes_of(extent):
                count = with_sizes(extent, values)
                if isinstance(count, int) and count < threads:
                    return True
    return False


def _quotient(predictor: Predictor, workload: Workload, over: Trace, under: Trace) -> float:
    """How many times as long as another one a schedule takes; 1 where that is not predicted."""
    above, below = (predictor.estimate(workload, trace) for trace in (over, under))
    return 1.0 if above is None or below is None else above.seconds / below.seconds


def choose_untuned(
    workload: Workload, target: Target, threads: int, *, is_cold: bool = False
) -> Scheduled:
    """The schedule of a workload without measurements: by time model, or heuristic.

    The time model is one of processors.
    """
    predictor = None
    if isinstance(target, CpuTarget):
        predictor = open_predictor(target, threads, is_cold=is_cold)
    if predictor is None:
        return Scheduled(workload, default_trace(state_of(workload), target), Source.RULE)
    chosen = predictor.best(workload)
    return Scheduled(workload, chosen.trace, Source.RULE if chosen.is_by_rule else Source.MODEL)


def schedules_text(chosen: Sequence[Scheduled]) -> str:
    """The schedules of an executable as JSON, which it keeps for people."""
    rows = [
        {
            "workload": each.workload.name,
            "key": each.workload.key,
            "tuned": each.is_tuned,
            "source": each.source.value,
            "trace": format_trace(each.trace),
        }
        for each in chosen
    ]
    return json.dumps(rows, indent=1)
