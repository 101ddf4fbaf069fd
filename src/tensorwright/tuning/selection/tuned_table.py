"""The table of a workload with named sizes that was tuned for some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace

from tensorwright.base import CpuTarget, ScheduleError, knobs
from tensorwright.graph import Workload, bind_workload, representative
from tensorwright.machine import detect_hardware
from tensorwright.records import RecordStore, best_trace, load_tuned_sizes
from tensorwright.schedule import (
    OpenTrace,
    Schedule,
    Trace,
    format_trace,
    open_trace,
    state_of,
    trace_at,
)
from tensorwright.tuning.selection.predictor import Predictor
from tensorwright.tuning.selection.size_table import SizeTable, TunedTrace, filled_table

_TOP = 32  # records of a point that are compared
_SAME = 0.03  # of the measured time: traces that differ by less are alike


def tuned_table(
    workload: Workload,
    target: CpuTarget,
    threads: int,
    store: RecordStore,
    predictor: Predictor | None,
    untuned: Callable[[Workload], Schedule],
    *,
    has_exact: bool,
) -> SizeTable | None:
    """The best schedules on record for the sizes for which a workload was tuned, and for the sizes
    between them what the time model prefers; None if none is on record.

    untuned   the schedule of a workload without records, with named sizes and with numbers for them
    has_exact   as of `filled_table`
    """
    tuned = _tuned_traces(workload, target, threads, store, untuned)
    if not any(each.is_measured for each in tuned):
        return None
    prices = ModelPrices(workload, target, predictor)
    return filled_table(workload.sizes, tuned, untuned(workload), prices, has_exact=has_exact)


def opened_trace(workload: Workload, trace: Trace, target: CpuTarget) -> OpenTrace | None:
    """The trace for all sizes; None if it has no form that holds for them."""
    try:
        return open_trace(state_of(workload), trace, target.vector_bytes)
    except ScheduleError:
        return None


def _tuned_traces(
    workload: Workload,
    target: CpuTarget,
    threads: int,
    store: RecordStore,
    untuned: Callable[[Workload], Schedule],
) -> tuple[TunedTrace, ...]:
    """The best trace of each tuned point; points that differ in other sizes only are one."""
    names = sorted(size.name for size in workload.sizes)
    hardware, algorithms = detect_hardware().fingerprint, knobs.WINOGRAD.get()
    typical = representative(workload.sizes)
    tuned: dict[tuple[int, ...], TunedTrace] = {}
    texts: dict[tuple[int, ...], set[str]] = {}
    for point in load_tuned_sizes(store, workload.key):
        values = {name: point.get(name, typical[name]) for name in names}
        numbers = tuple(values[name] for name in names)
        if numbers in tuned:
            continue
        instance = bind_workload(workload, values)
        best = best_trace(store, instance, target, hardware, threads, algorithms=algorithms)
        trace = trace_at(untuned(instance), values) if best is None else best
        opens = opened_trace(workload, trace, target) is not None
        top = store.top(
            _TOP, workload=instance.key, target=target.key, hardware=hardware, threads=threads
        )
        near = {each.trace for each in top if each.median_s <= (1 + _SAME) * top[0].median_s}
        tuned[numbers] = TunedTrace(values, trace, opens, best is not None)
        texts[numbers] = near
    return tuple(
        replace(each, equals=_equals_of(each, tuned.values(), texts[numbers]))
        for numbers, each in tuned.items()
    )


def _equals_of(own: TunedTrace, others: Iterable[TunedTrace], near: Set[str]) -> tuple[Trace, ...]:
    """The traces of other points that are on record here and about as fast.

    near   texts of the traces that are
    """
    traces = dict.fromkeys(each.trace for each in others if each.opens)
    return tuple(trace for trace in traces if trace != own.trace and format_trace(trace) in near)


class ModelPrices:
    """The predicted seconds of traces of one workload; caches opened traces."""

    def __init__(self, workload: Workload, target: CpuTarget, predictor: Predictor | None) -> None:
        self._workload = workload
        self._target = target
        self._predictor = predictor
        self._opened: dict[Trace, OpenTrace | None] = {}

    def alone(self, trace: Trace, values: Mapping[str, int]) -> float | None:
        """As `Prices.alone`."""
        if self._predictor is None:
            return None
        estimate = self._predictor.estimate(bind_workload(self._workload, values), trace)
        return None if estimate is None else estimate.seconds

    def opened(self, trace: Trace, values: Mapping[str, int]) -> float | None:
        """As `Prices.opened`."""
        if trace not in self._opened:
            self._opened[trace] = opened_trace(self._workload, trace, self._target)
        opened = self._opened[trace]
        return None if opened is None else self.alone(opened.trace, values)
