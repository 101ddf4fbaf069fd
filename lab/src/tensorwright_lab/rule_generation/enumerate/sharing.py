"""Terms as sets of operators: what two terms share is counted once.

    ewadd(relu(x), relu(x))      the operators {ewadd, relu}: relu counts once
    union_size(nodes, nodes)     2 for relu(x) with itself
    Sharing(table, 3).first      classes that have three operators together, more one by one

An operator of a term is a hash of what is applied to which classes; both halves of a split are one
operator.  `ClassTable.nodes` holds the set of each class, its own operator last, zeros after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewriting.operators import operator_named
from tensorwright_lab.rule_generation.enumerate.classes import (
    MAX_OPERATORS,
    Batch,
    ClassTable,
    Places,
    distinct,
)
from tensorwright_lab.rule_generation.enumerate.renaming import mix
from tensorwright_lab.rule_generation.preset import Preset

Nodes = NDArray[np.uint64]
_BLOCK = 1 << 18


def families(preset: Preset) -> NDArray[np.int64]:
    """For each application the first of its operator: both outputs of a split are one."""
    first: dict[tuple[Any, ...], int] = {}
    firsts = []
    for at, each in enumerate(preset.applications):
        name = operator_named(each.operator).output_of or each.operator
        firsts.append(first.setdefault((name, *each.params), at))
    return np.array(firsts, np.int64)


def own_nodes(batch: Batch, family: NDArray[np.int64]) -> Nodes:
    """The operators of applications."""
    arguments = mix(mix(batch.a, batch.b), batch.cut)
    return mix(arguments, family[batch.code]) | np.uint64(1)


def nodes_of(table: ClassTable, batch: Batch, family: NDArray[np.int64]) -> tuple[Nodes, Places]:
    """The operators of the terms of applications, the own one last, and how many there are."""
    none = np.zeros((1, MAX_OPERATORS), np.uint64)
    nodes = np.concatenate([table.nodes, none])
    own = own_nodes(batch, family)
    joined = np.zeros((len(batch), MAX_OPERATORS), np.uint64)
    count = np.zeros(len(batch), np.intp)
    for at in range(0, len(batch), _BLOCK):
        part = slice(at, at + _BLOCK)
        both = np.concatenate([nodes[batch.a[part]], nodes[batch.b[part]]], axis=1)
        packed, inner = _distinct(both)
        rows = np.arange(len(packed))
        packed[rows, np.minimum(inner, MAX_OPERATORS - 1)] = own[part]
        joined[part], count[part] = packed, inner + 1
    return joined, count


def _distinct(nodes: Nodes) -> tuple[Nodes, Places]:
    """The distinct operators of each row, largest first, and their number."""
    ordered = np.sort(nodes, axis=1)
    repeated = np.zeros(ordered.shape, np.bool_)
    repeated[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    ordered[repeated] = 0
    ordered = np.sort(ordered, axis=1)[:, ::-1]
    count = (ordered != 0).sum(axis=1)
    return np.ascontiguousarray(ordered[:, :MAX_OPERATORS]), count


def union_size(left: Nodes, right: Nodes) -> Places:
    """How many operators two terms have together, row by row."""
    left, right = (np.ascontiguousarray(each.T[each.any(axis=0)]) for each in (left, right))
    count: Places = np.count_nonzero(left, axis=0) + np.count_nonzero(right, axis=0)
    for column in left:
        common = np.zeros(len(count), np.bool_)
        for other in right:
            common |= column == other
        count -= common & (column != 0)
    return count


class Sharing:
    """Pairs of classes that share operators.

    first, second   pairs with `union` operators together, fewer than one by one; both orders
    repeated        pairs of this size one by one that have fewer together: tried before
    share           of pairs of two smaller classes one of so many is listed, for forecasts
    """

    def __init__(self, table: ClassTable, union: int, share: int = 1) -> None:
        first, second = shared_pairs(table, union, share)
        total = table.cost[first].astype(np.intp) + table.cost[second]
        size = np.empty(len(first), np.intp)
        for at in range(0, len(first), _BLOCK):
            part = slice(at, at + _BLOCK)
            size[part] = union_size(table.nodes[first[part]], table.nodes[second[part]])
        kept = (size == union) & (total > union)
        self.first, self.second = _both_orders(first[kept], second[kept])
        kept = (size < union) & (total == union)
        self.repeated = _both_orders(first[kept], second[kept])


def count_shared(table: ClassTable, union: int) -> float:
    """How many pairs `shared_pairs` looks at, those of two smaller classes."""
    nodes = table.nodes[(table.row >= 0) & (table.cost < union)]
    _, counts = np.unique(nodes[nodes != 0], return_counts=True)
    return float((counts.astype(np.float64) ** 2).sum())


def shared_pairs(table: ClassTable, union: int, share: int = 1) -> tuple[Places, Places]:
    """Pairs of different classes with an operator in common, the smaller number first, sorted.

    Among the pairs with `union` operators together that are more one by one, none is left out:
    one of `union` operators contains the other, or both are smaller.
    """
    if union < 2:
        none = np.zeros(0, np.intp)
        return none, none
    stored = np.flatnonzero((table.row >= 0) & (table.cost > 0) & (table.cost <= union))
    nodes, cost = table.nodes[stored], table.cost[stored]
    columns = [nodes[:, at] for at in range(union)]
    owner = np.concatenate([stored[column != 0] for column in columns])
    node = np.concatenate([column[column != 0] for column in columns])
    own = nodes[np.arange(len(stored)), cost - 1]
    big = table.cost[owner] == union
    i, j = _join(node[big], owner[big], own, stored)
    small = ~big
    k, m = _join(node[small][::share], owner[small][::share], node[small], owner[small])
    first, second = np.concatenate([np.minimum(i, j), k]), np.concatenate([np.maximum(i, j), m])
    rising = first < second
    width = len(table)
    code = distinct(first[rising] * width + second[rising])
    return code // width, code % width


def _both_orders(first: Places, second: Places) -> tuple[Places, Places]:
    """Pairs with those of the other order, sorted."""
    both = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.lexsort(both[::-1])
    return both[0][order], both[1][order]


def _join(
    left_key: NDArray[Any], left: Places, right_key: NDArray[Any], right: Places
) -> tuple[Places, Places]:
    """All pairs of entries whose keys agree."""
    order = np.argsort(right_key, kind="stable")
    ordered = right_key[order]
    first = np.searchsorted(ordered, left_key, "left")
    count = np.searchsorted(ordered, left_key, "right") - first
    i = np.repeat(np.arange(len(left)), count)
    start = np.repeat(first - (np.cumsum(count) - count), count)
    return left[i], right[order[start + np.arange(len(i))]]
