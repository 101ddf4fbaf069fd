"""LLVM back end: IR text in, object code out.

From loop program to text: kernel.py, then statements.py and values.py, on `memory/` (index values
and accesses), `operations/` (functions of values), `math/` (mathematical functions on vectors) and
`text/` (names, blocks and scopes). `machine_code/` makes object code of the text.
"""

from tensorwright.codegen.llvm.kernel import emit
from tensorwright.codegen.llvm.math.functions import MATH_FUNCTIONS, math_function
from tensorwright.machine_code import float_literal

__all__ = [
    "MATH_FUNCTIONS",
    "emit",
    "float_literal",
    "math_function",
]
