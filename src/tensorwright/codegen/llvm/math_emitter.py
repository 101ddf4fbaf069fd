"""Coefficients of the vector mathematical functions; the highest power comes first.

Write mathematical functions on vectors of one float type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorwright import machine_code
from tensorwright.base import CpuTarget, DType, InternalError


@dataclass(frozen=True, slots=True)
class ExpTable:
    """exp(r) = 1 + r + r^2 * q(r) for |r| <= ln(2)/2; ln(2) in two parts, the first short."""

    q: tuple[float, ...]
    ln2_high: float
    ln2_low: float
    lowest: float
    highest: float


# ln(2) of f32 is that of Cephes expf.c (S. Moshier), q from
# benchmarks/kernels/derive_coefficients.py.
# Beyond lowest and highest the result is 0 and infinity.
# f64: Chebyshev fit of degree 9 at 50 digits to (exp(r) - 1 - r) / r^2, error 1e-16 of q.
EXP = {
    DType.F32: ExpTable(
        q=(
            0.0013882521307095885,
            0.00836651399731636,
            0.04166720062494278,
            0.1666654348373413,
            0.4999999701976776,
        ),
        ln2_high=0.693359375,
        ln2_low=-2.12194440e-4,
        lowest=-104.0,
        highest=89.0,
    ),
    DType.F64: ExpTable(
        q=(
            2.51004110820149e-08,
            2.7620121717381933e-07,
            2.7557268406190795e-06,
            2.4801521225986432e-05,
            0.00019841269863088255,
            0.0013888888917258759,
            0.008333333333330055,
            0.04166666666662404,
            0.16666666666666669,
            0.5000000000000001,
        ),
        ln2_high=0.693145751953125,
        ln2_low=1.42860682030941723212e-6,
        lowest=-746.0,
        highest=710.0,
    ),
}

# Where tanh is 1 in working precision.
TANH_ONE = {DType.F32: 10.0, DType.F64: 22.0}

# Cephes logf.c: log(1 + f) = f - f^2/2 + f^3 * p(f) for sqrt(1/2) <= 1 + f < sqrt(2).
LOG_F32 = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
# FDLIBM e_log.c: log(1 + f) = f - (f^2/2 - s * (f^2/2 + R)), s = f/(2+f), R = s^2 * p(s^2).
LOG_F64 = (
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
)

# erf(t) = 1 - exp(-(t + t * q(t))) for 0 <= t; 1 in f32 from `one`.
# benchmarks/kernels/derive_coefficients.py
ERF_F32_Q = (
    4.070793875143863e-05,
    -0.0003810006601270288,
    0.0012517464347183704,
    0.00020571656932588667,
    -0.01932171732187271,
    0.10281441360712051,
    0.6366164684295654,
    0.1283792108297348,
)
ERF_F32_ONE = 4.0

# pi/2 in parts, of which the first three have 11 bits: their products with whole numbers of 13 bits
# are exact, whether multiply-adds are fused or not. Beyond FAR the numbers have more.
HALF_PI_F32 = (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12)
FAR_F32 = 8192.0
# For |r| <= pi/4: sin(r) = r + r^3 * q(r^2) and cos(r) = 1 - r^2/2 + r^4 * q(r^2).
# benchmarks/kernels/derive_coefficients.py
SIN_F32_Q = (-0.0001951528392964974, 0.00833216030150652, -0.16666655242443085)
COS_F32_Q = (2.44331567955669e-05, -0.0013887316454201937, 0.04166664555668831)
# For |z| <= 1: atan(z) = z + z^3 * q(z^2).
ATAN_F32_Q = (
    0.0029206883627921343,
    -0.016367914155125618,
    0.043211840093135834,
    -0.07552212476730347,
    0.10666003823280334,
    -0.14211055636405945,
    0.19993773102760315,
    -0.33333152532577515,
)


# float type, integer type, stored mantissa bits, exponent bias
_FORMATS = {DType.F32: ("float", "i32", 23, 127), DType.F64: ("double", "i64", 52, 1023)}
_AVX512_BYTES = 64
PURE = "nounwind willreturn memory(none)"
_CURRENT_ROUNDING = 4


class MathEmitter(machine_code.NativeFunction):
    """One function of vectors while it is written.

    No operation carries fast-math flags, so NaN, infinities and signed zeros are kept. `fma` is
    `llvm.fmuladd`: fused where the processor can, else a product and a sum; algorithms must be
    right either way.
    """

    def __init__(self, name: str, arity: int, dtype: DType, lanes: int, target: CpuTarget) -> None:
        if dtype not in _FORMATS:
            raise InternalError(
                stage="codegen",
                where=f"mathematical function on {dtype}",
                reason="only f32 and f64 have one; narrower types are to be widened first",
            )
        self.dtype = dtype
        self.lanes = lanes
        self.float_name, int_name, self.mantissa_bits, self.exponent_bias = _FORMATS[dtype]
        self.kind, self.int_kind = (
            machine_code.vector_type(each, lanes) for each in (self.float_name, int_name)
        )
        is_full_register = lanes * dtype.size_bytes == _AVX512_BYTES
        self.has_scalef = is_full_register and "avx512f" in target.instructions
        symbol = f"tw.{name}.{machine_code.mangled(self.float_name, lanes)}"
        kinds, notes = (self.kind,) * arity, f"alwaysinline {PURE}"
        super().__init__(machine_code.Module(), symbol, kinds, self.kind, notes, is_internal=True)

    def const(self, value: float) -> machine_code.Number:
        """A float constant in every lane."""
        return self.number(value, self.kind)

    def fma(
        self, a: machine_code.Number, b: machine_code.Operand, c: machine_code.Operand
    ) -> machine_code.Number:
        """a * b + c"""
        return a.intrinsic("fmuladd", b, c)

    def scalef(self, a: machine_code.Number, n: machine_code.Number) -> machine_code.Number:
        """a * 2^n for a whole float n, rounded once (AVX-512, where `has_scalef`)."""
        symbol = f"llvm.x86.avx512.mask.scalef.p{'s' if self.dtype is DType.F32 else 'd'}.512"
        zero, mask = self.number(0, self.kind), self.number(-1, f"i{self.lanes}")
        return self.call(self.kind, symbol, a, n, zero, mask, self.number(_CURRENT_ROUNDING, "i32"))

    def where_negative(
        self, a: machine_code.Number, then: machine_code.Number, otherwise: machine_code.Operand
    ) -> machine_code.Number:
        """Choose by the sign bit of a, which -0 has, too."""
        return (self.bits(a) < 0).choose(then, otherwise)

    def at_most(self, a: machine_code.Number, bound: float) -> machine_code.Number:
        """min(a, bound); NaN stays NaN."""
        return (a > bound).choose(self.const(bound), a)

    def at_least(self, a: machine_code.Number, bound: float) -> machine_code.Number:
        """max(a, bound); NaN stays NaN."""
        return (a < bound).choose(self.const(bound), a)

    def bits(self, a: machine_code.Number) -> machine_code.Number:
        """The bit pattern of a float, as an integer."""
        return a.cast("bitcast", self.int_kind)

    def from_bits(self, a: machine_code.Number) -> machine_code.Number:
        """The float with that bit pattern."""
        return a.cast("bitcast", self.kind)

    def polynomial(
        self, x: machine_code.Number, coefficients: Sequence[float]
    ) -> machine_code.Number:
        """Horner's scheme; the coefficient of the highest power comes first."""
        value = self.const(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.fma(value, x, coefficient)
        return value

    def library(self, name: str, *arguments: machine_code.Number) -> machine_code.Number:
        """Call the C library for each lane; its f32 functions end in f."""
        symbol = f"{name}{'f' if self.dtype is DType.F32 else ''}"
        if self.lanes == 1:
            return self.call(self.float_name, symbol, *arguments, note=PURE)
        result = machine_code.Number(self, self.kind, "poison")
        for lane in range(self.lanes):
            parts = (argument.lane(lane) for argument in arguments)
            value = self.call(self.float_name, symbol, *parts, note=PURE)
            result = result.result(self.kind, f"insertelement {result}, {value}, i32 {lane}")
        return result

    def rarely(
        self,
        mask: machine_code.Number,
        then: Callable[[], machine_code.Number],
        otherwise: machine_code.Number,
    ) -> machine_code.Number:
        """Choose by lane; what `then` writes runs only where a lane of the mask is set."""
        is_any = mask
        if self.lanes > 1:
            is_any = self.call(
                machine_code.Kind.TRUTH, f"llvm.vector.reduce.or.v{self.lanes}i1", mask
            )
        chosen = self.variable(self.kind, otherwise)
        with self.when(is_any):
            chosen.set(mask.choose(then(), otherwise))
        return chosen.now
