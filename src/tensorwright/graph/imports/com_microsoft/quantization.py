"""Operators on codes: numbers in between, as quantised networks of the standard have them; products
with packed weights of few bits, and rows of packed tables.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import DType
from tensorwright.graph.imports.call import Call, Operand, Results, Table
from tensorwright.graph.imports.com_microsoft.attention import self_attention
from tensorwright.graph.imports.converters import CONVERTERS, DYNAMIC_LSTM, in_codes
from tensorwright.ops import pack_codes, shape_text

ROUNDED_ROWS = 4  # an accuracy_level: rows may be rounded to 8 bits


def _numbers(call: Call, quantized: int, scale: int, zero: int, axis: int = 0) -> str:
    """The numbers that codes stand for.

    quantized, scale, zero   the inputs that hold them
    axis                     along which there is a scale each, where there are several
    """
    vectors = []
    for position in (scale, zero):
        if call.has(position):
            is_one = int(np.prod(call.extents(position))) == 1
            vector = call.tensor(position)
            vectors.append(call.add("reshape", vector, shape=()) if is_one else vector)
    return call.add("dequantize_linear", call.tensor(quantized), *vectors, axis=axis)


def _quantized(call: Call, numbers: str, scale: int, zero: int, like: int) -> Results:
    """Numbers as codes; without a zero point of the type of an input."""
    one = call.add("reshape", call.tensor(scale), shape=())
    if call.has(zero):
        middle = call.add("reshape", call.tensor(zero), shape=())
        return (call.add("quantize_linear", numbers, one, middle),)
    return (call.add("quantize_linear", numbers, one, dtype=call.dtype_of(like)),)


def _of_two(operator: str, call: Call) -> Results:
    y = call.add(operator, _numbers(call, 0, 1, 2), _numbers(call, 3, 4, 5))
    return _quantized(call, y, 6, 7, 0)


def _of_one(operator: str, call: Call) -> Results | None:
    """An operator of the standard on the numbers."""
    if call.flag("channels_last"):
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
    by_rows = call.flag("transB")
    a, b = _numbers(call, 0, 1, 2), _numbers(call, 3, 4, 5, axis=0 if by_rows else 1)
    alpha = call.real("alpha", 1.0)
    y = call.add("gemm", a, b, alpha=alpha, trans_a=call.flag("transA"), trans_b=by_rows)
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


def _quantized_attention(call: Call) -> Results:
    x, weights = _numbers(call, 0, 3, 6), _numbers(call, 1, 4, 7, axis=1)
    return self_attention(call, x, weights, call.tensor(2), 5, 8, len(call.operands))


def _matmul_of_bits(call: Call) -> Results:
    """A product with weights of four or eight bits, with a scale for each block of a column.

    The weights stay packed. Where the last block is not whole, zeros follow the data.
    """
    columns, inner = call.integer("N"), call.integer("K")
    bits, block = call.integer("bits", 4), call.integer("block_size")
    if bits not in (4, 8):
        raise call.unsupported(f"weights of {bits} bits are not supported")
    if block < 16 or block & (block - 1):
        raise call.unsupported(f"blocks of {block} weights are not supported", "16, 32, 64, ...")
    if call.has(4) and call.array(4, "order of groups").size:
        raise call.unsupported("weights in another order, g_idx, are not supported")
    blocks = -(-inner // block)
    middle = 1 << (bits - 1)
    bytes_ = _shaped(call, 1, "weights", (columns, blocks, block * bits // 8))
    words = np.ascontiguousarray(_signed_words(bytes_.reshape(columns, -1), bits).T)
    scales = _shaped(call, 2, "scales", (columns, blocks)).T.astype(np.float32)
    operands: list[Operand] = [words, np.ascontiguousarray(scales)]
    if call.has(3):
        is_packed = call.dtype_of(3) is DType.U8
        width = -(-blocks * bits // 8) if is_packed else blocks
        given = _shaped(call, 3, "zero points", (columns, width))
        zeros = _unpacked(given, bits)[:, :blocks].astype(np.int32) if is_packed else given
        dtype = np.int8 if is_packed else np.float32
        operands.append(np.ascontiguousarray((zeros - middle).T.astype(dtype)))
    is_rounded = call.integer("accuracy_level", 0) == ROUNDED_ROWS
    weights = call.add("dequantize_blocks", *operands, bits=bits, is_rounded=is_rounded)
    x, dtype_of_x = call.cast(call.operand(0), DType.F32), call.dtype_of(0)
    if inner % block:
        rank = call.rank(0)
        after = (0,) * (2 * rank - 1)
        x = call.add("pad", x, pads=(*after, blocks * block - inner), value=0.0)
    return _with_bias(call, call.cast(call.add("matmul", x, weights), dtype_of_x), 5)


def _gather_of_bits(call: Call) -> Results:
    """Rows of a table of four or eight bits, with a scale for each block of a row.

    The table stays packed: words are gathered, and a row is taken apart.
    """
    bits, block = call.integer("bits", 4), call.integer("block_size", 128)
    axes = call.integer("gather_axis", 0), call.integer("quantize_axis", 1)
    if call.rank(0) != 2 or axes[0] != 0 or axes[1] not in (1, -1) or bits not in (4, 8):
        raise call.unsupported("it gathers other than rows of 4 or 8 bits from a matrix")
    table, scales = call.array(0, "table"), call.array(2, "scales")
    rows, blocks = scales.shape
    is_packed = table.shape[1] * 8 // bits == blocks * block != table.shape[1]
    width = table.shape[1] * 8 // bits if is_packed else table.shape[1]
    if len(table) != rows or width != blocks * block or block % (32 // bits):
        own = shape_text(table.shape)
        raise call.unsupported(f"its table of shape {own} is not {blocks} whole blocks of {block}")
    middle = 1 << (bits - 1) if table.dtype == np.uint8 else 0
    if middle and (is_packed or bits == 8):
        words = _signed_words(table, bits)
    else:
        words = np.ascontiguousarray(pack_codes(table.T.astype(np.int32) - middle, bits).T)
    ids, places = call.operand(1), call.sizes(1)
    above = 32 - np.arange(bits, 32 + bits, bits, dtype=np.int32)
    x = call.add("reshape", call.take(words, ids), shape=(*places, words.shape[1], 1))
    x = call.add("shift_right", call.add("shift_left", x, above), np.array(32 - bits, np.int32))
    y = call.cast(call.add("reshape", x, shape=(*places, blocks, block)), DType.F32)
    column = (*places, blocks, 1)
    if call.has(3) or (middle and not is_packed and bits < 8):  # codes of a type of their own
        zeros = call.array(3, "zero points") if call.has(3) else np.zeros(scales.shape, np.uint8)
        is_code = zeros.dtype.kind in "iu"
        zeros = _unpacked(zeros, bits)[:, :blocks] if is_packed and is_code else zeros
        less = zeros.astype(np.float32) - middle
        y = call.add("sub", y, call.add("reshape", call.take(less, ids), shape=column))
    scale = call.take(scales.astype(np.float32), ids)
    y = call.add("mul", y, call.add("reshape", scale, shape=column))
    y = call.add("reshape", y, shape=(*places, blocks * block))
    return (call.cast(y, call.dtype_of(2)),)


def _shaped(call: Call, position: int, what: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """The elements of a constant in a shape.  Raises: UnsupportedError for another number."""
    array = call.array(position, what)
    if array.size != int(np.prod(shape)):
        wanted, own = shape_text(shape), shape_text(array.shape)
        raise call.unsupported(f"its {what} have the shape {own}, not {wanted}")
    return array.reshape(shape)


def _signed_words(packed: NDArray[Any], bits: int) -> NDArray[Any]:
    """Codes around the middle, the lowest of each byte first, as words of signed ones."""
    ones = np.uint32(0x88888888 if bits == 4 else 0x80808080)
    return (np.ascontiguousarray(packed).view("<u4") ^ ones).view(np.int32)


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
    ("QAttention", _quantized_attention),
    ("MatMulIntegerToFloat", _matmul_to_float),
    ("DynamicQuantizeMatMul", _dynamic_matmul),
    *DYNAMIC_LSTM,
    ("MatMulNBits", _matmul_of_bits),
    ("GatherBlockQuantized", _gather_of_bits),
)
