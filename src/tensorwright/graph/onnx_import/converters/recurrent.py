"""RNN, GRU and LSTM, written out step by step: sequences have a static length.

The products with the input are one matrix product for all steps; each step multiplies the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright.expr import Index
from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table, in_single_precision
from tensorwright.ops import NARROW, number_of

_LENGTHS, _STATE, _CELL, _PEEPHOLES = 4, 5, 6, 7
_ACTIVATIONS = {
    "Relu": "relu",
    "Tanh": "tanh",
    "Sigmoid": "sigmoid",
    "Softsign": "softsign",
    "Softplus": "softplus",
}


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of one direction; the gates of all are side by side in the last dimension.

    w  (input, gates * hidden)      r  (hidden, gates * hidden)
    wb, rb  (gates * hidden), or None without a bias
    """

    w: str
    r: str
    wb: str | None
    rb: str | None


def _part(call: Call, tensor: str, at: int, size: int) -> str:
    """The at-th piece of `size` of the last dimension."""
    starts, ends = (at * size,), ((at + 1) * size,)
    return call.add("slice", tensor, starts=starts, ends=ends, axes=(-1,), steps=(1,))


def _weights(call: Call, direction: int, gates: int, hidden: int) -> Weights:
    w = call.add("transpose", call.take(call.tensor(1), direction, 0), perm=(1, 0))
    r = call.add("transpose", call.take(call.tensor(2), direction, 0), perm=(1, 0))
    if not call.has(3):
        return Weights(w, r, None, None)
    bias = call.take(call.tensor(3), direction, 0)
    wb, rb = (_part(call, bias, at, gates * hidden) for at in range(2))
    return Weights(w, r, wb, rb)


def _plus(call: Call, x: str, bias: str | None) -> str:
    return x if bias is None else call.add("add", x, bias)


class _Cell:
    """The common part of the three kinds of cells; lives inside one conversion."""

    def __init__(self, call: Call, default: tuple[str, ...]) -> None:
        self.call = call
        self.hidden = call.shape(2)[2]
        directions = call.shape(1)[0]
        names = call.attributes.get("activations", default * directions)
        self.names = tuple(str(name) for name in names) if isinstance(names, tuple) else default
        if call.given("activation_alpha") or call.given("activation_beta"):
            raise call.unsupported("activation_alpha and activation_beta are not supported")

    def activate(self, x: str, at: int, *, clipped: bool = True) -> str:
        """The at-th activation function, behind the clipping that the node may ask for."""
        if clipped and self.call.given("clip"):
            limit = self.call.real("clip")
            x = self.call.add("clip", x, min=-limit, max=limit)
        name = self.names[at] if at < len(self.names) else ""
        if name.capitalize() not in _ACTIVATIONS:
            raise self.call.unsupported(f"its activation {name!r} is not supported")
        return self.call.add(_ACTIVATIONS[name.capitalize()], x)

    def gate(self, x: str, at: int) -> str:
        return _part(self.call, x, at, self.hidden)


def _rnn_step(cell: _Cell, x: str, state: Sequence[str], w: Weights, first: int) -> tuple[str, ...]:
    call = cell.call
    recurrent = _plus(call, call.add("matmul", state[0], w.r), w.rb)
    return (cell.activate(call.add("add", x, recurrent), first),)


def _gru_step(cell: _Cell, x: str, state: Sequence[str], w: Weights, first: int) -> tuple[str, ...]:
    """Gates z, r, h: H = (1 - z) * g(...) + z * H before."""
    call, (before,) = cell.call, state
    recurrent = _plus(call, call.add("matmul", before, w.r), w.rb)
    z, r = (
        cell.activate(call.add("add", cell.gate(x, at), cell.gate(recurrent, at)), first)
        for at in range(2)
    )
    if call.flag("linear_before_reset", default=False):
        hidden = call.add("mul", r, cell.gate(recurrent, 2))
    else:
        reset = call.add("mul", r, before)
        hidden = call.add("matmul", reset, cell.gate(w.r, 2))
        hidden = _plus(call, hidden, cell.gate(w.rb, 2) if w.rb is not None else None)
    new = cell.activate(call.add("add", cell.gate(x, 2), hidden), first + 1)
    kept = call.add("mul", z, call.add("sub", before, new))
    return (call.add("add", new, kept),)


