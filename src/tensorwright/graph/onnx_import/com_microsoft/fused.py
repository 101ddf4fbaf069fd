"""Products, convolutions and activations that were fused."""

from __future__ import annotations

from dataclasses import replace

from tensorwright.graph.onnx_import.call import Call, Results, Table
from tensorwright.graph.onnx_import.converters import CONVERTERS


def _gelu(call: Call) -> Results:
    return (call.add("gelu", call.tensor(0)),)


def _bias_gelu(call: Call) -> Results:
    return (call.add("gelu", call.add("add", call.tensor(0), call.tensor(1))),)


def _fast_gelu(call: Call) -> Results:
    x = call.tensor(0)
    if call.has(1):
        x = call.add("add", x, call.tensor(1))
    return (call.add("gelu", x, approximate="tanh"),)


def _quick_gelu(call: Call) -> Results:
    return (call.add("swish", call.tensor(0), alpha=call.real("alpha", 1.702)),)


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
        y = call.add("mul", y, call.as_array(alpha, call.type_of(y).dtype))
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


_ACTIVATIONS = {
    "Relu": ("relu", ()),
    "Tanh": ("tanh", ()),
    "Sigmoid": ("sigmoid", ()),
    "LeakyRelu": ("leaky_relu", ("alpha",)),
    "Clip": ("clip", ("min", "max")),
    "HardSigmoid": ("hard_sigmoid", ("alpha", "beta")),
    "HardSwish": ("hard_swish", ()),
}


def _activated(call: Call, y: str) -> str:
    name = call.text("activation", "")
    if not name:
        return y
    if name not in _ACTIVATIONS:
        raise call.unsupported(f"its activation {name} is not supported")
    ours, names = _ACTIVATIONS[name]
    if call.given("activation_params"):
        values = call.reals("activation_params")
    else:
        values = tuple(call.real(f"activation_{each}") for each in names)
    return call.add(ours, y, **dict(zip(names, values, strict=True)))


FUSED: Table = (
    ("Gelu", _gelu),
    ("BiasGelu", _bias_gelu),
    ("FastGelu", _fast_gelu),
    ("QuickGelu", _quick_gelu),
    ("FusedMatMul", _fused_matmul),
    ("FusedConv", _fused_conv),
    ("FusedGemm", _fused_gemm),
)
