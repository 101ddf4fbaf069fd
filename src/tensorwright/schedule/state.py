"""The schedule state: how every tensor of a program is to be computed, before it is a loop nest.

Grammar
    state     ::= ScheduleState(inputs, constants, stages, outputs, packed, folded)
    stage     ::= Stage(tensor, loops, relations, marks, placement, scope, ...)
    relation  ::= Split(parent, children, factors, tail) | Fuse(parents, child)
    placement ::= AtRoot | At(stage, loop) | After(stage, loop)

Semantics.  Each stage computes one tensor with a nest of its leaf `loops`, outermost first.  The
root loops are the tensor's axes and then its reduction's axes, by name; relations derive the leaves
from them, in order.  A stage that is placed `At` a loop of another stage computes, in each
iteration of that loop and before the rest of its body, the part of its tensor that the body reads;
one placed `After` runs after the rest of the body and computes the part of its tensor that the
finished tile of that stage determines.  Inlining is not a placement: it rewrites the readers at
once. Stages refer to each other by name: the loads of a stage's tensor read `Placeholder`s that
carry the name of a stage. Extents and factors are index expressions: ints, or expressions over
decisions that are bound later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from math import prod
from typing import TypeAlias

from tensorwright import expr
from tensorwright.base import InternalError
from tensorwright.schedule.memory_layout import PLAIN, CopyMechanism, ForKind, MemoryLayout, Scope


class Tail(Enum):
    """The treatment of the last iterations where a split's factors do not divide the extent."""

    __hash__ = object.__hash__  # a member is one object; Enum hashes its name, each time in Python

    GUARD = "guard"  # run the body only where the index is in range
    SHIFT = "shift"  # start the last tile earlier, so that it is whole and overlaps its neighbour
    EXACT = "exact"  # the factors divide the extent: refused otherwise


@dataclass(frozen=True, slots=True)
class SplitRelation:
    """parent = children[0]*prod(factors) + ... + children[-1]; factors[k] is the extent of
    children[k + 1].
    """

    parent: str
    children: tuple[str, ...]
    factors: tuple[expr.Index, ...]
    tail: Tail

    @property
    def tile(self) -> expr.Index:
        """How many iterations of the parent one of the outermost child stands for."""
        return prod(self.factors, start=1)


@dataclass(frozen=True, slots=True)
class FuseRelation:
    """child = (parents[0]*extent[1] + parents[1])*extent[2] + ...: one loop over their box."""

    parents: tuple[str, ...]
    child: str


LoopRelation: TypeAlias = SplitRelation | FuseRelation


@dataclass(frozen=True, slots=True)
class AtRoot:
    """Computed whole, before its readers."""


@dataclass(frozen=True, slots=True)
class At:
    """Computed inside `loop` of `stage`, before its body, as far as the body reads it."""

    stage: str
    loop: str


@dataclass(frozen=True, slots=True)
class After:
    """Computed inside `loop` of `stage`, after its body, as far as its tile determines it."""

    stage: str
    loop: str


Placement: TypeAlias = AtRoot | At | After


@dataclass(frozen=True, slots=True)
class PrefetchRequest:
    """In each iteration of `loop`, prefetch what is read of `tensor` `distance` later.

    is_next_part  instead, a share of a part of a packed constant: `distance` parts after this one,
                  or the next one where several tiles read each part
    """

    tensor: str
    loop: str
    distance: expr.Index
    is_next_part: bool = False


@dataclass(frozen=True, slots=True)
class PipelineRequest:
    """`loop` fetches its tiles into shared memory `stages - 1` iterations ahead."""

    loop: str
    stages: int
    mechanism: CopyMechanism


class Skipped(Enum):
    """The unit for which terms of a sum are left out."""

    __hash__ = object.__hash__  # as Tail

    TILES = "tiles"  # a tile, where the term is zero for all of its positions
    POSITIONS = "positions"  # each position of a tile for which it is zero


@dataclass(frozen=True, slots=True)
class Skip:
    """Where a condition over the axes of a stage fails, terms of its sum are zero, and left out."""

    condition: expr.Condition
    of: Skipped


