"""Reading and writing at positions that are tensors."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table
from tensorwright.graph.onnx_import.counterparts import AT_POSITIONS, SCATTER, Counterpart


def _positions(call: Call, position: int) -> Operand:
    """Indices as i32 or i64."""
    if call.type_at(position).dtype in (DType.I32, DType.I64):
        return call.operand(position)
    return call.add("cast", call.tensor(position), to=DType.I64)


def _at_positions(counterpart: Counterpart, call: Call) -> Results:
    operands = (call.tensor(0), _positions(call, 1), *call.operands[2:])
    return counterpart.convert(replace(call, operands=operands))


def _one_hot(call: Call) -> Results:
    depth = int(call.scalar(1, "depth"))
    indices: Operand = _positions(call, 0)
    axis = call.integer("axis", -1)
    return (call.add("one_hot", indices, call.tensor(2), depth=depth, axis=axis),)


def _top_k(call: Call) -> Results:
    k = call.integer("k") if call.opset < 10 else int(call.scalar(1, "k"))
    return call.apply(
        "topk",
        call.tensor(0),
        k=k,
        axis=call.integer("axis", -1),
        largest=call.flag("largest", default=True),
        sorted=call.flag("sorted", default=True),
    )


def _compress(call: Call) -> Results:
    """The chosen slices; which ones must be known."""
    chosen = np.flatnonzero(call.array(1, "condition"))
    x, axis = call.tensor(0), call.integer("axis", 0)
    if not call.given("axis"):
        x = call.add("reshape", x, shape=(math.prod(call.shape(0)),))
    return (call.add("gather", x, chosen.astype(np.int64), axis=axis),)


INDEXING: Table = (
    *((each.theirs, partial(_at_positions, each)) for each in AT_POSITIONS),
    ("Scatter", partial(_at_positions, SCATTER)),
    ("TopK", _top_k),
    ("Compress", _compress),
    ("OneHot", _one_hot),
)
