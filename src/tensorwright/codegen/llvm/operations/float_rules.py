"""The functions on floats for which LLVM has no single operation."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

from tensorwright.codegen.llvm.text.lanewise import Lanewise
from tensorwright.codegen.llvm.text.literals import Val, register_type, scalar_literal
from tensorwright.expr import Fn


def _extreme(ops: Lanewise, fn: Fn, a: Val, b: Val) -> Val:
    """MIN or MAX; x86's instruction gives its second operand where one is NaN.

    The first operand of an update is the accumulator: only the other one is tested for NaN, off
    the chain of updates. A constant NaN keeps LLVM from joining the two choices, which would put
    the test back on the chain.
    """
    predicate = "ogt" if fn is Fn.MAX else "olt"
    if not _is_number(a):
        a, b = b, a
    better = ops.choose(ops.test(predicate, a, b), a, b)
    if _is_number(a):
        return better
    return ops.choose(ops.test("uno", a, a), ops.constant(float("nan"), a), better)


def _is_number(value: Val) -> bool:
    """Whether it is a constant other than NaN."""
    text = scalar_literal(value)
    if text is None:
        return False
    return not isnan(_float_of(text))


def _float_of(text: str) -> float:
    bits = int(text, 16)
    exponent, mantissa = (bits >> 52) & 0x7FF, bits & ((1 << 52) - 1)
    return float("nan") if exponent == 0x7FF and mantissa else float(exponent)


def _floor_mod_float(ops: Lanewise, a: Val, b: Val) -> Val:
    rest = ops.library("fmod", a, b)
    zero = ops.constant(0, a)
    some = ops.test("une", rest, zero)
    opposite = ops.binary("xor", ops.test("olt", rest, zero), ops.test("olt", b, zero))
    shifted = ops.rounded(ops.binary("fadd", rest, b))
    moved = ops.choose(ops.binary("and", some, opposite), shifted, rest)
    return ops.choose(some, moved, ops.intrinsic("copysign", zero, b))


def _sign_float(ops: Lanewise, a: Val) -> Val:
    one, zero = ops.constant(1, a), ops.constant(0, a)
    nonzero = ops.test("one", a, zero)
    return ops.choose(nonzero, ops.intrinsic("copysign", one, a), a)


def _sigmoid(ops: Lanewise, a: Val) -> Val:
    one = ops.constant(1, a)
    power = ops.library("exp", _negated_float(ops, a))
    return ops.binary("fdiv", one, ops.binary("fadd", one, power))


def _is_infinite(ops: Lanewise, a: Val) -> Val:
    return ops.test("oeq", ops.intrinsic("fabs", a), ops.constant(float("inf"), a))


def _negated_float(ops: Lanewise, a: Val) -> Val:
    return ops.emit(f"fneg {register_type(a.dtype, a.lanes)} {a.name}", a.dtype, a)


def _reciprocal_root(ops: Lanewise, a: Val) -> Val:
    return ops.binary("fdiv", ops.constant(1, a), ops.intrinsic("sqrt", a))


FLOAT_RULES: dict[Fn, Callable[..., Val]] = {
    Fn.MIN: lambda ops, a, b: _extreme(ops, Fn.MIN, a, b),
    Fn.MAX: lambda ops, a, b: _extreme(ops, Fn.MAX, a, b),
    Fn.FLOORMOD: _floor_mod_float,
    Fn.NEG: _negated_float,
    Fn.SIGN: _sign_float,
    Fn.RSQRT: _reciprocal_root,
    Fn.SIGMOID: _sigmoid,
    Fn.ISNAN: lambda ops, a: ops.test("uno", a, a),
    Fn.ISINF: _is_infinite,
}
"""The function on vectors of floats, before rounding to a narrower type than f32."""
