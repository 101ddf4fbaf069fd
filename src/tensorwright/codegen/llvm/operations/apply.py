"""The functions of the value language in LLVM, for every element type.

Semantics are those of `tensorwright.expr`: integers wrap, a shift by the width or more gives 0 (or
the sign), an integer divided by 0 gives 0, MIN and MAX propagate NaN. Nothing here is undefined or
traps for any operand, so both sides of a select may be computed.
"""

from __future__ import annotations

import numpy as np

from tensorwright.base import DType
from tensorwright.codegen.llvm.operations.float_rules import FLOAT_RULES
from tensorwright.codegen.llvm.operations.int_rules import INT_RULES
from tensorwright.codegen.llvm.text.lanewise import Lanewise
from tensorwright.codegen.llvm.text.literals import Val, memory_type, register_type
from tensorwright.codegen.source import without_meaning
from tensorwright.expr import Fn
from tensorwright.loop import FOLD_IDENTITIES

_INTRINSICS = {
    Fn.FLOOR: "floor",
    Fn.CEIL: "ceil",
    Fn.ROUND: "roundeven",
    Fn.TRUNC: "trunc",
    Fn.SQRT: "sqrt",
    Fn.ABS: "fabs",
}
_LIBRARY = {
    Fn.MOD: "fmod",
    **{fn: fn.text for fn in (Fn.POW, Fn.ATAN2, Fn.EXP, Fn.LOG, Fn.LOG1P, Fn.EXPM1)},
    **{fn: fn.text for fn in (Fn.SIN, Fn.COS, Fn.TAN, Fn.ASIN, Fn.ACOS, Fn.ATAN)},
    **{fn: fn.text for fn in (Fn.SINH, Fn.COSH, Fn.TANH, Fn.ASINH, Fn.ACOSH, Fn.ATANH, Fn.ERF)},
}
_FLOAT_OPERATION = {Fn.ADD: "fadd", Fn.SUB: "fsub", Fn.MUL: "fmul", Fn.DIV: "fdiv"}
_INT_OPERATION = {
    Fn.ADD: "add",
    Fn.SUB: "sub",
    Fn.MUL: "mul",
    Fn.BITAND: "and",
    Fn.BITOR: "or",
    Fn.BITXOR: "xor",
}
_BOOL_OPERATION = {
    Fn.ADD: "or",
    Fn.MAX: "or",
    Fn.OR: "or",
    Fn.BITOR: "or",
    Fn.MUL: "and",
    Fn.MIN: "and",
    Fn.AND: "and",
    Fn.BITAND: "and",
    Fn.XOR: "xor",
    Fn.BITXOR: "xor",
    Fn.NE: "xor",
}
_FLOAT_PREDICATE = {Fn.LT: "olt", Fn.LE: "ole", Fn.EQ: "oeq", Fn.NE: "une"}
_INT_PREDICATE = {Fn.LT: "lt", Fn.LE: "le", Fn.EQ: "eq", Fn.NE: "ne"}
_ROUNDING = (Fn.FLOOR, Fn.CEIL, Fn.ROUND, Fn.TRUNC)


