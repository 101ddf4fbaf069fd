"""Scans that are not written out: a loop whose body takes a slice of each scanned input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from onnx import GraphProto

from tensorwright.base import AttributeValue, DType
from tensorwright.expr import Index
from tensorwright.graph.nested import CONDITION, COUNT, LOOP
from tensorwright.graph.onnx_import.call import Call, Operand, Results
from tensorwright.graph.onnx_import.control_flow.bodies import (
    Inside,
    Nested,
    Operands,
    check_carried,
    check_rows,
)


def kept_scan(call: Call, nested: Nested, body: GraphProto, held: int, steps: Index) -> Results:
    """A node that holds the body of a scan.

    held    how many values it carries     steps   the number of its iterations

    Raises:  UnsupportedError as `kept_loop`, and for results in the reverse order.
    """
    scanned = len(call.operands) - held
    produced = len(body.output) - held
    axes = call.integers("scan_input_axes", (0,) * scanned)
    backwards = call.integers("scan_input_directions", (0,) * scanned)
    if any(call.integers("scan_output_directions", (0,) * produced)):
        raise call.unsupported(
            "it gives results in the reverse order, and has too many steps to be written out",
            "let it give them in the order of its steps, and reverse them behind it",
        )
    limit = call.add("full", shape=(), value=steps, dtype=DType.I64)
    initial = tuple(call.tensor(at) for at in range(held))
    tensors = tuple(call.tensor(held + at) for at in range(scanned))
    names = [info.name for info in body.input]
    types = dict(zip(names, map(call.type_of, initial), strict=False))

    def slices(inside: Inside) -> Operands:
        within = replace(call, builder=inside.builder)
        turn = inside.given[0]
        last = within.add("full", shape=(), value=steps - 1, dtype=DType.I64)
        rows: list[Operand] = []
        for tensor, axis, is_back in zip(tensors, axes, backwards, strict=True):
            row = within.add("sub", last, turn) if is_back else turn
            source = inside.tensor(tensor)
            rows.append(within.add("gather", source, row, axis=axis % _rank(call, tensor)))
        return dict(zip(names[held:], rows, strict=True))

    numbers = {"iteration of a scan": COUNT, "condition of a scan": CONDITION}
    made = nested.body(body, {**numbers, **types}, slices)
    check_carried(call, body.input[:held], tuple(types.values()), made.types[:held])
    check_rows(call, made, made.types[held:])
    made = replace(made, results=(np.ones((), np.bool_), *made.results))
    captured = tuple(made.captured)
    graph = made.finish("body", captured, call.builder)
    attributes: dict[str, AttributeValue] = {"carried": held}
    if produced:
        attributes["trips"] = steps
    inputs = (limit, call.as_tensor(np.ones((), np.bool_)), *initial, *captured)
    results = call.builder.nest(LOOP, inputs, (graph,), (), **attributes)
    out_axes = call.integers("scan_output_axes", (0,) * produced)
    rows = [_moved(call, name, axis) for name, axis in zip(results[held:], out_axes, strict=True)]
    return (*results[:held], *rows)


def _rank(call: Call, tensor: str) -> int:
    """How many dimensions a tensor has."""
    return len(call.type_of(tensor).shape)


def _moved(call: Call, rows: str, axis: int) -> str:
    """Rows along another dimension than the first."""
    order: Sequence[int] = range(_rank(call, rows))
    to = axis % len(order)
    if not to:
        return rows
    return call.add("transpose", rows, perm=(*range(1, to + 1), 0, *range(to + 1, len(order))))
