"""Attention with its projections, heads, masks and past; rotary embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import Index
from tensorwright.graph.imports.call import Call, Operand, Results, Table
from tensorwright.graph.imports.converters.indexing import rows_written
from tensorwright.graph.imports.converters.products import joined_heads, masked, split_heads
from tensorwright.ops import decided, is_equal, not_decided, number_of, shape_text, sizes_of

_FILTER = -10000.0


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
    """A mask, or lengths of batches, of positions to keep as numbers to add."""
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
    rows = call.take(call.tensor(position), at)
    count, halves = call.sizes(at)[0], call.extents(position)[-1]
    return call.add("reshape", rows, shape=(count, 1, length, halves))


def _grouped(call: Call) -> Results:
    """Attention over a cache, whose heads of keys serve several of queries.

    One sequence extends its cache by the rows of the call.  In a batch, or where the cache has room
    already, each example has its own length: its rows are written behind those before, and rows
    behind its length mean nothing.
    Shapes:  q (b, l, h * e), or (b, l, (h + 2 * g) * e) with k and v; k, v (b, l, g * e); past
             (b, g, p, e) -> (b, l, h * e), present (b, g, p + l, e), or (b, g, p, e) with room
    """
    heads, groups = call.integer("num_heads"), call.integer("kv_num_heads")
    if call.integer("smooth_softmax", 0) or any(map(call.has, range(11, len(call.operands)))):
        raise call.unsupported("a sink of attention, and a cache of bytes, are not supported")
    inputs = [call.tensor(0), *(call.tensor(at) for at in (1, 2) if call.has(at))]
    batch, length, width = call.sizes(0)
    if not isinstance(batch, int) and not is_equal(batch, 1):
        reason = "whether sequences have several lengths decides how a cache is written"
        raise not_decided((batch,), reason, f"{batch}=1")
    if len(inputs) == 1:
        size = number_of(width) // (heads + 2 * groups)
        inputs = list(
            call.apply("split", inputs[0], sizes=(heads * size, *(groups * size,) * 2), axis=2)
        )
    counts = (heads, groups, groups)
    q, k, v = (split_heads(call, x, n) for x, n in zip(inputs, counts, strict=True))
    past: Index = call.sizes(3)[2] if call.has(3) else 0
    total = call.index(6, "total_sequence_length")
    extends = is_equal(batch, 1) and _is_sum(call, total, past, length)
    first = call.full((1,), past, DType.I64) if extends else _starts(call, total, past, length)
    count = sizes_of(call.type_of(first))[0]
    row = call.add("reshape", call.positions(length, DType.I64), shape=(1, length))
    row = call.add("add", call.add("reshape", first, shape=(count, 1)), row)
    if call.flag("do_rotary"):
        at = call.tensor(9) if call.has(9) else row
        shape = (sizes_of(call.type_of(at))[0], 1, length, call.extents(7)[1])
        angles = [
            call.add("reshape", call.take(call.tensor(each), at), shape=shape) for each in (7, 8)
        ]
        q, k = (
            _turned(call, x, angles, 2 * shape[3], is_interleaved=call.flag("rotary_interleaved"))
            for x in (q, k)
        )
    present = [k, v]
    if call.has(3) and extends:
        present = [call.add("concat", call.tensor(3 + n), x, axis=2) for n, x in enumerate((k, v))]
    elif call.has(3):
        caches = [_with_room(call, call.tensor(3 + n), past, total) for n in range(2)]
        present = [
            rows_written(call, cache, x, first, 2) for cache, x in zip(caches, (k, v), strict=True)
        ]
    seen_k, seen_v = (call.piece(x, 2, 0, total) for x in present)
    row = call.add("reshape", row, shape=(count, 1, length, 1))
    key = call.add("reshape", call.positions(total, DType.I64), shape=(1, total))
    window = call.integer("local_window_size", -1)
    masks = [] if extends else [call.add("less_or_equal", key, row)]  # else causal says it
    if window > 0:
        near = call.add("less", call.add("sub", row, key), np.array(window, np.int64))
        masks = [call.add("and", *masks, near) if masks else near]
    if call.has(10):
        bias = call.tensor(10)
        masks = [masked(call, masks[0], bias) if masks else bias]
    factors = {"scale": call.real("scale", 0.0), "softcap": call.real("softcap", 0.0)}
    factors |= {"causal": extends, "continues": extends}
    y = call.add("attention", q, seen_k, seen_v, *masks, **factors)
    return (joined_heads(call, y), *present)


def _is_sum(call: Call, total: Index, past: Index, length: Index) -> bool:
    """Whether the total length is that of the cache and the new rows."""
    if is_equal(total, past + length):
        return True
    if not decided(total <= past + length):
        reason = f"its total length is {total}, that of the cache and the new rows {past + length}"
        remedy = "give a mask of the cache and the new rows together"
        raise call.unsupported(reason, remedy)
    return False


def _starts(call: Call, total: Index, past: Index, length: Index) -> str:
    """How many rows each example has before those of the call; a padded prompt has none."""
    _is_sum(call, total, past, length)
    last = call.add("cast", call.tensor(5), to=DType.I64)
    last = call.add("reshape", last, shape=(call.sizes(0)[0],))
    before = call.add("sub", last, call.full((), length - 1, DType.I64))
    return call.add("max", before, np.zeros((), np.int64))


def _with_room(call: Call, cache: str, past: Index, total: Index) -> str:
    """A cache that is at least as long as the rows that will be in it; the others are 0."""
    if decided(past >= total):
        return cache
    batch, groups, _, size = sizes_of(call.type_of(cache))
    rest = call.full((batch, groups, total - past, size), 0.0, call.dtype_of(cache))
    return call.add("concat", cache, rest, axis=2)


ATTENTION: Table = (
    ("Attention", _attention),
    ("GroupQueryAttention", _grouped),
    ("MultiHeadAttention", _multi_head),
    ("RotaryEmbedding", _rotary),
)
