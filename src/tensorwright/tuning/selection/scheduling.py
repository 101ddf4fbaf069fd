"""Which schedule a workload gets: a measured one, a predicted one, or the heuristic one.

The table of a workload with named sizes that was tuned for some of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Self

from tensorwright import base, records
from tensorwright.artifacts import backend_of, emit_source, loop_program
from tensorwright.graph import Partition, Workload, bind_workload, with_own_sizes
from tensorwright.machine import detect_hardware
from tensorwright.schedule import (
    OpenSchedule,
    OpenTrace,
    Schedule,
    SizedTrace,
    Trace,
    format_schedule,
    format_trace,
    open_trace,
    state_of,
    steps_of,
    trace_at,
    uses_algorithm,
)
from tensorwright.tuning.selection.predictor import Predictor, open_predictor
from tensorwright.tuning.selection.size_table import (
    SizeTable,
    TunedTrace,
    filled_table,
    trace_for_small_sizes,
)
from tensorwright.tuning.space import default_trace, heuristic_sketches, space_of

_TOP = 32  # records of a point that are compared
_SAME = 0.03  # of the measured time: traces that differ by less are alike


def opened_trace(workload: Workload, trace: Trace, target: base.CpuTarget) -> OpenTrace | None:
    """The trace for all sizes; None if it has no form that holds for them."""
    try:
        return open_trace(state_of(workload), trace, target.vector_bytes)
    except base.ScheduleError:
        return None


def _tuned_traces(
    workload: Workload,
    target: base.CpuTarget,
    threads: int,
    store: records.RecordStore,
    untuned: Callable[[Workload], Schedule],
) -> tuple[TunedTrace, ...]:
    """The best trace of each tuned point; points that differ in other sizes only are one."""
    names = sorted(size.name for size in workload.sizes)
    hardware, algorithms = detect_hardware().fingerprint, base.knobs.WINOGRAD.get()
    typical = workload.typical_sizes
    tuned: dict[tuple[int, ...], TunedTrace] = {}
    texts: dict[tuple[int, ...], set[str]] = {}
    for point in records.load_tuned_sizes(store, workload.key):
        values = {name: point.get(name, typical[name]) for name in names}
        numbers = tuple(values[name] for name in names)
        if numbers in tuned:
            continue
        instance = bind_workload(workload, values)
        best = records.best_trace(store, instance, target, hardware, threads, algorithms=algorithms)
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
    """The predicted seconds of traces of one workload; caches opened traces.

    opened   a trace that holds for all sizes already
    """

    def __init__(
        self,
        workload: Workload,
        target: base.CpuTarget,
        predictor: Predictor | None,
        opened: OpenTrace | None = None,
    ) -> None:
        self._workload = workload
        self._target = target
        self._predictor = predictor
        self._opened: dict[Trace, OpenTrace | None] = (
            {} if opened is None else {opened.trace: opened}
        )

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


_GROUP_VECTOR_BYTES = 16
"""The longest vector that a thread of a card reads at once."""


class Source(StrEnum):
    """The origin of a schedule, and its name in reports."""

    GIVEN = "by the caller"
    NETWORK = "measured in the network"
    RECORD = "on record"
    MODEL = "by model"
    RULE = "by heuristic"


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A workload, the schedule chosen for it, and the origin of the schedule.

    trace     of a workload with named sizes that of its typical instance; for devices, the form
              of it that holds for all sizes
    variants  for ranges of sizes; the trace is for all others
    """

    workload: Workload
    trace: Trace
    source: Source
    variants: tuple[SizedTrace, ...] = ()

    @classmethod
    def of(cls, workload: Workload, schedule: Schedule, source: Source) -> Self:
        """A workload with a trace, or with one for each range of its sizes."""
        if not isinstance(schedule, OpenSchedule):
            return cls(workload, schedule, source)
        return cls(workload, schedule.variants[-1].trace, source, schedule.variants[:-1])

    @property
    def schedule(self) -> Schedule:
        """The trace, with those for ranges of sizes if there are any."""
        if not self.variants:
            return self.trace
        return OpenSchedule((*self.variants, SizedTrace((), self.trace)))

    @property
    def is_tuned(self) -> bool:
        """Whether the schedule was measured on this machine."""
        return self.source in (Source.NETWORK, Source.RECORD)


def choose_all(
    parts: Partition,
    target: base.Target,
    threads: int,
    store: records.RecordStore,
    *,
    has_own_sizes: bool = False,
) -> list[Scheduled]:
    """A schedule for each workload of a network: its choice on record, or by `choose`.

    has_own_sizes   whether workloads that are not on record are those of `with_own_sizes`, so that
                    several have one schedule
    """
    together = records.load_choice(store, parts, target, detect_hardware().fingerprint, threads)
    chosen: list[Scheduled] = []
    shared: dict[str, Scheduled] = {}
    with base.without_collection():
        for workload in parts.workloads:
            measured = together.get(workload.key)
            with base.timed_stage(f"schedule of kernel {workload.key}, {workload.name}"):
                made = _choose_tuned(workload, target, threads, store, measured, is_cold=True)
                own = workload_to_build(workload, target) if has_own_sizes else workload
                made = made or shared.get(own.key)
                made = made or _choose_untuned(own, target, threads, store, is_cold=True)
                shared[made.workload.key] = made
                chosen.append(made)
    return chosen


def workload_to_build(workload: Workload, target: base.Target) -> Workload:
    """The workload for which a kernel is built: on a processor one with sizes of its own."""
    return with_own_sizes(workload).workload if isinstance(target, base.CpuTarget) else workload


