"""What each function of the value language is in LLVM, for every element type.

Semantics are those of `tensorwright.expr`: integers wrap, a shift by the width or more gives 0 (or
the sign), an integer divided by 0 gives 0, MIN and MAX propagate NaN. No operation here is undefined
or traps for any operand, so both sides of a select may be computed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

from tensorwright.base import DType, Target, UnsupportedError
from tensorwright.codegen.llvm.builder import (
    Function,
    Val,
    literal_text,
    mangled,
    register_element,
    register_type,
    splat_literal,
)
from tensorwright.codegen.llvm.vector_math import math_function
from tensorwright.expr import Fn

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


class Operations:
    """Apply functions to values in registers."""

    def __init__(self, function: Function, target: Target) -> None:
        self.function = function
        self.target = target

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

    def constant(self, value: float | int | bool, like: Val) -> Val:
        """A number in the type and lanes of a value."""
        text = literal_text(value, like.dtype)
        element = register_element(like.dtype)
        return Val(splat_literal(element, text, like.lanes), like.dtype, like.lanes)

    def fused(self, a: Val, b: Val, c: Val) -> Val:
        """a * b + c with one rounding."""
        lanes = max(a.lanes, b.lanes, c.lanes)
        return self._intrinsic("fma", *(self.function.splat(v, lanes) for v in (a, b, c)))

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
            name = "llvm.fptosi.sat" if dtype.is_signed else "llvm.fptoui.sat"
            ends = (
                f"{mangled(register_element(dtype), value.lanes)}."
                f"{mangled(register_element(source), value.lanes)}"
            )
            return Val(
                self.function.call(f"{name}.{ends}", new, (old, value.name)), dtype, value.lanes
            )
        if dtype.is_float:
            cast = "sitofp" if source.is_int and source.is_signed else "uitofp"
        elif source is not DType.BOOL and dtype.size_bytes == source.size_bytes:
            return Val(value.name, dtype, value.lanes)
        elif source is not DType.BOOL and dtype.size_bytes < source.size_bytes:
            cast = "trunc"
        else:
            cast = "sext" if source.is_int and source.is_signed else "zext"
        result = self._emit(f"{cast} {old} {value.name} to {new}", dtype, value)
        return self._rounded(result)

    def _emit(self, text: str, dtype: DType, *operands: Val) -> Val:
        name = self.function.pure(text, *(operand.name for operand in operands))
        return Val(name, dtype, operands[0].lanes)

    def _binary(self, operation: str, a: Val, b: Val) -> Val:
        kind = register_type(a.dtype, a.lanes)
        return self._emit(f"{operation} {kind} {a.name}, {b.name}", a.dtype, a, b)

    def _test(self, predicate: str, a: Val, b: Val) -> Val:
        compare = "fcmp" if a.dtype.is_float else "icmp"
        kind = register_type(a.dtype, a.lanes)
        return self._emit(f"{compare} {predicate} {kind} {a.name}, {b.name}", DType.BOOL, a, b)

    def _choose(self, mask: Val, then: Val, otherwise: Val) -> Val:
        kind = register_type(then.dtype, then.lanes)
        mask_kind = register_type(DType.BOOL, mask.lanes)
        text = f"select {mask_kind} {mask.name}, {kind} {then.name}, {kind} {otherwise.name}"
        return self._emit(text, then.dtype, then, mask, otherwise)

    def _intrinsic(self, name: str, *args: Val) -> Val:
        first = args[0]
        kind = register_type(first.dtype, first.lanes)
        suffix = mangled(register_element(first.dtype), first.lanes)
        result = self.function.call(f"llvm.{name}.{suffix}", kind, *((kind, a.name) for a in args))
        return Val(result, first.dtype, first.lanes)

    def _library(self, name: str, *args: Val) -> Val:
        first = args[0]
        dtype = DType.F64 if first.dtype is DType.F64 else DType.F32
        found = math_function(name, dtype, first.lanes, self.target)
        self.function.module.need(found)
        kind = register_type(dtype, first.lanes)
        typed = ", ".join(f"{kind} {arg.name}" for arg in args)
        return self._emit(f"call {kind} {found.symbol}({typed})", first.dtype, *args)

    def _compared(self, fn: Fn, a: Val, b: Val) -> Val:
        if a.dtype.is_float:
            return self._test(_FLOAT_PREDICATE[fn], a, b)
        predicate = _INT_PREDICATE[fn]
        if fn in (Fn.LT, Fn.LE):
            predicate = ("s" if a.dtype.is_int and a.dtype.is_signed else "u") + predicate
        return self._test(predicate, a, b)

    def _on_bools(self, fn: Fn, args: tuple[Val, ...]) -> Val:
        if fn in _BOOL_OPERATION:
            return self._binary(_BOOL_OPERATION[fn], *args)
        if fn in (Fn.NOT, Fn.BITNOT):
            return self._binary("xor", args[0], self.constant(1, args[0]))
        if fn in (Fn.ABS, Fn.SIGN, *_ROUNDING):
            return args[0]
        if fn is Fn.SUB:
            return self._binary("xor", *args)
        raise self._refusal(fn, DType.BOOL)

    def _on_floats(self, fn: Fn, args: tuple[Val, ...]) -> Val:
        a = args[0]
        if fn in _FLOAT_OPERATION:
            return self._rounded(self._binary(_FLOAT_OPERATION[fn], *args))
        if fn in _INTRINSICS:
            return self._rounded(self._intrinsic(_INTRINSICS[fn], a))
        if fn in _LIBRARY:
            return self._rounded(self._library(_LIBRARY[fn], *args))
        rule = _FLOAT_RULES.get(fn)
        if rule is None:
            raise self._refusal(fn, a.dtype)
        return self._rounded(rule(self, *args))

    def _on_ints(self, fn: Fn, args: tuple[Val, ...]) -> Val:
        if fn in _INT_OPERATION:
            return self._binary(_INT_OPERATION[fn], *args)
        if fn in _ROUNDING:
            return args[0]
        rule = _INT_RULES.get(fn)
        if rule is None:
            raise self._refusal(fn, args[0].dtype)
        return rule(self, *args)

    def _refusal(self, fn: Fn, dtype: DType) -> UnsupportedError:
        return UnsupportedError(
            stage="codegen",
            where=f"{fn.text} of {dtype}",
            reason="the function has no meaning for this type",
            remedy="cast the operand to f32 or f64",
            operator=fn.text,
        )

    def _resized_float(self, value: Val, dtype: DType) -> Val:
        old, new = register_type(value.dtype, value.lanes), register_type(dtype, value.lanes)
        if old == new:
            return self._rounded(Val(value.name, dtype, value.lanes))
        cast = "fpext" if dtype is DType.F64 else "fptrunc"
        return self._rounded(self._emit(f"{cast} {old} {value.name} to {new}", dtype, value))

    def _rounded(self, value: Val) -> Val:
        """Round an f32 that stands for an f16 or a bf16; other types are as they are."""
        if value.dtype is DType.F16:
            kind, half = register_type(DType.F32, value.lanes), mangled_half(value.lanes)
            small = self._emit(f"fptrunc {kind} {value.name} to {half}", value.dtype, value)
            return self._emit(f"fpext {half} {small.name} to {kind}", value.dtype, small)
        if value.dtype is DType.BF16:
            return self._rounded_bfloat(value)
        return value

    def _rounded_bfloat(self, value: Val) -> Val:
        """To nearest even on the upper 16 bits; a NaN keeps a set bit there."""
        kind, wide = register_type(DType.F32, value.lanes), register_type(DType.U32, value.lanes)
        bits = self._emit(f"bitcast {kind} {value.name} to {wide}", DType.U32, value)
        upper = self._binary("lshr", bits, self.constant(16, bits))
        odd = self._binary("and", upper, self.constant(1, bits))
        bias = self._binary("add", odd, self.constant(0x7FFF, bits))
        rounded = self._binary("add", bits, bias)
        quiet = self._binary("or", bits, self.constant(0x400000, bits))
        is_nan = self._test("uno", value, value)
        chosen = self._choose(is_nan, quiet, rounded)
        kept = self._binary("and", chosen, self.constant(0xFFFF0000, bits))
        return self._emit(f"bitcast {wide} {kept.name} to {kind}", value.dtype, kept)

    def float_extreme(self, fn: Fn, a: Val, b: Val) -> Val:
        """MIN or MAX; x86's instruction gives its second operand where one is NaN."""
        predicate = "ogt" if fn is Fn.MAX else "olt"
        if _is_number(b) and not _is_number(a):
            a, b = b, a
        better = self._choose(self._test(predicate, a, b), a, b)
        if _is_number(a):
            return better
        return self._choose(self._test("uno", a, a), a, better)

    def divided(self, fn: Fn, a: Val, b: Val) -> Val:
        """Integer DIV or MOD, truncating; 0 for a zero divisor, wrapping for lowest / -1."""
        signed = a.dtype.is_signed
        operation = ("s" if signed else "u") + ("div" if fn is Fn.DIV else "rem")
        if _is_plain_divisor(b):
            return self._binary(operation, a, b)
        zero, one = self.constant(0, a), self.constant(1, a)
        is_zero = self._test("eq", b, zero)
        safe = self._choose(is_zero, one, b)
        is_minus = self._test("eq", b, self.constant(-1, a)) if signed else None
        if is_minus is not None:
            safe = self._choose(is_minus, one, safe)
        result = self._binary(operation, a, safe)
        if fn is Fn.MOD:
            return result
        if is_minus is not None:
            result = self._choose(is_minus, self._binary("sub", zero, a), result)
        return self._choose(is_zero, zero, result)


