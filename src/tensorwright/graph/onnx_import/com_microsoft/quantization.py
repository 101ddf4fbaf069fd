"""Operators on codes: numbers in between, as quantised networks of the standard have them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table
from tensorwright.graph.onnx_import.com_microsoft.attention import self_attention
from tensorwright.graph.onnx_import.converters import CONVERTERS, DYNAMIC_LSTM, in_codes


def _numbers(call: Call, quantized: int, scale: int, zero: int, axis: int = 0) -> str:
    """The numbers that codes stand for.

    quantized, scale, zero   the inputs that hold them
    axis                     along which there is a scale each, where there are several
    """
    vectors = []
    for position in (scale, zero):
        if call.has(position):
            is_one = int(np.prod(call.shape(position))) == 1
            vector = call.tensor(position)
            vectors.append(call.add("reshape", vector, shape=()) if is_one else vector)
    return call.add("dequantize_linear", call.tensor(quantized), *vectors, axis=axis)


def _quantized(call: Call, numbers: str, scale: int, zero: int, like: int) -> Results:
    """Numbers as codes; without a zero point of the type of an input."""
    one = call.add("reshape", call.tensor(scale), shape=())
    if call.has(zero):
        middle = call.add("reshape", call.tensor(zero), shape=())
        return (call.add("quantize_linear", numbers, one, middle),)
    return (call.add("quantize_linear", numbers, one, dtype=call.type_at(like).dtype),)


def _of_two(operator: str, call: Call) -> Results:
    y = call.add(operator, _numbers(call, 0, 1, 2), _numbers(call, 3, 4, 5))
    return _quantized(call, y, 6, 7, 0)


def _of_one(operator: str, call: Call) -> Results | None:
    """An operator of the standard on the numbers."""
    if call.flag("channels_last", default=False):
        raise call.unsupported("channels_last is not supported")
    opset = call.integer("opset", call.opset)
    inner = replace(call, operator=operator, operands=(_numbers(call, 0, 1, 2),), opset=opset)
    results = CONVERTERS[operator](inner)
    return None if results is None else _quantized(call, call.as_tensor(results[0]), 3, 4, 0)


def _concat(call: Call) -> Results:
    parts = [_numbers(call, at, at + 1, at + 2) for at in range(2, len(call.operands), 3)]
    return _quantized(call, call.add("concat", *parts, axis=call.integer("axis")), 0, 1, 2)


def _where(call: Call) -> Results:
    y = call.add("where", call.tensor(0), _numbers(call, 1, 2, 3), _numbers(call, 4, 5, 6))
    return _quantized(call, y, 7, 8, 1)


def _gemm(call: Call) -> Results:
    """A product of matrices of codes, plus integers in the scale of the product."""
    by_rows = call.flag("transB", default=False)
    a, b = _numbers(call, 0, 1, 2), _numbers(call, 3, 4, 5, axis=0 if by_rows else 1)
    alpha = call.real("alpha", 1.0)
    y = call.add(
        "gemm", a, b, alpha=alpha, trans_a=call.flag("transA", default=False), trans_b=by_rows
    )
    if call.has(6):
        scale = call.add("mul", call.tensor(1), call.tensor(4))
        integers = call.add("cast", call.tensor(6), to=DType.F32)
        numbers = call.add("mul", integers, scale)
        y = call.add("add", y, call.add("mul", numbers, call.as_array(alpha, DType.F32)))
    return _quantized(call, y, 7, 8, 0) if call.has(7) else (y,)


def _with_bias(call: Call, y: str, bias: int) -> Results:
    return (call.add("add", y, call.tensor(bias)) if call.has(bias) else y,)


def _matmul_to_float(call: Call) -> Results:
    last = call.rank(1) - 1
    a, b = _numbers(call, 0, 2, 4), _numbers(call, 1, 3, 5, axis=last)
    return _with_bias(call, call.add("matmul", a, b), 6)


def _dynamic_matmul(call: Call) -> Results:
    b = _numbers(call, 1, 2, 3, axis=call.rank(1) - 1)
    return _with_bias(call, call.add("matmul", in_codes(call, call.tensor(0)), b), 4)


def _attention(call: Call) -> Results:
    x, weights = _numbers(call, 0, 3, 6), _numbers(call, 1, 4, 7, axis=1)
    return self_attention(call, x, weights, call.tensor(2), 5, 8, len(call.operands))


def _matmul_of_bits(call: Call) -> Results:
    """A product with weights of four or eight bits, with a scale for each block of a column.

    They become numbers when the model is read.
    """
    columns, inner = call.integer("N"), call.integer("K")
    bits, block = call.integer("bits", 4), call.integer("block_size")
    if bits not in (4, 8):
        raise call.unsupported(f"weights of {bits} bits are not supported")
    if call.has(4) and call.array(4, "order of groups").size:
        raise call.unsupported("weights in another order, g_idx, are not supported")
    call.check_elements(columns * inner)
    blocks = -(-inner // block)
    quantized = _unpacked(call.array(1, "weights").reshape(columns, blocks, -1), bits)[..., :block]
    scales = call.array(2, "scales").reshape(columns, blocks, 1).astype(np.float32)
    zeros = np.full((columns, blocks, 1), 1 << (bits - 1), np.float32)
    if call.has(3):
        given = call.array(3, "zero points")
        if given.dtype == np.uint8:
            given = _unpacked(given.reshape(columns, -1), bits)[:, :blocks]
        zeros = given.reshape(columns, blocks, 1).astype(np.float32)
    numbers = ((quantized - zeros) * scales).reshape(columns, -1)[:, :inner]
    dtype = call.type_at(0).dtype
    weights: Operand = np.ascontiguousarray(numbers.T).astype(dtype.numpy)
    return _with_bias(call, call.add("matmul", call.tensor(0), weights), 5)


def _unpacked(packed: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """Codes of `bits` bits, the lowest of each byte first, along the last dimension."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    unpacked = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return np.asarray(unpacked.reshape(*packed.shape[:-1], -1), np.uint8)


QUANTIZATION: Table = (
    ("QuantizeLinear", CONVERTERS["QuantizeLinear"]),
    ("DequantizeLinear", CONVERTERS["DequantizeLinear"]),
    ("QLinearAdd", partial(_of_two, "add")),
    ("QLinearMul", partial(_of_two, "mul")),
    ("QLinearSigmoid", partial(_of_one, "Sigmoid")),
    ("QLinearLeakyRelu", partial(_of_one, "LeakyRelu")),
    ("QLinearSoftmax", partial(_of_one, "Softmax")),
    ("QLinearAveragePool", partial(_of_one, "AveragePool")),
    ("QLinearGlobalAveragePool", partial(_of_one, "GlobalAveragePool")),
    ("QLinearConcat", _concat),
    ("QLinearWhere", _where),
    ("QGemm", _gemm),
    ("QAttention", _attention),
    ("MatMulIntegerToFloat", _matmul_to_float),
    ("DynamicQuantizeMatMul", _dynamic_matmul),
    *DYNAMIC_LSTM,
    ("MatMulNBits", _matmul_of_bits),
)
