from __future__ import annotations

import numpy as np
import pytest

from tensorwright.base import DType
from tensorwright.runtime import ALIGNMENT, empty, is_kernel_ready


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (0, 4), (17, 1, 3)], ids=str)
@pytest.mark.parametrize("dtype", list(DType), ids=str)
def test_fresh_arrays_are_ready_for_kernels(shape: tuple[int, ...], dtype: DType) -> None:
    array = empty(shape, dtype)
    assert array.shape == shape
    assert array.dtype == dtype.numpy
    assert array.ctypes.data % ALIGNMENT == 0 or array.size == 0
    assert array.flags.writeable
    assert is_kernel_ready(array)


def test_large_arrays_begin_on_a_huge_page() -> None:
    array = empty((1 << 20, 2), DType.F32)
    assert array.ctypes.data % (2 << 20) == 0
    array[-1, -1] = 1


def test_what_kernels_cannot_read_in_place() -> None:
    array = empty((8, 16), DType.F32)
    assert not is_kernel_ready(array.T)
    assert not is_kernel_ready(array[:, ::2])
    assert not is_kernel_ready(array.reshape(-1)[1:])
    assert not is_kernel_ready(array.view(array.dtype.newbyteorder()))
    assert is_kernel_ready(array[1:])
    assert is_kernel_ready(np.zeros(0, np.float32))
