"""Quantised tensors, written out in the operators that they stand for."""

from __future__ import annotations

import math

import numpy as np

from tensorwright.base import DType
from tensorwright.graph.imports.call import Call, Operand, Results, Table
from tensorwright.graph.imports.converters.windows import convolve, window_of
from tensorwright.graph.imports.tensors import dtype_of
from tensorwright.ops import axis_in, number_of, pack_codes


def _stretched(call: Call, operand: Operand, position: int, axis: int, block: int) -> str:
    """A scale or zero point as it broadcasts to an input: per tensor, per axis or per block."""
    shape, own = call.sizes(position), call.type_of(operand).extents
    tensor = call.as_tensor(operand)
    if int(np.prod(own)) == 1:
        return call.add("reshape", tensor, shape=())
    axis = axis_in(axis, len(shape))
    if len(own) == 1:
        column = tuple(own[0] if at == axis else 1 for at in range(len(shape)))
        return call.add("reshape", tensor, shape=column)
    if block < 1:
        raise call.unsupported(f"its scale has shape {own} and no block_size")
    indices = np.arange(number_of(shape[axis]), dtype=np.int64) // block
    return call.take(tensor, indices, axis=axis)


def _is_plain(call: Call, numbers: int) -> bool:
    """Whether our own operators do it: f32, one scale or one per extent of an axis."""
    if call.integer("block_size", 0) or call.integer("output_dtype", 0) or call.rank(1) > 1:
        return False
    return call.dtype_of(numbers) is DType.F32 and call.dtype_of(1) is DType.F32


def _quantize(call: Call) -> Results:
    axis, block = call.integer("axis", 1), call.integer("block_size", 0)
    if _is_plain(call, 0) and (not call.has(2) or call.dtype_of(2).is_int):
        return (call.add("quantize_linear", *call.tensors(), axis=_valid(call, axis)),)
    target = DType.U8
    if call.has(2):
        target = call.dtype_of(2)
    elif call.integer("output_dtype", 0):
        target = dtype_of(call.integer("output_dtype"), call.label, call.operator)
    if not target.is_int:
        raise call.unsupported(f"quantising to {target} is not supported")
    source = call.dtype_of(0)
    wide = source if source is DType.F64 else DType.F32
    scale = call.cast(_stretched(call, call.operand(1), 0, axis, block), wide)
    y = call.add("round", call.add("div", call.cast(call.operand(0), wide), scale))
    if call.has(2):
        zero = _stretched(call, call.operand(2), 0, axis, block)
        y = call.add("add", y, call.add("cast", zero, to=wide))
    inside = call.add("clip", y, min=float(target.lowest), max=float(target.highest))
    return (call.add("cast", inside, to=target),)


def _valid(call: Call, axis: int) -> int:
    """The axis; without a meaning, and so anything, where there is one scale for all."""
    rank = call.rank(0)
    if math.prod(call.extents(1)) == 1 and not -rank <= axis < rank:
        return 0
    return axis_in(axis, rank)


def _dequantize(call: Call) -> Results:
    axis, block = call.integer("axis", 1), call.integer("block_size", 0)
    if _is_plain(call, 1):
        return (call.add("dequantize_linear", *call.tensors(), axis=_valid(call, axis)),)
    target = call.dtype_of(1)
    if call.integer("output_dtype", 0):
        target = dtype_of(call.integer("output_dtype"), call.label, call.operator)
    packed = _packed(call, axis, block) if target is DType.F32 else None
    if packed is not None:
        return (packed,)
    x = call.add("cast", call.tensor(0), to=DType.I32)
    if call.has(2):
        zero = _stretched(call, call.operand(2), 0, axis, block)
        x = call.add("sub", x, call.add("cast", zero, to=DType.I32))
    scale = call.add("cast", _stretched(call, call.operand(1), 0, axis, block), to=DType.F32)
    y = call.add("mul", call.add("cast", x, to=DType.F32), scale)
    return (call.cast(y, target),)


