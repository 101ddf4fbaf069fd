"""Operators on values mean what they mean in NumPy, compiled and evaluated."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorwright
from tensorwright import expr
from tensorwright.base import DType

pytestmark = pytest.mark.usefixtures("by_rule")

FLOATS = (DType.F32, DType.F64)
INTS = (DType.I8, DType.I32, DType.I64, DType.U8)
SPECIAL = (-math.inf, -7.5, -3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.5, 7.0, 1e9, math.inf, math.nan)
BINARY = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)
BITS = (operator.and_, operator.or_, operator.xor)
UNARY = (operator.neg, operator.pos, operator.abs)


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """Every number with every other one, the ends of the range among them."""
    if dtype.is_float:
        numbers = np.array(SPECIAL, dtype.numpy)
    elif dtype is DType.BOOL:
        numbers = np.array([False, True])
    else:
        small = [n for n in (-7, -2, -1, 0, 1, 2, 7, 100) if n >= dtype.lowest]
        numbers = np.array([*small, dtype.lowest, dtype.highest], dtype.numpy)
    a, b = np.meshgrid(numbers, numbers)
    return a.ravel(), b.ravel()


def run(tensor: expr.Compute, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The tensor, compiled, of those arrays that it reads."""
    executable = tensorwright.compile(tensor, threads=1)
    given = {each.name: arrays[each.name] for each in executable.inputs}
    return executable.run(given)[tensor.name]


def compared(rule: Callable[[Any, Any], Any], dtype: DType, expected: Callable[..., Any]) -> None:
    """The rule on values against NumPy, on arrays: by the evaluator and compiled."""
    a, b = pairs(dtype)
    x, y = (expr.placeholder(name, a.shape, dtype) for name in "xy")
    out = expr.compute("out", a.shape, lambda i: rule(x[i], y[i]))
    with np.errstate(all="ignore"):
        wanted = np.asarray(expected(a, b))
    found = run(out, {"x": a, "y": b})
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(expr.evaluate([out], {x: a, y: b})[0], wanted)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS], ids=str)
@pytest.mark.parametrize("rule", [*BINARY, *UNARY, operator.pow], ids=lambda each: each.__name__)
def test_arithmetic(rule: Callable[..., Any], dtype: DType) -> None:
    if rule in UNARY:
        compared(lambda v, _: rule(v), dtype, lambda a, _: rule(a))
    elif rule is operator.pow:
        compared(lambda v, _: v**2, dtype, lambda a, _: a**2)
    else:
        compared(rule, dtype, rule)


@pytest.mark.parametrize("dtype", [*INTS, DType.BOOL], ids=str)
def test_bits_and_logic(dtype: DType) -> None:
    for rule in BITS:
        compared(rule, dtype, rule)
    compared(lambda v, _: ~v, dtype, lambda a, _: ~a)


@pytest.mark.parametrize("dtype", [*FLOATS, DType.I32], ids=str)
def test_numbers_on_the_left(dtype: DType) -> None:
    for rule in (operator.floordiv, operator.mod, operator.sub, operator.lt, operator.eq):
        compared(lambda v, _, rule=rule: rule(3, v), dtype, lambda a, _, rule=rule: rule(3, a))
    number = dtype.numpy.type(2)
    compared(lambda v, _: number * v, dtype, lambda a, _: number * a)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_division_and_rounding_of_floats(dtype: DType) -> None:
    compared(operator.truediv, dtype, operator.truediv)
    compared(lambda v, _: 1.0 / v, dtype, lambda a, _: 1.0 / a)
    compared(lambda v, _: round(v), dtype, lambda a, _: np.rint(a))
    compared(lambda v, _: math.floor(v), dtype, lambda a, _: np.floor(a))
    compared(lambda v, _: math.ceil(v), dtype, lambda a, _: np.ceil(a))
    compared(lambda v, _: math.trunc(v), dtype, lambda a, _: np.trunc(a))
    compared(lambda v, w: divmod(v, w)[0], dtype, lambda a, b: divmod(a, b)[0])


def test_powers_of_floats() -> None:
    x, numbers = expr.placeholder("x", (4,)), np.array([0.5, 1.0, 2.0, 3.5], np.float32)
    outs = [
        expr.compute("half", (4,), lambda i: x[i] ** 0.5),
        expr.compute("two", (4,), lambda i: 2.0 ** x[i]),
        expr.compute("own", (4,), lambda i: x[i] ** x[i]),
    ]
    found = tensorwright.compile(outs).run({"x": numbers})
    for name, wanted in (("half", numbers**0.5), ("two", 2**numbers), ("own", numbers**numbers)):
        np.testing.assert_allclose(found[name], wanted, rtol=2e-6)


