"""RNN, GRU and LSTM as loops over the steps of a sequence, of whatever length.

    sums         x @ W + bias of all steps and directions: one product before the loop
    each step    gates of (sums of the step + state @ R); the state after it is a row of results

Both directions are one loop: the second one reads the sums in the reverse order of time, and its
results are in this order until they are put back.  Arrays of a step are (directions, batch, ...);
with one direction there is no such dimension.  Directions with functions of their own have a loop
each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import Index
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.imports.call import (
    Call,
    Operand,
    Results,
    Table,
    in_single_precision,
)
from tensorwright.graph.imports.converters.quantization import in_codes
from tensorwright.graph.imports.counterparts import ACTIVATIONS
from tensorwright.graph.nested import CONDITION, COUNT, LOOP
from tensorwright.ops import NARROW, AttributeValue, operator

_LENGTHS, _STATE, _CELL, _PEEPHOLES = 4, 5, 6, 7


_OF_CODES, _W_SCALE, _R_SCALE = "DynamicQuantizeLSTM", 8, 10


_Function: TypeAlias = tuple[str, tuple[tuple[str, float], ...]]
"""Our name of an activation function, and the attributes that the node gives."""


_ACTIVATIONS = {theirs.lower(): ours for theirs, ours in ACTIVATIONS.items()}


_KINDS = {
    "RNN": (1, ("Tanh",)),
    "GRU": (3, ("Sigmoid", "Tanh")),
    "LSTM": (4, ("Sigmoid", "Tanh", "Tanh")),
}


@dataclass(frozen=True, slots=True)
class _Cell:
    """A step of one kind of cell, in the body of a loop.

    call          adds nodes to the body
    hidden        numbers of the state
    activations   the functions, in ONNX's order
    held          what the body sees of the graph around it, by role
    """

    call: Call
    hidden: int
    activations: Sequence[_Function]
    held: Mapping[str, str]

    def gate(self, x: str, at: int) -> str:
        return _part(self.call, x, at, self.hidden)

    def recurrent(self, state: str, first: int = 0, count: int = 0) -> str:
        """A state times the recurrent weights: of all gates, or of `count` gates from one on."""
        weights = self.held["r"]
        if "r scale" in self.held:
            scale, zero = self.held["r scale"], self.held["r zero"]
            return _product_of_codes(self.call, state, weights, scale, zero)
        if count:
            weights = _part(self.call, weights, first, count * self.hidden)
        return self.call.add("matmul", state, weights)

    def activate(self, x: str, at: int, *, clipped: bool = True) -> str:
        """The at-th activation function, behind the clipping that the node may ask for."""
        if clipped and self.call.has("clip"):
            limit = self.call.real("clip")
            x = self.call.add("clip", x, min=-limit, max=limit)
        name, attributes = self.activations[at]
        return self.call.add(name, x, **dict(attributes))

    def rnn(self, x: str, before: str) -> tuple[str, ...]:
        return (self.activate(self.call.add("add", x, self.recurrent(before)), 0),)

    def gru(self, x: str, before: str) -> tuple[str, ...]:
        """Gates z, r, h: H = (1 - z) * g(...) + z * H before."""
        call = self.call
        is_linear = call.flag("linear_before_reset")
        product = self.recurrent(before) if is_linear else self.recurrent(before, 0, 2)
        z, r = (
            self.activate(call.add("add", self.gate(x, at), self.gate(product, at)), 0)
            for at in range(2)
        )
        if is_linear:
            hidden = self.gate(product, 2)
            if "bias" in self.held:
                hidden = call.add("add", hidden, self.held["bias"])
            hidden = call.add("mul", r, hidden)
        else:
            hidden = self.recurrent(call.add("mul", r, before), 2, 1)
        new = self.activate(call.add("add", self.gate(x, 2), hidden), 1)
        return (call.add("add", new, call.add("mul", z, call.add("sub", before, new))),)

    def lstm(self, x: str, before: str, memory: str) -> tuple[str, ...]:
        """Gates i, o, f, c: C = f * C before + i * g(...), H = o * h(C)."""
        call = self.call
        sums = call.add("add", self.recurrent(before), x)

        def look(gate: int, seen: str) -> str:
            """A gate that also sees the memory, through its peephole weights."""
            value = self.gate(sums, gate)
            if "peepholes" in self.held:
                weights = self.gate(self.held["peepholes"], gate)
                value = call.add("add", value, call.add("mul", weights, seen))
            return self.activate(value, 0)

        i, f = look(0, memory), look(2, memory)
        c = self.activate(self.gate(sums, 3), 1)
        memory = call.add("add", call.add("mul", f, memory), call.add("mul", i, c))
        # Only the gates are clipped: as ONNX Runtime does, the memory is left as it is.
        shown = self.activate(memory, 2, clipped=False)
        return call.add("mul", look(1, memory), shown), memory


def _product_of_codes(call: Call, x: str, quantized: str, scale: str, zero: str) -> str:
    weights = call.add("dequantize_linear", quantized, scale, zero, axis=1)
    return call.add("matmul", in_codes(call, x), weights)


_STEPS: Mapping[str, Callable[..., tuple[str, ...]]] = {
    "RNN": _Cell.rnn,
    "GRU": _Cell.gru,
    "LSTM": _Cell.lstm,
}


def _part(call: Call, tensor: str, at: int, size: int) -> str:
    """The numbers from at * `size` on, `size` of them, of the last dimension."""
    return call.piece(tensor, -1, at * size, (at + 1) * size)


@dataclass(frozen=True, slots=True)
class _Layer:
    """A recurrent node, seen from the graph around its loop.

    x           (steps, batch, input)
    backwards   for each direction that runs in the loop, whether it begins at the end
    first       the position of the first of them among the directions of the node
    """

    call: Call
    x: str
    backwards: tuple[bool, ...]
    first: int

    @property
    def count(self) -> int:
        return len(self.backwards)

    @property
    def is_of_codes(self) -> bool:
        """Whether its weights are bytes; they lie the other way round."""
        return self.call.operator == _OF_CODES

    @property
    def kind(self) -> str:
        return "LSTM" if self.is_of_codes else self.call.operator

    @property
    def hidden(self) -> int:
        return self.call.extents(2)[1 if self.is_of_codes else 2]

    def own(self, tensor: str, axis: int = 0) -> str:
        """The part of a tensor for its directions; one direction has no dimension."""
        if self.count == 1:
            return self.call.take(tensor, self.first, axis)
        return tensor

    def quantization(self, first: int) -> tuple[str, str]:
        """Scale and zero point of weights that are bytes, of which one direction is computed."""
        scale, zero = (self.own(self.call.tensor(at)) for at in (first, first + 1))
        return scale, zero

    def weights(self, position: int) -> str:
        """Weights as (directions, rows, gates * hidden)."""
        w = self.own(self.call.tensor(position))
        if self.is_of_codes:
            return w
        return self.call.add("transpose", w, perm=(1, 0) if self.count == 1 else (0, 2, 1))

    def row(self, tensor: str) -> str:
        """(directions, n) as rows that are added to (directions, batch, n)."""
        return tensor if self.count == 1 else self.call.add("unsqueeze", tensor, axes=(1,))

    def biases(self) -> tuple[str | None, str | None]:
        """What is added to the sums before the loop, and to a product inside of it."""
        call, hidden = self.call, self.hidden
        gates, _ = _KINDS[self.kind]
        if not call.has(3):
            return None, None
        w, r = (_part(call, self.own(call.tensor(3)), at, gates * hidden) for at in range(2))
        is_linear = call.operator == "GRU" and call.flag("linear_before_reset")
        if not is_linear:
            return self.row(call.add("add", w, r)), None
        zr = call.add("add", _part(call, w, 0, 2 * hidden), _part(call, r, 0, 2 * hidden))
        before = call.add("concat", zr, _part(call, w, 2, hidden), axis=-1)
        return self.row(before), self.row(_part(call, r, 2, hidden))

    def sums(self, bias: str | None) -> str:
        """x @ W + bias: one row for each step; (steps * batch * directions, gates * hidden) if some
        directions run backwards, whose steps read the rows in the order of `rows`.
        """
        call, width = self.call, _KINDS[self.kind][0] * self.hidden
        steps, batch, size = call.sizes(self.x)
        flat = call.add("reshape", self.x, shape=(steps * batch, size))
        w = self.weights(1)
        if self.is_of_codes:
            product = _product_of_codes(call, flat, w, *self.quantization(_W_SCALE))
        else:
            if self.count > 1:  # one product for both directions
                w = call.add("transpose", w, perm=(1, 0, 2))
                w = call.add("reshape", w, shape=(size, self.count * width))
            product = call.add("matmul", flat, w)
        if bias is not None:
            bias = call.add("reshape", bias, shape=(self.count * width,))
            product = call.add("add", product, bias)
        if any(self.backwards):
            return call.add("reshape", product, shape=(steps * batch * self.count, width))
        return call.add("reshape", product, shape=(steps, batch, width))

    def rows(self, *, of_sums: bool) -> str:
        """Numbers of rows (steps, directions, batch): those of the sums that a step of the loop
        reads, or those of the collected rows in the order of time.

        A backward direction begins with the last step of each example.
        """
        call = self.call
        steps, batch, _ = call.sizes(self.x)
        step = call.add("unsqueeze", call.positions(steps, DType.I64), axes=(1,))
        example = call.positions(batch, DType.I64)
        numbers: list[Operand] = []
        for direction, is_back in enumerate(self.backwards):
            at: Operand = self.turned(step) if is_back else step
            inner: list[tuple[Index, Operand]] = [(batch, example)]
            inner.insert(1 if of_sums else 0, (self.count, np.array(direction)))
            for size, number in inner:
                factor = call.add("full", shape=(), value=size, dtype=DType.I64)
                at = call.add("add", call.add("mul", at, factor), number)
            numbers.append(at)
        return call.as_tensor(numbers[0]) if self.count == 1 else call.stack(numbers, 1)

    def turned(self, step: str) -> str:
        """The step (steps, 1) with which a step changes places: of each example among its own."""
        call = self.call
        one = np.ones((), np.int64)
        if not call.has(_LENGTHS):
            steps = call.add("full", shape=(), value=call.sizes(self.x)[0], dtype=DType.I64)
            return call.add("sub", call.add("sub", steps, one), step)
        lengths = self.lengths()
        back = call.add("sub", call.add("sub", lengths, one), step)
        return call.add("where", call.add("less", step, lengths), back, step)

    def in_time(self, rows: str) -> str:
        """The rows that the loop collects, (steps, directions, batch, hidden), in time's order."""
        if not any(self.backwards):
            return rows
        call, sizes = self.call, self.call.sizes(rows)
        count = sizes[0] * self.count * call.sizes(self.x)[1]
        flat = call.add("reshape", rows, shape=(count, self.hidden))
        order = call.add("reshape", self.rows(of_sums=False), shape=(count,))
        return call.add("reshape", call.take(flat, order), shape=sizes)

    def lengths(self) -> str:
        """The number of steps of each example."""
        return self.call.cast(self.call.operand(_LENGTHS), DType.I64)

    def initial(self, position: int) -> str:
        """The state before the first step: zeros where it is not given."""
        call = self.call
        if not call.has(position):
            batch = call.sizes(self.x)[1]
            shape: tuple[Index, ...] = (batch, self.hidden)
            shape = shape if self.count == 1 else (self.count, *shape)
            return call.add("full", shape=shape, value=0.0, dtype=call.dtype_of(0))
        state = call.tensor(position)
        if call.flag("layout"):
            state = call.add("transpose", state, perm=(1, 0, 2))
        return self.own(state)

    def run(self) -> tuple[str, ...]:
        """The states of all steps (steps, directions, batch, hidden), and those after the last."""
        call = self.call
        slots = (_STATE, _CELL) if self.kind == "LSTM" else (_STATE,)
        states = tuple(self.initial(at) for at in slots)
        if call.sizes(self.x)[0] == 0:
            shape = (0, *call.sizes(states[0]))
            return (call.add("full", shape=shape, value=0.0, dtype=call.dtype_of(0)), *states)
        before, inside = self.biases()
        held = {"sums": self.sums(before), "r": self.weights(2)}
        if inside is not None:
            held["bias"] = inside
        if self.is_of_codes:
            held["r scale"], held["r zero"] = self.quantization(_R_SCALE)
        if call.has(_PEEPHOLES):
            held["peepholes"] = self.row(self.own(call.tensor(_PEEPHOLES)))
        if any(self.backwards):
            held["rows"] = self.rows(of_sums=True)
        if call.has(_LENGTHS):
            held["lengths"] = call.add("unsqueeze", self.lengths(), axes=(1,))
        collects = call.wants(0)
        builder = GraphBuilder(f"step of {self.kind}")
        step = builder.input("step", (), COUNT.dtype)
        builder.input("condition", (), CONDITION.dtype)
        befores = tuple(self.declare(builder, "state", each) for each in states)
        seen = {role: self.declare(builder, role, each) for role, each in held.items()}
        within = replace(call, builder=builder)
        row = within.take(seen["rows"], step) if "rows" in seen else step
        now = within.take(seen["sums"], row)
        cell = _Cell(within, self.hidden, self.activations(), seen)
        after = _STEPS[self.kind](cell, now, *befores)
        row = after[0]
        if "lengths" in seen:
            runs = within.add("less", step, seen["lengths"])
            zero = np.zeros((), call.dtype_of(0).numpy)
            row = within.add("where", runs, row, zero)
            pairs = zip(after, befores, strict=True)
            after = tuple(within.add("where", runs, new, old) for new, old in pairs)
        goes_on = within.as_tensor(np.ones((), np.bool_))
        body = builder.finish((goes_on, *after, *((row,) if collects else ())))
        steps = call.sizes(self.x)[0]
        attributes: dict[str, AttributeValue] = {"carried": len(states)}
        if collects:
            attributes["trips"] = steps
        limit = call.add("full", shape=(), value=steps, dtype=DType.I64)
        inputs = (limit, call.as_tensor(np.ones((), np.bool_)), *states, *held.values())
        results = call.builder.nest(LOOP, inputs, (body,), (), **attributes)
        rows = self.in_time(results[-1]) if collects else ""
        return (rows, *results[: len(states)])

    def declare(self, builder: GraphBuilder, role: str, outside: str) -> str:
        type_ = self.call.type_of(outside)
        return builder.input(builder.fresh(role), type_.shape, type_.dtype)

    def activations(self) -> tuple[_Function, ...]:
        """The activation functions, which its directions share."""
        count = len(_KINDS[self.kind][1])
        return _activations(self.call)[self.first * count :][:count]


