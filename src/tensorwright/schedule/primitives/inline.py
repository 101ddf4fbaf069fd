"""Inline a tensor into its readers, or a reader into its operand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.expr import (
    Compute,
    Element,
    Index,
    Load,
    Value,
    Var,
    atoms_of,
    children,
    indices_of,
    loads_of,
    map_loads,
    substitute_value,
)
from tensorwright.schedule.primitive import (
    Primitive,
    applied,
    need_all_elements,
    need_plain_loops,
    need_same_lengths,
    need_stage,
    need_unscheduled,
    refuse,
)
from tensorwright.schedule.state import (
    After,
    At,
    ScheduleState,
    Stage,
    reads_of,
)
from tensorwright.schedule.tails import need_whole_tiles


@dataclass(frozen=True, slots=True)
class ComputeInline(Primitive):
    """Replace a tensor by its definition in all of its readers.

    Rewrite:  P[i] = e(i);  C[j] = f(P[g(j)])   ->   C[j] = f(e(g(j)))
    Requires: the tensor is not a reduction and no output, is not scheduled, and no reader uses it
              as an index or is computed by an intrinsic.
    """

    stage: str

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the tensor may not be inlined."""
        stage = need_stage(self, state, self.stage)
        need_unscheduled(self, state, stage)
        if stage.tensor.reduction is not None:
            reason = f"{self.stage} is a reduction: every read would fold again"
            raise refuse(self, state, reason, "use compute_at", (self.stage, ""))
        if self.stage in state.outputs:
            raise refuse(self, state, f"{self.stage} is an output and must be stored")
        for reader in state.readers(self.stage):
            if _is_index(reader.tensor, self.stage):
                raise refuse(self, state, f"{reader.name} uses {self.stage} as an index")
            need_plain_loops(self, state, reader)
        need_whole_tiles(self, state, applied(self, state))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state without the stage."""
        inlined = state.stage(self.stage).tensor

        def on_load(load: Load) -> Value:
            if load.source.name != self.stage:
                return load
            axes = (axis.var for axis in inlined.axes)
            return substitute_value(inlined.body, dict(zip(axes, load.indices, strict=True)))

        stages: list[Stage] = []
        for stage in state.stages:
            if stage.name == self.stage:
                continue
            tensor = stage.tensor
            if self.stage in reads_of(tensor):
                body = map_loads(tensor.body, on_load)
                tensor = Compute(tensor.name, tensor.axes, body, tensor.reduction)
            stages.append(_not_asking(replace(stage, tensor=tensor), self.stage))
        return replace(state, stages=tuple(stages))


def _not_asking(stage: Stage, tensor: str) -> Stage:
    """The stage without prefetches of a tensor that no longer exists."""
    kept = tuple(request for request in stage.prefetches if request.tensor != tensor)
    return replace(stage, prefetches=kept)


def _is_index(tensor: Compute, name: str) -> bool:
    """Whether a tensor uses elements of another one as indices."""
    pending: list[Value] = [tensor.body]
    while pending:
        value = pending.pop()
        for index in indices_of(value):
            for atom in atoms_of(index):
                if isinstance(atom, Element) and atom.source.name == name:
                    return True
        pending += children(value)
    return False


@dataclass(frozen=True, slots=True)
class ReverseComputeInline(Primitive):
    """Replace an operand that has one reader by that reader's definition.

    Rewrite:  P[i] = e(i);  C[i] = f(P[i])   ->   C[i] = f(e(i)), with the loops of P
    Requires: the reader is the only one, reads the operand at its own position and not as an index,
              is as long as the operand along each axis, and neither folds; all elements of both are
              computed; the operand is not an output; the reader is not scheduled.
    """

    stage: str

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the reader may not be inlined."""
        stage = need_stage(self, state, self.stage)
        need_unscheduled(self, state, stage)
        operands = reads_of(stage.tensor)
        computed = [name for name in operands if state.has_stage(name)]
        if len(computed) != 1:
            raise refuse(
                self, state, f"{self.stage} reads {len(computed)} computed tensors, not one"
            )
        operand = state.stage(computed[0])
        if stage.tensor.reduction is not None or operand.tensor.reduction is not None:
            raise refuse(self, state, "a reduction cannot be inlined", "use reverse_compute_at")
        if operand.name in state.outputs or len(state.readers(operand.name)) != 1:
            raise refuse(self, state, f"{operand.name} is needed elsewhere too")
        # Theorem: the loops of the operand run through its own box, and through what exists of it.
        # Where the reader's box is that box and its element [i] reads the operand's element [i]
        # only, these loops compute all elements of the reader and nothing else.
        need_all_elements(self, state, operand)
        need_all_elements(self, state, stage)
        own = tuple(axis.var for axis in stage.tensor.axes)
        loads = [each for each in loads_of(stage.tensor.body) if each.source.name == operand.name]
        for load in loads:
            if load.indices != own:
                raise refuse(self, state, f"{self.stage} reads {load}, not its own position")
        for load in loads:
            need_same_lengths(self, state, stage, load)
        if _is_index(stage.tensor, operand.name):
            raise refuse(self, state, f"{self.stage} uses {operand.name} as an index")
        need_whole_tiles(self, state, applied(self, state))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the operand's stage computing the reader's tensor."""
        stage = state.stage(self.stage)
        (name,) = {
            load.source.name
            for load in loads_of(stage.tensor.body)
            if state.has_stage(load.source.name)
        }
        operand = state.stage(name)
        renamed: dict[Var, Index] = {
            mine.var: theirs.var
            for mine, theirs in zip(stage.tensor.axes, operand.tensor.axes, strict=True)
        }

        def on_load(load: Load) -> Value:
            return operand.tensor.body if load.source.name == name else load

        body = map_loads(substitute_value(stage.tensor.body, renamed), on_load)
        merged = replace(
            operand,
            tensor=Compute(self.stage, operand.tensor.axes, body),
            scope=stage.scope,
            layout=stage.layout,
        )
        stages = tuple(
            merged if s.name == name else _not_asking(_rehost(s, name, self.stage), name)
            for s in state.stages
            if s.name != self.stage
        )
        packed = tuple(
            (tensor, self.stage if reader == name else reader) for tensor, reader in state.packed
        )
        return replace(state, stages=stages, packed=packed)


def _rehost(stage: Stage, old: str, new: str) -> Stage:
    placement = stage.placement
    if isinstance(placement, (At, After)) and placement.stage == old:
        return replace(stage, placement=replace(placement, stage=new))
    return stage
