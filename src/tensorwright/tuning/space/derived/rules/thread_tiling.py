"""Multi-level tiling for graphics processors: blocks, threads, parts of the reduction, registers.

A block computes a tile of the result and a thread a part of it, in its own memory.  For each part
of the reduction the threads of a block fetch what they read together into shared memory.  The
reader of the fold, or a copy of its result, stores the tile of the thread.

Source:  Zheng et al., Ansor, OSDI 2020, section 4.1, for graphics processors.

Split a reduction over blocks: if a result has few tiles, blocks fold parts of the terms.

A first launch has partial results, which other rules tile as any fold.  A second one folds these.

Source:  Osama et al., Stream-K, PPoPP 2023, section 2 (split-k).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tensorwright import expr, schedule
from tensorwright.base import GpuTarget
from tensorwright.tuning.space.defaults.pointwise import bind_fused
from tensorwright.tuning.space.derived.derivation import (
    Derivation,
    TiledStage,
    Verdict,
    fusable_consumer,
    is_untouched,
)
from tensorwright.tuning.space.derived.thread_tiles import (
    ThreadAxis,
    default_folds,
    fold_sizes,
    plan_threads,
)
from tensorwright.tuning.space.register_tile import limits_of
from tensorwright.tuning.space.sketch import Kind, divisors
from tensorwright.tuning.space.steps import is_cheap

_VECTORS = (1, 2, 4)  # elements that a thread fetches at once
_MOST_ACCUMULATORS = 128  # of a thread: as many registers are left for operands and addresses


def _plan(view: Derivation) -> tuple[ThreadAxis, ...]:
    """The axes to tile; none if the stage is not to be tiled."""
    tensor = view.stage.tensor
    if tensor.reduction is None or not isinstance(view.stage.placement, schedule.AtRoot):
        return ()
    consumer = fusable_consumer(view.state, view.current)
    return plan_threads(tensor, tensor if consumer is None else consumer.tensor, view.target)


@dataclass(frozen=True, slots=True)
class CacheThreadTile:
    """Compute a stage that pays to be tiled into a cache, if no reader can store its tiles."""

    name: str = "cache the tile of a thread"

    def applies(self, view: Derivation) -> Verdict:
        """If tiling pays and there is no such reader; only the cache is tiled then."""
        has_reader = fusable_consumer(view.state, view.current) is not None
        return Verdict.YES if not has_reader and _plan(view) else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The cache comes next; the copy is its consumer."""
        builder = view.grow()
        builder.do(schedule.CacheWrite(view.current))
        return (view.then(builder),)


@dataclass(frozen=True, slots=True)
class ThreadTiling:
    """Tile a fold in the threads of its reader, with operands in shared memory."""

    name: str = "thread tiling"

    def applies(self, view: Derivation) -> Verdict:
        """If tiling pays and the reader is still free."""
        consumer = fusable_consumer(view.state, view.current)
        is_free = consumer is not None and is_untouched(view.state, consumer)
        return Verdict.YES if is_free and _plan(view) else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """One state."""
        return (_Tiling(view).derive(),)


