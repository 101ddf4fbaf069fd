"""Normalisations and the softmax family."""

from __future__ import annotations

import math

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Converter, Operand, Results, Table

_WIDE = (DType.F32, DType.F64)


def _vectors(call: Call, count: int) -> tuple[str, ...]:
    """Inputs 1..count in the element type of the data."""
    dtype = call.type_at(0).dtype
    found = []
    for position in range(1, count + 1):
        vector: Operand = call.tensor(position)
        if call.type_at(position).dtype is not dtype:
            vector = call.add("cast", vector, to=dtype)
        found.append(call.as_tensor(vector))
    return tuple(found)


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


def _layer_norm(call: Call) -> Results | None:
    """Half precision is computed in f32, and its statistics are outputs: the standard's function
    does both.
    """
    if any(call.wanted[1:]) or call.type_at(0).dtype not in _WIDE:
        return None
    axis, epsilon = call.integer("axis", -1), call.real("epsilon", 1e-5)
    return (call.add("layer_norm", *call.tensors(), axis=axis, epsilon=epsilon),)


def _rms_norm(call: Call) -> Results | None:
    if call.type_at(0).dtype not in _WIDE:
        return None
    axis, epsilon = call.integer("axis", -1), call.real("epsilon", 1e-5)
    return (call.add("rms_norm", *call.tensors(), axis=axis, epsilon=epsilon),)


def _group_norm(call: Call) -> Results | None:
    """Before operator set 21 scale and bias were per group: the function repeats them."""
    if call.opset < 21 or call.type_at(0).dtype not in _WIDE:
        return None
    groups, epsilon = call.integer("num_groups"), call.real("epsilon", 1e-5)
    return (call.add("group_norm", *call.tensors(), groups=groups, epsilon=epsilon),)


def _lrn(call: Call) -> Results:
    return (
        call.add(
            "lrn",
            call.tensor(0),
            size=call.integer("size"),
            alpha=call.real("alpha", 1e-4),
            beta=call.real("beta", 0.75),
            bias=call.real("bias", 1.0),
        ),
    )


def _lp_normalization(call: Call) -> Results:
    axis, p = call.integer("axis", -1), call.integer("p", 2)
    return (call.add("lp_normalization", call.tensor(0), axis=axis, p=p),)


def _softmax(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        """Before operator set 13 the dimensions from `axis` on are one row."""
        x, shape = call.tensor(0), call.shape(0)
        if call.opset >= 13:
            return (call.add(operator, x, axis=call.integer("axis", -1)),)
        rank = len(shape)
        axis = call.integer("axis", 1)
        axis += rank if axis < 0 else 0
        if axis == rank - 1 or math.prod(shape[axis + 1 :]) == 1:
            return (call.add(operator, x, axis=min(axis, rank - 1)),)
        flat = (math.prod(shape[:axis]), math.prod(shape[axis:]))
        rows = call.add("reshape", x, shape=flat)
        return (call.add("reshape", call.add(operator, rows, axis=1), shape=shape),)

    return convert


NORMALIZATION: Table = (
    ("BatchNormalization", _batch_norm),
    ("InstanceNormalization", _instance_norm),
    ("LayerNormalization", _layer_norm),
    ("RMSNormalization", _rms_norm),
    ("GroupNormalization", _group_norm),
    ("LRN", _lrn),
    ("LpNormalization", _lp_normalization),
    ("Softmax", _softmax("softmax")),
    ("LogSoftmax", _softmax("log_softmax")),
    ("Hardmax", _softmax("hardmax")),
)
