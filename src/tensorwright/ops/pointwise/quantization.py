"""Conversions between numbers and their 8-bit and 16-bit codes.

Shapes:  dequantize_blocks   words (k * bits / 32, n) i32, scale (k / block, n) f32
         matmul_blocks       x (..., k), halves (k * bits / 32, n, 2) i16

`scale` and `zero_point` are one number, or one per extent of the axis.  Rounding is to nearest,
ties to even; results outside the range of the codes are the nearest code.

A word of `dequantize_blocks` holds the signed codes of neighbours along k, the first in its lowest
bits, so that neighbours along n are neighbouring words; `pack_codes` makes words. A zero point
(k / block, n) is i8 or f32.  In `matmul_blocks` two neighbours along k lie in two halves of a word;
`pack_pairs` makes such words of those of `dequantize_blocks`.
"""

from __future__ import annotations

import numpy as np

from tensorwright import expr
from tensorwright.base import Array, Attributes, DType, TensorType
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


WORD_BITS = 32


def pack_codes(quantized: Array, bits: int) -> Array:
    """The words of signed codes: (k, n) of any integers -> (k * bits / 32, n) i32."""
    parts = WORD_BITS // bits
    low = quantized.astype(np.uint32) & np.uint32((1 << bits) - 1)
    grouped = low.reshape(-1, parts, quantized.shape[1])
    shifts = np.arange(0, WORD_BITS, bits, dtype=np.uint32).reshape(1, parts, 1)
    words = np.bitwise_or.reduce(grouped << shifts, axis=1)
    return np.ascontiguousarray(words).view(np.int32)


def _bits_of(attributes: Attributes) -> int:
    bits = operator.int_of(attributes, "bits")
    if bits not in (4, 8):
        raise operator.fault(f"codes of {bits} bits", "4 or 8")
    return bits


def _infer_blocks(types: operator.Types, attributes: Attributes) -> operator.Types:
    parts = WORD_BITS // _bits_of(attributes)
    for name, each in zip(("words", "scale", "zero_point"), types, strict=False):
        operator.require_rank(name, each, 2, 2)
    operator.require_dtype("words", types[0], frozenset({DType.I32}))
    operator.require_dtype("scale", types[1], frozenset({DType.F32}))
    rows, columns = types[0].extents
    blocks = types[1].extents[0]
    if types[1].extents[1] != columns or not blocks or rows % blocks:
        own = f"{types[1].extents}"
        raise operator.fault(f"scales of shape {own} for {rows * parts} by {columns} codes")
    if len(types) > 2:
        operator.require_dtype("zero_point", types[2], frozenset({DType.I8, DType.F32}))
        if types[2].extents != types[1].extents:
            reason = f"zero points of shape {types[2].extents}, scales of {types[1].extents}"
            raise operator.fault(reason)
    return (TensorType(DType.F32, (rows * parts, columns)),)


