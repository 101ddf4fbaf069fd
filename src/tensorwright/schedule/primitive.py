"""What a schedule primitive is, and the checks that most of them share.

A primitive is a frozen record.  `check(state)` raises ScheduleError where it may not be applied,
`apply(state)` gives the next state.  Its class name in snake_case is its name in a trace and its
fields, in order, are its arguments there: names as they are, factors as ints or `?decision`, tuples
in brackets, enums by value.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tensorwright.base import ScheduleError
from tensorwright.schedule.render import render
from tensorwright.schedule.state import (
    AtRoot,
    FuseRelation,
    ScheduleState,
    SplitRelation,
    Stage,
)


@runtime_checkable
class Primitive(Protocol):
    """One step of a schedule; implementations are frozen dataclasses."""

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the step is illegal."""

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state after the step; call `check` first."""


def refuse(
    step: object,
    state: ScheduleState,
    reason: str,
    remedy: str = "",
    mark: tuple[str, str] | None = None,
) -> ScheduleError:
    """The error for an illegal step, with the loops shown and the loop (stage, loop) marked."""
    stage, loop = mark or ("", "")
    where = f"loop {loop} of {stage}" if loop else f"stage {stage}" if stage else "refused"
    return ScheduleError(
        where=where, step=str(step), reason=reason, remedy=remedy, program=render(state, mark)
    )


def need_stage(step: object, state: ScheduleState, name: str) -> Stage:
    """The stage of that name, or ScheduleError."""
    if state.has_stage(name):
        return state.stage(name)
    if any(tensor.name == name for tensor in state.inputs):
        raise refuse(step, state, f"{name} is an input and has no loops", "name a computed tensor")
    known = ", ".join(stage.name for stage in state.stages)
    raise refuse(step, state, f"there is no stage {name}", f"one of {known}")


def need_loop(step: object, state: ScheduleState, stage: Stage, loop: str) -> None:
    """Refuse a loop that is not a leaf loop of the stage."""
    if loop in stage.loops:
        return
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and relation.parent == loop:
            into = ", ".join(relation.children)
            raise refuse(step, state, f"loop {loop} was split into {into}", "name one of these")
        if isinstance(relation, FuseRelation) and loop in relation.parents:
            raise refuse(step, state, f"loop {loop} was fused", f"name {relation.child}")
    known = ", ".join(stage.loops)
    raise refuse(step, state, f"{stage.name} has no loop {loop}", f"one of {known}")


def need_new_loops(
    step: object, state: ScheduleState, stage: Stage, names: tuple[str, ...]
) -> None:
    """Refuse loop names that the stage has already used."""
    for name in names:
        if name in stage.loop_names:
            raise refuse(
                step, state, f"{stage.name} already has a loop {name}", "", (stage.name, name)
            )


def need_new_stage(step: object, state: ScheduleState, name: str) -> None:
    """Refuse a tensor name that is taken."""
    if state.has_stage(name) or any(tensor.name == name for tensor in state.inputs):
        raise refuse(step, state, f"there is already a tensor {name}")


def need_unscheduled(step: object, state: ScheduleState, stage: Stage) -> None:
    """Refuse a stage whose loops have been transformed, or in which another stage is placed.

    Theorem: the step rewrites the tensor's own axes, so a schedule of the old axes would mean
    nothing.
    """
    if stage.relations or stage.marks or stage.placement != AtRoot():
        raise refuse(
            step,
            state,
            f"{stage.name} is already scheduled",
            "apply this before the other steps on that stage",
        )
    guest = guests(state, stage.name)
    if guest:
        raise refuse(step, state, f"{guest[0].name} is computed inside {stage.name}")


def guests(state: ScheduleState, host: str) -> tuple[Stage, ...]:
    """The stages placed inside a loop of `host`."""
    return tuple(
        s for s in state.stages if not isinstance(s.placement, AtRoot) and s.placement.stage == host
    )


def is_inside(state: ScheduleState, inner: str, host: str, loop: str) -> bool:
    """Whether `inner` runs within the body of a loop of `host`; `host` itself does."""
    if inner == host:
        return True
    placement = state.stage(inner).placement
    if isinstance(placement, AtRoot):
        return False
    if placement.stage == host:
        loops = state.stage(host).loops
        return loops.index(placement.loop) >= loops.index(loop)
    return is_inside(state, placement.stage, host, loop)
