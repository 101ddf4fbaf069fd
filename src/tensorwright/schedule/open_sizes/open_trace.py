"""Traces of a static instance, made to hold for a workload with named sizes.

A trace is chosen for one value of each size.  `open_trace` replays it where the sizes are open.
Where a step promises what does not hold for all of their values, it is mended: whole tiles become
guarded ones, lanes are split off a loop before it is vectorised, and an open loop is not unrolled.
A stage of open extents that would be folded into a constant is computed where it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from tensorwright.expr import Index, NamedSize, named_sizes_of
from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.open_sizes.joined_loops import renamed, with_joined_loops
from tensorwright.schedule.primitive import Primitive, applied, is_legal
from tensorwright.schedule.primitives import (
    ComputeInline,
    FoldConstant,
    Fuse,
    PackConstant,
    Prefetch,
    PrefetchNext,
    Reorder,
    Split,
    Unroll,
    Vectorize,
)
from tensorwright.schedule.state import ScheduleState, SplitRelation, Tail
from tensorwright.schedule.trace import Trace


@dataclass(frozen=True, slots=True)
class Tile:
    """An open loop of a stage that is cut into tiles."""

    stage: str
    extent: Index
    tile: int


@dataclass(frozen=True, slots=True)
class OpenTrace:
    """A trace that holds for all values of some sizes.

    state   after it
    tiles   of open loops, in order      needs   the least value of sizes for which tiles are whole
    lanes   of open loops: tiles that are whole vectors, perhaps several
    """

    trace: Trace
    state: ScheduleState
    tiles: tuple[Tile, ...]
    needs: Mapping[NamedSize, int]
    lanes: tuple[Tile, ...] = ()


@lru_cache(maxsize=256)
def open_trace(
    state: ScheduleState, trace: Trace, vector_bytes: int, most_rows: int | None = None
) -> OpenTrace:
    """The trace for a state with named sizes; remembered, for choosing and building ask for it.

    vector_bytes  of the machine: so many bytes of an open loop become vectors
    most_rows     the greatest tile of an open loop that is no vector; None for that of the trace
    Raises:       ScheduleError from the first step that is illegal and cannot be mended.
    """
    joined = with_joined_loops(state, trace)
    vectors = frozenset((s.stage, s.loop) for s in joined if isinstance(s, Vectorize))
    opening = _Opening(state, vector_bytes, most_rows, vectors)
    for step in joined:
        opening.add(step)
    return OpenTrace(
        tuple(opening.steps),
        opening.state,
        tuple(opening.tiles),
        opening.needs,
        tuple(opening.lanes),
    )


class _Opening:
    """The state after the steps so far; mutable, one per trace."""

    def __init__(
        self,
        state: ScheduleState,
        vector_bytes: int,
        most_rows: int | None,
        vectors: frozenset[tuple[str, str]],
    ) -> None:
        self.state = state
        self.steps: list[Primitive] = []
        self.tiles: list[Tile] = []
        self.needs: dict[NamedSize, int] = {}
        self.lanes: list[Tile] = []
        self._row_loops: set[tuple[str, str]] = set()
        self._vector_bytes = vector_bytes
        self._most_rows = most_rows
        self._vectors = vectors
        self._renamed: dict[tuple[str, str], str] = {}  # the loop that stands for one now
        self._inlined: set[str] = set()  # stages that were to be constants

    @property
    def result(self) -> OpenTrace:
        """What the steps so far make."""
        tiles, lanes = tuple(self.tiles), tuple(self.lanes)
        return OpenTrace(tuple(self.steps), self.state, tiles, self.needs, lanes)

    def add(self, given: Primitive) -> None:
        """Do a step, or what stands for it."""
        step = renamed(given, self._renamed)
        match step:
            case Split():
                step = self._split(step)
            case Unroll(stage, loop) if self._is_open(stage, loop):
                return
            case FoldConstant(stage) if self._has_open_extents(stage):
                self._inlined.add(stage)
                step = ComputeInline(stage)
            case PackConstant() | Prefetch() | PrefetchNext() if step.tensor in self._inlined:
                return
            case Vectorize(stage, loop) if self._is_open(stage, loop):
                lanes = self._vector_bytes // self.state.stage(stage).tensor.dtype.size_bytes
                split = Split(stage, loop, (lanes,))
                self.lanes.append(Tile(stage, self._extent(stage, loop), lanes))
                self._do(split)
                self._renamed[stage, loop] = split.children[-1]
                step = replace(step, loop=split.children[-1])
            case Fuse() if self._most_rows is not None:
                step = self._fuse(step)
        self._do(step)

    def _do(self, step: Primitive) -> None:
        step.check(self.state)
        self.state = applied(step, self.state)
        self.steps.append(step)

    def _split(self, step: Split) -> Split:
        """The split with tiles that hold for all values of the sizes."""
        extent = self._extent(step.stage, step.loop)
        if not named_sizes_of(extent):
            return step
        is_vector = any((step.stage, child) in self._vectors for child in step.children)
        total = prod(step.factors, start=1)
        assert isinstance(total, int), "the trace is bound"
        if is_vector:  # lanes stay, and the rest of them is guarded
            self.lanes.append(Tile(step.stage, extent, total))
            return step if is_legal(step, self.state) else replace(step, tail=Tail.GUARD)
        if self._most_rows is not None and step.tail is not Tail.GUARD:
            step = replace(step, factors=_at_most(step.factors, self._most_rows))
            total = prod(step.factors, start=1)
            assert isinstance(total, int), "the trace is bound"
        if step.tail is Tail.EXACT and not is_legal(step, self.state):
            step = replace(step, tail=Tail.SHIFT)
        if not is_legal(step, self.state):
            self._note_need(extent, total, step)
            step = replace(step, tail=Tail.GUARD)
        if step.loop not in self.state.stage(step.stage).reduce_loops:
            self.tiles.append(Tile(step.stage, extent, total))
            self._row_loops.add((step.stage, step.children[0]))
        return step

    def _fuse(self, step: Fuse) -> Fuse:
        """The fusion with tiles of open loops inside of those of other loops.

        Low tiles are for few rows: what all of these read again is then read from memory once.
        """
        order = tuple(sorted(step.loops, key=lambda loop: (step.stage, loop) in self._row_loops))
        if order == step.loops:
            return step
        self._do(Reorder(step.stage, order))
        fuse = Fuse(step.stage, order)
        self._renamed[step.stage, step.fused] = fuse.fused
        return fuse

    def _note_need(self, extent: Index, total: int, step: Split) -> None:
        """Remember for which values of a single size all tiles are whole."""
        sizes = named_sizes_of(extent)
        if step.tail is not Tail.SHIFT or len(sizes) != 1:
            return
        (size,) = sizes
        if extent != size * size.divisor:
            return
        least = -(-total // size.divisor)
        if size.most is None or least <= size.most:
            self.needs[size] = max(least, self.needs.get(size, 0))

    def _extent(self, stage: str, loop: str) -> Index:
        if not self.state.has_stage(stage):
            return 1
        for relation in self.state.stage(stage).relations:
            if isinstance(relation, SplitRelation) and loop in relation.children[1:]:
                return relation.factors[relation.children.index(loop) - 1]
        return analyse(self.state).nests[stage].extents.get(loop, 1)

    def _has_open_extents(self, stage: str) -> bool:
        is_there = self.state.has_stage(stage)
        return is_there and bool(named_sizes_of(*self.state.stage(stage).tensor.shape))

    def _is_open(self, stage: str, loop: str) -> bool:
        return bool(named_sizes_of(self._extent(stage, loop)))


def _at_most(factors: tuple[Index, ...], most: int) -> tuple[Index, ...]:
    """Factors whose product is not greater, the outer ones made smaller first."""
    smaller: list[Index] = []
    room = most
    for factor in reversed(factors):
        assert isinstance(factor, int), "the trace is bound"
        smaller.append(max(1, min(factor, room)))
        room //= max(1, min(factor, room))
    return tuple(reversed(smaller))
