"""Calls of sizes that no compiled program takes: each combination is compiled when it comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tensorwright
from tensorwright import instances
from tensorwright.base import InputError, UndecidedError, UsageError
from tensorwright.graph import Graph
from tensorwright.graph.imports import importer
from tensorwright.instances import AnySizes

pytestmark = pytest.mark.usefixtures("by_rule")

Shape = Sequence[int | str]


def model_of(
    nodes: Sequence[onnx.NodeProto], shape: Shape, constants: dict[str, np.ndarray]
) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def windows() -> onnx.ModelProto:
    """Sums of four neighbours, every second one: there must be four."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[2])
    return model_of([node], ("batch", 1, "length"), {"w": np.ones((1, 1, 4), np.float32)})


def turned() -> onnx.ModelProto:
    """A shape that leaves out a dimension of the input: its size must be 1, or the other one."""
    nodes = [
        helper.make_node("Shape", ["x"], ["rows"], start=0, end=1),
        helper.make_node("Concat", ["rows", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    return model_of(nodes, ("batch", "rows", 4), {"rest": np.array([4], np.int64)})


def spectrum() -> onnx.ModelProto:
    """A network of which no program takes all sizes: the matrix of a transform has its length."""
    node = helper.make_node("DFT", ["x"], ["y"], axis=1)
    return model_of([node], ("batch", "length", 1), {})


def ones(*shape: int) -> dict[str, np.ndarray]:
    return {"x": np.ones(shape, np.float32)}


def check_sums(executable: tensorwright.Executable, length: int) -> None:
    result = executable.run(ones(2, length, 1))["y"]
    assert result.shape == (2, length, 2)
    np.testing.assert_allclose(result[:, 0, 0], length, rtol=1e-5)


def instances_of(executable: tensorwright.Executable) -> instances.Instances:
    assert isinstance(executable, AnySizes)
    return executable.instances


def test_a_window_bounds_the_length_and_shorter_inputs_are_refused() -> None:
    executable = tensorwright.compile(windows())
    assert [str(size) for size in executable.sizes] == ["batch in 1..", "length in 4.."]
    assert executable.run(ones(2, 1, 9))["y"].shape == (2, 1, 3)
    with pytest.raises(InputError, match="does not fit into") as refused:
        executable.run(ones(1, 1, 3))
    assert "length in 4.." in refused.value.remedy
    assert not instances_of(executable)._turns
    assert len(instances_of(executable)) == 0


def test_the_bounds_that_many_nodes_need_take_two_imports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 80
    nodes = [
        helper.make_node("Conv", ["x" if n == 0 else f"t{n}", "w"], [f"t{n + 1}"])
        for n in range(count)
    ]
    nodes[-1].output[0] = "y"
    model = model_of(nodes, (1, 1, "length"), {"w": np.ones((1, 1, 3), np.float32)})
    runs: list[object] = []
    run = importer._Import.run

    def counted(self: importer._Import, *arguments: Any) -> Graph:
        runs.append(self)
        return run(self, *arguments)

    monkeypatch.setattr(importer._Import, "run", counted)
    graph = importer.load_onnx(model)
    assert [str(size.bounds) for size in graph.sizes] == [f"{2 * count + 1}.."]
    assert len(runs) == 2


def test_a_size_that_the_program_does_not_take_is_compiled_for() -> None:
    executable = tensorwright.compile(windows())
    assert executable.run(ones(0, 1, 9))["y"].shape == (0, 1, 3)
    assert len(instances_of(executable)) == 1


def test_a_size_that_a_shape_forces_is_refused_by_its_name() -> None:
    executable = tensorwright.compile(turned())
    assert executable(np.ones((3, 1, 4), np.float32)).shape == (3, 4)
    with pytest.raises(InputError, match="rows"):
        executable(np.ones((3, 2, 4), np.float32))


@pytest.mark.parametrize("length", [1, 6, 37])
def test_a_network_without_a_program_answers_by_instance(length: int) -> None:
    executable = tensorwright.compile(spectrum())
    assert [each.name for each in executable.outputs] == ["y"]
    for _ in range(2):
        check_sums(executable, length)
    assert len(instances_of(executable)) == 1


def test_all_ways_to_call_take_an_instance() -> None:
    executable = tensorwright.compile(spectrum())
    given = ones(2, 6, 1)
    expected = executable.run(given)["y"]
    np.testing.assert_array_equal(executable(given["x"]), expected)
    np.testing.assert_array_equal(executable.run_async(given).result()["y"], expected)
    np.testing.assert_array_equal(executable.bind(given).run()["y"], expected)
    target = {"y": np.zeros_like(expected)}
    executable.run_into(given, target)
    np.testing.assert_array_equal(target["y"], expected)
    assert executable.profile(given, 1)
    assert len(instances_of(executable)) == 1


def test_an_instance_is_prepared_before_it_is_called() -> None:
    executable = tensorwright.compile(spectrum())
    assert isinstance(executable, AnySizes)
    assert executable.prepare(batch=2, length=6).inputs[0].shape == (2, 6, 1)
    assert len(executable.instances) == 1
    check_sums(executable, 6)
    assert len(executable.instances) == 1
    with pytest.raises(UsageError, match="did you mean length"):
        executable.prepare(lenght=6)


def test_an_instance_is_prepared_for_the_usual_numbers_and_those_of_numpy() -> None:
    executable = tensorwright.compile(spectrum())
    assert isinstance(executable, AnySizes)
    assert executable.prepare(length=np.int64(6)).inputs[0].shape == (1, 6, 1)
    with pytest.raises(UsageError, match="size length = 'six': it is not a whole number"):
        executable.prepare(length="six")  # type: ignore[arg-type]


def test_sizes_at_which_to_measure_may_need_an_instance() -> None:
    executable = tensorwright.compile(windows())
    assert executable.chosen_sizes(batch=0) == {"batch": 0, "length": 128}
    with pytest.raises(UsageError, match=r"its sizes are batch in 1\.\., length in 4\.\."):
        executable.chosen_sizes(rows=1)
    report = tensorwright.profile(executable, at={"batch": 0, "length": 9}, repeats=1)
    assert dict(report.at) == {"batch": 0, "length": 9}
    assert len(instances_of(executable)) == 1
    report = tensorwright.profile(spectrum(), at={"length": 6}, repeats=1)
    assert dict(report.at) == {"batch": 1, "length": 6}


def test_what_belongs_to_a_program_names_the_node_that_prevents_one() -> None:
    executable = tensorwright.compile(spectrum())
    for use in (lambda: executable.plan, lambda: executable.save("never.tw")):
        with pytest.raises(UndecidedError, match="DFT"):
            use()


def test_fixed_sizes_refuse_what_needs_instances() -> None:
    with pytest.raises(UndecidedError, match="DFT"):
        tensorwright.compile(spectrum(), sizes="fixed")
    executable = tensorwright.compile(windows(), sizes="fixed")
    with pytest.raises(InputError, match="it is at least 1"):
        executable.run(ones(0, 1, 9))


def test_the_callers_own_bounds_are_kept() -> None:
    executable = tensorwright.compile(windows(), sizes={"batch": "1..4"})
    with pytest.raises(InputError, match="at least 1 and at most 4"):
        executable.run(ones(5, 1, 9))


def count_builds(
    executable: tensorwright.Executable, monkeypatch: pytest.MonkeyPatch
) -> list[object]:
    kept = instances_of(executable)
    built: list[object] = []
    build: Callable[..., tensorwright.Executable] = kept._build

    def counting(shapes: object) -> tensorwright.Executable:
        built.append(shapes)
        return build(shapes)

    monkeypatch.setattr(kept, "_build", counting)
    return built


def test_threads_that_ask_at_once_compile_each_instance_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executable = tensorwright.compile(spectrum())
    built = count_builds(executable, monkeypatch)
    barrier = threading.Barrier(8)

    def call(number: int) -> None:
        barrier.wait()
        check_sums(executable, 3 + number % 2)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(8)))
    assert len(built) == 2


def test_the_instances_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = tensorwright.compile(spectrum())
    built = count_builds(executable, monkeypatch)
    monkeypatch.setattr(instances, "MOST_INSTANCES", 2)
    for length in (2, 3, 2, 4, 2):  # 3 was not used for the longest time
        check_sums(executable, length)
    assert (len(instances_of(executable)), len(built)) == (2, 3)
    check_sums(executable, 3)
    assert len(built) == 4
    monkeypatch.setattr(instances, "MOST_BYTES", 0)
    check_sums(executable, 5)
    assert len(instances_of(executable)) == 1


def test_a_range_with_a_step_that_is_a_size_is_answered_by_instance() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Split", ["shape"], ["rows", "columns"], axis=0),
        helper.make_node("Mul", ["rows", "columns"], ["all"]),
        helper.make_node("Squeeze", ["all"], ["end"]),
        helper.make_node("Squeeze", ["columns"], ["step"]),
        helper.make_node("Range", ["zero", "end", "step"], ["y"]),
    ]
    model = model_of(nodes, ("rows", "columns"), {"zero": np.array(0)})
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    executable = tensorwright.compile(model)
    np.testing.assert_array_equal(executable(np.ones((3, 4), np.float32)), [0, 4, 8])


