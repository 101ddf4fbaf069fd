"""Statements that ask for data ahead of its use."""

from __future__ import annotations

from math import prod

from tensorwright.base import LINE_BYTES
from tensorwright.expr import (
    Index,
    Range,
    Var,
    decisions_of,
    has_element,
    loads_of,
    named_sizes_of,
    simplify,
    substitute,
)
from tensorwright.loop.ir import Buffer, For, Prefetch, Stmt, block
from tensorwright.loop.lowering.buffers import StageBuffers
from tensorwright.loop.lowering.loop_order import host_variables
from tensorwright.schedule import ForKind, Stage


def prefetches_in(buffers: StageBuffers, stage: Stage, loop: str) -> list[Stmt]:
    """The prefetches of a stage at the start of each iteration of one of its loops."""
    return [
        _next_part(buffers, stage, request.tensor, loop)
        if request.is_next_part
        else _ahead(buffers, stage, request.tensor, loop, request.distance)
        for request in stage.prefetches
        if request.loop == loop
    ]


def _ahead(buffers: StageBuffers, stage: Stage, tensor: str, loop: str, distance: Index) -> Stmt:
    """A prefetch of what the body of the loop reads first, `distance` iterations on."""
    if buffers[tensor].allocated_at is not None:
        return block()  # it was just computed in a tile, so it is in the caches
    variables = buffers.analysis.nests[stage.name].variables
    inside = stage.loops[stage.loops.index(loop) + 1 :]
    ahead: dict[Var, Index] = {variables[x]: 0 for x in inside if x in variables}
    if loop in variables:
        ahead[variables[loop]] = variables[loop] + distance
    statements: list[Stmt] = []
    for load in loads_of(buffers.value(stage)):
        if load.source == buffers[tensor].buffer:
            if any(map(has_element, load.indices)):
                continue  # its index is read from memory, which may not be written so far ahead
            indices = tuple(substitute(index, ahead) for index in load.indices)
            statements.append(Prefetch(load.source, indices))
    return block(*dict.fromkeys(statements))


def _next_part(buffers: StageBuffers, stage: Stage, tensor: str, loop: str) -> Stmt:
    """A share of the lines of a packed constant that the next position of the host reads.

    The constant is counted in vectors of its last packed axis. The vectors inside the loop are
    shared out among the positions of the host that read the same part. If a line of the caches
    holds several vectors, it is prefetched once. Nothing is prefetched if one position alone reads
    a part, or if the number of positions is open: shares of an open size take more time than they
    save.
    """
    variables = buffers.analysis.nests[stage.name].variables
    bounds = buffers.analysis.bounds
    axes = buffers.packings[tensor].axes
    own = {variables[x]: x for x in stage.loops if x in variables}
    inside = stage.loops[stage.loops.index(loop) + 1 :]
    vectors = [var for var, _ in axes[:-1] if var in own and own[var] in inside]
    parts = [var for var, _ in axes if var not in own]
    host = host_variables(buffers.state, stage)
    if not parts:
        return block()
    after = host[host.index(parts[-1]) + 1 :] if parts[-1] in host else []
    tile: Index = 0
    tiles: Index = 1
    for var in after:
        extent = bounds[var].high + 1
        tile = tile * extent + var
        tiles = tiles * extent
    if tiles == 1 or named_sizes_of(tiles):
        return block()
    count: Index = prod((bounds[var].high + 1 for var in vectors), start=1)
    per_line = _vectors_per_line(buffers[tensor].buffer)
    each = (count + tiles * per_line - 1) // (tiles * per_line)
    share = Var(f"{tensor}_next")
    rest = (tile * each + share) * per_line
    next_values: dict[Var, Index] = {axes[-1][0]: 0, parts[-1]: parts[-1] + 1}
    for var in reversed(vectors[1:]):
        extent = bounds[var].high + 1
        next_values[var] = rest % extent
        rest = rest // extent
    if vectors:
        next_values[vectors[0]] = rest
    indices = tuple(buffers.analysis.realise(substitute(var, next_values)) for var, _ in axes)
    if not any(decisions_of(index) for index in (each, *indices)):  # else it takes long
        wider = {**bounds, share: Range.of_extent(each)}
        indices = tuple(simplify(index, wider) for index in indices)
    ask = Prefetch(buffers[tensor].buffer, indices, level=2)
    return For(share, each, ForKind.UNROLLED, ask)


def _vectors_per_line(buffer: Buffer) -> int:
    """The number of rows of the last axis of a buffer in a line of the caches; at least one."""
    width = buffer.shape[-1]
    if not isinstance(width, int) or width < 1:
        return 1
    return max(1, LINE_BYTES // (width * buffer.dtype.size_bytes))
