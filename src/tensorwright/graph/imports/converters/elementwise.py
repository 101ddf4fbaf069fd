"""Element-wise operators that ONNX says otherwise than we, and what is left out of inference.

Folds over axes.

Normalisations and the softmax family.

Attention.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from tensorwright.base import DType
from tensorwright.graph.imports.call import (
    Call,
    Converter,
    Operand,
    Results,
    Table,
    in_single_precision,
)
from tensorwright.graph.imports.counterparts import TRAILING_NORMS, Counterpart
from tensorwright.graph.imports.tensors import dtype_of
from tensorwright.ops import NARROW, AttributeValue, is_multiple, sizes_of

VARIADIC = (("Sum", "sum"), ("Mean", "mean"), ("Max", "max"), ("Min", "min"))


def _variadic(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        operands = call.tensors()
        if len(operands) == 1:
            return (operands[0],)
        chosen = "add" if operator == "sum" and len(operands) == 2 else operator
        return (call.add(chosen, *operands),)

    return convert


def _identity(call: Call) -> Results:
    return (call.operand(0),)


def _dropout(call: Call) -> Results:
    """Inference: the data as it is, and a mask of ones."""
    if call.opset >= 12 and call.has(2) and bool(call.scalar(2, "training_mode")):
        raise call.unsupported("it is in training mode", "export the model for inference")
    if not call.wants(1):
        return (call.operand(0),)
    mask = call.as_array(1, DType.BOOL if call.opset >= 10 else call.dtype_of(0))
    return call.operand(0), call.add("expand", mask, shape=call.sizes(0))


def _clip(call: Call) -> Results:
    x = call.tensor(0)
    if call.opset < 11:
        limits = {name: call.real(name) for name in ("min", "max") if call.has(name)}
        return (call.add("clip", x, **limits),)
    limits = {}
    for position, name in ((1, "min"), (2, "max")):
        limit = call.static_value(position)
        if limit is not None and limit.size == 1:
            limits[name] = limit.reshape(-1)[0].item()
    if limits:
        x = call.add("clip", x, **limits)
    for position, name, operator in ((1, "min", "max"), (2, "max", "min")):
        if call.has(position) and name not in limits:
            x = call.add(operator, x, call.tensor(position))
    return (x,)


def _cast(call: Call) -> Results:
    target = dtype_of(call.integer("to"), call.label, call.operator)
    if call.dtype_of(0) is target:
        return (call.operand(0),)
    return (call.add("cast", call.tensor(0), to=target),)


def _bit_cast(call: Call) -> Results:
    target = dtype_of(call.integer("to"), call.label, call.operator)
    return (call.add("bitcast", call.tensor(0), to=target),)


def _cast_like(call: Call) -> Results:
    target = call.dtype_of(1)
    if call.dtype_of(0) is target:
        return (call.operand(0),)
    return (call.add("cast", call.tensor(0), to=target),)


def _mod(call: Call) -> Results:
    operator = "fmod" if call.flag("fmod") else "floormod"
    return (call.add(operator, call.tensor(0), call.tensor(1)),)


def _bit_shift(call: Call) -> Results:
    operator = "shift_left" if call.text("direction") == "LEFT" else "shift_right"
    return (call.add(operator, call.tensor(0), call.tensor(1)),)


ELEMENTWISE: Table = (
    *((theirs, _variadic(ours)) for theirs, ours in VARIADIC),
    ("Identity", _identity),
    ("Dropout", _dropout),
    ("Clip", _clip),
    ("Cast", _cast),
    ("CastLike", _cast_like),
    ("BitCast", _bit_cast),
    ("Mod", _mod),
    ("BitShift", _bit_shift),
)


REDUCTIONS = (
    ("ReduceSum", "reduce_sum", 13),
    ("ReduceMean", "reduce_mean", 18),
    ("ReduceProd", "reduce_prod", 18),
    ("ReduceMax", "reduce_max", 18),
    ("ReduceMin", "reduce_min", 18),
    ("ReduceL1", "reduce_l1", 18),
    ("ReduceL2", "reduce_l2", 18),
    ("ReduceSumSquare", "reduce_sum_square", 18),
    ("ReduceLogSum", "reduce_log_sum", 18),
    ("ReduceLogSumExp", "reduce_log_sum_exp", 18),
)
_ON_BOOLS = {"reduce_max": "reduce_any", "reduce_min": "reduce_all"}


def _reduce(operator: str, axes_are_input_from: int) -> Converter:
    def convert(call: Call) -> Results:
        chosen = operator
        if call.dtype_of(0) is DType.BOOL:
            chosen = _ON_BOOLS.get(operator, operator)
        axes = call.optional_ints(1, "axes", input_from=axes_are_input_from)
        keepdims = call.flag("keepdims", default=True)
        keeps_all = not axes and call.flag("noop_with_empty_axes")
        if keeps_all or call.rank(0) == 0:
            return _without_axes(call, operator)
        return (call.add(chosen, call.tensor(0), axes=axes, keepdims=keepdims),)

    return convert


def _without_axes(call: Call, operator: str) -> Results:
    """Nothing is folded; what is done to each element stays."""
    x = call.tensor(0)
    match operator:
        case "reduce_l1" | "reduce_l2":
            return (call.add("abs", x),)
        case "reduce_sum_square":
            return (call.add("mul", x, x),)
        case "reduce_log_sum":
            return (call.add("log", x),)
        case _:
            return (call.operand(0),)


REDUCTION: Table = (*((theirs, _reduce(ours, version)) for theirs, ours, version in REDUCTIONS),)


_WIDE = (DType.F32, DType.F64)


def _vectors(call: Call, count: int) -> tuple[str, ...]:
    """Inputs 1..count in the element type of the data."""
    dtype = call.dtype_of(0)
    vectors = []
    for position in range(1, count + 1):
        vector: Operand = call.tensor(position)
        if call.dtype_of(position) is not dtype:
            vector = call.add("cast", vector, to=dtype)
        vectors.append(call.as_tensor(vector))
    return tuple(vectors)


def _batch_norm(call: Call) -> Results:
    if call.opset < 9 and not call.flag("spatial", default=True):
        raise call.unsupported("spatial=0, statistics per element, is not supported")
    epsilon = call.real("epsilon", 1e-5)
    x = call.tensor(0)
    scale, bias, mean, var = _vectors(call, 4)
    if not call.flag("training_mode"):
        if any(call.wanted[1:]):
            raise call.unsupported("it is in training mode", "export the model for inference")
        return (call.add("batch_norm", x, scale, bias, mean, var, epsilon=epsilon),)
    momentum = call.real("momentum", 0.9)
    dtype = call.dtype_of(0)
    axes = tuple(axis for axis in range(call.rank(0)) if axis != 1)
    centre = call.add("reduce_mean", x, axes=axes, keepdims=True)
    distance = call.add("sub", x, centre)
    square = call.add("mul", distance, distance)
    now_mean = call.add("reduce_mean", x, axes=axes, keepdims=False)
    now_var = call.add("reduce_mean", square, axes=axes, keepdims=False)
    y = call.add("batch_norm", x, scale, bias, now_mean, now_var, epsilon=epsilon)
    old, new = call.as_array(momentum, dtype), call.as_array(1 - momentum, dtype)
    moved = [
        call.add("add", call.add("mul", before, old), call.add("mul", now, new))
        for before, now in ((mean, now_mean), (var, now_var))
    ]
    return (y, *moved)


def _instance_norm(call: Call) -> Results:
    scale, bias = _vectors(call, 2)
    x = call.tensor(0)
    return (call.add("instance_norm", x, scale, bias, epsilon=call.real("epsilon", 1e-5)),)


def normalized(
    call: Call, operator: str, x: str, vectors: Sequence[str], **attributes: AttributeValue
) -> str:
    """Rows normalised in f32 at least; the result has the type of the first vector, the scale."""
    dtypes = [call.dtype_of(each) for each in (x, *vectors)]
    wide = DType.F64 if DType.F64 in dtypes else DType.F32
    operands = [
        each if dtype is wide else call.add("cast", each, to=wide)
        for each, dtype in zip((x, *vectors), dtypes, strict=True)
    ]
    y = call.add(operator, *operands, **attributes)
    return y if dtypes[1] is wide else call.add("cast", y, to=dtypes[1])


def _trailing_norm(counterpart: Counterpart, call: Call) -> Results | None:
    """Half precision is computed in f32, and statistics are outputs: the standard's function does
    both. Before operator set 21 scale and bias of groups were per group: it repeats them.
    """
    is_old = call.operator == "GroupNormalization" and call.opset < counterpart.opset
    if call.operator == "RMSNormalization" and call.dtype_of(1) is not call.dtype_of(0):
        axis, epsilon = call.integer("axis", -1), call.real("epsilon", 1e-5)
        x, scale = call.tensors()
        return (normalized(call, "rms_norm", x, (scale,), axis=axis, epsilon=epsilon),)
    if is_old or any(call.wanted[1:]) or call.dtype_of(0) not in _WIDE:
        return None
    return counterpart.convert(call)


def _mean_variance(call: Call) -> Results:
    """As the standard's function, whose constants are of f32, for floats of any type."""
    axes = call.integers("axes", (0, 2, 3))
    x, dtype = call.tensor(0), call.dtype_of(0)
    distance = call.add("sub", x, call.add("reduce_mean", x, axes=axes, keepdims=True))
    square = call.add("mul", distance, distance)
    deviation = call.add("sqrt", call.add("reduce_mean", square, axes=axes, keepdims=True))
    least = call.add("add", deviation, call.as_array(1e-9, dtype))
    return (call.add("div", distance, least),)


