from __future__ import annotations

import json

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
    forest = Forest(trees)
    np.testing.assert_allclose(forest.values(rows), expected, rtol=1e-12)
    again = Forest.from_data(json.loads(json.dumps(forest.to_data())))
    assert again.values(rows).tolist() == forest.values(rows).tolist()


def test_it_gives_what_lightgbm_gives() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    source = np.random.default_rng(0)
    rows = source.integers(0, 6, (400, 8)).astype(np.float32)
    parameters = {"num_leaves": 31, "verbose": -1, "num_threads": 1, "use_missing": False}
    labels = rows @ source.normal(size=8)
    booster = lightgbm.train(parameters, lightgbm.Dataset(rows, label=labels), 20)
    forest = parse_lightgbm(booster.model_to_string())
    np.testing.assert_allclose(forest.values(rows), booster.predict(rows), rtol=1e-9)


def test_no_trees_and_no_rows() -> None:
    assert Forest([]).values(np.zeros((3, 2), np.float32)).tolist() == [0, 0, 0]
    tree = Tree((0,), (1.0,), (-1,), (-2,), (3.0, 4.0))
    assert Forest([tree]).values(np.zeros((0, 2), np.float32)).tolist() == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"left": [0]}, "do not form a tree"),
        ({"right": [-1]}, "do not form a tree"),
        ({"leaves": [1.0]}, "do not match"),
        ({"leaves": [1.0, float("inf")]}, "not finite"),
        ({"leaves": [float("nan"), 1.0]}, "not finite"),
        ({"leaves": [1.0, 10**400]}, "not finite"),
        ({"features": [-1]}, "negative"),
        ({"features": ["0"]}, "not a number"),
        ({"thresholds": None}, "not a number"),
        ({"more": []}, "fields"),
    ],
)
def test_data_that_are_no_tree_are_refused(change: dict[str, object], reason: str) -> None:
    good = {"features": [0], "thresholds": [1.0], "left": [-1], "right": [-2], "leaves": [3.0, 4.0]}
    assert len(Forest.from_data([good]).trees) == 1
    with pytest.raises(RecordError, match=reason):
        Forest.from_data([good | change])
