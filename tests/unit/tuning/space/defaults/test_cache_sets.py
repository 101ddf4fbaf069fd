"""Rows whose distance hits few sets of the first cache."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.draws import random_source
from tests.targets import AVX512, native_target
from tests.unit.tuning.compiled import check_sketches, weights, workloads

from tensorwright.graph import Graph, GraphBuilder
from tensorwright.schedule import ScheduleState, state_of
from tensorwright.tuning.space import Sketch, heuristic_sketches, sketches_of
from tensorwright.tuning.space.roles import Anchor, most_rows

pytestmark = pytest.mark.target


def product(rows: int, terms: int, columns: int) -> Graph:
    """A product with a constant."""
    b = GraphBuilder("product")
    x = b.input("x", (rows, terms))
    return b.finish([b.add("matmul", x, b.constant(weights(terms, columns)))])


def state(rows: int, terms: int, columns: int) -> ScheduleState:
    ((workload, _),) = workloads(product(rows, terms, columns), AVX512)
    return state_of(workload)


@pytest.mark.parametrize(
    ("terms", "l1_bytes", "most"),
    [
        (1024, 32768, 7),  # all rows in one set of 8 ways, one of them for others
        (1024, 49152, 11),
        (3072, 32768, 7),
        (512, 32768, 14),  # two sets
        (1040, 32768, 448),
        (1000, 32768, 448),
        (8, 32768, None),  # two rows share a line
    ],
)
def test_most_rows(terms: int, l1_bytes: int, most: int | None) -> None:
    program = state(64, terms, 32)
    (axis, _) = program.stage("matmul").tensor.axes
    target = replace(AVX512, l1_bytes=l1_bytes)
    anchor = Anchor(program, "matmul", "matmul")
    assert most_rows(anchor, axis, target) == most


def _rows_tried(sketch: Sketch, name: str) -> int:
    (choice,) = (each for each in sketch.choices if name in each.names)
    return max(row[choice.names.index(name)] for row in choice.values)


def test_tiles_keep_their_rows_in_the_first_cache() -> None:
    for terms, most in ((3072, 7), (3088, 27)):
        sketches = tuple(sketches_of(state(99, terms, 256), AVX512, algorithms=False))
        assert sketches[0].defaults["rows"] <= most
        assert (_rows_tried(sketches[0], "rows") <= 7) == (terms == 3072)
        derived = next(sketch for sketch in sketches if "matmul cached" in sketch.name)
        assert (_rows_tried(derived, "matmul_i_3") <= 7) == (terms == 3072)


@pytest.mark.drawn
def test_values() -> None:
    target = native_target()
    (case,) = workloads(product(37, 1024, 48), target)
    sketches = heuristic_sketches(state_of(case[0]), target)
    check_sketches(case, sketches, target, random_source(1))
