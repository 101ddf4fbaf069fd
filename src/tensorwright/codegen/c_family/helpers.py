"""Functions and types that kernels use and their language lacks; a text holds those that it needs.

In the bodies T is the element type, W the unsigned type of at least 32 bits that wraps for it, N
its bits, and F the letter that ends the names of its functions in the C library.

Index expressions and conditions as C expressions, for one lane or for all lanes of a vector.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tensorwright.base import DType
from tensorwright.codegen.analysis import IndexEvaluator, Linear, linear_range
from tensorwright.codegen.c_family.dialect import Dialect, held, linear_text
from tensorwright.expr import Fn, Relation

_SIGNED = {
    Fn.DIV: "return b == 0 ? 0 : b == -1 ? (T)(0 - (W)a) : (T)(a / b);",
    Fn.MOD: "return b == 0 || b == -1 ? 0 : (T)(a % b);",
    Fn.FLOORMOD: "T r = b == 0 || b == -1 ? 0 : (T)(a % b);\n"
    "    return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;",
    Fn.POW: "if (b < 0)\n        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;\n"
    "    W result = 1, square = (W)a;\n"
    "    for (; b; b = (T)(b >> 1), square *= square)\n"
    "        if (b & 1) result *= square;\n"
    "    return (T)result;",
    Fn.ABS: "return a < 0 ? (T)(0 - (W)a) : a;",
    Fn.SIGN: "return (T)((a > 0) - (a < 0));",
    Fn.SHR: "return (W)b >= N ? (T)(a < 0 ? -1 : 0) : (T)(a >> b);",
}
_UNSIGNED = {
    Fn.DIV: "return b == 0 ? 0 : (T)(a / b);",
    Fn.MOD: "return b == 0 ? 0 : (T)(a % b);",
    Fn.FLOORMOD: "return b == 0 ? 0 : (T)(a % b);",
    Fn.POW: "W result = 1, square = a;\n"
    "    for (; b; b = (T)(b >> 1), square *= square)\n"
    "        if (b & 1) result *= square;\n"
    "    return (T)result;",
    Fn.ABS: "return a;",
    Fn.SIGN: "return (T)(a > 0);",
    Fn.SHR: "return (W)b >= N ? 0 : (T)(a >> b);",
}
_INTEGER = {
    Fn.MIN: "return b < a ? b : a;",
    Fn.MAX: "return b > a ? b : a;",
    Fn.SHL: "return (W)b >= N ? 0 : (T)((W)a << b);",
}
_FLOAT = {
    Fn.MIN: "return a < b || a != a ? a : b;",
    Fn.MAX: "return a > b || a != a ? a : b;",
    Fn.SIGN: "return a > 0 ? 1 : a < 0 ? -1 : a;",
    Fn.FLOORMOD: "T r = fmodF(a, b);\n"
    "    return r == 0 ? copysignF(0, b) : (r < 0) != (b < 0) ? r + b : r;",
    Fn.RSQRT: "return 1 / sqrtF(a);",
    Fn.SIGMOID: "return 1 / (1 + expF(-a));",
    Fn.ISINF: "return fabsF(a) == INFINITY;",
}
_LIBRARY = {
    Fn.FLOOR: "floor",
    Fn.CEIL: "ceil",
    Fn.ROUND: "rint",
    Fn.TRUNC: "trunc",
    Fn.SQRT: "sqrt",
    Fn.ABS: "fabs",
    Fn.MOD: "fmod",
    **{fn: fn.text for fn in (Fn.POW, Fn.ATAN2, Fn.EXP, Fn.LOG, Fn.LOG1P, Fn.EXPM1)},
    **{fn: fn.text for fn in (Fn.SIN, Fn.COS, Fn.TAN, Fn.ASIN, Fn.ACOS, Fn.ATAN)},
    **{fn: fn.text for fn in (Fn.SINH, Fn.COSH, Fn.TANH, Fn.ASINH, Fn.ACOSH, Fn.ATANH, Fn.ERF)},
}
_EXTREME = """{function} {index} {name}({index} a, {index} b) {{
    return a {sign} b ? a : b;
}}
"""
_FLOOR_DIV = """{function} {index} floor_div({index} a, {index} b) {{
    return a / b - (a % b < 0);
}}
"""


class Helpers:
    """The functions and types that one kernel has asked for; mutable."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.index = dialect.index
        self.fast: Mapping[Fn, str] = {}
        self._types: dict[str, str] = {}
        self._functions: dict[str, str] = {}

    def text(self) -> str:
        """All of them, types first."""
        return "".join((*self._types.values(), "\n" if self._types else "")) + "\n".join(
            (*self._functions.values(), "")
        )

    def vector(self, dtype: DType, lanes: int) -> str:
        """The type of a vector in registers."""
        name = self.dialect.value(dtype, lanes)
        return self._typed(name, held(dtype), lanes, is_anywhere=False)

    def vector_in_memory(self, dtype: DType, lanes: int) -> str:
        """The type of a vector anywhere in memory."""
        name = self.dialect.value(dtype, lanes)
        if self.dialect.vectors.has_types_anywhere:
            name = f"{name}_anywhere"
        return self._typed(name, held(dtype), lanes, is_anywhere=True)

    def _typed(self, name: str, dtype: DType, lanes: int, *, is_anywhere: bool) -> str:
        definition = self.dialect.vectors.typedef
        if definition is not None:
            self._types[name] = definition(name, dtype, lanes, is_anywhere)
        return name

    def function(self, fn: Fn, dtype: DType) -> str | None:
        """The name of a function of elements of a type; None if the type has no such function."""
        letter = "" if dtype is DType.F64 else self.dialect.float_suffix
        if dtype.is_float:
            dtype = DType.F64 if dtype is DType.F64 else DType.F32
            if fn in self.fast and dtype is DType.F32:
                return self.fast[fn]
            if fn in _LIBRARY:
                return _LIBRARY[fn] + letter
            body = self.dialect.float_bodies.get(fn) or _FLOAT.get(fn)
        else:
            body = (_SIGNED if dtype.is_signed else _UNSIGNED).get(fn) or _INTEGER.get(fn)
        if body is None:
            return None
        name = f"{fn.name.lower()}_{dtype}"
        kind = self.dialect.element(dtype)
        wide = self.dialect.element(DType.U64 if dtype.size_bytes == 8 else DType.U32)
        for stands_for, text in (("T", kind), ("W", wide), ("N", f"{dtype.size_bytes * 8}u")):
            body = re.sub(rf"\b{stands_for}\b", text, body)
        body = body.replace("F(", f"{letter}(")
        result = "int" if fn is Fn.ISINF else kind
        parameters = f"{kind} a" if fn.arity == 1 else f"{kind} a, {kind} b"
        self._functions[name] = (
            f"{self.dialect.function} {result} {name}({parameters}) {{\n    {body}\n}}\n"
        )
        return name

    def saturating(self, source: DType, target: DType) -> str:
        """The name of a conversion of floats to integers that saturates."""
        name = f"{target}_of_{'f64' if source is DType.F64 else 'f32'}"
        dialect = self.dialect
        power = target.size_bytes * 8 - target.is_signed
        number = "double" if dialect.has_doubles or source is DType.F64 else "float"
        letter = "" if number == "double" else "f"
        lowest, highest = dialect.ends(target)
        bottom = f"-0x1p{power}{letter}" if target.is_signed else "0"
        self._functions[name] = (
            f"{dialect.function} {dialect.element(target)} {name}({number} a) {{\n"
            f"    return a != a ? 0 : a <= {bottom} ? {lowest} : "
            f"a >= 0x1p{power}{letter} ? {highest}\n"
            f"           : ({dialect.element(target)})a;\n}}\n"
        )
        return name

    def conversion(self, name: str) -> str:
        """One of from_f16, to_f16, from_bf16, to_bf16."""
        return self.named(name, self.dialect.conversions)

    def swizzle(self, bits: int, base: int, shift: int) -> str:
        """The function that gives the position of an element from its row-major offset."""
        name = f"swizzle_{bits}_{base}_{shift}"
        mask = ((1 << bits) - 1) << base
        self._functions[name] = (
            f"{self.dialect.function} {self.index} {name}({self.index} offset) {{\n"
            f"    return offset ^ ((offset >> {shift}) & {mask});\n}}\n"
        )
        return name

    def named(self, name: str, texts: Mapping[str, str]) -> str:
        """A function by its name and its text."""
        self._functions[name] = texts[name]
        return name

    def extreme(self, *, is_min: bool) -> str:
        """The smaller or the larger of two indices, each written once."""
        name, sign = ("index_min", "<") if is_min else ("index_max", ">")
        self._functions[name] = _EXTREME.format(
            name=name, sign=sign, function=self.dialect.function, index=self.index
        )
        return name

    def floor_div(self) -> str:
        """The division of indices that rounds down."""
        self._functions["floor_div"] = _FLOOR_DIV.format(
            function=self.dialect.function, index=self.index
        )
        return "floor_div"


