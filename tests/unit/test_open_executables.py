"""Networks of any size: compiled once, called with many."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.draws import first_seed, some_of
from tests.unit.graph.open_networks import NETWORKS, encoder, perceptron
from tests.unit.graph.small_networks import Maker

import tensorwright
from tensorwright import compile as compile_model
from tensorwright import expr
from tensorwright.base import DType, InputError, MachineError, UsageError, cpu_target, override
from tensorwright.graph import (
    Graph,
    GraphBuilder,
    Workload,
    bind_sizes,
    interpret,
    program,
    random_inputs,
)
from tensorwright.runtime import Executable
from tensorwright.runtime.native.driver import load_program
from tensorwright.runtime.plan.plan import Plan
from tensorwright_lab.judging.open_sizes import check_network, check_trace, random_traces

pytestmark = pytest.mark.usefixtures("by_rule")

NATIVE = cpu_target("native")


def compiled(graph: Graph) -> Executable:
    """The executable on two threads."""
    return compile_model(graph, threads=2)


@pytest.mark.parametrize("network", some_of(NETWORKS, 4, "open"))
@pytest.mark.drawn
def test_networks_compute_what_the_interpreter_does(network: Callable[[], Graph]) -> None:
    graph = network()
    with override(default_schedule="model" if network is perceptron else "rule"):
        check_network(graph, {s.name: (s.least + 2) * s.divisor for s in graph.sizes}, 0)


def dense(columns: int = 48) -> Workload:
    """A product of any number of rows, and what is added to it."""
    n = expr.named_size("n", greatest=64)
    x, w, b = (
        expr.placeholder("x", (n, 24)),
        expr.placeholder("w", (24, columns)),
        expr.placeholder("b", (columns,)),
    )
    k = expr.reduce_axis("k", 24)
    y = expr.compute("y", (n, columns), lambda i, j: expr.sum_over(x[i, k] * w[k, j], k))
    z = expr.compute("z", (n, columns), lambda i, j: y[i, j] + b[j])
    return program([z], frozenset(["w", "b"]))


def scores() -> Workload:
    """Rows of any length, over their sums, of any number of rows."""
    rows, length = expr.named_size("rows", greatest=9), expr.named_size("length", greatest=70)
    x = expr.placeholder("x", (rows, length))
    k = expr.reduce_axis("k", length)
    total = expr.compute("total", (rows,), lambda i: expr.sum_over(x[i, k] * x[i, k], k))
    return program([expr.compute("y", (rows, length), lambda i, j: x[i, j] / (total[i] + 1.0))])


def windows() -> Workload:
    """Sums of neighbours of a signal of any even length, with zeros beyond its ends."""
    half = expr.named_size("n", least=4, greatest=80, divisor=2)
    x = expr.placeholder("x", (3, half))
    k = expr.reduce_axis("k", 5)
    padded = expr.compute(
        "padded",
        (3, half + 4),
        lambda c, i: expr.select(
            expr.all_of(i >= 2, i < half + 2),
            x[c, expr.maximum(i - 2, 0) % half],
            expr.constant(0.0, DType.F32),
        ),
    )
    return program(
        [expr.compute("y", (3, half // 2), lambda c, i: expr.sum_over(padded[c, 2 * i + k], k))]
    )


def heads() -> Workload:
    """A product of the rows of all sequences, which are separated into heads again."""
    batch, length = expr.named_size("batch", greatest=5), expr.named_size("length", greatest=20)
    x, w, k = (
        expr.placeholder("x", (batch, length, 24)),
        expr.placeholder("w", (24, 32)),
        expr.reduce_axis("k", 24),
    )
    y = expr.compute(
        "y", (batch, length, 32), lambda b, i, j: expr.sum_over(x[b, i, k] * w[k, j], k)
    )
    z = expr.compute("z", (batch, 2, length, 16), lambda b, h, i, j: y[b, i, 16 * h + j] + 1.0)
    return program(expr.join_open_axes((z,)), frozenset(["w"]))


@pytest.mark.parametrize(
    "workload",
    [dense(), scores(), windows(), heads()],
    ids=["dense", "scores", "windows", "heads"],
)
@pytest.mark.drawn
def test_schedules_drawn_at_random_compute_the_meaning(workload: Workload) -> None:
    opened = 0
    for trace in random_traces(workload, NATIVE, 8, first_seed()):
        opened += check_trace(workload, trace, NATIVE, 1)
        if opened == 3:
            return
    assert opened


def test_a_call_of_one_size_after_another(tmp_path: Path) -> None:
    graph = perceptron()
    executable = compiled(graph)
    executable.save(tmp_path / "p.tw")
    loaded = tensorwright.load(tmp_path / "p.tw")
    for number in (1, 16, 2, 15, 1):
        inputs = random_inputs(bind_sizes(graph, {"n": number}), number)
        (expected,) = interpret(graph, inputs).values()
        for each in (executable, loaded):
            (found,) = each.run(inputs).values()
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_an_arena_without_bounds_grows_to_the_largest_call() -> None:
    n = expr.named_size("n")
    x = expr.placeholder("x", (n, 32))
    first = expr.compute("first", (n, 32), lambda i, j: x[i, j] * 2.0)
    k = expr.reduce_axis("k", n)
    total = expr.compute("total", (32,), lambda j: expr.sum_over(first[k, j], k))
    executable = compile_model([expr.compute("y", (n, 32), lambda i, j: first[i, j] - total[j])])
    assert executable.plan.capacity == {"n": 1}
    for number in (5, 100, 7):
        array = np.ones((number, 32), np.float32)
        np.testing.assert_allclose(executable(array), np.full((number, 32), 2 - 2 * number, "f4"))
    assert executable.plan.capacity == {"n": 100}
    executable(np.ones((101, 32), np.float32))
    assert executable.plan.capacity == {"n": 200}  # calls that grow one by one grow it rarely


def test_a_call_sees_room_in_the_plan_only_when_the_memory_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a call of another thread writes past the end of the arena."""
    n = expr.named_size("n")
    x = expr.placeholder("x", (n, 32))
    executable = compile_model([expr.compute("y", (n, 32), lambda i, j: x[i, j] * 2.0)])
    seen = []

    def watched(plan: Plan, code: Any) -> Any:
        seen.append((executable.plan.capacity, plan.capacity))
        return load_program(plan, code)

    monkeypatch.setattr("tensorwright.runtime.frame.load_program", watched)
    executable(np.ones((5, 32), np.float32))
    assert seen == [({"n": 1}, {"n": 5})]
    assert executable.plan.capacity == {"n": 5}


