"""Mathematical functions as LLVM IR text, on vectors of any number of lanes.

exp, log, tanh, erf, fmod and their kin on whole vectors, at most 4 ulp off over the full range.

Each takes an emitter and the name of the argument and returns the name of the result; the same
text serves every lane count, one lane included. Both sides of a case distinction are computed and
one is selected; rare cases branch. Subnormal arguments and results are exact to the same bound.

sin, cos and atan of f32 on whole vectors, at most 4 ulp off over the full range.

Arguments of sin and cos beyond `FAR_F32` would need many more bits of pi: where a vector has one,
the C library is called for each lane.

Mathematical functions as LLVM IR text, for any lane count.

exp, expm1, log, log1p, sigmoid and tanh, and erf, sin, cos, atan and fmod in f32, are vector code
of our own (<= 4 ulp over the full range; measured: at most 2.4; fmod is exact). The others call the
C library once per lane. What LLVM has as an instruction or intrinsic (sqrt, fabs, floor, ...) has
no entry here. A definition is internal and always inlined, so that constants are hoisted out of the
caller's loop; emit each one once per module, and each declaration once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tensorwright.base import CpuTarget, DType, InternalError
from tensorwright.codegen.llvm import math_emitter
from tensorwright.machine_code import LIBM_BINARY, LIBM_UNARY, Number

# Bit patterns of sqrt(1/2), the lower end of the mantissas that log reduces to.
_SQRT_HALF_BITS = {DType.F32: 0x3F3504F3, DType.F64: 0x3FE6A09E667F3BCD}


def emit_exp(e: math_emitter.MathEmitter, x: Number) -> Number:
    """e^x: 0 below the smallest subnormal, infinity above the largest float.

    Without an instruction for it, the scale 2^n is applied as two factors, so that it is right for
    subnormal results (rounded once, by the second product) and for n above the largest exponent.
    The argument is bounded where both factors have no bits: far below, as masked scores are, the
    result is a product of zeros, where underflow would take as long as the whole function.
    """
    table = math_emitter.EXP[e.dtype]
    upper = e.at_most(x, table.highest)
    if e.has_scalef:
        tail, _, n = _reduced_exp(e, e.at_least(upper, table.lowest), 0)
        return e.scalef(tail + 1.0, n)
    bounded = e.at_least(upper, -2 * e.exponent_bias * math.log(2))
    tail, biased, n = _reduced_exp(e, bounded, 2 * e.exponent_bias)
    half = e.bits(e.fma(n, 0.5, _magic(e, e.exponent_bias)))
    first, second = _power_of_two(e, half), _power_of_two(e, biased - half)
    return e.fma(tail, first, first) * second


def _exp_below_one(e: math_emitter.MathEmitter, x: Number) -> Number:
    """e^x for x <= 0, where the first factor of the scale is never too large, and may be zero."""
    if e.has_scalef:
        tail, _, n = _reduced_exp(e, e.at_least(x, math_emitter.EXP[e.dtype].lowest), 0)
        return e.scalef(tail + 1.0, n)
    raised = 2 * e.mantissa_bits  # more than subnormals are below the smallest normal number
    bounded = e.at_least(x, -(e.exponent_bias + raised) * math.log(2))
    tail, biased, _ = _reduced_exp(e, bounded, e.exponent_bias + raised)
    scale = _power_of_two(e, biased)
    return e.fma(tail, scale, scale) * 2.0**-raised


def _reduced_exp(
    e: math_emitter.MathEmitter, x: Number, bias: int
) -> tuple[Number, Number, Number]:
    """x = n*ln(2) + r with |r| <= ln(2)/2: e^r - 1, an integer and n as a float.

    The bias and n are in the low bits of the integer; above them is what `_power_of_two` drops.
    Adding 1.5 * 2^mantissa_bits rounds to an integer and leaves it there, without a conversion,
    which would be undefined for NaN.
    """
    table = math_emitter.EXP[e.dtype]
    magic = _magic(e, bias)
    shifted = e.fma(x, 1 / math.log(2), magic)
    n = shifted - magic
    r = e.fma(n, -table.ln2_high, x)
    r = e.fma(n, -table.ln2_low, r)
    tail = e.fma(r * r, e.polynomial(r, table.q), r)
    return tail, e.bits(shifted), n


def _magic(e: math_emitter.MathEmitter, bias: int) -> Number:
    """The float whose low bits hold the bias, and the sum's what is added to it, rounded."""
    return e.const(1.5 * 2.0**e.mantissa_bits + bias)


