"""Resizing: Upsample 7 and 9, Resize 10, 11, 13, 18 and 19."""

from __future__ import annotations

import math

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Results, Table

_COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
)


def _scaled(call: Call, scales: tuple[float, ...], **more: str | float | bool) -> Results:
    shape = call.shape(0)
    if len(scales) != len(shape):
        raise call.unsupported(f"{len(scales)} scales do not fit {len(shape)} dimensions")
    # A scale of 0.6 arrives as a 32-bit float: 5 * 0.6 must not become 2.
    sizes = tuple(math.floor(n * s + 1e-5) for n, s in zip(shape, scales, strict=True))
    return (call.add("resize", call.tensor(0), sizes=sizes, scales=scales, **more),)


def _floats(call: Call, position: int, what: str) -> tuple[float, ...]:
    return tuple(float(item) for item in call.array(position, what).reshape(-1))


def _old(call: Call) -> Results:
    """Upsample, and Resize 10: positions are multiplied by the scale and rounded down."""
    scales = call.reals("scales") if call.given("scales") else _floats(call, 1, "scales")
    mode = call.text("mode", "nearest")
    return _scaled(
        call,
        scales,
        mode="linear" if mode == "bilinear" else mode,
        coordinates="asymmetric",
        nearest_mode="floor",
    )


def _all_axes(call: Call, values: tuple[float, ...], fill: tuple[float, ...]) -> tuple[float, ...]:
    """Values of the chosen axes, the fill elsewhere."""
    if not call.given("axes"):
        return values
    full = list(fill)
    for axis, value in zip(call.integers("axes"), values, strict=True):
        full[axis] = value
    return tuple(full)


def _resize(call: Call) -> Results:
    if call.opset < 11:
        return _old(call)
    coordinates = call.text("coordinate_transformation_mode", "half_pixel")
    if coordinates not in _COORDINATES:
        raise call.unsupported(f"its coordinate_transformation_mode {coordinates} is not supported")
    shape = call.shape(0)
    more: dict[str, str | float | bool] = {
        "mode": call.text("mode", "nearest"),
        "coordinates": coordinates,
        "nearest_mode": call.text("nearest_mode", "round_prefer_floor"),
        "cubic_a": call.real("cubic_coeff_a", -0.75),
        "exclude_outside": call.flag("exclude_outside", default=False),
    }
    scales = _floats(call, 2, "scales") if call.has(2) else ()
    if scales:
        scales = _all_axes(call, scales, (1.0,) * len(shape))
        _refuse_antialias(call, scales)
        return _scaled(call, scales, **more)
    wanted = _all_axes(call, call.ints(3, "sizes"), shape)
    sizes = tuple(int(n) for n in wanted)
    policy = call.text("keep_aspect_ratio_policy", "stretch")
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
    if call.flag("antialias", default=False) and min(scales) < 1:
        raise call.unsupported("antialias is not supported where it makes an image smaller")


def _grid_sample(call: Call) -> Results:
    """A grid may have another type than the image, whose type is computed in, f32 at least."""
    mode = call.text("mode", "bilinear").removeprefix("bi")  # bilinear before operator set 20
    image, grid = call.tensor(0), call.tensor(1)
    given = call.type_at(0).dtype
    is_mixed = call.type_at(1).dtype is not given
    if is_mixed:
        wide = given if given.size_bytes >= DType.F32.size_bytes else DType.F32
        image, grid = (call.add("cast", each, to=wide) for each in (image, grid))
    sampled = call.add(
        "grid_sample",
        image,
        grid,
        mode=mode,
        padding=call.text("padding_mode", "zeros"),
        align_corners=call.flag("align_corners", default=False),
    )
    return (call.add("cast", sampled, to=given) if is_mixed else sampled,)


RESIZING: Table = (("Upsample", _old), ("Resize", _resize), ("GridSample", _grid_sample))
