"""Traces of an instance with numbers, changed so that they hold for a workload with named sizes.

A trace is chosen for one value of each size.  `open_trace` replays it where the sizes are open.
A step that is illegal for some of their values is replaced: whole tiles become guarded ones, lanes
are split off a loop before it is vectorised, and an open loop is not unrolled. A stage of open
extents that would be folded into a constant is computed where it is read.

A guarded tile takes time only for the rows that exist. The pass `version_guards` makes one version
for whole tiles and one for the last tile, which ends at its first guard that fails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from tensorwright.expr import Index, named_sizes_of
from tensorwright.schedule import primitives
from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.open_sizes.joined_loops import renamed, with_joined_loops
from tensorwright.schedule.primitive import Primitive, applied, is_legal
from tensorwright.schedule.state import ScheduleState, SplitRelation, Tail
from tensorwright.schedule.trace import Trace


@dataclass(frozen=True, slots=True)
class Tile:
    """An open loop of a stage that is cut into whole vectors, `tile` elements of them together."""

    stage: str
    extent: Index
    tile: int


@dataclass(frozen=True, slots=True)
class OpenTrace:
    """A trace that holds for all values of some sizes.

    state   after it
    lanes   of open loops
    rows    of open loops, too: a tile uses what it reads for all its rows
    """

    trace: Trace
    state: ScheduleState
    lanes: tuple[Tile, ...] = ()
    rows: tuple[Tile, ...] = ()


@lru_cache(maxsize=256)
def open_trace(state: ScheduleState, trace: Trace, vector_bytes: int) -> OpenTrace:
    """The trace for a state with named sizes; remembered, because choosing and building need it.

    vector_bytes  of the machine: the length of the vectors that an open loop is cut into
    Raises:       ScheduleError from the first step that is illegal and cannot be mended.
    """
    joined = with_joined_loops(state, trace)
    vectors = frozenset((s.stage, s.loop) for s in joined if isinstance(s, primitives.Vectorize))
    opening = _Opening(state, vector_bytes, vectors)
    for step in joined:
        opening.add(step)
    return opening.result


class _Opening:
    """The state after the steps so far; mutable, one per trace."""

    def __init__(
        self, state: ScheduleState, vector_bytes: int, vectors: frozenset[tuple[str, str]]
    ) -> None:
        self.state = state
        self.steps: list[Primitive] = []
        self.lanes: list[Tile] = []
        self.rows: list[Tile] = []
        self._row_loops: set[tuple[str, str]] = set()
        self._vector_bytes = vector_bytes
        self._vectors = vectors
        self._renamed: dict[tuple[str, str], str] = {}  # the loop that stands for one now
        self._inlined: set[str] = set()  # stages that were to be constants

    @property
    def result(self) -> OpenTrace:
        """The trace of the steps so far."""
        return OpenTrace(tuple(self.steps), self.state, tuple(self.lanes), tuple(self.rows))

    def add(self, given: Primitive) -> None:
        """Do a step, or its replacement."""
        step = renamed(given, self._renamed)
        match step:
            case primitives.Split():
                step = self._split(step)
            case primitives.Unroll(stage, loop) if self._is_open(stage, loop):
                return
            case primitives.FoldConstant(stage) if self.state.has_stage(stage) and named_sizes_of(
                *self.state.stage(stage).tensor.shape
            ):
                self._inlined.add(stage)
                step = primitives.ComputeInline(stage)
            case primitives.PackConstant() | primitives.Prefetch() | primitives.PrefetchNext() if (
                step.tensor in self._inlined
            ):
                return
            case primitives.Vectorize(stage, loop) if self._is_open(stage, loop):
                lanes = self._vector_bytes // self.state.stage(stage).tensor.dtype.size_bytes
                split = primitives.Split(stage, loop, (lanes,))
                self.lanes.append(Tile(stage, self._extent(stage, loop), lanes))
                self._do(split)
                self._renamed[stage, loop] = split.children[-1]
                step = replace(step, loop=split.children[-1])
            case primitives.Fuse():
                step = self._fuse(step)
        self._do(step)

    def _do(self, step: Primitive) -> None:
        step.check(self.state)
        self.state = applied(step, self.state)
        self.steps.append(step)

    def _split(self, step: primitives.Split) -> primitives.Split:
        """The split with tiles that hold for all values of the sizes."""
        extent = self._extent(step.stage, step.loop)
        if not named_sizes_of(extent):
            return step
        total = prod(step.factors, start=1)
        assert isinstance(total, int), "the trace is bound"
        if any((step.stage, child) in self._vectors for child in step.children):
            self.lanes.append(Tile(step.stage, extent, total))
            return step if is_legal(step, self.state) else replace(step, tail=Tail.GUARD)
        if step.tail is not Tail.EXACT or not is_legal(step, self.state):
            step = replace(step, tail=Tail.GUARD)
        if total > 1 and step.loop not in self.state.stage(step.stage).reduce_loops:
            self._row_loops.add((step.stage, step.children[0]))
            self.rows.append(Tile(step.stage, extent, total))
        return step

    def _fuse(self, step: primitives.Fuse) -> primitives.Fuse:
        """The fusion with tiles of open loops inside of those of other loops.

        What all tiles of few rows read again is then read from memory once.
        """
        order = tuple(sorted(step.loops, key=lambda loop: (step.stage, loop) in self._row_loops))
        if order == step.loops:
            return step
        self._do(primitives.Reorder(step.stage, order))
        fuse = primitives.Fuse(step.stage, order)
        self._renamed[step.stage, step.fused] = fuse.fused
        return fuse

    def _extent(self, stage: str, loop: str) -> Index:
        if not self.state.has_stage(stage):
            return 1
        for relation in self.state.stage(stage).relations:
            if isinstance(relation, SplitRelation) and loop in relation.children[1:]:
                return relation.factors[relation.children.index(loop) - 1]
        return analyse(self.state).nests[stage].extents.get(loop, 1)

    def _is_open(self, stage: str, loop: str) -> bool:
        return bool(named_sizes_of(self._extent(stage, loop)))