def test_heads_of_an_empty_batch_keep_their_width() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["front"], start=0, end=2),
        helper.make_node("Concat", ["front", "heads"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    model = model_of(nodes, ("batch", "length", 12), {"heads": np.array([3, -1])})
    executable = tensorwright.compile(model)
    for batch, length in ((2, 5), (0, 5), (2, 0), (0, 0)):
        x = np.ones((batch, length, 12), np.float32)
        assert executable(x).shape == (batch, length, 3, 4)


def test_rows_that_hold_in_an_empty_batch() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["at"]),
        helper.make_node("Transpose", ["at"], ["positions"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "positions"], ["y"]),
    ]
    executable = tensorwright.compile(model_of(nodes, ("batch", 4), {}))
    assert executable(np.ones((2, 4), np.float32)).shape == (8,)
    assert executable(np.ones((0, 4), np.float32)).shape == (0,)


def test_weights_of_phases_are_packed_for_an_output_of_open_length() -> None:
    generator = np.random.default_rng(0)
    shapes = {"a": (16, 16, 7), "b": (16, 8, 8), "b_bias": (8,), "c": (8, 8, 3), "c_bias": (8,)}
    constants = {
        name: generator.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()
    }
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["p"], pads=[3, 3]),
        helper.make_node("LeakyRelu", ["p"], ["q"]),
        helper.make_node("ConvTranspose", ["q", "b", "b_bias"], ["r"], strides=[4], pads=[2, 2]),
        helper.make_node("LeakyRelu", ["r"], ["s"]),
        helper.make_node("Conv", ["s", "c", "c_bias"], ["y"], pads=[1, 1]),
    ]
    model = model_of(nodes, ("batch", 16, "time"), constants)
    executable = tensorwright.compile(model)
    for batch, time in ((1, 1), (3, 6)):
        x = generator.normal(size=(batch, 16, time)).astype(np.float32)
        expected = tensorwright.compile(model, sizes={"batch": batch, "time": time})(x)
        np.testing.assert_allclose(executable(x), expected, rtol=1e-4, atol=1e-5)


