"""Normalisations.

Shapes:  x (n, c, ...), scale, bias, mean, var (c); of layer_norm and rms_norm they broadcast to x

Statistics are those of the input (no running averages); variances divide by the number of elements.
Stages of layer_norm: sum, mean, sum of squared differences, 1 / standard deviation, result.
"""

from __future__ import annotations

from tensorwright import expr
from tensorwright.base import Attributes
from tensorwright.ops import operator
from tensorwright.ops.named_sizes import are_equal, is_multiple, product_of, shape_text, sizes_of
from tensorwright.ops.reduction import divided, fold_axes, folded_indices, mean_of
from tensorwright.ops.shapes import axis_in, axis_names, broadcast_shapes, padded, pointwise


def _inverse_deviation(
    name: str, total: expr.Compute, count: expr.Index, epsilon: float
) -> expr.Compute:
    """1 / sqrt(total / count + epsilon)."""

    def rule(value: expr.Value) -> expr.Value:
        return 1.0 / expr.apply(expr.Fn.SQRT, divided(value, count) + epsilon)

    return pointwise(f"{name}_inverse", (total,), total.shape, rule)


def _statistics(
    name: str, x: expr.Tensor, axes: tuple[int, ...], epsilon: float
) -> tuple[expr.Compute, expr.Compute]:
    """Mean and 1 / sqrt(variance + epsilon) over some axes, which are kept with extent 1."""
    shape = x.shape
    count = product_of(shape[at] for at in axes)
    mean = mean_of(f"{name}_mean", fold_axes(f"{name}_sum", x, axes, expr.sum_over), count)

    def squared(value: expr.Value, indices: tuple[expr.Index, ...]) -> expr.Value:
        difference = value - expr.Load(mean, folded_indices(indices, axes))
        return difference * difference

    spread = fold_axes(f"{name}_square_sum", x, axes, expr.sum_over, squared)
    return mean, _inverse_deviation(name, spread, count, epsilon)


def _channel_vectors(
    names: tuple[str, ...], types: operator.Types, least_rank: int
) -> operator.Types:
    x = types[0]
    operator.require_dtype("x", x, operator.FLOATS)
    operator.require_same_dtype(("x", *names), types)
    operator.require_rank("x", x, least_rank)
    for name, each in zip(names, types[1:], strict=True):
        operator.require_shape(name, each, sizes_of(x)[1:2])
    return (x,)


def _infer_batch_norm(types: operator.Types, _: Attributes) -> operator.Types:
    return _channel_vectors(("scale", "bias", "mean", "var"), types, 2)


