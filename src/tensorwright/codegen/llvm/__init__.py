"""LLVM back end: IR text in, object code out.

From loop program to text: kernel.py, then statements.py and values.py, on `memory/` (index values
and accesses), `operations/` (functions of values), `math/` (mathematical functions on vectors) and
`text/` (scopes, values in registers, single instructions). `machine_code/` has what all of LLVM's
text is written with, and makes object code of it.
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
