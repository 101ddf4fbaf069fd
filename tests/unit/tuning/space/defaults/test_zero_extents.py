"""Programs with an extent of 0: every rule, the default and the derived sketches get through."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from tests.unit.tuning.helpers import padded_convolution

from tensorwright import expr
from tensorwright.base import cpu_target
from tensorwright.loop import lower
from tensorwright.schedule import initial_state, replay
from tensorwright.tuning.space import default_trace, space_of

TARGET = cpu_target("x86-64-avx512")


def product(m: int, n: int, k: int) -> expr.Compute:
    a, b, r = expr.placeholder("a", (m, k)), expr.placeholder("b", (k, n)), expr.reduce_axis("r", k)
    c = expr.compute("c", (m, n), lambda i, j: expr.sum_over(a[i, r] * b[r, j], r))
    return expr.compute("y", (m, n), lambda i, j: expr.max_of(c[i, j], 0.0))


def attention(heads: int, rows: int, columns: int) -> expr.Compute:
    q, k = expr.placeholder("q", (heads, rows, 16)), expr.placeholder("k", (heads, columns, 16))
    r, j, t = (
        expr.reduce_axis("r", 16),
        expr.reduce_axis("j", columns),
        expr.reduce_axis("t", columns),
    )
    shape = heads, rows, columns
    s = expr.compute("s", shape, lambda h, i, c: expr.sum_over(q[h, i, r] * k[h, c, r], r))
    top = expr.compute("top", (heads, rows), lambda h, i: expr.max_over(s[h, i, j], j))
    e = expr.compute("e", shape, lambda h, i, c: expr.exp(s[h, i, c] - top[h, i]))
    total = expr.compute("total", (heads, rows), lambda h, i: expr.sum_over(e[h, i, t], t))
    return expr.compute("y", shape, lambda h, i, c: e[h, i, c] / total[h, i])


def transposed(a: int, b: int, c: int) -> expr.Compute:
    x = expr.placeholder("x", (a, b, c))
    return expr.compute("y", (b, c, a), lambda i, j, h: x[h, i, j])


def total(a: int, b: int, c: int) -> expr.Compute:
    x = expr.placeholder("x", (a, b, c))
    h, i, j = expr.reduce_axis("h", a), expr.reduce_axis("i", b), expr.reduce_axis("j", c)
    return expr.compute("y", (), lambda: expr.sum_over(x[h, i, j], h, i, j))


def convolution(images: int, size: int, filters: int) -> expr.Compute:
    return padded_convolution((images, size, size, 16), filters)


@pytest.mark.parametrize("make", [product, attention, transposed, total, convolution])
@pytest.mark.parametrize("is_constant", [False, True])
def test_every_sketch_can_be_made_and_lowered(
    make: Callable[[int, int, int], expr.Compute], is_constant: bool
) -> None:
    for kept in itertools.product((False, True), repeat=3):
        if all(kept):
            continue
        output = make(*(n if is_kept else 0 for n, is_kept in zip((2, 32, 48), kept, strict=True)))
        names = {tensor.name for tensor in expr.topological_order(output)}
        constants = frozenset({"b", "k", "w"}) & names if is_constant else frozenset()
        state = initial_state((output,), constants)
        lower(replay(state, default_trace(state, TARGET)))
        for sketch in space_of(state, TARGET).sketches:
            lower(replay(state, sketch.bound(sketch.defaults)))
