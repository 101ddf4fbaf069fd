"""A program for ONNX Runtime runs with another import, and gives the same."""

import gc
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

import tensorwright
from tensorwright import base, onnxruntime_compat
from tensorwright.onnxruntime_compat.capi import onnxruntime_pybind11_state as states
from tensorwright.onnxruntime_compat.options import NAMES_HERE, calling, loading

pytestmark = pytest.mark.usefixtures("by_rule")
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
BOTH = pytest.mark.parametrize("library", [onnxruntime, onnxruntime_compat], ids=["ort", "ours"])


def model_of(*nodes: Any, outputs: str = "yz") -> ModelProto:
    infos = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, ["rows", 4]) for n in f"x{outputs}"
    ]
    graph = helper.make_graph(nodes, "two_outputs", infos[:1], infos[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def model() -> ModelProto:
    return model_of(helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"]))


def session_of(library: Any, model: ModelProto) -> Any:
    return library.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def program(library: Any, model: str | bytes) -> list[Any]:
    """What a program for ONNX Runtime does, written once."""
    library.set_default_logger_severity(3)
    library.disable_telemetry_events()
    assert library.get_version_string() == library.__version__
    options = library.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = library.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = library.ExecutionMode.ORT_SEQUENTIAL
    options.execution_order = library.ExecutionOrder.DEFAULT
    options.enable_mem_pattern = options.enable_cpu_mem_arena = options.enable_mem_reuse = False
    options.log_severity_level, options.logid = 3, "mine"
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = library.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    facts = [(each.name, each.shape, each.type) for each in session.get_inputs()]
    facts += [(each.name, each.shape, each.type) for each in session.get_outputs()]
    entry = session.get_session_options().get_session_config_entry(
        "session.intra_op.allow_spinning"
    )
    told = [session.get_modelmeta().graph_name, session.get_overridable_initializers(), entry]
    told += [session.get_providers(), session.get_provider_options()]
    whole = session.run(None, {session.get_inputs()[0].name: X})
    run_options = library.RunOptions()
    run_options.logid, run_options.log_severity_level = "mine", 3
    run_options.add_run_config_entry("disable_synchronize_execution_providers", "1")
    (second,) = session.run(["z"], {"x": X}, run_options)
    return [facts, told, whole, second]


@pytest.mark.parametrize("kind", ["bytes", "path", "executable", "executable's bytes"])
def test_a_program_gives_the_same(model: ModelProto, tmp_path: Path, kind: str) -> None:
    data = model.SerializeToString()
    (tmp_path / "model.onnx").write_bytes(data)
    expected = program(onnxruntime, data)
    given: Any = data if kind == "bytes" else str(tmp_path / "model.onnx")
    if kind.startswith("executable"):
        tensorwright.compile(model, threads=1).save(tmp_path / "model.tw")
        given = (
            tmp_path / "model.tw" if kind == "executable" else (tmp_path / "model.tw").read_bytes()
        )
    told = program(onnxruntime_compat, given)
    assert told[:2] == expected[:2]
    for ours, theirs in zip([*told[2], told[3]], [*expected[2], expected[3]], strict=True):
        np.testing.assert_array_equal(ours, theirs)


@BOTH
def test_a_binding_reads_and_writes_a_programs_memory(library: Any, model: ModelProto) -> None:
    session = session_of(library, model)
    x, y = X.copy(), np.zeros_like(X)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("z")
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y, np.maximum(X, 0))
    first = binding.get_outputs()[0]
    assert (first.shape(), first.data_type(), first.device_name()) == (
        [3, 4],
        "tensor(float)",
        "cpu",
    )
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], -X)
    x += 1  # read again by the next call
    session.run_with_iobinding(binding, library.RunOptions())
    np.testing.assert_array_equal(y, np.maximum(X + 1, 0))
    z = library.OrtValue.ortvalue_from_shape_and_type([3, 4], np.float32)
    binding.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
    binding.bind_ortvalue_output("z", z)
    session.run_with_iobinding(binding)  # all outputs have memory now
    np.testing.assert_array_equal(z.numpy(), -X)
    np.testing.assert_array_equal(y, np.maximum(X, 0))
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []
    assert binding.copy_outputs_to_cpu() == []
    with pytest.raises(RuntimeError, match="output"):
        session.run_with_iobinding(binding)
    with pytest.raises(RuntimeError, match="q"):
        binding.bind_cpu_input("q", X)


