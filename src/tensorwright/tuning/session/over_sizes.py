"""Choose the schedules of an open network by running it at several sizes.

Each workload has a table: which trace runs for which sizes.  A trace that is fast in a program for
one size may be slow in the program for all sizes, and for the sizes around it.  So the untuned and
the tuned executable take turns, at the sizes for which the network was tuned and at sizes between
them, and each workload is timed while the network runs.  Where the tuned trace is slower, the
untuned one stays.  At the tuned sizes a third executable takes part, which was built for that size
alone: where it is faster, the kernel gets a program of its own for this size.

At the end the new executable and the untuned one take turns again.  Speed-ups are claimed from
these times only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from tensorwright import artifacts, graph
from tensorwright.ops import Array
from tensorwright.processes import never
from tensorwright.records import Setting
from tensorwright.runtime import Executable
from tensorwright.runtime.measuring import faster_half
from tensorwright.schedule import Schedule, format_schedule, format_trace, parse_trace, trace_at
from tensorwright.tuning.measuring.runner import Builder
from tensorwright.tuning.selection import Chooser, SizeTable
from tensorwright.tuning.session.result import (
    NetworkResult,
    Samples,
    compare_with_untuned,
    take_turns,
)

_MOST_LOSS = 0.03  # of the time of a workload: it may be measured so much slower than untuned
_LEAST_GAIN = 0.03  # of the time of a workload: what a program for one size must gain
_LEAST_SHARE = 0.005  # of the time of the network: a smaller workload gets no such program
_LEAST_LEFT = 0.5  # share of the time: the least that is left after the first building
_FIRST = 0.55  # share of the time after it: the end of the first turns
_EVEN = 0.5  # share of the time that is the same for all sizes; the rest goes by the time of a run
_LEAST_S = 0.5  # for the turns at one size: one disturbance must not end them
_LEAST_RUNS = 30  # the same, for a network that runs longer
_MOST_REPAIRS = 2


@dataclass(frozen=True, slots=True)
class SizedInstance:
    """The network for some sizes.

    is_between   whether it was not tuned for these sizes, which lie between others
    """

    point: graph.SizePoint
    parts: graph.Partition
    is_between: bool = False

    @property
    def label(self) -> str:
        """The sizes, for people."""
        return f"{self.point} (between)" if self.is_between else str(self.point)


@dataclass(frozen=True, slots=True)
class ChosenOverSizes:
    """A table for each workload, by key, and the comparison with untuned schedules at each size."""

    tables: Mapping[str, SizeTable]
    results: tuple[NetworkResult, ...]


def choose_over_sizes(
    parts: graph.Partition,
    instances: Sequence[SizedInstance],
    tables: Mapping[str, SizeTable],
    untuned: Mapping[str, Schedule],
    setting: Setting,
    limit_s: float,
    should_stop: Callable[[], bool] = never,
    builder: Builder | None = None,
) -> ChosenOverSizes | None:
    """Correct tables by measurement.

    parts      the open network
    instances  for the sizes at which it runs
    tables     of each workload, by key             untuned   their untuned schedules
    limit_s    about how long it may take; half of it is left after the first executables are built
    builder    builds kernels in other processes; they are built in this one if None

    None if `should_stop` became true.  Raises: as building and running kernels.
    """
    begun = time.monotonic()
    programs = NetworkPrograms(parts, setting, builder)
    before = programs.of(untuned)
    first = {key: table.without_exact() for key, table in tables.items()}
    after = programs.of_tables(first)
    started = time.monotonic()
    limit_s = max(_LEAST_LEFT * limit_s, limit_s - (started - begun))
    runs_s = [
        run_seconds(_at(before, each), graph.random_inputs(each.parts.graph)) for each in instances
    ]
    measured = dict(first)
    for instance, turns_s in zip(instances, _limits_s(runs_s, _FIRST * limit_s), strict=True):
        rivals = [_at(before, instance), _at(after, instance)]
        if not instance.is_between:
            rivals.append(programs.alone(instance, first))
        samples = take_turns(instance.parts, rivals, turns_s, should_stop)
        if should_stop():
            return None
        if samples is not None:
            measured = _corrected(parts, measured, untuned, instance, samples)
    left_s = max((1 - _FIRST) * limit_s, started + limit_s - time.monotonic())
    limits_s = _limits_s(runs_s, left_s)
    return _last_turns(programs, before, measured, untuned, instances, limits_s, should_stop)


def _last_turns(
    programs: NetworkPrograms,
    before: Executable,
    tables: Mapping[str, SizeTable],
    untuned: Mapping[str, Schedule],
    instances: Sequence[SizedInstance],
    limits_s: Sequence[float],
    should_stop: Callable[[], bool],
) -> ChosenOverSizes | None:
    """Compare with the untuned executable; at sizes where that is faster, its traces stay.

    before   the untuned executable      limits_s   about how long it may take at each instance
    """
    results: dict[str, NetworkResult] = {}
    for _ in range(_MOST_REPAIRS + 1):
        after = programs.of_tables(tables)
        for instance, limit_s in zip(instances, limits_s, strict=True):
            if instance.label in results and not results[instance.label].is_slower:
                continue
            texts = programs.texts(instance, untuned), programs.texts(instance, tables)
            pair = _at(before, instance), _at(after, instance)
            result = compare_with_untuned(instance.parts, *pair, texts, limit_s, should_stop)
            if should_stop():
                return None
            results[instance.label] = replace(result, at=instance.label)
        slower = [each for each in instances if results[each.label].is_slower]
        if not slower:
            break
        for instance in slower:
            tables = _untuned_at(tables, untuned, instance)
    return ChosenOverSizes(tables, tuple(results[each.label] for each in instances))


class NetworkPrograms:
    """Makes executables of a network; it builds each kernel once."""

    def __init__(
        self, parts: graph.Partition, setting: Setting, builder: Builder | None = None
    ) -> None:
        self._parts = parts
        self._setting = setting
        self._target = setting.target
        self._builder = builder
        self._untuned = Chooser(setting, is_cold=True)
        self._built: dict[tuple[str, str], artifacts.Kernel] = {}

    def of(self, schedules: Mapping[str, Schedule]) -> Executable:
        """For all sizes; `schedules` by the keys of workloads."""
        return self._assembled(self._parts, schedules)

    def of_texts(self, traces: Mapping[str, str]) -> Executable:
        """By the texts of traces."""
        return self.of({key: parse_trace(text) for key, text in traces.items()})

    def of_tables(self, tables: Mapping[str, SizeTable]) -> Executable:
        """For all sizes, by the tables of all workloads."""
        return self.of({key: table.schedule for key, table in tables.items()})

    def alone(self, instance: SizedInstance, tables: Mapping[str, SizeTable]) -> Executable:
        """For the sizes of an instance only, with the traces that were tuned there."""
        traces: dict[str, Schedule] = {}
        for key, workload in graph.bound_workloads(self._parts, instance.parts).items():
            trace = tables[key].tuned_at(instance.point.values)
            if trace is None:
                trace = self._untuned.unmeasured(workload).trace
            traces[workload.key] = trace
        return self._assembled(instance.parts, traces)

    def texts(
        self, instance: SizedInstance, schedules: Mapping[str, SizeTable | Schedule]
    ) -> dict[str, str]:
        """The traces that run at one size, by the keys of the workloads there."""
        texts: dict[str, str] = {}
        for key, workload in graph.bound_workloads(self._parts, instance.parts).items():
            schedule, values = schedules[key], instance.point.values
            if isinstance(schedule, SizeTable):
                trace = schedule.at(values)
            else:
                trace = trace_at(schedule, values)
            texts[workload.key] = format_trace(trace)
        return texts

    def _assembled(self, parts: graph.Partition, schedules: Mapping[str, Schedule]) -> Executable:
        texts = {key: format_schedule(schedule) for key, schedule in schedules.items()}
        missing = [
            each for each in parts.workloads if (each.key, texts[each.key]) not in self._built
        ]
        self._build_elsewhere(missing, schedules)
        for workload in missing:
            build = workload.key, texts[workload.key]
            self._built[build] = artifacts.build_cached(
                workload, schedules[workload.key], self._target
            )
        kernels = {each.key: self._built[each.key, texts[each.key]] for each in parts.workloads}
        return artifacts.assemble(parts, kernels, self._target, self._setting.threads)

    def _build_elsewhere(
        self, workloads: Sequence[graph.Workload], schedules: Mapping[str, Schedule]
    ) -> None:
        """Put kernels into the cache that other processes build at the same time."""
        if self._builder is None:
            return
        new = [
            each
            for each in workloads
            if artifacts.find_kernel(each, schedules[each.key], self._target) is None
        ]
        if len(new) < 2:
            return
        requests = [
            artifacts.build_request(each, format_schedule(schedules[each.key]), self._target)
            for each in new
        ]
        for workload, kernel in zip(new, self._builder.build(requests, never), strict=True):
            if isinstance(kernel, artifacts.Kernel):
                artifacts.keep_kernel(workload, schedules[workload.key], self._target, kernel)


def _at(program: Executable, instance: SizedInstance) -> Executable:
    """The program for the sizes of an instance; loops decide the others."""
    counted = program.plan.counted
    values = instance.point.values.items()
    return program.at(**{name: number for name, number in values if name not in counted})


def run_seconds(program: Executable, inputs: Mapping[str, Array]) -> float:
    """The seconds of a run."""
    run = program.bind(dict(inputs))
    run.run()
    start = time.monotonic()
    run.run()
    return time.monotonic() - start


def _limits_s(runs_s: Sequence[float], whole_s: float) -> list[float]:
    """The seconds for the turns at each size: one half of the time is spread evenly, the other goes
    by the time of a run.  None gets less than a few turns take.
    """
    return [
        max(
            _LEAST_S,
            _LEAST_RUNS * run_s,
            whole_s * (_EVEN / len(runs_s) + (1 - _EVEN) * run_s / math.fsum(runs_s)),
        )
        for run_s in runs_s
    ]


def _corrected(
    parts: graph.Partition,
    tables: Mapping[str, SizeTable],
    untuned: Mapping[str, Schedule],
    instance: SizedInstance,
    samples: Sequence[Samples],
) -> dict[str, SizeTable]:
    """Tables with what was measured at one size.

    samples   of the untuned executable, of the tuned one, and perhaps of one for this size alone
    """
    values = instance.point.values
    least_s = _LEAST_SHARE * median(faster_half(samples[0].whole))
    corrected = dict(tables)
    for key, workload in graph.bound_workloads(parts, instance.parts).items():
        if workload.key not in samples[0].workloads:
            continue
        times = [median(faster_half(each.workloads[workload.key])) for each in samples]
        before_s, after_s = times[:2]
        alone_s = min(times[2:], default=math.inf)
        if after_s > (1 + _MOST_LOSS) * before_s:
            corrected[key] = corrected[key].with_cell(values, untuned[key])
        best_s = min(before_s, after_s)
        if alone_s < (1 - _LEAST_GAIN) * best_s and best_s >= least_s:
            corrected[key] = corrected[key].with_exact(values)
    return corrected


def _untuned_at(
    tables: Mapping[str, SizeTable], untuned: Mapping[str, Schedule], instance: SizedInstance
) -> dict[str, SizeTable]:
    """Tables without tuned traces at one size."""
    values = instance.point.values
    return {
        key: table.with_cell(values, untuned[key]).without_exact(values)
        for key, table in tables.items()
    }
