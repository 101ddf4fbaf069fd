"""Nodes that hold graphs: a branch, which runs one of two, and a loop, which runs its body.

    y = branch(condition, *captured)                  graphs: then, otherwise
        Both graphs have the captured tensors as inputs, and results of the same types.
    end, rows = loop(count, condition, *carried, *captured)    graphs: body
        body(iteration, condition, *carried, *captured) -> condition, *carried, *collected

A loop runs its body while its condition holds, `count` times at most.  It returns the carried
values of the last iteration, and the collected rows, one for each iteration.  The number of rows is
in attribute `trips`.  Where the iterations decide that number, it is a named size with a greatest
number, which no other node decides and with which later nodes may compute.  If a number replaces
the size, the loop ends after that many iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tensorwright import base
from tensorwright.expr import IndexExpr
from tensorwright.graph.graph import Graph, Node
from tensorwright.ops import Array, Attribute, Operator, opaque_operator

BRANCH, LOOP = "branch", "loop"
CONDITION = base.TensorType(base.DType.BOOL, ())
COUNT = base.TensorType(base.DType.I64, ())
_BEFORE_CARRIED = 2


@dataclass(frozen=True, slots=True)
class LoopForm:
    """The parts of a loop.

    carried     how many values an iteration hands to the next
    collected   the types of one row each
    counted     the size that the loop decides, the number that stands for it; "" where it decides
                none
    """

    body: Graph
    carried: int
    collected: tuple[base.TensorType, ...]
    counted: str | int = ""

    @classmethod
    def of(cls, node: Node) -> LoopForm:
        """The parts of a node."""
        return _form(node.graphs, node.attribute_map)


def own_inputs(node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The inputs of a node that holds graphs: those with a role, and those that it captures."""
    if not node.graphs:
        return node.inputs, ()
    count = 1 if node.operator == BRANCH else _BEFORE_CARRIED + LoopForm.of(node).carried
    return node.inputs[:count], node.inputs[count:]


def _form(graphs: tuple[Graph, ...], attributes: base.Attributes) -> LoopForm:
    carried = attributes["carried"]
    assert isinstance(carried, int), "infer_nested checks it"
    (body,) = graphs
    rows = body.outputs[1 + carried :]
    trips = attributes.get("trips") if attributes.get("counts") else ""
    counted = trips if isinstance(trips, int) else str(trips)
    return LoopForm(body, carried, tuple(body.types[name] for name in rows), counted)


def infer_nested(
    name: str,
    types: tuple[base.TensorType, ...],
    attributes: base.Attributes,
    graphs: tuple[Graph, ...],
) -> tuple[tuple[base.TensorType, ...], dict[str, base.AttributeValue]]:
    """The output types of a node that holds graphs, and its attributes.

    Raises:  ModelError for graphs that do not fit.
    """
    try:
        complete = NESTING[name].complete(attributes)
    except ValueError as error:
        raise _fault(str(error)) from None
    if len(graphs) != (2 if name == BRANCH else 1):
        raise _fault(f"it holds {len(graphs)} graphs")
    infer = _infer_branch if name == BRANCH else _infer_loop
    return infer(types, complete, graphs), complete


def _infer_branch(
    types: tuple[base.TensorType, ...], attributes: base.Attributes, graphs: tuple[Graph, ...]
) -> tuple[base.TensorType, ...]:
    _require("condition", types[:1], (CONDITION,))
    for graph in graphs:
        _require(f"inputs of graph {graph.name}", types[1:], tuple(graph.input_types.values()))
    then, otherwise = (_outputs(graph) for graph in graphs)
    _require("results of its graphs", then, otherwise)
    return then


def _infer_loop(
    types: tuple[base.TensorType, ...], attributes: base.Attributes, graphs: tuple[Graph, ...]
) -> tuple[base.TensorType, ...]:
    if not isinstance(attributes["carried"], int) or len(types) < _BEFORE_CARRIED:
        raise _fault("attribute carried is not an integer, or inputs are missing")
    form = _form(graphs, attributes)
    carried = types[_BEFORE_CARRIED : _BEFORE_CARRIED + form.carried]
    _require("count and condition", types[:_BEFORE_CARRIED], (COUNT, CONDITION))
    given = (COUNT, CONDITION, *types[_BEFORE_CARRIED:])
    _require("inputs of its body", given, tuple(form.body.input_types.values()))
    results = _outputs(form.body)[: 1 + form.carried]
    _require("results of its body", results, (CONDITION, *carried))
    trips = attributes["trips"]
    if not form.collected:
        return carried
    if not isinstance(trips, int | IndexExpr) or (isinstance(trips, int) and trips < 0):
        raise _fault("it collects rows, and attribute trips names no size for their number")
    return (*carried, *(base.TensorType(row.dtype, (trips, *row.shape)) for row in form.collected))


def _outputs(graph: Graph) -> tuple[base.TensorType, ...]:
    return tuple(graph.types[name] for name in graph.outputs)


def _require(
    what: str, given: Sequence[base.TensorType], wanted: Sequence[base.TensorType]
) -> None:
    if tuple(given) != tuple(wanted):
        texts = (", ".join(map(str, each)) or "nothing" for each in (given, wanted))
        raise _fault("{}: {} and {} differ".format(what, *texts))


