"""The functions of the value language under their everyday names.

Typed wrappers over `apply`; a Python number takes the type of the other operand.

Example
    >>> from tensorwright.expr import compute, placeholder
    >>> x = placeholder("x", (4,))
    >>> print(compute("y", (4,), lambda i: sigmoid(x[i]) * 2.0))
    y[i] = sigmoid(x[i]) * 2.0    for i in 0..4
"""

from __future__ import annotations

from tensorwright.expr.functions import Fn
from tensorwright.expr.value import Operand, Value, apply

__all__ = [
    "abs_",
    "bit_and",
    "bit_not",
    "bit_or",
    "bit_xor",
    "ceil",
    "clip",
    "cos",
    "equal",
    "erf",
    "exp",
    "expm1",
    "floor",
    "floormod",
    "fmod",
    "is_inf",
    "is_nan",
    "log",
    "log1p",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "max_of",
    "min_of",
    "not_equal",
    "pow_",
    "relu",
    "round_",
    "rsqrt",
    "shift_left",
    "shift_right",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]


def abs_(x: Value) -> Value:
    """The absolute value; that of the least integer wraps to itself."""
    return apply(Fn.ABS, x)


def bit_and(a: Operand, b: Operand) -> Value:
    """Bits that are set in both."""
    return apply(Fn.BITAND, a, b)


def bit_not(x: Value) -> Value:
    """Every bit inverted."""
    return apply(Fn.BITNOT, x)


def bit_or(a: Operand, b: Operand) -> Value:
    """Bits that are set in one of them."""
    return apply(Fn.BITOR, a, b)


def bit_xor(a: Operand, b: Operand) -> Value:
    """Bits that differ."""
    return apply(Fn.BITXOR, a, b)


def ceil(x: Value) -> Value:
    """Round up."""
    return apply(Fn.CEIL, x)


def clip(x: Value, low: Operand, high: Operand) -> Value:
    """x held between two bounds; NaN stays NaN."""
    return min_of(max_of(x, low), high)


def cos(x: Value) -> Value:
    """The cosine of an angle in radians."""
    return apply(Fn.COS, x)


def equal(a: Operand, b: Operand) -> Value:
    """Whether both are equal (`==` compares expressions, not elements)."""
    return apply(Fn.EQ, a, b)


def erf(x: Value) -> Value:
    """The error function."""
    return apply(Fn.ERF, x)


def exp(x: Value) -> Value:
    """e to the power x."""
    return apply(Fn.EXP, x)


def expm1(x: Value) -> Value:
    """exp(x) - 1, accurate for small x."""
    return apply(Fn.EXPM1, x)


def floor(x: Value) -> Value:
    """Round down."""
    return apply(Fn.FLOOR, x)


def floormod(a: Operand, b: Operand) -> Value:
    """a - b * floor(a / b), with the sign of b."""
    return apply(Fn.FLOORMOD, a, b)


def fmod(a: Operand, b: Operand) -> Value:
    """The remainder of truncating division, with the sign of a."""
    return apply(Fn.MOD, a, b)


def is_inf(x: Value) -> Value:
    """Whether x is infinite."""
    return apply(Fn.ISINF, x)


def is_nan(x: Value) -> Value:
    """Whether x is not a number."""
    return apply(Fn.ISNAN, x)


def log(x: Value) -> Value:
    """The natural logarithm."""
    return apply(Fn.LOG, x)


def log1p(x: Value) -> Value:
    """log(1 + x), accurate for small x."""
    return apply(Fn.LOG1P, x)


def logical_and(a: Operand, b: Operand) -> Value:
    """Both, of bools."""
    return apply(Fn.AND, a, b)


def logical_not(x: Value) -> Value:
    """Not x, of bools."""
    return apply(Fn.NOT, x)


def logical_or(a: Operand, b: Operand) -> Value:
    """One of them, of bools."""
    return apply(Fn.OR, a, b)


def logical_xor(a: Operand, b: Operand) -> Value:
    """Just one of them, of bools."""
    return apply(Fn.XOR, a, b)


def max_of(a: Operand, b: Operand) -> Value:
    """The larger one; NaN if one is NaN."""
    return apply(Fn.MAX, a, b)


def min_of(a: Operand, b: Operand) -> Value:
    """The smaller one; NaN if one is NaN."""
    return apply(Fn.MIN, a, b)


def not_equal(a: Operand, b: Operand) -> Value:
    """Whether they differ."""
    return apply(Fn.NE, a, b)


def pow_(a: Operand, b: Operand) -> Value:
    """a to the power b."""
    return apply(Fn.POW, a, b)


def relu(x: Value) -> Value:
    """max(x, 0)."""
    return max_of(x, 0)


def round_(x: Value) -> Value:
    """Round to the nearest integer, ties to the even one."""
    return apply(Fn.ROUND, x)


def rsqrt(x: Value) -> Value:
    """1 / sqrt(x)."""
    return apply(Fn.RSQRT, x)


def shift_left(a: Operand, b: Operand) -> Value:
    """The bits of a moved up by b places."""
    return apply(Fn.SHL, a, b)


def shift_right(a: Operand, b: Operand) -> Value:
    """The bits of a moved down by b places; signed numbers keep their sign."""
    return apply(Fn.SHR, a, b)


def sigmoid(x: Value) -> Value:
    """1 / (1 + exp(-x))."""
    return apply(Fn.SIGMOID, x)


def sign(x: Value) -> Value:
    """-1, 0 or 1; NaN stays NaN."""
    return apply(Fn.SIGN, x)


def sin(x: Value) -> Value:
    """The sine of an angle in radians."""
    return apply(Fn.SIN, x)


def sqrt(x: Value) -> Value:
    """The square root."""
    return apply(Fn.SQRT, x)


def tan(x: Value) -> Value:
    """The tangent of an angle in radians."""
    return apply(Fn.TAN, x)


def tanh(x: Value) -> Value:
    """The hyperbolic tangent."""
    return apply(Fn.TANH, x)


def trunc(x: Value) -> Value:
    """Round towards zero."""
    return apply(Fn.TRUNC, x)