def _dequantize_blocks(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    """A code is taken out in the highest bits of a word, where its sign is that of the word."""
    words, scale = tensors[:2]
    bits = _bits_of(attributes)
    parts, above = WORD_BITS // bits, WORD_BITS - bits
    rows, columns = (int(extent) for extent in words.shape)
    block = rows * parts // int(scale.shape[0])

    def body(k: expr.Index, n: expr.Index) -> expr.Value:
        shift = expr.cast(above - bits * (k % parts), DType.I32)
        code = expr.cast((words[k // parts, n] << shift) & -(1 << above), DType.F32)
        if len(tensors) > 2:
            zero = expr.cast(tensors[2][k // block, n], DType.F32)
            code = code - zero * float(1 << above)
        return code * (scale[k // block, n] * 2.0**-above)

    return (expr.compute("dequantize_blocks", (rows * parts, columns), body, ("k", "n")),)


def pack_pairs(words: Array, bits: int) -> Array:
    """Words whose halves hold the even codes and the odd ones: (r, n) i32 -> (r, n, 2) i16."""
    low = words.view(np.uint32)
    mask = np.uint32((1 << bits) - 1)
    halves = np.zeros((*words.shape, 2), np.uint16)
    for code in range(WORD_BITS // bits):
        part = (low >> np.uint32(code * bits)) & mask
        halves[..., code % 2] |= (part << np.uint32(code // 2 * bits)).astype(np.uint16)
    return halves.view(np.int16)


def _infer_product(types: operator.Types, attributes: Attributes) -> operator.Types:
    x, halves, *others = types
    operator.require_dtype("x", x, frozenset({DType.F32}))
    operator.require_dtype("halves", halves, frozenset({DType.I16}))
    operator.require_rank("halves", halves, 3, 3)
    words = TensorType(DType.I32, halves.extents[:2])
    (weights,) = _infer_blocks((words, *others), attributes)
    inner, columns = weights.extents
    if not x.shape or not are_equal(sizes_of(x)[-1:], (inner,)) or halves.extents[2] != 2:
        raise operator.fault(f"rows of shape {x.shape} for {inner} codes in {halves.extents}")
    return (TensorType(DType.F32, (*sizes_of(x)[:-1], columns)),)


def _matmul_blocks(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    """Each block of a row is rounded to 16 bits of its largest number, and its sum is exact."""
    x, halves, scale = tensors[:3]
    bits = _bits_of(attributes)
    count, above = 16 // bits, 16 - bits
    words, columns, _ = (int(extent) for extent in halves.shape)
    blocks = int(scale.shape[0])
    per_block = words // blocks
    block = per_block * 2 * count
    rows = x.shape[:-1]
    names = tuple(f"i{n}" for n in range(len(rows)))
    term = expr.reduce_axis("t", block)

    def peak(*at: expr.Index) -> expr.Reduce:
        *row, b = at
        return expr.max_over(abs(x[(*row, b * block + term.var)]), term)

    peaks = expr.compute("matmul_blocks_peak", (*rows, blocks), peak, (*names, "b"))
    steps = expr.compute(
        "matmul_blocks_step",
        (*rows, blocks),
        lambda *at: expr.max_of(peaks[at] * (1 / DType.I16.highest), _LEAST_STEP),
        (*names, "b"),
    )

    def rounded(*at: expr.Index) -> expr.Value:
        *row, k = at
        return expr.cast(round(x[at] / steps[(*row, k // block)]), DType.I16)

    short = expr.compute("matmul_blocks_short", x.shape, rounded, (*names, "k"))

    def code(r: expr.Index, v: expr.Index, n: expr.Index, h: expr.Index) -> expr.Value:
        return (halves[r, n, h] << expr.cast(above - bits * v, DType.I16)) >> above

    unpacked = expr.compute("matmul_blocks_codes", (words, count, columns, 2), code, (*"rvnh",))
    r, v, h = (expr.reduce_axis(*each) for each in (("r", per_block), ("v", count), ("h", 2)))

    def sum_of_block(*at: expr.Index) -> expr.Reduce:
        *row, b, n = at
        position = b * block + r.var * (2 * count) + v.var * 2 + h.var
        left = expr.cast(short[(*row, position)], DType.I32)
        right = expr.cast(unpacked[b * per_block + r.var, v.var, n, h.var], DType.I32)
        return expr.sum_over(left * right, r, v, h)

    sums = expr.compute(
        "matmul_blocks_sums", (*rows, blocks, columns), sum_of_block, (*names, "b", "n")
    )
    totals = expr.compute(
        "matmul_blocks_totals",
        (*rows, blocks),
        lambda *at: expr.sum_over(
            expr.cast(short[(*at[:-1], at[-1] * block + term.var)], DType.I32), term
        ),
        (*names, "b"),
    )
    b = expr.reduce_axis("b", blocks)

    def result(*at: expr.Index) -> expr.Reduce:
        *row, n = at
        whole: expr.Value = sums[(*row, b.var, n)]
        if len(tensors) > 3:
            zero = tensors[3]
            kind = DType.F32 if zero.dtype is DType.F32 else DType.I32
            total = expr.cast(totals[(*row, b.var)], kind)
            whole = expr.cast(whole, kind) - total * expr.cast(zero[b.var, n], kind)
        factor = scale[b.var, n] * steps[(*row, b.var)]
        return expr.sum_over(expr.cast(whole, DType.F32) * factor, b)

    return (expr.compute("matmul_blocks", (*rows, columns), result, (*names, "n")),)


_LEAST_STEP = 1e-30  # of a block of zeros
_AXIS = operator.Attribute(
    "axis", 1, "the dimension that has a scale each, where there are several"
)
_BITS = operator.Attribute("bits", 4, "of a code: 4 or 8")
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
    operator.tensor_operator(
        "dequantize_blocks",
        "(code - zero_point) * scale, with a scale for each block along k; codes in words",
        ("words", "scale", "zero_point?"),
        (
            _BITS,
            operator.Attribute(
                "is_rounded", default=False, doc="a product may round its rows to 16 bits"
            ),
        ),
        _infer_blocks,
        _dequantize_blocks,
    ),
    operator.tensor_operator(
        "matmul_blocks",
        "x times dequantize_blocks, each block of a row of x rounded to 16 bits",
        ("x", "halves", "scale", "zero_point?"),
        (_BITS,),
        _infer_product,
        _matmul_blocks,
        operator.Pattern.ANCHOR,
        fold=operator.Fold.ROUNDED,
    ),
)
