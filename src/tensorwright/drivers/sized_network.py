"""Networks with named sizes, tuned for several values of them within one session.

At each point the sizes of a network are numbers.  Its workloads are tasks like those of any
network, with the same records.  The weight of a task is the number of its calls times the weight of
the point.  The weight of a point is the inverse of the network's expected time there, so a gain of
one percent counts the same at all points.  Progress shows times without weights.

At the end, tables say which trace runs for which sizes (`tuning/selection/size_table.py`), and the
executable for all sizes is measured at the points and between them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tensorwright import graph
from tensorwright.base import cpu_target, override
from tensorwright.ops import work
from tensorwright.pipeline import open_price
from tensorwright.records import (
    NetworkChoice,
    RecordStore,
    save_choice,
    save_tuned_sizes,
)
from tensorwright.schedule import format_schedule
from tensorwright.tuning import Task
from tensorwright.tuning.measuring import PoolBuilder
from tensorwright.tuning.selection import SizeTable, choose, choose_untuned, size_table_of
from tensorwright.tuning.session import (
    NetworkResult,
    SessionSetting,
    SizedInstance,
    choose_over_sizes,
)

NOTHING_ELSE = "no schedule but the untuned ones was measured: it needs more time or trials"
_BUILD_S = 120.0  # a kernel with many variants takes longer to build than a candidate


@dataclass(frozen=True, slots=True)
class SizedNetwork:
    """A network with named sizes and the points for which it is tuned.

    parts       the open network
    instances   the same steps with the numbers of each point
    """

    name: str
    parts: graph.Partition
    points: tuple[graph.SizePoint, ...]
    instances: tuple[graph.Partition, ...]


@dataclass(frozen=True, slots=True)
class SizedProgram:
    """A tensor expression with named sizes and the points for which it is tuned."""

    workload: graph.Workload
    points: tuple[graph.SizePoint, ...]


def sized_network(parts: graph.Partition, at: graph.SizesAt | None, name: str = "") -> SizedNetwork:
    """An open network with the points that the caller names, or with a few that its bounds suggest.

    Raises:  UsageError as `points_of`.
    """
    points = graph.points_of(
        parts.graph.sizes, at, graph.counted_sizes(parts.graph), parts.graph.input_types.values()
    )
    instances = tuple(graph.bind_partition(parts, point.values) for point in points)
    return SizedNetwork(name or parts.graph.name, parts, points, instances)


def tasks_of_sizes(
    network: SizedNetwork, setting: SessionSetting, *, is_weighted: bool = True
) -> tuple[Task, ...]:
    """The tasks of a network: its workloads at all points; the session joins equal ones.

    is_weighted   whether points have weights; False if the user gives an objective
    """
    workloads = [
        list(graph.bound_workloads(network.parts, bound).values()) for bound in network.instances
    ]
    counts = [network.parts.count(workload) for workload in network.parts.workloads]
    calls = [list(zip(own, counts, strict=True)) for own in workloads]
    weights = _weights(network.points, calls, setting, is_weighted=is_weighted)
    alike = [tuple(each.key for each in own) for own in zip(*workloads, strict=True)]
    return tuple(
        _task(workload, count, weight, f"{network.name} at {point}", keys)
        for point, weight, own in zip(network.points, weights, calls, strict=True)
        for (workload, count), keys in zip(own, alike, strict=True)
    )


def _task(
    workload: graph.Workload, count: int, weight: float, network: str, alike: tuple[str, ...]
) -> Task:
    """The task of a workload that one run of the network at a point calls `count` times."""
    return Task(workload, count * weight, network, alike=alike, calls=((network, count),))


def sized_program(workload: graph.Workload, at: graph.SizesAt | None) -> SizedProgram:
    """As `sized_network`, for a tensor expression."""
    return SizedProgram(workload, graph.points_of(workload.sizes, at, inputs=workload.inputs))


def tasks_of_sized_program(
    program: SizedProgram, name: str, setting: SessionSetting, *, is_weighted: bool = True
) -> tuple[Task, ...]:
    """The tasks of an expression, one for each point; `is_weighted` as of `tasks_of_sizes`."""
    instances = [graph.bind_workload(program.workload, point.values) for point in program.points]
    calls = [[(each, 1)] for each in instances]
    weights = _weights(program.points, calls, setting, is_weighted=is_weighted)
    alike = tuple(instance.key for instance in instances)
    return tuple(
        _task(instance, 1, weight, f"{name} at {point}", alike)
        for instance, weight, point in zip(instances, weights, program.points, strict=True)
    )


def _weights(
    points: Sequence[graph.SizePoint],
    workloads: Sequence[Sequence[tuple[graph.Workload, int]]],
    setting: SessionSetting,
    *,
    is_weighted: bool,
) -> tuple[float, ...]:
    """The weight of each point: how often the caller named it, divided by the expected time.

    workloads   for each point, its workloads and how often each is called
    Returns:    weights, the least of which is 1 if every point was named once.
    """
    if not is_weighted:
        return (1.0,) * len(points)
    price = open_price(setting.target, setting.threads) or _operations
    costs = [
        math.fsum(count * (price(workload) or 0.0) for workload, count in own) or 1.0
        for own in workloads
    ]
    most = max(costs)
    return tuple(point.count * most / cost for point, cost in zip(points, costs, strict=True))


def _operations(workload: graph.Workload) -> float:
    """The operations of a workload, which stand for its price if there is no time model."""
    return float(work(workload.outputs))


def note_points(program: SizedNetwork | SizedProgram, store: RecordStore) -> None:
    """Save in the store for which sizes the workloads are tuned."""
    points = [point.values for point in program.points]
    if isinstance(program, SizedProgram):
        save_tuned_sizes(store, [program.workload.key], points, program.workload.name)
        return
    keys = [workload.key for workload in program.parts.workloads if workload.sizes]
    save_tuned_sizes(store, keys, points, program.parts.graph.name)


def choose_for_sizes(
    network: SizedNetwork, setting: SessionSetting, store: RecordStore, limit_s: float
) -> tuple[NetworkResult, ...]:
    """Correct the size tables of an open network by measurement, and keep the choice.

    Where no schedule was measured, nothing is compared, and nothing is kept.

    limit_s   about how long it may take
    """
    started = time.monotonic()
    parts, target, threads = network.parts, cpu_target(setting.target), setting.threads
    untuned = {
        each.key: choose_untuned(each, target, threads, is_cold=True).schedule
        for each in parts.workloads
    }
    tables: dict[str, SizeTable] = {}
    has_measured = False
    for each in parts.workloads:
        table = size_table_of(each, target, threads, store, is_cold=True, has_exact=False)
        if table is None:
            alone = choose(each, target, threads, store, is_cold=True)
            tables[each.key] = SizeTable.of_one(alone.schedule)
            has_measured |= alone.is_tuned
        else:
            tables[each.key], has_measured = table, True
    if not has_measured:
        return tuple(
            NetworkResult(network.name, reason=NOTHING_ELSE, at=str(each))
            for each in network.points
        )
    sized = [
        SizedInstance(point, bound)
        for point, bound in zip(network.points, network.instances, strict=True)
    ]
    sized += [
        SizedInstance(point, graph.bind_partition(parts, point.values), is_between=True)
        for point in graph.between(parts.graph.sizes, network.points)
    ]
    limit_s = max(limit_s / 2, limit_s - (time.monotonic() - started))
    with override(dump=""), PoolBuilder(limit_s=_BUILD_S) as builder:  # candidates are not dumped
        chosen = choose_over_sizes(
            parts, sized, tables, untuned, target, threads, limit_s, builder=builder
        )
    if chosen is None:
        return tuple(NetworkResult(network.name, reason="stopped", at=each.label) for each in sized)
    schedules = {key: format_schedule(table.schedule) for key, table in chosen.tables.items()}
    results = tuple(replace(each, name=network.name) for each in chosen.results)
    times = [each.whole for each in results if each.whole is not None]
    choice = NetworkChoice(
        tuple(sorted(schedules.items())),
        math.fsum(each.untuned_s for each in times),
        math.fsum(each.tuned_s for each in times),
    )
    save_choice(store, parts, target, setting.hardware, threads, choice)
    return results
