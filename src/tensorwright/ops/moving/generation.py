"""Tensors made of their indices.

eye_like takes x (m, n) for its shape, trilu x (..., m, n).
"""

from __future__ import annotations

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops import operator
from tensorwright.ops.named_sizes import decided, number_or_value, shape_text
from tensorwright.ops.shapes import axis_names


def _infer_full(_: operator.Types, attributes: Attributes) -> operator.Types:
    shape = operator.sizes_in(attributes, "shape")
    if not all(decided(extent >= 0) for extent in shape):
        raise operator.fault(f"attribute shape {shape_text(shape)} has a negative extent")
    if not isinstance(attributes["value"], expr.IndexExpr):
        operator.scalar_of(attributes, "value")
    return (TensorType(operator.dtype_of(attributes, "dtype"), shape),)


def _full(_: operator.Tensors, attributes: Attributes) -> operator.Computes:
    shape, dtype = operator.sizes_in(attributes, "shape"), operator.dtype_of(attributes, "dtype")
    given = attributes["value"]
    if isinstance(given, expr.IndexExpr):
        value: expr.Value = expr.cast(expr.FromIndex(given, DType.I64), dtype)
    else:
        value = expr.constant(operator.scalar_of(attributes, "value"), dtype)
    return (expr.compute("full", shape, lambda *_: value, axis_names(len(shape))),)


def _infer_range(_: operator.Types, attributes: Attributes) -> operator.Types:
    dtype = operator.dtype_of(attributes, "dtype")
    size = operator.size_in(attributes, "size")
    if not decided(size >= 0):
        raise operator.fault(f"attribute size is {size}, which is negative")
    if dtype is DType.BOOL:
        raise operator.fault("a range of bools")
    if dtype.is_int:
        operator.size_in(attributes, "start")
        operator.int_of(attributes, "step")
    return (TensorType(dtype, (size,)),)


def _range(_: operator.Tensors, attributes: Attributes) -> operator.Computes:
    dtype = operator.dtype_of(attributes, "dtype")
    given, step = attributes["start"], operator.float_of(attributes, "step")
    start = given if isinstance(given, expr.IndexExpr) else operator.float_of(attributes, "start")

    def body(i: expr.Index) -> expr.Value:
        if isinstance(start, (int, expr.IndexExpr)) and isinstance(step, int):
            return expr.FromIndex(i * step + start, dtype)
        first = start if isinstance(start, float) else number_or_value(start, dtype)
        return expr.FromIndex(i, dtype) * step + first

    return (expr.compute("range", (operator.size_in(attributes, "size"),), body),)


def _infer_eye(types: operator.Types, attributes: Attributes) -> operator.Types:
    operator.require_rank("x", types[0], 2, 2)
    operator.int_of(attributes, "k")
    return (TensorType(operator.dtype_of(attributes, "dtype"), types[0].shape),)


def _eye(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    dtype, k = operator.dtype_of(attributes, "dtype"), operator.int_of(attributes, "k")
    one, zero = expr.constant(1, dtype), expr.constant(0, dtype)

    def body(i: expr.Index, j: expr.Index) -> expr.Value:
        return expr.select(expr.compare(expr.Relation.EQ, j, i + k), one, zero)

    return (expr.compute("eye_like", tensors[0].shape, body),)


def _infer_trilu(types: operator.Types, attributes: Attributes) -> operator.Types:
    operator.require_rank("x", types[0], 2)
    operator.size_in(attributes, "k")
    return types


def _trilu(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    (x,) = tensors
    upper, k = operator.bool_of(attributes, "upper"), operator.size_in(attributes, "k")

    def body(*at: expr.Index) -> expr.Value:
        inside = at[-1] >= at[-2] + k if upper else at[-1] <= at[-2] + k
        return expr.select(inside, expr.Load(x, at), expr.constant(0, x.dtype))

    return (expr.compute("trilu", x.shape, body, axis_names(len(x.shape))),)


_DTYPE = operator.Attribute("dtype", DType.F32, "the element type of the output")
_DIAGONAL = operator.Attribute("k", 0, "the diagonal: 0 the main one, above it positive")
GENERATION_OPERATORS = (
    operator.tensor_operator(
        "full",
        "the same value everywhere",
        (),
        (
            operator.Attribute("shape", None, "the shape"),
            operator.Attribute("value", None, "the value"),
            _DTYPE,
        ),
        _infer_full,
        _full,
    ),
    operator.tensor_operator(
        "range",
        "start + step * i for i in 0..size",
        (),
        (
            operator.Attribute("size", None, "how many"),
            operator.Attribute("start", 0, "the first"),
            operator.Attribute("step", 1, "the distance"),
            operator.Attribute("dtype", DType.I64, "the element type of the output"),
        ),
        _infer_range,
        _range,
    ),
    operator.tensor_operator(
        "eye_like", "1 on a diagonal, else 0", ("x",), (_DTYPE, _DIAGONAL), _infer_eye, _eye
    ),
    operator.tensor_operator(
        "trilu",
        "x above (or below) a diagonal of the last two dimensions, else 0",
        ("x",),
        (
            operator.Attribute(
                "upper", default=True, doc="keep what is on and above, else on and below"
            ),
            _DIAGONAL,
        ),
        _infer_trilu,
        _trilu,
    ),
)
