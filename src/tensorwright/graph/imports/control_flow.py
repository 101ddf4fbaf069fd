"""If, Loop and Scan: a branch is chosen and loops are written out, or nodes hold their graphs.

What a kept graph uses of the graph around it becomes its inputs.  A Scan that is not written out is
a loop whose body takes a slice of each scanned input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from onnx import GraphProto, ValueInfoProto

from tensorwright.base import AttributeValue, DType, sizes_advice
from tensorwright.expr import Index, IndexExpr, named_sizes_of
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Graph
from tensorwright.graph.imports.call import MOST_ITERATIONS, Call, Operand, Results, as_tensor
from tensorwright.graph.imports.open_dimensions import greatest_value
from tensorwright.graph.imports.refusals import model_error
from tensorwright.graph.imports.shapes import declared_type
from tensorwright.graph.imports.size_terms import SizeArray
from tensorwright.graph.nested import BRANCH, CONDITION, COUNT, LOOP
from tensorwright.graph.sizes import counted_sizes
from tensorwright.ops import Array, TensorType

Operands: TypeAlias = Mapping[str, Operand]
_NO_LIMIT = np.asarray(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Nested:
    """How nested graphs are imported.

    run       the outputs of a graph for what its inputs are given
    types     their types, without a trace in the graph around
    attempt   what work adds to a builder is added only where it has results
    body      a graph that is kept, for inputs of some types; what else its names stand for
              is computed inside of it
    """

    run: Callable[[GraphProto, Operands], Results]
    types: Callable[[GraphProto, Operands], tuple[TensorType, ...]]
    attempt: Callable[[Callable[[GraphBuilder], Results | None]], Results | None]
    body: Callable[[GraphProto, Mapping[str, TensorType], Callable[[Inside], Operands]], Body]


class Captured(Mapping[str, Operand]):
    """The values around a nested graph: a tensor becomes an input when it is first asked for.

    Constants are constants inside, too; arrays and sizes are what they are.
    """

    def __init__(
        self, around: Mapping[str, Operand], outer: GraphBuilder, inner: GraphBuilder
    ) -> None:
        self._around = around
        self._outer = outer
        self._inner = inner
        self.names: dict[str, str] = {}  # of the tensors outside -> inside

    def __getitem__(self, name: str) -> Operand:
        operand = self._around[name]
        return self.inside(operand) if isinstance(operand, str) else operand

    def inside(self, operand: str) -> Operand:
        """A tensor of the graph around, inside."""
        constant = self._outer.constant_value(operand)
        if constant is not None:
            return constant
        if operand not in self.names:
            type_ = self._outer.type_of(operand)
            self.names[operand] = self._inner.input(
                self._inner.fresh(operand), type_.shape, type_.dtype
            )
        return self.names[operand]

    def __contains__(self, name: object) -> bool:
        return name in self._around

    def __iter__(self) -> Iterator[str]:
        return iter(self._around)

    def __len__(self) -> int:
        return len(self._around)


@dataclass(frozen=True, slots=True)
class Inside:
    """A nested graph before its nodes are imported.

    given   its own inputs     captured   what it sees around it
    """

    builder: GraphBuilder
    given: tuple[str, ...]
    captured: Captured

    def tensor(self, outside: str) -> str:
        """A tensor of the graph around, inside."""
        return as_tensor(self.captured.inside(outside), self.builder)


@dataclass(frozen=True, slots=True)
class Body:
    """A nested graph under construction.

    given     its own inputs     captured   tensors outside -> inputs
    """

    builder: GraphBuilder
    given: tuple[str, ...]
    captured: Mapping[str, str]
    results: tuple[Operand, ...]

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of its results."""
        return tuple(self.builder.type_of(as_tensor(each, self.builder)) for each in self.results)

    def finish(self, name: str, captured: Sequence[str], outer: GraphBuilder) -> Graph:
        """The graph.

        captured   the tensors outside that are its inputs behind its own, among them its own ones
        """
        inputs = [*self.given]
        for tensor in captured:
            inner = self.captured.get(tensor)
            if inner is None:
                type_ = outer.type_of(tensor)
                inner = self.builder.input(self.builder.fresh(tensor), type_.shape, type_.dtype)
            inputs.append(inner)
        results = [as_tensor(each, self.builder) for each in self.results]
        graph = self.builder.finish(results)
        return replace(graph, name=name, inputs=tuple(inputs))


