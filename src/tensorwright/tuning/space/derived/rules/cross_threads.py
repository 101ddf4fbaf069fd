"""Fold rows by the threads of a block: softmax, normalisation, means, products with one row.

A block stores some rows.  Each of its threads folds some terms of a row. The results of threads are
folded by the lanes of a warp, or in shared memory, and the results of warps by one thread.  All
stages of the rows are computed in this one launch.

Source:  Zheng et al., Ansor, OSDI 2020, section 4.1 (reduction across threads).

Make partial results, so that a fold of many terms into few elements can be parallel.
"""

from __future__ import annotations

from enum import Enum

from tensorwright import schedule
from tensorwright.base import GpuApi
from tensorwright.expr import Axis, Index
from tensorwright.tuning.space.accesses import lanes_for
from tensorwright.tuning.space.defaults.pointwise import inline_cheap
from tensorwright.tuning.space.derived import derivation, row_program
from tensorwright.tuning.space.derived.thread_tiles import plan_threads
from tensorwright.tuning.space.derived.tiled_fold import tail_of
from tensorwright.tuning.space.register_tile import limits_of
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, divisors


class _Factor(Enum):
    OUTER = "outer"  # a partial result for each part of the terms
    INNER = "inner"  # one for each lane


def _is_factored(view: derivation.Derivation) -> derivation.Verdict | bool:
    """If a fold has few elements and many terms, or contiguous terms but no such elements."""
    if view.current.endswith(("_cache", "_rf_rf")):
        return False
    if view.current.endswith("_rf"):
        return derivation.Verdict.YES_AND_SKIP_REST if _lacks_lanes(view) else False
    enough = limits_of(view.target).iterations
    return derivation.has_more_reduction_parallelism(view.state, view.current, enough)


