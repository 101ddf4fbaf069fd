"""Networks and expressions of any size, tuned for several sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.unit.graph.open_networks import images_of_a_batch, n, perceptron
from tests.unit.graph.small_networks import Maker
from tests.unit.test_open_executables import dense

import tensorwright
from tensorwright.artifacts import BuildRequest, build
from tensorwright.base import UsageError, cpu_target, override
from tensorwright.drivers.sized_network import (
    SizedNetwork,
    choose_together,
    note_points,
    sized_program,
    tasks_of,
)
from tensorwright.drivers.tune import as_in_network, search_networks, setting_of
from tensorwright.graph import (
    Graph,
    Partition,
    Workload,
    bind_sizes,
    bind_workload,
    bound_workloads,
    interpret,
    random_inputs,
)
from tensorwright.pipeline import cut, finish
from tensorwright.records import (
    MemoryStore,
    Record,
    RecordStore,
    Status,
    load_choice,
    load_tuned_sizes,
)
from tensorwright.schedule import OpenSchedule, Trace, format_trace, state_of
from tensorwright.tuning import Task
from tensorwright.tuning.measuring.runner import BuildResult
from tensorwright.tuning.selection import Chooser, SizeTable, Source
from tensorwright.tuning.session import (
    Comparison,
    NetworkResult,
    Options,
    Phase,
    Progress,
    SizedInstance,
    choose_over_sizes,
    over_sizes,
)
from tensorwright.tuning.session.result import Samples
from tensorwright.tuning.session.session import merge
from tensorwright.tuning.space import default_trace
from tensorwright.tuning.task_scheduling import TaskState

TARGET = cpu_target("native")
SETTING = setting_of(TARGET, 1)


@pytest.fixture(scope="module")
def parts() -> Partition:
    return cut(perceptron(), TARGET, 1)


@pytest.fixture
def network(parts: Partition) -> SizedNetwork:
    return sized_program(parts, {"n": (1, 16)}, "net")


def check_all_sizes(graph: Graph, run: Callable[[Mapping[str, np.ndarray]], Mapping]) -> None:
    for number in (1, 2, 4, 7, 15, 16):
        inputs = random_inputs(bind_sizes(graph, {"n": number}), number)
        expected = interpret(graph, inputs)
        for name, array in run(inputs).items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-3, atol=1e-4)


def keep(store: RecordStore, workload: Workload, trace: Trace, time_s: float) -> None:
    """Let the store have a measurement of a workload."""
    filters = SETTING.filters(workload.key)
    times = (time_s,)
    store.append([Record(**filters, trace=format_trace(trace), times_s=times, status=Status.OK)])


def test_the_workloads_at_each_point_are_tasks_that_count_alike(network: SizedNetwork) -> None:
    tasks = tasks_of(network, SETTING)
    assert {task.network for task in tasks} == {"net at n=1", "net at n=16"}
    one, many = (
        [task for task in tasks if task.network == f"net at n={number}"] for number in (1, 16)
    )
    assert min(task.weight for task in many) == pytest.approx(1.0)
    assert one[0].weight > many[0].weight
    assert [task.alike for task in one] == [task.alike for task in many]
    assert one[0].alike == (one[0].workload.key, many[0].workload.key)
    assert tasks_of(network, SETTING) == tasks


def test_an_objective_of_ones_own_gets_plain_numbers_of_calls(network: SizedNetwork) -> None:
    tasks = tasks_of(network, SETTING, is_weighted=False)
    counts = [network.parts.count(each) for each in network.parts.workloads]
    assert [task.weight for task in tasks] == counts * 2


def test_a_point_that_is_named_twice_counts_twice(parts: Partition) -> None:
    once = tasks_of(sized_program(parts, {"n": (1, 16)}), SETTING)
    twice = tasks_of(sized_program(parts, {"n": (1, 1, 16)}), SETTING)
    assert len(once) == len(twice)
    assert twice[0].weight == pytest.approx(2 * once[0].weight)
    assert twice[0].call_count == once[0].call_count


def test_progress_shows_the_time_of_a_run_at_each_size(network: SizedNetwork) -> None:
    tasks = merge(tasks_of(network, SETTING))
    states = tuple(TaskState(task, 1, 2e-3, 1e-3) for task in tasks)
    calls = sum(network.parts.count(each) for each in network.parts.workloads)
    progress = Progress(Phase.SEARCH, 1, 1, 0.0, 1, 0.0, None, None, states)
    assert dict(progress.latencies_s) == pytest.approx(
        {"net at n=1": calls * 1e-3, "net at n=16": calls * 1e-3}
    )
    assert progress.default_s == pytest.approx(2 * calls * 2e-3)


def test_tasks_of_equal_workloads_know_all_that_are_alike() -> None:
    workload = dense()
    one, other = Task(workload, 1.0, "a", alike=("x", "y")), Task(workload, 2.0, "b", alike=("y",))
    (merged,) = merge((one, other))
    assert (merged.alike, merged.weight) == (("x", "y"), 3.0)


def test_a_network_tuned_for_two_sizes_is_right_for_all(network: SizedNetwork) -> None:
    store, parts = MemoryStore(), network.parts
    how = Options(trials=4, seed=0)
    for bound in network.instances:  # trials may be dropped
        for workload in bound.workloads:
            keep(store, workload, (), 1.0)
    result = search_networks([network], SETTING, store, how, as_in_network(network))
    assert result.trials == 4
    assert [each.at for each in result.networks] == ["n=1", "n=16", "n=4 (between)"]
    assert {each.name for each in result.networks} == {"net"}
    assert all(each.whole is not None for each in result.networks)
    for workload in parts.workloads:
        assert load_tuned_sizes(store, workload.key) == ({"n": 1}, {"n": 16})
    chosen = load_choice(store, parts, SETTING)
    assert set(chosen) == {workload.key for workload in parts.workloads}
    executable = finish(parts, TARGET, 1, store)
    check_all_sizes(parts.graph, executable.run)


def test_where_nothing_was_measured_nothing_is_compared_and_kept(network: SizedNetwork) -> None:
    store = MemoryStore()
    note_points(network, store)
    results = choose_together(network, SETTING, store, 1.0)
    assert [each.at for each in results] == [str(each) for each in network.points]
    assert all("no schedule but the untuned ones" in each.reason for each in results)
    assert not load_choice(store, network.parts, SETTING)


def test_records_at_points_are_used_before_the_network_was_compared(
    network: SizedNetwork,
) -> None:
    store, parts = MemoryStore(), network.parts
    workload = parts.workloads[0]
    assert Chooser(SETTING, store).choose(workload).source not in (
        Source.RECORD,
        Source.NETWORK,
    )
    note_points(network, store)
    one, many = (bound_workloads(parts, bound)[workload.key] for bound in network.instances)
    traces = [default_trace(state_of(each), TARGET) for each in (one, many)]
    keep(store, one, traces[0], 1e-6)
    keep(store, many, traces[1], 1e-5)
    chosen = Chooser(SETTING, store).choose(workload)
    assert chosen.source is Source.RECORD
    schedule = chosen.schedule
    assert isinstance(schedule, OpenSchedule)
    assert [schedule.at({"n": number}) for number in (1, 16)] == traces
    check_all_sizes(parts.graph, finish(parts, TARGET, 1, store).run)


def test_a_record_of_the_network_of_numbers_is_one_of_the_point() -> None:
    m = Maker("layer")
    layer = m.finish(m.add("relu", m.add("matmul", m.builder.input("x", (n, 16)), m.weight(16, 8))))
    network = sized_program(cut(layer, TARGET, 1), {"n": (1, 16)})
    alone = cut(bind_sizes(layer, {"n": 16}), TARGET, 1)
    keys = [workload.key for workload in alone.workloads]
    assert keys == [workload.key for workload in network.instances[1].workloads]


SLOW: Trace = ()


def tables_of(parts: Partition, untuned: Mapping[str, Trace]) -> dict[str, SizeTable]:
    """Tables whose tuned trace at n=1 does nothing."""
    cells = {key: (((1,), SLOW), ((16,), trace)) for key, trace in untuned.items()}
    lines = (("n", (1, 16)),)
    return {key: SizeTable(lines, each, (((1,), SLOW),)) for key, each in cells.items()}


def corrected(
    parts: Partition,
    network: SizedNetwork,
    monkeypatch: pytest.MonkeyPatch,
    seconds: Sequence[float],
    results: Sequence[NetworkResult] = (),
) -> dict[str, SizeTable]:
    """Tables after made-up measurements.

    seconds   of each workload in the untuned executable, in the tuned one, and in that for n=1
    results   of the last comparisons, in order
    """

    def take_turns(bound: Partition, programs: Sequence[object], *_: object) -> list[Samples]:
        keys = [workload.key for workload in bound.workloads]
        return [
            Samples([time_s * len(keys)] * 4, {key: [time_s] * 4 for key in keys})
            for _, time_s in zip(programs, seconds, strict=False)
        ]

    told = list(results)

    def compare(bound: Partition, *_: object) -> NetworkResult:
        return told.pop(0) if told else NetworkResult("", Comparison.of_same((1.0,)))

    monkeypatch.setattr(over_sizes, "take_turns", take_turns)
    monkeypatch.setattr(over_sizes, "compare_with_untuned", compare)
    untuned = {each.key: Chooser(SETTING).unmeasured(each).trace for each in parts.workloads}
    point, bound = network.points[0], network.instances[0]
    chosen = choose_over_sizes(
        parts, [SizedInstance(point, bound)], tables_of(parts, untuned), untuned, SETTING, 1.0
    )
    assert chosen is not None
    return dict(chosen.tables)


def test_a_trace_that_is_slower_in_the_network_gives_way_to_the_untuned_one(
    network: SizedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = network.parts
    for table in corrected(parts, network, monkeypatch, (1.0, 1.1, 1.0)).values():
        assert table.exact == ()
        assert table.at({"n": 1}) != SLOW
    for table in corrected(parts, network, monkeypatch, (1.0, 1.02, 1.0)).values():
        assert table.at({"n": 1}) == SLOW


def test_what_is_faster_for_one_size_alone_gets_a_program_for_it(
    network: SizedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in corrected(network.parts, network, monkeypatch, (1.0, 1.1, 0.5)).values():
        assert table.exact == ((1,),)
        assert table.at({"n": 1}) == SLOW
        assert table.at({"n": 2}) != SLOW


def test_a_network_that_is_slower_at_a_size_is_untuned_there(
    network: SizedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    slower = NetworkResult("", Comparison(1.0, 2.0, 0.4, 0.6))
    tables = corrected(network.parts, network, monkeypatch, (1.0, 0.9, 0.5), [slower])
    for table in tables.values():
        assert table.exact == ()
        assert table.at({"n": 1}) != SLOW


class CountingBuilder:
    """Builds here, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def build(
        self, requests: Sequence[BuildRequest], *_: object, **__: object
    ) -> list[BuildResult]:
        self.count += len(requests)
        return [build(request) for request in requests]

    def start(self) -> None:
        """Nothing to start."""

    def close(self) -> None:
        """Nothing to end."""


