"""Operations on vectors of any element type, one instruction or a few for each."""

from __future__ import annotations

from tensorwright.base import CpuTarget, DType
from tensorwright.codegen.llvm.math.functions import math_function
from tensorwright.codegen.llvm.text.builder import Function
from tensorwright.codegen.llvm.text.literals import (
    Val,
    literal_text,
    memory_type,
    register_element,
    register_type,
)
from tensorwright.machine_code import mangled, shuffle_text, splat_literal


class Lanewise:
    """Writes instructions; operands of one have the same lanes. Results are shared and hoisted."""

    def __init__(self, function: Function, target: CpuTarget) -> None:
        self.function = function
        self.target = target

    def constant(self, value: float | int | bool, like: Val) -> Val:
        """A number in the type and lanes of a value."""
        text = literal_text(value, like.dtype)
        element = register_element(like.dtype)
        return Val(splat_literal(element, text, like.lanes), like.dtype, like.lanes)

    def fused(self, a: Val, b: Val, c: Val) -> Val:
        """a * b + c with one rounding."""
        lanes = max(a.lanes, b.lanes, c.lanes)
        return self.intrinsic("fma", *(self.function.splat(v, lanes) for v in (a, b, c)))

    def emit(self, text: str, dtype: DType, *operands: Val) -> Val:
        """An instruction with the lanes of its first operand."""
        name = self.function.pure(text, *(operand.name for operand in operands))
        return Val(name, dtype, operands[0].lanes)

    def binary(self, operation: str, a: Val, b: Val) -> Val:
        """An operation of two operands of one type, such as "fadd"."""
        kind = register_type(a.dtype, a.lanes)
        return self.emit(f"{operation} {kind} {a.name}, {b.name}", a.dtype, a, b)

    def test(self, predicate: str, a: Val, b: Val) -> Val:
        """A comparison: "olt" and its like for floats, "slt" and its like for integers."""
        compare = "fcmp" if a.dtype.is_float else "icmp"
        kind = register_type(a.dtype, a.lanes)
        return self.emit(f"{compare} {predicate} {kind} {a.name}, {b.name}", DType.BOOL, a, b)

    def choose(self, mask: Val, then: Val, otherwise: Val) -> Val:
        """`then` in the lanes of the mask, else `otherwise`."""
        kind = register_type(then.dtype, then.lanes)
        mask_kind = register_type(DType.BOOL, mask.lanes)
        text = f"select {mask_kind} {mask.name}, {kind} {then.name}, {kind} {otherwise.name}"
        return self.emit(text, then.dtype, then, mask, otherwise)

    def part(self, value: Val, first: int, count: int = 1) -> Val:
        """Some adjacent lanes of a vector; the value itself if that is all of them."""
        if value.lanes == count:
            return value
        kind = register_type(value.dtype, value.lanes)
        text = f"extractelement {kind} {value.name}, i64 {first}"
        if count > 1:
            text = shuffle_text(kind, value.name, "poison", range(first, first + count))
        return Val(self.function.pure(text, value.name), value.dtype, count)

    def intrinsic(self, name: str, *args: Val) -> Val:
        """Call `llvm.<name>` on operands of one type."""
        first = args[0]
        kind = register_type(first.dtype, first.lanes)
        suffix = mangled(register_element(first.dtype), first.lanes)
        result = self.function.call(f"llvm.{name}.{suffix}", kind, *((kind, a.name) for a in args))
        return Val(result, first.dtype, first.lanes)

    def library(self, name: str, *args: Val) -> Val:
        """Call a mathematical function; 16-bit floats use that of f32."""
        first = args[0]
        dtype = DType.F64 if first.dtype is DType.F64 else DType.F32
        function = math_function(name, dtype, first.lanes, self.target)
        self.function.module.define(function.symbol, function.ir_text, function.declarations)
        kind = register_type(dtype, first.lanes)
        typed = ", ".join(f"{kind} {arg.name}" for arg in args)
        return self.emit(f"call {kind} {function.symbol}({typed})", first.dtype, *args)

    def rounded(self, value: Val) -> Val:
        """Round an f32 that stands for an f16 or a bf16; other types are as they are."""
        if value.dtype is DType.F16:
            kind, half = register_type(DType.F32, value.lanes), memory_type(DType.F16, value.lanes)
            small = self.emit(f"fptrunc {kind} {value.name} to {half}", value.dtype, value)
            return self.emit(f"fpext {half} {small.name} to {kind}", value.dtype, small)
        if value.dtype is DType.BF16:
            return self._rounded_bfloat(value)
        return value

    def _rounded_bfloat(self, value: Val) -> Val:
        """To nearest even on the upper 16 bits; a NaN keeps a set bit there."""
        kind, wide = register_type(DType.F32, value.lanes), register_type(DType.U32, value.lanes)
        bits = self.emit(f"bitcast {kind} {value.name} to {wide}", DType.U32, value)
        upper = self.binary("lshr", bits, self.constant(16, bits))
        odd = self.binary("and", upper, self.constant(1, bits))
        bias = self.binary("add", odd, self.constant(0x7FFF, bits))
        rounded = self.binary("add", bits, bias)
        quiet = self.binary("or", bits, self.constant(0x400000, bits))
        is_nan = self.test("uno", value, value)
        chosen = self.choose(is_nan, quiet, rounded)
        kept = self.binary("and", chosen, self.constant(0xFFFF0000, bits))
        return self.emit(f"bitcast {wide} {kept.name} to {kind}", value.dtype, kept)