def test_rounding_down_goes_by_the_quotient_and_not_by_its_rounding() -> None:
    """1.0 / 0.1 rounds to 10, though 0.1 as a float goes only 9 times into 1.0."""
    x = expr.placeholder("x", (1,), DType.F64)
    out = expr.compute("out", (1,), lambda i: x[i] // 0.1)
    assert tensorwright.compile(out).run({"x": np.ones(1)})["out"] == 1.0 // 0.1 == 9


def test_the_names_of_the_operators() -> None:
    x = expr.placeholder("x", (4,), DType.I32)
    assert expr.floordiv(x[0], 3) == x[0] // 3
    assert expr.floormod(x[0], 3) == x[0] % 3
    half = expr.cast(x[0], DType.F16)
    assert (half // 2).dtype is DType.F16


@pytest.mark.parametrize("fn", expr.Fn, ids=lambda fn: fn.text)
@pytest.mark.parametrize("dtype", DType, ids=str)
def test_a_function_that_a_type_takes_has_a_meaning(fn: expr.Fn, dtype: DType) -> None:
    if fn.takes(dtype):
        zeros = [np.zeros(2, dtype.numpy)] * fn.arity
        with np.errstate(all="ignore"):
            assert expr.NUMPY.apply(fn, zeros, dtype).shape == (2,)


X = expr.placeholder("x", (6, 6))
EYE = np.eye(6, dtype=bool)
EQUALITIES = {
    "a diagonal": (
        lambda i, j: expr.select(i == j, X[i, j], 0.0),
        lambda x: np.where(EYE, x, 0),
    ),
    "no diagonal": (
        lambda i, j: expr.select(i != j, X[i, j], 0.0),
        lambda x: np.where(EYE, 0, x),
    ),
    "of sums": (
        lambda i, j: expr.select(i + j == 5, X[i, j], 0.0),
        lambda x: np.where(EYE[::-1], x, 0),
    ),
    "a row": (
        lambda i, j: expr.select(i == np.int64(2), X[i, j], 0.0),
        lambda x: np.where(np.arange(6)[:, None] == 2, x, 0),
    ),
    "of values": (
        lambda i, j: expr.select(X[i, j] == 2.0, 1.0, X[i, j]),
        lambda x: np.where(x == 2, 1, x),
    ),
    "unequal values": (
        lambda i, j: expr.select(X[i, j] != 2.0, 1.0, X[i, j]),
        lambda x: np.where(x != 2, 1, x),
    ),
    "as numbers": (
        lambda i, j: expr.cast(i == j, DType.F32),
        lambda x: EYE.astype(x.dtype),
    ),
    "an index": (
        lambda i, j: expr.cast(i * 6 + j, DType.F32),
        lambda x: np.arange(36, dtype=x.dtype).reshape(6, 6),
    ),
    "a number of NumPy": (
        lambda i, j: X[i, j] + expr.cast(np.int64(3), DType.F32),
        lambda x: x + 3,
    ),
    "negated": (
        lambda i, j: expr.select(expr.negate(i == j), X[i, j], 0.0),
        lambda x: np.where(EYE, 0, x),
    ),
}


@pytest.mark.parametrize("name", EQUALITIES)
def test_equality_is_a_condition_in_a_body(name: str) -> None:
    body, expected = EQUALITIES[name]
    x = np.arange(36, dtype=np.float32).reshape(6, 6) % 5
    np.testing.assert_array_equal(run(expr.compute("y", (6, 6), body), {"x": x}), expected(x))


def test_a_value_as_an_index_counts_from_the_end_and_wraps() -> None:
    x, at = expr.placeholder("x", (5,)), expr.placeholder("at", (7,), DType.I32)
    taken: expr.Compute = expr.compute("taken", (7,), lambda i: x[at[i]])
    numbers, places = np.arange(5, dtype=np.float32), np.array([0, 4, -1, -5, 5, 12, -6], np.int32)
    found = tensorwright.compile(taken).run({"x": numbers, "at": places})["taken"]
    assert found.tolist() == [0, 4, 4, 0, 0, 2, 4]


def test_functions_have_the_types_that_they_take() -> None:
    x = expr.placeholder("x", (1,), DType.I32)
    assert expr.Fn.EXP.takes(DType.F16)
    assert not expr.Fn.EXP.takes(DType.I32)
    assert not expr.Fn.AND.takes(DType.F32)
    with pytest.raises(TypeError, match="exp of i32"):
        expr.apply(expr.Fn.EXP, x[0])
