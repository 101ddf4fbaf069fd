"""Scaled dot-product attention.

| operators | inputs | attributes |
|---|---|---|
| attention | q (b, h, l, e), k (b, g, s, e), v (b, g, s, f), mask? -> (b, h, l, f) | see below |

Attributes: scale=0.0 (0 stands for 1/sqrt(e)), causal=False, softcap=0.0 (0: none),
nan_weights="kept" ("zero", "zero_without_keys").
The mask broadcasts to (b, h, l, s) and is added to the scores: True as 0, False as minus infinity.
g divides h: each head of k and v serves h/g heads of q.

A row whose scores are all minus infinity has no weights: they are NaN, and so is its result.  With
"zero_without_keys" they are 0, as in torch and in ONNX; with "zero" each weight that is NaN is 0,
also where a score is: exporters write it so.

Stages, with one row of scores per (b, h, l): scores, their greatest, exponentials, their sum,
weights, result.
"""

from __future__ import annotations

import math

from tensorwright.base import Attributes, DType, TensorType
from tensorwright.expr import (
    Compute,
    Fn,
    Index,
    Load,
    Reduce,
    Tensor,
    Value,
    apply,
    compute,
    constant,
    floor_div,
    reduce_axis,
    select,
    sum_over,
)
from tensorwright.ops.access import stretched
from tensorwright.ops.attributes import (
    FLOATS,
    bool_of,
    fault,
    float_of,
    require_dtype,
    require_rank,
    require_same_dtype,
    text_of,
)
from tensorwright.ops.folding.softmax import NAN_WEIGHTS, normalized_exponentials
from tensorwright.ops.named_sizes import (
    are_equal,
    is_equal,
    is_multiple,
    number_of,
    shape_text,
    sizes_of,
)
from tensorwright.ops.operator import Attribute, Fold, Pattern, tensor_operator
from tensorwright.ops.shapes import broadcasts_to


def _infer(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    q, k, v = types[:3]
    for name, each in zip("qkv", types, strict=False):
        require_dtype(name, each, FLOATS)
        require_rank(name, each, 4, 4)
    require_same_dtype(("q", "k", "v"), types[:3])
    of_q, of_k, of_v = map(sizes_of, (q, k, v))
    ends = (of_k[0], of_k[3]), (of_q[0], of_q[3])
    if not are_equal(of_k[:3], of_v[:3]) or not are_equal(*ends):
        shapes = f"q {shape_text(of_q)}, k {shape_text(of_k)} and v {shape_text(of_v)}"
        raise fault(f"shapes {shapes} do not fit")
    if is_equal(of_k[1], 0) or not is_multiple(of_q[1], of_k[1]):
        raise fault(f"{of_q[1]} heads of q do not divide among {of_k[1]} heads of k")
    scores = (*of_q[:3], of_k[2])
    if len(types) == 4:
        mask = types[3]
        if mask.dtype is not DType.BOOL:
            require_same_dtype(("q", "mask"), (q, mask))
        if not broadcasts_to(sizes_of(mask), scores):
            own = shape_text(sizes_of(mask))
            raise fault(f"input mask {own} does not broadcast to {shape_text(scores)}")
    float_of(attributes, "scale")
    text_of(attributes, "nan_weights", NAN_WEIGHTS)
    return (TensorType(q.dtype, (*of_q[:3], of_v[3])),)


def _meaning(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    q, k, v = tensors[:3]
    batch, heads, rows, inner = q.shape
    keys = k.shape[2]
    shared = heads // k.shape[1]
    e, s = reduce_axis("e", inner), reduce_axis("s", keys)

    def product(b: Index, h: Index, i: Index, j: Index) -> Reduce:
        return sum_over(q[b, h, i, e] * k[b, floor_div(h, shared), j, e], e)

    products = compute("attention_products", (batch, heads, rows, keys), product)
    scores = _scores(products, tensors[3] if len(tensors) == 4 else None, inner, attributes)
    nan_weights = text_of(attributes, "nan_weights", NAN_WEIGHTS)
    weights = normalized_exponentials("attention_weights", scores, 3, nan_weights)

    def result(b: Index, h: Index, i: Index, f: Index) -> Reduce:
        return sum_over(weights[b, h, i, s] * v[b, floor_div(h, shared), s, f], s)

    return (compute("attention", (batch, heads, rows, v.shape[3]), result),)


def _scores(
    products: Compute, mask: Tensor | None, inner: Index, attributes: Attributes
) -> Compute:
    """The products scaled, capped and masked."""
    shape = products.shape
    scale = float_of(attributes, "scale") or 1 / math.sqrt(max(number_of(inner), 1))
    softcap = float_of(attributes, "softcap")
    causal = bool_of(attributes, "causal")
    nothing = constant(-math.inf, products.dtype)

    def body(b: Index, h: Index, i: Index, j: Index) -> Value:
        at = (b, h, i, j)
        value = Load(products, at) * scale
        if softcap:
            value = apply(Fn.TANH, value * (1 / softcap)) * softcap
        if mask is not None:
            masked: Value = stretched(mask, at, shape)
            if mask.dtype is DType.BOOL:
                masked = select(masked, constant(0, value.dtype), nothing)
            value = value + masked
        return select(j <= i, value, nothing) if causal else value

    return compute("attention_scores", shape, body)


ATTENTION_OPERATORS = (
    tensor_operator(
        "attention",
        "softmax(scale * q k^T + mask) v",
        ("q", "k", "v", "mask?"),
        (
            Attribute("scale", 0.0, "factor of q k^T; 0 stands for 1/sqrt(e)"),
            Attribute("causal", default=False, doc="row i sees the positions up to i only"),
            Attribute("softcap", 0.0, "scores are bounded to this by tanh; 0: not at all"),
            Attribute("nan_weights", "kept", "kept, zero, or zero_without_keys"),
        ),
        _infer,
        _meaning,
        Pattern.ANCHOR,
        fold=Fold.OTHER,
    ),
)
