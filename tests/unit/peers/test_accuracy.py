"""How far two answers are apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorwright.peers.process import max_rel_error

F = np.float32


@pytest.mark.parametrize(
    ("ours", "theirs", "error"),
    [
        ({"y": F([1, 2])}, {"y": F([1, 2])}, 0.0),
        ({"y": F([1, 2])}, {"y": F([1.5, -4])}, 1.5),
        ({"y": F([1, 2]), "z": F([10])}, {"y": F([1, 2]), "z": F([8])}, 0.25),
        ({"y": F([0])}, {"y": F([0])}, 0.0),
        ({"y": F([1e-9])}, {"y": F([0])}, math.inf),
        ({"y": F([1])}, {"z": F([1])}, math.inf),
        ({"y": F([1])}, {"y": F([[1]])}, math.inf),
        ({"y": F([1, math.nan])}, {"y": F([1, math.nan])}, 0.0),
        ({"y": F([1, math.inf])}, {"y": F([2, math.inf])}, 0.5),
        ({"y": F([1, math.inf])}, {"y": F([1, -math.inf])}, math.inf),
        ({"y": F([1, math.nan])}, {"y": F([1, 1])}, math.inf),
        ({"y": np.array([1, 2])}, {"y": np.array([1, 2])}, 0.0),
        ({"y": np.array([1, 2])}, {"y": np.array([1, 3])}, math.inf),
        ({"y": np.zeros((0,), F)}, {"y": np.zeros((0,), F)}, 0.0),
        ({}, {}, 0.0),
    ],
)
def test_the_largest_difference_over_the_largest_output(
    ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], error: float
) -> None:
    assert max_rel_error(ours, theirs) == pytest.approx(error)