@BOTH
def test_values_are_arrays(library: Any, model: ModelProto) -> None:
    array = X.copy()
    value = library.OrtValue.ortvalue_from_numpy(array)
    assert (value.shape(), value.data_type(), value.data_ptr()) == (
        [3, 4],
        "tensor(float)",
        array.ctypes.data,
    )
    assert value.element_type() == TensorProto.FLOAT
    assert value.is_tensor()
    assert value.has_value()
    assert not value.is_tensor_sequence()
    assert not value.is_sparse_tensor()
    assert value.tensor_size_in_bytes() == array.nbytes
    value.update_inplace(X + 1)
    np.testing.assert_array_equal(array, X + 1)
    session = session_of(library, model)
    (y, _), (z,) = session.run(None, {"x": value}), session.run_with_ort_values(["z"], {"x": value})
    np.testing.assert_array_equal(y, np.maximum(X + 1, 0))
    np.testing.assert_array_equal(z.numpy(), -X - 1)


@BOTH
def test_values_of_other_libraries_and_types(library: Any) -> None:
    array = X.copy()
    shared = library.OrtValue.from_dlpack(array)
    array[0, 0] = 7
    assert shared.numpy()[0, 0] == 7
    bits = np.array([0x3F80, 0xC000], np.uint16)  # 1 and -2
    value = library.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    assert (value.data_type(), value.element_type()) == ("tensor(bfloat16)", TensorProto.BFLOAT16)
    for dtype in (np.bool_, np.int8, np.uint64, np.float16, np.float64):
        made = library.OrtValue.ortvalue_from_numpy(np.zeros(2, dtype))
        assert made.element_type() == helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


@BOTH
def test_a_call_in_the_background(library: Any, model: ModelProto) -> None:
    session = session_of(library, model)
    done, told = threading.Event(), []

    def tell(*given: Any) -> None:
        told.extend(given)
        done.set()

    session.run_async(["z"], {"x": X}, tell, "mine")
    assert done.wait(60)
    ((z,), user, error) = told
    np.testing.assert_array_equal(z, -X)
    assert (user, error) == ("mine", "")


@BOTH
def test_free_dimensions_are_overridden(library: Any, model: ModelProto) -> None:
    options = library.SessionOptions()
    options.add_free_dimension_override_by_name("rows", 3)
    session = library.InferenceSession(model.SerializeToString(), options)
    assert session.get_inputs()[0].shape == [3, 4]


WRONG_CALLS = {
    "no input": ("ValueError", None, {}),
    "another input": ("InvalidArgument", None, {"x": X, "q": X}),
    "type": ("InvalidArgument", None, {"x": X.astype(np.int32)}),
    "rank": ("InvalidArgument", None, {"x": X[0]}),
    "extent": ("InvalidArgument", None, {"x": X[:, :3]}),
    "output": ("InvalidArgument", ["w"], {"x": X}),
}


def kind_of(library: Any, name: str) -> type[BaseException]:
    kinds = {"ValueError": ValueError}
    kind: type[BaseException]
    kind = kinds.get(name) or getattr(library.capi.onnxruntime_pybind11_state, name)
    return kind


@BOTH
@pytest.mark.parametrize("case", WRONG_CALLS)
def test_wrong_calls_raise_what_programs_catch(library: Any, case: str, model: ModelProto) -> None:
    name, outputs, inputs = WRONG_CALLS[case]
    with pytest.raises(kind_of(library, name)):
        session_of(library, model).run(outputs, inputs)


