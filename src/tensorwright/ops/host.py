"""Operators without a tensor expression: NumPy gives the meaning; a loop algorithm, if any, the
code.

| operators | inputs | attributes |
|---|---|---|
| topk | x -> values, indices (i64) | k, axis=-1, largest=True, sorted=True |
| scatter_elements | x, indices, updates | axis=0, reduction="none" (add, mul, max, min) |
| scatter_nd | x, indices (..., count), updates | reduction="none" |
| bitcast | x | to: DType of the same size |
| tree_leaves | x, features, limits, children, roots -> leaves (i32) | depth |

Operators with results whose extents depend on values are in `counted.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright import base
from tensorwright.ops.moving.gathering import require_inside
from tensorwright.ops.named_sizes import decided, number_of, sizes_of
from tensorwright.ops.operator import (
    AXIS,
    NUMBERS,
    POSITIONS,
    SORTED,
    Attribute,
    Fold,
    InferRule,
    LayoutPreference,
    Movement,
    Operator,
    Pattern,
    bool_of,
    dtype_of,
    fault,
    int_of,
    never_identity,
    require_dtype,
    require_rank,
    require_same_dtype,
    require_shape,
    size_in,
    text_of,
)
from tensorwright.ops.shapes import axis_in

_FOLDS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
_REDUCTIONS = ("none", *_FOLDS)


def _infer_topk(
    types: tuple[base.TensorType, ...], attributes: base.Attributes
) -> tuple[base.TensorType, ...]:
    (x,) = types
    require_dtype("x", x, NUMBERS)
    axis = axis_in(int_of(attributes, "axis"), len(x.shape))
    k = size_in(attributes, "k")
    extent = sizes_of(x)[axis]
    if not decided(k >= 0) or not decided(extent >= k):
        raise fault(f"attribute k is {k}, but dimension {axis} has {extent} elements")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return base.TensorType(x.dtype, shape), base.TensorType(base.DType.I64, shape)


def _topk(arrays: tuple[base.Array, ...], attributes: base.Attributes) -> tuple[base.Array, ...]:
    """Equal elements come in the order of their positions."""
    (x,) = arrays
    axis, k = int_of(attributes, "axis"), int_of(attributes, "k")
    moved: NDArray[Any] = np.moveaxis(x, axis, -1)
    chosen = _first_places(moved, k, is_largest=bool_of(attributes, "largest"))
    values = np.take_along_axis(moved, chosen, -1)
    indices = chosen.astype(np.int64)
    return (
        np.ascontiguousarray(np.moveaxis(values, -1, axis)),
        np.ascontiguousarray(np.moveaxis(indices, -1, axis)),
    )


def _first_places(rows: NDArray[Any], k: int, *, is_largest: bool) -> NDArray[np.intp]:
    """Where the first k elements of each row are, in order.

    The k-th element of a row is selected without sorting the row. Then the elements before it, and
    as many equal ones as are missing, are sorted. NaN comes after all numbers.
    """
    count = rows.shape[-1]
    is_ordered = rows.dtype.kind in "iu" or (rows.dtype.kind == "f" and not np.isnan(rows).any())
    if not 0 < k < count or not is_ordered:
        return _sorted_places(rows, is_largest=is_largest)[..., :k]
    last = count - k if is_largest else k - 1
    bound = np.partition(rows, last, axis=-1)[..., last, None]
    before = rows > bound if is_largest else rows < bound
    equal = rows == bound
    missing = k - before.sum(axis=-1, keepdims=True)
    taken = before | (equal & (equal.cumsum(axis=-1) <= missing))
    places = np.nonzero(taken)[-1].reshape(*rows.shape[:-1], k)
    order = _sorted_places(np.take_along_axis(rows, places, -1), is_largest=is_largest)
    return np.take_along_axis(places, order, -1)


def _sorted_places(rows: NDArray[Any], *, is_largest: bool) -> NDArray[np.intp]:
    if not is_largest:
        return np.argsort(rows, axis=-1, kind="stable")
    backwards = np.argsort(rows[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    places: NDArray[np.intp] = rows.shape[-1] - 1 - backwards
    return places


def _infer_elements(
    types: tuple[base.TensorType, ...], attributes: base.Attributes
) -> tuple[base.TensorType, ...]:
    x, indices, updates = types
    require_dtype("indices", indices, POSITIONS)
    require_same_dtype(("x", "updates"), (x, updates))
    require_rank("indices", indices, len(x.shape), len(x.shape))
    require_shape("updates", updates, sizes_of(indices))
    axis = axis_in(int_of(attributes, "axis"), len(x.shape))
    text_of(attributes, "reduction", _REDUCTIONS)
    require_inside(x, indices, axis)
    return (x,)


def _store(
    result: NDArray[Any], places: tuple[Any, ...], updates: base.Array, reduction: str
) -> None:
    """Write updates in row-major order, of equal positions the last one stays; or fold them in."""
    if reduction == "none":
        result[places] = updates
        return
    if not updates.size:
        return
    leading, block = result.shape[: len(places)], result.shape[len(places) :]
    listed = updates.reshape(-1, *block)
    rows = np.zeros(len(listed), np.int64)
    if places:
        rows = np.ravel_multi_index(np.broadcast_arrays(*places), leading).ravel()
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    fold = _FOLDS[reduction]
    folded = fold.reduceat(listed[order], starts, axis=0)
    flat = result.reshape(-1, *block)
    flat[rows[starts]] = fold(flat[rows[starts]], folded)


def _scatter_elements(
    arrays: tuple[base.Array, ...], attributes: base.Attributes
) -> tuple[base.Array, ...]:
    x, indices, updates = arrays
    axis = int_of(attributes, "axis") % x.ndim
    result: NDArray[Any] = x.copy()
    places: list[Any] = list(np.indices(indices.shape, sparse=True))
    places[axis] = _positive(indices, x.shape[axis])
    _store(result, tuple(places), updates, text_of(attributes, "reduction"))
    return (result,)


def _positive(indices: base.Array, extent: int) -> NDArray[np.int64]:
    """Positions counted from the start; taken modulo the extent, so that none lies outside."""
    return np.asarray(indices, np.int64) % max(extent, 1)


def _infer_nd(
    types: tuple[base.TensorType, ...], attributes: base.Attributes
) -> tuple[base.TensorType, ...]:
    x, indices, updates = types
    require_dtype("indices", indices, POSITIONS)
    require_same_dtype(("x", "updates"), (x, updates))
    require_rank("indices", indices, 1)
    text_of(attributes, "reduction", _REDUCTIONS)
    shape, wanted = sizes_of(x), sizes_of(indices)
    count = number_of(wanted[-1])
    if count > len(shape):
        raise fault(f"positions of {count} numbers in x {x.shape}")
    require_shape("updates", updates, (*wanted[:-1], *shape[count:]))
    return (x,)


def _scatter_nd(
    arrays: tuple[base.Array, ...], attributes: base.Attributes
) -> tuple[base.Array, ...]:
    x, indices, updates = arrays
    result: NDArray[Any] = x.copy()
    places = tuple(_positive(indices[..., at], x.shape[at]) for at in range(indices.shape[-1]))
    _store(result, places, updates, text_of(attributes, "reduction"))
    return (result,)


def _infer_bitcast(
    types: tuple[base.TensorType, ...], attributes: base.Attributes
) -> tuple[base.TensorType, ...]:
    to = dtype_of(attributes, "to")
    if to.size_bytes != types[0].dtype.size_bytes:
        raise fault(f"elements of {types[0].dtype} and {to} differ in size")
    return (base.TensorType(to, types[0].shape),)


def _bitcast(arrays: tuple[base.Array, ...], attributes: base.Attributes) -> tuple[base.Array, ...]:
    array = np.ascontiguousarray(arrays[0])  # which makes a scalar one-dimensional
    return (array.view(dtype_of(attributes, "to").numpy).reshape(arrays[0].shape),)


def _infer_leaves(
    types: tuple[base.TensorType, ...], attributes: base.Attributes
) -> tuple[base.TensorType, ...]:
    x, features, limits, children, roots = types
    require_rank("x", x, 2, 2)
    for name, each in (("features", features), ("children", children), ("roots", roots)):
        require_dtype(name, each, frozenset((base.DType.I32,)))
        require_rank(name, each, 1, 1)
    require_same_dtype(("x", "limits"), (x, limits))
    require_shape("limits", limits, sizes_of(features))
    require_shape("children", children, sizes_of(features))
    if int_of(attributes, "depth") < 0:
        raise fault("attribute depth is negative")
    return (base.TensorType(base.DType.I32, (x.shape[0], roots.shape[0])),)


def _tree_leaves(
    arrays: tuple[base.Array, ...], attributes: base.Attributes
) -> tuple[base.Array, ...]:
    x, features, limits, children, roots = arrays
    nodes = np.broadcast_to(roots, (len(x), len(roots)))
    for _ in range(int_of(attributes, "depth")):
        at = np.clip(nodes, 0, len(features) - 1)
        columns = np.clip(features[at], 0, x.shape[1] - 1)
        nodes = children[at] + (np.take_along_axis(x, columns, 1) > limits[at])
    return (np.ascontiguousarray(nodes, np.int32),)


def opaque_operator(
    name: str,
    doc: str,
    inputs: tuple[str, ...],
    attributes: tuple[Attribute, ...],
    infer: InferRule,
    host: base.HostFunction,
    decides: str = "",
) -> Operator:
    """An operator without a tensor expression; `decides` as of `Operator`."""
    return Operator(
        name=name,
        inputs=inputs,
        attributes=attributes,
        infer=infer,
        meaning=None,
        host=host,
        pattern=Pattern.OPAQUE,
        layout=LayoutPreference.PLAIN,
        movement=Movement.NONE,
        fold=Fold.NONE,
        is_identity=never_identity,
        channel_scale=None,
        decides=decides,
        doc=doc,
    )


_REDUCTION = Attribute("reduction", "none", "how updates join x: none, add, mul, max or min")
HOST_OPERATORS = (
    opaque_operator(
        "topk",
        "the k greatest (or least) along the axis, in order, and their positions",
        ("x",),
        (
            Attribute("k", None, "how many"),
            AXIS,
            Attribute("largest", default=True, doc="the greatest, else the least"),
            SORTED,
        ),
        _infer_topk,
        _topk,
    ),
    opaque_operator(
        "scatter_elements",
        "x with updates at the positions that indices give along the axis",
        ("x", "indices", "updates"),
        (Attribute("axis", 0, "the dimension of x that indices are about"), _REDUCTION),
        _infer_elements,
        _scatter_elements,
    ),
    opaque_operator(
        "scatter_nd",
        "x with updates at the positions that the rows of indices give",
        ("x", "indices", "updates"),
        (_REDUCTION,),
        _infer_nd,
        _scatter_nd,
    ),
    opaque_operator(
        "bitcast",
        "the same bytes read as another element type",
        ("x",),
        (Attribute("to", None, "the element type of the output"),),
        _infer_bitcast,
        _bitcast,
    ),
    opaque_operator(
        "tree_leaves",
        "the node that each row of x reaches in each tree after depth steps: in one, to its first "
        "child, or to the node after that where the row's feature is greater than the limit",
        ("x", "features", "limits", "children", "roots"),
        (Attribute("depth", None, "how many steps; a leaf is its own first child"),),
        _infer_leaves,
        _tree_leaves,
    ),
)