def _softmax(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        """Before operator set 13 the dimensions from `axis` on are one row."""
        x, shape = call.tensor(0), call.sizes(0)
        if call.opset >= 13:
            return (call.add(operator, x, axis=call.integer("axis", -1)),)
        rank = len(shape)
        axis = call.integer("axis", 1)
        axis += rank if axis < 0 else 0
        if not 0 <= axis <= rank:
            raise call.unsupported(f"its axis {axis} is none of {rank} dimensions")
        if axis == rank - 1 or math.prod(shape[axis + 1 :]) == 1:
            return (call.add(operator, x, axis=min(axis, rank - 1)),)
        flat = (math.prod(shape[:axis]), math.prod(shape[axis:]))
        rows = call.add("reshape", x, shape=flat)
        return (call.add("reshape", call.add(operator, rows, axis=1), shape=shape),)

    return convert


NORMALIZATION: Table = (
    ("BatchNormalization", _batch_norm),
    ("InstanceNormalization", _instance_norm),
    *((each.theirs, partial(_trailing_norm, each)) for each in TRAILING_NORMS),
    ("MeanVarianceNormalization", in_single_precision(_mean_variance, NARROW)),
    ("Softmax", _softmax("softmax")),
    ("LogSoftmax", _softmax("log_softmax")),
    ("Hardmax", _softmax("hardmax")),
)


_MASK, _PAST_KEY = 3, 4
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
        or any(call.dtype_of(each) not in _WIDE for each in inputs)
        or not call.attributes.keys() <= _SIMPLE
    )
    if special:
        return None
    q = _heads(call, 0, "q_num_heads")
    k = _heads(call, 1, "kv_num_heads")
    v = _heads(call, 2, "kv_num_heads")
    mask: tuple[Operand, ...] = (call.operand(_MASK),) if call.has(_MASK) else ()
    if mask and call.dtype_of(_MASK) not in (DType.BOOL, call.dtype_of(0)):
        mask = (call.add("cast", mask[0], to=call.dtype_of(0)),)
    if mask and call.sizes(_MASK)[-1] != sizes_of(call.type_of(k))[2]:
        return None
    y = call.add(
        "attention",
        q,
        k,
        v,
        *mask,
        scale=call.real("scale", 0.0),
        causal=call.flag("is_causal"),
        softcap=call.real("softcap", 0.0),
        nan_weights="zero_without_keys" if mask else "kept",
    )
    return (y if call.rank(0) == 4 else joined_heads(call, y),)


ATTENTION: Table = (("Attention", _attention),)
