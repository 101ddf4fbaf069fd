"""Resizing (Upsample 7 and 9, Resize 10, 11, 13, 18 and 19) and reading between pixels."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeVar

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import Index, floor_div
from tensorwright.graph.imports.call import (
    Call,
    Converter,
    Operand,
    Results,
    Table,
    in_single_precision,
)
from tensorwright.graph.imports.converters.windows import batched, window_of
from tensorwright.graph.imports.folding import sizes_from
from tensorwright.ops import COORDINATES, INTS, axis_in, number_of

_LARGEST_DENOMINATOR = 4096


Value = TypeVar("Value")


def _scaled(call: Call, scales: tuple[float, ...], **more: str | float | bool) -> Results:
    shape = call.sizes(0)
    if len(scales) != len(shape):
        raise call.unsupported(f"{len(scales)} scales do not fit {len(shape)} dimensions")
    sizes = tuple(_scaled_extent(call, n, s) for n, s in zip(shape, scales, strict=True))
    return (call.add("resize", call.tensor(0), sizes=sizes, scales=scales, **more),)


def _scaled_extent(call: Call, extent: Index, scale: float) -> Index:
    """An extent times a scale, rounded down.

    A scale of 0.6 arrives as a 32-bit float: 5 * 0.6 must not become 2.
    """
    if isinstance(extent, int):
        return math.floor(extent * scale + 1e-5)
    ratio = Fraction(scale).limit_denominator(_LARGEST_DENOMINATOR)
    if abs(float(ratio) - scale) > 1e-6 * scale:
        raise call.undecided(
            (extent,), f"size by the scale {scale}, no quotient of small integers,"
        )
    return floor_div(extent * ratio.numerator, ratio.denominator)


def _floats(call: Call, position: int, what: str) -> tuple[float, ...]:
    return tuple(float(item) for item in call.array(position, what).reshape(-1))


def _old(call: Call) -> Results:
    """Upsample, and Resize 10: positions are multiplied by the scale and rounded down."""
    scales = call.reals("scales") if call.has("scales") else _floats(call, 1, "scales")
    mode = call.text("mode", "nearest")
    return _scaled(
        call,
        scales,
        mode="linear" if mode == "bilinear" else mode,
        coordinates="asymmetric",
        nearest_mode="floor",
    )


def _all_axes(call: Call, values: tuple[Value, ...], fill: tuple[Value, ...]) -> tuple[Value, ...]:
    """Values of the chosen axes, the fill elsewhere."""
    if not call.has("axes"):
        return values
    full = list(fill)
    for axis, value in zip(call.integers("axes"), values, strict=True):
        full[axis_in(axis, len(full), "axes")] = value
    return tuple(full)


def _resize(call: Call) -> Results | None:
    """What is between integers is computed in f32 and loses its fraction."""
    convert = _old if call.opset < 11 else _resized
    is_nearest = call.text("mode", "nearest") == "nearest"
    return (convert if is_nearest else in_single_precision(convert, INTS))(call)


def _resized(call: Call) -> Results:
    coordinates = call.text("coordinate_transformation_mode", "half_pixel")
    if coordinates not in COORDINATES:
        raise call.unsupported(f"its coordinate_transformation_mode {coordinates} is not supported")
    own = call.sizes(0)
    more: dict[str, str | float | bool] = {
        "mode": call.text("mode", "nearest"),
        "coordinates": coordinates,
        "nearest_mode": call.text("nearest_mode", "round_prefer_floor"),
        "cubic_a": call.real("cubic_coeff_a", -0.75),
        "exclude_outside": call.flag("exclude_outside"),
    }
    scales = _floats(call, 2, "scales") if call.has(2) else ()
    if scales:
        scales = _all_axes(call, scales, (1.0,) * len(own))
        _refuse_antialias(call, scales)
        return _scaled(call, scales, **more)
    wanted = _all_axes(call, sizes_from(call, 3, "sizes"), own)
    policy = call.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch" and not call.flag("antialias"):
        return (call.add("resize", call.tensor(0), sizes=wanted, **more),)
    shape, sizes = call.extents(0), tuple(map(number_of, wanted))
    if policy == "stretch":
        _refuse_antialias(call, tuple(a / b for a, b in zip(sizes, shape, strict=True)))
        return (call.add("resize", call.tensor(0), sizes=sizes, **more),)
    chosen = call.integers("axes", tuple(range(len(shape))))
    ratios = [sizes[axis] / shape[axis] for axis in chosen]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    scales = _all_axes(call, (ratio,) * len(chosen), (1.0,) * len(shape))
    _refuse_antialias(call, scales)
    sizes = tuple(math.floor(n * s + 0.5) for n, s in zip(shape, scales, strict=True))
    return (call.add("resize", call.tensor(0), sizes=sizes, scales=scales, **more),)


def _refuse_antialias(call: Call, scales: tuple[float, ...]) -> None:
    if call.flag("antialias") and min(scales) < 1:
        raise call.unsupported("antialias is not supported where it makes an image smaller")


def _grid_sample(call: Call) -> Results:
    """A grid may have another type than the image: both are read as f32, or f64 as the image is."""
    mode = call.text("mode", "bilinear").removeprefix("bi")  # bilinear before operator set 20
    image, grid = call.tensor(0), call.tensor(1)
    given = call.dtype_of(0)
    is_mixed = call.dtype_of(1) is not given
    if is_mixed:
        wide = DType.F64 if given is DType.F64 else DType.F32
        image, grid = (call.add("cast", each, to=wide) for each in (image, grid))
    sampled = _at_grid(call, image, grid, mode, call.text("padding_mode", "zeros"))
    return (call.add("cast", sampled, to=given) if is_mixed else sampled,)


def _at_grid(call: Call, image: str, grid: str, mode: str, padding: str) -> str:
    aligned = call.flag("align_corners")
    return call.add("grid_sample", image, grid, mode=mode, padding=padding, align_corners=aligned)


def _sampled(call: Call, image: Operand, rows: Operand, columns: Operand, padding: str) -> str:
    """An image (n, c, h, w) read between its pixels, at rows and columns (n, a, b) in pixels."""
    height, width = call.type_of(image).extents[2:]
    dtype = call.dtype_of(image)
    ends = []
    for pixels, extent in ((columns, width), (rows, height)):  # to -1..1 between the outer edges
        scaled = call.add("mul", pixels, call.as_array(2 / extent, dtype))
        ends.append(call.add("add", scaled, call.as_array(1 / extent - 1, dtype)))
    grid = call.stack(ends, 3)
    return call.add("grid_sample", image, grid, mode="linear", padding=padding)


def _sample_positions(
    call: Call, first: Operand, last: Operand, samples: int, is_shifted: bool
) -> str:
    """Where samples of each region stand, in pixels: evenly between its first and its last one."""
    dtype = call.dtype_of(0)
    size = call.add("sub", last, first)
    if not is_shifted:
        size = call.add("max", size, call.as_array(1, dtype))
    steps = ((np.arange(samples) + 0.5) / samples).astype(dtype.numpy)
    along = call.add("mul", call.add("unsqueeze", size, axes=(1,)), steps)
    return call.add("add", along, call.add("unsqueeze", first, axes=(1,)))


def _roi_align(call: Call) -> Results:
    """Bins of regions of images: means of samples; the images stand one below the other."""
    ratio = call.integer("sampling_ratio", 0)
    if ratio < 1 or call.text("mode", "avg") != "avg":
        raise call.unsupported(
            "it takes maxima, or as many samples as a region is large",
            "export it with mode avg and a sampling_ratio",
        )
    count = call.sizes(0)[0]
    channels, height, width = map(number_of, call.sizes(0)[1:])
    regions = call.sizes(1)[0]
    dtype = call.dtype_of(0)
    bins = (call.integer("output_height", 1), call.integer("output_width", 1))
    if isinstance(regions, int):
        call.check_elements(regions * math.prod(bins) * ratio * ratio)
    is_shifted = call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    is_shifted &= call.opset >= 16
    scale = call.as_array(call.real("spatial_scale", 1.0), dtype)
    corners: Operand = call.add("mul", call.tensor(1), scale)
    if is_shifted:
        corners = call.add("sub", corners, call.as_array(0.5, dtype))
    coordinates, inside = [], []
    for axis, (extent, many) in enumerate(zip((height, width), bins, strict=True)):
        first, last = (call.take(corners, at + 1 - axis, 1) for at in (0, 2))
        pixels = _sample_positions(call, first, last, many * ratio, is_shifted)
        least = call.add("greater_or_equal", pixels, call.as_array(-1, dtype))
        most = call.add("less_or_equal", pixels, call.as_array(extent, dtype))
        inside.append(call.add("cast", call.add("and", least, most), to=dtype))
        coordinates.append(call.add("clip", pixels, min=0.0, max=float(extent - 1)))
    number = call.add("unsqueeze", call.add("cast", call.tensor(2), to=dtype), axes=(1,))
    below = call.add("mul", number, call.as_array(height, dtype))
    coordinates[0] = call.add("add", coordinates[0], below)
    rows, columns = bins[0] * ratio, bins[1] * ratio
    shape = (regions, rows, columns)

    def spread(part: str, axis: int) -> str:
        return call.add("expand", call.add("unsqueeze", part, axes=(axis,)), shape=shape)

    grid_shape = (1, regions * rows, columns)
    at_rows = call.add("reshape", spread(coordinates[0], 2), shape=grid_shape)
    at_columns = call.add("reshape", spread(coordinates[1], 1), shape=grid_shape)
    image = call.add("transpose", call.tensor(0), perm=(1, 0, 2, 3))
    image = call.add("reshape", image, shape=(1, channels, count * height, width))
    sampled = _sampled(call, image, at_rows, at_columns, "border")
    weights = call.add("mul", spread(inside[0], 2), spread(inside[1], 1))
    sampled = call.add("mul", sampled, call.add("reshape", weights, shape=grid_shape))
    split = (channels, regions, bins[0], ratio, bins[1], ratio)
    means = call.add("reduce_mean", call.add("reshape", sampled, shape=split), axes=(3, 5))
    means = call.add("reshape", means, shape=(channels, regions, *bins))
    return (call.add("transpose", means, perm=(1, 0, 2, 3)),)


def _deform_conv(call: Call) -> Results:
    """A convolution whose taps are read beside their places: sampled, then a product."""
    shape, weights, offsets = call.extents(0), call.extents(1), call.extents(2)
    if len(shape) != 4:
        raise call.unsupported(f"data of {shape} is not an image")
    count, channels, height, width = shape
    kernel, slots = weights[2:], offsets[2:]
    window = window_of(call, kernel)
    groups = call.integer("offset_group", 1)
    taps = math.prod(kernel)
    dtype = call.dtype_of(0)
    if offsets[1] != 2 * groups * taps or channels % groups:
        raise call.unsupported(f"offsets {offsets} do not fit {groups} groups of {kernel}")
    each = (count * groups, taps, 2, *slots)
    moved = call.add("reshape", call.tensor(2), shape=each)
    coordinates = []
    for axis in range(2):
        starts = np.arange(slots[axis]) * window.strides[axis] - window.pads[axis]
        steps = np.arange(kernel[axis]) * window.dilations[axis]
        own = [1, 1, 1, 1]
        own[axis], own[2 + axis] = kernel[axis], slots[axis]
        fixed = np.zeros((*kernel, *slots)) + (steps[:, None] + starts).reshape(own)
        fixed = fixed.reshape(taps, *slots).astype(dtype.numpy)
        pixels = call.add("add", call.take(moved, axis, 2), fixed)
        coordinates.append(
            call.add("reshape", pixels, shape=(count * groups, taps * slots[0], slots[1]))
        )
    image_shape = (count * groups, channels // groups, height, width)
    image = call.add("reshape", call.tensor(0), shape=image_shape)
    sampled = _sampled(call, image, coordinates[0], coordinates[1], "zeros")
    sampled = call.add("reshape", sampled, shape=(count, groups, channels // groups, taps, *slots))
    if call.has(4):
        mask = call.add("reshape", call.tensor(4), shape=(count, groups, 1, taps, *slots))
        sampled = call.add("mul", sampled, mask)
    columns = call.add("reshape", sampled, shape=(count, channels * taps, *slots))
    flat = call.add("reshape", call.tensor(1), shape=(weights[0], weights[1] * taps, 1, 1))
    inputs = (columns, flat, *((call.tensor(3),) if call.has(3) else ()))
    return (call.add("conv", *inputs, groups=call.integer("group", 1)),)


RESIZING: Table = (
    ("Upsample", _old),
    ("Resize", _resize),
    ("GridSample", _grid_sample),
    ("RoiAlign", _roi_align),
    ("DeformConv", _deform_conv),
)


# -- ATen


def _wanted_sizes(call: Call, x: str, count: int) -> tuple[tuple[Index, ...], tuple[float, ...]]:
    """The sizes of a resized image, and the scales if the call gives scales."""
    shape = call.sizes(x)
    named = [call.get(f"scales_{each}") for each in ("d", "h", "w")[-count:]]
    if count == 1:
        named = [call.get("scales")]
    factors = call.get("scale_factors") or (tuple(named) if all(named) else None)
    scales: tuple[float, ...] = ()
    if isinstance(factors, tuple):
        scales = (1.0, 1.0, *(float(each) for each in factors))  # type: ignore[arg-type]
    if call.has("output_size"):
        return (*shape[:2], *call.shape("output_size")), scales
    pairs = zip(shape[2:], scales[2:], strict=True)
    return (*shape[:2], *(_aten_scaled(call, n, scale) for n, scale in pairs)), scales


def _aten_scaled(call: Call, extent: Index, scale: float) -> Index:
    if isinstance(extent, int):
        return int(extent * scale)
    numerator, denominator = scale.as_integer_ratio()
    if denominator > 1 << 12:
        raise call.undecided((extent,), f"size by the scale {scale}, which is rounded,")
    return floor_div(extent * numerator, denominator)


def _aten_resize(mode: str, count: int) -> Converter:
    def convert(call: Call, x: str) -> str:
        sizes, scales = _wanted_sizes(call, x, count)
        more: dict[str, str | float] = {"mode": mode}
        if mode == "nearest":
            more |= {"coordinates": "asymmetric", "nearest_mode": "floor"}
        else:
            aligned = call.flag("align_corners")
            more |= {"coordinates": "align_corners" if aligned else "pytorch_half_pixel"}
            scales = () if aligned else scales
            more |= {"cubic_a": -0.75} if mode == "cubic" else {}
        return call.add("resize", x, sizes=sizes, scales=scales, **more)

    return batched(count, convert)


_SAMPLING = ("linear", "nearest", "cubic")


_OUTSIDE = ("zeros", "border", "reflection")


def _grid_sampler(call: Call) -> Results:
    mode, padding = call.integer("interpolation_mode"), call.integer("padding_mode")
    operands = call.tensor("input"), call.tensor("grid")
    return (_at_grid(call, *operands, _SAMPLING[mode], _OUTSIDE[padding]),)


ATEN_RESIZING: Table = (
    *((f"upsample_nearest{n}d", _aten_resize("nearest", n)) for n in (1, 2, 3)),
    ("upsample_linear1d", _aten_resize("linear", 1)),
    ("upsample_bilinear2d", _aten_resize("linear", 2)),
    ("upsample_trilinear3d", _aten_resize("linear", 3)),
    ("upsample_bicubic2d", _aten_resize("cubic", 2)),
    ("grid_sampler grid_sampler_2d", _grid_sampler),
)
