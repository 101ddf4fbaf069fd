"""Normalisations and the softmax family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import (
    Call,
    Converter,
    Operand,
    Results,
    Table,
    in_single_precision,
)
from tensorwright.graph.onnx_import.counterparts import TRAILING_NORMS, Counterpart
from tensorwright.ops import NARROW, AttributeValue

_WIDE = (DType.F32, DType.F64)


def _vectors(call: Call, count: int) -> tuple[str, ...]:
    """Inputs 1..count in the element type of the data."""
    dtype = call.type_at(0).dtype
    vectors = []
    for position in range(1, count + 1):
        vector: Operand = call.tensor(position)
        if call.type_at(position).dtype is not dtype:
            vector = call.add("cast", vector, to=dtype)
        vectors.append(call.as_tensor(vector))
    return tuple(vectors)


def _batch_norm(call: Call) -> Results:
    if call.opset < 9 and not call.flag("spatial", default=True):
        raise call.unsupported("spatial=0, statistics per element, is not supported")
    epsilon = call.real("epsilon", 1e-5)
    x = call.tensor(0)
    scale, bias, mean, var = _vectors(call, 4)
    if not call.flag("training_mode", default=False):
        if any(call.wanted[1:]):
            raise call.unsupported("it is in training mode", "export the model for inference")
        return (call.add("batch_norm", x, scale, bias, mean, var, epsilon=epsilon),)
    momentum = call.real("momentum", 0.9)
    dtype = call.type_at(0).dtype
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
    dtypes = [call.type_of(each).dtype for each in (x, *vectors)]
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
    if call.operator == "RMSNormalization" and call.type_at(1).dtype is not call.type_at(0).dtype:
        axis, epsilon = call.integer("axis", -1), call.real("epsilon", 1e-5)
        x, scale = call.tensors()
        return (normalized(call, "rms_norm", x, (scale,), axis=axis, epsilon=epsilon),)
    if is_old or any(call.wanted[1:]) or call.type_at(0).dtype not in _WIDE:
        return None
    return counterpart.convert(call)


def _mean_variance(call: Call) -> Results:
    """As the standard's function, whose constants are of f32, for floats of any type."""
    axes = call.integers("axes", (0, 2, 3))
    x, dtype = call.tensor(0), call.type_at(0).dtype
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
