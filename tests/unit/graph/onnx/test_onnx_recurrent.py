"""Recurrent operators and loops: values are those of ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.unit.graph.onnx.onnx_models import by_onnxruntime, model_of, random_inputs

import tensorwright
from tensorwright.base import ModelError, UnsupportedError
from tensorwright.graph import (
    CollectCall,
    CopyCall,
    LoopCall,
    interpret,
    partition,
    simplify,
    verify,
)
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.imports.refusals import OTHERWISE
from tensorwright.ops import Array
from tensorwright.runtime.native.driver import steps_in_parts

pytestmark = pytest.mark.usefixtures("by_rule")

STEPS, BATCH, WIDTH, HIDDEN = 4, 2, 3, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def check(model: ModelProto) -> None:
    graph = verify(load_onnx(model))
    inputs = random_inputs(graph)
    for expected, found in zip(
        by_onnxruntime(model, inputs), interpret(graph, inputs).values(), strict=True
    ):
        np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


def recurrent(operator: str, lengths: Array | None = None, **attributes: Any) -> ModelProto:
    generator = np.random.default_rng(3)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    gates = GATES[operator] * HIDDEN

    def weights(*shape: int) -> Array:
        return generator.normal(0, 0.5, (directions, *shape)).astype(np.float32)

    constants = {"w": weights(gates, WIDTH), "r": weights(gates, HIDDEN), "b": weights(2 * gates)}
    names = ["x", "w", "r", "b", "", "h"]
    if lengths is not None:
        constants["lengths"] = lengths
        names[4] = "lengths"
    inputs: dict[str, Any] = {"x": (STEPS, BATCH, WIDTH), "h": (directions, BATCH, HIDDEN)}
    outputs = ["y", "last"]
    if operator == "LSTM":
        inputs["c"] = (directions, BATCH, HIDDEN)
        constants["p"] = weights(3 * HIDDEN)
        names += ["c", "p"]
        outputs.append("cell")
    node = helper.make_node(operator, names, outputs, hidden_size=HIDDEN, **attributes)
    return model_of([node], inputs, outputs, constants=constants, opset=14)


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions(operator: str, direction: str) -> None:
    check(recurrent(operator, direction=direction))


@pytest.mark.parametrize("operator", GATES)
def test_lengths(operator: str) -> None:
    check(recurrent(operator, np.array([4, 2], np.int32)))


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_lengths_backwards(operator: str, direction: str) -> None:
    check(recurrent(operator, np.array([1, 3], np.int32), direction=direction))


def open_recurrent(operator: str, **attributes: Any) -> ModelProto:
    """A layer over any number of steps, with lengths that a call gives."""
    generator = np.random.default_rng(4)
    gates = GATES[operator] * HIDDEN
    constants = {
        "w": generator.normal(0, 0.5, (2, gates, WIDTH)).astype(np.float32),
        "r": generator.normal(0, 0.5, (2, gates, HIDDEN)).astype(np.float32),
    }
    node = helper.make_node(
        operator,
        ["x", "w", "r", "", "lengths"],
        ["y", "last"],
        hidden_size=HIDDEN,
        direction="bidirectional",
        **attributes,
    )
    inputs = {"x": ("steps", "batch", WIDTH)}
    model = model_of([node], inputs, ["y", "last"], constants=constants, opset=14)
    model.graph.input.append(
        helper.make_tensor_value_info("lengths", TensorProto.INT32, ("batch",))
    )
    return model


def test_a_state_of_zeros_has_codes() -> None:
    """The range of such a state is 0, by which nothing can be divided."""
    generator, hidden = np.random.default_rng(7), 16
    constants = {
        "w": generator.integers(-99, 99, (1, WIDTH, 4 * hidden)).astype(np.int8),
        "r": generator.integers(-99, 99, (1, hidden, 4 * hidden)).astype(np.int8),
        "scale": np.array([0.01], np.float32),
        "zero": np.array([0], np.int8),
    }
    names = ["x", "w", "r", *[""] * 5, "scale", "zero", "scale", "zero"]
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", hidden_size=hidden
    )
    model = model_of([node], {"x": (STEPS, BATCH, WIDTH)}, ["y"], constants=constants, opset=14)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    inputs = random_inputs(graph := load_onnx(model))
    expected = interpret(graph, inputs)["y"]
    assert np.isfinite(expected).all()
    found = tensorwright.compile(model, sizes="fixed").run(inputs)["y"]
    np.testing.assert_allclose(found, expected, 1e-3, 1e-3)


@pytest.mark.parametrize("numbers", [[0.0, 0.0], [0.0, 3.0], [-2.0, -1.0], [-1.0, 4.0]])
def test_codes_by_the_range_of_numbers(numbers: list[float]) -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["codes", "scale", "zero"])
    model = model_of([node], {"x": (2,)}, ["codes", "scale", "zero"], opset=14)
    given = {"x": np.array(numbers, np.float32)}
    results = tensorwright.compile(model).run(given)
    for expected, found in zip(by_onnxruntime(model, given), results.values(), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("operator", GATES)
def test_any_number_of_steps(operator: str) -> None:
    model = open_recurrent(operator)
    executable = tensorwright.compile(model, sizes="fixed")
    for steps, lengths in ((1, [1]), (7, [7, 2, 4]), (300, [300, 1])):
        x = np.random.default_rng(steps).normal(size=(steps, len(lengths), WIDTH))
        given = {"x": x.astype(np.float32), "lengths": np.array(lengths, np.int32)}
        results = executable.run(given)
        for expected, name in zip(by_onnxruntime(model, given), ("y", "last"), strict=True):
            np.testing.assert_allclose(results[name], expected, 1e-4, 1e-5)


def test_many_weights_are_read_in_parts() -> None:
    generator, hidden = np.random.default_rng(5), 256
    constants = {
        "w": generator.normal(0, 0.1, (1, 4 * hidden, WIDTH)).astype(np.float32),
        "r": generator.normal(0, 0.1, (1, 4 * hidden, hidden)).astype(np.float32),
    }
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=hidden)
    model = model_of([node], {"x": (5, 4, WIDTH)}, ["y"], constants=constants, opset=14)
    inputs = random_inputs(load_onnx(model))
    executable = tensorwright.compile(model, threads=2)
    plan = executable.plan
    (kernel,) = steps_in_parts(plan)
    assert "matmul" in plan.steps[kernel].label
    (expected,) = by_onnxruntime(model, inputs)
    for threads in (1, 2):
        found = executable.with_plan(plan, threads)
        np.testing.assert_allclose(found.run(inputs)["y"], expected, 1e-4, 1e-5)


@pytest.mark.parametrize("operator", GATES)
def test_directions_with_activations_of_their_own(operator: str) -> None:
    count = {"RNN": 1, "GRU": 2, "LSTM": 3}[operator]
    names = ["Sigmoid", "Tanh", "Tanh"][-count:] + ["Sigmoid", "Relu", "Tanh"][-count:]
    check(recurrent(operator, direction="bidirectional", activations=names))


def test_more_steps_are_no_more_nodes() -> None:
    def count(steps: int) -> int:
        model = open_recurrent("LSTM")
        graph = load_onnx(model, {"x": (steps, 2, WIDTH), "lengths": (2,)})
        return len(graph.nodes)

    assert count(2) == count(2000)


def test_a_state_that_alone_is_read_collects_no_rows() -> None:
    model = recurrent("LSTM")
    model.graph.node[0].output[0] = ""
    del model.graph.output[0]
    check(model)
    (loop,) = (node for node in load_onnx(model).nodes if node.operator == "loop")
    assert len(loop.outputs) == 2


def test_variants() -> None:
    check(recurrent("GRU", linear_before_reset=1))
    check(recurrent("LSTM", clip=0.3))
    check(recurrent("RNN", activations=["Relu"]))


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"activations": ["Affine"]}, "its activation 'Affine' is not supported"),
        ({"direction": "sideways"}, "its direction sideways is not supported"),
    ],
)
def test_what_is_not_supported(attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        load_onnx(recurrent("RNN", **attributes))
    assert str(caught.value) == f"operator RNN: node y (RNN): {reason}\n  try: {OTHERWISE}"


def info(name: str, dtype: int = TensorProto.FLOAT) -> Any:
    shape = None if dtype == TensorProto.FLOAT else ()
    return helper.make_tensor_value_info(name, dtype, shape)


def test_scan() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "row"], ["next"]),
            helper.make_node("Mul", ["next", "factor"], ["out"]),
        ],
        "body",
        [info("state"), info("row")],
        [info("next"), info("out")],
    )
    node = helper.make_node(
        "Scan",
        ["start", "x"],
        ["end", "y"],
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_input_directions=[1],
        scan_output_axes=[1],
    )
    check(model_of([node], {"start": (2,), "x": (2, 3), "factor": (2,)}, ["end", "y"], opset=13))


def loop(trips: int, condition: bool = True) -> ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["still"]),
            helper.make_node("Cast", ["turn"], ["number"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["state", "number"], ["next"]),
            helper.make_node("Mul", ["next", "x"], ["row"]),
        ],
        "body",
        [info("turn", TensorProto.INT64), info("going", TensorProto.BOOL), info("state")],
        [info("still", TensorProto.BOOL), info("next"), info("row")],
    )
    node = helper.make_node("Loop", ["trips", "go", "x"], ["end", "rows"], body=body)
    constants = {"trips": np.asarray(trips, np.int64), "go": np.asarray(condition)}
    return model_of([node], {"x": (3,)}, ["end", "rows"], constants=constants, opset=13)


def test_loop() -> None:
    model = loop(4)
    check(model)
    assert "number" not in str(load_onnx(model)), "the numbers of the iterations are known"


def test_long_loops_are_kept() -> None:
    graph = load_onnx(loop(5000))
    assert [node.operator for node in graph.nodes] == ["loop"]
    assert graph.types["rows"].shape == (5000, 3)


@pytest.mark.parametrize("operator", GATES)
def test_an_iteration_copies_only_what_one_kernel_reads_and_replaces(operator: str) -> None:
    """The condition never changes, and no step reads an LSTM's state once the next is computed.

    The kernel that computes an LSTM's cell, or another one's state, reads the one before.
    """
    graph = load_onnx(recurrent(operator, direction="bidirectional"))
    steps = partition(simplify(graph)).steps
    (at,) = (at for at, step in enumerate(steps) if isinstance(step, LoopCall))
    body = steps[at + 1 :]
    assert sum(isinstance(step, CopyCall) for step in body) == 1
    assert sum(isinstance(step, CollectCall) for step in body) == 1


def test_functions_that_call_themselves() -> None:
    node = helper.make_node("Again", ["X"], ["Y"], domain="mine")
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    function = helper.make_function("mine", "Again", ["X"], ["Y"], [node], opsets)
    call = helper.make_node("Again", ["x"], ["y"], domain="mine", name="a")
    model = model_of([call], {"x": (1,)}, ["y"], opset=18, functions=[function])
    with pytest.raises(ModelError, match="functions call each other more than 32 deep"):
        load_onnx(model)


def test_activations_take_their_numbers_in_order() -> None:
    check(
        recurrent(
            "GRU",
            direction="bidirectional",
            activations=["HardSigmoid", "LeakyRelu", "Sigmoid", "Elu"],
            activation_alpha=[0.3, 0.05, 0.7],
            activation_beta=[0.4],
        )
    )


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_no_steps_leave_the_states_as_they_are(operator: str, direction: str) -> None:
    model = recurrent(operator, direction=direction)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 0
    graph = verify(load_onnx(model))
    inputs = random_inputs(graph)
    rows, *states = interpret(graph, inputs).values()
    count = 2 if direction == "bidirectional" else 1
    assert rows.shape == (0, count, BATCH, HIDDEN)
    for name, state in zip("hc", states, strict=False):
        np.testing.assert_array_equal(state, inputs[name])


@pytest.mark.parametrize(
    ("functions", "loops"), [(("Tanh", "Tanh"), 1), (("Tanh", "Relu"), 2)], ids=["equal", "other"]
)
def test_directions_share_a_loop_if_their_functions_are_equal(
    functions: tuple[str, str], loops: int
) -> None:
    constants = {
        "w": np.zeros((2, HIDDEN, WIDTH), np.float32),
        "r": np.zeros((2, HIDDEN, HIDDEN), np.float32),
    }
    node = helper.make_node(
        "RNN",
        ["x", "w", "r"],
        ["y"],
        hidden_size=HIDDEN,
        direction="bidirectional",
        activations=functions,
    )
    model = model_of([node], {"x": (5, 4, WIDTH)}, ["y"], constants=constants, opset=14)
    assert [node.operator for node in load_onnx(model).nodes].count("loop") == loops
