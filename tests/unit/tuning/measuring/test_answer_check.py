"""What counts as the right answer."""

from __future__ import annotations

import numpy as np
import pytest

from tensorwright.base import DType
from tensorwright.tuning.measuring.timing import allowed_error, find_difference


def differ(found: object, answer: object, dtype: type, has_floats: bool = True) -> str:
    expected = np.array(answer, dtype)
    allowed = allowed_error(expected, DType.from_numpy(dtype), has_floats)
    return find_difference(np.array(found, dtype), expected, allowed)


@pytest.mark.parametrize(
    ("found", "answer", "dtype", "is_right"),
    [
        ([1.0, 2.0], [1.00001, 2.0], np.float32, True),
        ([1.0, 2.0], [1.001, 2.0], np.float32, False),
        ([1.5, 1.25 + 2**-7], [1.5, 1.25], np.float32, True),  # the next number of bf16
        ([1.5, 1.25 + 2**-5], [1.5, 1.25], np.float32, False),
        ([1.25 + 2**-7, 1.1], [1.25, 1.1], np.float32, False),
        ([5.0, 6.01], [5.0, 6.0], np.float32, False),
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
