"""Reading and writing at positions that are tensors."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table


def _positions(call: Call, position: int) -> Operand:
    """Indices as i32 or i64."""
    if call.type(position).dtype in (DType.I32, DType.I64):
        return call.operand(position)
    return call.add("cast", call.tensor(position), to=DType.I64)


def _gather(call: Call) -> Results:
    axis = call.int("axis", 0)
    return (call.add("gather", call.tensor(0), _positions(call, 1), axis=axis),)


def _gather_elements(call: Call) -> Results:
    axis = call.int("axis", 0)
    return (call.add("gather_elements", call.tensor(0), _positions(call, 1), axis=axis),)


def _gather_nd(call: Call) -> Results:
    batch = call.int("batch_dims", 0)
    return (call.add("gather_nd", call.tensor(0), _positions(call, 1), batch_dims=batch),)


def _one_hot(call: Call) -> Results:
    depth = int(call.scalar(1, "depth"))
    indices: Operand = _positions(call, 0)
    axis = call.int("axis", -1)
    return (call.add("one_hot", indices, call.tensor(2), depth=depth, axis=axis),)


INDEXING: Table = (
    ("Gather", _gather),
    ("GatherElements", _gather_elements),
    ("GatherND", _gather_nd),
    ("OneHot", _one_hot),
)
