"""Operators mean what their operator set says: values are those of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tests.tables import rows_of
from tests.unit.graph.onnx.onnx_models import Shape, by_onnxruntime, model_of, random_inputs

from tensorwright.base import InputError, UnsupportedError
from tensorwright.graph import Graph, interpret, verify
from tensorwright.graph.imports import load_onnx, value_inputs
from tensorwright.graph.imports.refusals import OTHERWISE
from tensorwright.ops import Array


def check(model: ModelProto, tolerance: float = 1e-5) -> Graph:
    """Import, verify, interpret; compare with ONNX Runtime."""
    graph = verify(load_onnx(model))
    inputs = random_inputs(graph)
    results = interpret(graph, inputs)
    for expected, found in zip(by_onnxruntime(model, inputs), results.values(), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, tolerance, tolerance)
    return graph


def one(
    operator: str,
    inputs: Mapping[str, Shape],
    opset: int,
    constants: Mapping[str, Array] | None = None,
    outputs: Sequence[str] = ("y",),
    names: Sequence[str] = (),
    **attributes: Any,
) -> ModelProto:
    """A model of one node."""
    operands = names or (*inputs, *(constants or {}))
    node = helper.make_node(operator, operands, outputs, **attributes)
    return model_of([node], inputs, [o for o in outputs if o], constants=constants, opset=opset)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


IMAGE: dict[str, Shape] = {"x": (1, 3, 9, 8)}
WEIGHTS = np.random.default_rng(1).normal(size=(6, 3, 3, 2)).astype(np.float32)
VECTORS = {
    name: np.random.default_rng(at).uniform(0.5, 1.5, 3).astype(np.float32)
    for at, name in enumerate(("scale", "bias", "mean", "var"))
}
TABLE = """
softmax of old flattens: "Softmax", {"x": (2, 3, 4)}, 11, axis=1
softmax of old, default axis: "Softmax", {"x": (2, 5)}, 9
softmax of old, default axis flattens: "Softmax", {"x": (2, 3, 4)}, 11
softmax of old, axis from the end: "Softmax", {"x": (2, 3, 4)}, 11, axis=-2
softmax: "Softmax", {"x": (2, 3, 4)}, 13, axis=1
log softmax of old: "LogSoftmax", {"x": (2, 3, 4)}, 12, axis=1
batch norm 7: "BatchNormalization", IMAGE, 7, VECTORS, epsilon=0.1
batch norm 15: "BatchNormalization", IMAGE, 15, VECTORS
dropout 7: "Dropout", {"x": (2, 3)}, 7, ratio=0.3
dropout 12: "Dropout", {"x": (2, 3)}, 12
clip 6: "Clip", {"x": (9,)}, 7, min=-0.5, max=0.5
clip 11: "Clip", {"x": (9,)}, 11, {"a": np.float32(-0.5), "b": np.float32(0.5)}
clip to inputs: "Clip", {"x": (9,), "a": (), "b": ()}, 13
squeeze 1: "Squeeze", {"x": (1, 3, 1)}, 11, axes=[2]
squeeze 13: "Squeeze", {"x": (1, 3, 1)}, 13, {"axes": ints(-1)}
unsqueeze 1: "Unsqueeze", {"x": (3,)}, 11, axes=[0, 2]
unsqueeze 13: "Unsqueeze", {"x": (3,)}, 13, {"axes": ints(0, -1)}
slice 1: "Slice", {"x": (5, 6)}, 9, starts=[1, -3], ends=[4, 99], axes=[0, 1]
slice 10: "Slice", {"x": (5, 6)}, 10, {"s": ints(4), "e": ints(-99), "a": ints(1), "t": ints(-2)}
pad 2: "Pad", {"x": (2, 3)}, 10, pads=[0, 1, 2, 0], value=1.5
pad 11: "Pad", {"x": (2, 3)}, 11, {"p": ints(0, 1, 1, 0)}, mode="reflect"
pad 18: "Pad", {"x": (2, 3)}, 18, {"p": ints(1, 2), "v": np.float32(3), "axes": ints(-1)}
reshape: "Reshape", {"x": (2, 3, 4)}, 13, {"s": ints(0, -1)}
reshape keeping zeros: "Reshape", {"x": (0, 3)}, 14, {"s": ints(3, 0)}, allowzero=1
flatten: "Flatten", {"x": (2, 3, 4)}, 13, axis=-1
upsample 7: "Upsample", IMAGE, 7, scales=[1.0, 1.0, 2.0, 3.0], mode="nearest"
upsample 9: "Upsample", IMAGE, 9, {"s": np.array([1, 1, 2, 2], np.float32)}, mode="linear"
resize 10: "Resize", IMAGE, 10, {"s": np.array([1, 1, 2, 0.5], np.float32)}
resize 11: "Resize", IMAGE, 11, {"s": np.array([1, 1, 1.7, 0.6], np.float32), "r": np.zeros(0,
    np.float32)}, names=("x", "r", "s"), mode="linear"
