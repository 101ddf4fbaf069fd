"""Resizing by interpolation, one stage per dimension that changes.

Coordinates: half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric.
Nearest: round_prefer_floor, round_prefer_ceil, floor, ceil.

An output position x lies at the input coordinate m*x + c with rational m and c, so that floors and
fractions are exact index arithmetic.  Scales are taken as the nearest fraction with a denominator
up to 4096: 0.6 as a 32-bit float means 3/5.

Reading an image between its pixels.

Shapes:  x (n, c, *spatial), grid (n, *output, number of spatial dimensions)
The last number of a grid point is about the first spatial dimension, the
first number about the last; -1 and 1 are the ends of x: the edges of its outer pixels, or their
centres with align_corners.

Stages: per dimension the coordinate and the pixel at or before it (rounded for nearest), then the
weighted sum of the pixels around.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product
from math import lcm
from operator import add

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops import operator
from tensorwright.ops.named_sizes import (
    as_divisor,
    decided,
    is_certain,
    is_empty,
    is_equal,
    number_of,
    shape_text,
    sizes_of,
)
from tensorwright.ops.shapes import axis_names, pointwise, spatial_names

_MODES = ("nearest", "linear", "cubic")
COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
)
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_LARGEST_DENOMINATOR = 4096


@dataclass(frozen=True, slots=True)
class Grid:
    """Where outputs lie among the inputs of one dimension: position x at (slope*x + offset) /
    unit.
    """

    extent: expr.Index
    output: expr.Index
    slope: expr.Index
    offset: expr.Index
    unit: expr.Index

    @property
    def is_identity(self) -> bool:
        """Whether every output is the input at the same position."""
        is_alike = expr.is_same(self.extent, self.output) and expr.is_same(self.slope, self.unit)
        return is_alike and expr.is_same(self.offset, 0)

    def clamped(self, position: expr.Index, first: expr.Index, last: expr.Index) -> expr.Index:
        """A position limited to the input; `first` and `last` are the least and greatest of it."""
        if not is_certain(last <= self.extent - 1):
            position = expr.minimum(position, self.extent - 1)
        return position if is_certain(first >= 0) else expr.maximum(position, 0)

    def floor(self, x: expr.Index) -> expr.Index:
        """The input position at or before output x."""
        return expr.floor_div(x * self.slope + self.offset, self.unit)

    def nearest(self, x: expr.Index, rounding: str) -> expr.Index:
        """The input position that is nearest to output x, by one of the four roundings."""
        scaled = x * self.slope + self.offset
        match rounding:
            case "floor":
                return expr.floor_div(scaled, self.unit)
            case "ceil":
                return expr.ceil_div(scaled, self.unit)
            case "round_prefer_floor":
                return expr.ceil_div(scaled * 2 - self.unit, 2 * self.unit)
            case _:
                return expr.floor_div(scaled * 2 + self.unit, 2 * self.unit)


def place_outputs(extent: int, output: int, scale: Fraction, coordinates: str) -> Grid:
    """The grid of one dimension; `scale` is output over input, perhaps not exactly."""
    half = Fraction(1, 2)
    slope, offset = 1 / scale, half / scale - half
    if coordinates == "asymmetric":
        offset = Fraction(0)
    elif coordinates == "pytorch_half_pixel" and output <= 1:
        slope, offset = Fraction(0), Fraction(0)
    elif coordinates == "align_corners":
        length = scale * extent  # as in ONNX: not rounded to the extent of the output
        slope = (extent - 1) / (length - 1) if length != 1 else Fraction(0)
        offset = Fraction(0)
    elif coordinates == "half_pixel_symmetric":
        offset += Fraction(extent, 2) * (1 - Fraction(output) / (scale * extent))
    unit = lcm(slope.denominator, offset.denominator)
    return Grid(extent, output, int(slope * unit), int(offset * unit), unit)


def place_open_outputs(extent: expr.Index, output: expr.Index, coordinates: str) -> Grid:
    """As `place_outputs`, of sizes, for the scale that takes one exactly to the other."""
    if coordinates == "align_corners":
        return Grid(extent, output, extent - 1, 0, as_divisor(output - 1))
    if coordinates == "pytorch_half_pixel" and decided(output <= 1):
        return Grid(extent, output, 0, 0, 1)
    ratio = _ratio(output, extent)
    up: expr.Index = output if ratio is None else ratio.numerator
    down: expr.Index = extent if ratio is None else ratio.denominator
    if coordinates == "asymmetric":
        return Grid(extent, output, down, 0, as_divisor(up))
    return Grid(extent, output, 2 * down, down - up, as_divisor(2 * up))


def _ratio(output: expr.Index, extent: expr.Index) -> Fraction | None:
    """How many times as large one size is, where that is the same for all numbers."""
    (_, first), (_, second) = expr.terms_of(output)[0], expr.terms_of(extent)[0]
    ratio = Fraction(first, second)
    is_it = expr.is_same(output * ratio.denominator, extent * ratio.numerator)
    return ratio if is_it and ratio > 0 else None


def _sizes(shape: tuple[expr.Index, ...], attributes: Attributes) -> tuple[expr.Index, ...]:
    sizes, scales = operator.sizes_in(attributes, "sizes"), operator.floats_of(attributes, "scales")
    if len(sizes) != len(shape) or not all(decided(size >= 0) for size in sizes):
        raise operator.fault(
            f"attribute sizes {shape_text(sizes)} does not fit shape {shape_text(shape)}"
        )
    if scales and len(scales) != len(shape):
        raise operator.fault(f"attribute scales {scales} does not fit shape {shape_text(shape)}")
    if min(scales, default=1.0) <= 0:
        raise operator.fault(f"attribute scales {scales} must be positive")
    if any(is_equal(n, 0) and decided(size > 0) for n, size in zip(shape, sizes, strict=True)):
        raise operator.fault(f"shape {shape_text(shape)} is empty: there is nothing to interpolate")
    return sizes


def _grids(shape: tuple[expr.Index, ...], attributes: Attributes) -> tuple[Grid, ...]:
    sizes, scales = _sizes(shape, attributes), operator.floats_of(attributes, "scales")
    coordinates = operator.text_of(attributes, "coordinates")
    grids: list[Grid] = []
    for at, (extent, size) in enumerate(zip(shape, sizes, strict=True)):
        is_kept = expr.is_same(extent, size) and (not scales or scales[at] == 1)
        if size == 0 or is_kept:
            grids.append(Grid(extent, size, 1, 0, 1))
        elif isinstance(extent, int) and isinstance(size, int):
            scale = Fraction(size, extent)
            if scales:
                scale = Fraction(scales[at]).limit_denominator(_LARGEST_DENOMINATOR) or scale
            grids.append(place_outputs(extent, size, scale, coordinates))
        else:
            grids.append(_open_grid(extent, size, scales[at] if scales else None, coordinates))
    return tuple(grids)


def _open_grid(extent: expr.Index, size: expr.Index, scale: float | None, coordinates: str) -> Grid:
    """The grid of a dimension with sizes.

    A scale that rounds sizes needs numbers where the grid starts from the last output.
    """
    if scale is None:
        return place_open_outputs(extent, size, coordinates)
    fraction = Fraction(scale).limit_denominator(_LARGEST_DENOMINATOR)
    ratio = _ratio(size, extent)
    if ratio == fraction:
        return place_open_outputs(extent, size, coordinates)
    if coordinates not in ("half_pixel", "asymmetric"):
        number_of(extent)
        number_of(size)
    grid = place_outputs(fraction.denominator, fraction.numerator, fraction, coordinates)
    return Grid(extent, size, grid.slope, grid.offset, grid.unit)


def _infer(types: operator.Types, attributes: Attributes) -> operator.Types:
    (x,) = types
    if operator.text_of(attributes, "mode", _MODES) != "nearest":
        operator.require_dtype("x", x, operator.FLOATS)
    operator.text_of(attributes, "coordinates", COORDINATES)
    operator.text_of(attributes, "nearest_mode", _ROUNDINGS)
    shape = sizes_of(x)
    _grids(shape, attributes)  # asks what must be decided of sizes
    return (TensorType(x.dtype, _sizes(shape, attributes)),)


def tap_weights(fraction: expr.Value, mode: str, a: float) -> tuple[tuple[int, expr.Value], ...]:
    """The offsets from the floor, and their weights, for a fraction in 0..1."""
    rest = 1.0 - fraction
    if mode == "linear":
        return (0, rest), (1, fraction)

    def near(t: expr.Value) -> expr.Value:
        return ((t * (a + 2)) - (a + 3)) * t * t + 1.0

    def far(t: expr.Value) -> expr.Value:
        return ((t * a - 5 * a) * t + 8 * a) * t - 4 * a

    return (-1, far(fraction + 1.0)), (0, near(fraction)), (1, near(rest)), (2, far(rest + 1.0))


def _interpolated(x: expr.Tensor, axis: int, grid: Grid, attributes: Attributes) -> expr.Compute:
    """One dimension of x on a new grid."""
    mode = operator.text_of(attributes, "mode")
    excludes = mode == "cubic" and operator.bool_of(attributes, "exclude_outside")
    shape = tuple(grid.output if at == axis else n for at, n in enumerate(x.shape))
    names = axis_names(len(shape))
    last = grid.output - 1

    def element(at: tuple[expr.Index, ...], position: expr.Index) -> expr.Load:
        return expr.Load(x, (*at[:axis], position, *at[axis + 1 :]))

    def nearest(*at: expr.Index) -> expr.Value:
        rounding = operator.text_of(attributes, "nearest_mode")
        first, final = grid.nearest(0, rounding), grid.nearest(last, rounding)
        return element(at, grid.clamped(grid.nearest(at[axis], rounding), first, final))

    def weighted(*at: expr.Index) -> expr.Value:
        low = grid.floor(at[axis])
        first, final = grid.floor(0), grid.floor(last)
        part = expr.mod(at[axis] * grid.slope + grid.offset, grid.unit)
        fraction: expr.Value = expr.FromIndex(part, x.dtype)
        if isinstance(grid.unit, int):
            fraction = fraction * (1 / grid.unit)
        else:
            fraction = fraction / expr.FromIndex(grid.unit, x.dtype)
        weights = tap_weights(fraction, mode, operator.float_of(attributes, "cubic_a"))
        if excludes:
            weights = tuple(
                (
                    step,
                    expr.select(expr.all_of(low + step >= 0, low + step < grid.extent), weight, 0),
                )
                for step, weight in weights
            )
        positions = (grid.clamped(low + step, first + step, final + step) for step, _ in weights)
        terms = zip(positions, weights, strict=True)
        total: expr.Value = reduce(
            add, (element(at, position) * weight for position, (_, weight) in terms)
        )
        return total / reduce(add, (weight for _, weight in weights)) if excludes else total

    return expr.compute(
        f"resize_{names[axis]}", shape, nearest if mode == "nearest" else weighted, names
    )


def _meaning(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    (x,) = tensors
    result: expr.Tensor = x
    for axis, grid in enumerate(_grids(x.shape, attributes)):
        if not grid.is_identity:
            result = _interpolated(result, axis, grid, attributes)
    if isinstance(result, expr.Compute) and result is not x:
        return (result,)
    return (pointwise("resize", (x,), x.shape, lambda value: value),)


RESIZING_OPERATORS = (
    operator.tensor_operator(
        "resize",
        "x interpolated at other positions",
        ("x",),
        (
            operator.Attribute("sizes", None, "the new shape, of all dimensions"),
            operator.Attribute(
                "scales", (), "output over input where the sizes are rounded; empty: exact"
            ),
            operator.Attribute("mode", "nearest", "nearest, linear or cubic"),
            operator.Attribute(
                "coordinates", "half_pixel", "where outputs lie among inputs, as in ONNX"
            ),
            operator.Attribute(
                "nearest_mode", "round_prefer_floor", "how nearest rounds a coordinate"
            ),
            operator.Attribute("cubic_a", -0.75, "coefficient of the cubic"),
            operator.Attribute(
                "exclude_outside", default=False, doc="cubic weights outside count 0"
            ),
        ),
        _infer,
        _meaning,
        operator.Pattern.INJECTIVE,
        movement=operator.Movement.RESAMPLE,
    ),
)


_SAMPLE_MODES = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")
_CUBIC_A = -0.75


def _infer_samples(types: operator.Types, attributes: Attributes) -> operator.Types:
    x, grid = types
    operator.require_dtype("x", x, operator.FLOATS)
    operator.require_rank("x", x, 3)
    operator.require_rank("grid", grid, len(x.shape), len(x.shape))
    operator.require_same_dtype(("x", "grid"), types)
    operator.text_of(attributes, "mode", _SAMPLE_MODES)
    operator.text_of(attributes, "padding", _PADDINGS)
    shape, own = sizes_of(x), sizes_of(grid)
    if not is_equal(own[0], shape[0]) or not is_equal(own[-1], len(shape) - 2):
        raise operator.fault(f"input grid {shape_text(own)} does not fit x {shape_text(shape)}")
    if is_empty(shape):
        raise operator.fault(f"input x {shape_text(shape)} is empty: nothing can be read")
    return (TensorType(x.dtype, (*shape[:2], *own[1:-1])),)


def _reflected(value: expr.Value, low: float, span: float) -> expr.Value:
    """A coordinate folded back into low..low+span, as a ray between two mirrors."""
    if span == 0:
        return expr.constant(0, value.dtype)
    distance = expr.apply(expr.Fn.ABS, value - low)
    extra = expr.apply(expr.Fn.MOD, distance, span)
    turns = expr.apply(expr.Fn.MOD, expr.apply(expr.Fn.FLOOR, distance / span), 2.0)
    return expr.select(expr.apply(expr.Fn.EQ, turns, 0.0), extra, span - extra) + low


def _coordinate(value: expr.Value, extent: int, attributes: Attributes) -> expr.Value:
    """Where a grid number lies among the pixels; brought inside for border and reflection."""
    aligned = operator.bool_of(attributes, "align_corners")
    pixel = (value + 1.0) * ((extent - 1) / 2 if aligned else extent / 2)
    pixel = pixel if aligned else pixel - 0.5
    padding = operator.text_of(attributes, "padding")
    if padding == "zeros" or operator.text_of(attributes, "mode") == "cubic":
        return pixel
    if padding == "reflection":
        low, span = (0.0, extent - 1.0) if aligned else (-0.5, float(extent))
        pixel = _reflected(pixel, low, span)
    return expr.apply(expr.Fn.MIN, expr.apply(expr.Fn.MAX, pixel, 0.0), extent - 1.0)


def _inside(index: expr.Index, extent: int, attributes: Attributes) -> expr.Index:
    """The pixel that the padding puts at an index, which may lie outside."""
    cubic = operator.text_of(attributes, "mode") == "cubic"
    if operator.text_of(attributes, "padding") == "reflection" and cubic:
        if extent == 1:
            return 0
        edge = 0 if operator.bool_of(attributes, "align_corners") else 1
        period = 2 * (extent - 1 + edge)
        ahead = expr.mod(index, period)
        return expr.minimum(ahead, period - edge - ahead)
    return expr.maximum(expr.minimum(index, extent - 1), 0)


def _sampled(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, grid = tensors
    shape, points = x.shape, grid.shape[:-1]
    space = tuple(map(number_of, shape[2:]))
    rank = len(space)
    mode = operator.text_of(attributes, "mode")
    guards = operator.text_of(attributes, "padding") == "zeros"
    coordinates: list[expr.Compute] = []
    pixels: list[expr.Compute] = []
    for at, name in enumerate(spatial_names(rank)):

        def coordinate(
            *point: expr.Index, number: int = rank - 1 - at, n: int = space[at]
        ) -> expr.Value:
            return _coordinate(expr.Load(grid, (*point, number)), n, attributes)

        names = axis_names(len(points))
        located = expr.compute(f"grid_sample_{name}", points, coordinate, names)
        rounding = expr.Fn.ROUND if mode == "nearest" else expr.Fn.FLOOR

        def pixel(value: expr.Value, fn: expr.Fn = rounding) -> expr.Value:
            return expr.cast(expr.apply(fn, value), DType.I64)

        coordinates.append(located)
        pixels.append(pointwise(f"grid_sample_{name}_pixel", (located,), points, pixel))

    def body(n: expr.Index, c: expr.Index, *output: expr.Index) -> expr.Value:
        point = (n, *output)
        fractions = (
            expr.Load(p, point) - expr.apply(expr.Fn.FLOOR, expr.Load(p, point))
            for p in coordinates
        )
        around = product(
            *(
                (((0, None),) if mode == "nearest" else tap_weights(fraction, mode, _CUBIC_A))
                for fraction in fractions
            )
        )
        return reduce(add, (_term(n, c, point, taps) for taps in around))

    def _term(
        n: expr.Index,
        c: expr.Index,
        point: tuple[expr.Index, ...],
        taps: tuple[tuple[int, expr.Value | None], ...],
    ) -> expr.Value:
        indices = [expr.Element(p, point) + step for p, (step, _) in zip(pixels, taps, strict=True)]
        inside: list[expr.Condition] = []
        if guards:
            for index, extent in zip(indices, space, strict=True):
                inside += [index >= 0, index < extent]
        else:
            ends = zip(indices, space, strict=True)
            indices = [_inside(index, extent, attributes) for index, extent in ends]
        value: expr.Value = expr.select(expr.all_of(*inside), expr.Load(x, (n, c, *indices)), 0)
        for _, weight in taps:
            value = value if weight is None else value * weight
        return value

    result = (*shape[:2], *points[1:])
    return (expr.compute("grid_sample", result, body, axis_names(len(result))),)


SAMPLING_OPERATORS = (
    operator.tensor_operator(
        "grid_sample",
        "x interpolated at the points of a grid",
        ("x", "grid"),
        (
            operator.Attribute("mode", "linear", "linear, nearest or cubic"),
            operator.Attribute("padding", "zeros", "outside of x: zeros, border or reflection"),
            operator.Attribute(
                "align_corners", default=False, doc="-1 and 1 are centres of pixels"
            ),
        ),
        _infer_samples,
        _sampled,
        operator.Pattern.REDUCTION,
        fold=operator.Fold.OTHER,
    ),
)
