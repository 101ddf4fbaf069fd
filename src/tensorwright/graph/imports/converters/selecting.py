"""Operators whose values decide how many results they have: positions, chosen slices, ranges."""

from __future__ import annotations

import numpy as np

from tensorwright import expr, ops
from tensorwright.base import DType
from tensorwright.graph.imports.call import Call, Operand, Results, Table
from tensorwright.graph.imports.folding import as_number, decide
from tensorwright.graph.imports.formula import formula
from tensorwright.graph.imports.open_dimensions import greatest_value

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
    return decide(call, "nonzero", (x,), most=ops.product_of(shape))[0]


def _compress(call: Call) -> Results:
    """The slices where a condition holds."""
    x, axis = call.tensor(0), call.integer("axis", 0)
    if not call.has("axis"):
        x = call.add("reshape", x, shape=(ops.product_of(call.sizes(0)),))
    value = call.known_value(1, "condition")
    positions: Operand
    if value is None:
        rows = _positions_of(call, call.tensor(1))
        positions = call.add("squeeze", rows, axes=(0,))
    else:
        positions = np.flatnonzero(value).astype(np.int64)
    return (call.take(x, positions, axis=axis),)


def _unique(call: Call) -> Results:
    shape = call.sizes(0)
    attributes: dict[str, ops.AttributeValue] = {
        "sorted": call.flag("sorted", default=True),
        "flat": True,
    }
    most: expr.Index = ops.product_of(shape)
    if call.has("axis"):
        axis = ops.axis_in(call.integer("axis"), len(shape))
        attributes |= {"axis": axis, "flat": False}
        most = shape[axis]
    value = call.known_value(0, "data")
    if value is None:
        least = 1 if ops.is_certain(ops.product_of(shape) >= 1) else 0
        return decide(call, "unique", (call.tensor(0),), attributes, most=most, least=least)
    record = ops.operator("unique")
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
    value: ops.Array | None = np.asarray(0)
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
    start, limit, delta = (as_number(call, call.tensor(at), dtype) for at in range(3))
    is_plain = _is(call, start, 0) and _is(call, delta, 1)
    most = greatest_value(call.builder, limit) if is_plain else None
    if call.builder.constant_value(delta) is None:  # which is not a range if it is 0
        delta = formula(call, "where(number == 0, 1, number)", number=delta)  # nothing over 0
    count = _steps_between(call, start, limit, delta)
    (positions,) = decide(call, "range_below", (count,), most=most)
    if is_plain:
        return (call.add("cast", positions, to=dtype),)
    wide = DType.F32 if dtype in (DType.F16, DType.BF16) else dtype
    first, step = (call.add("cast", each, to=wide) for each in (start, delta))
    steps = call.add("mul", call.add("cast", positions, to=wide), step)
    return (call.add("cast", call.add("add", steps, first), to=dtype),)


def _is(call: Call, tensor: str, number: int) -> bool:
    constant = call.builder.constant_value(tensor)
    return constant is not None and bool((constant == number).all())


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
    return call.take(x, positions, axis=axis)


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
