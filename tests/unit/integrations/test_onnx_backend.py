"""The interface that the onnx package asks of a backend, and some of that package's own cases."""

from __future__ import annotations

import json
import unittest
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from benchmarks.correctness.onnx_backend import WatchedBackend, run_case
from onnx import ModelProto, TensorProto, helper
from onnx.backend.test import BackendTest
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt
from tests.draws import some_of

from tensorwright.base import InputError, ModelError, UnsupportedError
from tensorwright.integrations import onnx_backend as backend
from tensorwright.integrations.onnx_backend import Backend, Placement

pytestmark = pytest.mark.usefixtures("by_rule")

RECORD = Path(__file__).parents[3] / "benchmarks/results/onnx-backend.json"
"""What all cases came to, by benchmarks/correctness/onnx_backend.py."""


def of_each_operator(count: int) -> Iterator[str]:
    """Cases that passed on record: some of each operator, from all over its cases."""
    of: dict[str, list[str]] = {}
    for row in json.loads(RECORD.read_text())["cases"]:
        if row["outcome"] in ("compiled", "host"):
            of.setdefault(row["operator"], []).append(row["case"])
    for cases in of.values():
        yield from sorted(cases, key=lambda case: zlib.crc32(case.encode()))[:count]


CASES = tuple(of_each_operator(1))
REFUSED = {
    "test_det_2d_cpu": "Det",
    "test_sequence_insert_at_front_cpu": "SequenceInsert",
    "test_strnormalizer_nostopwords_nochangecase_cpu": "StringNormalizer",
    "test_cast_FLOAT_to_FLOAT8E4M3FN_cpu": "Cast",
    "test_cast_INT4_to_FLOAT_cpu": "Cast",
    "test_optional_get_element_tensor_cpu": "OptionalGetElement",
    "test_bernoulli_cpu": "Bernoulli",
    "test_adam_cpu": "Adam",
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> type[unittest.TestCase]:
    """The runner's cases that are named here."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("ONNX_HOME", str(tmp_path_factory.mktemp("onnx")))
        warnings.simplefilter("ignore")  # the package computes its cases, overflows among them
        runner = BackendTest(WatchedBackend, __name__)
        for name in (*CASES, *REFUSED):
            runner.include(f"^{name}$")
        return runner.test_cases["OnnxBackendNodeModelTest"]


@pytest.mark.parametrize("name", some_of(CASES, 60, "onnx backend"))
@pytest.mark.drawn
def test_a_case_of_the_onnx_package(suite: type[unittest.TestCase], name: str) -> None:
    row = run_case(suite, name, "")
    assert row.outcome in ("compiled", "host"), row.reason


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused_by_name(
    suite: type[unittest.TestCase], name: str
) -> None:
    row = run_case(suite, name, "")
    assert row.outcome == "unsupported"
    assert row.named == REFUSED[name]
    assert row.reason


def test_a_case_that_did_not_run_has_not_passed() -> None:
    class Silent(unittest.TestCase):
        def test_swallowed(self) -> None:
            try:
                raise BackendIsNotSupposedToImplementIt("not here")
            except BackendIsNotSupposedToImplementIt:
                pass  # as the runner does

        def test_skipped(self) -> None:
            raise unittest.SkipTest("not here")

        def test_wrong(self) -> None:
            raise AssertionError("another result")

    rows = [run_case(Silent, name, "") for name in ("test_swallowed", "test_skipped", "test_wrong")]
    assert [row.outcome for row in rows] == ["failed"] * 3
    assert rows[0].reason == "the case did not run"
    assert "not here" in rows[1].reason
    assert "another result" in rows[2].reason


def model_of(
    node: onnx.NodeProto,
    inputs: dict[str, tuple[int, tuple[int | str, ...]]],
    **known: np.ndarray,
) -> ModelProto:
    graph = helper.make_graph(
        [node],
        "small",
        [helper.make_tensor_value_info(name, *each) for name, each in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in node.output],
        [onnx.numpy_helper.from_array(array, name) for name, array in known.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


RELU = model_of(helper.make_node("Relu", ["x"], ["y"]), {"x": (TensorProto.FLOAT, ("n", 3))})
SLICE = model_of(
    helper.make_node("Slice", ["x", "first", "last"], ["y"]),
    {
        "x": (TensorProto.FLOAT, (4,)),
        "first": (TensorProto.INT64, (1,)),
        "last": (TensorProto.INT64, (1,)),
    },
)


def test_a_model_runs_by_position_and_by_name() -> None:
    x = np.array([[-1, 0, 2]], np.float32)
    for inputs in ([x], (x,), x, {"x": x}):
        (y,) = backend.run_model(RELU, inputs)
        np.testing.assert_array_equal(y, [[0, 0, 2]])


def test_an_open_shape_is_taken_from_the_call() -> None:
    prepared = backend.prepare(RELU)
    assert prepared.executable is None
    assert prepared.placement is None
    for rows in (2, 5, 2):
        (y,) = prepared.run([-np.ones((rows, 3), np.float32)])
        np.testing.assert_array_equal(y, np.zeros((rows, 3)))
    assert prepared.placement is Placement.COMPILED


def test_values_that_decide_shapes_are_taken_from_the_call() -> None:
    prepared = backend.prepare(SLICE)
    x = np.arange(4, dtype=np.float32)
    for first, last in ((0, 2), (1, 4)):
        (y,) = prepared.run([x, np.array([first]), np.array([last])])
        np.testing.assert_array_equal(y, x[first:last])
    same = prepared.executable
    prepared.run([x, np.array([1]), np.array([4])])
    assert prepared.executable is same


def test_the_number_of_inputs_is_checked() -> None:
    with pytest.raises(InputError, match="1 are given, the model has 3"):
        backend.prepare(SLICE).run([np.zeros(4, np.float32)])


def test_initialisers_are_not_asked_for() -> None:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    inputs = {"x": (TensorProto.FLOAT, (2,)), "w": (TensorProto.FLOAT, (2,))}
    model = model_of(node, inputs, w=np.array([1, 2], np.float32))
    (y,) = backend.run_model(model, [np.ones(2, np.float32)])
    np.testing.assert_array_equal(y, [2, 3])


@pytest.mark.parametrize("as_bytes", [True, False])
def test_bytes_and_paths_are_models_too(tmp_path: Path, as_bytes: bool) -> None:
    path = tmp_path / "relu.onnx"
    onnx.save(RELU, path)
    model = path.read_bytes() if as_bytes else path
    (y,) = backend.run_model(model, [np.ones((1, 3), np.float32)])
    np.testing.assert_array_equal(y, np.ones((1, 3)))


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ModelError, match="not an ONNX model"):
        backend.prepare(b"nothing of the kind")


def test_a_node_runs_alone() -> None:
    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    (c,) = backend.run_node(node, [a, b])
    np.testing.assert_array_equal(c, np.full((2, 4), 3))
    (square,) = backend.run_node(helper.make_node("Mul", ["a", "a"], ["c"]), [a], opset_version=13)
    np.testing.assert_array_equal(square, a)


def test_it_says_where_the_work_was_done() -> None:
    x = {"x": (TensorProto.FLOAT, (2, 3))}
    array = np.array([[1, 3, 2], [4, 6, 5]], np.float32)

    def placement(model: ModelProto) -> Placement | None:
        prepared = backend.prepare(model)
        prepared.run([array])
        return prepared.placement

    assert placement(model_of(helper.make_node("Exp", ["x"], ["y"]), x)) is Placement.COMPILED
    assert placement(model_of(helper.make_node("Shape", ["x"], ["y"]), x)) is Placement.FOLDED
    k = np.array([1], np.int64)
    top = model_of(helper.make_node("TopK", ["x", "k"], ["y", "i"]), x, k=k)
    assert placement(top) is Placement.COMPILED
    bits = model_of(helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.INT32), x)
    assert placement(bits) is Placement.HOST
    assert backend.prepare(bits).host_operators == ("bitcast",)


def test_devices() -> None:
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    with pytest.raises(UnsupportedError, match="device CUDA"):
        Backend.prepare(RELU, "CUDA")


def test_compatible_models() -> None:
    x = {"x": (TensorProto.FLOAT, (2, 2))}
    known = model_of(helper.make_node("Exp", ["x"], ["y"]), x)
    unknown = model_of(helper.make_node("Det", ["x"], ["y"]), x)
    assert backend.is_compatible(known)
    assert backend.is_compatible(RELU)
    assert not backend.is_compatible(unknown)
    assert not backend.is_compatible(known, "CUDA")
