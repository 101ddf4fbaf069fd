"""Branches and loops that are decided when a network runs, from the model to the answer."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from tests.unit.branching_models import (
    BOOL,
    FLOAT,
    INT,
    LOOP_CALLS,
    branch,
    branch_in_loop,
    graph,
    loop,
    loop_inputs,
    loop_over_rows,
    model,
    nested_branches,
    node,
    one_branch,
    rows_between,
    scan,
    scan_inputs,
    weights,
)
from tests.unit.graph.onnx.onnx_models import by_onnxruntime

import tensorwright
from tensorwright.base import InputError, ModelError, UnsupportedError, override
from tensorwright.compile_options import USUAL, CompileOptions
from tensorwright.drivers.c_library import export_c
from tensorwright.graph import bind_partition, bind_sizes, interpret, representative, simplify
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.imports.refusals import INVALID
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.pipeline import cut, finish, import_graph, prepare
from tensorwright.records import opened
from tensorwright_lab.graph_text import parse

pytestmark = pytest.mark.usefixtures("by_rule")

X = weights(3, 4, 8)
BRANCHES = [{"x": X, "c": np.array(c)} for c in (True, False)]
NESTED = [
    {"x": X, "c1": np.array([c1]), "c2": np.array(c2)}
    for c1 in (True, False)
    for c2 in (True, False)
]
MIXED = [{"x": weights(4, 5), "n": np.array(n), "yes": np.array(n != 3)} for n in (0, 1, 3, 4, 30)]
BETWEEN = [{"x": weights(7, 1, 8), "n": np.array(n)} for n in (40, 0, 1, 7, 8, 9, 33)]
CASES = [
    pytest.param(one_branch(), BRANCHES, id="branch"),
    pytest.param(nested_branches(), NESTED, id="nested"),
    pytest.param(loop(is_collected=False), LOOP_CALLS, id="loop"),
    pytest.param(loop(), LOOP_CALLS, id="rows"),
    pytest.param(loop(is_read=True), LOOP_CALLS, id="rows are read"),
    pytest.param(branch_in_loop(), MIXED, id="branch in a loop"),
    pytest.param(rows_between(), BETWEEN, id="rows between"),
    pytest.param(scan("n"), [scan_inputs(length) for length in (1, 5, 17)], id="scan"),
    pytest.param(scan(5000), [scan_inputs(5000)], id="long scan"),
    pytest.param(loop_over_rows(), [scan_inputs(length) for length in (1, 4, 90)], id="sums"),
]


def close(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


@pytest.mark.parametrize(("given", "calls"), CASES)
def test_results_are_those_of_another_runtime(
    given: ModelProto, calls: Sequence[dict[str, Any]], tmp_path: Path
) -> None:
    with override(verify=True):
        executable = tensorwright.compile(given)
        imported = load_onnx(given)
    executable.save(tmp_path / "saved")
    loaded = tensorwright.load(tmp_path / "saved")
    for call in (*calls, *calls[::-1]):
        call = {spec.name: call[spec.name] for spec in executable.inputs}
        wanted = by_onnxruntime(given, call)
        close(list(executable.run(call).values()), wanted)
        close(list(loaded.run(call).values()), wanted)
        if given.graph.name != "scan" or len(call["xs"]) < 100:
            close(list(interpret(imported, call).values()), wanted)
    call = {spec.name: calls[0][spec.name] for spec in executable.inputs}
    assert len(executable.profile(call, repeat=2)) == len(executable.steps)


def test_a_call_that_is_prepared_decides_anew_each_time() -> None:
    bound = tensorwright.compile(loop(is_read=True)).bind(LOOP_CALLS[0])
    for call in (*LOOP_CALLS, *LOOP_CALLS[::-1]):
        for name, array in call.items():
            np.copyto(bound.inputs[name], array)
        close(list(bound.run().values()), by_onnxruntime(loop(is_read=True), call))


def test_threads_may_share_one_executable() -> None:
    executable = tensorwright.compile(branch_in_loop(), threads=2)
    wanted = [by_onnxruntime(branch_in_loop(), call) for call in MIXED]

    def check(number: int) -> None:
        at = number % len(MIXED)
        close(list(executable.run(MIXED[at]).values()), wanted[at])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, range(200)))


def test_branches_share_constants_and_memory() -> None:
    sides = {"then_branch": branch("t", "a", "Tanh"), "else_branch": branch("e", "a", "Relu")}
    inputs = [("x", FLOAT, (4, 8)), ("c", BOOL, ())]
    nodes = [node("If", "c", "y", **sides), node("Neg", "y", "z")]
    whole = graph("shared", nodes, inputs, ("z", FLOAT, (4, 8)))
    executable = tensorwright.compile(model(whole, {"a": weights(1, 8, 8)}))
    assert len(executable.plan.constants) == 1
    assert str(executable.plan).splitlines()[4:] == [
        "  branch:       if in1: 1 steps, else: 1 steps",
        "  matmul_tanh:  kernel(in0, const0, arena[0:128]) @threads<=1",
        "  matmul_relu:  kernel(in0, const0, arena[0:128]) @threads<=1",
        "  neg:          kernel(arena[0:128], out0) @threads<=1",
    ]


@pytest.mark.parametrize(("given", "calls"), CASES[:3])
def test_a_graph_with_branches_is_written_as_onnx(
    given: ModelProto, calls: Sequence[dict[str, Any]]
) -> None:
    written = to_onnx(simplify(load_onnx(given)))
    for call in calls:
        close(by_onnxruntime(written, call), by_onnxruntime(given, call))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(
    ("given", "sizes"),
    [(nested_branches(), {}), (loop(is_collected=False), {}), (scan("n"), {"n": "1..9"})],
    ids="nested loop scan".split(),
)
def test_a_c_library_branches_and_loops(
    given: ModelProto, sizes: dict[str, str], tmp_path: Path
) -> None:
    target = USUAL.machine
    with opened(None) as store:
        parts = cut(import_graph(given, CompileOptions(sizes=sizes)), target)
        export_c(parts, target, 1, store, tmp_path, "net", seed=5)
    subprocess.run(["make", "-C", tmp_path], check=True, capture_output=True)
    result = subprocess.run([tmp_path / "example"], check=True, capture_output=True, text=True)
    assert "equal" in result.stdout


def test_a_c_library_has_no_room_that_a_loop_decides(tmp_path: Path) -> None:
    target = USUAL.machine
    parts = prepare(loop(), target)
    with opened(None) as store, pytest.raises(UnsupportedError) as caught:
        export_c(parts, target, 1, store, tmp_path, "net")
    assert str(caught.value) == (
        "node end (loop): the size walk_trips is the number of its iterations, which is known when "
        "it has run and not before\n  try: carry a tensor of a fixed size instead of collecting "
        "rows, or compile to an executable"
    )


def test_a_loop_has_room_for_as_many_rows_as_the_caller_says() -> None:
    with pytest.raises(UnsupportedError) as caught:
        tensorwright.compile(loop(most=None))
    assert str(caught.value) == (
        "operator Loop: node walk (Loop): it collects a row in each iteration, and nothing says "
        'how many there are at most\n  try: say it: sizes={"walk_trips": "..64"}, or '
        "let its trip count be Min(count, a constant)"
    )
    executable = tensorwright.compile(loop(most=None), sizes={"walk_trips": "..4"})
    assert executable.run(loop_inputs(4))["rows"].shape == (4, 3)
    with pytest.raises(InputError) as refused:
        executable.run(loop_inputs(5))
    assert str(refused.value) == (
        "size walk_trips: a loop runs more than 4 times, and there is no room for more of its rows"
        '\n  try: compile with a greater number: sizes={"walk_trips": "..8"}'
    )
    assert executable.run(loop_inputs(2))["rows"].shape == (2, 3)


def test_rows_are_written_into_the_callers_array() -> None:
    executable = tensorwright.compile(loop())
    outputs = {"end": np.zeros(3, np.float32), "rows": np.full((8, 3), 7, np.float32)}
    executable.run_into(loop_inputs(3), outputs)
    np.testing.assert_array_equal(outputs["rows"][:3], executable.run(loop_inputs(3))["rows"])
    assert (outputs["rows"][3:] == 7).all()


def refusal(given: ModelProto, kind: type[ModelError | UnsupportedError]) -> str:
    with pytest.raises(kind) as caught:
        load_onnx(given)
    return str(caught.value)


def test_a_condition_that_is_no_single_bool() -> None:
    sides = {"then_branch": branch("t", "a", "Tanh"), "else_branch": branch("e", "a", "Relu")}
    for dtype, shape, text in ((BOOL, (2,), "bool(2)"), (INT, (), "i64()")):
        inputs = [("x", FLOAT, (4, 8)), ("c", dtype, shape)]
        whole = graph("wrong", [node("If", "c", "y", **sides)], inputs, ("y", FLOAT, (4, 8)))
        given = model(whole, {"a": weights(1, 8, 8)})
        wanted = f"node y (If): its condition is {text}, and must be a single bool"
        assert refusal(given, ModelError) == f"{wanted}\n  try: {INVALID}"


def test_branches_whose_results_differ_in_type() -> None:
    other = graph("e", [node("Neg", "x", "n")], (), ("n", FLOAT, (2, 8)))
    sides = {"then_branch": branch("t", "a", "Tanh"), "else_branch": other}
    inputs = [("x", FLOAT, (2, 8)), ("c", BOOL, ())]
    nodes = [node("Concat", "x x", "xx", axis=0), node("If", "c", "y", **sides)]
    sides["then_branch"].node[0].input[0] = "xx"
    del nodes[1].attribute[:]
    nodes[1] = node("If", "c", "y", **sides)
    given = model(graph("w", nodes, inputs, ("y", FLOAT, (None, 8))), {"a": weights(1, 8, 8)})
    assert refusal(given, UnsupportedError) == (
        "operator If: node y (If): its output number 1 is f32(4, 8) if the condition holds, and "
        "otherwise f32(2, 8)\n  try: let both branches give one element type and shape"
    )


def test_a_carried_value_that_grows() -> None:
    body = graph(
        "body",
        [node("Concat", "s x", "s1", axis=0), node("Identity", "c", "going")],
        [("i", INT, ()), ("c", BOOL, ()), ("s", FLOAT, (None,))],
        *[("going", BOOL, ()), ("s1", FLOAT, (None,))],
    )
    inputs = [("x", FLOAT, (3,)), ("n", INT, ()), ("go", BOOL, ())]
    whole = graph("grow", [node("Loop", "n go x", "y", body=body)], inputs, ("y", FLOAT, (None,)))
    assert refusal(model(whole, {}), UnsupportedError) == (
        "operator Loop: node y (Loop): what it carries in s is f32(3) before an iteration and "
        "f32(6) after it\n  try: carry a tensor of the largest shape, and write each part where it "
        "belongs"
    )


def test_who_needs_another_graph_refuses_branches() -> None:
    with pytest.raises(UnsupportedError, match=r"node y \(branch\): it holds graphs"):
        tensorwright.rewrite(one_branch(), seconds=0)


def test_text_of_nested_graphs_is_not_read() -> None:
    with pytest.raises(ModelError, match="a node holds it, and graphs of nodes are not read"):
        parse(str(load_onnx(one_branch())))


def test_workloads_of_nested_graphs_are_among_the_others() -> None:
    parts = prepare(one_branch(), USUAL.machine)
    assert [workload.name for workload in parts.workloads] == ["matmul_tanh", "matmul_relu"]


def test_a_loop_ends_at_the_number_that_stands_for_its_size() -> None:
    parts = prepare(loop(), USUAL.machine)
    typical = bind_partition(parts, representative(parts.graph.sizes))
    with opened(None) as store:
        executable = finish(typical, USUAL.machine, 1, store)
    assert [spec.shape for spec in executable.outputs] == [(3,), (4, 3)]
    found, whole = executable.run(loop_inputs(8)), tensorwright.compile(loop()).run(loop_inputs(4))
    close(list(found.values()), list(whole.values()))
    bound = bind_sizes(load_onnx(loop()), {"walk_trips": 4})
    close(list(interpret(bound, loop_inputs(8)).values()), list(whole.values()))
