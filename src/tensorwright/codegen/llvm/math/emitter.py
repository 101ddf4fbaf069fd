"""Write LLVM IR on vectors of one float type, one value name per operation."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from tensorwright.base import CpuTarget, DType, InternalError

# float type, integer type, stored mantissa bits, exponent bias
_FORMATS = {DType.F32: ("float", "i32", 23, 127), DType.F64: ("double", "i64", 52, 1023)}
_AVX512_BYTES = 64
ENTRY = "entry"  # the first block of a function
PURE = "nounwind willreturn memory(none)"
_CURRENT_ROUNDING = 4


def vector_type(element: str, lanes: int) -> str:
    """LLVM's name of a vector; one lane is a scalar."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def float_literal(value: float, dtype: DType) -> str:
    """A float constant as LLVM writes it exactly: rounded to the type, then the bits of the f64."""
    if dtype is DType.F32:
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class MathEmitter:
    """The body of one function of vectors; values are passed about by their IR names.

    No operation carries fast-math flags, so NaN, infinities and signed zeros are kept. `fma` is
    `llvm.fmuladd`: fused where the processor can, else a product and a sum; algorithms must be
    right either way.
    """

    def __init__(self, dtype: DType, lanes: int, target: CpuTarget) -> None:
        if dtype not in _FORMATS:
            raise InternalError(
                stage="codegen",
                where=f"mathematical function on {dtype}",
                reason="only f32 and f64 have one; narrower types are to be widened first",
            )
        self.dtype = dtype
        self.lanes = lanes
        self.float_name, self.int_name, self.mantissa_bits, self.exponent_bias = _FORMATS[dtype]
        self.float_type = vector_type(self.float_name, lanes)
        self.int_type = vector_type(self.int_name, lanes)
        self.mask_type = vector_type("i1", lanes)
        self.suffix = ("" if lanes == 1 else f"v{lanes}") + f"f{dtype.size_bytes * 8}"
        is_full_register = lanes * dtype.size_bytes == _AVX512_BYTES
        self.has_scalef = is_full_register and "avx512f" in target.features
        self.lines: list[str] = []
        self._block = ENTRY
        self.declarations: set[str] = set()

    def emit(self, operation: str) -> str:
        """Append an operation and return the name of its value."""
        name = f"%m{len(self.lines)}"
        self.lines.append(f"  {name} = {operation}")
        return name

    def const(self, value: float) -> str:
        """A float constant in every lane."""
        return self._splat(self.float_name, float_literal(value, self.dtype))

    def int_const(self, value: int) -> str:
        """An integer constant in every lane."""
        return self._splat(self.int_name, str(value))

    def _splat(self, element: str, literal: str) -> str:
        return literal if self.lanes == 1 else f"splat ({element} {literal})"

    def add(self, a: str, b: str) -> str:
        """a + b"""
        return self.emit(f"fadd {self.float_type} {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        """a - b"""
        return self.emit(f"fsub {self.float_type} {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        """a * b"""
        return self.emit(f"fmul {self.float_type} {a}, {b}")

    def div(self, a: str, b: str) -> str:
        """a / b"""
        return self.emit(f"fdiv {self.float_type} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        """a * b + c"""
        return self.intrinsic("fmuladd", a, b, c)

    def abs(self, a: str) -> str:
        """|a|"""
        return self.intrinsic("fabs", a)

    def negative(self, a: str) -> str:
        """-a"""
        return self.emit(f"fneg {self.float_type} {a}")

    def copysign(self, magnitude: str, sign: str) -> str:
        """The magnitude of one with the sign of the other."""
        return self.intrinsic("copysign", magnitude, sign)

    def intrinsic(self, name: str, *arguments: str) -> str:
        """Call `llvm.<name>` on whole vectors."""
        types = ", ".join([self.float_type] * len(arguments))
        self.declarations.add(f"declare {self.float_type} @llvm.{name}.{self.suffix}({types})")
        typed = ", ".join(f"{self.float_type} {argument}" for argument in arguments)
        return self.emit(f"call {self.float_type} @llvm.{name}.{self.suffix}({typed})")

    def scalef(self, a: str, n: str) -> str:
        """a * 2^n for a whole float n, rounded once (AVX-512, where `has_scalef`)."""
        kind, letter = self.float_type, "s" if self.dtype is DType.F32 else "d"
        symbol = f"@llvm.x86.avx512.mask.scalef.p{letter}.512"
        mask = f"i{self.lanes}"
        self.declarations.add(f"declare {kind} {symbol}({kind}, {kind}, {kind}, {mask}, i32)")
        rest = f"{kind} zeroinitializer, {mask} -1, i32 {_CURRENT_ROUNDING}"
        return self.emit(f"call {kind} {symbol}({kind} {a}, {kind} {n}, {rest})")

    def compare(self, predicate: str, a: str, b: str) -> str:
        """A mask; ordered predicates ("olt", ...) are false for NaN."""
        return self.emit(f"fcmp {predicate} {self.float_type} {a}, {b}")

    def either(self, a: str, b: str) -> str:
        """Lanes that are in one mask or the other."""
        return self.emit(f"or {self.mask_type} {a}, {b}")

    def select(self, mask: str, then: str, otherwise: str) -> str:
        """Choose by lane."""
        kind = self.float_type
        return self.emit(f"select {self.mask_type} {mask}, {kind} {then}, {kind} {otherwise}")

    def where_negative(self, a: str, then: str, otherwise: str) -> str:
        """Choose by the sign bit of a, which -0 has, too."""
        bits = self.bits(a)
        mask = self.emit(f"icmp slt {self.int_type} {bits}, {self.int_const(0)}")
        return self.select(mask, then, otherwise)

    def at_most(self, a: str, bound: float) -> str:
        """min(a, bound); NaN stays NaN."""
        limit = self.const(bound)
        return self.select(self.compare("ogt", a, limit), limit, a)

    def at_least(self, a: str, bound: float) -> str:
        """max(a, bound); NaN stays NaN."""
        limit = self.const(bound)
        return self.select(self.compare("olt", a, limit), limit, a)

    def bits(self, a: str) -> str:
        """The bit pattern of a float, as an integer."""
        return self.emit(f"bitcast {self.float_type} {a} to {self.int_type}")

    def from_bits(self, a: str) -> str:
        """The float with that bit pattern."""
        return self.emit(f"bitcast {self.int_type} {a} to {self.float_type}")

    def integer(self, operation: str, a: str, b: str) -> str:
        """An integer operation: "add", "sub", "shl", "ashr", "and", ..."""
        return self.emit(f"{operation} {self.int_type} {a}, {b}")

    def to_float(self, a: str) -> str:
        """A signed integer as a float."""
        return self.emit(f"sitofp {self.int_type} {a} to {self.float_type}")

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """Horner's scheme; the coefficient of the highest power comes first."""
        value = self.const(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.fma(value, x, self.const(coefficient))
        return value

    def library(self, name: str, *arguments: str) -> str:
        """Call the C library for each lane; its f32 functions end in f."""
        scalar = self.float_name
        symbol = f"@{name}{'f' if self.dtype is DType.F32 else ''}"
        types = ", ".join([scalar] * len(arguments))
        self.declarations.add(f"declare {scalar} {symbol}({types}) {PURE}")
        if self.lanes == 1:
            typed = ", ".join(f"{scalar} {argument}" for argument in arguments)
            return self.emit(f"call {scalar} {symbol}({typed})")
        kind, result = self.float_type, "poison"
        for lane in range(self.lanes):
            parts = [self.emit(f"extractelement {kind} {a}, i32 {lane}") for a in arguments]
            typed = ", ".join(f"{scalar} {part}" for part in parts)
            value = self.emit(f"call {scalar} {symbol}({typed})")
            result = self.emit(f"insertelement {kind} {result}, {scalar} {value}, i32 {lane}")
        return result

    def rarely(self, mask: str, then: Callable[[], str], otherwise: str) -> str:
        """Choose by lane; what `then` writes runs only where a lane of the mask is set."""
        is_any = mask
        if self.lanes > 1:
            symbol = f"@llvm.vector.reduce.or.v{self.lanes}i1"
            self.declarations.add(f"declare i1 {symbol}({self.mask_type})")
            is_any = self.emit(f"call i1 {symbol}({self.mask_type} {mask})")
        number = len(self.lines)
        rare, after, before = f"rare{number}", f"after{number}", self._block
        self.lines += [f"  br i1 {is_any}, label %{rare}, label %{after}", f"{rare}:"]
        self._block = rare
        chosen = self.select(mask, then(), otherwise)
        self.lines += [f"  br label %{after}", f"{after}:"]
        ways = f"[ {chosen}, %{self._block} ], [ {otherwise}, %{before} ]"
        self._block = after
        return self.emit(f"phi {self.float_type} {ways}")