def test_kernels_are_built_together_and_each_once(tmp_path: Path) -> None:
    with override(home=tmp_path):
        graph = images_of_a_batch()
        network = sized_program(cut(graph, TARGET, 1), {"n": 1})
        parts, builder = network.parts, CountingBuilder()
        untuned = {each.key: Chooser(SETTING).unmeasured(each).trace for each in parts.workloads}
        tables = {key: SizeTable.of_one(trace) for key, trace in untuned.items()}
        instance = SizedInstance(network.points[0], network.instances[0], is_between=True)
        chosen = choose_over_sizes(
            parts, [instance], tables, untuned, SETTING, 0.1, builder=builder
        )
    assert chosen is not None
    assert len(parts.workloads) > 1
    assert builder.count == len(parts.workloads)


def test_an_expression_of_any_size_is_tuned_for_several(tmp_path: Path) -> None:
    workload = dense()
    program = sized_program(workload, {"n": (1, 8)}, "own")
    tasks = tasks_of(program, SETTING)
    assert [task.network for task in tasks] == ["own at n=1", "own at n=8"]
    generator = np.random.default_rng(0)
    constants = {
        name: generator.standard_normal(shape).astype(np.float32)
        for name, shape in (("w", (24, 48)), ("b", (48,)))
    }
    executable = tensorwright.tune(
        workload.outputs,
        constants=constants,
        at={"n": (1, 8)},
        trials=4,
        threads=1,
        records=tmp_path / "r.sqlite",
    )
    for rows in (1, 2, 8, 20):
        x = generator.standard_normal((rows, 24)).astype(np.float32)
        expected = x @ constants["w"] + constants["b"]
        np.testing.assert_allclose(executable(x), expected, rtol=1e-3, atol=1e-4)


def test_numbers_have_no_sizes_to_tune_for() -> None:
    static = bind_sizes(perceptron(), {"n": 4})
    with pytest.raises(UsageError, match="all shapes are numbers"):
        tensorwright.tune(static, at={"n": 1}, trials=1)
    bound = bind_workload(dense(), {"n": 4})
    with pytest.raises(UsageError, match="all shapes are numbers"):
        tensorwright.tune(bound.outputs, constants=None, at={"n": 1}, trials=1)
