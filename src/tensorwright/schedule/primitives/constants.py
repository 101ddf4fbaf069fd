"""Constants: compute what depends on them alone, store them in the order in which they are read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.expr import (
    Placeholder,
    Tensor,
    has_element,
    index_tensors_of,
    loads_of,
    named_sizes_of,
)
from tensorwright.schedule.primitive import (
    Primitive,
    need_all_elements,
    need_stage,
    need_unscheduled,
    refuse,
)
from tensorwright.schedule.state import Folded, ScheduleState, Stage, reads_of, redirect


def _obstacle_to_packing(
    state: ScheduleState, stage: Stage, constant: str
) -> tuple[str, str] | None:
    """Why a constant cannot be stored in the order in which a stage reads it, and what to do; None
    where it can.

    A packed copy holds the element of each iteration where the loops find it, so what is read must
    follow from the loops: an index that holds an element of a tensor is known when the program
    runs, and any element may be read in any iteration, again and again.
    """
    body = stage.tensor.body
    places = {load for load in loads_of(body) if load.source.name == constant}
    if len(places) != 1:
        return f"{stage.name} reads {constant} in {len(places)} places, not one", ""
    if constant in index_tensors_of(body):
        return f"{stage.name} uses elements of {constant} as indices", ""
    (load,) = places
    if any(map(has_element, load.indices)):
        return f"{stage.name} reads {constant} where elements of another tensor say", ""
    if len(state.readers(constant)) != 1:
        return f"{constant} has other readers", "cache_read it first"
    return None


@dataclass(frozen=True, slots=True)
class PackConstant(Primitive):
    """Store a constant operand in the order in which the loops of its reader read it.

    Rewrite:  for i: for j: .. W[g(i, j)] ..   ->   P[i, j] = W[g(i, j)], once, when the program is
              built;
                                                    for i: for j: .. P[i, j] ..
    Requires: the tensor is a constant, and the stage is its only reader, reads it in one place,
              where its loops alone say (no element of a tensor), and does not use its elements as
              indices.
    """

    tensor: str
    stage: str

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the constant may not be packed."""
        stage = need_stage(self, state, self.stage)
        if self.tensor not in state.constants:
            reason = f"{self.tensor} is not a constant"
            raise refuse(self, state, reason, "pack only what is known when compiling")
        if any(tensor == self.tensor for tensor, _ in state.packed):
            raise refuse(self, state, f"{self.tensor} is packed already")
        obstacle = _obstacle_to_packing(state, stage, self.tensor)
        if obstacle is not None:
            raise refuse(self, state, *obstacle, (self.stage, ""))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the constant packed."""
        return replace(state, packed=tuple(sorted((*state.packed, (self.tensor, self.stage)))))


@dataclass(frozen=True, slots=True)
class FoldConstant(Primitive):
    """Compute a tensor that depends on a constant alone when the program is built.

    Rewrite:  U[i] = f(W)  ->  the constant U takes the place of W: no loops, its values by the
              evaluator
    Requires: the stage is not scheduled and no output; it reads one constant and nothing else, and
              nothing else reads that constant; its extents are numbers.
    """

    stage: str

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the stage may not be folded."""
        stage = need_stage(self, state, self.stage)
        need_unscheduled(self, state, stage)
        need_all_elements(self, state, stage)
        if self.stage in state.outputs:
            raise refuse(self, state, f"{self.stage} is an output and must be stored")
        read = sorted(reads_of(stage.tensor))
        if len(read) != 1 or read[0] not in state.constants:
            listed = ", ".join(read) or "nothing"
            reason = f"{self.stage} reads {listed}, not one constant"
            raise refuse(self, state, reason, "fold only what is known when compiling")
        if len(state.readers(read[0])) != 1:
            raise refuse(self, state, f"{read[0]} has other readers")
        sizes = named_sizes_of(*stage.tensor.shape)
        if sizes:
            listed = ", ".join(size.name for size in sizes)
            raise refuse(self, state, f"how large {self.stage} is depends on the size {listed}")

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state without the stage, its tensor a constant in place of the one that it read."""
        tensor = state.stage(self.stage).tensor
        name = next(load.source.name for load in loads_of(tensor.body))
        entry = state.source(name)
        former = next((each for each in state.folded if each.tensor.name == name), None)
        source: Tensor = former.tensor if former is not None else entry
        made = redirect(tensor, {name: source})
        folded = Folded(former.source if former is not None else entry, made)
        stand_in = Placeholder(tensor.name, tensor.shape, tensor.dtype)
        return replace(
            state,
            inputs=tuple(stand_in if each is entry else each for each in state.inputs),
            constants=(state.constants - {name}) | {tensor.name},
            stages=tuple(each for each in state.stages if each.name != self.stage),
            folded=(*(each for each in state.folded if each is not former), folded),
        )