class Operations(Lanewise):
    """Apply functions to values in registers."""

    def apply(self, fn: Fn, args: tuple[Val, ...]) -> Val:
        """Apply a function; scalars are spread over the lanes of the others."""
        lanes = max(arg.lanes for arg in args)
        args = tuple(self.function.splat(arg, lanes) for arg in args)
        dtype = args[0].dtype
        if fn in _FLOAT_PREDICATE:
            return self._compared(fn, *args)
        if dtype is DType.BOOL:
            return self._on_bools(fn, args)
        if dtype.is_float:
            return self._on_floats(fn, args)
        return self._on_ints(fn, args)

    def convert(self, value: Val, dtype: DType) -> Val:
        """A value in another type; floats beyond an integer's range give its nearest end."""
        source = value.dtype
        if source is dtype:
            return value
        if dtype is DType.BOOL:
            return self._compared(Fn.NE, value, self.constant(0, value))
        if dtype.is_float and source.is_float:
            return self._resized_float(value, dtype)
        old, new = register_type(source, value.lanes), register_type(dtype, value.lanes)
        if source.is_float:
            return self._saturated(value, dtype)
        if dtype.is_float:
            cast = "sitofp" if source.is_int and source.is_signed else "uitofp"
        elif source is not DType.BOOL and dtype.size_bytes == source.size_bytes:
            return Val(value.name, dtype, value.lanes)
        elif source is not DType.BOOL and dtype.size_bytes < source.size_bytes:
            cast = "trunc"
        else:
            cast = "sext" if source.is_int and source.is_signed else "zext"
        result = self.emit(f"{cast} {old} {value.name} to {new}", dtype, value)
        return self.rounded(result)

    def _saturated(self, value: Val, dtype: DType) -> Val:
        """A float as the nearest integer of a type, NaN as 0; LLVM's own conversion is per lane."""
        held = np.float64 if value.dtype is DType.F64 else np.float32
        low, end = float(dtype.lowest), held(dtype.highest)
        is_rounded_up = int(end) > dtype.highest
        top = float(np.nextafter(end, held(0))) if is_rounded_up else float(end)
        least, most = self.constant(low, value), self.constant(top, value)
        inside = self.choose(self.test("ogt", value, least), value, least)
        inside = self.choose(self.test("olt", inside, most), inside, most)
        is_short = dtype.size_bytes < DType.I32.size_bytes
        kind = DType.I32 if is_short else dtype
        cast = "fptosi" if kind.is_signed else "fptoui"
        old, new = (register_type(each, value.lanes) for each in (value.dtype, kind))
        result = self.emit(f"{cast} {old} {inside.name} to {new}", kind, inside)
        if is_rounded_up:
            beyond = self.test("oge", value, self.constant(float(end), value))
            result = self.choose(beyond, self.constant(dtype.highest, result), result)
        result = self.choose(self.test("ord", value, value), result, self.constant(0, result))
        return self.convert(result, dtype) if is_short else result

    def _compared(self, fn: Fn, a: Val, b: Val) -> Val:
        if a.dtype.is_float:
            return self.test(_FLOAT_PREDICATE[fn], a, b)
        predicate = _INT_PREDICATE[fn]
        if fn in (Fn.LT, Fn.LE):
            predicate = ("s" if a.dtype.is_int and a.dtype.is_signed else "u") + predicate
        return self.test(predicate, a, b)

    def _on_bools(self, fn: Fn, args: tuple[Val, ...]) -> Val:
        if fn in _BOOL_OPERATION:
            return self.binary(_BOOL_OPERATION[fn], *args)
        if fn in (Fn.NOT, Fn.BITNOT):
            return self.binary("xor", args[0], self.constant(1, args[0]))
        if fn in (Fn.ABS, Fn.SIGN, *_ROUNDING):
            return args[0]
        if fn is Fn.SUB:
            return self.binary("xor", *args)
        raise without_meaning(fn, DType.BOOL)

    def _on_floats(self, fn: Fn, args: tuple[Val, ...]) -> Val:
        a = args[0]
        if fn in _FLOAT_OPERATION and a.dtype is DType.F16 and self.target.computes_halves:
            return self._on_halves(_FLOAT_OPERATION[fn], *args)
        if fn in _FLOAT_OPERATION:
            return self.rounded(self.binary(_FLOAT_OPERATION[fn], *args))
        if fn in _INTRINSICS:
            return self.rounded(self.intrinsic(_INTRINSICS[fn], a))
        if fn in _LIBRARY:
            return self.rounded(self.library(_LIBRARY[fn], *args))
        rule = FLOAT_RULES.get(fn)
        if rule is None:
            raise without_meaning(fn, a.dtype)
        return self.rounded(rule(self, *args))

    def _on_halves(self, operation: str, a: Val, b: Val) -> Val:
        """An operation on f16 itself; f32, which stands for it in registers, has its values.

        Rounding once to f16 gives what rounding to f32 and then to f16 gives: f32 has more than
        twice as many bits (Figueroa, SIGNUM Newsletter 1995). LLVM drops the conversions between
        operations.
        """
        wide, half = register_type(DType.F32, a.lanes), memory_type(DType.F16, a.lanes)
        x, y = (self.emit(f"fptrunc {wide} {v.name} to {half}", v.dtype, v) for v in (a, b))
        small = self.emit(f"{operation} {half} {x.name}, {y.name}", a.dtype, x, y)
        return self.emit(f"fpext {half} {small.name} to {wide}", a.dtype, small)

    def _on_ints(self, fn: Fn, args: tuple[Val, ...]) -> Val:
        if fn in _INT_OPERATION:
            return self.binary(_INT_OPERATION[fn], *args)
        if fn in _ROUNDING:
            return args[0]
        rule = INT_RULES.get(fn)
        if rule is None:
            raise without_meaning(fn, args[0].dtype)
        return rule(self, *args)

    def fold_lanes(self, fn: Fn, value: Val, mask: Val | None) -> Val:
        """All lanes of a vector, those of the mask where there is one, folded into a scalar.

        The halves of the vector are folded until one lane is left; lanes are a power of two.
        """
        if mask is not None:
            value = self.choose(mask, value, self.constant(FOLD_IDENTITIES[fn], value))
        while value.lanes > 1:
            half = value.lanes // 2
            low = self.part(value, 0, half)
            value = self.apply(fn, (low, self.part(value, half, half)))
        return value

    def _resized_float(self, value: Val, dtype: DType) -> Val:
        old, new = register_type(value.dtype, value.lanes), register_type(dtype, value.lanes)
        if old == new:
            return self.rounded(Val(value.name, dtype, value.lanes))
        cast = "fpext" if dtype is DType.F64 else "fptrunc"
        return self.rounded(self.emit(f"{cast} {old} {value.name} to {new}", dtype, value))
