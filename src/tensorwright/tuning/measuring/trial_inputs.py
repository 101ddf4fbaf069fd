"""The inputs on which a candidate is tried, drawn from a recipe, so that no weights are sent.

Weights are as small as those of networks: sums of many products then are as large as the other
inputs, and functions that saturate after them show what was computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from tensorwright.base import DType, InternalError
from tensorwright.expr import (
    Apply,
    Array,
    Cast,
    Combiner,
    Compute,
    Element,
    Fn,
    FromIndex,
    Index,
    Load,
    Placeholder,
    Select,
    Tensor,
    Value,
    ValueExpr,
    atoms_of,
    children,
    condition_sides,
)
from tensorwright.runtime import empty


@dataclass(frozen=True, slots=True)
class InputSpec:
    """How an input is filled: integers over 0..high-1 if that is not 0, floats times `scale`."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    high: int = 0
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """How all inputs of a workload are filled.

    is_positive: floats in 0.5..1 and not in -1..1, for functions that are undefined below zero;
                 both times the scale of the input.
    turn:        which draw; inputs among `constants` are the same in all of them
    """

    inputs: tuple[InputSpec, ...]
    seed: int = 0
    is_positive: bool = False
    turn: int = 0
    constants: frozenset[str] = frozenset()


def make_inputs(recipe: Recipe, made: Mapping[str, Array] | None = None) -> dict[str, Array]:
    """Fill the inputs; equal recipes give equal arrays, aligned as kernels need them.

    made   inputs of another turn, whose constants are taken
    """
    arrays: dict[str, Array] = {}
    for number, spec in enumerate(recipe.inputs):
        is_constant = spec.name in recipe.constants
        if made is not None and is_constant:
            arrays[spec.name] = made[spec.name]
            continue
        turn = [recipe.turn] if recipe.turn and not is_constant else []
        source = np.random.Generator(np.random.SFC64([recipe.seed, number, *turn]))
        array = empty(spec.shape, spec.dtype)
        array[...] = _draw(spec, source, recipe.is_positive)
        arrays[spec.name] = array
    return arrays


def _draw(spec: InputSpec, source: np.random.Generator, is_positive: bool) -> Array:
    if spec.dtype is DType.BOOL:
        return source.integers(0, 2, spec.shape).astype(np.bool_)
    if spec.dtype.is_float:
        wide = DType.F64 if spec.dtype is DType.F64 else DType.F32
        drawn: Any = source.random(spec.shape, np.dtype(wide.numpy))  # type: ignore[arg-type]
        drawn = 0.5 + drawn / 2 if is_positive else drawn * 2 - 1
        return np.asarray(drawn * wide.numpy.type(spec.scale)).astype(spec.dtype.numpy)
    if spec.high:
        return source.integers(0, spec.high, spec.shape).astype(spec.dtype.numpy)
    low, high = max(int(spec.dtype.lowest), -100), min(int(spec.dtype.highest), 255)
    return source.integers(low, high, spec.shape, endpoint=True).astype(spec.dtype.numpy)


def index_reach(tensors: Sequence[Tensor]) -> dict[str, int]:
    """For each tensor that serves as an index, the smallest extent that it indexes."""
    reach: dict[str, int] = {}
    for tensor in tensors:
        if not isinstance(tensor, Compute):
            continue
        for index, extent in _indices(tensor.body):
            for atom in atoms_of(index):
                if isinstance(atom, Element):
                    name = atom.source.name
                    reach[name] = min(reach.get(name, extent), extent)
    return reach


def _indices(value: Value) -> Iterator[tuple[Index, int]]:
    """Every index expression in a value with the extent that it must stay below."""
    match value:
        case Load(source, indices):
            for index, extent in zip(indices, source.shape, strict=True):
                yield index, _bound(extent)
        case FromIndex(index, _):
            yield index, 1 << 31
        case Select(condition, _, _) if not isinstance(condition, bool | ValueExpr):
            for side in condition_sides(condition):
                yield side, 1 << 31
        case _:
            pass
    for child in children(value):
        yield from _indices(child)


def _bound(extent: Index) -> int:
    if not isinstance(extent, int):
        raise InternalError(stage="tune", where="workload", reason=f"extent {extent} is open")
    return extent


def specs_of(tensors: Sequence[Tensor], most: int) -> tuple[InputSpec, ...]:
    """How the inputs among the tensors are filled; those used as indices stay below `most`."""
    reach = index_reach(tensors)
    scales = weight_scales(tensors)
    return tuple(
        _spec(tensor, reach, most, scales.get(tensor.name, 1.0))
        for tensor in tensors
        if isinstance(tensor, Placeholder)
    )


def _spec(tensor: Placeholder, reach: dict[str, int], most: int, scale: float) -> InputSpec:
    shape = tuple(_bound(extent) for extent in tensor.shape)
    high = max(1, min(reach[tensor.name], most, 1 << 20)) if tensor.name in reach else 0
    if high and tensor.dtype.is_int:
        high = min(high, int(tensor.dtype.highest))
    return InputSpec(tensor.name, shape, tensor.dtype, high, scale)


def weight_scales(tensors: Sequence[Tensor]) -> dict[str, float]:
    """The factors of weights that keep sums of products in about -1..1.

    Weights are the smallest input among the factors; of n terms in -1..1 the sum has a variance of
    n/9, so sqrt(3/n) gives it the 1/3 of the other inputs (He et al., ICCV 2015, section 2.2).
    """
    scales: dict[str, float] = {}
    for tensor in tensors:
        if not isinstance(tensor, Compute) or tensor.reduction is None:
            continue
        factors = set(_factors(tensor.body))  # one where a tensor is squared: that has no weights
        inputs = [factor.source for factor in factors if _is_float_input(factor)]
        if tensor.reduction.combiner is not Combiner.SUM or len(factors) < 2 or not inputs:
            continue
        terms = math.prod(_bound(axis.extent) for axis in tensor.reduce_axes)
        weights = min(inputs, key=lambda one: math.prod(_bound(extent) for extent in one.shape))
        scale = min(1.0, math.sqrt(3 / max(1, terms)))
        scales[weights.name] = min(scale, scales.get(weights.name, 1.0))
    return scales


def _factors(value: Value) -> Iterator[Value]:
    """The factors of products, without the guards around them."""
    match value:
        case Apply(Fn.MUL, args):
            for arg in args:
                yield from _factors(arg)
        case Select(_, then, _):
            yield from _factors(then)
        case Cast(operand, _):
            yield from _factors(operand)
        case _:
            yield value


def _is_float_input(factor: Value) -> TypeGuard[Load]:
    if not isinstance(factor, Load):
        return False
    return isinstance(factor.source, Placeholder) and factor.source.dtype.is_float
