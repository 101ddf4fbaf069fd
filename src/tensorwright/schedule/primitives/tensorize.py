"""Let one hardware instruction do the work of the innermost loops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

from tensorwright.expr import (
    Compute,
    Load,
    Value,
    Var,
    children,
    condition_sides,
    conjuncts,
    free_vars,
    named_sizes_of,
    simplify,
    substitute,
    terms_of,
)
from tensorwright.schedule.analysis import Nest, analyse
from tensorwright.schedule.execution import ForKind
from tensorwright.schedule.intrinsics import INTRINSICS, find_meaning, stride_along
from tensorwright.schedule.primitive import Primitive, need_loop_of, refuse
from tensorwright.schedule.state import At, ScheduleState, Stage


@dataclass(frozen=True, slots=True)
class Tensorize(Primitive):
    """Replace the loops from one inwards by an intrinsic.

    Rewrite:  for q in 0..16: for m in 0..4: C[q] += i32(A[m]) * i32(B[q, m])
              ->   dot4_u8i8_i32(&C[0], &A[0], &B[0, 0])
    Requires: the loops from `loop` inwards are those of the intrinsic's meaning, with its extents,
              and are not marked; the stage folds as the meaning does, its expression is that of
              the meaning, and its operands have the same strides along the loops (constants packed
              by an earlier pack_constant do); a result of several axes is computed inside another
              stage, where its tiles are laid out one after another, and for all sizes as a whole.
    Source:   TVM's tensorize (Chen et al., OSDI 2018, section 4.3).
    """

    stage: str
    loop: str
    intrinsic: str

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the loops do not do what the intrinsic does."""
        stage = need_loop_of(self, state, self.stage, self.loop)
        here = (self.stage, self.loop)
        meaning = find_meaning(self.intrinsic)
        if meaning is None:
            names = ", ".join(each.name for each in INTRINSICS)
            raise refuse(self, state, f"there is no intrinsic {self.intrinsic}", f"one of {names}")
        nest = analyse(state).nests[self.stage]
        inner = stage.loops[stage.loops.index(self.loop) :]
        marked = next((each for each in inner if stage.kind(each) is not ForKind.SERIAL), None)
        if marked is not None:
            reason = f"loop {marked} is already marked, and the intrinsic replaces it"
            raise refuse(self, state, reason, "tensorize without that mark", (self.stage, marked))
        wanted = (*meaning.axes, *meaning.reduce_axes)
        extents = tuple(nest.extents[loop] for loop in inner)
        if extents != tuple(axis.extent for axis in wanted):
            shape = " x ".join(str(axis.extent) for axis in wanted)
            reason = f"the loops run {' x '.join(map(str, extents))} times, the intrinsic {shape}"
            raise refuse(self, state, reason, "split and reorder the loops first", here)
        reducing = [loop in stage.reduce_loops for loop in inner]
        if reducing != [axis in meaning.reduce_axes for axis in wanted]:
            raise refuse(self, state, "other loops carry the reduction than in the intrinsic")
        if nest.guards is not True:
            raise refuse(self, state, f"the loops are guarded by {nest.guards}", "", here)
        # Theorem: equal folds of equal expressions over equal boxes, whose operands lie at equal
        # distances, read and write the same elements and compute the same.
        loops = [nest.variables[loop] for loop in inner]
        match = _Match(state, stage, nest, dict(zip((a.var for a in wanted), loops, strict=True)))
        difference = match.difference(meaning)
        if difference:
            raise refuse(self, state, difference, "", (self.stage, ""))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loops standing for the intrinsic."""
        stage = state.stage(self.stage)
        return state.with_stage(replace(stage, intrinsic=(self.loop, self.intrinsic)))


@dataclass(frozen=True, slots=True)
class _Match:
    """A comparison of a stage with a meaning; `loops` maps the meaning's axes to loop variables."""

    state: ScheduleState
    stage: Stage
    nest: Nest
    loops: dict[Var, Var]

    def difference(self, meaning: Compute) -> str:
        """The first difference for a message, "" if there is none."""
        tensor = self.stage.tensor
        if tensor.reduction is None or meaning.reduction is None:
            return f"{tensor.name} folds nothing"
        if tensor.reduction.combiner is not meaning.reduction.combiner:
            return f"{tensor.name} folds with {tensor.reduction.combiner.value}"
        result = Load(tensor, tuple(axis.var for axis in tensor.axes))
        wanted = Load(meaning, tuple(axis.var for axis in meaning.axes))
        stored = self._load(result, wanted) if len(meaning.axes) == 1 else self._tile(meaning)
        return stored or self._value(tensor.body, meaning.body)

    def _tile(self, meaning: Compute) -> str:
        """Why the stage's own buffer does not consist of results of the meaning; "" if it does."""
        tensor = self.stage.tensor
        if not isinstance(self.stage.placement, At):
            return f"{tensor.name} is not computed inside another stage"
        inside = {self.loops[axis.var] for axis in meaning.axes}
        for condition in conjuncts(self.nest.overhang):
            sides = (*condition_sides(condition),)
            if named_sizes_of(*sides) and inside & free_vars(*sides):
                return f"a part of a tile is computed where {condition}"
        bounds = analyse(self.state).bounds
        local = [
            dict(terms_of(simplify(self.nest.axis_values[axis.var] - low, bounds)))
            for axis, low in zip(tensor.axes, self.nest.region.low, strict=True)
        ]
        for axis in meaning.axes:
            loop = self.loops[axis.var]
            along = [terms for terms in local if loop in free_vars(*chain(*terms))]
            if len(along) != 1 or along[0].pop((loop,), 0) != 1:
                return f"{loop} is not the innermost loop along one axis of {tensor.name}"
            if any(step % axis.length for step in along[0].values()):
                return f"tiles along {loop} do not begin at multiples of {axis.length}"
        return ""

    def _value(self, mine: Value, theirs: Value) -> str:
        if isinstance(mine, Load) and isinstance(theirs, Load):
            return self._load(mine, theirs)
        same_kind = type(mine) is type(theirs) and mine.dtype is theirs.dtype
        same_function = getattr(mine, "fn", None) is getattr(theirs, "fn", None)
        if not same_kind or not same_function or not children(mine):
            return f"{mine} is not {theirs}"
        pairs = zip(children(mine), children(theirs), strict=True)
        return next((text for a, b in pairs if (text := self._value(a, b))), "")

    def _load(self, mine: Load, theirs: Load) -> str:
        if mine.dtype is not theirs.dtype:
            return f"{mine.source.name} is {mine.dtype}, the intrinsic wants {theirs.dtype}"
        if (mine.source.name, self.stage.name) in self.state.packed:
            return ""
        values = self.nest.axis_values
        bounds = analyse(self.state).bounds
        indices = tuple(simplify(substitute(i, values), bounds) for i in mine.indices)
        for axis, loop in self.loops.items():
            stride, wanted = (
                stride_along(mine, indices, loop),
                stride_along(theirs, theirs.indices, axis),
            )
            is_free = stride is not None and not isinstance(wanted, int)
            if stride != wanted and not is_free:
                return f"{mine.source.name} has stride {stride} along {loop}, not {wanted}"
        return ""
