"""Skip terms of a sum that padding makes zero."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.expr import (
    Combiner,
    Condition,
    Const,
    Load,
    Select,
    ValueExpr,
    condition_sides,
    conjuncts,
    factors_of,
    free_vars,
    substitute_condition,
)
from tensorwright.schedule.primitive import Primitive, need_stage, refuse
from tensorwright.schedule.state import ScheduleState, Skip, Skipped, Stage


@dataclass(frozen=True, slots=True)
class SkipZeros(Primitive):
    """Leave out the terms along an axis of a sum for which a padded factor is zero.

    The rows above an image are skipped instead of multiplied, where the loops of the row and of the
    tap are outside of the others.  A tap may lie outside the image for some positions of a tile
    only: near the border, code of its own may leave out each position by itself.

    Rewrite:  P[i] = select(c(i), x[i], 0);  for r: C += P[h + r] * e(r)
              ->  for r: if c(h + r) [for some h of the tile]: C += P[h + r] * e(r)
    Requires: the stage is a sum of products of floats with one factor of the tensor; the tensor is
              a stage that is zero unless a condition on its indices holds; the condition depends
              on the axis.  (A skipped term is 0 for every finite factor.)
    """

    stage: str
    tensor: str
    axis: str
    of: Skipped = Skipped.TILES

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where there is nothing to skip."""
        stage = need_stage(self, state, self.stage)
        padded = need_stage(self, state, self.tensor)
        reduction = stage.tensor.reduction
        if reduction is None or reduction.combiner is not Combiner.SUM:
            raise refuse(self, state, f"{self.stage} is not a sum")
        if self.axis not in {axis.name for axis in reduction.axes}:
            remedy = f"one of {', '.join(axis.name for axis in reduction.axes)}"
            raise refuse(self, state, f"{self.axis} is not an axis of the sum", remedy)
        if not stage.tensor.dtype.is_float or self._factor(stage) is None:
            raise refuse(self, state, f"{self.stage} is not a product with one {self.tensor}")
        if _inside(padded) is None:
            raise refuse(self, state, f"{self.tensor} has no border of zeros")
        if not self.conditions(state):
            raise refuse(self, state, f"no border of {self.tensor} lies along {self.axis}")

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the conditions noted."""
        stage = state.stage(self.stage)
        skips = (Skip(condition, self.of) for condition in self.conditions(state))
        return state.with_stage(replace(stage, skips=(*stage.skips, *skips)))

    def _factor(self, stage: Stage) -> Load | None:
        factors = list(factors_of(stage.tensor.body))
        loads = [f for f in factors if isinstance(f, Load) and f.source.name == self.tensor]
        return loads[0] if len(factors) > 1 and len(loads) == 1 else None

    def conditions(self, state: ScheduleState) -> tuple[Condition, ...]:
        """The conditions under which terms along the axis count, over the axes of the stage."""
        reduce_axes = state.stage(self.stage).tensor.reduce_axes
        (axis,) = (a.var for a in reduce_axes if a.name == self.axis)
        borders = self.borders(state)
        return tuple(part for part in borders if axis in free_vars(*condition_sides(part)))

    def borders(self, state: ScheduleState) -> tuple[Condition, ...]:
        """The conditions under which terms count, along any axis, over the axes of the stage."""
        stage, padded = state.stage(self.stage), state.stage(self.tensor)
        load, inside = self._factor(stage), _inside(padded)
        if load is None or inside is None:
            return ()
        places = dict(zip((a.var for a in padded.tensor.axes), load.indices, strict=True))
        moved = (substitute_condition(part, places) for part in inside)
        return tuple(part for part in moved if not isinstance(part, bool))


def _inside(padded: Stage) -> tuple[Condition, ...] | None:
    """The conditions under all of which a tensor is not zero; None if it has no such border."""
    body = padded.tensor.body
    if padded.tensor.reduction is not None or not isinstance(body, Select):
        return None
    is_zero = isinstance(body.otherwise, Const) and body.otherwise.value == 0
    if isinstance(body.condition, ValueExpr) or not is_zero:
        return None
    return conjuncts(body.condition)
