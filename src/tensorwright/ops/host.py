"""Operators without a tensor expression: NumPy gives the meaning; a loop algorithm, if any, the
code.

Operators with results whose extents depend on values are in `counted.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright import base
from tensorwright.ops import operator
from tensorwright.ops.moving.gathering import require_inside
from tensorwright.ops.named_sizes import decided, number_of, sizes_of
from tensorwright.ops.shapes import axis_in

_FOLDS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
SHARED = "shared"
_REDUCTIONS = ("none", SHARED, *_FOLDS)


def _infer_topk(types: operator.Types, attributes: base.Attributes) -> operator.Types:
    (x,) = types
    operator.require_dtype("x", x, operator.NUMBERS)
    axis = axis_in(operator.int_of(attributes, "axis"), len(x.shape))
    k = operator.size_in(attributes, "k")
    extent = sizes_of(x)[axis]
    if not decided(k >= 0) or not decided(extent >= k):
        raise operator.fault(f"attribute k is {k}, but dimension {axis} has {extent} elements")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return base.TensorType(x.dtype, shape), base.TensorType(base.DType.I64, shape)


def _topk(arrays: tuple[base.Array, ...], attributes: base.Attributes) -> tuple[base.Array, ...]:
    """Equal elements come in the order of their positions."""
    (x,) = arrays
    axis, k = operator.int_of(attributes, "axis"), operator.int_of(attributes, "k")
    moved: NDArray[Any] = np.moveaxis(x, axis, -1)
    chosen = _first_places(moved, k, is_largest=operator.bool_of(attributes, "largest"))
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


def _infer_elements(types: operator.Types, attributes: base.Attributes) -> operator.Types:
    x, indices, updates = types
    operator.require_dtype("indices", indices, operator.POSITIONS)
    operator.require_same_dtype(("x", "updates"), (x, updates))
    operator.require_rank("indices", indices, len(x.shape), len(x.shape))
    operator.require_shape("updates", updates, sizes_of(indices))
    axis = axis_in(operator.int_of(attributes, "axis"), len(x.shape))
    operator.text_of(attributes, "reduction", _REDUCTIONS)
    require_inside(x, indices, axis)
    return (x,)


def _store(
    result: NDArray[Any], places: tuple[Any, ...], updates: base.Array, reduction: str
) -> None:
    """Write updates in row-major order, of equal positions the last one stays; or fold them in."""
    if reduction not in _FOLDS:
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
    axis = operator.int_of(attributes, "axis") % x.ndim
    result: NDArray[Any] = x.copy()
    places: list[Any] = list(np.indices(indices.shape, sparse=True))
    places[axis] = _positive(indices, x.shape[axis])
    _store(result, tuple(places), updates, operator.text_of(attributes, "reduction"))
    return (result,)


def _positive(indices: base.Array, extent: int) -> NDArray[np.int64]:
    """Positions counted from the start; taken modulo the extent, so that none lies outside."""
    return np.asarray(indices, np.int64) % max(extent, 1)


def _infer_nd(types: operator.Types, attributes: base.Attributes) -> operator.Types:
    x, indices, updates = types
    operator.require_dtype("indices", indices, operator.POSITIONS)
    operator.require_same_dtype(("x", "updates"), (x, updates))
    operator.require_rank("indices", indices, 1)
    operator.text_of(attributes, "reduction", _REDUCTIONS)
    shape, wanted = sizes_of(x), sizes_of(indices)
    count = number_of(wanted[-1])
    if count > len(shape):
        raise operator.fault(f"positions of {count} numbers in x {x.shape}")
    operator.require_shape("updates", updates, (*wanted[:-1], *shape[count:]))
    return (x,)


def _scatter_nd(
    arrays: tuple[base.Array, ...], attributes: base.Attributes
) -> tuple[base.Array, ...]:
    x, indices, updates = arrays
    result: NDArray[Any] = x.copy()
    places = tuple(_positive(indices[..., at], x.shape[at]) for at in range(indices.shape[-1]))
    _store(result, places, updates, operator.text_of(attributes, "reduction"))
    return (result,)


def _infer_bitcast(types: operator.Types, attributes: base.Attributes) -> operator.Types:
    to = operator.dtype_of(attributes, "to")
    if to.size_bytes != types[0].dtype.size_bytes:
        raise operator.fault(f"elements of {types[0].dtype} and {to} differ in size")
    return (base.TensorType(to, types[0].shape),)


def _bitcast(arrays: tuple[base.Array, ...], attributes: base.Attributes) -> tuple[base.Array, ...]:
    array = np.ascontiguousarray(arrays[0])  # which makes a scalar one-dimensional
    return (array.view(operator.dtype_of(attributes, "to").numpy).reshape(arrays[0].shape),)


def _infer_leaves(types: operator.Types, attributes: base.Attributes) -> operator.Types:
    x, features, limits, children, roots = types
    operator.require_rank("x", x, 2, 2)
    for name, each in (("features", features), ("children", children), ("roots", roots)):
        operator.require_dtype(name, each, frozenset((base.DType.I32,)))
        operator.require_rank(name, each, 1, 1)
    operator.require_same_dtype(("x", "limits"), (x, limits))
    operator.require_shape("limits", limits, sizes_of(features))
    operator.require_shape("children", children, sizes_of(features))
    if operator.int_of(attributes, "depth") < 0:
        raise operator.fault("attribute depth is negative")
    return (base.TensorType(base.DType.I32, (x.shape[0], roots.shape[0])),)


def _tree_leaves(
    arrays: tuple[base.Array, ...], attributes: base.Attributes
) -> tuple[base.Array, ...]:
    x, features, limits, children, roots = arrays
    nodes = np.broadcast_to(roots, (len(x), len(roots)))
    for _ in range(operator.int_of(attributes, "depth")):
        at = np.clip(nodes, 0, len(features) - 1)
        columns = np.clip(features[at], 0, x.shape[1] - 1)
        nodes = children[at] + (np.take_along_axis(x, columns, 1) > limits[at])
    return (np.ascontiguousarray(nodes, np.int32),)


def opaque_operator(
    name: str,
    doc: str,
    inputs: tuple[str, ...],
    attributes: tuple[operator.Attribute, ...],
    infer: operator.InferRule,
    host: base.HostFunction,
    decides: str = "",
) -> operator.Operator:
    """An operator without a tensor expression; `decides` as of `Operator`."""
    return operator.Operator(
        name=name,
        inputs=inputs,
        attributes=attributes,
        infer=infer,
        meaning=None,
        host=host,
        pattern=operator.Pattern.OPAQUE,
        layout=operator.LayoutPreference.PLAIN,
        movement=operator.Movement.NONE,
        fold=operator.Fold.NONE,
        is_identity=operator.never_identity,
        channel_scale=None,
        multiplied=0,
        decides=decides,
        doc=doc,
    )


_REDUCTION = operator.Attribute(
    "reduction",
    "none",
    "how updates join x: none, add, mul, max or min; shared is none where the caller gives the "
    "memory of x as that of the result",
)
HOST_OPERATORS = (
    opaque_operator(
        "topk",
        "the k greatest (or least) along the axis, in order, and their positions",
        ("x",),
        (
            operator.Attribute("k", None, "how many"),
            operator.AXIS,
            operator.Attribute("largest", default=True, doc="the greatest, else the least"),
            operator.SORTED,
        ),
        _infer_topk,
        _topk,
    ),
    opaque_operator(
        "scatter_elements",
        "x with updates at the positions that indices give along the axis",
        ("x", "indices", "updates"),
        (operator.Attribute("axis", 0, "the dimension of x that indices are about"), _REDUCTION),
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
        (operator.Attribute("to", None, "the element type of the output"),),
        _infer_bitcast,
        _bitcast,
    ),
    opaque_operator(
        "tree_leaves",
        "the node that each row of x reaches in each tree after depth steps: in one, to its first "
        "child, or to the node after that where the row's feature is greater than the limit",
        ("x", "features", "limits", "children", "roots"),
        (operator.Attribute("depth", None, "how many steps; a leaf is its own first child"),),
        _infer_leaves,
        _tree_leaves,
    ),
)