def _packed(call: Call, axis: int, block: int) -> str | None:
    """Constant codes of a matrix, with scales by block, in words; None for others.

    They are signed in words, so unsigned codes and their zero points are less by half their range.
    """
    quantized, scale, *zeros = (call.known_value(at, "codes") for at in range(len(call.operands)))
    if quantized is None or scale is None or quantized.ndim != 2 or quantized.dtype.itemsize != 1:
        return None
    if scale.ndim != 2 or scale.dtype != np.float32 or block < 1 or not quantized.size:
        return None
    axis = axis_in(axis, 2)
    bits = (
        4
        if quantized.min() >= -8 and quantized.max() <= (15 if quantized.dtype == np.uint8 else 7)
        else 8
    )
    is_whole = quantized.shape[axis] == block * scale.shape[axis] and block % (32 // bits) == 0
    if not is_whole or quantized.shape[1 - axis] != scale.shape[1 - axis]:
        return None
    middle = 1 << (bits - 1) if quantized.dtype == np.uint8 else 0
    zero = zeros[0] if zeros else np.zeros(scale.shape, quantized.dtype)
    if zero is None or zero.shape != scale.shape:
        return None
    arrays = [quantized.astype(np.int32) - middle, scale]
    if zeros or middle:
        arrays.append((zero.astype(np.int32) - middle).astype(np.int8))
    words, *others = (np.ascontiguousarray(each.T if axis else each) for each in arrays)
    weights = call.add("dequantize_blocks", pack_codes(words, bits), *others, bits=bits)
    return call.add("transpose", weights, perm=(1, 0)) if axis else weights


def _requantized(
    call: Call, product: str, scales: tuple[int, int], target: int, bias: Operand | None = None
) -> Results:
    """An i32 product and bias times two scales, quantised as the inputs from `target` on say."""
    first, second = (call.add("cast", call.tensor(at), to=DType.F32) for at in scales)
    rank = len(call.builder.shape_of(product))
    if call.operator == "QLinearConv" and call.extents(scales[1]) not in ((), (1,)):
        column = (call.extents(scales[1])[0], *(1,) * (rank - 2))
        second = call.add("reshape", second, shape=column)
    y = call.add("cast", product, to=DType.F32)
    if bias is not None:
        y = call.add("add", y, call.add("cast", bias, to=DType.F32))
    y = call.add("mul", y, call.add("mul", first, second))
    scale = call.add("cast", call.tensor(target), to=DType.F32)
    return (call.add("quantize_linear", y, scale, call.tensor(target + 1)),)


def _qlinear_matmul(call: Call) -> Results:
    if call.extents(1) not in ((), (1,)) or call.extents(4) not in ((), (1,)):
        raise call.unsupported("a scale per row or column is not supported")
    a, b = call.tensor(0), call.tensor(3)
    zeros = [call.add("reshape", call.tensor(at), shape=()) for at in (2, 5)]
    product = call.add("matmul_integer", a, b, *zeros)
    return _requantized(call, product, (1, 4), 6)


def _qlinear_conv(call: Call) -> Results:
    kernel = call.extents(3)[2:]
    window = window_of(call, kernel)
    inputs = tuple(call.tensor(at) for at in (0, 3, 2, 5))
    product = convolve(call, "conv_integer", inputs, window)
    bias: Operand | None = None
    if call.has(8):
        column = (call.extents(8)[0], *(1,) * len(kernel))
        bias = call.add("reshape", call.tensor(8), shape=column)
    return _requantized(call, product, (1, 4), 6, bias)


def in_codes(call: Call, x: str) -> str:
    """Numbers as their bytes say them, as `_quantized_by_range` makes these."""
    quantized, scale, middle = _quantized_by_range(call, x)
    return call.add("dequantize_linear", quantized, scale, middle)


def _quantized_by_range(call: Call, x: str) -> tuple[str, str, str]:
    """Bytes, with a scale and a zero point by the least and the greatest of all numbers and 0.

    If all numbers are 0, the scale is 1, as ONNX Runtime has it.
    Source:  DynamicQuantizeLinear of ONNX.
    """
    zero = np.zeros((), np.float32)
    axes = tuple(range(len(call.sizes(x))))
    least = call.add("min", call.add("reduce_min", x, axes=axes, keepdims=False), zero)
    most = call.add("max", call.add("reduce_max", x, axes=axes, keepdims=False), zero)
    span = call.add("sub", most, least)
    step = call.add("div", span, call.as_array(255.0, DType.F32))
    scale = call.add("where", call.add("equal", span, zero), np.ones((), np.float32), step)
    middle = call.add("round", call.add("div", call.add("neg", least), scale))
    middle = call.add("cast", call.add("clip", middle, min=0.0, max=255.0), to=DType.U8)
    return call.add("quantize_linear", x, scale, middle), scale, middle


QUANTIZATION: Table = (
    ("QLinearMatMul", _qlinear_matmul),
    ("QLinearConv", _qlinear_conv),
    ("QuantizeLinear", _quantize),
    ("DequantizeLinear", _dequantize),
    ("DynamicQuantizeLinear", lambda call: _quantized_by_range(call, call.tensor(0))),
)