def _lstm_step(
    cell: _Cell, x: str, state: Sequence[str], w: Weights, first: int
) -> tuple[str, ...]:
    """Gates i, o, f, c: C = f * C before + i * g(...), H = o * h(C)."""
    call, (before, memory) = cell.call, state
    sums = call.add("add", x, _plus(call, call.add("matmul", before, w.r), w.rb))
    peepholes = None
    if call.has(_PEEPHOLES):
        peepholes = call.take(call.tensor(_PEEPHOLES), first // 3, 0)

    def look(at: int, gate: int, held: str) -> str:
        """A gate that also sees the memory through peephole weights i, o, f."""
        value = cell.gate(sums, gate)
        if peepholes is None:
            return value
        return call.add("add", value, call.add("mul", cell.gate(peepholes, at), held))

    i = cell.activate(look(0, 0, memory), first)
    f = cell.activate(look(2, 2, memory), first)
    c = cell.activate(cell.gate(sums, 3), first + 1)
    memory = call.add("add", call.add("mul", f, memory), call.add("mul", i, c))
    o = cell.activate(look(1, 1, memory), first)
    # Only the gates are clipped: as ONNX Runtime does, the memory is left as it is.
    return call.add("mul", o, cell.activate(memory, first + 2, clipped=False)), memory


_STEPS = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}
_KINDS = {
    "RNN": (1, ("Tanh",)),
    "GRU": (3, ("Sigmoid", "Tanh")),
    "LSTM": (4, ("Sigmoid", "Tanh", "Tanh")),
}


def _initial(call: Call, position: int, direction: int, shape: tuple[Index, int]) -> str:
    """The state before the first step: zeros where it is not given."""
    if not call.has(position):
        return call.add("full", shape=shape, value=0.0, dtype=call.type_at(0).dtype)
    state = call.tensor(position)
    axis = 1 if call.flag("layout", default=False) else 0
    return call.take(state, direction, axis)


def _masks(call: Call, steps: int, *, reverse: bool) -> list[Operand | None]:
    """For each step which examples are still running; None where all are."""
    if not call.has(_LENGTHS):
        return [None] * steps
    given = call.array(_LENGTHS, "sequence lengths")
    lengths = given.astype(np.int64).reshape(-1, 1)
    if reverse and bool(np.any(lengths != steps)):
        raise call.unsupported("lengths of single sequences are not supported backwards")
    return [None if bool(np.all(lengths > step)) else lengths > step for step in range(steps)]


def _run(call: Call, x: str, direction: int, *, reverse: bool) -> tuple[list[str], tuple[str, ...]]:
    """The hidden states of all steps, and the last states, of one direction.

    Shapes:  x (steps, batch, input) -> (batch, hidden) each
    """
    gates, default = _KINDS[call.operator]
    cell = _Cell(call, default)
    w = _weights(call, direction, gates, cell.hidden)
    count, batch, width = call.sizes_of(x)
    steps = number_of(count)  # which are written out
    call.check_iterations(steps)
    flat = call.add("matmul", call.add("reshape", x, shape=(steps * batch, width)), w.w)
    sums = call.add("reshape", _plus(call, flat, w.wb), shape=(steps, batch, gates * cell.hidden))
    slots = (_STATE, _CELL) if call.operator == "LSTM" else (_STATE,)
    state = tuple(_initial(call, at, direction, (batch, cell.hidden)) for at in slots)
    masks = _masks(call, steps, reverse=reverse)
    zero = np.zeros((), call.type_at(0).dtype.numpy)
    outputs = [""] * steps
    for step in reversed(range(steps)) if reverse else range(steps):
        now = call.take(sums, step, 0)
        new = _STEPS[call.operator](cell, now, state, w, direction * len(default))
        mask = masks[step]
        outputs[step] = new[0]
        if mask is not None:
            outputs[step] = call.add("where", mask, new[0], zero)
            new = tuple(
                call.add("where", mask, after, before)
                for after, before in zip(new, state, strict=True)
            )
        state = new
    return outputs, state


def _recurrent(call: Call) -> Results:
    if call.flag("input_forget", default=False):
        raise call.unsupported("coupled input and forget gates are not supported")
    batch_first = call.flag("layout", default=False)
    x = call.tensor(0)
    if batch_first:
        x = call.add("transpose", x, perm=(1, 0, 2))
    kind = call.text("direction", "forward")
    backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    if kind not in backwards:
        raise call.unsupported(f"its direction {kind} is not supported")
    runs = [_run(call, x, at, reverse=each) for at, each in enumerate(backwards[kind])]
    per_direction = [call.stack(outputs, 0) for outputs, _ in runs]
    y = call.stack(per_direction, 1)  # (steps, directions, batch, hidden)
    last = [call.stack(states, 0) for states in zip(*(state for _, state in runs), strict=True)]
    if batch_first:
        y = call.add("transpose", y, perm=(2, 0, 1, 3))
        last = [call.add("transpose", each, perm=(1, 0, 2)) for each in last]
    return (y, *last)


RECURRENT: Table = tuple((operator, in_single_precision(_recurrent, NARROW)) for operator in _STEPS)