class _Tiling:
    """Mutable working state while one stage is tiled."""

    def __init__(self, view: Derivation) -> None:
        self.view = view
        self.name = view.current
        self.base = self.name.removesuffix("_cache")
        consumer = fusable_consumer(view.state, self.name)
        assert consumer is not None, "the rule has asked"
        self.host = consumer.name
        self.axes = _plan(view)
        self.loads = tuple(dict.fromkeys(expr.loads_of(view.stage.tensor.body)))
        self.builder = view.grow()
        self.threads: expr.Index = 1
        self.folds: dict[str, int] = {}

    def derive(self) -> Derivation:
        """Tile the reader, compute the fold in its threads, and fetch its operands together."""
        loop = self._tile_host()
        self.builder.do(schedule.ComputeAt(self.name, *loop))
        fetched_at = self._tile_fold()
        if fetched_at:
            for source in dict.fromkeys(load.source.name for load in self.loads):
                self._fetch(source, fetched_at)
        places = (loop, (self.name, fetched_at)) if fetched_at else (loop,)
        tile = TiledStage(self.name, self.host, places)
        return self.view.then(self.builder, f"{self.base} in blocks of threads", tile=tile)

    def _tile_host(self) -> tuple[str, str]:
        """Split the reader and bind its loops; the loop over threads."""
        builder, levels = self.builder, []
        sizes: list[tuple[expr.Index, ...]] = []
        for axis in self.axes:
            names = (f"{self.base}_{axis.own}_threads", f"{self.base}_{axis.own}_each")
            row = builder.choose_rows(names, axis.rows, axis.default, Kind.TILE, self.base)
            is_exact = all(axis.extent % prod(each) == 0 for each in (*axis.rows, axis.default))
            step = schedule.Split(
                self.host, axis.name, row, schedule.Tail.EXACT if is_exact else schedule.Tail.GUARD
            )
            builder.do(step)
            levels.append(step.children)
            sizes.append(row)
        self.threads = prod(row[0] for row in sizes)
        builder.limit(prod(row[1] for row in sizes), _MOST_ACCUMULATORS)
        blocks, threads, inner = (tuple(names) for names in zip(*levels, strict=True))
        others = tuple(
            x for x in builder.state.stage(self.host).loops if x not in {*blocks, *threads, *inner}
        )
        builder.do(schedule.Reorder(self.host, (*others, *blocks, *threads, *inner)))
        bind_fused(builder, self.host, (*others, *blocks), schedule.ForKind.BLOCK_X)
        thread = bind_fused(builder, self.host, threads, schedule.ForKind.THREAD_X)
        for loop in inner:
            builder.do(schedule.Unroll(self.host, loop))
        return self.host, thread

    def _tile_fold(self) -> str:
        """Split the reduction into parts; the loop over parts, "" if there is one."""
        builder = self.builder
        stage = builder.state.stage(self.name)
        axes = [axis for axis in stage.tensor.reduce_axes if axis.extent != 1]
        most = limits_of(self.view.target).unrolled
        self.folds = default_folds(axes, most)
        outer: list[str] = []
        inner: list[str] = []
        for axis in axes:
            sizes = fold_sizes(axis.length, most)
            size = builder.choose(
                f"{self.base}_{axis.name}_part", sizes, self.folds[axis.name], Kind.TILE, self.base
            )
            is_exact = all(axis.length % n == 0 for n in sizes)
            step = schedule.Split(
                self.name,
                axis.name,
                (size,),
                schedule.Tail.EXACT if is_exact else schedule.Tail.GUARD,
            )
            builder.do(step)
            outer.append(step.children[0])
            inner.append(step.children[1])
        rest = [x for x in builder.state.stage(self.name).loops if x not in {*outer, *inner}]
        tile = [axis.own for axis in self.axes]
        units = [x for x in rest if x not in tile]
        builder.do(schedule.Reorder(self.name, (*units, *outer, *inner, *tile)))
        for loop in tile:
            builder.do(schedule.Unroll(self.name, loop))
        return outer[-1] if outer else ""

    def _fetch(self, source: str, loop: str) -> None:
        """Let the threads of a block fetch a part of an operand together into shared memory.

        An operand that is cheap to compute and read here alone is computed while it is fetched.
        """
        builder = self.builder
        read = schedule.CacheRead(source, self.name, schedule.Scope.SHARED)
        if not schedule.is_legal(read, builder.state):
            return
        builder.do(read)
        inline = schedule.ComputeInline(source)
        is_made = builder.state.has_stage(source) and schedule.is_legal(inline, builder.state)
        if is_made and is_cheap(builder.state.stage(source).tensor.body):
            builder.do(inline)
        builder.do(schedule.ComputeAt(read.copy, self.name, loop))
        vector = builder.choose(
            f"{self.base}_{source}_vector", _VECTORS, self._vector(source), Kind.OTHER, self.base
        )
        builder.do(schedule.Cooperate(read.copy, (self.threads,), vector))

    def _vector(self, source: str) -> int:
        """The number of elements fetched at once by rule: a divisor of the rows of the part."""
        (load, *_) = (each for each in self.loads if each.source.name == source)
        if not load.indices or not isinstance(load.indices[-1], expr.Var):
            return 1
        length = self._length(load)
        row = load.source.shape[-1]
        fits = (n for n in _VECTORS if length % n == 0 and isinstance(row, int) and row % n == 0)
        return max(fits)

    def _length(self, load: expr.Load) -> int:
        """The last dimension of the part of an operand, by rule."""
        variable = load.indices[-1]
        assert isinstance(variable, expr.Var)
        tensor = self.view.stage.tensor
        for axis in tensor.reduce_axes:
            if axis.var == variable:
                return self.folds.get(axis.name, 1)
        own = next((axis.name for axis in tensor.axes if axis.var == variable), "")
        return next((prod(axis.default) for axis in self.axes if axis.own == own), 1)


