"""The pointwise heuristic: nothing is folded; the elements are divided among threads and lanes.

Operands that are read across their rows are first copied transposed, in squares that are transposed
in registers. Otherwise a vector of such an operand would be gathered, each element from another
line.

The heuristic for graphics processors: each thread computes one element, and shares nothing.

All loops of an output are fused and divided into blocks of threads; a fold runs in its thread. A
stage that is read once for each element of its reader is computed there, by the same thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod

from tensorwright import expr, schedule
from tensorwright.base import CpuTarget, GpuTarget
from tensorwright.tuning.space import accesses, steps
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder


def pointwise_sketches(state: schedule.ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """The sketches of the pointwise heuristic; none if something is folded.

    With expensive pieces of a row computed separately, with transposed operands, and all stages in
    one without copies.
    """
    if any(stage.tensor.reduction is not None for stage in state.stages):
        return
    lanes = min(accesses.lanes_for(target, stage) for stage in state.stages)
    apart = SketchBuilder(state)
    steps.inline_elementwise(apart, lanes=lanes)
    builder = SketchBuilder(state)
    steps.inline_elementwise(builder)
    if apart.steps != builder.steps:
        yield _schedule_all(apart, _at_root(apart), target, "pointwise, pieces apart")
    at_root = _at_root(builder)
    transposed = SketchBuilder(builder.state)
    for stage in at_root:
        _read_transposed(transposed, stage, target)
    if transposed.steps:
        continued = SketchBuilder(state)
        for part in (builder, transposed):
            continued.join(part)
        yield _schedule_all(continued, at_root, target, "pointwise transposed")
    yield _schedule_all(builder, at_root, target, "pointwise")


def _at_root(builder: SketchBuilder) -> list[schedule.Stage]:
    return [stage for stage in builder.state.stages if isinstance(stage.placement, schedule.AtRoot)]


def _schedule_all(
    builder: SketchBuilder, stages: list[schedule.Stage], target: CpuTarget, name: str
) -> Sketch:
    for stage in stages:
        steps.schedule_at_root(builder, stage.name, target, stage.name)
    return builder.sketch(name)


def _read_transposed(builder: SketchBuilder, stage: schedule.Stage, target: CpuTarget) -> None:
    """Let a stage that computes read transposed copies of operands that it reads across rows."""
    axes = [axis for axis in stage.tensor.axes if axis.extent != 1]
    lanes = accesses.lanes_for(target, stage)
    is_copy = isinstance(stage.tensor.body, expr.Load)  # it is transposed as it is stored
    if is_copy or not axes or axes[-1].length < lanes:
        return
    constant = builder.state.constants | expr.index_tensors_of(stage.tensor.body)
    by_source: dict[str, list[expr.Load]] = {}
    for load in expr.loads_of(stage.tensor.body):
        if load.source.name not in constant:
            by_source.setdefault(load.source.name, []).append(load)
    for loads in by_source.values():
        across = {_dimension_across(load, axes[-1]) for load in loads}
        dimension = across.pop() if len(across) == 1 else None
        shape = [accesses.extent_of(extent) for extent in loads[0].source.shape]
        if dimension is None or prod(shape) > 2 * accesses.points(stage.tensor):
            continue
        if shape[dimension] >= lanes and prod(shape[dimension + 1 :]) >= lanes:
            _copy_transposed(builder, loads[0], stage.name, dimension, lanes)


def _dimension_across(load: expr.Load, last: expr.Axis) -> int | None:
    """The dimension of an operand along which neighbours of the result lie, in order but apart."""
    moving = [n for n, index in enumerate(load.indices) if last.var in expr.free_vars(index)]
    if len(moving) != 1 or accesses.stride_along(load, last.var) != prod(
        accesses.extent_of(extent) for extent in load.source.shape[moving[0] + 1 :]
    ):
        return None
    return moving[0] if accesses.stride_along(load, last.var) != 1 else None


def _copy_transposed(
    builder: SketchBuilder, load: expr.Load, reader: str, dimension: int, lanes: int
) -> None:
    """Copy an operand with one of its dimensions last."""
    order = accesses.dimension_last(len(load.indices), dimension)
    step = schedule.CacheRead(load.source.name, reader, schedule.Scope.GLOBAL, order)
    builder.do(step)
    *others, last = builder.state.stage(step.copy).tensor.axes
    run = tuple(axis for axis in others[dimension:] if axis.extent != 1)
    steps.transpose_whole(builder, step.copy, run, last, lanes)


_BLOCKS = 8  # for each multiprocessor: with more, blocks may be larger
_OPEN_THREADS = 128  # of a block where the number of elements is open


def grid_sketches(state: schedule.ScheduleState, target: GpuTarget) -> Iterator[Sketch]:
    """The sketch in which a thread computes one element of each output."""
    builder = SketchBuilder(state)
    inline_cheap(builder)
    bind_rest(builder, target)
    yield builder.sketch("an element a thread")


def inline_cheap(builder: SketchBuilder, keep: frozenset[str] = frozenset()) -> None:
    """Leave what depends on a constant alone to the builder, and inline cheap stages but some."""
    state = builder.state
    for name in steps.constant_stages(state):
        if schedule.is_legal(schedule.FoldConstant(name), builder.state):
            builder.do(schedule.FoldConstant(name))
    steps.inline_elementwise(builder, keep)


def bind_elements(builder: SketchBuilder, name: str, target: GpuTarget) -> str:
    """Divide the elements of a stage among blocks and threads.

    Returns the loop of the threads; "" if the stage has one element, or none.
    """
    stage = builder.state.stage(name)
    loops = tuple(loop for loop in stage.loops if loop not in stage.reduce_loops)
    if not loops or any(axis.extent == 0 for axis in stage.tensor.axes):
        return ""
    return deal_out(builder, name, loops, block_threads(stage, target))


def bind_rest(
    builder: SketchBuilder,
    target: GpuTarget,
    done: frozenset[str] = frozenset(),
    bind: Callable[[SketchBuilder, str, GpuTarget], str] = bind_elements,
) -> None:
    """Let threads compute the elements of every stage at the root that is not `done`.

    bind   divides those of a stage; gives the loop in which one is made, "" if there is none
    """
    innermost: dict[str, tuple[str, str]] = {}  # stage -> the loop in which its elements are made
    for stage in reversed(builder.state.stages):
        current = builder.state.stage(stage.name)
        if stage.name in done or not isinstance(current.placement, schedule.AtRoot):
            continue
        host = only_host(builder.state, current, innermost)
        if host is not None and schedule.is_legal(
            schedule.ComputeAt(stage.name, *host), builder.state
        ):
            builder.do(schedule.ComputeAt(stage.name, *host))
            innermost[stage.name] = host
        else:
            loop = bind(builder, stage.name, target)
            if loop:
                innermost[stage.name] = (stage.name, loop)


def deal_out(builder: SketchBuilder, name: str, loops: tuple[str, ...], threads: expr.Index) -> str:
    """Divide the iterations of outer loops into blocks of threads; the threads' loop."""
    split = schedule.Split(name, fused(builder, name, loops), (threads,))
    builder.do(split)
    blocks, inner = split.children
    builder.do(schedule.Bind(name, blocks, schedule.ForKind.BLOCK_X))
    builder.do(schedule.Bind(name, inner, schedule.ForKind.THREAD_X))
    return inner


