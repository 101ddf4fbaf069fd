"""Constants that are read where other tensors say: every schedule of every space is right.

What is read there follows from data, so no copy in the order of some loops can hold it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.targets import AVX2
from tests.unit.tuning.compiled import check_schedule, workloads

from tensorwright.base import DType, ScheduleError
from tensorwright.expr import compute, placeholder
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.schedule import PackConstant, format_trace, initial_state, state_of
from tensorwright.tuning.space import space_of
from tensorwright.tuning.space.steps import packable_constants

NUMBERS = np.random.default_rng(5)


def _table(b: GraphBuilder, *shape: int) -> str:
    return b.constant(NUMBERS.normal(size=shape).astype(np.float32))


def _positions(b: GraphBuilder, *shape: int, most: int = 7) -> str:
    """Indices that another node computes, so that they are fused with what reads at them."""
    x = b.input("positions", shape, DType.I64)
    limit = b.constant(np.array(most, np.int64))
    return b.add("floormod", b.add("add", x, x), limit)


def gather(axis: int) -> Graph:
    b = GraphBuilder(f"gather {axis}")
    y = b.add("gather", _table(b, 7, 8, 9), _positions(b, 40), axis=axis)
    return b.finish((b.add("relu", y),))


def gather_elements(axis: int) -> Graph:
    b = GraphBuilder(f"gather_elements {axis}")
    shape = (7, 8, 9)
    y = b.add("gather_elements", _table(b, *shape), _positions(b, *shape), axis=axis)
    return b.finish((b.add("relu", y),))


def gather_nd() -> Graph:
    b = GraphBuilder("gather_nd")
    return b.finish((b.add("gather_nd", _table(b, 7, 8, 33), _positions(b, 20, 2)),))


def position_of_position() -> Graph:
    """As position embeddings of RoBERTa: the index that one table gives reads another."""
    b = GraphBuilder("position of position")
    kinds = b.constant(NUMBERS.integers(0, 2, (1, 70)))
    places = _positions(b, 1, 64, most=70)
    kind = b.add("gather_elements", kinds, places, axis=1)
    return b.finish((b.add("gather", _table(b, 2, 40), kind, axis=0),))


def embedding_and_product() -> Graph:
    b = GraphBuilder("embedding and product")
    rows = b.add("gather", _table(b, 7, 24), _positions(b, 20), axis=0)
    y = b.add("matmul", rows, _table(b, 24, 40))
    return b.finish((b.add("add", y, _table(b, 40)),))


def product_with_chosen_columns() -> Graph:
    b = GraphBuilder("product with chosen columns")
    chosen = b.add("gather", _table(b, 24, 7), _positions(b, 40), axis=1)
    return b.finish((b.add("matmul", b.input("x", (20, 24)), chosen),))


def used_both_ways() -> Graph:
    """One table, read by position and as it lies."""
    b = GraphBuilder("used both ways")
    table = _table(b, 7, 40)
    rows = b.add("gather", table, _positions(b, 7), axis=0)
    return b.finish((b.add("mul", rows, table),))


def bias_of_a_class() -> Graph:
    """A convolution whose bias depends on data, read across the rows of its table."""
    b = GraphBuilder("bias of a class")
    x = b.add("conv", b.input("x", (1, 16, 9, 9)), _table(b, 32, 16, 1, 1))
    bias = b.add("gather", _table(b, 32, 7), _positions(b, 1), axis=1)
    return b.finish((b.add("add", x, b.add("reshape", bias, shape=(1, 32, 1, 1))),))


FORMS: dict[str, Callable[[], Graph]] = {
    **{f"gather_{axis}": lambda axis=axis: gather(axis) for axis in range(3)},
    **{f"gather_elements_{axis}": lambda axis=axis: gather_elements(axis) for axis in range(3)},
    **{
        make.__name__: make
        for make in (
            gather_nd,
            position_of_position,
            embedding_and_product,
            product_with_chosen_columns,
            used_both_ways,
            bias_of_a_class,
        )
    },
}


@pytest.mark.target
@pytest.mark.parametrize("form", FORMS)
def test_every_schedule_is_right(form: str) -> None:
    found = workloads(FORMS[form](), AVX2)
    assert found
    for case in found:
        for sketch in space_of(state_of(case[0]), AVX2).sketches:
            check_schedule(case, format_trace(sketch.bound(sketch.defaults)), AVX2)


def test_a_constant_read_at_positions_is_not_packed() -> None:
    table, places = placeholder("table", (5, 8)), placeholder("places", (8,), DType.I64)
    plain = placeholder("plain", (8, 8))

    def body(i, j):
        return table[places[i], j] + plain[j, i]

    state = initial_state((compute("y", (8, 8), body),), frozenset({"table", "plain"}))
    assert set(packable_constants(state, "y")) == {"plain"}
    PackConstant("plain", "y").check(state)
    with pytest.raises(ScheduleError, match="reads table where elements of another tensor say"):
        PackConstant("table", "y").check(state)
