"""Compute a tensor where it is read, or a reader where its operand is finished.

Inline a tensor into its readers, or a reader into its operand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright import expr
from tensorwright.schedule import primitive
from tensorwright.schedule.memory_layout import Scope
from tensorwright.schedule.state import After, At, AtRoot, ScheduleState, Stage, reads_of
from tensorwright.schedule.tails import need_whole_tiles


@dataclass(frozen=True, slots=True)
class ComputeAt(primitive.Primitive):
    """Compute a tensor inside a loop of a reader, as far as the rest of that loop's body reads it.

    Rewrite:  for i: P[i] = ...                     ->   for i_o:
              for i_o: for i_i: C[..] = .. P[..]           for i: P[part of i_o] = ...
                                                           for i_i: C[..] = .. P[..]
    Requires: the stage is at the root and no output; the loop is not inside the stage; every reader
              runs inside the loop.
    Source:   Halide's compute_at (Ragan-Kelley et al., PLDI 2013).
    """

    stage: str
    host: str
    loop: str

    def _need(self, at: primitive.Checks) -> None:
        _need_place(at, self)
        # Theorem: if every reader runs inside the loop, each iteration can compute what it reads by
        # itself.
        for reader in at.state.readers(self.stage):
            if not primitive.is_inside(at.state, reader.name, self.host, self.loop):
                reason = f"{reader.name} reads {self.stage} outside of this loop"
                raise at.refuse(reason, "choose a loop around all readers", at.here)
        primitive.need_legal_nesting(at)
        need_whole_tiles(at)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the stage placed; its tensor becomes local to the loop."""
        stage = state.stage(self.stage)
        scope = Scope.LOCAL if stage.scope is Scope.GLOBAL else stage.scope
        return state.with_stage(replace(stage, placement=At(self.host, self.loop), scope=scope))


@dataclass(frozen=True, slots=True)
class ReverseComputeAt(primitive.Primitive):
    """Compute a reader inside a loop of its operand, after the operand's tile there is finished.

    Rewrite:  for i_o: for i_i: P[..] = ...         ->   for i_o:
              for i: C[i] = .. P[i]                        for i_i: P[..] = ...
                                                           for i in part of i_o: C[i] = .. P[i]
    Requires: the reader is at the root; the loop is not inside the reader; every axis that it
              indexes the operand with is one of its own, unchanged, the same in all reads; no
              reduction of the operand is around the loop; tiles do not overlap where the reader
              folds, nor lie beyond the end of an axis; what else the reader and the stages in its
              loops read is finished by then.
    Source:   TVM TensorIR (Feng et al., ASPLOS 2023).
    """

    stage: str
    host: str
    loop: str

    def _need(self, at: primitive.Checks) -> None:
        stage, host = _need_place(at, self)
        loads = [load for load in expr.loads_of(stage.tensor.body) if load.source.name == self.host]
        if not loads:
            raise at.refuse(f"{self.stage} does not read {self.host}")
        self._check_indices(at, stage, loads)
        primitive.need_legal_nesting(at)
        around = host.loops[: host.loops.index(self.loop) + 1]
        unfinished = [loop for loop in around if loop in host.reduce_loops]
        if unfinished:
            reason = f"{self.host} is not finished before its loop {unfinished[0]} ends"
            raise at.refuse(reason, "choose a loop outside of the reduction", at.here)
        if host.init_at and host.loops.index(host.init_at) < len(around):
            reason = f"the tile starts at {host.init_at}, outside of it"
            raise at.refuse(reason, "choose a loop around the start", at.here)
        need_whole_tiles(at)

    def _check_indices(self, at: primitive.Checks, stage: Stage, loads: list[expr.Load]) -> None:
        # Theorem: where the reader's element [i] reads only the operand's element [i] (in some
        # order of the axes), the readers of a tile are the box with the tile's own ranges; boxes of
        # all tiles cover the reader, whose axes are as long as those of the operand.
        if len({load.indices for load in loads}) > 1:
            reason = f"{self.stage} reads {self.host} in several places"
            raise at.refuse(reason, "", (self.stage, ""))
        own = {axis.var for axis in stage.tensor.axes}
        for load in loads:
            axes = [index for index in load.indices if isinstance(index, expr.Var) and index in own]
            if len(axes) != len(load.indices) or len(set(axes)) != len(axes):
                raise at.refuse(
                    f"{self.stage} reads {load}, not its own position",
                    "",
                    (self.stage, ""),
                )
            at.need_same_lengths(stage, load)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the reader placed; an operand that nothing else reads becomes local."""
        stage = replace(state.stage(self.stage), placement=After(self.host, self.loop))
        changed = state.with_stage(stage)
        host = changed.stage(self.host)
        readers = {reader.name for reader in changed.readers(self.host)}
        if readers == {self.stage} and self.host not in state.outputs:
            changed = changed.with_stage(replace(host, scope=Scope.LOCAL))
        return changed


def _need_place(at: primitive.Checks, step: ComputeAt | ReverseComputeAt) -> tuple[Stage, Stage]:
    """The stage that a step places in a loop, and the stage of that loop, if it may be there."""
    stage = at.stage_of(step.stage)
    host = at.loop_of(step.host, step.loop)
    if step.loop in host.replaced_loops:
        at.need_plain_loops(host, step.loop)
    if primitive.is_within(at.state, step.host, step.stage):
        raise at.refuse("a stage cannot be computed inside itself")
    if isinstance(step, ComputeAt):
        at.need_no_output(step.stage, " and must be whole")
    if not isinstance(stage.placement, AtRoot):
        raise at.refuse(f"{step.stage} already has a place", "place it once")
    return stage, host


@dataclass(frozen=True, slots=True)
class ComputeInline(primitive.Primitive):
    """Replace a tensor by its definition in all of its readers.

    Rewrite:  P[i] = e(i);  C[j] = f(P[g(j)])   ->   C[j] = f(e(g(j)))
    Requires: the tensor is not a reduction and no output, is not scheduled, and no reader uses it
              as an index or is computed by an intrinsic.
    """

    stage: str

    def _need(self, at: primitive.Checks) -> None:
        stage = at.stage_of(self.stage)
        at.need_unscheduled(stage)
        if stage.tensor.reduction is not None:
            reason = f"{self.stage} is a reduction: every read would fold again"
            raise at.refuse(reason, "use compute_at", (self.stage, ""))
        at.need_no_output(self.stage, " and must be stored")
        for reader in at.state.readers(self.stage):
            if _is_index(reader.tensor, self.stage):
                raise at.refuse(f"{reader.name} uses {self.stage} as an index")
            at.need_plain_loops(reader)
        need_whole_tiles(at)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state without the stage."""
        inlined = state.stage(self.stage).tensor

        def on_load(load: expr.Load) -> expr.Value:
            if load.source.name != self.stage:
                return load
            axes = (axis.var for axis in inlined.axes)
            return expr.substitute_value(inlined.body, dict(zip(axes, load.indices, strict=True)))

        stages: list[Stage] = []
        for stage in state.stages:
            if stage.name == self.stage:
                continue
            tensor = stage.tensor
            if self.stage in reads_of(tensor):
                body = expr.map_loads(tensor.body, on_load)
                tensor = expr.Compute(tensor.name, tensor.axes, body, tensor.reduction)
            stages.append(_not_asking(replace(stage, tensor=tensor), self.stage))
        return replace(state, stages=tuple(stages))


