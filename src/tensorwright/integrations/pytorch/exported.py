"""An ExportedProgram of torch.export as a record of its graph."""

from __future__ import annotations

from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind

from tensorwright.graph.aten_import import ExportedGraph, Input, only_in_pytorch
from tensorwright.integrations.pytorch.fx_record import (
    FxNames,
    array_of,
    flat_arguments,
    meta_of,
    nodes_of,
    ranges_of,
)

_HELD = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def record_of(program: torch.export.ExportedProgram) -> ExportedGraph:
    """The record of a program, decomposed or not; it shares the values of its parameters.

    Raises:  UnsupportedError for tensors that are not plain ones in the memory of the processor.
    """
    signature, graph = program.graph_signature, program.graph
    placeholders = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    values = {**program.constants, **program.state_dict}
    inputs = tuple(_input(spec, placeholders, values) for spec in signature.input_specs)
    names = FxNames(program.graph_module)
    nodes = nodes_of(graph.nodes, names)
    (output,) = (node for node in graph.nodes if node.op == "output")
    results = flat_arguments(output.args[0], names)
    kinds = [spec.kind for spec in signature.output_specs]
    changed = [
        f"{spec.kind.name.removesuffix('_MUTATION').replace('_', ' ').lower()} {spec.target}"
        for spec in signature.output_specs
        if spec.kind.name.endswith("_MUTATION")
    ]
    return ExportedGraph(
        name="graph",
        inputs=inputs,
        nodes=nodes,
        outputs=tuple(
            each
            for each, kind in zip(results, kinds, strict=True)
            if kind is OutputKind.USER_OUTPUT
        ),
        ranges=ranges_of(program.range_constraints),
        changed=tuple(changed),
    )


def _input(spec: Any, placeholders: dict[str, Any], values: dict[str, Any]) -> Input:
    name = spec.arg.name
    node = placeholders.get(name)
    value = None if node is None else node.meta.get("val")
    if spec.kind in _HELD:
        tensor = values[spec.target]
        return Input(name, meta_of(tensor), array_of(tensor, spec.target), spec.target)
    if spec.kind is not InputKind.USER_INPUT:
        raise only_in_pytorch(f"input {name}", spec.kind.name.lower().replace("_", " "))
    if isinstance(value, torch.Tensor):
        return Input(name, meta_of(value))
    if isinstance(value, torch.SymInt):
        return Input(name, symbol=str(value))
    return Input(name, constant=getattr(spec.arg, "value", None))
