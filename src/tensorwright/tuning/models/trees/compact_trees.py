"""Boosted trees as few arrays, in files and for native code.

From a node, a row goes to the node `child` of its tree if its feature is at most the node's value,
else to the one after that.  A leaf is its own child, and its value is the result of the tree. The
root is the first node of its tree, and a node comes before its children.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import RecordError
from tensorwright.tuning.models.trees.tree import Tree

_MOST_NODES = 1 << 16  # of one tree, numbered by 16 bits

ARRAYS = {
    "starts": np.dtype("<u4"),
    "features": np.dtype("<u2"),
    "children": np.dtype("<u2"),
    "values": np.dtype("<f4"),
}
"""The types of a forest's arrays in a file, whatever the machine."""


@dataclass(frozen=True, slots=True, eq=False)
class CompactTrees:
    """Trees whose values are added up.

    columns    of a row
    starts     (trees,) u4, the number of each root among all nodes
    features, children, values   (nodes,) u2, u2, f4; children are numbered within their tree
    Raises:    RecordError for arrays that are not trees.
    """

    columns: int
    starts: NDArray[np.uint32]
    features: NDArray[np.uint16]
    children: NDArray[np.uint16]
    values: NDArray[np.float32]

    def __post_init__(self) -> None:
        arrays: tuple[tuple[NDArray[Any], type], ...] = (
            (self.starts, np.uint32),
            (self.features, np.uint16),
            (self.children, np.uint16),
            (self.values, np.float32),
        )
        if any(array.dtype != kind or array.ndim != 1 for array, kind in arrays):
            raise _fault("an array has another type than it should")
        nodes = len(self.features)
        if len(self.children) != nodes or len(self.values) != nodes:
            raise _fault("its arrays do not match")
        sizes = np.diff(np.append(self.starts.astype(np.int64), nodes))
        if self.starts[:1].any() or (sizes < 1).any() or (sizes > _MOST_NODES).any():
            raise _fault("its roots are not in order")
        if nodes and not len(self.starts):
            raise _fault("there are nodes of no tree")
        self._check_nodes(sizes)

    def _check_nodes(self, sizes: NDArray[np.int64]) -> None:
        own = np.arange(len(self.features)) - np.repeat(self.starts, sizes)
        is_test = self.children != own
        beyond = self.children.astype(np.int64) + 1 >= np.repeat(sizes, sizes)
        if (is_test & (beyond | (self.children < own))).any():
            raise _fault("a node does not come before its children")
        if (self.features >= self.columns).any():
            raise _fault("it asks for a column that does not exist")
        if not np.isfinite(self.values).all():
            raise _fault("a number is not finite")

    @classmethod
    def of(cls, trees: Sequence[Tree], columns: int) -> CompactTrees:
        """The trees of a forest, for rows of `columns` columns."""
        nodes = _Nodes(trees)
        if nodes.features.max(initial=0) >= max(columns, 1):
            raise _fault("it asks for a column that does not exist")
        numbers = nodes.numbers.astype(np.float32)
        is_above = ~nodes.is_leaf & (numbers > nodes.numbers)
        # The largest 4-byte float that is not above a threshold separates the same numbers.
        numbers[is_above] = np.nextafter(numbers[is_above], np.float32(-np.inf))
        return cls(
            columns,
            nodes.starts.astype(np.uint32),
            nodes.features.astype(np.uint16),
            nodes.children.astype(np.uint16),
            numbers,
        )

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], columns: int, prefix: str = "") -> Self:
        """The inverse of `arrays`, from a file.

        Raises:  KeyError and TypeError for arrays that are missing or of other types, RecordError
                 for those that are not trees.
        """
        parts = [arrays[prefix + name] for name in ARRAYS]
        for part, kind in zip(parts, ARRAYS.values(), strict=True):
            if part.dtype != kind:
                raise TypeError(f"an array of {part.dtype}, not {kind}")
        starts, features, children, values = (np.ascontiguousarray(part) for part in parts)
        return cls(columns, starts, features, children, values)

    def arrays(self, prefix: str = "") -> dict[str, NDArray[Any]]:
        """The arrays of a file, each by its name."""
        return {prefix + name: getattr(self, name).astype(kind) for name, kind in ARRAYS.items()}

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """(nodes,): which nodes are leaves."""
        sizes = np.diff(np.append(self.starts.astype(np.int64), len(self.features)))
        own = np.arange(len(self.features)) - np.repeat(self.starts, sizes)
        flags: NDArray[np.bool_] = self.children == own
        return flags


def leaf_values(trees: Sequence[Tree]) -> NDArray[np.float64]:
    """The values of leaves in 8-byte floats, as `CompactTrees.of` numbers them: (nodes,)."""
    return _Nodes(trees).numbers


class _Nodes:
    """The nodes of some trees: a tree's root, then two nodes for each test, its children.

    starts                      (trees,)
    features, children, numbers, is_leaf   (nodes,), numbers are thresholds and values of leaves
    """

    def __init__(self, trees: Sequence[Tree]) -> None:
        tests = np.array([len(tree.features) for tree in trees], np.int64)
        sizes = 2 * tests + 1
        self.starts = np.cumsum(sizes) - sizes
        own = _counted(sizes)
        test_starts, leaf_starts = np.cumsum(tests) - tests, np.cumsum(tests + 1) - tests - 1
        # the number of each node in its tree: of a test, or ~ of a leaf
        who = np.where(np.repeat(tests, sizes) > 0, 0, -1)
        places = np.repeat(self.starts, tests) + 2 * _counted(tests) + 1
        who[places] = _joined([tree.left for tree in trees], np.int64)
        who[places + 1] = _joined([tree.right for tree in trees], np.int64)
        self.is_leaf = who < 0
        at = np.repeat(test_starts, sizes) + who
        self.features = np.zeros(len(who), np.int64)
        self.numbers = np.zeros(len(who))
        is_test = ~self.is_leaf
        self.features[is_test] = _joined([tree.features for tree in trees], np.int64)[at[is_test]]
        self.numbers[is_test] = _joined([t.thresholds for t in trees], np.float64)[at[is_test]]
        at = np.repeat(leaf_starts, sizes) + ~who
        leaves = _joined([tree.leaves for tree in trees], np.float64)
        self.numbers[self.is_leaf] = leaves[at[self.is_leaf]]
        self.children = np.where(self.is_leaf, own, 2 * who + 1)


def _joined(parts: Sequence[tuple[float, ...]], kind: type[Any]) -> NDArray[Any]:
    """The numbers of all parts, one after the other."""
    return np.fromiter(chain.from_iterable(parts), kind)


def _counted(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, ... for each of some sizes, one after the other."""
    numbers: NDArray[np.int64] = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return numbers


def _fault(reason: str) -> RecordError:
    return RecordError(stage="time model", where="trees", reason=reason, remedy="train it again")
