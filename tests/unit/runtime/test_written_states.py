"""Caches of a fixed length, which calls write in place: answers, memory, histories, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tensorwright import load
from tensorwright.base import Array, InputError, InternalError, UsageError
from tensorwright.compiling import compile as compile_model
from tensorwright.runtime import Executable, WrittenState, verify_plan
from tensorwright.runtime.sessions import Session

_FLOAT, _ROWS = TensorProto.FLOAT, 8
PAST, PRESENT = "past_key_values.0.key", "present.0.key"
_TURN, _BACK = (2, 0, 1, 3), (1, 2, 0, 3)
WRITTEN = ("linear", "circular", "nd", "turned")


def model(
    how: str, rows: int | str = _ROWS, heads: tuple[int | str, int | str] = (2, 2)
) -> ModelProto:
    """A cache of twice the input, and its sum.

    how   TensorScatter's mode, or ScatterND along the first dimension, or between transposes
    """
    node, value = helper.make_node, helper.make_tensor_value_info
    shape: list[Any] = [*heads, rows, 16]
    if how == "nd":
        shape = [rows, *heads, 16]
    axis = shape.index(rows)
    new = ["seq" if at == axis else extent for at, extent in enumerate(shape)]
    nodes = [node("Mul", ["x", "two"], ["twice"])]
    if how in ("linear", "circular"):
        nodes.append(node("TensorScatter", [PAST, "twice", "at"], [PRESENT], mode=how))
    else:
        nodes.append(node("Unsqueeze", ["at", "last"], ["places"]))
        tensors = [PAST, "places", "twice"], [PRESENT]
        if how == "turned":
            nodes.append(node("Transpose", [PAST], ["past_turned"], perm=_TURN))
            nodes.append(node("Transpose", ["twice"], ["twice_turned"], perm=_TURN))
            tensors = ["past_turned", "places", "twice_turned"], ["turned"]
        nodes.append(node("ScatterND", *tensors))
        if how == "turned":
            nodes.append(node("Transpose", ["turned"], [PRESENT], perm=_BACK))
    nodes.append(node("ReduceSum", [PRESENT, "axis"], ["y"], keepdims=0))
    places = heads[0] if how in ("linear", "circular") else "seq"
    inputs = [value("x", _FLOAT, new), value("at", TensorProto.INT64, [places])]
    inputs.append(value(PAST, _FLOAT, shape))
    outputs = [value(name, _FLOAT, None) for name in ("y", PRESENT)]
    stored = {"two": np.array(2, np.float32), "axis": np.array([axis]), "last": np.array([-1])}
    held = [numpy_helper.from_array(array, name) for name, array in stored.items()]
    graph = helper.make_graph(nodes, how, inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


class Right:
    """What a session must answer: the reference's, with the whole cache given and returned."""

    def __init__(self, how: str) -> None:
        self.how, self.axis = how, 0 if how == "nd" else 2
        self.reference = ReferenceEvaluator(model(how))
        self.cache = np.zeros((_ROWS, 2, 2, 16) if how == "nd" else (2, 2, _ROWS, 16), np.float32)
        self.position = 0

    def inputs(self, count: int, start: int, seed: int) -> dict[str, Array]:
        shape = list(self.cache.shape)
        shape[self.axis] = count
        x = np.random.default_rng(seed).standard_normal(shape, np.float32)
        places = np.arange(start, start + count) % _ROWS
        return {"x": x, "at": places if self.how in ("nd", "turned") else np.full(2, start)}

    def run(self, inputs: dict[str, Array]) -> Array:
        y, self.cache = self.reference.run(None, {**inputs, PAST: self.cache})
        self.position += inputs["x"].shape[self.axis]
        return y

    def check(self, session: Session) -> None:
        np.testing.assert_array_equal(session.state.get(PAST, 0 * self.cache), self.cache)
        assert session.position == self.position


@pytest.fixture(scope="module", params=WRITTEN)
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def executable(how: str) -> Executable:
    return compile_model(model(how))


def address(session: Session) -> int:
    assert session._rows is not None
    return int(session._rows.addresses[0])