def choose(
    workload: Workload,
    target: base.Target,
    threads: int,
    store: records.RecordStore,
    together: Schedule | None = None,
    *,
    is_cold: bool = False,
) -> Scheduled:
    """The best recorded schedule of a workload, or `choose_untuned`.

    together   the schedule that was best inside the network; None if none were compared there
    is_cold    the workload runs in a network: constants come from memory
    """
    tuned = _choose_tuned(workload, target, threads, store, together, is_cold=is_cold)
    return tuned or _choose_untuned(workload, target, threads, store, is_cold=is_cold)


def _choose_tuned(
    workload: Workload,
    target: base.Target,
    threads: int,
    store: records.RecordStore,
    together: Schedule | None,
    *,
    is_cold: bool,
) -> Scheduled | None:
    """The best recorded schedule of a workload; None if none is on record."""
    algorithms = base.knobs.WINOGRAD.get()
    if together is not None and (algorithms or not uses_algorithm(steps_of(together))):
        return Scheduled.of(workload, together, Source.NETWORK)
    if workload.sizes:
        if not isinstance(target, base.CpuTarget):
            return None
        table = size_table_of(workload, target, threads, store, is_cold=is_cold)
        return None if table is None else Scheduled.of(workload, table.schedule, Source.RECORD)
    hardware = detect_hardware().fingerprint
    best = records.best_trace(store, workload, target, hardware, threads, algorithms=algorithms)
    return None if best is None else Scheduled(workload, best, Source.RECORD)


def size_table_of(
    workload: Workload,
    target: base.CpuTarget,
    threads: int,
    store: records.RecordStore,
    *,
    is_cold: bool = False,
    has_exact: bool = True,
) -> SizeTable | None:
    """The best schedules on record for the sizes for which a workload was tuned, and for the sizes
    between them what the time model prefers; None if none is on record.

    has_exact   whether it is predicted which of them get a program for their sizes alone
    """

    def untuned(each: Workload) -> Schedule:
        return choose_untuned(each, target, threads, is_cold=is_cold).schedule

    tuned = _tuned_traces(workload, target, threads, store, untuned)
    if not any(each.is_measured for each in tuned):
        return None
    predictor = open_predictor(target, threads, is_cold=is_cold)
    prices = ModelPrices(workload, target, predictor)
    return filled_table(workload.sizes, tuned, untuned(workload), prices, has_exact=has_exact)


def _choose_open(
    workload: Workload,
    target: base.CpuTarget,
    threads: int,
    store: records.RecordStore,
    *,
    is_cold: bool,
) -> Scheduled:
    """The schedule of the typical instance, and perhaps another for small sizes.

    One without other algorithms, one by rule, or one without steps if it does not hold for all.
    """
    typical = bind_workload(workload, workload.typical_sizes)
    for algorithms in dict.fromkeys((base.knobs.WINOGRAD.get(), False)):
        with base.override(winograd=algorithms):
            chosen = choose(typical, target, threads, store, is_cold=is_cold)
            opened = opened_trace(workload, chosen.trace, target)
            if opened is None:
                continue
            small = None
            if not chosen.is_tuned:
                predictor = open_predictor(target, threads, is_cold=is_cold)
                small = trace_for_small_sizes(
                    workload,
                    opened,
                    threads,
                    lambda each: choose(each, target, threads, store, is_cold=is_cold).trace,
                    ModelPrices(workload, target, predictor, opened),
                )
            variants = () if small is None else (small,)
            return Scheduled(workload, chosen.trace, chosen.source, variants)
    for sketch in heuristic_sketches(state_of(typical), target):
        trace = sketch.bound(sketch.defaults)
        if opened_trace(workload, trace, target) is not None:
            return Scheduled(workload, trace, Source.RULE)
    return Scheduled(workload, (), Source.RULE)


def _choose_open_for_groups(
    workload: Workload, target: base.Target, threads: int, store: records.RecordStore
) -> Scheduled:
    """The schedule of the typical instance, made to hold for all sizes, or another by rule.

    Whole tiles become guarded ones, and the grid is computed at the call.  This fails, for example,
    if a block would share memory of an open size.
    """
    typical = bind_workload(workload, workload.typical_sizes)
    chosen = choose(typical, target, threads, store)
    backend, sketches = backend_of(target), space_of(state_of(typical), target).sketches
    others = (Scheduled(typical, each.bound(each.defaults), Source.RULE) for each in sketches)
    for each in chain((chosen,), others):
        try:
            opened = open_trace(state_of(workload), each.trace, _GROUP_VECTOR_BYTES)
            emit_source(loop_program(workload, opened.trace, target), target, backend)
        except (base.ScheduleError, base.InternalError, base.UnsupportedError):
            continue
        return Scheduled(workload, opened.trace, each.source)
    return Scheduled(workload, default_trace(state_of(workload), target), Source.RULE)


def choose_untuned(
    workload: Workload, target: base.Target, threads: int, *, is_cold: bool = False
) -> Scheduled:
    """The schedule of a workload without measurements: by time model, or heuristic.

    A workload with named sizes gets that of its typical instance, made to hold for all sizes.
    """
    return _choose_untuned(workload, target, threads, records.MemoryStore(), is_cold=is_cold)


def _choose_untuned(
    workload: Workload,
    target: base.Target,
    threads: int,
    store: records.RecordStore,
    *,
    is_cold: bool,
) -> Scheduled:
    """As `choose_untuned`; the typical instance may be on record."""
    if workload.sizes and isinstance(target, base.CpuTarget):
        return _choose_open(workload, target, threads, store, is_cold=is_cold)
    if workload.sizes:
        return _choose_open_for_groups(workload, target, threads, store)
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
            "trace": format_schedule(each.schedule),
        }
        for each in chosen
    ]
    return json.dumps(rows, indent=1)
