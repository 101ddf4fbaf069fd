"""The functions of the value language in LLVM.

The functions on floats for which LLVM has no single operation.

The functions on integers. Nothing here traps or is undefined for any operand.

The functions of the value language in LLVM, for every element type.

Semantics are those of `tensorwright.expr`: integers wrap, a shift by the width or more gives 0 (or
the sign), an integer divided by 0 gives 0, MIN and MAX propagate NaN. Nothing here is undefined or
traps for any operand, so both sides of a select may be computed.

Powers with a small constant exponent, as products and square roots: pow takes a call per lane.

Exponents that are multiples of a quarter up to 8 in size qualify (x*x, 1/sqrt(x), and the 3/4 of
local response normalisation).  The result is within 4 ulp; of the special operands, -0 keeps its
sign and minus infinity gives NaN if the exponent is not an integer.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

import numpy as np

from tensorwright import machine_code
from tensorwright.base import DType
from tensorwright.codegen.backend import without_meaning
from tensorwright.codegen.llvm.text import Lanewise, Val, memory_type, register_type, scalar_literal
from tensorwright.expr import Fn
from tensorwright.loop import FOLD_IDENTITIES


def _extreme(ops: Lanewise, fn: Fn, a: Val, b: Val) -> Val:
    """MIN or MAX; x86's instruction gives its second operand where one is NaN.

    The first operand of an update is the accumulator: only the other one is tested for NaN, off
    the chain of updates. A constant NaN keeps LLVM from joining the two choices, which would put
    the test back on the chain.
    """
    predicate = "ogt" if fn is Fn.MAX else "olt"
    if not _is_number(a):
        a, b = b, a
    better = ops.choose(ops.test(predicate, a, b), a, b)
    if _is_number(a):
        return better
    return ops.choose(ops.test("uno", a, a), ops.constant(float("nan"), a), better)


def _is_number(value: Val) -> bool:
    """Whether it is a constant other than NaN."""
    text = scalar_literal(value)
    if text is None:
        return False
    return not isnan(_float_of(text))


def _float_of(text: str) -> float:
    bits = int(text, 16)
    exponent, mantissa = (bits >> 52) & 0x7FF, bits & ((1 << 52) - 1)
    return float("nan") if exponent == 0x7FF and mantissa else float(exponent)


def _floor_mod_float(ops: Lanewise, a: Val, b: Val) -> Val:
    rest = ops.library("fmod", a, b)
    zero = ops.constant(0, a)
    some = ops.test("une", rest, zero)
    opposite = ops.binary("xor", ops.test("olt", rest, zero), ops.test("olt", b, zero))
    shifted = ops.rounded(ops.binary("fadd", rest, b))
    moved = ops.choose(ops.binary("and", some, opposite), shifted, rest)
    return ops.choose(some, moved, ops.intrinsic("copysign", zero, b))


def _sign_float(ops: Lanewise, a: Val) -> Val:
    one, zero = ops.constant(1, a), ops.constant(0, a)
    nonzero = ops.test("one", a, zero)
    return ops.choose(nonzero, ops.intrinsic("copysign", one, a), a)


def _sigmoid(ops: Lanewise, a: Val) -> Val:
    one = ops.constant(1, a)
    power = ops.library("exp", _negated_float(ops, a))
    return ops.binary("fdiv", one, ops.binary("fadd", one, power))


def _is_infinite(ops: Lanewise, a: Val) -> Val:
    return ops.test("oeq", ops.intrinsic("fabs", a), ops.constant(float("inf"), a))


def _negated_float(ops: Lanewise, a: Val) -> Val:
    return ops.emit(f"fneg {register_type(a.dtype, a.lanes)} {a.name}", a.dtype, a)


def _reciprocal_root(ops: Lanewise, a: Val) -> Val:
    return ops.binary("fdiv", ops.constant(1, a), ops.intrinsic("sqrt", a))


FLOAT_RULES: dict[Fn, Callable[..., Val]] = {
    Fn.MIN: lambda ops, a, b: _extreme(ops, Fn.MIN, a, b),
    Fn.MAX: lambda ops, a, b: _extreme(ops, Fn.MAX, a, b),
    Fn.FLOORMOD: _floor_mod_float,
    Fn.NEG: _negated_float,
    Fn.SIGN: _sign_float,
    Fn.RSQRT: _reciprocal_root,
    Fn.SIGMOID: _sigmoid,
    Fn.ISNAN: lambda ops, a: ops.test("uno", a, a),
    Fn.ISINF: _is_infinite,
}
"""The function on vectors of floats, before rounding to a narrower type than f32."""


def _divided(ops: Lanewise, fn: Fn, a: Val, b: Val) -> Val:
    """Integer DIV or MOD, truncating; 0 for a zero divisor, wrapping for lowest / -1."""
    signed = a.dtype.is_signed
    operation = ("s" if signed else "u") + ("div" if fn is Fn.DIV else "rem")
    if _is_plain_divisor(b):
        return ops.binary(operation, a, b)
    zero, one = ops.constant(0, a), ops.constant(1, a)
    is_zero = ops.test("eq", b, zero)
    safe = ops.choose(is_zero, one, b)
    is_minus = ops.test("eq", b, ops.constant(-1, a)) if signed else None
    if is_minus is not None:
        safe = ops.choose(is_minus, one, safe)
    result = ops.binary(operation, a, safe)
    if fn is Fn.MOD:
        return result
    if is_minus is not None:
        result = ops.choose(is_minus, ops.binary("sub", zero, a), result)
    return ops.choose(is_zero, zero, result)


def _is_plain_divisor(value: Val) -> bool:
    text = scalar_literal(value)
    return text is not None and int(text) not in (0, -1)


def _floor_mod(ops: Lanewise, a: Val, b: Val) -> Val:
    rest = _divided(ops, Fn.MOD, a, b)
    if not a.dtype.is_signed:
        return rest
    zero = ops.constant(0, a)
    opposite = ops.test("slt", ops.binary("xor", rest, b), zero)
    some = ops.test("ne", rest, zero)
    shifted = ops.binary("add", rest, b)
    return ops.choose(ops.binary("and", opposite, some), shifted, rest)


def _sign_int(ops: Lanewise, a: Val) -> Val:
    zero, one = ops.constant(0, a), ops.constant(1, a)
    result = ops.choose(ops.test("ne", a, zero), one, zero)
    if a.dtype.is_signed:
        result = ops.choose(ops.test("slt", a, zero), ops.constant(-1, a), result)
    return result


def _absolute_int(ops: Lanewise, a: Val) -> Val:
    if not a.dtype.is_signed:
        return a
    negative = ops.test("slt", a, ops.constant(0, a))
    return ops.choose(negative, ops.binary("sub", ops.constant(0, a), a), a)


def _shifted(ops: Lanewise, fn: Fn, a: Val, amount: Val) -> Val:
    bits = a.dtype.size_bytes * 8
    text = scalar_literal(amount)
    if text is not None and 0 <= int(text) < bits:
        way = "shl" if fn is Fn.SHL else "ashr" if a.dtype.is_signed else "lshr"
        return ops.binary(way, a, amount)
    limit = ops.constant(bits - 1, a)
    fits = ops.test("ule", amount, limit)
    kept = ops.choose(fits, amount, limit)
    if fn is Fn.SHR and a.dtype.is_signed:
        return ops.binary("ashr", a, kept)
    result = ops.binary("shl" if fn is Fn.SHL else "lshr", a, kept)
    return ops.choose(fits, result, ops.constant(0, a))


def _int_power(ops: Lanewise, base: Val, exponent: Val) -> Val:
    """Square and multiply over all bits of the exponent; negative exponents truncate like 1/x."""
    zero, one = ops.constant(0, base), ops.constant(1, base)
    result, square = one, base
    bits = base.dtype.size_bytes * 8
    for bit in range(bits - 1 if base.dtype.is_signed else bits):
        shifted = ops.binary("lshr", exponent, ops.constant(bit, base))
        picked = ops.test("ne", ops.binary("and", shifted, one), zero)
        result = ops.choose(picked, ops.binary("mul", result, square), result)
        square = ops.binary("mul", square, square)
    if not base.dtype.is_signed:
        return result
    minus = ops.constant(-1, base)
    is_unit = ops.binary("or", ops.test("eq", base, one), ops.test("eq", base, minus))
    inverse = ops.choose(is_unit, result, zero)
    return ops.choose(ops.test("slt", exponent, zero), inverse, result)


def _int_extreme(ops: Lanewise, fn: Fn, a: Val, b: Val) -> Val:
    return ops.intrinsic(("s" if a.dtype.is_signed else "u") + fn.text, a, b)


INT_RULES: dict[Fn, Callable[..., Val]] = {
    Fn.DIV: lambda ops, a, b: _divided(ops, Fn.DIV, a, b),
    Fn.MOD: lambda ops, a, b: _divided(ops, Fn.MOD, a, b),
    Fn.FLOORMOD: _floor_mod,
    Fn.MIN: lambda ops, a, b: _int_extreme(ops, Fn.MIN, a, b),
    Fn.MAX: lambda ops, a, b: _int_extreme(ops, Fn.MAX, a, b),
    Fn.POW: _int_power,
    Fn.NEG: lambda ops, a: ops.binary("sub", ops.constant(0, a), a),
    Fn.ABS: _absolute_int,
    Fn.SIGN: _sign_int,
    Fn.BITNOT: lambda ops, a: ops.binary("xor", a, ops.constant(-1, a)),
    Fn.SHL: lambda ops, a, b: _shifted(ops, Fn.SHL, a, b),
    Fn.SHR: lambda ops, a, b: _shifted(ops, Fn.SHR, a, b),
    Fn.ISNAN: lambda ops, a: ops.test("ne", a, a),
    Fn.ISINF: lambda ops, a: ops.test("ne", a, a),
}
"""The function on vectors of integers."""


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

    def nearest(self, value: Val) -> Val:
        """The nearest i32, an even one between two, of f32 that are inside its range."""
        kinds = [register_type(each, value.lanes) for each in (DType.I32, DType.F32)]
        parts = (machine_code.mangled(e, value.lanes) for e in ("i32", "float"))
        name = self.function.call(f"llvm.lrint.{'.'.join(parts)}", kinds[0], (kinds[1], value.name))
        return Val(name, DType.I32, value.lanes)

    def entry(self, table: bytes, index: Val) -> Val:
        """The bytes at some places of a table of 256, for at least 16 lanes (AVX512-VBMI)."""
        function, kind, whole = self.function, f"<{index.lanes} x i8>", f"<{_ROW} x i8>"
        parts = f"v{_ROW}i8.v{index.lanes}i8"
        wide = index.name
        if index.lanes < _ROW:
            part = (whole, "poison"), (kind, wide), ("i64", "0")
            wide = function.call(f"llvm.vector.insert.{parts}", whole, *part)
        rows = [
            "<" + ", ".join(f"i8 {entry}" for entry in table[at : at + _ROW]) + ">"
            for at in range(0, len(table), _ROW)
        ]
        low, high = (
            function.call(
                "llvm.x86.avx512.vpermi2var.qi.512", whole, (whole, a), (whole, wide), (whole, b)
            )
            for a, b in (rows[:2], rows[2:])
        )
        is_high = function.pure(f"icmp slt {whole} {wide}, zeroinitializer", wide)
        text = f"select <{_ROW} x i1> {is_high}, {whole} {high}, {whole} {low}"
        entries = function.pure(text, is_high, high, low)
        if index.lanes < _ROW:
            parts = f"v{index.lanes}i8.v{_ROW}i8"
            entries = function.call(
                f"llvm.vector.extract.{parts}", kind, (whole, entries), ("i64", "0")
            )
        return Val(entries, DType.U8, index.lanes)

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


_ROW = 64  # bytes of a register
_MOST = 8


def constant_power(operations: Operations, base: Val, exponent: float) -> Val | None:
    """base ** exponent; None if only the library can compute it."""
    quarters = exponent * 4
    if base.dtype not in (DType.F32, DType.F64) or abs(exponent) > _MOST or quarters % 1:
        return None
    whole, rest = divmod(int(abs(quarters)), 4)
    one = operations.constant(1.0, base)
    result = one
    square = base
    while whole:
        if whole & 1:
            result = square if result is one else operations.apply(Fn.MUL, (result, square))
        whole >>= 1
        if whole:
            square = operations.apply(Fn.MUL, (square, square))
    root = base
    for quarter in (2, 1):  # a half, then a quarter
        if rest:
            root = operations.apply(Fn.SQRT, (root,))
        if rest & quarter:
            result = root if result is one else operations.apply(Fn.MUL, (result, root))
            rest -= quarter
    return operations.apply(Fn.DIV, (one, result)) if exponent < 0 else result
