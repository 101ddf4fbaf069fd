"""Take what a sum multiplies each of its terms by out of the sum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import mul

from tensorwright.base import DType
from tensorwright.expr import (
    Combiner,
    Compute,
    Load,
    Placeholder,
    Value,
    factors_of,
    variables_of,
)
from tensorwright.schedule.primitive import (
    Primitive,
    need_all_elements,
    need_new_stage,
    need_stage,
    need_unscheduled,
    refuse,
)
from tensorwright.schedule.state import ScheduleState, fresh_stage


@dataclass(frozen=True, slots=True)
class FactorOut(Primitive):
    """Multiply a sum by a factor, not each of its terms.

    Rewrite:  C[i] = sum over k of a(i) * e(i, k)
              ->   C_sums[i] = sum over k of e(i, k);   C[i] = C_sums[i] * a(i)
    Requires: the tensor is a sum of f32 or f64 that is not scheduled; its terms are products, of
              which some factors depend on what is summed over and some do not.  Float products are
              reassociated: a sum may exceed the element type where its multiple does not.
    """

    stage: str

    @property
    def sums(self) -> str:
        """The name of the stage of sums."""
        return f"{self.stage}_sums"

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where nothing can be taken out."""
        stage = need_stage(self, state, self.stage)
        need_unscheduled(self, state, stage)
        need_all_elements(self, state, stage)
        need_new_stage(self, state, self.sums)
        reduction = stage.tensor.reduction
        here = (self.stage, "")
        if reduction is None or reduction.combiner is not Combiner.SUM:
            raise refuse(self, state, f"{self.stage} is not a sum", "", here)
        if stage.tensor.dtype not in (DType.F32, DType.F64):
            reason = f"sums of {stage.tensor.dtype} are not reordered"
            raise refuse(self, state, reason, "", here)
        # sum of a * e(k) = a * sum of e(k), where a does not depend on k
        fixed, moving = _factors(stage.tensor)
        if not fixed or not moving:
            reason = f"no factor of {self.stage} is the same for all of its terms"
            raise refuse(self, state, reason, "inline what it reads first", here)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the stage of sums before the stage."""
        tensor = state.stage(self.stage).tensor
        fixed, moving = _factors(tensor)
        sums = Compute(self.sums, tensor.axes, reduce(mul, moving), tensor.reduction)
        stand_in = Placeholder(self.sums, sums.shape, sums.dtype)
        read = Load(stand_in, tuple(axis.var for axis in tensor.axes))
        result = Compute(self.stage, tensor.axes, reduce(mul, fixed, read))
        return state.with_stages(self.stage, fresh_stage(sums), fresh_stage(result))


def _factors(tensor: Compute) -> tuple[list[Value], list[Value]]:
    """The factors of each term that are the same for all terms, and the others."""
    folded = {axis.var for axis in tensor.reduce_axes}
    fixed: list[Value] = []
    moving: list[Value] = []
    for factor in factors_of(tensor.body):
        (moving if variables_of(factor) & folded else fixed).append(factor)
    return fixed, moving
