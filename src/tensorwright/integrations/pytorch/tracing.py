"""What Dynamo hands to a backend, as a graph of ATen operators.

Operators stay as large as the module says them (linear, layer_norm, attention): tracing stops
before PyTorch takes them apart.  It runs on fake tensors: 0.1 s for each hundred nodes.
"""

from __future__ import annotations

from collections.abc import Callable
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
    return _traced(fx.Interpreter(module).run, fakes, pre_dispatch=True)


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
