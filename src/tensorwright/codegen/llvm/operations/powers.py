"""Powers with a small constant exponent, as products and square roots: pow takes a call per lane.

Exponents that are multiples of a quarter up to 8 in size qualify (x*x, 1/sqrt(x), and the 3/4 of
local response normalisation).  The result is within 4 ulp; of the special operands, -0 keeps its
sign and minus infinity gives NaN if the exponent is not an integer.
"""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.codegen.llvm.operations.apply import Operations
from tensorwright.codegen.llvm.text.literals import Val
from tensorwright.expr import Fn

_MOST = 8


def constant_power(operations: Operations, base: Val, exponent: float) -> Val | None:
    """base ** exponent; None if only the library can compute it."""
    quarters = exponent * 4
    if base.dtype not in (DType.F32, DType.F64) or abs(exponent) > _MOST or quarters % 1:
        return None
    whole, rest = divmod(int(abs(quarters)), 4)
    one = operations.constant(1.0, base)
    result = one
    square = base
    while whole:
        if whole & 1:
            result = square if result is one else operations.apply(Fn.MUL, (result, square))
        whole >>= 1
        if whole:
            square = operations.apply(Fn.MUL, (square, square))
    root = base
    for quarter in (2, 1):  # a half, then a quarter
        if rest:
            root = operations.apply(Fn.SQRT, (root,))
        if rest & quarter:
            result = root if result is one else operations.apply(Fn.MUL, (result, root))
            rest -= quarter
    return operations.apply(Fn.DIV, (one, result)) if exponent < 0 else result
