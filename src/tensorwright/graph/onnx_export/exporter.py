"""Write a graph as an ONNX model of standard operators."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto, helper, numpy_helper

from tensorwright.base import InternalError, output_error, write_atomically
from tensorwright.graph.graph import Graph, Node, rename_tensors
from tensorwright.graph.imports.open_dimensions import SIZES_PROPERTY
from tensorwright.graph.nested import BRANCH, own_inputs
from tensorwright.graph.onnx_export.call import (
    ONNX_DTYPES,
    ExportCall,
    ExportRule,
    Writing,
    not_in_onnx,
    value_info,
)
from tensorwright.graph.onnx_export.elementwise import ELEMENTWISE, MOVEMENT, WINDOWS
from tensorwright.graph.sizes import require_uncounted

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


RULES: dict[str, ExportRule] = dict((*ELEMENTWISE, *WINDOWS, *MOVEMENT))
BASE_OPSET = 18
_IR_VERSION = 10  # the first with metadata on nodes; readers of operator set 18 to 24 know it
_SMALL_BYTES = 1 << 12
_EXTERNAL_FROM_BYTES = 1 << 30


def to_onnx(graph: Graph) -> ModelProto:
    """The graph as an ONNX model, checked; layouts are left out, they are not part of the meaning.

    The operator set is the oldest from 18 on that has all operators; tensors keep their names.
    Named sizes are names of dimensions, and their bounds a property of the model, which our import
    reads.
    Raises:  UnsupportedError for an operator that ONNX cannot express, and for sizes that loops
    decide;
             InternalError if the model does not check.
    """
    require_uncounted(graph, "export")
    writing = Writing.of(graph, BASE_OPSET)
    _write_nodes(graph, writing)
    held = [numpy_helper.from_array(array, name) for name, array in graph.constants.items()]
    body = helper.make_graph(
        [*writing.sizes.nodes, *writing.nodes],
        graph.name,
        [value_info(name, type_) for name, type_ in graph.input_types.items()],
        [value_info(name, type_) for name, type_ in graph.output_types.items()],
        [*held, *writing.sizes.initializers, *writing.initializers],
    )
    return _checked(body, writing.opset, graph)


def _write_nodes(graph: Graph, writing: Writing) -> None:
    """Write the nodes of a graph.  Raises: UnsupportedError for one that ONNX cannot express."""
    for node in graph.nodes:
        if node.graphs:
            write_nested(node, writing, _write_nodes)
            continue
        rule = RULES.get(node.operator)
        if rule is None:
            raise not_in_onnx(node, "ONNX has no such operator")
        rule(ExportCall(node, graph.types, writing))


def _checked(body: GraphProto, oldest: int, graph: Graph) -> ModelProto:
    """The model in the oldest operator set whose operators accept these element types."""
    bounds = {size.name: str(size.bounds) for size in graph.sizes}
    for version in range(oldest, onnx.defs.onnx_opset_version() + 1):
        model = helper.make_model(
            body,
            producer_name="tensorwright",
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid("", version)],
        )
        if bounds:
            helper.set_model_props(model, {SIZES_PROPERTY: json.dumps(bounds)})
        refusal = _refusal(model, graph)
        if not refusal:
            return model
    raise InternalError(
        stage="export", where=f"graph {graph.name}", reason=f"onnx refuses it: {refusal}"
    )


def _without_weights(model: ModelProto) -> ModelProto:
    """The model with its large initialisers as inputs: what the checker needs."""
    small = [t for t in model.graph.initializer if len(t.raw_data) <= _SMALL_BYTES]
    large = [t for t in model.graph.initializer if len(t.raw_data) > _SMALL_BYTES]
    inputs = [helper.make_tensor_value_info(t.name, t.data_type, tuple(t.dims)) for t in large]
    graph = helper.make_graph(
        model.graph.node,
        model.graph.name,
        [*model.graph.input, *inputs],
        model.graph.output,
        small,
    )
    return helper.make_model(graph, ir_version=model.ir_version, opset_imports=model.opset_import)


def _refusal(model: ModelProto, graph: Graph) -> str:
    """The objection of onnx's checker or shape inference, whose types must be ours; "" for none."""
    light = _without_weights(model)
    try:
        onnx.checker.check_model(light)
        inferred = onnx.shape_inference.infer_shapes(light, check_type=True, strict_mode=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    for info in inferred.graph.value_info:
        type_ = graph.types.get(info.name)
        tensor = info.type.tensor_type
        shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)
        if type_ is None or None in shape or not tensor.HasField("shape"):
            continue
        if shape != type_.shape or tensor.elem_type != ONNX_DTYPES[type_.dtype]:
            return f"it infers shape {shape} for {info.name}, not {type_}"
    return ""


def save_onnx(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write `to_onnx(graph)`.  Raises: as `to_onnx` and `save_proto`."""
    save_proto(to_onnx(graph), path)


def save_proto(model: ModelProto, path: str | os.PathLike[str]) -> None:
    """Write a model; above 1 GiB the weights go to a file beside it, with the suffix .data.

    Raises:  OutputError if a file cannot be written.
    """
    target = Path(path)
    size = sum(len(each.raw_data) for each in model.graph.initializer)
    if size < _EXTERNAL_FROM_BYTES:
        write_atomically(target, model.SerializeToString())
        return
    beside = f"{target.name}.data"
    try:
        (target.parent / beside).unlink(missing_ok=True)  # onnx appends to what is there
        onnx.save_model(
            model, target, save_as_external_data=True, location=beside, size_threshold=_SMALL_BYTES
        )
    except OSError as error:
        raise output_error(target, error) from error
