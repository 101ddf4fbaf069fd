"""exp, log, tanh, erf and their kin on whole vectors, at most 4 ulp off over the full range.

Each takes an emitter and the name of the argument and returns the name of the result; the same
text serves every lane count, one lane included. Both sides of a case distinction are computed and
one is selected. Subnormal arguments and results are exact to the same bound.
"""

from __future__ import annotations

import math

from tensorwright.base import DType
from tensorwright.codegen.llvm.math.coefficients import (
    ERF_F32_ONE,
    ERF_F32_P,
    ERF_F32_Q,
    ERF_F32_SPLIT,
    EXP,
    LOG_F32,
    LOG_F64,
    TANH,
)
from tensorwright.codegen.llvm.math.emitter import MathEmitter

# Bit patterns of sqrt(1/2), the lower end of the mantissas that log reduces to.
_SQRT_HALF_BITS = {DType.F32: 0x3F3504F3, DType.F64: 0x3FE6A09E667F3BCD}


def emit_exp(e: MathEmitter, x: str) -> str:
    """e^x: 0 below the smallest subnormal, infinity above the largest float.

    Without an instruction for it, the scale 2^n is applied as two factors, so that it is right for
    subnormal results (rounded once, by the second product) and for n above the largest exponent.
    """
    table = EXP[e.dtype]
    bounded = e.at_least(e.at_most(x, table.highest), table.lowest)
    tail, n, n_float = _reduced_exp(e, bounded)
    mantissa = e.add(tail, e.const(1.0))
    if e.has_scalef:
        return e.scalef(mantissa, n_float)
    half, rest = _halves(e, n)
    return e.mul(e.mul(mantissa, _power_of_two(e, half)), _power_of_two(e, rest))


def _exp_in_range(e: MathEmitter, x: str) -> str:
    """e^x where the result is known to be a normal number."""
    tail, n, n_float = _reduced_exp(e, x)
    mantissa = e.add(tail, e.const(1.0))
    if e.has_scalef:
        return e.scalef(mantissa, n_float)
    return e.mul(mantissa, _power_of_two(e, n))


def _reduced_exp(e: MathEmitter, x: str) -> tuple[str, str, str]:
    """x = n*ln(2) + r with |r| <= ln(2)/2: the values e^r - 1, n as integer and as float.

    Adding 1.5 * 2^mantissa_bits rounds to an integer and leaves it in the low bits, without a
    conversion, which would be undefined for NaN.
    """
    table = EXP[e.dtype]
    magic = e.const(1.5 * 2.0**e.mantissa_bits)
    shifted = e.fma(x, e.const(1 / math.log(2)), magic)
    n = e.integer("sub", e.bits(shifted), e.bits(magic))
    n_float = e.sub(shifted, magic)
    r = e.fma(n_float, e.const(-table.ln2_high), x)
    r = e.fma(n_float, e.const(-table.ln2_low), r)
    squared = e.mul(r, r)
    return e.fma(squared, e.polynomial(r, table.q), r), n, n_float


def _halves(e: MathEmitter, n: str) -> tuple[str, str]:
    """Two integers whose sum is n, each of them half of it."""
    half = e.integer("ashr", n, e.int_const(1))
    return half, e.integer("sub", n, half)


def _power_of_two(e: MathEmitter, n: str) -> str:
    biased = e.integer("add", n, e.int_const(e.exponent_bias))
    return e.from_bits(e.integer("shl", biased, e.int_const(e.mantissa_bits)))


def emit_expm1(e: MathEmitter, x: str) -> str:
    """e^x - 1, exact to the last places near zero: (tail + (1 - 2^-n)) * 2^n, e^r = 1 + tail."""
    table = EXP[e.dtype]
    # Below, 2^-n would leave the range, and the result is -1 already.
    bounded = e.at_least(e.at_most(x, table.highest), -0.75 * e.mantissa_bits - 1)
    tail, n, _ = _reduced_exp(e, bounded)
    half, rest = _halves(e, n)
    minus_half = e.integer("sub", e.int_const(0), half)
    minus_rest = e.integer("sub", e.int_const(0), rest)
    inverse = e.mul(_power_of_two(e, minus_half), _power_of_two(e, minus_rest))
    mantissa = e.add(tail, e.sub(e.const(1.0), inverse))
    value = e.mul(e.mul(mantissa, _power_of_two(e, half)), _power_of_two(e, rest))
    return e.copysign(value, x)  # also for -0


def emit_sigmoid(e: MathEmitter, x: str) -> str:
    """1 / (1 + e^-x), as t / (1 + t) with t = e^x where x < 0, which keeps small results."""
    power = emit_exp(e, e.sub(e.const(-0.0), e.abs(x)))
    one = e.const(1.0)
    numerator = e.select(e.compare("olt", x, e.const(0.0)), power, one)
    return e.div(numerator, e.add(power, one))


def emit_log(e: MathEmitter, x: str) -> str:
    """Natural logarithm: -infinity at both zeros, NaN below."""
    f, exponent = _split_near_one(e, x)
    value = _log_near_one(e, f, exponent)
    zero, infinity = e.const(0.0), e.const(math.inf)
    value = e.select(e.compare("oeq", x, infinity), infinity, value)
    value = e.select(e.compare("oeq", x, zero), e.const(-math.inf), value)
    return e.select(e.compare("ult", x, zero), e.const(math.nan), value)


