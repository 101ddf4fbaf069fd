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

_SIGN_BIT = 31
_MAGIC = 1.5 * 2**23  # a sum with it is rounded to a whole number, which its lowest bits are


def emit_sin(e: MathEmitter, x: str) -> str:
    """Sine: of which quadrant says whether it is a sine or a cosine, and with which sign."""
    near = _of_quadrant(e, x, 0)
    kept = e.select(e.compare("oeq", x, e.const(0.0)), x, near)  # -0
    return _near_or_library(e, "sin", x, kept)


def emit_cos(e: MathEmitter, x: str) -> str:
    """Cosine: the sine a quadrant later."""
    return _near_or_library(e, "cos", x, _of_quadrant(e, x, 1))


def _of_quadrant(e: MathEmitter, x: str, ahead: int) -> str:
    """sin(x + ahead * pi/2) for |x| <= FAR_F32."""
    raised = e.fma(x, e.const(2 / math.pi), e.const(_MAGIC))
    n = e.sub(raised, e.const(_MAGIC))
    r = x
    for part in HALF_PI_F32:
        r = e.fma(n, e.const(-part), r)
    square = e.mul(r, r)
    sine = e.fma(e.mul(r, square), e.polynomial(square, SIN_F32_Q), r)
    flat = e.fma(square, e.const(-0.5), e.const(1.0))
    cosine = e.fma(e.mul(square, square), e.polynomial(square, COS_F32_Q), flat)
    quadrant = e.integer("add", e.bits(raised), e.int_const(ahead))
    is_odd = e.integer("shl", quadrant, e.int_const(_SIGN_BIT))
    value = e.where_negative(e.from_bits(is_odd), cosine, sine)
    sign = e.integer("shl", e.integer("lshr", quadrant, e.int_const(1)), e.int_const(_SIGN_BIT))
    return e.from_bits(e.integer("xor", e.bits(value), sign))


def _near_or_library(e: MathEmitter, name: str, x: str, near: str) -> str:
    """What holds up to FAR_F32, or what the C library says: also for infinity and NaN."""
    is_far = e.compare("ugt", e.abs(x), e.const(FAR_F32))
    return e.rarely(is_far, lambda: e.library(name, x), near)


def emit_atan(e: MathEmitter, x: str) -> str:
    """Arc tangent: pi/2 - atan(1/t) where t = |x| is above 1, and the sign of x."""
    t = e.abs(x)
    is_steep = e.compare("ogt", t, e.const(1.0))
    z = e.select(is_steep, e.div(e.const(-1.0), t), t)
    base = e.select(is_steep, e.const(math.pi / 2), e.const(0.0))
    square = e.mul(z, z)
    value = e.fma(e.mul(z, square), e.polynomial(square, ATAN_F32_Q), z)
    return e.copysign(e.add(base, value), x)
