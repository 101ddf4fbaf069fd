"""Models that say two things at once or point outside are refused; what is only unusual is not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tests.unit.graph.onnx.onnx_models import by_onnxruntime, model_of

import tensorwright
from tensorwright.base import DType, ModelError
from tensorwright.graph import GraphBuilder, interpret, simplify
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.imports.refusals import INVALID

pytestmark = pytest.mark.usefixtures("by_rule")

node = helper.make_node
REMEDY = "\n  try: give each tensor of the model a name of its own"


def refusal(model: ModelProto) -> str:
    with pytest.raises(ModelError) as caught:
        load_onnx(model)
    return str(caught.value)


# Two definitions


def branch(nodes: Sequence[NodeProto], output: str, **constants: np.ndarray) -> GraphProto:
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    info = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    return helper.make_graph(nodes, "branch", [], [info], held)


def chosen(nodes: Sequence[NodeProto], output: str, **constants: np.ndarray) -> ModelProto:
    """A model with these nodes in the branch that is taken; `t` is defined before, `late` later."""
    branches = {
        "then_branch": branch(nodes, output, **constants),
        "else_branch": branch([node("Abs", ["x"], ["other"])], "other"),
    }
    around = [
        node("Relu", ["x"], ["t"]),
        node("If", ["go"], ["z"], **branches, name="if"),
        node("Abs", ["z"], ["late"]),
        node("Add", ["late", "t"], ["y"]),
    ]
    return model_of(around, {"x": (3, 4)}, ["y"], constants={"go": np.asarray(True)}, opset=18)


def test_two_definitions_of_a_tensor() -> None:
    twice = [node("Relu", ["x"], ["t"], name="a"), node("Neg", ["x"], ["t"], name="b")]
    after = [node("Abs", ["t"], ["y"])]
    assert refusal(model_of([*twice, *after], {"x": (3,)}, ["y"])) == (
        "node b (Neg): tensor t is defined twice: by this node and node a (Relu)" + REMEDY
    )
    constants = {"t": np.ones(3, np.float32)}
    assert refusal(model_of([*twice[:1], *after], {"x": (3,)}, ["y"], constants=constants)) == (
        "node a (Relu): tensor t is defined twice: by this node and an initialiser" + REMEDY
    )
    assert refusal(model_of([*twice[:1], *after], {"x": (3,), "t": (3,)}, ["y"])) == (
        "node a (Relu): tensor t is defined twice: by this node and an input" + REMEDY
    )
    split = node("Split", ["x"], ["y", "y"], name="s", num_outputs=2)
    assert refusal(model_of([split], {"x": (4,)}, ["y"])) == (
        "node s (Split): tensor y is defined twice: by this node and node s (Split)" + REMEDY
    )


def test_two_inputs_or_two_initialisers() -> None:
    model = model_of(after := [node("Relu", ["x"], ["y"])], {"x": (3,)}, ["y"])
    model.graph.input.append(model.graph.input[0])
    assert refusal(model) == "model test: tensor x is defined twice: by two inputs" + REMEDY
    model = model_of(after, {}, ["y"], constants={"x": np.ones(3, np.float32)})
    model.graph.initializer.append(model.graph.initializer[0])
    assert load_onnx(model).types["y"].shape == (3,), "the same once more does no harm"
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(3, np.float32), "x"))
    assert refusal(model) == "model test: tensor x is defined twice: by two initialisers" + REMEDY


def test_a_nested_graph_defines_nothing_that_it_sees() -> None:
    inside = [node("Neg", ["x"], ["t"], name="n"), node("Abs", ["t"], ["out"])]
    assert refusal(chosen(inside, "out")) == (
        "node n (Neg): tensor t is defined twice: by this node and node t (Relu)" + REMEDY
    )
    twice = [node("Neg", ["x"], ["out"], name="n"), node("Abs", ["x"], ["out"], name="m")]
    assert refusal(chosen(twice, "out")) == (
        "node m (Abs): tensor out is defined twice: by this node and node n (Neg)" + REMEDY
    )
    assert "by this node and an input" in refusal(chosen([node("Neg", ["t"], ["x"])], "x"))


@pytest.mark.parametrize(
    "model",
    [
        chosen([node("Neg", ["x"], ["other"])], "other"),  # as the other branch calls it
        chosen([node("Neg", ["x"], ["late"])], "late"),  # as what comes later
        chosen([node("Neg", ["t"], ["o"])], "o", t=np.ones((3, 4), np.float32)),  # hides t
    ],
)
def test_names_that_nobody_can_mistake(model: ModelProto) -> None:
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    (expected,) = by_onnxruntime(model, {"x": x})
    np.testing.assert_array_equal(interpret(load_onnx(model), {"x": x})["y"], expected)


def test_two_definitions_in_a_function() -> None:
    body = [node("Relu", ["a"], ["b"], name="r"), node("Neg", ["a"], ["b"], name="n")]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    function = helper.make_function("mine", "Twice", ["a"], ["b"], body, opsets)
    call = node("Twice", ["x"], ["y"], domain="mine")
    assert refusal(model_of([call], {"x": (1,)}, ["y"], functions=[function])) == (
        "node n (Neg): tensor b is defined twice: by this node and node r (Relu)" + REMEDY
    )


# Positions outside


def at(operator: str, indices: object, *more: str, **attributes: object) -> ModelProto:
    inputs = ["x", "i", *more]
    constants = {"i": np.asarray(indices), "u": np.ones((1, 1, 1), np.float32)}
    constants |= {"row": np.ones((1, 5), np.float32)}
    return model_of(
        [node(operator, inputs, ["y"], name="n", **attributes)],
        {"x": (3, 4, 5)},
        ["y"],
        constants=constants,
    )


OUTSIDE = {
    "gather": (at("Gather", [0, 5], axis=2), "index 5", 2, 5),
    "gather from the end": (at("Gather", [-6], axis=2), "index -6", 2, 5),
    "gather one": (at("Gather", 3), "index 3", 0, 3),
    "gather 32 bits": (at("Gather", np.array([4], np.int32), axis=-2), "index 4", 1, 4),
    "gather elements": (at("GatherElements", [[[5]]], axis=2), "index 5", 2, 5),
    "gather nd": (at("GatherND", [[2, 4]]), "index 4", 1, 4),
    "gather nd of a batch": (at("GatherND", [[3], [4], [0]], batch_dims=1), "index 4", 1, 4),
    "scatter elements": (at("ScatterElements", [[[4]]], "u", axis=1), "index 4", 1, 4),
    "scatter nd": (at("ScatterND", [[0, -5]], "row"), "index -5", 1, 4),
    "reverse": (
        at("ReverseSequence", [1, 9, 1], batch_axis=0, time_axis=1),
        "length 9",
        1,
        4,
    ),
    "compress": (
        model_of(
            [node("Compress", ["x", "i"], ["y"], name="n", axis=1)],
            {"x": (3, 4, 5)},
            ["y"],
            constants={"i": np.array([True] + 5 * [False] + [True])},
        ),
        "index 6",
        1,
        4,
    ),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_a_known_position_outside_is_refused(case: str) -> None:
    model, index, dimension, extent = OUTSIDE[case]
    operator = model.graph.node[0].op_type
    where = "" if operator == "Compress" else "in its input i, "
    assert refusal(model) == (
        f"node n ({operator}): {where}{index} is outside of dimension {dimension} of (3, 4, 5),"
        f" whose extent is {extent}\n  try: {INVALID}"
    )


@pytest.mark.parametrize(
    "model",
    [
        at("Gather", [-5, 4, 0], axis=2),
        at("GatherElements", [[[-5]]], axis=2),
        at("GatherND", [[-3, 3, 4]]),
        at("ScatterElements", [[[-4]]], "u", axis=1),
        at("ReverseSequence", [4, 1, 2], batch_axis=0, time_axis=1),
    ],
)
def test_the_outermost_positions_are_inside(model: ModelProto) -> None:
    x = np.random.default_rng(2).normal(size=(3, 4, 5)).astype(np.float32)
    (expected,) = by_onnxruntime(model, {"x": x})
    np.testing.assert_array_equal(interpret(load_onnx(model), {"x": x})["y"], expected)


def test_one_hot_takes_every_index() -> None:
    """The standard gives a row of the off value to what lies outside."""
    constants = {"i": np.array([9, -9, 1]), "d": np.array(3), "v": np.array([0, 1], np.float32)}
    model = model_of([node("OneHot", ["i", "d", "v"], ["y"])], {}, ["y"], constants=constants)
    (expected,) = by_onnxruntime(model, {})
    np.testing.assert_array_equal(interpret(load_onnx(model), {})["y"], expected)


def test_a_position_that_folding_finds_outside() -> None:
    """Also of graphs that come from elsewhere, and of what is read from a constant."""
    for is_constant in (True, False):
        b = GraphBuilder("far")
        one = b.constant(np.array([2]))
        positions = b.add("add", one, one)
        x = b.constant(np.ones((3, 4), np.float32)) if is_constant else b.input("x", (3, 4))
        graph = b.finish([b.add("gather", x, positions, output="y", axis=0)])
        with pytest.raises(ModelError) as caught:
            simplify(graph)
        assert str(caught.value) == (
            f"node y (gather): in {positions}, index 4 is outside of dimension 0 of (3, 4),"
            " whose extent is 3"
            "\n  try: correct the positions in the model: they count from 0, or from -1 backwards"
        )


AXES = {
    "Flatten": ({"axis": 9}, [], "attribute axis is 9, but there are 3 dimensions"),
    "Split": ({"axis": -4, "num_outputs": 1}, [], "attribute axis is -4, but"),
    "QuantizeLinear": ({"axis": 3}, ["scales"], "attribute axis is 3, but"),
    "Pad": ({}, ["two", "", "far"], "attribute axes is 5, but"),
    "Resize": ({"axes": [7]}, ["", "scale"], "attribute axes is 7, but"),
}


@pytest.mark.parametrize("operator", AXES)
def test_an_axis_outside_is_refused(operator: str) -> None:
    attributes, inputs, reason = AXES[operator]
    constants = {
        "scales": np.ones(3, np.float32),
        "scale": np.ones(1, np.float32),
        "two": np.array([1, 1]),
        "far": np.array([5]),
    }
    nodes = [node(operator, ["x", *inputs], ["y"], name="n", **attributes)]
    assert refusal(model_of(nodes, {"x": (3, 4, 5)}, ["y"], constants=constants)).startswith(
        f"node n ({operator}): {reason}"
    )


# No iteration


def info(name: str, dtype: int, shape: Sequence[int | str] | None) -> object:
    return helper.make_tensor_value_info(name, dtype, shape)


def loop(row: Sequence[int | str] | None, *, trips: int = 0, go: bool = True) -> ModelProto:
    boolean, number = TensorProto.BOOL, TensorProto.FLOAT
    body = helper.make_graph(
        [
            node("Identity", ["going"], ["still"]),
            node("Add", ["state", "x"], ["next"]),
            node("Cast", ["next"], ["row"], to=TensorProto.INT32),
        ],
        "body",
        [
            info("turn", TensorProto.INT64, ()),
            info("going", boolean, ()),
            info("state", number, (3,)),
        ],
        [
            info("still", boolean, ()),
            info("next", number, (3,)),
            info("row", TensorProto.INT32, row),
        ],
    )
    return model_of(
        [node("Loop", ["trips", "go", "x"], ["last", "rows"], body=body)],
        {"x": (3,)},
        ["last", "rows"],
        constants={"trips": np.array(trips), "go": np.array(go)},
        opset=18,
    )


@pytest.mark.parametrize("row", [(3,), None, ("n",)])
@pytest.mark.parametrize(("trips", "go"), [(0, True), (5, False)])
def test_a_loop_without_iterations(row: Sequence[int | str] | None, trips: int, go: bool) -> None:
    model = loop(row, trips=trips, go=go)
    x = np.arange(3, dtype=np.float32)
    last, rows = by_onnxruntime(model, {"x": x})
    assert rows.shape == (0, 3)
    assert rows.dtype == np.int32
    graph = load_onnx(model)
    assert "add" not in str(graph), "what never runs leaves nothing behind"
    found = tensorwright.compile(model).run({"x": x})
    np.testing.assert_array_equal(found["last"], last)
    assert found["rows"].shape == rows.shape
    assert found["rows"].dtype == rows.dtype


@pytest.mark.parametrize("row", [(4,), None])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_scan_of_nothing(row: Sequence[int] | None, axis: int) -> None:
    """ONNX Runtime fails here; the standard's loop over no element gives this."""
    number = TensorProto.FLOAT
    body = helper.make_graph(
        [
            node("Add", ["state", "element"], ["next"]),
            node("Concat", ["next", "one"], ["row"], axis=0),
        ],
        "body",
        [info("state", number, (3,)), info("element", number, (3,))],
        [info("next", number, (3,)), info("row", number, row)],
    )
    scan = node(
        "Scan",
        ["s", "x"],
        ["last", "rows"],
        num_scan_inputs=1,
        body=body,
        scan_input_axes=[1],
        scan_output_axes=[axis],
    )
    constants = {"one": np.ones(1, np.float32)}
    graph = load_onnx(
        model_of([scan], {"s": (3,), "x": (3, 0)}, ["last", "rows"], constants=constants, opset=18)
    )
    assert graph.types["rows"].shape == ((0, 4) if axis == 0 else (4, 0))
    assert graph.types["rows"].dtype is DType.F32
