"""What Dynamo hands to a backend, as a graph of ATen operators.

Operators stay as large as the module says them (linear, layer_norm, attention): tracing stops
before PyTorch takes them apart.  It runs on fake tensors: 0.1 s for each hundred nodes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
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