def kept_branches(
    call: Call, nested: Nested, then_branch: GraphProto, else_branch: GraphProto
) -> Results:
    """A node that holds two branches."""
    then, otherwise = (nested.body(each, {}, lambda _: {}) for each in (then_branch, else_branch))
    for at, (one, other) in enumerate(zip(then.types, otherwise.types, strict=True), start=1):
        if one != other:
            raise call.unsupported(
                f"its output number {at} is {one} if the condition holds, and otherwise {other}",
                "let both branches give one element type and shape",
            )
    captured = tuple(dict.fromkeys((*then.captured, *otherwise.captured)))
    graphs = (
        then.finish("then", captured, call.builder),
        otherwise.finish("otherwise", captured, call.builder),
    )
    return call.builder.nest(BRANCH, (_single(call, call.operand(0)), *captured), graphs)


def kept_loop(call: Call, nested: Nested, body: GraphProto, count: Index | None) -> Results:
    """A node that holds the body of a loop.

    count   how often it runs at most, where that is known or a size

    Raises:  UnsupportedError where a carried value changes its type, and for rows of a number that
             has no bound.
    """
    limit = _single(call, call.operand(0)) if call.has(0) else call.as_tensor(_NO_LIMIT)
    condition = call.operand(1) if call.has(1) else np.ones((), np.bool_)
    initial = tuple(call.tensor(at) for at in range(2, len(call.operands)))
    types = (COUNT, CONDITION, *map(call.type_of, initial))
    names = [info.name for info in body.input]

    def condition_holds(_: Inside) -> Operands:
        return {names[1]: np.ones((), np.bool_)}  # or the body would not run

    made = nested.body(body, dict(zip(names, types, strict=True)), condition_holds)
    inside = replace(call, builder=made.builder)
    results = (_single(inside, made.results[0]), *made.results[1:])
    made = replace(made, results=results)
    check_carried(call, body.input[2:], types[2:], made.types[1:])
    check_rows(call, made, made.types[1 + len(initial) :])
    attributes: dict[str, AttributeValue] = {"carried": len(initial)}
    if len(results) > 1 + len(initial):
        is_true = _is_true(condition, call) and _is_true(results[0], inside)
        if count is not None and is_true:
            attributes |= {"trips": count, "counts": False}
        else:
            trips, most = _trips(call, limit, count)
            attributes |= {"trips": trips, "most": most, "counts": True}
    captured = tuple(made.captured)
    graph = made.finish("body", captured, call.builder)
    inputs = (limit, _single(call, condition), *initial, *captured)
    return call.builder.nest(LOOP, inputs, (graph,), (), **attributes)


def _trips(call: Call, limit: str, count: Index | None) -> tuple[Index, Index]:
    """The size that is the number of iterations, and what it is never above."""
    name = f"{call.stem}_trips"
    trips = call.counted.of(name, greatest_value(call.builder, limit) if count is None else count)
    if trips is None:
        raise call.unsupported(
            "it collects a row in each iteration, and nothing says how many there are at most",
            sizes_advice(
                {name: "..64"}, "say it: ", ", or let its trip count be Min(count, a constant)"
            ),
        )
    return trips


def _is_true(operand: Operand, call: Call) -> bool:
    """Whether a condition is constant, and holds."""
    constant = call.builder.constant_value(operand) if isinstance(operand, str) else operand
    return isinstance(constant, np.ndarray) and bool(constant.all())


