"""The buffers of the tensors of a schedule, and the values of its stages over these buffers.

A stage placed inside another's loop has a buffer of the size of the part that it computes.  Loads
of packed constants read the constant in the order of the loops.

The variables of the loops around a stage, outermost first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import starmap
from math import lcm

from tensorwright import expr, schedule
from tensorwright.loop.ir import Buffer, Packing


def in_loop_order(
    state: schedule.ScheduleState, stage: schedule.Stage, used: Set[expr.Var]
) -> list[expr.Var]:
    """The used variables, outermost loop first; a fused loop counts as the loops that it fused."""
    real = schedule.analyse(state).real
    leaves = _leaf_variables(state, stage, stage.loops[-1:])
    position = {var: n for n, var in enumerate(leaves)}
    created = {var: -n for n, var in enumerate(real)}

    def key(var: expr.Var) -> tuple[int, int]:
        parts = expr.free_vars(real[var]) if var in real else {var}
        return max(position[v] for v in parts), created.get(var, 0)

    return sorted(used, key=key)


def host_variables(state: schedule.ScheduleState, stage: schedule.Stage) -> list[expr.Var]:
    """The variables of the loops around a placed stage as before fusions; none at the root."""
    if not isinstance(stage.placement, (schedule.At, schedule.After)):
        return []
    host = state.stage(stage.placement.stage)
    around: list[expr.Var] = []
    for variable in _leaf_variables(state, host, (stage.placement.loop,)):
        fused = [
            v
            for v, real in schedule.analyse(state).real.items()
            if variable in expr.free_vars(real)
        ]
        around += fused[::-1] or [variable]  # the innermost comes first in the table
    return around


def _leaf_variables(
    state: schedule.ScheduleState, stage: schedule.Stage, last: tuple[str, ...]
) -> list[expr.Var]:
    """The variables of the loops around and down to `last` of a stage, outermost first."""
    order: list[expr.Var] = []
    if isinstance(stage.placement, (schedule.At, schedule.After)):
        host = state.stage(stage.placement.stage)
        order += _leaf_variables(state, host, (stage.placement.loop,))
    variables = schedule.analyse(state).nests[stage.name].variables
    for loop in stage.loops:
        if loop in variables:
            order.append(variables[loop])
        if loop in last:
            break
    return order


@dataclass(frozen=True, slots=True)
class StageBuffer:
    """A tensor's buffer, the element that comes first in it, and where it is allocated.

    allocated_at  (stage, loop); None: not allocated here, or around everything
    order         the tensor's dimensions in the order of the buffer's; empty: the same order
    tiles         (dimension, extent): the buffer has blocks along it, whose elements are a
                  dimension behind the others; empty: it has rows
    """

    buffer: Buffer
    low: tuple[expr.Index, ...]
    allocated_at: tuple[str, str] | None
    order: tuple[int, ...] = ()
    tiles: tuple[tuple[int, int], ...] = ()


class StageBuffers:
    """The buffer of every tensor of a state, and the packings of its constants; immutable."""

    def __init__(self, state: schedule.ScheduleState) -> None:
        self.state = state
        self.analysis: schedule.Analysis = schedule.analyse(state)
        self.packings: dict[str, Packing] = {}
        self._buffers: dict[str, StageBuffer] = {}
        self._folded = {each.tensor.name: each for each in state.folded}
        self._in_loop_order = {tensor for tensor, _ in state.packed}
        for tensor in state.inputs:
            if tensor.name not in self._in_loop_order:
                self._buffers[tensor.name] = self._as_it_is(tensor)
        for stage in state.stages:
            self._buffers[stage.name] = _buffer_of(state, stage)
        for name, reader in state.packed:
            self._buffers[name] = self._packed(name, state.stage(reader))

    def __getitem__(self, tensor: str) -> StageBuffer:
        return self._buffers[tensor]

    def caller_name(self, tensor: str) -> str:
        """The constant that the caller gives for an input: itself, or what it is folded from."""
        return self._folded[tensor].source.name if tensor in self._folded else tensor

    def buffer_indices(self, tensor: str, indices: Sequence[expr.Index]) -> tuple[expr.Index, ...]:
        """Indices into a tensor as indices into its buffer, over real variables."""
        stored = self._buffers[tensor]
        bounds = self.analysis.bounds
        local = [expr.simplify(i - low, bounds) for i, low in zip(indices, stored.low, strict=True)]
        if stored.order:
            local = [local[n] for n in stored.order]
        inside = [expr.mod(local[n], extent) for n, extent in stored.tiles]
        for n, extent in stored.tiles:
            local[n] = expr.floor_div(local[n], extent)
        local = [expr.simplify(i, bounds) for i in (*local, *inside)] if inside else local
        return tuple(expr.simplify(self.analysis.realise(i), bounds) for i in local)

    def target(self, stage: schedule.Stage) -> tuple[expr.Index, ...]:
        """The buffer indices at which an iteration of a stage stores its element."""
        values = self.analysis.nests[stage.name].axis_values
        return self.buffer_indices(stage.name, [values[axis.var] for axis in stage.tensor.axes])

    def value(self, stage: schedule.Stage) -> expr.Value:
        """The value of an iteration of a stage, over buffers and real variables."""
        axis_values = self.analysis.nests[stage.name].axis_values
        bounds = self.analysis.bounds

        def on_element(element: expr.Element) -> expr.Index:
            buffer = self._buffers[element.source.name].buffer
            return expr.Element(buffer, self.buffer_indices(element.source.name, element.indices))

        def virtual(index: expr.Index) -> expr.Index:
            replaced = expr.simplify(expr.substitute(index, axis_values), bounds)
            return expr.map_elements(replaced, on_element)

        def on_load(load: expr.Load) -> expr.Value:
            name = load.source.name
            if name in self._in_loop_order:
                indices = tuple(starmap(self._position, self.packings[name].axes))
            else:
                indices = self.buffer_indices(name, load.indices)
            return expr.Load(self._buffers[name].buffer, indices)

        def on_condition(condition: expr.Condition) -> expr.Condition:
            # substitute first: the table of bounds does not have the tensor's own axes
            moved = expr.substitute_condition(condition, axis_values)
            decided = expr.simplify_condition(moved, bounds)
            stored = expr.map_condition(decided, lambda index: expr.map_elements(index, on_element))
            return expr.substitute_condition(stored, self.analysis.real)

        lowered = expr.rebuild(stage.tensor.body, on_load, virtual, on_condition)
        if not self.analysis.real:
            return lowered
        return expr.rebuild(lowered, lambda load: load, self.analysis.realise, lambda each: each)

    def _position(self, var: expr.Var, extent: expr.Index) -> expr.Index:
        """Where an iteration reads along an axis of a packed constant, which may repeat."""
        position = self.analysis.realise(var)
        is_whole = expr.is_same(extent, self.analysis.bounds[var].high + 1)
        return (
            position
            if is_whole
            else expr.simplify(expr.mod(position, extent), self.analysis.bounds)
        )

    def _derivation(self, name: str) -> expr.Compute | None:
        return self._folded[name].tensor if name in self._folded else None

    def _as_it_is(self, tensor: expr.Placeholder) -> StageBuffer:
        """The buffer of an input in the order of its axes; a folded input gets a packing."""
        if tensor.name in self._folded:
            axes = tuple((expr.Var(f"d{n}"), extent) for n, extent in enumerate(tensor.shape))
            indices = tuple(var for var, _ in axes)
            derivation = self._derivation(tensor.name)
            self.packings[tensor.name] = Packing(
                axes, indices, expr.all_of(), tensor.shape, derivation
            )
        buffer = Buffer(tensor.name, tensor.shape, tensor.dtype)
        return StageBuffer(buffer, (0,) * len(tensor.shape), None)

    def _packed(self, name: str, stage: schedule.Stage) -> StageBuffer:
        """A constant in the order in which a stage's loops read it."""
        tensor = self.state.source(name)
        load = next(x for x in expr.loads_of(stage.tensor.body) if x.source.name == name)
        bounds = self.analysis.bounds
        values = self.analysis.nests[stage.name].axis_values
        indices = tuple(expr.simplify(expr.substitute(i, values), bounds) for i in load.indices)
        order = in_loop_order(self.state, stage, expr.free_vars(*indices))
        axes = tuple((var, _period(indices, var, bounds[var].high + 1)) for var in order)
        held = {**bounds, **{var: expr.Range.of_extent(extent) for var, extent in axes}}
        indices = tuple(expr.simplify(index, held) for index in indices)
        valid = expr.all_of(
            *(
                expr.simplify_condition(condition, held)
                for index, extent in zip(indices, tensor.shape, strict=True)
                for condition in (index >= 0, index < extent)
            )
        )
        self.packings[name] = Packing(axes, indices, valid, tensor.shape, self._derivation(name))
        shape = tuple(extent for _, extent in axes)
        return StageBuffer(Buffer(f"{name}_packed", shape, tensor.dtype), (0,) * len(shape), None)


