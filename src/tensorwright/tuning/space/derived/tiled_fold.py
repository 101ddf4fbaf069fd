"""A fold in tiles: the stage that stores it is split into levels, and the fold is computed inside.

    for blocks                             the first sizes of all axes, bound together
      for threads                          the same: a thread has a part of the tile
        for parts of the reduction         what a part reads, the threads of the block fetch
          for terms of a part
            for positions, for elements    of a thread, in its registers
        for positions, for elements        are stored

The levels of an axis are data: how many sizes it has says which.  Rules and templates say which
axes are tiled with which values, and what is fetched where; this alone takes the steps.

Source:  Zheng et al., Ansor, OSDI 2020, section 4.1, for graphics processors; Nath, Tomov and
         Dongarra, "An Improved MAGMA GEMM for Fermi GPUs", 2010, for the positions of a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import prod

from tensorwright import expr, schedule
from tensorwright.tuning.space.accesses import loads_from
from tensorwright.tuning.space.defaults.pointwise import bind_fused, deal_out, fused
from tensorwright.tuning.space.derived.derivation import free_consumer
from tensorwright.tuning.space.register_tile import write_out
from tensorwright.tuning.space.sketch import Kind, SketchBuilder
from tensorwright.tuning.space.steps import is_cheap

VECTORS = (1, 2, 4)  # elements that a thread fetches at once
MOST_ACCUMULATORS = 128  # of a thread: as many registers are left for operands and addresses
_PADDING = 4  # elements: rows stay aligned for vectors


class Level(Enum):
    """What runs the loops of a level; the host's loops lie in this order."""

    BLOCK = "block"
    THREAD = "thread"
    POSITION = "position"  # of a thread, with those of other threads between: virtual threads
    ELEMENT = "element"  # neighbours, at each position


LEVELS = {
    1: (Level.BLOCK, Level.ELEMENT),
    2: (Level.BLOCK, Level.THREAD, Level.ELEMENT),
    3: (Level.BLOCK, Level.POSITION, Level.THREAD, Level.ELEMENT),
}
"""The levels of an axis from the outside, by the number of its sizes: the first has the rest."""


@dataclass(frozen=True, slots=True)
class TiledAxis:
    """An axis of a fold in tiles.

    loops   of the host that are this axis: several are joined
    sizes   of its levels but the first      tile   loops of the fold in a thread, by level
    """

    loops: tuple[str, ...]
    sizes: tuple[expr.Index, ...]
    tail: schedule.Tail
    tile: dict[Level, str]

    @property
    def by_level(self) -> dict[Level, expr.Index]:
        """Its sizes."""
        return dict(zip(LEVELS[len(self.sizes)][1:], self.sizes, strict=True))


