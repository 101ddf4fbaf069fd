"""Inputs for trials and their answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.tuning.helpers import doubled, matmul, workload_of

from tensorwright import expr
from tensorwright.base import DType, InternalError
from tensorwright.runtime import is_kernel_ready
from tensorwright.tuning.measuring.expected_results import (
    InputSpec,
    Recipe,
    index_reach,
    make_expected_results,
    make_inputs,
    weight_scales,
)

ALL = tuple(InputSpec(dtype.value, (3, 5), dtype) for dtype in DType)


def test_a_recipe_always_gives_the_same_inputs_fit_for_kernels() -> None:
    one, other = make_inputs(Recipe(ALL, 3)), make_inputs(Recipe(ALL, 3))
    for spec in ALL:
        assert one[spec.name].dtype == spec.dtype.numpy
        assert is_kernel_ready(one[spec.name])
        np.testing.assert_array_equal(one[spec.name], other[spec.name])
    different = make_inputs(Recipe(ALL, 4))
    assert not np.array_equal(one["f32"], different["f32"])


def test_floats_have_both_signs_unless_asked_otherwise() -> None:
    spec = (InputSpec("x", (1000,), DType.F32),)
    both, positive = (
        make_inputs(Recipe(spec))["x"],
        make_inputs(Recipe(spec, is_positive=True))["x"],
    )
    assert both.min() < -0.9 < 0.9 < both.max()
    assert 0.5 <= positive.min() < positive.max() <= 1


def test_the_answer_is_that_of_numpy(tmp_path: Path) -> None:
    reference = make_expected_results(doubled(), tmp_path)
    ((name, dtype, path),) = reference.outputs
    assert (name, dtype) == ("y", DType.F32)
    np.testing.assert_array_equal(np.load(path), 2 * make_inputs(reference.recipe)["x"])
    assert reference.has_floats


def test_the_second_turn_has_other_inputs_and_the_same_constants(tmp_path: Path) -> None:
    workload = matmul()
    reference = make_expected_results(workload, tmp_path)
    one = make_inputs(reference.recipe)
    other = make_inputs(reference.recipe_again)
    assert not np.array_equal(one["a"], other["a"])
    np.testing.assert_array_equal(one["b"], other["b"])
    assert make_inputs(reference.recipe_again, one)["b"] is one["b"]
    ((_, _, path),) = reference.again
    expected = np.maximum(other["a"].astype(np.float64) @ other["b"], 0)
    np.testing.assert_allclose(np.load(path), expected, rtol=1e-5, atol=1e-5)


def test_functions_undefined_below_zero_get_positive_inputs(tmp_path: Path) -> None:
    x = expr.placeholder("x", (100,))
    root = expr.compute("root", (100,), lambda i: expr.apply(expr.Fn.SQRT, x[i]))
    reference = make_expected_results(workload_of(root), tmp_path)
    assert reference.recipe.is_positive
    assert np.isfinite(np.load(reference.outputs[0][2])).all()


def test_indices_stay_inside_of_what_they_index(tmp_path: Path) -> None:
    table, index = expr.placeholder("table", (7, 4)), expr.placeholder("index", (50,), DType.I64)
    rows = expr.compute("rows", (50, 4), lambda i, j: table[index[i], j])
    assert index_reach((table, index, rows)) == {"index": 7}
    reference = make_expected_results(workload_of(rows), tmp_path)
    drawn = make_inputs(reference.recipe)["index"]
    assert set(drawn) == set(range(7))


def test_smaller_ranges_are_tried_where_indices_are_scaled(tmp_path: Path) -> None:
    table, index = expr.placeholder("table", (16,)), expr.placeholder("index", (50,), DType.I64)
    i = expr.reduce_axis("i", 50)  # not by `compute`, which refuses what may read outside
    rows = expr.Compute("rows", (i,), table[expr.Element(index, (i.var,)) * 8])
    reference = make_expected_results(workload_of(rows), tmp_path)
    assert make_inputs(reference.recipe)["index"].max() == 1


def test_a_workload_that_always_reads_outside_is_refused(tmp_path: Path) -> None:
    table, index = expr.placeholder("table", (4,)), expr.placeholder("index", (5,), DType.I64)
    i = expr.reduce_axis("i", 5)
    rows = expr.Compute("rows", (i,), table[expr.Element(index, (i.var,)) + 4])
    with pytest.raises(InternalError, match="no inputs were found"):
        make_expected_results(workload_of(rows), tmp_path)


def test_sums_of_products_are_as_large_as_the_inputs(tmp_path: Path) -> None:
    x, weights = expr.placeholder("x", (64, 300)), expr.placeholder("weights", (300, 20))
    k, m, n = expr.reduce_axis("k", 300), expr.reduce_axis("m", 64), expr.reduce_axis("n", 20)
    hidden = expr.compute(
        "hidden",
        (64, 20),
        lambda i, j: expr.sum_over(expr.select(k < 299, x[i, k] * weights[k, j], 0.0), k),
    )
    total = expr.compute("total", (64,), lambda i: expr.sum_over(hidden[i, n], n))
    squares = expr.compute("squares", (300,), lambda j: expr.sum_over(x[m, j] * x[m, j], m))
    tensors = expr.topological_order(hidden, total, squares)
    assert weight_scales(tensors) == {"weights": pytest.approx(0.1)}
    reference = make_expected_results(workload_of(hidden), tmp_path)
    assert np.load(reference.outputs[0][2]).std() == pytest.approx(1 / np.sqrt(3), rel=0.1)
    drawn = make_inputs(reference.recipe)
    assert np.abs(drawn["x"]).max() > 0.9
    assert np.abs(drawn["weights"]).max() <= 0.1
