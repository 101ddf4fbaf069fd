"""Write mathematical functions on vectors of one float type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorwright.base import CpuTarget, DType, InternalError
from tensorwright.machine_code import (
    Kind,
    Module,
    NativeFunction,
    Number,
    Operand,
    mangled,
    vector_type,
)

# float type, integer type, stored mantissa bits, exponent bias
_FORMATS = {DType.F32: ("float", "i32", 23, 127), DType.F64: ("double", "i64", 52, 1023)}
_AVX512_BYTES = 64
PURE = "nounwind willreturn memory(none)"
_CURRENT_ROUNDING = 4


class MathEmitter(NativeFunction):
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
            vector_type(each, lanes) for each in (self.float_name, int_name)
        )
        is_full_register = lanes * dtype.size_bytes == _AVX512_BYTES
        self.has_scalef = is_full_register and "avx512f" in target.features
        symbol = f"tw.{name}.{mangled(self.float_name, lanes)}"
        kinds, notes = (self.kind,) * arity, f"alwaysinline {PURE}"
        super().__init__(Module(), symbol, kinds, self.kind, notes, is_internal=True)

    def const(self, value: float) -> Number:
        """A float constant in every lane."""
        return self.number(value, self.kind)

    def fma(self, a: Number, b: Operand, c: Operand) -> Number:
        """a * b + c"""
        return a.intrinsic("fmuladd", b, c)

    def scalef(self, a: Number, n: Number) -> Number:
        """a * 2^n for a whole float n, rounded once (AVX-512, where `has_scalef`)."""
        symbol = f"llvm.x86.avx512.mask.scalef.p{'s' if self.dtype is DType.F32 else 'd'}.512"
        zero, mask = self.number(0, self.kind), self.number(-1, f"i{self.lanes}")
        return self.call(self.kind, symbol, a, n, zero, mask, self.number(_CURRENT_ROUNDING, "i32"))

    def where_negative(self, a: Number, then: Number, otherwise: Operand) -> Number:
        """Choose by the sign bit of a, which -0 has, too."""
        return (self.bits(a) < 0).choose(then, otherwise)

    def at_most(self, a: Number, bound: float) -> Number:
        """min(a, bound); NaN stays NaN."""
        return (a > bound).choose(self.const(bound), a)

    def at_least(self, a: Number, bound: float) -> Number:
        """max(a, bound); NaN stays NaN."""
        return (a < bound).choose(self.const(bound), a)

    def bits(self, a: Number) -> Number:
        """The bit pattern of a float, as an integer."""
        return a.cast("bitcast", self.int_kind)

    def from_bits(self, a: Number) -> Number:
        """The float with that bit pattern."""
        return a.cast("bitcast", self.kind)

    def polynomial(self, x: Number, coefficients: Sequence[float]) -> Number:
        """Horner's scheme; the coefficient of the highest power comes first."""
        value = self.const(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.fma(value, x, coefficient)
        return value

    def library(self, name: str, *arguments: Number) -> Number:
        """Call the C library for each lane; its f32 functions end in f."""
        symbol = f"{name}{'f' if self.dtype is DType.F32 else ''}"
        if self.lanes == 1:
            return self.call(self.float_name, symbol, *arguments, note=PURE)
        result = Number(self, self.kind, "poison")
        for lane in range(self.lanes):
            parts = (argument.lane(lane) for argument in arguments)
            value = self.call(self.float_name, symbol, *parts, note=PURE)
            result = result.result(self.kind, f"insertelement {result}, {value}, i32 {lane}")
        return result

    def rarely(self, mask: Number, then: Callable[[], Number], otherwise: Number) -> Number:
        """Choose by lane; what `then` writes runs only where a lane of the mask is set."""
        is_any = mask
        if self.lanes > 1:
            is_any = self.call(Kind.TRUTH, f"llvm.vector.reduce.or.v{self.lanes}i1", mask)
        chosen = self.variable(self.kind, otherwise)
        with self.when(is_any):
            chosen.set(mask.choose(then(), otherwise))
        return chosen.now
