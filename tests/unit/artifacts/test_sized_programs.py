"""Kernels with a trace for each range of their sizes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.test_open_executables import dense, scores

from tensorwright.artifacts import assemble_workload, build_cached, build_kernel, loop_program
from tensorwright.base import ScheduleError, cpu_target
from tensorwright.codegen.analysis.tiles import ends_at_guard
from tensorwright.expr import compute, named_size, placeholder, reduce_axis, sum_over
from tensorwright.graph import Workload, bind_workload, program, reference
from tensorwright.loop import For, If, LoopProgram, walk
from tensorwright.schedule import (
    ForKind,
    OpenSchedule,
    PackConstant,
    Reorder,
    SizedTrace,
    SizeRange,
    Split,
    Tail,
    Trace,
    Unroll,
    state_of,
)
from tensorwright.tuning.space import default_trace
from tensorwright_lab.judging.open_sizes import check_trace, random_traces

NATIVE = cpu_target("native")


def trace_at(workload: Workload, value: int) -> Trace:
    """The heuristic trace where every size has that value."""
    numbers = {size.name: value for size in workload.sizes}
    return default_trace(state_of(bind_workload(workload, numbers)), NATIVE)


def packings(program: LoopProgram) -> list[str]:
    return [str(p.buffer.shape) for p in program.parameters if p.packing is not None]


@pytest.mark.parametrize("workload", [dense(), dense(40), scores()], ids=["48", "40", "scores"])
def test_each_range_runs_its_own_trace_and_all_sizes_are_right(workload: Workload) -> None:
    name = workload.sizes[0].name
    schedule = OpenSchedule(
        (
            SizedTrace((SizeRange(name, 1, 1),), trace_at(workload, 1)),
            SizedTrace((SizeRange(name, 2, 4),), trace_at(workload, 4)),
            SizedTrace((), trace_at(workload, 8)),
        )
    )
    assert check_trace(workload, schedule, NATIVE, 0)
    chosen = walk(loop_program(workload, schedule, NATIVE).body)
    conditions = [str(part.condition) for part in chosen if isinstance(part, If)]
    assert any(f"{name} <= 1" in each for each in conditions)


def test_rows_that_fill_no_tile_are_computed_alone() -> None:
    workload = dense()
    program = loop_program(workload, trace_at(workload, 64), NATIVE)
    tiles = [part for part in walk(program.body) if isinstance(part, For)]
    partial = [loop for loop in tiles if loop.kind is ForKind.UNROLLED and ends_at_guard(loop)]
    assert partial
    assert len([loop for loop in tiles if loop.kind is ForKind.PARALLEL]) == 1
    assert check_trace(workload, trace_at(workload, 64), NATIVE, 2)


def test_random_traces_for_ranges_compute_what_is_meant() -> None:
    workload = dense()
    few, many, rest = random_traces(workload, NATIVE, 3, 7)
    schedule = OpenSchedule(
        (
            SizedTrace((SizeRange("n", 3, 9),), few),
            SizedTrace((SizeRange("n", 8, None),), many),
            SizedTrace((), rest),
        )
    )
    assert check_trace(workload, schedule, NATIVE, 1)


def test_traces_that_pack_a_constant_differently_read_their_own_copies() -> None:
    workload = dense()
    traces = [trace_at(workload, value) for value in (1, 64)]
    alone = [packings(loop_program(workload, trace, NATIVE)) for trace in traces]
    same = OpenSchedule((SizedTrace((SizeRange("n", 1, 1),), traces[1]), SizedTrace((), traces[1])))
    assert packings(loop_program(workload, same, NATIVE)) == alone[1]
    both = OpenSchedule((SizedTrace((SizeRange("n", 1, 8),), traces[0]), SizedTrace((), traces[1])))
    joined = loop_program(workload, both, NATIVE)
    assert set(packings(joined)) == {*alone[0], *alone[1]}
    names = [parameter.buffer.name for parameter in joined.parameters]
    assert len(names) == len(set(names))


def test_a_constant_that_two_traces_pack_alike_is_kept_once() -> None:
    two, three = (Split("y", "j", factors) for factors in ((8,), (6, 8)))
    traces = [
        (split, Reorder("y", (outer, "k", inner)), PackConstant("w", "y"))
        for split, (outer, inner) in ((two, two.children), (three, three.children[1:]))
    ]
    few = SizedTrace((SizeRange("n", 1, 4),), traces[0])
    schedule = OpenSchedule((few, SizedTrace((), traces[1])))
    assert packings(loop_program(dense(), schedule, NATIVE)) == ["(6, 24, 8)"]
    assert check_trace(dense(), schedule, NATIVE, 0)


def test_a_range_of_a_single_value_gives_a_program_of_numbers() -> None:
    workload = dense()
    schedule = OpenSchedule(
        (SizedTrace((SizeRange("n", 4, 4),), trace_at(workload, 4)), SizedTrace((), ()))
    )
    program = loop_program(workload, schedule, NATIVE)
    first = next(part for part in walk(program.body) if isinstance(part, If))
    loops = str(LoopProgram("first", program.parameters, first.then)).split("\n", 1)[1]
    assert "n" not in loops.replace("in", "").split()


def test_schedules_for_other_ranges_are_other_kernels() -> None:
    workload, trace = dense(), trace_at(dense(), 8)
    one, other = (
        build_cached(
            workload,
            OpenSchedule((SizedTrace((SizeRange("n", 1, most),), trace), SizedTrace((), ()))),
            NATIVE,
        )
        for most in (2, 3)
    )
    assert one.object_code != other.object_code
    assert one.parameters == other.parameters


def check_at(workload: Workload, schedule: OpenSchedule, **sizes: int) -> None:
    """Compare with the meaning of an open workload at one value of each size."""
    kernel = build_kernel(workload, schedule, NATIVE)
    bound = bind_workload(workload, sizes)
    random = np.random.default_rng(0)
    arrays = tuple(
        random.standard_normal(type_.extents).astype(np.float32) for type_ in bound.input_types
    )
    named = dict(zip((tensor.name for tensor in bound.inputs), arrays, strict=True))
    constants = {name: named.pop(name) for name in sorted(workload.constants)}
    results = assemble_workload(workload, kernel, NATIVE, 1, constants).run(named)
    for tensor, wanted in zip(bound.outputs, reference(bound, arrays), strict=True):
        np.testing.assert_allclose(results[tensor.name], wanted, rtol=1e-4, atol=1e-5)


WHOLE_ROWS: Trace = (Split("z", "i", (8,), tail=Tail.EXACT), Unroll("z", "i_i"))
"""Tuned for a multiple of 8 rows."""


@pytest.mark.parametrize(("least", "most"), [(1, 1), (12, 12), (3, 6)])
def test_a_trace_tuned_for_one_size_runs_in_the_range_of_another(least: int, most: int) -> None:
    ranges = (SizeRange("n", least, most),)
    schedule = OpenSchedule((SizedTrace(ranges, WHOLE_ROWS), SizedTrace((), ())))
    for n in (least, most, most + 1):
        check_at(dense(), schedule, n=n)


def test_a_trace_tuned_for_two_sizes_runs_where_only_one_is_a_number() -> None:
    m, n = named_size("m", greatest=16), named_size("n", greatest=16)
    a, b, k = placeholder("a", (m, 8)), placeholder("b", (8, n)), reduce_axis("k", 8)
    z = compute("z", (m, n), lambda i, j: sum_over(a[i, k] * b[k, j], k))
    schedule = OpenSchedule((SizedTrace((SizeRange("m", 3, 3),), WHOLE_ROWS), SizedTrace((), ())))
    check_at(program([z]), schedule, m=3, n=7)


def test_each_trace_that_holds_for_all_sizes_has_a_program_in_each_range() -> None:
    workload = scores()
    names = [size.name for size in workload.sizes]
    for trace in random_traces(workload, NATIVE, 6, 3):
        for least, most in ((1, 1), (7, 7), (2, 4)):
            ranges = tuple(SizeRange(name, least, most) for name in names)
            schedule = OpenSchedule((SizedTrace(ranges, trace), SizedTrace((), ())))
            assert loop_program(workload, schedule, NATIVE).parameters


def test_a_trace_that_does_not_hold_for_all_sizes_is_refused_in_a_range() -> None:
    wrong = (Split("z", "j", (7,), tail=Tail.EXACT),)
    schedule = OpenSchedule((SizedTrace((SizeRange("n", 4, 4),), wrong), SizedTrace((), ())))
    with pytest.raises(ScheduleError, match="split"):
        loop_program(dense(), schedule, NATIVE)
