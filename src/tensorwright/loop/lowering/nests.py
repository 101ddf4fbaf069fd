"""Lower a schedule state to a loop program.

Every stage becomes a nest of its leaf loops; a stage placed inside another's loop becomes a nest
there.  A reduction becomes a nest that stores the identity and a nest that folds.  Loops of one
iteration vanish.  The loops over threads of a nest become one group (`guards.py`), in which the
threads wait for each other where they must.

Statements that ask for data ahead of its use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from tensorwright import expr, schedule
from tensorwright.base import LINE_BYTES, Role, multiplies_tiles
from tensorwright.loop import ir
from tensorwright.loop.lowering.buffers import StageBuffers, host_variables
from tensorwright.loop.lowering.guards import Guards, join_threads
from tensorwright.loop.lowering.pipelines import PipelinedLoop, make_pipeline, outline_pipeline
from tensorwright.loop.passes import place_barriers


def prefetches_in(buffers: StageBuffers, stage: schedule.Stage, loop: str) -> list[ir.Stmt]:
    """The prefetches of a stage at the start of each iteration of one of its loops."""
    return [
        _next_part(buffers, stage, request)
        if request.is_next_part
        else _ahead(buffers, stage, request.tensor, loop, request.distance)
        for request in stage.prefetches
        if request.loop == loop
    ]


def _ahead(
    buffers: StageBuffers, stage: schedule.Stage, tensor: str, loop: str, distance: expr.Index
) -> ir.Stmt:
    """A prefetch of what the body of the loop reads first, `distance` iterations on."""
    if buffers[tensor].allocated_at is not None:
        return ir.block()  # it was just computed in a tile, so it is in the caches
    variables = buffers.analysis.nests[stage.name].variables
    inside = stage.loops[stage.loops.index(loop) + 1 :]
    ahead: dict[expr.Var, expr.Index] = {variables[x]: 0 for x in inside if x in variables}
    if loop in variables:
        ahead[variables[loop]] = variables[loop] + distance
    statements: list[ir.Stmt] = []
    for load in expr.loads_of(buffers.value(stage)):
        if load.source == buffers[tensor].buffer:
            if any(map(expr.has_element, load.indices)):
                continue  # its index is read from memory, which may not be written so far ahead
            indices = tuple(expr.substitute(index, ahead) for index in load.indices)
            statements.append(ir.Prefetch(load.source, indices))
    return ir.block(*dict.fromkeys(statements))


def _next_part(
    buffers: StageBuffers, stage: schedule.Stage, request: schedule.PrefetchRequest
) -> ir.Stmt:
    """A share of the lines of a packed constant that the next position of the host reads.

    The constant is counted in vectors of its last packed axis, or of all axes that lie along the
    same loop as that. The vectors inside the loop are
    shared out among the positions of the host that read the same part. If a line of the caches
    holds several vectors, it is prefetched once. Nothing is prefetched if one position alone reads
    a part, or if the number of positions is open: shares of an open size take more time than they
    save. If the request has a distance, each position prefetches the whole part so much later.
    """
    tensor, loop, distance = request.tensor, request.loop, request.distance
    variables = buffers.analysis.nests[stage.name].variables
    bounds = buffers.analysis.bounds
    axes = buffers.packings[tensor].axes
    own = {variables[x]: x for x in stage.loops if x in variables}
    inside = stage.loops[stage.loops.index(loop) + 1 :]
    lanes = _along_one_loop(buffers, axes, own)
    vectors = [var for var, _ in axes if var in own and own[var] in inside and var not in lanes]
    parts = [var for var, _ in axes if var not in own and var not in lanes]
    host = host_variables(buffers.state, stage)
    if not parts:
        return ir.block()
    after = host[host.index(parts[-1]) + 1 :] if parts[-1] in host else []
    tile: expr.Index = 0
    tiles: expr.Index = 1
    for var in after:
        extent = bounds[var].high + 1
        tile = tile * extent + var
        tiles = tiles * extent
    is_far = not isinstance(distance, int) or distance > 0
    if is_far:
        tile, tiles = 0, 1
    elif tiles == 1 or expr.named_sizes_of(tiles):
        return ir.block()
    count: expr.Index = prod((bounds[var].high + 1 for var in vectors), start=1)
    per_line = _vectors_per_line(buffers[tensor].buffer, [n for var, n in axes if var in lanes])
    each = (count + tiles * per_line - 1) // (tiles * per_line)
    share = expr.Var(f"{tensor}_next")
    rest = (tile * each + share) * per_line
    following = parts[-1] + (distance if is_far else 1)
    next_values: dict[expr.Var, expr.Index] = {**dict.fromkeys(lanes, 0), parts[-1]: following}
    for var in reversed(vectors[1:]):
        extent = bounds[var].high + 1
        next_values[var] = rest % extent
        rest = rest // extent
    if vectors:
        next_values[vectors[0]] = rest
    indices = tuple(buffers.analysis.realise(expr.substitute(var, next_values)) for var, _ in axes)
    if not any(expr.decisions_of(index) for index in (each, *indices)):  # else it takes long
        wider = {**bounds, share: expr.Range.of_extent(each)}
        indices = tuple(expr.simplify(index, wider) for index in indices)
    ask = ir.Prefetch(buffers[tensor].buffer, indices, level=2)
    return ir.For(share, each, schedule.ForKind.UNROLLED, ask)


def _along_one_loop(
    buffers: StageBuffers,
    axes: Sequence[tuple[expr.Var, expr.Index]],
    own: Collection[expr.Var],
) -> set[expr.Var]:
    """The last packed axis, and others that the same loop of a stage runs through."""
    loops = {var: expr.free_vars(buffers.analysis.realise(var)) & set(own) for var, _ in axes}
    last = axes[-1][0]
    return {last, *(var for var, through in loops.items() if through & loops[last])}


def _vectors_per_line(buffer: ir.Buffer, extents: Sequence[expr.Index]) -> int:
    """The number of vectors of some extents in a line of the caches; at least one."""
    width = prod(extents, start=1)
    if not isinstance(width, int) or width < 1:
        return 1
    return max(1, LINE_BYTES // (width * buffer.dtype.size_bytes))


def lower(
    state: schedule.ScheduleState, name: str = "kernel", *, is_outline: bool = False
) -> ir.LoopProgram:
    """The loop program that a schedule state stands for.

    is_outline   for analyses of loops and buffers: groups of threads get no barriers, and
                 what pipelines fetch ahead stands once, in its loop
    """
    buffers = StageBuffers(state)
    roots = [stage for stage in state.stages if isinstance(stage.placement, schedule.AtRoot)]
    ends = {} if is_outline else _ends_of(buffers)
    nests = _Nests(buffers, outline_pipeline if is_outline else make_pipeline, ends)
    body = ir.block(*(nests.root(stage) for stage in roots))
    for stage in state.stages:
        stored = buffers[stage.name]
        if stage.name not in state.outputs and stored.allocated_at is None:
            body = ir.Allocate(stored.buffer, body)
    parameters = [
        ir.Parameter(
            buffers[tensor.name].buffer,
            Role.CONSTANT if tensor.name in state.constants else Role.INPUT,
            buffers.packings.get(tensor.name),
            buffers.caller_name(tensor.name) if tensor.name in buffers.packings else "",
        )
        for tensor in state.inputs
    ]
    outputs = [ir.Parameter(buffers[output].buffer, Role.OUTPUT) for output in state.outputs]
    program = ir.LoopProgram(name, (*parameters, *outputs), body)
    return program if is_outline or not schedule.has_threads(state) else place_barriers(program)


def _ends_of(buffers: StageBuffers) -> dict[tuple[str, str], expr.Index]:
    """The extents of the loops that end at a mask, by stage and loop."""
    ends: dict[tuple[str, str], expr.Index] = {}
    for host in () if schedule.has_threads(buffers.state) else buffers.state.stages:
        if host.masked_in in host.loops:
            ends |= schedule.ends_at_mask(
                buffers.state, buffers.analysis, host.name, host.masked_in
            )
    return ends


class _Nests:
    """Builds the nests of the stages of a state; `ends` are extents of loops that end early."""

    def __init__(
        self,
        buffers: StageBuffers,
        pipelined: Callable[[ir.Stmt, PipelinedLoop], ir.Stmt],
        ends: Mapping[tuple[str, str], expr.Index],
    ) -> None:
        self.buffers, self.pipelined, self.ends = buffers, pipelined, ends
        self.state = buffers.state
        self.guards = Guards(buffers)
        self.placed: dict[schedule.AtRoot | schedule.At | schedule.After, list[schedule.Stage]] = {}
        self.allocated: dict[tuple[str, str] | None, list[ir.Buffer]] = {}
        for stage in self.state.stages:
            stored = buffers[stage.name]
            self.placed.setdefault(stage.placement, []).append(stage)
            self.allocated.setdefault(stored.allocated_at, []).append(stored.buffer)

    def root(self, stage: schedule.Stage) -> ir.Stmt:
        """The nest of a stage at the root, with one loop for each thread index."""
        nest = self.nest(stage, 0)
        if not schedule.has_threads(self.state):
            return nest
        placed = [each for each in self.state.stages if isinstance(each.placement, schedule.At)]
        buffers = [self.buffers[each.name].buffer for each in placed]
        together = {each for each in buffers if each.scope is schedule.Scope.SHARED}
        bounds = (ir.LaunchBounds(stage.groups),) if stage.groups else ()
        nest = join_threads(nest, together, bounds)
        for each in self.state.stages:
            wanted = self._pipeline_of(each)
            if wanted is not None:
                nest = self.pipelined(nest, wanted)
        return nest

    def _pipeline_of(self, stage: schedule.Stage) -> PipelinedLoop | None:
        """The loop of a stage that fetches ahead; None if it has one iteration, or no such."""
        asked = stage.pipeline
        nest = self.buffers.analysis.nests[stage.name]
        if asked is None or asked.loop not in nest.variables:
            return None
        fetched = schedule.fetched_in(self.state, stage.name, asked.loop, asked.mechanism)
        filled = frozenset(self.buffers[each.name].buffer for each in fetched)
        if not filled:
            return None
        var, extent = nest.variables[asked.loop], nest.extents[asked.loop]
        return PipelinedLoop(var, extent, asked.stages, asked.mechanism, filled)

    def nest(self, stage: schedule.Stage, depth: int) -> ir.Stmt:
        """The loops of a stage from a depth inwards, with what is placed in them."""
        if depth == len(stage.loops):
            return self._statement(stage)
        loop = stage.loops[depth]
        inner = self.nest(stage, depth + 1)
        body = ir.block(
            *self._prefetches(stage, depth),
            *(self.nest(s, 0) for s in self.placed.get(schedule.At(stage.name, loop), ())),
            inner,
            *(self.nest(s, 0) for s in self.placed.get(schedule.After(stage.name, loop), ())),
        )
        for buffer in reversed(self.allocated.get((stage.name, loop), ())):
            body = ir.Allocate(buffer, body)
        result = self._loop(stage, loop, body)
        if stage.lanes == loop:
            return self._over_lanes(stage, result)
        if stage.intrinsic is not None and stage.intrinsic[0] == loop:
            result = self._call(stage, result)
        folds = (each for each in stage.loops if each in stage.reduce_loops)
        if stage.tensor.reduction is not None and loop == (stage.init_at or next(folds, "")):
            result = ir.block(self._initialise(stage, depth), result)
        return result

    def _prefetches(self, stage: schedule.Stage, depth: int) -> tuple[ir.Stmt, ...]:
        """The prefetches of a loop; they are skipped where its terms are skipped."""
        if not stage.prefetches:
            return ()
        asked = tuple(prefetches_in(self.buffers, stage, stage.loops[depth]))
        terms = self.guards.of_terms(stage)
        variables = self.buffers.analysis.nests[stage.name].variables
        inside = {variables[x] for x in stage.loops[depth + 1 :] if x in variables}
        if isinstance(terms, bool) or expr.free_vars(*expr.condition_sides(terms)) & inside:
            return asked
        return tuple(ir.guarded(terms, each) for each in asked)

    def _loop(self, stage: schedule.Stage, loop: str, body: ir.Stmt) -> ir.Stmt:
        nest = self.buffers.analysis.nests[stage.name]
        if loop not in nest.variables:
            return body
        extent = nest.extents[loop]
        if (stage.name, loop) in self.ends:
            extent = expr.minimum(extent, self.ends[stage.name, loop])
        return ir.For(nest.variables[loop], extent, stage.kind(loop), body)

    def _initialise(self, stage: schedule.Stage, depth: int) -> ir.Stmt:
        """The nest that stores the identity, over the spatial loops from `depth` inwards."""
        reduction = stage.tensor.reduction
        assert reduction is not None, "the caller has seen a reduction"
        identity = expr.identity_of(reduction.combiner, stage.tensor.dtype)
        variables = self.buffers.analysis.nests[stage.name].variables
        reduce_loops = stage.reduce_loops
        spatial = [x for x in stage.loops[depth:] if x not in reduce_loops]
        folding = {variables[x] for x in stage.loops if x in reduce_loops and x in variables}
        buffer, target = self.buffers[stage.name].buffer, self.buffers.target(stage)
        statement = ir.guarded(self.guards.of(stage, folding), ir.Store(buffer, target, identity))
        is_matrix = stage.intrinsic is not None and multiplies_tiles(stage.intrinsic[1])
        for loop in reversed(spatial):
            statement = self._loop(stage, loop, statement)
            if is_matrix and loop == spatial[-1] and isinstance(statement, ir.For):
                statement = replace(statement, kind=schedule.ForKind.VECTOR)
        return statement

    def _statement(self, stage: schedule.Stage) -> ir.Stmt:
        reduction = stage.tensor.reduction
        buffer, target = self.buffers[stage.name].buffer, self.buffers.target(stage)
        value = self.buffers.value(stage)
        statement: ir.Stmt
        if reduction is None:
            exists = self.guards.of_fill(stage)
            filled = expr.select(exists, value, expr.constant(0, value.dtype))
            statement = ir.Store(buffer, target, filled)
        elif stage.lanes:
            statement = ir.Store(_lane_buffer(stage), (), value)
        else:
            folded = expr.apply(reduction.combiner.fn, expr.Load(buffer, target), value)
            statement = ir.guarded(self.guards.of_terms(stage), ir.Store(buffer, target, folded))
        if reduction is not None and not reduction.axes and not stage.lanes:
            statement = ir.block(self._initialise(stage, len(stage.loops)), statement)
        return ir.guarded(self.guards.of(stage), statement)

    def _over_lanes(self, stage: schedule.Stage, terms: ir.Stmt) -> ir.Stmt:
        """The terms of the lanes, their fold, and the store of the result by the first of them."""
        reduction = stage.tensor.reduction
        assert reduction is not None, "check() has seen a reduction"
        nest = self.buffers.analysis.nests[stage.name]
        lane = nest.variables[stage.lanes]
        own = _lane_buffer(stage)
        lanes = nest.extents[stage.lanes]
        assert isinstance(lanes, int), "check() has seen a number"
        store = ir.Store(
            self.buffers[stage.name].buffer, self.buffers.target(stage), expr.Load(own, ())
        )
        statement = ir.guarded(self.guards.of(stage, {lane}), store)
        return ir.Allocate(
            own, ir.block(terms, ir.LaneFold(own, (), reduction.combiner.fn, lanes), statement)
        )

    def _call(self, stage: schedule.Stage, meaning: ir.Stmt) -> ir.Stmt:
        """The nest as a call of an intrinsic on the windows where its operands begin."""
        assert stage.intrinsic is not None, "the caller has seen an intrinsic"
        _, intrinsic = stage.intrinsic
        variables = self.buffers.analysis.nests[stage.name].variables
        inside = stage.replaced_loops
        first: dict[expr.Var, expr.Index] = {variables[x]: 0 for x in inside if x in variables}
        instruction = schedule.find_meaning(intrinsic)
        assert instruction is not None, "check() has seen a meaning"
        axes = schedule.loops_of(instruction)
        loops = {axis: variables[x] for axis, x in zip(axes, inside, strict=True)}
        operands = [(self.buffers[stage.name].buffer, self.buffers.target(stage))]
        operands += [
            (load.source, load.indices) for load in expr.loads_of(self.buffers.value(stage))
        ]
        windows: list[ir.Window] = []
        most = 2 if multiplies_tiles(intrinsic) else None  # rows at equal distances
        for (buffer, indices), apart in zip(
            operands, schedule.windows_apart(instruction), strict=True
        ):
            for places in product(*(range(axis.length)[:most] for axis in apart)):
                at = {**first, **{loops[axis]: n for axis, n in zip(apart, places, strict=True)}}
                windows.append(
                    ir.Window(buffer, tuple(expr.substitute(index, at) for index in indices))
                )
        return ir.Call(intrinsic, tuple(windows), meaning)


def _lane_buffer(stage: schedule.Stage) -> ir.Buffer:
    """The value of one lane in a fold over lanes."""
    return ir.Buffer(f"{stage.name}_lane", (), stage.tensor.dtype, schedule.Scope.LOCAL)
