"""The reference interpreter: a graph's meaning, computed without the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tensorwright.base import DType, InputError, InternalError
from tensorwright.expr import evaluate, placeholder
from tensorwright.graph import sizes
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.nested import BRANCH, LoopForm
from tensorwright.ops import Array, TensorType

NodeHook = Callable[[Node, tuple[Array, ...], tuple[Array, ...]], None]


def run_node(node: Node, arguments: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs of one node, through its meaning or its host function."""
    if node.graphs:
        return _run_nested(node, arguments)
    operator = operator_of(node)
    if operator.meaning is None:
        if operator.host is None:
            raise InternalError(
                stage="interpret", where=node.label, reason="it has neither meaning nor host"
            )
        return tuple(operator.host(tuple(arguments), node.attribute_map))
    tensors = tuple(
        placeholder(f"in{position}", array.shape, DType.from_numpy(array.dtype))
        for position, array in enumerate(arguments)
    )
    outputs = operator.meaning(tensors, node.attribute_map)
    return evaluate(outputs, dict(zip(tensors, arguments, strict=True)))


def _run_nested(node: Node, arguments: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs of a node that holds graphs."""
    if node.operator == BRANCH:
        taken = node.graphs[0 if arguments[0].item() else 1]
        return _results(taken, arguments[1:])
    form = LoopForm.of(node)
    count, going = int(arguments[0].item()), bool(arguments[1].item())
    count = min(count, form.counted) if isinstance(form.counted, int) else count
    carried = list(arguments[2 : 2 + form.carried])
    rows: list[list[Array]] = [[] for _ in form.collected]
    iteration = 0
    while going and iteration < count:
        given = (np.asarray(iteration, np.int64), np.asarray(going))
        results = _results(form.body, (*given, *carried, *arguments[2 + form.carried :]))
        going = bool(results[0].item())
        carried = list(results[1 : 1 + form.carried])
        for row, value in zip(rows, results[1 + form.carried :], strict=True):
            row.append(value)
        iteration += 1
    return (
        *carried,
        *(
            np.stack(row) if row else np.zeros((0, *type_.extents), type_.dtype.numpy)
            for row, type_ in zip(rows, form.collected, strict=True)
        ),
    )


def _results(graph: Graph, arguments: Sequence[Array]) -> tuple[Array, ...]:
    values = interpret(graph, dict(zip(graph.inputs, arguments, strict=True)))
    return tuple(values[name] for name in graph.outputs)


def check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs as arrays of the declared types, in calling order.

    Raises:  InputError for a name, shape or dtype that the graph does not declare.
    """
    expected = graph.input_types
    remedy = "give " + ", ".join(f"{name}: {type_}" for name, type_ in expected.items())
    for name in inputs:
        if name not in expected:
            raise InputError(
                stage="run", where=f"input {name}", reason="there is no such input", remedy=remedy
            )
    checked = {}
    for name, type_ in expected.items():
        if name not in inputs:
            raise InputError(
                stage="run", where=f"input {name}", reason="it is not given", remedy=remedy
            )
        array = np.asarray(inputs[name])
        actual = TensorType(DType.from_numpy(array.dtype), array.shape)
        if actual != type_:
            reason = f"it must be {type_}, not {actual}"
            raise InputError(stage="run", where=f"input {name}", reason=reason, remedy=remedy)
        checked[name] = array
    return checked


def with_sizes_of_inputs(graph: Graph, inputs: Mapping[str, Array]) -> Graph:
    """The graph with numbers for named sizes, read off the shapes of arrays for its inputs.

    Raises:  InputError for shapes that no sizes give; UnsupportedError for a size in no shape.
    """
    if not graph.sizes:
        return graph
    given = {name: type_ for name, type_ in graph.input_types.items() if name in inputs}
    told = sizes.sizes_of_shapes(given, {name: np.shape(inputs[name]) for name in given})
    bound = sizes.bind_sizes(graph, told)
    check_inputs(bound, inputs)
    counted = sizes.counted_sizes(bound)
    if any(size.name not in counted for size in bound.sizes):
        sizes.require_numbers(bound, "interpret")
    return bound


def last_uses(graph: Graph) -> tuple[tuple[str, ...], ...]:
    """For each node, the tensors that no later node needs; graph outputs stay."""
    kept = set(graph.outputs)
    dying: list[tuple[str, ...]] = []
    for node in reversed(graph.nodes):
        names = dict.fromkeys((*node.inputs, *node.outputs))
        fresh = tuple(name for name in names if name not in kept)
        kept.update(fresh)
        dying.append(fresh)
    return tuple(reversed(dying))


def interpret(
    graph: Graph, inputs: Mapping[str, Array], hook: NodeHook | None = None
) -> dict[str, Array]:
    """Run a graph on arrays; values are freed after their last use.

    `hook` is called after each node with its arguments and results.
    Named sizes are those of the inputs' shapes.
    Raises:  InputError for inputs that do not fit; UnsupportedError for a size that no input tells;
             InternalError if a node gives other types than its shape rule.
    """
    graph = with_sizes_of_inputs(graph, inputs)
    values: dict[str, Array] = {**graph.constants, **check_inputs(graph, inputs)}
    for position, dying in enumerate(last_uses(graph)):
        node = graph.nodes[position]
        arguments = tuple(values[name] for name in node.inputs)
        results = run_node(node, arguments)
        size = sizes.counted_size_of(node)
        if size is not None:  # from here on it is a number
            graph = sizes.bind_sizes(
                graph, {size.name: sizes.decided_number(node, graph.types, results)}
            )
        for name, array in zip(node.outputs, results, strict=True):
            actual = TensorType(DType.from_numpy(array.dtype), array.shape)
            if actual != graph.types[name]:
                reason = f"{name} came out as {actual}, not {graph.types[name]}"
                raise InternalError(stage="interpret", where=node.label, reason=reason)
            values[name] = array
        if hook is not None:
            hook(node, arguments, results)
        for name in dying:
            del values[name]
    return {name: values[name] for name in graph.outputs}


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Normal numbers for floating inputs, False and True for booleans, integers from 0 on.

    Named sizes are the usual ones: 1 for a batch.
    Integers that are positions in a table are below its number of rows, others below 2.
    """
    values = sizes.representative(graph.sizes) | sizes.usual_sizes(
        graph.sizes, graph.input_types.values()
    )
    graph = sizes.bind_sizes(graph, values) if values else graph
    generator = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for name, type_ in graph.input_types.items():
        if type_.dtype.is_float:
            drawn: Array = generator.standard_normal(type_.extents, np.float32)
        else:
            drawn = generator.integers(0, _rows(graph, name), type_.extents)
        arrays[name] = drawn.astype(type_.dtype.numpy)
    return arrays


def _rows(graph: Graph, name: str) -> int:
    """How many rows the smallest table has that an input gives positions in; 2 if none."""
    rows = [
        graph.types[node.inputs[0]].extents[node.integer("axis")]
        for node in graph.nodes
        if node.operator == "gather" and node.inputs[1] == name
    ]
    return max(1, min(rows, default=2))
