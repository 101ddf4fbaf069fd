"""The base of schedule primitives, and the checks that most of them share.

A primitive is a frozen record.  `check(state)` raises ScheduleError where it may not be applied,
`apply(state)` gives the next state.  Its class name in snake_case is its name in a trace and its
fields, in order, are its arguments there: names as they are, factors as ints or `?decision`, tuples
in brackets, enums by value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from tensorwright.base import ScheduleError
from tensorwright.expr import Load, Var
from tensorwright.schedule.analysis import note_step
from tensorwright.schedule.memory_layout import BLOCKS, THREADS, ForKind, may_not_be_inside
from tensorwright.schedule.sharing import allocation_loop, is_shared, kinds_around
from tensorwright.schedule.state import (
    After,
    At,
    AtRoot,
    FuseRelation,
    PrefetchRequest,
    ScheduleState,
    SplitRelation,
    Stage,
    own_loops,
)
from tensorwright.schedule.text import render, step_text


@runtime_checkable
class Primitive(Protocol):
    """One step of a schedule; implementations are frozen dataclasses that inherit from it."""

    __slots__ = ()

    def __str__(self) -> str:
        return step_text(self)

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the step is illegal."""
        self._need(Checks(self, state))

    def _need(self, at: Checks) -> None:
        """Raise ScheduleError where the step is illegal."""

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state after the step; call `check` first."""


_APPLIED: WeakKeyDictionary[ScheduleState, tuple[Primitive, ScheduleState]] = WeakKeyDictionary()


def applied(step: Primitive, state: ScheduleState) -> ScheduleState:
    """`step.apply(state)`; the same call again gives the same state, which is already analysed.

    A check computes the state that the step makes, and the step itself needs it again.
    """
    last = _APPLIED.get(state)
    if last is None or last[0] != step:
        last = _APPLIED[state] = step, step.apply(state)
        note_step(state, last[1])
    return last[1]


def is_legal(step: Primitive, state: ScheduleState) -> bool:
    """Whether a step may be applied to a state."""
    try:
        step.check(state)
    except ScheduleError:
        return False
    return True


class Checks:
    """The checks of one step: what it names exists, and what it asks for means the same.

    state   before the step      here   the loop named last, as (stage, loop), to mark in an error
    """

    def __init__(self, step: Primitive, state: ScheduleState) -> None:
        self.step = step
        self.state = state
        self.here = ("", "")

    @cached_property
    def after(self) -> ScheduleState:
        """The state that the step makes."""
        return applied(self.step, self.state)

    def refuse(
        self, reason: str, remedy: str = "", mark: tuple[str, str] | None = None
    ) -> ScheduleError:
        """The error for an illegal step, with the loops shown and the loop (stage, loop) marked."""
        stage, loop = mark or ("", "")
        where = f"loop {loop} of {stage}" if loop else f"stage {stage}" if stage else "refused"
        program = partial(render, self.state, mark)
        return ScheduleError(
            where=where, step=str(self.step), reason=reason, remedy=remedy, program=program
        )

    def stage_of(self, name: str) -> Stage:
        """The stage of that name, or ScheduleError."""
        if self.state.has_stage(name):
            return self.state.stage(name)
        if any(tensor.name == name for tensor in self.state.inputs):
            raise self.refuse(f"{name} is an input and has no loops", "name a computed tensor")
        names = ", ".join(stage.name for stage in self.state.stages)
        raise self.refuse(f"there is no stage {name}", f"one of {names}")

    def need_loop(self, stage: Stage, loop: str) -> None:
        """Refuse a loop that is not a leaf loop of the stage."""
        if loop in stage.loops:
            return
        for relation in stage.relations:
            if isinstance(relation, SplitRelation) and relation.parent == loop:
                into = ", ".join(relation.children)
                raise self.refuse(f"loop {loop} was split into {into}", "name one of these")
            if isinstance(relation, FuseRelation) and loop in relation.parents:
                raise self.refuse(f"loop {loop} was fused", f"name {relation.child}")
        names = ", ".join(stage.loops)
        raise self.refuse(f"{stage.name} has no loop {loop}", f"one of {names}")

    def loop_of(self, name: str, loop: str) -> Stage:
        """The stage of that name, or ScheduleError; so where that is not a loop of it."""
        stage = self.stage_of(name)
        self.need_loop(stage, loop)
        self.here = (name, loop)
        return stage

    def unscheduled(self, name: str) -> Stage:
        """The stage of that name, all of whose elements are computed by its own loops."""
        stage = self.stage_of(name)
        self.need_unscheduled(stage)
        self.need_all_elements(stage)
        return stage

    def need_serial(self, stage: Stage, loop: str, remedy: str = "") -> None:
        """Refuse a loop that is marked."""
        if stage.kind(loop) is not ForKind.SERIAL:
            raise self.refuse(f"loop {loop} is already marked", remedy, (stage.name, loop))

    def need_no_output(self, name: str, why: str) -> None:
        """Refuse a tensor that the caller gets."""
        if name in self.state.outputs:
            raise self.refuse(f"{name} is an output{why}")

    def need_new_loops(self, stage: Stage, names: tuple[str, ...]) -> None:
        """Refuse loop names that the stage has already used."""
        for name in names:
            if name in stage.loop_names:
                raise self.refuse(f"{stage.name} already has a loop {name}", "", (stage.name, name))

    def need_new_stage(self, name: str) -> None:
        """Refuse a tensor name that is taken."""
        if self.state.has_stage(name) or any(tensor.name == name for tensor in self.state.inputs):
            raise self.refuse(f"there is already a tensor {name}")

    def need_unscheduled(self, stage: Stage) -> None:
        """Refuse a stage whose loops have been transformed, or in which another stage is placed.

        Theorem: the step rewrites the tensor's own axes, so a schedule of the old axes would mean
        nothing.
        """
        is_packed = any(reader == stage.name for _, reader in self.state.packed)
        hints = (
            stage.init_at or stage.prefetches or stage.intrinsic or stage.skips or stage.pipeline
        )
        changed = stage.relations or stage.marks or stage.placement != AtRoot()
        if changed or hints or is_packed or stage.loops != own_loops(stage.tensor):
            raise self.refuse(
                f"{stage.name} is already scheduled",
                "apply this before the other steps on that stage",
            )
        attached = attached_stages(self.state, stage.name)
        if attached:
            raise self.refuse(f"{attached[0].name} is computed inside {stage.name}")

    def need_plain_loops(self, stage: Stage, loop: str = "") -> None:
        """Refuse a stage that an intrinsic computes.

        Theorem: the intrinsic has been compared with the loops and operands as they are.
        """
        if stage.intrinsic is not None:
            reason = f"{stage.name} is computed by {stage.intrinsic[1]}"
            raise self.refuse(reason, "tensorize last", (stage.name, loop))

    def need_all_elements(self, stage: Stage) -> None:
        """Refuse a tensor of which some elements are never computed.

        Theorem: the step makes readers of all elements, and nothing is computed there.
        """
        if stage.inside is not True:
            reason = f"{stage.name} has axes that were split with a rest"
            raise self.refuse(reason, "split_axis after this step")

    def need_same_lengths(self, reader: Stage, load: Load) -> None:
        """Refuse a reader that is not as long as what it reads along the axes of its indices.

        Theorem: the loops of what is read stand for those of the reader where both are as long.
        """
        own = {axis.var: axis.extent for axis in reader.tensor.axes}
        for index, extent in zip(load.indices, load.source.shape, strict=True):
            if isinstance(index, Var) and own.get(index, extent) != extent:
                reason = f"{reader.name} is not as long as {load.source.name} along {index}"
                raise self.refuse(reason, "", (reader.name, ""))

    def need_unpipelined(self, stage: Stage, *loops: str) -> None:
        """Refuse loops whose iterations fetch ahead.

        Theorem: an iteration fetches for the next ones of the loop as it is.
        """
        if stage.pipeline is not None and stage.pipeline.loop in loops:
            here = (stage.name, stage.pipeline.loop)
            raise self.refuse(f"loop {stage.pipeline.loop} is pipelined", "do this first", here)


def attached_stages(state: ScheduleState, host: str) -> tuple[Stage, ...]:
    """The stages that are placed inside a loop of `host`."""
    return tuple(
        s for s in state.stages if not isinstance(s.placement, AtRoot) and s.placement.stage == host
    )


def move_attached(state: ScheduleState, host: str, old: str, new: str) -> ScheduleState:
    """The state after `new` replaced the loop `old` of `host`: attached stages move to `new`."""
    for attached in attached_stages(state, host):
        placement = attached.placement
        if isinstance(placement, (At, After)) and placement.loop == old:
            state = state.with_stage(replace(attached, placement=replace(placement, loop=new)))
    return state


def moved_prefetches(stage: Stage, old: str, new: str) -> tuple[PrefetchRequest, ...]:
    """The prefetches of a stage with those in a loop moved to the loop that replaces it."""
    return tuple(
        replace(request, loop=new) if request.loop == old else request
        for request in stage.prefetches
    )


def find_stranded(state: ScheduleState) -> tuple[Stage, Stage] | None:
    """A stage placed in a loop and a reader of it outside of that loop; None in a legal state."""
    for stage in state.stages:
        if isinstance(stage.placement, At):
            host, loop = stage.placement.stage, stage.placement.loop
            for reader in state.readers(stage.name):
                if not is_inside(state, reader.name, host, loop):
                    return stage, reader
    return None


def runs_inside_after(state: ScheduleState, stage: Stage, *, or_at: bool = False) -> bool:
    """Whether a stage runs after the tile of another one (or, if asked, inside another at all)."""
    match stage.placement:
        case AtRoot():
            return False
        case After():
            return True
        case At(host, _):
            return or_at or runs_inside_after(state, state.stage(host))


def need_legal_nesting(at: Checks) -> None:
    """Refuse a step after which loops would be nested that cannot be."""
    marked: dict[str, _Loops] = {}  # others may be anywhere
    for stage in at.after.stages:
        kinds = dict(stage.marks)
        marked[stage.name] = [(loop, kinds[loop]) for loop in stage.loops if loop in kinds]
    for stage in at.after.stages:
        around = _marked_around(at.after, stage, marked)
        for loop, kind in marked[stage.name]:
            forbidden = may_not_be_inside(kind)
            for outer, outer_kind in around:
                if outer_kind in forbidden:
                    inner = f"the {kind.value} loop {loop} of {stage.name}"
                    raise at.refuse(f"{inner} would be inside the {outer_kind.value} loop {outer}")
            around.append((loop, kind))
    if any(kind in BLOCKS | THREADS for pairs in marked.values() for _, kind in pairs):
        for stage in at.after.stages:
            _need_outermost_blocks(at, stage)
            _need_threads_of_their_own(at, stage)
        _need_no_parallel_loops(at)


def _need_no_parallel_loops(at: Checks) -> None:
    """Refuse parallel loops in a program that has loops over blocks or threads.

    Theorem: such a program is launches of a card, and each thread runs all that is in a launch but
    for these loops.  So a parallel loop beside one of them would be inside it.
    """
    for stage in at.after.stages:
        for loop, kind in stage.marks:
            if kind is ForKind.PARALLEL:
                reason = f"no thread of a card would start the parallel loop {loop} of {stage.name}"
                raise at.refuse(reason, "bind it instead", (stage.name, loop))


def _need_outermost_blocks(at: Checks, stage: Stage) -> None:
    """Refuse loops over blocks with anything around them but such loops.

    Theorem: blocks are started together, once, and do not wait for each other.  So a loop over them
    is around all that a stage at the root does: its other loops, the start of its reduction and
    what is placed in it.
    """
    blocks = [loop for loop in stage.loops if stage.kind(loop) in BLOCKS]
    if not blocks:
        return
    here = (stage.name, blocks[-1])
    remedy = "reorder its loops first, blocks outermost"
    if not isinstance(stage.placement, AtRoot):
        reason = f"the blocks of {stage.name} would be inside of {stage.placement.stage}"
        raise at.refuse(reason, "bind the loops of the stage around it")
    if stage.loops[: len(blocks)] != tuple(blocks):
        between = next(loop for loop in stage.loops if loop not in blocks)
        raise at.refuse(f"loop {between} would be around blocks", remedy, here)
    if stage.init_at in blocks:
        reason = f"the reduction starts at {stage.init_at}, outside of the blocks"
        raise at.refuse(reason, "start it further inside", here)
    if any(request.loop in blocks for request in stage.prefetches):
        raise at.refuse("blocks of a card prefetch nothing", "", here)
    for attached in attached_stages(at.after, stage.name):
        if isinstance(attached.placement, (At, After)) and attached.placement.loop in blocks[:-1]:
            reason = f"{attached.name} is computed between the blocks of {stage.name}"
            raise at.refuse(reason, "compute it inside of all of them", here)


def _need_threads_of_their_own(at: Checks, stage: Stage) -> None:
    """Refuse loops over threads that one group cannot have at once.

    Theorem: each lane of a fold has one term of each sum, so nothing is between a sum and its
    terms.  What runs after the tile of a thread is done for each thread by itself, so it has no
    other threads of the same index.  A group has one piece of memory, lanes of vectors have several
    at once.
    """
    if stage.lanes and stage.loops[-1] != stage.lanes:
        reason = f"the lanes of {stage.lanes} would not be the innermost loop"
        raise at.refuse(reason, "", (stage.name, stage.lanes))
    threads = {kind: loop for loop, kind in stage.marks if kind in THREADS}
    host = stage.placement
    if threads and isinstance(host, After):
        for kind in kinds_around(at.after, host.stage, host.loop):
            if kind in threads:
                own = f"loop {threads[kind]} of {stage.name} @{kind.value}"
                reason = f"{own} would be in what each thread of {host.stage} does by itself"
                raise at.refuse(reason, "place it outside of these threads")
    allocated_at = allocation_loop(at.after, stage)
    if allocated_at is None or not is_shared(at.after, stage):
        return
    if ForKind.VECTOR in kinds_around(at.after, *allocated_at):
        reason = f"{stage.name} would be shared memory of each lane of a vector"
        raise at.refuse(reason, "compute it outside of the vectors")


_Loops = list[tuple[str, ForKind]]


def _marked_around(state: ScheduleState, stage: Stage, marked: Mapping[str, _Loops]) -> _Loops:
    """The loops around a stage that are not serial, outermost first."""
    placement = stage.placement
    if isinstance(placement, AtRoot):
        return []
    host = state.stage(placement.stage)
    around = host.loops[: host.loops.index(placement.loop) + 1]
    own = [pair for pair in marked[host.name] if pair[0] in around]
    return _marked_around(state, host, marked) + own


def is_within(state: ScheduleState, inner: str, host: str) -> bool:
    """Whether `inner` is `host` or runs somewhere inside of it."""
    placement = state.stage(inner).placement
    return inner == host or (
        not isinstance(placement, AtRoot) and is_within(state, placement.stage, host)
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
