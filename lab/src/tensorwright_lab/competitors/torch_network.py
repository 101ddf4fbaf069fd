"""An ONNX model as a PyTorch module, whose parameters are the constant weights.

What is computed from constants alone is computed once; see torch_patterns for what else is written
as PyTorch's users write it. A constant that is one number is passed as a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import torch
from onnx import NodeProto, numpy_helper

from tensorwright_lab.competitors.torch_operators import OPERATORS, Call, Operation
from tensorwright_lab.competitors.torch_patterns import (
    Constants,
    fold_norms,
    join_attention,
    read_attributes,
)

_PLAIN = frozenset(("Add", "Sub", "Mul", "Div"))


@dataclass(frozen=True, slots=True)
class Step:
    """One call. An input is the name of a tensor, a number, or None where it is left out."""

    call: Call
    inputs: tuple[str | float | None, ...]
    output: str


class Network(torch.nn.Module):  # type: ignore[misc]  # the types of PyTorch are not checked
    """Calls the steps in order: input tensors in the model's order to a tuple of outputs."""

    def __init__(
        self,
        steps: Sequence[Step],
        inputs: Sequence[str],
        outputs: Sequence[str],
        weights: Constants,
    ) -> None:
        super().__init__()
        self.input_names, self.output_names = tuple(inputs), tuple(outputs)
        self._steps = tuple(steps)
        self._places = {name: f"weight_{number}" for number, name in enumerate(weights)}
        for name, value in weights.items():
            tensor = torch.from_numpy(np.array(value))
            if tensor.is_floating_point():
                parameter = torch.nn.Parameter(tensor, requires_grad=False)
                self.register_parameter(self._places[name], parameter)
            else:
                self.register_buffer(self._places[name], tensor)

    def forward(self, *tensors: Any) -> tuple[Any, ...]:
        """The outputs of the model."""
        values = dict(zip(self.input_names, tensors, strict=True))
        for name, attribute in self._places.items():
            values[name] = getattr(self, attribute)
        for step in self._steps:
            given = [values[each] if isinstance(each, str) else each for each in step.inputs]
            values[step.output] = step.call(*given)
        return tuple(values[name] for name in self.output_names)

    def with_weights(self, weights: Mapping[str, Any]) -> Network:
        """A copy with other parameters in the places of that name; the others are shared."""
        other = Network(self._steps, self.input_names, self.output_names, {})
        other._places = self._places
        for name, tensor in self.named_parameters():
            other.register_parameter(
                name, torch.nn.Parameter(weights.get(name, tensor), requires_grad=False)
            )
        for name, tensor in self.named_buffers():
            other.register_buffer(name, tensor)
        other.eval()
        return other


def make_network(model: onnx.ModelProto) -> Network:
    """The module of an ONNX model.

    Raises:  ValueError naming the operator that has no counterpart.
    """
    graph = model.graph
    constants: Constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    inputs = [each.name for each in graph.input if each.name not in constants]
    outputs = [each.name for each in graph.output]
    version = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    nodes = join_attention(fold_norms(graph.node, constants, outputs), constants, outputs)
    steps = []
    for node in nodes:
        call = _make_call(node, constants, version)
        if call is None:
            continue
        if all(name in constants for name in node.input):
            given = [torch.from_numpy(np.array(constants[name])) for name in node.input]
            constants[node.output[0]] = call(*given).numpy()
            continue
        steps.append(Step(call, _inputs(node, constants), node.output[0]))
    used = {name for step in steps for name in step.inputs if isinstance(name, str)}
    weights = {name: value for name, value in constants.items() if name in used or name in outputs}
    return Network(steps, inputs, outputs, weights)


def _make_call(node: NodeProto, constants: Constants, version: int) -> Call | None:
    """The function of a node; None for a constant, which is now among the constants."""
    attributes = read_attributes(node)
    if node.op_type == "Constant":
        constants[node.output[0]] = np.asarray(attributes["value"])
        return None
    make = OPERATORS.get(node.op_type)
    if make is None or node.domain not in ("", "ai.onnx"):
        raise ValueError(
            f"operator {node.op_type} has no counterpart in this peer; onnxruntime has one"
        )
    values = tuple(constants.get(name) for name in node.input)
    return make(Operation(node.op_type, attributes, values, version))


def _inputs(node: NodeProto, constants: Constants) -> tuple[str | float | None, ...]:
    """The inputs of a step; a constant number of plain arithmetic becomes a number."""
    names: list[str | float | None] = []
    for name in node.input:
        value = constants.get(name)
        if node.op_type in _PLAIN and value is not None and value.shape == ():
            names.append(float(value) if value.dtype.kind == "f" else name)
        else:
            names.append(name or None)
    return tuple(names)
