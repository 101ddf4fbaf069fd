"""Products of matrices, and attention."""

from __future__ import annotations

import math
from functools import partial

from tensorwright.base import DType
from tensorwright.expr import Index
from tensorwright.graph.imports.call import Call, Operand, Results, Table
from tensorwright.graph.imports.formula import scaled
from tensorwright.ops import is_multiple, product_of, sizes_of

_WIDE = (DType.F32, DType.F64)
_MASK, _PAST_KEY, _PAST_VALUE, _LENGTHS = 3, 4, 5, 6

_UNREAD = {"softmax_precision", "qk_matmul_output_mode"}  # of outputs that nobody reads


_SIMPLE = {"q_num_heads", "kv_num_heads", "scale", "is_causal", "softcap", *_UNREAD}


def _heads(call: Call, position: int, attribute: str) -> str:
    """(batch, length, heads * size) as (batch, heads, length, size); four dimensions stay."""
    x = call.tensor(position)
    return x if call.rank(position) == 4 else split_heads(call, x, call.integer(attribute))


def split_heads(call: Call, x: str, heads: int) -> str:
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    batch, length, width = sizes_of(call.type_of(x))
    if not is_multiple(width, heads):
        raise call.unsupported(f"{heads} heads do not divide {width}")
    split = call.add("reshape", x, shape=(batch, length, heads, width // heads))
    return call.add("transpose", split, perm=(0, 2, 1, 3))


def joined_heads(call: Call, x: str) -> str:
    """(batch, heads, length, size) as (batch, length, heads * size)."""
    batch, heads, length, size = sizes_of(call.type_of(x))
    joined = call.add("transpose", x, perm=(0, 2, 1, 3))
    return call.add("reshape", joined, shape=(batch, length, heads * size))


def _attention(call: Call) -> Results | None:
    """The common cases, with a cache or without; everything else goes the standard's long way."""
    inputs = [call.operand(at) for at in range(3)]
    special = (
        any(call.wanted[3:])
        or call.has(_PAST_KEY) != call.has(_PAST_VALUE)
        or (call.has(_PAST_KEY) and call.has(_LENGTHS))
        or any(call.dtype_of(each) not in _WIDE for each in inputs)
        or not call.attributes.keys() <= _SIMPLE
    )
    if special:
        return None
    q = _heads(call, 0, "q_num_heads")
    k = _heads(call, 1, "kv_num_heads")
    v = _heads(call, 2, "kv_num_heads")
    if call.has(_PAST_KEY):
        k = call.add("concat", call.tensor(_PAST_KEY), k, axis=2)
        v = call.add("concat", call.tensor(_PAST_VALUE), v, axis=2)
    mask = call.tensor(_MASK) if call.has(_MASK) else None
    if mask is not None and call.dtype_of(_MASK) not in (DType.BOOL, call.dtype_of(0)):
        mask = call.add("cast", mask, to=call.dtype_of(0))
    if mask is not None and call.sizes(_MASK)[-1] != sizes_of(call.type_of(k))[2]:
        return None
    is_causal = call.flag("is_causal")
    if call.has(_LENGTHS):
        mask, is_causal = _seen(call, q, k, mask), False
    masks = () if mask is None else (mask,)
    y = _attended(
        call, q, k, v, *masks, is_causal=is_causal, continues=is_causal and call.has(_PAST_KEY)
    )
    return (y if call.rank(0) == 4 else joined_heads(call, y), k, v)


def _seen(call: Call, q: str, k: str, mask: str | None) -> str:
    """The mask, with keys behind the length of each example masked, and those behind a row.

    The rows are the last ones of each example.
    """
    rows, keys = (sizes_of(call.type_of(each))[2] for each in (q, k))
    key = call.add("reshape", call.positions(keys, DType.I64), shape=(1, keys))
    row = call.add("reshape", call.positions(rows, DType.I64), shape=(rows, 1))
    lengths = call.add("cast", call.tensor(_LENGTHS), to=DType.I64)
    lengths = call.add("reshape", lengths, shape=(call.sizes(_LENGTHS)[0], 1, 1, 1))
    seen = call.add("less", key, lengths)
    if call.flag("is_causal"):
        first = call.add("sub", lengths, call.full((), rows, DType.I64))
        before = call.add("less_or_equal", key, call.add("add", row, first))
        seen = call.add("and", seen, before)
    return seen if mask is None else masked(call, seen, mask)


def masked(call: Call, seen: str, mask: str) -> str:
    """A mask of words or numbers for the keys that are seen; the others are masked."""
    if call.dtype_of(mask) is DType.BOOL:
        return call.add("and", seen, mask)
    return call.add("where", seen, mask, call.as_array(-math.inf, call.dtype_of(mask)))


def _attended(call: Call, *operands: Operand, is_causal: bool, continues: bool = False) -> str:
    """The values that queries see by keys, under a mask where there is one."""
    return call.add(
        "attention",
        *operands,
        scale=call.real("scale", 0.0),
        causal=is_causal,
        continues=continues,
        softcap=call.real("softcap", 0.0),
        nan_weights="zero_without_keys" if len(operands) > 3 else "kept",
    )


ATTENTION: Table = (("Attention", _attention),)


# -- ATen


def _linear(call: Call) -> Results:
    """input weight^T + bias"""
    x, weight = call.tensor("input"), call.tensor("weight")
    if _is_gemm(call, x, weight):
        return (call.add("gemm", x, weight, *call.optional("bias"), trans_b=True),)
    turned = call.add("transpose", weight, perm=(1, 0)) if call.rank(weight) == 2 else weight
    product = call.add("matmul", x, turned)
    if call.has("bias"):
        product = call.add("add", product, call.tensor("bias"))
    return (product,)


def _is_gemm(call: Call, left: str, right: str) -> bool:
    """Whether both are matrices of floats: then `gemm` computes the scales and the bias, too."""
    return call.rank(left) == call.rank(right) == 2 and call.dtype_of(left).is_float


def _product_and_sum(left: str, right: str, call: Call) -> Results:
    """beta * self + alpha * left right"""
    a, b, beta = call.tensor(left), call.tensor(right), call.get("beta", 1)
    if _is_gemm(call, a, b):
        operands = (a, b, *((call.tensor("self"),) if beta else ()))
        factors = {"alpha": call.real("alpha", 1.0), "beta": call.real("beta", 1.0)}
        return (call.add("gemm", *operands, **factors),)
    product = scaled(call, call.add("matmul", a, b), "alpha")
    if beta == 0:
        return (product,)
    return (call.add("add", product, scaled(call, call.tensor("self"), "beta")),)


def _einsum(call: Call) -> Results:
    operands = call.tensors("tensors")
    return (call.add("einsum", *operands, equation=call.text("equation").replace(" ", "")),)


def _grouped_product(rows: str, weights: str, call: Call) -> Results:
    """Each row times the matrix of its group: of experts, between which rows are sorted.

    Shapes:  rows (m, k), weights (groups, k, n), offs (groups,) the end of each group's rows
             -> (m, n)
    """
    x, weight, ends = call.tensor(rows), call.tensor(weights), call.tensor("offs")
    if (call.rank(x), call.rank(weight)) != (2, 3) or call.has("bias"):
        raise call.unsupported("it multiplies other than rows by a matrix for each group")
    (count, _), (groups, _, width) = call.sizes(x), call.sizes(weight)
    row = call.add("range", size=count, start=0, step=1, dtype=call.dtype_of(ends))
    row = call.add("reshape", row, shape=(count, 1))
    is_behind = call.cast(call.add("less_or_equal", ends, row), DType.I32)
    group = call.add("reduce_sum", is_behind, axes=(1,), keepdims=False)
    group = call.add("min", group, call.full((), groups - 1, DType.I32))  # rows of no group
    if isinstance(count, int) and isinstance(groups, int) and count <= groups:
        x = call.add("unsqueeze", x, axes=(1,))
        own = call.take(weight, group)
        return (call.add("squeeze", call.add("matmul", x, own), axes=(1,)),)
    products = call.add("matmul", call.add("unsqueeze", x, axes=(0,)), weight)
    at = call.add("reshape", group, shape=(1, count, 1))
    at = call.add("expand", at, shape=(1, count, width))
    chosen = call.add("gather_elements", products, at, axis=0)
    return (call.add("squeeze", chosen, axes=(0,)),)


def _aten_attention(call: Call) -> Results:
    """softmax(scale * query key^T + mask) value; a row whose keys are all masked is 0.

    Shapes:  query (..., l, e), key (..., s, e), value (..., s, f) -> (..., l, f)
    """
    if call.real("dropout_p", 0.0) > 0:
        raise call.unsupported("it drops weights at random", "call eval() on the module")
    q, k, v = (call.tensor(name) for name in ("query", "key", "value"))
    lead = call.sizes(q)[:-2]
    if len(lead) != 2:
        q, k, v = (  # further leading dimensions are joined to the first one
            call.add("reshape", each, shape=(product_of(shape[:-2]), 1, *shape[-2:]))
            for each, shape in zip((q, k, v), map(call.sizes, (q, k, v)), strict=True)
        )
    mask = _mask(call, q, k)
    y = _attended(call, q, k, v, *mask, is_causal=call.flag("is_causal"))
    if len(lead) != 2:
        y = call.add("reshape", y, shape=(*lead, *call.sizes(y)[-2:]))
    return (y,)


def _mask(call: Call, q: str, k: str) -> tuple[str, ...]:
    """The tensor that is added to the scores."""
    if not call.has("attn_mask"):
        return ()
    mask = call.tensor("attn_mask")
    wanted: tuple[Index, ...] = (*call.sizes(q)[:3], call.sizes(k)[2])
    if call.rank(mask) > 4 or (call.rank(mask) > 2 and call.rank(call.tensor("query")) != 4):
        lead = call.sizes(call.tensor("query"))[:-2]
        mask = call.add("expand", mask, shape=(*lead, *wanted[2:]))
        mask = call.add("reshape", mask, shape=wanted)
    dtype = call.dtype_of(q)
    return (mask if call.dtype_of(mask) is DType.BOOL else call.cast(mask, dtype),)


ATEN_PRODUCTS: Table = (
    ("linear", _linear),
    ("addmm", partial(_product_and_sum, "mat1", "mat2")),
    ("addmv", partial(_product_and_sum, "mat", "vec")),
    ("baddbmm", partial(_product_and_sum, "batch1", "batch2")),
    ("einsum", _einsum),
    ("_grouped_mm", partial(_grouped_product, "self", "mat2")),
    ("grouped_mm_fallback", partial(_grouped_product, "input", "weight")),
    ("scaled_dot_product_attention", _aten_attention),
    ("_scaled_dot_product_flash_attention_for_cpu", _aten_attention),
)
