"""Walk trees for many rows in native code.

Twelve rows go down a tree together, so that none waits for another's memory. All take as many steps
as the deepest leaf: a leaf is its own child, and no branch depends on data.  A node is one
word: feature and child (16 bits each), and the value that it compares with, infinity for a leaf.

On a core of 3.7 GHz, a row and tree take about 10 ns; NumPy takes ten times that for trees that
ask for a hundred columns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.machine_code import Kind, Module, NativeArray, NativeFunction, Number, Variable
from tensorwright.runtime import LoadedFunction, load_function
from tensorwright.tuning.models.protocol import Features
from tensorwright.tuning.models.trees.compact_trees import CompactTrees

_BLOCK = 12
_KINDS = {4: Kind.F32, 8: Kind.F64}
_LOW = (1 << 16) - 1
_Sums: TypeAlias = NDArray[np.floating[Any]]


class TreeWalk:
    """Trees for native code.  Threads: any number may use them at once.

    leaves   their values (nodes,), if these are more exact than the 4-byte floats of `trees`; sums
             are of 8-byte floats then
    """

    def __init__(self, trees: CompactTrees, leaves: NDArray[np.float64] | None = None) -> None:
        is_leaf = trees.is_leaf
        limits = np.where(is_leaf, np.float32(np.inf), trees.values)
        nodes = limits.view(np.uint32).astype(np.uint64) << np.uint64(32)
        nodes |= trees.children.astype(np.uint64) << np.uint64(16)
        self.columns = trees.columns
        self._nodes = nodes | trees.features
        given: _Sums = trees.values if leaves is None else leaves
        self._outputs: _Sums = np.where(is_leaf, given, 0).astype(given.dtype)
        self._starts = trees.starts
        self._depths = _depths(trees, is_leaf)

    def sums(self, rows: Features) -> _Sums:
        """The sum of the trees' values for each row (rows, columns) -> (rows,).

        Equal on every machine: added tree by tree, in floats of one size.
        """
        count = len(rows)
        kind = self._outputs.dtype
        if not count or not len(self._starts):
            return np.zeros(count, kind)
        if rows.shape[1] != self.columns:
            raise ValueError(f"rows of {rows.shape[1]} columns, not {self.columns}")
        given = np.ascontiguousarray(rows, np.float32)
        if count < _BLOCK:
            given = np.concatenate([given, np.zeros((_BLOCK - count, self.columns), np.float32)])
        totals: _Sums = np.empty(len(given), kind)
        walk = _compiled(self.columns, kind.itemsize)
        walk.run(
            self._nodes.ctypes.data,
            self._outputs.ctypes.data,
            self._starts.ctypes.data,
            self._depths.ctypes.data,
            len(self._starts),
            given.ctypes.data,
            len(given),
            totals.ctypes.data,
        )
        return totals[:count]


def _depths(trees: CompactTrees, is_leaf: NDArray[np.bool_]) -> NDArray[np.int32]:
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
    kinds = (*[Kind.POINTER] * 4, Kind.I64, Kind.POINTER, Kind.I64, Kind.POINTER)
    function = NativeFunction(Module(), "tw_walk", kinds)
    nodes, outputs, starts, depths, trees, rows, count, sums = function.parameters
    kind = _KINDS[bytes_]
    last = count - _BLOCK
    with function.loop(count, step=_BLOCK) as block:
        first = block.smaller(last)
        row = rows.array(Kind.F32).part(first * columns)
        totals = [function.variable(kind, 0.0) for _ in range(_BLOCK)]
        with function.loop(trees) as tree:
            start = starts.array(Kind.I32)[tree].cast("zext", Kind.I64)
            depth = depths.array(Kind.I32)[tree].cast("zext", Kind.I64)
            leaf_nodes = _walked(function, nodes.array(Kind.I64).part(start), depth, row, columns)
            leaves = outputs.array(kind).part(start)
            for total, node in zip(totals, leaf_nodes, strict=True):
                total.set(total.now + leaves[node.now])
        for lane, total in enumerate(totals):
            sums.array(kind).part(first)[lane] = total.now
    function.finish()
    return load_function(function)


def _walked(
    function: NativeFunction, root: NativeArray, depth: Number, row: NativeArray, columns: int
) -> list[Variable]:
    """The nodes of a tree that a block of rows reaches after `depth` steps."""
    nodes = [function.variable(Kind.I64, 0) for _ in range(_BLOCK)]
    with function.loop(depth):
        for lane, number in enumerate(nodes):
            node = root[number.now]
            x = row[(node & _LOW) + lane * columns]
            limit = (node >> 32).cast("trunc", Kind.I32).cast("bitcast", Kind.F32)
            number.set(((node >> 16) & _LOW) + (x > limit).cast("zext", Kind.I64))
    return nodes
