"""Reading an image between its pixels.

| operators | inputs | attributes |
|---|---|---|
| grid_sample | x (n, c, *spatial), grid (n, *output, number of spatial) | see below |

Attributes: mode="linear" ("nearest", "cubic"), padding="zeros" ("border", "reflection"),
align_corners=False.  The last number of a grid point is about the first spatial dimension, the
first number about the last; -1 and 1 are the ends of x: the edges of its outer pixels, or their
centres with align_corners.

Stages: per dimension the coordinate and the pixel at or before it (rounded for nearest), then the
weighted sum of the pixels around.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from operator import add

from tensorwright.base import Attributes, DType, TensorType
from tensorwright.expr import (
    Compute,
    Condition,
    Element,
    Fn,
    Index,
    Load,
    Tensor,
    Value,
    all_of,
    apply,
    cast,
    compute,
    constant,
    maximum,
    minimum,
    mod,
    select,
)
from tensorwright.ops.access import axis_names, pointwise, spatial_names
from tensorwright.ops.attributes import (
    FLOATS,
    bool_of,
    fault,
    require_dtype,
    require_rank,
    require_same_dtype,
    text_of,
)
from tensorwright.ops.moving.resizing import tap_weights
from tensorwright.ops.named_sizes import is_empty, is_equal, number_of, shape_text, sizes_of
from tensorwright.ops.operator import Attribute, Fold, Pattern, tensor_operator

_MODES = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")
_CUBIC_A = -0.75


def _infer(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    x, grid = types
    require_dtype("x", x, FLOATS)
    require_rank("x", x, 3)
    require_rank("grid", grid, len(x.shape), len(x.shape))
    require_same_dtype(("x", "grid"), types)
    text_of(attributes, "mode", _MODES)
    text_of(attributes, "padding", _PADDINGS)
    shape, own = sizes_of(x), sizes_of(grid)
    if not is_equal(own[0], shape[0]) or not is_equal(own[-1], len(shape) - 2):
        raise fault(f"input grid {shape_text(own)} does not fit x {shape_text(shape)}")
    if is_empty(shape):
        raise fault(f"input x {shape_text(shape)} is empty: nothing can be read")
    return (TensorType(x.dtype, (*shape[:2], *own[1:-1])),)


def _reflected(value: Value, low: float, span: float) -> Value:
    """A coordinate folded back into low..low+span, as a ray between two mirrors."""
    if span == 0:
        return constant(0, value.dtype)
    distance = apply(Fn.ABS, value - low)
    extra = apply(Fn.MOD, distance, span)
    turns = apply(Fn.MOD, apply(Fn.FLOOR, distance / span), 2.0)
    return select(apply(Fn.EQ, turns, 0.0), extra, span - extra) + low


def _coordinate(value: Value, extent: int, attributes: Attributes) -> Value:
    """Where a grid number lies among the pixels; brought inside for border and reflection."""
    aligned = bool_of(attributes, "align_corners")
    pixel = (value + 1.0) * ((extent - 1) / 2 if aligned else extent / 2)
    pixel = pixel if aligned else pixel - 0.5
    padding = text_of(attributes, "padding")
    if padding == "zeros" or text_of(attributes, "mode") == "cubic":
        return pixel
    if padding == "reflection":
        low, span = (0.0, extent - 1.0) if aligned else (-0.5, float(extent))
        pixel = _reflected(pixel, low, span)
    return apply(Fn.MIN, apply(Fn.MAX, pixel, 0.0), extent - 1.0)


def _inside(index: Index, extent: int, attributes: Attributes) -> Index:
    """The pixel that the padding puts at an index, which may lie outside."""
    cubic = text_of(attributes, "mode") == "cubic"
    if text_of(attributes, "padding") == "reflection" and cubic:
        if extent == 1:
            return 0
        edge = 0 if bool_of(attributes, "align_corners") else 1
        period = 2 * (extent - 1 + edge)
        ahead = mod(index, period)
        return minimum(ahead, period - edge - ahead)
    return maximum(minimum(index, extent - 1), 0)


def _taps(fraction: Value, mode: str) -> tuple[tuple[int, Value | None], ...]:
    """Distances from the pixel before a coordinate, with their weights; None is 1."""
    return ((0, None),) if mode == "nearest" else tap_weights(fraction, mode, _CUBIC_A)


def _meaning(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    x, grid = tensors
    shape, points = x.shape, grid.shape[:-1]
    space = tuple(map(number_of, shape[2:]))
    rank = len(space)
    mode = text_of(attributes, "mode")
    guards = text_of(attributes, "padding") == "zeros"
    coordinates: list[Compute] = []
    pixels: list[Compute] = []
    for at, name in enumerate(spatial_names(rank)):

        def coordinate(*point: Index, number: int = rank - 1 - at, n: int = space[at]) -> Value:
            return _coordinate(Load(grid, (*point, number)), n, attributes)

        names = axis_names(len(points))
        located = compute(f"grid_sample_{name}", points, coordinate, names)
        rounding = Fn.ROUND if mode == "nearest" else Fn.FLOOR

        def pixel(value: Value, fn: Fn = rounding) -> Value:
            return cast(apply(fn, value), DType.I64)

        coordinates.append(located)
        pixels.append(pointwise(f"grid_sample_{name}_pixel", (located,), points, pixel))

    def body(n: Index, c: Index, *output: Index) -> Value:
        point = (n, *output)
        fractions = (Load(p, point) - apply(Fn.FLOOR, Load(p, point)) for p in coordinates)
        around = product(*(_taps(fraction, mode) for fraction in fractions))
        return reduce(add, (_term(n, c, point, taps) for taps in around))

    def _term(
        n: Index, c: Index, point: tuple[Index, ...], taps: tuple[tuple[int, Value | None], ...]
    ) -> Value:
        indices = [Element(p, point) + step for p, (step, _) in zip(pixels, taps, strict=True)]
        inside: list[Condition] = []
        if guards:
            for index, extent in zip(indices, space, strict=True):
                inside += [index >= 0, index < extent]
        else:
            ends = zip(indices, space, strict=True)
            indices = [_inside(index, extent, attributes) for index, extent in ends]
        value: Value = select(all_of(*inside), Load(x, (n, c, *indices)), 0)
        for _, weight in taps:
            value = value if weight is None else value * weight
        return value

    result = (*shape[:2], *points[1:])
    return (compute("grid_sample", result, body, axis_names(len(result))),)


SAMPLING_OPERATORS = (
    tensor_operator(
        "grid_sample",
        "x interpolated at the points of a grid",
        ("x", "grid"),
        (
            Attribute("mode", "linear", "linear, nearest or cubic"),
            Attribute("padding", "zeros", "outside of x: zeros, border or reflection"),
            Attribute("align_corners", default=False, doc="-1 and 1 are centres of pixels"),
        ),
        _infer,
        _meaning,
        Pattern.REDUCTION,
        fold=Fold.OTHER,
    ),
)
