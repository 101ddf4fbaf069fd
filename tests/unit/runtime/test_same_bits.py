"""An executable gives the same bits from call to call, and on any number of threads."""

import threading
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import tensorwright

RANDOM = np.random.default_rng(0)


def model_of(shape: tuple[int, ...], nodes: list[NodeProto], **weights: np.ndarray) -> ModelProto:  # type: ignore[type-arg]
    graph = helper.make_graph(
        nodes,
        "rounding",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weights_of(*shape: int) -> np.ndarray:  # type: ignore[type-arg]
    return RANDOM.standard_normal(shape).astype(np.float32)


NETWORKS = {
    "a fold of everything": model_of(
        (1, 300_007), [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)]
    ),
    "rows": model_of(
        (67, 1031),
        [
            helper.make_node("Softmax", ["x"], ["s"]),
            helper.make_node("LayerNormalization", ["s", "scale"], ["y"]),
        ],
        scale=weights_of(1031),
    ),
    "a product of one row": model_of(
        (1, 4099), [helper.make_node("MatMul", ["x", "w"], ["y"])], w=weights_of(4099, 37)
    ),
    "a product of few sums": model_of(
        (3, 9001), [helper.make_node("MatMul", ["x", "w"], ["y"])], w=weights_of(9001, 2)
    ),
    "convolutions": model_of(
        (1, 24, 19, 19),
        [
            helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("GlobalAveragePool", ["r"], ["y"]),
        ],
        w=weights_of(40, 24, 3, 3),
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_number_of_threads_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    model = NETWORKS[name]
    shape = [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim]
    array = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    path = tmp_path / "model.tw"
    compiled = tensorwright.compile(model, threads=2)
    compiled.save(path)
    expected = compiled(array).tobytes()
    for threads in (1, 2, 3, 5):
        executable = tensorwright.load(path, threads)
        assert [executable(array).tobytes() for _ in range(5)] == [expected] * 5


def test_calls_at_the_same_time_give_the_same_bits() -> None:
    executable = tensorwright.compile(NETWORKS["convolutions"], threads=2)
    array = np.random.default_rng(1).standard_normal((1, 24, 19, 19)).astype(np.float32)
    results: list[bytes] = []

    def call() -> None:
        results.extend(executable(array).tobytes() for _ in range(10))

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(results) == 30
    assert len(set(results)) == 1
