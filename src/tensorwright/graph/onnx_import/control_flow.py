"""If, Loop and Scan: a branch is chosen and loops are written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from onnx import GraphProto

from tensorwright.graph.onnx_import.call import MOST_ITERATIONS, Call, Operand, Results

RunBody: TypeAlias = Callable[[GraphProto, Mapping[str, Operand]], Results]


def _body(call: Call, name: str) -> GraphProto:
    graph = call.attributes.get(name)
    if not isinstance(graph, GraphProto):
        raise call.unsupported(f"it has no {name}")
    return graph


def _truth(call: Call, operand: Operand, what: str) -> bool:
    value = call.builder.constant_value(operand) if isinstance(operand, str) else operand
    if value is None or value.size != 1:
        raise call.unsupported(
            f"its {what} is computed when the model runs, and the nodes must be known before",
            "export the model with the branch fixed",
        )
    return bool(value.reshape(-1)[0])


def convert_if(call: Call, run: RunBody) -> Results:
    """The branch that a known condition chooses."""
    chosen = _truth(call, call.operand(0), "condition")
    return run(_body(call, "then_branch" if chosen else "else_branch"), {})


def _stack(call: Call, rows: list[Operand], axis: int, *, reverse: bool) -> Operand:
    ordered = list(reversed(rows)) if reverse else rows
    if not ordered:
        raise call.unsupported("it runs no iteration, and the shape of its output is unknown")
    return call.stack(ordered, axis)


def convert_loop(call: Call, run: RunBody) -> Results:
    """The iterations one after another; their number and all conditions must be known."""
    body = _body(call, "body")
    count = int(call.scalar(0, "trip count")) if call.has(0) else MOST_ITERATIONS + 1
    going = _truth(call, call.operand(1), "condition") if call.has(1) else True
    state = [call.operand(at) for at in range(2, len(call.operands))]
    rows: list[list[Operand]] = [[] for _ in range(len(body.output) - 1 - len(state))]
    iteration = 0
    while going and iteration < count:
        call.check_iterations(iteration + 1)
        known = (np.asarray(iteration, np.int64), np.asarray(going))
        names = [info.name for info in body.input]
        results = run(body, dict(zip(names, (*known, *state), strict=True)))
        going = _truth(call, results[0], "condition")
        state = list(results[1 : 1 + len(state)])
        for row, value in zip(rows, results[1 + len(state) :], strict=True):
            row.append(value)
        iteration += 1
    return (*state, *(_stack(call, row, 0, reverse=False) for row in rows))


def _direction(call: Call, name: str, count: int) -> tuple[int, ...]:
    return call.integers(name, (0,) * count)


def convert_scan(call: Call, run: RunBody) -> Results:
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
        slices = []
        for at in range(scanned):
            place = steps - 1 - step if backwards[at] else step
            slices.append(call.take(call.tensor(held + at), place, axes[at]))
        results = run(body, dict(zip(names, (*state, *slices), strict=True)))
        state = list(results[:held])
        for row, value in zip(rows, results[held:], strict=True):
            row.append(value)
    out_axes = _direction(call, "scan_output_axes", produced)
    reverse = _direction(call, "scan_output_directions", produced)
    stacked = [
        _stack(call, row, axis, reverse=bool(back))
        for row, axis, back in zip(rows, out_axes, reverse, strict=True)
    ]
    return (*state, *stacked)


CONTROL_FLOW: dict[str, Callable[[Call, RunBody], Results]] = {
    "If": convert_if,
    "Loop": convert_loop,
    "Scan": convert_scan,
}
