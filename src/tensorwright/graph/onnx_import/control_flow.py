"""If, Loop and Scan: a branch is chosen and loops are written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from onnx import GraphProto

from tensorwright.base import DType, ModelError
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.nested import BRANCH
from tensorwright.graph.onnx_import.bodies import Body
from tensorwright.graph.onnx_import.call import MOST_ITERATIONS, Call, Operand, Results
from tensorwright.graph.onnx_import.shapes import declared_type
from tensorwright.ops import Array, TensorType

Operands: TypeAlias = Mapping[str, Operand]


@dataclass(frozen=True, slots=True)
class Nested:
    """How nested graphs are imported.

    run       the outputs of a graph for what its inputs are given
    types     their types, without a trace in the graph around
    attempt   what work adds to a builder is added only where it has results
    body      a graph that is kept, for inputs of some types
    """

    run: Callable[[GraphProto, Operands], Results]
    types: Callable[[GraphProto, Operands], tuple[TensorType, ...]]
    attempt: Callable[[Callable[[GraphBuilder], Results | None]], Results | None]
    body: Callable[[GraphProto, Mapping[str, TensorType]], Body]


def _body(call: Call, name: str) -> GraphProto:
    graph = call.attributes.get(name)
    if not isinstance(graph, GraphProto):
        raise call.unsupported(f"it has no {name}")
    return graph


def _truth(call: Call, operand: Operand, what: str) -> bool:
    value = call.truth(operand, what)
    if value is None:
        raise call.unsupported(
            f"its {what} is computed when the model runs, and the nodes must be known before",
            "export the model with the branch fixed",
        )
    return value


def convert_if(call: Call, nested: Nested) -> Results:
    """The branch that a known condition chooses; otherwise a node that holds both."""
    condition = call.operand(0)
    _require_single(call, condition, DType.BOOL, "condition")
    chosen = call.truth(condition, "condition")
    if chosen is not None:
        return nested.run(_body(call, "then_branch" if chosen else "else_branch"), {})
    names = ("then_branch", "else_branch")
    then, otherwise = (nested.body(_body(call, name), {}) for name in names)
    for at, types in enumerate(zip(then.types, otherwise.types, strict=True)):
        if types[0] != types[1]:
            raise call.unsupported(
                f"its output number {at + 1} is {types[0]} if the condition holds, else {types[1]}",
                "let both branches give the same element type and shape",
            )
    captured = tuple(dict.fromkeys((*then.captured, *otherwise.captured)))
    graphs = (
        then.finish("then", captured, call.builder),
        otherwise.finish("otherwise", captured, call.builder),
    )
    inputs = (single(call, condition), *captured)
    return call.builder.nest(BRANCH, inputs, graphs)


def _require_single(call: Call, operand: Operand, dtype: DType, what: str) -> None:
    """Refuse what is no single number of a type."""
    type_ = call.type_of(operand)
    if type_.dtype is not dtype or any(extent != 1 for extent in type_.shape):
        raise ModelError(
            stage="import",
            where=call.label,
            reason=f"its {what} is {type_}, and must be a single {dtype}",
        )


def single(call: Call, operand: Operand) -> str:
    """A number of one element as a tensor without dimensions."""
    return (
        call.as_tensor(operand)
        if not call.type_of(operand).shape
        else call.add("reshape", operand, shape=())
    )


def _without_rows(
    body: GraphProto, count: int, nested: Nested, given: Operands
) -> tuple[Array, ...]:
    """What the last `count` outputs of a body, one row for each iteration, are without any.

    given   what a first iteration would be given: it says the types that the body leaves open
    """
    infos = body.output[len(body.output) - count :]
    declared = [declared_type(info) for info in infos]
    types = [type_ for type_ in declared if type_ is not None]
    if len(types) < count:
        types = list(nested.types(body, given)[len(body.output) - count :])
    return tuple(np.zeros((0, *type_.extents), type_.dtype.numpy) for type_ in types)


def convert_loop(call: Call, nested: Nested) -> Results:
    """The iterations one after another; their number and all conditions must be known."""
    body = _body(call, "body")
    count = int(call.scalar(0, "trip count")) if call.has(0) else MOST_ITERATIONS + 1
    going = _truth(call, call.operand(1), "condition") if call.has(1) else True
    state = [call.operand(at) for at in range(2, len(call.operands))]
    rows: list[list[Operand]] = [[] for _ in range(len(body.output) - 1 - len(state))]
    iteration = 0

    def given() -> Operands:
        known = (np.asarray(iteration, np.int64), np.asarray(going))
        names = [info.name for info in body.input]
        return dict(zip(names, (*known, *state), strict=True))

    while going and iteration < count:
        call.check_iterations(iteration + 1)
        results = nested.run(body, given())
        going = _truth(call, results[0], "condition")
        state = list(results[1 : 1 + len(state)])
        for row, value in zip(rows, results[1 + len(state) :], strict=True):
            row.append(value)
        iteration += 1
    if not iteration:
        return (*state, *_without_rows(body, len(rows), nested, given()))
    return (*state, *(call.stack(row, 0) for row in rows))


def _direction(call: Call, name: str, count: int) -> tuple[int, ...]:
    return call.integers(name, (0,) * count)


def convert_scan(call: Call, nested: Nested) -> Results:
    """The iterations one after another, each on one slice of the scanned inputs."""
    body, scanned = _body(call, "body"), call.integer("num_scan_inputs")
    if call.opset < 9:
        raise call.unsupported("the form before operator set 9 is not supported")
    held = len(call.operands) - scanned
    state = [call.operand(at) for at in range(held)]
    axes = _direction(call, "scan_input_axes", scanned)
    backwards = _direction(call, "scan_input_directions", scanned)
    steps = call.shape(held)[axes[0]] if scanned else 0
    call.check_iterations(steps)
    produced = len(body.output) - held
    rows: list[list[Operand]] = [[] for _ in range(produced)]
    names = [info.name for info in body.input]
    for step in range(steps):
        slices: list[Operand] = []
        for at in range(scanned):
            place = steps - 1 - step if backwards[at] else step
            slices.append(call.take(call.tensor(held + at), place, axes[at]))
        results = nested.run(body, dict(zip(names, (*state, *slices), strict=True)))
        state = list(results[:held])
        for row, value in zip(rows, results[held:], strict=True):
            row.append(value)
    out_axes = _direction(call, "scan_output_axes", produced)
    if not steps:
        slices = [_empty_slice(call, held + at, axes[at]) for at in range(scanned)]
        given = dict(zip(names, (*state, *slices), strict=True))
        empty = _without_rows(body, produced, nested, given)
        return (
            *state,
            *(np.moveaxis(rows, 0, axis) for rows, axis in zip(empty, out_axes, strict=True)),
        )
    reverse = _direction(call, "scan_output_directions", produced)
    stacked = [
        call.stack(row[::-1] if back else row, axis)
        for row, axis, back in zip(rows, out_axes, reverse, strict=True)
    ]
    return (*state, *stacked)


def _empty_slice(call: Call, position: int, axis: int) -> Operand:
    """Zeros of the type of one slice of an input, which has none."""
    type_ = call.type_at(position)
    return np.zeros(np.delete(type_.extents, axis), type_.dtype.numpy)


CONTROL_FLOW: dict[str, Callable[[Call, Nested], Results]] = {
    "If": convert_if,
    "Loop": convert_loop,
    "Scan": convert_scan,
}