def _activations(call: Call) -> tuple[_Function, ...]:
    """The activation functions of all directions.

    Those that have an alpha or a beta take the next number of that list, while it has one.
    """
    _, default = _KINDS[call.operator.removeprefix("DynamicQuantize")]
    directions = call.extents(1)[0]
    names = call.attributes.get("activations", default * directions)
    given = tuple(map(str, names)) if isinstance(names, tuple) else default
    if len(given) != directions * len(default):
        raise call.unsupported(f"it has {len(given)} activations for {directions} directions")
    left = {
        name: list(call.reals(f"activation_{name}")) if call.has(f"activation_{name}") else []
        for name in ("alpha", "beta")
    }
    functions = []
    for name in given:
        if name.lower() not in _ACTIVATIONS:
            raise call.unsupported(f"its activation {name!r} is not supported")
        ours = _ACTIVATIONS[name.lower()]
        names_of = [each.name for each in operator(ours).attributes]
        attributes = tuple((each, left[each].pop(0)) for each in names_of if left[each])
        functions.append((ours, attributes))
    return tuple(functions)


def _recurrent(call: Call) -> Results:
    if call.flag("input_forget"):
        raise call.unsupported("coupled input and forget gates are not supported")
    batch_first = call.flag("layout")
    x = call.tensor(0)
    if batch_first:
        x = call.add("transpose", x, perm=(1, 0, 2))
    kind = call.text("direction", "forward")
    backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    if kind not in backwards:
        raise call.unsupported(f"its direction {kind} is not supported")
    sides, functions = backwards[kind], _activations(call)
    half = len(functions) // 2
    is_alike = functions[:half] == functions[half:] and call.operator != _OF_CODES
    if len(sides) == 2 and is_alike:
        y, *last = _Layer(call, x, sides, 0).run()
    else:
        runs = [_Layer(call, x, (each,), at).run() for at, each in enumerate(sides)]
        y, *last = (
            call.stack(each, axis) if all(each) else ""
            for axis, each in zip((1, 0, 0), zip(*runs, strict=True), strict=False)
        )
    if not y:
        y = call.add("full", shape=(0,), value=0.0, dtype=call.dtype_of(0))  # nobody reads it
    elif batch_first:
        y = call.add("transpose", y, perm=(2, 0, 1, 3))
    if batch_first:
        last = [call.add("transpose", each, perm=(1, 0, 2)) for each in last]
    return (y, *last)


