"""LLVM back end: IR text in, object code out.

From loop program to text: backend.py, then statements.py and values.py, on `memory/` (index values
and accesses), `operations/` (functions of values), `math/` (mathematical functions on vectors) and
`text/` (scopes, values in registers, single instructions). `codes.py` and `tables.py` find codes of
numbers and functions of a byte among values. `machine_code/` has what all of LLVM's
text is written with, and makes object code of it.
"""

from tensorwright.codegen.llvm.backend import BACKEND, emit
from tensorwright.codegen.llvm.math import MATH_FUNCTIONS, math_function
from tensorwright.machine_code import float_literal