resize to sizes: "Resize", IMAGE, 18, {"n": ints(1, 3, 5, 16)}, names=("x", "", "", "n"),
    mode="cubic"
conv: "Conv", IMAGE, 7, {"w": WEIGHTS}, strides=[2, 1], pads=[1, 0, 0, 1]
conv same upper: "Conv", IMAGE, 11, {"w": WEIGHTS}, auto_pad="SAME_UPPER", strides=[2, 2]
conv same lower: "Conv", IMAGE, 11, {"w": WEIGHTS}, auto_pad="SAME_LOWER", strides=[2, 3]
conv valid: "Conv", IMAGE, 11, {"w": WEIGHTS}, auto_pad="VALID", dilations=[2, 2]
transposed conv: "ConvTranspose", {"x": (1, 6, 4, 5)}, 11, {"w": WEIGHTS}, strides=[2, 2],
    output_padding=[1, 0]
transposed conv to a shape: "ConvTranspose", {"x": (1, 6, 4, 5)}, 11, {"w": WEIGHTS}, strides=[2,
    2], output_shape=[8, 10]
transposed conv same: "ConvTranspose", {"x": (1, 6, 4, 5)}, 11, {"w": WEIGHTS}, strides=[2, 2],
    auto_pad="SAME_UPPER"
max pool: "MaxPool", IMAGE, 12, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1
average pool: "AveragePool", IMAGE, 11, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1
average pool same: "AveragePool", IMAGE, 11, kernel_shape=[2, 2], auto_pad="SAME_LOWER"
gemm: "Gemm", {"a": (3, 4), "b": (5, 3), "c": (5,)}, 11, transA=1, transB=1, alpha=0.5
reduce 11: "ReduceMean", {"x": (2, 3, 4)}, 11, axes=[0, -1], keepdims=0
reduce 18: "ReduceMax", {"x": (2, 3, 4)}, 18, {"axes": ints(1)}
reduce sum 13: "ReduceSum", {"x": (2, 3, 4)}, 13, {"axes": ints(1)}, keepdims=0
reduce nothing: "ReduceSum", {"x": (2, 3)}, 13, noop_with_empty_axes=1
reduce all: "ReduceLogSumExp", {"x": (2, 3)}, 18
arg max: "ArgMax", {"x": (2, 3)}, 13, axis=1, keepdims=0
split 11: "Split", {"x": (5, 2)}, 11, outputs=("y", "z"), split=[2, 3]
split 18: "Split", {"x": (5, 2)}, 18, outputs=("y", "z"), num_outputs=2
gather: "Gather", {"x": (5, 2)}, 13, {"i": ints(0, -1)}
layer norm: "LayerNormalization", {"x": (2, 3), "s": (3,), "b": (3,)}, 17, epsilon=0.1
layer norm, all outputs: "LayerNormalization", {"x": (2, 3), "s": (3,), "b": (3,)}, 17,
    outputs=("y", "m", "d")
