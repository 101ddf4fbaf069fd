"""A network with a further output: what its last softmax reads."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto, ValueInfoProto

from tensorwright.cli.arguments.check_model import moved_from

_SOFTMAX = ("Softmax", "LogSoftmax")


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
        node = moved_from(output.name, makers)
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
