"""Rearrangements: every output element is one input element."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tensorwright import expr
from tensorwright.base import Attributes, TensorType
from tensorwright.ops import named_sizes
from tensorwright.ops.operator import (
    Attribute,
    Computes,
    IdentityRule,
    Movement,
    Operator,
    Tensors,
    Types,
    fault,
    identity_of_type,
    int_of,
    ints_of,
    never_identity,
    sizes_in,
    tensor_operator,
    text_of,
)
from tensorwright.ops.shapes import axes_in, axis_names, broadcast_shapes, stretched_indices

Indices: TypeAlias = tuple[expr.Index, ...]
Sizes: TypeAlias = tuple[expr.Index, ...]
ShapeRule: TypeAlias = Callable[[Sizes, Attributes], Sizes]
SourceRule: TypeAlias = Callable[[Indices, Sizes, Sizes, Attributes], Indices]


def rearrangement(
    name: str,
    doc: str,
    attributes: tuple[Attribute, ...],
    shape_of: ShapeRule,
    source_of: SourceRule,
    movement: Movement,
    is_identity: IdentityRule = identity_of_type,
) -> Operator:
    """An operator each element of whose result is an element of its only input.

    shape_of   the shape of the result, of that of the input; raises ModelError
    source_of  the indices into the input, of those into the result and both shapes
    """

    def infer(types: Types, given: Attributes) -> Types:
        (x,) = types
        return (TensorType(x.dtype, shape_of(named_sizes.sizes_of(x), given)),)

    def meaning(tensors: Tensors, given: Attributes) -> Computes:
        (x,) = tensors
        own = x.shape
        shape = shape_of(own, given)

        def body(*indices: expr.Index) -> expr.Load:
            return expr.Load(x, source_of(indices, own, shape, given))

        return (expr.compute(name, shape, body, axis_names(len(shape))),)

    return tensor_operator(
        name,
        doc,
        ("x",),
        attributes,
        infer,
        meaning,
        movement=movement,
        is_identity=is_identity,
    )


def _reshaped(own: Sizes, attributes: Attributes) -> Sizes:
    shape = sizes_in(attributes, "shape")
    if not all(named_sizes.decided(extent >= 0) for extent in shape):
        raise fault(f"attribute shape {named_sizes.shape_text(shape)} has a negative extent")
    count, wanted = named_sizes.product_of(own), named_sizes.product_of(shape)
    if not named_sizes.is_equal(wanted, count):
        before, after = named_sizes.shape_text(own), named_sizes.shape_text(shape)
        raise fault(f"shape {before} has {count} elements, {after} {wanted}")
    return shape


def _in_same_order(indices: Indices, own: Sizes, shape: Sizes, _: Attributes) -> Indices:
    """The element at the same row-major position.

    Runs of dimensions that hold the same number of elements on both sides are matched first, so
    that a dimension which stays costs no division.
    """
    source: list[expr.Index] = []
    for old, new in _matching_runs(own, shape):
        source.extend(_unravel(indices, new, shape, [own[at] for at in old]))
    return tuple(source)


def _matching_runs(old: Sizes, new: Sizes) -> tuple[tuple[list[int], list[int]], ...]:
    """Cut both shapes into runs of equal size, as lists of dimension numbers.

    The shortest runs, as far as it is certain which of two sizes is smaller.
    """
    if any(expr.is_same(extent, 0) for extent in old):
        return ((list(range(len(old))), list(range(len(new)))),)
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        left: list[int] = []
        right: list[int] = []
        have: expr.Index = 1
        want: expr.Index = 1
        while True:
            is_equal_so_far = expr.is_same(have, want)
            is_ahead = not is_equal_so_far and named_sizes.is_certain(have >= want)
            is_behind = not is_equal_so_far and not is_ahead
            if i < len(old) and (is_behind or not left or (is_equal_so_far and not right)):
                have = have * old[i]
                left.append(i)
                i += 1
            elif j < len(new) and (i == len(old) or is_ahead or not right):
                want = want * new[j]
                right.append(j)
                j += 1
            else:
                break
            if expr.is_same(have, want) and (left and right):
                break
        groups.append((left, right))
    return tuple(groups)


def _unravel(
    indices: Indices, new: list[int], shape: Sizes, old: list[expr.Index]
) -> list[expr.Index]:
    """The indices into extents `old` of the element that the indices into dimensions `new` name."""
    flat: expr.Index = 0
    for at in new:
        flat = flat * shape[at] + (0 if expr.is_same(shape[at], 1) else indices[at])
    unravelled: list[expr.Index] = []
    count = named_sizes.product_of(old)
    above = count
    for at, extent in enumerate(old):
        below = named_sizes.product_of(old[at + 1 :])
        inner = (
            flat if expr.is_same(above, count) else expr.mod(flat, named_sizes.as_divisor(above))
        )
        unravelled.append(
            0 if expr.is_same(extent, 1) else expr.floor_div(inner, named_sizes.as_divisor(below))
        )
        above = below
    return unravelled


def _permutation(rank: int, attributes: Attributes) -> tuple[int, ...]:
    perm = ints_of(attributes, "perm") or tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):
        raise fault(f"attribute perm {perm} is not a permutation of {rank} dimensions")
    return perm


def _transposed(own: Sizes, attributes: Attributes) -> Sizes:
    return tuple(own[at] for at in _permutation(len(own), attributes))


def _before_transposing(indices: Indices, own: Sizes, _: Sizes, attributes: Attributes) -> Indices:
    perm = _permutation(len(own), attributes)
    return tuple(indices[perm.index(at)] for at in range(len(perm)))


def _keeps_order(source: TensorType, attributes: Attributes) -> bool:
    """Whether no dimension passes another, but for those of extent 1."""
    perm = ints_of(attributes, "perm") or tuple(reversed(range(len(source.shape))))
    kept = [n for n in perm if source.shape[n] != 1]
    return kept == sorted(kept)


def _expanded(own: Sizes, attributes: Attributes) -> Sizes:
    return broadcast_shapes(own, sizes_in(attributes, "shape"))


def _before_expanding(indices: Indices, own: Sizes, shape: Sizes, _: Attributes) -> Indices:
    return stretched_indices(own, indices, shape)


def _squeezed(own: Sizes, attributes: Attributes) -> Sizes:
    axes = axes_in(ints_of(attributes, "axes"), len(own))
    if not axes:
        axes = tuple(at for at, extent in enumerate(own) if named_sizes.is_equal(extent, 1))
    for at in axes:
        if not named_sizes.is_equal(own[at], 1):
            shape = named_sizes.shape_text(own)
            raise fault(f"dimension {at} of shape {shape} has extent {own[at]}, not 1")
    return tuple(extent for at, extent in enumerate(own) if at not in axes)


def _unsqueezed(own: Sizes, attributes: Attributes) -> Sizes:
    given = ints_of(attributes, "axes")
    axes = axes_in(given, len(own) + len(given))
    rest = iter(own)
    return tuple(1 if at in axes else next(rest) for at in range(len(own) + len(axes)))


def _tiled(own: Sizes, attributes: Attributes) -> Sizes:
    repeats = sizes_in(attributes, "repeats")
    if len(repeats) != len(own) or not all(named_sizes.decided(times >= 0) for times in repeats):
        given = named_sizes.shape_text(repeats)
        raise fault(f"attribute repeats {given} does not fit shape {named_sizes.shape_text(own)}")
    return tuple(n * times for n, times in zip(own, repeats, strict=True))


def _before_tiling(indices: Indices, own: Sizes, _: Sizes, attributes: Attributes) -> Indices:
    repeats = sizes_in(attributes, "repeats")
    return tuple(
        index
        if expr.is_same(times, 1) or expr.is_same(n, 0)
        else expr.mod(index, named_sizes.as_divisor(n))
        for index, n, times in zip(indices, own, repeats, strict=True)
    )


def _block(own: Sizes, attributes: Attributes) -> int:
    if len(own) != 4:
        raise fault(f"input x has {len(own)} dimensions {named_sizes.shape_text(own)}, not 4")
    size = int_of(attributes, "blocksize")
    if size < 1:
        raise fault(f"attribute blocksize is {size}, not positive")
    return size


def _as_space(own: Sizes, attributes: Attributes) -> Sizes:
    size = _block(own, attributes)
    text_of(attributes, "mode", ("DCR", "CRD"))
    n, c, h, w = own
    if not named_sizes.is_multiple(c, size * size):
        raise fault(f"{c} channels do not divide into blocks of {size} x {size}")
    return n, c // (size * size), h * size, w * size


def _before_space(indices: Indices, own: Sizes, shape: Sizes, attributes: Attributes) -> Indices:
    size, depth = _block(own, attributes), shape[1]
    n, c, h, w = indices
    within = expr.mod(h, size) * size + expr.mod(w, size)
    if text_of(attributes, "mode") == "DCR":
        channel = within * depth + c
    else:
        channel = c * (size * size) + within
    return n, channel, expr.floor_div(h, size), expr.floor_div(w, size)


def _as_depth(own: Sizes, attributes: Attributes) -> Sizes:
    size = _block(own, attributes)
    n, c, h, w = own
    if not named_sizes.is_multiple(h, size) or not named_sizes.is_multiple(w, size):
        raise fault(f"spatial shape ({h}, {w}) does not divide into blocks of {size} x {size}")
    return n, c * size * size, h // size, w // size


def _before_depth(indices: Indices, own: Sizes, _: Sizes, attributes: Attributes) -> Indices:
    size, channels = _block(own, attributes), own[1]
    n, c, h, w = indices
    block = expr.floor_div(c, channels)
    row = h * size + expr.floor_div(block, size)
    column = w * size + expr.mod(block, size)
    return n, expr.mod(c, channels), row, column


_BLOCKSIZE = Attribute("blocksize", None, "extent of the blocks in both directions")
MOVEMENT_OPERATORS = (
    rearrangement(
        "reshape",
        "the same elements in row-major order under another shape",
        (Attribute("shape", None, "the new shape, every extent given"),),
        _reshaped,
        _in_same_order,
        Movement.RESHAPE,
    ),
    rearrangement(
        "transpose",
        "dimensions in another order",
        (Attribute("perm", (), "which input dimension comes at each position; empty: reversed"),),
        _transposed,
        _before_transposing,
        Movement.REORDER,
        _keeps_order,
    ),
    rearrangement(
        "expand",
        "x repeated along dimensions of extent 1",
        (Attribute("shape", None, "is broadcast with the shape of x"),),
        _expanded,
        _before_expanding,
        Movement.EXTEND,
    ),
    rearrangement(
        "squeeze",
        "without dimensions of extent 1",
        (Attribute("axes", (), "the dimensions to drop; empty: all of extent 1"),),
        _squeezed,
        _in_same_order,
        Movement.RESHAPE,
    ),
    rearrangement(
        "unsqueeze",
        "with more dimensions of extent 1",
        (Attribute("axes", None, "where they are in the output"),),
        _unsqueezed,
        _in_same_order,
        Movement.RESHAPE,
    ),
    rearrangement(
        "tile",
        "x repeated along every dimension",
        (Attribute("repeats", None, "how often, per dimension"),),
        _tiled,
        _before_tiling,
        Movement.RESAMPLE,
    ),
    rearrangement(
        "depth_to_space",
        "channels laid out as blocks of pixels",
        (
            _BLOCKSIZE,
            Attribute("mode", "DCR", "DCR: block outermost in the channel; CRD: innermost"),
        ),
        _as_space,
        _before_space,
        Movement.REORDER,
        never_identity,
    ),
    rearrangement(
        "space_to_depth",
        "blocks of pixels laid out as channels",
        (_BLOCKSIZE,),
        _as_depth,
        _before_depth,
        Movement.REORDER,
        never_identity,
    ),
)