_OPERATORS = {Relation.LT: "<", Relation.LE: "<=", Relation.EQ: "==", Relation.NE: "!="}
_LONG = 60  # characters of two expressions


class VariesByLane(Exception):
    """An index is not linear in the lanes, or a condition differs by lane: go lane by lane."""


class Indices(IndexEvaluator[str]):
    """Evaluate indices; the names of a `Linear` are C expressions that bind as products."""

    def __init__(self, helpers: Helpers) -> None:
        super().__init__()
        self.helpers = helpers
        self.lanes = 1
        self.ranges: dict[str, tuple[int, int]] = {}

    def range_of(self, value: Linear, lanes: int = 0) -> tuple[int, int] | None:
        """Inclusive bounds over the lanes, or None."""
        return linear_range(value, lanes or self.lanes, self.ranges)

    def product(self, left: Linear, right: Linear) -> Linear:
        """left * right."""
        return self._named(f"({self.sum(left)}) * ({self.sum(right)})")

    def quotient(self, value: Linear, divisor: int, bounds: tuple[int, int] | None) -> Linear:
        """floor(value / divisor)."""
        limits = None if bounds is None else (bounds[0] // divisor, bounds[1] // divisor)
        if bounds is not None and bounds[0] >= 0:
            return self._named(f"({self.sum(value)}) / {divisor}", limits)
        text = f"{self.helpers.floor_div()}({self.sum(value)}, {divisor})"
        return self._named(text, limits)

    def quotient_by(self, value: Linear, divisor: Linear) -> Linear:
        """floor(value / divisor) for a positive divisor that is known when the kernel runs."""
        bounds = self.range_of(value)
        if bounds is not None and bounds[0] >= 0:
            return self._named(f"({self.sum(value)}) / ({self.sum(divisor)})", (0, bounds[1]))
        text = f"{self.helpers.floor_div()}({self.sum(value)}, {self.sum(divisor)})"
        return self._named(text, bounds)

    def remainder(self, value: Linear, divisor: int, bounds: tuple[int, int] | None) -> Linear:
        """value - divisor * floor(value / divisor)."""
        limits = (0, divisor - 1)
        if bounds is not None and bounds[0] >= 0:
            return self._named(f"({self.sum(value)}) % {divisor}", limits)
        whole = f"{self.helpers.floor_div()}({self.sum(value)}, {divisor})"
        return self._named(f"({self.sum(value)}) - {divisor} * {whole}", limits)

    def extreme(
        self, left: Linear, right: Linear, bounds: tuple[int, int] | None, *, is_min: bool
    ) -> Linear:
        """The smaller or the larger of two values."""
        a, b = self.sum(left), self.sum(right)
        if len(a) + len(b) > _LONG:  # written twice, nested ones would grow exponentially
            return self._named(f"{self.helpers.extreme(is_min=is_min)}({a}, {b})", bounds)
        return self._named(f"({a} {'<' if is_min else '>'} {b} ? {a} : {b})", bounds)

    def _named(self, text: str, limits: tuple[int, int] | None = None) -> Linear:
        name = f"({text})"
        if limits is not None:
            self.ranges[name] = limits
        return Linear(0, ((name, 1),))

    def sum(self, value: Linear) -> str:
        """A value that all lanes share, as a C expression; VariesByLane if they do not."""
        if value.step:
            raise VariesByLane
        return linear_text(value)

    def compared(self, relation: Relation, gap: Linear) -> str:
        """Whether gap <relation> 0; VariesByLane where lanes decide it differently."""
        return f"({self.sum(gap._replace(const=0))} {_OPERATORS[relation]} {-gap.const})"

    def joined(self, left: str, right: str, *, is_and: bool) -> str:
        """Whether both hold, or one of them."""
        return f"({left} {'&&' if is_and else '||'} {right})"

    def inverted(self, mask: str) -> str:
        """Whether it does not hold."""
        return f"(!{mask})"
