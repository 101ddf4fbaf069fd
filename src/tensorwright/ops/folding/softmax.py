"""Softmax and its kin along one axis.

| operators | inputs | attributes |
|---|---|---|
| softmax log_softmax hardmax | x | axis=-1 |

Stages of softmax: greatest of the row, exponentials of the differences, their sum, quotients: of
wide floats as products with the sum's reciprocal, one division for a row.  Each stage rounds to the
element type, as NumPy does; only the sum of narrow floats runs in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tensorwright.base import Attributes, DType, TensorType
from tensorwright.expr import (
    Compute,
    Fn,
    FromIndex,
    Index,
    Load,
    Tensor,
    Value,
    apply,
    argmax_over,
    cast,
    compute,
    constant,
    max_over,
    select,
    sum_over,
)
from tensorwright.ops.access import axis_names, pointwise
from tensorwright.ops.attributes import AXIS, FLOATS, NARROW, int_of, require_dtype
from tensorwright.ops.folding.reduction import fold_axes, folded_indices
from tensorwright.ops.operator import Fold, Meaning, Operator, Pattern, tensor_operator
from tensorwright.ops.shapes import axis_in


def _infer(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    require_dtype("x", types[0], FLOATS)
    axis_in(int_of(attributes, "axis"), len(types[0].shape))
    return types


def _total(name: str, x: Tensor, axis: int, rule: Callable[[Value], Value]) -> Compute:
    """The sum of rule(element) along the axis, which is kept with extent 1."""
    if x.dtype not in NARROW:
        return fold_axes(name, x, (axis,), sum_over, lambda value, _: rule(value))
    wide = fold_axes(
        f"{name}_wide", x, (axis,), sum_over, lambda value, _: cast(rule(value), DType.F32)
    )
    return pointwise(name, (wide,), wide.shape, lambda value: cast(value, x.dtype))


NAN_WEIGHTS = ("kept", "zero", "zero_without_keys")


def normalized_exponentials(name: str, x: Tensor, axis: int, nan_weights: str = "kept") -> Compute:
    """Softmax along one axis, counted from the first.

    nan_weights   where the greatest of a row is minus infinity, "zero_without_keys" has 0 instead
                  of NaN; "zero" also where it is infinity or NaN

    Theorem:  if the greatest is finite, its power is 1, and no other is more: the sum is a number
              not below 1.  Otherwise each power is NaN or an infinity makes the sum NaN, so that
              all quotients of the row are NaN.
    """
    shape = x.shape
    best = fold_axes(f"{name}_max", x, (axis,), max_over)

    def power(a: Value, b: Value) -> Value:
        if nan_weights == "kept":
            return apply(Fn.EXP, a - b)
        has_weights = apply(Fn.ABS, b) < math.inf if nan_weights == "zero" else b != -math.inf
        return apply(Fn.EXP, select(has_weights, a - b, constant(-math.inf, a.dtype)))

    def weight(a: Value, b: Value) -> Value:
        if nan_weights != "kept":  # the sum is 0 only where all powers were made 0
            b = select(apply(Fn.EQ, b, 0.0), constant(1, b.dtype), b)
        return a / b if x.dtype in NARROW else a * (1.0 / b)

    powers = pointwise(f"{name}_exp", (x, best), shape, power)
    total = _total(f"{name}_sum", powers, axis, lambda value: value)
    return pointwise(name, (powers, total), shape, weight)


def _softmax(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    axis = axis_in(int_of(attributes, "axis"), len(x.shape))
    return (normalized_exponentials("softmax", x, axis),)


def _log_softmax(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    shape = x.shape
    axis = axis_in(int_of(attributes, "axis"), len(shape))
    best = fold_axes("log_softmax_max", x, (axis,), max_over)
    moved = pointwise("log_softmax_shifted", (x, best), shape, lambda a, b: a - b)
    total = _total("log_softmax_sum", moved, axis, lambda value: apply(Fn.EXP, value))
    return (pointwise("log_softmax", (moved, total), shape, lambda a, b: a - apply(Fn.LOG, b)),)


def _hardmax(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    shape = x.shape
    axis = axis_in(int_of(attributes, "axis"), len(shape))
    best = fold_axes("hardmax_position", x, (axis,), argmax_over)

    def body(*indices: Index) -> Value:
        first = Load(best, folded_indices(indices, (axis,)))
        is_first = apply(Fn.EQ, first, FromIndex(indices[axis], DType.I64))
        return select(is_first, constant(1, x.dtype), 0)

    return (compute("hardmax", shape, body, axis_names(len(shape))),)


def _operator(name: str, doc: str, meaning: Meaning) -> Operator:
    return tensor_operator(
        name,
        doc,
        ("x",),
        (AXIS,),
        _infer,
        meaning,
        Pattern.COMPOSITE,
        fold=Fold.AXIS,
    )


SOFTMAX_OPERATORS = (
    _operator("softmax", "exp(x) divided by its sum along the axis", _softmax),
    _operator("log_softmax", "logarithm of softmax", _log_softmax),
    _operator("hardmax", "1 at the first greatest along the axis, else 0", _hardmax),
)