def test_weights_that_are_padded_before_they_are_packed_by_phases_of_any_size() -> None:
    """They are constants of another name than the one that the caller gives."""
    batch, height, width = map(expr.named_size, ("batch", "height", "width"))
    m = Maker("upsampled")
    x = m.builder.input("x", (batch, 4, height, width))
    window = {"strides": (2, 2), "pads": (1,) * 4, "output_padding": (1, 1)}
    graph = m.finish(m.add("conv_transpose", x, m.weight(4, 8, 3, 3), **window))
    check_network(graph, {"batch": 2, "height": 9, "width": 9}, 0)


def test_variants_of_a_kernel_share_packed_weights_that_are_alike() -> None:
    """The phases are the loops of one variant, and remainders of the rows of the other."""
    m = Maker("upsampled")
    x = m.builder.input("x", (expr.named_size("batch"), 16, 12, 12))
    weights = m.weight(16, 32, 2, 2)
    graph = m.finish(m.add("conv_transpose", x, weights, strides=(2, 2)))
    executable = compile_model(graph, target="x86-64-avx2")
    assert 16 * 32 * 2 * 2 * 4 <= executable.constant_bytes < 1.1 * 16 * 32 * 2 * 2 * 4


@pytest.mark.parametrize(
    "trace", [None, "fold_constant(spread)\npack_constant(spread, y)", "compute_inline(spread)"]
)
def test_what_a_size_repeats_of_a_constant_is_no_constant(trace: str | None) -> None:
    """A schedule for numbers computes it when the program is built; here it is not known then."""
    n = expr.named_size("n", greatest=64)
    x, w = expr.placeholder("x", (n, 5, 16)), expr.placeholder("w", (16, 8))
    spread = expr.compute("spread", (n, 16, 8), lambda b, k, j: w[k, j] * 2.0)
    k = expr.reduce_axis("k", 16)
    y = expr.compute("y", (n, 5, 8), lambda b, i, j: expr.sum_over(x[b, i, k] * spread[b, k, j], k))
    weights = np.random.default_rng(0).standard_normal((16, 8)).astype("f4")
    executable = compile_model(y, trace=trace, constants={"w": weights})
    for number in (1, 7, 64):
        array = np.random.default_rng(number).standard_normal((number, 5, 16)).astype("f4")
        np.testing.assert_allclose(executable(array), array @ weights * 2, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("trace", ["", None])
def test_a_tensor_that_is_largest_where_a_size_is_least(trace: str | None) -> None:
    """Its room in the memory of a kernel is not its bytes for the greatest sizes."""
    n, m = expr.named_size("n", greatest=64), expr.named_size("m", greatest=64)
    x, y = expr.placeholder("x", (n, 64)), expr.placeholder("y", (m, 64))
    t = expr.compute("t", (n - m + 64, 64), lambda i, j: expr.cast(i + j, DType.F32))
    k = expr.reduce_axis("k", n - m + 64)
    total = expr.compute("total", (64,), lambda j: expr.sum_over(t[k, j], k))
    u = expr.compute("u", (n, 64), lambda i, j: x[i, j] + total[j])
    v = expr.compute("v", (m, 64), lambda i, j: y[i, j] + total[j])
    executable = compile_model([u, v], trace=trace)
    for number, other in ((64, 1), (1, 64), (64, 64), (5, 7)):
        inputs = {"x": np.zeros((number, 64), "f4"), "y": np.zeros((other, 64), "f4")}
        wanted = sum(range(number - other + 64))
        assert executable.run(inputs)["u"][0, 0] == wanted


def test_a_tensor_between_kernels_that_is_largest_where_a_size_is_least() -> None:
    """Likewise its room in the arena."""
    n, m = expr.named_size("n", greatest=32), expr.named_size("m", greatest=32)
    builder = GraphBuilder("rest")
    x = builder.input("x", (n + 32, 64))
    builder.input("y", (m, 64))
    weights = builder.constant(np.eye(64, dtype=np.float32), "weights")
    rest = builder.add("slice", x, starts=(m,), ends=(n + 32,), axes=(0,))
    normal = builder.add("softmax", builder.add("matmul", rest, weights), axis=1)
    twice = builder.add("matmul", normal, weights)
    graph = builder.finish((twice,))
    executable = compile_model(graph)
    for values in ({"n": 32, "m": 1}, {"n": 1, "m": 32}, {"n": 32, "m": 32}):
        inputs = random_inputs(bind_sizes(graph, values), 0)
        (wanted,) = interpret(graph, inputs).values()
        (result,) = executable.run(inputs).values()
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-6)


