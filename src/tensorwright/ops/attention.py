"""Scaled dot-product attention.

Shapes:  q (b, h, l, e), k (b, g, s, e), v (b, g, s, f) -> (b, h, l, f)
The mask broadcasts to (b, h, l, s) and is added to the scores: True as 0, False as minus infinity.
g divides h: each head of k and v serves h/g heads of q.

A row whose scores are all minus infinity has no weights: they are NaN, and so is its result.  With
"zero_without_keys" they are 0, as in torch and in ONNX; with "zero" each weight that is NaN is 0,
also where a score is: exporters write it so.

Stages, with one row of scores per (b, h, l): scores, their greatest, exponentials, their sum,
weights, result.

Softmax and its kin along one axis.

Stages of softmax: greatest of the row, exponentials of the differences, their sum, quotients: of
wide floats as products with the sum's reciprocal, one division for a row.  Each stage rounds to the
element type, as NumPy does; only the sum of narrow floats runs in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops import named_sizes, operator
from tensorwright.ops.reduction import fold_axes, folded_indices
from tensorwright.ops.shapes import axis_in, axis_names, broadcasts_to, pointwise, stretched


def _infer_softmax(types: operator.Types, attributes: Attributes) -> operator.Types:
    operator.require_dtype("x", types[0], operator.FLOATS)
    axis_in(operator.int_of(attributes, "axis"), len(types[0].shape))
    return types


def _total(
    name: str, x: expr.Tensor, axis: int, rule: Callable[[expr.Value], expr.Value]
) -> expr.Compute:
    """The sum of rule(element) along the axis, which is kept with extent 1."""
    if x.dtype not in operator.NARROW:
        return fold_axes(name, x, (axis,), expr.sum_over, lambda value, _: rule(value))
    wide = fold_axes(
        f"{name}_wide",
        x,
        (axis,),
        expr.sum_over,
        lambda value, _: expr.cast(rule(value), DType.F32),
    )
    return pointwise(name, (wide,), wide.shape, lambda value: expr.cast(value, x.dtype))


NAN_WEIGHTS = ("kept", "zero", "zero_without_keys")


def normalized_exponentials(
    name: str, x: expr.Tensor, axis: int, nan_weights: str = "kept"
) -> expr.Compute:
    """Softmax along one axis, counted from the first.

    nan_weights   where the greatest of a row is minus infinity, "zero_without_keys" has 0 instead
                  of NaN; "zero" also where it is infinity or NaN

    Theorem:  if the greatest is finite, its power is 1, and no other is more: the sum is a number
              not below 1.  Otherwise each power is NaN or an infinity makes the sum NaN, so that
              all quotients of the row are NaN.
    """
    shape = x.shape
    best = fold_axes(f"{name}_max", x, (axis,), expr.max_over)

    def power(a: expr.Value, b: expr.Value) -> expr.Value:
        if nan_weights == "kept":
            return expr.apply(expr.Fn.EXP, a - b)
        has_weights = (
            expr.apply(expr.Fn.ABS, b) < math.inf if nan_weights == "zero" else b != -math.inf
        )
        return expr.apply(
            expr.Fn.EXP, expr.select(has_weights, a - b, expr.constant(-math.inf, a.dtype))
        )

    def weight(a: expr.Value, b: expr.Value) -> expr.Value:
        if nan_weights != "kept":  # the sum is 0 only where all powers were made 0
            b = expr.select(expr.apply(expr.Fn.EQ, b, 0.0), expr.constant(1, b.dtype), b)
        return a / b if x.dtype in operator.NARROW else a * (1.0 / b)

    powers = pointwise(f"{name}_exp", (x, best), shape, power)
    total = _total(f"{name}_sum", powers, axis, lambda value: value)
    return pointwise(name, (powers, total), shape, weight)


def _softmax(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    (x,) = tensors
    axis = axis_in(operator.int_of(attributes, "axis"), len(x.shape))
    return (normalized_exponentials("softmax", x, axis),)


def _log_softmax(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    (x,) = tensors
    shape = x.shape
    axis = axis_in(operator.int_of(attributes, "axis"), len(shape))
    best = fold_axes("log_softmax_max", x, (axis,), expr.max_over)
    moved = pointwise("log_softmax_shifted", (x, best), shape, lambda a, b: a - b)
    total = _total("log_softmax_sum", moved, axis, lambda value: expr.apply(expr.Fn.EXP, value))
    return (
        pointwise(
            "log_softmax", (moved, total), shape, lambda a, b: a - expr.apply(expr.Fn.LOG, b)
        ),
    )


def _hardmax(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    (x,) = tensors
    shape = x.shape
    axis = axis_in(operator.int_of(attributes, "axis"), len(shape))
    best = fold_axes("hardmax_position", x, (axis,), expr.argmax_over)

    def body(*indices: expr.Index) -> expr.Value:
        first = expr.Load(best, folded_indices(indices, (axis,)))
        is_first = expr.apply(expr.Fn.EQ, first, expr.FromIndex(indices[axis], DType.I64))
        return expr.select(is_first, expr.constant(1, x.dtype), 0)

    return (expr.compute("hardmax", shape, body, axis_names(len(shape))),)


def _operator(name: str, doc: str, meaning: operator.Meaning) -> operator.Operator:
    return operator.tensor_operator(
        name,
        doc,
        ("x",),
        (operator.AXIS,),
        _infer_softmax,
        meaning,
        operator.Pattern.COMPOSITE,
        fold=operator.Fold.AXIS,
    )


SOFTMAX_OPERATORS = (
    _operator("softmax", "exp(x) divided by its sum along the axis", _softmax),
    _operator("log_softmax", "logarithm of softmax", _log_softmax),
    _operator("hardmax", "1 at the first greatest along the axis, else 0", _hardmax),
)


def _infer(types: operator.Types, attributes: Attributes) -> operator.Types:
    q, k, v = types[:3]
    for name, each in zip("qkv", types, strict=False):
        operator.require_dtype(name, each, operator.FLOATS)
        operator.require_rank(name, each, 4, 4)
    operator.require_same_dtype(("q", "k", "v"), types[:3])
    of_q, of_k, of_v = map(named_sizes.sizes_of, (q, k, v))
    ends = (of_k[0], of_k[3]), (of_q[0], of_q[3])
    if not named_sizes.are_equal(of_k[:3], of_v[:3]) or not named_sizes.are_equal(*ends):
        texts = map(named_sizes.shape_text, (of_q, of_k, of_v))
        raise operator.fault("shapes q {}, k {} and v {} do not fit".format(*texts))
    if named_sizes.is_equal(of_k[1], 0) or not named_sizes.is_multiple(of_q[1], of_k[1]):
        raise operator.fault(f"{of_q[1]} heads of q do not divide among {of_k[1]} heads of k")
    scores = (*of_q[:3], of_k[2])
    if len(types) == 4:
        mask = types[3]
        if mask.dtype is not DType.BOOL:
            operator.require_same_dtype(("q", "mask"), (q, mask))
        if not broadcasts_to(named_sizes.sizes_of(mask), scores):
            own = named_sizes.shape_text(named_sizes.sizes_of(mask))
            raise operator.fault(
                f"input mask {own} does not broadcast to {named_sizes.shape_text(scores)}"
            )
    operator.float_of(attributes, "scale")
    operator.text_of(attributes, "nan_weights", NAN_WEIGHTS)
    return (TensorType(q.dtype, (*of_q[:3], of_v[3])),)


def _meaning(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    q, k, v = tensors[:3]
    batch, heads, rows, inner = q.shape
    keys = k.shape[2]
    shared = heads // k.shape[1]
    e, s = expr.reduce_axis("e", inner), expr.reduce_axis("s", keys)

    def product(b: expr.Index, h: expr.Index, i: expr.Index, j: expr.Index) -> expr.Reduce:
        return expr.sum_over(q[b, h, i, e] * k[b, expr.floor_div(h, shared), j, e], e)

    products = expr.compute("attention_products", (batch, heads, rows, keys), product)
    scores = _scores(products, tensors[3] if len(tensors) == 4 else None, inner, attributes)
    nan_weights = operator.text_of(attributes, "nan_weights", NAN_WEIGHTS)
    weights = normalized_exponentials("attention_weights", scores, 3, nan_weights)

    def result(b: expr.Index, h: expr.Index, i: expr.Index, f: expr.Index) -> expr.Reduce:
        return expr.sum_over(weights[b, h, i, s] * v[b, expr.floor_div(h, shared), s, f], s)

    return (expr.compute("attention", (batch, heads, rows, v.shape[3]), result),)


def _scores(
    products: expr.Compute, mask: expr.Tensor | None, inner: expr.Index, attributes: Attributes
) -> expr.Compute:
    """The products scaled, capped and masked."""
    shape = products.shape
    scale = operator.float_of(attributes, "scale") or 1 / math.sqrt(
        max(named_sizes.number_of(inner), 1)
    )
    softcap = operator.float_of(attributes, "softcap")
    causal = operator.bool_of(attributes, "causal")
    before = shape[3] - shape[2] if operator.bool_of(attributes, "continues") else 0
    nothing = expr.constant(-math.inf, products.dtype)

    def body(b: expr.Index, h: expr.Index, i: expr.Index, j: expr.Index) -> expr.Value:
        at = (b, h, i, j)
        value = expr.Load(products, at) * scale
        if softcap:
            value = expr.apply(expr.Fn.TANH, value * (1 / softcap)) * softcap
        if mask is not None:
            masked: expr.Value = stretched(mask, at, shape)
            if mask.dtype is DType.BOOL:
                masked = expr.select(masked, expr.constant(0, value.dtype), nothing)
            value = value + masked
        return expr.select(j <= i + before, value, nothing) if causal else value

    return expr.compute("attention_scores", shape, body)


ATTENTION_OPERATORS = (
    operator.tensor_operator(
        "attention",
        "softmax(scale * q k^T + mask) v",
        ("q", "k", "v", "mask?"),
        (
            operator.Attribute("scale", 0.0, "factor of q k^T; 0 stands for 1/sqrt(e)"),
            operator.Attribute(
                "causal", default=False, doc="row i sees the positions up to i only"
            ),
            operator.Attribute(
                "continues",
                default=False,
                doc="the rows are the last of the positions: causal rows see up to their own",
            ),
            operator.Attribute("softcap", 0.0, "scores are bounded to this by tanh; 0: not at all"),
            operator.Attribute("nan_weights", "kept", "kept, zero, or zero_without_keys"),
        ),
        _infer,
        _meaning,
        operator.Pattern.ANCHOR,
        fold=operator.Fold.OTHER,
        multiplied=3,
    ),
)
