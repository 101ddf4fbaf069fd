"""Putting tensors together and cutting them up.

slice clamps as NumPy does and takes negative steps.  pad's modes: constant, reflect, edge, wrap.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops import named_sizes, operator
from tensorwright.ops.moving.movement import Indices, Sizes, rearrangement
from tensorwright.ops.shapes import axis_in, axis_names, padded

_MODES = ("constant", "reflect", "edge", "wrap")


def _infer_concat(types: operator.Types, attributes: Attributes) -> operator.Types:
    first = types[0]
    operator.require_same_dtype(tuple(map(str, range(len(types)))), types)
    axis = axis_in(operator.int_of(attributes, "axis"), len(first.shape))
    own, *others = map(named_sizes.sizes_of, types)
    for each in others:
        if not named_sizes.are_equal(each, (*own[:axis], *each[axis : axis + 1], *own[axis + 1 :])):
            texts = f"{named_sizes.shape_text(own)} and {named_sizes.shape_text(each)}"
            raise operator.fault(f"shapes {texts} differ outside dimension {axis}")
    total = sum(shape[axis] for shape in (own, *others))
    return (TensorType(first.dtype, (*own[:axis], total, *own[axis + 1 :])),)


def _concat(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    rank = len(tensors[0].shape)
    axis = axis_in(operator.int_of(attributes, "axis"), rank)
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
    axis = axis_in(operator.int_of(attributes, "axis"), len(x))
    sizes = operator.sizes_in(attributes, "sizes")
    is_whole = bool(sizes) and all(named_sizes.decided(size >= 0) for size in sizes)
    if not is_whole or not named_sizes.is_equal(sum(sizes), x[axis]):
        given = named_sizes.shape_text(sizes)
        raise operator.fault(
            f"attribute sizes {given} does not add up to {x[axis]}, dimension {axis}"
        )
    return axis, sizes


def _infer_split(types: operator.Types, attributes: Attributes) -> operator.Types:
    (x,) = types
    axis, sizes = _split_sizes(named_sizes.sizes_of(x), attributes)
    return tuple(
        TensorType(x.dtype, (*x.shape[:axis], size, *x.shape[axis + 1 :])) for size in sizes
    )


def _split(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
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
    starts, ends = operator.sizes_in(attributes, "starts"), operator.sizes_in(attributes, "ends")
    axes = operator.ints_of(attributes, "axes") or tuple(range(len(starts)))
    steps = operator.ints_of(attributes, "steps") or (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise operator.fault("attributes starts, ends, axes and steps differ in length")
    taken: list[Taken] = [(0, extent, 1) for extent in shape]
    seen: set[int] = set()
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = axis_in(axis, len(shape), "axes")
        if step == 0 or at in seen:
            raise operator.fault(
                "a step is 0" if step == 0 else f"attribute axes {axes} repeats an axis"
            )
        seen.add(at)
        taken[at] = _taken_of(shape[at], start, end, step)
    return tuple(taken)


def _taken_of(extent: expr.Index, start: expr.Index, end: expr.Index, step: int) -> Taken:
    """The elements that a slice takes of one dimension: as in Python, none beyond its ends."""
    low, high = (0, extent) if step > 0 else (-1, extent - 1)

    def inside(index: expr.Index) -> expr.Index:
        if isinstance(index, int) and abs(index) >= _FAR:
            return high if index > 0 else low
        counted = index if named_sizes.decided(index >= 0) else extent + index
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
    pads = operator.sizes_in(attributes, "pads")
    rank = len(shape)
    if len(pads) != 2 * rank:
        raise operator.fault(
            f"attribute pads {named_sizes.shape_text(pads)} has {len(pads)} values, not {2 * rank}"
        )
    large = tuple(
        begin + n + end for begin, n, end in zip(pads[:rank], shape, pads[rank:], strict=True)
    )
    if not all(named_sizes.decided(extent >= 0) for extent in large):
        given = named_sizes.shape_text(pads)
        raise operator.fault(
            f"attribute pads {given} crops more than shape {named_sizes.shape_text(shape)} has"
        )
    mode = operator.text_of(attributes, "mode", _MODES)
    if mode != "constant":
        for n, new in zip(shape, large, strict=True):
            if named_sizes.is_equal(n, 0) and named_sizes.decided(new > 0):
                own = named_sizes.shape_text(shape)
                raise operator.fault(f"mode {mode} cannot fill from shape {own}, which is empty")
    return pads[:rank], large


def _infer_pad(types: operator.Types, attributes: Attributes) -> operator.Types:
    operator.scalar_of(attributes, "value")
    return (TensorType(types[0].dtype, _pads(named_sizes.sizes_of(types[0]), attributes)[1]),)


def _source(mode: str, index: expr.Index, extent: expr.Index) -> expr.Index:
    """The element that a mode puts at an index that may lie outside 0..extent-1."""
    if mode == "edge":
        return expr.maximum(expr.minimum(index, extent - 1), 0)
    if mode == "wrap":
        return expr.mod(index, named_sizes.as_divisor(extent))
    if expr.is_same(extent, 1):
        return 0
    period = named_sizes.as_divisor(2 * (extent - 1))
    ahead = expr.mod(index, period)
    return expr.minimum(ahead, period - ahead)


def _pad(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    (x,) = tensors
    begins, large = _pads(x.shape, attributes)
    mode = operator.text_of(attributes, "mode")
    names = axis_names(len(large))
    if mode == "constant":
        value = operator.scalar_of(attributes, "value")
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
    return all(step == 1 for step in operator.ints_of(attributes, "steps"))


def _adds_nothing(_: TensorType, attributes: Attributes) -> bool:
    return all(isinstance(pad, int) and pad == 0 for pad in operator.sizes_in(attributes, "pads"))


JOINING_OPERATORS = (
    operator.tensor_operator(
        "concat",
        "the inputs one after the other along the axis",
        ("*tensors",),
        (operator.Attribute("axis", None, "the dimension; negative counts from the last"),),
        _infer_concat,
        _concat,
        movement=operator.Movement.JOIN,
        is_identity=operator.identity_of_type,
    ),
    operator.tensor_operator(
        "split",
        "pieces of x along the axis, one output each",
        ("x",),
        (
            operator.Attribute("sizes", None, "extents of the pieces"),
            operator.Attribute("axis", 0, "the dimension; negative counts from the last"),
        ),
        _infer_split,
        _split,
        movement=operator.Movement.CROP,
        is_identity=operator.identity_of_type,
    ),
    rearrangement(
        "slice",
        "x[start:end:step] along some dimensions, as in NumPy",
        (
            operator.Attribute("starts", None, "first index; negative counts from the end"),
            operator.Attribute("ends", None, "index that is not reached any more"),
            operator.Attribute("axes", (), "the dimensions; empty: the first ones"),
            operator.Attribute("steps", (), "distances, negative goes backwards; empty: 1"),
        ),
        _sliced,
        _before_slicing,
        operator.Movement.CROP,
        _takes_every_element,
    ),
    operator.tensor_operator(
        "pad",
        "x in a larger (or cropped) box",
        ("x",),
        (
            operator.Attribute(
                "pads", None, "elements added: all begins, then all ends; negative crops"
            ),
            operator.Attribute("mode", "constant", "constant, reflect, edge or wrap"),
            operator.Attribute("value", 0.0, "what constant puts there"),
        ),
        _infer_pad,
        _pad,
        movement=operator.Movement.EXTEND,
        is_identity=_adds_nothing,
    ),
)