def mangled_half(lanes: int) -> str:
    """The LLVM type of so many f16."""
    return "half" if lanes == 1 else f"<{lanes} x half>"


def _scalar_text(value: Val) -> str | None:
    """The literal in every lane of a constant, or None."""
    if value.is_literal and not value.name.startswith("<"):
        return value.name.removeprefix("splat (").rstrip(")").split(" ")[-1]
    return None


def _is_number(value: Val) -> bool:
    """Whether it is a constant other than NaN."""
    text = _scalar_text(value)
    if text is None:
        return False
    return not isnan(_float_of(text))


def _float_of(text: str) -> float:
    bits = int(text, 16)
    exponent, mantissa = (bits >> 52) & 0x7FF, bits & ((1 << 52) - 1)
    return float("nan") if exponent == 0x7FF and mantissa else float(exponent)


def _is_plain_divisor(value: Val) -> bool:
    text = _scalar_text(value)
    return text is not None and int(text) not in (0, -1)


def _floor_mod(ops: Operations, a: Val, b: Val) -> Val:
    rest = ops.divided(Fn.MOD, a, b)
    if not a.dtype.is_signed:
        return rest
    zero = ops.constant(0, a)
    opposite = ops._test("slt", ops._binary("xor", rest, b), zero)
    some = ops._test("ne", rest, zero)
    shifted = ops._binary("add", rest, b)
    return ops._choose(ops._binary("and", opposite, some), shifted, rest)


