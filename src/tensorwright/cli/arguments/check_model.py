"""Models made ready for a check: the tensor before the last softmax, steps of quantised outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

TOLERANCE = 1e-4
"""Of the largest number of an output: what sums in another order may differ by."""
TOLERANCE_STEPS = 1.01
"""Of a quantised output: two roundings may differ by one."""
_SOFTMAX = ("Softmax", "LogSoftmax")
_MOVING = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose", "Dropout")
_CODES = (TensorProto.INT8, TensorProto.UINT8)
_DEQUANTIZING = "DequantizeLinear"


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
        node = _moved_from(output.name, makers)
        if node is None or node.op_type not in _SOFTMAX or node.input[0] in outputs:
            continue
        if node.input[0] not in makers:
            continue
        shown = ModelProto()
        shown.CopyFrom(model)
        del shown.metadata_props[:]  # it is no longer what they say it was made from
        shown.graph.output.append(ValueInfoProto(name=node.input[0], type=output.type))
        shown.graph.output[-1].type.tensor_type.ClearField("shape")
        return Shown(shown, node.input[0])
    return None


def quantised_steps(model: ModelProto) -> dict[str, float]:
    """How far two neighbouring numbers of an output are apart, for each output that is quantised.

    That is 1 for codes of eight bits, and the scale of what DequantizeLinear makes of codes, where
    it is one constant number.
    """
    makers = {name: node for node in model.graph.node for name in node.output}
    numbers = {each.name: each for each in model.graph.initializer}
    steps: dict[str, float] = {}
    for output in model.graph.output:
        node = _moved_from(output.name, makers)
        if output.type.tensor_type.elem_type in _CODES:
            steps[output.name] = 1.0
        elif node is not None and node.op_type == _DEQUANTIZING and node.input[1] in numbers:
            scale = numpy_helper.to_array(numbers[node.input[1]])
            if scale.size == 1 and float(scale.reshape(-1)[0]) > 0:
                steps[output.name] = float(scale.reshape(-1)[0])
    return steps


def _moved_from(name: str, makers: Mapping[str, NodeProto]) -> NodeProto | None:
    """The node that computes the numbers of a tensor, behind those that only move them."""
    node = makers.get(name)
    while node is not None and node.op_type in _MOVING:
        node = makers.get(node.input[0])
    return node