group norm: "GroupNormalization", {"x": (2, 4, 3), "s": (4,), "b": (4,)}, 21, num_groups=2
gelu: "Gelu", {"x": (9,)}, 20, approximate="tanh"
celu by its function: "MeanVarianceNormalization", {"x": (2, 3, 4, 5)}, 13
hard swish: "HardSwish", {"x": (9,)}, 14
sum of three: "Sum", {"a": (3,), "b": (2, 3), "c": ()}, 13
top k: "TopK", {"x": (7,)}, 11, {"k": ints(3)}, outputs=("v", "i")
identity of an input: "Identity", {"x": (3,)}, 13
quantise: "QuantizeLinear", {"x": (9,)}, 13, {"s": np.float32(0.1), "z": np.uint8(120)}
einsum: "Einsum", {"a": (2, 3), "b": (3, 4)}, 12, equation="ij,jk->ki"
trilu: "Trilu", {"x": (4, 4)}, 14, {"k": ints(1).reshape(())}, upper=0
"""
CASES: dict[str, ModelProto] = {
    name: eval(f"one({given})") for name, given in (row.split(": ", 1) for row in rows_of(TABLE))
}


@pytest.mark.parametrize("model", CASES.values(), ids=CASES.keys())
def test_values(model: ModelProto) -> None:
    check(model)


def test_batch_norm_in_training_computes_the_statistics() -> None:
    """ONNX Runtime refuses training on the CPU: compare with NumPy."""
    model = one("BatchNormalization", IMAGE, 15, VECTORS, ("y", "m", "v"), training_mode=1)
    graph = load_onnx(model)
    inputs = random_inputs(graph)
    x = inputs["x"].astype(np.float64)
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    y, m, v = interpret(graph, inputs).values()
    np.testing.assert_allclose(m, 0.9 * VECTORS["mean"] + 0.1 * mean, 1e-5)
    np.testing.assert_allclose(v, 0.9 * VECTORS["var"] + 0.1 * var, 1e-5)
    column = (slice(None), None, None)
    normal = (x - mean[column]) / np.sqrt(var[column] + 1e-5)
    expected = normal * VECTORS["scale"][column] + VECTORS["bias"][column]
    np.testing.assert_allclose(y, expected, 1e-4, 1e-4)


def shape_arithmetic() -> list[NodeProto]:
    """Reshape x to (rows, -1) by way of Shape, Gather and Concat, as exporters write it."""
    make = helper.make_node
    return [
        make("Shape", ["x"], ["shape"]),
        make("Constant", [], ["zero"], value=numpy_helper.from_array(ints(0).reshape(()))),
        make("Gather", ["shape", "zero"], ["rows"]),
        make("Unsqueeze", ["rows", "axes"], ["rows1"]),
        make("Constant", [], ["rest"], value_ints=[-1]),
        make("Concat", ["rows1", "rest"], ["target"], axis=0),
        make("Reshape", ["x", "target"], ["y"]),
    ]


def test_shape_arithmetic_leaves_nothing_behind() -> None:
    model = model_of(shape_arithmetic(), {"x": (4, 3, 2)}, ["y"], constants={"axes": ints(0)})
    graph = check(model)
    assert [str(node) for node in graph.nodes] == ["y = reshape(x, shape=(4, 6))"]
    assert not graph.constants


def test_initialisers_that_are_inputs_too() -> None:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    w = np.ones((3,), np.float32)
    model = model_of(
        [node], {"x": (3,), "w": (3,)}, ["y"], constants={"w": w}, ir_version=3, opset=9
    )
    graph = check(model)
    assert graph.inputs == ("x",)
    assert list(graph.constants) == ["w"]


def test_names_are_kept() -> None:
    nodes = [
        helper.make_node("Relu", ["a b:0"], ["conv/relu"]),
        helper.make_node("Identity", ["conv/relu"], ["first"]),
        helper.make_node("Identity", ["conv/relu"], ["second"]),
        helper.make_node("Identity", ["a b:0"], ["third"]),
    ]
    graph = check(model_of(nodes, {"a b:0": (3,)}, ["first", "second", "third"]))
    assert graph.inputs == ("a b:0",)
    assert graph.outputs == ("first", "second", "third")


def test_names_that_our_own_builder_would_choose() -> None:
    """The second tensor is called as we call the first: names must not swap values."""
    nodes = [
        helper.make_node("Relu", ["x"], ["relu_1"]),
        helper.make_node("Identity", ["relu_1"], ["identity_0"]),
        helper.make_node("Neg", ["x"], ["relu_0"]),
    ]
    check(model_of(nodes, {"x": (9,)}, ["identity_0", "relu_0"]))
    check(model_of(nodes, {"x": (9,)}, ["relu_0", "identity_0", "relu_1"]))


def test_a_constant_condition_chooses_the_branch() -> None:
    def branch(operator: str) -> Any:
        node = helper.make_node(operator, ["x"], ["inner"])
        info = helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)
        return helper.make_graph([node], operator, [], [info])

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("Relu"), else_branch=branch("Neg")
    )
    model = model_of([node], {"x": (3,)}, ["y"], constants={"c": np.asarray(False)})
    assert [node.operator for node in check(model).nodes] == ["neg"]
    model = model_of([node], {"x": (3,), "c": ()}, ["y"])
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.BOOL
    assert [node.operator for node in load_onnx(model).nodes] == ["branch"]
    graph = load_onnx(model, input_values={"c": np.asarray(True)})
    assert [node.operator for node in graph.nodes] == ["relu"]


def test_functions_of_the_model() -> None:
    body = [
        helper.make_node("LeakyRelu", ["X"], ["inner"]),
        helper.make_node("Mul", ["inner", "S"], ["Y"]),
    ]
    reference = body[0].attribute.add(name="alpha", type=1)
    reference.ref_attr_name = "slope"
    function = helper.make_function(
        "mine", "Scaled", ["X", "S"], ["Y"], body, [helper.make_opsetid("", 18)], ["slope"]
    )
    nodes = [
        helper.make_node("Scaled", ["x", "s"], ["t"], domain="mine", slope=0.5),
        helper.make_node("Scaled", ["t", "s"], ["y"], domain="mine", slope=0.25),
    ]
    model = model_of(nodes, {"x": (3,), "s": (3,)}, ["y"], opset=18, functions=[function])
    model.opset_import.append(helper.make_opsetid("mine", 1))
    graph = check(model)
    assert [node.operator for node in graph.nodes] == ["leaky_relu", "mul", "leaky_relu", "mul"]
    assert [node.attribute_map["alpha"] for node in graph.nodes[::2]] == [0.5, 0.25]


def test_values_of_inputs_that_shapes_depend_on() -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"], name="r")
    model = model_of([node], {"x": (2, 3), "s": (1,)}, ["y"])
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    assert value_inputs(model) == ("s",)
    with pytest.raises(UnsupportedError) as caught:
        load_onnx(model)
    assert str(caught.value) == (
        "operator Reshape: node r (Reshape): values decide the size r_0, and nothing says how large"
        ' it may be\n  try: say it: sizes={"r_0": "..64"}, or give the input'
        " that it depends on a value"
    )
    graph = load_onnx(model, input_values={"s": ints(-1)})
    assert graph.inputs == ("x",)
    assert graph.types["y"].shape == (6,)
    with pytest.raises(InputError, match="input value s: it must be i64, not f32"):
        load_onnx(model, input_values={"s": np.ones(1, np.float32)})
    with pytest.raises(InputError, match="input value t: the model has no such input"):
        load_onnx(model, input_values={"t": ints(1)})


def test_outputs_that_we_do_not_have() -> None:
    model = one("Relu", {"x": (2,)}, 14, outputs=("y", "z"))
    with pytest.raises(UnsupportedError) as caught:
        load_onnx(model)
    assert str(caught.value) == (
        f"operator Relu: node y (Relu): we do not compute its output number 2\n  try: {OTHERWISE}"
    )


def test_values_that_shapes_depend_on_through_a_branch() -> None:
    branches = {}
    for name, value in (("then_branch", "s"), ("else_branch", "t")):
        body = [helper.make_node("Identity", [value], [f"{name}_shape"])]
        result = helper.make_tensor_value_info(f"{name}_shape", TensorProto.INT64, None)
        branches[name] = helper.make_graph(body, name, [], [result])
    nodes = [
        helper.make_node("If", ["c"], ["shape"], **branches),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    model = model_of(
        nodes, {"x": (2, 3), "s": (1,), "t": (2,)}, ["y"], constants={"c": np.array(1)}
    )
    for info in model.graph.input[1:]:
        info.type.tensor_type.elem_type = TensorProto.INT64
    assert value_inputs(model) == ("s", "t")
    graph = load_onnx(model, input_values={"s": ints(-1), "t": ints(3, 2)})
    assert graph.types["y"].shape == (6,)


def test_of_what_a_cast_is_like_only_the_type_counts() -> None:
    nodes = [
        helper.make_node("Constant", [], ["k"], value_float=2.0),
        helper.make_node("CastLike", ["k", "x"], ["fill"]),
        helper.make_node("Pad", ["x", "pads", "fill"], ["y"]),
    ]
    graph = check(model_of(nodes, {"x": (3,)}, ["y"], constants={"pads": ints(1, 1)}))
    assert [node.operator for node in graph.nodes] == ["pad"]


def test_a_grid_may_have_another_type_than_the_image() -> None:  # ONNX Runtime has no such kernel
    wide = np.random.default_rng(2).uniform(-1.1, 1.1, (1, 5, 4, 2))
    graphs = [
        load_onnx(one("GridSample", IMAGE, 20, {"grid": grid}))
        for grid in (wide, wide.astype(np.float32))
    ]
    mixed, plain = (interpret(graph, random_inputs(graph))["y"] for graph in graphs)
    assert mixed.dtype == plain.dtype == np.float32
    np.testing.assert_allclose(mixed, plain, 1e-5, 1e-5)
