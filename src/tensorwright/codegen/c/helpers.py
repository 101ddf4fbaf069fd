"""Functions and types that kernels use and C lacks; a kernel's text holds those that it needs.

In the bodies T is the element type, W the unsigned type of at least 32 bits that wraps for it, N
its bits, and F the letter that ends the names of its functions in the C library.
"""

from __future__ import annotations

import re

from tensorwright.base import DType
from tensorwright.codegen.c.text import element_type, held_type
from tensorwright.expr import Fn

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
_EXTREME = """static inline int64_t {name}(int64_t a, int64_t b) {{
    return a {sign} b ? a : b;
}}
"""
_FLOOR_DIV = """static inline int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}
"""
_CONVERSIONS = {
    "from_f16": """static inline float from_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff, bits;
    float number;
    if (rest >= 0x7c00) {
        bits = 0x7f800000 | (rest & 0x3ff) << 13;
    } else {
        bits = rest << 13;
        memcpy(&number, &bits, 4);
        number *= 0x1p112f;
        memcpy(&bits, &number, 4);
    }
    bits |= sign;
    memcpy(&number, &bits, 4);
    return number;
}
""",
    "to_f16": """static inline uint16_t to_f16(float number) {
    uint32_t bits, sign;
    memcpy(&bits, &number, 4);
    sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (bits >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (bits < 0x38800000) { /* subnormal: 0.5 has the same unit in the last place */
        number = fabsf(number) + 0.5f;
        memcpy(&bits, &number, 4);
        return (uint16_t)(sign | (bits - 0x3f000000));
    }
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | (bits - (112u << 23)) >> 13);
}
""",
    "from_bf16": """static inline float from_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float number;
    memcpy(&number, &bits, 4);
    return number;
}
""",
    "to_bf16": """static inline uint16_t to_bf16(float number) {
    uint32_t bits;
    memcpy(&bits, &number, 4);
    if (number != number) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
""",
}


class Helpers:
    """The functions and types that one kernel has asked for; mutable."""

    def __init__(self) -> None:
        self._types: dict[str, str] = {}
        self._functions: dict[str, str] = {}

    def text(self) -> str:
        """All of them, types first."""
        return "".join((*self._types.values(), "\n" if self._types else "")) + "\n".join(
            (*self._functions.values(), "")
        )

    def vector(self, dtype: DType, lanes: int) -> str:
        """The type of a vector in registers."""
        name = held_type(dtype, lanes)
        size = lanes * (4 if dtype in (DType.F16, DType.BF16) else dtype.size_bytes)
        self._types[name] = (
            f"typedef {held_type(dtype)} {name} __attribute__((vector_size({size})));\n"
        )
        return name

    def vector_in_memory(self, dtype: DType, lanes: int) -> str:
        """The type of a vector anywhere in memory."""
        name = f"{held_type(dtype, lanes)}_anywhere"
        size = lanes * dtype.size_bytes
        self._types[name] = (
            f"typedef {held_type(dtype)} {name} __attribute__((vector_size({size}), "
            f"aligned({dtype.size_bytes}), may_alias));\n"
        )
        return name

    def function(self, fn: Fn, dtype: DType) -> str | None:
        """The name of a function of elements of a type; None where it has no meaning for it."""
        letter = "" if dtype is DType.F64 else "f"
        if dtype.is_float:
            dtype = DType.F64 if dtype is DType.F64 else DType.F32
            if fn in _LIBRARY:
                return _LIBRARY[fn] + letter
            body = _FLOAT.get(fn)
        else:
            body = (_SIGNED if dtype.is_signed else _UNSIGNED).get(fn) or _INTEGER.get(fn)
        if body is None:
            return None
        name = f"{fn.name.lower()}_{dtype}"
        kind = element_type(dtype)
        wide = "uint64_t" if dtype.size_bytes == 8 else "uint32_t"
        for stands_for, text in (("T", kind), ("W", wide), ("N", f"{dtype.size_bytes * 8}u")):
            body = re.sub(rf"\b{stands_for}\b", text, body)
        body = body.replace("F(", f"{letter}(")
        parameters = f"{kind} a" if fn.arity == 1 else f"{kind} a, {kind} b"
        self._functions[name] = f"static inline {kind} {name}({parameters}) {{\n    {body}\n}}\n"
        return name

    def saturating(self, source: DType, target: DType) -> str:
        """The name of a conversion of floats to integers that gives the nearest end beyond them."""
        name = f"{target}_of_{'f64' if source is DType.F64 else 'f32'}"
        bits = target.size_bytes * 8
        lowest, highest = ("0", f"UINT{bits}_MAX")
        if target.is_signed:
            lowest, highest = f"INT{bits}_MIN", f"INT{bits}_MAX"
        power = bits - target.is_signed
        bottom = f"-0x1p{power}" if target.is_signed else "0"
        self._functions[name] = (
            f"static inline {element_type(target)} {name}(double a) {{\n"
            f"    return a != a ? 0 : a <= {bottom} ? {lowest} : a >= 0x1p{power} ? {highest}\n"
            f"           : ({element_type(target)})a;\n}}\n"
        )
        return name

    def conversion(self, name: str) -> str:
        """One of from_f16, to_f16, from_bf16, to_bf16."""
        self._functions[name] = _CONVERSIONS[name]
        return name

    def extreme(self, *, is_min: bool) -> str:
        """The smaller or the larger of two indices, each of which is written once."""
        name, sign = ("index_min", "<") if is_min else ("index_max", ">")
        self._functions[name] = _EXTREME.format(name=name, sign=sign)
        return name

    def floor_div(self) -> str:
        """The division of indices that rounds down."""
        self._functions["floor_div"] = _FLOOR_DIV
        return "floor_div"
