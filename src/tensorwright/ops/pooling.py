"""Pooling: one number per window of a channel.

| operators | inputs | attributes |
|---|---|---|
| max_pool | x (n, c, *spatial) | kernel, strides=(), pads=(), dilations=(), ceil_mode=False |
| average_pool | x | same, and count_include_pad=False |
| lp_pool | x | same as max_pool, and p=2 |
| global_max_pool global_average_pool | x -> (n, c, 1, ...) | |
| global_lp_pool | x -> (n, c, 1, ...) | p=2 |

`pads` holds all begins, then all ends.  With ceil_mode a last window may stick out at the end, if
it starts inside the input or its left padding; what sticks out counts for nothing, not even with
count_include_pad.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from tensorwright.expr import (
    Compute,
    Fn,
    FromIndex,
    Index,
    Load,
    Reduce,
    Tensor,
    Value,
    apply,
    ceil_div,
    compute,
    max_over,
    maximum,
    minimum,
    reduce_axis,
    sum_over,
)
from tensorwright.ops.access import extents, padded, pointwise, spatial_names
from tensorwright.ops.attributes import (
    FLOATS,
    NUMBERS,
    bool_of,
    fault,
    float_of,
    ints_of,
    require_dtype,
    require_rank,
)
from tensorwright.ops.convolution import WINDOW_ATTRIBUTES, Window
from tensorwright.ops.operator import (
    Attribute,
    Attributes,
    Fold,
    LayoutWish,
    Meaning,
    Operator,
    Pattern,
    TensorType,
    tensor_operator,
)
from tensorwright.ops.reduction import fold_axes, mean_of

_P = Attribute("p", 2.0, "the exponent of the norm")
_CEIL = Attribute("ceil_mode", default=False, doc="round the number of windows up")
_COUNT = Attribute("count_include_pad", default=False, doc="padding counts as elements")
_KERNEL = Attribute("kernel", None, "extents of the window, per spatial dimension")


def _window(attributes: Attributes, rank: int) -> Window:
    kernel = ints_of(attributes, "kernel")
    if len(kernel) != rank - 2:
        raise fault(f"attribute kernel {kernel} has {len(kernel)} values, not {rank - 2}")
    return Window.of(kernel, attributes)


def _reaching(window: Window, shape: tuple[int, ...], ceil_mode: bool) -> Window:
    """The window with its end pads enlarged so that the last windows of ceil_mode fit."""
    if not ceil_mode:
        return window
    ends = []
    for at, extent in enumerate(shape):
        stride, begin, end = window.strides[at], window.begins[at], window.ends[at]
        span = (window.kernel[at] - 1) * window.dilations[at] + 1
        slots = -(-(extent + begin + end - span) // stride) + 1
        if (slots - 1) * stride >= extent + begin:
            slots -= 1
        ends.append(max(end, (slots - 1) * stride + span - extent - begin))
    return replace(window, ends=tuple(ends))


def _pool(
    name: str,
    x: Tensor,
    window: Window,
    fold: Callable[..., Reduce],
    fill: float | int | bool,
    rule: Callable[[Value], Value] = lambda value: value,
) -> Compute:
    """Pad and fold; `rule` is applied to each element."""
    shape = extents(x)
    space = spatial_names(len(shape) - 2)
    large = (*shape[:2], *window.padded_shape(shape[2:]))
    data = padded(f"{name}_pad", x, (0, 0, *window.begins), large, ("n", "c", *space), fill)
    taps = tuple(reduce_axis(f"k{s}", k) for s, k in zip(space, window.kernel, strict=True))
    folded = tuple(tap for tap in taps if tap.extent != 1)

    def body(n: Index, c: Index, *at: Index) -> Value | Reduce:
        place = tuple(
            i * stride + (tap.var if tap.extent != 1 else 0) * dilation
            for i, stride, tap, dilation in zip(
                at, window.strides, taps, window.dilations, strict=True
            )
        )
        value = rule(Load(data, (n, c, *place)))
        return fold(value, *folded) if folded else value

    slots = window.slots(shape[2:])
    return compute(name, (*shape[:2], *slots), body, ("n", "c", *space))


def _infer_pool(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    (x,) = types
    require_rank("x", x, 3)
    window = _window(attributes, len(x.shape))
    window = _reaching(window, x.shape[2:], bool_of(attributes, "ceil_mode"))
    return (TensorType(x.dtype, (*x.shape[:2], *window.slots(x.shape[2:]))),)


def _infer_numbers(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    require_dtype("x", types[0], NUMBERS)
    return _infer_pool(types, attributes)


def _infer_floats(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    require_dtype("x", types[0], FLOATS)
    return _infer_pool(types, attributes)


def _max_pool(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    window = _window(attributes, len(x.shape))
    window = _reaching(window, extents(x)[2:], bool_of(attributes, "ceil_mode"))
    return (_pool("max_pool", x, window, max_over, x.dtype.lowest),)


def _average_pool(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    shape = extents(x)[2:]
    given = _window(attributes, len(x.shape))
    window = _reaching(given, shape, bool_of(attributes, "ceil_mode"))
    total = _pool("average_pool_sum", x, window, sum_over, 0)
    includes = bool_of(attributes, "count_include_pad")
    counts = tuple(_Count(given, at, extent, includes) for at, extent in enumerate(shape))
    slots = extents(total)[2:]
    uneven = tuple(not c.is_full(n) for c, n in zip(counts, slots, strict=True))
    even = prod(extent for extent, odd in zip(window.kernel, uneven, strict=True) if not odd)

    def body(n: Index, c: Index, *at: Index) -> Value:
        value: Value = Load(total, (n, c, *at))
        divisor: Value | None = None
        for count, position, odd in zip(counts, at, uneven, strict=True):
            if odd:
                factor = FromIndex(count.at(position), x.dtype)
                divisor = factor if divisor is None else divisor * factor
        if divisor is None:
            return value * (1 / even)
        return value / (divisor if even == 1 else divisor * even)

    names = tuple(axis.name for axis in total.axes)
    return (compute("average_pool", extents(total), body, names),)


class _Count:
    """How many elements of a window are counted along one dimension."""

    def __init__(self, window: Window, at: int, extent: int, includes_pads: bool) -> None:
        self.kernel = window.kernel[at]
        self.stride = window.strides[at]
        self.dilation = window.dilations[at]
        self.begin = window.begins[at]
        self.low = -self.begin if includes_pads else 0
        self.high = extent + (window.ends[at] if includes_pads else 0)

    def at(self, position: Index) -> Index:
        """The count at a window position: taps k with low <= start + k*dilation < high."""
        start = position * self.stride - self.begin
        first = maximum(ceil_div(self.low - start, self.dilation), 0)
        last = minimum(ceil_div(self.high - start, self.dilation), self.kernel)
        return last - first

    def is_full(self, slots: int) -> bool:
        """Whether every window has all its elements."""
        return self.at(0) == self.kernel and self.at(slots - 1) == self.kernel


def _power(p: float) -> Callable[[Value], Value]:
    if p == 2:
        return lambda value: value * value
    if p == 1:
        return lambda value: apply(Fn.ABS, value)
    return lambda value: apply(Fn.POW, apply(Fn.ABS, value), p)


def _root(name: str, total: Compute, p: float) -> Compute:
    def rule(value: Value) -> Value:
        if p == 2:
            return apply(Fn.SQRT, value)
        return value if p == 1 else apply(Fn.POW, value, 1 / p)

    return pointwise(name, (total,), extents(total), rule)


def _lp_pool(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    window = _window(attributes, len(x.shape))
    window = _reaching(window, extents(x)[2:], bool_of(attributes, "ceil_mode"))
    p = float_of(attributes, "p")
    return (_root("lp_pool", _pool("lp_pool_sum", x, window, sum_over, 0, _power(p)), p),)


def _infer_global(types: tuple[TensorType, ...], _: Attributes) -> tuple[TensorType, ...]:
    (x,) = types
    require_dtype("x", x, FLOATS)
    require_rank("x", x, 3)
    if 0 in x.shape[2:]:
        raise fault(f"input x {x.shape} has nothing to pool")
    return (TensorType(x.dtype, (*x.shape[:2], *(1 for _ in x.shape[2:]))),)


def _spatial(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, len(x.shape)))


def _global_max(tensors: tuple[Tensor, ...], _: Attributes) -> tuple[Compute, ...]:
    return (fold_axes("global_max_pool", tensors[0], _spatial(tensors[0]), max_over),)


def _global_average(tensors: tuple[Tensor, ...], _: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    total = fold_axes("global_average_pool_sum", x, _spatial(x), sum_over)
    return (mean_of("global_average_pool", total, prod(extents(x)[2:])),)


def _global_lp(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    p = float_of(attributes, "p")
    power = _power(p)
    total = fold_axes("global_lp_pool_sum", x, _spatial(x), sum_over, lambda v, _: power(v))
    return (_root("global_lp_pool", total, p),)


def _operator(
    name: str,
    doc: str,
    attributes: tuple[Attribute, ...],
    infer: Callable[[tuple[TensorType, ...], Attributes], tuple[TensorType, ...]],
    meaning: Meaning,
    fold: Fold = Fold.WINDOWS,
) -> Operator:
    return tensor_operator(
        name,
        doc,
        ("x",),
        attributes,
        infer,
        meaning,
        Pattern.REDUCTION,
        LayoutWish.CHANNELS,
        fold=fold,
    )


def _global(name: str, doc: str, attributes: tuple[Attribute, ...], meaning: Meaning) -> Operator:
    return _operator(name, doc, attributes, _infer_global, meaning, Fold.PLANES)


_POOL = (_KERNEL, *WINDOW_ATTRIBUTES, _CEIL)
POOLING_OPERATORS = (
    _operator("max_pool", "greatest element of each window", _POOL, _infer_numbers, _max_pool),
    _operator(
        "average_pool",
        "mean of each window; padding counts only with count_include_pad",
        (*_POOL, _COUNT),
        _infer_floats,
        _average_pool,
    ),
    _operator(
        "lp_pool", "(sum of |x|**p) ** (1/p) of each window", (*_POOL, _P), _infer_floats, _lp_pool
    ),
    _global("global_max_pool", "greatest element per channel", (), _global_max),
    _global("global_average_pool", "mean per channel", (), _global_average),
    _global("global_lp_pool", "(sum of |x|**p) ** (1/p) per channel", (_P,), _global_lp),
)