def without_rank() -> onnx.ModelProto:
    """The shares of each row in its own sum of weighted elements, for arrays of any rank."""
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["weighted"]),
        helper.make_node("Softmax", ["weighted"], ["shares"], axis=-1),
        helper.make_node("Add", ["shares", "bias"], ["y"]),
        helper.make_node("Shape", ["x"], ["shape"]),
    ]
    held = [numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w")]
    given = {"x": None, "bias": ("n", 1)}
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, each) for n, each in given.items()
    ]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
        helper.make_tensor_value_info("shape", TensorProto.INT64, None),
    ]
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_an_input_without_a_rank_has_that_of_each_call() -> None:
    model = without_rank()
    peer = pytest.importorskip("onnxruntime").InferenceSession(model.SerializeToString())
    executable = tensorwright.compile(model)
    assert [str(each) for each in executable.inputs] == ["x: f32(...)", "bias: f32(n, 1)"]
    assert [str(each) for each in executable.outputs] == ["y: f32(...)", "shape: i64(shape_0)"]
    assert [str(size) for size in executable.sizes] == ["n in 1.."]
    generator = np.random.default_rng(0)
    for shape in ((3,), (2, 3), (4, 2, 3), (2, 3), (1, 1), ()):
        given = {
            "x": generator.normal(size=shape).astype(np.float32),
            "bias": generator.normal(size=(2, 1)).astype(np.float32),
        }
        results = executable.run(given)
        for name, expected in zip(("y", "shape"), peer.run(["y", "shape"], given), strict=True):
            assert results[name].shape == expected.shape
            np.testing.assert_allclose(results[name], expected, rtol=1e-5)
    assert len(instances_of(executable)) == 5
    with pytest.raises(InputError, match=r"x: f32\(\.\.\.\) of \(2, 4\).*do not broadcast"):
        executable(np.ones((2, 4), np.float32), np.ones((2, 1), np.float32))
    with pytest.raises(InputError, match=r"it must be f32\(\.\.\.\), not f64\(2, 3\)"):
        executable(np.ones((2, 3)), np.ones((2, 1), np.float32))
    with pytest.raises(InputError, match=r"it must be f32\(n, 1\), not f32\(2\)"):
        executable(np.ones((2, 3), np.float32), np.ones(2, np.float32))


