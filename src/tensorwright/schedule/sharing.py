"""The tensors that the threads of a group share, and the loops in which tensors are allocated.

Threads have only SHARED memory in common.  So a tensor is shared if its stage asks for that, or if
several threads touch it: if a loop over threads lies between the loop in which the tensor is
allocated and a statement that stores or reads it. Source: Halide chooses the memory of a GPU in the
same way (MemoryType::Auto).

What a loop fetches into shared memory, so that it may be fetched some iterations ahead.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.expr import Load
from tensorwright.schedule.memory_layout import THREADS, CopyMechanism, ForKind, Scope
from tensorwright.schedule.state import After, At, AtRoot, ScheduleState, Stage, reads_of


def has_threads(state: ScheduleState) -> bool:
    """Whether any loop is bound to a thread index."""
    return any(kind in THREADS for stage in state.stages for _, kind in stage.marks)


def allocation_loop(state: ScheduleState, stage: Stage) -> tuple[str, str] | None:
    """The loop (stage, loop) in each iteration of which a tensor is allocated.

    None for a whole tensor, which is allocated once for each call.
    """
    if isinstance(stage.placement, At):
        return stage.placement.stage, stage.placement.loop
    places = {reader.placement for reader in state.readers(stage.name)}
    if len(places) == 1 and stage.name not in state.outputs:
        (placement,) = places  # the stage's own loop after whose body all readers run
        if isinstance(placement, After) and placement.stage == stage.name:
            return placement.stage, placement.loop
    return None


def is_shared(state: ScheduleState, stage: Stage) -> bool:
    """Whether a tensor that is not whole is memory of all threads of a group.

    Theorem: what one thread stores, another one sees in shared memory only.  A stage that is
    computed by all threads together reads what each of these threads sees.
    """
    if not has_threads(state):
        return False
    allocated_at = allocation_loop(state, stage)
    if allocated_at is None:
        return False
    readers = state.readers(stage.name)
    if any(
        kind in THREADS
        for user in (stage, *readers)
        for kind in _kinds_between(state, user, *allocated_at)
    ):
        return True
    if not any(kind in THREADS for kind in kinds_around(state, *allocated_at)):
        return False
    return stage.scope is Scope.SHARED or any(
        is_shared(state, reader)
        for reader in readers
        if allocated_at[0] != reader.name and isinstance(reader.placement, At)
    )


def kinds_around(state: ScheduleState, name: str, loop: str) -> Iterator[ForKind]:
    """The kinds of the loops around the body of a loop, that loop included; innermost first."""
    stage = state.stage(name)
    for each in reversed(stage.loops[: stage.loops.index(loop) + 1]):
        yield stage.kind(each)
    if not isinstance(stage.placement, AtRoot):
        yield from kinds_around(state, stage.placement.stage, stage.placement.loop)


def _kinds_between(state: ScheduleState, stage: Stage, host: str, loop: str) -> Iterator[ForKind]:
    """The kinds of the loops around the statement of a stage, inside a loop of a host."""
    loops = stage.loops
    while True:
        outer = loops.index(loop) + 1 if stage.name == host else 0
        for each in loops[outer:]:
            yield stage.kind(each)
        if stage.name == host or isinstance(stage.placement, AtRoot):
            return
        around = stage.placement
        stage = state.stage(around.stage)
        loops = stage.loops[: stage.loops.index(around.loop) + 1]


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
    hosts = {each.placement.stage for each in state.stages if isinstance(each.placement, At)}

    def is_whole(read: str) -> bool:
        stage = state.stage(read)
        return isinstance(stage.placement, AtRoot) and allocation_loop(state, stage) is None

    return tuple(
        stage
        for stage in state.stages
        if stage.placement == here
        and is_shared(state, stage)
        and stage.tensor.reduction is None
        and stage.name not in hosts
        and all(is_whole(each) for each in reads_of(stage.tensor) if state.has_stage(each))
        and (
            mechanism is CopyMechanism.REGISTERS
            or (
                isinstance(stage.tensor.body, Load)
                and stage.tensor.dtype.size_bytes >= _LEAST_BYTES
            )
        )
    )
