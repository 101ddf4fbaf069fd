"""Which schedule a workload gets: a measured one, a predicted one, or the heuristic one.

The table of a workload with named sizes that was tuned for some of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import Self

from tensorwright import base, records
from tensorwright.artifacts import backend_of, emit_source, loop_program
from tensorwright.graph import Partition, Workload, bind_workload, with_own_sizes
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


def workload_to_build(workload: Workload, target: base.Target) -> Workload:
    """The workload for which a kernel is built: on a processor one with sizes of its own."""
    return with_own_sizes(workload).workload if isinstance(target, base.CpuTarget) else workload


@dataclass(frozen=True, slots=True)
class Chooser:
    """Chooses schedules for one setting.

    store     the measurements
    is_cold   whether workloads run in a network: constants come from memory
    """

    setting: records.Setting
    store: records.RecordStore = field(default_factory=records.MemoryStore)
    is_cold: bool = False

    def of_network(
        self, parts: Partition, also: Sequence[Workload] = (), *, has_own_sizes: bool = False
    ) -> list[Scheduled]:
        """A schedule for each workload of a network: its choice on record, or by `choose`.

        also            workloads that another form of the network has
        has_own_sizes   whether workloads that are not on record are those of `with_own_sizes`, so
                        that several have one schedule
        """
        target = self.setting.target
        together = records.load_choice(self.store, parts, self.setting)
        chosen: list[Scheduled] = []
        shared: dict[str, Scheduled] = {}
        with base.without_collection():
            for workload in (*parts.workloads, *also):
                with base.timed_stage(f"schedule of kernel {workload.key}, {workload.name}"):
                    made = self._measured(workload, together.get(workload.key))
                    own = workload_to_build(workload, target) if has_own_sizes else workload
                    made = made or shared.get(own.key) or self.unmeasured(own)
                    shared[made.workload.key] = made
                    chosen.append(made)
        return chosen

    def choose(self, workload: Workload, together: Schedule | None = None) -> Scheduled:
        """The best recorded schedule of a workload, or one without measurements.

        together   the schedule that was best inside the network; None if none were compared there
        """
        return self._measured(workload, together) or self.unmeasured(workload)

    def _measured(self, workload: Workload, together: Schedule | None) -> Scheduled | None:
        """The best recorded schedule of a workload; None if none is on record."""
        algorithms = base.knobs.WINOGRAD.get()
        if together is not None and (algorithms or not uses_algorithm(steps_of(together))):
            return Scheduled.of(workload, together, Source.NETWORK)
        if workload.sizes:
            if not isinstance(self.setting.target, base.CpuTarget):
                return None
            table = self.size_table(workload)
            return None if table is None else Scheduled.of(workload, table.schedule, Source.RECORD)
        best = records.best_record(self.store, workload, self.setting, algorithms=algorithms)
        return None if best is None else Scheduled(workload, best[1], Source.RECORD)

    def size_table(self, workload: Workload, *, has_exact: bool = True) -> SizeTable | None:
        """The best schedules on record for the sizes for which a workload was tuned, and for the
        sizes between them what the time model prefers; None if none is on record.

        has_exact   whether it is predicted which of them get a program for their sizes alone
        """
        untuned = replace(self, store=records.MemoryStore())
        tuned = self._tuned_traces(workload, untuned)
        if not any(each.is_measured for each in tuned):
            return None
        usual = untuned.unmeasured(workload).schedule
        prices = self._prices(workload)
        return filled_table(workload.sizes, tuned, usual, prices, has_exact=has_exact)

    def _tuned_traces(self, workload: Workload, untuned: Chooser) -> tuple[TunedTrace, ...]:
        """The best trace of each tuned point; points that differ in other sizes only are one."""
        store, target = self.store, base.cpu_target(self.setting.target)
        names = sorted(size.name for size in workload.sizes)
        algorithms = base.knobs.WINOGRAD.get()
        typical = workload.typical_sizes
        tuned: dict[tuple[int, ...], TunedTrace] = {}
        texts: dict[tuple[int, ...], set[str]] = {}
        for point in records.load_tuned_sizes(store, workload.key):
            values = {name: point.get(name, typical[name]) for name in names}
            numbers = tuple(values[name] for name in names)
            if numbers in tuned:
                continue
            instance = bind_workload(workload, values)
            best = records.best_record(store, instance, self.setting, algorithms=algorithms)
            if best is None:
                trace = trace_at(untuned.unmeasured(instance).schedule, values)
            else:
                trace = best[1]
            opens = opened_trace(workload, trace, target) is not None
            top = store.top(_TOP, **self.setting.filters(instance.key))
            limit_s = (1 + _SAME) * top[0].median_s if top else 0.0
            tuned[numbers] = TunedTrace(values, trace, opens, best is not None)
            texts[numbers] = {each.trace for each in top if each.median_s <= limit_s}
        others = {each.trace: format_trace(each.trace) for each in tuned.values() if each.opens}
        for numbers, own in tuned.items():  # traces of other points may be about as fast here
            near = [trace for trace, text in others.items() if text in texts[numbers]]
            equals = tuple(trace for trace in near if trace != own.trace)
            tuned[numbers] = replace(own, equals=equals)
        return tuple(tuned.values())

    def unmeasured(self, workload: Workload) -> Scheduled:
        """The schedule of a workload without measurements: by time model, or heuristic.

        A workload with named sizes gets that of its typical instance, made to hold for all sizes;
        the instance may be on record.
        """
        target = self.setting.target
        if workload.sizes and isinstance(target, base.CpuTarget):
            return self._of_open(workload, target)
        if workload.sizes:
            return self._of_open_for_groups(workload)
        predictor = self._predictor
        if predictor is None:
            return Scheduled(workload, default_trace(state_of(workload), target), Source.RULE)
        chosen = predictor.best(workload)
        return Scheduled(workload, chosen.trace, Source.RULE if chosen.is_by_rule else Source.MODEL)

    @property
    def _predictor(self) -> Predictor | None:
        return open_predictor(self.setting.target, self.setting.threads, is_cold=self.is_cold)

    def _prices(self, workload: Workload, opened: OpenTrace | None = None) -> ModelPrices:
        target = base.cpu_target(self.setting.target)
        return ModelPrices(workload, target, self._predictor, opened)

    def _of_open(self, workload: Workload, target: base.CpuTarget) -> Scheduled:
        """The schedule of the typical instance, and perhaps another for small sizes.

        One without other algorithms, one by rule, or one without steps if it does not hold for all.
        """
        typical = bind_workload(workload, workload.typical_sizes)
        for algorithms in dict.fromkeys((base.knobs.WINOGRAD.get(), False)):
            with base.override(winograd=algorithms):
                chosen = self.choose(typical)
                opened = opened_trace(workload, chosen.trace, target)
                if opened is None:
                    continue
                small = None
                if not chosen.is_tuned:
                    small = trace_for_small_sizes(
                        workload,
                        opened,
                        self.setting.threads,
                        lambda each: self.choose(each).trace,
                        self._prices(workload, opened),
                    )
                if small is None or not small.ranges:
                    trace = chosen.trace if small is None else small.trace
                    return Scheduled(workload, trace, chosen.source)
                return Scheduled(workload, chosen.trace, chosen.source, (small,))
        for sketch in heuristic_sketches(state_of(typical), target):
            trace = sketch.bound(sketch.defaults)
            if opened_trace(workload, trace, target) is not None:
                return Scheduled(workload, trace, Source.RULE)
        return Scheduled(workload, (), Source.RULE)

    def _of_open_for_groups(self, workload: Workload) -> Scheduled:
        """The schedule of the typical instance, made to hold for all sizes, or another by rule.

        Whole tiles become guarded ones, and the grid is computed at the call.  This fails, for
        example, if a block would share memory of an open size.
        """
        target = self.setting.target
        typical = bind_workload(workload, workload.typical_sizes)
        chosen = self.choose(typical)
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
