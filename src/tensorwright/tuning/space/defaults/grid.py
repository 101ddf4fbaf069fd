"""The heuristic for graphics processors: each thread computes one element, and shares nothing.

All loops of an output are fused and divided into blocks of threads; a fold runs in its thread. A
stage that is read once for each element of its reader is computed there, by the same thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from tensorwright.base import GpuTarget
from tensorwright.expr import Index, Load, Var
from tensorwright.schedule import (
    AtRoot,
    Bind,
    ComputeAt,
    FoldConstant,
    ForKind,
    Fuse,
    ScheduleState,
    Split,
    Stage,
    is_legal,
)
from tensorwright.tuning.space.axes.accesses import loads_from
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder
from tensorwright.tuning.space.steps import constant_stages, inline_elementwise

_BLOCKS = 8  # for each multiprocessor: with more, blocks may be larger
_OPEN_THREADS = 128  # of a block where the number of elements is open


def grid_sketches(state: ScheduleState, target: GpuTarget) -> Iterator[Sketch]:
    """The sketch in which a thread computes one element of each output."""
    builder = SketchBuilder(state)
    inline_cheap(builder)
    bind_rest(builder, target)
    yield builder.sketch("an element a thread")


def inline_cheap(builder: SketchBuilder) -> None:
    """Leave what depends on a constant alone to the builder, and inline cheap stages."""
    state = builder.state
    for name in constant_stages(state):
        if is_legal(FoldConstant(name), builder.state):
            builder.do(FoldConstant(name))
    inline_elementwise(builder)


def bind_rest(
    builder: SketchBuilder, target: GpuTarget, done: frozenset[str] = frozenset()
) -> None:
    """Let each thread compute one element of every stage at the root that is not `done`."""
    innermost: dict[str, tuple[str, str]] = {}  # stage -> the loop in which its elements are made
    for stage in reversed(builder.state.stages):
        current = builder.state.stage(stage.name)
        if stage.name in done or not isinstance(current.placement, AtRoot):
            continue
        host = only_host(builder.state, current, innermost)
        if host is not None and is_legal(ComputeAt(stage.name, *host), builder.state):
            builder.do(ComputeAt(stage.name, *host))
            innermost[stage.name] = host
        else:
            loop = bind_elements(builder, stage.name, target)
            if loop:
                innermost[stage.name] = (stage.name, loop)


def bind_elements(builder: SketchBuilder, name: str, target: GpuTarget) -> str:
    """Divide the elements of a stage among blocks and threads.

    Returns the loop of the threads; "" if the stage has one element, or none.
    """
    stage = builder.state.stage(name)
    loops = tuple(loop for loop in stage.loops if loop not in stage.reduce_loops)
    if not loops or any(axis.extent == 0 for axis in stage.tensor.axes):
        return ""
    return deal_out(builder, name, loops, block_threads(stage, target))


def deal_out(builder: SketchBuilder, name: str, loops: tuple[str, ...], threads: Index) -> str:
    """Divide the iterations of outer loops into blocks of threads; the threads' loop."""
    split = Split(name, fused(builder, name, loops), (threads,))
    builder.do(split)
    blocks, inner = split.children
    builder.do(Bind(name, blocks, ForKind.BLOCK_X))
    builder.do(Bind(name, inner, ForKind.THREAD_X))
    return inner


def bind_fused(builder: SketchBuilder, name: str, loops: tuple[str, ...], kind: ForKind) -> str:
    """Fuse adjacent loops and bind the result; its name."""
    loop = fused(builder, name, loops)
    builder.do(Bind(name, loop, kind))
    return loop


def fused(builder: SketchBuilder, name: str, loops: tuple[str, ...]) -> str:
    """Fuse adjacent loops; the name of the result."""
    if len(loops) == 1:
        return loops[0]
    fuse = Fuse(name, loops)
    builder.do(fuse)
    return fuse.fused


def block_threads(stage: Stage, target: GpuTarget) -> int:
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
    state: ScheduleState, stage: Stage, innermost: Mapping[str, tuple[str, str]]
) -> tuple[str, str] | None:
    """The loop for one element of a stage's reader; None if it is read more often or by several."""
    readers = state.readers(stage.name)
    if len(readers) != 1 or stage.name in state.outputs:
        return None
    reader = readers[0]
    loads = loads_from(reader.tensor, stage.name)
    axes = {axis.var for axis in reader.tensor.axes if axis.extent != 1}
    is_same = all(_moves_with(load, stage, axes) for load in loads)
    if reader.tensor.reduction is not None or len({load.indices for load in loads}) != 1:
        return None
    return innermost.get(reader.name) if is_same else None


def _moves_with(load: Load, stage: Stage, axes: set[Var]) -> bool:
    """Whether a load reads another element for each element of its reader, and all of them."""
    own = [n for n, axis in enumerate(stage.tensor.axes) if axis.extent != 1]
    indices = [load.indices[n] for n in own]
    return set(indices) == axes and len(indices) == len(axes)
