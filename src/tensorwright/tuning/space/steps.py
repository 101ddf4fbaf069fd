"""Steps that several heuristics, sketch generators and templates share."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence

from tensorwright import expr, schedule
from tensorwright.base import LINE_BYTES, CpuTarget, DType
from tensorwright.tuning.space import accesses
from tensorwright.tuning.space.register_tile import CPU_LIMITS, limits_of
from tensorwright.tuning.space.sketch import SketchBuilder

_CHEAP = frozenset((expr.Fn.ADD, expr.Fn.SUB, expr.Fn.MUL, expr.Fn.MIN, expr.Fn.MAX, expr.Fn.NEG))
_MOST_VECTORS = 8  # side by side
_MOST_AGAIN = 16  # operations that every reader may repeat
_FUNCTION = 4  # elements of which something simple is computed while a function is computed once


def is_cheap(value: expr.Value) -> bool:
    """Whether evaluating a value again costs less than storing and loading it."""
    return _operations(value) <= _MOST_AGAIN


def _operations(value: expr.Value) -> float:
    """The number of simple operations of a value; infinite if one of them is not simple."""
    if isinstance(value, expr.Apply) and value.fn not in _CHEAP:
        return math.inf
    own = isinstance(value, (expr.Apply, expr.Select))
    return own + sum(_operations(child) for child in expr.children(value))


def element_work(tensor: expr.Compute) -> int:
    """How often the body of a tensor is evaluated, with its functions as evaluations of their own.

    A function such as exp takes the time of at least `_FUNCTION` simple elements.
    """
    return accesses.points(tensor) * (1 + _FUNCTION * _functions(tensor.body))


def _functions(value: expr.Value) -> int:
    own = isinstance(value, expr.Apply) and value.fn not in _CHEAP
    return own + sum(map(_functions, expr.children(value)))


_SHIFTS = (expr.Fn.SHL, expr.Fn.SHR)


def takes_codes_apart(state: schedule.ScheduleState, name: str) -> bool:
    """Whether a stage makes numbers of packed constants, by shifts or because bf16 becomes f32:
    reading these is the faster way, so that the numbers are never stored as a whole.
    """
    tensor = state.stage(name).tensor
    parts = expr.values_below(tensor.body)
    has_shifts = any(isinstance(part, expr.Apply) and part.fn in _SHIFTS for part in parts)
    is_packed = has_shifts or widens(tensor)
    return is_packed and tensor.reduction is None and schedule.reads_of(tensor) <= state.constants


def widens(tensor: expr.Compute, kinds: Collection[DType] = (DType.BF16,)) -> bool:
    """Whether a stage makes f32 of bf16, or of other kinds, element by element."""
    body = tensor.body
    if not isinstance(body, expr.Cast) or not isinstance(body.operand, expr.Load):
        return False
    return tensor.dtype is DType.F32 and body.operand.dtype in kinds


OFTEN_WIDENED = 96  # uses that are worth widening an element first: its bits come from memory


def widened_often(state: schedule.ScheduleState) -> frozenset[str]:
    """The stages that widen constants of which a product uses each element often."""
    names: set[str] = set()
    for stage in state.stages:
        if not widens(stage.tensor) or not schedule.reads_of(stage.tensor) <= state.constants:
            continue
        for tensor in (reader.tensor for reader in state.readers(stage.name)):
            used = (
                math.prod(
                    axis.length for axis in tensor.axes if not accesses.reads_along(load, axis.var)
                )
                for load in accesses.loads_from(tensor, stage.name)
            )
            if tensor.reduction is not None and min(used) >= OFTEN_WIDENED:
                names.add(stage.name)
    return frozenset(names)


def inline_elementwise(
    builder: SketchBuilder, keep: frozenset[str] = frozenset(), lanes: int = 0
) -> None:
    """Inline the stages that fold nothing and are not outputs, if nothing expensive is repeated.

    lanes   of a vector, if given: an expensive stage that a reader selects for some lanes only is
            not inlined, because both sides of the select would be computed for all lanes
    """
    for stage in builder.state.stages:
        if stage.name in keep or stage.tensor.reduction is not None:
            continue
        current = builder.state.stage(stage.name)
        readers = builder.state.readers(stage.name)
        reads = sum(len(accesses.loads_from(reader.tensor, stage.name)) for reader in readers)
        folding = any(r.tensor.reduction is not None for r in readers)
        is_worth_it = (reads == 1 and not folding) or is_cheap(current.tensor.body)
        is_worth_it = is_worth_it or takes_codes_apart(builder.state, stage.name)
        if lanes and not is_cheap(current.tensor.body):
            chosen = any(_chooses_inside_vectors(r, stage.name, lanes) for r in readers)
            is_worth_it = is_worth_it and not chosen
        if is_worth_it and schedule.is_legal(schedule.ComputeInline(stage.name), builder.state):
            builder.do(schedule.ComputeInline(stage.name))
    if not lanes:
        _inline_read_at_one_place(builder, keep)


def _inline_read_at_one_place(builder: SketchBuilder, keep: frozenset[str]) -> None:
    """Inline what one stage reads several times at the same place: it is computed once there."""
    for stage in reversed(builder.state.stages):
        if stage.name in keep or stage.tensor.reduction is not None:
            continue
        readers = builder.state.readers(stage.name)
        if len(readers) != 1 or readers[0].tensor.reduction is not None:
            continue
        loads = accesses.loads_from(readers[0].tensor, stage.name)
        if len(loads) > _MOST_COPIES or len({load.indices for load in loads}) != 1:
            continue
        if schedule.is_legal(schedule.ComputeInline(stage.name), builder.state):
            builder.do(schedule.ComputeInline(stage.name))


_MOST_COPIES = 4  # of an expression, in the text of a program


def _chooses_inside_vectors(reader: schedule.Stage, name: str, lanes: int) -> bool:
    """Whether a stage reads another for some lanes of a vector along its last axis only."""
    if not reader.tensor.axes:
        return False
    last = reader.tensor.axes[-1].var
    pending: list[expr.Value] = [reader.tensor.body]
    while pending:
        value = pending.pop()
        pending += expr.children(value)
        if not isinstance(value, expr.Select) or isinstance(value.condition, expr.ValueExpr):
            continue
        reads = {load.source.name for side in expr.children(value) for load in expr.loads_of(side)}
        for part in expr.conjuncts(value.condition) if name in reads else ():
            gap = [side for side in expr.condition_sides(part) if last in expr.free_vars(side)]
            rest = [side for side in expr.condition_sides(part) if last not in expr.free_vars(side)]
            if gap and any(not isinstance(side, int) or side % lanes for side in rest):
                return True
    return False


def constant_stages(state: schedule.ScheduleState) -> tuple[str, ...]:
    """The stages that depend on one constant alone, which nothing else reads.

    Of stages that read each other, only the first is among them before it is folded.
    """
    reading = (
        stage.name for stage in state.stages if schedule.reads_of(stage.tensor) <= state.constants
    )
    return tuple(
        name
        for name in reading
        if not widens(state.stage(name).tensor)
        and schedule.is_legal(schedule.FoldConstant(name), state)
    )


def fold_widened(builder: SketchBuilder) -> None:
    """Widen constants of bf16 when the program is built: what transforms them needs them whole."""
    for stage in builder.state.stages:
        is_legal = schedule.is_legal(schedule.FoldConstant(stage.name), builder.state)
        if widens(stage.tensor) and is_legal:
            builder.do(schedule.FoldConstant(stage.name))


_ENOUGH_ROWS = 16  # of squares: then a row is read as a whole
_FAR_BYTES = 2048  # bytes: writes so far apart share no page, and few sets of the caches
_ENOUGH_LINES = 3  # of which a part may be read twice
_FEW_LANES = 4  # elements that single loads and stores move faster than a gather


def schedule_at_root(builder: SketchBuilder, name: str, target: CpuTarget, prefix: str) -> None:
    """Schedule a stage at the root: outer loops fused and parallel, the innermost vectorised."""
    stage = builder.state.stage(name)
    axes = [axis for axis in stage.tensor.axes if axis.extent != 1]
    if not axes:
        return
    lanes = accesses.lanes_for(target, stage)
    run = _run_read(stage, axes, lanes)
    if run:
        transpose_whole(builder, name, run, axes[-1], lanes)
        return
    *others, (inner, length) = vector_loops(builder, name, lanes)
    enough = limits_of(target).iterations
    outer: list[str] = []
    iterations = 1
    for loop, extent in others:
        if iterations < enough:
            outer.append(loop)
            iterations *= extent
    if stage.tensor.reduction is None:
        last = inner
        if length > lanes:
            width = _width(
                builder, f"{prefix}_width", axes[-1], expr.loads_of(stage.tensor.body), lanes
            )
            builder.do(schedule.Split(name, last, (width,)))
            inner = f"{last}_i"
            if iterations < enough:
                outer.append(f"{last}_o")
        strides = {accesses.stride_along(x, axes[-1].var) for x in expr.loads_of(stage.tensor.body)}
        if length <= _FEW_LANES and is_cheap(stage.tensor.body) and strides - {0, 1}:  # it gathers
            builder.do(schedule.Unroll(name, inner))
        else:
            builder.do(schedule.Vectorize(name, inner))
            pack_across(builder, name, axes[-1])
    parallelise(builder, name, outer, element_work(stage.tensor))


def _width(
    builder: SketchBuilder, choice: str, axis: expr.Axis, loads: Iterable[expr.Load], lanes: int
) -> expr.Index:
    """The number of elements along an axis computed at once, in one vector or some.

    By rule as many as the period of the axis' quotients: the offsets of each vector are then
    constants, and lanes that read one element share its load (a row enlarged by 3).
    """
    vectors = math.lcm(accesses.repetition_along(loads, axis.var), lanes) // lanes
    if vectors > _MOST_VECTORS or vectors * lanes > axis.length:
        vectors = 1
    return builder.choose(
        choice, tuple(sorted({lanes, 2 * lanes, 4 * lanes, vectors * lanes})), vectors * lanes
    )


def vector_loops(builder: SketchBuilder, name: str, lanes: int) -> list[tuple[str, int]]:
    """The loops of an unscheduled stage that run more than once, with their extents.

    If the last is shorter than a vector and the reads have the order of the stores, it is fused
    with the one around it: a row of an image of three channels is one run of elements.
    """
    stage = builder.state.stage(name)
    axes = [axis for axis in stage.tensor.axes if axis.extent != 1]
    loops = [(axis.name, axis.length) for axis in axes]
    is_short = len(axes) >= 2 and 2 * loops[-1][1] <= lanes and all(n for _, n in loops)
    if not is_short or not _are_one_run(stage, axes[-2], axes[-1]):
        return loops
    step = schedule.Fuse(name, (axes[-2].name, axes[-1].name))
    builder.do(step)
    return [*loops[:-2], (step.fused, loops[-2][1] * loops[-1][1])]


def _are_one_run(stage: schedule.Stage, outer: expr.Axis, inner: expr.Axis) -> bool:
    """Whether two loops, the inner one in the outer, go through neighbouring elements only."""
    names = [axis.name for axis in stage.tensor.axes]
    own = names.index(outer.name) + 1 == names.index(inner.name) and stage.tensor.reduction is None
    loads = expr.loads_of(stage.tensor.body)
    return own and all(accesses.stride_of_run(load, (outer, inner)) == 1 for load in loads)


def _run_read(stage: schedule.Stage, axes: list[expr.Axis], lanes: int) -> tuple[expr.Axis, ...]:
    """The axes along which a copy reads neighbours, other than the last; none if too short."""
    body = stage.tensor.body
    if not isinstance(body, expr.Load) or accesses.stride_of_run(body, (axes[-1],)) in (0, 1):
        return ()
    if axes[-1].length < lanes:
        return ()
    places = [stage.tensor.axes.index(axis) for axis in axes]
    for stop in range(len(axes) - 1, 0, -1):
        for start in range(stop):
            run = tuple(axes[start:stop])
            is_loop = places[stop - 1] - places[start] == len(run) - 1
            is_long = accesses.count_of(run) >= lanes
            if is_loop and is_long and accesses.stride_of_run(body, run) == 1:
                return run
    return ()


def transpose_whole(
    builder: SketchBuilder, name: str, run: tuple[expr.Axis, ...], last: expr.Axis, lanes: int
) -> None:
    """Copy all of a tensor at the root in squares, on all threads.

    run   adjacent axes, at least `lanes` elements in all, along which neighbours are read
    last  the axis along which they are written, at least as long
    """
    work = accesses.points(builder.state.stage(name).tensor)
    along = run[0].name
    if len(run) > 1:
        step = schedule.Fuse(name, tuple(axis.name for axis in run))
        builder.do(step)
        along = step.fused
    length = accesses.count_of(run)
    part = _part_of_row(builder.state.stage(name), run[-1], length, lanes)
    if part < length:
        builder.do(schedule.Split(name, along, (part,), schedule.Tail.SHIFT))
        along = f"{along}_i"
    parallelise(builder, name, transpose_squares(builder, name, along, last.name, lanes), work)


def _part_of_row(stage: schedule.Stage, along: expr.Axis, length: int, lanes: int) -> int:
    """The neighbours that are read in a row of squares, of `length` in all.

    If the writes of neighbours are far apart, a cache line of each row is read while its rows are
    written: with whole rows, half-written lines would leave the caches.
    """
    axes = stage.tensor.axes
    behind = axes[axes.index(along) + 1 :]
    size = stage.tensor.dtype.size_bytes
    apart = size * accesses.count_of(behind)
    line = max(lanes, LINE_BYTES // size)
    if apart >= _FAR_BYTES and (length % line == 0 or length >= _ENOUGH_LINES * line):
        return line
    work = accesses.points(stage.tensor)
    if length % lanes == 0 and work >= _ENOUGH_ROWS * length * lanes:
        return length
    squares = work // lanes**2
    in_a_row = [n for n in range(1, length // lanes + 1) if length % (n * lanes) == 0]
    enough = CPU_LIMITS.iterations
    return lanes * max((n for n in in_a_row if n * enough <= squares), default=1)


def transpose_squares(
    builder: SketchBuilder, name: str, along: str, last: str, lanes: int
) -> list[str]:
    """Copy squares of `lanes` elements a side, which are transposed in registers.

    along  the loop along which neighbours are read
    last   the loop along which they are written, at least as long; loops inside it have extent 1

    Returns the loops over squares, outermost first.
    """
    builder.do(schedule.Split(name, last, (lanes,), schedule.Tail.SHIFT))
    inside = (along, f"{last}_i")
    outer = [loop for loop in builder.state.stage(name).loops if loop not in inside]
    builder.do(schedule.Reorder(name, (*outer, *inside)))
    builder.do(schedule.Vectorize(name, f"{last}_i"))
    return outer


def packable_constants(state: schedule.ScheduleState, name: str) -> dict[str, expr.Load]:
    """The constants that may be packed for a stage, each with its load; see `PackConstant`."""
    stage = state.stage(name)
    loads = {load.source.name: load for load in expr.loads_of(stage.tensor.body)}
    return {
        constant: load
        for constant, load in loads.items()
        if constant in state.constants
        and schedule.is_legal(schedule.PackConstant(constant, name), state)
    }


def pack_constants(
    builder: SketchBuilder,
    name: str,
    prefetched: Sequence[str] = (),
    moving: Collection[str] = (),
    ahead: expr.Index = 0,
) -> None:
    """Store the constants of a stage in the order in which it reads them.

    prefetched   the loop, if any, that prefetches the reads of the next tiles
    moving       axes along which the next tile lies: reads that move with them are not prefetched
    ahead        as in `PrefetchNext`
    """
    for constant, load in packable_constants(builder.state, name).items():
        builder.do(schedule.PackConstant(constant, name))
        read = {var.name for var in expr.free_vars(*load.indices)}
        for loop in prefetched if read.isdisjoint(moving) else ():
            builder.do(schedule.PrefetchNext(name, constant, loop, ahead))


def pack_across(builder: SketchBuilder, name: str, lanes: expr.Axis) -> None:
    """Pack the constants that a stage reads across their rows along its lanes.

    A bias for each element of a result in blocks of channels is stored as rows of pixels: a vector
    of it would be gathered, each element from another line.
    """
    for constant, load in packable_constants(builder.state, name).items():
        if accesses.stride_along(load, lanes.var) not in (0, 1):
            builder.do(schedule.PackConstant(constant, name))


MIN_PARALLEL_POINTS = 16384  # below this a fork and join costs more than it saves


def parallelise(builder: SketchBuilder, name: str, loops: list[str], work: int) -> str:
    """Fuse loops (adjacent, outermost) and run them on all threads, if there is enough to do.

    Fuse the same axes of a producer and of its consumer: then each thread reads what it wrote.
    Reading what another core wrote takes three times as long.

    Returns the name of the fused loop, "" if nothing was done.
    """
    loops = [loop for loop in loops if loop in builder.state.stage(name).loops]
    if not loops or work < MIN_PARALLEL_POINTS:
        return ""
    stage = builder.state.stage(name)
    start = stage.loops.index(loops[0])
    loops = list(stage.loops[start : stage.loops.index(loops[-1]) + 1])
    fused = loops[0]
    if len(loops) > 1:
        step = schedule.Fuse(name, tuple(loops))
        builder.do(step)
        fused = step.fused
    builder.do(schedule.Parallel(name, fused))
    return fused


def ensure_epilogue(
    builder: SketchBuilder, anchor: str, fits: Callable[[schedule.Stage, str], bool] | None = None
) -> str:
    """The stage that stores the anchor's result: its only reader, or a copy of a cached anchor.

    fits   whether a reader that folds nothing may store; None: if every element of it has an
           element of the anchor to itself
    """
    readers = builder.state.readers(anchor)
    if anchor not in builder.state.outputs and len(readers) == 1:
        reader = readers[0]
        if reader.tensor.reduction is None and (fits or _reads_each_once)(reader, anchor):
            return reader.name
    builder.do(schedule.CacheWrite(anchor))
    return anchor


def _reads_each_once(reader: schedule.Stage, name: str) -> bool:
    places = {load.indices for load in accesses.loads_from(reader.tensor, name)}
    used = expr.free_vars(*next(iter(places)))
    return len(places) == 1 and all(a.var in used or a.extent == 1 for a in reader.tensor.axes)
