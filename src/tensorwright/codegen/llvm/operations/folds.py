"""A vector loop that carries a reduction: its lanes are folded as a tree, then into the element."""

from __future__ import annotations

from tensorwright.codegen.llvm.operations.apply import Operations
from tensorwright.codegen.llvm.text.literals import Val, register_type
from tensorwright.expr import Fn
from tensorwright.loop import FOLD_IDENTITIES
from tensorwright.machine_code import shuffle_text


def fold_lanes(operations: Operations, fn: Fn, value: Val, mask: Val | None) -> Val:
    """All lanes of a vector, those of the mask where there is one, folded into a scalar.

    The halves of the vector are folded until one lane is left; lanes are a power of two.
    """
    if mask is not None:
        identity = operations.constant(FOLD_IDENTITIES[fn], value)
        value = operations.choose(mask, value, identity)
    while value.lanes > 1:
        half = value.lanes // 2
        low = _part(operations, value, 0, half)
        value = operations.apply(fn, (low, _part(operations, value, half, half)))
    return value


def _part(operations: Operations, value: Val, first: int, count: int) -> Val:
    """Neighbouring lanes of a vector."""
    kind = register_type(value.dtype, value.lanes)
    if count == 1:
        text = f"extractelement {kind} {value.name}, i64 {first}"
        return Val(operations.function.pure(text, value.name), value.dtype)
    text = shuffle_text(kind, value.name, "poison", range(first, first + count))
    return Val(operations.function.pure(text, value.name), value.dtype, count)
