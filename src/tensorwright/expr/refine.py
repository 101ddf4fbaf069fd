"""Split axes into digits so that divisions and moduli of them become affine.

Rewrite:  t[c] = f(c//8, c%8) for c in 0..32    ->    t'[c_0, c_1] = f(c_0, c_1)
The finer tensor has the same elements in the same order, so that t is t' with another shape.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from tensorwright.expr.index.nodes import (
    Condition,
    Element,
    ExactDiv,
    FloorDiv,
    Index,
    Max,
    Min,
    Mod,
    Poly,
    Var,
)
from tensorwright.expr.index.ranges import Bounds, Range
from tensorwright.expr.index.simplify import simplify, simplify_condition
from tensorwright.expr.index.traversal import substitute, substitute_condition
from tensorwright.expr.tensor import Axis, Compute, Reduction
from tensorwright.expr.value import Value, children, indices_of, rebuild


def refine_axes(tensor: Compute) -> Compute:
    """The tensor with every axis split at the divisors by which its body divides it.

    An axis stays whole where the divisors do not divide each other and the extent, and where it
    gives the position of an argmax.
    """
    divisors: dict[Var, set[int]] = {}
    _find_divisors(tensor.body, divisors, set())
    if not divisors:
        return tensor
    mapping: dict[Var, Index] = {}
    axes = _split_all(tensor.axes, divisors, mapping)
    reduction = tensor.reduction
    if reduction is not None and not reduction.combiner.is_arg:
        reduction = Reduction(reduction.combiner, _split_all(reduction.axes, divisors, mapping))
    every = axes + (reduction.axes if reduction is not None else ())
    bounds: Bounds = {axis.var: Range.of_extent(axis.extent) for axis in every}

    def on_index(index: Index) -> Index:
        return simplify(substitute(index, mapping), bounds)

    def on_condition(condition: Condition) -> Condition:
        return simplify_condition(substitute_condition(condition, mapping), bounds)

    body = rebuild(tensor.body, lambda load: load, on_index, on_condition)
    return replace(tensor, axes=axes, body=body, reduction=reduction)


def _split_all(
    axes: tuple[Axis, ...], divisors: dict[Var, set[int]], mapping: dict[Var, Index]
) -> tuple[Axis, ...]:
    finer: list[Axis] = []
    for axis in axes:
        digits = _digits(axis, divisors.get(axis.var, set()))
        if len(digits) > 1:
            number: Index = 0
            for digit in digits:
                number = number * digit.extent + digit.var
            mapping[axis.var] = number
        finer += digits
    return tuple(finer)


def _digits(axis: Axis, divisors: set[int]) -> list[Axis]:
    """The axis as a mixed-radix number, its highest digit first; or itself."""
    if not isinstance(axis.extent, int) or axis.extent == 0:
        return [axis]
    radices = [axis.extent, *sorted((d for d in divisors if d < axis.extent), reverse=True), 1]
    extents = []
    for large, small in pairwise(radices):
        if large % small:
            return [axis]
        extents.append(large // small)
    if len(extents) == 1:
        return [axis]
    return [Axis(Var(f"{axis.name}_{n}"), extent) for n, extent in enumerate(extents)]


def _find_divisors(value: Value, divisors: dict[Var, set[int]], seen: set[int]) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    for index in indices_of(value):
        _index_divisors(index, divisors)
    for child in children(value):
        _find_divisors(child, divisors, seen)


def _index_divisors(index: Index, divisors: dict[Var, set[int]]) -> None:
    match index:
        case Poly(terms):
            for monomial, _ in terms:
                for atom in monomial:
                    _index_divisors(atom, divisors)
        case FloorDiv(Var() as var, int() as divisor) | Mod(Var() as var, int() as divisor):
            divisors.setdefault(var, set()).add(divisor)
        case Mod(FloorDiv(Var() as var, int() as low), int() as divisor):
            divisors.setdefault(var, set()).update((low, low * divisor))
        case FloorDiv(a, b) | Mod(a, b) | ExactDiv(a, b) | Min(a, b) | Max(a, b):
            _index_divisors(a, divisors)
            _index_divisors(b, divisors)
        case Element(_, indices):
            for part in indices:
                _index_divisors(part, divisors)
        case _:
            pass
