"""Attention with its projections, heads, masks and past; rotary embedding.

Operators on codes: numbers in between, as quantised networks of the standard have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import DType
from tensorwright.expr import Index
from tensorwright.graph.imports.call import Call, Operand, Results, Table
from tensorwright.graph.imports.converters import CONVERTERS, DYNAMIC_LSTM, in_codes
from tensorwright.graph.imports.converters.products import joined_heads, split_heads
from tensorwright.ops import is_equal, not_decided, number_of, pack_codes, shape_text

_FILTER = -10000.0
_BYTES_OF_ROWS = 4  # an accuracy_level: rows may be rounded to 8 bits


@dataclass(frozen=True, slots=True)
class _Heads:
    """Queries (b, h, l, e), keys (b, h, s, e), values (b, h, s, f); what is past is among them."""

    q: str
    k: str
    v: str


def _attend(call: Call, heads: _Heads, masks: Sequence[str]) -> str:
    """(batch, length, heads * size): what the heads of each position come to.

    masks   what is added to the scores; each broadcasts to (b, h, l, s)
    """
    rows, keys = call.sizes(heads.q)[2], call.sizes(heads.k)[2]
    is_causal = call.flag("unidirectional")
    added = list(masks)
    if is_causal and rows != keys:  # what is past comes first
        dtype = call.dtype_of(heads.q)
        beyond = call.add("full", shape=(rows, keys), value=_filter(call), dtype=dtype)
        added.append(call.add("trilu", beyond, k=keys - rows + 1))
    mask = added[:1]
    for each in added[1:]:
        mask = [call.add("add", *mask, each)]
    y = call.add(
        "attention",
        heads.q,
        heads.k,
        heads.v,
        *mask,
        scale=call.real("scale", 0.0),
        causal=is_causal and rows == keys,
    )
    return joined_heads(call, y)


def _filter(call: Call) -> float:
    return call.real("mask_filter_value", _FILTER)


def _padding(call: Call, position: int, heads: _Heads) -> list[str]:
    """A mask of positions to keep, as numbers to add: a length for each batch, or a word for each
    key, or for each query and key.
    """
    if not call.has(position):
        return []
    mask, shape = call.tensor(position), call.sizes(position)
    batch, _, rows, _ = call.sizes(heads.q)
    keys = call.sizes(heads.k)[2]
    if shape == (batch,):
        places = call.add("reshape", call.positions(keys, DType.I32), shape=(1, keys))
        lengths = call.add("reshape", mask, shape=(batch, 1))
        lost = call.add("greater_or_equal", places, call.add("cast", lengths, to=DType.I32))
    elif shape in ((batch, keys), (batch, rows, keys)):
        zero = np.zeros((), call.dtype_of(position).numpy)
        lost = call.add("less_or_equal", mask, zero)
    else:
        raise call.unsupported(f"a mask of shape {shape_text(shape)} is not supported")
    rows_of_mask: Index = shape[1] if len(shape) == 3 else 1
    lost = call.add("reshape", lost, shape=(batch, 1, rows_of_mask, keys))
    dtype = call.dtype_of(heads.q)
    numbers = call.add("cast", lost, to=dtype)
    return [call.add("mul", numbers, call.as_array(_filter(call), dtype))]


def _bias(call: Call, position: int) -> list[str]:
    return [call.tensor(position)] if call.has(position) else []


def self_attention(
    call: Call, x: str, weights: str, bias: str | None, mask: int, past: int, added: int
) -> Results:
    """Rows projected to queries, keys and values at once, and attention among them.

    mask, past, added   the inputs that hold the mask, what is past, and numbers for the scores
    Shapes:  x (b, l, w), weights (w, q + k + v), bias (q + k + v), past (2, b, h, p, e)
    """
    if call.integer("do_rotary", 0):
        raise call.unsupported("do_rotary is not supported here", "use RotaryEmbedding before it")
    projected = call.add("matmul", x, weights)
    if bias is not None:
        projected = call.add("add", projected, bias)
    width = number_of(call.sizes(projected)[2])
    sizes = call.integers("qkv_hidden_sizes", ()) or (width // 3,) * 3
    parts = call.apply("split", projected, sizes=sizes, axis=2)
    q, k, v = (split_heads(call, part, call.integer("num_heads")) for part in parts)
    if call.has(past):
        before = [call.take(call.tensor(past), each, 0) for each in (0, 1)]
        k, v = (call.add("concat", *each, axis=2) for each in zip(before, (k, v), strict=True))
    heads = _Heads(q, k, v)
    y = _attend(call, heads, [*_padding(call, mask, heads), *_bias(call, added)])
    return (y, call.stack([k, v], 0)) if call.wants(1) else (y,)


def _attention(call: Call) -> Results:
    if call.has(6):
        raise call.unsupported("a past of shared memory is not supported")
    bias = call.tensor(2) if call.has(2) else None
    return self_attention(call, call.tensor(0), call.tensor(1), bias, 3, 4, 5)


def _multi_head(call: Call) -> Results:
    """Attention of what was projected before; keys and values may be split into heads."""
    if call.rank(0) != 3 or not (call.has(1) and call.has(2)):
        raise call.unsupported("packed queries, keys and values are not supported")
    inputs = [call.tensor(each) for each in range(3)]
    if call.has(3):
        if call.rank(1) != 3:
            raise call.unsupported("a bias of keys that are split into heads is not supported")
        sizes = tuple(call.sizes(each)[2] for each in range(3))
        parts = call.apply("split", call.tensor(3), sizes=sizes, axis=0)
        inputs = [call.add("add", x, part) for x, part in zip(inputs, parts, strict=True)]
    count = call.integer("num_heads")
    is_split = [len(call.sizes(x)) == 4 for x in inputs]
    q, k, v = (
        x if done else split_heads(call, x, count) for x, done in zip(inputs, is_split, strict=True)
    )
    if any(call.has(each) for each in range(8, len(call.operands))):
        raise call.unsupported("a past of shared memory is not supported")
    if call.has(6) and call.has(7):
        k = call.add("concat", call.tensor(6), k, axis=2)
        v = call.add("concat", call.tensor(7), v, axis=2)
    heads = _Heads(q, k, v)
    return _attend(call, heads, [*_padding(call, 4, heads), *_bias(call, 5)]), k, v


def _rotary(call: Call) -> Results:
    """Pairs of neighbours, or of the halves of a head, turned by the angle of their position."""
    if call.integer("is_packed_batching", 0) or call.real("scale", 1.0) != 1.0:
        raise call.unsupported("packed batches and scales are not supported")
    x, shape = call.tensor(0), call.sizes(0)
    half = call.extents(2)[-1]
    if len(shape) == 3:
        count, width = call.integer("num_heads", 0), number_of(shape[2])
        x = split_heads(call, x, count or width // (2 * half))
    angles = [_at_positions(call, each, call.sizes(x)[2]) for each in (2, 3)]
    turned = call.integer("rotary_embedding_dim", 0) or 2 * half
    y = _turned(call, x, angles, turned, is_interleaved=call.flag("interleaved"))
    return (joined_heads(call, y) if len(shape) == 3 else y,)


def _turned(call: Call, x: str, angles: Sequence[str], turned: int, *, is_interleaved: bool) -> str:
    """Heads (b, h, l, e) of which the first elements are turned.

    angles   cosines and sines (b or 1, 1, l, halves)
    """
    batch, heads, length, width = call.sizes(x)
    size, (cosines, sines) = number_of(width), angles
    kept: tuple[str, ...] = ()
    if turned < size:
        x, *rest = call.apply("split", x, sizes=(turned, size - turned), axis=3)
        kept = tuple(rest)
    if is_interleaved:
        pairs = call.add("reshape", x, shape=(batch, heads, length, turned // 2, 2))
        first, second = (call.take(pairs, each, 4) for each in (0, 1))
    else:
        first, second = call.apply("split", x, sizes=(turned // 2,) * 2, axis=3)
    parts: list[Operand] = []
    for one, other, operator in ((first, second, "sub"), (second, first, "add")):
        scaled = call.add("mul", one, cosines)
        parts.append(call.add(operator, scaled, call.add("mul", other, sines)))
    if is_interleaved:
        y = call.add("reshape", call.stack(parts, 4), shape=(batch, heads, length, turned))
    else:
        y = call.add("concat", *parts, axis=3)
    return call.add("concat", y, *kept, axis=3) if kept else y


def _at_positions(call: Call, position: int, length: Index) -> str:
    """Rows of a table (positions, halves) as (batch or 1, 1, length, halves): at positions that are
    given one by one, or by the first.
    """
    at = call.tensor(1)
    if call.sizes(1) in ((), (1,)):
        first = call.add("reshape", at, shape=(1, 1))
        along = call.add("reshape", call.positions(length, DType.I64), shape=(1, length))
        at = call.add("add", first, along)
    rows = call.add("gather", call.tensor(position), at, axis=0)
    count, halves = call.sizes(at)[0], call.extents(position)[-1]
    return call.add("reshape", rows, shape=(count, 1, length, halves))


def _grouped(call: Call) -> Results:
    """Attention of one sequence without padding, whose heads of keys serve several of queries.

    The cache is what comes before, and the rows of the call follow it: the total length is the sum.
    Shapes:  q (1, l, h * e), or (1, l, (h + 2 * g) * e) with k and v; k, v (1, l, g * e); past
             (1, g, p, e) -> (1, l, h * e), present (1, g, p + l, e)
    """
    heads, groups = call.integer("num_heads"), call.integer("kv_num_heads")
    if call.integer("smooth_softmax", 0) or any(map(call.has, range(11, len(call.operands)))):
        raise call.unsupported("a sink of attention, and a cache of bytes, are not supported")
    inputs = [call.tensor(0), *(call.tensor(at) for at in (1, 2) if call.has(at))]
    batch, length, width = call.sizes(0)
    if not is_equal(batch, 1):
        reason = "sequences of several lengths are not supported"
        if isinstance(batch, int):
            raise call.unsupported(reason, "call it with a batch of 1")
        raise not_decided((batch,), reason, f"{batch}=1")
    if len(inputs) == 1:
        size = number_of(width) // (heads + 2 * groups)
        inputs = list(
            call.apply("split", inputs[0], sizes=(heads * size, *(groups * size,) * 2), axis=2)
        )
    counts = (heads, groups, groups)
    q, k, v = (split_heads(call, x, n) for x, n in zip(inputs, counts, strict=True))
    past: Index = call.sizes(3)[2] if call.has(3) else 0
    total = past + length
    given = call.index(6, "total_sequence_length")
    if not is_equal(given, total):
        reason = f"its total length is {given}, that of the cache and the new rows {total}"
        if isinstance(given, int):
            raise call.unsupported(reason, "give a mask of the cache and the new rows together")
        raise not_decided((given,), reason, f"{given}={total}")
    rows = call.piece(call.positions(total, DType.I64), 0, past, total)
    if call.flag("do_rotary"):
        at = call.add("reshape", call.tensor(9) if call.has(9) else rows, shape=(length,))
        shape = (1, 1, length, call.extents(7)[1])
        angles = [
            call.add("reshape", call.add("gather", call.tensor(each), at, axis=0), shape=shape)
            for each in (7, 8)
        ]
        q, k = (
            _turned(call, x, angles, 2 * shape[3], is_interleaved=call.flag("rotary_interleaved"))
            for x in (q, k)
        )
    if call.has(3):
        k = call.add("concat", call.tensor(3), k, axis=2)
        v = call.add("concat", call.tensor(4), v, axis=2)
    row = call.add("reshape", rows, shape=(length, 1))
    key = call.add("reshape", call.positions(total, DType.I64), shape=(1, total))
    mask = call.add("less_or_equal", key, row)
    window = call.integer("local_window_size", -1)
    if window > 0:
        near = call.add("less", call.add("sub", row, key), np.array(window, np.int64))
        mask = call.add("and", mask, near)
    if call.has(10):
        lost = call.as_array(-np.inf, call.dtype_of(10))
        mask = call.add("where", mask, call.tensor(10), lost)
    factors = {"scale": call.real("scale", 0.0), "softcap": call.real("softcap", 0.0)}
    y = call.add("attention", q, k, v, mask, **factors)
    return joined_heads(call, y), k, v


ATTENTION: Table = (
    ("Attention", _attention),
    ("GroupQueryAttention", _grouped),
    ("MultiHeadAttention", _multi_head),
    ("RotaryEmbedding", _rotary),
)


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
    call.check_elements(columns * inner)
    blocks = -(-inner // block)
    middle = 1 << (bits - 1)
    bytes_ = _shaped(call, 1, "weights", (columns, blocks, block * bits // 8))
    quantized = _unpacked(bytes_, bits).reshape(columns, -1).T.astype(np.int32) - middle
    scales = _shaped(call, 2, "scales", (columns, blocks)).T.astype(np.float32)
    operands: list[Operand] = [pack_codes(quantized, bits), np.ascontiguousarray(scales)]
    if call.has(3):
        is_packed = call.dtype_of(3) is DType.U8
        width = -(-blocks * bits // 8) if is_packed else blocks
        given = _shaped(call, 3, "zero points", (columns, width))
        zeros = _unpacked(given, bits)[:, :blocks].astype(np.int32) if is_packed else given
        dtype = np.int8 if is_packed else np.float32
        operands.append(np.ascontiguousarray((zeros - middle).T.astype(dtype)))
    is_rounded = call.integer("accuracy_level", 0) == _BYTES_OF_ROWS
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
    quantized = _unpacked(table, bits) if is_packed else table
    if quantized.shape != (rows, blocks * block) or block % (32 // bits):
        own = shape_text(table.shape)
        raise call.unsupported(f"its table of shape {own} is not {blocks} whole blocks of {block}")
    middle = 1 << (bits - 1) if table.dtype == np.uint8 else 0
    words = np.ascontiguousarray(pack_codes(quantized.T.astype(np.int32) - middle, bits).T)
    ids, places = call.operand(1), call.sizes(1)
    above = 32 - np.arange(bits, 32 + bits, bits, dtype=np.int32)
    x = call.add("reshape", call.add("gather", words, ids), shape=(*places, words.shape[1], 1))
    x = call.add("shift_right", call.add("shift_left", x, above), np.array(32 - bits, np.int32))
    y = call.cast(call.add("reshape", x, shape=(*places, blocks, block)), DType.F32)
    column = (*places, blocks, 1)
    if call.has(3) or (middle and not is_packed and bits < 8):  # codes of a type of their own
        zeros = call.array(3, "zero points") if call.has(3) else np.zeros(scales.shape, np.uint8)
        zeros = _unpacked(zeros, bits)[:, :blocks] if is_packed else zeros
        less = (zeros.astype(np.int32) - middle).astype(np.float32)
        y = call.add("sub", y, call.add("reshape", call.add("gather", less, ids), shape=column))
    scale = call.add("gather", scales.astype(np.float32), ids)
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
