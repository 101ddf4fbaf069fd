"""LLVM IR text in, object code out: what code generators and the runtime share.

The runtime compiles its few hand-written loops when it starts, and imports no code generator.
"""

from tensorwright.machine_code.compilation import (
    Level,
    assembly,
    compile_module,
    create_machine,
    feature_flags,
    pipeline_key,
)
from tensorwright.machine_code.libm import LIBM_BINARY, LIBM_SYMBOLS, LIBM_UNARY

__all__ = [
    "LIBM_BINARY",
    "LIBM_SYMBOLS",
    "LIBM_UNARY",
    "Level",
    "assembly",
    "compile_module",
    "create_machine",
    "feature_flags",
    "pipeline_key",
]
