"""Rearrangements: every output element is one input element.

| operators | inputs | attributes |
|---|---|---|
| reshape | x | shape (all extents known; flatten too is a reshape) |
| transpose | x | perm (default (): reversed) |
| expand | x | shape (broadcast with x's, as ONNX says) |
| squeeze | x | axes=() (all of extent 1) |
| unsqueeze | x | axes |
| tile | x | repeats |
| depth_to_space | x (n, c, h, w) | blocksize, mode="DCR" or "CRD" |
| space_to_depth | x (n, c, h, w) | blocksize |
"""

from __future__ import annotations

from math import prod

from tensorwright.expr import Compute, Index, Load, Tensor, compute, floor_div, mod
from tensorwright.ops.access import axis_names, extents, pointwise
from tensorwright.ops.attributes import fault, int_of, ints_of, require_rank, text_of
from tensorwright.ops.operator import (
    Attribute,
    Attributes,
    Movement,
    TensorType,
    identity_of_type,
    tensor_operator,
)
from tensorwright.ops.shapes import axes_in, broadcast_shapes


def _infer_reshape(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    shape = ints_of(attributes, "shape")
    if min(shape, default=0) < 0:
        raise fault(f"attribute shape {shape} has a negative extent")
    if prod(shape) != prod(types[0].shape):
        raise fault(
            f"shape {types[0].shape} has {prod(types[0].shape)} elements, {shape} {prod(shape)}"
        )
    return (TensorType(types[0].dtype, shape),)


def reshaped(name: str, x: Tensor, shape: tuple[int, ...]) -> Compute:
    """The same elements in row-major order under another shape.

    Runs of dimensions that hold the same number of elements on both sides are matched first, so
    that a dimension which stays costs no division.
    """
    groups = _matching_runs(extents(x), shape)

    def body(*indices: Index) -> Load:
        found: list[Index] = []
        for old, new in groups:
            found.extend(_unravel(indices, new, shape, [extents(x)[at] for at in old]))
        return Load(x, tuple(found))

    return compute(name, shape, body, axis_names(len(shape)))


def _matching_runs(
    old: tuple[int, ...], new: tuple[int, ...]
) -> tuple[tuple[list[int], list[int]], ...]:
    """Cut both shapes into shortest runs of equal size, as lists of dimension numbers."""
    if 0 in old:
        return ((list(range(len(old))), list(range(len(new)))),)
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        left: list[int] = []
        right: list[int] = []
        have, want = 1, 1
        while True:
            if i < len(old) and (have < want or not left or (have == want and not right)):
                have *= old[i]
                left.append(i)
                i += 1
            elif j < len(new) and (want < have or not right):
                want *= new[j]
                right.append(j)
                j += 1
            else:
                break
            if have == want and (left and right):
                break
        groups.append((left, right))
    return tuple(groups)


def _unravel(
    indices: tuple[Index, ...], new: list[int], shape: tuple[int, ...], old: list[int]
) -> list[Index]:
    """The indices into extents `old` of the place that the indices into dimensions `new` name."""
    flat: Index = 0
    for at in new:
        flat = flat * shape[at] + (indices[at] if shape[at] != 1 else 0)
    found: list[Index] = []
    below = prod(old)
    above = below
    for extent in old:
        below = below // extent if extent else 1
        inner = flat if extent and above == prod(old) else mod(flat, max(above, 1))
        found.append(floor_div(inner, max(below, 1)) if extent != 1 else 0)
        above = below
    return found


def _reshape(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    return (reshaped("reshape", tensors[0], ints_of(attributes, "shape")),)


def _permutation(attributes: Attributes, rank: int) -> tuple[int, ...]:
    perm = ints_of(attributes, "perm") or tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):
        raise fault(f"attribute perm {perm} is no permutation of {rank} dimensions")
    return perm


def _infer_transpose(
    types: tuple[TensorType, ...], attributes: Attributes
) -> tuple[TensorType, ...]:
    (x,) = types
    perm = _permutation(attributes, len(x.shape))
    return (TensorType(x.dtype, tuple(x.shape[at] for at in perm)),)


def _transpose(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    perm = _permutation(attributes, len(x.shape))

    def body(*indices: Index) -> Load:
        return Load(x, tuple(indices[perm.index(at)] for at in range(len(perm))))

    shape = tuple(extents(x)[at] for at in perm)
    return (compute("transpose", shape, body, axis_names(len(shape))),)


def _infer_expand(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    shape = broadcast_shapes(types[0].shape, ints_of(attributes, "shape"))
    return (TensorType(types[0].dtype, shape),)


def _expand(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    shape = broadcast_shapes(extents(tensors[0]), ints_of(attributes, "shape"))
    return (pointwise("expand", tensors, shape, lambda value: value),)


def _squeezed(shape: tuple[int, ...], attributes: Attributes) -> tuple[int, ...]:
    axes = axes_in(ints_of(attributes, "axes"), len(shape))
    if not axes:
        axes = tuple(at for at, extent in enumerate(shape) if extent == 1)
    for at in axes:
        if shape[at] != 1:
            raise fault(f"dimension {at} of shape {shape} has extent {shape[at]}, not 1")
    return tuple(extent for at, extent in enumerate(shape) if at not in axes)


def _infer_squeeze(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    return (TensorType(types[0].dtype, _squeezed(types[0].shape, attributes)),)


def _squeeze(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    return (reshaped("squeeze", tensors[0], _squeezed(extents(tensors[0]), attributes)),)


def _unsqueezed(shape: tuple[int, ...], attributes: Attributes) -> tuple[int, ...]:
    given = ints_of(attributes, "axes")
    axes = axes_in(given, len(shape) + len(given))
    rest = iter(shape)
    return tuple(1 if at in axes else next(rest) for at in range(len(shape) + len(axes)))


def _infer_unsqueeze(
    types: tuple[TensorType, ...], attributes: Attributes
) -> tuple[TensorType, ...]:
    return (TensorType(types[0].dtype, _unsqueezed(types[0].shape, attributes)),)


def _unsqueeze(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    return (reshaped("unsqueeze", tensors[0], _unsqueezed(extents(tensors[0]), attributes)),)


def _infer_tile(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    (x,) = types
    repeats = ints_of(attributes, "repeats")
    if len(repeats) != len(x.shape) or min(repeats, default=0) < 0:
        raise fault(f"attribute repeats {repeats} does not fit shape {x.shape}")
    shape = tuple(n * times for n, times in zip(x.shape, repeats, strict=True))
    return (TensorType(x.dtype, shape),)


def _tile(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    repeats = ints_of(attributes, "repeats")

    def body(*indices: Index) -> Load:
        return Load(
            x,
            tuple(
                mod(index, n) if times > 1 and n else index
                for index, n, times in zip(indices, extents(x), repeats, strict=True)
            ),
        )

    shape = tuple(n * times for n, times in zip(extents(x), repeats, strict=True))
    return (compute("tile", shape, body, axis_names(len(shape))),)


def _block(attributes: Attributes) -> int:
    size = int_of(attributes, "blocksize")
    if size < 1:
        raise fault(f"attribute blocksize is {size}, not positive")
    return size


def _infer_to_space(
    types: tuple[TensorType, ...], attributes: Attributes
) -> tuple[TensorType, ...]:
    (x,) = types
    require_rank("x", x, 4, 4)
    size = _block(attributes)
    text_of(attributes, "mode", ("DCR", "CRD"))
    n, c, h, w = x.shape
    if c % (size * size):
        raise fault(f"{c} channels do not divide into blocks of {size} x {size}")
    return (TensorType(x.dtype, (n, c // (size * size), h * size, w * size)),)


def _to_space(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    size = _block(attributes)
    n, channels, height, width = extents(x)
    depth = channels // (size * size)
    depth_first = text_of(attributes, "mode") == "DCR"

    def body(n: Index, c: Index, h: Index, w: Index) -> Load:
        within = mod(h, size) * size + mod(w, size)
        channel = within * depth + c if depth_first else c * (size * size) + within
        return Load(x, (n, channel, floor_div(h, size), floor_div(w, size)))

    return (compute("depth_to_space", (n, depth, height * size, width * size), body),)


def _infer_to_depth(
    types: tuple[TensorType, ...], attributes: Attributes
) -> tuple[TensorType, ...]:
    (x,) = types
    require_rank("x", x, 4, 4)
    size = _block(attributes)
    n, c, h, w = x.shape
    if h % size or w % size:
        raise fault(f"spatial shape ({h}, {w}) does not divide into blocks of {size} x {size}")
    return (TensorType(x.dtype, (n, c * size * size, h // size, w // size)),)


def _to_depth(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    (x,) = tensors
    size = _block(attributes)
    n, channels, height, width = extents(x)

    def body(n: Index, c: Index, h: Index, w: Index) -> Load:
        block = floor_div(c, channels)
        row = h * size + floor_div(block, size)
        column = w * size + mod(block, size)
        return Load(x, (n, mod(c, channels), row, column))

    shape = (n, channels * size * size, height // size, width // size)
    return (compute("space_to_depth", shape, body),)


def _axis_list(doc: str, *, required: bool) -> Attribute:
    return Attribute("axes", None if required else (), doc)


_BLOCKSIZE = Attribute("blocksize", None, "extent of the blocks in both directions")


def _keeps_order(source: TensorType, attributes: Attributes) -> bool:
    """Whether no dimension passes another, but for those of extent 1."""
    perm = ints_of(attributes, "perm") or tuple(reversed(range(len(source.shape))))
    kept = [n for n in perm if source.shape[n] != 1]
    return kept == sorted(kept)


MOVEMENT_OPERATORS = (
    tensor_operator(
        "reshape",
        "the same elements in row-major order under another shape",
        ("x",),
        (Attribute("shape", None, "the new shape, every extent given"),),
        _infer_reshape,
        _reshape,
        movement=Movement.RESHAPE,
        is_identity=identity_of_type,
    ),
    tensor_operator(
        "transpose",
        "dimensions in another order",
        ("x",),
        (Attribute("perm", (), "which input dimension comes at each place; empty: reversed"),),
        _infer_transpose,
        _transpose,
        movement=Movement.REORDER,
        is_identity=_keeps_order,
    ),
    tensor_operator(
        "expand",
        "x repeated along dimensions of extent 1",
        ("x",),
        (Attribute("shape", None, "is broadcast with the shape of x"),),
        _infer_expand,
        _expand,
        movement=Movement.EXTEND,
        is_identity=identity_of_type,
    ),
    tensor_operator(
        "squeeze",
        "without dimensions of extent 1",
        ("x",),
        (_axis_list("the dimensions to drop; empty: all of extent 1", required=False),),
        _infer_squeeze,
        _squeeze,
        movement=Movement.RESHAPE,
        is_identity=identity_of_type,
    ),
    tensor_operator(
        "unsqueeze",
        "with more dimensions of extent 1",
        ("x",),
        (_axis_list("where they are in the output", required=True),),
        _infer_unsqueeze,
        _unsqueeze,
        movement=Movement.RESHAPE,
        is_identity=identity_of_type,
    ),
    tensor_operator(
        "tile",
        "x repeated along every dimension",
        ("x",),
        (Attribute("repeats", None, "how often, per dimension"),),
        _infer_tile,
        _tile,
        movement=Movement.RESAMPLE,
        is_identity=identity_of_type,
    ),
    tensor_operator(
        "depth_to_space",
        "channels laid out as blocks of pixels",
        ("x",),
        (
            _BLOCKSIZE,
            Attribute("mode", "DCR", "DCR: block outermost in the channel; CRD: innermost"),
        ),
        _infer_to_space,
        _to_space,
        movement=Movement.REORDER,
    ),
    tensor_operator(
        "space_to_depth",
        "blocks of pixels laid out as channels",
        ("x",),
        (_BLOCKSIZE,),
        _infer_to_depth,
        _to_depth,
        movement=Movement.REORDER,
    ),
)
