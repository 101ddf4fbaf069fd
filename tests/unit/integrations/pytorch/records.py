"""Functions of tensors as records of exported graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tensorwright.graph.imports.aten import ExportedGraph, Input
from tensorwright.integrations.pytorch.fx_record import (
    FxNames,
    flat_arguments,
    meta_of,
    nodes_of,
)


def record_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> ExportedGraph:
    """The trace of a function; all its tensors are inputs."""
    with torch.no_grad():
        traced = make_fx(
            function, pre_dispatch=True, tracing_mode="fake", _allow_non_fake_inputs=True
        )(*arguments)
    names = FxNames(traced)
    inputs = []
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            inputs.append(Input(node.name, meta_of(node.meta["val"])))
        elif node.op == "get_attr":
            held = getattr(traced, node.target)
            held = held if getattr(held, "constant", None) is None else held.constant
            inputs.append(Input(node.name, meta_of(held), held.detach().numpy(), node.name))
    nodes = nodes_of(traced.graph.nodes, names)
    (output,) = (node for node in traced.graph.nodes if node.op == "output")
    results = flat_arguments(torch.utils._pytree.tree_leaves(output.args[0]), names)
    return ExportedGraph("traced", tuple(inputs), nodes, results, {})
