"""Nodes of an FX graph of ATen operators as nodes of a record."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.export.graph_signature import InputKind, OutputKind

from tensorwright.base import Array, DType, UnsupportedError
from tensorwright.graph.imports import aten

_IGNORED = (torch.device, torch.layout, torch.memory_format)


@dataclass
class FxNames:
    """The names of values, and the elements of what returns several; lives inside one conversion.

    elements   the values that a node of several has, by the node's name
    modules    where a node that calls a graph finds it
    """

    modules: Any = None
    elements: dict[str, tuple[str, ...]] = field(default_factory=dict)


def element_type(dtype: torch.dtype) -> aten.ElementType:
    """An element type by its name."""
    return aten.ElementType(str(dtype).removeprefix("torch."))


def meta_of(tensor: torch.Tensor) -> aten.TensorMeta:
    """The type of a tensor, whose sizes may be symbols."""
    sizes = tuple(int(n) if isinstance(n, int) else str(n) for n in tensor.shape)
    return aten.TensorMeta(element_type(tensor.dtype), sizes)


def array_of(tensor: torch.Tensor, owner: str) -> Array:
    """The elements of a tensor, which shares them where it can.

    Raises:  UnsupportedError for a subclass, and for what does not lie in memory as NumPy has it.
    """
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        raise _refused(owner, f"it is of the class {type(tensor).__name__}, no plain tensor")
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        raise _refused(owner, f"it lies on {tensor.device} as {tensor.layout}")
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype is torch.bfloat16:
        halves: Array = plain.view(torch.int16).numpy().view(DType.BF16.numpy)
        return halves
    try:
        whole: Array = plain.numpy()
    except (TypeError, RuntimeError) as error:
        raise _refused(owner, str(error)) from None
    return whole


def _refused(owner: str, reason: str) -> UnsupportedError:
    return UnsupportedError(
        stage="import",
        where=f"tensor {owner}",
        reason=reason,
        remedy="give plain tensors in the memory of the processor",
        operator="tensor",
    )


def nodes_of(nodes: Iterable[fx.Node], names: FxNames) -> tuple[aten.Node, ...]:
    """The calls of a graph; what only takes a value out of several leaves no node."""
    made = []
    for node in nodes:
        if node.op != "call_function":
            continue
        if node.target is operator.getitem and node.args[0].name in names.elements:
            continue
        made.append(_node(node, names))
    return tuple(made)


def _node(node: fx.Node, names: FxNames) -> aten.Node:
    value = node.meta.get("val")
    outputs: tuple[str, ...] = (node.name,)
    if isinstance(value, tuple | list):
        outputs = tuple(f"{node.name}.{at}" for at in range(len(value)))
        names.elements[node.name] = outputs
    return aten.Node(node.name, target_name(node.target), arguments_of(node, names), outputs)


def target_name(target: Any) -> str:
    """The name of what a node calls, as .pt2 files have it."""
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target}"
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"torch.ops.higher_order.{target.name()}"
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


def arguments_of(node: fx.Node, names: FxNames) -> tuple[tuple[str, aten.Argument], ...]:
    """The arguments by the names of the operator's schema, by position where it has none."""
    given: list[tuple[str, Any]] = [(str(at), each) for at, each in enumerate(node.args)]
    if isinstance(node.target, torch._ops.OpOverload):
        schema = node.target._schema.arguments
        given = [(named.name, each) for named, each in zip(schema, node.args, strict=False)]
    given.extend(node.kwargs.items())
    return tuple((name, argument_of(each, names)) for name, each in given)


def argument_of(given: Any, names: FxNames) -> aten.Argument:
    """An argument of a node."""
    match given:
        case fx.Node():
            return _value(given, names)
        case torch.dtype():
            return element_type(given)
        case list() | tuple():
            return tuple(argument_of(each, names) for each in given)
        case None | bool() | int() | float() | str():
            return given
        case torch.SymInt() | torch.SymFloat() | torch.SymBool():
            raise _refused("argument", f"it is the size {given} itself, no value of the graph")
    if isinstance(given, _IGNORED):
        return None
    raise _refused("argument", f"it is of the class {type(given).__name__}")


def _value(node: fx.Node, names: FxNames) -> aten.Argument:
    if node.target is operator.getitem and node.args[0].name in names.elements:
        return aten.Ref(names.elements[node.args[0].name][node.args[1]])
    if node.op == "get_attr" and names.modules is not None:
        held = getattr(names.modules, str(node.target), None)
        if isinstance(held, fx.GraphModule):
            return body_of(held)
    if node.name in names.elements:
        return tuple(aten.Ref(each) for each in names.elements[node.name])
    return aten.Ref(node.name)


def body_of(module: fx.GraphModule) -> aten.Body:
    """A graph that a node calls."""
    names = FxNames(module)
    nodes = nodes_of(module.graph.nodes, names)
    inputs = tuple(node.name for node in module.graph.nodes if node.op == "placeholder")
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    return aten.Body(inputs, nodes, flat_arguments(output.args[0], names))


def flat_arguments(given: Any, names: FxNames) -> tuple[aten.Argument, ...]:
    """The outputs of a graph, in order."""
    argument = argument_of(given, names)
    return argument if isinstance(argument, tuple) else (argument,)


def ranges_of(constraints: Mapping[Any, Any]) -> dict[str, tuple[int, int | None]]:
    """The bounds of symbols, as numbers."""
    return {
        str(symbol): (_limit(each.lower) or 0, _limit(each.upper))
        for symbol, each in constraints.items()
    }


def _limit(bound: Any) -> int | None:
    """A bound; None where there is none."""
    return int(bound) if getattr(bound, "is_Integer", False) and int(bound) < 1 << 40 else None


_HELD = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def record_of(program: torch.export.ExportedProgram) -> aten.ExportedGraph:
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
    return aten.ExportedGraph(
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


def _input(spec: Any, placeholders: dict[str, Any], values: dict[str, Any]) -> aten.Input:
    name = spec.arg.name
    node = placeholders.get(name)
    value = None if node is None else node.meta.get("val")
    if spec.kind in _HELD:
        tensor = values[spec.target]
        return aten.Input(name, meta_of(tensor), array_of(tensor, spec.target), spec.target)
    if spec.kind is not InputKind.USER_INPUT:
        raise aten.only_in_pytorch(f"input {name}", spec.kind.name.lower().replace("_", " "))
    if isinstance(value, torch.Tensor):
        return aten.Input(name, meta_of(value))
    if isinstance(value, torch.SymInt):
        return aten.Input(name, symbol=str(value))
    return aten.Input(name, constant=getattr(spec.arg, "value", None))


_BF16 = DType.BF16.numpy


def as_array(value: Any) -> Array:
    """The elements of a tensor, or a number as an array."""
    try:
        array: Array = value.numpy()
    except (AttributeError, RuntimeError, TypeError):
        if not isinstance(value, torch.Tensor):
            return np.asarray(value)
        return array_of(value, "input")
    return array


def as_tensor(array: Array) -> torch.Tensor:
    """A fresh array as a tensor."""
    if array.dtype == _BF16:
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


def overlap(tensor: torch.Tensor, others: Iterable[Any]) -> bool:
    """Whether the bytes between a tensor's first and last element meet those of another one."""
    start, end = _span(tensor)
    spans = (_span(each) for each in others if isinstance(each, torch.Tensor))
    return any(start < theirs_end and theirs < end for theirs, theirs_end in spans)


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    start = tensor.data_ptr()
    if not tensor.numel():
        return start, start
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (last + 1) * tensor.itemsize
