"""What tiles ask for before it is read."""

from __future__ import annotations

import pytest

from tensorwright import schedule
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
from tensorwright.loop import Prefetch, lower, walk


@pytest.mark.parametrize(("rows", "is_asked"), [(4, False), (5, True)])
def test_only_a_part_that_several_tiles_read_is_asked_for(rows: int, is_asked: bool) -> None:
    """With tiles of four rows, four rows read each part of the weights once."""
    x, w = placeholder("x", (rows, 8)), placeholder("w", (8, 32))
    k = reduce_axis("k", 8)
    y = compute("y", (rows, 32), lambda i, j: sum_over(x[i, k] * w[k, j], k), ("i", "j"))
    z = compute("z", (rows, 32), lambda i, j: y[i, j] + 1.0, ("i", "j"))
    steps: tuple[schedule.Primitive, ...] = (
        schedule.Split("z", "i", (4,)),
        schedule.Split("z", "j", (16,)),
        schedule.Reorder("z", ("j_o", "i_o", "i_i", "j_i")),
        schedule.ComputeAt("y", "z", "i_o"),
        schedule.Reorder("y", ("k", "i", "j")),
        schedule.PackConstant("w", "y"),
        schedule.PrefetchNext("y", "w", "k"),
    )
    state = schedule.initial_state((z,), frozenset(("w",)))
    for step in steps:
        step.check(state)
        state = step.apply(state)
    statements = walk(lower(state).body)
    assert any(isinstance(each, Prefetch) for each in statements) == is_asked