@BOTH
@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("NoSuchFile", "/not/there.onnx"),
        ("InvalidProtobuf", b"no model" * 10),
        ("InvalidProtobuf", str(Path(__file__).parent)),
    ],
    ids=["missing", "foreign", "folder"],
)
def test_files_that_are_no_models(library: Any, name: str, source: Any) -> None:
    with pytest.raises(kind_of(library, name)):
        library.InferenceSession(source)


@BOTH
def test_a_terminated_call_fails_and_another_one_does_not(library: Any, model: ModelProto) -> None:
    session, options = session_of(library, model), library.RunOptions()
    options.terminate = True
    with pytest.raises(library.capi.onnxruntime_pybind11_state.Fail):
        session.run(None, {"x": X}, options)
    options.terminate = False
    assert len(session.run(None, {"x": X}, options)) == 2


def test_a_call_is_terminated_while_it_runs() -> None:
    """Sorting in NumPy takes long enough; the call stops before its next step."""
    nodes = [helper.make_node("TopK", ["x", "k"], ["v0", "i0"], axis=0)]
    nodes += [
        helper.make_node("TopK", [f"v{n}", "k"], [f"v{n + 1}", f"i{n + 1}"], axis=0)
        for n in range(50)
    ]
    rows = 200_000
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows])
    y = helper.make_tensor_value_info("v50", TensorProto.FLOAT, [rows])
    k = helper.make_tensor("k", TensorProto.INT64, [1], [rows])
    graph = helper.make_graph(nodes, "long", [x], [y], [k])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime_compat.InferenceSession(proto.SerializeToString())
    options = onnxruntime_compat.RunOptions()

    def stop() -> None:
        while not options._calls:
            time.sleep(1e-3)
        options.terminate = True

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(states.Fail, match="its RunOptions have stopped it"):
        session.run(None, {"x": np.random.default_rng(0).random(rows, np.float32)}, options)
    thread.join()
    gc.collect()
    assert not options._calls


def test_errors_are_those_of_the_package_too(model: ModelProto, tmp_path: Path) -> None:
    session = session_of(onnxruntime_compat, model)
    with pytest.raises(tensorwright.UsageError, match="output w: the model has no such output"):
        session.run(["w"], {"x": X})
    with pytest.raises(tensorwright.InputError, match="input q: there is no such input"):
        session.run(None, {"x": X, "q": X})
    with pytest.raises(tensorwright.InputError, match="input x: it is not given") as missing:
        session.run(None, {})
    with pytest.raises(tensorwright.InputError, match=r"input xs: (.|\s)*did you mean x") as wrong:
        session.run(None, {"xs": X})
    assert isinstance(missing.value, ValueError)
    assert isinstance(wrong.value, ValueError)
    with pytest.raises(tensorwright.UsageError, match="runs on the processor alone"):
        onnxruntime_compat.InferenceSession(b"", providers=["CUDAExecutionProvider"])
    with pytest.raises(tensorwright.ModelError, match="there is no such file"):
        onnxruntime_compat.InferenceSession(tmp_path / "missing.onnx")
    unknown = model_of(helper.make_node("Nope", ["x"], ["y"]), outputs="y")
    with pytest.raises(tensorwright.UnsupportedError, match="no such operator") as caught:
        session_of(onnxruntime_compat, unknown)
    assert isinstance(caught.value, states.NotImplemented)
    loose = model_of(helper.make_node("Relu", ["q"], ["y"]), outputs="y")
    with pytest.raises(tensorwright.ModelError, match="nothing before it defines") as invalid:
        session_of(onnxruntime_compat, loose)
    assert isinstance(invalid.value, states.InvalidGraph)


EVERY_FIELD = {"operator": "Reshape", "step": "split(i)", "program": "for i: ...", "needs": "n=..4"}