def test_threads_call_one_executable_with_different_sizes() -> None:
    graph = encoder()
    executable = compiled(graph)
    faults: list[BaseException] = []
    sets = []
    for number in range(8):
        inputs = random_inputs(
            bind_sizes(graph, {"n": 1 + number % 3, "s": 1 + 9 * number}), number
        )
        sets.append((inputs, interpret(graph, inputs)))

    def call(seed: int) -> None:
        chance = random.Random(seed)
        try:
            for _ in range(12):
                inputs, expected = chance.choice(sets)
                for name, array in executable.run(inputs).items():
                    np.testing.assert_allclose(array, expected[name], rtol=1e-3, atol=1e-4)
        except BaseException as fault:  # noqa: BLE001 - a thread's fault is the test's
            faults.append(fault)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_a_size_that_a_later_input_helps_to_tell() -> None:
    n, past = expr.named_size("n", greatest=8), expr.named_size("past", greatest=8)
    all_rows, new = expr.placeholder("all_rows", (past + n,)), expr.placeholder("new", (n,))
    outputs = [
        expr.compute("sums", (n,), lambda i: all_rows[past + i] + new[i]),
        expr.compute("old", (past,), lambda i: all_rows[i] * 2.0),
    ]
    executable = compile_model(outputs)
    rows = np.arange(5, dtype=np.float32)
    results = executable.run({"all_rows": rows, "new": np.ones(3, np.float32)})
    np.testing.assert_array_equal(results["sums"], rows[2:] + 1)
    np.testing.assert_array_equal(results["old"], rows[:2] * 2)


@pytest.mark.parametrize(
    "extent",
    [lambda n, m: expr.minimum(n, 100), lambda n, m: expr.floor_div(m, n), lambda n, m: 2 * m - n],
)
def test_any_formula_may_be_an_extent_before_its_sizes_are(
    extent: Callable[..., expr.Index],
) -> None:
    n, m = expr.named_size("n", greatest=300), expr.named_size("m", least=150, greatest=300)
    shape = {"m": (m,), "formula": (extent(n, m),), "n": (n,)}
    inputs = {name: expr.placeholder(name, extents) for name, extents in shape.items()}
    executable = compile_model(
        [
            expr.compute(f"{name}_out", shape[name], lambda i, x=x: x[i] + 1.0)
            for name, x in inputs.items()
        ]
    )
    for values in ({n: 7, m: 151}, {n: 150, m: 150}):
        arrays = {
            name: np.ones([expr.substitute(each, values) for each in extents], np.float32)
            for name, extents in shape.items()
        }
        for name, array in executable.run(arrays).items():
            np.testing.assert_array_equal(array, arrays[name.removesuffix("_out")] + 1)


