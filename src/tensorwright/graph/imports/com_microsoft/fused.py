"""Products, convolutions and activations that were fused."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tensorwright.base import DType
from tensorwright.graph.imports.call import Call, Operand, Results, Table
from tensorwright.graph.imports.converters import CONVERTERS
from tensorwright.graph.imports.converters.normalization import normalized
from tensorwright.graph.imports.counterparts import ACTIVATIONS
from tensorwright.graph.imports.formula import by_formula
from tensorwright.ops import operator

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


def _skip(vectors: tuple[int, ...], bias: int, call: Call) -> Results:
    _without_statistics(call)
    x = call.add("add", call.tensor(0), call.tensor(1))
    if call.has(bias):
        x = call.add("add", x, call.tensor(bias))
    y = _normalized(call, x, vectors, call.real("epsilon", _SKIP_EPSILON))
    return y, np.zeros(0), np.zeros(0), x


def _rms_norm(call: Call) -> Results:
    _without_statistics(call)
    epsilon, axis = call.real("epsilon", 1e-5), call.integer("axis", -1)
    return (_normalized(call, call.tensor(0), (1,), epsilon, axis),)


def _embedding(call: Call) -> Results:
    """Words, positions and segments looked up, added, normalised; how many words a mask keeps."""
    batch, length = call.sizes(0)
    x = call.take(call.tensor(2), call.tensor(0))
    if call.has(8):
        positions = call.take(call.tensor(3), call.tensor(8))
    else:
        positions = call.add("slice", call.tensor(3), starts=(0,), ends=(length,), axes=(0,))
    x = call.add("add", x, positions)
    if call.has(1) and call.has(4):
        x = call.add("add", x, call.take(call.tensor(4), call.tensor(1)))
    y = _normalized(call, x, (5, 6), call.real("epsilon", _SKIP_EPSILON))
    kept: Operand = call.add("full", shape=(batch,), value=0, dtype=DType.I32)
    if call.has(7):
        ones = call.add("equal", call.tensor(7), np.ones((), np.int32))
        kept = call.add("cast", ones, to=DType.I32)
        kept = call.add("reduce_sum", kept, axes=(1,), keepdims=False)
    return y, kept, x


NORMALIZATION: Table = (
    ("SkipLayerNormalization", partial(_skip, (2, 3), 4)),
    ("SkipSimplifiedLayerNormalization", partial(_skip, (2,), 3)),
    ("SimplifiedLayerNormalization", _rms_norm),
    ("EmbedLayerNormalization", _embedding),
)


def _fused_matmul(call: Call) -> Results:
    """alpha times a product of matrices, either of them transposed."""
    factors = []
    for position, side in enumerate("AB"):
        if call.flag(f"transBatch{side}", default=False):
            raise call.unsupported(f"transBatch{side}, batches inside of rows, is not supported")
        x, rank = call.tensor(position), call.rank(position)
        if call.flag(f"trans{side}", default=False) and rank > 1:
            x = call.add("transpose", x, perm=(*range(rank - 2), rank - 1, rank - 2))
        factors.append(x)
    y = call.add("matmul", *factors)
    alpha = call.real("alpha", 1.0)
    if alpha != 1.0:
        y = call.add("mul", y, call.as_array(alpha, call.dtype_of(y)))
    return (y,)


def _fused_conv(call: Call) -> Results | None:
    """A convolution, a tensor that is added, an activation."""
    results = CONVERTERS["Conv"](replace(call, operator="Conv", operands=call.operands[:3]))
    if results is None:
        return None
    y = call.as_tensor(results[0])
    if call.has(3):
        y = call.add("add", y, call.tensor(3))
    return (_activated(call, y),)


def _fused_gemm(call: Call) -> Results | None:
    """A product of matrices, and an activation."""
    results = CONVERTERS["Gemm"](replace(call, operator="Gemm"))
    return None if results is None else (_activated(call, call.as_tensor(results[0])),)


_ACTIVATIONS = {**ACTIVATIONS, "Clip": "clip"}


def _activated(call: Call, y: str) -> str:
    name = call.text("activation", "")
    if not name:
        return y
    if name not in _ACTIVATIONS:
        raise call.unsupported(f"its activation {name} is not supported")
    ours = _ACTIVATIONS[name]
    names = [each.name for each in operator(ours).attributes]
    if call.has("activation_params"):
        values = call.reals("activation_params")
    else:
        values = tuple(call.real(f"activation_{each}") for each in names)
    return call.add(ours, y, **dict(zip(names, values, strict=True)))


FUSED: Table = (
    ("Gelu", by_formula("x", "gelu(x)")),
    ("BiasGelu", by_formula("x bias", "gelu(x + bias)")),
    ("FastGelu", by_formula("x bias?", "gelu(x + bias, approximate='tanh')")),
    ("QuickGelu", by_formula("x alpha=1.702", "swish(x, alpha=alpha)")),
    ("FusedMatMul", _fused_matmul),
    ("FusedConv", _fused_conv),
    ("FusedGemm", _fused_gemm),
)
