"""Caches that grow in place: what a session answers, what it copies, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tensorwright import load
from tensorwright.base import Array, InputError, InternalError
from tensorwright.compiling import compile as compile_model
from tensorwright.runtime import Executable, verify_plan
from tensorwright.runtime.frame import Frame
from tensorwright.runtime.native.pool.pending_run import Stop
from tensorwright.runtime.sessions import Session

_FLOAT = TensorProto.FLOAT
PAST = "past_key_values.0.key"


def model(width: int = 16, axis: int = 2) -> ModelProto:
    """A cache of twice the input, its sum, and a hidden state that adds the inputs up."""
    shape: list[Any] = ["batch", 2, width]
    shape.insert(axis, "past")
    new = ["seq" if extent == "past" else extent for extent in shape]
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["twice"]),
        helper.make_node("Concat", [PAST, "twice"], ["present.0.key"], axis=axis),
        helper.make_node("ReduceSum", ["present.0.key", "axis"], ["y"], keepdims=0),
        helper.make_node("ReduceSum", ["x", "axis"], ["added"], keepdims=0),
        helper.make_node("Add", ["state", "added"], ["stateN"]),
    ]
    value = helper.make_tensor_value_info
    inputs = [value("x", _FLOAT, new), value(PAST, _FLOAT, shape)]
    inputs.append(value("state", _FLOAT, ["batch", 2, width]))
    outputs = [value(name, _FLOAT, None) for name in ("y", "present.0.key", "stateN")]
    stored = {"two": np.array(2, np.float32), "axis": np.array([axis])}
    held = [numpy_helper.from_array(array, name) for name, array in stored.items()]
    graph = helper.make_graph(nodes, "states", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.fixture(scope="module", params=[0, 1, 2])
def axis(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def executable(axis: int) -> Executable:
    return compile_model(model(axis=axis))


def drawn(axis: int, rows: int, seed: int = 0) -> Array:
    shape = [1, 2, 16]
    shape.insert(axis, rows)
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


class Right:
    """What a session must answer, with all rows of the calls so far."""

    def __init__(self, axis: int) -> None:
        self.axis = axis
        self.rows = [drawn(axis, 0)]

    def run(self, x: Array) -> Array:
        self.rows = [*self.rows, x]
        total: Array = 2 * np.concatenate(self.rows, self.axis).sum(self.axis)
        return total

    def check(self, session: Session) -> None:
        all_rows = np.concatenate(self.rows, self.axis)
        state = session.state
        np.testing.assert_array_equal(state[PAST], 2 * all_rows)
        np.testing.assert_allclose(state["state"], all_rows.sum(self.axis), atol=1e-4)
        assert session.position == all_rows.shape[self.axis]


def test_calls_write_behind_the_rows_and_copy_none(executable: Executable, axis: int) -> None:
    inner, alone = executable.in_place
    assert [spec.name for spec in alone.outputs] == ["present.0.key", "stateN"]
    (state,) = inner.plan.states
    assert (state.input, state.output, state.axis) == (PAST, "present.0.key", axis)
    session, right = executable.session(), Right(axis)
    memory: list[int] = []
    for number in range(9):
        x = drawn(axis, 1 + number % 2, number)
        np.testing.assert_allclose(session.run({"x": x})["y"], right.run(x), atol=1e-4)
        memory.append(session.state[PAST].__array_interface__["data"][0])
    right.check(session)
    assert len(set(memory)) == 5  # room for 1, 3, 6, 12 and 24 rows


def test_a_network_without_aligned_rows_has_its_states_copied() -> None:
    executable = compile_model(model(width=3))
    assert executable.in_place == ()
    session, x = executable.session(), np.ones((1, 2, 2, 3), np.float32)
    for number in (1, 2):
        np.testing.assert_array_equal(session.run({"x": x})["y"], np.full((1, 2, 3), 4 * number))


def test_inputs_of_a_plain_call_are_not_changed(executable: Executable, axis: int) -> None:
    x, past, state = drawn(axis, 2), drawn(axis, 3, 1), np.zeros((1, 2, 16), np.float32)
    kept = past.copy()
    present = executable.run({"x": x, PAST: past, "state": state})["present.0.key"]
    np.testing.assert_array_equal(present, np.concatenate([kept, 2 * x], axis))
    np.testing.assert_array_equal(past, kept)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_histories(seed: int, executable: Executable, axis: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    pairs = [(executable.session(), Right(axis))]
    for number in range(40):
        session, right = pairs[draw.integers(len(pairs))]
        match draw.integers(8):
            case 0 if len(pairs) < 4:
                other = Right(axis)
                other.rows = list(right.rows)
                pairs.append((session.fork(), other))
            case 1:
                session.save(tmp_path / "state")
                session.reset()
                session.load(tmp_path / "state")
            case 2:
                with pytest.raises(InputError):
                    session.run({"x": np.zeros((2, 2, 2, 5), np.float32)})
            case 3:
                session.reset(session.state or None)
            case 4:
                x = drawn(axis, int(draw.integers(1, 5)), 100 * seed + number)
                session.advance({"x": x})
                right.run(x)
            case _:
                x = drawn(axis, int(draw.integers(1, 5)), 100 * seed + number)
                np.testing.assert_allclose(session.run({"x": x})["y"], right.run(x), atol=1e-4)
        for one, its in pairs:
            if one.state:
                its.check(one)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("width", [3, 16])
def test_sessions_go_back(seed: int, width: int, axis: int, executable: Executable) -> None:
    """Drawn histories, with rows that are copied in each call, and in place."""
    draw = np.random.default_rng(seed)
    own = executable if width == 16 else compile_model(model(width, axis))
    zeros = np.zeros((1, 2, width), np.float32)
    pairs = [(own.session({PAST: "present.0.key"}), drawn(axis, 0)[..., :width])]
    views: list[tuple[Array, Array]] = []
    for _ in range(60):
        number = draw.integers(len(pairs))
        session, rows = pairs[number]
        match draw.integers(6):
            case 0 if len(pairs) < 4:
                pairs.append((session.fork(), rows))
            case 1:
                views += [(each, each.copy()) for each in session.state.values()]
            case 2 | 3:
                reached, position = session.position, int(draw.integers(session.position + 1))
                for each in (0, reached, position):  # forward, too
                    session.rewind(each)
                rows = rows.take(range(position), axis)
            case _:
                x = drawn(axis, int(draw.integers(1, 4)), int(draw.integers(99)))[..., :width]
                rows = np.concatenate((rows, 2 * x), axis)
                y = session.run({"x": x, "state": zeros})["y"]
                np.testing.assert_allclose(y, rows.sum(axis), atol=1e-4)
        pairs[number] = (session, rows)
        for one, its in pairs:
            assert one.position == its.shape[axis]
            for state in one.state.values() if one.steps else ():
                np.testing.assert_array_equal(state, its)
        for view, kept in views:
            np.testing.assert_array_equal(view, kept)


def test_views_of_the_state_stay_as_they_were(executable: Executable, axis: int) -> None:
    session = executable.session()
    session.run({"x": drawn(axis, 2)})
    view = session.state[PAST]
    kept = view.copy()
    for use in (lambda: session.run({"x": drawn(axis, 3, 1)}), session.reset):
        use()
    session.run({"x": drawn(axis, 5, 2)})
    np.testing.assert_array_equal(view, kept)


def test_a_call_that_is_killed_leaves_the_state(
    executable: Executable, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, right, inner = executable.session(), Right(axis), executable.in_place[0]
    for number in range(3):
        x = drawn(axis, 2, number)
        right.run(x)
        session.run({"x": x})
    real = inner.run_in_place

    def killed(inputs: Any, memory: Any, stop: Any) -> Any:
        real(inputs, memory, stop)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(inner, "run_in_place", killed)
        with pytest.raises(KeyboardInterrupt):
            session.run({"x": drawn(axis, 1, 9)})
    right.check(session)
    x = drawn(axis, 2, 10)
    np.testing.assert_allclose(session.run({"x": x})["y"], right.run(x), atol=1e-4)
    right.check(session)


@pytest.mark.parametrize("call", [Session.run, Session.advance])
@pytest.mark.parametrize("width", [3, 16])
def test_a_call_is_cancelled_and_goes_on(
    width: int, call: Any, executable: Executable, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another thread while it runs, and before it begins; the kernels left are not run."""
    own = executable if width == 16 else compile_model(model(width, axis))
    session, right = own.session(), np.zeros((1, 2, width), np.float32)
    entered, go_on, real = threading.Event(), threading.Event(), Frame.stop_by

    def waiting(frame: Frame, stop: Stop) -> None:
        entered.set()
        assert go_on.wait(30)
        real(frame, stop)

    for number in range(3):
        x = drawn(axis, 2, number)[..., :width]
        right += 2 * x.sum(axis)
        np.testing.assert_allclose(session.run({"x": x})["y"], right, atol=1e-4)
    before = {name: array.copy() for name, array in session.state.items()}
    with monkeypatch.context() as patch:
        patch.setattr(Frame, "stop_by", waiting)
        thread = threading.Thread(
            target=lambda: entered.wait(30) and [session.cancel(), go_on.set()]
        )
        thread.start()
        with pytest.raises(CancelledError):
            call(session, {"x": x})
        thread.join()
    session.cancel()
    with pytest.raises(CancelledError):
        call(session, {"x": x})
    assert (session.steps, session.position) == (3, 6)
    for name, array in session.state.items():
        np.testing.assert_array_equal(array, before[name])
    np.testing.assert_allclose(session.run({"x": x})["y"], right + 2 * x.sum(axis), atol=1e-4)


