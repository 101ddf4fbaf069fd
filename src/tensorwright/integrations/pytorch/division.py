"""Which nodes of a graph are compiled, and which PyTorch runs.

PyTorch runs what we have no operator for, and views that leave the graph: a result that shares
elements with an input or with another result must do so afterwards, too.  Nodes of one kind that
need no node of the other kind in between are one part.

What Dynamo hands to a backend, as a graph of ATen operators.

Operators stay as large as the module says them (linear, layer_norm, attention): tracing stops
before PyTorch takes them apart.  It runs on fake tensors: 0.1 s for each hundred nodes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensor
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx


class UntraceableError(Exception):
    """PyTorch cannot trace a graph on fake tensors."""


def placeholders(graph: fx.Graph) -> tuple[fx.Node, ...]:
    """The inputs of a graph."""
    return tuple(node for node in graph.nodes if node.op == "placeholder")


def aten_graph(module: fx.GraphModule) -> fx.GraphModule:
    """A graph of ATen operators that computes what Dynamo's does, with the type of each value in
    `meta["val"]`; operators may write into their operands.
    """
    fakes = [node.meta["example_value"] for node in placeholders(module.graph)]
    return _traced(fx.Interpreter(_without_transforms(module)).run, fakes, pre_dispatch=True)


def _without_transforms(module: fx.GraphModule) -> fx.GraphModule:
    """A graph in which vmap and the other transforms of torch.func are carried out.

    Their nodes open and close a level, and the tensors between them are wrappers, of which a trace
    of large operators would keep the shapes of one element. What lies between becomes a graph of
    its own, traced after PyTorch took the wrappers away.
    """
    graph, values, depth = fx.Graph(), dict[fx.Node, fx.Node](), 0
    inner: list[fx.Node] = []
    for node in module.graph.nodes:
        name = getattr(node.target, "__name__", "")
        depth += name.endswith("_increment_nesting")
        if not depth:
            values[node] = graph.node_copy(node, values.__getitem__)
            continue
        inner.append(node)
        depth -= name.endswith("_decrement_nesting")
        if not depth:
            values.update(_carried_out(module, inner, graph, values))
            inner = []
    return fx.GraphModule(module, graph)


def _carried_out(
    module: fx.GraphModule,
    nodes: Sequence[fx.Node],
    graph: fx.Graph,
    values: Mapping[fx.Node, fx.Node],
) -> dict[fx.Node, fx.Node]:
    """What nodes of a module compute, appended to a graph as one call of a traced graph."""
    own = set(nodes)
    inputs = list(dict.fromkeys(e for node in nodes for e in node.all_input_nodes if e not in own))
    outputs = [node for node in nodes if any(user not in own for user in node.users)]
    part = fx.Graph()
    inside = {each: part.placeholder(each.name) for each in inputs}
    for node in nodes:
        inside[node] = part.node_copy(node, inside.__getitem__)
    part.output(tuple(inside[each] for each in outputs))
    fakes = [each.meta["example_value"] for each in inputs]
    traced = _traced(fx.Interpreter(fx.GraphModule(module, part)).run, fakes, pre_dispatch=False)
    name = f"transformed_by_{nodes[0].name}"
    module.add_module(name, traced)
    results = graph.call_module(name, tuple(values[each] for each in inputs))
    return {
        each: graph.call_function(operator.getitem, (results, at))
        for at, each in enumerate(outputs)
    }


def functional_graph(module: fx.GraphModule) -> fx.GraphModule:
    """The same graph with operators that write into nothing but the graph's inputs, at its end."""
    fakes = [node.meta["val"] for node in placeholders(module.graph)]
    interpreter = fx.Interpreter(module)
    return _traced(functionalize(interpreter.run), fakes, pre_dispatch=False)