@dataclass(frozen=True, slots=True)
class Stage:
    """How one tensor is computed."""

    tensor: expr.Compute
    loops: tuple[str, ...]
    relations: tuple[LoopRelation, ...] = ()
    marks: tuple[tuple[str, ForKind], ...] = ()
    placement: Placement = AtRoot()
    scope: Scope = Scope.GLOBAL
    init_at: str = ""  # the loop in which the reduction starts; "" is the outermost reduction loop
    prefetches: tuple[PrefetchRequest, ...] = ()
    skips: tuple[Skip, ...] = ()
    masked_in: str = ""  # the loop in which loops of other stages end where all is masked
    intrinsic: tuple[str, str] | None = (
        None  # (loop, name): the nest from that loop inwards is one intrinsic
    )
    inside: expr.Condition = (
        True  # the elements that some reader reads; others need not be computed
    )
    layout: MemoryLayout = PLAIN
    pipeline: PipelineRequest | None = None
    lanes: str = ""  # the loop of the reduction whose terms the lanes of a warp exchange
    groups: int = 0  # of a launch that should be on a multiprocessor at once; 0: not said

    @property
    def name(self) -> str:
        """The name of the tensor."""
        return self.tensor.name

    def kind(self, loop: str) -> ForKind:
        """How a leaf loop runs; what is not marked is serial."""
        for name, kind in self.marks:
            if name == loop:
                return kind
        return ForKind.SERIAL

    @property
    def replaced_loops(self) -> tuple[str, ...]:
        """The loops for which an intrinsic stands."""
        if self.intrinsic is None:
            return ()
        return self.loops[self.loops.index(self.intrinsic[0]) :]

    def with_mark(self, loop: str, kind: ForKind) -> Stage:
        """The stage with one more mark."""
        kept = tuple(pair for pair in self.marks if pair[0] != loop)
        return replace(self, marks=tuple(sorted((*kept, (loop, kind)), key=lambda pair: pair[0])))

    @property
    def overlapping_loops(self) -> frozenset[str]:
        """The outer loops of shifted splits, and what was made of them.

        Two iterations of such a loop may compute one element.
        """
        loops: set[str] = set()
        for relation in self.relations:
            if isinstance(relation, FuseRelation):
                if loops.intersection(relation.parents):
                    loops.add(relation.child)
            elif relation.parent in loops:
                loops.update(relation.children)
            elif relation.tail is Tail.SHIFT:
                loops.add(relation.children[0])
        return frozenset(loops)

    @property
    def reduce_loops(self) -> frozenset[str]:
        """The loops, leaves and others, that come from axes of the reduction."""
        loops = {axis.name for axis in self.tensor.reduce_axes}
        for relation in self.relations:
            if isinstance(relation, SplitRelation):
                if relation.parent in loops:
                    loops.update(relation.children)
            elif relation.parents[0] in loops:
                loops.add(relation.child)
        return frozenset(loops)

    @property
    def loop_names(self) -> frozenset[str]:
        """Every name that a loop of this stage has or had."""
        names = {axis.name for axis in (*self.tensor.axes, *self.tensor.reduce_axes)}
        for relation in self.relations:
            if isinstance(relation, SplitRelation):
                names.update(relation.children)
            else:
                names.add(relation.child)
        return frozenset(names)


@dataclass(frozen=True, slots=True)
class Folded:
    """A constant that is computed from one of the caller's when the program is built.

    source  the caller's constant, which is not an input of the state any more
    tensor  what is computed from it; the input that stands for it has its name
    """

    source: expr.Placeholder
    tensor: expr.Compute


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ScheduleState:
    """A program and how to compute it; primitives turn one state into the next.

    inputs     what the caller passes, in order
    constants  names of the inputs whose values are known when the program is built
    stages     in an order in which they could run
    outputs    names of the stages that the caller gets, in order
    packed     (input, stage): constants that are stored in the order in which that stage reads them
    folded     the inputs that are computed from constants when the program is built
    """

    inputs: tuple[expr.Placeholder, ...]
    constants: frozenset[str]
    stages: tuple[Stage, ...]
    outputs: tuple[str, ...]
    packed: tuple[tuple[str, str], ...] = ()
    folded: tuple[Folded, ...] = ()

    def stage(self, name: str) -> Stage:
        """The stage of that name; primitives have checked that it exists."""
        for stage in self.stages:
            if stage.tensor.name == name:  # the property takes ten times as long
                return stage
        raise InternalError(stage="schedule", where=f"stage {name}", reason="no such stage")

    def has_stage(self, name: str) -> bool:
        """Whether there is a stage of that name."""
        return any(stage.tensor.name == name for stage in self.stages)

    def source(self, name: str) -> expr.Placeholder:
        """The tensor that loads of that name read: an input, or a stage's placeholder."""
        if self.has_stage(name):
            tensor = self.stage(name).tensor
            return expr.Placeholder(name, tensor.shape, tensor.dtype)
        return next(tensor for tensor in self.inputs if tensor.name == name)

    def with_stage(self, changed: Stage) -> ScheduleState:
        """The state with one stage replaced by one of the same name."""
        name = changed.name
        stages = tuple([changed if stage.tensor.name == name else stage for stage in self.stages])
        return replace(self, stages=stages)

    def with_stages(self, name: str, *stages: Stage) -> ScheduleState:
        """The state with one stage replaced by some stages, in order."""
        at = [stage.name for stage in self.stages].index(name)
        return replace(self, stages=(*self.stages[:at], *stages, *self.stages[at + 1 :]))

    def readers(self, name: str) -> tuple[Stage, ...]:
        """The stages whose tensors read a tensor, in order."""
        return readers_among(self.stages, name)


