from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorwright.base import RecordError
from tensorwright.tuning.models.trees.forest import Forest, Tree, parse_lightgbm


def random_tree(source: np.random.Generator, leaves: int, features: int) -> Tree:
    """Grown by splitting a random leaf, again and again, as LightGBM does."""
    left, right, place = [], [], {0: (-1, "")}
    for node in range(leaves - 1):
        leaf = int(source.integers(0, node + 1))
        parent, side = place[leaf]
        if parent >= 0:
            (left if side == "left" else right)[parent] = node
        left.append(~leaf)
        right.append(~(node + 1))
        place[leaf], place[node + 1] = (node, "left"), (node, "right")
    return Tree(
        tuple(source.integers(0, features, leaves - 1).tolist()),
        tuple((source.integers(0, 8, leaves - 1) / 2).tolist()),
        tuple(left),
        tuple(right),
        tuple(source.normal(size=leaves).tolist()),
    )


def walk(tree: Tree, row: np.ndarray) -> float:
    node = 0 if tree.features else -1
    while node >= 0:
        is_left = row[tree.features[node]] <= tree.thresholds[node]
        node = tree.left[node] if is_left else tree.right[node]
    return tree.leaves[~node]


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 32), st.integers(1, 7))
def test_a_forest_gives_what_walking_its_trees_gives(seed: int, leaves: int, features: int) -> None:
    source = np.random.default_rng(seed)
    trees = [random_tree(source, leaves, features) for _ in range(5)]
    rows = (source.integers(0, 9, (40, features)) / 2).astype(np.float32)
    rows[:, 0] = 1.5
    expected = [sum(walk(tree, row) for tree in trees) for row in rows]
    forest = Forest.of(trees, features)
    np.testing.assert_allclose(forest.sums(rows), expected, rtol=1e-12)
    again = Forest.of_arrays(forest.arrays, features)
    assert again.sums(rows).tolist() == forest.sums(rows).tolist()


def test_it_gives_what_lightgbm_gives() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    source = np.random.default_rng(0)
    rows = source.integers(0, 6, (400, 8)).astype(np.float32)
    parameters = {"num_leaves": 31, "verbose": -1, "num_threads": 1, "use_missing": False}
    labels = rows @ source.normal(size=8)
    booster = lightgbm.train(parameters, lightgbm.Dataset(rows, label=labels), 20)
    forest = parse_lightgbm(booster.model_to_string(), 8)
    np.testing.assert_allclose(forest.sums(rows), booster.predict(rows), rtol=1e-9)


def test_no_trees_and_no_rows() -> None:
    assert Forest.of([], 2).sums(np.zeros((3, 2), np.float32)).tolist() == [0, 0, 0]
    tree = Tree((0,), (1.0,), (-1,), (-2,), (3.0, 4.0))
    assert Forest.of([tree], 2).sums(np.zeros((0, 2), np.float32)).tolist() == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"left": (0,)}, "do not form a tree"),
        ({"right": (-1,)}, "do not form a tree"),
        ({"leaves": (1.0,)}, "do not match"),
        ({"leaves": (1.0, float("inf"))}, "not finite"),
        ({"leaves": (float("nan"), 1.0)}, "not finite"),
        ({"leaves": (1.0, 10**400)}, "not finite"),
        ({"features": (-1,)}, "negative"),
    ],
)
def test_data_that_are_no_tree_are_refused(change: dict[str, object], reason: str) -> None:
    good = Tree((0,), (1.0,), (-1,), (-2,), (3.0, 4.0))
    assert len(Forest.of([good], 1)) == 1
    with pytest.raises(RecordError, match=reason):
        replace(good, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        ("leaves", np.ones(2), "not numbers of its nodes"),
        ("leaves", np.ones(3, np.float32), "not numbers of its nodes"),
        ("leaves", np.array([1.0, np.nan, 1.0]), "not numbers of its nodes"),
        ("features", np.array([7, 0, 0], "<u2"), "a column that does not exist"),
        ("children", np.array([2, 1, 2], "<u2"), "does not come before its children"),
    ],
)
def test_arrays_that_are_no_forest_are_refused(name: str, array: np.ndarray, reason: str) -> None:
    good = Forest.of([Tree((0,), (1.0,), (-1,), (-2,), (3.0, 4.0))], 1).arrays
    with pytest.raises(RecordError, match=reason):
        Forest.of_arrays({**good, name: array}, 1)
