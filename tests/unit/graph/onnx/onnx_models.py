"""Small ONNX models for tests, and their values by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tensorwright.graph import Graph, interpret
from tensorwright.ops import Array

Shape = Sequence[int | str | None] | None


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Shape],
    outputs: Sequence[str],
    *,
    constants: Mapping[str, Array] | None = None,
    opset: int = 21,
    ir_version: int = 8,
    dtype: int = TensorProto.FLOAT,
    **more: object,
) -> ModelProto:
    """A model of some nodes; inputs are f32 unless `dtype` says otherwise."""
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(
        graph,
        ir_version=ir_version,
        opset_imports=[helper.make_opsetid("", opset)],
        **more,
    )


def by_onnxruntime(model: ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """The outputs by ONNX Runtime on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(inputs)))


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Normal numbers, or integers from 0 to 9, for every input."""
    generator = np.random.default_rng(seed)
    return {
        name: (
            generator.normal(size=type_.shape)
            if type_.dtype.is_float
            else generator.integers(0, 10, type_.shape)
        ).astype(type_.dtype.numpy)
        for name, type_ in graph.input_types.items()
    }


def assert_same_values(left: Graph, right: Graph, tolerance: float = 1e-5, seed: int = 0) -> None:
    """Both graphs have one signature and give the same values."""
    assert left.input_types == right.input_types
    assert left.output_types == right.output_types
    inputs = random_inputs(left, seed)
    expected, found = interpret(left, inputs), interpret(right, inputs)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, tolerance, tolerance)
