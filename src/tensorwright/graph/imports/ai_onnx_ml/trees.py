"""Ensembles of trees: the leaf of each row in each tree, then sums of what the leaves say.

Trees as the arrays that `tree_leaves` goes down: one comparison, two neighbouring children.

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

from tensorwright.base import DType
from tensorwright.graph.imports.ai_onnx_ml.scores import (
    added,
    label_of_greatest,
    label_of_two,
    labels_of,
    numbers,
    rows_of,
    transformed,
    two_scores,
)
from tensorwright.graph.imports.call import Call, Results, Table
from tensorwright.ops import Array, number_of

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
    """The arrays for trees over so many features."""
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
    """The greatest float up to a value that is 0 or normal: kernels take the others for 0."""
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


_WIDE = frozenset((DType.F32, DType.F64))
_FOLDS = {"SUM": "reduce_sum", "AVERAGE": "reduce_sum", "MIN": "reduce_min", "MAX": "reduce_max"}
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")  # of `TreeEnsemble` by their numbers
_POSTS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_EMPTY = {"SUM": 0.0, "AVERAGE": 0.0, "MIN": np.inf, "MAX": -np.inf}


@dataclass(frozen=True, slots=True)
class _Votes:
    """What leaves say: node `nodes[k]` gives `weights[k]` to the target `targets[k]`."""

    nodes: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[Any]


class _Ensemble:
    """The leaves that rows reach, and what they say."""

    def __init__(self, call: Call, x: str, branches: Branches, votes: _Votes) -> None:
        self.call, self.votes = call, votes
        columns = number_of(call.sizes(x)[1])
        forest = forest_of(branches, columns)
        if not branches.is_leaf.all() and int(branches.features.max()) >= columns:
            raise call.unsupported(f"its trees read feature {branches.features.max()} of {columns}")
        if forest.signs <= 0:
            negative = call.add("neg", x)
            x = call.add("concat", x, negative, axis=1) if forest.signs == 0 else negative
        self.dtype = call.dtype_of(x)
        arrays = (forest.features, forest.limits, forest.children, forest.roots)
        self.leaves = call.add("tree_leaves", x, *arrays, depth=forest.depth)
        self.forest, self.trees = forest, len(forest.roots)

    def sums(self, targets: int, aggregate: str) -> str:
        """What the leaves of a row say together, (rows, targets); targets without votes have 0."""
        call, votes, used = self.call, self.votes, self.forest.nodes
        fold, empty = _FOLDS[aggregate], _EMPTY[aggregate]
        here = votes.nodes <= used.max()  # no way leads to the others
        at = votes.nodes[here], votes.targets[here]
        table = np.full((int(used.max()) + 1, targets), empty, self.dtype.numpy)
        if empty:
            table[at] = votes.weights[here]
        else:
            np.add.at(table, at, votes.weights[here])
        table = table[used, 0] if targets == 1 else table[used]
        rows = call.take(table, self.leaves)
        total = call.add(fold, rows, axes=(1,), keepdims=targets == 1)
        if aggregate == "AVERAGE":
            total = call.add("div", total, call.as_array(self.trees, self.dtype))
        if empty:  # no leaf of the row says anything of the target
            nothing = call.add("equal", total, call.as_array(empty, self.dtype))
            total = call.add("where", nothing, call.as_array(0, self.dtype), total)
        return total


def _older(call: Call, dtype: DType, role: str) -> tuple[Branches, _Votes]:
    """The trees of a classifier or a regressor; `role` names the attributes of its votes."""
    trees, ids = (
        numbers(call, "nodes_treeids", DType.I64),
        numbers(call, "nodes_nodeids", DType.I64),
    )
    names = call.attributes.get("nodes_modes", ())
    modes = np.asarray([str(each).removeprefix("BRANCH_") for each in names])  # type: ignore[union-attr]
    unknown = set(modes.tolist()) - {LEAF, *MODES}
    if unknown or len(modes) != len(trees):
        raise call.unsupported(f"its nodes_modes are not those of ONNX: {sorted(unknown)}")
    order = np.lexsort((ids, trees))
    width = int(ids.max(initial=0)) + 1
    keys = (trees * width + ids)[order]

    def row_of(tree: NDArray[Any], node: NDArray[Any]) -> NDArray[Any]:
        wanted = tree * width + node
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        if not np.array_equal(keys[at], wanted):
            raise call.unsupported("one of its nodes is named, and is not there")
        return np.asarray(order[at])

    here, is_leaf = np.arange(len(trees)), modes == LEAF
    children = [here.copy(), here.copy()]
    for child, side in zip(children, ("true", "false"), strict=True):
        inner = ~is_leaf
        child[inner] = row_of(trees[inner], numbers(call, f"nodes_{side}nodeids", DType.I64)[inner])
    missing = numbers(call, "nodes_missing_value_tracks_true", DType.BOOL)
    branches = Branches(
        features=numbers(call, "nodes_featureids", DType.I64),
        values=numbers(call, "nodes_values", dtype),
        modes=np.select([modes == each for each in MODES], list(range(len(MODES))), 0),
        on_true=children[0],
        on_false=children[1],
        on_nan=missing if len(missing) else np.zeros(len(trees), np.bool_),
        is_leaf=is_leaf,
        roots=np.sort(np.unique(trees, return_index=True)[1]),
    )
    of = (numbers(call, f"{role}_{each}", DType.I64) for each in ("treeids", "nodeids", "ids"))
    tree, node, target = of
    return branches, _Votes(row_of(tree, node), target, numbers(call, f"{role}_weights", dtype))


def _regressor(call: Call) -> Results:
    x, targets = rows_of(call, keep=_WIDE), call.integer("n_targets", 1)
    branches, votes = _older(call, call.dtype_of(x), "target")
    aggregate, post = call.text("aggregate_function", "SUM"), call.text("post_transform", "NONE")
    ensemble = _Ensemble(call, x, branches, votes)
    sums = ensemble.sums(targets, aggregate)
    base = numbers(call, "base_values", ensemble.dtype)
    if len(base):
        base = np.where(np.isin(np.arange(targets), votes.targets), base, 0).astype(base.dtype)
    return (_of_targets(call, call.cast(added(call, sums, base), DType.F32), targets, post),)


def _of_targets(call: Call, sums: str, targets: int, post: str) -> str:
    """Sums after a post transform: of one target, PROBIT alone means something."""
    return transformed(call, sums, post if targets > 1 or post == "PROBIT" else "NONE")


def _ensemble(call: Call) -> Results:
    """TreeEnsemble: leaves have numbers of their own, which follow those of the nodes here."""
    x = rows_of(call, keep=_WIDE)
    dtype, targets = call.dtype_of(x), call.integer("n_targets", 1)
    features = numbers(call, "nodes_featureids", DType.I64)
    weights, of = numbers(call, "leaf_weights", dtype), numbers(call, "leaf_targetids", DType.I64)
    nodes, leaves = len(features), len(weights)
    own = np.arange(nodes + leaves)
    children = []
    for side in ("true", "false"):
        child = numbers(call, f"nodes_{side}nodeids", DType.I64)
        child = child + nodes * numbers(call, f"nodes_{side}leafs", DType.I64)
        children.append(np.append(child, own[nodes:]))
    if any((each < 0).any() or (each >= nodes + leaves).any() for each in children):
        raise call.unsupported("one of its nodes is named, and is not there")
    missing = numbers(call, "nodes_missing_value_tracks_true", DType.BOOL)
    members = numbers(call, "membership_values", dtype)
    none = np.zeros(leaves)
    branches = Branches(
        features=np.append(features, none.astype(np.int64)),
        values=np.append(numbers(call, "nodes_splits", dtype), none.astype(dtype.numpy)),
        modes=np.append(numbers(call, "nodes_modes", DType.U8), none.astype(np.uint8)),
        on_true=children[0],
        on_false=children[1],
        on_nan=np.append(missing if len(missing) else np.zeros(nodes, np.bool_), none != 0),
        is_leaf=own >= nodes,
        roots=numbers(call, "tree_roots", DType.I64),
        members=[
            each[~np.isnan(each)]
            for each in np.split(members, (np.flatnonzero(np.isnan(members)) + 1))
        ],
    )
    ensemble = _Ensemble(call, x, branches, _Votes(own[nodes:], of, weights))
    aggregate = _AGGREGATES[call.integer("aggregate_function", 1)]
    sums = ensemble.sums(targets, aggregate)
    post = _POSTS[call.integer("post_transform", 0)]
    return (_of_targets(call, sums, targets, post),)


def _classifier(call: Call) -> Results:
    labels, post = labels_of(call, "classlabels_int64s"), call.text("post_transform", "NONE")
    x, classes = rows_of(call, keep=_WIDE), len(labels)
    branches, votes = _older(call, call.dtype_of(x), "class")
    ensemble = _Ensemble(call, x, branches, votes)
    base = numbers(call, "base_values", ensemble.dtype)
    sums = ensemble.sums(classes, "SUM")
    if classes > 2:
        scores = added(call, sums, base)
        voted = (
            np.ones(classes, np.bool_) if len(base) else np.isin(np.arange(classes), votes.targets)
        )
        chosen = scores
        if not voted.all():  # a class without votes has 0, and is never chosen
            chosen = call.add("where", voted, scores, call.as_array(-np.inf, ensemble.dtype))
        label = label_of_greatest(call, chosen, labels)
        return label, transformed(call, call.cast(scores, DType.F32), post)
    if classes == 1:
        label = label_of_two(call, sums, 0, np.array([0, 1]))
        return label, call.cast(added(call, sums, base), DType.F32)
    return _of_two_classes(call, sums, votes, labels, base, post)


def _of_two_classes(
    call: Call, sums: str, votes: _Votes, labels: Array, base: Array, post: str
) -> Results:
    """Two classes, of which often one alone has votes: the sums (rows, 2).

    As ONNX Runtime has it: the positive class wins above 0.5 where no weight is negative, else
    above 0; where both have votes, the label is 0 or 1, whatever the classes are called.
    """
    ids = set(votes.targets.tolist())
    is_positive = not np.any(np.less(votes.weights, 0))
    limit = 0.5 if is_positive and len(ids) == 1 else 0.0
    first, second = (call.piece(sums, 1, at, at + 1) for at in (0, 1))
    if ids == {0}:
        score = added(call, first, base[:1])
        label = label_of_two(call, score, limit, labels)
        score = call.cast(score, DType.F32)
        if len(base) < 2:
            return label, two_scores(call, score, post, of_one=is_positive)
        return label, transformed(
            call, call.add("concat", score, call.add("sub", score, score), axis=1), post
        )
    if len(base) == 2:
        second = added(call, first, base[1:])
    if ids == {0, 1}:
        labels = np.array([0, 1])
        first = call.add("neg", second) if len(base) == 2 else added(call, first, base)
    label = label_of_two(call, second, limit, labels)
    scores = call.cast(call.add("concat", first, second, axis=1), DType.F32)
    return label, transformed(call, scores, post)


TREES: Table = (
    ("TreeEnsembleClassifier", _classifier),
    ("TreeEnsembleRegressor", _regressor),
    ("TreeEnsemble", _ensemble),
)