@derivation.rule("factor the reduction", _is_factored)
def factor_reduction(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """Fold in two steps, with the outer or the inner part of the longest axis made spatial.

    A state for each factor; the stage of partial results comes next.
    """
    axes = view.stage.tensor.reduce_axes
    longest = max(axes, key=lambda each: each.length)
    contiguous = derivation.contiguous_axis(view.stage.tensor, axes)
    inner = longest if contiguous is None else contiguous
    states: list[derivation.Derivation] = []
    for factor in (_Factor.INNER,) if view.current.endswith("_rf") else tuple(_Factor):
        axis = inner if factor is _Factor.INNER else longest
        size = _size(axis, factor, view)
        if not 1 < size < axis.length:
            continue
        builder = view.grow()
        tail = tail_of(axis.length, [(size,)])
        builder.do(schedule.Split(view.current, axis.name, (size,), tail))
        loop = f"{axis.name}_{'o' if factor is _Factor.OUTER else 'i'}"
        builder.do(schedule.Rfactor(view.current, loop))
        states.append(view.then(builder, f"{view.current} factored {factor.value}"))
    return tuple(states)


def _lacks_lanes(view: derivation.Derivation) -> bool:
    """Whether vectors cannot lie along the elements of a fold, but along its terms."""
    tensor = view.stage.tensor
    if derivation.has_data_reuse(view.state, view.current):
        return False
    if derivation.contiguous_axis(tensor, tensor.axes) is not None:
        return False
    axis = derivation.contiguous_axis(tensor, tensor.reduce_axes)
    return axis is not None and axis.length >= 2 * lanes_for(view.target, view.stage)


def _size(axis: Axis, factor: _Factor, view: derivation.Derivation) -> int:
    """The extent of the inner part."""
    extent = axis.length
    if factor is _Factor.INNER:
        return lanes_for(view.target, view.stage)
    enough = limits_of(view.target).iterations
    whole = [n for n in divisors(extent, extent) if extent // n <= enough]
    return min((n for n in whole if n > 1), default=-(-extent // enough))


@derivation.rule("reduction across threads", lambda view: _prepared(view) is not None)
def reduce_across_threads(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """Compute the rows of a stage in blocks, and fold them across threads.

    Stages that are expensive and read twice stay in shared memory, or are computed again.
    """
    prepared = _prepared(view)
    assert prepared is not None, "the rule has asked"
    has_between = any(not stage.is_fold for stage in prepared[1].stages)
    ways = (True, False) if has_between else (True,)
    return tuple(_Rows(view, is_kept=is_kept).derive() for is_kept in ways)


_Prepared = tuple[SketchBuilder, row_program.RowProgram, row_program.RowThreads]


def _prepared(view: derivation.Derivation) -> _Prepared | None:
    """A builder that has inlined cheap stages, the rows of the stage and their threads."""
    builder = view.grow()
    if not derivation.is_untouched(view.state, view.stage) or _is_of_rows(view):
        return None
    inline_cheap(builder)
    if not builder.state.has_stage(view.current):
        return None
    if view.stage.tensor.reduction is not None:
        cache = schedule.CacheWrite(view.current)
        if not schedule.is_legal(cache, builder.state):
            return None
        builder.do(cache)
    program = row_program.plan_rows(builder.state, view.current)
    if program is None or not program.folds:
        return None
    for fold in program.folds:
        tensor = builder.state.stage(fold.name).tensor
        if plan_threads(tensor, tensor, view.target):
            return None
    threads = row_program.row_threads(builder.state, program, view.target)
    return None if threads is None else (builder, program, threads)


def _is_of_rows(view: derivation.Derivation) -> bool:
    """Whether a reader has been asked that could have computed the stage with its rows."""
    programs = (
        row_program.plan_rows(view.state, each.name) for each in view.state.readers(view.current)
    )
    return any(
        program is not None and any(stage.name == view.current for stage in program.stages)
        for program in programs
    )


class _Rows:
    """Mutable working state while the rows of one stage are dealt out."""

    def __init__(self, view: derivation.Derivation, is_kept: bool) -> None:
        prepared = _prepared(view)
        assert prepared is not None, "the rule has asked"
        self.view = view
        self.builder, self.program, self.threads = prepared
        self.is_kept = is_kept
        self.host = self.program.host.name
        self.block_loop = ""
        self.parts: Index = 1

    def derive(self) -> derivation.Derivation:
        """Deal out the rows of the host, then compute what it reads in the same blocks."""
        builder, threads, host = self.builder, self.threads, self.host
        rows = builder.choose(f"{host}_rows", threads.rows, threads.default_rows, Kind.TILE, host)
        self.parts = builder.choose(
            f"{host}_parts", threads.parts, threads.default_parts, Kind.TILE, host
        )
        self._deal_out_rows(rows)
        for stage in self.program.stages:
            if stage.is_fold:
                self._fold(stage)
            elif self.is_kept or not schedule.is_legal(
                schedule.ComputeInline(stage.name), builder.state
            ):
                self._put(stage.name, stage.row)
                self._deal_out_columns(stage.name, stage.columns)
            else:
                builder.do(schedule.ComputeInline(stage.name))
        ways = [f"{host} across {'threads' if threads.lanes else 'rows of threads'}"]
        if not self.is_kept:
            ways.append("computed again")
        tile = derivation.TiledStage(self.program.folds[0].name, host, ((host, self.block_loop),))
        return self.view.then(builder, ", ".join(ways), tile=tile)

    def _deal_out_rows(self, rows: Index) -> None:
        """Bind the rows of the host to blocks and threads, and its columns to threads."""
        host, program = self.host, self.program
        outer = list(program.outer)
        inner: list[str] = []
        if program.row:
            split = schedule.Split(host, program.row, (rows,))
            self.builder.do(split)
            outer.append(split.children[0])
            inner.append(split.children[1])
        self.builder.do(schedule.Reorder(host, (*outer, *inner, *program.host.columns)))
        self.block_loop = self._fused(host, tuple(outer))
        self.builder.do(schedule.Bind(host, self.block_loop, schedule.ForKind.BLOCK_X))
        for loop in inner:
            self.builder.do(schedule.Bind(host, loop, self.threads.row_index))
        self._deal_out_columns(host, program.host.columns)

    def _fused(self, stage: str, loops: tuple[str, ...]) -> str:
        """The loop that results from fusing some loops."""
        if len(loops) == 1:
            return loops[0]
        fuse = schedule.Fuse(stage, loops)
        self.builder.do(fuse)
        return fuse.fused

    def _levels(self) -> tuple[tuple[Index, schedule.ForKind], ...]:
        """The threads along a row, slowest first."""
        parts = (self.parts, schedule.ForKind.THREAD_Y)
        lanes = self.threads.lanes
        return (parts, (lanes, schedule.ForKind.THREAD_X)) if lanes else (parts,)

    def _split(self, stage: str, loops: tuple[str, ...]) -> tuple[str, ...]:
        """Split the loops over a row into those of a thread and the threads."""
        step = schedule.Split(
            stage, self._fused(stage, loops), tuple(size for size, _ in self._levels())
        )
        self.builder.do(step)
        return step.children

    def _deal_out_columns(self, stage: str, columns: tuple[str, ...]) -> None:
        if not columns:
            return
        each, *threads = self._split(stage, columns)
        loops = self.builder.state.stage(stage).loops
        before = tuple(loop for loop in loops if loop not in {each, *threads})
        self.builder.do(schedule.Reorder(stage, (*before, *threads, each)))
        for loop, (_, kind) in zip(threads, self._levels(), strict=True):
            self.builder.do(schedule.Bind(stage, loop, kind))

    def _put(self, name: str, row: str) -> None:
        """Compute a stage for the rows of a block."""
        self.builder.do(schedule.ComputeAt(name, self.host, self.block_loop))
        if row:
            self.builder.do(schedule.Bind(name, row, self.threads.row_index))

    def _fold(self, stage: row_program.RowStage) -> None:
        """Fold a row in steps: by each thread, by lanes, and by one thread."""
        builder, name = self.builder, stage.name
        axes = builder.state.stage(name).tensor.reduce_axes
        _, *threads = self._split(name, tuple(axis.name for axis in axes))
        for loop in threads:
            builder.do(schedule.Rfactor(name, loop))
            name += "_rf"
        self._put(stage.name, stage.row)
        partial = f"{stage.name}_rf"
        has_exchange = len(threads) > 1 and self.view.target.api is GpuApi.CUDA  # of lanes
        if has_exchange and schedule.is_legal(
            schedule.ShuffleReduce(partial, threads[1]), builder.state
        ):
            self._put(partial, stage.row)
            builder.do(schedule.Bind(partial, threads[0], schedule.ForKind.THREAD_Y))
            builder.do(schedule.ShuffleReduce(partial, threads[1]))
            builder.do(schedule.ComputeAt(f"{partial}_rf", partial, threads[1]))
            return
        for count in range(1, len(threads) + 1):  # the stages of partial results, last first
            self._put(partial, stage.row)
            for loop, (_, kind) in zip(threads[:count], self._levels(), strict=False):
                builder.do(schedule.Bind(partial, loop, kind))
            partial += "_rf"
