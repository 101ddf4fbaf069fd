"""Conditions on blocked indices lose the part inside the block where it decides nothing."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorwright import expr

BLOCK, LANE, ROW = expr.Var("c_o"), expr.Var("c_i"), expr.Var("n")
BOUNDS: expr.Bounds = {BLOCK: expr.Range(0, 7), LANE: expr.Range(0, 15), ROW: expr.Range(0, 2)}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (BLOCK * 16 + LANE < 64, BLOCK < 4),
        (BLOCK * 16 + LANE <= 63, BLOCK < 4),
        (BLOCK * 16 + LANE >= 48, BLOCK >= 3),
        (BLOCK * 16 + LANE - 32 < 64, BLOCK < 6),
        (BLOCK * 16 + LANE - 32 >= 0, BLOCK >= 2),
        (BLOCK * 2 < ROW * 2 + 1, BLOCK <= ROW),
    ],
)
def test_a_limit_at_a_block_boundary_is_a_limit_of_the_block(
    condition: expr.Condition, expected: expr.Condition
) -> None:
    assert expr.simplify_condition(condition, BOUNDS) == expected


def test_a_limit_inside_a_block_stays() -> None:
    condition = BLOCK * 16 + LANE < 60
    assert expr.simplify_condition(condition, BOUNDS) == condition


@settings(max_examples=100)
@given(
    relation=st.sampled_from([expr.Relation.LT, expr.Relation.LE, expr.Relation.EQ]),
    coefficients=st.tuples(*[st.sampled_from([-16, -4, -2, -1, 0, 1, 2, 3, 4, 16])] * 3),
    offset=st.integers(-70, 70),
    is_swapped=st.booleans(),
)
def test_simplified_conditions_hold_at_the_same_points(
    relation: expr.Relation, coefficients: tuple[int, int, int], offset: int, is_swapped: bool
) -> None:
    left: expr.Index = 0
    for var, coefficient in zip(BOUNDS, coefficients, strict=True):
        left = left + var * coefficient
    sides = (offset, left) if is_swapped else (left, offset)
    condition = expr.compare(relation, *sides)
    simpler = expr.simplify_condition(condition, BOUNDS)
    for point in itertools.product(range(8), range(16), range(3)):
        place = dict(zip(BOUNDS, point, strict=True))
        assert expr.substitute_condition(simpler, place) == expr.substitute_condition(
            condition, place
        )
    if isinstance(simpler, expr.Compare) and isinstance(condition, expr.Compare):
        used = expr.free_vars(condition.left, condition.right)
        assert expr.free_vars(simpler.left, simpler.right) <= used