@dataclass(slots=True)
class TiledFold:
    """A fold and the stage that stores it; mutable while its sketch is built.

    node    the stage that the decisions are about
    block, thread   the loops of the host, once it is split
    """

    builder: SketchBuilder
    fold: str
    host: str
    node: str
    axes: list[TiledAxis] = field(default_factory=list)
    block: str = ""
    thread: str = ""

    @classmethod
    def of(cls, builder: SketchBuilder, name: str) -> TiledFold:
        """A fold that its reader stores; if none can, a copy of its result."""
        consumer = free_consumer(builder.state, name)
        if consumer is not None:
            return cls(builder, name, consumer.name, name)
        write = schedule.CacheWrite(name)
        builder.do(write)
        return cls(builder, write.cached, name, name)

    @property
    def stored(self) -> dict[str, str]:
        """The axes of the fold with those of the host that they are."""
        state = self.builder.state
        pairs = stored_axes(state.stage(self.fold).tensor, state.stage(self.host).tensor)
        return {own: stored for stored, own in pairs}

    @property
    def threads(self) -> expr.Index:
        """How many threads a block has."""
        return prod(axis.by_level[Level.THREAD] for axis in self.axes)

    @property
    def accumulators(self) -> tuple[expr.Index, ...]:
        """How many elements a thread has, as factors."""
        inside = (Level.POSITION, Level.ELEMENT)
        return tuple(
            n for axis in self.axes for level, n in axis.by_level.items() if level in inside
        )

    def split(
        self,
        axis: str,
        loops: tuple[str, ...],
        sizes: tuple[expr.Index, ...],
        tail: schedule.Tail = schedule.Tail.EXACT,
    ) -> None:
        """Tile an axis of the fold, which is these loops of the host."""
        tile = {Level.ELEMENT: axis}
        if Level.POSITION in LEVELS[len(sizes)]:
            step = schedule.SplitAxis(self.fold, axis, sizes)
            self.builder.do(step)
            tile = dict(zip(LEVELS[len(sizes)], step.axes, strict=True))
        self.axes.append(TiledAxis(loops, sizes, tail, tile))

    def store(
        self, *, threads: expr.Index | None = None, group: expr.Index | None = None, lanes: str = ""
    ) -> None:
        """Split the host, bind its blocks and threads, and compute the fold in a thread.

        threads   of a block, where no level says it: they share what is outside of the elements
        group     rows of blocks that run column by column; None: row by row
        lanes     the axis of the host whose elements are stored at once
        """
        builder, host = self.builder, self.host
        tiled = {x for axis in self.axes for x in axis.loops}
        rest = [x for x in builder.state.stage(host).loops if x not in tiled]
        if any(len(axis.loops) > 1 for axis in self.axes):
            joined = (loop for axis in self.axes for loop in axis.loops)
            builder.do(schedule.Reorder(host, (*rest, *joined)))
        loops: dict[Level, list[str]] = {level: [] for level in Level}
        for axis in self.axes:
            step = schedule.Split(host, fused(builder, host, axis.loops), axis.sizes, axis.tail)
            builder.do(step)
            for level, loop in zip(LEVELS[len(axis.sizes)], step.children, strict=True):
                loops[level].append(loop)
        blocks = (*rest, *loops.pop(Level.BLOCK))
        within = tuple(x for each in loops.values() for x in each)
        if threads is not None:  # neighbours in memory stay neighbouring threads
            blocks = tuple(x for x in builder.state.stage(host).loops if x not in within)
        builder.do(schedule.Reorder(host, (*blocks, *within)))
        if threads is not None:
            self.thread = deal_out(builder, host, blocks, threads)
        else:
            if group is None:  # one number for all blocks
                self.block = bind_fused(builder, host, blocks, schedule.ForKind.BLOCK_X)
            else:
                *rows, columns = blocks
                row = fused(builder, host, tuple(rows))
                builder.do(schedule.BlockOrder(host, row, columns, group))
            bound = tuple(loops[Level.THREAD])
            self.thread = bind_fused(builder, host, bound, schedule.ForKind.THREAD_X)
        inside = [*loops[Level.POSITION], *loops[Level.ELEMENT]]
        vector = inside.pop() if lanes in self.axes[-1].loops else ""
        write_out(builder, host, inside, vector)
        builder.limit(prod(self.accumulators), MOST_ACCUMULATORS)
        builder.do(schedule.ComputeAt(self.fold, host, self.thread))

    def sum(
        self,
        terms: Sequence[tuple[str, ...]],
        unrolled: Iterable[str] = (),
        *,
        is_joined: bool = False,
        has_lanes: bool = False,
    ) -> str:
        """Order the loops of the fold: parts of the reduction, terms of a part, elements.

        terms       the loops of each axis of the reduction: over parts if there are several, and in
                    a part
        is_joined   whether the loops over parts become one
        has_lanes   whether the last axis' elements are computed at once
        Gives the loop over parts, "" if there is one part.
        """
        builder, fold = self.builder, self.fold
        parts = [loops[0] for loops in terms if len(loops) > 1]
        inside = [x for loops in terms for x in (loops[1:] if len(loops) > 1 else loops)]
        levels = (Level.POSITION, Level.ELEMENT)
        tile = [each.tile[level] for level in levels for each in self.axes if level in each.tile]
        ordered = (*parts, *inside, *tile)
        rest = [x for x in builder.state.stage(fold).loops if x not in ordered]
        builder.do(schedule.Reorder(fold, (*rest, *ordered)))
        loop = fused(builder, fold, tuple(parts)) if is_joined else "".join(parts[-1:])
        vector = tile.pop() if has_lanes else ""
        write_out(builder, fold, (*unrolled, *tile), vector)
        return loop

    def fetch(self, source: str, host: str, loop: str, vector: int = 0) -> None:
        """Let the threads of a block fetch what the fold reads of a tensor, in a loop of a stage.

        A copy lies in shared memory.  A cheap stage that only the fold reads is part of the fetch.

        vector   elements that a thread fetches at once by rule; 0: one, without a choice
        """
        builder = self.builder
        read = schedule.CacheRead(source, self.fold, schedule.Scope.SHARED)
        if schedule.is_legal(read, builder.state):
            builder.do(read)
            inline_made(builder, source)
            self.fetch_stage(read.copy, host, loop, source, vector)

    def fetch_stage(
        self,
        name: str,
        host: str,
        loop: str,
        source: str,
        vector: int = 0,
        *,
        is_transposed: bool = False,
    ) -> None:
        """As `fetch`, for a stage that only the fold reads.

        is_transposed   its neighbours in memory lie along its last axis but one
        """
        builder = self.builder
        builder.do(schedule.ComputeAt(name, host, loop))
        if is_transposed:
            *loops, last, inner = builder.state.stage(name).loops
            builder.do(schedule.Reorder(name, (*loops, inner, last)))
        width: tuple[expr.Index, ...] = ()
        if vector:
            choice = f"{self.node}_{source.removeprefix(f'{self.node}_')}_vector"
            width = (builder.choose(choice, VECTORS, vector, Kind.OTHER, self.node),)
        builder.do(schedule.Cooperate(name, (self.threads,), *width))
        if is_transposed:  # else the threads that store neighbouring terms use one bank
            builder.do(schedule.Layout(name, schedule.LayoutKind.PADDED, _PADDING))


def stored_axes(tensor: expr.Compute, host: expr.Compute) -> tuple[tuple[str, str], ...]:
    """The axes of the stage that stores, in its order, with those of the fold that they are."""
    if tensor.name == host.name:
        return tuple((axis.name, axis.name) for axis in tensor.axes)
    (link,) = {*loads_from(host, tensor.name)}
    own = {index: axis.name for index, axis in zip(link.indices, tensor.axes, strict=True)}
    return tuple((axis.name, own[axis.var]) for axis in host.axes if axis.var in own)


def inline_made(builder: SketchBuilder, source: str) -> None:
    """Compute an operand while it is read if that is cheap: the padding of an image."""
    step = schedule.ComputeInline(source)
    is_made = builder.state.has_stage(source) and schedule.is_legal(step, builder.state)
    if is_made and is_cheap(builder.state.stage(source).tensor.body):
        builder.do(step)


def tail_of(extent: int, rows: Iterable[tuple[int, ...]]) -> schedule.Tail:
    """Exact where every row of sizes divides an extent, else guarded."""
    is_exact = all(extent % prod(row) == 0 for row in rows)
    return schedule.Tail.EXACT if is_exact else schedule.Tail.GUARD
