"""Graphs that rules lead to from open ones: written, compiled, compared at several sizes."""

from __future__ import annotations

import pytest
from benchmarks.correctness.open_sizes import graph_of

from tensorwright_lab.judging.open_sizes import check_rewriting

SEEDS = (20, 110)
"""Of the drill: a convolution whose channels are open, and a constant that a rule repeats as often
as a size says.
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_what_searches_hand_on_is_equal_at_any_size(seed: int) -> None:
    graph, values = graph_of(seed)
    found = check_rewriting(graph, values, seed)
    assert found.rules
    assert found.files == 1
