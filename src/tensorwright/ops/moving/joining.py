"""Putting tensors together and cutting them up.

| operators | inputs | attributes |
|---|---|---|
| concat | one or more | axis |
| split | x -> several outputs | sizes, axis=0 |
| slice | x | starts, ends, axes=() (the first ones), steps=() (1) |
| pad | x | pads (all begins, then all ends; negative crops), mode="constant", value=0.0 |

slice clamps as NumPy does and takes negative steps.  pad's modes: constant, reflect, edge, wrap.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops.moving.movement import Indices, Sizes, rearrangement
from tensorwright.ops.named_sizes import (
    are_equal,
    as_divisor,
    decided,
    is_equal,
    shape_text,
    sizes_of,
)
from tensorwright.ops.operator import (
    Attribute,
    Computes,
    Movement,
    Tensors,
    Types,
    fault,
    identity_of_type,
    int_of,
    ints_of,
    require_same_dtype,
    scalar_of,
    sizes_in,
    tensor_operator,
    text_of,
)
from tensorwright.ops.shapes import axis_in, axis_names, padded

_MODES = ("constant", "reflect", "edge", "wrap")


def _infer_concat(types: Types, attributes: Attributes) -> Types:
    first = types[0]
    require_same_dtype(tuple(map(str, range(len(types)))), types)
    axis = axis_in(int_of(attributes, "axis"), len(first.shape))
    own, *others = map(sizes_of, types)
    for each in others:
        if not are_equal(each, (*own[:axis], *each[axis : axis + 1], *own[axis + 1 :])):
            texts = f"{shape_text(own)} and {shape_text(each)}"
            raise fault(f"shapes {texts} differ outside dimension {axis}")
    total = sum(shape[axis] for shape in (own, *others))
    return (TensorType(first.dtype, (*own[:axis], total, *own[axis + 1 :])),)


def _concat(tensors: Tensors, attributes: Attributes) -> Computes:
    rank = len(tensors[0].shape)
    axis = axis_in(int_of(attributes, "axis"), rank)
    parts: list[tuple[expr.Tensor, expr.Index]] = []
    total: expr.Index = 0
    for tensor in tensors:
        if tensor.shape[axis] != 0:
            parts.append((tensor, total))
        total += tensor.shape[axis]
    shape = list(tensors[0].shape)
    shape[axis] = total

    def body(*indices: expr.Index) -> expr.Value:
        def part(tensor: expr.Tensor, first: expr.Index) -> expr.Value:
            moved = (*indices[:axis], indices[axis] - first, *indices[axis + 1 :])
            return expr.Load(tensor, moved)

        value = part(*(parts or [(tensors[0], 0)])[-1])
        for (tensor, first), (_, after) in reversed(list(pairwise(parts))):
            value = expr.select(indices[axis] < after, part(tensor, first), value)
        return value

    return (expr.compute("concat", shape, body, axis_names(rank)),)


def _split_sizes(
    x: tuple[expr.Index, ...], attributes: Attributes
) -> tuple[int, tuple[expr.Index, ...]]:
    axis = axis_in(int_of(attributes, "axis"), len(x))
    sizes = sizes_in(attributes, "sizes")
    is_whole = bool(sizes) and all(decided(size >= 0) for size in sizes)
    if not is_whole or not is_equal(sum(sizes), x[axis]):
        given = shape_text(sizes)
        raise fault(f"attribute sizes {given} does not add up to {x[axis]}, dimension {axis}")
    return axis, sizes


def _infer_split(types: Types, attributes: Attributes) -> Types:
    (x,) = types
    axis, sizes = _split_sizes(sizes_of(x), attributes)
    return tuple(
        TensorType(x.dtype, (*x.shape[:axis], size, *x.shape[axis + 1 :])) for size in sizes
    )


def _split(tensors: Tensors, attributes: Attributes) -> Computes:
    (x,) = tensors
    axis, sizes = _split_sizes(x.shape, attributes)

    def part(number: int, first: expr.Index, size: expr.Index) -> expr.Compute:
        shape = list(x.shape)
        shape[axis] = size

        def body(*indices: expr.Index) -> expr.Value:
            return expr.Load(x, (*indices[:axis], indices[axis] + first, *indices[axis + 1 :]))

        return expr.compute(f"split_{number}", shape, body, axis_names(len(shape)))

    return tuple(part(number, sum(sizes[:number]), size) for number, size in enumerate(sizes))


_FAR = (1 << 31) - 1
"""An index from which on exporters mean "to the end"; no dimension is so long."""

Taken: TypeAlias = tuple[expr.Index, expr.Index, int]
"""What a slice takes of a dimension: its first index, how many, and the step between them."""


def slices_taken(shape: tuple[expr.Index, ...], attributes: Attributes) -> tuple[Taken, ...]:
    """The elements that a slice takes, per dimension."""
    starts, ends = sizes_in(attributes, "starts"), sizes_in(attributes, "ends")
    axes = ints_of(attributes, "axes") or tuple(range(len(starts)))
    steps = ints_of(attributes, "steps") or (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise fault("attributes starts, ends, axes and steps differ in length")
    taken: list[Taken] = [(0, extent, 1) for extent in shape]
    seen: set[int] = set()
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = axis_in(axis, len(shape), "axes")
        if step == 0 or at in seen:
            raise fault("a step is 0" if step == 0 else f"attribute axes {axes} repeats an axis")
        seen.add(at)
        taken[at] = _taken_of(shape[at], start, end, step)
    return tuple(taken)


def _taken_of(extent: expr.Index, start: expr.Index, end: expr.Index, step: int) -> Taken:
    """The elements that a slice takes of one dimension: as in Python, none beyond its ends."""
    low, high = (0, extent) if step > 0 else (-1, extent - 1)

    def inside(index: expr.Index) -> expr.Index:
        if isinstance(index, int) and abs(index) >= _FAR:
            return high if index > 0 else low
        counted = index if decided(index >= 0) else extent + index
        clamped = expr.minimum(expr.maximum(counted, low), high)
        return expr.simplify(clamped, {})

    first, last = inside(start), inside(end)
    gap = last - first if step > 0 else first - last
    return first, expr.simplify(expr.maximum(expr.ceil_div(gap, abs(step)), 0), {}), step


def _sliced(own: Sizes, attributes: Attributes) -> Sizes:
    return tuple(count for _, count, _ in slices_taken(own, attributes))


def _before_slicing(indices: Indices, own: Sizes, _: Sizes, attributes: Attributes) -> Indices:
    pairs = zip(indices, slices_taken(own, attributes), strict=True)
    return tuple(index * step + first for index, (first, _, step) in pairs)


def _pads(
    shape: tuple[expr.Index, ...], attributes: Attributes
) -> tuple[tuple[expr.Index, ...], tuple[expr.Index, ...]]:
    """How much is added before each dimension, and the new shape."""
    pads = sizes_in(attributes, "pads")
    rank = len(shape)
    if len(pads) != 2 * rank:
        raise fault(f"attribute pads {shape_text(pads)} has {len(pads)} values, not {2 * rank}")
    large = tuple(
        begin + n + end for begin, n, end in zip(pads[:rank], shape, pads[rank:], strict=True)
    )
    if not all(decided(extent >= 0) for extent in large):
        given = shape_text(pads)
        raise fault(f"attribute pads {given} crops more than shape {shape_text(shape)} has")
    mode = text_of(attributes, "mode", _MODES)
    if mode != "constant":
        for n, new in zip(shape, large, strict=True):
            if is_equal(n, 0) and decided(new > 0):
                own = shape_text(shape)
                raise fault(f"mode {mode} cannot fill from shape {own}, which is empty")
    return pads[:rank], large


def _infer_pad(types: Types, attributes: Attributes) -> Types:
    scalar_of(attributes, "value")
    return (TensorType(types[0].dtype, _pads(sizes_of(types[0]), attributes)[1]),)


def _source(mode: str, index: expr.Index, extent: expr.Index) -> expr.Index:
    """The element that a mode puts at an index that may lie outside 0..extent-1."""
    if mode == "edge":
        return expr.maximum(expr.minimum(index, extent - 1), 0)
    if mode == "wrap":
        return expr.mod(index, as_divisor(extent))
    if expr.is_same(extent, 1):
        return 0
    period = as_divisor(2 * (extent - 1))
    ahead = expr.mod(index, period)
    return expr.minimum(ahead, period - ahead)


def _pad(tensors: Tensors, attributes: Attributes) -> Computes:
    (x,) = tensors
    begins, large = _pads(x.shape, attributes)
    mode = text_of(attributes, "mode")
    names = axis_names(len(large))
    if mode == "constant":
        value = scalar_of(attributes, "value")
        fill = value if x.dtype.is_float else bool(value) if x.dtype is DType.BOOL else int(value)
        result = padded("pad", x, begins, large, names, fill)
        if isinstance(result, expr.Compute) and result is not x:
            return (result,)

    def body(*indices: expr.Index) -> expr.Value:
        places = zip(indices, begins, x.shape, large, strict=True)
        return expr.Load(
            x,
            tuple(
                index
                if expr.is_same(begin, 0) and expr.is_same(new, n)
                else _source(mode, index - begin, n)
                for index, begin, n, new in places
            ),
        )

    return (expr.compute("pad", large, body, names),)


def _takes_every_element(_: TensorType, attributes: Attributes) -> bool:
    return all(step == 1 for step in ints_of(attributes, "steps"))


def _adds_nothing(_: TensorType, attributes: Attributes) -> bool:
    return all(isinstance(pad, int) and pad == 0 for pad in sizes_in(attributes, "pads"))


JOINING_OPERATORS = (
    tensor_operator(
        "concat",
        "the inputs one after the other along the axis",
        ("*tensors",),
        (Attribute("axis", None, "the dimension; negative counts from the last"),),
        _infer_concat,
        _concat,
        movement=Movement.JOIN,
        is_identity=identity_of_type,
    ),
    tensor_operator(
        "split",
        "pieces of x along the axis, one output each",
        ("x",),
        (
            Attribute("sizes", None, "extents of the pieces"),
            Attribute("axis", 0, "the dimension; negative counts from the last"),
        ),
        _infer_split,
        _split,
        movement=Movement.CROP,
        is_identity=identity_of_type,
    ),
    rearrangement(
        "slice",
        "x[start:end:step] along some dimensions, as in NumPy",
        (
            Attribute("starts", None, "first index; negative counts from the end"),
            Attribute("ends", None, "index that is not reached any more"),
            Attribute("axes", (), "the dimensions; empty: the first ones"),
            Attribute("steps", (), "distances, negative goes backwards; empty: 1"),
        ),
        _sliced,
        _before_slicing,
        Movement.CROP,
        _takes_every_element,
    ),
    tensor_operator(
        "pad",
        "x in a larger (or cropped) box",
        ("x",),
        (
            Attribute("pads", None, "elements added: all begins, then all ends; negative crops"),
            Attribute("mode", "constant", "constant, reflect, edge or wrap"),
            Attribute("value", 0.0, "what constant puts there"),
        ),
        _infer_pad,
        _pad,
        movement=Movement.EXTEND,
        is_identity=_adds_nothing,
    ),
)
