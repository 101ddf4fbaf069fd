"""Loops that are written out and end where a guard fails."""

from __future__ import annotations

import pytest

from tensorwright.base import DType
from tensorwright.codegen.analysis.tiles import ends_at_guard
from tensorwright.expr import Condition, Index, Relation, Var, all_of, compare, constant, named_size
from tensorwright.loop import Buffer, For, If, Store
from tensorwright.schedule import ForKind

ROW, T = Var("i"), Var("t")
N = named_size("n", 1, 512)
OUT = Buffer("out", (512,), DType.F32)


def below(left: Index, right: Index = N) -> Condition:
    return compare(Relation.LT, left, right)


def tile(guard: Condition) -> For:
    return For(ROW, 14, ForKind.UNROLLED, If(guard, Store(OUT, (ROW,), constant(0, DType.F32))))


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        (below(T * 14 + ROW), True),
        (all_of(below(T * 14 + ROW * 2), below(T, 3)), True),
        (below(T, 3), True),
        (below(T * 14 - ROW), False),
        (below(N, ROW), False),
        (below(ROW % 3), False),
        (all_of(below(T * 14 + ROW), below(3, ROW)), False),
        (compare(Relation.EQ, ROW, T), False),
    ],
)
def test_a_guard_that_stays_false_ends_a_tile(guard: Condition, expected: bool) -> None:
    assert ends_at_guard(tile(guard)) is expected


def test_a_loop_without_a_guard_has_no_such_end() -> None:
    body = Store(OUT, (ROW,), constant(0, DType.F32))
    assert not ends_at_guard(For(ROW, 14, ForKind.UNROLLED, body))
