"""What a loop fetches into shared memory, so that it may be fetched some iterations ahead."""

from __future__ import annotations

from tensorwright.expr import Load
from tensorwright.schedule.execution import CopyMechanism
from tensorwright.schedule.sharing import allocation_loop, is_shared
from tensorwright.schedule.state import At, AtRoot, ScheduleState, Stage, reads_of

_LEAST_BYTES = 4
"""Of an element that cp.async moves."""


def fetched_in(
    state: ScheduleState, name: str, loop: str, mechanism: CopyMechanism
) -> tuple[Stage, ...]:
    """The stages computed in a loop that may be computed before its iteration begins.

    Theorem: what such a stage reads is whole before the nest begins, so it is the same in all
    iterations; what it computes is read in its own iteration only.
    """
    here = At(name, loop)
    return tuple(
        stage
        for stage in state.stages
        if stage.placement == here
        and is_shared(state, stage)
        and stage.tensor.reduction is None
        and _reads_what_is_whole(state, stage)
        and not _has_guests(state, stage)
        and (mechanism is CopyMechanism.REGISTERS or _is_copy(stage))
    )


def _has_guests(state: ScheduleState, stage: Stage) -> bool:
    places = [each.placement for each in state.stages]
    return any(isinstance(placement, At) and placement.stage == stage.name for placement in places)


def _reads_what_is_whole(state: ScheduleState, stage: Stage) -> bool:
    read = [state.stage(each) for each in reads_of(stage.tensor) if state.has_stage(each)]
    return all(
        isinstance(each.placement, AtRoot) and allocation_loop(state, each) is None for each in read
    )


def _is_copy(stage: Stage) -> bool:
    return isinstance(stage.tensor.body, Load) and stage.tensor.dtype.size_bytes >= _LEAST_BYTES
