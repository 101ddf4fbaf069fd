"""LLVM IR: its text, and the object code that is made of it.

`text.py` says what all writers of LLVM's text have in common. The code generator adds its own
(`codegen/llvm`); what the runtime and the models compile when they start is written as a
`NativeFunction`, on `native_function.py`. `compilation.py` makes object code; import it on its own:
it loads LLVM, which nothing needs that runs what was compiled before.
"""

from tensorwright.machine_code.native_function import (
    Kind, NativeArray, NativeFunction, Number, Operand, Variable,
)
from tensorwright.machine_code.text import (
    LIBM_BINARY, LIBM_SYMBOLS, LIBM_UNARY, FunctionText, Lines, Module, flat, float_literal,
    mangled, shuffle_text, splat_literal, vector_type,
)
