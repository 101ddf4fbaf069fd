"""The functions of the value language under their everyday names.

A Python number takes the type of the other operand.

Example
    >>> from tensorwright.expr import compute, placeholder
    >>> x = placeholder("x", (4,))
    >>> print(compute("y", (4,), lambda i: sigmoid(x[i]) * 2.0))
    y[i] = sigmoid(x[i]) * 2.0    for i in 0..4
"""

from __future__ import annotations

from collections.abc import Callable

from tensorwright.expr.functions import Fn
from tensorwright.expr.value import Operand, Value, apply, floor_division, power


def _unary(fn: Fn, meaning: str) -> Callable[[Value], Value]:
    def function(x: Value) -> Value:
        return apply(fn, x)

    function.__doc__ = meaning
    return function


def _binary(fn: Fn, meaning: str) -> Callable[[Operand, Operand], Value]:
    def function(a: Operand, b: Operand) -> Value:
        return apply(fn, a, b)

    function.__doc__ = meaning
    return function


abs_ = _unary(Fn.ABS, "The absolute value; that of the least integer wraps to itself.")
bit_not = _unary(Fn.BITNOT, "Every bit inverted.")
ceil = _unary(Fn.CEIL, "Round up.")
cos = _unary(Fn.COS, "The cosine of an angle in radians.")
erf = _unary(Fn.ERF, "The error function.")
exp = _unary(Fn.EXP, "e to the power x.")
expm1 = _unary(Fn.EXPM1, "exp(x) - 1, accurate for small x.")
floor = _unary(Fn.FLOOR, "Round down.")
is_inf = _unary(Fn.ISINF, "Whether x is infinite.")
is_nan = _unary(Fn.ISNAN, "Whether x is not a number.")
log = _unary(Fn.LOG, "The natural logarithm.")
log1p = _unary(Fn.LOG1P, "log(1 + x), accurate for small x.")
logical_not = _unary(Fn.NOT, "Not x, of bools.")
round_ = _unary(Fn.ROUND, "Round to the nearest integer, ties to the even one.")
rsqrt = _unary(Fn.RSQRT, "1 / sqrt(x).")
sigmoid = _unary(Fn.SIGMOID, "1 / (1 + exp(-x)).")
sign = _unary(Fn.SIGN, "-1, 0 or 1; NaN stays NaN.")
sin = _unary(Fn.SIN, "The sine of an angle in radians.")
sqrt = _unary(Fn.SQRT, "The square root.")
tan = _unary(Fn.TAN, "The tangent of an angle in radians.")
tanh = _unary(Fn.TANH, "The hyperbolic tangent.")
trunc = _unary(Fn.TRUNC, "Round towards zero.")

bit_and = _binary(Fn.BITAND, "Bits that are set in both.")
bit_or = _binary(Fn.BITOR, "Bits that are set in one of them.")
bit_xor = _binary(Fn.BITXOR, "Bits that differ.")
equal = _binary(Fn.EQ, "Whether both are equal; `==` in the body of a compute.")
floordiv = floor_division
floormod = _binary(Fn.FLOORMOD, "a - b * floor(a / b), with the sign of b.")
fmod = _binary(Fn.MOD, "The remainder of truncating division, with the sign of a.")
logical_and = _binary(Fn.AND, "Both, of bools.")
logical_or = _binary(Fn.OR, "One of them, of bools.")
logical_xor = _binary(Fn.XOR, "Just one of them, of bools.")
max_of = _binary(Fn.MAX, "The larger one; NaN if one is NaN.")
min_of = _binary(Fn.MIN, "The smaller one; NaN if one is NaN.")
not_equal = _binary(Fn.NE, "Whether they differ.")
pow_ = power
shift_left = _binary(Fn.SHL, "The bits of a moved up by b places.")
shift_right = _binary(
    Fn.SHR, "The bits of a moved down by b places; signed numbers keep their sign."
)


def clip(x: Value, low: Operand, high: Operand) -> Value:
    """x held between two bounds; NaN stays NaN."""
    return min_of(max_of(x, low), high)


def relu(x: Value) -> Value:
    """max(x, 0)."""
    return max_of(x, 0)