def _power_of_two(e: math_emitter.MathEmitter, biased: Number) -> Number:
    """2^n from an integer with n + exponent_bias in its low bits."""
    return e.from_bits(biased << e.mantissa_bits)


def emit_expm1(e: math_emitter.MathEmitter, x: Number) -> Number:
    """e^x - 1, exact to the last places near zero.

    Computed as twice its half, so that the scale is finite where the result is the largest float.
    """
    table = math_emitter.EXP[e.dtype]
    # Below, 2^-n would leave the range, and the result is -1 already.
    bounded = e.at_least(e.at_most(x, table.highest), -0.75 * e.mantissa_bits - 1)
    half = _scaled_expm1(e, bounded, 0.5)
    return (half + half).intrinsic("copysign", x)  # also for -0


def _scaled_expm1(e: math_emitter.MathEmitter, x: Number, scale: float) -> Number:
    """scale * (e^x - 1) where 2^n * scale is a normal number: e^x - 1 = 2^n (e^r - 1) + (2^n - 1).

    Near zero n is 0, and nothing is subtracted.
    """
    shift = int(math.log2(scale))
    tail, biased, _ = _reduced_exp(e, x, e.exponent_bias + shift)
    power = _power_of_two(e, biased)
    return e.fma(tail, power, power - scale)


def emit_sigmoid(e: math_emitter.MathEmitter, x: Number) -> Number:
    """1 / (1 + e^-x), as t / (1 + t) with t = e^x where x < 0, which keeps small results."""
    power = _exp_below_one(e, -x.intrinsic("fabs"))
    return e.where_negative(x, power, 1.0) / (power + 1.0)


def emit_log(e: math_emitter.MathEmitter, x: Number) -> Number:
    """Natural logarithm: -infinity at both zeros, NaN below."""
    f, exponent = _split_near_one(e, x)
    value = _log_near_one(e, f, exponent)
    value = x.equals(math.inf).choose(e.const(math.inf), value)
    value = x.equals(0.0).choose(e.const(-math.inf), value)
    return x.test("ult", 0.0).choose(e.const(math.nan), value)


def _split_near_one(e: math_emitter.MathEmitter, x: Number) -> tuple[Number, Number]:
    """x = (1 + f) * 2^k with sqrt(1/2) <= 1 + f < sqrt(2), for x > 0: f and k, both floats."""
    bits, bias = e.mantissa_bits, e.exponent_bias
    is_subnormal = x < 2.0 ** (1 - bias)
    scaled = is_subnormal.choose(x * 2.0**bits, x)
    correction = is_subnormal.choose(e.const(float(-bits)), 0.0)
    low = _SQRT_HALF_BITS[e.dtype]
    moved = e.bits(scaled) + ((bias << bits) - low)
    k = moved.apply("ashr", bits) - bias
    mantissa = moved & ((1 << bits) - 1)
    near_one = e.from_bits(mantissa + low)
    return near_one - 1.0, k.cast("sitofp", e.kind) + correction


def emit_log1p(e: math_emitter.MathEmitter, x: Number) -> Number:
    """log(1 + x), exact to the last places near zero: what 1 + x rounds away is put back."""
    shifted = x + 1.0
    f, exponent = _split_near_one(e, shifted)
    is_near = exponent.equals(0.0)
    lost = x - (shifted - 1.0)
    correction = is_near.choose(e.const(0.0), lost / shifted)
    value = _log_near_one(e, is_near.choose(x, f), exponent) + correction
    infinity = e.const(math.inf)
    value = x.equals(math.inf).choose(infinity, value.intrinsic("copysign", x))
    value = shifted.equals(0.0).choose(e.const(-math.inf), value)
    return shifted.test("ult", 0.0).choose(e.const(math.nan), value)


