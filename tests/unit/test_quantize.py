"""`tensorwright.quantize`: weights of few bits, calibration, and the errors that are told."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser
from tests.draws import random_source

from tensorwright.base import Array, InputError, MachineError, UsageError
from tensorwright.compiling import compile as compile_model
from tensorwright.drivers.quantize import quantize
from tensorwright.graph import GraphBuilder
from tensorwright.graph.onnx_export import quantized_blocks, to_onnx

pytestmark = pytest.mark.usefixtures("by_rule")


def layers(*, opset: int = 18) -> ModelProto:
    """Two MatMul that share weights, a Gemm of stored rows, a scaled one, and an unnamed Relu."""
    source = np.random.default_rng(0)
    shapes = {"w": (40, 40), "rows": (24, 40), "bias": (2, 24), "scaled": (24, 8)}
    constants = [
        numpy_helper.from_array(source.standard_normal(shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("MatMul", ["a", "w"], ["b"], name="second"),
        helper.make_node("Gemm", ["b", "rows", "bias"], ["c"], name="third", transB=1),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Gemm", ["d", "scaled"], ["y"], name="last", alpha=0.5),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 40))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 8))
    graph = helper.make_graph(nodes, "layers", [x], [y], constants)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def images() -> ModelProto:
    """Two convolutions, a relu and a product."""
    source = np.random.default_rng(1)

    def drawn(*shape: int) -> Array:
        return (source.standard_normal(shape) / np.sqrt(shape[-1] * 3)).astype(np.float32)

    b = GraphBuilder("images")
    x = b.add("conv", b.input("x", (1, 3, 8, 8)), b.constant(drawn(8, 3, 3, 3)), output="first")
    x = b.add("conv", b.add("relu", x), b.constant(drawn(8, 8, 3, 3)), output="second")
    x = b.add("reshape", x, shape=(1, 128))
    x = b.add("matmul", x, b.constant(drawn(128, 10)), output="scores")
    return to_onnx(b.finish((b.add("add", x, b.constant(drawn(10)), output="y"),)))


def samples(count: int, shape: tuple[int, ...]) -> list[dict[str, Array]]:
    generator = np.random.default_rng(7)
    return [{"x": generator.standard_normal(shape).astype(np.float32)} for _ in range(count)]


def numbers_of(codes: Array, scales: Array, bits: int, rows: int) -> Array:
    """The matrix that codes mean, by the definition of MatMulNBits."""
    columns, blocks, _ = codes.shape
    if bits == 4:
        codes = np.stack([codes & 15, codes >> 4], -1).reshape(columns, blocks, -1)
    numbers = (codes.astype(np.float32) - 2 ** (bits - 1)) * scales[..., None]
    return numbers.reshape(columns, -1)[:, :rows].T


@pytest.mark.drawn
@pytest.mark.parametrize("bits", [4, 8])
def test_codes_are_the_nearest_ones(bits: int) -> None:
    source = random_source("few bits", bits)
    for _ in range(40):
        rows, columns = source.randint(1, 80), source.randint(1, 9)
        block = source.choice((16, 32, 64))
        generator = np.random.default_rng(source.randrange(1 << 32))
        matrix = generator.standard_normal((rows, columns)).astype(np.float32)
        matrix[:, 0] *= source.choice((0.0, 1.0))
        codes, scales = quantized_blocks(matrix, bits, block)
        apart = np.abs(numbers_of(codes, scales, bits, rows) - matrix)
        steps = np.repeat(np.abs(scales), block, 1)[:, :rows].T
        assert (apart <= steps * (1.0 + 1e-4)).all()  # the number opposite the farthest: one step
        assert np.count_nonzero(apart > steps * 0.5001) <= 0.2 * matrix.size
        for at in range(0, rows, block):  # the farthest number of a block is exact
            farthest = np.abs(matrix[at : at + block]).argmax(0)
            least = np.take_along_axis(apart[at : at + block], farthest[None], 0)
            assert (least <= 1e-6 * np.abs(matrix).max(initial=1.0)).all()


@pytest.mark.parametrize(("weights", "bits"), [("int4", 4), ("int8", 8)])
def test_weights_of_few_bits(weights: str, bits: int) -> None:
    source = layers()
    result = quantize(source, weights=weights, block=16)
    operators = [node.op_type for node in result.model.graph.node]
    assert operators == ["MatMulNBits", "MatMulNBits", "MatMulNBits", "Add", "Relu", "Gemm"]
    stored = {each.name: numpy_helper.to_array(each) for each in result.model.graph.initializer}
    assert stored.keys() == {
        *("w_codes", "w_scales", "rows_transposed_codes", "rows_transposed_scales"),
        *("bias", "scaled"),
    }
    (sample,) = samples(1, (2, 40))
    w = numbers_of(stored["w_codes"], stored["w_scales"], bits, 40)
    turned = "rows_transposed"
    rows = numbers_of(stored[f"{turned}_codes"], stored[f"{turned}_scales"], bits, 40)
    c = np.maximum(sample["x"] @ w @ w @ rows + stored["bias"], 0)
    right = 0.5 * (c @ stored["scaled"])
    session = onnxruntime.InferenceSession(result.model.SerializeToString())
    for given in (session.run(None, sample)[0], compile_model(result.model).run(sample)["y"]):
        np.testing.assert_allclose(given, right, rtol=1e-4, atol=1e-4)
    assert {each.name for each in result.nodes} == {"first", "second", "third"}
    assert 0 < result.error == result.outputs[0].relative


def test_rows_may_be_rounded_to_bytes() -> None:
    rounded = quantize(layers(), weights="int8", activations="int8")
    (node, *_) = (each for each in rounded.model.graph.node if each.op_type == "MatMulNBits")
    assert {each.name: each.i for each in node.attribute}["accuracy_level"] == 4
    (sample,) = samples(1, (2, 40))
    session = onnxruntime.InferenceSession(rounded.model.SerializeToString())
    right = session.run(None, sample)[0]
    given = compile_model(rounded.model).run(sample)["y"]
    assert np.abs(given - right).max() < 0.02 * np.abs(right).max()


def test_the_error_of_a_node_is_that_for_its_own_inputs() -> None:
    source = layers()
    used = samples(3, (2, 40))
    result = quantize(source, weights="int4", block=16, samples=used)
    stored = {each.name: numpy_helper.to_array(each) for each in result.model.graph.initializer}
    theirs = {each.name: numpy_helper.to_array(each) for each in source.graph.initializer}
    few = numbers_of(stored["w_codes"], stored["w_scales"], 4, 40)
    inputs = [sample["x"] @ theirs["w"] for sample in used]  # of the second product, exact
    apart = sum(float(np.square(x @ few - x @ theirs["w"]).sum()) for x in inputs)
    size = sum(float(np.square(x @ theirs["w"]).sum()) for x in inputs)
    (second,) = (each for each in result.nodes if each.name == "second")
    assert second.operator == "MatMul"
    assert second.relative == pytest.approx(np.sqrt(apart / size), rel=1e-3)
    assert list(result.nodes) == sorted(result.nodes, key=lambda each: -each.relative)


def test_kept_nodes_stay_floats() -> None:
    result = quantize(layers(), weights="int8", keep=("f*", "third"))
    operators = {node.name: node.op_type for node in result.model.graph.node}
    assert operators["first"] == "MatMul"
    assert operators["second"] == "MatMulNBits"
    assert operators["third"] == "Gemm"


def test_nodes_are_kept_until_the_error_is_small_enough() -> None:
    tried = []
    whole = quantize(layers(), weights="int4")
    result = quantize(
        layers(), weights="int4", target_error=0.9 * whole.error, on_try=lambda *t: tried.append(t)
    )
    assert result.error <= 0.9 * whole.error
    assert result.kept == tuple(each.name for each in whole.nodes[: len(result.kept)])
    assert tried[0] == (0, 3, whole.error)
    assert all(error > 0.9 * whole.error for kept, _, error in tried if kept < len(result.kept))
    with pytest.raises(UsageError, match=r"target error 1e-09: .*one node"):
        quantize(layers(), weights="int4", target_error=1e-9)


@pytest.mark.parametrize("opset", [11, 18])
def test_calibration_gives_codes_between_nodes(opset: int) -> None:
    source = layers(opset=opset) if opset < 13 else images()
    shape = (2, 40) if opset < 13 else (1, 3, 8, 8)
    used = samples(6, shape)
    stacked = {"x": np.stack([each["x"] for each in used])}
    result = quantize(source, samples=[stacked])
    operators = [node.op_type for node in result.model.graph.node]
    assert operators.count("QuantizeLinear") >= 3
    assert 0 < result.error < 0.1
    exact = compile_model(source)
    options = (
        onnxruntime.SessionOptions()
    )  # as floats: its sums of bytes saturate on some processors
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    theirs = onnxruntime.InferenceSession(result.model.SerializeToString(), options)
    for sample in used:
        right = exact.run(sample)["y"]
        for given in (theirs.run(None, sample)[0], compile_model(result.model).run(sample)["y"]):
            assert np.abs(given - right).max() < 0.2 * np.abs(right).max()


def test_a_file_and_its_bytes_are_quantised(tmp_path: Path) -> None:
    path = tmp_path / "layers.onnx"
    path.write_bytes(layers().SerializeToString())
    texts = {
        str(quantize(given, weights="int8").model)
        for given in (path, str(path), path.read_bytes(), layers())
    }
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "neither weights nor samples"),
        ({"weights": "int3"}, "give int4 or int8"),
        ({"weights": "int4", "activations": "i8"}, "give f32 or int8"),
        ({"weights": "int4", "block": 48}, "give one of 16, 32"),
        ({"weights": "int4", "target_error": 0.0}, "above 0"),
        ({"weights": "int4", "keep": ("frist",)}, "a node is first"),
        ({"weights": "int4", "keep": ("*",)}, "no node is left"),
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        quantize(layers(), **arguments)


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({"z": np.zeros((2, 40), np.float32)}, "z"),
        ({"x": np.zeros((2, 41), np.float32)}, "41"),
        ({"x": np.zeros((2, 40), np.float64)}, "float64|f64"),
        ({"x": np.full((2, 40), np.nan, np.float32)}, "not finite"),
    ],
)
def test_samples_that_do_not_fit(sample: dict[str, Array], said: str) -> None:
    with pytest.raises((InputError, UsageError), match=said):
        quantize(layers(), samples=[sample])


def test_calibration_names_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without(name: str, *more: Any) -> Any:
        if name == "onnxruntime.quantization":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(MachineError, match=r"tensorwright\[bench\]"):
        quantize(layers(), samples=samples(1, (2, 40)))


def textual(body: str, **weights: Array) -> ModelProto:
    """A model of text, and its weights."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {body}')
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def drawn_matrix(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_what_is_added_to_a_product_keeps_its_factor() -> None:
    body = "g (float[3,64] x) => (float[3,8] y) { h = MatMul(x, w) y = Gemm<beta=2.0>(h, v, b) }"
    source = textual(body, w=drawn_matrix(64, 64), v=drawn_matrix(64, 8), b=drawn_matrix(8) * 100)
    result = quantize(source, samples=samples(2, (3, 64)))
    gemm = next(node for node in result.model.graph.node if node.op_type == "Gemm")
    assert list(gemm.input[1:]) == ["v", "b"]
    assert result.error < 0.05


def test_inputs_may_be_outputs_of_a_calibrated_model() -> None:
    body = "g (float[3,64] x) => (float[3,8] y, float[3,64] x) { y = MatMul(x, w) }"
    result = quantize(textual(body, w=drawn_matrix(64, 8)), samples=samples(2, (3, 64)))
    assert [(each.name, each.relative > 0) for each in result.outputs] == [
        ("y", True),
        ("x", False),
    ]
    assert [each.name for each in result.model.graph.output] == ["y", "x"]


BRANCHES = """g (float[3,64] x, bool c) => (float[3,8] y, float[3,8] z) {
    z = MatMul(x, w)
    y = If(c) <then_branch = t () => (float[3,8] a) { a = MatMul(x, w) },
               else_branch = e () => (float[3,8] b) { b = Neg(z) }>
}"""


def test_bodies_stay_as_they_are() -> None:
    source = textual(BRANCHES, w=drawn_matrix(64, 8))
    used = [{**each, "c": np.array(False)} for each in samples(2, (3, 64))]
    with pytest.raises(UsageError, match="no node is left"):
        quantize(source, samples=used, keep="z")


def test_a_calibrated_model_is_not_calibrated_again() -> None:
    used = samples(2, (1, 3, 8, 8))
    result = quantize(images(), samples=used)
    with pytest.raises(UsageError, match="calibrated already"):
        quantize(result.model, samples=used)


def test_constants_that_are_inputs_too_leave_both_lists() -> None:
    body = "g (float[3,64] x, float[64,8] w) => (float[3,8] y) { y = MatMul(x, w) }"
    result = quantize(textual(body, w=drawn_matrix(64, 8)), weights="int8")
    assert [each.name for each in result.model.graph.input] == ["x"]


def test_weights_that_are_not_finite_stay() -> None:
    body = "g (float[3,64] x) => (float[3,8] y) { y = MatMul(x, w) }"
    weights = drawn_matrix(64, 8)
    weights[5, 5] = np.inf
    with pytest.raises(UsageError, match="no node is left"):
        quantize(textual(body, w=weights), weights="int8")
