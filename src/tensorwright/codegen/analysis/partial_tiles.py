"""Partial tiles: unrolled loops whose last iterations are left out by a guard."""

from __future__ import annotations

from tensorwright.expr import (
    Compare,
    Condition,
    Var,
    condition_sides,
    conjuncts,
    free_vars,
    gap_of,
    terms_of,
)
from tensorwright.loop import For, If


def ends_at_guard(loop: For) -> bool:
    """Whether no iteration does anything after the first one whose guard fails.

        for i in 0..14 @unroll: if t*14 + i < n: S[i]

    Theorem:  a guard g - a*i >= 0 with a > 0 that fails for some i fails for all greater ones, and
              so does a conjunction with conditions that do not depend on i.
    """
    return isinstance(loop.body, If) and all(
        _fails_for_good(part, loop.var) for part in conjuncts(loop.body.condition)
    )


def _fails_for_good(condition: Condition, var: Var) -> bool:
    if var not in free_vars(*condition_sides(condition)):
        return True
    gap = gap_of(condition) if isinstance(condition, Compare) else None
    if gap is None:
        return False
    moving = [(atoms, scale) for atoms, scale in terms_of(gap) if var in free_vars(*atoms)]
    return all(atoms == (var,) and scale < 0 for atoms, scale in moving)
