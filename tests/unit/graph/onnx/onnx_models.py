"""Small ONNX models for tests, and their values by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tests.tables import rows_of

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


def node_model(
    operator: str,
    *inputs: Array | None,
    outputs: int = 1,
    constants: int = 0,
    domain: str = "com.microsoft",
    ml: int = 3,
    **attributes: object,
) -> tuple[ModelProto, dict[str, Array]]:
    """A model of one node, and its inputs; the last ones are constants.

    What scikit-learn makes takes any number of rows.
    """
    names = ["" if array is None else f"x{n}" for n, array in enumerate(inputs)]
    results = [f"y{n}" for n in range(outputs)]
    node = helper.make_node(operator, names, results, domain=domain, **attributes)
    given = {n: np.asarray(a) for n, a in zip(names, inputs, strict=True) if a is not None}
    fixed = [name for name in names[len(names) - constants :] if name]
    rows = ("n",) if domain == "ai.onnx.ml" else ()
    infos = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(a.dtype), (*rows, *a.shape[len(rows) :])
        )
        for n, a in given.items()
        if n not in fixed
    ]
    wanted = [helper.make_empty_tensor_value_info(name) for name in results]
    held = [numpy_helper.from_array(given[name], name) for name in fixed]
    graph = helper.make_graph([node], "test", infos, wanted, held)
    versions = {"": 17 if rows else 20, "com.microsoft": 1, "ai.onnx.ml": ml}
    opsets = [helper.make_opsetid(*each) for each in versions.items()]
    model = helper.make_model(graph, ir_version=9, opset_imports=opsets)
    return model, {name: array for name, array in given.items() if name not in fixed}


def node_cases(
    table: str, names: Mapping[str, object], **more: object
) -> dict[str, tuple[ModelProto, dict[str, Array]]]:
    """The models of a table by name: `quick gelu: QuickGelu(normal(3, 5), alpha=1.5)`."""
    found = {}
    for row in rows_of(table, names):
        name, call = row.split(": ", 1)
        operator, arguments = call.split("(", 1)
        made = partial(node_model, operator, **more)
        found[name] = eval(f"_made({arguments}", {**names, "_made": made})
    return found


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
