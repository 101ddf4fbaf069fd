"""If, Loop and Scan.

If, Loop and Scan: a branch is chosen and loops are written out, or nodes hold their graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from onnx import GraphProto

from tensorwright.base import DType
from tensorwright.expr import Index
from tensorwright.graph.imports import bodies
from tensorwright.graph.imports.call import MOST_ITERATIONS, Call, Operand, Results
from tensorwright.graph.imports.refusals import model_error
from tensorwright.graph.imports.shapes import declared_type
from tensorwright.graph.imports.size_terms import SizeArray
from tensorwright.ops import Array


def _body(call: Call, name: str) -> GraphProto:
    graph = call.attributes.get(name)
    if not isinstance(graph, GraphProto):
        raise call.unsupported(f"it has no {name}")
    return graph


def convert_if(call: Call, nested: bodies.Nested) -> Results:
    """The branch that a known condition chooses; otherwise a node that holds both."""
    _require_single(call, call.operand(0), "condition")
    chosen = call.truth(call.operand(0), "condition")
    if chosen is None:
        return bodies.kept_branches(
            call, nested, _body(call, "then_branch"), _body(call, "else_branch")
        )
    return nested.run(_body(call, "then_branch" if chosen else "else_branch"), {})


def _require_single(call: Call, operand: Operand, what: str) -> None:
    """Refuse what is not a single bool; a number that is known may be of another type."""
    type_ = call.type_of(operand)
    is_known = not isinstance(operand, str) or call.builder.constant_value(operand) is not None
    is_bool = type_.dtype is DType.BOOL or is_known
    if not is_bool or any(extent != 1 for extent in type_.shape):
        raise model_error(call.label, f"its {what} is {type_}, and must be a single bool")


def _without_rows(
    body: GraphProto, count: int, nested: bodies.Nested, given: bodies.Operands
) -> tuple[Array, ...]:
    """The last `count` outputs of a body, one row for each iteration, where no iteration runs.

    given   what a first iteration would be given: it says the types that the body leaves open
    """
    infos = body.output[len(body.output) - count :]
    declared = [declared_type(info) for info in infos]
    types = [type_ for type_ in declared if type_ is not None]
    if len(types) < count:
        types = list(nested.types(body, given)[len(body.output) - count :])
    return tuple(np.zeros((0, *type_.extents), type_.dtype.numpy) for type_ in types)


def convert_loop(call: Call, nested: bodies.Nested) -> Results:
    """The iterations one after another, where their number and all conditions are known; otherwise
    a node that holds the body.
    """
    body = _body(call, "body")
    if call.has(1):
        _require_single(call, call.operand(1), "condition")
    going = call.truth(call.operand(1), "condition") if call.has(1) else True
    count = _count(call)
    written = 0 if going is False else MOST_ITERATIONS + 1 if not call.has(0) else count
    if (
        going is not None
        and isinstance(written, int)
        and (written <= MOST_ITERATIONS or not call.has(0))
    ):
        results = nested.attempt(
            lambda draft: _written_out(replace(call, builder=draft), nested, body, written)
        )
        if results is not None:  # else a condition is not known
            return results
    return bodies.kept_loop(call, nested, body, count)


def _count(call: Call) -> Index | None:
    """The trip count, where it is known or made of sizes."""
    if not call.has(0):
        return None
    if isinstance(call.operand(0), SizeArray):
        return call.index(0, "trip count")
    return None if call.static_value(0) is None else int(call.scalar(0, "trip count"))


def _written_out(call: Call, nested: bodies.Nested, body: GraphProto, count: int) -> Results | None:
    going = not call.has(1) or call.truth(call.operand(1), "condition")
    state = [call.operand(at) for at in range(2, len(call.operands))]
    rows: list[list[Operand]] = [[] for _ in range(len(body.output) - 1 - len(state))]
    iteration = 0

    def given() -> bodies.Operands:
        own = (np.asarray(iteration, np.int64), np.asarray(going))
        names = [info.name for info in body.input]
        return dict(zip(names, (*own, *state), strict=True))

    while going and iteration < count:
        if iteration == MOST_ITERATIONS:
            return None
        results = nested.run(body, given())
        going = call.truth(results[0], "condition")
        if going is None:
            return None
        state = list(results[1 : 1 + len(state)])
        for row, value in zip(rows, results[1 + len(state) :], strict=True):
            row.append(value)
        iteration += 1
    if not iteration:
        return (*state, *_without_rows(body, len(rows), nested, given()))
    return (*state, *(call.stack(row, 0) for row in rows))


def convert_scan(call: Call, nested: bodies.Nested) -> Results:
    """The iterations one after another, each on one slice of the scanned inputs."""
    body, scanned = _body(call, "body"), call.integer("num_scan_inputs")
    if call.opset < 9:
        raise call.unsupported("the form before operator set 9 is not supported")
    held = len(call.operands) - scanned
    state = [call.operand(at) for at in range(held)]
    axes = call.integers("scan_input_axes", (0,) * scanned)
    backwards = call.integers("scan_input_directions", (0,) * scanned)
    steps = call.sizes(held)[axes[0]] if scanned else 0
    if not isinstance(steps, int) or steps > MOST_ITERATIONS:
        return bodies.kept_scan(call, nested, body, held, steps)
    produced = len(body.output) - held
    rows: list[list[Operand]] = [[] for _ in range(produced)]
    names = [info.name for info in body.input]
    for step in range(steps):
        slices: list[Operand] = []
        for at in range(scanned):
            index = steps - 1 - step if backwards[at] else step
            slices.append(call.take(call.tensor(held + at), index, axes[at]))
        results = nested.run(body, dict(zip(names, (*state, *slices), strict=True)))
        state = list(results[:held])
        for row, value in zip(rows, results[held:], strict=True):
            row.append(value)
    out_axes = call.integers("scan_output_axes", (0,) * produced)
    if not steps:
        slices = [_empty_slice(call, held + at, axes[at]) for at in range(scanned)]
        given = dict(zip(names, (*state, *slices), strict=True))
        empty = _without_rows(body, produced, nested, given)
        return (
            *state,
            *(np.moveaxis(rows, 0, axis) for rows, axis in zip(empty, out_axes, strict=True)),
        )
    reverse = call.integers("scan_output_directions", (0,) * produced)
    stacked = [
        call.stack(row[::-1] if back else row, axis)
        for row, axis, back in zip(rows, out_axes, reverse, strict=True)
    ]
    return (*state, *stacked)


def _empty_slice(call: Call, position: int, axis: int) -> Operand:
    """Zeros of the type of one slice of an input, which has none."""
    type_ = call.type_of(position)
    return np.zeros(np.delete(type_.extents, axis), type_.dtype.numpy)


CONTROL_FLOW: dict[str, Callable[[Call, bodies.Nested], Results]] = {
    "If": convert_if,
    "Loop": convert_loop,
    "Scan": convert_scan,
}
