"""Reading and writing at positions that are tensors."""

from __future__ import annotations

import math

import numpy as np

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table


def _positions(call: Call, position: int) -> Operand:
    """Indices as i32 or i64."""
    if call.type_at(position).dtype in (DType.I32, DType.I64):
        return call.operand(position)
    return call.add("cast", call.tensor(position), to=DType.I64)


def _gather(call: Call) -> Results:
    axis = call.integer("axis", 0)
    return (call.add("gather", call.tensor(0), _positions(call, 1), axis=axis),)


def _gather_elements(call: Call) -> Results:
    axis = call.integer("axis", 0)
    return (call.add("gather_elements", call.tensor(0), _positions(call, 1), axis=axis),)


def _gather_nd(call: Call) -> Results:
    batch = call.integer("batch_dims", 0)
    return (call.add("gather_nd", call.tensor(0), _positions(call, 1), batch_dims=batch),)


def _one_hot(call: Call) -> Results:
    depth = int(call.scalar(1, "depth"))
    indices: Operand = _positions(call, 0)
    axis = call.integer("axis", -1)
    return (call.add("one_hot", indices, call.tensor(2), depth=depth, axis=axis),)


def _scatter_elements(call: Call) -> Results:
    return (
        call.add(
            "scatter_elements",
            call.tensor(0),
            _positions(call, 1),
            call.tensor(2),
            axis=call.integer("axis", 0),
            reduction=call.text("reduction", "none"),
        ),
    )


def _scatter_nd(call: Call) -> Results:
    reduction = call.text("reduction", "none")
    inputs = (call.tensor(0), _positions(call, 1), call.tensor(2))
    return (call.add("scatter_nd", *inputs, reduction=reduction),)


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


def _reverse_sequence(call: Call) -> Results:
    batch, time = call.integer("batch_axis", 1), call.integer("time_axis", 0)
    inputs = (call.tensor(0), _positions(call, 1))
    return (call.add("reverse_sequence", *inputs, batch_axis=batch, time_axis=time),)


INDEXING: Table = (
    ("ReverseSequence", _reverse_sequence),
    ("ScatterElements", _scatter_elements),
    ("Scatter", _scatter_elements),
    ("ScatterND", _scatter_nd),
    ("TopK", _top_k),
    ("Compress", _compress),
    ("Gather", _gather),
    ("GatherElements", _gather_elements),
    ("GatherND", _gather_nd),
    ("OneHot", _one_hot),
)
