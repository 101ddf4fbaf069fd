"""Boosted trees whose values are added up: read from LightGBM's text, evaluated by native code.

The walk goes down all trees for twelve rows at once (`forest.py`), in 8-byte floats: a row and a
tree take some 10 ns, whatever the features that the trees ask for.

One tree of decisions, as LightGBM writes it.

Boosted trees as few arrays, in files and for native code.

From a node, a row goes to the node `child` of its tree if its feature is at most the node's value,
else to the one after that.  A leaf is its own child, and its value is the result of the tree. The
root is the first node of its tree, and a node comes before its children.

Walk trees for many rows in native code.

Twelve rows go down a tree together, so that none waits for another's memory. All take as many steps
as the deepest leaf: a leaf is its own child, and no branch depends on data.  A node is one
word: feature and child (16 bits each), and the value that it compares with, infinity for a leaf.

On a core of 3.7 GHz, a row and tree take about 10 ns; NumPy takes ten times that for trees that
ask for a hundred columns.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright import machine_code
from tensorwright.base import MachineError, RecordError
from tensorwright.runtime import LoadedFunction, load_function
from tensorwright.tuning.models.protocol import TREES_MODULE, Features, Scores

MOST_LEAVES = 1 << 15  # so that 16 bits can number the nodes, leaves included
_GREATEST = sys.float_info.max


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
            raise fault(f"{len(self.leaves)} leaves do not match its nodes")
        if min(self.features, default=0) < 0:
            raise fault("a feature has a negative number")
        expected = [*range(-len(self.leaves), 0), *range(1, nodes)]
        if sorted((*self.left, *self.right)) != expected * (nodes > 0):
            raise fault("its nodes do not form a tree")
        if any(child >= 0 and child <= n for n, child in self._children()):
            raise fault("a node comes before its parent")
        numbers = (*self.thresholds, *self.leaves)
        if not all(-_GREATEST <= number <= _GREATEST for number in numbers):
            raise fault("a number is not finite")

    def _children(self) -> Iterator[tuple[int, int]]:
        yield from enumerate(self.left)
        yield from enumerate(self.right)


def fault(reason: str) -> RecordError:
    """The error for a tree."""
    return RecordError(stage="cost model", where="tree", reason=reason, remedy="train it again")


_MOST_NODES = 1 << 16  # of one tree, numbered by 16 bits

ARRAYS = {
    "starts": np.dtype("<u4"),
    "features": np.dtype("<u2"),
    "children": np.dtype("<u2"),
    "values": np.dtype("<f4"),
}
"""The types of a forest's arrays in a file, whatever the machine."""
_LEAVES = "leaves"
_BLOCK = 12  # rows that go down a tree together
_KINDS = {4: machine_code.Kind.F32, 8: machine_code.Kind.F64}
_Sums: TypeAlias = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees whose values are added up.  Threads: any number may use them at once.

    columns    of a row
    starts     (trees,) u4, the number of each root among all nodes
    features, children, values   (nodes,) u2, u2, f4; children are numbered within their tree
    leaves     (nodes,) f8, the values of leaves more exactly: sums are of 8-byte floats then
    Raises:    RecordError for arrays that are not trees.
    """

    columns: int
    starts: NDArray[np.uint32]
    features: NDArray[np.uint16]
    children: NDArray[np.uint16]
    values: NDArray[np.float32]
    leaves: NDArray[np.float64] | None = None
    _tables: tuple[NDArray[np.uint64], _Sums, NDArray[np.int32]] = field(init=False, repr=False)

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
        own = np.arange(nodes) - np.repeat(self.starts, sizes)
        is_leaf: NDArray[np.bool_] = self.children == own
        beyond = self.children.astype(np.int64) + 1 >= np.repeat(sizes, sizes)
        if (~is_leaf & (beyond | (self.children < own))).any():
            raise _fault("a node does not come before its children")
        if (self.features >= self.columns).any():
            raise _fault("it asks for a column that does not exist")
        if not np.isfinite(self.values).all():
            raise _fault("a number is not finite")
        object.__setattr__(self, "_tables", self._for_the_walk(is_leaf))

    def _for_the_walk(
        self, is_leaf: NDArray[np.bool_]
    ) -> tuple[NDArray[np.uint64], _Sums, NDArray[np.int32]]:
        """Nodes as words, values of leaves, and the number of steps to each tree's deepest leaf."""
        leaves: _Sums = self.values
        if self.leaves is not None:
            leaves = self.leaves
            is_alike = leaves.dtype == np.float64 and leaves.shape == self.values.shape
            if not is_alike or not np.isfinite(leaves).all():
                raise _fault("the values of its leaves are not numbers of its nodes")
        limits = np.where(is_leaf, np.float32(np.inf), self.values)
        nodes = limits.view(np.uint32).astype(np.uint64) << np.uint64(32)
        nodes |= self.children.astype(np.uint64) << np.uint64(16)
        outputs: _Sums = np.where(is_leaf, leaves, 0).astype(leaves.dtype)
        return nodes | self.features, outputs, _depths(self, is_leaf)

    @classmethod
    def of(cls, trees: Sequence[Tree], columns: int) -> Self:
        """The forest of some trees, for rows of `columns` columns, with exact leaves."""
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
            nodes.numbers,
        )

    @property
    def rounded(self) -> Self:
        """The forest with leaves of 4 bytes, for small files and fast sums."""
        return replace(self, leaves=None)

    @classmethod
    def of_arrays(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        columns: int,
        prefix: str = "",
        *,
        is_rounded: bool = False,
    ) -> Self:
        """The inverse of `arrays`, from a file.

        Raises:  KeyError and TypeError for arrays that are missing or of other types, RecordError
                 for those that are not trees.
        """
        parts = [arrays[prefix + name] for name in ARRAYS]
        for part, kind in zip(parts, ARRAYS.values(), strict=True):
            if part.dtype != kind:
                raise TypeError(f"an array of {part.dtype}, not {kind}")
        leaves = None if is_rounded else np.ascontiguousarray(arrays[prefix + _LEAVES])
        starts, features, children, values = map(np.ascontiguousarray, parts)
        return cls(columns, starts, features, children, values, leaves)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a file, each by its name."""
        arrays = {name: getattr(self, name).astype(kind) for name, kind in ARRAYS.items()}
        return arrays if self.leaves is None else {**arrays, _LEAVES: self.leaves.astype("<f8")}

    def __len__(self) -> int:
        return len(self.starts)

    def sums(self, rows: Features) -> _Sums:
        """The sum of the trees' values for each row (rows, columns) -> (rows,).

        Equal on every machine: added tree by tree, in floats of one size.
        """
        nodes, outputs, depths = self._tables
        count = len(rows)
        if not count or not len(self):
            return np.zeros(count, outputs.dtype)
        if rows.shape[1] != self.columns:
            raise ValueError(f"rows of {rows.shape[1]} columns, not {self.columns}")
        given = np.ascontiguousarray(rows, np.float32)
        if count < _BLOCK:
            given = np.concatenate([given, np.zeros((_BLOCK - count, self.columns), np.float32)])
        totals: _Sums = np.empty(len(given), outputs.dtype)
        _compiled(self.columns, outputs.dtype.itemsize).run(
            nodes.ctypes.data,
            outputs.ctypes.data,
            self.starts.ctypes.data,
            depths.ctypes.data,
            len(self),
            given.ctypes.data,
            len(given),
            totals.ctypes.data,
        )
        return totals[:count]

    def scores(self, features: Features) -> Scores:
        """The sum over the rows of each program: (programs, rows, columns) -> (programs,)."""
        programs, rows, columns = features.shape
        values = self.sums(features.reshape(programs * rows, columns))
        sums: Scores = values.reshape(programs, rows).sum(axis=1, dtype=np.float64)
        return sums


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


_LOW = (1 << 16) - 1


def _depths(trees: Forest, is_leaf: NDArray[np.bool_]) -> NDArray[np.int32]:
    """(trees,): the number of steps to the deepest leaf of each."""
    depths = np.zeros(len(trees), np.int32)
    tree, node = np.arange(len(trees)), trees.starts.astype(np.int64)
    for depth in range(len(trees.features)):
        inner = ~is_leaf[node]
        tree, node = tree[inner], node[inner]
        if not len(tree):
            break
        depths[tree] = depth + 1
        child = trees.starts[tree].astype(np.int64) + trees.children[node]
        tree, node = np.concatenate([tree, tree]), np.concatenate([child, child + 1])
    return depths


@lru_cache(maxsize=32)
def _compiled(columns: int, bytes_: int) -> LoadedFunction:
    """The walk for rows of `columns` and sums of `bytes_`, compiled once in each process."""
    kinds = (
        *[machine_code.Kind.POINTER] * 4,
        machine_code.Kind.I64,
        machine_code.Kind.POINTER,
        machine_code.Kind.I64,
        machine_code.Kind.POINTER,
    )
    function = machine_code.NativeFunction(machine_code.Module(), "tw_walk", kinds)
    nodes, outputs, starts, depths, trees, rows, count, sums = function.parameters
    kind = _KINDS[bytes_]
    last = count - _BLOCK
    with function.loop(count, step=_BLOCK) as block:
        first = block.smaller(last)
        row = rows.array(machine_code.Kind.F32).part(first * columns)
        totals = [function.variable(kind, 0.0) for _ in range(_BLOCK)]
        with function.loop(trees) as tree:
            start = starts.array(machine_code.Kind.I32)[tree].cast("zext", machine_code.Kind.I64)
            depth = depths.array(machine_code.Kind.I32)[tree].cast("zext", machine_code.Kind.I64)
            leaf_nodes = _walked(
                function, nodes.array(machine_code.Kind.I64).part(start), depth, row, columns
            )
            leaves = outputs.array(kind).part(start)
            for total, node in zip(totals, leaf_nodes, strict=True):
                total.set(total.now + leaves[node.now])
        for lane, total in enumerate(totals):
            sums.array(kind).part(first)[lane] = total.now
    function.finish()
    return load_function(function)


def _walked(
    function: machine_code.NativeFunction,
    root: machine_code.NativeArray,
    depth: machine_code.Number,
    row: machine_code.NativeArray,
    columns: int,
) -> list[machine_code.Variable]:
    """The nodes of a tree that a block of rows reaches after `depth` steps."""
    nodes = [function.variable(machine_code.Kind.I64, 0) for _ in range(_BLOCK)]
    with function.loop(depth):
        for lane, number in enumerate(nodes):
            node = root[number.now]
            x = row[(node & _LOW) + lane * columns]
            limit = (
                (node >> 32)
                .cast("trunc", machine_code.Kind.I32)
                .cast("bitcast", machine_code.Kind.F32)
            )
            number.set(((node >> 16) & _LOW) + (x > limit).cast("zext", machine_code.Kind.I64))
    return nodes


def parse_lightgbm(text: str, columns: int) -> Forest:
    """Read the trees out of a LightGBM model text, for rows of `columns` columns.

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
    return Forest.of(trees, columns)


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


def lightgbm_grow(stage: str) -> Callable[..., Forest]:
    """`grow` of `lightgbm_trees.py`.

    Raises:  MachineError where LightGBM cannot be loaded.
    """
    try:
        grow: Callable[..., Forest] = importlib.import_module(TREES_MODULE).grow
    except (ImportError, OSError) as error:
        raise MachineError(
            stage=stage,
            where="training",
            reason=f"LightGBM cannot be loaded ({error})",
            remedy="install lightgbm and libgomp",
        ) from None
    return grow
