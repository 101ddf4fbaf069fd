"""Codes of numbers without divisions, and functions of a byte as tables: the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.targets import AVX512
from tests.unit.codegen.kernels import F32, TARGETS, check
from tests.unit.codegen.test_values import SIZE, map_program

from tensorwright.base import CpuTarget, DType, missing_here
from tensorwright.base.cpu_targets import with_features
from tensorwright.codegen.llvm import emit
from tensorwright.codegen.llvm.codes import code_of, reciprocal
from tensorwright.codegen.llvm.tables import table_of
from tensorwright.expr import Fn, Value, apply, cast, constant, max_of, min_of, round_, sigmoid
from tensorwright.machine_code.compilation import assembly

WITH_TABLES = with_features(AVX512, ("avx512vbmi",))
BUILT = (*TARGETS, *(() if missing_here(WITH_TABLES) else (WITH_TABLES,)))
each_target = pytest.mark.parametrize("target", BUILT, ids=str)
SPECIAL = (np.inf, -np.inf, 3e38, -1e30, 1e-40, -0.0)


def limited(x: Value, scale: float, zero: float, low: float, high: float) -> Value:
    """min(max(round(x / scale) + zero, low), high)"""
    whole = round_(x / constant(scale, F32))
    return min_of(max_of(whole + zero if zero else whole, low), high)


def quantized(x: Value, scale: float, zero: int, dtype: DType) -> Value:
    return cast(limited(x, scale, zero, float(dtype.lowest), float(dtype.highest)), dtype)


def swish(x: Value, dtype: DType) -> Value:
    """Codes of x * sigmoid(x), where both factors are rounded."""
    left = limited(x, 0.037, 0, -130, 125) * 0.037
    gate = limited(sigmoid(left), 0.0039, 0, 0, 255) * 0.0039
    return quantized(left * gate, 0.02, 14 if dtype is DType.U8 else -90, dtype)


def near_ties(scale: float, seed: int) -> NDArray[np.float32]:
    """Numbers whose quotients are about halves, some neighbours of these, and special ones."""
    random = np.random.default_rng(seed)
    step = np.float32(scale)
    numbers = ((random.integers(-150, 280, SIZE) + 0.5) * step).astype(np.float32)
    bits = numbers.view(np.int32) + random.integers(-2, 3, SIZE).astype(np.int32)
    numbers = bits.view(np.float32)
    numbers[: len(SPECIAL)] = SPECIAL
    return numbers


@each_target
@pytest.mark.parametrize("dtype", [DType.U8, DType.I8], ids=str)
def test_codes_are_those_of_a_division(target: CpuTarget, dtype: DType) -> None:
    for seed, scale in enumerate((0.0371, 0.25, 1.7, 7.693004131317139)):
        for zero in (0, 119 if dtype is DType.U8 else -5):
            source = map_program(lambda x, s=scale, z=zero: quantized(x, s, z, dtype), F32)
            numbers = near_ties(scale, seed)
            numbers[-1] = np.nan
            check(source, target, arrays={"x0": numbers}, tolerance=0)


@each_target
def test_rounded_quotients_are_those_of_a_division(target: CpuTarget) -> None:
    source = map_program(lambda x: round_(x / constant(0.0123, F32)), F32)
    check(source, target, arrays={"x0": near_ties(0.0123, 7)}, tolerance=0)


@each_target
@pytest.mark.parametrize("dtype", [DType.U8, DType.I8], ids=str)
def test_tables_hold_functions_of_codes_and_of_bytes(target: CpuTarget, dtype: DType) -> None:
    check(
        map_program(lambda x: swish(x, dtype), F32),
        target,
        arrays={"x0": near_ties(0.037, 3)},
        tolerance=0,
    )
    of_bytes = map_program(lambda x: swish(cast(x, F32) * 0.03, dtype), dtype)
    codes = np.linspace(dtype.lowest, dtype.highest, SIZE).astype(dtype.numpy)
    check(of_bytes, target, arrays={"x0": codes}, tolerance=0)
    floats = map_program(lambda x: limited(swish_of(x), 0.02, 0, -14, 241) * 0.02, F32)
    check(floats, target, arrays={"x0": near_ties(0.037, 4)}, tolerance=1e-6)


def swish_of(x: Value) -> Value:
    left = limited(x, 0.037, 0, -130, 125) * 0.037
    return left * sigmoid(left)


def test_instructions() -> None:
    source = emit(map_program(lambda x: swish(x, DType.U8), F32), WITH_TABLES)
    text = assembly(source.text, WITH_TABLES)
    assert "vdivps" not in text
    assert "vrndscale" not in text
    assert "vpermt2b" in text


def test_what_is_a_code_and_what_is_a_table() -> None:
    x, other = constant(1.0, F32), constant(0.5, F32)
    code = code_of(limited(apply(Fn.EXP, x), 0.5, 3, 0, 255))
    assert code is not None
    assert (code.zero, code.low, code.high) == (3, 0, 255)
    assert code_of(max_of(x, other)) is None
    assert table_of(limited(apply(Fn.EXP, x), 0.5, 3, 0, 255), code) is None  # of no byte


def test_a_reciprocal_has_two_parts_where_it_is_no_power_of_two() -> None:
    assert reciprocal(0.25) == (4.0, 0.0)
    assert reciprocal(1e30) is None
    parts = reciprocal(3.0)
    assert parts is not None
    high, low = parts
    assert high < 1 / 3 < high + low * 1.001
    assert 0 < low < high * 2.0**-23