def _split_near_one(e: MathEmitter, x: str) -> tuple[str, str]:
    """x = (1 + f) * 2^k with sqrt(1/2) <= 1 + f < sqrt(2), for x > 0: f and k, both floats."""
    bits, bias = e.mantissa_bits, e.exponent_bias
    is_subnormal = e.compare("olt", x, e.const(2.0 ** (1 - bias)))
    scaled = e.select(is_subnormal, e.mul(x, e.const(2.0**bits)), x)
    correction = e.select(is_subnormal, e.const(float(-bits)), e.const(0.0))
    low = _SQRT_HALF_BITS[e.dtype]
    moved = e.integer("add", e.bits(scaled), e.int_const((bias << bits) - low))
    k = e.integer("sub", e.integer("ashr", moved, e.int_const(bits)), e.int_const(bias))
    mantissa = e.integer("and", moved, e.int_const((1 << bits) - 1))
    near_one = e.from_bits(e.integer("add", mantissa, e.int_const(low)))
    return e.sub(near_one, e.const(1.0)), e.add(e.to_float(k), correction)


def emit_log1p(e: MathEmitter, x: str) -> str:
    """log(1 + x), exact to the last places near zero: what 1 + x rounds away is put back."""
    one, zero = e.const(1.0), e.const(0.0)
    shifted = e.add(x, one)
    f, exponent = _split_near_one(e, shifted)
    is_near = e.compare("oeq", exponent, zero)
    lost = e.sub(x, e.sub(shifted, one))
    correction = e.select(is_near, zero, e.div(lost, shifted))
    value = e.add(_log_near_one(e, e.select(is_near, x, f), exponent), correction)
    infinity = e.const(math.inf)
    value = e.select(e.compare("oeq", x, infinity), infinity, e.copysign(value, x))
    value = e.select(e.compare("oeq", shifted, zero), e.const(-math.inf), value)
    return e.select(e.compare("ult", shifted, zero), e.const(math.nan), value)


def _log_near_one(e: MathEmitter, f: str, exponent: str) -> str:
    """log((1 + f) * 2^exponent), as `_split_near_one` gives them."""
    return _log_f32(e, f, exponent) if e.dtype is DType.F32 else _log_f64(e, f, exponent)


def _log_f32(e: MathEmitter, f: str, exponent: str) -> str:
    table = EXP[DType.F32]
    squared = e.mul(f, f)
    tail = e.mul(e.mul(f, squared), e.polynomial(f, LOG_F32))
    tail = e.fma(exponent, e.const(table.ln2_low), tail)
    tail = e.fma(squared, e.const(-0.5), tail)
    return e.fma(exponent, e.const(table.ln2_high), e.add(f, tail))


def _log_f64(e: MathEmitter, f: str, exponent: str) -> str:
    half_square = e.mul(e.const(0.5), e.mul(f, f))
    s = e.div(f, e.add(f, e.const(2.0)))
    z = e.mul(s, s)
    remainder = e.mul(z, e.polynomial(z, LOG_F64))
    low = e.mul(exponent, e.const(1.90821492927058770002e-10))
    inner = e.add(e.mul(s, e.add(half_square, remainder)), low)
    rest = e.sub(e.sub(half_square, inner), f)
    return e.sub(e.mul(exponent, e.const(6.93147180369123816490e-01)), rest)


def emit_tanh(e: MathEmitter, x: str) -> str:
    """Hyperbolic tangent: a polynomial near zero, 1 - 2 / (e^(2|x|) + 1) elsewhere."""
    table = TANH[e.dtype]
    magnitude = e.abs(x)
    squared = e.mul(x, x)
    ratio = e.polynomial(squared, table.p)
    if table.q:
        ratio = e.div(ratio, e.polynomial(squared, table.q))
    near = e.fma(e.mul(x, squared), ratio, x)
    bounded = e.at_most(magnitude, table.one)
    power = _exp_in_range(e, e.add(bounded, bounded))
    far = e.sub(e.const(1.0), e.div(e.const(2.0), e.add(power, e.const(1.0))))
    is_near = e.compare("olt", magnitude, e.const(0.625))
    return e.copysign(e.select(is_near, near, far), x)  # also for -0, where near is +0


def emit_erf(e: MathEmitter, x: str) -> str:
    """Error function, f32 only: x + x p(x^2) near zero, 1 - e^-(t + t q(t)) elsewhere."""
    magnitude = e.abs(x)
    near = e.fma(x, e.polynomial(e.mul(x, x), ERF_F32_P), x)
    t = e.at_most(magnitude, ERF_F32_ONE)
    exponent = e.fma(t, e.polynomial(t, ERF_F32_Q), t)
    power = _exp_in_range(e, e.sub(e.const(0.0), exponent))
    far = e.copysign(e.sub(e.const(1.0), power), x)
    is_near = e.compare("olt", magnitude, e.const(ERF_F32_SPLIT))
    return e.select(is_near, near, far)
