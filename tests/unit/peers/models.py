"""Small ONNX models that the tests give to other runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]


def draw(shape: Sequence[int], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int]],
    constants: Mapping[str, Array],
    version: int = 20,
) -> onnx.ModelProto:
    """A model that gives the last node's output."""
    graph = helper.make_graph(
        list(nodes),
        "made",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def small_network() -> onnx.ModelProto:
    """Convolution, normalisation, ReLU, matmul, a factor: x (1, 3, 9, 9) -> y (1, 8, 5)."""
    constants = {
        "w": draw((8, 3, 3, 3), 1),
        "scale": np.abs(draw((8,), 2)) + 0.5,
        "bias": draw((8,), 3),
        "mean": draw((8,), 4),
        "var": np.abs(draw((8,), 5)) + 0.5,
        "shape": np.array([1, 8, -1], np.int64),
        "m": draw((25, 5), 6),
        "half": np.array(0.5, np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 0, 1, 2], strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Reshape", ["r", "shape"], ["s"]),
        helper.make_node("MatMul", ["s", "m"], ["p"]),
        helper.make_node("Mul", ["p", "half"], ["y"]),
    ]
    return make_model(nodes, {"x": (1, 3, 9, 9)}, constants)
