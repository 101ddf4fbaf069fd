"""Sketches of graphics processors beyond tiles: what is derived, what draws of each compute."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from tests.grids import MACHINES, SM_80, run_all_on_cpu
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

from tensorwright.base import GpuTarget
from tensorwright.loop import LoopProgram, lower, run_passes
from tensorwright.schedule import format_trace, parse_trace, replay
from tensorwright.tuning.space import Sketch
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
    """Programs of each sketch: that by rule, and one drawn."""
    drawing = random.Random(seed)
    for sketch in sketches(expression, target):
        for decisions in (sketch.defaults, sketch.sample(drawing)):
            trace = sketch.bound(decisions)
            assert parse_trace(format_trace(trace)) == trace
            yield run_passes(lower(replay(expression.state, trace)))


def compare(expression: Expression, results: dict[str, np.ndarray]) -> None:
    for name, answer in expression.answers(expression.arrays()).items():
        np.testing.assert_allclose(results[name], answer, 2e-5, 2e-6)


def test_draws_compute_what_the_programs_mean() -> None:
    """By the text of CUDA, all compiled together."""
    (_, by_cuda) = MACHINES
    by_cuda.require()
    cases = [
        (expression, program)
        for name, expression in EVERYTHING.items()
        for program in drawn(expression, SM_80, name)
    ]
    found = run_all_on_cpu([program for _, program in cases], [e.arrays() for e, _ in cases])
    for (expression, _), results in zip(cases, found, strict=True):
        compare(expression, results)