def _period(indices: Sequence[expr.Index], var: expr.Var, extent: expr.Index) -> expr.Index:
    """The number of values of a variable after which some indices repeat; its extent if never.

    The phases of a transposed convolution repeat along the output: one copy of the weights of each
    phase is enough, also for outputs of open length.
    """
    divisors = [each for index in indices for each in _divisors(index, var)]
    numbers = [each for each in divisors if isinstance(each, int)]
    if not numbers or len(numbers) < len(divisors):
        return extent
    period = lcm(*numbers)
    again = (expr.simplify(expr.substitute(index, {var: var + period}), {}) for index in indices)
    is_repeated = all(
        expr.is_same(a, expr.simplify(b, {})) for a, b in zip(again, indices, strict=True)
    )
    is_shorter = not isinstance(extent, int) or period < extent
    return period if is_repeated and is_shorter else extent


def _divisors(index: expr.Index, var: expr.Var) -> Iterator[expr.Index]:
    """What leaves a remainder of a variable somewhere in an index."""
    if isinstance(index, expr.Mod) and var in expr.free_vars(index.dividend):
        yield index.divisor
    for part in expr.parts_of(index):
        yield from _divisors(part, var)


def _buffer_of(state: schedule.ScheduleState, stage: schedule.Stage) -> StageBuffer:
    """The buffer of a stage: all of its tensor, or the part that one run computes."""
    tensor = stage.tensor
    allocated_at = schedule.allocation_loop(state, stage)
    together = schedule.is_shared(state, stage)
    region = schedule.Region((0,) * len(tensor.axes), tensor.shape)
    if isinstance(stage.placement, schedule.At):
        region = schedule.analyse(state).nests[stage.name].region
    elif allocated_at is not None:
        region = schedule.tile_region(
            state, schedule.analyse(state), *allocated_at, together=together
        )
    scope = schedule.Scope.GLOBAL
    if allocated_at is not None:  # each iteration has its own: one for all would be a race
        scope = schedule.Scope.SHARED if together else schedule.Scope.LOCAL
    order = _local_order(state, stage) if scope is schedule.Scope.LOCAL else ()
    shape = tuple(region.extents[n] for n in order) if order else region.extents
    tiles = _tiles(state, stage) if scope is schedule.Scope.LOCAL else ()
    extents = dict(tiles)
    shape = tuple(expr.ceil_div(n, extents.get(at, 1)) for at, n in enumerate(shape))
    shape = (*shape, *extents.values())
    layout = stage.layout if scope is schedule.Scope.SHARED else schedule.PLAIN
    buffer = Buffer(stage.name, shape, tensor.dtype, scope, layout)
    return StageBuffer(buffer, region.low, allocated_at, order, tiles)


