"""Give a tensor several axes for one, so that elements far apart are computed together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tensorwright.expr import (
    Axis,
    Compute,
    Condition,
    Element,
    Index,
    Load,
    Placeholder,
    Relation,
    Value,
    Var,
    all_of,
    ceil_div,
    compare,
    floor_div,
    map_condition,
    map_elements,
    mod,
    rebuild,
    substitute_condition,
    substitute_value,
)
from tensorwright.schedule.primitive import Primitive, need_stage, need_unscheduled, refuse
from tensorwright.schedule.state import ScheduleState, Stage, own_loops
from tensorwright.schedule.tails import is_zero


@dataclass(frozen=True, slots=True)
class SplitAxis(Primitive):
    """Store one axis of a tensor as several.

    Rewrite:  P[i] = e(i);  C[j] = f(P[g(j)])
              ->  P[i_o, i_i] = e(i_o*f + i_i);  C[j] = f(P[g(j)//f, g(j)%f])
              With several factors the axes are i_0, i_1, ...; factors[k] is the extent of i_(k+1).
              Where the factors do not divide the extent, the elements of the rest are never
              computed.
    Requires: the stage is not an output and not scheduled; the axis is one of the tensor, not of
              its reduction; its readers have not packed it and are not computed by an intrinsic;
              every factor >= 1; new axes have new names.
    The part that a tile needs is a box.  Of an axis that is cut into blocks, virtual threads,
    threads and inner elements, one thread's part is a box only where these are axes.
    Source:   TVM's transform_layout (Shao et al.: MetaSchedule, NeurIPS 2022).
    """

    stage: str
    axis: str
    factors: tuple[Index, ...]

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the new axes, outermost first."""
        if len(self.factors) == 1:
            return (f"{self.axis}_o", f"{self.axis}_i")
        return tuple(f"{self.axis}_{n}" for n in range(len(self.factors) + 1))

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the axis may not be split."""
        stage = need_stage(self, state, self.stage)
        if self.stage in state.outputs:
            raise refuse(self, state, f"{self.stage} is an output: its shape is the caller's")
        need_unscheduled(self, state, stage)
        names = [axis.name for axis in (*stage.tensor.axes, *stage.tensor.reduce_axes)]
        if self.axis not in [axis.name for axis in stage.tensor.axes]:
            raise refuse(self, state, f"{self.stage} has no axis {self.axis}")
        if not self.factors:
            raise refuse(self, state, "no factor is given", "give the extent of each inner axis")
        for factor in self.factors:
            if isinstance(factor, int) and factor < 1:
                raise refuse(self, state, f"factor {factor} is not positive")
        for name in self.axes:
            if name in names:
                raise refuse(self, state, f"{self.stage} already has an axis {name}")
        # Theorem: i <-> (i//f, i%f) is a bijection, so every reader finds the element that it read.
        for reader in state.readers(self.stage):
            if reader.intrinsic is not None:
                reason = f"{reader.name} is computed by {reader.intrinsic[1]}"
                raise refuse(self, state, reason, "tensorize last")

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the tensor in its new shape, and its readers reading that."""
        stage = state.stage(self.stage)
        split, inside = self._split(stage)
        stand_in = Placeholder(self.stage, split.shape, split.dtype)
        position = [axis.name for axis in stage.tensor.axes].index(self.axis)
        changed = state.with_stage(
            replace(stage, tensor=split, loops=own_loops(split), inside=inside)
        )
        for reader in state.readers(self.stage):
            tensor = self._reading(reader.tensor, stand_in, position)
            changed = changed.with_stage(replace(reader, tensor=tensor))
        return changed

    def _split(self, stage: Stage) -> tuple[Compute, Condition]:
        """The tensor with the new axes, and which of its elements the old one has."""
        tensor = stage.tensor
        old = next(axis for axis in tensor.axes if axis.name == self.axis)
        total = prod(self.factors, start=1)
        extents = (ceil_div(old.extent, total), *self.factors)
        new = tuple(Axis(Var(name), n) for name, n in zip(self.axes, extents, strict=True))
        number: Index = 0
        for axis in new:
            number = number * axis.extent + axis.var
        body = substitute_value(tensor.body, {old.var: number})
        inside = substitute_condition(stage.inside, {old.var: number})
        if not is_zero(old.extent - extents[0] * total):
            inside = all_of(inside, compare(Relation.LT, number, old.extent))
        axes: tuple[Axis, ...] = ()
        for axis in tensor.axes:
            axes += new if axis is old else (axis,)
        return Compute(tensor.name, axes, body, tensor.reduction), inside

    def _reading(self, tensor: Compute, source: Placeholder, position: int) -> Compute:
        """A reader of the tensor as a reader of its new shape."""

        def moved(indices: tuple[Index, ...]) -> tuple[Index, ...]:
            rest = indices[position]
            inner: list[Index] = []
            for factor in reversed(self.factors):
                inner.append(mod(rest, factor))
                rest = floor_div(rest, factor)
            return (*indices[:position], rest, *reversed(inner), *indices[position + 1 :])

        def on_element(element: Element) -> Index:
            is_moved = element.source.name == self.stage
            return Element(source, moved(element.indices)) if is_moved else element

        def on_index(index: Index) -> Index:
            return map_elements(index, on_element)

        def on_load(load: Load) -> Value:
            return Load(source, moved(load.indices)) if load.source.name == self.stage else load

        body = rebuild(
            tensor.body, on_load, on_index, lambda condition: map_condition(condition, on_index)
        )
        return Compute(tensor.name, tensor.axes, body, tensor.reduction)
