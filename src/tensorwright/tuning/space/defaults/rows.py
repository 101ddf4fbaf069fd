"""The row heuristic: reductions along rows (softmax, normalisation, attention scores, means).

The loops of the last stage are split into rows and the elements of a row.  Its inputs are computed
for a block of rows inside the loop over blocks, in buffers of that size, so the input is read from
memory once.  A reduction along the contiguous axis is factored first: its partial results fill the
lanes of a vector.  A product inside a block (the scores of attention, and their weighted sums) is
computed in register tiles.

Attention computes the scores of six to twelve queries with all keys, in a buffer that stays in the
second cache. A running maximum over blocks of keys would save nothing below ten thousand keys: from
the second cache the products alone reach 93 to 97 % of the peak with up to 4,096 keys.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright import expr, schedule
from tensorwright.base import CpuTarget, DType
from tensorwright.tuning.space import accesses, register_tile, steps
from tensorwright.tuning.space.defaults.products import (
    has_large_products,
    is_product,
    multiply_sums,
    shared_rows,
    tile_products,
)
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder, divisors


def row_sketches(state: schedule.ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """The sketches by rows, each made when it is asked for; none without a reduction."""
    if all(stage.tensor.reduction is None for stage in state.stages):
        return
    builder = SketchBuilder(state)
    if schedule_rows(builder, target):
        yield builder.sketch("rows")
    else:
        yield from (_separate(state, target, parts, vectors) for parts, vectors in _PARTITIONS)


def schedule_rows(builder: SketchBuilder, target: CpuTarget, vectors: int = 1) -> bool:
    """Compute all stages in blocks of rows; False if there are no rows, or products too large.

    vectors   of the partial results of a row, where it is long enough
    """
    multiply_sums(builder)
    steps.inline_elementwise(builder)
    rows = _leading_rows(builder.state)
    transposed = _transpose_operands(builder, target)
    if not rows or has_large_products(builder.state, len(rows)):
        return False
    stages = builder.state.stages
    names = frozenset(stage.name for stage in stages)
    packed = frozenset(x.name for x in stages if _has_packed_lanes(builder.state, x, target))
    factor_contiguous(builder, target, vectors, names, packed)
    _compute_by_blocks(builder, target, rows, transposed, packed)
    return True


def _leading_rows(state: schedule.ScheduleState) -> tuple[expr.Axis, ...]:
    """The axes that all stages share; the last axis of a product at the end is for its lanes."""
    rows, last = shared_rows(state), state.stages[-1]
    return rows[:-1] if is_product(last) and rows[-1:] == last.tensor.axes[-1:] else rows


_PARTITIONS = ((16, 8), (8, 8), (4, 8), (64, 1), (64, 4), (16, 1), (8, 4), (2, 4), (32, 8))
"""The parts of a large sum for the threads, and the vectors of each part's sums."""


def _separate(state: schedule.ScheduleState, target: CpuTarget, parts: int, vectors: int) -> Sketch:
    """Every stage separately."""
    builder = SketchBuilder(state)
    steps.inline_elementwise(builder)
    tiled = tile_products(builder, target)
    cut = _factor_whole(builder, parts)
    factor_contiguous(builder, target, vectors, cut, tiled)
    done = set(tiled)
    for stage in builder.state.stages:
        if stage.name not in done:
            done |= _fold_inside(builder, stage.name, target)
    for stage in builder.state.stages:
        if stage.name not in done:
            _schedule_alone(builder, stage.name, target)
    return builder.sketch(f"separate, {parts} parts of {vectors} vectors" if cut else "separate")


