"""The evaluator: every path gives what plain loops give, in bounded memory."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from tests.unit.expr.naive import naive
from tests.unit.expr.programs import PROGRAMS, conv2d, inputs_of, matmul

from tensorwright import expr
from tensorwright.base import DType, InputError
from tensorwright.expr.binding import refine_axes
from tensorwright.expr.evaluation import loop_box
from tensorwright.expr.evaluation.contraction import find_product_sum
from tensorwright.expr.evaluation.evaluate import evaluate_one


def by_blocks(output: expr.Compute, inputs, limit_bytes: int) -> np.ndarray:
    arrays = dict(inputs)
    for tensor in expr.topological_order(output):
        if isinstance(tensor, expr.Compute):
            arrays[tensor] = evaluate_one(tensor, arrays, expr.NUMPY, limit_bytes, products=False)
    return arrays[output]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_path_gives_what_loops_give(name):
    output = PROGRAMS[name]
    inputs = inputs_of(output)
    expected = naive(output, inputs)
    (whole,) = expr.evaluate([output], inputs)
    (cramped,) = expr.evaluate([output], inputs, limit_bytes=3000)
    for found in (
        whole,
        cramped,
        by_blocks(output, inputs, 1 << 24),
        by_blocks(output, inputs, 3000),
    ):
        assert found.dtype == output.dtype.numpy
        assert found.shape == output.shape
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "is_product"),
    [("conv", True), ("conv grouped", True), ("triple product", True), ("softmax", False)],
)
def test_sums_of_products_are_recognised(name, is_product):
    assert (find_product_sum(refine_axes(PROGRAMS[name])) is not None) == is_product


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_prepared_gives_the_same_for_any_values(name):
    output = PROGRAMS[name]
    steps = [
        expr.Prepared(t) for t in expr.topological_order(output) if isinstance(t, expr.Compute)
    ]
    for seed in range(3):
        inputs = inputs_of(output, seed)
        if seed == 2:  # not row by row in memory
            inputs = {each: np.asfortranarray(array) for each, array in inputs.items()}
        arrays = dict(inputs)
        for step in steps:
            arrays[step.tensor] = step.value(arrays)
        (expected,) = expr.evaluate([output], inputs)
        np.testing.assert_array_equal(arrays[output], expected)


def test_where_a_prepared_tensor_reads_is_found_out_once(monkeypatch: pytest.MonkeyPatch):
    output, counted = PROGRAMS["conv"], []
    read = loop_box.read_affine
    monkeypatch.setattr(loop_box, "read_affine", lambda *given: counted.append(1) or read(*given))
    steps = [
        expr.Prepared(t) for t in expr.topological_order(output) if isinstance(t, expr.Compute)
    ]
    counts = []
    for seed in range(3):
        arrays = dict(inputs_of(output, seed))
        for step in steps:
            arrays[step.tensor] = step.value(arrays)
        counts.append(len(counted))
    assert counts[0] > 0
    assert counts[2] == counts[1] == counts[0]


def test_only_the_taps_of_a_convolution_are_iterated():
    plan = find_product_sum(refine_axes(conv2d(channels=16, size=20, kernel=3)))
    assert {axis.name for axis in plan.taps} == {"kh", "kw"}
    assert find_product_sum(matmul(50, 50, 50)).taps == ()


def test_grouped_channels_become_two_axes():
    finer = refine_axes(conv2d(channels=8, filters=16, groups=4, pad=0))
    assert [(axis.name, axis.extent) for axis in finer.axes[:3]] == [
        ("n", 1),
        ("o_0", 4),
        ("o_1", 4),
    ]
    assert "//" not in str(finer)


def test_resnet_layer_is_fast():
    layer = conv2d(channels=64, size=56, filters=64)
    inputs = inputs_of(layer)
    start = time.perf_counter()
    expr.evaluate([layer], inputs)
    assert time.perf_counter() - start < 3  # 0.03 s on an idle machine


@pytest.mark.parametrize("limit_bytes", [4 << 20, 32 << 20])
def test_memory_stays_below_the_limit(limit_bytes):
    x, k = expr.placeholder("x", (300, 400)), expr.reduce_axis("k", 400)
    far = expr.compute(
        "far", (300, 300), lambda i, j: expr.max_over(expr.exp(x[i, k] - x[j, k]), k)
    )
    layer = conv2d(channels=32, size=40, filters=32, kernel=5, pad=2)
    pairs = expr.compute(
        "pairs", (60, 60, 60), lambda a, b, c: expr.sum_over(x[a, k] * x[b, k] * x[c, k], k)
    )
    for output in (far, layer, pairs):
        inputs = inputs_of(output)
        tracemalloc.start()
        try:
            (result,) = expr.evaluate([output], inputs, limit_bytes=limit_bytes)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak - result.nbytes < 1.1 * limit_bytes


def test_intermediate_tensors_are_dropped():
    count = 1 << 20
    tensor = expr.placeholder("x", (count,))
    inputs = {tensor: np.zeros(count, np.float32)}
    for step in range(8):
        tensor = expr.compute(f"t{step}", (count,), lambda i, t=tensor: t[i] + 1.0)
    tracemalloc.start()
    try:
        (result,) = expr.evaluate([tensor], inputs)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result[0] == 8
    assert peak < 2 * result.nbytes + (20 << 20)


def test_guarded_loads_may_leave_their_tensor():
    x = expr.placeholder("x", (4,))
    shifted = expr.compute("y", (8,), lambda i: expr.select(i < 4, x[i], -1.0))
    (found,) = expr.evaluate([shifted], {x: np.arange(4, dtype=np.float32)})
    assert found.tolist() == [0, 1, 2, 3, -1, -1, -1, -1]


def test_unguarded_loads_may_not():
    x = expr.placeholder("x", (4,))
    i = expr.reduce_axis("i", 4)
    bad = expr.Compute("y", (i,), x[i - 1])
    with pytest.raises(IndexError, match=r"x\[i - 1\]: index i - 1 reaches -1, extent is 4"):
        expr.evaluate([bad], {x: np.zeros(4, np.float32)})


def test_guarded_loads_of_an_empty_tensor():
    a, b = expr.placeholder("a", (0,)), expr.placeholder("b", (3,))
    joined = expr.compute("y", (3,), lambda i: expr.select(i < 0, a[i], b[i]))
    (found,) = expr.evaluate([joined], {a: np.zeros(0, np.float32), b: np.ones(3, np.float32)})
    assert found.tolist() == [1, 1, 1]


def test_zero_extents():
    x, k = expr.placeholder("x", (2, 0)), expr.reduce_axis("k", 0)
    inputs = {x: np.zeros((2, 0), np.float32)}
    expected = {
        expr.sum_over: 0.0,
        expr.prod_over: 1.0,
        expr.max_over: -np.inf,
        expr.min_over: np.inf,
    }
    for over, identity in expected.items():
        folded = expr.compute("y", (2,), lambda i, over=over: over(x[i, k], k))
        assert expr.evaluate([folded], inputs)[0].tolist() == [identity] * 2
    empty = expr.compute("y", (2, 0), lambda i, j: x[i, j] + 1.0)
    assert expr.evaluate([empty], inputs)[0].shape == (2, 0)
    position = expr.compute("y", (2,), lambda i: expr.argmax_over(x[i, k], k))
    assert expr.evaluate([position], inputs)[0].dtype == np.int64


def test_argmax_takes_the_first_even_across_blocks():
    x, k = expr.placeholder("x", (2, 5000)), expr.reduce_axis("k", 5000)
    y = expr.compute("y", (2,), lambda i: expr.argmax_over(x[i, k], k))
    data = np.zeros((2, 5000), np.float32)
    data[0, [700, 1200, 4000]] = 3
    inputs = {x: data}
    assert by_blocks(y, inputs, 4000).tolist() == [700, 0]
    data[1, 4999] = np.nan
    assert by_blocks(y, inputs, 4000).tolist() == [700, 4999]


def test_f32_sums_are_accurate():
    count = 1 << 20
    x, k = expr.placeholder("x", (count,)), expr.reduce_axis("k", count)
    y = expr.compute("y", (), lambda: expr.sum_over(x[k], k))
    data = np.full(count, 0.1, np.float32)
    exact = float(np.float32(0.1)) * count
    assert abs(float(expr.evaluate([y], {x: data})[0]) - exact) <= np.spacing(np.float32(exact)) / 2


def test_integer_products_wrap():
    c = matmul(3, 3, 4, DType.I8)
    a, b = (t for t in expr.topological_order(c) if t is not c)
    inputs = {a: np.full((3, 4), 100, np.int8), b: np.full((4, 3), 3, np.int8)}
    expected = np.array(1200).astype(np.int8)
    assert (expr.evaluate([c], inputs)[0] == expected).all()
    big = matmul(3, 3, 4, DType.I64)
    a, b = (t for t in expr.topological_order(big) if t is not big)
    inputs = {a: np.full((3, 4), 1 << 40), b: np.full((4, 3), 1 << 30)}
    assert (expr.evaluate([big], inputs)[0] == (1 << 72) % (1 << 64)).all()


def test_shared_subexpressions_are_evaluated_once():
    x = expr.placeholder("x", (4,))

    def body(i):
        value = x[i]
        for _ in range(60):  # 2**60 nodes as a tree
            value = (value + value) * 0.5
        return value

    y = expr.compute("y", (4,), body)
    data = np.arange(4, dtype=np.float32)
    assert expr.evaluate([y], {x: data})[0].tolist() == data.tolist()


def test_wrong_inputs_are_refused():
    c = matmul()
    inputs = inputs_of(c)
    a, b = inputs
    with pytest.raises(InputError, match="no array was passed"):
        expr.evaluate([c], {a: inputs[a]})
    with pytest.raises(InputError, match=r"shape \(7, 5\)"):
        expr.evaluate([c], {a: inputs[a].T, b: inputs[b]})
    with pytest.raises(InputError, match="float64 for a tensor of f32"):
        expr.evaluate([c], {a: inputs[a].astype(np.float64), b: inputs[b]})


def test_open_decisions_are_refused():
    x, tile = expr.placeholder("x", (4,)), expr.Decision("t")
    data = {x: np.zeros(4, np.float32)}
    with pytest.raises(ValueError, match="bind decisions"):
        expr.evaluate([expr.compute("y", (tile,), lambda i: x[i % 4])], data)
    with pytest.raises(ValueError, match="bind decisions"):
        expr.evaluate([expr.compute("y", (2,), lambda i: x[i // tile])], data)


def test_outputs_may_be_inputs_and_repeat():
    x = expr.placeholder("x", (2,))
    y = expr.compute("y", (2,), lambda i: x[i] * 2.0)
    data = np.ones(2, np.float32)
    found = expr.evaluate([y, x, y], {x: data})
    assert [array.tolist() for array in found] == [[2, 2], [1, 1], [2, 2]]


def test_long_chains_do_not_overflow_the_stack():
    tensor = expr.placeholder("x", (1,))
    inputs = {tensor: np.zeros(1, np.float32)}
    for step in range(3000):
        tensor = expr.compute(f"t{step}", (1,), lambda i, t=tensor: t[i] + 1.0)
    assert expr.evaluate([tensor], inputs)[0].tolist() == [3000]


def test_topological_order_is_depth_first_in_reading_order():
    a, b = expr.placeholder("a", (1,)), expr.placeholder("b", (1,))
    c = expr.compute("c", (1,), lambda i: b[i] + a[i])
    d = expr.compute("d", (1,), lambda i: c[i] + a[i])
    assert expr.topological_order(d, c) == (b, a, c, d)
    assert expr.topological_order(a, d) == (a, b, c, d)


def test_axes_stand_for_their_variables_in_indices() -> None:
    x, k = expr.placeholder("x", (9,)), expr.reduce_axis("k", 3)
    forms = (
        expr.compute("y", (3,), lambda i: expr.sum_over(x[i * 2 + k], k)),
        expr.compute("y", (3,), lambda i: expr.sum_over(x[k + i * 2], k)),
        expr.compute("y", (3,), lambda i: expr.sum_over(x[i * 2 - (2 - k) + 2], k)),
        expr.compute("y", (3,), lambda i: expr.sum_over(x[2 * i - -k], k)),
    )
    numbers = np.arange(9, dtype=np.float32)
    for form in forms:
        np.testing.assert_array_equal(expr.evaluate([form], {x: numbers})[0], [3, 9, 15])
    assert str(k // 2) == "k//2"
    assert str(k % 2) == "k%2"
    assert str(k < 2) == "k < 2"
    assert (k > 0, k >= 1) == (k.var > 0, k.var >= 1)
    assert (k <= 2) == (k.var <= 2)
    with pytest.raises(TypeError):
        k.var + "x"