def _floor_mod_float(ops: Operations, a: Val, b: Val) -> Val:
    rest = ops._library("fmod", a, b)
    zero = ops.constant(0, a)
    some = ops._test("une", rest, zero)
    opposite = ops._binary("xor", ops._test("olt", rest, zero), ops._test("olt", b, zero))
    shifted = ops._rounded(ops._binary("fadd", rest, b))
    moved = ops._choose(ops._binary("and", some, opposite), shifted, rest)
    return ops._choose(some, moved, ops._intrinsic("copysign", zero, b))


def _sign_float(ops: Operations, a: Val) -> Val:
    one, zero = ops.constant(1, a), ops.constant(0, a)
    nonzero = ops._test("one", a, zero)
    return ops._choose(nonzero, ops._intrinsic("copysign", one, a), a)


def _sign_int(ops: Operations, a: Val) -> Val:
    zero, one = ops.constant(0, a), ops.constant(1, a)
    result = ops._choose(ops._test("ne", a, zero), one, zero)
    if a.dtype.is_signed:
        result = ops._choose(ops._test("slt", a, zero), ops.constant(-1, a), result)
    return result


def _sigmoid(ops: Operations, a: Val) -> Val:
    negative = ops._emit(f"fneg {register_type(a.dtype, a.lanes)} {a.name}", a.dtype, a)
    one = ops.constant(1, a)
    return ops._binary("fdiv", one, ops._binary("fadd", one, ops._library("exp", negative)))


def _is_infinite(ops: Operations, a: Val) -> Val:
    return ops._test("oeq", ops._intrinsic("fabs", a), ops.constant(float("inf"), a))


