"""The NumPy meaning, function by function, where types make a difference."""

from __future__ import annotations

import inspect
import math
from types import FunctionType

import ml_dtypes
import numpy as np
import pytest

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.expr import (
    NUMPY,
    Combiner,
    Fn,
    Value,
    apply,
    building,
    cast,
    compute,
    constant,
    evaluate,
    placeholder,
)

FLOATS = np.array([-3.5, -2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5, 7.25], np.float32)


def on(fn: Fn, *args: np.ndarray) -> np.ndarray:
    return NUMPY.apply(fn, args, DType.from_numpy(args[0].dtype))


def i32(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def test_integer_division_truncates_and_its_remainder_follows_the_dividend():
    a, b = i32(7, -7, 7, -7, 6), i32(2, 2, -2, -2, 3)
    assert on(Fn.DIV, a, b).tolist() == [3, -3, -3, 3, 2]
    assert on(Fn.MOD, a, b).tolist() == [1, -1, 1, -1, 0]
    assert on(Fn.FLOORMOD, a, b).tolist() == [1, 1, -1, -1, 0]
    assert on(Fn.DIV, np.uint8([250]), np.uint8([7])).tolist() == [35]


def test_float_remainders():
    a, b = np.float32([7.5, -7.5]), np.float32([2, 2])
    assert on(Fn.MOD, a, b).tolist() == [1.5, -1.5]
    assert on(Fn.FLOORMOD, a, b).tolist() == [1.5, 0.5]


def test_integers_wrap():
    assert on(Fn.ADD, np.int8([127]), np.int8([1])).tolist() == [-128]
    assert on(Fn.MUL, i32(1 << 30), i32(4)).tolist() == [0]
    assert on(Fn.NEG, np.uint8([1])).tolist() == [255]
    assert on(Fn.ABS, np.int8([-128])).tolist() == [-128]
    assert on(Fn.POW, i32(2, 3, 2, -1), i32(10, 2, -1, -3)).tolist() == [1024, 9, 0, -1]
    assert NUMPY.const(300, DType.U8) == 44
    assert NUMPY.const(200, DType.I8) == -56


def test_min_and_max_keep_nan():
    x, y = np.float32([1, np.nan, 2]), np.float32([np.nan, 1, 3])
    assert np.isnan(on(Fn.MAX, x, y)).tolist() == [True, True, False]
    assert np.isnan(on(Fn.MIN, x, y)).tolist() == [True, True, False]
    assert np.isnan(NUMPY.reduce(Combiner.MAX, x, (0,), DType.F32))
    assert NUMPY.reduce(Combiner.ARGMIN, x, (0,), DType.F32) == 1


def test_rounding():
    assert on(Fn.ROUND, FLOATS).tolist() == [-4, -2, -1, -0.0, 0, 0, 1, 2, 2, 7]
    assert on(Fn.TRUNC, FLOATS).tolist() == [-3, -2, -1, -0.0, 0, 0, 1, 1, 2, 7]
    assert on(Fn.FLOOR, i32(5)).tolist() == [5]


@pytest.mark.parametrize(
    ("fn", "exact"),
    [
        (Fn.EXP, math.exp),
        (Fn.ERF, math.erf),
        (Fn.TANH, math.tanh),
        (Fn.EXPM1, math.expm1),
        (Fn.SIN, math.sin),
        (Fn.ATAN, math.atan),
        (Fn.ASINH, math.asinh),
        (Fn.SIGMOID, lambda x: 1 / (1 + math.exp(-x))),
        (Fn.RSQRT, lambda x: 1 / math.sqrt(x) if x > 0 else math.inf if x == 0 else math.nan),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_f32_functions_are_rounded_once(fn, exact):
    with np.errstate(all="ignore"):
        found = on(fn, FLOATS)
    np.testing.assert_array_equal(found, np.float32([exact(float(x)) for x in FLOATS]))
    assert found.dtype == np.float32


def test_erf_of_f64_is_exact():
    x = np.linspace(-6, 6, 1001)
    np.testing.assert_array_equal(on(Fn.ERF, x), [math.erf(v) for v in x])


def test_sigmoid_does_not_overflow():
    with np.errstate(all="raise"):
        found = NUMPY.apply(Fn.SIGMOID, [np.array([-700.0, 700.0])], DType.F64)
    assert found.tolist() == [math.exp(-700), 1.0]


def test_casts():
    def to(array: np.ndarray, target: DType) -> list:
        return NUMPY.cast(array, DType.from_numpy(array.dtype), target).tolist()

    assert to(np.float32([-1.7, 1.7]), DType.I32) == [-1, 1]
    assert to(np.float32([0.0, 0.5, np.nan]), DType.BOOL) == [False, True, True]
    assert to(np.int32([300, -1]), DType.U8) == [44, 255]
    assert to(np.array([True, False]), DType.F32) == [1.0, 0.0]
    assert to(np.float64([1.00390625]), DType.BF16) == [1.0]


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_half_types_compute_in_f32_and_round(dtype):
    x = placeholder("x", (3,), dtype)
    y = compute("y", (3,), lambda i: building.exp(x[i]) * 0.1)
    data = np.array([0.5, 1, 2], dtype.numpy)
    (found,) = evaluate([y], {x: data})
    step = np.exp(data.astype(np.float64)).astype(dtype.numpy)
    tenth = np.array(0.1, dtype.numpy)
    expected = (step.astype(np.float32) * tenth.astype(np.float32)).astype(dtype.numpy)
    assert found.dtype == dtype.numpy
    assert found.tolist() == expected.tolist()
    top = NUMPY.reduce(Combiner.MAX, found, (0,), dtype)
    assert top.dtype == dtype.numpy
    assert ml_dtypes.finfo(dtype.numpy).bits == 16


def test_a_type_without_the_function_is_refused():
    with pytest.raises(TypeError, match="exp of i32"):
        on(Fn.EXP, i32(1))
    with pytest.raises(TypeError, match="& of f32"):
        on(Fn.BITAND, FLOATS, FLOATS)


def test_bits_and_logic():
    a, b = np.uint8([0b1100]), np.uint8([0b1010])
    assert on(Fn.BITAND, a, b) == 0b1000
    assert on(Fn.BITOR, a, b) == 0b1110
    assert on(Fn.BITXOR, a, b) == 0b0110
    assert on(Fn.BITNOT, a) == 0b11110011
    assert on(Fn.SHL, a, np.uint8([5])) == 0b10000000
    assert on(Fn.SHR, np.int8([-8]), np.int8([1])) == -4
    true, false = np.array([True]), np.array([False])
    assert on(Fn.XOR, true, false)
    assert on(Fn.OR, true, false)
    assert not on(Fn.AND, true, false)
    assert on(Fn.NOT, false)
    assert not on(Fn.ISNAN, a)


INTRINSICS = [
    name
    for name, value in vars(building).items()
    if isinstance(value, FunctionType)
    and value.__module__ == building.__name__
    and inspect.signature(value).return_annotation == "Value"
]


def test_no_intrinsic_is_forgotten():
    assert set(INTRINSICS) <= set(vars(expr))
    assert len(INTRINSICS) == 38


@pytest.mark.parametrize("name", INTRINSICS)
def test_intrinsics_evaluate(name):
    function = getattr(building, name)
    bits = name.startswith(("bit_", "shift_"))
    dtype = DType.BOOL if name.startswith("logical") else DType.I32 if bits else DType.F32
    x = placeholder("x", (2,), dtype)
    arity = {"clip": 3}.get(name)
    data = np.array([1, 0]).astype(dtype.numpy)

    def body(i) -> Value:
        count = arity or function.__code__.co_argcount
        return function(x[i], *[constant(1, dtype)] * (count - 1))

    y = compute("y", (2,), body)
    (found,) = evaluate([y], {x: data})
    assert found.dtype == y.dtype.numpy
    assert found.shape == (2,)


def test_python_numbers_take_the_type_of_the_value():
    x = placeholder("x", (1,), DType.I64)
    assert apply(Fn.MAX, x[0], 3).dtype is DType.I64
    assert cast(x[0], DType.F32).dtype is DType.F32
    with pytest.raises(TypeError, match="mixed dtypes"):
        apply(Fn.ADD, x[0], cast(x[0], DType.F32))
