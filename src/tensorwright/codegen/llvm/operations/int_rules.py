"""The functions on integers. Nothing here traps or is undefined for any operand."""

from __future__ import annotations

from collections.abc import Callable

from tensorwright.codegen.llvm.text.lanewise import Lanewise
from tensorwright.codegen.llvm.text.literals import Val, scalar_literal
from tensorwright.expr import Fn


def _divided(ops: Lanewise, fn: Fn, a: Val, b: Val) -> Val:
    """Integer DIV or MOD, truncating; 0 for a zero divisor, wrapping for lowest / -1."""
    signed = a.dtype.is_signed
    operation = ("s" if signed else "u") + ("div" if fn is Fn.DIV else "rem")
    if _is_plain_divisor(b):
        return ops.binary(operation, a, b)
    zero, one = ops.constant(0, a), ops.constant(1, a)
    is_zero = ops.test("eq", b, zero)
    safe = ops.choose(is_zero, one, b)
    is_minus = ops.test("eq", b, ops.constant(-1, a)) if signed else None
    if is_minus is not None:
        safe = ops.choose(is_minus, one, safe)
    result = ops.binary(operation, a, safe)
    if fn is Fn.MOD:
        return result
    if is_minus is not None:
        result = ops.choose(is_minus, ops.binary("sub", zero, a), result)
    return ops.choose(is_zero, zero, result)


def _is_plain_divisor(value: Val) -> bool:
    text = scalar_literal(value)
    return text is not None and int(text) not in (0, -1)


def _floor_mod(ops: Lanewise, a: Val, b: Val) -> Val:
    rest = _divided(ops, Fn.MOD, a, b)
    if not a.dtype.is_signed:
        return rest
    zero = ops.constant(0, a)
    opposite = ops.test("slt", ops.binary("xor", rest, b), zero)
    some = ops.test("ne", rest, zero)
    shifted = ops.binary("add", rest, b)
    return ops.choose(ops.binary("and", opposite, some), shifted, rest)


def _sign_int(ops: Lanewise, a: Val) -> Val:
    zero, one = ops.constant(0, a), ops.constant(1, a)
    result = ops.choose(ops.test("ne", a, zero), one, zero)
    if a.dtype.is_signed:
        result = ops.choose(ops.test("slt", a, zero), ops.constant(-1, a), result)
    return result


def _absolute_int(ops: Lanewise, a: Val) -> Val:
    if not a.dtype.is_signed:
        return a
    negative = ops.test("slt", a, ops.constant(0, a))
    return ops.choose(negative, ops.binary("sub", ops.constant(0, a), a), a)


def _shifted(ops: Lanewise, fn: Fn, a: Val, amount: Val) -> Val:
    bits = a.dtype.size_bytes * 8
    limit = ops.constant(bits - 1, a)
    fits = ops.test("ule", amount, limit)
    kept = ops.choose(fits, amount, limit)
    if fn is Fn.SHR and a.dtype.is_signed:
        return ops.binary("ashr", a, kept)
    result = ops.binary("shl" if fn is Fn.SHL else "lshr", a, kept)
    return ops.choose(fits, result, ops.constant(0, a))


def _int_power(ops: Lanewise, base: Val, exponent: Val) -> Val:
    """Square and multiply over all bits of the exponent; negative exponents truncate like 1/x."""
    zero, one = ops.constant(0, base), ops.constant(1, base)
    result, square = one, base
    bits = base.dtype.size_bytes * 8
    for bit in range(bits - 1 if base.dtype.is_signed else bits):
        shifted = ops.binary("lshr", exponent, ops.constant(bit, base))
        picked = ops.test("ne", ops.binary("and", shifted, one), zero)
        result = ops.choose(picked, ops.binary("mul", result, square), result)
        square = ops.binary("mul", square, square)
    if not base.dtype.is_signed:
        return result
    minus = ops.constant(-1, base)
    is_unit = ops.binary("or", ops.test("eq", base, one), ops.test("eq", base, minus))
    inverse = ops.choose(is_unit, result, zero)
    return ops.choose(ops.test("slt", exponent, zero), inverse, result)


def _int_extreme(ops: Lanewise, fn: Fn, a: Val, b: Val) -> Val:
    return ops.intrinsic(("s" if a.dtype.is_signed else "u") + fn.text, a, b)


INT_RULES: dict[Fn, Callable[..., Val]] = {
    Fn.DIV: lambda ops, a, b: _divided(ops, Fn.DIV, a, b),
    Fn.MOD: lambda ops, a, b: _divided(ops, Fn.MOD, a, b),
    Fn.FLOORMOD: _floor_mod,
    Fn.MIN: lambda ops, a, b: _int_extreme(ops, Fn.MIN, a, b),
    Fn.MAX: lambda ops, a, b: _int_extreme(ops, Fn.MAX, a, b),
    Fn.POW: _int_power,
    Fn.NEG: lambda ops, a: ops.binary("sub", ops.constant(0, a), a),
    Fn.ABS: _absolute_int,
    Fn.SIGN: _sign_int,
    Fn.BITNOT: lambda ops, a: ops.binary("xor", a, ops.constant(-1, a)),
    Fn.SHL: lambda ops, a, b: _shifted(ops, Fn.SHL, a, b),
    Fn.SHR: lambda ops, a, b: _shifted(ops, Fn.SHR, a, b),
    Fn.ISNAN: lambda ops, a: ops.test("ne", a, a),
    Fn.ISINF: lambda ops, a: ops.test("ne", a, a),
}
"""The function on vectors of integers."""
