"""Refuse expressions that read outside a tensor.

Every index is compared with the extent that it reads, where the conditions of the selects around it
hold. The comparison is a proof from the ranges of the axes and from the conditions (`bounds.py`);
else it is tried at all points, if these are few enough.  An element of a tensor that is used as an
index may be any number of its type.  Where a decision is open, only an index that is wrong without
any condition is refused. Where nothing is proved for all named sizes, the least ones are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tensorwright.base import ExpressionError
from tensorwright.expr.evaluation.contraction import evaluate_condition, evaluate_index
from tensorwright.expr.evaluation.domain import Array
from tensorwright.expr.index import nodes, traversal
from tensorwright.expr.index.bounds import interval, is_nonnegative
from tensorwright.expr.index.ranges import Bounds, Range, find_negative, narrowed
from tensorwright.expr.index.sizes import NamedSize, named_sizes_of
from tensorwright.expr.symbolic import refused
from tensorwright.expr.tensor import Compute
from tensorwright.expr.value import Load, Select, Value, ValueExpr, children, indices_of

_MOST_POINTS = 1 << 20  # that are looked at one by one
_MOST_CASES = 16  # of conditions that are alternatives
_TRIED = 3  # the least numbers of named sizes

Holding: TypeAlias = tuple[nodes.Condition, ...]


def check_reads(tensor: Compute) -> None:
    """Refuse a tensor that may read outside another one, or divide an index by 0.

    Raises:  ExpressionError that names the index, its range and the extent.
    """
    axes = (*tensor.axes, *tensor.reduce_axes)
    if not any(axis.extent == 0 for axis in axes):  # else nothing is read
        _Checker({axis.var: Range.of_extent(axis.extent) for axis in axes}).value(tensor.body, ())


class _Checker:
    """The values checked so far, and under which conditions; mutable, one per tensor."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._seen: set[tuple[int, Holding]] = set()

    def value(self, value: Value, holding: Holding) -> None:
        """Check a value that is computed where some conditions hold."""
        if (id(value), holding) in self._seen:
            return
        self._seen.add((id(value), holding))
        for index in indices_of(value):
            self._index(index, holding)
        if isinstance(value, Load):
            self._read(value.source, value.indices, holding)
        if isinstance(value, Select) and not isinstance(value.condition, ValueExpr):
            condition = value.condition
            self.value(value.then, (*holding, *traversal.conjuncts(condition)))
            self.value(
                value.otherwise, (*holding, *traversal.conjuncts(traversal.negate(condition)))
            )
            return
        for child in children(value):
            self.value(child, holding)

    def _index(self, index: nodes.Index, holding: Holding) -> None:
        """Check the elements and the divisors in an index."""
        if isinstance(index, (int, nodes.Var)):
            return
        for atom in traversal.atoms_of(index):
            if isinstance(atom, nodes.Element):
                if not atom.source.dtype.is_int:
                    reason = f"an element of {atom.source.dtype} is not an index"
                    raise refused(f"index {atom}", reason, "read a tensor of integers")
                self._read(atom.source, atom.indices, holding)
        for divisor in _divisors(index):
            if not _is_never_negative(divisor - 1, self._bounds, holding):
                reason = f"its divisor {divisor} may be 0 or less"
                remedy = f"divide by a number, or by maximum({divisor}, 1)"
                raise refused(f"index {index}", reason, remedy)

    def _read(self, source: Any, indices: tuple[nodes.Index, ...], holding: Holding) -> None:
        for dimension, (index, extent) in enumerate(zip(indices, source.shape, strict=True)):
            if not (
                _is_never_negative(index, self._bounds, holding)
                and _is_never_negative(extent - 1 - index, self._bounds, holding)
            ):
                raise _outside(source, indices, dimension, _reach(index, self._bounds, holding))


def _divisors(index: nodes.Index) -> Iterator[nodes.Index]:
    """The divisors in an index that are not plain numbers."""
    if isinstance(index, (nodes.FloorDiv, nodes.Mod, nodes.ExactDiv)) and not isinstance(
        index.divisor, int
    ):
        yield index.divisor
    for part in nodes.parts_of(index):
        yield from _divisors(part)


