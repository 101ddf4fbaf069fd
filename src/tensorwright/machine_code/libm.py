"""The functions of the C mathematical library that object code may call."""

from __future__ import annotations

LIBM_UNARY = (
    *("sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "asinh", "acosh", "atanh"),
    *("exp2", "log2", "log10", "cbrt", "erf", "erfc", "tgamma", "lgamma"),
)
LIBM_BINARY = ("pow", "atan2", "fmod", "hypot", "remainder")

LIBM_SYMBOLS: tuple[str, ...] = tuple(
    name + suffix for name in (*LIBM_UNARY, *LIBM_BINARY, "fma", "sincos") for suffix in ("", "f")
)
"""Symbols of the C library that object code may need from the loader ("sin", "sinf", ...).

LLVM itself calls fma and fmaf where the target has no such instruction, and sincos for the sine and
the cosine of one number.
"""
