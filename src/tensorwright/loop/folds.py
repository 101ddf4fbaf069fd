"""Stores that fold a value into an element: what the lanes of a vector may do to one element."""

from __future__ import annotations

from tensorwright.expr import Apply, Fn, Load, Value, loads_of
from tensorwright.loop.ir import Store

FOLD_IDENTITIES: dict[Fn, float] = {
    Fn.ADD: 0.0,
    Fn.MUL: 1.0,
    Fn.MAX: float("-inf"),
    Fn.MIN: float("inf"),
}
"""For each function of a fold, the operand that leaves a float as it is."""


def folded_operand(store: Store) -> tuple[Fn, Value] | None:
    """The operand that a store folds into its element, a float; None if it does something else.

    The operand does not read the buffer.
    """
    value = store.value
    if not isinstance(value, Apply) or value.fn not in FOLD_IDENTITIES:
        return None
    if not store.buffer.dtype.is_float:
        return None
    old, operand = value.args
    if not isinstance(old, Load) or (old.source, old.indices) != (store.buffer, store.indices):
        return None
    reads = {load.source.name for load in loads_of(operand)}
    return None if store.buffer.name in reads else (value.fn, operand)
