"""Sessions: state goes from call to call, is kept if a call fails, forked, saved and loaded."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tensorwright.base import Array, DType, Formula, InputError, OutputError, UsageError
from tensorwright.compiling import compile as compile_model
from tensorwright.runtime import Executable, TensorSpec
from tensorwright.runtime.state_pairs import state_pairs

pytestmark = pytest.mark.usefixtures("by_rule")
_FLOAT = TensorProto.FLOAT


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], **constants: Array) -> Any:
    stored = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "states", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def caching(kind: int = _FLOAT) -> ModelProto:
    """A cache that each call makes longer; the result is the sum of its rows."""
    cache = "past_key_values.0.key"
    nodes = [
        helper.make_node("Concat", [cache, "x"], ["present.0.key"], axis=1),
        helper.make_node("Cast", ["present.0.key"], ["numbers"], to=_FLOAT),
        helper.make_node("ReduceSum", ["numbers", "axis"], ["y"], keepdims=0),
    ]
    inputs = [
        helper.make_tensor_value_info("x", kind, ("batch", "seq", 4)),
        helper.make_tensor_value_info(cache, kind, ("batch", "past", 4)),
    ]
    outputs = [
        helper.make_tensor_value_info("y", _FLOAT, None),
        helper.make_tensor_value_info("present.0.key", kind, None),
    ]
    return model_of(nodes, inputs, outputs, axis=np.array([1]))


def recurrent(scale: float = 1.0) -> ModelProto:
    """A GRU whose hidden state is an input and an output."""
    source = np.random.default_rng(3)
    weights = {
        name: (scale * source.standard_normal(shape)).astype(np.float32)
        for name, shape in {"w": (1, 15, 3), "r": (1, 15, 5)}.items()
    }
    gru = helper.make_node("GRU", ["x", "w", "r", "", "", "h"], ["y", "hn"], hidden_size=5)
    inputs = [
        helper.make_tensor_value_info("x", _FLOAT, ("seq", 2, 3)),
        helper.make_tensor_value_info("h", _FLOAT, (1, 2, 5)),
    ]
    outputs = [helper.make_tensor_value_info(name, _FLOAT, None) for name in ("y", "hn")]
    return model_of([gru], inputs, outputs, **weights)


def drawn(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32)


@pytest.fixture(scope="module")
def cache() -> Executable:
    return compile_model(caching())


@pytest.fixture(scope="module")
def gru() -> Executable:
    return compile_model(recurrent())


def test_a_cache_begins_empty_and_grows(cache: Executable) -> None:
    session = cache.session()
    rows = drawn(4, 2, 3, 4)
    for at in range(4):
        assert session.position == 3 * at
        (name,) = results = session.run({"x": rows[at]})
        assert name == "y"
        right = rows[: at + 1].transpose(1, 0, 2, 3).reshape(2, -1, 4)
        np.testing.assert_allclose(results["y"], right.sum(1), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(session.state["past_key_values.0.key"], right)
    assert (session.steps, session.position) == (4, 12)
    session.reset()
    assert (session.steps, session.position, session.state) == (0, 0, {})


def test_pieces_of_a_sequence_are_the_whole(gru: Executable) -> None:
    x = drawn(12, 2, 3)
    whole = gru.run({"x": x, "h": np.zeros((1, 2, 5), np.float32)})
    session = gru.session()
    pieces = [session.run({"x": x[at : at + 4]})["y"] for at in (0, 4, 8)]
    np.testing.assert_allclose(np.concatenate(pieces), whole["y"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(session.state["h"], whole["hn"], rtol=1e-5, atol=1e-6)
    assert session.position == session.steps == 3


def test_a_state_is_handed_over_without_a_copy(gru: Executable) -> None:
    session = gru.session()
    session.run({"x": drawn(1, 2, 3)})
    (state,) = session.state.values()
    with pytest.raises(ValueError, match="read-only"):
        state[:] = 0
    assert np.shares_memory(state, session.fork().state["h"])


def test_forks_go_on_apart(gru: Executable) -> None:
    x = drawn(3, 1, 2, 3)
    session = gru.session()
    session.run({"x": x[0]})
    other = session.fork()
    first = session.run({"x": x[1]})["y"]
    second = other.run({"x": x[2]})["y"]
    again = gru.session({"h": "hn"})
    again.run({"x": x[0]})
    np.testing.assert_array_equal(again.fork().run({"x": x[1]})["y"], first)
    np.testing.assert_array_equal(again.run({"x": x[2]})["y"], second)


def test_sessions_begin_with_a_given_state(gru: Executable) -> None:
    state, x = drawn(1, 2, 5), drawn(2, 2, 3)
    session = gru.session()
    session.reset({"h": state})
    right = gru.run({"x": x, "h": state})["y"]
    state[:] = 0
    np.testing.assert_array_equal(session.run({"x": x})["y"], right)
    for bad in ({"h": drawn(1, 2, 6)}, {"z": drawn(1, 2, 5)}):
        with pytest.raises(InputError):
            session.reset(bad)
    assert session.steps == 1


def test_a_call_that_fails_leaves_the_state(
    gru: Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = gru.session()
    session.run({"x": drawn(2, 2, 3)})
    before = session.state["h"].copy()
    for wrong in ({"x": drawn(2, 2, 4)}, {}, {"x": drawn(2, 2, 3), "h": before}):
        with pytest.raises(InputError):
            session.run(wrong)

    def interrupted(inputs: Any, stop: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(gru, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.run({"x": drawn(2, 2, 3)})
    np.testing.assert_array_equal(session.state["h"], before)
    assert session.steps == 1
    session.run({"x": drawn(2, 2, 3)})


def test_two_threads_need_two_sessions(gru: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    session, entered, go_on = gru.session(), threading.Event(), threading.Event()
    real = gru.run

    def slow(inputs: Any, stop: Any) -> Any:
        entered.set()
        assert go_on.wait(30)
        return real(inputs, stop)

    monkeypatch.setattr(gru, "run", slow)
    thread = threading.Thread(target=session.run, args=({"x": drawn(2, 2, 3)},))
    thread.start()
    assert entered.wait(30)
    x = {"x": drawn(2, 2, 3)}
    steps = (lambda: session.run(x), lambda: session.advance(x), lambda: session.rewind(0))
    for use in (*steps, session.reset, session.fork, lambda: session.save("x")):
        with pytest.raises(UsageError, match="another thread"):
            use()
    go_on.set()
    thread.join()
    assert session.steps == 1


def test_places_to_which_no_session_goes_back(cache: Executable, gru: Executable) -> None:
    session = cache.session()
    session.run({"x": drawn(1, 3, 4)})
    for position in (-1, 4):
        with pytest.raises(UsageError, match=f"{position} is not from 0 to 3"):
            session.rewind(position)
    session.rewind(1)
    session.run({"x": drawn(1, 1, 4)})
    with pytest.raises(UsageError, match="3 is not from 0 to 2"):
        session.rewind(3)
    with pytest.raises(UsageError, match="the state h does not grow"):
        gru.session().rewind(0)


@pytest.mark.parametrize("kind", [_FLOAT, TensorProto.BFLOAT16, TensorProto.INT64])
def test_a_state_is_saved_and_loaded(kind: int, tmp_path: Path) -> None:
    executable = compile_model(caching(kind))
    dtype = executable.inputs[0].dtype.numpy
    rows = (4 * drawn(2, 1, 3, 4)).astype(dtype)
    session, path = executable.session(), tmp_path / "state"
    session.run({"x": rows[0]})
    session.save(path)
    other = executable.session()
    other.load(path)
    assert (other.steps, other.position) == (1, 3)
    right = session.run({"x": rows[1]})["y"]
    np.testing.assert_array_equal(other.run({"x": rows[1]})["y"], right)


def test_files_that_are_no_state_of_the_model(
    gru: Executable, cache: Executable, tmp_path: Path
) -> None:
    path = tmp_path / "state"
    session = gru.session()
    session.run({"x": drawn(1, 2, 3)})
    session.save(path)
    with pytest.raises(InputError, match="another model: h"):
        cache.session().load(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="no state of a session"):
        session.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("about.json", json.dumps({"version": 9}))
    with pytest.raises(InputError, match="of version 9, not 1"):
        session.load(path)
    with pytest.raises(InputError, match="there is no such file"):
        session.load(tmp_path / "missing")
    with pytest.raises(OutputError):
        session.save(tmp_path / "missing" / "state")
    assert session.steps == 1


def specs(text: str) -> tuple[TensorSpec, ...]:
    """The tensors of a text, "name name:shape", in f32; the shape is (2, n) if none is given."""
    made = []
    for word in text.split():
        name, _, extents = word.partition(":")
        shape = [Formula(e) if e.isidentifier() else int(e) for e in (extents or "2,n").split(",")]
        made.append(TensorSpec(name, DType.F32, tuple(shape)))
    return tuple(made)


@pytest.mark.parametrize(
    ("inputs", "outputs", "pairs"),
    [
        (
            "ids past_key_values.0.key past_key_values.0.value past_key_values.1.key",
            "logits present.0.key present.0.value present.1.key",
            (
                "past_key_values.0.key=present.0.key past_key_values.0.value=present.0.value "
                "past_key_values.1.key=present.1.key"
            ),
        ),
        ("input past_0 past_1", "output present_0 present_1", "past_0=present_0 past_1=present_1"),
        ("input state sr", "output stateN", "state=stateN"),
        ("x h c", "y hn cn", "h=hn c=cn"),
        ("audio conv_cache_in", "wave conv_cache_out", "conv_cache_in=conv_cache_out"),
        ("x cache", "y new_cache", "cache=new_cache"),
        ("x prevHidden", "y nextHidden", "prevHidden=nextHidden"),
        ("image_in", "image_out", ""),
        ("x memory:2,3", "y memory_out:2,4", ""),
        ("x state_a past_a", "y new_state_a", "state_a=new_state_a"),
    ],
)
def test_names_say_what_is_state(inputs: str, outputs: str, pairs: str) -> None:
    wanted = dict(pair.split("=") for pair in pairs.split())
    assert state_pairs(specs(inputs), specs(outputs)) == wanted


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"h": "hm"}, "no output hm"),
        ({"g": "hn"}, "no input g"),
        ({"x": "hn"}, "cannot become"),
        ({}, "name the pairs"),
        (["h"], "it must be a mapping, not list"),
    ],
)
def test_pairs_that_do_not_fit(state: Any, said: str, gru: Executable) -> None:
    with pytest.raises(UsageError, match=said):
        gru.session(state)


def test_a_network_without_state_names_its_tensors(compiled: Callable[..., Executable]) -> None:
    with pytest.raises(UsageError, match="its inputs are x, its outputs y"):
        compiled().session()


@pytest.fixture
def compiled() -> Callable[..., Executable]:
    def build() -> Executable:
        x = helper.make_tensor_value_info("x", _FLOAT, (2,))
        y = helper.make_tensor_value_info("y", _FLOAT, (2,))
        return compile_model(model_of([helper.make_node("Relu", ["x"], ["y"])], [x], [y]))

    return build
