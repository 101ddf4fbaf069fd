"""Products with weights that are packed as codes of few bits, with a scale for each block of terms.

For few rows, whose time is that of reading the weights:

    for column tiles @parallel:                  sums of the tile in registers
      for b in blocks:
        block: for k in the block, unrolled by words: row * code, in registers
        sums += block * scale
      what follows the product, for the tile

The scale is a factor of a whole block, so a code takes two instructions of vectors to take it out
of its word, one to make it a float, and one multiply-add. Where rows may be rounded to 16 bits, a
block is a sum of i32: vectors of twice as many codes, and an instruction that multiplies pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright import base, expr, schedule
from tensorwright.tuning.space import accesses, steps
from tensorwright.tuning.space.defaults.pack_operand import packed_weights_of
from tensorwright.tuning.space.defaults.rows import factor_contiguous
from tensorwright.tuning.space.defaults.short_products import is_alike, short_factors
from tensorwright.tuning.space.register_tile import nest, tile_registers
from tensorwright.tuning.space.roles import only_fold
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder

_COLUMNS = (1, 2, 3, 4, 6, 8)  # vectors of a tile
_USUAL_COLUMNS = 4
_ROWS = (2, 3, 4, 6)  # of a tile, where there are many
_OTHERS = 2  # registers: a mask, and a code that becomes a float
_AHEAD_BYTES = 2048  # what a core reads during the latency of memory: codes are prefetched so far


def packed_weight_sketches(
    state: schedule.ScheduleState, target: base.CpuTarget
) -> Iterator[Sketch]:
    """The sketch of a product of few rows with packed weights; none for other programs."""
    yield from _short_sketches(state, target)
    product = only_fold(state)
    weights = None if product is None else packed_weights_of(product, state)
    if product is None or weights is None:
        return
    elements = accesses.elements_of(weights.tensor)
    if accesses.points(product.tensor) > base.MOST_PACKED_ROWS * elements:
        return
    row = weights.tensor.axes[0]
    loads = expr.loads_of(weights.tensor.body)
    periods = {accesses.period_along([load], row) for load in loads}
    word, block = min(periods - {0}, default=0), max(periods)
    if word:
        sizes = word, row.length if 0 in periods else block
        builder = SketchBuilder(state)
        _fold_blocks(builder, product, weights.name, sizes, target)
        yield builder.sketch("packed weights by blocks")


def _short_sketches(state: schedule.ScheduleState, target: base.CpuTarget) -> Iterator[Sketch]:
    """The sketch of a product whose blocks are sums of short numbers, of codes taken apart."""
    for sums in state.stages:
        factors = short_factors(sums.tensor.body)
        if (
            factors is None
            or len(state.outputs) != 1
            or not state.has_stage(factors[1].source.name)
        ):
            continue
        unpacked = state.stage(factors[1].source.name)
        types = factors[0].dtype, factors[1].dtype
        products = (p for p in target.short_products() if (p.data, p.weights) == types)
        instruction = next(products, None)
        (product, *others) = state.readers(sums.name)
        width = 0 if instruction is None else instruction.columns
        is_whole = width and sums.tensor.axes[-1].length % width == 0
        is_packed = (
            schedule.reads_of(unpacked.tensor) <= state.constants and len(state.outputs) == 1
        )
        if is_packed and is_whole and not others and instruction is not None:
            builder = SketchBuilder(state)
            _multiply_short(builder, product.name, sums, unpacked.name, instruction, target)
            yield builder.sketch("packed weights as short numbers")


def _multiply_short(
    builder: SketchBuilder,
    name: str,
    summed: schedule.Stage,
    unpacked: str,
    instruction: base.ShortProduct,
    target: base.CpuTarget,
) -> None:
    """Take a word's codes apart as short numbers, in registers, and multiply them at once."""
    sums, factors = summed.name, short_factors(summed.tensor.body)
    assert factors is not None
    behind = _behind(builder.state, name)
    steps.inline_elementwise(
        builder, frozenset(each.name for each in builder.state.stages if each.name not in behind)
    )
    stored = steps.ensure_epilogue(builder, name, is_alike)
    product = schedule.CacheWrite(name).cached if stored == name else name
    rounded = factors[0].source
    _round_rows(builder, rounded, frozenset((stored, product, sums, unpacked)), target)
    work = accesses.points(builder.state.stage(sums).tensor)
    loop, columns = _tile(builder, stored, work, target, instruction.columns)
    builder.do(schedule.ComputeAt(product, stored, loop))
    (block,) = (axis.name for axis in builder.state.stage(product).tensor.reduce_axes)
    _fold_in_vectors(builder, product, (block,), (), target)
    steps.pack_constants(builder, product)
    builder.do(schedule.ComputeAt(sums, product, block))
    tensor = builder.state.stage(sums).tensor
    *rows, last = (axis.name for axis in tensor.axes)
    words, parts, halves = (axis.name for axis in tensor.reduce_axes)
    builder.do(schedule.Split(sums, last, (instruction.columns,), schedule.Tail.EXACT))
    unrolled = (parts, f"{last}_o", *rows)
    builder.do(schedule.Reorder(sums, (words, *unrolled, f"{last}_i", halves)))
    for each in unrolled:
        builder.do(schedule.Unroll(sums, each))
    builder.do(schedule.ComputeAt(unpacked, sums, words))
    word, part, column, half = (axis.name for axis in builder.state.stage(unpacked).tensor.axes)
    builder.do(schedule.Split(unpacked, column, (instruction.columns,), schedule.Tail.EXACT))
    pairs = schedule.Fuse(unpacked, (f"{column}_i", half))
    builder.do(pairs)
    nest(builder, unpacked, (word,), (part, f"{column}_o"), pairs.fused)
    word_bytes = instruction.columns * instruction.terms * instruction.weights.size_bytes
    _pack(builder, unpacked, word, columns * word_bytes)
    builder.do(schedule.Tensorize(sums, f"{last}_i", instruction.intrinsic))


