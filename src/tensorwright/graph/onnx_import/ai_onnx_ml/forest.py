"""Trees as the arrays that `tree_leaves` goes down: one comparison, two neighbouring children.

At a node the way leads to the second child where a feature is greater than a limit, else, and for
NaN, to the first.  All branches of ONNX are written so:

    x <= v, NaN is false    -x > -after(v): the true child, else the false one
    x <  v, NaN is false    -x > -v: the true child, else the false one
    x >  v, NaN is false     x > v: the true child, else the false one
    x == v                   x > v: the false child, else x > before(v): the true, else the false

and so on, where after(v) is the next float. Between 0 and the least normal one there are no floats
here, since kernels take them for 0.  A negative feature -x is a column behind those of x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.ops import Array

LEAF = "LEAF"
MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
"""Of `TreeEnsemble` by their numbers; of older operators behind "BRANCH_"."""

_ORDERED = MODES[:4]
_Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Branches:
    """The nodes of all trees; children are numbers of nodes, and a leaf is its own.

    modes     numbers of MODES, which mean nothing for leaves
    on_nan    whether NaN counts as true
    members   for nodes of mode MEMBER, in their order, the numbers that count as true
    roots     the first node of each tree
    """

    features: _Numbers
    values: _Numbers
    modes: _Numbers
    on_true: _Numbers
    on_false: _Numbers
    on_nan: _Numbers
    is_leaf: _Numbers
    roots: _Numbers
    members: Sequence[_Numbers] = ()


@dataclass(frozen=True, slots=True)
class Forest:
    """What `tree_leaves` goes down.

    signs   1 where it reads x alone, -1 where -x alone, 0 where both, -x behind x
    nodes   the node of `Branches` that each of its own stands for
    depth   how many steps lead to the deepest leaf
    """

    features: Array
    limits: Array
    children: Array
    roots: Array
    signs: int
    nodes: Array
    depth: int


def forest_of(branches: Branches, columns: int) -> Forest:
    """The arrays for trees over so many features.

    Raises:  ValueError for trees that do not end.
    """
    rows = _Rows(branches)
    first, second, greater = rows.first, rows.second, ~rows.is_leaf
    roots = branches.roots
    base = np.full(len(first), -1)
    base[greater] = len(roots) + 2 * np.arange(int(greater.sum()))
    pairs = np.stack([first[greater], second[greater]], 1).reshape(-1)
    records = np.concatenate([roots, pairs]).astype(np.int64)
    here = np.arange(len(records))
    negative = rows.negative[records] & greater[records]
    plain = greater[records] & ~negative
    signs = 0 if negative.any() and plain.any() else -1 if negative.any() else 1
    features = np.where(greater[records], rows.features[records], 0)
    return Forest(
        features=(features + (columns * negative if signs == 0 else 0)).astype(np.int32),
        limits=np.where(greater[records], rows.limits[records], np.inf).astype(rows.limits.dtype),
        children=np.where(greater[records], base[records], here).astype(np.int32),
        roots=np.arange(len(roots), dtype=np.int32),
        signs=signs,
        nodes=np.where(greater[records], 0, records),
        depth=_depth(first, second, rows.is_leaf, roots),
    )


def _depth(first: _Numbers, second: _Numbers, is_leaf: _Numbers, roots: _Numbers) -> int:
    reached, depth = np.unique(roots), 0
    while not is_leaf[reached].all():
        inner = reached[~is_leaf[reached]]
        reached, depth = np.unique(np.concatenate([first[inner], second[inner]])), depth + 1
        if depth > len(first):
            raise ValueError("a node of its trees is reached from itself")
    return depth


class _Rows:
    """Nodes with one comparison each; nodes that need several are followed by more."""

    def __init__(self, branches: Branches) -> None:
        mode = np.asarray(branches.modes)
        yes, no, values = branches.on_true, branches.on_false, branches.values
        is_below = np.isin(mode, (0, 1))  # the true child lies below the limit
        reaches = np.isin(mode, (1, 2))  # the limit itself lies above it
        bound = np.where(reaches, _before(values), _at_most(values))
        low, high = np.where(is_below, yes, no), np.where(is_below, no, yes)
        self.negative = np.where(branches.on_nan, yes, no) != low
        self.limits = np.where(self.negative, -_after(bound), bound)
        self.first = np.where(self.negative, high, low)
        self.second = np.where(self.negative, low, high)
        self.features = np.asarray(branches.features)
        self.is_leaf = np.asarray(branches.is_leaf)
        self._more: list[tuple[int, float, int, int, bool]] = []
        members = iter(branches.members)
        for row in np.flatnonzero(~self.is_leaf & (mode > len(_ORDERED) - 1)).tolist():
            self._several(row, branches, members)
        if self._more:
            features, limits, first, second, negative = zip(*self._more, strict=True)
            self.features = np.append(self.features, features)
            self.limits = np.append(self.limits, np.asarray(limits, values.dtype))
            self.first, self.second = np.append(self.first, first), np.append(self.second, second)
            self.negative = np.append(self.negative, negative)
            self.is_leaf = np.append(self.is_leaf, np.zeros(len(limits), np.bool_))

    def _several(self, row: int, branches: Branches, members: Any) -> None:
        """Make a node of an equality or a membership of several comparisons."""
        mode = MODES[int(branches.modes[row])]
        yes, no = int(branches.on_true[row]), int(branches.on_false[row])
        on_nan = yes if branches.on_nan[row] or mode == "NEQ" else no
        values = np.unique(next(members)) if mode == "MEMBER" else branches.values[row : row + 1]
        equal, other = (no, yes) if mode == "NEQ" else (yes, no)
        if not len(values):
            raise ValueError("a node asks whether a number is a member of no numbers")
        self._among(int(self.features[row]), values, equal, other, on_nan)
        _, limit, first, second, negative = self._more.pop()
        self.limits[row], self.negative[row] = limit, negative
        self.first[row], self.second[row] = first, second

    def _among(self, feature: int, values: _Numbers, equal: int, other: int, on_nan: int) -> int:
        """The node of a search among sorted numbers; the last one that is added is its root."""
        middle = len(values) // 2
        if middle:
            below = self._among(feature, values[:middle], equal, other, on_nan)
            above = self._among(feature, values[middle:], equal, other, on_nan)
            split = _at_most(values[middle - 1])
            return self._add(feature, split, below, above, negative=False)
        (value,) = values
        last, before = _at_most(value), _before(value)
        if on_nan == other:  # x > value, else x > before(value), else less or NaN
            inner = self._add(feature, before, other, equal, negative=False)
            return self._add(feature, last, inner, other, negative=False)
        inner = self._add(feature, last, equal, other, negative=False)
        return self._add(feature, -_after(before), inner, other, negative=True)

    def _add(self, feature: int, limit: Any, first: int, second: int, *, negative: bool) -> int:
        self._more.append((feature, float(limit), first, second, negative))
        return len(self.first) + len(self._more) - 1


def _at_most(values: Any) -> Any:
    """The greatest float up to a value, of those that are 0 or not nearer to it than the least
    normal one: kernels take the others for 0.
    """
    least = np.finfo(values.dtype).smallest_normal
    rounded = np.where(values < 0, -least, 0)
    return np.where(np.abs(values) < least, np.where(values == 0, 0, rounded), values)


def _before(values: Any) -> Any:
    """The greatest of these floats below a value."""
    is_one_of_them = _at_most(values) == values
    return np.where(is_one_of_them, -_after(-values), _at_most(values)).astype(values.dtype)


def _after(values: Any) -> Any:
    """The next of these floats after one of them."""
    least = np.finfo(values.dtype).smallest_normal
    moved = np.nextafter(values, np.asarray(np.inf, values.dtype))
    return np.where(np.abs(moved) < least, np.where(values < 0, 0, least), moved)
