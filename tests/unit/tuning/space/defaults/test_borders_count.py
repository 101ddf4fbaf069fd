"""Which part of a window's terms lies beside the image, counted in arrays and one by one."""

from __future__ import annotations

from itertools import product

import pytest

from tensorwright.expr import Axis, Var, all_of, substitute_condition
from tensorwright.tuning.space.defaults.tile_anchor import _saved

ROW, TAP = Axis(Var("h"), 14), Axis(Var("r"), 5)


@pytest.mark.parametrize("size", [1, 3, 7, 20])
@pytest.mark.parametrize("step", [1, 2])
def test_skipped_terms_are_those_of_no_position_of_a_tile(size: int, step: int) -> None:
    place = ROW.var * step + TAP.var * 3 - 4
    conditions = (place >= 0, place < 14 * step)
    assert all(not isinstance(each, bool) for each in conditions)
    kept = 0
    for row, tap in product(range(14), range(5)):
        first = row - row % size
        kept += all(
            any(
                substitute_condition(all_of(each), {ROW.var: near, TAP.var: tap}) is True
                for near in range(first, min(first + size, 14))
            )
            for each in conditions
        )
    assert _saved(conditions, [ROW, TAP], {"h": size}) == 1 - kept / 70
