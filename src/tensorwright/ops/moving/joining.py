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

from tensorwright.base import Attributes, DType, TensorType
from tensorwright.expr import (
    Compute,
    Index,
    Load,
    Tensor,
    Value,
    compute,
    maximum,
    minimum,
    mod,
    select,
)
from tensorwright.ops.access import axis_names, extents, padded
from tensorwright.ops.attributes import (
    fault,
    int_of,
    ints_of,
    require_same_dtype,
    scalar_of,
    text_of,
)
from tensorwright.ops.moving.movement import Indices, Shape, rearrangement
from tensorwright.ops.operator import Attribute, Movement, identity_of_type, tensor_operator
from tensorwright.ops.shapes import axis_in

_MODES = ("constant", "reflect", "edge", "wrap")


def _infer_concat(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    first = types[0]
    require_same_dtype(tuple(map(str, range(len(types)))), types)
    axis = axis_in(int_of(attributes, "axis"), len(first.shape))
    for each in types[1:]:
        same = each.shape[:axis] + each.shape[axis + 1 :]
        if len(each.shape) != len(first.shape) or same != (
            first.shape[:axis] + first.shape[axis + 1 :]
        ):
            raise fault(f"shapes {first.shape} and {each.shape} differ outside dimension {axis}")
    total = sum(each.shape[axis] for each in types)
    return (TensorType(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :])),)


def _concat(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    rank = len(tensors[0].shape)
    axis = axis_in(int_of(attributes, "axis"), rank)
    parts: list[tuple[Tensor, int]] = []
    total = 0
    for tensor in tensors:
        if extents(tensor)[axis]:
            parts.append((tensor, total))
        total += extents(tensor)[axis]
    shape = list(extents(tensors[0]))
    shape[axis] = total

    def body(*indices: Index) -> Value:
        def part(tensor: Tensor, first: int) -> Value:
            moved = (*indices[:axis], indices[axis] - first, *indices[axis + 1 :])
            return Load(tensor, moved)

        value = part(*(parts or [(tensors[0], 0)])[-1])
        for (tensor, first), (_, after) in reversed(list(pairwise(parts))):
            value = select(indices[axis] < after, part(tensor, first), value)
        return value

    return (compute("concat", shape, body, axis_names(rank)),)


def _split_sizes(x: tuple[int, ...], attributes: Attributes) -> tuple[int, tuple[int, ...]]:
    axis = axis_in(int_of(attributes, "axis"), len(x))
    sizes = ints_of(attributes, "sizes")
    if not sizes or min(sizes) < 0 or sum(sizes) != x[axis]:
        raise fault(f"attribute sizes {sizes} does not add up to {x[axis]}, dimension {axis}")
    return axis, sizes


def _infer_split(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    (x,) = types
    axis, sizes = _split_sizes(x.shape, attributes)
    return tuple(
        TensorType(x.dtype, (*x.shape[:axis], size, *x.shape[axis + 1 :])) for size in sizes
    )


def _split(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    axis, sizes = _split_sizes(extents(x), attributes)

    def part(number: int, first: int, size: int) -> Compute:
        shape = list(extents(x))
        shape[axis] = size

        def body(*indices: Index) -> Value:
            return Load(x, (*indices[:axis], indices[axis] + first, *indices[axis + 1 :]))

        return compute(f"split_{number}", shape, body, axis_names(len(shape)))

    return tuple(part(number, sum(sizes[:number]), size) for number, size in enumerate(sizes))


def slice_ranges(shape: tuple[int, ...], attributes: Attributes) -> tuple[range, ...]:
    """The indices that a slice takes, per dimension."""
    starts, ends = ints_of(attributes, "starts"), ints_of(attributes, "ends")
    axes = ints_of(attributes, "axes") or tuple(range(len(starts)))
    steps = ints_of(attributes, "steps") or (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise fault("attributes starts, ends, axes and steps differ in length")
    taken = [range(extent) for extent in shape]
    seen: set[int] = set()
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = axis_in(axis, len(shape), "axes")
        if step == 0 or at in seen:
            raise fault("a step is 0" if step == 0 else f"attribute axes {axes} repeats an axis")
        seen.add(at)
        stop: int | None = end
        if step < 0 and end < -shape[at]:
            stop = None
        taken[at] = range(shape[at])[slice(start, stop, step)]
    return tuple(taken)


def _sliced(own: Shape, attributes: Attributes) -> Shape:
    return tuple(len(each) for each in slice_ranges(own, attributes))


def _before_slicing(indices: Indices, own: Shape, _: Shape, attributes: Attributes) -> Indices:
    places = zip(indices, slice_ranges(own, attributes), strict=True)
    return tuple(index * each.step + each.start for index, each in places)


def _pads(
    shape: tuple[int, ...], attributes: Attributes
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How much is added before each dimension, and the new shape."""
    pads = ints_of(attributes, "pads")
    rank = len(shape)
    if len(pads) != 2 * rank:
        raise fault(f"attribute pads {pads} has {len(pads)} values, not {2 * rank}")
    large = tuple(
        begin + n + end for begin, n, end in zip(pads[:rank], shape, pads[rank:], strict=True)
    )
    if min(large, default=0) < 0:
        raise fault(f"attribute pads {pads} crops more than shape {shape} has")
    mode = text_of(attributes, "mode", _MODES)
    if mode != "constant":
        for n, new in zip(shape, large, strict=True):
            if n == 0 and new > 0:
                raise fault(f"mode {mode} cannot fill from shape {shape}, which is empty")
    return pads[:rank], large


def _infer_pad(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    scalar_of(attributes, "value")
    return (TensorType(types[0].dtype, _pads(types[0].shape, attributes)[1]),)


def _source(mode: str, index: Index, extent: int) -> Index:
    """The element that a mode puts at an index that may lie outside 0..extent-1."""
    if mode == "edge":
        return maximum(minimum(index, extent - 1), 0)
    if mode == "wrap":
        return mod(index, extent)
    if extent == 1:
        return 0
    period = 2 * (extent - 1)
    ahead = mod(index, period)
    return minimum(ahead, period - ahead)


def _pad(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    begins, large = _pads(extents(x), attributes)
    mode = text_of(attributes, "mode")
    names = axis_names(len(large))
    if mode == "constant":
        value = scalar_of(attributes, "value")
        fill = value if x.dtype.is_float else bool(value) if x.dtype is DType.BOOL else int(value)
        result = padded("pad", x, begins, large, names, fill)
        if isinstance(result, Compute) and result is not x:
            return (result,)

    def body(*indices: Index) -> Value:
        places = zip(indices, begins, extents(x), large, strict=True)
        return Load(
            x,
            tuple(
                index if begin == 0 and new == n else _source(mode, index - begin, n)
                for index, begin, n, new in places
            ),
        )

    return (compute("pad", large, body, names),)


def _takes_every_element(_: TensorType, attributes: Attributes) -> bool:
    return all(step == 1 for step in ints_of(attributes, "steps"))


def _adds_nothing(_: TensorType, attributes: Attributes) -> bool:
    return not any(ints_of(attributes, "pads"))


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
