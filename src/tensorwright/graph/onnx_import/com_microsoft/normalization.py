"""Normalisations of what is added to a shortcut, and of embeddings."""

from __future__ import annotations

import numpy as np

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table
from tensorwright.graph.onnx_import.converters.normalization import normalized

_SKIP_EPSILON = 1e-12


def _normalized(
    call: Call, x: str, vectors: tuple[int, ...], epsilon: float, axis: int = -1
) -> str:
    """Rows normalised, times the first vector; plus the second where the node has two.

    vectors   the inputs that hold them
    """
    operator = "layer_norm" if len(vectors) == 2 else "rms_norm"
    given = [call.tensor(each) for each in vectors if call.has(each)]
    return normalized(call, operator, x, given, axis=axis, epsilon=epsilon)


def _without_statistics(call: Call) -> None:
    if call.wants(1) or call.wants(2):
        raise call.unsupported("its statistics are outputs", "export the model for inference")


def _skip(call: Call, vectors: tuple[int, ...], bias: int) -> Results:
    _without_statistics(call)
    x = call.add("add", call.tensor(0), call.tensor(1))
    if call.has(bias):
        x = call.add("add", x, call.tensor(bias))
    y = _normalized(call, x, vectors, call.real("epsilon", _SKIP_EPSILON))
    return y, np.zeros(0), np.zeros(0), x


def _skip_layer_norm(call: Call) -> Results:
    return _skip(call, (2, 3), 4)


def _skip_rms_norm(call: Call) -> Results:
    return _skip(call, (2,), 3)


def _rms_norm(call: Call) -> Results:
    _without_statistics(call)
    epsilon, axis = call.real("epsilon", 1e-5), call.integer("axis", -1)
    return (_normalized(call, call.tensor(0), (1,), epsilon, axis),)


def _embedding(call: Call) -> Results:
    """Words, positions and segments looked up, added, normalised; how many words a mask keeps."""
    batch, length = call.sizes(0)
    x = call.add("gather", call.tensor(2), call.tensor(0), axis=0)
    if call.has(8):
        positions = call.add("gather", call.tensor(3), call.tensor(8), axis=0)
    else:
        positions = call.add("slice", call.tensor(3), starts=(0,), ends=(length,), axes=(0,))
    x = call.add("add", x, positions)
    if call.has(1) and call.has(4):
        x = call.add("add", x, call.add("gather", call.tensor(4), call.tensor(1), axis=0))
    y = _normalized(call, x, (5, 6), call.real("epsilon", _SKIP_EPSILON))
    kept: Operand = call.add("full", shape=(batch,), value=0, dtype=DType.I32)
    if call.has(7):
        ones = call.add("equal", call.tensor(7), np.ones((), np.int32))
        kept = call.add("cast", ones, to=DType.I32)
        kept = call.add("reduce_sum", kept, axes=(1,), keepdims=False)
    return y, kept, x


NORMALIZATION: Table = (
    ("SkipLayerNormalization", _skip_layer_norm),
    ("SkipSimplifiedLayerNormalization", _skip_rms_norm),
    ("SimplifiedLayerNormalization", _rms_norm),
    ("EmbedLayerNormalization", _embedding),
)
