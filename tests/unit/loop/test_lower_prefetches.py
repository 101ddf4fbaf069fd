"""What tiles ask for before it is read."""

from __future__ import annotations

import pytest

from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
from tensorwright.loop import Prefetch, lower, walk
from tensorwright.schedule import (
    ComputeAt,
    PackConstant,
    PrefetchNext,
    Primitive,
    Reorder,
    Split,
    initial_state,
)


@pytest.mark.parametrize(("rows", "is_asked"), [(4, False), (5, True)])
def test_only_a_part_that_several_tiles_read_is_asked_for(rows: int, is_asked: bool) -> None:
    """With tiles of four rows, four rows read each part of the weights once."""
    x, w = placeholder("x", (rows, 8)), placeholder("w", (8, 32))
    k = reduce_axis("k", 8)
    y = compute("y", (rows, 32), lambda i, j: sum_over(x[i, k] * w[k, j], k), ("i", "j"))
    z = compute("z", (rows, 32), lambda i, j: y[i, j] + 1.0, ("i", "j"))
    steps: tuple[Primitive, ...] = (
        Split("z", "i", (4,)),
        Split("z", "j", (16,)),
        Reorder("z", ("j_o", "i_o", "i_i", "j_i")),
        ComputeAt("y", "z", "i_o"),
        Reorder("y", ("k", "i", "j")),
        PackConstant("w", "y"),
        PrefetchNext("y", "w", "k"),
    )
    state = initial_state((z,), frozenset(("w",)))
    for step in steps:
        step.check(state)
        state = step.apply(state)
    statements = walk(lower(state).body)
    assert any(isinstance(each, Prefetch) for each in statements) == is_asked
