"""Small hand-made forests and time models for tests."""

from __future__ import annotations

import numpy as np

from tensorwright.tuning.models import Forest, Tree
from tensorwright.tuning.time_model import ROW_NAMES, Policy, TimeModel


def stump(name: str, threshold: float, low: float, high: float) -> Tree:
    """A tree that asks for one column."""
    return Tree((ROW_NAMES.index(name),), (threshold,), (-1,), (-2,), (low, high))


def random_tree(random: np.random.Generator, leaves: int, columns: int) -> Tree:
    """A tree that was grown by splitting leaves at random."""
    left: list[int] = []
    right: list[int] = []
    parents: list[tuple[list[int], int] | None] = [None]
    for new in range(leaves - 1):
        leaf = int(random.integers(len(parents)))
        if (place := parents[leaf]) is not None:
            place[0][place[1]] = new
        left.append(~leaf)
        right.append(~len(parents))
        parents[leaf] = (left, new)
        parents.append((right, new))
    features = random.integers(0, columns, leaves - 1).tolist()
    thresholds = random.normal(size=leaves - 1).tolist()
    values = random.normal(size=leaves).tolist()
    return Tree(tuple(features), tuple(thresholds), tuple(left), tuple(right), tuple(values))


def model_of(
    median: tuple[Tree, ...] = (), upper: tuple[Tree, ...] = (), policy: Policy | None = None
) -> TimeModel:
    """A time model of few trees; the roofline alone without any."""
    width = len(ROW_NAMES)
    parts = (Forest.of(trees, width).rounded for trees in (median, upper))
    return TimeModel(*parts, policy or Policy(), {"samples": 0})