_SAVES = """
import sys, numpy, tensorwright
session = tensorwright.load(sys.argv[1]).session()
for number in range(1 << 20):
    session.run({"x": numpy.full((1, 2, 2, 16), number, "f")})
    session.save(sys.argv[2])
    print(number, flush=True)
"""


def test_a_process_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    executable, path = compile_model(model()), tmp_path / "state"
    executable.save(tmp_path / "net.tw")
    command = [sys.executable, "-c", _SAVES, os.fspath(tmp_path / "net.tw"), os.fspath(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(20):
            last = int(process.stdout.readline())
        process.kill()
    session = executable.session()
    session.load(path)
    assert session.steps > last
    rows = 2 * np.repeat(np.arange(session.steps, dtype=np.float32), 2)
    np.testing.assert_array_equal(session.state[PAST][0, 0, :, 0], rows)


def test_eight_threads_continue_one_prompt(executable: Executable, axis: int) -> None:
    prompt = executable.session()
    prompt.run({"x": drawn(axis, 5)})
    faults: list[BaseException] = []

    def work(seed: int, session: Session) -> None:
        try:
            right = Right(axis)
            right.run(drawn(axis, 5))
            for number in range(20):
                x = drawn(axis, 1 + number % 3, 50 * seed + number)
                np.testing.assert_allclose(session.run({"x": x})["y"], right.run(x), atol=1e-4)
            right.check(session)
        except BaseException as error:  # noqa: BLE001  (a thread hands its error over)
            faults.append(error)

    threads = [threading.Thread(target=work, args=(n, prompt.fork())) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_a_file_keeps_the_plan_of_sessions(
    executable: Executable, axis: int, tmp_path: Path
) -> None:
    executable.save(tmp_path / "net.tw")
    other = load(tmp_path / "net.tw")
    for one, its in zip(other.in_place, executable.in_place, strict=True):
        assert one.plan.states == its.plan.states
    x = drawn(axis, 2)
    session, right = other.session(), Right(axis)
    np.testing.assert_allclose(session.run({"x": x})["y"], right.run(x), atol=1e-4)


def test_a_step_that_reads_rows_too_early_is_refused(executable: Executable) -> None:
    inner = executable.in_place[0]
    with pytest.raises(InternalError, match="before all new ones are written"):
        verify_plan(replace(inner.plan, steps=tuple(reversed(inner.plan.steps)), teams=()))


@pytest.mark.parametrize("pairs", [{"state": "stateN"}, {PAST: "present.0.key"}])
def test_a_part_of_the_states_may_be_named(pairs: dict[str, str]) -> None:
    executable = compile_model(model())
    session = executable.session(pairs)
    zeros: dict[str, Callable[[], Array]] = {
        PAST: lambda: np.zeros((1, 2, 0, 16), np.float32),
        "state": lambda: np.zeros((1, 2, 16), np.float32),
    }
    given = {name: make() for name, make in zeros.items() if name not in pairs}
    x = np.ones((1, 2, 3, 16), np.float32)
    for number in (1, 2):
        y = session.run({"x": x, **given})["y"]
        assert y.flat[0] == 6 * (number if PAST in pairs else 1)


def test_the_graph_says_what_grows_where_names_do_not() -> None:
    node = helper.make_node("Concat", ["a", "x"], ["b"], axis=0)
    shapes = {"a": ("rows", 16), "x": ("more", 16)}
    inputs = [helper.make_tensor_value_info(name, _FLOAT, each) for name, each in shapes.items()]
    output = helper.make_tensor_value_info("b", _FLOAT, None)
    doubled = helper.make_node("Add", ["x", "x"], ["y"])
    node.input[1] = "y"
    graph = helper.make_graph([doubled, node], "plain", inputs, [output])
    session = compile_model(helper.make_model(graph, ir_version=8)).session()
    assert session.pairs == {"a": "b"}
    for _ in range(3):
        session.run({"x": np.ones((2, 16), np.float32)})
    np.testing.assert_array_equal(session.state["a"], np.full((6, 16), 2, np.float32))


def caches(count: int) -> ModelProto:
    """So many caches of multiples of the input, and the sum of all their rows."""
    names = [f"{number}" for number in range(count)]
    nodes: list[Any] = []
    value = helper.make_tensor_value_info
    for name in names:
        nodes.append(helper.make_node("Mul", ["x", f"factor.{name}"], [f"new.{name}"]))
        rows = [f"past.{name}", f"new.{name}"]
        nodes.append(helper.make_node("Concat", rows, [f"present.{name}"], axis=0))
        sums = [f"present.{name}"], [f"sum.{name}"]
        nodes.append(helper.make_node("ReduceSum", *sums, keepdims=0))
    nodes.append(helper.make_node("Sum", [f"sum.{name}" for name in names], ["y"]))
    inputs = [value("x", _FLOAT, ["seq", 16])]
    inputs += [value(f"past.{name}", _FLOAT, ["rows", 16]) for name in names]
    outputs = [value(name, _FLOAT, None) for name in ("y", *(f"present.{n}" for n in names))]
    factors = [numpy_helper.from_array(np.float32(2 + int(n)), f"factor.{n}") for n in names]
    graph = helper.make_graph(nodes, "caches", inputs, outputs, factors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_the_functions_that_a_step_calls_do_not_grow_with_the_states() -> None:
    counts = []
    for number in (1, 3):
        session, x = compile_model(caches(number)).session(), np.ones((1, 16), np.float32)
        for _ in range(11):  # room for 1, 2, 4, 8 and 16 rows
            session.run({"x": x})
        events: list[str] = []
        sys.setprofile(lambda _, event, __, events=events: events.append(event))  # type: ignore[misc]
        try:
            session.run({"x": x})
        finally:
            sys.setprofile(None)
        counts.append(events.count("call") + events.count("c_call"))
    assert counts[0] == counts[1] < 300