def _is_never_negative(gap: nodes.Index, bounds: Bounds, holding: Holding) -> bool:
    """Whether an expression is certainly never negative where conditions hold."""
    if not traversal.has_element(gap) and is_nonnegative(gap, bounds):
        return True
    if isinstance(gap, int) and not holding:
        return False
    if traversal.decisions_of(
        gap, *(end for each in bounds.values() for end in (each.low, each.high))
    ):
        return bool(holding) or isinstance(gap, int) or find_negative(gap, bounds) is None
    gap, holding, bounds = _without_elements(gap, holding, bounds)
    if _is_proved(gap, bounds, holding):
        return True
    sizes = _sizes_in(gap, bounds, holding)
    if sizes:
        return all(_is_not_refuted(gap, bounds, holding, sizes, more) for more in range(_TRIED))
    points = _values(gap, bounds, holding)
    return points is not None and (not points.size or int(points.min()) >= 0)


def _sizes_in(gap: nodes.Index, bounds: Bounds, holding: Holding) -> tuple[NamedSize, ...]:
    """The named sizes on which a gap depends."""
    ends = (end for each in bounds.values() for end in (each.low, each.high))
    sides = (side for condition in holding for side in traversal.condition_sides(condition))
    return named_sizes_of(gap, *ends, *sides)


def _is_not_refuted(
    gap: nodes.Index, bounds: Bounds, holding: Holding, sizes: tuple[NamedSize, ...], more: int
) -> bool:
    """Whether a gap is never negative where each size is `more` above the least it may be."""
    limits = ((size, size.least + more, size.most) for size in sizes)
    values = {size: n if most is None else min(n, most) for size, n, most in limits}
    ranges = {
        var: Range(traversal.substitute(each.low, values), traversal.substitute(each.high, values))
        for var, each in bounds.items()
    }
    if any(
        nodes.compare(nodes.Relation.LT, each.high, each.low) is True for each in ranges.values()
    ):
        return True
    conditions = tuple(traversal.substitute_condition(condition, values) for condition in holding)
    return _is_never_negative(traversal.substitute(gap, values), ranges, conditions)


def _without_elements(
    index: nodes.Index, holding: Holding, bounds: Bounds
) -> tuple[nodes.Index, Holding, Bounds]:
    """The gap with variables for elements of tensors and their remainders."""
    sides = [side for condition in holding for side in traversal.condition_sides(condition)]
    reaches: dict[nodes.Index, Range] = {}
    for side in (index, *sides):
        reaches |= dict(_data_in(side))
    if not reaches:
        return index, holding, bounds
    named: dict[nodes.Index, nodes.Index] = {
        part: nodes.Var(f"{part}#{n}") for n, part in enumerate(reaches)
    }
    wide = {**bounds, **{nodes.Var(str(named[part])): reach for part, reach in reaches.items()}}

    def on_index(side: nodes.Index) -> nodes.Index:
        return traversal.replace_parts(side, named)

    return on_index(index), tuple(traversal.map_condition(c, on_index) for c in holding), wide


def _data_in(index: nodes.Index) -> Iterator[tuple[nodes.Index, Range]]:
    """The outermost parts of an index that data decide, and their ranges."""
    match index:
        case nodes.Element(source, _):
            yield index, Range(int(source.dtype.lowest), int(source.dtype.highest))
        case nodes.Mod(dividend, int() as divisor) if traversal.has_element(dividend):
            yield index, Range(0, divisor - 1)
        case _:
            for part in nodes.parts_of(index):
                yield from _data_in(part)


def _is_proved(gap: nodes.Index, bounds: Bounds, holding: Holding) -> bool:
    """Whether the conditions prove that the gap is not negative, in each case that they allow."""
    plain = [traversal.map_comparisons(condition, _inequalities) for condition in holding]
    alternatives = [c.parts if isinstance(c, nodes.Or) else (c,) for c in plain]
    cases = list(islice(product(*alternatives), _MOST_CASES + 1))
    return len(cases) <= _MOST_CASES and all(
        _is_proved_where(gap, bounds, traversal.all_of(*case)) for case in cases
    )


def _inequalities(comparison: nodes.Compare) -> nodes.Condition:
    left, right = comparison.left, comparison.right
    if comparison.relation is not nodes.Relation.EQ:
        return comparison
    return traversal.all_of(
        nodes.compare(nodes.Relation.LE, left, right), nodes.compare(nodes.Relation.LE, right, left)
    )


