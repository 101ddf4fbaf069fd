"""Resizing by interpolation, one stage per dimension that changes.

| operators | inputs | attributes |
|---|---|---|
| resize | x | sizes (of all dimensions), scales=() (output / input), see below |

Attributes: mode="nearest" ("linear", "cubic"), coordinates="half_pixel" ("half_pixel_symmetric",
"pytorch_half_pixel", "align_corners", "asymmetric"), nearest_mode="round_prefer_floor"
("round_prefer_ceil", "floor", "ceil"), cubic_a=-0.75, exclude_outside=False.

An output position x lies at the input coordinate m*x + c with rational m and c, so that floors and
fractions are exact index arithmetic.  Scales are taken as the nearest fraction with a denominator
up to 4096: 0.6 as a 32-bit float means 3/5.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import lcm
from operator import add

from tensorwright.base import Attributes, TensorType
from tensorwright.expr import (
    Compute,
    FromIndex,
    Index,
    Load,
    Tensor,
    Value,
    all_of,
    ceil_div,
    compute,
    floor_div,
    is_same,
    maximum,
    minimum,
    mod,
    select,
    terms_of,
)
from tensorwright.ops.access import axis_names, pointwise
from tensorwright.ops.attributes import (
    FLOATS,
    bool_of,
    fault,
    float_of,
    floats_of,
    require_dtype,
    sizes_in,
    text_of,
)
from tensorwright.ops.named_sizes import (
    as_divisor,
    decided,
    is_certain,
    is_equal,
    number_of,
    shape_text,
    sizes_of,
)
from tensorwright.ops.operator import Attribute, Movement, Pattern, tensor_operator

_MODES = ("nearest", "linear", "cubic")
_COORDINATES = (
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

    extent: Index
    output: Index
    slope: Index
    offset: Index
    unit: Index

    @property
    def is_identity(self) -> bool:
        """Whether every output is the input at the same position."""
        is_alike = is_same(self.extent, self.output) and is_same(self.slope, self.unit)
        return is_alike and is_same(self.offset, 0)

    def clamped(self, position: Index, first: Index, last: Index) -> Index:
        """A position limited to the input; `first` and `last` are the least and greatest of it."""
        if not is_certain(last <= self.extent - 1):
            position = minimum(position, self.extent - 1)
        return position if is_certain(first >= 0) else maximum(position, 0)

    def floor(self, x: Index) -> Index:
        """The input position at or before output x."""
        return floor_div(x * self.slope + self.offset, self.unit)

    def nearest(self, x: Index, rounding: str) -> Index:
        """The input position that is nearest to output x, by one of the four roundings."""
        scaled = x * self.slope + self.offset
        match rounding:
            case "floor":
                return floor_div(scaled, self.unit)
            case "ceil":
                return ceil_div(scaled, self.unit)
            case "round_prefer_floor":
                return ceil_div(scaled * 2 - self.unit, 2 * self.unit)
            case _:
                return floor_div(scaled * 2 + self.unit, 2 * self.unit)


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


def place_open_outputs(extent: Index, output: Index, coordinates: str) -> Grid:
    """As `place_outputs`, of sizes, for the scale that takes one exactly to the other."""
    if coordinates == "align_corners":
        return Grid(extent, output, extent - 1, 0, as_divisor(output - 1))
    if coordinates == "pytorch_half_pixel" and decided(output <= 1):
        return Grid(extent, output, 0, 0, 1)
    ratio = _ratio(output, extent)
    up: Index = output if ratio is None else ratio.numerator
    down: Index = extent if ratio is None else ratio.denominator
    if coordinates == "asymmetric":
        return Grid(extent, output, down, 0, as_divisor(up))
    return Grid(extent, output, 2 * down, down - up, as_divisor(2 * up))


def _ratio(output: Index, extent: Index) -> Fraction | None:
    """How many times as large one size is, where that is the same for all numbers."""
    (_, first), (_, second) = terms_of(output)[0], terms_of(extent)[0]
    ratio = Fraction(first, second)
    is_it = is_same(output * ratio.denominator, extent * ratio.numerator)
    return ratio if is_it and ratio > 0 else None


def _sizes(shape: tuple[Index, ...], attributes: Attributes) -> tuple[Index, ...]:
    sizes, scales = sizes_in(attributes, "sizes"), floats_of(attributes, "scales")
    if len(sizes) != len(shape) or not all(decided(size >= 0) for size in sizes):
        raise fault(f"attribute sizes {shape_text(sizes)} does not fit shape {shape_text(shape)}")
    if scales and len(scales) != len(shape):
        raise fault(f"attribute scales {scales} does not fit shape {shape_text(shape)}")
    if min(scales, default=1.0) <= 0:
        raise fault(f"attribute scales {scales} must be positive")
    if any(is_equal(n, 0) and decided(size > 0) for n, size in zip(shape, sizes, strict=True)):
        raise fault(f"shape {shape_text(shape)} is empty: there is nothing to interpolate")
    return sizes


def _grids(shape: tuple[Index, ...], attributes: Attributes) -> tuple[Grid, ...]:
    sizes, scales = _sizes(shape, attributes), floats_of(attributes, "scales")
    coordinates = text_of(attributes, "coordinates")
    grids: list[Grid] = []
    for at, (extent, size) in enumerate(zip(shape, sizes, strict=True)):
        is_kept = is_same(extent, size) and (not scales or scales[at] == 1)
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


def _open_grid(extent: Index, size: Index, scale: float | None, coordinates: str) -> Grid:
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


def _infer(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    (x,) = types
    if text_of(attributes, "mode", _MODES) != "nearest":
        require_dtype("x", x, FLOATS)
    text_of(attributes, "coordinates", _COORDINATES)
    text_of(attributes, "nearest_mode", _ROUNDINGS)
    shape = sizes_of(x)
    _grids(shape, attributes)  # asks what must be decided of sizes
    return (TensorType(x.dtype, _sizes(shape, attributes)),)


def tap_weights(fraction: Value, mode: str, a: float) -> tuple[tuple[int, Value], ...]:
    """The offsets from the floor, and their weights, for a fraction in 0..1."""
    rest = 1.0 - fraction
    if mode == "linear":
        return (0, rest), (1, fraction)

    def near(t: Value) -> Value:
        return ((t * (a + 2)) - (a + 3)) * t * t + 1.0

    def far(t: Value) -> Value:
        return ((t * a - 5 * a) * t + 8 * a) * t - 4 * a

    return (-1, far(fraction + 1.0)), (0, near(fraction)), (1, near(rest)), (2, far(rest + 1.0))


def _interpolated(x: Tensor, axis: int, grid: Grid, attributes: Attributes) -> Compute:
    """One dimension of x on a new grid."""
    mode = text_of(attributes, "mode")
    excludes = mode == "cubic" and bool_of(attributes, "exclude_outside")
    shape = tuple(grid.output if at == axis else n for at, n in enumerate(x.shape))
    names = axis_names(len(shape))
    last = grid.output - 1

    def element(at: tuple[Index, ...], position: Index) -> Load:
        return Load(x, (*at[:axis], position, *at[axis + 1 :]))

    def nearest(*at: Index) -> Value:
        rounding = text_of(attributes, "nearest_mode")
        first, final = grid.nearest(0, rounding), grid.nearest(last, rounding)
        return element(at, grid.clamped(grid.nearest(at[axis], rounding), first, final))

    def weighted(*at: Index) -> Value:
        low = grid.floor(at[axis])
        first, final = grid.floor(0), grid.floor(last)
        part = mod(at[axis] * grid.slope + grid.offset, grid.unit)
        fraction: Value = FromIndex(part, x.dtype)
        if isinstance(grid.unit, int):
            fraction = fraction * (1 / grid.unit)
        else:
            fraction = fraction / FromIndex(grid.unit, x.dtype)
        weights = tap_weights(fraction, mode, float_of(attributes, "cubic_a"))
        if excludes:
            weights = tuple(
                (step, select(all_of(low + step >= 0, low + step < grid.extent), weight, 0))
                for step, weight in weights
            )
        positions = (grid.clamped(low + step, first + step, final + step) for step, _ in weights)
        terms = zip(positions, weights, strict=True)
        total: Value = reduce(
            add, (element(at, position) * weight for position, (_, weight) in terms)
        )
        return total / reduce(add, (weight for _, weight in weights)) if excludes else total

    return compute(
        f"resize_{names[axis]}", shape, nearest if mode == "nearest" else weighted, names
    )


def _meaning(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    result: Tensor = x
    for axis, grid in enumerate(_grids(x.shape, attributes)):
        if not grid.is_identity:
            result = _interpolated(result, axis, grid, attributes)
    if isinstance(result, Compute) and result is not x:
        return (result,)
    return (pointwise("resize", (x,), x.shape, lambda value: value),)


RESIZING_OPERATORS = (
    tensor_operator(
        "resize",
        "x interpolated at other positions",
        ("x",),
        (
            Attribute("sizes", None, "the new shape, of all dimensions"),
            Attribute("scales", (), "output over input where the sizes are rounded; empty: exact"),
            Attribute("mode", "nearest", "nearest, linear or cubic"),
            Attribute("coordinates", "half_pixel", "where outputs lie among inputs, as in ONNX"),
            Attribute("nearest_mode", "round_prefer_floor", "how nearest rounds a coordinate"),
            Attribute("cubic_a", -0.75, "coefficient of the cubic"),
            Attribute("exclude_outside", default=False, doc="cubic weights outside count 0"),
        ),
        _infer,
        _meaning,
        Pattern.INJECTIVE,
        movement=Movement.RESAMPLE,
    ),
)
