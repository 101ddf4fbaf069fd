"""ONNX operators as PyTorch calls: the answers of the evaluator; what is folded and joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import helper
from tests.unit.peers.models import Array, draw, make_model, small_network

from tensorwright.graph import interpret
from tensorwright.graph.imports import load_onnx
from tensorwright.peers.process import max_rel_error

torch = pytest.importorskip("torch")
network = pytest.importorskip("tensorwright_lab.competitors.torch_network")
patterns = pytest.importorskip("tensorwright_lab.competitors.torch_patterns")
peers = pytest.importorskip("tensorwright_lab.competitors.pytorch_peer")


@dataclass(frozen=True)
class Case:
    operator: str
    shapes: Sequence[Sequence[int]]
    constants: Sequence[Array] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    version: int = 20

    def __str__(self) -> str:
        return self.operator


def numbers(*values: int) -> Array:
    return np.array(values, np.int64)


IMAGE = (2, 4, 7, 6)
WINDOW = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 0, 1]}
CASES = (
    Case("Conv", [IMAGE], [draw((6, 2, 3, 3)), draw((6,))], {"group": 2, "dilations": [2, 1]}),
    Case("Conv", [IMAGE], [draw((6, 4, 3, 3))], {**WINDOW, "pads": [1, 0, 2, 1]}),
    Case("Conv", [(1, 2, 4, 5, 5)], [draw((3, 2, 3, 3, 3))], {"pads": [1] * 6}),
    Case("Conv", [(1, 2, 9)], [draw((3, 2, 3))], {"strides": [2]}),
    Case("ConvTranspose", [IMAGE], [draw((4, 3, 4, 4))], {"strides": [2, 2], "pads": [1] * 4}),
    Case("ConvTranspose", [IMAGE], [draw((4, 3, 3, 3))], {"pads": [0, 1, 1, 2]}),
    Case("MaxPool", [IMAGE], (), WINDOW),
    Case("AveragePool", [IMAGE], (), {**WINDOW, "pads": [1, 1, 1, 1]}),
    Case("AveragePool", [IMAGE], (), {**WINDOW, "count_include_pad": 1}),
    Case("GlobalAveragePool", [IMAGE]),
    Case("LRN", [IMAGE], (), {"size": 3, "alpha": 0.1}),
    Case("LayerNormalization", [(2, 3, 8)], [draw((8,)), draw((8,), 1)], {"epsilon": 1e-3}),
    Case("Gemm", [(3, 4)], [draw((5, 4)), draw((5,))], {"transB": 1, "alpha": 0.5}),
    Case("Gemm", [(4, 3)], [draw((4, 5))], {"transA": 1}),
    Case("MatMul", [(2, 3, 4), (2, 4, 5)]),
    Case("Softmax", [(2, 3, 4)], (), {"axis": 1}),
    Case("Softmax", [(2, 3, 4)], (), {}, 11),
    Case("Clip", [(9,)], [np.float32(-0.5), np.float32(0.5)]),
    Case("Gelu", [(9,)]),
    Case("Gelu", [(9,)], (), {"approximate": "tanh"}),
    Case("Reshape", [(2, 3, 4)], [numbers(0, -1)]),
    Case("Flatten", [(2, 3, 4)], (), {"axis": 2}),
    Case("Transpose", [(2, 3, 4)], (), {"perm": [2, 0, 1]}),
    Case("Transpose", [(2, 3, 4)]),
    Case("Unsqueeze", [(2, 3)], [numbers(0, -1)]),
    Case("Squeeze", [(2, 1, 3)], [numbers(1)]),
    Case("Concat", [(2, 3), (2, 1)], (), {"axis": 1}),
    Case("Slice", [(5, 6)], [numbers(1, 0), numbers(5, 4), numbers(1, 0), numbers(2, 1)]),
    Case("Expand", [(3, 1)], [numbers(2, 1, 4)]),
    Case("Trilu", [(2, 4, 5)], [numbers(1)]),
    Case("Sum", [(2, 3), (3,), (2, 1)]),
    Case("Sub", [(2, 3), (3,)]),
    Case("Div", [(2, 3)], [np.float32(3)]),
    Case("Sigmoid", [(4,)]),
    *(Case(name, [(9,)]) for name in ("Abs", "Cos", "Erf", "Exp", "Floor", "HardSwish", "Neg")),
    *(Case(name, [(9,)]) for name in ("Elu", "HardSigmoid", "LeakyRelu", "Mish", "Softplus")),
    Case("HardSigmoid", [(9,)], (), {"alpha": 0.3, "beta": 0.4}),
    Case("LeakyRelu", [(9,)], (), {"alpha": 0.2}),
    Case("InstanceNormalization", [IMAGE], [draw((4,)), draw((4,), 1)]),
    Case("Max", [(2, 3), (3,), (2, 1)]),
    Case("Min", [(2, 3), (3,)]),
    Case("PRelu", [(2, 3)], [draw((3,))]),
    Case("Pad", [(2, 3)], [numbers(0, 1, 2, 0), np.float32(2)]),
    Case("Pow", [(2, 3)], [np.float32(2)]),
    Case("ReduceMax", [(2, 3, 4)], [numbers(1)]),
    Case("ReduceMean", [IMAGE], [numbers(2, 3)], {"keepdims": 0}),
    Case("ReduceMean", [IMAGE], (), {"axes": [1], "keepdims": 1}, 13),
    Case("ReduceMin", [(2, 3)]),
    Case("ReduceSum", [(2, 3)], [numbers(-1)], {"keepdims": 0}),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_operator(case: Case) -> None:
    given = {f"x{n}": draw(shape, n + 20) for n, shape in enumerate(case.shapes)}
    constants = {f"c{n}": value for n, value in enumerate(case.constants)}
    node = helper.make_node(case.operator, [*given, *constants], ["y"], **case.attributes)
    shapes = {name: array.shape for name, array in given.items()}
    model = make_model(
        [node], shapes, {n: np.asarray(v) for n, v in constants.items()}, case.version
    )
    assert max_rel_error(run(model, given), interpret(load_onnx(model), given)) < 2e-6


def test_gathering_rows_and_columns() -> None:
    places = np.array([[2, 0], [1, 1]])
    for axis in (0, 1):
        node = helper.make_node("Gather", ["x", "places"], ["y"], axis=axis)
        model = make_model([node], {"x": (3, 4)}, {"places": places})
        x = draw((3, 4))
        np.testing.assert_array_equal(run(model, {"x": x})["y"], np.take(x, places, axis))


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("group", [1, 2])
def test_normalisation_is_folded_into_what_comes_before(operator: str, group: int) -> None:
    shape = (6, 4 // group, 3, 3) if operator == "Conv" else (4, 6 // group, 3, 3)
    constants = {
        "w": draw(shape),
        "b": draw((6,), 1),
        **{name: np.abs(draw((6,), n)) + 0.1 for n, name in enumerate(("s", "c", "m", "v"))},
    }
    nodes = [
        helper.make_node(operator, ["x", "w", "b"], ["y"], group=group),
        helper.make_node("BatchNormalization", ["y", "s", "c", "m", "v"], ["z"], epsilon=1e-2),
    ]
    model = make_model(nodes, {"x": IMAGE}, constants)
    assert len(network.make_network(model)._steps) == 1
    given = {"x": draw(IMAGE, 9)}
    assert max_rel_error(run(model, given), interpret(load_onnx(model), given)) < 2e-6
    assert len(model.graph.node) == 2  # the model itself is as it was


def test_a_tensor_that_others_read_is_not_folded_away() -> None:
    model = small_network()
    nodes = list(model.graph.node)
    nodes.append(helper.make_node("ReduceSum", ["c"], ["t"]))
    assert len(patterns.fold_norms(nodes, {}, ["y"])) == len(nodes)


def test_constants_are_computed_once_and_single_numbers_passed_as_numbers() -> None:
    nodes = [
        helper.make_node("Unsqueeze", ["a", "axes"], ["b"]),
        helper.make_node("Add", ["x", "b"], ["s"]),
        helper.make_node("Mul", ["s", "two"], ["y"]),
    ]
    constants = {"a": draw((3,)), "axes": numbers(0), "two": np.array(2, np.float32)}
    made = network.make_network(make_model(nodes, {"x": (2, 3)}, constants))
    assert [step.inputs for step in made._steps] == [("x", "b"), ("s", 2.0)]
    assert [tuple(each.shape) for each in made.parameters()] == [(1, 3)]


def test_channels_last_changes_where_numbers_lie_alone() -> None:
    made = network.make_network(small_network()).eval()
    other = peers.in_channels_last(made)
    x = torch.from_numpy(draw((1, 3, 9, 9)))
    assert not next(made.parameters()).is_contiguous(memory_format=torch.channels_last)
    weight = next(each for each in other.parameters() if each.dim() == 4)
    assert weight.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(other(peers.channels_last(x)), made(x))


def run(model: Any, given: Mapping[str, Array]) -> dict[str, Array]:
    made = network.make_network(model)
    tensors = [torch.from_numpy(given[name]) for name in made.input_names]
    outputs = made(*tensors)
    return {n: o.numpy() for n, o in zip(made.output_names, outputs, strict=True)}


@pytest.mark.parametrize(("axis", "joins"), [(-1, True), (2, False)])
def test_attention_that_is_spelt_out_becomes_one_operator(axis: int, joins: bool) -> None:
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["a"]),
        helper.make_node("Mul", ["a", "scale"], ["b"]),
        helper.make_node("Softmax", ["b"], ["c"], axis=axis),
        helper.make_node("MatMul", ["c", "v"], ["y"]),
    ]
    shapes = {"q": (1, 2, 5, 4), "k": (1, 2, 4, 5), "v": (1, 2, 5, 3)}
    model = make_model(nodes, shapes, {"scale": np.array(0.5, np.float32)})
    assert (len(network.make_network(model)._steps) == 1) is joins
    given = {name: draw(shape, n) for n, (name, shape) in enumerate(shapes.items())}
    assert max_rel_error(run(model, given), interpret(load_onnx(model), given)) < 2e-6


def test_the_compiler_is_asked_for_its_best(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("tensorwright_lab.competitors.inductor_peer")
    asked: list[dict[str, Any]] = []

    def compile_(network: Any, **options: Any) -> Any:
        asked.append(options)
        return network

    monkeypatch.setattr(torch, "compile", compile_)
    made = network.make_network(small_network()).eval()
    x = torch.from_numpy(draw((1, 3, 9, 9)))
    with module.settings.patch(freezing=False):  # pytest's would delete the setting afterwards
        (y,) = module.InductorPeer().prepare(made, [x])()
        assert module.settings.freezing is True
    assert asked == [{"mode": "max-autotune", "fullgraph": True, "dynamic": False}]
    assert y.is_inference()
    torch.testing.assert_close(y, made(x)[0])