def _log_near_one(e: math_emitter.MathEmitter, f: Number, exponent: Number) -> Number:
    """log((1 + f) * 2^exponent), as `_split_near_one` gives them."""
    return _log_f32(e, f, exponent) if e.dtype is DType.F32 else _log_f64(e, f, exponent)


def _log_f32(e: math_emitter.MathEmitter, f: Number, exponent: Number) -> Number:
    table = math_emitter.EXP[DType.F32]
    squared = f * f
    tail = f * squared * e.polynomial(f, math_emitter.LOG_F32)
    tail = e.fma(exponent, table.ln2_low, tail)
    tail = e.fma(squared, -0.5, tail)
    return e.fma(exponent, table.ln2_high, f + tail)


def _log_f64(e: math_emitter.MathEmitter, f: Number, exponent: Number) -> Number:
    half_square = e.const(0.5) * (f * f)
    s = f / (f + 2.0)
    z = s * s
    remainder = z * e.polynomial(z, math_emitter.LOG_F64)
    low = exponent * 1.90821492927058770002e-10
    inner = s * (half_square + remainder) + low
    rest = half_square - inner - f
    return exponent * 6.93147180369123816490e-01 - rest


def emit_tanh(e: math_emitter.MathEmitter, x: Number) -> Number:
    """Hyperbolic tangent, as t / (t + 2) with t = e^(2|x|) - 1."""
    bounded = e.at_most(x.intrinsic("fabs"), math_emitter.TANH_ONE[e.dtype])
    power = _scaled_expm1(e, bounded + bounded, 1.0)
    return (power / (power + 2.0)).intrinsic("copysign", x)  # also for -0


def emit_erf(e: math_emitter.MathEmitter, x: Number) -> Number:
    """Error function, f32 only: 1 - e^-(t + t q(t)) for t = |x|, and the sign of x."""
    t = e.at_most(x.intrinsic("fabs"), math_emitter.ERF_F32_ONE)
    exponent = e.fma(t, e.polynomial(t, math_emitter.ERF_F32_Q), t)
    return _scaled_expm1(e, -exponent, 1.0).intrinsic("copysign", x)


def emit_fmod(e: math_emitter.MathEmitter, x: Number, y: Number) -> Number:
    """The remainder of x / y with the sign of x, exact; where the processor fuses multiply-adds.

    The whole part of a quotient below 2^22 is right or, where rounding took it to the next whole
    number, one too large. The C library does larger ones, infinities and NaN.
    """
    a, b = x.intrinsic("fabs"), y.intrinsic("fabs")
    quotient = a / b
    rest = e.fma(-quotient.intrinsic("trunc"), b, a)
    whole = (rest < 0.0).choose(rest + b, rest)
    is_far = quotient.test("ugt", 2.0**22) | b.equals(math.inf)
    return e.rarely(is_far, lambda: e.library("fmod", x, y), whole.intrinsic("copysign", x))


_SIGN_BIT = 31
_MAGIC = 1.5 * 2**23  # adding it rounds to a whole number, which is then in the lowest bits


def emit_sin(e: math_emitter.MathEmitter, x: Number) -> Number:
    """Sine: the quadrant decides the sign, and whether it is a sine or a cosine there."""
    near = _of_quadrant(e, x, 0)
    kept = x.equals(0.0).choose(x, near)  # -0
    return _near_or_library(e, "sin", x, kept)


def emit_cos(e: math_emitter.MathEmitter, x: Number) -> Number:
    """Cosine: the sine a quadrant later."""
    return _near_or_library(e, "cos", x, _of_quadrant(e, x, 1))


