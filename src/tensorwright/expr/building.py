"""What a person writes tensor expressions with: `compute`, folds and functions.

Names, shapes and functions that a person gives, checked before anything is made of them.

Tensors and folds as a person writes them.

Example
    >>> x, k = placeholder("x", (4, 8)), reduce_axis("k", 8)
    >>> print(compute("rows", (4,), lambda i: sum_over(x[i, k], k)))
    rows[i] = sum over k in 0..8 of x[i, k]    for i in 0..4

The functions of the value language under their everyday names.

A Python number takes the type of the other operand.

Example
    >>> from tensorwright.expr import compute, placeholder
    >>> x = placeholder("x", (4,))
    >>> print(compute("y", (4,), lambda i: sigmoid(x[i]) * 2.0))
    y[i] = sigmoid(x[i]) * 2.0    for i in 0..4
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tensorwright.base import DType, ExpressionError
from tensorwright.expr.functions import Fn
from tensorwright.expr.index.nodes import Index, IndexExpr, Logic, Symbol, Var
from tensorwright.expr.index.traversal import atoms_of
from tensorwright.expr.inside import check_reads
from tensorwright.expr.symbolic import Symbolic, as_number, in_body, noun_of, refused, remedy_of
from tensorwright.expr.tensor import Axis, Combiner, Compute, Placeholder, Reduce, Reduction
from tensorwright.expr.value import (
    Operand,
    Value,
    ValueExpr,
    apply,
    floor_division,
    power,
    require_dtype,
    variables_of,
)

_SELECT = "fold over the largest extent: sum_over(select(k < i + 1, x[k], 0.0), k)"


def checked_name(kind: str, name: object) -> str:
    """A name.  Raises: ExpressionError for what is not a text, or blank."""
    if not isinstance(name, str) or not name.strip():
        raise refused(f"{kind} {name!r}", "its name is not a text, or blank", 'give a name: "x"')
    return name


def checked_shape(where: str, shape: object) -> tuple[Index, ...]:
    """The extents of a shape.

    Raises: ExpressionError for one that is not a sequence of extents.
    """
    if isinstance(shape, str | Symbolic) or not isinstance(shape, Iterable):
        remedy = f"one extent is written ({shape},)" if isinstance(shape, int) else "write (4, 8)"
        raise refused(where, f"its shape {shape!r} is not a sequence of extents", remedy)
    return tuple(checked_extent(where, extent) for extent in shape)


def checked_extent(where: str, extent: Any) -> Index:
    """How many values an axis takes: 0 or more.

    Raises: ExpressionError for anything else.
    """
    if isinstance(extent, IndexExpr):
        if not all(isinstance(atom, Symbol) for atom in atoms_of(extent)):
            raise refused(where, f"the extent {extent} changes from element to element", _SELECT)
        return extent
    is_number = isinstance(extent, int | np.integer) and not isinstance(extent, bool)
    if not is_number:
        reason = f"{noun_of(extent)} is not an extent"
        raise refused(where, reason, "an extent is an int: how many values an axis takes")
    if extent < 0:
        reason = f"an extent is {extent}, and none is negative"
        raise refused(where, reason, "give a number of 0 or more")
    return int(extent)


def parameter_names(where: str, body: Callable[..., object], count: int) -> tuple[str, ...]:
    """The names of the parameters of a body, which takes one for each dimension.

    Raises: ExpressionError for what cannot be called, or takes another number.
    """
    if not callable(body):
        raise refused(where, f"its body is {noun_of(body)} not a function", "lambda i, j: x[i, j]")
    try:
        listed = inspect.signature(body).parameters.values()
    except ValueError as error:
        raise refused(where, f"its body {body!r} does not tell its parameters") from error
    parameters = tuple(p for p in listed if p.default is inspect.Parameter.empty)
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return tuple(f"i{n}" for n in range(count))
    if len(parameters) != count:
        reason = f"a body for {count} dimensions takes {count} parameters, not {len(parameters)}"
        raise refused(where, reason, "give it one parameter for each extent of the shape")
    return tuple(p.name for p in parameters)


def checked_names(where: str, names: Sequence[str], count: int) -> tuple[str, ...]:
    """Names of axes, one for each dimension.  Raises: ExpressionError."""
    if len(names) != count:
        reason = f"{len(names)} names {tuple(names)} for {count} dimensions"
        raise refused(where, reason, "give one for each extent of the shape")
    return tuple(checked_name(f"{where}: axis", name) for name in names)


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


def _unary(fn: Fn, meaning: str) -> Callable[[Value], Value]:
    def function(x: Value) -> Value:
        return apply(fn, x)

    function.__doc__ = meaning
    return function


def _binary(fn: Fn, meaning: str) -> Callable[[Operand, Operand], Value]:
    def function(a: Operand, b: Operand) -> Value:
        return apply(fn, a, b)

    function.__doc__ = meaning
    return function


abs_ = _unary(Fn.ABS, "The absolute value; that of the least integer wraps to itself.")
bit_not = _unary(Fn.BITNOT, "Every bit inverted.")
ceil = _unary(Fn.CEIL, "Round up.")
cos = _unary(Fn.COS, "The cosine of an angle in radians.")
erf = _unary(Fn.ERF, "The error function.")
exp = _unary(Fn.EXP, "e to the power x.")
expm1 = _unary(Fn.EXPM1, "exp(x) - 1, accurate for small x.")
floor = _unary(Fn.FLOOR, "Round down.")
is_inf = _unary(Fn.ISINF, "Whether x is infinite.")
is_nan = _unary(Fn.ISNAN, "Whether x is not a number.")
log = _unary(Fn.LOG, "The natural logarithm.")
log1p = _unary(Fn.LOG1P, "log(1 + x), accurate for small x.")
logical_not = _unary(Fn.NOT, "Not x, of bools.")
round_ = _unary(Fn.ROUND, "Round to the nearest integer, ties to the even one.")
rsqrt = _unary(Fn.RSQRT, "1 / sqrt(x).")
sigmoid = _unary(Fn.SIGMOID, "1 / (1 + exp(-x)).")
sign = _unary(Fn.SIGN, "-1, 0 or 1; NaN stays NaN.")
sin = _unary(Fn.SIN, "The sine of an angle in radians.")
sqrt = _unary(Fn.SQRT, "The square root.")
tan = _unary(Fn.TAN, "The tangent of an angle in radians.")
tanh = _unary(Fn.TANH, "The hyperbolic tangent.")
trunc = _unary(Fn.TRUNC, "Round towards zero.")

bit_and = _binary(Fn.BITAND, "Bits that are set in both.")
bit_or = _binary(Fn.BITOR, "Bits that are set in one of them.")
bit_xor = _binary(Fn.BITXOR, "Bits that differ.")
equal = _binary(Fn.EQ, "Whether both are equal; `==` in the body of a compute.")
floordiv = floor_division
floormod = _binary(Fn.FLOORMOD, "a - b * floor(a / b), with the sign of b.")
fmod = _binary(Fn.MOD, "The remainder of truncating division, with the sign of a.")
logical_and = _binary(Fn.AND, "Both, of bools.")
logical_or = _binary(Fn.OR, "One of them, of bools.")
logical_xor = _binary(Fn.XOR, "Just one of them, of bools.")
max_of = _binary(Fn.MAX, "The larger one; NaN if one is NaN.")
min_of = _binary(Fn.MIN, "The smaller one; NaN if one is NaN.")
not_equal = _binary(Fn.NE, "Whether they differ.")
pow_ = power
shift_left = _binary(Fn.SHL, "The bits of a moved up by b places.")
shift_right = _binary(
    Fn.SHR, "The bits of a moved down by b places; signed numbers keep their sign."
)


def clip(x: Value, low: Operand, high: Operand) -> Value:
    """x held between two bounds; NaN stays NaN."""
    return min_of(max_of(x, low), high)


def relu(x: Value) -> Value:
    """max(x, 0)."""
    return max_of(x, 0)