def bind_fused(
    builder: SketchBuilder, name: str, loops: tuple[str, ...], kind: schedule.ForKind
) -> str:
    """Fuse adjacent loops and bind the result; its name."""
    loop = fused(builder, name, loops)
    builder.do(schedule.Bind(name, loop, kind))
    return loop


def fused(builder: SketchBuilder, name: str, loops: tuple[str, ...]) -> str:
    """Fuse adjacent loops; the name of the result."""
    if len(loops) == 1:
        return loops[0]
    fuse = schedule.Fuse(name, loops)
    builder.do(fuse)
    return fuse.fused


def block_threads(stage: schedule.Stage, target: GpuTarget) -> int:
    """The threads of a block: more if there are enough elements, never more than elements."""
    elements = prod(axis.extent for axis in stage.tensor.axes)
    if not isinstance(elements, int):
        return min(_OPEN_THREADS, target.threads_per_block)
    threads = target.warp
    while (
        2 * threads <= min(256, target.threads_per_block)
        and elements >= 2 * threads * target.multiprocessors * _BLOCKS
    ):
        threads *= 2
    return max(1, min(threads, elements))


def only_host(
    state: schedule.ScheduleState, stage: schedule.Stage, innermost: Mapping[str, tuple[str, str]]
) -> tuple[str, str] | None:
    """The loop for one element of a stage's reader; None if it is read more often or by several."""
    readers = state.readers(stage.name)
    if len(readers) != 1 or stage.name in state.outputs:
        return None
    reader = readers[0]
    loads = accesses.loads_from(reader.tensor, stage.name)
    axes = {axis.var for axis in reader.tensor.axes if axis.extent != 1}
    is_same = all(_moves_with(load, stage, axes) for load in loads)
    if reader.tensor.reduction is not None or len({load.indices for load in loads}) != 1:
        return None
    return innermost.get(reader.name) if is_same else None


def _moves_with(load: expr.Load, stage: schedule.Stage, axes: set[expr.Var]) -> bool:
    """Whether a load reads another element for each element of its reader, and all of them."""
    own = [n for n, axis in enumerate(stage.tensor.axes) if axis.extent != 1]
    indices = [load.indices[n] for n in own]
    return set(indices) == axes and len(indices) == len(axes)
