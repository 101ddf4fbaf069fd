"""Tiling of products of matrices for graphics processors: `SSSRRSRS`, with joined axes.

A sum of products becomes a product of matrices (`schedule/algorithms/implicit_gemm.py`), so that
the pixels of an image of 7 x 7, or of all images of a batch, are one axis.  A block computes a tile
of it.  For each part of the reduction its threads fetch parts of both operands together into shared
memory, with the terms outside: so the arithmetic reads whole vectors there.  A thread sums in
registers, at a few positions that are apart.  The reader of the result stores the tiles.

Source:  Zheng et al., Ansor, OSDI 2020, section 4.1, for graphics processors; Nath, Tomov and
         Dongarra, "An Improved MAGMA GEMM for Fermi GPUs", 2010, for the positions of a thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tensorwright import expr, schedule
from tensorwright.base import GpuTarget
from tensorwright.tuning.space.accesses import bytes_of
from tensorwright.tuning.space.defaults.pointwise import bind_fused, fused
from tensorwright.tuning.space.derived.derivation import (
    Derivation,
    TiledStage,
    Verdict,
    fusable_consumer,
    is_untouched,
)
from tensorwright.tuning.space.derived.thread_tiles import (
    MOST_ACCUMULATORS,
    MOST_TERMS,
    MatrixRow,
    default_matrix_folds,
    default_tile,
    fold_sizes,
    longest_tiles,
    stored_axes,
    tile_rows,
)
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, divisors
from tensorwright.tuning.space.steps import is_cheap

_GROUPS = (1, 2, 4, 8)  # rows of blocks that run column by column
_VECTORS = (1, 2, 4)  # elements that a thread fetches at once
_PADDING = 4  # elements: rows stay aligned for vectors
_MOST_UNROLLED = 16  # terms of the longest axis of the reduction
_UNROLLED = 8  # by rule: more would not fit the cache of instructions


@dataclass(frozen=True, slots=True)
class MatrixTiling:
    """Compute a sum of products in tiles of a product of matrices."""

    name: str = "matrix tiling"

    def applies(self, view: Derivation) -> Verdict:
        """If each operand has its own axis, nothing is scheduled, and no rule made the stage."""
        stage = view.stage
        is_free = isinstance(stage.placement, schedule.AtRoot) and is_untouched(view.state, stage)
        if not is_free or view.current.endswith("_cache"):
            return Verdict.NO
        return Verdict.NO if schedule.find_matrix_product(stage.tensor) is None else Verdict.YES

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """One state."""
        return (_Tiling(view).derive(),)


@dataclass(frozen=True, slots=True)
class _Operand:
    """A stage that holds an operand of the product, or a constant.

    vector    elements that lie side by side in memory, at most
    turned    whether they lie along the reduction: it is fetched in another order than it is read
    """

    name: str
    vector: int
    turned: bool = False
    is_copy: bool = True


class _Tiling:
    """Mutable working state while one stage is tiled."""

    def __init__(self, view: Derivation) -> None:
        matrices = schedule.find_matrix_product(view.stage.tensor)
        assert matrices is not None, "the rule has asked"
        self.view = view
        self.base = view.current
        self.matrices: schedule.MatrixProduct = matrices
        self.target: GpuTarget = view.target
        self.builder: SketchBuilder = view.grow()
        self.product = f"{self.base}_product"
        self.host = self.base

    def derive(self) -> Derivation:
        """Rewrite, tile the stage that stores, compute the sums in its threads, fetch for them."""
        operands = self._rewrite()
        self.are_copies = all(each.is_copy and not each.turned for each in operands)
        rows, columns = self._choose_tiles()
        threads = self._tile_host(rows, columns)
        self.builder.do(schedule.ComputeAt(self.product, self.host, threads))
        loop = self._tile_sums()
        for operand in operands:
            self._fetch(operand, loop, rows[1] * columns[1])
        places = ((self.host, threads), (self.product, loop))
        tiled = TiledStage(self.product, self.host, places, self.are_copies)
        return self.view.then(
            self.builder, f"{self.base} as matrices in blocks of threads", tile=tiled
        )

    def _rewrite(self) -> tuple[_Operand, ...]:
        """Replace the sum by a product of matrices; its operands, after folding constants."""
        builder = self.builder
        consumer = fusable_consumer(builder.state, self.base)
        builder.do(schedule.UseAlgorithm(self.base, "implicit_gemm"))
        if consumer is not None and is_untouched(builder.state, consumer):
            self.host = consumer.name
        own = stored_axes(self.view.stage.tensor, builder.state.stage(self.host).tensor)
        self.axes = {name: stored for stored, name in own}
        if self.host != self.base:
            builder.do(schedule.ComputeInline(self.base))
        tensor = builder.state.stage(self.product).tensor
        *self.both, self.rows, self.columns = tensor.axes
        self.terms = tensor.reduce_axes
        self.longest = longest_tiles(self.matrices)
        return tuple(self._operand(f"{self.base}_{side}") for side in ("left", "right"))

    def _operand(self, name: str) -> _Operand:
        builder = self.builder
        if schedule.is_legal(schedule.FoldConstant(name), builder.state):
            extent = builder.state.stage(name).tensor.axes[-1].length
            builder.do(schedule.FoldConstant(name))
            return _Operand(name, max(n for n in _VECTORS if extent % n == 0))
        stage = builder.state.stage(name)
        for source in {load.source.name for load in expr.loads_of(stage.tensor.body)}:
            inline = schedule.ComputeInline(source)
            is_made = builder.state.has_stage(source) and schedule.is_legal(inline, builder.state)
            if is_made and is_cheap(builder.state.stage(source).tensor.body):
                builder.do(inline)
        return _operand_of(builder.state.stage(name))

    def _choose_tiles(self) -> tuple[tuple[expr.Index, ...], tuple[expr.Index, ...]]:
        """Open the decisions about both axes of the product, and split its memory by them."""
        builder = self.builder
        batch = prod(axis.length for axis in self.both)
        extents = self.rows.length, self.columns.length
        tile: tuple[MatrixRow, ...] = default_tile(batch, extents, self.longest, self.target)
        chosen: list[tuple[expr.Index, ...]] = []
        axes = zip((self.rows, self.columns), self.longest, tile, strict=True)
        for axis, longest, default in axes:
            names = tuple(f"{self.base}_{axis.name}_{n}" for n in ("apart", "threads", "each"))
            row = builder.choose_rows(
                names, tile_rows(axis.length, longest), default, Kind.TILE, self.base
            )
            builder.do(schedule.SplitAxis(self.product, axis.name, row))
            chosen.append(row)
        rows, columns = chosen
        builder.limit(rows[0] * rows[2] * columns[0] * columns[2], MOST_ACCUMULATORS)
        return rows, columns

    def _tile_host(self, rows: tuple[expr.Index, ...], columns: tuple[expr.Index, ...]) -> str:
        """Split the stage that stores and bind its loops; the loop over threads."""
        builder, host = self.builder, self.host
        both = [self.axes[axis.name] for axis in self.both]
        joined = [[self.axes[axis.name] for axis in axes] for axes in self._joined()]
        named = {*both, *joined[0], *joined[1]}
        others = [x for x in builder.state.stage(host).loops if x not in named]
        builder.do(schedule.Reorder(host, (*others, *both, *joined[0], *joined[1])))
        levels = [
            self._split_host(loops, sizes, axis)
            for loops, sizes, axis in zip(
                joined, (rows, columns), (self.rows, self.columns), strict=True
            )
        ]
        (block, threads, apart, each) = (tuple(level[n] for level in levels) for n in (0, 2, 1, 3))
        builder.do(schedule.Reorder(host, (*others, *both, *block, *threads, *apart, *each)))
        self._number_blocks((*others, *both, block[0]), block[1])
        thread = bind_fused(builder, host, threads, schedule.ForKind.THREAD_X)
        for loop in (*apart, each[0]):
            builder.do(schedule.Unroll(host, loop))
        last = builder.state.stage(host).tensor.axes[-1].name
        step = schedule.Vectorize if last in joined[1] else schedule.Unroll
        builder.do(step(host, each[1]))
        return thread

    def _number_blocks(self, rows: tuple[str, ...], columns: str) -> None:
        """Bind the loops over blocks; in groups of rows, which share parts in a small cache."""
        builder, host = self.builder, self.host
        read = {load.source for load in expr.loads_of(self.view.stage.tensor.body)}
        if sum(map(bytes_of, read)) <= self.target.l2_bytes // 2:
            bind_fused(builder, host, (*rows, columns), schedule.ForKind.BLOCK_X)
            return
        name = f"{self.base}_group"
        group = builder.choose(name, _GROUPS, _GROUPS[-1], Kind.OTHER, self.base)
        builder.do(schedule.BlockOrder(host, fused(builder, host, rows), columns, group))

    def _joined(self) -> tuple[tuple[expr.Axis, ...], tuple[expr.Axis, ...]]:
        return self.matrices.rows, self.matrices.columns

    def _split_host(
        self, loops: list[str], sizes: tuple[expr.Index, ...], axis: expr.Axis
    ) -> tuple[str, ...]:
        """Fuse some loops and split the result into blocks, positions, threads and elements."""
        (loop, *more) = loops
        extent = prod(
            each.length
            for each in self.builder.state.stage(self.host).tensor.axes
            if each.name in loops
        )
        if more:
            fuse = schedule.Fuse(self.host, tuple(loops))
            self.builder.do(fuse)
            loop = fuse.fused
        tail = schedule.Tail.EXACT if extent == axis.length else schedule.Tail.GUARD
        step = schedule.Split(self.host, loop, sizes, tail)
        self.builder.do(step)
        return step.children

    def _tile_sums(self) -> str:
        """Split the reduction into parts; the loop over parts."""
        builder, name = self.builder, self.product
        outer: list[str] = []
        inner: list[str] = []
        folds = default_matrix_folds([axis.length for axis in self.terms])
        for axis, default in zip(self.terms, folds, strict=True):
            is_last = axis is self.terms[-1]
            factors = self._fold_factors(axis, default, is_last=is_last)
            is_exact = axis.length % default == 0
            step = schedule.Split(
                name, axis.name, factors, schedule.Tail.EXACT if is_exact else schedule.Tail.GUARD
            )
            builder.do(step)
            outer.append(step.children[0])
            inner += step.children[1:]
        own = builder.state.stage(name).loops
        rows, columns = (
            [x for x in own if x in schedule.SplitAxis(name, axis.name, (1, 1, 1)).axes]
            for axis in (self.rows, self.columns)
        )
        both = [axis.name for axis in self.both]
        tiles = [loop for level in (0, 2, 1, 3) for loop in (rows[level], columns[level])]
        builder.do(schedule.Reorder(name, (*both, *outer, *inner, *tiles)))
        loop = outer[0]
        if len(outer) > 1:
            fuse = schedule.Fuse(name, tuple(outer))
            builder.do(fuse)
            loop = fuse.fused
        for unrolled in (inner[-1], *tiles[4:-1]):
            builder.do(schedule.Unroll(name, unrolled))
        builder.do(schedule.Vectorize(name, tiles[-1]))
        return loop

    def _fold_factors(
        self, axis: expr.Axis, default: int, *, is_last: bool
    ) -> tuple[expr.Index, ...]:
        """The terms of a part along an axis; of the last one, in steps that are unrolled."""
        is_exact = axis.length % default == 0
        sizes = [
            n for n in fold_sizes(axis.length, MOST_TERMS) if (axis.length % n == 0) == is_exact
        ]
        if not is_last:
            name = f"{self.base}_{axis.name}_part"
            return (self.builder.choose(name, tuple(sizes), default, Kind.TILE, self.base),)
        rows = tuple((n // u, u) for n in sizes for u in divisors(n, _MOST_UNROLLED))
        names = (f"{self.base}_{axis.name}_steps", f"{self.base}_{axis.name}_unrolled")
        unrolled = max(divisors(default, _UNROLLED))
        row = (default // unrolled, unrolled)
        return self.builder.choose_rows(names, rows, row, Kind.TILE, self.base)

    def _fetch(self, operand: _Operand, loop: str, threads: expr.Index) -> None:
        """Let the threads of a block fetch a part of an operand together into shared memory."""
        builder, name = self.builder, operand.name
        if not builder.state.has_stage(name):
            read = schedule.CacheRead(name, self.product, schedule.Scope.SHARED)
            builder.do(read)
            name = read.copy
        builder.do(schedule.ComputeAt(name, self.product, loop))
        if operand.turned:
            loops = builder.state.stage(name).loops
            builder.do(schedule.Reorder(name, (*loops[:-2], loops[-1], loops[-2])))
        default = operand.vector
        vector = builder.choose(f"{operand.name}_vector", _VECTORS, default, Kind.OTHER, self.base)
        builder.do(schedule.Cooperate(name, (threads,), vector))
        if operand.turned:  # else the threads that store neighbouring terms use one bank
            builder.do(schedule.Layout(name, schedule.LayoutKind.PADDED, _PADDING))


def _operand_of(stage: schedule.Stage) -> _Operand:
    """The memory layout of an operand that is computed while it is fetched."""
    tensor = stage.tensor
    body = tensor.body
    if not isinstance(body, expr.Load):
        return _Operand(stage.name, 1, is_copy=False)
    bounds = {axis.var: expr.Range(0, axis.length - 1) for axis in tensor.axes}
    offset: expr.Index = 0
    for index, extent in zip(body.indices, body.source.shape, strict=True):
        offset = offset * extent + index
    offset = expr.simplify(offset, bounds)
    last = tensor.axes[-1]
    if _step(offset, last.var) == 1:
        return _Operand(stage.name, _aligned(offset, last, tensor.axes))
    if len(tensor.axes) > 1 and _step(offset, tensor.axes[-2].var) == 1:
        inner = tensor.axes[-2]
        return _Operand(stage.name, _aligned(offset, inner, tensor.axes), turned=True)
    return _Operand(stage.name, 1)


def _step(offset: expr.Index, var: expr.Var) -> expr.Index:
    """The distance of two neighbours along a variable."""
    return expr.substitute(offset, {var: var + 1}) - offset


def _aligned(offset: expr.Index, along: expr.Axis, axes: tuple[expr.Axis, ...]) -> int:
    """The longest run along an axis that starts at a multiple of its length, everywhere."""
    steps = [_step(offset, axis.var) for axis in axes if axis is not along]
    sizes = (along.length, *(step for step in steps if isinstance(step, int)))
    if not all(isinstance(step, int) for step in steps):
        return 1
    return max(n for n in _VECTORS if all(size % n == 0 for size in sizes))
