"""Replace a node by the nodes of its function: one of the model's own, or one that the ONNX
standard defines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    ValueInfoProto,
    defs,
    helper,
    inliner,
)

from tensorwright.graph.imports.tensors import DTYPES
from tensorwright.ops import TensorType

_ONNX_DTYPES = {ours: theirs for theirs, ours in DTYPES.items()}


def is_standard(operator: str) -> bool:
    """Whether the standard knows the operator, in any version."""
    return bool(defs.has(operator))


def has_standard_function(operator: str, opset: int) -> bool:
    """Whether the standard defines the operator by a function of simpler ones."""
    try:
        schema = defs.get_schema(operator, opset, "")
    except defs.SchemaError:
        return False
    fixed: bool = schema.has_function  # type: ignore[attr-defined]
    by_context: bool = schema.has_context_dependent_function  # type: ignore[attr-defined]
    return fixed or by_context


def expand_standard(
    node: NodeProto, types: Mapping[str, TensorType], opset: int, prefix: str
) -> tuple[tuple[NodeProto, ...], int]:
    """The nodes of the standard's function body, and the operator set that they are written in.

    `types` gives the type of each input; names inside the body get the prefix.
    """
    inputs = [
        helper.make_tensor_value_info(
            name,
            _ONNX_DTYPES[types[name].dtype],
            [extent if isinstance(extent, int) else None for extent in types[name].shape],
        )
        for name in dict.fromkeys(node.input)
        if name
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    # The inliner looks for the type of inputs that are left out, too.
    nameless = [ValueInfoProto()] if "" in node.input else []
    graph = helper.make_graph(
        [_with_defaults(node, opset)], "expansion", inputs, outputs, value_info=nameless
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    inlined = inliner.inline_selected_functions(
        model, [("", node.op_type)], inline_schema_functions=True
    )
    kept = {*node.input, *node.output}
    versions = [o.version for o in inlined.opset_import if o.domain in ("", "ai.onnx")]
    return tuple(_renamed(inlined.graph.node, kept, prefix)), versions[0] if versions else opset


def _with_defaults(node: NodeProto, opset: int) -> NodeProto:
    """The node with the attributes written out that the standard gives a default."""
    complete = NodeProto()
    complete.CopyFrom(node)
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in defs.get_schema(node.op_type, opset, "").attributes.items():
        if name not in given and attribute.default_value.name:
            complete.attribute.append(attribute.default_value)
    return complete


def expand_local(function: FunctionProto, node: NodeProto, prefix: str) -> tuple[NodeProto, ...]:
    """The nodes of one of the model's functions, with the node's operands and attributes put in."""
    names = dict(zip(function.input, node.input, strict=False))
    names |= dict.fromkeys(function.input[len(node.input) :], "")
    names |= dict(zip(function.output, node.output, strict=False))
    given = {attribute.name: attribute for attribute in node.attribute}
    values = {**{a.name: a for a in function.attribute_proto}, **given}
    bound = [_bind(inner, values) for inner in function.node]
    return tuple(_renamed(bound, {""}, prefix, names))


def _bind(node: NodeProto, values: Mapping[str, AttributeProto]) -> NodeProto:
    """Replace attributes that refer to the function's own; those left out at the call vanish."""
    bound = NodeProto()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            source = values.get(attribute.ref_attr_name)
            if source is None:
                continue
            copied = bound.attribute.add()
            copied.CopyFrom(source)
            copied.name = attribute.name
        else:
            copied = bound.attribute.add()
            copied.CopyFrom(attribute)
            for graph in _subgraphs(copied):
                inner = [_bind(each, values) for each in graph.node]
                del graph.node[:]
                graph.node.extend(inner)
    return bound


def _subgraphs(attribute: AttributeProto) -> Iterator[GraphProto]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def _renamed(
    nodes: Sequence[NodeProto],
    kept: set[str],
    prefix: str,
    names: Mapping[str, str] | None = None,
) -> Iterator[NodeProto]:
    mapping = dict(names or {})

    def rename(name: str) -> str:
        if name in kept and name not in mapping:
            return name
        return mapping.setdefault(name, f"{prefix}/{name}")

    for node in nodes:
        copied = NodeProto()
        copied.CopyFrom(node)
        _rename_node(copied, rename)
        yield copied


def _rename_node(node: NodeProto, rename: Callable[[str], str]) -> None:
    """Rename operands in place, those of nested graphs, too."""
    node.input[:] = [rename(name) if name else "" for name in node.input]
    node.output[:] = [rename(name) if name else "" for name in node.output]
    for attribute in node.attribute:
        for graph in _subgraphs(attribute):
            for inner in graph.node:
                _rename_node(inner, rename)
            for info in (*graph.input, *graph.output, *graph.value_info):
                info.name = rename(info.name)
            for tensor in graph.initializer:
                tensor.name = rename(tensor.name)
