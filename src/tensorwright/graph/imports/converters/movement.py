"""Rearrangements: reshape, transpose, concat, split, slice, pad and their kin.

Operators whose values decide how many results they have: positions, chosen slices, ranges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.graph.imports.call import Call, Operand, Results, Table
from tensorwright.graph.imports.folding import as_number, decide, numbers, size_from, sizes_from
from tensorwright.graph.imports.open_dimensions import greatest_value
from tensorwright.ops import (
    Array,
    AttributeValue,
    axis_in,
    is_certain,
    operator,
    product_of,
    shape_text,
)

_LEAST_SCORE = np.asarray(np.finfo(np.float32).min)


def _nonzero(call: Call) -> Results:
    value = call.known_value(0, "data")
    if value is not None:
        return (np.asarray(np.nonzero(np.atleast_1d(value)), np.int64),)
    return (_positions_of(call, call.tensor(0)),)


def _positions_of(call: Call, tensor: str) -> str:
    """The positions of what is not 0, one row for each dimension."""
    shape = call.sizes(tensor)
    x = tensor if shape else call.add("reshape", tensor, shape=(1,))
    return decide(call, "nonzero", (x,), most=product_of(shape))[0]


def _compress(call: Call) -> Results:
    """The slices where a condition holds."""
    x, axis = call.tensor(0), call.integer("axis", 0)
    if not call.has("axis"):
        x = call.add("reshape", x, shape=(product_of(call.sizes(0)),))
    value = call.known_value(1, "condition")
    positions: Operand
    if value is None:
        rows = _positions_of(call, call.tensor(1))
        positions = call.add("squeeze", rows, axes=(0,))
    else:
        positions = np.flatnonzero(value).astype(np.int64)
    return (call.add("gather", x, positions, axis=axis),)


def _unique(call: Call) -> Results:
    shape = call.sizes(0)
    attributes: dict[str, AttributeValue] = {
        "sorted": call.flag("sorted", default=True),
        "flat": True,
    }
    most: expr.Index = product_of(shape)
    if call.has("axis"):
        axis = axis_in(call.integer("axis"), len(shape))
        attributes |= {"axis": axis, "flat": False}
        most = shape[axis]
    value = call.known_value(0, "data")
    if value is None:
        least = 1 if is_certain(product_of(shape) >= 1) else 0
        return decide(call, "unique", (call.tensor(0),), attributes, most=most, least=least)
    record = operator("unique")
    free = expr.counted_size("count")
    given = record.complete({**attributes, "count": free, "most": free})
    assert record.host is not None, "it has no tensor expression"
    return record.host((value,), given)


def _non_max_suppression(call: Call) -> Results:
    boxes, scores = call.tensor(0), call.tensor(1)
    if call.rank(1) != 3:
        raise call.unsupported(f"its scores have {call.rank(1)} dimensions, not 3")
    batch, classes, count = call.sizes(1)
    limit: Operand = np.asarray(0)
    value: Array | None = np.asarray(0)
    if call.has(2):
        limit = call.operand(2)
        value = call.known_value(2, "max_output_boxes_per_class")
    each: expr.Index = count
    if value is not None:
        each = expr.minimum(max(0, int(value.reshape(-1)[0])), count)
    elif (most := greatest_value(call.builder, call.as_tensor(limit))) is not None:
        each = expr.minimum(most, count)
    most_rows = expr.simplify(batch * classes * each, {})
    if most_rows == 0:
        return (np.zeros((0, 3), np.int64),)
    thresholds = (
        call.operand(3) if call.has(3) else np.asarray(0, np.float32),
        call.operand(4) if call.has(4) else _LEAST_SCORE,
    )
    return decide(
        call,
        "non_max_suppression",
        (boxes, scores, limit, *thresholds),
        {"center_point_box": call.flag("center_point_box")},
        most=most_rows,
    )


def computed_range(call: Call, dtype: DType) -> Results:
    """A range whose ends are computed when the network runs."""
    start, limit, delta = (_scalar(call, at, dtype) for at in range(3))
    is_plain = _is(call, start, 0) and _is(call, delta, 1)
    most = greatest_value(call.builder, limit) if is_plain else None
    if call.builder.constant_value(delta) is None:  # which is not a range if it is 0
        delta = _where_not_zero(call, delta)
    count = _steps_between(call, start, limit, delta)
    (positions,) = decide(call, "range_below", (count,), most=most)
    if is_plain:
        return (call.add("cast", positions, to=dtype),)
    wide = DType.F32 if dtype in (DType.F16, DType.BF16) else dtype
    first, step = (call.add("cast", each, to=wide) for each in (start, delta))
    steps = call.add("mul", call.add("cast", positions, to=wide), step)
    return (call.add("cast", call.add("add", steps, first), to=dtype),)


def _scalar(call: Call, position: int, dtype: DType) -> str:
    """An input of one element, as a tensor without dimensions."""
    tensor = call.tensor(position)
    scalar = call.add("reshape", tensor, shape=()) if call.sizes(tensor) else tensor
    return scalar if call.dtype_of(scalar) is dtype else call.add("cast", scalar, to=dtype)


def _is(call: Call, tensor: str, number: int) -> bool:
    constant = call.builder.constant_value(tensor)
    return constant is not None and bool((constant == number).all())


def _where_not_zero(call: Call, number: str) -> str:
    """The number, or 1 in the place of 0: nothing is divided by 0."""
    dtype = call.dtype_of(number)
    is_zero = call.add("equal", number, call.as_array(0, dtype))
    return call.add("where", is_zero, call.as_array(1, dtype), number)


def _steps_between(call: Call, start: Operand, limit: Operand, step: Operand) -> str:
    """How many steps lead from a number towards another one: (limit - start) / step, rounded up."""
    gap = call.add("sub", limit, start)
    if call.dtype_of(gap).is_float:
        exact = (call.add("cast", each, to=DType.F64) for each in (gap, step))
        count = call.add("ceil", call.add("div", *exact))
    else:
        rest = call.add("floormod", call.add("neg", gap), step)
        count = call.add("div", call.add("add", gap, rest), step)
    return call.add("max", call.add("cast", count, to=DType.I64), np.asarray(0))


def computed_slice(
    call: Call, x: Operand, axis: int, start: expr.Index | str, end: expr.Index | str, step: int
) -> str:
    """A slice along one dimension whose ends are computed when the network runs."""
    extent = call.sizes(x)[axis]
    length = as_number(call, extent)
    last = call.add("sub", length, np.asarray(1))
    if step > 0:
        least, most = as_number(call, 0), length
    else:
        least, most = as_number(call, -1), last
    first, limit = (_inside(call, number, length, least, most) for number in (start, end))
    if step < 0:
        first = call.add("max", first, np.asarray(0))
    count = _steps_between(call, first, limit, np.asarray(step))
    (positions,) = decide(call, "range_below", (count,), most=expr.ceil_div(extent, abs(step)))
    if step != 1:
        positions = call.add("mul", positions, np.asarray(step))
    if not (step > 0 and start == 0):
        positions = call.add("add", positions, first)
    return call.add("gather", x, positions, axis=axis)


def _inside(
    call: Call, number: expr.Index | str, length: Operand, least: Operand, most: Operand
) -> str:
    """A position that counts from the end where it is negative, moved between two numbers."""
    given = as_number(call, number)
    is_negative = call.add("less", given, np.asarray(0))
    counted = call.add("where", is_negative, call.add("add", given, length), given)
    return call.add("min", call.add("max", counted, least), most)


SELECTING: Table = (
    ("NonZero", _nonzero),
    ("Compress", _compress),
    ("Unique", _unique),
    ("NonMaxSuppression", _non_max_suppression),
)


def _reshape(call: Call) -> Results:
    shape, wanted = call.sizes(0), sizes_from(call, 1, "shape")
    if not call.flag("allowzero"):
        if any(n == 0 and at >= len(shape) for at, n in enumerate(wanted)):
            text, own = shape_text(wanted), shape_text(shape)
            raise call.unsupported(f"its shape {text} keeps a dimension that {own} does not have")
        wanted = tuple(shape[at] if n == 0 else n for at, n in enumerate(wanted))
    return (reshaped(call, call.operand(0), wanted),)


def reshaped(call: Call, tensor: Operand, wanted: Sequence[expr.Index]) -> str:
    """A tensor in another shape, one extent of which may be -1."""
    text = shape_text(wanted)
    if wanted.count(-1) > 1 or any(isinstance(n, int) and n < -1 for n in wanted):
        raise call.unsupported(f"its shape {text} leaves more than one extent open")
    if -1 in wanted:
        others = [n for n in wanted if n != -1]
        of = list(call.sizes(tensor))
        while 0 in others and 0 in of:  # what remains without them says it
            others.remove(0)
            of.remove(0)
        if 0 in others:
            raise call.unsupported(f"its shape {text} says nothing about the extent -1")
        rest = _quotient(of, others)
        wanted = tuple(rest if n == -1 else n for n in wanted)
    return call.add("reshape", tensor, shape=tuple(wanted))


def _quotient(factors: Sequence[expr.Index], divisors: Sequence[expr.Index]) -> expr.Index:
    """A product divided by another one, factor by factor where one divides the other."""
    left, below = list(factors), []
    for divisor in divisors:
        for at, factor in enumerate(left):
            quotient, rest = expr.divide_terms(factor, divisor)
            if rest == 0:
                left[at] = quotient
                break
        else:
            below.append(divisor)
    return expr.floor_div(math.prod(left), math.prod(below))


def _flatten(call: Call) -> Results:
    shape = call.sizes(0)
    axis = call.integer("axis", 1)
    if axis != len(shape):  # then all of it is one column
        axis = axis_in(axis, len(shape))
    flat = (math.prod(shape[:axis]), math.prod(shape[axis:]))
    return (call.add("reshape", call.tensor(0), shape=flat),)


def _squeeze(call: Call) -> Results:
    return (call.add("squeeze", call.tensor(0), axes=call.optional_ints(1, "axes", input_from=13)),)


def _unsqueeze(call: Call) -> Results:
    return (
        call.add("unsqueeze", call.tensor(0), axes=call.optional_ints(1, "axes", input_from=13)),
    )


def _transpose(call: Call) -> Results:
    perm = call.integers("perm", tuple(reversed(range(call.rank(0)))))
    return (call.add("transpose", call.tensor(0), perm=perm),)


def _expand(call: Call) -> Results:
    return (call.add("expand", call.tensor(0), shape=sizes_from(call, 1, "shape")),)


def _tile(call: Call) -> Results:
    return (tiled(call, call.operand(0), sizes_from(call, 1, "repeats")),)


def tiled(call: Call, x: Operand, repeats: tuple[expr.Index, ...]) -> str:
    """A tensor repeated along each dimension."""
    shape = call.sizes(x)
    if len(shape) == len(repeats) and all(1 in pair for pair in zip(shape, repeats, strict=True)):
        target = tuple(n * many for n, many in zip(shape, repeats, strict=True))
        return call.add("expand", x, shape=target)
    return call.add("tile", x, repeats=repeats)


def _split(call: Call) -> Results:
    axis = axis_in(call.integer("axis", 0), call.rank(0))
    extent = call.sizes(0)[axis]
    sizes: tuple[expr.Index, ...]
    if call.opset >= 13 and call.has(1):
        sizes = _parts(call, extent)
    else:
        sizes = call.integers("split", ()) if call.opset < 13 else ()
    if not sizes:
        count = call.integer("num_outputs", len(call.wanted))
        if count != len(call.wanted):
            raise call.unsupported(f"it names {len(call.wanted)} outputs and asks for {count}")
        size = expr.ceil_div(extent, count)
        sizes = tuple(
            expr.simplify(expr.maximum(expr.minimum(size, extent - size * at), 0), {})
            for at in range(count)
        )
    if len(sizes) != len(call.wanted):
        raise call.unsupported(f"it names {len(call.wanted)} outputs for {len(sizes)} parts")
    return call.apply("split", call.tensor(0), sizes=sizes, axis=axis)


def _parts(call: Call, extent: expr.Index) -> tuple[expr.Index, ...]:
    """The sizes of the parts of a Split; the last one is the rest where it is computed."""
    given = numbers(call, 1, "split")
    if not isinstance(given[-1], str):
        return sizes_from(call, 1, "split", extent)
    parts = [
        size_from(call, each, extent, str(at)) if isinstance(each, str) else each
        for at, each in enumerate(given[:-1])
    ]
    return (*parts, extent - sum(parts))


def _slice(call: Call) -> Results:
    starts: tuple[expr.Index | str, ...]
    ends: tuple[expr.Index | str, ...]
    if call.opset < 10:
        starts, ends = call.integers("starts"), call.integers("ends")
        axes, steps = call.integers("axes", ()), tuple[int, ...]()
    else:
        starts, ends = numbers(call, 1, "starts"), numbers(call, 2, "ends")
        axes = call.ints(3, "axes") if call.has(3) else ()
        steps = call.ints(4, "steps") if call.has(4) else ()
    axes = axes or tuple(range(len(starts)))
    steps = steps or (1,) * len(starts)
    fixed = [
        (start, end, axis, step)
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True)
        if not isinstance(start, str) and not isinstance(end, str)
    ]
    x = call.tensor(0)
    if fixed or not starts:
        left = tuple(zip(*fixed, strict=True)) or ((),) * 4
        x = call.add("slice", x, starts=left[0], ends=left[1], axes=left[2], steps=left[3])
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if isinstance(start, str) or isinstance(end, str):
            x = computed_slice(call, x, axis_in(axis, call.rank(0)), start, end, step)
    return (x,)


def _pad(call: Call) -> Results:
    rank = call.rank(0)
    mode = call.text("mode", "constant")
    value: float
    pads: tuple[expr.Index, ...]
    if call.opset < 11:
        pads, value = call.integers("pads"), call.real("value", 0.0)
    else:
        pads = sizes_from(call, 1, "pads")
        value = call.scalar(2, "constant_value") if call.has(2) else 0.0
    if call.opset >= 18 and call.has(3):
        axes = tuple(axis_in(axis, rank, "axes") for axis in call.ints(3, "axes"))
        if len(set(axes)) < len(axes):
            raise call.unsupported(f"its axes {axes} name a dimension twice")
        if len(pads) != 2 * len(axes):
            raise call.unsupported(f"its {len(pads)} pads do not fit {len(axes)} axes")
        begins = dict(zip(axes, pads, strict=False))
        ends = dict(zip(axes, pads[len(axes) :], strict=True))
        pads = tuple(each.get(axis, 0) for each in (begins, ends) for axis in range(rank))
    return (call.add("pad", call.tensor(0), pads=pads, mode=mode, value=value),)


def _space_to_depth(call: Call) -> Results | None:
    if call.text("mode", "DCR") != "DCR":
        return None
    return (call.add("space_to_depth", call.tensor(0), blocksize=call.integer("blocksize")),)


MOVEMENT: Table = (
    ("Reshape", _reshape),
    ("Flatten", _flatten),
    ("Squeeze", _squeeze),
    ("Unsqueeze", _unsqueeze),
    ("Transpose", _transpose),
    ("Expand", _expand),
    ("Tile", _tile),
    ("Split", _split),
    ("Slice", _slice),
    ("Pad", _pad),
    ("SpaceToDepth", _space_to_depth),
)
