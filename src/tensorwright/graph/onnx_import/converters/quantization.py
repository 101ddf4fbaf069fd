"""Quantised tensors, written out in the operators that they stand for."""

from __future__ import annotations

import numpy as np

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table
from tensorwright.graph.onnx_import.tensors import dtype_of


def _stretched(call: Call, operand: Operand, position: int, axis: int, block: int) -> str:
    """A scale or zero point so that it broadcasts to input `position`: per tensor, per axis or per block."""
    shape, own = call.shape(position), call.type_of(operand).shape
    tensor = call.as_tensor(operand)
    if int(np.prod(own)) == 1:
        return call.add("reshape", tensor, shape=())
    axis %= len(shape)
    if len(own) == 1:
        column = tuple(own[0] if at == axis else 1 for at in range(len(shape)))
        return call.add("reshape", tensor, shape=column)
    if block < 1:
        raise call.unsupported(f"its scale has shape {own} and no block_size")
    indices = np.arange(shape[axis], dtype=np.int64) // block
    return call.add("gather", tensor, indices, axis=axis)


def _saturate(call: Call, x: str, target: DType) -> str:
    """Round what lies outside the type to its least or greatest value, then convert."""
    clipped = call.add("clip", x, min=float(target.lowest), max=float(target.highest))
    return call.add("cast", clipped, to=target)


def _quantize(call: Call) -> Results:
    axis, block = call.int("axis", 1), call.int("block_size", 0)
    target = DType.U8
    if call.has(2):
        target = call.type(2).dtype
    elif call.int("output_dtype", 0):
        target = dtype_of(call.int("output_dtype"), call.label, call.operator)
    if not target.is_int:
        raise call.unsupported(f"quantising to {target} is not supported")
    source = call.type(0).dtype
    wide = source if source is DType.F64 else DType.F32
    x: Operand = call.operand(0)
    scale = _stretched(call, call.operand(1), 0, axis, block)
    if source is not wide:
        x, scale = call.add("cast", x, to=wide), call.add("cast", scale, to=wide)
    elif call.type(1).dtype is not wide:
        scale = call.add("cast", scale, to=wide)
    y = call.add("round", call.add("div", x, scale))
    if call.has(2):
        zero = _stretched(call, call.operand(2), 0, axis, block)
        y = call.add("add", y, call.add("cast", zero, to=wide))
    return (_saturate(call, y, target),)


def _dequantize(call: Call) -> Results:
    axis, block = call.int("axis", 1), call.int("block_size", 0)
    target = call.type(1).dtype
    if call.int("output_dtype", 0):
        target = dtype_of(call.int("output_dtype"), call.label, call.operator)
    x = call.add("cast", call.tensor(0), to=DType.I32)
    if call.has(2):
        zero = _stretched(call, call.operand(2), 0, axis, block)
        x = call.add("sub", x, call.add("cast", zero, to=DType.I32))
    scale = call.add("cast", _stretched(call, call.operand(1), 0, axis, block), to=DType.F32)
    y = call.add("mul", call.add("cast", x, to=DType.F32), scale)
    return (y if target is DType.F32 else call.add("cast", y, to=target),)


QUANTIZATION: Table = (
    ("QuantizeLinear", _quantize),
    ("DequantizeLinear", _dequantize),
)
