"""sin, cos and atan of f32 on whole vectors, at most 4 ulp off over the full range.

Arguments of sin and cos beyond `FAR_F32` would need many more bits of pi: where a vector has one,
the C library is called for each lane.
"""

from __future__ import annotations

import math

from tensorwright.codegen.llvm.math.coefficients import (
    ATAN_F32_Q,
    COS_F32_Q,
    FAR_F32,
    HALF_PI_F32,
    SIN_F32_Q,
)
from tensorwright.codegen.llvm.math.emitter import MathEmitter
from tensorwright.machine_code import Number

_SIGN_BIT = 31
_MAGIC = 1.5 * 2**23  # adding it rounds to a whole number, which is then in the lowest bits


def emit_sin(e: MathEmitter, x: Number) -> Number:
    """Sine: the quadrant decides the sign, and whether it is a sine or a cosine there."""
    near = _of_quadrant(e, x, 0)
    kept = x.equals(0.0).choose(x, near)  # -0
    return _near_or_library(e, "sin", x, kept)


def emit_cos(e: MathEmitter, x: Number) -> Number:
    """Cosine: the sine a quadrant later."""
    return _near_or_library(e, "cos", x, _of_quadrant(e, x, 1))


def _of_quadrant(e: MathEmitter, x: Number, ahead: int) -> Number:
    """sin(x + ahead * pi/2) for |x| <= FAR_F32."""
    raised = e.fma(x, 2 / math.pi, _MAGIC)
    n = raised - _MAGIC
    r = x
    for part in HALF_PI_F32:
        r = e.fma(n, -part, r)
    square = r * r
    sine = e.fma(r * square, e.polynomial(square, SIN_F32_Q), r)
    flat = e.fma(square, -0.5, 1.0)
    cosine = e.fma(square * square, e.polynomial(square, COS_F32_Q), flat)
    quadrant = e.bits(raised) + ahead
    is_odd = quadrant << _SIGN_BIT
    value = e.where_negative(e.from_bits(is_odd), cosine, sine)
    sign = (quadrant >> 1) << _SIGN_BIT
    return e.from_bits(e.bits(value).apply("xor", sign))


def _near_or_library(e: MathEmitter, name: str, x: Number, near: Number) -> Number:
    """The vector code up to FAR_F32; beyond, for infinity and for NaN, the C library."""
    is_far = x.intrinsic("fabs").test("ugt", FAR_F32)
    return e.rarely(is_far, lambda: e.library(name, x), near)


def emit_atan(e: MathEmitter, x: Number) -> Number:
    """Arc tangent: pi/2 - atan(1/t) where t = |x| is above 1, and the sign of x."""
    t = x.intrinsic("fabs")
    is_steep = t > 1.0
    z = is_steep.choose(e.const(-1.0) / t, t)
    base = is_steep.choose(e.const(math.pi / 2), 0.0)
    square = z * z
    value = e.fma(z * square, e.polynomial(square, ATAN_F32_Q), z)
    return (base + value).intrinsic("copysign", x)
