"""Sketches of graphics processors beyond tiles: what is derived, what draws of each compute."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from math import prod

import numpy as np
import pytest
from tests.draws import random_source, some_of
from tests.grids import MACHINES, OPENCL_GENERIC, SM_80, run_all_on_cpu
from tests.unit.schedule.expressions import Expression, conv, matmul
from tests.unit.tuning.space.row_programs import (
    dense_of_one_row,
    global_pool,
    layer_norm,
    max_pool,
    scaled,
    softmax,
    softmax_over_channels,
    sum_of_all,
    transposed,
)

from tensorwright import schedule
from tensorwright.base import GpuTarget
from tensorwright.loop import LoopProgram, launches_of, lower, room_of, run_passes
from tensorwright.tuning.space import Sketch, Space, default_trace
from tensorwright.tuning.space.derived import derived_sketches

ROWS = {
    "softmax": softmax(6, 70),
    "softmax_of_one_row": softmax(1, 100),
    "softmax_over_channels": softmax_over_channels(20, 6),
    "layer_norm": layer_norm(4, 40),
    "global_pool": global_pool(6, 7),
    "dense": dense_of_one_row(10, 64),
    "transposed_dense": dense_of_one_row(16, 64, is_transposed=True),
}
SPLIT = {
    "product": matmul(9, 16, 512),
    "product_with_relu": matmul(16, 12, 300, with_relu=True),
    "convolution": conv(5, 1, 64, 8),
    "sum": sum_of_all(1000),
}
STREAMED = {
    "scaled": scaled(12, 40),
    "transposed": transposed(13, 21),
    "max_pool": max_pool(4, 10),
}
EVERYTHING = {**ROWS, **SPLIT, **STREAMED}


def sketches(expression: Expression, target: GpuTarget = SM_80) -> tuple[Sketch, ...]:
    return tuple(derived_sketches(expression.state, target))


def drawn(expression: Expression, target: GpuTarget, seed: str) -> Iterator[LoopProgram]:
    """The schedule by rule, and one drawn of each sketch."""
    drawing = random_source(seed)
    traces = [sketch.bound(sketch.sample(drawing)) for sketch in sketches(expression, target)]
    for trace in (default_trace(expression.state, target), *traces):
        assert schedule.parse_trace(schedule.format_trace(trace)) == trace
        yield run_passes(lower(schedule.replay(expression.state, trace)))


def compare(expression: Expression, results: dict[str, np.ndarray]) -> None:
    for name, answer in expression.answers(expression.arrays()).items():
        np.testing.assert_allclose(results[name], answer, 2e-5, 2e-6)


@pytest.mark.drawn
def test_draws_compute_what_the_programs_mean() -> None:
    """By the text of CUDA, all compiled together."""
    (_, by_cuda) = MACHINES
    by_cuda.require()
    cases = [
        (expression, program)
        for name, expression in some_of(EVERYTHING.items(), 6, "sketches")
        for program in drawn(expression, SM_80, name)
    ]
    found = run_all_on_cpu([program for _, program in cases], [e.arrays() for e, _ in cases])
    for (expression, _), results in zip(cases, found, strict=True):
        compare(expression, results)


@pytest.mark.parametrize("name", ["softmax", "product_with_relu", "scaled"])
def test_defaults_run_on_a_device(name: str) -> None:
    (by_opencl, _) = MACHINES
    by_opencl.require()
    expression = EVERYTHING[name]
    trace = default_trace(expression.state, OPENCL_GENERIC)
    program = run_passes(lower(schedule.replay(expression.state, trace)))
    compare(expression, by_opencl.run(program, expression.arrays()))


def names(expression: Expression, target: GpuTarget = SM_80) -> list[str]:
    return [sketch.name for sketch in sketches(expression, target)]


def families(expression: Expression) -> list[str]:
    return list(dict.fromkeys(sketch.family for sketch in sketches(expression)))


def test_what_is_derived() -> None:
    assert names(ROWS["softmax"]) == [
        "out across threads",
        "out across threads, computed again",
        "streamed",
    ]
    assert names(ROWS["layer_norm"])[0] == "out across threads"
    assert names(ROWS["transposed_dense"])[0] == "relu across rows of threads"
    tiles = ("as matrices in blocks of threads", "in blocks of threads")
    assert families(SPLIT["product"]) == [
        *(f"c split over 4 blocks, c_rf {each}" for each in tiles),
        *(f"c split over 2 blocks, c_rf {each}" for each in tiles),
        *(f"c {each}" for each in tiles),
        "streamed",
    ]
    assert families(matmul(1024, 1024, 1024)) == [*(f"c {each}" for each in tiles), "streamed"]
    assert names(SPLIT["sum"])[0] == "s split over 5 blocks, s_rf across threads"
    assert names(STREAMED["scaled"]) == ["streamed"]


def test_rows_are_one_launch() -> None:
    """Lanes exchange numbers where the language can say it; all else is in shared memory."""
    for target in (SM_80, OPENCL_GENERIC):
        trace = default_trace(ROWS["softmax"].state, target)
        (launch,) = launches_of(lower(schedule.replay(ROWS["softmax"].state, trace))).nests
        shuffles = sum(isinstance(step, schedule.ShuffleReduce) for step in trace)
        assert shuffles == (2 if target is SM_80 else 0)
        assert {buffer.name for buffer in launch.shared} > {"e", "top", "total"}


def test_a_split_reduction_is_two_launches() -> None:
    trace = default_trace(SPLIT["product"].state, SM_80)
    first, second = launches_of(lower(schedule.replay(SPLIT["product"].state, trace))).nests
    assert first.shared
    assert not second.shared
    assert "rfactor(c, k_o, 0)" in schedule.format_trace(trace)


@pytest.mark.parametrize("target", [OPENCL_GENERIC, SM_80], ids=str)
def test_no_draw_is_beyond_the_device(target: GpuTarget) -> None:
    drawing = random.Random(1)
    for expression in (softmax(64, 9000), matmul(32, 32, 4096), scaled(512, 4096)):
        for sketch in sketches(expression, target):
            trace = sketch.bound(sketch.sample(drawing))
            for launch in launches_of(lower(schedule.replay(expression.state, trace))).nests:
                threads = [launch.extent(kind) for kind in schedule.THREADS]
                shared = sum(room_of(each) * each.dtype.size_bytes for each in launch.shared)
                assert prod(threads) <= target.threads_per_block
                assert launch.extent(schedule.ForKind.THREAD_Z) <= 64
                assert shared <= target.opt_in_shared_bytes


def test_a_row_that_does_not_fit_is_computed_again() -> None:
    """9000 exponentials are more than the 32 KiB that a block may share."""
    assert names(softmax(64, 9000), OPENCL_GENERIC)[0] == "out across threads, computed again"


def test_what_is_cut_is_counted() -> None:
    """By draws one by one and by columns, each for the first limit that it breaks."""
    (sketch, *_) = sketches(matmul(1024, 1024, 1024), OPENCL_GENERIC)
    space, drawing = Space((sketch,)), random.Random(0)
    for _ in range(20):
        sketch.sample(drawing, space.cut)
    assert space.cut["threads"] > 0
    assert space.cut["shared memory"] > 0
    counts = [len(choice.values) for choice in sketch.choices]
    genes = np.random.default_rng(0).integers(0, counts, (1000, len(counts)))
    columns: Counter[str] = Counter()
    is_valid = sketch.valid(genes, columns)
    tiles = [limit for limit in sketch.limits if not limit.what]
    by_tiles = ~np.all([limit.holds(sketch.columns(genes)) for limit in tiles], axis=0)
    assert columns.total() + by_tiles.sum() == 1000 - is_valid.sum()
