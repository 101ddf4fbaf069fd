"""Sums of products as matrix multiplications on views of the operands.

out[b, m, n] = sum over k of L[b, m, k] * R[b, k, n], where every letter stands for several axes.
Where an index couples several axes (the taps of a convolution) so that a view would repeat its
source, the coupled reduction axes are iterated one value at a time instead of copied out (im2col).

Index expressions and conditions at many points at once, by arithmetic on arrays.

evaluate_index(i*8 + j, {i: column, j: row}.__getitem__)    an array over rows and columns

Evaluation of index expressions and values on a box of loop variables, one array operation each.

Every variable has a dimension of its own. An expression that does not depend on a variable has
extent 1 there, so that elements are repeated only where that is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any, assert_never

import numpy as np

from tensorwright.base import DType
from tensorwright.expr.evaluation.domain import Array, Domain
from tensorwright.expr.evaluation.loop_box import Choice, LoopBox, Reading, Span, Spans, spans_of
from tensorwright.expr.functions import Fn
from tensorwright.expr.index import nodes
from tensorwright.expr.index.traversal import ARRAYS, free_vars, value_of_node
from tensorwright.expr.tensor import Axis, Combiner, Compute
from tensorwright.expr.value import (
    Apply,
    Cast,
    Const,
    FromIndex,
    Load,
    Select,
    Value,
    ValueExpr,
    factors_of,
    loads_of,
    variables_of,
)


def evaluate_index(index: nodes.Index, value_of: Callable[[Any], Any]) -> Any:
    """An index expression, from the values of its variables and elements.

    Raises:  ValueError for a decision or a size.
    """
    if isinstance(index, int):
        return index
    if isinstance(index, (nodes.Var, nodes.Element)):
        return value_of(index)
    if isinstance(index, nodes.Symbol):
        raise ValueError(f"{index} has no value: bind decisions and sizes before evaluating")
    return value_of_node(index, lambda part: evaluate_index(part, value_of), ARRAYS)


_RELATIONS = {
    nodes.Relation.LT: np.less,
    nodes.Relation.LE: np.less_equal,
    nodes.Relation.EQ: np.equal,
    nodes.Relation.NE: np.not_equal,
}


def evaluate_condition(condition: nodes.Condition, value_of: Callable[[nodes.Index], Any]) -> Any:
    """A condition as NumPy bools, from the values of the index expressions in it."""
    match condition:
        case bool():
            return np.bool_(condition)
        case nodes.Compare(relation, left, right):
            return _RELATIONS[relation](value_of(left), value_of(right))
        case nodes.And(parts):
            return reduce(np.logical_and, [evaluate_condition(part, value_of) for part in parts])
        case nodes.Or(parts):
            return reduce(np.logical_or, [evaluate_condition(part, value_of) for part in parts])
        case nodes.Not(part):
            return np.logical_not(evaluate_condition(part, value_of))
    assert_never(condition)


class Grid:
    """One box with arrays, evaluated; mutable (it remembers shared subexpressions), used inside one
    function.

    Arrays come with one dimension per span, preceded by one of extent 1 so that none is a scalar;
    or, where nothing depends on a variable, without dimensions.
    """

    def __init__(self, loop_box: LoopBox, arrays: Mapping[Any, Array], domain: Domain) -> None:
        self.loop_box = loop_box
        self._arrays = arrays
        self._domain = domain
        self._shared: dict[tuple[int, bool], tuple[Value, Array]] = {}
        self._has_read_elements = False

    def index(self, expression: nodes.Index, guarded: bool = False) -> Array | int:
        """An index expression as int64; `guarded` clamps what elements read outside a tensor."""

        def value_of(atom: nodes.Var | nodes.Element) -> Array:
            if isinstance(atom, nodes.Var):
                return self.loop_box.variable(atom)
            element = self._element(atom, guarded)
            self._has_read_elements = True
            return element

        result: Array | int = evaluate_index(expression, value_of)
        return result

    def condition(self, condition: nodes.Condition, guarded: bool = False) -> Array:
        """A condition as NumPy bools."""
        guarded = guarded or not isinstance(condition, nodes.Compare)
        return np.asarray(evaluate_condition(condition, lambda side: self.index(side, guarded)))

    def value(self, value: Value, guarded: bool = False) -> Array:
        """A value in the domain's storage; `guarded` is set below an index condition."""
        key = (id(value), guarded)
        kept = self._shared.get(key)
        if kept is not None:
            return kept[1]
        result = self._value(value, guarded)
        if isinstance(value, (Apply, Select, Cast)):
            self._shared[key] = (value, result)  # the value is kept so that its id stays its own
        return result

    def _value(self, value: Value, guarded: bool) -> Array:
        domain = self._domain
        match value:
            case Const(number, dtype):
                return domain.const(number, dtype)
            case Load():
                return self._load(value, guarded)
            case FromIndex(index, dtype):
                return domain.from_index(np.asarray(self.index(index, guarded), np.int64), dtype)
            case Apply(fn, args):
                return domain.apply(fn, [self.value(arg, guarded) for arg in args], args[0].dtype)
            case Cast(operand, dtype):
                return domain.cast(self.value(operand, guarded), operand.dtype, dtype)
            case Select(condition, then, otherwise):
                if not isinstance(condition, ValueExpr):
                    return self._branch(value, condition, guarded)
                chosen = self.value(condition, guarded)
                branches = self.value(then, guarded), self.value(otherwise, guarded)
                return domain.select(chosen, *branches)
        assert_never(value)

    def _branch(self, value: Select, condition: nodes.Condition, guarded: bool) -> Array:
        """Select by an index condition; a branch that is never taken is not evaluated."""
        chosen = self._choice(value, condition, guarded)
        if chosen.always:
            return self.value(value.then, guarded)
        if chosen.never:
            return self.value(value.otherwise, guarded)
        then, otherwise = value.then, value.otherwise
        branches = self.value(then, guarded=True), self.value(otherwise, guarded=True)
        return self._domain.select(chosen.holds, *branches)

    def _choice(self, value: Select, condition: nodes.Condition, guarded: bool) -> Choice:
        """Where a condition holds; computed once for a box if the condition reads no element."""
        key = (id(value), guarded)
        kept = self.loop_box.choices.get(key)
        if kept is not None:
            return kept[1]
        self._has_read_elements = False
        choice = Choice.of(self.condition(condition, guarded))
        if not self._has_read_elements:
            self.loop_box.choices[key] = value, choice
        return choice

    def _load(self, load: Load, guarded: bool) -> Array:
        """A view where every index is affine and stays inside; a copy of what is inside; a gather.

        What a guarded load reads outside its tensor is zero or clamped: it is never chosen.
        """
        array = self._arrays[load.source]
        reading = self.loop_box.reading(load, array.shape, guarded)
        if reading is None:
            return self._gather(load, guarded)
        view = reading.view(array)
        return view if reading.frame is None else self._framed(view, reading, load.source.dtype)

    def _framed(self, view: Array, reading: Reading, dtype: DType) -> Array:
        """A view of the inner box with zeros around it."""
        assert reading.frame is not None, "only a view that is framed comes here"
        result = np.empty(reading.frame.shape, view.dtype)
        result[...] = self._domain.const(0, dtype)
        result[reading.frame.region] = view
        return result

    def _gather(self, load: Load, guarded: bool) -> Array:
        """The elements of a load, whose positions are kept if they depend on no element."""
        key = (id(load), guarded)
        kept = self.loop_box.gathers.get(key)
        if kept is not None:
            return self._taken(load.source, kept[1])
        self._has_read_elements = False
        places = self._places(load.source, load.indices, guarded)
        if not self._has_read_elements:
            self.loop_box.gathers[key] = load, places
        return self._taken(load.source, places)

    def _element(self, element: nodes.Element, guarded: bool) -> Array:
        places = self._places(element.source, element.indices, guarded)
        return self._domain.to_index(self._taken(element.source, places))

    def _places(
        self, source: Any, indices: tuple[nodes.Index, ...], guarded: bool
    ) -> tuple[Array, ...]:
        """The values of some indices at each point of the box."""
        places = []
        for index, extent in zip(indices, self._arrays[source].shape, strict=True):
            positions = np.asarray(self.index(index, guarded), np.int64)
            if positions.size and (int(positions.min()) < 0 or int(positions.max()) >= extent):
                if not guarded:
                    bad = int(positions.min()) if int(positions.min()) < 0 else int(positions.max())
                    where = f"{source.name}[{', '.join(map(str, indices))}]"
                    raise IndexError(f"{where}: index {index} reaches {bad}, extent is {extent}")
                positions = np.clip(positions, 0, max(extent - 1, 0))
            places.append(positions.reshape(positions.shape or (1,) * self.loop_box.rank))
        return tuple(places)

    def _taken(self, source: Any, places: tuple[Array, ...]) -> Array:
        array, rank = self._arrays[source], (1,) * self.loop_box.rank
        if array.size == 0:  # every read is guarded, so no element is ever chosen
            shape = np.broadcast_shapes(rank, *(each.shape for each in places))
            return np.broadcast_to(self._domain.const(0, source.dtype), shape)
        everywhere: tuple[Any, ...] = (*places, Ellipsis)  # so that no object comes bare
        values: Array = array[everywhere]
        return values.reshape(values.shape or rank)


