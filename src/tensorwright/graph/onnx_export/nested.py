"""Branches and loops as If and Loop, whose graphs see the tensors around them by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import GraphProto, helper, numpy_helper

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.nested import BRANCH, own_inputs
from tensorwright.graph.onnx_export.call import Writing, value_info
from tensorwright.graph.rename import rename_tensors

WriteNodes = Callable[[Graph, Writing], None]


def write_nested(node: Node, writing: Writing, write_nodes: WriteNodes) -> None:
    """Write a node that holds graphs.

    write_nodes   writes the nodes of a graph
    """
    own, captured = own_inputs(node)
    names = ("then_branch", "else_branch") if node.operator == BRANCH else ("body",)
    graphs = {
        name: _nested(graph, node, captured, writing, write_nodes)
        for name, graph in zip(names, node.graphs, strict=True)
    }
    operator = "If" if node.operator == BRANCH else "Loop"
    writing.nodes.append(helper.make_node(operator, own, node.outputs, **graphs))


def _nested(
    graph: Graph, node: Node, captured: Sequence[str], writing: Writing, write_nodes: WriteNodes
) -> GraphProto:
    """A graph as one that sees the captured tensors; all its names are new."""
    stem = f"{node.outputs[0]}/{graph.name}"
    inner = rename_tensors(graph, {name: writing.fresh(f"{stem}/{name}") for name in graph.types})
    body = writing.inside()
    own = inner.inputs[: len(inner.inputs) - len(captured)]
    for outside, inside in zip(captured, inner.inputs[len(own) :], strict=True):
        body.nodes.append(helper.make_node("Identity", [outside], [inside]))
    write_nodes(inner, body)
    writing.opset = max(writing.opset, body.opset)
    made = {name for each in body.nodes for name in each.output}
    outputs: list[str] = []
    for name in inner.outputs:  # each is what a node of the graph gives, and no other output
        result = name
        if name not in made or name in outputs:
            result = writing.fresh(f"{name}/result")
            body.nodes.append(helper.make_node("Identity", [name], [result]))
        outputs.append(result)
    types = [inner.types[name] for name in inner.outputs]
    return helper.make_graph(
        body.nodes,
        graph.name,
        [value_info(name, inner.types[name]) for name in own],
        [value_info(name, type_) for name, type_ in zip(outputs, types, strict=True)],
        [
            *(numpy_helper.from_array(array, name) for name, array in inner.constants.items()),
            *body.initializers,
        ],
    )
