"""LLVM back end: IR text in, object code out.

Read machine.py first (text to object code), then vector_math.py (exp and its like as text).
"""

from tensorwright.codegen.llvm.machine import (
    PIPELINE_VERSION,
    Level,
    assembly,
    compile_module,
    create_machine,
    feature_flags,
    pipeline_key,
)
from tensorwright.codegen.llvm.math_emitter import float_literal, vector_type
from tensorwright.codegen.llvm.vector_math import (
    LIBM_SYMBOLS,
    MATH_FUNCTIONS,
    MathFunction,
    has_vector_code,
    math_function,
)

__all__ = [
    "LIBM_SYMBOLS",
    "MATH_FUNCTIONS",
    "PIPELINE_VERSION",
    "Level",
    "MathFunction",
    "assembly",
    "compile_module",
    "create_machine",
    "feature_flags",
    "float_literal",
    "has_vector_code",
    "math_function",
    "pipeline_key",
    "vector_type",
]