def _not_asking(stage: Stage, tensor: str) -> Stage:
    """The stage without prefetches of a tensor that no longer exists."""
    kept = tuple(request for request in stage.prefetches if request.tensor != tensor)
    return replace(stage, prefetches=kept)


def _is_index(tensor: expr.Compute, name: str) -> bool:
    """Whether a tensor uses elements of another one as indices."""
    pending: list[expr.Value] = [tensor.body]
    while pending:
        value = pending.pop()
        for index in expr.indices_of(value):
            for atom in expr.atoms_of(index):
                if isinstance(atom, expr.Element) and atom.source.name == name:
                    return True
        pending += expr.children(value)
    return False


@dataclass(frozen=True, slots=True)
class ReverseComputeInline(primitive.Primitive):
    """Replace an operand that has one reader by that reader's definition.

    Rewrite:  P[i] = e(i);  C[i] = f(P[i])   ->   C[i] = f(e(i)), with the loops of P
    Requires: the reader is the only one, reads the operand at its own position and not as an index,
              is as long as the operand along each axis, and neither folds; all elements of both are
              computed; the operand is not an output; the reader is not scheduled.
    """

    stage: str

    def _need(self, at: primitive.Checks) -> None:
        stage = at.stage_of(self.stage)
        at.need_unscheduled(stage)
        operands = reads_of(stage.tensor)
        computed = [name for name in operands if at.state.has_stage(name)]
        if len(computed) != 1:
            raise at.refuse(f"{self.stage} reads {len(computed)} computed tensors, not one")
        operand = at.state.stage(computed[0])
        if stage.tensor.reduction is not None or operand.tensor.reduction is not None:
            raise at.refuse("a reduction cannot be inlined", "use reverse_compute_at")
        if operand.name in at.state.outputs or len(at.state.readers(operand.name)) != 1:
            raise at.refuse(f"{operand.name} is needed elsewhere too")
        # Theorem: the loops of the operand run through its own box, and through what exists of it.
        # Where the reader's box is that box and its element [i] reads the operand's element [i]
        # only, these loops compute all elements of the reader and nothing else.
        at.need_all_elements(operand)
        at.need_all_elements(stage)
        own = tuple(axis.var for axis in stage.tensor.axes)
        loads = [
            each for each in expr.loads_of(stage.tensor.body) if each.source.name == operand.name
        ]
        for load in loads:
            if load.indices != own:
                raise at.refuse(f"{self.stage} reads {load}, not its own position")
        for load in loads:
            at.need_same_lengths(stage, load)
        if _is_index(stage.tensor, operand.name):
            raise at.refuse(f"{self.stage} uses {operand.name} as an index")
        need_whole_tiles(at)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the operand's stage computing the reader's tensor."""
        stage = state.stage(self.stage)
        (name,) = {
            load.source.name
            for load in expr.loads_of(stage.tensor.body)
            if state.has_stage(load.source.name)
        }
        operand = state.stage(name)
        renamed: dict[expr.Var, expr.Index] = {
            mine.var: theirs.var
            for mine, theirs in zip(stage.tensor.axes, operand.tensor.axes, strict=True)
        }

        def on_load(load: expr.Load) -> expr.Value:
            return operand.tensor.body if load.source.name == name else load

        body = expr.map_loads(expr.substitute_value(stage.tensor.body, renamed), on_load)
        merged = replace(
            operand,
            tensor=expr.Compute(self.stage, operand.tensor.axes, body),
            scope=stage.scope,
            layout=stage.layout,
        )
        stages: list[Stage] = []
        for each in state.stages:
            host = each.placement
            if isinstance(host, (At, After)) and host.stage == name:
                each = replace(each, placement=replace(host, stage=self.stage))
            if each.name != self.stage:
                stages.append(merged if each.name == name else _not_asking(each, name))
        packed = tuple(
            (tensor, self.stage if reader == name else reader) for tensor, reader in state.packed
        )
        return replace(state, stages=tuple(stages), packed=packed)