class TestWhatDoesNotFit:
    def test_a_size_outside_its_bounds(self) -> None:
        executable = compiled(perceptron())
        with pytest.raises(InputError, match="makes the size n 17; it is at least 1 and at most"):
            executable.run({"x": np.zeros((17, 16), np.float32)})

    def test_a_size_that_is_no_multiple_of_its_divisor(self) -> None:
        """Each way to call; kernels without guards would read behind the end."""
        n = expr.named_size("n", least=8, greatest=80, divisor=4)
        x = expr.placeholder("x", (n,))
        executable = compile_model(
            [expr.compute("y", (n // 4,), lambda i: x[4 * i] + x[4 * i + 3])]
        )
        for number in (9, 10, 11, 79):
            given = {"x": np.zeros(number, np.float32)}
            text = f"makes the size n {number}; it is at least 8 and at most 80, a multiple of 4"
            for call in (executable.run, executable.bind, executable.run_async, executable.profile):
                with pytest.raises(InputError, match=text):
                    call(given).result()
            with pytest.raises(UsageError, match="at least 8 and at most 80, a multiple of 4"):
                executable.at(n=number)
        for number in (8, 12, 80):
            assert executable(np.ones(number, np.float32)).shape == (number // 4,)
            assert executable.at(n=number).inputs[0].shape == (number,)

    def test_sizes_that_must_be_equal(self) -> None:
        n = expr.named_size("n", greatest=8)
        a, b = expr.placeholder("a", (n,)), expr.placeholder("b", (n,))
        executable = compile_model([expr.compute("y", (n,), lambda i: a[i] + b[i])])
        with pytest.raises(InputError, match="makes n 3, but dimension 0 of a makes it 2"):
            executable.run({"a": np.zeros(2, np.float32), "b": np.zeros(3, np.float32)})

    def test_another_rank_and_another_number(self) -> None:
        executable = compiled(perceptron())
        for shape in ((2, 16, 1), (2, 15)):
            with pytest.raises(InputError, match="it must be f32"):
                executable.run({"x": np.zeros(shape, np.float32)})

    def test_an_output_of_another_size(self) -> None:
        executable = compiled(perceptron())
        (name,) = (spec.name for spec in executable.outputs)
        inputs = {"x": np.zeros((3, 16), np.float32)}
        with pytest.raises(InputError, match=r"must be f32\(3, 10\)"):
            executable.run_into(inputs, {name: np.zeros((4, 10), np.float32)})

    def test_values_of_sizes(self) -> None:
        executable = compiled(perceptron())
        assert executable.at(n=5).inputs[0].shape == (5, 16)
        with pytest.raises(UsageError, match="there is no such size"):
            executable.at(m=5)
        with pytest.raises(UsageError, match="it must be at least 1 and at most 16"):
            executable.at(n=0)

    def test_a_size_that_no_input_tells(self) -> None:
        n = expr.named_size("n", greatest=8)
        x = expr.placeholder("x", (n // 2 + 1,))
        executable = compile_model([expr.compute("y", (n // 2 + 1,), lambda i: x[i] + 1.0)])
        with pytest.raises(InputError, match="no dimension of an input gives the size n"):
            executable(np.zeros(3, np.float32))
        np.testing.assert_array_equal(executable.at(n=4)(np.zeros(3, np.float32)), np.ones(3))


def test_a_call_beyond_the_memory_names_the_tensor_and_the_sizes() -> None:
    graph = GraphBuilder("scores")
    n = expr.named_size("n")
    queries, keys = graph.input("queries", (n, 4)), graph.input("keys", (4, n))
    scores = graph.add("matmul", queries, keys, output="scores")
    shares = graph.add("softmax", scores, axis=1, output="shares")
    executable = compile_model(graph.finish((graph.add("matmul", shares, queries),)))

    def call(rows: int) -> Any:
        return executable(np.ones((rows, 4), np.float32), np.ones((4, rows), np.float32))

    assert call(5).shape == (5, 4)
    with pytest.raises(MachineError, match=r"\(5000000, 5000000\) at n = 5000000: it takes") as no:
        call(5_000_000)
    assert no.value.where.split()[1] in ("scores", "shares")
    assert call(7).shape == (7, 4)