recurrent = in_single_precision(_recurrent, NARROW)


RECURRENT: Table = tuple((kind, recurrent) for kind in _KINDS)


DYNAMIC_LSTM: Table = ((_OF_CODES, _recurrent),)
"""ONNX Runtime's LSTM with weights of bytes, which multiply inputs and states that are bytes."""


# -- ATen


_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""For each gate in ONNX's order, its index in PyTorch's order."""


def _aten_recurrent(kind: str, call: Call, activation: str = "") -> Results:
    """Layers of cells, each in one direction or both.

    Shapes:  input (steps, batch, width) -> (steps, batch, directions * hidden), and the states
             (layers * directions, batch, hidden) after the last step
    """
    if not call.has("params") or not call.has("input"):
        raise call.unsupported("packed sequences are not supported")
    if call.flag("train") and call.real("dropout", 0.0) > 0:
        raise call.unsupported("it is in training mode", "call eval() on the module")
    x = call.tensor("input")
    if call.flag("batch_first"):
        x = call.add("transpose", x, perm=(1, 0, 2))
    states = call.tensors("hx")
    directions = 2 if call.flag("bidirectional") else 1
    last: list[list[str]] = [[] for _ in states]
    for layer in range(call.integer("num_layers")):
        first, after = layer * directions, (layer + 1) * directions
        begins = [call.piece(each, 0, first, after) for each in states]
        x, *ends = _layer(call, kind, activation, x, begins, layer, directions)
        for kept, end in zip(last, ends, strict=True):
            kept.append(end)
    if call.flag("batch_first"):
        x = call.add("transpose", x, perm=(1, 0, 2))
    joined = (each[0] if len(each) == 1 else call.add("concat", *each, axis=0) for each in last)
    return (x, *joined)


def _layer(
    call: Call, kind: str, activation: str, x: str, begins: list[str], layer: int, directions: int
) -> tuple[str, ...]:
    """One layer, by ONNX's operator."""
    has_biases = call.flag("has_biases")
    count = 4 if has_biases else 2
    params = call.tensors("params")
    first = layer * directions * count
    sets = [params[first + at * count : first + (at + 1) * count] for at in range(directions)]
    if call.rank(sets[0][0]) != 2 or len(sets[-1]) != count:
        raise call.unsupported("its weights are not those of plain cells")
    hidden = call.extents(sets[0][1])[1]
    w, r = (call.stack([_in_order(call, kind, each[at]) for each in sets], 0) for at in range(2))
    bias = None
    if has_biases:
        rows = [
            call.add("concat", *(_in_order(call, kind, each[at]) for at in (2, 3)), axis=0)
            for each in sets
        ]
        bias = call.stack(rows, 0)
    more: dict[str, int | str | tuple[str, ...]] = {
        "hidden_size": hidden,
        "direction": "bidirectional" if directions == 2 else "forward",
    }
    if kind == "GRU":
        more["linear_before_reset"] = 1
    if activation:
        more["activations"] = (activation,) * directions
    outputs = (True,) * (1 + len(begins))
    cells = Call(kind, call.label, more, call.builder, (x, w, r, bias, None, *begins), outputs)
    y, *ends = map(call.as_tensor, recurrent(cells) or ())
    steps, _, batch, _ = call.sizes(y)
    y = call.add("transpose", y, perm=(0, 2, 1, 3))
    return call.add("reshape", y, shape=(steps, batch, directions * hidden)), *ends


def _in_order(call: Call, kind: str, tensor: str) -> str:
    """The gates of a weight or a bias in ONNX's order."""
    order = _GATES[kind]
    if len(order) == 1:
        return tensor
    size = call.extents(tensor)[0] // len(order)
    parts = call.apply("split", tensor, sizes=(size,) * len(order), axis=0)
    return call.add("concat", *(parts[at] for at in order), axis=0)


ATEN_RECURRENT: Table = (
    ("lstm", partial(_aten_recurrent, "LSTM")),
    ("gru", partial(_aten_recurrent, "GRU")),
    ("rnn_tanh", partial(_aten_recurrent, "RNN", activation="Tanh")),
    ("rnn_relu", partial(_aten_recurrent, "RNN", activation="Relu")),
)
