"""Models made ready for a check: random inputs, and the tensor before the last softmax shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, ValueInfoProto

from tensorwright.base import DType
from tensorwright.graph import Graph
from tensorwright.ops import Array

_SOFTMAX = ("Softmax", "LogSoftmax")
_MOVING = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose", "Dropout")
_INDEXED = {"gather": 0, "gather_elements": 0, "gather_nd": 0, "embedding": 0}


@dataclass(frozen=True, slots=True)
class Shown:
    """A model with a further output: `name` is the tensor before the last softmax."""

    model: ModelProto
    name: str


def show_logits(model: ModelProto) -> Shown | None:
    """A copy whose further output is what the softmax that makes an output reads; None without one.

    Behind a softmax, errors are hidden: it maps large differences of small scores to nothing.
    """
    makers = {name: node for node in model.graph.node for name in node.output}
    outputs = {output.name for output in model.graph.output}
    for output in model.graph.output:
        node = makers.get(output.name)
        while node is not None and node.op_type in _MOVING:
            node = makers.get(node.input[0])
        if node is None or node.op_type not in _SOFTMAX or node.input[0] in outputs:
            continue
        if node.input[0] not in makers:
            continue
        shown = ModelProto()
        shown.CopyFrom(model)
        shown.graph.output.append(ValueInfoProto(name=node.input[0], type=output.type))
        shown.graph.output[-1].type.tensor_type.ClearField("shape")
        return Shown(shown, node.input[0])
    return None


def random_inputs(graph: Graph, seed: int) -> dict[str, Array]:
    """Arrays for all inputs: floats of the normal distribution, small whole numbers else.

    Whole numbers that pick rows of a table are drawn from the rows that it has.
    """
    generator = np.random.default_rng(seed)
    return {name: _draw(graph, name, generator) for name in graph.inputs}


def random_array(
    dtype: DType, shape: tuple[int, ...], generator: np.random.Generator, most: int = 2
) -> Array:
    """One array: normal for floats, else whole numbers below `most`."""
    if dtype.numpy.kind == "f" or dtype.is_float:
        return generator.standard_normal(shape, np.float32).astype(dtype.numpy)
    if dtype.numpy.kind == "b":
        return generator.integers(0, 2, shape).astype(np.bool_)
    return generator.integers(0, most, shape).astype(dtype.numpy)


def _draw(graph: Graph, name: str, generator: np.random.Generator) -> Array:
    type_ = graph.types[name]
    most = 2
    for node in graph.consumers()[name]:
        if node.operator in _INDEXED and node.inputs[1:2] == (name,):
            axis = node.attribute_map.get("axis", 0)
            extents = graph.types[node.inputs[0]].shape
            most = max(most, extents[axis if isinstance(axis, int) else 0])
    return random_array(type_.dtype, type_.shape, generator, most)
