"""Networks and tensor expressions at a list of points, for which they are tuned in one session.

At each point the named sizes are numbers; where all sizes are numbers, there is one point.  The
workloads at a point are tasks, with the same records as those of any network.  The weight of a task
is the number of its calls times the weight of the point.  The weight of a point is the inverse of
the expected time there, so a gain of one percent counts the same at all points.  Progress shows
times without weights.

At the end the schedules of a network are compared inside it.  With named sizes, tables say which
trace runs for which sizes (`tuning/selection/size_table.py`), and the executable for all sizes is
measured at the points and between them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeGuard, TypeVar

from tensorwright import graph, records
from tensorwright.base import UsageError, override
from tensorwright.ops import work
from tensorwright.pipeline import open_price
from tensorwright.records import Setting
from tensorwright.schedule import format_schedule, state_of
from tensorwright.tuning import Task, session
from tensorwright.tuning.measuring import PoolBuilder
from tensorwright.tuning.selection import Chooser, SizeTable

NOTHING_ELSE = "no schedule but the untuned ones was measured: it needs more time or trials"
_BUILD_S = 120.0  # a kernel with many variants takes longer to build than a candidate

Kind = TypeVar("Kind", graph.Partition, graph.Workload)


@dataclass(frozen=True, slots=True)
class SizedProgram(Generic[Kind]):
    """A network or a tensor expression with the points for which it is tuned.

    parts       of the network, or the workload of the expression
    points      one without numbers if all sizes are numbers
    instances   the same with the numbers of each point
    """

    name: str
    parts: Kind
    points: tuple[graph.SizePoint, ...]
    instances: tuple[Kind, ...]

    @property
    def is_open(self) -> bool:
        """Whether there are named sizes."""
        return bool(self.points[0].numbers)

    @property
    def at(self) -> tuple[str, ...]:
        """The points, for people; "" where all sizes are numbers."""
        return tuple(str(point) if point.numbers else "" for point in self.points)


SizedNetwork: TypeAlias = SizedProgram[graph.Partition]
AnyProgram: TypeAlias = SizedProgram[Any]


def is_network(program: AnyProgram) -> TypeGuard[SizedNetwork]:
    """Whether it is a network, and no tensor expression."""
    return isinstance(program.parts, graph.Partition)


def sized_program(
    parts: Kind, at: graph.SizesAt | None = None, name: str = ""
) -> SizedProgram[Kind]:
    """A program with the points that the caller names, or with a few that its bounds suggest.

    Raises:  UsageError as `points_of`, and for points of a program whose sizes are numbers.
    """
    if isinstance(parts, graph.Partition):
        counted, inputs = graph.counted_sizes(parts.graph), tuple(parts.graph.input_types.values())
        sizes, usual_name = parts.graph.sizes, parts.graph.name
    else:
        counted, inputs, sizes, usual_name = (), parts.inputs, parts.sizes, parts.name
    if sizes:
        points = graph.points_of(sizes, at, counted, inputs)
        instances = tuple(_bound(parts, point) for point in points)
        return SizedProgram(name or usual_name, parts, points, instances)
    if at is not None:
        raise UsageError(
            stage="tune",
            where="argument at",
            reason="all shapes are numbers: there are no open sizes",
            remedy="leave it out",
        )
    return SizedProgram(name or usual_name, parts, (graph.SizePoint(()),), (parts,))


def _bound(parts: Kind, point: graph.SizePoint) -> Kind:
    if isinstance(parts, graph.Partition):
        return graph.bind_partition(parts, point.values)
    return graph.bind_workload(parts, point.values)


def workloads_of(program: AnyProgram) -> list[list[tuple[graph.Workload, int]]]:
    """For each point, its workloads and how often each is called."""
    if not is_network(program):
        return [[(instance, 1)] for instance in program.instances]
    counts = [program.parts.count(workload) for workload in program.parts.workloads]
    return [
        list(zip(graph.bound_workloads(program.parts, bound).values(), counts, strict=True))
        for bound in program.instances
    ]


def tasks_of(
    program: AnyProgram, setting: Setting, *, is_weighted: bool = True
) -> tuple[Task, ...]:
    """The tasks of a program: its workloads at all points; the session joins equal ones.

    is_weighted   whether points have weights; False if the user gives an objective
    """
    calls = workloads_of(program)
    if not program.is_open:
        return tuple(Task(workload, count, program.name) for workload, count in calls[0])
    weights = _weights(program.points, calls, setting, is_weighted=is_weighted)
    alike = [tuple(workload.key for workload, _ in own) for own in zip(*calls, strict=True)]
    tasks = []
    for point, weight, own in zip(program.points, weights, calls, strict=True):
        name = f"{program.name} at {point}"
        tasks += [
            Task(workload, count * weight, name, alike=keys, calls=((name, count),))
            for (workload, count), keys in zip(own, alike, strict=True)
        ]
    return tuple(tasks)


def _weights(
    points: Sequence[graph.SizePoint],
    workloads: Sequence[Sequence[tuple[graph.Workload, int]]],
    setting: Setting,
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


def note_points(program: AnyProgram, store: records.RecordStore) -> None:
    """Save in the store for which sizes the workloads are tuned, if there are named sizes."""
    if program.is_open:
        workloads = program.parts.workloads if is_network(program) else (program.parts,)
        keys = [workload.key for workload in workloads if workload.sizes]
        points = [point.values for point in program.points]
        name = program.parts.graph.name if is_network(program) else program.parts.name
        records.save_tuned_sizes(store, keys, points, name)


def choose_together(
    network: SizedNetwork, setting: Setting, store: records.RecordStore, limit_s: float
) -> tuple[session.NetworkResult, ...]:
    """Compare the best schedules of all workloads inside a network, and keep the choice.

    limit_s   about how long it may take

    Where no schedule was measured, nothing is compared, and nothing is kept.
    Returns:  a result for each point.
    """
    if network.is_open:
        return _choose_for_sizes(network, setting, store, limit_s)
    result = _choose_for_one(network.parts, setting, store, limit_s)
    return (replace(result, name=network.name),)


def _choose_for_one(
    parts: graph.Partition, setting: Setting, store: records.RecordStore, limit_s: float
) -> session.NetworkResult:
    """The choice for a network whose sizes are numbers.

    Another choice replaces the untuned schedules and the earlier choice only if the whole network
    is faster with it.
    """
    last = records.load_last_choice(store, parts, setting)
    untuned_by = Chooser(setting, is_cold=True)
    options: dict[str, tuple[str, ...]] = {}
    untuned: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for workload in parts.workloads:
        key = workload.key
        default = untuned_by.unmeasured(workload).trace
        untuned[key] = format_schedule(default)
        options[key] = session.schedules_worth_trying(store, workload, setting, untuned[key])
        before = format_schedule(last.get(key, default))
        chosen[key] = before if session.is_replayable(state_of(workload), before) else untuned[key]
    if all(len(traces) == 1 for traces in options.values()):
        return session.NetworkResult(parts.graph.name, reason=NOTHING_ELSE)
    standing = (untuned,) if chosen == untuned else (chosen, untuned)
    with override(dump=""):  # candidates are not dumped
        comparison = session.choose_in_network(parts, options, setting, limit_s, standing=standing)
    if comparison is None:
        return session.NetworkResult(parts.graph.name, reason="stopped")
    records.save_choice(store, parts, setting, comparison.choice)
    return comparison.result


def _choose_for_sizes(
    network: SizedNetwork, setting: Setting, store: records.RecordStore, limit_s: float
) -> tuple[session.NetworkResult, ...]:
    """The size tables of an open network, corrected by measurement."""
    started = time.monotonic()
    parts, chooser = network.parts, Chooser(setting, store, is_cold=True)
    untuned_by = Chooser(setting, is_cold=True)
    untuned = {each.key: untuned_by.unmeasured(each).schedule for each in parts.workloads}
    tables: dict[str, SizeTable] = {}
    has_measured = False
    for each in parts.workloads:
        table = chooser.size_table(each, has_exact=False)
        if table is None:
            alone = chooser.choose(each)
            tables[each.key] = SizeTable.of_one(alone.schedule)
            has_measured |= alone.is_tuned
        else:
            tables[each.key], has_measured = table, True
    if not has_measured:
        return not_compared(network, NOTHING_ELSE)
    sized = [
        session.SizedInstance(point, bound)
        for point, bound in zip(network.points, network.instances, strict=True)
    ]
    sized += [
        session.SizedInstance(point, graph.bind_partition(parts, point.values), is_between=True)
        for point in graph.between(parts.graph.sizes, network.points)
    ]
    limit_s = max(limit_s / 2, limit_s - (time.monotonic() - started))
    with override(dump=""), PoolBuilder(limit_s=_BUILD_S) as builder:  # candidates are not dumped
        chosen = session.choose_over_sizes(
            parts, sized, tables, untuned, setting, limit_s, builder=builder
        )
    if chosen is None:
        return tuple(
            session.NetworkResult(network.name, reason="stopped", at=each.label) for each in sized
        )
    schedules = {key: format_schedule(table.schedule) for key, table in chosen.tables.items()}
    results = tuple(replace(each, name=network.name) for each in chosen.results)
    times = [each.whole for each in results if each.whole is not None]
    choice = records.NetworkChoice(
        tuple(sorted(schedules.items())),
        math.fsum(each.untuned_s for each in times),
        math.fsum(each.tuned_s for each in times),
    )
    records.save_choice(store, parts, setting, choice)
    return results


def not_compared(network: SizedNetwork, reason: str) -> tuple[session.NetworkResult, ...]:
    """The results of a network that is not compared, one for each point."""
    return tuple(session.NetworkResult(network.name, reason=reason, at=each) for each in network.at)
