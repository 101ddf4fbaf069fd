"""A vector loop that carries a reduction: its lanes are folded as a tree, then into the element."""

from __future__ import annotations

from tensorwright.codegen.llvm.operations.apply import Operations
from tensorwright.codegen.llvm.text.literals import Val
from tensorwright.expr import Fn
from tensorwright.loop import FOLD_IDENTITIES


def fold_lanes(operations: Operations, fn: Fn, value: Val, mask: Val | None) -> Val:
    """All lanes of a vector, those of the mask where there is one, folded into a scalar.

    The halves of the vector are folded until one lane is left; lanes are a power of two.
    """
    if mask is not None:
        identity = operations.constant(FOLD_IDENTITIES[fn], value)
        value = operations.choose(mask, value, identity)
    while value.lanes > 1:
        half = value.lanes // 2
        low = operations.part(value, 0, half)
        value = operations.apply(fn, (low, operations.part(value, half, half)))
    return value
