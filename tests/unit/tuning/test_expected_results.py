"""Inputs for trials, and what counts as the right answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.tuning.helpers import doubled, workload_of

from tensorwright.base import DType, InternalError
from tensorwright.expr import Element, Fn, apply, compute, placeholder
from tensorwright.runtime import is_kernel_ready
from tensorwright.tuning.measuring.expected_results import (
    InputSpec,
    Recipe,
    allowed_error,
    find_difference,
    index_reach,
    make_expected_results,
    make_inputs,
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


def test_functions_undefined_below_zero_get_positive_inputs(tmp_path: Path) -> None:
    x = placeholder("x", (100,))
    root = compute("root", (100,), lambda i: apply(Fn.SQRT, x[i]))
    reference = make_expected_results(workload_of(root), tmp_path)
    assert reference.recipe.is_positive
    assert np.isfinite(np.load(reference.outputs[0][2])).all()


def test_indices_stay_inside_of_what_they_index(tmp_path: Path) -> None:
    table, index = placeholder("table", (7, 4)), placeholder("index", (50,), DType.I64)
    rows = compute("rows", (50, 4), lambda i, j: table[Element(index, (i,)), j])
    assert index_reach((table, index, rows)) == {"index": 7}
    reference = make_expected_results(workload_of(rows), tmp_path)
    drawn = make_inputs(reference.recipe)["index"]
    assert set(drawn) == set(range(7))


def test_smaller_ranges_are_tried_where_indices_are_scaled(tmp_path: Path) -> None:
    table, index = placeholder("table", (16,)), placeholder("index", (50,), DType.I64)
    rows = compute("rows", (50,), lambda i: table[Element(index, (i,)) * 8])
    reference = make_expected_results(workload_of(rows), tmp_path)
    assert make_inputs(reference.recipe)["index"].max() == 1


def test_a_workload_that_always_reads_outside_is_refused(tmp_path: Path) -> None:
    table, index = placeholder("table", (4,)), placeholder("index", (5,), DType.I64)
    rows = compute("rows", (5,), lambda i: table[Element(index, (i,)) + 4])
    with pytest.raises(InternalError, match="no inputs were found"):
        make_expected_results(workload_of(rows), tmp_path)


def differ(found: object, answer: object, dtype: type, has_floats: bool = True) -> str:
    expected = np.array(answer, dtype)
    allowed = allowed_error(expected, DType.from_numpy(dtype), has_floats)
    return find_difference(np.array(found, dtype), expected, allowed)


@pytest.mark.parametrize(
    ("found", "answer", "dtype", "is_right"),
    [
        ([1.0, 2.0], [1.00001, 2.0], np.float32, True),
        ([1.0, 2.0], [1.001, 2.0], np.float32, False),
        ([1e-6, 1.0], [-1e-6, 1.0], np.float32, True),  # rounding, for a tensor of such numbers
        ([1e-6, 1e-6], [-1e-6, 1e-6], np.float32, False),
        ([np.nan, 1.0], [np.nan, 1.0], np.float32, True),
        ([np.nan, 1.0], [1.0, 1.0], np.float32, False),
        ([np.inf, 1.0], [np.inf, 1.0], np.float32, True),
        ([np.inf, 1.0], [-np.inf, 1.0], np.float32, False),
        ([1.0], [1.0 + 1e-7], np.float64, False),
        ([1.0], [1.005], np.float16, True),
        ([5, 6], [5, 6], np.int64, True),
        ([5, 7], [5, 6], np.int64, False),
        ([5, 255], [5, 254], np.uint8, True),
        ([5, 255], [5, 253], np.uint8, False),
        ([True, False], [True, False], np.bool_, True),
        ([True, False], [True, True], np.bool_, False),
        ([], [], np.float32, True),
    ],
)
def test_what_counts_as_right(
    found: list[float], answer: list[float], dtype: type, is_right: bool
) -> None:
    assert (differ(found, answer, dtype) == "") is is_right


def test_whole_numbers_alone_are_exact() -> None:
    assert differ([255], [254], np.uint8, has_floats=False)


def test_a_difference_names_the_first_place() -> None:
    text = differ([[1.0, 2.0], [9.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]], np.float32)
    assert text == "1 elements (25 %) are wrong, first at [1, 0]: 9.0 and not 3.0"
