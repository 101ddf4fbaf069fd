"""Which inputs of a model decide about shapes, so that their values must be known before it is
compiled.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto

from tensorwright.graph.onnx_import.reading import read_model

_REDUCTIONS = ("Sum", "Mean", "Prod", "Max", "Min", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")
DECIDING: dict[str, tuple[int, ...]] = {
    **{f"Reduce{kind}": (1,) for kind in _REDUCTIONS},
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Dropout": (2,),
    "Expand": (1,),
    "GRU": (4,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "If": (0,),
    "LSTM": (4,),
    "Loop": (0, 1),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "OneHot": (1,),
    "Pad": (1, 2, 3),
    "RNN": (4,),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
"""Inputs that shapes and nodes depend on, by operator."""
_STATIC = ("Shape", "Size")


def _all_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """The nodes of a graph and of those nested in it, definitions first."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _all_nodes(attribute.g)
        yield node


def value_inputs(source: str | os.PathLike[str] | bytes | ModelProto) -> tuple[str, ...]:
    """The inputs whose values shapes depend on: what `load_onnx` may need in `input_values`.

    Raises:  ModelError for what is not an ONNX model.
    """
    graph = read_model(source).model.graph
    needed: set[str] = set()
    for node in reversed(tuple(_all_nodes(graph))):
        for position in DECIDING.get(node.op_type, ()):
            if position < len(node.input):
                needed.add(node.input[position])
        if node.op_type not in _STATIC and needed.intersection(node.output):
            needed.update(node.input)
            bodies = (each.g for each in node.attribute if each.HasField("g"))
            needed.update(info.name for body in bodies for info in body.output)
    held = {tensor.name for tensor in graph.initializer}
    return tuple(i.name for i in graph.input if i.name in needed and i.name not in held)
