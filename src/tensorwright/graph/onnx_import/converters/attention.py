"""Attention."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table

_MASK, _PAST_KEY = 3, 4
_WIDE = (DType.F32, DType.F64)
_SIMPLE = {"q_num_heads", "kv_num_heads", "scale", "is_causal", "softcap", "softmax_precision"}


def _heads(call: Call, position: int, attribute: str) -> str:
    """(batch, length, heads * size) as (batch, heads, length, size); four dimensions stay."""
    x, shape = call.tensor(position), call.shape(position)
    if len(shape) == 4:
        return x
    heads = call.integer(attribute)
    split = call.add("reshape", x, shape=(*shape[:2], heads, shape[2] // heads))
    return call.add("transpose", split, perm=(0, 2, 1, 3))


def _attention(call: Call) -> Results | None:
    """The common case; everything else goes the standard's long way.

    So do masks of bools: a row in which nothing is left gives 0 there.
    """
    inputs = [call.operand(at) for at in range(3)]
    special = (
        any(call.has(at) for at in range(_PAST_KEY, len(call.operands)))
        or any(call.wanted[1:])
        or any(call.type_of(each).dtype not in _WIDE for each in inputs)
        or not call.attributes.keys() <= _SIMPLE
        or (call.has(_MASK) and call.type_at(_MASK).dtype is DType.BOOL)
    )
    if special:
        return None
    q = _heads(call, 0, "q_num_heads")
    k = _heads(call, 1, "kv_num_heads")
    v = _heads(call, 2, "kv_num_heads")
    mask: tuple[Operand, ...] = (call.operand(_MASK),) if call.has(_MASK) else ()
    if mask and call.shape(_MASK)[-1] != call.builder.shape_of(k)[2]:
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
    )
    if call.rank(0) == 4:
        return (y,)
    batch, heads, length, size = call.builder.shape_of(y)
    joined = call.add("transpose", y, perm=(0, 2, 1, 3))
    return (call.add("reshape", joined, shape=(batch, length, heads * size)),)


ATTENTION: Table = (("Attention", _attention),)
