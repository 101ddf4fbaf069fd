"""Streams: the elements of a stage in threads, neighbours in neighbouring ones.

A thread has several elements, as far apart as the block is long, and each may be a vector.  What is
read once for each element is computed by the same thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tensorwright.base import GpuTarget
from tensorwright.expr import loads_of
from tensorwright.schedule import (
    AtRoot,
    Bind,
    ComputeAt,
    ForKind,
    Fuse,
    Reorder,
    Split,
    Stage,
    Unroll,
    Vectorize,
    is_legal,
)
from tensorwright.tuning.space.axes.accesses import is_contiguous
from tensorwright.tuning.space.defaults.grid import block_threads, only_host
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, powers

_EACH = (1, 2, 4, 8)  # elements, or vectors, of a thread
_VECTORS = (1, 2, 4)
_MOST_THREADS = 1024


def can_stream(stage: Stage) -> bool:
    """Whether a stage is at the root and has a fixed number of elements."""
    axes = stage.tensor.axes
    is_closed = all(isinstance(axis.extent, int) and axis.extent for axis in axes)
    return bool(axes) and is_closed and isinstance(stage.placement, AtRoot)


def stream(
    builder: SketchBuilder,
    name: str,
    target: GpuTarget,
    elements: Mapping[str, tuple[str, str]],
) -> tuple[str, str]:
    """Compute a stage in the thread of its only reader, or in separate blocks.

    elements   loops in which one element of other stages is made: stage -> (stage, loop)

    Returns the loop in which an element of this one is made.
    """
    stage = builder.state.stage(name)
    host = only_host(builder.state, stage, elements)
    if host is not None and is_legal(ComputeAt(name, *host), builder.state):
        builder.do(ComputeAt(name, *host))
        return host
    return name, _blocks(builder, stage, target)


def _blocks(builder: SketchBuilder, stage: Stage, target: GpuTarget) -> str:
    """Bind the elements of a stage; the loop in which a thread has one, or a vector."""
    name = stage.name
    elements = prod(axis.length for axis in stage.tensor.axes)
    loops = tuple(loop for loop in stage.loops if loop not in stage.reduce_loops)
    loop = loops[0]
    if len(loops) > 1:
        fuse = Fuse(name, loops)
        builder.do(fuse)
        loop = fuse.fused
    default = block_threads(stage, target)
    most = min(_MOST_THREADS, target.threads_per_block)
    counts = tuple(n for n in powers(most) if target.warp <= n <= elements) or (default,)
    threads = builder.choose(f"{name}_threads", counts, default, Kind.TILE, name)
    per_thread = tuple(n for n in _EACH if n == 1 or n * counts[0] <= elements)
    each = builder.choose(f"{name}_each", per_thread, 1, Kind.TILE, name)
    widths = _vectors(builder, stage)
    vector = builder.choose(f"{name}_vector", widths, 1, Kind.OTHER, name)
    has_lanes = len(widths) > 1
    split = Split(name, loop, (each, threads, *((vector,) if has_lanes else ())))
    builder.do(split)
    blocks, own, thread, *lanes = split.children
    builder.do(Reorder(name, (blocks, thread, own, *lanes)))
    builder.do(Bind(name, blocks, ForKind.BLOCK_X))
    builder.do(Bind(name, thread, ForKind.THREAD_X))
    builder.do(Unroll(name, own))
    for lane in lanes:
        builder.do(Vectorize(name, lane))
    return own


def _vectors(builder: SketchBuilder, stage: Stage) -> tuple[int, ...]:
    """How many neighbours a thread may store at once: those of one row, which it reads together."""
    tensor = stage.tensor
    reads_stage = any(builder.state.has_stage(load.source.name) for load in loads_of(tensor.body))
    if tensor.reduction is not None or reads_stage:
        return (1,)
    long = [axis for axis in tensor.axes if axis.extent != 1]
    if not long or not is_contiguous(tensor, long[-1]):
        return (1,)
    return tuple(n for n in _VECTORS if long[-1].length % n == 0)