# Theorem: where g >= 0 holds, gap - g >= 0 gives gap >= 0; nothing is read where a range is empty.
def _is_proved_where(gap: nodes.Index, bounds: Bounds, condition: nodes.Condition) -> bool:
    parts = traversal.conjuncts(condition)
    narrow = narrowed(bounds, parts)
    if condition is False or any(is_nonnegative(r.low - r.high - 1) for r in narrow.values()):
        return True
    gaps = [traversal.gap_of(part) for part in parts if isinstance(part, nodes.Compare)]
    given = (0, *(each for each in gaps if each is not None))
    return any(is_nonnegative(gap - each, narrow) for each in given)


def _values(index: nodes.Index, bounds: Bounds, holding: Holding) -> Array | None:
    """The values of an index at all points where conditions hold; None for too many points.

    Conditions on other variables are left out where that makes them few enough.
    """
    mine = traversal.free_vars(index)
    for conditions in (holding, tuple(c for c in holding if _variables(c) <= mine)):
        variables = sorted(mine.union(*map(_variables, conditions)), key=str)
        extents = [_extent(bounds[var]) for var in variables]
        if prod(extents) <= _MOST_POINTS:
            return _at_points(index, traversal.all_of(*conditions), variables, extents)
    return None


def _variables(condition: nodes.Condition) -> frozenset[nodes.Var]:
    return traversal.free_vars(*traversal.condition_sides(condition))


def _extent(reach: Range) -> int:
    """How many numbers a range of numbers has."""
    count = reach.high - reach.low + 1
    assert isinstance(count, int), "decisions were asked before"
    return count


def _at_points(
    index: nodes.Index, condition: nodes.Condition, variables: list[nodes.Var], extents: list[int]
) -> Array:
    grid = dict(zip(variables, np.ogrid[tuple(slice(n) for n in extents)], strict=True))
    with np.errstate(divide="ignore"):
        values = evaluate_index(index, grid.__getitem__)
        holds = evaluate_condition(condition, lambda side: evaluate_index(side, grid.__getitem__))
    kept: Array = np.broadcast_to(values, extents)[np.broadcast_to(holds, extents)]
    return kept


def _reach(index: nodes.Index, bounds: Bounds, holding: Holding) -> Range | None:
    """The range of an index where conditions hold, as far as it is known."""
    index, holding, bounds = _without_elements(index, holding, bounds)
    ends = tuple(end for each in bounds.values() for end in (each.low, each.high))
    if not traversal.decisions_of(*ends) and not _sizes_in(index, bounds, holding):
        points = _values(index, bounds, holding)
        if points is not None and points.size:
            return Range(int(points.min()), int(points.max()))
    return interval(index, narrowed(bounds, holding))


def _outside(
    source: Any, indices: tuple[nodes.Index, ...], dimension: int, reach: Range | None
) -> ExpressionError:
    """The error for an index that may leave a dimension."""
    index, extent = indices[dimension], source.shape[dimension]
    load = f"{source.name}[{', '.join(map(str, indices))}]"
    takes = f"takes {reach.low}..{reach.high}" if reach is not None else "takes unknown values"
    reason = (
        f"dimension {dimension} is read at {index}, which {takes}; its extent is {extent}: "
        f"0..{extent - 1}"
    )
    if traversal.has_element(index):
        remedy = (
            f"hold it inside: maximum(minimum({index}, {extent - 1}), 0), or mod({index}, {extent})"
        )
    elif isinstance(index, int):
        remedy = _constant_remedy(source.name, index, extent)
    else:
        guards = f"{index} >= 0, {index} < {extent}"
        remedy = (
            f"select(all_of({guards}), {load}, 0), which reads it only there; or declare a larger "
            f"{source.name}; numbers below 0 do not count from the end"
        )
    return refused(load, reason, remedy)


def _constant_remedy(name: str, index: int, extent: nodes.Index) -> str:
    """The remedy for an index that is a number outside of its dimension."""
    if index >= 0:
        return f"a number from 0 to {extent - 1}, or declare a larger {name}"
    last = "the last one" if index == -1 else f"number {-index} from the end"
    if isinstance(extent, int) and extent + index < 0:
        return f"a number from 0 to {extent - 1}"
    return f"write {extent + index} for {last}: numbers below 0 do not count from the end"
