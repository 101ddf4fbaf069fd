"""How types, constants and names are written in C, and the lines of a function."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from tensorwright.base import DType
from tensorwright.codegen.analysis import Linear

_ELEMENTS = {
    DType.F32: "float",
    DType.F64: "double",
    DType.F16: "uint16_t",
    DType.BF16: "uint16_t",
    DType.BOOL: "uint8_t",
}
# Names that C, its library or the text around a kernel has already.
_LANGUAGE = """auto break case char const continue default do double else enum extern float for goto
    if inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while asm typeof unix linux i386 main memcpy isnan NAN INFINITY
    workspace slice args threads first stop id team"""
_MATHEMATICS = """abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc
    exp exp2 expm1 fabs floor fma fmax fmin fmod hypot ldexp lgamma log log10 log1p log2 pow
    remainder    rint round sin sinh sqrt tan tanh tgamma trunc j0 j1 jn y0 y1 yn gamma"""
_RESERVED = frozenset(_LANGUAGE.split()).union(
    name + suffix for name in _MATHEMATICS.split() for suffix in ("", "f", "l")
)
_WORD = re.compile(r"[A-Za-z_]\w*|[0-9][\w.]*")


class Val(NamedTuple):
    """A value: a C expression of one lane, or of a vector of lanes."""

    text: str
    dtype: DType
    lanes: int = 1

    @property
    def is_simple(self) -> bool:
        """Whether it is a name or a number, which may be written twice."""
        return _WORD.fullmatch(self.text) is not None


def element_type(dtype: DType) -> str:
    """The C type of an element in memory."""
    if dtype in _ELEMENTS:
        return _ELEMENTS[dtype]
    return f"{'' if dtype.is_signed else 'u'}int{dtype.size_bytes * 8}_t"


def held(dtype: DType) -> DType:
    """The type in which a value is computed: 16-bit floats are in f32."""
    return DType.F32 if dtype in (DType.F16, DType.BF16) else dtype


def held_type(dtype: DType, lanes: int = 1) -> str:
    """The C type of a value while it is computed."""
    dtype = held(dtype)
    if lanes == 1:
        return element_type(dtype)
    return f"{'u8' if dtype is DType.BOOL else dtype}x{lanes}"


def mask_dtype(dtype: DType) -> DType:
    """The integers that a comparison of vectors gives: as wide as what is compared."""
    return {1: DType.I8, 2: DType.I16, 4: DType.I32, 8: DType.I64}[held(dtype).size_bytes]


def unsigned_dtype(dtype: DType) -> DType:
    """The unsigned integers of the same width."""
    return {1: DType.U8, 2: DType.U16, 4: DType.U32, 8: DType.U64}[dtype.size_bytes]


def literal(value: float | int | bool, dtype: DType) -> str:
    """A constant of a type, exactly."""
    if dtype is DType.BOOL:
        return "1" if value else "0"
    if dtype.is_float:
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            name = "NAN" if number != number else "INFINITY"
            return f"(-{name})" if number < 0 else name
        if held(dtype) is DType.F32:
            text = f"{np.float32(number)!s}f"
        else:
            text = repr(number)
        return f"({text})" if text.startswith("-") else text
    bits = dtype.size_bytes * 8
    wrapped = int(value) & ((1 << bits) - 1)
    if not dtype.is_signed:
        return f"{wrapped}u" if bits < 64 else f"UINT64_C({wrapped})"
    number = wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped
    if bits < 64:
        return f"({number})" if number < 0 and number > -(1 << 31) else _wide(number)
    return f"INT64_C({number})" if number != -(1 << 63) else "INT64_MIN"


def _wide(number: int) -> str:
    return str(number) if number > -(1 << 31) else "INT32_MIN"


def linear_text(value: Linear) -> str:
    """A uniform index value as an expression that binds as a sum."""
    parts = [f"{'-' if c < 0 else '+'} {_scaled(n, abs(c))}" for n, c in value.terms]
    if value.const or not parts:
        parts.append(f"{'-' if value.const < 0 else '+'} {abs(value.const)}")
    text = " ".join(parts)
    return text.removeprefix("+ ") if text.startswith("+") else f"-{text.removeprefix('- ')}"


def _scaled(name: str, coefficient: int) -> str:
    return name if coefficient == 1 else f"{name} * {coefficient}"


def c_name(name: str) -> str:
    """A C identifier near a name."""
    safe = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not safe or safe[0].isdigit() or safe[0] == "_" or safe in _RESERVED:
        safe = f"t_{safe}"
    return safe


class Names:
    """Gives each thing of one function an identifier of its own; mutable."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def fresh(self, name: str) -> str:
        """An identifier near a name that nothing has yet."""
        base = c_name(name)
        candidate, number = base, 1
        while candidate in self._used:
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        return candidate


class Lines:
    """The lines of one function while it is written; mutable."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1

    def add(self, line: str) -> None:
        """Append a line."""
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is appended inside stands in braces after a head."""
        self.add(f"{head} {{".lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self.add("}")
