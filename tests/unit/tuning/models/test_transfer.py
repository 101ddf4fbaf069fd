"""What is chosen where two models have an opinion."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"


def test_opinions_choose_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    favourites = importlib.import_module("transfer").favourites
    rising, falling = np.arange(6.0), -np.arange(6.0)
    assert favourites([rising], 3) == [5, 4, 3]
    assert favourites([rising, falling], 4) == [5, 0, 4, 1]
    assert favourites([rising, rising], 4) == [5, 4, 3, 2]
    assert sorted(favourites([rising, falling], 99)) == list(range(6))
