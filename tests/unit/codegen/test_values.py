"""Every function on every type, every cast: machine code against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.targets import AVX512, SSE2
from tests.unit.codegen.kernels import (
    F32,
    SERIAL,
    TARGETS,
    VECTOR,
    buffer,
    check,
    i,
    program,
)

from tensorwright.base import CpuTarget, DType, UnsupportedError
from tensorwright.codegen.llvm import emit
from tensorwright.expr import Apply, Cast, Fn, Load, Value, apply, constant, select
from tensorwright.loop import For, LoopProgram, Store
from tensorwright.machine_code.compilation import assembly

each_target = pytest.mark.parametrize("target", TARGETS, ids=str)
INTEGERS = (DType.I8, DType.I16, DType.I32, DType.I64, DType.U8, DType.U16, DType.U32, DType.U64)
FLOATS = (DType.F16, DType.BF16, DType.F32, DType.F64)
LOGIC = (Fn.AND, Fn.OR, Fn.XOR, Fn.NOT)
BITS = (Fn.BITAND, Fn.BITOR, Fn.BITXOR, Fn.BITNOT, Fn.SHL, Fn.SHR)
ROUNDING = (Fn.FLOOR, Fn.CEIL, Fn.ROUND, Fn.TRUNC)
ON_ALL = (
    *(Fn.ADD, Fn.SUB, Fn.MUL, Fn.DIV, Fn.MOD, Fn.FLOORMOD, Fn.MIN, Fn.MAX, Fn.POW, Fn.NEG),
    *(Fn.ABS, Fn.SIGN, *ROUNDING, Fn.ISNAN, Fn.ISINF, Fn.LT, Fn.LE, Fn.EQ, Fn.NE),
)
ON_FLOATS = tuple(fn for fn in Fn if fn not in (*ON_ALL, *LOGIC, *BITS))
ON_BOOLS = (*LOGIC, Fn.LT, Fn.LE, Fn.EQ, Fn.NE, Fn.MIN, Fn.MAX)
TOLERANCE = {DType.F16: 2e-3, DType.BF16: 2e-2, DType.F32: 2e-6, DType.F64: 1e-13}
SIZE = 53
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, np.nan, np.inf, -np.inf, 3.0, -3.0)


def numbers(dtype: DType, seed: int, *, is_shift: bool = False) -> NDArray[Any]:
    """Ordinary numbers of a type with the edges among them."""
    random = np.random.default_rng(seed)
    if dtype is DType.BOOL:
        return random.integers(0, 2, SIZE).astype(bool)
    if dtype.is_float:
        values = random.standard_normal(SIZE) * 2
        values[: len(SPECIAL)] = random.permutation(SPECIAL)
        return values.astype(dtype.numpy)
    ends = np.array([dtype.lowest, dtype.highest, 0, 1], dtype.numpy)
    low = -9 if dtype.is_signed else 0
    if is_shift:
        return random.integers(low, 8 * dtype.size_bytes + 3, SIZE).astype(dtype.numpy)
    values = random.integers(low, 40, SIZE).astype(dtype.numpy)
    values[:8] = random.permutation(np.concatenate([ends, ends]))
    return values


def map_program(value_of: Any, *dtypes: DType, kind: Any = VECTOR) -> LoopProgram:
    """y[i] = value_of(a[i], ...) over vectors with a rest."""
    inputs = tuple(buffer(f"x{p}", SIZE, dtype=dtype) for p, dtype in enumerate(dtypes))
    value = value_of(*(Load(piece, (i,)) for piece in inputs))
    y = buffer("y", SIZE, dtype=value.dtype)
    return program(For(i, SIZE, kind, Store(y, (i,), value)), inputs, y)


def check_function(fn: Fn, dtype: DType, target: CpuTarget, kind: Any = VECTOR) -> None:
    arrays = {
        f"x{position}": numbers(
            dtype, position + 3, is_shift=fn in (Fn.SHL, Fn.SHR) and position > 0
        )
        for position in range(fn.arity)
    }
    source = map_program(lambda *args: apply(fn, *args), *[dtype] * fn.arity, kind=kind)
    check(source, target, arrays=arrays, tolerance=TOLERANCE.get(dtype, 0))


@each_target
@pytest.mark.parametrize("fn", ON_ALL + ON_FLOATS, ids=lambda fn: fn.name)
def test_functions_of_floats(target: CpuTarget, fn: Fn) -> None:
    for dtype in FLOATS:
        check_function(fn, dtype, target)


@each_target
@pytest.mark.parametrize("fn", ON_ALL + BITS, ids=lambda fn: fn.name)
def test_functions_of_integers(target: CpuTarget, fn: Fn) -> None:
    for dtype in INTEGERS:
        check_function(fn, dtype, target)


@pytest.mark.parametrize("fn", ON_BOOLS, ids=lambda fn: fn.name)
def test_functions_of_bools(fn: Fn) -> None:
    for target in TARGETS:
        check_function(fn, DType.BOOL, target)


@pytest.mark.parametrize("fn", ON_ALL + BITS, ids=lambda fn: fn.name)
def test_functions_of_scalars(fn: Fn) -> None:
    check_function(fn, DType.I32, TARGETS[0], SERIAL)
    if fn in ON_ALL:
        check_function(fn, F32, TARGETS[0], SERIAL)


@each_target
@pytest.mark.parametrize("old", [*INTEGERS, *FLOATS, DType.BOOL], ids=str)
def test_casts(target: CpuTarget, old: DType) -> None:
    for new in (*INTEGERS, *FLOATS, DType.BOOL):
        values = numbers(old, 5)
        if old.is_float and new.is_int:  # what is beyond the range is nobody's promise
            low, high = (-100, 100) if new.is_signed else (0, 200)
            values = np.clip(np.nan_to_num(values.astype(np.float64) * 20), low, high)
            values = values.astype(old.numpy)
        source = map_program(lambda x, new=new: Cast(x, new), old)
        check(source, target, arrays={"x0": values}, tolerance=TOLERANCE.get(new, 0))


@each_target
@pytest.mark.parametrize("bound", [0.0, float("-inf"), float("nan"), 1.25])
def test_extremes_with_a_constant_keep_nan(target: CpuTarget, bound: float) -> None:
    arrays = {"x0": numbers(F32, 7)}
    for fn in (Fn.MIN, Fn.MAX):
        check(map_program(lambda x, fn=fn: apply(fn, x, bound), F32), target, arrays=arrays)
        check(map_program(lambda x, fn=fn: apply(fn, bound, x), F32), target, arrays=arrays)


def test_relu_is_one_instruction() -> None:
    x, y = buffer("x", 32), buffer("y", 32)
    body = For(i, 32, VECTOR, Store(y, (i,), apply(Fn.MAX, Load(x, (i,)), 0.0)))
    text = assembly(emit(program(body, (x,), y), AVX512).text, AVX512)
    assert "vmaxps" in text
    assert "vcmp" not in text


@each_target
@pytest.mark.parametrize("dtype", [DType.I32, DType.U8])
@pytest.mark.parametrize("divisor", [7, -1, 0, 8])
def test_division_by_a_constant(target: CpuTarget, dtype: DType, divisor: int) -> None:
    if divisor < 0 and not dtype.is_signed:
        return
    arrays = {"x0": numbers(dtype, 2)}
    for fn in (Fn.DIV, Fn.MOD, Fn.FLOORMOD):
        source = map_program(lambda x, fn=fn: apply(fn, x, constant(divisor, dtype)), dtype)
        check(source, target, arrays=arrays)


@each_target
def test_products_and_sums_are_contracted(target: CpuTarget) -> None:
    def forms(a: Value, b: Value, c: Value) -> tuple[Value, ...]:
        return a * b + c, c + a * b, a * b - c, c - a * b, a * b + c * c

    for position in range(5):
        source = map_program(lambda *args, p=position: forms(*args)[p], F32, F32, F32)
        text = assembly(emit(source, target).text, target)
        assert any(name in text for name in ("vfm", "vfnm", "fmla", "fmls"))
        assert not any(name in text for name in ("vaddps", "fadd"))
        check(source, target)


@each_target
def test_a_value_select_computes_both_sides(target: CpuTarget) -> None:
    def root(x: Value) -> Value:
        return select(apply(Fn.LT, x, 0.0), -x, apply(Fn.SQRT, x))

    check(map_program(root, F32), target)
    guard = map_program(lambda x: select(apply(Fn.EQ, x, 0), x, apply(Fn.DIV, 7, x)), DType.I32)
    check(guard, target, arrays={"x0": numbers(DType.I32, 3)})


@each_target
@pytest.mark.parametrize("dtype", [F32, DType.F64])
def test_a_shared_operand(target: CpuTarget, dtype: DType) -> None:
    def gelu(x: Value) -> Value:
        inner = apply(Fn.ERF, x * 0.70710678)
        return x * 0.5 * (inner + 1.0)

    source = map_program(gelu, dtype)
    check(source, target)
    shared = map_program(lambda x: Apply(Fn.MUL, (apply(Fn.TANH, x),) * 2), dtype)
    assert emit(shared, target).text.count("call <") >= 1
    check(shared, target)


def test_a_function_without_meaning_for_a_type_is_refused() -> None:
    source = map_program(lambda x: Apply(Fn.SQRT, (x,)), DType.I32)
    with pytest.raises(UnsupportedError, match="operator sqrt: sqrt of i32"):
        emit(source, AVX512)


def test_half_precision_needs_conversions() -> None:
    source = map_program(lambda x: x + 1, DType.F16)
    with pytest.raises(UnsupportedError, match="no instructions that convert f16"):
        emit(source, SSE2)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -0.5, -0.75, 0.25, 1.75, -2.0, 7.0, 0.0, 2.3])
@each_target
def test_constant_powers(exponent: float, target: CpuTarget) -> None:
    source = map_program(lambda x: apply(Fn.POW, x, constant(exponent, F32)), F32)
    values = np.random.default_rng(5).uniform(0.01, 4, SIZE).astype(np.float32)
    check(source, target, arrays={"x0": values}, tolerance=2e-6)


def test_a_constant_power_calls_no_library() -> None:
    source = map_program(lambda x: apply(Fn.POW, x, constant(-0.75, F32)), F32)
    assert "powf" not in assembly(emit(source, AVX512).text, AVX512)