def _tiles(state: schedule.ScheduleState, stage: schedule.Stage) -> tuple[tuple[int, int], ...]:
    """The dimensions and lengths of the blocks that an intrinsic of several axes writes."""
    if stage.intrinsic is None:
        return ()
    meaning = schedule.find_meaning(stage.intrinsic[1])
    if meaning is None or len(meaning.axes) == 1:
        return ()
    nest = schedule.analyse(state).nests[stage.name]
    tiles = []
    loops = dict(zip(schedule.loops_of(meaning), stage.replaced_loops, strict=True))
    for axis in meaning.axes:
        along = nest.variables[loops[axis]]
        values = [nest.axis_values[own.var] for own in stage.tensor.axes]
        (at,) = (n for n, value in enumerate(values) if along in expr.free_vars(value))
        tiles.append((at, axis.length))
    return tuple(tiles)


def _local_order(state: schedule.ScheduleState, stage: schedule.Stage) -> tuple[int, ...]:
    """The order of dimensions with that of the vectors last, so that registers can hold them."""
    nest = schedule.analyse(state).nests[stage.name]
    rank = len(stage.tensor.axes)
    if stage.intrinsic is not None or any(
        reader.intrinsic is not None for reader in state.readers(stage.name)
    ):
        return ()  # the windows of the intrinsics decide the order
    vectors = {
        nest.variables[loop]
        for loop in stage.loops
        if stage.kind(loop) is schedule.ForKind.VECTOR and loop in nest.variables
    }
    along = [
        n
        for n, axis in enumerate(stage.tensor.axes)
        if vectors & expr.free_vars(nest.axis_values[axis.var])
    ]
    if len(along) != 1 or along[0] == rank - 1:
        return ()
    return (*(n for n in range(rank) if n != along[0]), along[0])
