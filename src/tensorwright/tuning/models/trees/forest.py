"""Boosted trees as arrays: read from LightGBM's text, evaluated by NumPy for many rows at once.

A test of a tree that fails rules out the leaves to its left.  So each row has for each tree a set
of leaves that are left, as bits; for one feature, all tests of all trees that a value fails are
known from its place among the thresholds, and their sets are intersected beforehand.  The leaf
that a row ends in is the first one left.  A feature costs one look-up, however many trees ask for
it, and one that is the same for all rows costs nothing.

Source:   Lucchese et al., QuickScorer, SIGIR 2015.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import RecordError
from tensorwright.tuning.models.protocol import Features, Scores

MOST_LEAVES = 32
_BLOCK = 1024
_ALL = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree.  A row goes to `left` where its feature is at most the threshold.

    features, thresholds, left, right   one for each inner node, the root first; a child that is
                                        negative is the leaf ~child
    leaves                              the value of each leaf
    """

    features: tuple[int, ...]
    thresholds: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    leaves: tuple[float, ...]

    def __post_init__(self) -> None:
        nodes = len(self.leaves) - 1
        sides = (self.features, self.thresholds, self.left, self.right)
        if not 1 <= len(self.leaves) <= MOST_LEAVES or any(len(side) != nodes for side in sides):
            raise _fault(f"{len(self.leaves)} leaves do not match its nodes")
        if min(self.features, default=0) < 0:
            raise _fault("a feature has a negative number")
        expected = [*range(-len(self.leaves), 0), *range(1, nodes)]
        if sorted((*self.left, *self.right)) != expected * (nodes > 0):
            raise _fault("its nodes do not form a tree")
        if any(child >= 0 and child <= n for n, child in self._children()):
            raise _fault("a node comes before its parent")
        if not np.isfinite([*self.thresholds, *self.leaves]).all():
            raise _fault("a number is not finite")

    def _children(self) -> Iterator[tuple[int, int]]:
        yield from enumerate(self.left)
        yield from enumerate(self.right)

    def in_order(self) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """The leaves from left to right, and which of them lie left of each node, as a range."""
        order: list[int] = []
        ranges = [(0, 0)] * len(self.features)
        work: list[tuple[int, bool]] = [(0 if self.features else -1, False)]
        while work:
            node, is_left_done = work.pop()
            if node < 0:
                order.append(~node)
            elif is_left_done:
                ranges[node] = (ranges[node][0], len(order))
                work.append((self.right[node], False))
            else:
                ranges[node] = (len(order), len(order))
                work += [(node, True), (self.left[node], False)]
        return tuple(order), tuple(ranges)


class Forest:
    """Trees whose values are added up."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.trees = tuple(trees)
        self._leaves = np.zeros((len(trees), MOST_LEAVES))
        tests: dict[int, list[tuple[float, int, np.uint32]]] = {}
        for number, tree in enumerate(trees):
            order, ranges = tree.in_order()
            self._leaves[number, : len(order)] = [tree.leaves[leaf] for leaf in order]
            for feature, threshold, (low, high) in zip(
                tree.features, tree.thresholds, ranges, strict=True
            ):
                ruled_out = ((1 << (high - low)) - 1) << low
                tests.setdefault(feature, []).append((threshold, number, ~np.uint32(ruled_out)))
        self._tables = {feature: self._table(found) for feature, found in sorted(tests.items())}

    @property
    def most_feature(self) -> int:
        """The highest number of a feature that is asked for; -1 for none."""
        return max(self._tables, default=-1)

    def _table(
        self, tests: list[tuple[float, int, np.uint32]]
    ) -> tuple[NDArray[np.float64], NDArray[np.uint32]]:
        """The thresholds of a feature, and what is left of each tree between them."""
        thresholds = np.unique([threshold for threshold, _, _ in tests])
        left = np.full((len(thresholds) + 1, len(self.trees)), _ALL)
        for threshold, tree, mask in tests:
            left[int(np.searchsorted(thresholds, threshold)) + 1, tree] &= mask
        return thresholds, np.bitwise_and.accumulate(left, axis=0)

    def values(self, rows: Features) -> NDArray[np.float64]:
        """The sum of the trees' values for each row (rows, features) -> (rows,)."""
        found = np.zeros(len(rows))
        if not self.trees or not len(rows):
            return found
        common = np.full(len(self.trees), _ALL)
        varying: list[tuple[NDArray[np.uint32], NDArray[np.intp]]] = []
        for feature, (thresholds, table) in self._tables.items():
            column = np.ascontiguousarray(rows[:, feature])
            if (column == column[0]).all():
                common &= table[np.searchsorted(thresholds, column[0])]
            else:
                varying.append((table, np.searchsorted(thresholds, column)))
        for start in range(0, len(rows), _BLOCK):
            part = slice(start, min(start + _BLOCK, len(rows)))
            left = np.repeat(common[None], part.stop - part.start, axis=0)
            for table, places in varying:
                left &= table[places[part]]
            found[part] = self._sum(left)
        return found

    def scores(self, features: Features) -> Scores:
        """The sum over the rows of each program: (programs, rows, columns) -> (programs,)."""
        found = np.zeros(len(features))
        for row in range(features.shape[1]):
            found += self.values(features[:, row])
        return found

    def _sum(self, left: NDArray[np.uint32]) -> NDArray[np.float64]:
        """(rows, trees), the sets of leaves that are left -> (rows,)."""
        first = left & (~left + np.uint32(1))
        leaf = (first.astype(np.float32).view(np.int32) >> 23) - 127
        leaf += np.arange(len(self.trees), dtype=np.int32) * MOST_LEAVES
        found: NDArray[np.float64] = self._leaves.ravel()[leaf].sum(axis=1)
        return found

    def to_data(self) -> list[dict[str, list[float]]]:
        """The trees as JSON knows values."""
        return [{name: list(getattr(tree, name)) for name in Tree.__slots__} for tree in self.trees]

    @classmethod
    def from_data(cls, data: object) -> Forest:
        """What `to_data` gave.  Raises: RecordError for anything else."""
        if not isinstance(data, list):
            raise _fault("the trees are no list")
        return cls([_tree(fields) for fields in data])


def _tree(fields: object) -> Tree:
    if not isinstance(fields, dict) or set(fields) != set(Tree.__slots__):
        raise _fault("its fields are not those of a tree")
    for name, numbers in fields.items():
        kinds = (int, float) if name in ("thresholds", "leaves") else (int,)
        if not isinstance(numbers, list) or any(type(number) not in kinds for number in numbers):
            raise _fault(f"{name} holds what is no number")
    return Tree(**{name: tuple(numbers) for name, numbers in fields.items()})


def parse_lightgbm(text: str) -> Forest:
    """Read the trees out of a LightGBM model text.

    Raises:  RecordError where it is none, or has categories.
    """
    trees = []
    for part in text.split("\nTree=")[1:]:
        fields = dict(line.split("=", 1) for line in part.split("\n\n")[0].splitlines()[1:])
        if fields.get("num_cat", "0") != "0":
            raise _fault("it splits by categories")
        try:
            trees.append(_lightgbm_tree(fields))
        except (KeyError, ValueError) as error:
            raise _fault(f"not as LightGBM writes it: {error}") from None
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


def _fault(reason: str) -> RecordError:
    return RecordError(stage="cost model", where="tree", reason=reason, remedy="train it again")
