"""Constants that are cheap to say and large to write out are computed by what reads them.

The limit is a megabyte: what is smaller is folded as every constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.unit.graph.onnx.onnx_models import by_onnxruntime, model_of

import tensorwright
from tensorwright.base import DType, UnsupportedError, cpu_target
from tensorwright.graph import GraphBuilder, interpret, simplify
from tensorwright.graph.builder import LARGE_BYTES
from tensorwright.graph.imports import load_onnx
from tensorwright.ops import Array
from tensorwright.pipeline import prepare
from tensorwright_lab.graph_text import parse

node = helper.make_node
ROWS, COLUMNS = 700, 512
LARGE = ROWS * COLUMNS
TARGET = cpu_target("x86-64-avx2")


def filled(value: Array) -> dict[str, object]:
    return {"value": numpy_helper.from_array(value.reshape(1))}


MAKERS: dict[str, Sequence[object]] = {
    "filled": [node("ConstantOfShape", ["shape"], ["c"], **filled(np.array(0.5, np.float32)))],
    "minus infinity": [
        node("ConstantOfShape", ["shape"], ["c"], **filled(np.array(-np.inf, np.float32)))
    ],
    "tiled": [node("Tile", ["row", "repeats"], ["c"])],
    "expanded": [node("Expand", ["row", "shape"], ["c"])],
    "counted": [
        node("Range", ["from", "to", "step"], ["range"]),
        node("Reshape", ["range", "shape"], ["c"]),
    ],
    "counted down": [
        node("Range", ["to_int", "from_int", "down"], ["range"]),
        node("Reshape", ["range", "shape"], ["counted"]),
        node("Cast", ["counted"], ["c"], to=TensorProto.FLOAT),
    ],
    "diagonal": [
        node("ConstantOfShape", ["shape"], ["zeros"]),
        node("EyeLike", ["zeros"], ["c"], k=3),
    ],
    "triangle": [
        node("ConstantOfShape", ["shape"], ["ones"], **filled(np.array(1, np.float32))),
        node("Trilu", ["ones"], ["c"], upper=0),
    ],
}
CONSTANTS = {
    "row": np.random.default_rng(3).standard_normal((1, COLUMNS)).astype(np.float32),
    "shape": np.array([ROWS, COLUMNS]),
    "repeats": np.array([ROWS, 1]),
    "from": np.array(0.5, np.float32),
    "to": np.array(LARGE / 4 + 0.5, np.float32),
    "step": np.array(0.25, np.float32),
    "from_int": np.array(7),
    "to_int": np.array(7 + 2 * LARGE),
    "down": np.array(-2),
    "axes": np.array([0]),
}
X = np.random.default_rng(4).uniform(0.5, 1, (1, COLUMNS)).astype(np.float32)


def largest_column(maker: str) -> ModelProto:
    nodes = [
        *MAKERS[maker],
        node("Mul", ["c", "x"], ["product"]),
        node("ReduceMax", ["product", "axes"], ["y"], keepdims=0),
    ]
    return model_of(nodes, {"x": (1, COLUMNS)}, ["y"], constants=CONSTANTS, opset=18)


def bytes_of(constants: Mapping[str, Array]) -> int:
    return sum(array.nbytes for array in constants.values())


@pytest.mark.parametrize("maker", MAKERS)
def test_who_reads_a_large_constant_computes_it(maker: str) -> None:
    model = largest_column(maker)
    parts = prepare(model, TARGET)
    assert bytes_of(parts.graph.constants) <= 4 * COLUMNS
    assert len(parts.kernels) == 1, "nothing is stored on the way"
    executable = tensorwright.compile(model, target=TARGET)
    assert executable.constant_bytes <= 4 * COLUMNS
    (expected,) = by_onnxruntime(model, {"x": X})
    np.testing.assert_allclose(executable.run({"x": X})["y"], expected, rtol=1e-6)


def test_a_range_of_halves_counts_on() -> None:
    """The number of an element is larger than any half; its value is not."""
    constants = {
        "from": np.array(0, np.float16),
        "to": np.array(60_000, np.float16),
        "step": np.array(0.1, np.float16),
    }
    model = model_of([node("Range", ["from", "to", "step"], ["y"])], {}, ["y"], constants=constants)
    step = float(constants["step"])
    found = interpret(load_onnx(model), {})["y"]
    assert len(found) == np.ceil(60_000 / step)
    numbers = (np.arange(len(found)) * step).astype(np.float16)
    np.testing.assert_allclose(found, numbers, rtol=1e-3)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("operator", ["ConstantOfShape", "Range"])
def test_small_ones_are_constants(operator: str) -> None:
    count = LARGE_BYTES // 4
    constants = {"n": np.array([count]), "zero": np.float32(0), "one": np.float32(1)}
    constants["many"] = np.float32(count)
    inputs = ["n"] if operator == "ConstantOfShape" else ["zero", "many", "one"]
    nodes = [node(operator, inputs, ["c"]), node("Add", ["c", "x"], ["y"])]
    graph = load_onnx(model_of(nodes, {"x": (1,)}, ["y"], constants=constants))
    assert [each.operator for each in graph.nodes] == ["add"]
    assert bytes_of(graph.constants) == LARGE_BYTES


def test_each_reader_computes_its_own() -> None:
    nodes = [
        *MAKERS["filled"],
        node("Mul", ["c", "x"], ["product"]),
        node("Add", ["c", "x"], ["sum"]),
        node("ReduceMax", ["product", "axes"], ["y"], keepdims=0),
        node("ReduceSum", ["sum", "axes"], ["z"], keepdims=0),
    ]
    model = model_of(nodes, {"x": (1, COLUMNS)}, ["y", "z"], constants=CONSTANTS, opset=18)
    parts = prepare(model, TARGET)
    assert len(parts.kernels) == 2
    executable = tensorwright.compile(model, target=TARGET)
    assert executable.plan.arena_bytes < LARGE
    found = executable.run({"x": X})
    for name, expected in zip(("y", "z"), by_onnxruntime(model, {"x": X}), strict=True):
        np.testing.assert_allclose(found[name], expected, rtol=1e-5)


def test_a_large_constant_may_be_an_output_and_read() -> None:
    nodes = [*MAKERS["filled"], node("Mul", ["c", "x"], ["y"])]
    model = model_of(nodes, {"x": (1, COLUMNS)}, ["c", "y"], constants=CONSTANTS, opset=18)
    found = tensorwright.compile(model, target=TARGET).run({"x": X})
    np.testing.assert_array_equal(found["c"], np.full((ROWS, COLUMNS), 0.5, np.float32))
    np.testing.assert_array_equal(found["y"], np.broadcast_to(X / 2, (ROWS, COLUMNS)))


def test_what_a_product_reads_is_written_out() -> None:
    """It is packed for the product, in the order in which it is read."""
    nodes = [
        *MAKERS["filled"],
        node("Transpose", ["c"], ["turned"], perm=[1, 0]),
        node("MatMul", ["x", "turned"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, COLUMNS)}, ["y"], constants=CONSTANTS, opset=18)
    graph = simplify(load_onnx(model))
    assert [each.operator for each in graph.nodes] == ["matmul"]
    assert bytes_of(graph.constants) == 4 * LARGE


@pytest.mark.parametrize("deciding", ["NonZero", "Reshape"])
def test_shapes_may_depend_on_a_large_constant(deciding: str) -> None:
    constants = {"n": np.array([LARGE]), "one": np.array([1]), "last": np.array([LARGE - 1])}
    made = node("ConstantOfShape", ["n"], ["c"], **filled(np.array(3, np.int64)))
    if deciding == "NonZero":
        nodes = [
            made,
            node("NonZero", ["c"], ["at"]),
            node("Gather", ["at", "last"], ["y"], axis=1),
        ]
    else:
        sizes = [node("Gather", ["c", "last"], ["size"], axis=0)]
        nodes = [made, *sizes, node("ConstantOfShape", ["size"], ["y"])]
    model = model_of(nodes, {}, ["y"], constants=constants)
    (expected,) = by_onnxruntime(model, {})
    np.testing.assert_array_equal(interpret(load_onnx(model), {})["y"], expected)


def test_doubling_again_and_again_is_not_folded() -> None:
    b = GraphBuilder("doubled")
    tensor = b.constant(np.ones((LARGE_BYTES // 4,), np.float32))
    for _ in range(8):
        tensor = b.add("concat", tensor, tensor, axis=0)
    total = b.add("reduce_sum", tensor, axes=(0,))
    graph = simplify(b.finish([b.add("add", total, b.input("x", (1,)))]))
    assert bytes_of(graph.constants) <= 2 * LARGE_BYTES


def test_weights_may_become_wider() -> None:
    b = GraphBuilder("widened")
    held = b.constant(np.ones((LARGE_BYTES,), np.float16))
    wide = b.add("cast", held, to=DType.F32)
    graph = simplify(b.finish([b.add("add", wide, b.input("x", (1,)))]))
    assert [each.operator for each in graph.nodes] == ["add"]


def test_infinity_is_text_and_back() -> None:
    graph = load_onnx(largest_column("minus infinity"))
    assert "full" in str(graph)
    assert str(parse(str(graph), constants=graph.constants)) == str(graph)


def test_a_number_of_elements_that_nobody_has() -> None:
    model = model_of(
        [node("ConstantOfShape", ["n"], ["y"])], {}, ["y"], constants={"n": np.array([1 << 40])}
    )
    with pytest.raises(UnsupportedError, match="more than 2147483648 elements"):
        load_onnx(model)
