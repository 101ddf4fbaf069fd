"""Open dimensions as named sizes: networks of exporters, names, bounds, arithmetic of shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.unit.graph.onnx.onnx_models import by_onnxruntime, model_of, random_inputs
from tests.unit.graph.onnx.torch_networks import NETWORKS, Network, exported

from tensorwright.base import InputError, ModelError, UnsupportedError, UsageError
from tensorwright.graph import Graph, bind_sizes, interpret, verify
from tensorwright.graph.imports import load_onnx

node = helper.make_node


def check(model: ModelProto, graph: Graph, values: Mapping[str, int], tolerance: float) -> None:
    """The graph with numbers gives what the model gives that is read with these, and the model by
    ONNX Runtime.
    """
    bound = verify(bind_sizes(graph, values))
    static = load_onnx(model, dict(values))
    assert bound.sizes == ()
    assert bound.input_types == static.input_types
    assert bound.output_types == static.output_types
    inputs = random_inputs(bound)
    ours, theirs = interpret(bound, inputs), interpret(static, inputs)
    for found, same, peer in zip(
        ours.values(), theirs.values(), by_onnxruntime(model, inputs), strict=True
    ):
        np.testing.assert_allclose(found, same, tolerance, tolerance)
        np.testing.assert_allclose(found, peer, tolerance, tolerance)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_with_open_dimensions(name: str) -> None:
    network = NETWORKS[name]
    model = exported(network)
    graph = verify(load_onnx(model, sizes=network.sizes))
    assert {each.name for each in graph.sizes} == names_of(network)
    for values in network.points:
        check(model, graph, values, 1e-4)


@pytest.mark.parametrize("name", ["decoder", "segmenter"])
def test_a_network_by_the_newer_exporter(name: str) -> None:
    network = NETWORKS[name]
    model = exported(network, dynamo=True)
    graph = verify(load_onnx(model, sizes=network.sizes))
    assert {each.name for each in graph.sizes} == names_of(network)
    for values in network.points:
        check(model, graph, values, 1e-4)


def names_of(network: Network) -> set[str]:
    return {name for axes in network.axes.values() for name in axes.values()}


LENGTH = (
    node("Shape", ["x"], ["s"], start=1, end=2),
    node("Squeeze", ["s"], ["length"]),
)
ONE, TWO = np.array([1], np.int64), np.array([2], np.int64)
MODELS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "where of expand": (
        [
            node("Shape", ["x"], ["s"]),
            node("Equal", ["s", "minus"], ["open"]),
            node("Where", ["open", "ones", "s"], ["t"]),
            node("Expand", ["number", "t"], ["y"]),
        ],
        {
            "minus": np.array([-1, -1], np.int64),
            "ones": np.array([1, 1], np.int64),
            "number": np.ones((1, 1), np.float32),
        },
    ),
    "range, and sizes as data": (
        [
            *LENGTH,
            node("Cast", ["length"], ["real"], to=TensorProto.FLOAT),
            node("Range", ["zero", "real", "one"], ["r"]),
            node("Div", ["r", "real"], ["y"]),
            node("Shape", ["x"], ["shape"]),
        ],
        {"zero": np.float32(0), "one": np.float32(1)},
    ),
    "a range that goes down": (
        [*LENGTH, node("Range", ["length", "zero", "step"], ["y"])],
        {"zero": np.int64(0), "step": np.int64(-3)},
    ),
    "topk, one-hot, tile, triangle": (
        [
            *LENGTH,
            node("TopK", ["x", "s"], ["sorted", "places"]),
            node("OneHot", ["places", "length", "values"], ["hot"]),
            node("Concat", ["two", "s"], ["repeats"], axis=0),
            node("Tile", ["x", "repeats"], ["tiled"]),
            node("Trilu", ["tiled", "length"], ["y"]),
        ],
        {"two": TWO, "values": np.array([0, 1], np.float32)},
    ),
    "pads": (
        [
            *LENGTH,
            node("Concat", ["zero", "s", "zero", "s"], ["p"], axis=0),
            node("Pad", ["x", "p"], ["y"]),
        ],
        {"zero": np.array([0], np.int64)},
    ),
    "slices": (
        [
            *LENGTH,
            node("Div", ["s", "two"], ["half"]),
            node("Slice", ["x", "half", "s", "one"], ["y"]),
            node("Slice", ["x", "zero", "half", "one"], ["other"]),
            node("Concat", ["y", "other"], ["both"], axis=1),
        ],
        {"zero": np.array([0], np.int64), "one": ONE, "two": TWO},
    ),
    "floats that are rounded": (
        [
            *LENGTH,
            node("Cast", ["s"], ["real"], to=TensorProto.FLOAT),
            node("Mul", ["real", "scale"], ["scaled"]),
            node("Floor", ["scaled"], ["floor"]),
            node("Div", ["real", "three"], ["third"]),
            node("Ceil", ["third"], ["ceil"]),
            node("Add", ["floor", "ceil"], ["sum"]),
            node("Cast", ["sum"], ["many"], to=TensorProto.INT64),
            node("ConstantOfShape", ["many"], ["y"]),
        ],
        {"scale": np.array([1.5], np.float32), "three": np.array([3], np.float32)},
    ),
    "products and remainders": (
        [
            node("Shape", ["x"], ["s"]),
            node("ReduceProd", ["s"], ["all"], keepdims=0),
            node("Size", ["x"], ["size"]),
            node("Mod", ["all", "four"], ["rest"]),
            node("Sub", ["size", "rest"], ["less"]),
            node("Neg", ["less"], ["negative"]),
            node("Max", ["less", "four"], ["most"]),
            node("Unsqueeze", ["most", "zero"], ["shape"]),
            node("ConstantOfShape", ["shape"], ["y"]),
        ],
        {"four": np.int64(4), "zero": np.array([0], np.int64)},
    ),
    "zeros and the rest of a reshape": (
        [
            node("Unsqueeze", ["x", "one"], ["wide"]),
            node("Concat", ["wide", "wide"], ["double"], axis=1),
            node("Shape", ["x"], ["s"], start=0, end=1),
            node("Concat", ["s", "rest"], ["shape"], axis=0),
            node("Reshape", ["double", "shape"], ["flat"]),
            node("Reshape", ["double", "copies"], ["y"]),
        ],
        {
            "one": ONE,
            "rest": np.array([-1], np.int64),
            "copies": np.array([-1, 0, 1], np.int64),
        },
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_arithmetic_of_shapes(name: str) -> None:
    nodes, constants = MODELS[name]
    given = {each for one in nodes for each in one.input}
    outputs = [each for one in nodes for each in one.output if each not in given]
    model = model_of(nodes, {"x": ("b", "s")}, outputs, constants=constants, opset=17)
    graph = verify(load_onnx(model))
    for values in ({"b": 1, "s": 1}, {"b": 3, "s": 8}, {"b": 2, "s": 5}):
        check(model, graph, values, 1e-6)


def test_same_padding_of_open_images() -> None:
    image: dict[str, Any] = {"x": ("b", 3, "h", "w")}
    weights = {"k": np.ones((4, 3, 3, 3), np.float32)}
    nodes = [
        node("Conv", ["x", "k"], ["c"], auto_pad="SAME_UPPER", strides=[2, 2]),
        node("MaxPool", ["c"], ["y"], auto_pad="SAME_LOWER", strides=[2, 2], kernel_shape=[3, 3]),
    ]
    model = model_of(nodes, image, ["y"], constants=weights, opset=17)
    graph = load_onnx(model)
    assert [each.operator for each in graph.nodes] == ["pad", "conv", "pad", "max_pool"]
    even = load_onnx(model, sizes={"h": "8.. by 4", "w": "8.. by 4"})
    assert [each.operator for each in even.nodes] == ["conv", "max_pool"]
    for values in ({"b": 1, "h": 9, "w": 14}, {"b": 2, "h": 3, "w": 1}):
        check(model, graph, values, 1e-4)


def test_resized_and_transposed_images() -> None:
    nodes = [
        node("ConvTranspose", ["x", "k"], ["c"], strides=[2, 2], pads=[0, 1, 1, 0]),
        node("Resize", ["c", "", "scales"], ["y"], mode="linear"),
    ]
    constants = {
        "k": np.ones((3, 4, 3, 3), np.float32),
        "scales": np.array([1, 1, 0.6, 2], np.float32),
    }
    model = model_of(nodes, {"x": ("b", 3, "h", "w")}, ["y"], constants=constants, opset=17)
    graph = load_onnx(model)
    assert str(graph.types["y"]) == "f32(b, 4, h + h // 5, 4*w)"
    check(model, graph, {"b": 2, "h": 5, "w": 4}, 1e-4)


@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_a_recurrent_network_with_an_open_batch(operator: str) -> None:
    gates = {"LSTM": 4, "GRU": 3}[operator]
    random = np.random.default_rng(0)
    weights = {
        "w": random.normal(size=(1, gates * 2, 4)).astype(np.float32),
        "r": random.normal(size=(1, gates * 2, 2)).astype(np.float32),
    }
    nodes = [node(operator, ["x", "w", "r"], ["y"], hidden_size=2)]
    model = model_of(nodes, {"x": (3, "b", 4)}, ["y"], constants=weights, opset=17)
    check(model, load_onnx(model), {"b": 5}, 1e-5)


# -- names


def relu_of(**shapes: Any) -> ModelProto:
    nodes = [node("Relu", [name], [f"{name}_out"]) for name in shapes]
    return model_of(nodes, shapes, [f"{name}_out" for name in shapes])


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ({"x": ("batch", 3)}, "f32(batch, 3)"),
        ({"x": ("batch-size", "n/a", "3d", "a b")}, "f32(batch_size, n_a, size_3d, a_b)"),
        ({"x": ("a b", "a_b", "a-b")}, "f32(a_b_2, a_b, a_b_3)"),
        ({"x": (None, 3, "?", "?")}, "f32(x_0, 3, x_2, x_3)"),
        ({"x": ("x_1", "?")}, "f32(x_1, x_1_2)"),
        ({"x": ("?",), "x_0": ("n",)}, "f32(x_0_2)"),
        ({"x": ("past + seq", "2*seq", "seq")}, "f32(past + seq, 2*seq, seq)"),
        ({"x": ("seq+1", "(s0//2)", "batch*heads")}, "f32(seq + 1, s0 // 2, batch*heads)"),
        ({"x": ("n-1", "n"), "y": ("m-1",)}, "f32(n - 1, n)"),
        (
            {"x": ("min(n, 8)", "a +", "max", "floor(n/2)")},
            "f32(min(n, 8), a, max_2, floor_n_2)",
        ),
    ],
)
def test_names_of_dimensions(shapes: dict[str, Any], expected: str) -> None:
    bounds = {"n": "2.."} if ("n-1", "n") in shapes.values() else None
    graph = load_onnx(relu_of(**shapes), sizes=bounds)
    assert str(graph.types["x"]) == expected


def test_an_expression_is_solved_for_its_size() -> None:
    model = relu_of(x=("2*seq + 1", 3), z=("seq",), w=("batch*heads",))
    types = load_onnx(model, {"x": (9, 3), "w": (6,)}).input_types
    assert [each.shape for each in types.values()] == [(9, 3), (4,), (6,)]
    with pytest.raises(InputError, match=r"2\*seq \+ 1 is never 8"):
        load_onnx(model, {"x": (8, 3)})
    with pytest.raises(InputError, match="dimension seq is 5 here and 4 elsewhere"):
        load_onnx(model, {"x": (9, 3), "z": (5,)})


def test_an_expression_is_solved_once_another_input_tells_its_other_size() -> None:
    model = relu_of(x=("past + seq", 3), z=("seq",), w=("past",))
    types = load_onnx(model, {"x": (9, 3), "z": (4,)}).input_types
    assert [each.shape for each in types.values()] == [(9, 3), (4,), (5,)]


def test_numbers_are_given_by_either_name() -> None:
    model = relu_of(x=("batch-size", None))
    for names in ({"batch-size": 2, "x_1": 3}, {"batch_size": 2, "x_1": 3}):
        assert load_onnx(model, names).types["x"].shape == (2, 3)
        assert load_onnx(model, sizes=names).types["x"].shape == (2, 3)


# -- bounds


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ("1..64", "b <= 64"),
        ("8..512 by 8", "b <= 512, b % 8 == 0"),
        (" 5 .. ", "5 <= b"),
        ("..9", "b <= 9"),
        ((2, 64), "2 <= b <= 64"),
        ((2, None), "2 <= b"),
    ],
)
def test_bounds_of_sizes(bounds: Any, expected: str) -> None:
    graph = load_onnx(relu_of(x=("b",)), sizes={"b": bounds})
    assert [each.constraints for each in graph.sizes] == [expected]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"c": 4}, "size c: the model has no open dimension of that name\n  try: its open sizes"),
        ({"bat": 4}, "size bat: the model has no open dimension of that name\n  try: did you mean"),
        ({"batch": -1}, "size batch=-1: it says neither a number nor bounds"),
        ({"batch": (-1, 4)}, "a size is not negative, and its divisor is positive"),
        ({"batch": f"1..{10**20}"}, 'it has a number above 2147483647\n  try: "1.." says'),
        ({"batch": (1 << 31, None)}, "it has a number above 2147483647"),
        ({"batch": "8..4"}, "size batch='8..4': its least number 8 is above its greatest number 4"),
        ({"batch": "9..15 by 8"}, "no multiple of 8 is between 9 and 15"),
        ({"batch": "many"}, "size batch='many': it says neither a number nor bounds"),
        ({"batch": "1-64"}, "size batch='1-64': it says neither a number nor bounds"),
        ({"batch": True}, "it says neither a number nor bounds"),
        ({"batch": (1, 2.5)}, "it says neither a number nor bounds"),
        ("batch", "sizes='batch': it is not a mapping"),
    ],
)
def test_bounds_that_mean_nothing(sizes: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_onnx(relu_of(x=("batch",)), sizes=sizes)
    assert message in str(caught.value)
    assert caught.value.remedy


def test_a_number_that_the_bounds_exclude() -> None:
    model = relu_of(x=("b",))
    with pytest.raises(InputError, match="it is 3, and the size b fulfils 4 <= b <= 8"):
        load_onnx(model, {"b": 3}, sizes={"b": "4..8"})
    with pytest.raises(InputError, match="b is 3 here, and 4 in sizes"):
        load_onnx(model, {"x": (3,)}, sizes={"b": 4})


def test_an_extent_that_may_be_negative() -> None:
    model = relu_of(x=("n - 5", 3))
    with pytest.raises(ModelError, match="its extent n - 5 may be negative"):
        load_onnx(model)
    assert str(load_onnx(model, sizes={"n": "5.."}).types["x"]) == "f32(n - 5, 3)"


# -- what sizes decide


def branches() -> ModelProto:
    """One operator for a batch of 1, another for others."""

    def body(name: str, operator: str) -> Any:
        return helper.make_graph(
            [node(operator, ["x"], [name])], name, [], [helper.make_empty_tensor_value_info(name)]
        )

    nodes = [
        node("Shape", ["x"], ["s"], start=0, end=1),
        node("Equal", ["s", "one"], ["equal"]),
        node("Squeeze", ["equal"], ["is_one"]),
        node("If", ["is_one"], ["y"], then_branch=body("a", "Relu"), else_branch=body("b", "Neg")),
    ]
    return model_of(nodes, {"x": ("b", 3)}, ["y"], constants={"one": ONE}, opset=17)


def test_bounds_decide_a_branch() -> None:
    assert [n.operator for n in load_onnx(branches(), sizes={"b": 1}).nodes] == ["relu"]
    assert [n.operator for n in load_onnx(branches(), sizes={"b": "2.."}).nodes] == ["neg"]
    with pytest.raises(UnsupportedError) as caught:
        load_onnx(branches())
    assert str(caught.value) == (
        "operator If: node y (If): its condition must be known, and it depends on the size b"
        '\n  try: give a number for b: sizes={"b": 64}, where the model is read'
    )


@pytest.mark.parametrize(
    ("left", "right", "shape"),
    [("a", "b", "b"), ("a", 4, "4"), ("a", "b + c", "b + c"), ("2*a", "b", "2*a")],
)
def test_sizes_that_must_be_equal_are_one(left: object, right: object, shape: str) -> None:
    shapes = {"x": (left, 3), "z": (right, 3), "b": ("b", 1), "c": ("c", 1)}
    nodes = [node("Add", ["x", "z"], ["y"]), node("Neg", ["b"], ["u"]), node("Neg", ["c"], ["v"])]
    graph = load_onnx(model_of(nodes, shapes, ["y", "u", "v"]))
    assert str(graph.types["y"]) == f"f32({shape}, 3)"
    assert graph.types["x"] == graph.types["z"] == graph.types["y"]


def test_what_the_caller_says_of_a_size_is_not_changed() -> None:
    model = model_of([node("Add", ["x", "z"], ["y"])], {"x": ("a", 3), "z": (4, 3)}, ["y"])
    with pytest.raises(UnsupportedError) as caught:
        load_onnx(model, sizes={"a": "1..9"})
    assert "whether a == 4 decides the shape" in caught.value.reason
    assert caught.value.operator == "Add"
    assert 'sizes={"a": "4"}' in caught.value.remedy


def test_a_size_is_stretched_over_one_and_meets_itself() -> None:
    nodes = [node("Add", ["x", "z"], ["t"]), node("Add", ["t", "x"], ["y"])]
    model = model_of(nodes, {"x": ("a", 3), "z": (1, 3)}, ["y"])
    graph = load_onnx(model)
    assert str(graph.types["y"]) == "f32(a, 3)"
    check(model, graph, {"a": 1}, 1e-6)


@pytest.mark.parametrize(("first", "most"), [(0, 64), (2, 62)])
def test_positions_in_a_table_bound_a_size(first: int, most: int) -> None:
    nodes = [
        node("Shape", ["x"], ["shape"], start=1, end=2),
        node("Squeeze", ["shape"], ["count"]),
        node("Range", ["zero", "count", "one"], ["range"]),
        node("Add", ["range", "first"], ["positions"]),
        node("Gather", ["table", "positions"], ["rows"]),
        node("Add", ["x", "rows"], ["y"]),
    ]
    constants = {
        "zero": np.array(0),
        "one": np.array(1),
        "first": np.array(first),
        "table": np.arange(64 * 3, dtype=np.float32).reshape(64, 3),
    }
    model = model_of(nodes, {"x": ("b", "s", 3)}, ["y"], constants=constants, opset=17)
    graph = load_onnx(model)
    assert {each.name: each.constraints for each in graph.sizes} == {"b": "", "s": f"s <= {most}"}
    check(model, graph, {"b": 2, "s": most}, 1e-6)
    with pytest.raises(UnsupportedError) as caught:
        load_onnx(model, sizes={"s": "1..512"})
    assert "its positions go up to s" in caught.value.reason
    assert f'sizes={{"s": "..{most}"}}' in caught.value.remedy


def test_a_shape_that_data_decide_is_refused_without_bounds() -> None:
    shapes: dict[str, Any] = {"x": ("b", 3), "s": (2,)}
    model = model_of([node("Reshape", ["x", "s"], ["y"])], shapes, ["y"])
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(UnsupportedError, match="values decide the size y_0, and nothing says"):
        load_onnx(model)
    with pytest.raises(UnsupportedError, match=r"whether y_0\*y_1 == 3\*b decides the shape"):
        load_onnx(model, sizes={"y_0": "..9", "y_1": "..9"})


def test_a_position_that_no_number_makes_room_for() -> None:
    model = model_of(
        [node("Gather", ["x", "i"], ["y"])], {"x": ("b", 3)}, ["y"], constants={"i": np.array(7)}
    )
    assert str(load_onnx(model).types["y"]) == "f32(3)"
    with pytest.raises(ModelError, match="index 7 is outside of dimension 0"):
        load_onnx(model, sizes={"b": "1..7"})


def test_attention_of_onnxruntime_behind_an_open_past() -> None:
    random = np.random.default_rng(0)
    weights = {
        "w": random.normal(size=(8, 24)).astype(np.float32),
        "bias": random.normal(size=24).astype(np.float32),
    }
    attention = node(
        "Attention",
        ["x", "w", "bias", "", "past"],
        ["y", "present"],
        domain="com.microsoft",
        num_heads=2,
        unidirectional=1,
    )
    inputs: dict[str, Any] = {"x": ("b", "s", 8), "past": (2, "b", 2, "p", 4)}
    model = model_of([attention], inputs, ["y", "present"], constants=weights, opset=17)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    graph = load_onnx(model)
    assert str(graph.types["present"]) == "f32(2, b, 2, p + s, 4)"
    for values in ({"b": 1, "s": 1, "p": 3}, {"b": 2, "s": 2, "p": 5}):
        check(model, graph, values, 1e-5)
