"""Constant codes of few bits with scales by block, of the standard and of ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.unit.graph.onnx.onnx_models import by_onnxruntime, node_model

from tensorwright.base import UnsupportedError
from tensorwright.graph import Graph, interpret, simplify
from tensorwright.graph.imports import load_onnx
from tensorwright.ops import Array

INNER, COLUMNS, BLOCK = 64, 6, 16


def model_of(data_type: int, axis: int, form: str, *, has_zeros: bool) -> ModelProto:
    """x w, with w as codes; along axis 1 w is stored by columns."""
    chance = np.random.default_rng(2)
    low, high = {TensorProto.INT4: (-8, 8), TensorProto.UINT4: (0, 16)}.get(data_type, (-128, 128))
    shape, blocks = (INNER, COLUMNS), (INNER // BLOCK, COLUMNS)
    if axis:
        shape, blocks = shape[::-1], blocks[::-1]
    codes, zeros = (chance.integers(low, high, each).ravel().tolist() for each in (shape, blocks))
    held = [helper.make_tensor("codes", data_type, shape, codes)]
    held.append(numpy_helper.from_array(chance.random(blocks).astype(np.float32), "scale"))
    names = ["codes", "scale"]
    if has_zeros:
        held.append(helper.make_tensor("zero", data_type, blocks, zeros))
        names.append("zero")
    nodes = [helper.make_node("DequantizeLinear", names, ["w"], axis=axis, block_size=BLOCK)]
    if form == "Gemm":
        nodes.append(helper.make_node("Gemm", ["x", "w"], ["y"], transB=axis))
    else:
        if axis:
            nodes.append(helper.make_node("Transpose", ["w"], ["turned"], perm=[1, 0]))
        nodes.append(helper.make_node("MatMul", ["x", "turned" if axis else "w"], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, INNER))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, COLUMNS))
    graph = helper.make_graph(nodes, "few bits", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def weights_of(model: ModelProto, axis: int) -> NDArray[np.float32]:
    """(code - zero) * scale as NumPy computes it; ONNX Runtime rounds x for some types of codes."""
    held = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    numbers = held["codes"].astype(np.float32)
    if "zero" in held:
        numbers -= np.repeat(held["zero"].astype(np.float32), BLOCK, axis=axis)
    numbers *= np.repeat(held["scale"], BLOCK, axis=axis)
    return numbers.T if axis else numbers


def simplified(model: ModelProto) -> Graph:
    return simplify(load_onnx(model))


@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("form", ["MatMul", "Gemm"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("data_type", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT8])
def test_they_stay_packed(data_type: int, axis: int, form: str, has_zeros: bool) -> None:
    model = model_of(data_type, axis, form, has_zeros=has_zeros)
    graph = simplified(model)
    assert [node.operator for node in graph.nodes] == ["dequantize_blocks", form.lower()]
    assert graph.nodes[0].attribute_map["bits"] == (8 if data_type == TensorProto.INT8 else 4)
    inputs = {"x": np.random.default_rng(1).standard_normal((2, INNER)).astype(np.float32)}
    (found,) = interpret(graph, inputs).values()
    expected = inputs["x"] @ weights_of(model, axis)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("has_product", [False, True])
def test_only_one_product_takes_them_apart(has_product: bool) -> None:
    """Others read numbers, which are computed once."""
    model = model_of(TensorProto.INT4, 0, "MatMul", has_zeros=True)
    model.graph.node.append(helper.make_node("Identity", ["w"], ["numbers"]))
    shape = (INNER, COLUMNS)
    model.graph.output.append(helper.make_tensor_value_info("numbers", TensorProto.FLOAT, shape))
    if not has_product:
        del model.graph.node[1], model.graph.output[0]
    graph = simplified(model)
    assert "dequantize_blocks" not in {node.operator for node in graph.nodes}
    (numbers,) = (each for each in graph.constants.values() if each.shape == shape)
    assert numbers.dtype == np.float32


RANDOM = np.random.default_rng(11)


def drawn(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("zeros", ["none", "codes", "numbers"])
@pytest.mark.parametrize(("bits", "block"), [(4, 16), (4, 32), (4, 64), (4, 128), (8, 16)])
@pytest.mark.parametrize("rows", [(1,), (3,), (2, 3)])
def test_blocks_of_onnxruntime(bits: int, block: int, zeros: str, rows: tuple[int, ...]) -> None:
    """The last block is not whole, and they stay packed."""
    columns, inner = 6, 2 * block + 8
    if bits == 8 and zeros == "numbers":
        return  # ONNX Runtime refuses them
    blocks = -(-inner // block)
    inputs = [normal(*rows, inner), drawn(columns, blocks, block * bits // 8)]
    inputs.append(RANDOM.uniform(0.01, 0.05, columns * blocks).astype(np.float32))
    if zeros == "codes":
        inputs.append(drawn(columns * -(-blocks * bits // 8)))
    elif zeros == "numbers":
        inputs.append(RANDOM.uniform(0, 1 << bits, (columns, blocks)).astype(np.float32))
    sizes = {"N": columns, "K": inner, "bits": bits, "block_size": block}
    model, given = node_model("MatMulNBits", *inputs, constants=len(inputs) - 1, **sizes)
    graph = simplified(model)
    assert "dequantize_blocks" in {node.operator for node in graph.nodes}
    (found,), (expected,) = interpret(graph, given).values(), by_onnxruntime(model, given)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("level", [0, 1, 4])
def test_only_one_accuracy_level_rounds_rows(level: int) -> None:
    inputs = normal(3, 32), drawn(6, 2, 8), normal(12)
    sizes = {"N": 6, "K": 32, "block_size": 16, "accuracy_level": level}
    model, _ = node_model("MatMulNBits", *inputs, constants=2, **sizes)
    (weights,) = (n for n in load_onnx(model).nodes if n.operator == "dequantize_blocks")
    assert weights.attribute_map["is_rounded"] is (level == 4)


@pytest.mark.parametrize(
    ("at", "array", "reason"),
    [
        (1, drawn(6, 2, 7), "its weights have the shape (6, 2, 7), not (6, 2, 8)"),
        (2, normal(11), "its scales have the shape (11,), not (6, 2)"),
        (3, drawn(5), "its zero points have the shape (5,), not (6, 1)"),
    ],
)
def test_blocks_that_do_not_fit(at: int, array: Array, reason: str) -> None:
    inputs: list[Array] = [normal(3, 32), drawn(6, 2, 8), normal(12), drawn(6)]
    inputs[at] = array
    model, _ = node_model("MatMulNBits", *inputs, constants=3, N=6, K=32, block_size=16)
    with pytest.raises(UnsupportedError) as caught:
        load_onnx(model)
    assert reason in caught.value.message()


@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize(
    ("data_type", "bits"),
    [
        (TensorProto.UINT8, 4),
        (TensorProto.UINT8, 8),
        (TensorProto.UINT4, 4),
        (TensorProto.INT4, 4),
    ],
)
def test_rows_of_a_packed_table(data_type: int, bits: int, has_zeros: bool) -> None:
    rows, inner, per_byte = 11, 64, 8 // bits if data_type == TensorProto.UINT8 else 1
    low, high = {TensorProto.INT4: (-8, 8), TensorProto.UINT4: (0, 16)}.get(data_type, (0, 256))
    held = [
        helper.make_tensor(name, data_type, shape, RANDOM.integers(low, high, shape).ravel())
        for name, shape in (
            ("table", (rows, inner // per_byte)),
            ("zeros", (rows, inner // BLOCK // per_byte)),
        )
    ]
    scales = RANDOM.uniform(0.5, 1, (rows, inner // BLOCK)).astype(np.float32)
    held.append(numpy_helper.from_array(scales, "scales"))
    inputs = ["table", "ids", "scales", *(["zeros"] if has_zeros else [])]
    sizes = {"block_size": BLOCK, "bits": bits, "quantize_axis": 1}
    node = helper.make_node("GatherBlockQuantized", inputs, ["y"], domain="com.microsoft", **sizes)
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, (2, 5))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 5, inner))
    graph = helper.make_graph([node], "rows", [ids], [y], [x for x in held if x.name in inputs])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    given = {"ids": RANDOM.integers(0, rows, (2, 5))}
    imported = simplified(model)
    words = max(imported.constants.values(), key=lambda each: each.size)
    assert words.nbytes == rows * inner * bits // 8
    (ours,), (expected,) = interpret(imported, given).values(), by_onnxruntime(model, given)
    np.testing.assert_array_equal(ours, expected)
