"""Networks in halves (f16, bf16), computed in f32: no back end has code that adds halves."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.nested import map_nested

_HALVES = (DType.F16, DType.BF16)
_KEEPS_BITS = "bitcast"


def compute_float16_as_float32(graph: Graph) -> Graph:
    """The network with every half an f32; only its inputs and outputs stay as they are.

    Results are rounded once, at the end, not after each operator. A network that looks at the bits
    of halves stays as it is.
    """
    graph = map_nested(graph, compute_float16_as_float32)
    kinds = {type_.dtype for type_ in graph.types.values()}
    if kinds.isdisjoint(_HALVES) or any(node.operator == _KEEPS_BITS for node in graph.nodes):
        return graph
    halves = {name for name, type_ in graph.types.items() if type_.dtype in _HALVES}
    given = [name for name in graph.inputs if name in halves]
    asked = [n for n in dict.fromkeys(graph.outputs) if n in halves and n not in given]
    ends = {*given, *asked}  # these keep their names and types
    names = {name: f"{name}.f32" if name in ends else name for name in graph.types}
    builder = GraphBuilder(graph.name)
    for name in graph.inputs:
        builder.input(name, graph.types[name].shape, graph.types[name].dtype)
    for name in given:
        names[name] = builder.add("cast", name, output=names[name], to=DType.F32)
    for name, array in graph.constants.items():
        wide = array.astype(DType.F32.numpy) if name in halves else array
        names[name] = builder.constant(wide, names[name])
    for node in graph.nodes:
        wishes = tuple(names[name] for name in node.outputs)
        inputs = [names[name] for name in node.inputs]
        if node.graphs:
            _keep_nested(builder, graph, node, names)
            continue
        attributes = {k: DType.F32 if v in _HALVES else v for k, v in node.attributes}
        made = builder.apply(node.operator, inputs, wishes, **attributes)
        names.update(zip(node.outputs, made, strict=True))
    for name in asked:
        builder.add("cast", names[name], output=name, to=graph.types[name].dtype)
    return builder.finish([name if name in ends else names[name] for name in graph.outputs])


def _keep_nested(builder: GraphBuilder, graph: Graph, node: Node, names: dict[str, str]) -> None:
    """A node whose graphs read and give halves, between casts."""
    inputs = [
        builder.add("cast", names[name], to=graph.types[name].dtype)
        if graph.types[name].dtype in _HALVES
        else names[name]
        for name in node.inputs
    ]
    halves = [graph.types[name].dtype in _HALVES for name in node.outputs]
    wishes = [
        f"{names[name]}.half" if is_half else names[name]
        for name, is_half in zip(node.outputs, halves, strict=True)
    ]
    made = builder.nest(node.operator, inputs, node.graphs, wishes, **node.attribute_map)
    for name, given, is_half in zip(node.outputs, made, halves, strict=True):
        wide = builder.add("cast", given, output=names[name], to=DType.F32) if is_half else given
        names[name] = wide