def _of_quadrant(e: math_emitter.MathEmitter, x: Number, ahead: int) -> Number:
    """sin(x + ahead * pi/2) for |x| <= FAR_F32."""
    raised = e.fma(x, 2 / math.pi, _MAGIC)
    n = raised - _MAGIC
    r = x
    for part in math_emitter.HALF_PI_F32:
        r = e.fma(n, -part, r)
    square = r * r
    sine = e.fma(r * square, e.polynomial(square, math_emitter.SIN_F32_Q), r)
    flat = e.fma(square, -0.5, 1.0)
    cosine = e.fma(square * square, e.polynomial(square, math_emitter.COS_F32_Q), flat)
    quadrant = e.bits(raised) + ahead
    is_odd = quadrant << _SIGN_BIT
    value = e.where_negative(e.from_bits(is_odd), cosine, sine)
    sign = (quadrant >> 1) << _SIGN_BIT
    return e.from_bits(e.bits(value).apply("xor", sign))


def _near_or_library(e: math_emitter.MathEmitter, name: str, x: Number, near: Number) -> Number:
    """The vector code up to FAR_F32; beyond, for infinity and for NaN, the C library."""
    is_far = x.intrinsic("fabs").test("ugt", math_emitter.FAR_F32)
    return e.rarely(is_far, lambda: e.library(name, x), near)


def emit_atan(e: math_emitter.MathEmitter, x: Number) -> Number:
    """Arc tangent: pi/2 - atan(1/t) where t = |x| is above 1, and the sign of x."""
    t = x.intrinsic("fabs")
    is_steep = t > 1.0
    z = is_steep.choose(e.const(-1.0) / t, t)
    base = is_steep.choose(e.const(math.pi / 2), 0.0)
    square = z * z
    value = e.fma(z * square, e.polynomial(square, math_emitter.ATAN_F32_Q), z)
    return (base + value).intrinsic("copysign", x)


_Kernel = Callable[..., Number]
_KERNELS: dict[str, _Kernel] = {
    "exp": emit_exp,
    "expm1": emit_expm1,
    "log": emit_log,
    "log1p": emit_log1p,
    "sigmoid": emit_sigmoid,
    "tanh": emit_tanh,
}
_VECTOR: dict[tuple[str, DType], _Kernel] = {
    ("erf", DType.F32): emit_erf,
    ("sin", DType.F32): emit_sin,
    ("cos", DType.F32): emit_cos,
    ("atan", DType.F32): emit_atan,
    ("fmod", DType.F32): emit_fmod,
    **{(name, DType.F32): kernel for name, kernel in _KERNELS.items()},
    **{(name, DType.F64): kernel for name, kernel in _KERNELS.items()},
}
MATH_FUNCTIONS: tuple[str, ...] = tuple(
    sorted({name for name, _ in _VECTOR} | {*LIBM_UNARY, *LIBM_BINARY})
)
"""Every name that `math_function` knows, for both f32 and f64."""


@dataclass(frozen=True, slots=True)
class MathFunction:
    """A function of vectors: call `symbol` with `arity` vectors of the dtype and lane count.

    `declarations` are the lines that `ir_text` needs besides; several functions may share some.
    """

    symbol: str
    arity: int
    ir_text: str
    declarations: tuple[str, ...]


@lru_cache(maxsize=512)
def math_function(name: str, dtype: DType, lanes: int, target: CpuTarget) -> MathFunction:
    """The definition of a function on vectors of `lanes`, also more than a register holds.

    Raises:  InternalError for a name not in `MATH_FUNCTIONS`, or a dtype other than f32 and f64.
    """
    if name not in MATH_FUNCTIONS:
        raise InternalError(
            stage="codegen", where=f"function {name}", reason="there is no code for it"
        )
    arity = 2 if name in LIBM_BINARY else 1
    emitter = math_emitter.MathEmitter(name, arity, dtype, lanes, target)
    kernel = _VECTOR.get((name, dtype))
    if kernel is None or (kernel is emit_fmod and not target.fma):
        emitter.finish(emitter.library(name, *emitter.parameters))
    else:
        emitter.finish(kernel(emitter, *emitter.parameters))
    (text,) = emitter.module.definitions.values()
    declarations = tuple(sorted(emitter.module.declarations))
    return MathFunction(f"@{emitter.symbol}", arity, text, declarations)
