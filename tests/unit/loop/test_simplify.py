"""What simplifying does to loops, guards, indices and values."""

from __future__ import annotations

import pytest
from tests.unit.loop.programs import (
    ZERO,
    buffer,
    loop,
    number,
    program,
    rows_of,
)

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.loop import (
    Allocate,
    Buffer,
    If,
    Stmt,
    Store,
    block,
    hoist_conditions,
    simplify_loops,
)
from tensorwright.schedule import ForKind, Scope

i, j, k = expr.Var("i"), expr.Var("j"), expr.Var("k")
Y, X = buffer("y", 8), buffer("x", 8)
X0 = expr.Load(X, (0,))
N = buffer("n", 8, dtype=DType.I32)


def simplified(body: Stmt, *others: Buffer) -> list[str]:
    y, x = buffer("y", 8), buffer("x", 8)
    return rows_of(simplify_loops(program(body, (y, *others), (x,))))


def test_loops_of_one_iteration_and_of_none_go() -> None:
    one = loop(i, 1, Store(Y, (i + 3,), ZERO), ForKind.PARALLEL)
    assert simplified(block(one, loop(j, 0, Store(Y, (j,), ZERO)))) == ["y[3] = 0.0"]


def test_guards_that_the_loops_decide_go() -> None:
    body = If(expr.all_of(i < 8, j + i < 20), Store(Y, (i,), ZERO))
    assert simplified(loop(i, 8, loop(j, 3, body))) == ["for i, j in 0..8, 0..3:", "y[i] = 0.0"]
    never = If(i - 9 >= 0, Store(Y, (i,), ZERO))
    assert simplified(loop(i, 8, never)) == ["pass"]


def test_guards_that_exclude_each_other_go() -> None:
    store = Store(Y, (i,), ZERO)
    assert simplified(loop(i, 8, If(expr.all_of(i >= 5, i < 4, i < 7), store))) == ["pass"]
    row = i // 2
    assert simplified(loop(i, 8, If(expr.all_of(row >= 2, row < 2), store))) == ["pass"]
    assert simplified(loop(i, 8, If(expr.all_of(i >= 3, i < 4), store)))[-1] == "y[3] = 0.0"


def test_what_an_outer_guard_ensures_is_not_asked_again() -> None:
    inner = If(
        expr.all_of(i < 3, i >= 1), Store(Y, (i,), expr.Select(i < 3, ZERO, expr.Load(X, (i,))))
    )
    found = simplified(loop(i, 8, If(i < 3, inner)))
    assert found == ["for i in 0..8:", "if i < 3 and 1 <= i:", "y[i] = 0.0"]


def test_a_guard_of_a_read_stays_around_it() -> None:
    m = buffer("m", 4, dtype=DType.I32)
    reads = If(
        expr.Compare(expr.Relation.LT, expr.Element(m, (i,)), 3),
        Store(m, (i,), number(5, DType.I32)),
    )
    nest = program(loop(i, 8, If(i < 4, reads)), (m,))
    assert rows_of(simplify_loops(nest)) == rows_of(nest) == rows_of(hoist_conditions(nest))


def test_mixed_radix_indices_become_plain() -> None:
    index = (i * 4 + j) // 4 * 4 + (i * 4 + j) % 4
    nest = loop(i, 2, loop(j, 4, Store(Y, (index,), ZERO)))
    assert simplified(nest)[-1] == "y[i*4 + j] = 0.0"


def test_buffers_that_nothing_reads_go() -> None:
    t, s = buffer("t", 8, scope=Scope.LOCAL), buffer("s", 8, scope=Scope.LOCAL)
    chain = block(Store(t, (0,), ZERO), Store(s, (0,), expr.Load(t, (0,))), Store(Y, (0,), ZERO))
    assert simplified(Allocate(t, Allocate(s, chain))) == ["y[0] = 0.0"]


N0 = expr.Load(N, (0,))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (X0 * 1, X0),
        (1 * X0, X0),
        (X0 / 1, X0),
        (X0 - 0, X0),
        (X0 + -0.0, X0),
        (X0 + 0, X0 + 0),  # -0 + 0 is 0
        (0 + X0, 0 + X0),
        (X0 * 0, X0 * 0),  # NaN * 0 is NaN
        (0 - X0, 0 - X0),
        (expr.Apply(expr.Fn.MAX, (X0, number(float("-inf")))), X0),
        (expr.Apply(expr.Fn.MIN, (number(float("inf")), X0)), X0),
        (number(2) * number(3) + X0, 6 + X0),
        (number(1e-30) * number(1e-30), number(0)),  # as f32 computes it
        (expr.Select(expr.Apply(expr.Fn.LT, (number(1), number(2))), X0, ZERO), X0),
    ],
)
def test_values_are_folded_where_that_is_exact(value: expr.Value, expected: expr.Value) -> None:
    nest = simplify_loops(program(Store(Y, (0,), value), (Y,), (X,)))
    assert isinstance(nest.body, Store)
    assert nest.body.value == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (N0 + 0, N0),
        (0 + N0, N0),
        (N0 * 0, number(0, DType.I32)),
        (number(100, DType.I8) + number(100, DType.I8), number(-56, DType.I8)),
    ],
)
def test_integers_fold_more(value: expr.Value, expected: expr.Value) -> None:
    y = Buffer("y", (8,), value.dtype)
    nest = simplify_loops(program(Store(y, (0,), value), (y,), (N,)))
    assert isinstance(nest.body, Store)
    assert nest.body.value == expected
