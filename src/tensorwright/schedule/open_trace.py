"""Traces of a static instance, made to hold for a workload with named sizes.

A trace is chosen for one value of each size.  `open_trace` replays it where the sizes are open.
Where a step promises what does not hold for all of their values, it is mended: whole tiles become
guarded ones, lanes are split off a loop before it is vectorised, an open loop is not unrolled, and
a constant is not packed of which sizes decide how much is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any

from tensorwright.expr import Index, NamedSize, free_vars, loads_of, named_sizes_of
from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.primitive import Primitive, applied, is_legal
from tensorwright.schedule.primitives import PackConstant, Split, Unroll, Vectorize
from tensorwright.schedule.state import ScheduleState, Tail
from tensorwright.schedule.trace import Trace

_LOOPS_OF = {"loop": "stage", "loops": "stage"}


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
    """

    trace: Trace
    state: ScheduleState
    tiles: tuple[Tile, ...]
    needs: Mapping[NamedSize, int]


def open_trace(
    state: ScheduleState, trace: Trace, lanes: int, most_rows: int | None = None
) -> OpenTrace:
    """The trace for a state with named sizes.

    lanes      how many iterations of an open loop become vectors
    most_rows  the greatest tile of an open loop that is no vector; None for that of the trace
    Raises:    ScheduleError from the first step that is illegal and cannot be mended.
    """
    vectors = frozenset((s.stage, s.loop) for s in trace if isinstance(s, Vectorize))
    opening = _Opening(state, lanes, most_rows, vectors)
    for step in trace:
        opening.add(step)
    return OpenTrace(tuple(opening.steps), opening.state, tuple(opening.tiles), opening.needs)


class _Opening:
    """The state after the steps so far; mutable, one per trace."""

    def __init__(
        self,
        state: ScheduleState,
        lanes: int,
        most_rows: int | None,
        vectors: frozenset[tuple[str, str]],
    ) -> None:
        self.state = state
        self.steps: list[Primitive] = []
        self.tiles: list[Tile] = []
        self.needs: dict[NamedSize, int] = {}
        self._lanes = lanes
        self._most_rows = most_rows
        self._vectors = vectors
        self._renamed: dict[tuple[str, str], str] = {}  # the loop that stands for one now

    def add(self, given: Primitive) -> None:
        """Do a step, or what stands for it."""
        step = self._with_names(given)
        match step:
            case Split():
                step = self._split(step)
            case Unroll(stage, loop) if self._is_open(stage, loop):
                return
            case PackConstant(constant, stage) if self._reads_open(stage, constant):
                return
            case Vectorize(stage, loop) if self._is_open(stage, loop):
                split = Split(stage, loop, (self._lanes,))
                self._do(split)
                self._renamed[stage, loop] = split.children[-1]
                step = replace(step, loop=split.children[-1])
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
        if is_vector:  # lanes stay, and the rest of them is guarded
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
        return step

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
        return analyse(self.state).nests[stage].extents.get(loop, 1)

    def _reads_open(self, stage: str, constant: str) -> bool:
        """Whether how much of a constant is read depends on sizes: it has no order then."""
        if not self.state.has_stage(stage):
            return False
        tensor = self.state.stage(stage).tensor
        axes = (*tensor.axes, *tensor.reduce_axes)
        open_axes = {axis.var for axis in axes if named_sizes_of(axis.extent)}
        loads = (load for load in loads_of(tensor.body) if load.source.name == constant)
        return any(open_axes & free_vars(*load.indices) for load in loads)

    def _is_open(self, stage: str, loop: str) -> bool:
        return bool(named_sizes_of(self._extent(stage, loop)))

    def _with_names(self, step: Primitive) -> Primitive:
        """The step with the loops that stand for those that it names."""
        if not self._renamed:
            return step
        changes: dict[str, Any] = {}
        given = {field.name: getattr(step, field.name) for field in fields(step)}  # type: ignore[arg-type]
        host = given.get("host", given.get("stage", ""))
        for name in ("loop", "loops"):
            value = given.get(name)
            if isinstance(value, str):
                changes[name] = self._renamed.get((host, value), value)
            elif isinstance(value, tuple):
                changes[name] = tuple(self._renamed.get((host, each), each) for each in value)
        return replace(step, **changes) if changes else step  # type: ignore[type-var]


def _at_most(factors: tuple[Index, ...], most: int) -> tuple[Index, ...]:
    """Factors whose product is not greater, the outer ones made smaller first."""
    found: list[Index] = []
    room = most
    for factor in reversed(factors):
        assert isinstance(factor, int), "the trace is bound"
        found.append(max(1, min(factor, room)))
        room //= max(1, min(factor, room))
    return tuple(reversed(found))