_TILE = 32 * 32  # elements of a block that uses its operands well
_TERMS = 128  # of a part: fewer are not worth a second launch
_MOST_PARTS = 32
_WAVES = 4  # blocks for each multiprocessor that are wanted: they wait in turns
_FEWER = 2  # times fewer parts are tried, too


@dataclass(frozen=True, slots=True)
class SplitReductionOverBlocks:
    """Fold parts of a reduction in separate blocks; a sketch for each number of parts."""

    name: str = "reduction split over blocks"

    def applies(self, view: Derivation) -> Verdict:
        """If a multiprocessor has few tiles of a fold, and the fold has terms for more."""
        return Verdict.YES if _parts(view) else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The partial results come next."""
        tensor = view.stage.tensor
        axis = max(tensor.reduce_axes, key=lambda each: each.length)
        derived: list[Derivation] = []
        for parts in _parts(view):
            builder = view.grow()
            exact = axis.length % parts == 0
            tail = schedule.Tail.EXACT if exact else schedule.Tail.GUARD
            step = schedule.Split(view.current, axis.name, (-(-axis.length // parts),), tail)
            builder.do(step)
            builder.do(schedule.Rfactor(view.current, step.children[0], 0))
            derived.append(view.then(builder, f"{view.current} split over {parts} blocks"))
        return tuple(derived)


def _parts(view: Derivation) -> tuple[int, ...]:
    """The numbers of parts of a reduction, that by rule first."""
    tensor, name = view.stage.tensor, view.current
    is_free = isinstance(view.stage.placement, schedule.AtRoot) and is_untouched(
        view.state, view.stage
    )
    if tensor.reduction is None or not is_free or name.endswith(("_rf", "_cache")):
        return ()
    if any(reader.name in view.elements for reader in view.state.readers(name)):
        return ()
    if not all(isinstance(axis.extent, int) for axis in (*tensor.axes, *tensor.reduce_axes)):
        return ()
    wanted = _wanted(tensor, view.target)
    longest = max(tensor.reduce_axes, key=lambda each: each.length)
    terms = prod(axis.length for axis in tensor.reduce_axes)
    most = min(wanted, terms // _TERMS, _MOST_PARTS)
    if most < 2:
        return ()
    first = _divisor(longest, most)
    fewer = _divisor(longest, most // _FEWER)
    return tuple(dict.fromkeys(n for n in (first, fewer) if n > 1))


def _wanted(tensor: expr.Compute, target: GpuTarget) -> int:
    """The number of parts that gives each multiprocessor enough blocks; 1 if the tiles alone do."""
    elements = prod(axis.length for axis in tensor.axes)
    tile = _TILE if plan_threads(tensor, tensor, target) else 1
    tiles = -(-elements // tile)
    waves = 1 if target.is_processor else _WAVES
    return -(-waves * target.multiprocessors // tiles)


def _divisor(axis: expr.Axis, most: int) -> int:
    """The largest number of equal parts, or a power of two if the axis has no such divisors."""
    exact = divisors(axis.length, max(1, most))[-1]
    return exact if 2 * exact > most else min(axis.length, 1 << (max(1, most).bit_length() - 1))
