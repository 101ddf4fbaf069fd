"""The functions of the value language on single NumPy numbers, with the loop nest's semantics.

Floats of 32 bits or fewer compute transcendental functions in f64 and round once.  Integers wrap.
Callers compute inside `quiet()`: overflow and invalid operations are results, not warnings.

Stores that fold a value into an element: what the lanes of a vector may do to one element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.loop.ir import Store

FOLD_IDENTITIES: dict[expr.Fn, float] = {
    expr.Fn.ADD: 0.0,
    expr.Fn.MUL: 1.0,
    expr.Fn.MAX: float("-inf"),
    expr.Fn.MIN: float("inf"),
}
"""For each function of a fold, the operand that leaves a float as it is."""


def folded_operand(store: Store) -> tuple[expr.Fn, expr.Value] | None:
    """The operand that a store folds into its element, a float; None if it does something else.

    The operand does not read the buffer.
    """
    value = store.value
    if not isinstance(value, expr.Apply) or value.fn not in FOLD_IDENTITIES:
        return None
    if not store.buffer.dtype.is_float:
        return None
    old, operand = value.args
    if not isinstance(old, expr.Load) or (old.source, old.indices) != (store.buffer, store.indices):
        return None
    reads = {load.source.name for load in expr.loads_of(operand)}
    return None if store.buffer.name in reads else (value.fn, operand)


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
    rest = abs(int(a)) % abs(int(b))
    return _wrap(rest if int(a) >= 0 else -rest, a)


def _wrap(value: int, like: Scalar) -> Scalar:
    return np.asarray(value & ((1 << 64) - 1), np.uint64).astype(like.dtype)[()]


def _integer_power(a: Scalar, b: Scalar) -> Scalar:
    base, exponent = int(a), int(b)
    if exponent >= 0:
        return _wrap(pow(base, exponent, 1 << 64), a)
    return _wrap({1: 1, -1: 1 if exponent % 2 == 0 else -1}.get(base, 0), a)


_PLAIN: dict[expr.Fn, Callable[..., Any]] = {
    expr.Fn.ADD: lambda a, b: a + b,
    expr.Fn.SUB: lambda a, b: a - b,
    expr.Fn.MUL: lambda a, b: a * b,
    expr.Fn.MIN: np.minimum,
    expr.Fn.MAX: np.maximum,
    expr.Fn.NEG: lambda a: -a,
    expr.Fn.ABS: abs,
    expr.Fn.SIGN: np.sign,
    expr.Fn.ISNAN: lambda a: np.bool_(a != a),
    expr.Fn.ISINF: lambda a: np.bool_(abs(a) == math.inf),
    expr.Fn.LT: lambda a, b: a < b,
    expr.Fn.LE: lambda a, b: a <= b,
    expr.Fn.EQ: lambda a, b: a == b,
    expr.Fn.NE: lambda a, b: a != b,
    expr.Fn.AND: lambda a, b: np.bool_(a and b),
    expr.Fn.OR: lambda a, b: np.bool_(a or b),
    expr.Fn.XOR: lambda a, b: np.bool_(bool(a) != bool(b)),
    expr.Fn.NOT: lambda a: np.bool_(not a),
    expr.Fn.BITAND: lambda a, b: a & b,
    expr.Fn.BITOR: lambda a, b: a | b,
    expr.Fn.BITXOR: lambda a, b: a ^ b,
    expr.Fn.BITNOT: lambda a: ~a,
}
_INTEGER: dict[expr.Fn, Callable[..., Any]] = {
    expr.Fn.DIV: _truncated_quotient,
    expr.Fn.MOD: _truncated_remainder,
    expr.Fn.FLOORMOD: lambda a, b: _wrap(int(a) % int(b), a) if b else type(a)(0),
    expr.Fn.POW: _integer_power,
    expr.Fn.SHL: lambda a, b: _wrap(int(a) << min(int(b), 64), a) if b >= 0 else type(a)(0),
    expr.Fn.SHR: lambda a, b: _wrap(int(a) >> (min(int(b), 64) if b >= 0 else 64), a),
    expr.Fn.FLOOR: lambda a: a,
    expr.Fn.CEIL: lambda a: a,
    expr.Fn.ROUND: lambda a: a,
    expr.Fn.TRUNC: lambda a: a,
    expr.Fn.ISNAN: lambda a: np.bool_(0),
    expr.Fn.ISINF: lambda a: np.bool_(0),
}
_FLOAT: dict[expr.Fn, Callable[..., Any]] = {
    expr.Fn.DIV: lambda a, b: a / b,
    expr.Fn.SQRT: np.sqrt,
    expr.Fn.FLOOR: np.floor,
    expr.Fn.CEIL: np.ceil,
    expr.Fn.ROUND: np.rint,
    expr.Fn.TRUNC: np.trunc,
}
_WIDE: dict[expr.Fn, Callable[..., Any]] = {
    **expr.TRANSCENDENTAL,
    expr.Fn.MOD: np.fmod,
    expr.Fn.FLOORMOD: np.mod,
    expr.Fn.ERF: lambda a: math.erf(float(a)),
    expr.Fn.SIGMOID: lambda a: 1.0 / (1.0 + np.exp(-a)),
}


def function_of(fn: expr.Fn, dtype: DType) -> Callable[..., Any]:
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