def _fault(reason: str) -> base.ModelError:
    remedy = "give its graphs inputs and results of the types that the node has"
    return base.ModelError(stage="graph", where="", reason=reason, remedy=remedy)


def _not_alone(*_: object) -> tuple[base.TensorType, ...]:
    raise base.InternalError(
        stage="graph", where="a node with graphs", reason="its graphs say what it gives"
    )


def _no_host(arrays: tuple[Array, ...], attributes: base.Attributes) -> tuple[Array, ...]:
    raise base.InternalError(
        stage="graph", where="a node with graphs", reason="steps of a plan run it, no function"
    )


def _nesting(
    name: str, inputs: tuple[str, ...], doc: str, attributes: tuple[Attribute, ...] = ()
) -> Operator:
    return opaque_operator(name, doc, inputs, attributes, _not_alone, _no_host)


NESTING: Mapping[str, Operator] = {
    BRANCH: _nesting(BRANCH, ("condition", "*captured"), "one of two graphs"),
    LOOP: _nesting(
        LOOP,
        ("count", "condition", "*carried_and_captured"),
        "a graph while a condition holds",
        (
            Attribute("carried", None, "how many values an iteration hands to the next"),
            Attribute("trips", -1, "how many rows there are, if any are kept"),
            Attribute("most", -1, "how many there may be, where the loop decides it"),
            Attribute("counts", default=False, doc="whether the loop decides the size in trips"),
        ),
    ),
}


def require_alone(graph: Graph, stage: str) -> Graph:
    """The graph itself, for a stage that takes no nodes which hold graphs."""
    for node in graph.nodes:
        if node.graphs:
            raise base.UnsupportedError(
                stage=stage,
                where=node.label,
                reason="it holds graphs, and no rule says what another graph does with them",
                remedy="compile and tune the model as it is, or fix the branch or the number of "
                "iterations in the model",
                operator=node.operator,
            )
    return graph


def map_nested(graph: Graph, stage: Callable[[Graph], Graph]) -> Graph:
    """The graph with a stage applied to the graphs that its nodes hold."""
    if not any(node.graphs for node in graph.nodes):
        return graph
    nodes = tuple(
        replace(node, graphs=tuple(map(stage, node.graphs))) if node.graphs else node
        for node in graph.nodes
    )
    return replace(graph, nodes=nodes)


def simplify_nested(graph: Graph, simplify: Callable[[Graph], Graph]) -> Graph:
    """The graph with simplified graphs in its nodes.

    Rewrite:  branch(c, w, x) of constant w    ->    branch(c, x), whose graphs hold w
    So nodes of a nested graph that depend on constants only are folded.  A tensor that no graph of
    a node reads is no longer an input of the node.
    """
    if not any(node.graphs for node in graph.nodes):
        return graph
    nodes = tuple(_hold_constants(graph, node) for node in graph.nodes)
    held = map_nested(replace(graph, nodes=nodes), simplify)
    nodes = tuple(_drop_unread(node) for node in held.nodes)
    return replace(held, nodes=nodes)


def _hold_constants(graph: Graph, node: Node) -> Node:
    """The node with captured constants inside of its graphs."""
    own, captured = own_inputs(node)
    arrays = [graph.constants.get(name) for name in captured]

    def held(nested: Graph) -> Graph:
        first = len(nested.inputs) - len(captured)
        pairs = zip(nested.inputs[first:], arrays, strict=True)
        constants = {name: array for name, array in pairs if array is not None}
        inputs = tuple(name for name in nested.inputs if name not in constants)
        return replace(
            nested, inputs=inputs, constants=MappingProxyType({**nested.constants, **constants})
        )

    left = (name for name, array in zip(captured, arrays, strict=True) if array is None)
    return replace(node, inputs=(*own, *left), graphs=tuple(map(held, node.graphs)))


def _drop_unread(node: Node) -> Node:
    """The node without captured tensors that none of its graphs reads."""
    own, captured = own_inputs(node)
    is_read = [False] * len(captured)
    for nested in node.graphs:
        names = {*nested.outputs, *(name for inner in nested.nodes for name in inner.inputs)}
        for at, name in enumerate(nested.inputs[len(nested.inputs) - len(captured) :]):
            is_read[at] |= name in names
    if all(is_read):
        return node

    def without(nested: Graph) -> Graph:
        first = len(nested.inputs) - len(captured)
        inputs = (*nested.inputs[:first], *_chosen(nested.inputs[first:], is_read))
        gone = set(nested.inputs).difference(inputs)
        types = {name: type_ for name, type_ in nested.types.items() if name not in gone}
        return replace(nested, inputs=inputs, types=MappingProxyType(types))

    inputs = (*own, *_chosen(captured, is_read))
    return replace(node, inputs=inputs, graphs=tuple(map(without, node.graphs)))


def _chosen(names: Sequence[str], are_chosen: Sequence[bool]) -> tuple[str, ...]:
    return tuple(name for name, is_chosen in zip(names, are_chosen, strict=True) if is_chosen)
