"""What is chosen where two models have an opinion."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"


def test_opinions_choose_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    elites = importlib.import_module("transfer").elites
    rising, falling = np.arange(6.0), -np.arange(6.0)
    assert elites([rising], 3) == [5, 4, 3]
    assert elites([rising, falling], 4) == [5, 0, 4, 1]
    assert elites([rising, rising], 4) == [5, 4, 3, 2]
    assert sorted(elites([rising, falling], 99)) == list(range(6))