def _batch_norm(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, scale, bias, mean, var = tensors
    epsilon = operator.float_of(attributes, "epsilon")
    channels = scale.shape
    factor = pointwise(
        "batch_norm_factor",
        (scale, var),
        channels,
        lambda s, v: s / expr.apply(expr.Fn.SQRT, v + epsilon),
    )
    offset = pointwise(
        "batch_norm_offset", (bias, mean, factor), channels, lambda b, m, f: b - m * f
    )

    def body(*indices: expr.Index) -> expr.Value:
        c = indices[1]
        return expr.Load(x, indices) * factor[c] + offset[c]

    return (expr.compute("batch_norm", x.shape, body, axis_names(len(x.shape))),)


def _infer_instance_norm(types: operator.Types, _: Attributes) -> operator.Types:
    return _channel_vectors(("scale", "bias"), types, 3)


def _instance_norm(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, scale, bias = tensors
    axes = tuple(range(2, len(x.shape)))
    mean, inverse = _statistics("instance_norm", x, axes, operator.float_of(attributes, "epsilon"))

    def body(n: expr.Index, c: expr.Index, *at: expr.Index) -> expr.Value:
        row = (n, c, *(0 for _ in at))
        centred = expr.Load(x, (n, c, *at)) - expr.Load(mean, row)
        return centred * (expr.Load(inverse, row) * scale[c]) + bias[c]

    return (expr.compute("instance_norm", x.shape, body, axis_names(len(x.shape))),)


def _infer_group_norm(types: operator.Types, attributes: Attributes) -> operator.Types:
    result = _channel_vectors(("scale", "bias"), types, 2)
    groups = operator.int_of(attributes, "groups")
    channels = sizes_of(types[0])[1]
    if groups < 1 or not is_multiple(channels, groups):
        raise operator.fault(f"{channels} channels do not divide into {groups} groups")
    return result


def _group_norm(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, scale, bias = tensors
    shape = x.shape
    groups = operator.int_of(attributes, "groups")
    per_group = shape[1] // groups
    names = axis_names(len(shape))
    spatial = zip(names[2:], shape[2:], strict=True)
    inner = (expr.reduce_axis("rc", per_group), *(expr.reduce_axis(f"r{s}", n) for s, n in spatial))
    count = per_group * product_of(shape[2:])

    def element(n: expr.Index, g: expr.Index) -> expr.Value:
        first, *rest = (axis.var for axis in inner)
        return expr.Load(x, (n, g * per_group + first, *rest))

    def squared(n: expr.Index, g: expr.Index) -> expr.Reduce:
        difference = element(n, g) - mean[n, g]
        return expr.sum_over(difference * difference, *inner)

    table = (shape[0], groups)
    total = expr.compute("group_norm_sum", table, lambda n, g: expr.sum_over(element(n, g), *inner))
    mean = mean_of("group_norm_mean", total, count)
    spread = expr.compute("group_norm_square_sum", table, squared)
    inverse = _inverse_deviation(
        "group_norm", spread, count, operator.float_of(attributes, "epsilon")
    )

    def body(n: expr.Index, c: expr.Index, *at: expr.Index) -> expr.Value:
        g = expr.floor_div(c, per_group)
        return (expr.Load(x, (n, c, *at)) - mean[n, g]) * (inverse[n, g] * scale[c]) + bias[c]

    return (expr.compute("group_norm", shape, body, names),)


def _infer_rows(types: operator.Types, attributes: Attributes) -> operator.Types:
    x = types[0]
    operator.require_dtype("x", x, operator.FLOATS)
    names = ("x", "scale", "bias")[: len(types)]
    operator.require_same_dtype(names, types)
    axis_in(operator.int_of(attributes, "axis"), len(x.shape))
    for name, each in zip(names[1:], types[1:], strict=True):
        shape, own = sizes_of(x), sizes_of(each)
        if not are_equal(broadcast_shapes(shape, own), shape):
            texts = f"{shape_text(own)} does not broadcast to x {shape_text(shape)}"
            raise operator.fault(f"input {name} {texts}")
    return (x,)


def _rows(x: expr.Tensor, attributes: Attributes) -> tuple[int, ...]:
    return tuple(range(axis_in(operator.int_of(attributes, "axis"), len(x.shape)), len(x.shape)))


def _layer_norm(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x = tensors[0]
    epsilon = operator.float_of(attributes, "epsilon")
    mean, inverse = _statistics("layer_norm", x, _rows(x, attributes), epsilon)

    def rule(
        value: expr.Value, m: expr.Value, d: expr.Value, s: expr.Value, b: expr.Value | None = None
    ) -> expr.Value:
        scaled = (value - m) * d * s
        return scaled if b is None else scaled + b

    operands = (x, mean, inverse, *tensors[1:])
    return (pointwise("layer_norm", operands, x.shape, rule),)


def _rms_norm(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, scale = tensors
    axes = _rows(x, attributes)
    count = product_of(x.shape[at] for at in axes)
    total = fold_axes("rms_norm_square_sum", x, axes, expr.sum_over, lambda v, _: v * v)
    inverse = _inverse_deviation("rms_norm", total, count, operator.float_of(attributes, "epsilon"))
    operands = (x, inverse, scale)
    return (pointwise("rms_norm", operands, x.shape, lambda v, d, s: v * d * s),)


def _infer_lrn(types: operator.Types, attributes: Attributes) -> operator.Types:
    operator.require_dtype("x", types[0], operator.FLOATS)
    operator.require_rank("x", types[0], 2)
    if operator.int_of(attributes, "size") < 1:
        raise operator.fault(f"attribute size is {attributes['size']}, not positive")
    return types


def _lrn(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    (x,) = tensors
    shape = x.shape
    size = operator.int_of(attributes, "size")
    factor = operator.float_of(attributes, "alpha") / size
    bias, beta = operator.float_of(attributes, "bias"), operator.float_of(attributes, "beta")
    before = (size - 1) // 2
    names = axis_names(len(shape))
    large = (shape[0], shape[1] + size - 1, *shape[2:])
    data = padded("lrn_pad", x, (0, before, *(0 for _ in shape[2:])), large, names)
    near = expr.reduce_axis("k", size)

    def squares(n: expr.Index, c: expr.Index, *at: expr.Index) -> expr.Reduce:
        value = expr.Load(data, (n, c + near.var, *at))
        return expr.sum_over(value * value, near)

    total = expr.compute("lrn_square_sum", shape, squares, names)

    def rule(value: expr.Value, around: expr.Value) -> expr.Value:
        return value * expr.apply(expr.Fn.POW, around * factor + bias, -beta)

    return (pointwise("lrn", (x, total), shape, rule),)


def _infer_lp(types: operator.Types, attributes: Attributes) -> operator.Types:
    operator.require_dtype("x", types[0], operator.FLOATS)
    axis_in(operator.int_of(attributes, "axis"), len(types[0].shape))
    if operator.int_of(attributes, "p") not in (1, 2):
        raise operator.fault(f"attribute p is {attributes['p']}, not 1 or 2")
    return types


def _lp_normalization(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    (x,) = tensors
    axis = axis_in(operator.int_of(attributes, "axis"), len(x.shape))
    squares = operator.int_of(attributes, "p") == 2

    def power(value: expr.Value, _: tuple[expr.Index, ...]) -> expr.Value:
        return value * value if squares else expr.apply(expr.Fn.ABS, value)

    total = fold_axes("lp_normalization_sum", x, (axis,), expr.sum_over, power)

    def rule(value: expr.Value, norm: expr.Value) -> expr.Value:
        length = expr.apply(expr.Fn.SQRT, norm) if squares else norm
        return expr.select(expr.apply(expr.Fn.EQ, length, 0.0), length, value / length)

    return (pointwise("lp_normalization", (x, total), x.shape, rule),)


_FIRST = operator.Attribute(
    "axis", -1, "the first of the normalised dimensions, which go to the last"
)
NORMALIZATION_OPERATORS = (
    operator.tensor_operator(
        "batch_norm",
        "(x - mean) / sqrt(var + epsilon) * scale + bias, per channel",
        ("x", "scale", "bias", "mean", "var"),
        (operator.EPSILON,),
        _infer_batch_norm,
        _batch_norm,
        operator.Pattern.ELEMENTWISE,
        operator.LayoutPreference.CHANNELS,
    ),
    operator.tensor_operator(
        "instance_norm",
        "each channel of each example to mean bias and deviation scale",
        ("x", "scale", "bias"),
        (operator.EPSILON,),
        _infer_instance_norm,
        _instance_norm,
        operator.Pattern.COMPOSITE,
        operator.LayoutPreference.ANY,
        fold=operator.Fold.OTHER,
    ),
    operator.tensor_operator(
        "group_norm",
        "each group of channels of each example normalised, then scaled per channel",
        ("x", "scale", "bias"),
        (operator.Attribute("groups", None, "the number of groups"), operator.EPSILON),
        _infer_group_norm,
        _group_norm,
        operator.Pattern.COMPOSITE,
        fold=operator.Fold.OTHER,
    ),
    operator.tensor_operator(
        "layer_norm",
        "(x - mean) / sqrt(var + epsilon) * scale + bias over the last dimensions",
        ("x", "scale", "bias?"),
        (_FIRST, operator.EPSILON),
        _infer_rows,
        _layer_norm,
        operator.Pattern.COMPOSITE,
        fold=operator.Fold.TRAILING,
    ),
    operator.tensor_operator(
        "rms_norm",
        "x / sqrt(mean of squares + epsilon) * scale over the last dimensions",
        ("x", "scale"),
        (_FIRST, operator.EPSILON),
        _infer_rows,
        _rms_norm,
        operator.Pattern.COMPOSITE,
        fold=operator.Fold.TRAILING,
    ),
    operator.tensor_operator(
        "lrn",
        "x / (bias + alpha/size * sum of squares of size channels around) ** beta",
        ("x",),
        (
            operator.Attribute("size", None, "the number of channels that are summed"),
            operator.Attribute("alpha", 1e-4, "factor of the sum"),
            operator.Attribute("beta", 0.75, "the exponent"),
            operator.Attribute("bias", 1.0, "is added to the sum"),
        ),
        _infer_lrn,
        _lrn,
        operator.Pattern.REDUCTION,
        fold=operator.Fold.OTHER,
    ),
    operator.tensor_operator(
        "lp_normalization",
        "x divided by its norm along the axis; 0 where the norm is 0",
        ("x",),
        (
            operator.AXIS,
            operator.Attribute("p", 2, "1 or 2: sum of |x|, or square root of the sum of squares"),
        ),
        _infer_lp,
        _lp_normalization,
        operator.Pattern.COMPOSITE,
        fold=operator.Fold.AXIS,
    ),
)