def test_calls_write_into_one_piece_of_memory(executable: Executable, how: str) -> None:
    (state,) = executable.in_place[0].plan.states
    assert isinstance(state, WrittenState)
    session, right = executable.session(), Right(how)
    memory = set()
    for count, start in ((3, 0), (1, 3), (2, 4), (1, 1)):
        inputs = right.inputs(count, start, start)
        np.testing.assert_allclose(session.run(inputs)["y"], right.run(inputs), atol=1e-5)
        memory.add(address(session))
    assert len(memory) == 1
    assert session.room == _ROWS
    right.check(session)
    plan = replace(executable.in_place[0].plan, states=(replace(state, output="y"),))
    with pytest.raises(InternalError, match="before all new ones are written"):
        verify_plan(plan)


@pytest.mark.parametrize("seed", range(2))
def test_drawn_histories(seed: int, executable: Executable, how: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    pairs = [(executable.session(), Right(how))]
    for number in range(30):
        session, right = pairs[draw.integers(len(pairs))]
        count, start = int(draw.integers(1, 4)), int(draw.integers(_ROWS - 3))
        inputs = right.inputs(count, start, 100 * seed + number)
        match draw.integers(7):
            case 0 if len(pairs) < 4:
                other = Right(how)
                other.cache, other.position = right.cache.copy(), right.position
                pairs.append((session.fork(), other))
            case 1:
                session.save(tmp_path / "state")
                session.reset()
                session.load(tmp_path / "state")
            case 2:
                with pytest.raises(InputError):
                    session.run({**inputs, "x": inputs["x"][..., :5]})
            case 3 if session.state:
                kept = session.state
                session.reset(kept)
                right.position = 0
            case 4:
                session.advance(inputs)
                right.run(inputs)
            case _:
                view = session.state
                before = {name: array.copy() for name, array in view.items()}
                np.testing.assert_allclose(session.run(inputs)["y"], right.run(inputs), atol=1e-5)
                for name, array in view.items():
                    np.testing.assert_array_equal(array, before[name])
        for one, its in pairs:
            its.check(one)


def test_a_session_goes_back_while_nothing_is_overwritten(executable: Executable, how: str) -> None:
    session, right = executable.session(), Right(how)
    for count, start in ((3, 0), (2, 3)):
        inputs = right.inputs(count, start, start)
        session.run(inputs)
        right.run(inputs)
    kept = session.state[PAST]
    session.rewind(4)
    right.position = 4
    right.check(session)
    inputs = right.inputs(3, 4, 9)
    session.run(inputs)
    right.run(inputs)
    right.check(session)
    assert (kept != right.cache).any()
    session.run(right.inputs(2, 1, 0))
    with pytest.raises(UsageError, match=f"the state {PAST} does not grow with it"):
        session.rewind(1)


def test_a_plain_call_changes_no_input_and_a_file_keeps_the_state(
    executable: Executable, how: str, tmp_path: Path
) -> None:
    right = Right(how)
    inputs, past = right.inputs(2, 3, 0), np.ones_like(right.cache)
    present = executable.run({**inputs, PAST: past})[PRESENT]
    right.cache = np.ones_like(past)
    right.run(inputs)
    np.testing.assert_array_equal(present, right.cache)
    assert (past == 1).all()
    executable.save(tmp_path / "net.tw")
    session = load(tmp_path / "net.tw").session()
    session.reset({PAST: past})
    session.run(inputs)
    np.testing.assert_array_equal(session.state[PAST], right.cache)


def test_an_open_length_is_given_first(how: str) -> None:
    session = compile_model(model(how, "rows", ("batch", 2))).session()
    right = Right(how)
    inputs = right.inputs(2, 1, 0)
    with pytest.raises(InputError, match=r"how long it is, rows, is known neither"):
        session.run(inputs)
    session.reset({PAST: np.zeros_like(right.cache)})
    np.testing.assert_allclose(session.run(inputs)["y"], right.run(inputs), atol=1e-5)
    right.check(session)


def test_a_cache_that_others_read_is_written_anew() -> None:
    """The old rows, which the sum needs, would be lost."""
    both = model("linear")
    both.graph.node[-1].input[0] = PAST
    executable = compile_model(both)
    assert executable.in_place == ()
    session, right = executable.session(), Right("linear")
    for start in (0, 2):
        inputs = right.inputs(2, start, start)
        old = right.cache.sum(2)
        right.run(inputs)
        np.testing.assert_allclose(session.run(inputs)["y"], old, atol=1e-5)
