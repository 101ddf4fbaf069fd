"""Operators with results whose extents depend on values: NumPy computes them.

`count` is a named size that a run of the operator decides, and `most` says how many there may be:
a number, or an expression of the sizes of inputs.  Where `count` is a number, as in a measurement
for typical sizes, the result has that many: further ones are left out, and missing ones are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright import base
from tensorwright.expr import Index
from tensorwright.ops import operator
from tensorwright.ops.host import opaque_operator
from tensorwright.ops.named_sizes import decided, is_equal, product_of, sizes_of
from tensorwright.ops.shapes import axis_in

COUNT, MOST = "count", "most"
_MOST_AT_ONCE = 1 << 17  # boxes of all lines that suppression handles together


def _count_of(attributes: base.Attributes) -> Index:
    """The extent that values decide.

    Raises:  ModelError where it or its greatest number is negative.
    """
    for name in (COUNT, MOST):
        size = operator.size_in(attributes, name)
        if not decided(size >= 0):
            raise operator.fault(f"attribute {name} is {size}")
    return operator.size_in(attributes, COUNT)


def _as_many(array: NDArray[Any], attributes: base.Attributes, axis: int = 0) -> NDArray[Any]:
    """The slices along an axis: all of them, or `count`."""
    count = attributes[COUNT]
    if not isinstance(count, int) or array.shape[axis] == count:
        return array
    kept = np.take(array, np.arange(min(count, array.shape[axis])), axis)
    missing = [(0, 0)] * array.ndim
    missing[axis] = (0, count - kept.shape[axis])
    return np.pad(kept, missing)


def _infer_nonzero(types: operator.Types, attributes: base.Attributes) -> operator.Types:
    (x,) = types
    return (base.TensorType(base.DType.I64, (len(x.shape), _count_of(attributes))),)


def _nonzero(arrays: tuple[base.Array, ...], attributes: base.Attributes) -> tuple[base.Array, ...]:
    (x,) = arrays
    positions = np.stack(np.nonzero(x)) if x.ndim else np.zeros((0, int(x != 0)))
    return (_as_many(positions.astype(np.int64), attributes, axis=1),)


def _infer_unique(types: operator.Types, attributes: base.Attributes) -> operator.Types:
    (x,) = types
    count, shape = _count_of(attributes), sizes_of(x)
    numbers = base.TensorType(base.DType.I64, (count,))
    if operator.bool_of(attributes, "flat"):
        elements = base.TensorType(base.DType.I64, (product_of(shape),))
        return base.TensorType(x.dtype, (count,)), numbers, elements, numbers
    axis = axis_in(operator.int_of(attributes, "axis"), len(shape))
    values = base.TensorType(x.dtype, (*shape[:axis], count, *shape[axis + 1 :]))
    return values, numbers, base.TensorType(base.DType.I64, (shape[axis],)), numbers


def _unique(arrays: tuple[base.Array, ...], attributes: base.Attributes) -> tuple[base.Array, ...]:
    (x,) = arrays
    axis = None if operator.bool_of(attributes, "flat") else operator.int_of(attributes, "axis")
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    along = 0 if axis is None else axis
    if not operator.bool_of(attributes, "sorted"):
        order = np.argsort(first)
        values = np.take(values, order, axis=along)
        first, counts = first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    first, inverse, counts = (part.astype(np.int64) for part in (first, inverse, counts))
    return (
        _as_many(values, attributes, along),
        _as_many(first, attributes),
        inverse,
        _as_many(counts, attributes),
    )


def _require_single(name: str, given: base.TensorType) -> None:
    if not is_equal(product_of(sizes_of(given)), 1):
        raise operator.fault(f"input {name} is {given}, and must be a single number")


def _infer_suppression(types: operator.Types, attributes: base.Attributes) -> operator.Types:
    boxes, scores, most_boxes, *thresholds = types
    for name, given in (("boxes", boxes), ("scores", scores)):
        operator.require_dtype(name, given, operator.FLOATS)
        operator.require_rank(name, given, 3, 3)
    operator.require_dtype("most_boxes", most_boxes, operator.POSITIONS)
    _require_single("most_boxes", most_boxes)
    for name, given in zip(("iou_threshold", "score_threshold"), thresholds, strict=True):
        operator.require_dtype(name, given, operator.FLOATS)
        _require_single(name, given)
    batch, _, count = sizes_of(scores)
    operator.require_shape("boxes", boxes, (batch, count, 4))
    return (base.TensorType(base.DType.I64, (_count_of(attributes), 3)),)


def _suppression(
    arrays: tuple[base.Array, ...], attributes: base.Attributes
) -> tuple[base.Array, ...]:
    """Rows of batch, class and box: in each class the best box, then the next one that overlaps
    none of those before by more than the threshold, and so on.
    """
    boxes, scores = (np.asarray(array, np.float32) for array in arrays[:2])
    most, iou, least = (array.reshape(-1)[0] for array in arrays[2:])
    examples, classes, count = scores.shape
    corners = _corners(boxes, is_centred=operator.bool_of(attributes, "center_point_box"))
    example, label = (each.ravel() for each in np.indices((examples, classes)))
    lines = scores.reshape(-1, count)
    rows = [np.zeros((0, 3), np.int64)]
    at_once = max(1, _MOST_AT_ONCE // max(count, 1))
    for first in range(0, len(lines), at_once):
        part = slice(first, first + at_once)
        chosen = _best_apart(corners[:, example[part]], lines[part], int(most), iou, least)
        line, turn = np.nonzero(chosen >= 0)
        kept = (example[part][line], label[part][line], chosen[line, turn])
        rows.append(np.stack(kept, axis=1).astype(np.int64))
    return (_as_many(np.concatenate(rows), attributes),)


def _corners(boxes: NDArray[Any], *, is_centred: bool) -> NDArray[Any]:
    """The least, then the greatest coordinates (4, batch, n) of boxes (batch, n, 4), which are any
    two opposite corners, or centre and extents.
    """
    one, other = np.moveaxis(boxes[..., :2], 2, 0), np.moveaxis(boxes[..., 2:], 2, 0)
    if is_centred:
        one, other = one - other / 2, one + other / 2
    return np.concatenate([np.minimum(one, other), np.maximum(one, other)])


def _best_apart(
    corners: NDArray[Any], scores: NDArray[Any], most: int, iou: float, least: float
) -> NDArray[np.int64]:
    """The boxes that are kept in each line, the best first, of equal ones the first; -1 where there
    are no more.

    corners   (4, lines, n)     scores   (lines, n)
    """
    is_left = scores > least
    order = np.argsort(np.where(is_left, -scores, np.inf), axis=1, kind="stable")
    order = order[:, : is_left.sum(axis=1).max(initial=0)]
    is_left = np.take_along_axis(is_left, order, axis=1)
    low_y, low_x, high_y, high_x = np.take_along_axis(corners, order[None], axis=2)
    areas = (high_y - low_y) * (high_x - low_x)
    chosen: list[NDArray[np.int64]] = []
    lines = np.arange(len(scores))
    while len(chosen) < most and is_left.any():
        best = lines, is_left.argmax(axis=1)
        chosen.append(np.where(is_left[best], order[best], -1))
        height = _common(low_y, high_y, best)
        common = np.maximum(height, 0) * np.maximum(_common(low_x, high_x, best), 0)
        with np.errstate(invalid="ignore"):  # two empty boxes, which overlap none
            overlaps = common / (areas + areas[best][:, None] - common)
        is_left &= ~(overlaps > iou)
        is_left[best] = False
    return np.stack(chosen, axis=1) if chosen else np.zeros((len(scores), 0), np.int64)


def _common(
    low: NDArray[Any], high: NDArray[Any], best: tuple[NDArray[Any], NDArray[Any]]
) -> NDArray[Any]:
    """How much of each range (lines, n) lies in the best one of its line; negative for a gap."""
    end, begin = np.minimum(high, high[best][:, None]), np.maximum(low, low[best][:, None])
    common: NDArray[Any] = end - begin
    return common


def _infer_below(types: operator.Types, attributes: base.Attributes) -> operator.Types:
    (limit,) = types
    operator.require_dtype("limit", limit, operator.POSITIONS)
    _require_single("limit", limit)
    return (base.TensorType(base.DType.I64, (_count_of(attributes),)),)


def _below(arrays: tuple[base.Array, ...], attributes: base.Attributes) -> tuple[base.Array, ...]:
    limit, most = int(arrays[0].item()), attributes[MOST]
    if limit < 0:
        raise base.InputError(
            stage="run",
            where=f"size {attributes[COUNT]}",
            reason=f"the network computes {limit} for it, and there is no negative extent",
            remedy="give inputs that make it 0 or more",
        )
    if isinstance(most, int):
        limit = min(limit, most + 1)  # which is refused where the size is set
    return (_as_many(np.arange(limit, dtype=np.int64), attributes),)


_COUNTED = (
    operator.Attribute(COUNT, None, "the size that is decided"),
    operator.Attribute(MOST, None, "how many there may be"),
)
COUNTED_OPERATORS = (
    opaque_operator(
        "nonzero",
        "positions of the elements that are not 0, one row per dimension",
        ("x",),
        _COUNTED,
        _infer_nonzero,
        _nonzero,
        decides=COUNT,
    ),
    opaque_operator(
        "unique",
        "distinct elements, where each is first, which of them each element is, and how often",
        ("x",),
        (
            operator.AXIS,
            operator.Attribute("flat", default=True, doc="of all elements; else of slices"),
            operator.SORTED,
            *_COUNTED,
        ),
        _infer_unique,
        _unique,
        decides=COUNT,
    ),
    opaque_operator(
        "non_max_suppression",
        "batch, class and number of each box that no better box of its class overlaps",
        ("boxes", "scores", "most_boxes", "iou_threshold", "score_threshold"),
        (
            operator.Attribute(
                "center_point_box", default=False, doc="boxes are centre, width and height"
            ),
            *_COUNTED,
        ),
        _infer_suppression,
        _suppression,
        decides=COUNT,
    ),
    opaque_operator(
        "range_below",
        "the numbers from 0 on below a number",
        ("limit",),
        _COUNTED,
        _infer_below,
        _below,
        decides=COUNT,
    ),
)