def _round_rows(
    builder: SketchBuilder, rounded: expr.Tensor, others: frozenset[str], target: base.CpuTarget
) -> None:
    """Compute the rows, their largest numbers and what they are rounded to, each as a whole.

    What is element-wise before the rows is in the loop that computes them.
    rounded  the rows afterwards
    others   stages that have schedules of their own
    """
    stages = builder.state.stages
    made = {stage.name: schedule.reads_of(stage.tensor) for stage in stages}
    read = made[rounded.name]
    rows = {s.name for s in stages if s.name in read and s.tensor.shape == rounded.shape}
    before = set(rows)
    for stage in reversed(stages):
        if stage.name in before:
            before |= made[stage.name]
    steps.inline_elementwise(builder, keep=frozenset(made.keys() - (before - rows)))
    factor_contiguous(builder, target, done=others)
    for stage in builder.state.stages:
        if stage.name in others:
            continue
        if stage.name in made:
            steps.schedule_at_root(builder, stage.name, target, stage.name)
            continue
        (whole,), (folded,) = builder.state.readers(stage.name), stage.tensor.reduce_axes
        *outer, lanes = (axis.name for axis in stage.tensor.axes)
        builder.do(schedule.ComputeAt(stage.name, whole.name, outer[-1]))
        nest(builder, stage.name, (*outer, folded.name), (), lanes)


def _behind(state: schedule.ScheduleState, name: str) -> set[str]:
    """The stages that read a stage, or what reads it."""
    behind: set[str] = set()
    for stage in state.stages:
        if schedule.reads_of(stage.tensor) & {name, *behind}:
            behind.add(stage.name)
    return behind


