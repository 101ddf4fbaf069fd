"""Running folds against NumPy, at extents of less than a block, of one, and of several levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.ops.apply import check, floats, ints, meaning, type_of

from tensorwright.ops.operator import work

EXTENTS = (1, 5, 16, 17, 64, 300)


def flipped(array: Any, axis: int) -> Any:
    return np.flip(array, axis)


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cumsum(extent: int, axis: int) -> None:
    shape = [2, 3, 2]
    shape[axis] = extent
    x = floats(*shape)
    back = flipped(np.cumsum(flipped(x, axis), axis), axis)
    check("cumsum", np.cumsum(x, axis), x, axis=axis, tolerance=1e-4)
    check("cumsum", back, x, axis=axis, reverse=True, tolerance=1e-4)
    check("cumsum", np.cumsum(x, axis) - x, x, axis=axis, exclusive=True, tolerance=1e-4)
    check("cumsum", back - x, x, axis=axis, exclusive=True, reverse=True, tolerance=1e-4)


@pytest.mark.parametrize("extent", EXTENTS)
def test_cumprod(extent: int) -> None:
    x = floats(3, extent, low=0.9, high=1.1)
    back = flipped(np.cumprod(flipped(x, 1), 1), 1)
    before = np.concatenate([np.ones((3, 1), np.float32), np.cumprod(x, 1)[:, :-1]], 1)
    check("cumprod", np.cumprod(x, 1), x, axis=1)
    check("cumprod", back, x, axis=1, reverse=True)
    check("cumprod", before, x, axis=1, exclusive=True)


def test_integers_are_exact() -> None:
    x = ints(100)
    check("cumsum", np.cumsum(x), x, axis=0)


def test_errors_of_rounding_grow_slowly() -> None:
    x = floats(1 << 14, low=0.0, high=1.0)
    check("cumsum", np.cumsum(x.astype(np.float64)).astype(np.float32), x, tolerance=1e-6)


def test_work_grows_with_the_extent_and_not_with_its_square() -> None:
    _, computes = meaning("cumsum", type_of(floats(4096)), axis=0)
    assert work(computes) < 2 * 20 * 4096
