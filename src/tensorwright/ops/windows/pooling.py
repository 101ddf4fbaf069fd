"""Pooling: one number per window of a channel.

Shapes:  x (n, c, *spatial); of global pools the result is (n, c, 1, ...)

`pads` holds all begins, then all ends.  With ceil_mode a last window may stick out at the end, if
it starts inside the input or its left padding; what sticks out counts for nothing, not even with
count_include_pad.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops import named_sizes, operator
from tensorwright.ops.reduction import fold_axes, mean_of
from tensorwright.ops.shapes import fold_over, pointwise, spatial_names
from tensorwright.ops.windows.convolution import WINDOW_ATTRIBUTES, Window

_P = operator.Attribute("p", 2.0, "the exponent of the norm")
_CEIL = operator.Attribute("ceil_mode", default=False, doc="round the number of windows up")
_COUNT = operator.Attribute("count_include_pad", default=False, doc="padding counts as elements")
_KERNEL = operator.Attribute("kernel", None, "extents of the window, per spatial dimension")


def _given_window(shape: Sequence[expr.Index], attributes: Attributes) -> Window:
    kernel = operator.ints_of(attributes, "kernel")
    if len(kernel) != len(shape):
        raise operator.fault(
            f"attribute kernel {kernel} has {len(kernel)} values, not {len(shape)}"
        )
    return Window.of(kernel, attributes)


def _window(shape: Sequence[expr.Index], attributes: Attributes) -> Window:
    """The window over a spatial shape, its end pads enlarged so that the last windows of ceil_mode
    fit.
    """
    window = _given_window(shape, attributes)
    if not operator.bool_of(attributes, "ceil_mode"):
        return window
    ends: list[expr.Index] = []
    for at, slots in enumerate(_slots_of_ceil(window, shape)):
        last = (slots - 1) * window.strides[at]
        needed = last + (window.kernel[at] - 1) * window.dilations[at] + 1
        more = needed - shape[at] - window.begins[at]
        ends.append(expr.simplify(expr.maximum(more, window.ends[at]), {}))
    return replace(window, ends=tuple(ends))


def _slots_of_ceil(window: Window, shape: Sequence[expr.Index]) -> tuple[expr.Index, ...]:
    """How many windows begin in a shape or in the padding before it; the last may not be whole.

    Raises:  ModelError if none does.
    """
    counts: list[expr.Index] = []
    for at, extent in enumerate(shape):
        stride, begin, end = window.strides[at], window.begins[at], window.ends[at]
        span = (window.kernel[at] - 1) * window.dilations[at] + 1
        count = expr.ceil_div(extent + begin + end - span, stride) + 1
        is_beyond = named_sizes.decided((count - 1) * stride >= extent + begin)
        counts.append(count - 1 if is_beyond else count)
        if not named_sizes.decided(counts[-1] >= 1):
            window.slots(tuple(shape))
            raise operator.fault(
                f"no window of {window.kernel} begins in {named_sizes.shape_text(shape)}"
            )
    return tuple(counts)


def _pool(
    name: str,
    x: expr.Tensor,
    window: Window,
    fold: Callable[..., expr.Reduce],
    fill: float | int | bool,
    rule: Callable[[expr.Value], expr.Value] = lambda value: value,
) -> expr.Compute:
    """Pad and fold; `rule` is applied to each element."""
    shape = x.shape
    data = window.padded(f"{name}_pad", x, fill)
    taps = window.taps()

    def body(n: expr.Index, c: expr.Index, *at: expr.Index) -> expr.Value | expr.Reduce:
        return fold_over(fold, rule(expr.Load(data, (n, c, *window.places(at, taps)))), taps)

    slots = window.slots(shape[2:])
    names = ("n", "c", *spatial_names(len(slots)))
    return expr.compute(name, (*shape[:2], *slots), body, names)


def _max_pool(x: expr.Tensor, window: Window, _: Attributes) -> expr.Compute:
    return _pool("max_pool", x, window, expr.max_over, x.dtype.lowest)


def _average_pool(x: expr.Tensor, window: Window, attributes: Attributes) -> expr.Compute:
    shape = x.shape[2:]
    given = _given_window(shape, attributes)
    total = _pool("average_pool_sum", x, window, expr.sum_over, 0)
    includes = operator.bool_of(attributes, "count_include_pad")
    counts = tuple(_Count(given, at, extent, includes) for at, extent in enumerate(shape))
    slots = total.shape[2:]
    uneven = tuple(not c.is_full(n) for c, n in zip(counts, slots, strict=True))
    even = prod(extent for extent, odd in zip(window.kernel, uneven, strict=True) if not odd)

    def body(n: expr.Index, c: expr.Index, *at: expr.Index) -> expr.Value:
        value: expr.Value = expr.Load(total, (n, c, *at))
        divisor: expr.Value | None = None
        for count, position, odd in zip(counts, at, uneven, strict=True):
            if odd:
                factor = expr.FromIndex(count.at(position), x.dtype)
                divisor = factor if divisor is None else divisor * factor
        if divisor is None:
            return value * (1 / even)
        return value / (divisor if even == 1 else divisor * even)

    names = tuple(axis.name for axis in total.axes)
    return expr.compute("average_pool", total.shape, body, names)


class _Count:
    """How many elements of a window are counted along one dimension."""

    def __init__(self, window: Window, at: int, extent: expr.Index, includes_pads: bool) -> None:
        self.kernel = window.kernel[at]
        self.stride = window.strides[at]
        self.dilation = window.dilations[at]
        self.begin = window.begins[at]
        self.low = -self.begin if includes_pads else 0
        self.high = extent + (window.ends[at] if includes_pads else 0)

    def at(self, position: expr.Index) -> expr.Index:
        """The count at a window position: taps k with low <= start + k*dilation < high."""
        start = position * self.stride - self.begin
        first = expr.maximum(expr.ceil_div(self.low - start, self.dilation), 0)
        last = expr.minimum(expr.ceil_div(self.high - start, self.dilation), self.kernel)
        return last - first

    def is_full(self, slots: expr.Index) -> bool:
        """Whether every window is known to have all its elements."""
        ends = self.at(0), self.at(slots - 1)
        return all(named_sizes.is_certain(count >= self.kernel) for count in ends)


def _power(p: float) -> Callable[[expr.Value], expr.Value]:
    if p == 2:
        return lambda value: value * value
    if p == 1:
        return lambda value: expr.apply(expr.Fn.ABS, value)
    return lambda value: expr.apply(expr.Fn.POW, expr.apply(expr.Fn.ABS, value), p)


def _root(name: str, total: expr.Compute, p: float) -> expr.Compute:
    def rule(value: expr.Value) -> expr.Value:
        if p == 2:
            return expr.apply(expr.Fn.SQRT, value)
        return value if p == 1 else expr.apply(expr.Fn.POW, value, 1 / p)

    return pointwise(name, (total,), total.shape, rule)


def _lp_pool(x: expr.Tensor, window: Window, attributes: Attributes) -> expr.Compute:
    p = operator.float_of(attributes, "p")
    return _root("lp_pool", _pool("lp_pool_sum", x, window, expr.sum_over, 0, _power(p)), p)


def _spatial(x: expr.Tensor) -> tuple[int, ...]:
    return tuple(range(2, len(x.shape)))


def _global_max(x: expr.Tensor, _: Attributes) -> expr.Compute:
    return fold_axes("global_max_pool", x, _spatial(x), expr.max_over)


def _global_average(x: expr.Tensor, _: Attributes) -> expr.Compute:
    total = fold_axes("global_average_pool_sum", x, _spatial(x), expr.sum_over)
    return mean_of("global_average_pool", total, named_sizes.product_of(x.shape[2:]))


def _global_lp(x: expr.Tensor, attributes: Attributes) -> expr.Compute:
    p = operator.float_of(attributes, "p")
    power = _power(p)
    total = fold_axes("global_lp_pool_sum", x, _spatial(x), expr.sum_over, lambda v, _: power(v))
    return _root("global_lp_pool", total, p)


def _windowed(
    name: str,
    doc: str,
    pool: Callable[[expr.Tensor, Window, Attributes], expr.Compute],
    more: tuple[operator.Attribute, ...] = (),
    accepts: frozenset[DType] = operator.FLOATS,
) -> operator.Operator:
    def infer(types: operator.Types, attributes: Attributes) -> operator.Types:
        (x,) = types
        operator.require_dtype("x", x, accepts)
        operator.require_rank("x", x, 3)
        space = named_sizes.sizes_of(x)[2:]
        window = _given_window(space, attributes)
        if operator.bool_of(attributes, "ceil_mode"):
            slots = _slots_of_ceil(window, space)
        else:
            slots = window.slots(space)
        return (TensorType(x.dtype, (*x.shape[:2], *slots)),)

    def meaning(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
        (x,) = tensors
        return (pool(x, _window(x.shape[2:], attributes), attributes),)

    given = (_KERNEL, *WINDOW_ATTRIBUTES, _CEIL, *more)
    return _operator(name, doc, given, infer, meaning, operator.Fold.WINDOWS)


def _global(
    name: str,
    doc: str,
    pool: Callable[[expr.Tensor, Attributes], expr.Compute],
    attributes: tuple[operator.Attribute, ...] = (),
) -> operator.Operator:
    def infer(types: operator.Types, _: Attributes) -> operator.Types:
        (x,) = types
        operator.require_dtype("x", x, operator.FLOATS)
        operator.require_rank("x", x, 3)
        if named_sizes.is_empty(named_sizes.sizes_of(x)[2:]):
            raise operator.fault(f"input x {x.shape} has nothing to pool")
        return (TensorType(x.dtype, (*x.shape[:2], *(1 for _ in x.shape[2:]))),)

    def meaning(tensors: operator.Tensors, given: Attributes) -> operator.Computes:
        return (pool(tensors[0], given),)

    return _operator(name, doc, attributes, infer, meaning, operator.Fold.PLANES)


def _operator(
    name: str,
    doc: str,
    attributes: tuple[operator.Attribute, ...],
    infer: operator.InferRule,
    meaning: operator.Meaning,
    fold: operator.Fold,
) -> operator.Operator:
    layout = operator.LayoutPreference.CHANNELS
    inputs = ("x",)
    return operator.tensor_operator(
        name, doc, inputs, attributes, infer, meaning, operator.Pattern.REDUCTION, layout, fold=fold
    )


POOLING_OPERATORS = (
    _windowed("max_pool", "greatest element of each window", _max_pool, accepts=operator.NUMBERS),
    _windowed(
        "average_pool",
        "mean of each window; padding counts only with count_include_pad",
        _average_pool,
        (_COUNT,),
    ),
    _windowed("lp_pool", "(sum of |x|**p) ** (1/p) of each window", _lp_pool, (_P,)),
    _global("global_max_pool", "greatest element per channel", _global_max),
    _global("global_average_pool", "mean per channel", _global_average),
    _global("global_lp_pool", "(sum of |x|**p) ** (1/p) per channel", _global_lp, (_P,)),
)
