"""Sequences whose number of tensors import knows, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper
from tests.unit.graph.onnx.onnx_models import by_onnxruntime, model_of

from tensorwright.base import UnsupportedError
from tensorwright.graph import interpret
from tensorwright.graph.imports import load_onnx

node = helper.make_node
X = np.arange(24, dtype=np.float32).reshape(6, 4)
CONSTANTS = {
    "zero": np.array(0),
    "one": np.array(1),
    "last": np.array(-1),
    "two": np.array(2),
    "four": np.array(4),
    "parts": np.array([1, 3, 2]),
    "table": np.ones((2, 4), np.float32),
}
CASES: dict[str, Sequence[NodeProto]] = {
    "parts of one extent": [
        node("SplitToSequence", ["x", "four"], ["s"]),
        node("SequenceAt", ["s", "last"], ["y"]),
    ],
    "parts of given extents": [
        node("SplitToSequence", ["x", "parts"], ["s"]),
        node("SequenceErase", ["s", "one"], ["t"]),
        node("ConcatFromSequence", ["t"], ["y"], axis=0),
    ],
    "rows": [
        node("SplitToSequence", ["x"], ["s"], axis=1, keepdims=0),
        node("ConcatFromSequence", ["s"], ["y"], axis=-1, new_axis=1),
    ],
    "inserted": [
        node("SequenceEmpty", [], ["e"]),
        node("SequenceInsert", ["e", "x"], ["s"]),
        node("SequenceInsert", ["s", "table", "zero"], ["t"]),
        node("SequenceInsert", ["t", "table"], ["u"]),
        node("SequenceErase", ["u"], ["v"]),
        node("ConcatFromSequence", ["v"], ["y"], axis=0),
    ],
    "counted": [
        node("SequenceConstruct", ["x", "table"], ["s"]),
        node("SequenceLength", ["s"], ["n"]),
        node("Cast", ["n"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["x", "f"], ["y"]),
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_values(case: str) -> None:
    model = model_of(CASES[case], {"x": (6, 4)}, ["y"], constants=CONSTANTS)
    (ours,) = interpret(load_onnx(model), {"x": X}).values()
    np.testing.assert_array_equal(ours, by_onnxruntime(model, {"x": X})[0])


def test_rows_that_a_loop_inserts() -> None:
    """What PyTorch's newer exporter writes for bags of words."""
    body = helper.make_graph(
        [
            node("Gather", ["x", "i"], ["row"], axis=0),
            node("SequenceInsert", ["before", "row"], ["after"]),
            node("Identity", ["going"], ["goes_on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("going", TensorProto.BOOL, ()),
            helper.make_tensor_sequence_value_info("before", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, ()),
            helper.make_tensor_sequence_value_info("after", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        node("SequenceEmpty", [], ["e"]),
        node("Loop", ["four", "", "e"], ["s"], body=body),
        node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1),
    ]
    model = model_of(nodes, {"x": (6, 4)}, ["y"], constants=CONSTANTS)
    (ours,) = interpret(load_onnx(model), {"x": X}).values()
    np.testing.assert_array_equal(ours, X[:4])


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node("SequenceConstruct", ["x"], ["y"])], "sequences are not tensors.*"),
        (
            [
                node("SequenceConstruct", ["x"], ["s"]),
                node("SequenceAt", ["s", "two"], ["y"]),
            ],
            "its position 2 is outside of 1 tensors",
        ),
        (
            [node("SequenceEmpty", [], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)],
            "it joins a sequence without a tensor",
        ),
    ],
)
def test_what_is_refused(nodes: Sequence[NodeProto], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        load_onnx(model_of(nodes, {"x": (6, 4)}, ["y"], constants=CONSTANTS))