def readers_among(stages: Iterable[Stage], name: str) -> tuple[Stage, ...]:
    """The stages whose tensors read a tensor, in order."""
    return tuple([stage for stage in stages if name in reads_of(stage.tensor)])


@lru_cache(maxsize=1024)
def reads_of(tensor: expr.Compute) -> frozenset[str]:
    """The names of the tensors that a tensor reads; asked for at each step of each schedule."""
    return frozenset(load.source.name for load in expr.loads_of(tensor.body))


def redirect(
    tensor: expr.Compute, mapping: Mapping[str, expr.Tensor], order: tuple[int, ...] = ()
) -> expr.Compute:
    """The tensor with its loads from some names reading other tensors of the same rank.

    order   dimension n of these others is dimension order[n]; () where all are as they were
    """

    def moved(indices: tuple[expr.Index, ...]) -> tuple[expr.Index, ...]:
        return tuple(indices[n] for n in order) if order else indices

    def on_element(element: expr.Element) -> expr.Index:
        other = mapping.get(element.source.name)
        return element if other is None else expr.Element(other, moved(element.indices))

    def on_index(index: expr.Index) -> expr.Index:
        return expr.map_elements(index, on_element)

    def on_load(load: expr.Load) -> expr.Value:
        other = mapping.get(load.source.name)
        return load if other is None else expr.Load(other, moved(load.indices))

    body = expr.rebuild(tensor.body, on_load, on_index, lambda condition: condition)
    return expr.Compute(tensor.name, tensor.axes, body, tensor.reduction)


@lru_cache(maxsize=256)
def initial_state(
    outputs: tuple[expr.Compute, ...], constants: frozenset[str] = frozenset()
) -> ScheduleState:
    """The schedule in which every stage runs at the root, serially, its loops in the order of its
    axes.

    Argmax and argmin are decomposed into two reductions each.  Tensor names must be unique.
    """
    order = [part for tensor in expr.topological_order(*outputs) for part in _expand(tensor)]
    stand_ins = {t.name: expr.Placeholder(t.name, t.shape, t.dtype) for t in order}
    if len(stand_ins) != len(order):
        raise InternalError(stage="schedule", where="tensors", reason="two tensors have one name")
    stages = tuple(
        fresh_stage(redirect(t, stand_ins)) for t in order if isinstance(t, expr.Compute)
    )
    inputs = tuple(stand_ins[t.name] for t in order if isinstance(t, expr.Placeholder))
    return ScheduleState(inputs, constants, stages, tuple(t.name for t in outputs))


def _expand(tensor: expr.Tensor) -> tuple[expr.Tensor, ...]:
    if isinstance(tensor, expr.Compute) and tensor.reduction and tensor.reduction.combiner.is_arg:
        return expr.decompose_arg_reduction(tensor)
    return (tensor,)


def fresh_stage(tensor: expr.Compute, scope: Scope = Scope.GLOBAL) -> Stage:
    """A stage at the root with the tensor's own axes as loops."""
    return Stage(tensor, own_loops(tensor), scope=scope)


def own_loops(tensor: expr.Compute) -> tuple[str, ...]:
    """The loops of an unscheduled tensor: its axes, then those of its reduction."""
    return tuple(axis.name for axis in (*tensor.axes, *tensor.reduce_axes))