def _negated_float(ops: Operations, a: Val) -> Val:
    return ops._emit(f"fneg {register_type(a.dtype, a.lanes)} {a.name}", a.dtype, a)


def _reciprocal_root(ops: Operations, a: Val) -> Val:
    return ops._binary("fdiv", ops.constant(1, a), ops._intrinsic("sqrt", a))


def _absolute_int(ops: Operations, a: Val) -> Val:
    if not a.dtype.is_signed:
        return a
    negative = ops._test("slt", a, ops.constant(0, a))
    return ops._choose(negative, ops._binary("sub", ops.constant(0, a), a), a)


def _shifted(ops: Operations, fn: Fn, a: Val, amount: Val) -> Val:
    bits = a.dtype.size_bytes * 8
    limit = ops.constant(bits - 1, a)
    fits = ops._test("ule", amount, limit)
    kept = ops._choose(fits, amount, limit)
    if fn is Fn.SHR and a.dtype.is_signed:
        return ops._binary("ashr", a, kept)
    result = ops._binary("shl" if fn is Fn.SHL else "lshr", a, kept)
    return ops._choose(fits, result, ops.constant(0, a))


def _int_power(ops: Operations, base: Val, exponent: Val) -> Val:
    """Square and multiply over all bits of the exponent; negative exponents truncate like 1/x."""
    zero, one = ops.constant(0, base), ops.constant(1, base)
    result, square = one, base
    bits = base.dtype.size_bytes * 8
    for bit in range(bits - 1 if base.dtype.is_signed else bits):
        shifted = ops._binary("lshr", exponent, ops.constant(bit, base))
        picked = ops._test("ne", ops._binary("and", shifted, one), zero)
        result = ops._choose(picked, ops._binary("mul", result, square), result)
        square = ops._binary("mul", square, square)
    if not base.dtype.is_signed:
        return result
    minus = ops.constant(-1, base)
    is_unit = ops._binary("or", ops._test("eq", base, one), ops._test("eq", base, minus))
    inverse = ops._choose(is_unit, result, zero)
    return ops._choose(ops._test("slt", exponent, zero), inverse, result)


def _int_extreme(ops: Operations, fn: Fn, a: Val, b: Val) -> Val:
    return ops._intrinsic(("s" if a.dtype.is_signed else "u") + fn.text, a, b)


_FLOAT_RULES: dict[Fn, Callable[..., Val]] = {
    Fn.MIN: lambda ops, a, b: ops.float_extreme(Fn.MIN, a, b),
    Fn.MAX: lambda ops, a, b: ops.float_extreme(Fn.MAX, a, b),
    Fn.FLOORMOD: _floor_mod_float,
    Fn.NEG: _negated_float,
    Fn.SIGN: _sign_float,
    Fn.RSQRT: _reciprocal_root,
    Fn.SIGMOID: _sigmoid,
    Fn.ISNAN: lambda ops, a: ops._test("uno", a, a),
    Fn.ISINF: _is_infinite,
}
_INT_RULES: dict[Fn, Callable[..., Val]] = {
    Fn.DIV: lambda ops, a, b: ops.divided(Fn.DIV, a, b),
    Fn.MOD: lambda ops, a, b: ops.divided(Fn.MOD, a, b),
    Fn.FLOORMOD: _floor_mod,
    Fn.MIN: lambda ops, a, b: _int_extreme(ops, Fn.MIN, a, b),
    Fn.MAX: lambda ops, a, b: _int_extreme(ops, Fn.MAX, a, b),
    Fn.POW: _int_power,
    Fn.NEG: lambda ops, a: ops._binary("sub", ops.constant(0, a), a),
    Fn.ABS: _absolute_int,
    Fn.SIGN: _sign_int,
    Fn.BITNOT: lambda ops, a: ops._binary("xor", a, ops.constant(-1, a)),
    Fn.SHL: lambda ops, a, b: _shifted(ops, Fn.SHL, a, b),
    Fn.SHR: lambda ops, a, b: _shifted(ops, Fn.SHR, a, b),
    Fn.ISNAN: lambda ops, a: ops._test("ne", a, a),
    Fn.ISINF: lambda ops, a: ops._test("ne", a, a),
}
