"""Rearrangements: reshape, transpose, concat, split, slice, pad and their kin."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tensorwright.expr import (
    Index,
    ceil_div,
    divide_terms,
    floor_div,
    maximum,
    minimum,
    simplify,
)
from tensorwright.graph.onnx_import.call import Call, Results, Table
from tensorwright.graph.onnx_import.computed_sizes import numbers, size_from, sizes_from
from tensorwright.graph.onnx_import.converters.selecting import computed_slice
from tensorwright.ops import axis_in, shape_text


def _reshape(call: Call) -> Results:
    shape, wanted = call.sizes(0), sizes_from(call, 1, "shape")
    text = shape_text(wanted)
    if not call.flag("allowzero", default=False):
        if any(n == 0 and at >= len(shape) for at, n in enumerate(wanted)):
            own = shape_text(shape)
            raise call.unsupported(f"its shape {text} keeps a dimension that {own} does not have")
        wanted = tuple(shape[at] if n == 0 else n for at, n in enumerate(wanted))
    if wanted.count(-1) > 1 or any(isinstance(n, int) and n < -1 for n in wanted):
        raise call.unsupported(f"its shape {text} leaves more than one extent open")
    if -1 in wanted:
        others = [n for n in wanted if n != -1]
        of = list(shape)
        while 0 in others and 0 in of:  # what remains without them says it
            others.remove(0)
            of.remove(0)
        if 0 in others:
            raise call.unsupported(f"its shape {text} says nothing about the extent -1")
        rest = _quotient(of, others)
        wanted = tuple(rest if n == -1 else n for n in wanted)
    return (call.add("reshape", call.tensor(0), shape=wanted),)


def _quotient(factors: Sequence[Index], divisors: Sequence[Index]) -> Index:
    """A product divided by another one, factor by factor where one divides the other."""
    left, below = list(factors), []
    for divisor in divisors:
        for at, factor in enumerate(left):
            quotient, rest = divide_terms(factor, divisor)
            if rest == 0:
                left[at] = quotient
                break
        else:
            below.append(divisor)
    return floor_div(math.prod(left), math.prod(below))


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
    shape, repeats = call.sizes(0), sizes_from(call, 1, "repeats")
    if len(shape) == len(repeats) and all(1 in pair for pair in zip(shape, repeats, strict=True)):
        target = tuple(n * many for n, many in zip(shape, repeats, strict=True))
        return (call.add("expand", call.tensor(0), shape=target),)
    return (call.add("tile", call.tensor(0), repeats=repeats),)


def _split(call: Call) -> Results:
    axis = axis_in(call.integer("axis", 0), call.rank(0))
    extent = call.sizes(0)[axis]
    sizes: tuple[Index, ...]
    if call.opset >= 13 and call.has(1):
        sizes = _parts(call, extent)
    else:
        sizes = call.integers("split", ()) if call.opset < 13 else ()
    if not sizes:
        count = call.integer("num_outputs", len(call.wanted))
        if count != len(call.wanted):
            raise call.unsupported(f"it names {len(call.wanted)} outputs and asks for {count}")
        size = ceil_div(extent, count)
        sizes = tuple(
            simplify(maximum(minimum(size, extent - size * at), 0), {}) for at in range(count)
        )
    if len(sizes) != len(call.wanted):
        raise call.unsupported(f"it names {len(call.wanted)} outputs for {len(sizes)} parts")
    return call.apply("split", call.tensor(0), sizes=sizes, axis=axis)


def _parts(call: Call, extent: Index) -> tuple[Index, ...]:
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
    starts: tuple[Index | str, ...]
    ends: tuple[Index | str, ...]
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
    pads: tuple[Index, ...]
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
