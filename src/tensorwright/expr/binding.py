"""Tensors whose named sizes are replaced, by numbers or by sizes of other bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorwright.expr.index.condition import map_condition
from tensorwright.expr.index.nodes import Condition, Element, Index
from tensorwright.expr.index.sizes import NamedSize, named_sizes_of
from tensorwright.expr.index.traversal import map_elements, substitute
from tensorwright.expr.tensor import (
    Axis,
    Compute,
    Placeholder,
    Reduction,
    Tensor,
    topological_order,
)
from tensorwright.expr.value import Load, Value, children, indices_of, rebuild


def bind_tensors(outputs: Sequence[Compute], values: Mapping[Any, Index]) -> tuple[Compute, ...]:
    """The outputs with index expressions for symbols; tensors keep their names.

    Raises:  ExpressionError and ValueError for numbers with which an exact division has a rest.
    """
    if all(symbol is value for symbol, value in values.items()):
        return tuple(outputs)
    bound: dict[Tensor, Tensor] = {}

    def index(given: Index) -> Index:
        return map_elements(substitute(given, values), element)

    def element(given: Element) -> Index:
        return Element(bound.get(given.source, given.source), given.indices)

    def condition(given: Condition) -> Condition:
        return map_condition(given, index)

    def load(given: Load) -> Value:
        return Load(bound[given.source], given.indices)

    def axes(given: Sequence[Axis]) -> tuple[Axis, ...]:
        return tuple(Axis(axis.var, substitute(axis.extent, values)) for axis in given)

    for tensor in topological_order(*outputs):
        bound[tensor] = _bound(tensor, index, axes, lambda v: rebuild(v, load, index, condition))
    return tuple(each for output in outputs if isinstance(each := bound[output], Compute))


def sizes_of_tensors(outputs: Sequence[Tensor]) -> tuple[NamedSize, ...]:
    """The named sizes in the extents and indices of tensors and of what they are computed from,
    by name.
    """
    sizes: set[NamedSize] = set()
    seen: set[int] = set()  # of values, which tensors may share
    for tensor in topological_order(*outputs):
        sizes.update(named_sizes_of(*tensor.shape))
        pending: list[Value] = []
        if isinstance(tensor, Compute):
            sizes.update(named_sizes_of(*(axis.extent for axis in tensor.reduce_axes)))
            pending.append(tensor.body)
        while pending:
            value = pending.pop()
            if id(value) not in seen:
                seen.add(id(value))
                sizes.update(named_sizes_of(*indices_of(value)))
                pending += children(value)
    return tuple(sorted(sizes, key=lambda size: size.name))


def _bound(
    tensor: Tensor,
    index: Callable[[Index], Index],
    axes: Callable[[Sequence[Axis]], tuple[Axis, ...]],
    value: Callable[[Value], Value],
) -> Tensor:
    if isinstance(tensor, Placeholder):
        return Placeholder(tensor.name, tuple(map(index, tensor.shape)), tensor.dtype)
    fold = tensor.reduction
    reduction = None if fold is None else Reduction(fold.combiner, axes(fold.axes))
    return Compute(tensor.name, axes(tensor.axes), value(tensor.body), reduction)