def _factor_whole(builder: SketchBuilder, parts: int) -> frozenset[str]:
    """Give a large reduction without spatial axes one: partial results that threads can compute.

    Returns the names of their stages.
    """
    made: set[str] = set()
    for stage in builder.state.stages:
        reduction = stage.tensor.reduction
        spatial = any(axis.extent != 1 for axis in stage.tensor.axes)
        if (
            reduction is None
            or spatial
            or accesses.points(stage.tensor) < steps.MIN_PARALLEL_POINTS
        ):
            continue
        if not stage.tensor.dtype.is_float:
            continue
        axis = reduction.axes[0]
        each = -(-axis.length // parts)
        loop = axis.name
        if each > 1 or len(reduction.axes) == 1:
            builder.do(schedule.Split(stage.name, loop, (each,)))
            loop = f"{loop}_o"
        step = schedule.Rfactor(stage.name, loop)
        builder.do(step)
        made.add(step.partial)
    return frozenset(made)


def _transpose_operands(builder: SketchBuilder, target: CpuTarget) -> tuple[str, ...]:
    """Make transposed copies of operands that are read across their rows.

    These are operands of products, and of stages that fold nothing. Lanes along the last axis would
    gather every vector again for each row; each vector of the copy is gathered once.  Returns the
    names of the copies.
    """
    copies: list[str] = []
    for stage in builder.state.stages:
        lanes = accesses.lanes_for(target, stage)
        transposed: list[str] = []  # for all loads of this stage
        is_wanted = stage.tensor.axes and (is_product(stage) or stage.tensor.reduction is None)
        for load in expr.loads_of(stage.tensor.body) if is_wanted else ():
            order = _order_along(load, stage.tensor.axes[-1], lanes)
            others = [a for a in stage.tensor.axes if not accesses.reads_along(load, a.var)]
            uses = accesses.count_of(others)
            is_done = load.source.name in (*builder.state.constants, *transposed)
            if order and uses >= _TRANSPOSE_USES and not is_done:
                step = schedule.CacheRead(
                    load.source.name, stage.name, schedule.Scope.GLOBAL, order
                )
                transposed.append(load.source.name)
                builder.do(step)
                copies.append(step.copy)
    return tuple(copies)


def _has_packed_lanes(
    state: schedule.ScheduleState, stage: schedule.Stage, target: CpuTarget
) -> bool:
    """Whether a product, such as a dense layer, has vectors only if its constants are packed."""
    axes = stage.tensor.axes
    if not is_product(stage) or not axes or axes[-1].length < accesses.lanes_for(target, stage):
        return False
    packable = steps.packable_constants(state, stage.name)
    across = [
        load.source.name
        for load in expr.loads_of(stage.tensor.body)
        if accesses.stride_along(load, axes[-1].var) not in (0, 1)
    ]
    return bool(across) and all(name in packable for name in across)


_TRANSPOSE_USES = 8  # the least uses of an operand that is worth a copy
_ENOUGH_OUTER = 8  # iterations of the loops around the rows that keep the threads busy


def _order_along(load: expr.Load, axis: expr.Axis, lanes: int) -> tuple[int, ...]:
    """The dimensions with the one that an axis moves last; () if they are so, or none is."""
    if accesses.stride_along(load, axis.var) in (0, 1) or axis.length < lanes:
        return ()
    across = [n for n, index in enumerate(load.indices) if axis.var in expr.free_vars(index)]
    if len(across) != 1 or load.indices[across[0]] != axis.var:
        return ()
    return accesses.dimension_last(len(load.indices), across[0])


def factor_contiguous(
    builder: SketchBuilder,
    target: CpuTarget,
    vectors: int = 1,
    wide: frozenset[str] = frozenset(),
    done: frozenset[str] = frozenset(),
) -> None:
    """Factor the reductions along a contiguous axis that have no spatial axis to vectorise.

    vectors   of partial results, in the stages `wide`, where they are long enough
    done      stages that have their schedule
    """
    for stage in builder.state.stages:
        reduction = stage.tensor.reduction
        if stage.name in done or reduction is None or register_tile.vector_axis(stage) is not None:
            continue
        if builder.state.has_stage(f"{stage.name}_rf"):
            continue
        lanes = accesses.lanes_for(target, stage)
        run = _run_folded(stage, 2 * lanes)
        dtype = stage.tensor.dtype
        if not run or not (dtype.is_float or dtype is DType.I32):  # positions of an argmax
            continue
        if stage.name in wide and accesses.count_of(run) >= 2 * vectors * lanes:
            lanes *= vectors
        names = tuple(axis.name for axis in run)
        if len(run) > 1:
            builder.do(schedule.Fuse(stage.name, names))
        loop = "_".join(names)
        builder.do(schedule.Split(stage.name, loop, (lanes,)))
        builder.do(schedule.Rfactor(stage.name, f"{loop}_i"))
        if lanes == accesses.lanes_for(target, stage) and dtype.is_float:
            builder.do(schedule.Vectorize(stage.name, f"{loop}_i"))


def _run_folded(stage: schedule.Stage, least: int) -> tuple[expr.Axis, ...]:
    """The last axes of a reduction along which neighbours are read, as few as are long enough."""
    assert stage.tensor.reduction is not None
    axes = stage.tensor.reduction.axes
    loads = tuple(expr.loads_of(stage.tensor.body))
    for count in range(1, len(axes) + 1):
        run = axes[-count:]
        if accesses.count_of(run) == 0 or any(
            accesses.stride_of_run(load, run) not in (0, 1) for load in loads
        ):
            return ()
        if accesses.count_of(run) >= least:
            return run
    return ()


_MOST_VECTORS = 8  # of partial results that are folded in turns


def _schedule_alone(builder: SketchBuilder, name: str, target: CpuTarget) -> None:
    stage = builder.state.stage(name)
    if stage.tensor.reduction is None:
        steps.schedule_at_root(builder, name, target, name)
        return
    register_tile.vectorise_last(builder, name, target, _MOST_VECTORS)
    vector = register_tile.vector_axis(stage)
    spatial = {a.name for a in stage.tensor.axes if a is not vector and a.extent != 1}
    loops = builder.state.stage(name).loops
    outer = [loop for loop in loops if loop in spatial]
    if outer and outer != list(loops[: len(outer)]):
        builder.do(schedule.Reorder(name, (*outer, *(x for x in loops if x not in outer))))
    steps.parallelise(builder, name, outer[:2], steps.element_work(stage.tensor))


def _fold_inside(builder: SketchBuilder, name: str, target: CpuTarget) -> frozenset[str]:
    """Keep the partial results of a factored product in registers, element by element.

    The largest operand is read once: elements that use the same part of it are neighbours.
    Returns the stages that are scheduled.
    """
    partial = f"{name}_rf"
    if not builder.state.has_stage(partial) or not is_product(builder.state.stage(partial)):
        return frozenset()
    stage, folded = builder.state.stage(name), builder.state.stage(partial)
    largest = max(
        expr.loads_of(folded.tensor.body), key=lambda load: accesses.elements_of(load.source)
    )
    pairs = zip(stage.tensor.axes, folded.tensor.axes, strict=False)
    again = {
        axis.name: accesses.stride_along(largest, own.var) in (0, None)
        for axis, own in pairs
        if axis.extent != 1
    }
    loops = sorted(again, key=lambda loop: again[loop])
    if not loops:
        return frozenset()
    rest = [loop for loop in stage.loops if loop not in loops]
    builder.do(schedule.Reorder(name, (*loops, *rest)))
    builder.do(schedule.ComputeAt(partial, name, loops[-1]))
    register_tile.vectorise_last(builder, partial, target, _MOST_VECTORS)
    outer = [loop for loop in loops if not again[loop]]
    steps.parallelise(builder, name, outer, steps.element_work(folded.tensor))
    return frozenset((name, partial))


def _compute_by_blocks(
    builder: SketchBuilder,
    target: CpuTarget,
    rows: tuple[expr.Axis, ...],
    transposed: tuple[str, ...],
    packed: frozenset[str],
) -> None:
    """Compute all stages inside a loop over blocks of rows of the last one.

    Copies of operands (`transposed`) are made once for all blocks that use them, by the thread that
    computes these; at the root if the loops around the rows are too short for that.  The constants
    of some products (`packed`) are packed.
    """
    last = builder.state.stages[-1]
    products = [s.name for s in builder.state.stages if is_product(s)]
    for name in products:
        builder.do(schedule.CacheWrite(name))
    work = sum(accesses.points(stage.tensor) for stage in builder.state.stages)
    split = max(n for n, axis in enumerate(rows) if axis.extent != 1)
    extent = rows[split].length
    stored = builder.state.stage(last.name)  # a product is folded in another stage by now
    sizes, tail = _block_sizes(extent, stored, has_products=bool(products))
    default = _default_block(builder, target, rows[: split + 1], sizes)
    block = builder.choose("block", sizes, default)
    builder.do(schedule.Split(last.name, rows[split].name, (block,), tail))
    around = [axis.name for axis in rows[:split]]
    outer = [*around, f"{rows[split].name}_o"]
    loops = builder.state.stage(last.name).loops
    builder.do(schedule.Reorder(last.name, (*outer, *(x for x in loops if x not in outer))))
    host, home = outer[-1], ""
    if transposed and accesses.count_of(rows[:split]) >= _ENOUGH_OUTER:
        home = steps.parallelise(builder, last.name, around, work)
    host = host if home else steps.parallelise(builder, last.name, outer, work) or host
    for stage in reversed(builder.state.stages):
        if stage.name in transposed:
            _schedule_copy(builder, stage.name, target, last.name, home)
            continue
        is_hosted = stage.name == last.name or _is_cache_of(stage.name, products)
        if stage.placement == schedule.AtRoot() and not is_hosted:
            builder.do(schedule.ComputeAt(stage.name, last.name, host))
        if stage.name in products:  # immediately: its inputs can then follow into the block
            outside = (*builder.state.stage(last.name).loops,)
            outside = outside[: outside.index(host) + 1] if stage.name == last.name else ()
            is_packed = stage.name in packed
            _tile_product(builder, stage.name, target, block, outside, is_packed=is_packed)
    for stage in builder.state.stages:
        if stage.name not in (*products, *transposed) and not _is_cache_of(stage.name, products):
            register_tile.vectorise_last(builder, stage.name, target, _MOST_VECTORS)
            if stage.name.endswith("_rf") and builder.state.has_stage(
                stage.name.removesuffix("_rf")
            ):
                register_tile.interleave(builder, stage.name, stage.tensor.axes[split].name)
    step = schedule.EndAtMask(last.name, host)
    if schedule.is_legal(step, builder.state):
        builder.do(step)


_FEW_ROWS = 4  # of a block, which then waits for its sums
_FEW_BLOCKS = 16  # the least blocks of rows, so that all threads have some
_ROWS_BYTES = 16384  # bytes of a block's widest tensor that leave room in the first cache


def _block_sizes(
    extent: int, last: schedule.Stage, *, has_products: bool
) -> tuple[tuple[int, ...], schedule.Tail]:
    """The numbers of rows that a block may have: divisors of all rows.

    If those are few, also some that leave a last block, which is shifted back.
    """
    sizes = divisors(extent, register_tile.CPU_LIMITS.block_rows) or (1,)
    is_enough = extent < _FEW_ROWS or (max(sizes) >= _FEW_ROWS and not has_products)
    if is_enough or last.tensor.reduction is not None:
        return sizes, schedule.Tail.GUARD
    more = tuple(sorted({*sizes, *(n for n in (4, 6, 8) if n <= extent)}))
    return more, schedule.Tail.GUARD if more == sizes else schedule.Tail.SHIFT


def _default_block(
    builder: SketchBuilder, target: CpuTarget, axes: tuple[expr.Axis, ...], sizes: tuple[int, ...]
) -> int:
    """The number of rows of a block of some axes, of which the last is split.

    A product uses its vectors for as many rows as registers hold; other rows hide latency.
    """
    state = builder.state
    if any(is_product(stage) for stage in state.stages):
        columns = 2
        extent = axes[-1].length
        held = [n for n in sizes if (n + 1) * columns <= register_tile.tile_registers(target)]
        # reading a vector takes about as long as using it for a row; a shifted block repeats work
        return min(held, key=lambda n: (-(-extent // n) * (n + columns), -n), default=1)
    rows = accesses.count_of(axes)
    points_of_row = max(accesses.points(stage.tensor) for stage in state.stages) // max(1, rows)
    most = min(4, rows // _FEW_BLOCKS, _ROWS_BYTES // (4 * max(1, points_of_row)))
    return max(n for n in sizes if n <= max(1, most))


def _schedule_copy(
    builder: SketchBuilder, name: str, target: CpuTarget, reader: str, home: str
) -> None:
    """Copy an operand in the other order.

    home   the loop of the reader that it is computed at; the root if ""
    """
    stage = builder.state.stage(name)
    lanes = accesses.lanes_for(target, stage)
    along, last = stage.tensor.axes[-2:]
    outer = steps.transpose_squares(builder, name, along.name, last.name, lanes)
    if home:
        builder.do(schedule.ComputeAt(name, reader, home))
    else:
        steps.parallelise(builder, name, outer, steps.element_work(stage.tensor))


def _is_cache_of(name: str, products: list[str]) -> bool:
    return any(name == schedule.CacheWrite(product).cached for product in products)


def _tile_product(
    builder: SketchBuilder,
    name: str,
    target: CpuTarget,
    block: expr.Index,
    outside: tuple[str, ...] = (),
    *,
    is_packed: bool,
) -> None:
    """Compute a product inside a block in register tiles: all rows of the block by some vectors.

    outside     loops of the stage that are around its block
    is_packed   whether its constants are to be packed along the vectors
    """
    stage = builder.state.stage(name)
    axis = stage.tensor.axes[-1]
    cached = schedule.CacheWrite(name).cached
    lanes = accesses.lanes_for(target, builder.state.stage(cached))
    in_block = schedule.analyse(builder.state).nests[name].extents
    extent = in_block.get(axis.name, 1) if axis.name in stage.loops else 1
    has_vectors = is_packed or register_tile.vector_axis(builder.state.stage(cached)) is not None
    if not has_vectors or not isinstance(extent, int) or extent < lanes:  # rows of a block, too
        loop = builder.state.stage(name).loops[-1]
        builder.do(schedule.ComputeAt(cached, name, loop))
        return
    choices = tuple(n for n in (1, 2, 3, 4) if n * lanes <= extent)
    columns = builder.choose(f"{name}_columns", choices, min(2, choices[-1]))
    builder.limit(block * columns + columns, register_tile.tile_registers(target))
    tail = (
        schedule.Tail.SHIFT if extent % lanes else schedule.Tail.GUARD
    )  # a vector under a mask is in memory
    builder.do(schedule.Split(name, axis.name, (columns, lanes), tail))
    vectors, vector = f"{axis.name}_1", f"{axis.name}_2"
    own = {*outside, *(f"{axis.name}_{n}" for n in range(3))}
    loops = [x for x in builder.state.stage(name).loops if x not in own]
    builder.do(schedule.Reorder(name, (*outside, f"{axis.name}_0", *loops, vectors, vector)))
    builder.do(schedule.ComputeAt(cached, name, f"{axis.name}_0"))
    register_tile.write_out(builder, name, (*loops, vectors), vector)
    inner = builder.state.stage(cached).tensor
    folded = [a.name for a in inner.reduce_axes]
    builder.do(schedule.Split(cached, axis.name, (lanes,)))
    spatial = [a.name for a in inner.axes[:-1]]
    register_tile.nest(builder, cached, folded, (*spatial, f"{axis.name}_o"), f"{axis.name}_i")
    steps.pack_across(builder, cached, inner.axes[-1])
