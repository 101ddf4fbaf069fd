"""Boosted trees whose values are added up: read from LightGBM's text, evaluated by native code.

The walk goes down all trees for twelve rows at once (`tree_walk.py`), in 8-byte floats: a row and a
tree take some 10 ns, whatever the features that the trees ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.models.protocol import Features, Scores
from tensorwright.tuning.models.trees.compact_trees import CompactTrees, leaf_values
from tensorwright.tuning.models.trees.tree import Tree, fault
from tensorwright.tuning.models.trees.tree_walk import TreeWalk


class Forest:
    """Trees whose values are added up."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.trees = tuple(trees)
        self._walk: TreeWalk | None = None

    @property
    def most_feature(self) -> int:
        """The highest number of a feature in a test; -1 for none."""
        return max((max(tree.features, default=-1) for tree in self.trees), default=-1)

    def values(self, rows: Features) -> NDArray[np.float64]:
        """The sum of the trees' values for each row (rows, features) -> (rows,)."""
        if not self.trees or not len(rows):
            return np.zeros(len(rows))
        if self._walk is None or self._walk.columns != rows.shape[1]:
            compact = CompactTrees.of(self.trees, rows.shape[1])
            self._walk = TreeWalk(compact, leaf_values(self.trees))
        return self._walk.sums(rows).astype(np.float64, copy=False)

    def scores(self, features: Features) -> Scores:
        """The sum over the rows of each program: (programs, rows, columns) -> (programs,)."""
        programs, rows, columns = features.shape
        values = self.values(features.reshape(programs * rows, columns))
        sums: Scores = values.reshape(programs, rows).sum(axis=1)
        return sums

    def to_data(self) -> list[dict[str, list[float]]]:
        """The trees as values of JSON."""
        return [{name: list(getattr(tree, name)) for name in Tree.__slots__} for tree in self.trees]

    @classmethod
    def from_data(cls, data: object) -> Forest:
        """The inverse of `to_data`.  Raises: RecordError for anything else."""
        if not isinstance(data, list):
            raise fault("the trees are not a list")
        return cls([_tree(fields) for fields in data])


def _tree(fields: object) -> Tree:
    if not isinstance(fields, dict) or set(fields) != set(Tree.__slots__):
        raise fault("its fields are not those of a tree")
    for name, numbers in fields.items():
        kinds = (int, float) if name in ("thresholds", "leaves") else (int,)
        if not isinstance(numbers, list) or any(type(number) not in kinds for number in numbers):
            raise fault(f"{name} has an item that is not a number")
    return Tree(**{name: tuple(numbers) for name, numbers in fields.items()})


def parse_lightgbm(text: str) -> Forest:
    """Read the trees out of a LightGBM model text.

    Raises:  RecordError for another text, and for trees with categories.
    """
    trees = []
    for part in text.split("\nTree=")[1:]:
        fields = dict(line.split("=", 1) for line in part.split("\n\n")[0].splitlines()[1:])
        if fields.get("num_cat", "0") != "0":
            raise fault("it splits by categories")
        try:
            trees.append(_lightgbm_tree(fields))
        except (KeyError, ValueError) as error:
            raise fault(f"not as LightGBM writes it: {error}") from None
    return Forest(trees)


def _lightgbm_tree(fields: Mapping[str, str]) -> Tree:
    def numbers(name: str, kind: type[Any]) -> tuple[Any, ...]:
        return tuple(kind(word) for word in fields[name].split())

    leaves = numbers("leaf_value", float)
    if len(leaves) == 1:
        return Tree((), (), (), (), leaves)
    return Tree(
        numbers("split_feature", int),
        numbers("threshold", float),
        numbers("left_child", int),
        numbers("right_child", int),
        leaves,
    )
