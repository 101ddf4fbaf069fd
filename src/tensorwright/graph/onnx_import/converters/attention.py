"""Attention."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table
from tensorwright.ops import is_multiple, sizes_of

_MASK, _PAST_KEY = 3, 4
_WIDE = (DType.F32, DType.F64)
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
    """The common case; everything else goes the standard's long way."""
    inputs = [call.operand(at) for at in range(3)]
    special = (
        any(call.has(at) for at in range(_PAST_KEY, len(call.operands)))
        or any(call.wanted[1:])
        or any(call.type_of(each).dtype not in _WIDE for each in inputs)
        or not call.attributes.keys() <= _SIMPLE
    )
    if special:
        return None
    q = _heads(call, 0, "q_num_heads")
    k = _heads(call, 1, "kv_num_heads")
    v = _heads(call, 2, "kv_num_heads")
    mask: tuple[Operand, ...] = (call.operand(_MASK),) if call.has(_MASK) else ()
    if mask and call.type_at(_MASK).dtype not in (DType.BOOL, call.type_at(0).dtype):
        mask = (call.add("cast", mask[0], to=call.type_at(0).dtype),)
    if mask and call.sizes(_MASK)[-1] != sizes_of(call.type_of(k))[2]:
        return None
    y = call.add(
        "attention",
        q,
        k,
        v,
        *mask,
        scale=call.real("scale", 0.0),
        causal=call.flag("is_causal", default=False),
        softcap=call.real("softcap", 0.0),
        nan_weights="zero_without_keys" if mask else "kept",
    )
    return (y if call.rank(0) == 4 else joined_heads(call, y),)


ATTENTION: Table = (("Attention", _attention),)