def _traced(run: Callable[..., Any], fakes: list[Any], *, pre_dispatch: bool) -> fx.GraphModule:
    modes = [each.fake_mode for each in fakes if isinstance(each, FakeTensor)]

    def flat(*arguments: Any) -> Any:
        return run(*arguments)

    with torch.no_grad(), enable_python_dispatcher(), modes[0] if modes else nullcontext():
        try:
            traced: fx.GraphModule = make_fx(flat, pre_dispatch=pre_dispatch)(*fakes)
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise UntraceableError(f"{type(error).__name__}: {str(error)[:300]}") from error
    for node in traced.graph.find_nodes(op="get_attr"):
        held = getattr(traced, node.target)
        if isinstance(held, FakeTensor) and held.constant is None:
            raise UntraceableError(f"it reads {node.target}, which has no values")
    return traced


def is_size(node: fx.Node) -> bool:
    """Whether a value is a number, known or symbolic, and no tensor."""
    value = node.meta.get("val")
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | int | float | bool)


def writes(node: fx.Node) -> bool:
    """Whether an operator changes what it is given."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and bool(schema.is_mutable)


def storages(node: fx.Node) -> frozenset[int]:
    """What holds the elements of a value: views have the storage of what they are taken of."""
    value = node.meta.get("val")
    values = value if isinstance(value, tuple | list) else (value,)
    return frozenset(
        each.untyped_storage()._cdata for each in values if isinstance(each, torch.Tensor)
    )


@dataclass(frozen=True, slots=True)
class PartNodes:
    """Nodes that are compiled together, what they read and what others read of them."""

    nodes: tuple[fx.Node, ...]
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]


def results_of(graph: fx.Graph) -> tuple[Any, ...]:
    """What the graph returns: nodes, and what is not a value of it."""
    (output,) = (node for node in graph.nodes if node.op == "output")
    given = output.args[0]
    return tuple(given) if isinstance(given, tuple | list) else (given,)


def shared_results(graph: fx.Graph) -> frozenset[fx.Node]:
    """The views by which results share elements with inputs, or with other results."""
    results = [each for each in results_of(graph) if isinstance(each, fx.Node)]
    of_inputs = frozenset().union(*map(storages, placeholders(graph)))
    owners = _owners(graph)
    counts: dict[int, int] = {}
    for each in dict.fromkeys(results):
        for storage in storages(each):
            counts[storage] = counts.get(storage, 0) + 1
    views: set[fx.Node] = set()
    for result in results:
        node = result
        shared = {each for each in storages(node) if each in of_inputs or counts[each] > 1}
        while shared & storages(node) and node.op != "placeholder" and node not in owners:
            views.add(node)
            node = next((each for each in node.all_input_nodes if shared & storages(each)), node)
            if node in views:
                break
    return frozenset(views)


def returns_what_it_writes(graph: fx.Graph) -> bool:
    """Whether a result shares elements with an input that the graph writes into."""
    of_inputs = frozenset().union(*map(storages, placeholders(graph)))
    written = frozenset().union(*(storages(node) for node in graph.nodes if writes(node)))
    results = (each for each in results_of(graph) if isinstance(each, fx.Node))
    return any(storages(each) & of_inputs & written for each in results)


def _owners(graph: fx.Graph) -> frozenset[fx.Node]:
    """The first node of each storage: it makes the elements, others see them."""
    seen: set[int] = set()
    owners = []
    for node in graph.nodes:
        new = storages(node) - seen
        if new:
            owners.append(node)
            seen |= new
    return frozenset(owners)


class Kind(Enum):
    """Who computes a value."""

    COMPILED = "an executable"
    TORCH = "PyTorch"
    SIZE = "whoever needs it: it follows from the shapes of the inputs"


def kind_of(node: fx.Node, in_torch: frozenset[fx.Node], symbols: frozenset[str]) -> Kind:
    """Who computes a value; `symbols` are those that shapes of inputs decide."""
    if is_size(node):
        return Kind.SIZE if follows_from(node, symbols) else Kind.TORCH
    return Kind.TORCH if node in in_torch or node.op != "call_function" else Kind.COMPILED


def follows_from(node: fx.Node, symbols: frozenset[str]) -> bool:
    """Whether a number is known, or an expression of these symbols."""
    value = node.meta["val"]
    if isinstance(value, int | float):
        return True
    return isinstance(value, torch.SymInt) and symbols >= set(
        map(str, value.node.expr.free_symbols)
    )


def divide(
    graph: fx.Graph, in_torch: frozenset[fx.Node], symbols: frozenset[str]
) -> tuple[PartNodes, ...]:
    """The parts that are compiled, in an order in which they can run.

    Requires: no operator writes into its operands.
    """
    levels = levels_of(graph, in_torch, symbols)
    by_level: dict[int, list[fx.Node]] = {}
    for node, level in levels.items():
        if level % 2 == 0:
            by_level.setdefault(level, []).append(node)
    return tuple(_part(tuple(by_level[level])) for level in sorted(by_level))


def levels_of(
    graph: fx.Graph, in_torch: frozenset[fx.Node], symbols: frozenset[str]
) -> dict[fx.Node, int]:
    """A number for each node, even if compiled; nodes run in their order, equal ones together."""
    levels: dict[fx.Node, int] = {}
    kinds: dict[fx.Node, Kind] = {}
    for node in graph.nodes:
        if node.op == "output":
            continue
        kind = kind_of(node, in_torch, symbols)
        if node.target is operator.getitem and node.args[0] in kinds:
            kind = kinds[node.args[0]]
        kinds[node] = kind
        parity = int(kind is not Kind.COMPILED)
        read = [
            each
            for each in node.all_input_nodes
            if kind is not Kind.COMPILED or kinds[each] is not Kind.SIZE
        ]
        before = levels.values() if writes(node) else [levels[each] for each in read]
        level = max(before, default=parity and -1)  # a write waits for all that stands before it
        levels[node] = level + (level % 2 != parity)
    return levels


def _part(nodes: tuple[fx.Node, ...]) -> PartNodes:
    own = set(nodes)
    read = dict.fromkeys(each for node in nodes for each in node.all_input_nodes)
    inputs = tuple(each for each in read if each not in own)
    outputs = tuple(
        node
        for node in nodes
        if not isinstance(node.meta.get("val"), tuple | list)
        and any(user not in own for user in node.users)
    )
    return PartNodes(nodes, inputs, outputs)


class _Compiled(torch.nn.Module):  # type: ignore[misc]  # the types of PyTorch are not read
    """A compiled part as graphs call one."""

    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = call


def joined(
    module: fx.GraphModule,
    levels: Mapping[fx.Node, int],
    parts: Sequence[PartNodes],
    compiled: Sequence[Callable[..., Any]],
) -> fx.GraphModule:
    """A graph that calls the compiled parts, and PyTorch for the other nodes.

    A part gets the tensors that it reads, and numbers that do not follow from their shapes.
    """
    graph = fx.Graph()
    values: dict[fx.Node, fx.Node] = {}
    calls = {
        levels[part.nodes[0]]: (part, each) for part, each in zip(parts, compiled, strict=True)
    }
    order = {node: at for at, node in enumerate(module.graph.nodes)}
    for node in placeholders(module.graph):
        values[node] = graph.node_copy(node)
    others = [node for node in levels if node.op != "placeholder" and levels[node] % 2]
    steps: list[tuple[int, int, fx.Node | None]] = [
        *((levels[node], order[node], node) for node in others),
        *((level, -1, None) for level in calls),
    ]
    for level, _, node in sorted(steps, key=operator.itemgetter(0, 1)):
        if node is not None:
            values[node] = graph.node_copy(node, values.__getitem__)
            continue
        part, call = calls[level]
        arguments = tuple(values.get(each) for each in part.inputs)
        name = f"part_{level}"
        module.add_module(name, _Compiled(call))
        results = graph.call_module(name, arguments)
        for at, output in enumerate(part.outputs):
            values[output] = graph.call_function(operator.getitem, (results, at))
    graph.output(fx.map_arg(results_of(module.graph), values.__getitem__))
    return fx.GraphModule(module, graph)
