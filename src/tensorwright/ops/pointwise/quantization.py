"""Conversions between numbers and their 8-bit and 16-bit codes.

| operators | inputs | attributes |
|---|---|---|
| quantize_linear | x, scale, zero_point? | axis=1, dtype=u8 (if there is no zero_point) |
| dequantize_linear | x (integer), scale, zero_point? | axis=1 |

`scale` and `zero_point` are one number, or one per extent of the axis.  Rounding is to nearest,
ties to even; results outside the range of the codes are the nearest code.
"""

from __future__ import annotations

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops import operator
from tensorwright.ops.named_sizes import are_equal, sizes_of
from tensorwright.ops.shapes import axis_in, axis_names

CODES = frozenset({DType.I8, DType.U8, DType.I16, DType.U16})


def _require_parameters(types: operator.Types, attributes: Attributes) -> None:
    x, scale = types[:2]
    operator.require_dtype("scale", scale, operator.FLOATS)
    for name, each in zip(("scale", "zero_point"), types[1:], strict=False):
        if each.shape in ((), (1,)):
            continue
        axis = axis_in(operator.int_of(attributes, "axis"), len(x.shape))
        own = sizes_of(x)[axis]
        if not are_equal(sizes_of(each), (own,)):
            raise operator.fault(f"input {name} has shape {each.shape}, not () or ({own},)")


def _parameter(tensor: expr.Tensor, indices: tuple[expr.Index, ...], axis: int) -> expr.Value:
    if not tensor.shape:
        return expr.Load(tensor, ())
    if len(tensor.shape) == 1 and expr.is_same(tensor.shape[0], 1):
        return expr.Load(tensor, (0,))
    return expr.Load(tensor, (indices[axis % len(indices)],))


def _infer_quantize(types: operator.Types, attributes: Attributes) -> operator.Types:
    operator.require_dtype("x", types[0], operator.FLOATS | {DType.I32})
    _require_parameters(types, attributes)
    dtype = types[2].dtype if len(types) > 2 else operator.dtype_of(attributes, "dtype")
    if dtype not in CODES:
        raise operator.fault(f"codes of type {dtype}", "one of i8, u8, i16, u16")
    return (TensorType(dtype, types[0].shape),)


def _quantize(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, scale = tensors[:2]
    axis = operator.int_of(attributes, "axis")
    dtype = tensors[2].dtype if len(tensors) > 2 else operator.dtype_of(attributes, "dtype")

    def body(*at: expr.Index) -> expr.Value:
        step = _parameter(scale, at, axis)
        value = expr.apply(expr.Fn.ROUND, expr.cast(expr.Load(x, at), step.dtype) / step)
        if len(tensors) > 2:
            value = value + expr.cast(_parameter(tensors[2], at, axis), step.dtype)
        limited = expr.apply(
            expr.Fn.MIN, expr.apply(expr.Fn.MAX, value, dtype.lowest), dtype.highest
        )
        return expr.cast(limited, dtype)

    return (expr.compute("quantize_linear", x.shape, body, axis_names(len(x.shape))),)


def _infer_dequantize(types: operator.Types, attributes: Attributes) -> operator.Types:
    operator.require_dtype("x", types[0], operator.INTS)
    _require_parameters(types, attributes)
    if len(types) > 2:
        operator.require_same_dtype(("x", "zero_point"), (types[0], types[2]))
    return (TensorType(types[1].dtype, types[0].shape),)


def _dequantize(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, scale = tensors[:2]
    axis = operator.int_of(attributes, "axis")

    def body(*at: expr.Index) -> expr.Value:
        code = expr.cast(expr.Load(x, at), DType.I32)
        if len(tensors) > 2:
            code = expr.apply(
                expr.Fn.SUB, code, expr.cast(_parameter(tensors[2], at, axis), DType.I32)
            )
        return expr.cast(code, scale.dtype) * _parameter(scale, at, axis)

    return (expr.compute("dequantize_linear", x.shape, body, axis_names(len(x.shape))),)


_AXIS = operator.Attribute(
    "axis", 1, "the dimension that has a scale each, where there are several"
)
QUANTIZATION_OPERATORS = (
    operator.tensor_operator(
        "quantize_linear",
        "round(x / scale) + zero_point, limited to the codes",
        ("x", "scale", "zero_point?"),
        (_AXIS, operator.Attribute("dtype", DType.U8, "of the output without zero_point")),
        _infer_quantize,
        _quantize,
        operator.Pattern.ELEMENTWISE,
        operator.LayoutPreference.ANY,
    ),
    operator.tensor_operator(
        "dequantize_linear",
        "(x - zero_point) * scale",
        ("x", "scale", "zero_point?"),
        (_AXIS,),
        _infer_dequantize,
        _dequantize,
        operator.Pattern.ELEMENTWISE,
        operator.LayoutPreference.ANY,
    ),
)
