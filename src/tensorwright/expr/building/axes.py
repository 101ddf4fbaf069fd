"""Which axes a body uses: its tensor's own, and those that are folded."""

from __future__ import annotations

from tensorwright.expr.symbolic import refused
from tensorwright.expr.tensor import Compute
from tensorwright.expr.value import variables_of


def check_axes(tensor: Compute) -> None:
    """Refuse axes with one name, a variable that no axis binds, an axis folded for nothing.

    Raises:  ExpressionError that names the axis.
    """
    names = [axis.name for axis in (*tensor.axes, *tensor.reduce_axes)]
    for name in names:
        if names.count(name) > 1:
            reason = f"two of its axes are called {name}, and equal names are one variable"
            raise refused(f"axis {name}", reason, "give each a name of its own, and fold it once")
    used = variables_of(tensor.body)
    for name in sorted({var.name for var in used} - set(names)):
        reason = "the body uses this axis, which is neither folded nor an axis of the result"
        raise refused(f"axis {name}", reason, f"sum_over(value, {name}), or another fold")
    for axis in tensor.reduce_axes:
        if axis.var not in used:
            reason = "it is folded, and nothing in the body moves along it"
            remedy = f"use {axis.name} in an index, or do not fold it"
            raise refused(f"axis {axis.name}", reason, remedy)