def _fold_blocks(
    builder: SketchBuilder,
    product: schedule.Stage,
    weights: str,
    sizes: tuple[int, int],
    target: base.CpuTarget,
) -> None:
    """Sum each block of a product by itself, in registers.

    sizes   terms of a word, and of a block
    """
    name, (folded,), (word, block) = product.name, product.tensor.reduce_axes, sizes
    others = schedule.reads_of(product.tensor) - {weights}
    builder.do(schedule.ComputeInline(weights))
    outer: tuple[str, ...] = ()
    terms, factored = folded.name, name
    if folded.length > block:
        outer, terms = (f"{folded.name}_o",), f"{folded.name}_i"
        builder.do(schedule.Split(name, folded.name, (block,), schedule.Tail.EXACT))
        halves = schedule.Rfactor(name, *outer, position=0)
        builder.do(halves)
        factored = halves.partial
    step = schedule.FactorOut(factored)
    builder.do(step)
    if outer:
        builder.do(schedule.ComputeInline(factored))
    steps.inline_elementwise(builder, keep=others)
    anchor = name if outer else step.sums
    stored = steps.ensure_epilogue(builder, anchor, is_alike)
    sums = schedule.CacheWrite(anchor).cached if stored == anchor else anchor
    for stage in builder.state.stages:
        if stage.name not in (stored, sums, step.sums):
            steps.schedule_at_root(builder, stage.name, target, stage.name)
    loop, columns = _tile(builder, stored, accesses.points(product.tensor), target)
    builder.do(schedule.ComputeAt(sums, stored, loop))
    if outer:
        _fold_in_vectors(builder, sums, outer, (), target)
        steps.pack_constants(builder, sums)
        builder.do(schedule.ComputeAt(step.sums, sums, *outer))
    builder.do(schedule.Split(step.sums, terms, (word,), schedule.Tail.EXACT))
    loops = (*outer, f"{terms}_o")
    _fold_in_vectors(builder, step.sums, loops, (f"{terms}_i",), target)
    vector_bytes = 4 * accesses.lanes_for(target, builder.state.stage(step.sums))
    _pack(builder, step.sums, loops[-1], columns * (vector_bytes * (block // word)))


def _tile(
    builder: SketchBuilder, stored: str, work: int, target: base.CpuTarget, whole: int = 1
) -> tuple[str, expr.Index]:
    """Store the result in tiles of some vectors and rows: all, if they are few; the loop over the
    tiles, and their vectors.  Each result has two registers: the sum of a block, and of all blocks.

    whole   columns that are computed at once: a tile has a multiple of them
    """
    axes = builder.state.stage(stored).tensor.axes
    *rows, last = (axis.name for axis in axes)
    width = accesses.lanes_for(target, builder.state.stage(stored))
    count = accesses.count_of(axes[:-1])
    high: expr.Index = count
    vectors = axes[-1].length // whole
    sizes = tuple(n for n in _COLUMNS if whole == 1 or vectors % n == 0)
    registers = tile_registers(target) - _OTHERS
    loops: list[str] = []
    most = min(base.MOST_PACKED_ROWS, (registers - 1) // 2)
    if count > most:
        usual = max(n for n in _ROWS if 2 * (2 * n + 1) <= registers)  # with two vectors of columns
        high = builder.choose(f"{stored}_rows", _ROWS, usual)
        builder.do(schedule.Split(stored, rows[-1], (high,)))
        loops, rows = [*rows[:-1], f"{rows[-1]}_o"], [f"{rows[-1]}_i"]
    else:
        usual = count
    fitting = (n for n in sizes if n <= _USUAL_COLUMNS and n * (2 * usual + 1) <= registers)
    columns = builder.choose(f"{stored}_columns", sizes, max(fitting, default=1))
    builder.limit(columns * (2 * high + 1), registers)
    tail = schedule.Tail.GUARD if whole == 1 else schedule.Tail.EXACT
    builder.do(schedule.Split(stored, last, (columns, max(width, whole)), tail))
    nest(builder, stored, (f"{last}_0", *loops), (*rows, f"{last}_1"), f"{last}_2")
    tiles = steps.parallelise(builder, stored, [f"{last}_0"], work) or f"{last}_0"
    return loops[-1] if loops else tiles, columns


def _fold_in_vectors(
    builder: SketchBuilder,
    name: str,
    loops: tuple[str, ...],
    unrolled: tuple[str, ...],
    target: base.CpuTarget,
) -> None:
    """Fold in vectors along the last axis, each vector of words wholly before the next one."""
    *rows, last = (axis.name for axis in builder.state.stage(name).tensor.axes)
    width = accesses.lanes_for(target, builder.state.stage(name))
    builder.do(schedule.Split(name, last, (width,)))
    inner = (*unrolled, f"{last}_o", *(row for row in rows if row not in loops))
    nest(builder, name, loops, inner, f"{last}_i")


def _pack(builder: SketchBuilder, name: str, loop: str, part_bytes: expr.Index) -> None:
    """Store codes in the order in which a stage reads them; a loop prefetches those far ahead."""
    parts = (_AHEAD_BYTES + part_bytes - 1) // part_bytes
    steps.pack_constants(builder, name, (loop,), (), parts)