@pytest.mark.parametrize("door", [calling, lambda: loading(b"")], ids=["call", "load"])
@pytest.mark.parametrize("kind", [*base.ERROR_KINDS, base.UndecidedError, base.UserError])
def test_each_kind_of_error_comes_out_under_a_name_of_onnx_runtime(
    kind: type[base.TensorwrightError], door: Any
) -> None:
    more = {name: text for name, text in EVERY_FIELD.items() if name in kind.field_names}
    error = kind(stage="import", where="node n", reason="it is wrong", remedy="mend it", **more)
    with pytest.raises(base.TensorwrightError) as caught, door():
        raise error
    if kind is base.InternalError:
        assert caught.value is error
        return
    told = caught.value
    named = next(theirs for ours, theirs in NAMES_HERE if issubclass(kind, ours))
    assert isinstance(told, named)
    assert hasattr(states, named.__name__)
    if named is not states.Fail:
        assert isinstance(told, next(each for each in base.ERROR_KINDS if issubclass(kind, each)))
    if kind is not base.ScheduleError:  # which says its step, too
        assert str(told) == str(error)
    assert "it is wrong" in str(told)
    assert pickle.loads(pickle.dumps(told)) == told


def test_a_size_that_decides_is_compiled_when_a_call_has_it() -> None:
    """Where maxima were in an image of an open height."""
    node = helper.make_node("MaxUnpool", ["x", "positions"], ["y"], kernel_shape=[2, 2])
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, "height", 2])]
    infos.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    positions = helper.make_tensor("positions", TensorProto.INT64, [1, 1, 2, 2], [0, 1, 2, 3])
    graph = helper.make_graph([node], "open", infos[:1], infos[1:], [positions])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    given = {"x": np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)}
    (theirs,) = session_of(onnxruntime, proto).run(None, given)
    (ours,) = session_of(onnxruntime_compat, proto).run(None, given)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("option", "value"),
    [("enable_profiling", True), ("optimized_model_filepath", "better.onnx")],
)
def test_options_that_would_leave_a_file_are_refused(
    option: str, value: Any, model: ModelProto
) -> None:
    options = onnxruntime_compat.SessionOptions()
    setattr(options, option, value)
    with pytest.raises(states.InvalidArgument, match=f"option {option}: it is not supported"):
        onnxruntime_compat.InferenceSession(model.SerializeToString(), options)
    with pytest.raises(AttributeError):
        options.nonsense = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "method",
    [
        "add_initializer",
        "add_external_initializers",
        "register_custom_ops_library",
        "add_free_dimension_override_by_denotation",
    ],
)
def test_methods_that_would_change_answers_are_refused(method: str) -> None:
    with pytest.raises(states.InvalidArgument, match=f"option {method}"):
        getattr(onnxruntime_compat.SessionOptions(), method)("x", None)
    with pytest.raises(states.InvalidArgument, match="option add_active_adapter"):
        onnxruntime_compat.RunOptions().add_active_adapter(None)


def test_what_a_binding_refuses(model: ModelProto) -> None:
    session = session_of(onnxruntime_compat, model)
    binding = session.io_binding()
    with pytest.raises(states.InvalidArgument, match="device cuda:0: a session runs on the pro"):
        binding.bind_output("y", "cuda")
    binding.bind_cpu_input("x", X)
    small = np.zeros((2, 2), np.float32)
    binding.bind_output("y", "cpu", 0, np.float32, small.shape, small.ctypes.data)
    with pytest.raises(RuntimeError, match="output y: it is float32"):
        session.run_with_iobinding(binding)
    binding.bind_output("z")  # without memory: the results of the call are copied into y
    wrong = np.full(X.shape, 7, np.int32)
    for array in (wrong, small):
        binding.bind_output("y", "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        with pytest.raises(RuntimeError, match="output y: it is float32"):
            session.run_with_iobinding(binding)
    np.testing.assert_array_equal(wrong, 7)
    value = onnxruntime_compat.OrtValue.ortvalue_from_numpy(X)
    with pytest.raises(states.InvalidArgument, match="make a new value"):
        value.update_inplace(X[0])
    with pytest.raises(RuntimeError, match="there is no entry mine"):
        onnxruntime_compat.SessionOptions().get_session_config_entry("mine")