def check_carried(
    call: Call,
    infos: Sequence[ValueInfoProto],
    before: Sequence[TensorType],
    after: Sequence[TensorType],
) -> None:
    """Refuse a carried value whose type changes from iteration to iteration."""
    for info, one, other in zip(infos, before, after, strict=False):
        if one != other:
            raise call.unsupported(
                f"what it carries in {info.name} is {one} before an iteration and {other} after it",
                "carry a tensor of the largest shape, and write each part where it belongs",
            )


def check_rows(call: Call, made: Body, rows: Sequence[TensorType]) -> None:
    """Refuse rows whose shapes differ from iteration to iteration."""
    counted = counted_sizes(made.builder.finish(()))
    for row in rows:
        sizes = named_sizes_of(*(each for each in row.shape if isinstance(each, IndexExpr)))
        if any(size.name in counted for size in sizes):
            raise call.unsupported(
                f"it collects rows of type {row}, which differ in shape: "
                "a loop inside of it decides their size",
                "collect what does not depend on how often the inner loop runs",
            )


def _single(call: Call, operand: Operand) -> str:
    """A number of one element, as a tensor without dimensions."""
    is_scalar = not call.type_of(operand).shape
    return call.as_tensor(operand) if is_scalar else call.add("reshape", operand, shape=())


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
            rows.append(within.take(source, row, axis=axis % call.rank(tensor)))
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


def _moved(call: Call, rows: str, axis: int) -> str:
    """Rows along another dimension than the first."""
    order: Sequence[int] = range(call.rank(rows))
    to = axis % len(order)
    if not to:
        return rows
    return call.add("transpose", rows, perm=(*range(1, to + 1), 0, *range(to + 1, len(order))))


def _body(call: Call, name: str) -> GraphProto:
    graph = call.attributes.get(name)
    if not isinstance(graph, GraphProto):
        raise call.unsupported(f"it has no {name}")
    return graph


def convert_if(call: Call, nested: Nested) -> Results:
    """The branch that a known condition chooses; otherwise a node that holds both."""
    _require_single(call, call.operand(0), "condition")
    chosen = call.truth(call.operand(0), "condition")
    if chosen is None:
        return kept_branches(call, nested, _body(call, "then_branch"), _body(call, "else_branch"))
    return nested.run(_body(call, "then_branch" if chosen else "else_branch"), {})


def _require_single(call: Call, operand: Operand, what: str) -> None:
    """Refuse what is not a single bool; a number that is known may be of another type."""
    type_ = call.type_of(operand)
    is_known = not isinstance(operand, str) or call.builder.constant_value(operand) is not None
    is_bool = type_.dtype is DType.BOOL or is_known
    if not is_bool or any(extent != 1 for extent in type_.shape):
        raise model_error(call.label, f"its {what} is {type_}, and must be a single bool")


def _without_rows(
    body: GraphProto, count: int, nested: Nested, given: Operands
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


def convert_loop(call: Call, nested: Nested) -> Results:
    """The iterations written out where their number is known; else a node that holds the body."""
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
    return kept_loop(call, nested, body, count)


def _count(call: Call) -> Index | None:
    """The trip count, where it is known or made of sizes."""
    if not call.has(0):
        return None
    if isinstance(call.operand(0), SizeArray):
        return call.index(0, "trip count")
    return None if call.static_value(0) is None else int(call.scalar(0, "trip count"))


def _written_out(call: Call, nested: Nested, body: GraphProto, count: int) -> Results | None:
    going = not call.has(1) or call.truth(call.operand(1), "condition")
    state = [call.operand(at) for at in range(2, len(call.operands))]
    rows: list[list[Operand]] = [[] for _ in range(len(body.output) - 1 - len(state))]
    iteration = 0

    def given() -> Operands:
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


def convert_scan(call: Call, nested: Nested) -> Results:
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
        return kept_scan(call, nested, body, held, steps)
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


CONTROL_FLOW: dict[str, Callable[[Call, Nested], Results]] = {
    "If": convert_if,
    "Loop": convert_loop,
    "Scan": convert_scan,
}