def test_an_input_without_a_rank_needs_a_shape_before_a_call() -> None:
    executable = tensorwright.compile(without_rank())
    assert isinstance(executable, AnySizes)
    prepared = executable.prepare(n=2, x=(2, np.int64(3)))
    assert [each.shape for each in prepared.inputs] == [(2, 3), (2, 1)]
    executable(np.ones((2, 3), np.float32), np.ones((2, 1), np.float32))
    assert len(executable.instances) == 1
    for values in ({"n": 2}, {"n": 2, "x": 6}):
        with pytest.raises(UsageError, match="input x: the model leaves its rank open"):
            executable.prepare(**values)
    with pytest.raises(UsageError, match=r"size x_1 = 2.5: it is not a whole number"):
        executable.prepare(n=2, x=(2, 2.5))  # type: ignore[arg-type]
    with pytest.raises(UndecidedError, match="input x: the model leaves its shape open"):
        tensorwright.compile(without_rank(), sizes="fixed")
    with pytest.raises(UndecidedError, match="input x: the model leaves its shape open"):
        executable.save("never.tw")
    one_rank = tensorwright.compile(without_rank(), input_shapes={"x": (2, 3)}, sizes="fixed")
    assert [str(each) for each in one_rank.inputs] == ["x: f32(2, 3)", "bias: f32(2, 1)"]


@pytest.mark.parametrize("dim", [None, "", "?", -1])
def test_dimensions_without_a_name_are_open(dim: int | str | None) -> None:
    executable = tensorwright.compile(
        model_of([helper.make_node("Neg", ["x"], ["y"])], (dim, 3, dim), {})  # type: ignore[arg-type]
    )
    assert [str(size) for size in executable.sizes] == ["x_0 in 1..", "x_2 in 1.."]
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    np.testing.assert_array_equal(executable(x), -x)
