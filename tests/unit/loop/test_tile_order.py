"""Which loop of a register tile is inside: what needs no more registers than there are."""

from __future__ import annotations

import pytest
from tests.targets import AVX2, AVX512
from tests.unit.codegen.kernels import (
    F32,
    SERIAL,
    TARGETS,
    UNROLLED,
    VECTOR,
    buffer,
    check,
    i,
    j,
    k,
    local,
    loops,
    m,
    n,
    program,
)

from tensorwright.expr import Index, Load, Value, constant
from tensorwright.loop import Allocate, For, LoopProgram, Stmt, Store, block, order_tiles, walk


def tile(channels: int, rows: int, vectors: int, *, is_shared: bool = False) -> LoopProgram:
    """Sums of channels (spread elements) times rows of pixels (vectors), channels outside.

    is_shared   all rows fold into the same sums
    """
    x, w = buffer("x", 9, rows, 8 * vectors + 1), buffer("w", 9, channels)
    y, acc = buffer("y", channels, rows, 8 * vectors), local("acc", channels, rows, 8 * vectors)
    heads = (i, channels, UNROLLED), (j, rows, UNROLLED), (n, vectors, UNROLLED), (m, 8, VECTOR)
    row: Index = 0 if is_shared else j
    at = (i, row, n * 8 + m)
    product: Value = Load(x, (k, j, n * 8 + m + 1)) * Load(w, (k, i))
    body = block(
        loops(*heads, body=Store(acc, (i, j, n * 8 + m), constant(0, F32))),
        loops((k, 9, SERIAL), *heads, body=Store(acc, at, Load(acc, at) + product)),
        loops(*heads, body=Store(y, (i, j, n * 8 + m), Load(acc, (i, j, n * 8 + m)))),
    )
    return program(Allocate(acc, body), (x, w), y)


def order_of(statement: Stmt) -> str:
    """The names of the loops inside the one over terms, outermost first."""
    (terms,) = (part for part in walk(statement) if isinstance(part, For) and part.var == k)
    return "".join(part.var.name for part in walk(terms.body) if isinstance(part, For))


@pytest.mark.parametrize(("channels", "rows", "vectors"), [(3, 2, 2), (2, 2, 3), (1, 3, 4)])
def test_values(channels: int, rows: int, vectors: int) -> None:
    for target in TARGETS:
        check(tile(channels, rows, vectors), target)
        check(tile(channels, rows, vectors, is_shared=True), target)


def test_fewer_spread_elements_wait_where_the_vectors_do_not_fit() -> None:
    assert order_of(order_tiles(tile(3, 2, 2), AVX2).body) == "jnim"
    assert order_of(order_tiles(tile(2, 2, 3), AVX2).body) == "jnim"


def test_other_tiles_keep_their_order() -> None:
    for kept, target in (
        (tile(6, 1, 2), AVX2),  # fits
        (tile(4, 2, 2), AVX2),  # as many vectors as elements
        (tile(3, 2, 2), AVX512),  # an element is spread by the instruction
        (tile(3, 2, 2, is_shared=True), AVX2),  # the order of the sum would change
    ):
        assert order_tiles(kept, target) is kept
