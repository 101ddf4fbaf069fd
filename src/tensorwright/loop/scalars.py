"""The functions of the value language on single NumPy numbers, with the loop nest's semantics.

Floats of 32 bits or fewer compute transcendental functions in f64 and round once.  Integers wrap.
Callers compute inside `quiet()`: overflow and invalid operations are results, not warnings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import TRANSCENDENTAL, Fn

Scalar = Any  # a NumPy scalar of the dtype


def quiet() -> np.errstate:
    """Suppress NumPy's warnings of overflow, division by zero and NaN."""
    return np.errstate(all="ignore")


def convert(value: object, source: DType, target: DType) -> Scalar:
    """Cast one number: float to int truncates towards zero, anything to bool is `!= 0`."""
    if target is DType.BOOL:
        return np.bool_(value != 0)
    if source.is_float and target.is_int:
        return _float_to_int(float(value), target)  # type: ignore[arg-type]  # a NumPy number
    return np.asarray(value, source.numpy).astype(target.numpy)[()]


def _float_to_int(value: float, target: DType) -> Scalar:
    if math.isnan(value) or math.isinf(value):
        return np.asarray(value, np.float64).astype(target.numpy)[()]
    return np.asarray(int(value) & ((1 << 64) - 1), np.uint64).astype(target.numpy)[()]


def _truncated_quotient(a: Scalar, b: Scalar) -> Scalar:
    if b == 0:
        return type(a)(0)
    whole, other = int(a), int(b)
    quotient = abs(whole) // abs(other)
    return _wrap(quotient if (whole < 0) == (other < 0) else -quotient, a)


def _truncated_remainder(a: Scalar, b: Scalar) -> Scalar:
    if b == 0:
        return type(a)(0)
    return _wrap(int(math.fmod(int(a), int(b))) if abs(int(a)) < 1 << 52 else _exact(a, b), a)


def _exact(a: Scalar, b: Scalar) -> int:
    rest = abs(int(a)) % abs(int(b))
    return rest if int(a) >= 0 else -rest


def _wrap(value: int, like: Scalar) -> Scalar:
    return np.asarray(value & ((1 << 64) - 1), np.uint64).astype(like.dtype)[()]


def _erf(x: Scalar) -> float:
    return math.erf(float(x))


def _sigmoid(x: Scalar) -> Scalar:
    return 1.0 / (1.0 + np.exp(-x))


def _integer_power(a: Scalar, b: Scalar) -> Scalar:
    base, exponent = int(a), int(b)
    if exponent >= 0:
        return _wrap(pow(base, exponent, 1 << 64), a)
    return _wrap({1: 1, -1: 1 if exponent % 2 == 0 else -1}.get(base, 0), a)


def _shift_left(a: Scalar, b: Scalar) -> Scalar:
    return _wrap(int(a) << min(int(b), 64), a) if b >= 0 else type(a)(0)


def _shift_right(a: Scalar, b: Scalar) -> Scalar:
    return _wrap(int(a) >> (min(int(b), 64) if b >= 0 else 64), a)


_PLAIN: dict[Fn, Callable[..., Any]] = {
    Fn.ADD: lambda a, b: a + b,
    Fn.SUB: lambda a, b: a - b,
    Fn.MUL: lambda a, b: a * b,
    Fn.MIN: np.minimum,
    Fn.MAX: np.maximum,
    Fn.NEG: lambda a: -a,
    Fn.ABS: abs,
    Fn.SIGN: np.sign,
    Fn.ISNAN: lambda a: np.bool_(a != a),
    Fn.ISINF: lambda a: np.bool_(abs(a) == math.inf),
    Fn.LT: lambda a, b: a < b,
    Fn.LE: lambda a, b: a <= b,
    Fn.EQ: lambda a, b: a == b,
    Fn.NE: lambda a, b: a != b,
    Fn.AND: lambda a, b: np.bool_(a and b),
    Fn.OR: lambda a, b: np.bool_(a or b),
    Fn.XOR: lambda a, b: np.bool_(bool(a) != bool(b)),
    Fn.NOT: lambda a: np.bool_(not a),
    Fn.BITAND: lambda a, b: a & b,
    Fn.BITOR: lambda a, b: a | b,
    Fn.BITXOR: lambda a, b: a ^ b,
    Fn.BITNOT: lambda a: ~a,
}
_INTEGER: dict[Fn, Callable[..., Any]] = {
    Fn.DIV: _truncated_quotient,
    Fn.MOD: _truncated_remainder,
    Fn.FLOORMOD: lambda a, b: _wrap(int(a) % int(b), a) if b else type(a)(0),
    Fn.POW: _integer_power,
    Fn.SHL: _shift_left,
    Fn.SHR: _shift_right,
    Fn.FLOOR: lambda a: a,
    Fn.CEIL: lambda a: a,
    Fn.ROUND: lambda a: a,
    Fn.TRUNC: lambda a: a,
    Fn.ISNAN: lambda a: np.bool_(0),
    Fn.ISINF: lambda a: np.bool_(0),
}
_FLOAT: dict[Fn, Callable[..., Any]] = {
    Fn.DIV: lambda a, b: a / b,
    Fn.SQRT: np.sqrt,
    Fn.FLOOR: np.floor,
    Fn.CEIL: np.ceil,
    Fn.ROUND: np.rint,
    Fn.TRUNC: np.trunc,
}
_WIDE: dict[Fn, Callable[..., Any]] = {
    **TRANSCENDENTAL,
    Fn.MOD: np.fmod,
    Fn.FLOORMOD: np.mod,
    Fn.ERF: _erf,
    Fn.SIGMOID: _sigmoid,
}


def function_of(fn: Fn, dtype: DType) -> Callable[..., Any]:
    """The function on NumPy scalars of `dtype`; bool arguments for the logical functions."""
    if not dtype.is_float and fn in _INTEGER:
        return _INTEGER[fn]
    if fn in _PLAIN:
        return _PLAIN[fn]
    if fn in _FLOAT and dtype.is_float:
        return _FLOAT[fn]
    inner = _WIDE[fn]
    kind = dtype.numpy.type

    def widened(*args: Scalar) -> Scalar:
        return kind(inner(*(np.float64(arg) for arg in args)))

    return widened
