from __future__ import annotations

import numpy as np
import pytest

from tensorwright.base import DType, UsageError


@pytest.mark.parametrize("dtype", DType)
def test_names_and_numpy_types_go_both_ways(dtype: DType) -> None:
    assert DType.parse(str(dtype)) is dtype
    assert dtype.name == str(dtype).upper()
    assert DType.from_numpy(dtype.numpy) is dtype
    assert DType.from_numpy(dtype.numpy.newbyteorder(">")) is dtype
    assert eval(repr(dtype)) is dtype


@pytest.mark.parametrize("dtype", DType)
def test_properties_agree_with_numpy(dtype: DType) -> None:
    value = np.zeros(3, dtype.numpy)
    assert value.nbytes == 3 * dtype.size_bytes
    assert dtype.is_int == np.issubdtype(dtype.numpy, np.integer)
    assert dtype.is_float + dtype.is_int + (dtype is DType.BOOL) == 1


@pytest.mark.parametrize("dtype", DType)
def test_limits_agree_with_numpy(dtype: DType) -> None:
    if dtype.is_float:
        limits: tuple[object, object] = (-np.inf, np.inf)
    elif dtype is DType.BOOL:
        limits = (False, True)
    else:
        info = np.iinfo(dtype.numpy)
        limits = (info.min, info.max)
    assert (dtype.lowest, dtype.highest) == limits


def test_which_are_signed() -> None:
    signed = {str(dtype) for dtype in DType if dtype.is_signed}
    assert signed == {"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64"}


def test_bf16_keeps_the_range_of_f32() -> None:
    assert float(np.asarray(3e38, DType.BF16.numpy)) > 2.9e38
    assert DType.BF16.size_bytes == 2


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        DType.parse("float")
    assert caught.value == UsageError(
        stage="base",
        where="dtype 'float'",
        reason="no such element type",
        remedy="one of f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, bool",
    )


@pytest.mark.parametrize("numpy_type", [np.complex64, np.object_, "U3", "M8[s]"])
def test_types_without_a_name_are_refused(numpy_type: object) -> None:
    with pytest.raises(UsageError, match="tensors cannot hold it"):
        DType.from_numpy(numpy_type)  # type: ignore[arg-type]
