"""LLVM back end: IR text in, object code out.

From loop program to text: kernel.py, then statements.py, values.py, memory.py, indices.py,
linear.py and builder.py, each built on the next. From text to object code: machine.py. The
mathematical functions: vector_math.py.
"""

from tensorwright.codegen.llvm.intrinsics import INTRINSICS, Intrinsic, find_intrinsic
from tensorwright.codegen.llvm.kernel import KernelSource, emit
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
    math_function,
)

__all__ = [
    "INTRINSICS",
    "LIBM_SYMBOLS",
    "MATH_FUNCTIONS",
    "PIPELINE_VERSION",
    "Intrinsic",
    "KernelSource",
    "Level",
    "MathFunction",
    "assembly",
    "compile_module",
    "create_machine",
    "emit",
    "feature_flags",
    "find_intrinsic",
    "float_literal",
    "math_function",
    "pipeline_key",
    "vector_type",
]
