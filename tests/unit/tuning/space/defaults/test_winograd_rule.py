"""The Winograd rule: its schedules are right, in every layout that it takes, and are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.draws import random_source, some_of
from tests.targets import AVX2, AVX512, native_target
from tests.unit.graph.small_networks import Maker
from tests.unit.schedule.convolutions import blocked, channels_last, plain, volume
from tests.unit.tuning.compiled import Case, check_schedule, workloads

from tensorwright import compile, schedule
from tensorwright.base import CpuTarget, DType, missing_here, override
from tensorwright.expr import Compute
from tensorwright.graph import Graph, interpret, program
from tensorwright.loop import lower, run_passes
from tensorwright.machine import detect_hardware
from tensorwright.pipeline import prepare
from tensorwright.records import MemoryStore, Record, Setting, Status
from tensorwright.tuning.selection import Chooser, Source
from tensorwright.tuning.session.session import make_space
from tensorwright.tuning.space import Sketch, space_of
from tensorwright.tuning.task import Task
from tensorwright_lab.loop_interpreter import interpret as run_loops

pytestmark = pytest.mark.target

TARGET = native_target()
NAMES = {f"winograd{tile}, {place}" for tile in (2, 4) for place in ("bands", "whole")}


def sketches(case: Case, target: CpuTarget = TARGET) -> dict[str, Sketch]:
    state = schedule.state_of(case[0])
    found = space_of(state, target).sketches
    return {each.name: each for each in found if each.name.startswith("winograd")}


def case_of(output: Compute) -> Case:
    workload = program([output], frozenset({"w"}))
    source = np.random.default_rng(0)
    arrays = (source.normal(size=each.shape).astype(np.float32) for each in workload.inputs)
    return workload, tuple(arrays)


def network(size: int = 13, channels: int = 32) -> Graph:
    """Two convolutions; the second has a residual added and rectified."""
    m = Maker("winograd")
    x = m.add("relu", m.conv(m.image(channels, size), channels))
    y = m.add("relu", m.add("add", m.conv(x, channels), x))
    return m.finish(m.conv(y, channels, kernel=1))


EXPRESSIONS = {
    "blocked": blocked((11, 9), 32, 16, DType.F32, batch=2, block=16),
    "volume": volume((4, 11, 9), 16, 32, DType.F32, block=16),
    "volumes": volume((3, 7, 6), 16, 48, DType.F32, batch=2, block=16),
    "channels last": channels_last((9, 12), 20, 24, DType.F32),
    "channels last, many": channels_last((8, 8), 16, 40, DType.F32, batch=2),
    "groups": channels_last((8, 9), 32, 64, DType.F32, groups=2),
    "read twice": channels_last((7, 10), 16, 16, DType.F32, is_gated=True),
}


@pytest.mark.parametrize("name", some_of(EXPRESSIONS, 3, "winograd"))
@pytest.mark.drawn
def test_schedules_are_right(name: str) -> None:
    case = case_of(EXPRESSIONS[name])
    found = sketches(case)
    assert set(found) == NAMES
    source = random_source(name)
    first, second, third = source.sample(list(found.values()), 3)
    for sketch in (first, second):
        check_schedule(case, schedule.format_trace(sketch.bound(sketch.defaults)), TARGET)
    check_schedule(case, schedule.format_trace(third.bound(third.sample(source))), TARGET)


def test_it_is_right_with_fewer_registers() -> None:
    target = AVX2
    if missing_here(target):
        pytest.skip("this machine has no AVX2")
    case = case_of(EXPRESSIONS["channels last"])
    for sketch in sketches(case, target).values():
        check_schedule(case, schedule.format_trace(sketch.bound(sketch.defaults)), target)


def test_schedules_of_a_network_are_right() -> None:
    cases = [case for case in workloads(network(), TARGET) if sketches(case)]
    assert cases
    for case in cases:
        for sketch in sketches(case).values():
            check_schedule(case, schedule.format_trace(sketch.bound(sketch.defaults)), TARGET)


@pytest.mark.parametrize(
    "tensor",
    [
        plain((8, 8), 16, 16, 0, DType.F32),  # vectors would lie along the columns
        channels_last((8, 8), 3, 16, DType.F32),  # transforms would cost more than they save
        channels_last((8, 8), 80, 120, DType.F32, groups=5),  # a vector would hold two groups
    ],
    ids=["plain", "few channels", "groups that are no vectors"],
)
def test_where_it_does_not_apply(tensor: Compute) -> None:
    assert sketches(case_of(tensor), AVX512) == {}


def test_a_kernel_that_is_no_constant_stays() -> None:
    workload = program([channels_last((8, 8), 16, 16, DType.F32)])
    assert sketches((workload, ()), AVX512) == {}


def test_bands_do_not_read_many_weights_again() -> None:
    """16 parts of 512 x 512 weights take 16 MiB, 36 parts 36 MiB."""
    workload = program([channels_last((9, 9), 512, 512, DType.F32)], frozenset({"w"}))
    target = replace(AVX512, l2_bytes=2 << 20)
    assert set(sketches((workload, ()), target)) == NAMES - {"winograd4, bands"}


def test_slices_of_a_volume_share_their_transforms() -> None:
    """By rule many slices are in a band, and as many bands are left as threads can share."""
    workload = program([volume((16, 56, 56), 64, 64, DType.F32, block=16)], frozenset({"w"}))
    target = replace(AVX512, l2_bytes=2 << 20)
    found = sketches((workload, ()), target)
    assert found["winograd4, bands"].defaults["slices"] == 8
    assert found["winograd2, bands"].defaults["slices"] == 16


def test_the_schedule_by_rule_is_direct() -> None:
    case = case_of(EXPRESSIONS["blocked"])
    state = schedule.state_of(case[0])
    assert "use_algorithm" not in schedule.format_trace(space_of(state, TARGET).default_trace)


def test_an_untuned_network_uses_it_unless_a_knob_says_no(tmp_path: Path) -> None:
    graph = network(size=28, channels=64)
    parts = prepare(graph, TARGET)
    convolutions = [each for each in parts.workloads if sketches((each, ()))]
    with override(home=tmp_path):
        chosen = [
            Chooser(Setting(TARGET, 1), MemoryStore()).choose(each).trace for each in convolutions
        ]
        assert all(schedule.uses_algorithm(trace) for trace in chosen)
        program = compile(graph, records=MemoryStore(), threads=1)
        store = MemoryStore()
        hardware = detect_hardware().fingerprint
        for workload, trace in zip(convolutions, chosen, strict=True):
            text = schedule.format_trace(trace)
            store.append([Record(workload.key, TARGET.key, hardware, 1, text, (1e-6,), Status.OK)])
        with override(winograd=False):
            for workload in convolutions:
                found = Chooser(Setting(TARGET, 1), store).choose(workload)
                assert found.source is not Source.RECORD
                assert not schedule.uses_algorithm(found.trace)
                assert not schedule.uses_algorithm(
                    Chooser(Setting(TARGET, 1), store).choose(workload, chosen[0]).trace
                )
                space = make_space(Task(workload), TARGET)
                assert not any(schedule.uses_algorithm(sketch.trace) for sketch in space.sketches)
    (name,) = graph.inputs
    given = np.random.default_rng(2).normal(size=graph.types[name].shape).astype(np.float32)
    (answer,) = interpret(graph, {name: given}).values()
    (found_array,) = program.run({name: given}).values()
    np.testing.assert_allclose(found_array, answer, rtol=1e-3, atol=1e-4 * np.abs(answer).max())


def test_the_interpreter_agrees() -> None:
    case = case_of(channels_last((6, 6), 16, 16, DType.F32))
    sketch = sketches(case)["winograd2, bands"]
    workload, arrays = case
    state = schedule.replay(schedule.state_of(workload), sketch.bound(sketch.defaults))
    program = run_passes(lower(state))
    given = {tensor.name: array for tensor, array in zip(workload.inputs, arrays, strict=True)}
    found = run_loops(program, given)["y"]
    direct = run_loops(lower(schedule.state_of(workload)), given)["y"]
    np.testing.assert_allclose(found, direct, rtol=1e-4, atol=1e-4)
    (kernel,) = (each for each in program.parameters if each.packing is not None)
    assert kernel.name == "w"
    assert kernel.packing is not None
    assert kernel.packing.derivation is not None


def test_the_algorithm_is_part_of_the_record() -> None:
    case = case_of(EXPRESSIONS["blocked"])
    sketch = sketches(case)["winograd4, whole"]
    text = schedule.format_trace(sketch.bound(sketch.defaults))
    record = Record(case[0].key, TARGET.key, "here", 2, text, (0.001,), Status.OK)
    with MemoryStore() as store:
        store.append([record])
        (kept,) = store.query()
    again = schedule.parse_trace(kept.trace)
    assert again == sketch.bound(sketch.defaults)
    assert again[0] == schedule.UseAlgorithm("y", "winograd4")
    assert sum(isinstance(step, schedule.FoldConstant) for step in again) == 2


def test_a_network_compiled_by_records_uses_it() -> None:
    graph = network()
    parts = prepare(graph, TARGET)
    store = MemoryStore()
    hardware = detect_hardware().fingerprint
    used = 0
    for workload in parts.workloads:
        found = sketches((workload, ()))
        if found:
            sketch = found["winograd4, bands"]
            trace = schedule.format_trace(sketch.bound(sketch.defaults))
            store.append([Record(workload.key, TARGET.key, hardware, 2, trace, (1e-6,), Status.OK)])
            used += 1
    assert used
    program = compile(graph, records=store, threads=2)
    (name,) = graph.inputs
    given = np.random.default_rng(2).normal(size=graph.types[name].shape).astype(np.float32)
    (answer,) = interpret(graph, {name: given}).values()
    (found_array,) = program.run({name: given}).values()
    np.testing.assert_allclose(found_array, answer, rtol=1e-3, atol=1e-4)