_REPEAT = 2  # how often a view may repeat its source before coupled axes become taps
_FEW_POINTS = 4096  # up to this many elements are copied out instead of iterating taps
_MAX_TAPS = 4096


@dataclass(frozen=True, slots=True)
class ProductSum:
    """A sum over `axes` and `taps` of a product of factors; `used` are the axes of each factor."""

    factors: tuple[Value, ...]
    used: tuple[frozenset[nodes.Var], ...]
    axes: tuple[Axis, ...]
    taps: tuple[Axis, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class _Labelled:
    """An array whose dimensions are named by variables, and its present element type."""

    labels: tuple[nodes.Var, ...]
    array: Array
    dtype: DType


def find_product_sum(tensor: Compute) -> ProductSum | None:
    """The tensor as a sum of products, or None where it is something else."""
    reduction = tensor.reduction
    if reduction is None or reduction.combiner is not Combiner.SUM:
        return None
    if tensor.dtype is DType.BOOL:
        return None
    factors = tuple(factors_of(tensor.body))
    if len(factors) < 2:
        return None
    used = tuple(variables_of(factor) for factor in factors)
    reduced = {axis.var: axis.length for axis in reduction.axes}
    if not frozenset(reduced) <= frozenset[nodes.Var]().union(*used):
        return None  # an axis that no factor has repeats the sum: no operand could tell
    extents = {axis.var: axis.length for axis in tensor.axes} | reduced
    chosen = {var for factor in factors for var in _taps(factor, extents, frozenset(reduced))}
    taps = tuple(axis for axis in reduction.axes if axis.var in chosen)
    count = 1
    for axis in taps:
        count *= axis.length
    if count > _MAX_TAPS:
        return None
    rest = tuple(axis for axis in reduction.axes if axis.var not in chosen)
    return ProductSum(factors, used, rest, taps, tensor.dtype)


def product_bytes(plan: ProductSum, box: Spans) -> int:
    """How much evaluating the plan on a box of the output holds in memory."""
    extents = {span.var: span.extent for span in (*box, *spans_of(plan.axes))}
    output = 32
    for span in box:
        output *= span.extent
    total = output
    for factor, used in zip(plan.factors, plan.used, strict=True):
        size_bytes = 24 if isinstance(factor, Load) else 96
        for var in used:
            size_bytes *= extents.get(var, 1)
        total += size_bytes
    return total


def product_boxes(plan: ProductSum, box: Spans) -> Iterator[LoopBox]:
    """A box of the output with what is summed up, for each value of the taps."""
    axes = spans_of(plan.axes)
    for tap in product(*(range(axis.length) for axis in plan.taps)):
        fixed = tuple(Span(a.var, t, t + 1) for a, t in zip(plan.taps, tap, strict=True))
        yield LoopBox((*box, *axes, *fixed))


def contract_box(
    plan: ProductSum,
    box: Spans,
    boxes: Iterable[LoopBox],
    arrays: Mapping[Any, Array],
    domain: Domain,
) -> Array:
    """The sums on a box of the output, in the accumulator's type; no extent is zero.

    boxes  from `product_boxes`
    """
    wide = domain.accumulator(Combiner.SUM, plan.dtype)
    outputs = tuple(span.var for span in box)
    total: Array | None = None
    for each in boxes:
        grid = Grid(each, arrays, domain)
        operands = [
            _labelled(factor, used, grid, plan.dtype)
            for factor, used in zip(plan.factors, plan.used, strict=True)
        ]
        part = _contract(operands, outputs, domain, wide)
        total = part if total is None else domain.apply(Fn.ADD, (total, part), wide)
    if total is None:
        raise ValueError("a sum over an empty box has no first part")
    shape = tuple(span.extent for span in box)
    return np.broadcast_to(total, shape)


def _labelled(factor: Value, used: frozenset[nodes.Var], grid: Grid, dtype: DType) -> _Labelled:
    """A factor on the grid, without the dimensions that it does not depend on."""
    array, part = grid.value(factor), grid.loop_box.part(factor, used)
    if array.shape != part.full:
        array = np.broadcast_to(array, part.full)
    return _Labelled(part.labels, array.reshape(part.shape), dtype)


def _contract(
    operands: list[_Labelled], outputs: tuple[nodes.Var, ...], domain: Domain, dtype: DType
) -> Array:
    """Multiply the operands, smallest first, and sum the axes that no output has (but extent 1)."""
    pending = sorted(operands, key=lambda operand: operand.array.size)
    result = pending.pop(0)
    while pending:
        later = {var for operand in pending[1:] for var in operand.labels}
        result = _multiply(result, pending.pop(0), later | set(outputs), domain, dtype)
    order = sorted(range(len(result.labels)), key=lambda i: outputs.index(result.labels[i]))
    array = result.array.transpose(order)
    extents = iter(array.shape)
    present = set(result.labels)
    return array.reshape([next(extents) if var in present else 1 for var in outputs])


def _multiply(
    left: _Labelled, right: _Labelled, keep: set[nodes.Var], domain: Domain, dtype: DType
) -> _Labelled:
    left = _sum_alone(left, keep | set(right.labels), domain, dtype)
    right = _sum_alone(right, keep | set(left.labels), domain, dtype)
    both = [var for var in left.labels if var in right.labels]
    batch = [var for var in both if var in keep]
    inner = [var for var in both if var not in keep]
    rows = [var for var in left.labels if var not in both]
    columns = [var for var in right.labels if var not in both]
    a, a_shape = _grouped(left, (batch, rows, inner), domain, dtype)
    b, b_shape = _grouped(right, (batch, columns, inner), domain, dtype)
    shape = (*a_shape[: len(batch) + len(rows)], *b_shape[len(batch) : len(batch) + len(columns)])
    if not inner:
        product = domain.apply(Fn.MUL, (a, b.transpose(0, 2, 1)), dtype)
    elif not rows and not columns:
        product = domain.reduce(Combiner.SUM, domain.apply(Fn.MUL, (a, b), dtype), (2,), dtype)
    else:
        product = domain.matmul(a, b.transpose(0, 2, 1), dtype)
    return _Labelled((*batch, *rows, *columns), product.reshape(shape), dtype)


def _grouped(
    operand: _Labelled, groups: tuple[list[nodes.Var], ...], domain: Domain, dtype: DType
) -> tuple[Array, tuple[int, ...]]:
    """The operand as (batch, free, inner) in the accumulator's type, and the extents behind that.

    It is cast in the new order, so that a narrow operand is copied once.
    """
    batch, free, inner = groups
    order = [operand.labels.index(var) for var in (*batch, *free, *inner)]
    array = operand.array.transpose(order)
    shape = array.shape
    if operand.dtype is not dtype:
        array = domain.cast(array, operand.dtype, dtype)
    ends = len(batch), len(batch) + len(free)
    sizes = [prod(shape[: ends[0]]), prod(shape[ends[0] : ends[1]]), prod(shape[ends[1] :])]
    return array.reshape(sizes), shape


def _sum_alone(operand: _Labelled, keep: set[nodes.Var], domain: Domain, dtype: DType) -> _Labelled:
    """Sum over the axes that no other operand and no output has."""
    alone = tuple(i for i, var in enumerate(operand.labels) if var not in keep)
    if not alone:
        return operand
    labels = tuple(var for var in operand.labels if var in keep)
    array = domain.cast(operand.array, operand.dtype, dtype)
    return _Labelled(labels, domain.reduce(Combiner.SUM, array, alone, dtype), dtype)


def _taps(
    factor: Value, extents: Mapping[nodes.Var, int], reduced: frozenset[nodes.Var]
) -> set[nodes.Var]:
    """The coupled reduction axes to iterate so that no view repeats its source too often."""
    chosen: set[nodes.Var] = set()
    for load in loads_of(factor):
        coupled: set[nodes.Var] = set()
        for index in load.indices:
            variables = {var for var in free_vars(index) if extents.get(var, 1) > 1}
            if len(variables) > 1:
                coupled |= variables & reduced
        points = prod(extents[var] for var in free_vars(*load.indices) if var in extents)
        source = prod(n for n in load.source.shape if isinstance(n, int))
        for var in sorted(coupled, key=lambda v: (extents[v], v.name)):
            if points > max(_REPEAT * source, _FEW_POINTS) and var not in chosen:
                chosen.add(var)
                points //= max(extents[var], 1)
    return chosen
