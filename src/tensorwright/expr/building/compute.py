"""Tensors and folds as a person writes them.

Example
    >>> x, k = placeholder("x", (4, 8)), reduce_axis("k", 8)
    >>> print(compute("rows", (4,), lambda i: sum_over(x[i, k], k)))
    rows[i] = sum over k in 0..8 of x[i, k]    for i in 0..4
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorwright.base import DType, ExpressionError
from tensorwright.expr.building.arguments import (
    checked_extent,
    checked_name,
    checked_names,
    checked_shape,
    parameter_names,
)
from tensorwright.expr.building.inside import check_reads
from tensorwright.expr.index.nodes import Index, IndexExpr, Logic, Var
from tensorwright.expr.symbolic import as_number, in_body, noun_of, refused, remedy_of
from tensorwright.expr.tensor import Axis, Combiner, Compute, Placeholder, Reduce, Reduction
from tensorwright.expr.value import Value, ValueExpr, require_dtype, variables_of


def placeholder(name: str, shape: Sequence[Index], dtype: DType = DType.F32) -> Placeholder:
    """Declare an input tensor.

    Raises:  ExpressionError for an invalid name, shape or dtype.
    """
    where = f"placeholder {checked_name('placeholder', name)}"
    require_dtype(dtype)
    return Placeholder(name, checked_shape(where, shape), dtype)


def reduce_axis(name: str, extent: Index) -> Axis:
    """Declare an axis to reduce over.

    Raises:  ExpressionError for an invalid name or extent.
    """
    where = f"reduce_axis {checked_name('reduce_axis', name)}"
    return Axis(Var(name), checked_extent(where, extent))


def compute(
    name: str,
    shape: Sequence[Index],
    body: Callable[..., Value | Reduce],
    names: Sequence[str] = (),
) -> Compute:
    """Define a tensor by a function from its index variables to a value or a reduction.

    Shapes:  `shape` gives the extents; the function gets one `Var` per dimension, named by
             `names`, by the function's own parameters, or i0, i1, ...
    Raises:  ExpressionError, which is a TypeError, if the function takes another number of
             parameters, returns something else, asks an index, a condition or a value whether it is
             true, uses an axis that is not folded, folds one that is not used, or reads where it
             cannot be shown to stay inside the tensor that it reads.
    """
    where = f"compute {checked_name('compute', name)}"
    extents = checked_shape(where, shape)
    count = len(extents)
    labels = checked_names(where, names, count) if names else parameter_names(where, body, count)
    axes = tuple(Axis(Var(label), n) for label, n in zip(labels, extents, strict=True))
    try:
        with in_body():
            result = body(*(axis.var for axis in axes))
        tensor = _tensor(name, axes, result)
        _check_axes(tensor)
        check_reads(tensor)
    except ExpressionError as error:
        raise error.at(f"{where}: {error.where}") from error
    return tensor


def _tensor(name: str, axes: tuple[Axis, ...], result: Any) -> Compute:
    if isinstance(result, Reduce):
        return Compute(name, axes, result.body, Reduction(result.combiner, result.axes))
    if isinstance(result, ValueExpr):
        return Compute(name, axes, result)  # type: ignore[arg-type]  # its subclasses are Value
    if isinstance(result, IndexExpr | Axis):
        remedy = f"cast({result}, DType.I32) makes a value of it"
    elif isinstance(result, Logic):
        remedy = "select(condition, 1.0, value), or cast(condition, DType.BOOL)"
    elif as_number(result) is not None:
        remedy = f"constant({result}, DType.F32) says of which type it is"
    else:
        remedy = remedy_of(result)
    raise refused("its body", f"{noun_of(result)} is not a value", remedy)


def _reduce(combiner: Combiner, body: Any, axes: tuple[Any, ...]) -> Reduce:
    name = f"{combiner.value}_over"
    if not isinstance(body, ValueExpr):
        raise refused(name, f"{noun_of(body)} is not a value to fold", remedy_of(body))
    if not axes:
        raise refused(name, f"{combiner.value} over no axis", f"{name}(value, k)")
    for axis in axes:
        if not isinstance(axis, Axis):
            reason = f"it folds over {noun_of(axis)} {axis}, which is not an axis"
            raise refused(name, reason, 'k = reduce_axis("k", extent)')
    if combiner in (Combiner.ANY, Combiner.ALL) and body.dtype is not DType.BOOL:
        raise refused(name, f"it folds bools, not {body.dtype}", "compare: v != 0")
    if not combiner.fn.takes(body.dtype):
        raise refused(name, f"{body.dtype} has no {combiner.fn.text}", "cast(v, DType.F32)")
    return Reduce(combiner, body, axes)  # type: ignore[arg-type]  # ValueExpr's subclasses are Value


def sum_over(body: Value, *axes: Axis) -> Reduce:
    """The sum of the body over the axes."""
    return _reduce(Combiner.SUM, body, axes)


def prod_over(body: Value, *axes: Axis) -> Reduce:
    """The product of the body over the axes."""
    return _reduce(Combiner.PROD, body, axes)


def max_over(body: Value, *axes: Axis) -> Reduce:
    """The largest value of the body over the axes; NaN if one is NaN."""
    return _reduce(Combiner.MAX, body, axes)


def min_over(body: Value, *axes: Axis) -> Reduce:
    """The smallest value of the body over the axes; NaN if one is NaN."""
    return _reduce(Combiner.MIN, body, axes)


def any_over(body: Value, *axes: Axis) -> Reduce:
    """Whether the (bool) body holds somewhere."""
    return _reduce(Combiner.ANY, body, axes)


def all_over(body: Value, *axes: Axis) -> Reduce:
    """Whether the (bool) body holds everywhere."""
    return _reduce(Combiner.ALL, body, axes)


def argmax_over(body: Value, axis: Axis) -> Reduce:
    """The position (i64) of the first largest value along one axis."""
    return _reduce(Combiner.ARGMAX, body, (axis,))


def argmin_over(body: Value, axis: Axis) -> Reduce:
    """The position (i64) of the first smallest value along one axis."""
    return _reduce(Combiner.ARGMIN, body, (axis,))


def _check_axes(tensor: Compute) -> None:
    """Refuse axes with one name, a variable that no axis binds, an axis folded for nothing.

    Raises:  ExpressionError that names the axis.
    """
    names = [axis.name for axis in (*tensor.axes, *tensor.reduce_axes)]
    for name in names:
        if names.count(name) > 1:
            reason = f"two of its axes are called {name}, and equal names are one variable"
            raise refused(f"axis {name}", reason, "give each a name of its own, and fold it once")
    used = variables_of(tensor.body)
    for name in sorted({var.name for var in used} - set(names)):
        reason = "the body uses this axis, which is neither folded nor an axis of the result"
        raise refused(f"axis {name}", reason, f"sum_over(value, {name}), or another fold")
    for axis in tensor.reduce_axes:
        if axis.var not in used:
            reason = "it is folded, and nothing in the body moves along it"
            remedy = f"use {axis.name} in an index, or do not fold it"
            raise refused(f"axis {axis.name}", reason, remedy)
