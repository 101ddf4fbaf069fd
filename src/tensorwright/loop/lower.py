"""Lower a schedule state to a loop program.

Every stage becomes a nest of its leaf loops; a stage placed inside another's loop becomes a nest
there, its tensor a buffer of the size of the part that it computes.  A reduction becomes a nest
that stores the identity and a nest that folds.  Loops of one iteration vanish.  Loads of packed
constants read the constant in the order of the loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tensorwright.expr import (
    And,
    Compute,
    Condition,
    Element,
    FromIndex,
    Index,
    Load,
    Placeholder,
    Range,
    Select,
    Value,
    ValueExpr,
    Var,
    all_of,
    apply,
    atoms_of,
    children,
    condition_sides,
    decisions_of,
    free_vars,
    identity_of,
    is_nonnegative,
    loads_of,
    map_elements,
    rebuild,
    simplify,
    simplify_condition,
    substitute,
    substitute_condition,
)
from tensorwright.loop.ir import (
    Allocate,
    Buffer,
    Call,
    For,
    ForKind,
    If,
    LoopProgram,
    Packing,
    Parameter,
    Prefetch,
    Role,
    Scope,
    Stmt,
    Store,
    Window,
    block,
)
from tensorwright.schedule import (
    After,
    Analysis,
    At,
    AtRoot,
    Mark,
    Region,
    ScheduleState,
    Stage,
    StageScope,
    analyse,
    tile_region,
)

_KINDS = {
    None: ForKind.SERIAL,
    Mark.PARALLEL: ForKind.PARALLEL,
    Mark.VECTORIZE: ForKind.VECTOR,
    Mark.UNROLL: ForKind.UNROLLED,
    Mark.BLOCK_X: ForKind.BLOCK_X,
    Mark.BLOCK_Y: ForKind.BLOCK_Y,
    Mark.BLOCK_Z: ForKind.BLOCK_Z,
    Mark.THREAD_X: ForKind.THREAD_X,
    Mark.THREAD_Y: ForKind.THREAD_Y,
    Mark.THREAD_Z: ForKind.THREAD_Z,
    Mark.VTHREAD: ForKind.VTHREAD,
}


@dataclass(frozen=True, slots=True)
class _Home:
    """A tensor's buffer, the element that comes first in it, and where it is allocated.

    allocated_at  (stage, loop); None: not allocated here, or around everything
    order         the tensor's dimensions in the order of the buffer's; empty: the same order
    """

    buffer: Buffer
    low: tuple[Index, ...]
    allocated_at: tuple[str, str] | None
    order: tuple[int, ...] = ()


def lower(state: ScheduleState, name: str = "kernel") -> LoopProgram:
    """The loop program that a schedule state stands for."""
    return _Lowering(state).program(name)


class _Lowering:
    """Mutable working state of one lowering."""

    def __init__(self, state: ScheduleState) -> None:
        self.state = state
        self.analysis: Analysis = analyse(state)
        self.packings: dict[str, Packing] = {}
        self.homes: dict[str, _Home] = {}
        self.overhanging: dict[str, bool] = {}
        self.folded = {each.tensor.name: each for each in state.folded}
        self.in_order = {tensor for tensor, _ in state.packed}
        for tensor in state.inputs:
            if tensor.name not in self.in_order:
                if tensor.name in self.folded:
                    self.packings[tensor.name] = self._as_it_is(tensor)
                buffer = Buffer(tensor.name, tensor.shape, tensor.dtype)
                self.homes[tensor.name] = _Home(buffer, (0,) * len(tensor.shape), None)
        for stage in state.stages:
            self.homes[stage.name] = self._home(stage)
        for tensor_name, reader in state.packed:
            self._pack(tensor_name, state.stage(reader))

    def program(self, name: str) -> LoopProgram:
        roots = [s for s in self.state.stages if isinstance(s.placement, AtRoot)]
        body = block(*(self._nest(stage, 0) for stage in roots))
        for stage in self.state.stages:
            home = self.homes[stage.name]
            if stage.name not in self.state.outputs and home.allocated_at is None:
                body = Allocate(home.buffer, body)
        parameters = [
            Parameter(
                self.homes[t.name].buffer,
                Role.CONSTANT if t.name in self.state.constants else Role.INPUT,
                self.packings.get(t.name),
                self._caller_name(t.name) if t.name in self.packings else "",
            )
            for t in self.state.inputs
        ]
        outputs = [Parameter(self.homes[o].buffer, Role.OUTPUT) for o in self.state.outputs]
        return LoopProgram(name, (*parameters, *outputs), body)

    def _caller_name(self, name: str) -> str:
        return self.folded[name].source.name if name in self.folded else name

    def _derivation(self, name: str) -> Compute | None:
        return self.folded[name].tensor if name in self.folded else None

    def _as_it_is(self, tensor: Placeholder) -> Packing:
        """A constant that is derived from the caller's and stored in the order of its axes."""
        axes = tuple((Var(f"d{n}"), extent) for n, extent in enumerate(tensor.shape))
        places = tuple(var for var, _ in axes)
        return Packing(axes, places, all_of(), tensor.shape, self._derivation(tensor.name))

    def _home(self, stage: Stage) -> _Home:
        tensor = stage.tensor
        zero = (0,) * len(tensor.axes)
        place: tuple[str, str] | None = None
        region = Region(zero, tensor.shape)
        if isinstance(stage.placement, At):
            place = (stage.placement.stage, stage.placement.loop)
            region = self.analysis.nests[stage.name].region
        elif stage.name not in self.state.outputs:
            place = self._tile_place(stage)
            if place is not None:
                region = tile_region(self.state, self.analysis, *place)
        scope = Scope.GLOBAL
        if place is not None:  # each iteration has its own: one for all would be a race
            scope = Scope.SHARED if stage.scope is StageScope.SHARED else Scope.LOCAL
        order = self._local_order(stage) if scope is Scope.LOCAL else ()
        shape = tuple(region.extents[n] for n in order) if order else region.extents
        return _Home(Buffer(stage.name, shape, tensor.dtype, scope), region.low, place, order)

    def _local_order(self, stage: Stage) -> tuple[int, ...]:
        """The dimension that a stage's vectors lie along last, so that registers can hold them."""
        nest = self.analysis.nests[stage.name]
        rank = len(stage.tensor.axes)
        if stage.intrinsic is not None or any(
            reader.intrinsic is not None for reader in self.state.readers(stage.name)
        ):
            return ()  # their windows say how the buffer lies
        vectors = {
            nest.variables[loop]
            for loop in stage.loops
            if stage.mark(loop) is Mark.VECTORIZE and loop in nest.variables
        }
        along = [
            n
            for n, axis in enumerate(stage.tensor.axes)
            if vectors & free_vars(nest.axis_values[axis.var])
        ]
        if len(along) != 1 or along[0] == rank - 1:
            return ()
        return (*(n for n in range(rank) if n != along[0]), along[0])

    def _tile_place(self, stage: Stage) -> tuple[str, str] | None:
        """The own loop after whose body all readers of a stage run: its tensor lives there."""
        readers = self.state.readers(stage.name)
        places = {reader.placement for reader in readers}
        if len(places) == 1:
            (placement,) = places
            if isinstance(placement, After) and placement.stage == stage.name:
                return placement.stage, placement.loop
        return None

    def _nest(self, stage: Stage, depth: int) -> Stmt:
        if depth == len(stage.loops):
            return self._statement(stage)
        loop = stage.loops[depth]
        first_fold = next((x for x in stage.loops if x in stage.reduce_loops), "")
        inner = self._nest(stage, depth + 1)
        before = [s for s in self.state.stages if s.placement == At(stage.name, loop)]
        after = [s for s in self.state.stages if s.placement == After(stage.name, loop)]
        prefetches = [
            self._prefetch_next(stage, r.tensor, loop)
            if r.is_next_part
            else self._prefetch(stage, r.tensor, loop, r.distance)
            for r in stage.prefetches
            if r.loop == loop
        ]
        body = block(
            *prefetches,
            *(self._nest(s, 0) for s in before),
            inner,
            *(self._nest(s, 0) for s in after),
        )
        for allocated in reversed(self.state.stages):
            if self.homes[allocated.name].allocated_at == (stage.name, loop):
                body = Allocate(self.homes[allocated.name].buffer, body)
        result = self._loop(stage, loop, body)
        if stage.intrinsic is not None and stage.intrinsic[0] == loop:
            result = self._call(stage, result)
        if stage.tensor.reduction is not None and loop == (stage.init_at or first_fold):
            result = block(self._initialise(stage, depth), result)
        return result

    def _loop(self, stage: Stage, loop: str, body: Stmt) -> Stmt:
        nest = self.analysis.nests[stage.name]
        if loop not in nest.variables:
            return body
        return For(nest.variables[loop], nest.extents[loop], _KINDS[stage.mark(loop)], body)

    def _initialise(self, stage: Stage, depth: int) -> Stmt:
        """The nest that stores the identity, over the spatial loops from `depth` inwards."""
        reduction = stage.tensor.reduction
        assert reduction is not None, "the caller has seen a reduction"
        identity = identity_of(reduction.combiner, stage.tensor.dtype)
        nest = self.analysis.nests[stage.name]
        spatial = [x for x in stage.loops[depth:] if x not in stage.reduce_loops]
        folding = {
            nest.variables[x]
            for x in stage.loops
            if x in stage.reduce_loops and x in nest.variables
        }
        statement: Stmt = Store(self.homes[stage.name].buffer, self._target(stage), identity)
        statement = self._guarded(self._guards(stage, folding), statement)
        for loop in reversed(spatial):
            statement = self._loop(stage, loop, statement)
        return statement

    def _statement(self, stage: Stage) -> Stmt:
        tensor = stage.tensor
        buffer = self.homes[stage.name].buffer
        target = self._target(stage)
        value = self._value(stage, tensor.body)
        statement: Stmt
        if tensor.reduction is None:
            statement = Store(buffer, target, value)
        else:
            folded = apply(tensor.reduction.combiner.fn, Load(buffer, target), value)
            statement = Store(buffer, target, folded)
        if tensor.reduction is not None and not tensor.reduction.axes:
            statement = block(self._initialise(stage, len(stage.loops)), statement)
        return self._guarded(self._guards(stage, frozenset()), statement)

    def _guards(self, stage: Stage, without: frozenset[Var] | set[Var]) -> Condition:
        """The guards of a stage in real variables, but for those that mention `without`."""
        nest = self.analysis.nests[stage.name]
        guards = nest.guards
        if nest.overhang is not True and not self._may_overhang(stage):
            guards = all_of(guards, nest.overhang)
        parts = guards.parts if isinstance(guards, And) else (guards,)
        real = [substitute_condition(part, self.analysis.real) for part in parts]
        return all_of(*(p for p in real if not free_vars(*condition_sides(p)) & without))

    def _may_overhang(self, stage: Stage) -> bool:
        """Whether elements beyond the tensor may be computed: it has room for them and what they
        read is there.

        Theorem: no reader uses them, since a reader's own guards keep it inside the tensor, or it
        overhangs itself.
        """
        if stage.name not in self.overhanging:
            has_room = self.homes[stage.name].allocated_at is not None
            self.overhanging[stage.name] = (
                has_room
                and self._reads_what_is_computed(stage)
                and self._is_inside(self._value(stage, stage.tensor.body), frozenset())
            )
        return self.overhanging[stage.name]

    def _reads_what_is_computed(self, stage: Stage) -> bool:
        """Whether every element that the stage reads of a tile, overhanging or not, is computed."""
        bounds = self.analysis.bounds
        values = self.analysis.nests[stage.name].axis_values
        for load in loads_of(stage.tensor.body):
            home = self.homes[load.source.name]
            if home.allocated_at is None:
                continue
            source = self.state.stage(load.source.name)
            is_whole = self.analysis.nests[source.name].overhang is True
            if is_whole or self._may_overhang(source):
                continue
            indices = tuple(simplify(substitute(i, values), bounds) for i in load.indices)
            for index, extent in zip(indices, source.tensor.shape, strict=True):
                if not (
                    is_nonnegative(index, bounds) and is_nonnegative(extent - 1 - index, bounds)
                ):
                    return False
        return True

    def _is_inside(self, value: Value, known: frozenset[Condition]) -> bool:
        """Whether every load of a lowered value is inside its buffer, under known conditions."""
        match value:
            case Load(source, indices):
                return all(
                    condition is True or condition in known
                    for index, extent in zip(indices, source.shape, strict=True)
                    for bound in (_at_least_zero(index), _below(index, extent))
                    for condition in (simplify_condition(bound, self.analysis.bounds),)
                ) and not any(isinstance(a, Element) for i in indices for a in atoms_of(i))
            case Select(condition, then, otherwise) if not isinstance(condition, ValueExpr):
                parts = condition.parts if isinstance(condition, And) else (condition,)
                if any(
                    isinstance(a, Element) for s in condition_sides(condition) for a in atoms_of(s)
                ):
                    return False
                return self._is_inside(then, known.union(parts)) and self._is_inside(
                    otherwise, known
                )
            case FromIndex(index):
                return not any(isinstance(atom, Element) for atom in atoms_of(index))
            case _:
                return all(self._is_inside(child, known) for child in children(value))

    def _guarded(self, condition: Condition, statement: Stmt) -> Stmt:
        if isinstance(condition, bool):
            return statement if condition else block()
        return If(condition, statement)

    def _target(self, stage: Stage) -> tuple[Index, ...]:
        nest = self.analysis.nests[stage.name]
        values = [nest.axis_values[axis.var] for axis in stage.tensor.axes]
        return self._place(stage.name, values)

    def _place(self, name: str, indices: list[Index]) -> tuple[Index, ...]:
        """Indices into a tensor as indices into its buffer, over real variables."""
        home = self.homes[name]
        bounds = self.analysis.bounds
        local = [simplify(i - low, bounds) for i, low in zip(indices, home.low, strict=True)]
        if home.order:
            local = [local[n] for n in home.order]
        return tuple(simplify(self.analysis.realise(i), bounds) for i in local)

    def _value(self, stage: Stage, value: Value) -> Value:
        """The stage's expression over buffers and real variables."""
        axis_values = self.analysis.nests[stage.name].axis_values
        bounds = self.analysis.bounds

        def on_element(element: Element) -> Index:
            place = self._place(element.source.name, list(element.indices))
            return Element(self.homes[element.source.name].buffer, place)

        def virtual(index: Index) -> Index:
            replaced = simplify(substitute(index, axis_values), bounds)
            return map_elements(replaced, on_element)

        def on_load(load: Load) -> Value:
            packing = self.packings.get(load.source.name)
            if packing is not None and load.source.name in self.in_order:
                place = tuple(self.analysis.realise(var) for var, _ in packing.axes)
                return Load(self.homes[load.source.name].buffer, place)
            place = self._place(load.source.name, list(load.indices))
            return Load(self.homes[load.source.name].buffer, place)

        def on_condition(condition: Condition) -> Condition:
            # the analysis' variables first: bounds of the tensor's own axes are not in the table
            moved = substitute_condition(condition, axis_values)
            decided = simplify_condition(moved, bounds)
            return substitute_condition(decided, self.analysis.real)

        lowered = rebuild(value, on_load, virtual, on_condition)
        return self._realise_indices(lowered)

    def _realise_indices(self, value: Value) -> Value:
        """FromIndex values over real variables (loads are already)."""
        if not self.analysis.real:
            return value

        def on_index(index: Index) -> Index:
            return self.analysis.realise(index)

        def on_load(load: Load) -> Value:
            return load

        return rebuild(value, on_load, on_index, lambda condition: condition)

    def _pack(self, name: str, stage: Stage) -> None:
        """Find the order in which a stage's loops read a constant, and its place there."""
        tensor = next(t for t in self.state.inputs if t.name == name)
        load = next(x for x in loads_of(stage.tensor.body) if x.source.name == name)
        bounds = self.analysis.bounds
        values = self.analysis.nests[stage.name].axis_values
        indices = tuple(simplify(substitute(i, values), bounds) for i in load.indices)
        used = free_vars(*indices)
        order = self._loop_order(stage, used)
        axes = tuple((var, bounds[var].high + 1) for var in order)
        valid = all_of(
            *(
                simplify_condition(condition, bounds)
                for index, extent in zip(indices, tensor.shape, strict=True)
                for condition in (_at_least_zero(index), _below(index, extent))
            )
        )
        derivation = self._derivation(name)
        self.packings[name] = Packing(axes, indices, valid, tensor.shape, derivation)
        shape = tuple(extent for _, extent in axes)
        buffer = Buffer(f"{name}_packed", shape, tensor.dtype)
        self.homes[name] = _Home(buffer, (0,) * len(shape), None)

    def _loop_order(self, stage: Stage, used: frozenset[Var]) -> list[Var]:
        """The used variables, outermost loop first; a fusion counts as what it fused."""
        position = {var: n for n, var in enumerate(self._leaf_variables(stage, stage.loops[-1:]))}
        created = {var: -n for n, var in enumerate(self.analysis.real)}

        def key(var: Var) -> tuple[int, int]:
            real = free_vars(self.analysis.real[var]) if var in self.analysis.real else {var}
            return max(position[v] for v in real), created.get(var, 0)

        return sorted(used, key=key)

    def _leaf_variables(self, stage: Stage, last: tuple[str, ...]) -> list[Var]:
        """The variables of the loops around and down to `last` of a stage, outermost first."""
        order: list[Var] = []
        if isinstance(stage.placement, (At, After)):
            host = self.state.stage(stage.placement.stage)
            order += self._leaf_variables(host, (stage.placement.loop,))
        variables = self.analysis.nests[stage.name].variables
        for loop in stage.loops:
            if loop in variables:
                order.append(variables[loop])
            if loop in last:
                break
        return order

    def _prefetch(self, stage: Stage, tensor: str, loop: str, distance: Index) -> Stmt:
        """A prefetch of what the body of the loop reads first, `distance` iterations on."""
        if self.homes[tensor].allocated_at is not None:
            return block()  # it is made in a tile, so it is near already
        nest = self.analysis.nests[stage.name]
        inside = stage.loops[stage.loops.index(loop) + 1 :]
        first: Mapping[Var, Index] = {nest.variables[x]: 0 for x in inside if x in nest.variables}
        statements: list[Stmt] = []
        for load in loads_of(self._value(stage, stage.tensor.body)):
            if load.source == self.homes[tensor].buffer:
                ahead = dict(first)
                if loop in nest.variables:
                    ahead[nest.variables[loop]] = nest.variables[loop] + distance
                if any(isinstance(a, Element) for index in load.indices for a in atoms_of(index)):
                    continue  # where it lies is in memory, which may not be read so far ahead
                place = tuple(substitute(index, ahead) for index in load.indices)
                statements.append(Prefetch(load.source, place))
        return block(*dict.fromkeys(statements))

    def _prefetch_next(self, stage: Stage, tensor: str, loop: str) -> Stmt:
        """A share of the lines of a packed constant that the next position of the host reads.

        Lines are vectors of the last packed axis; those inside the loop are shared out among the
        host's positions that read the same part.
        """
        nest = self.analysis.nests[stage.name]
        bounds = self.analysis.bounds
        axes = self.packings[tensor].axes
        own = {nest.variables[x]: x for x in stage.loops if x in nest.variables}
        inside = stage.loops[stage.loops.index(loop) + 1 :]
        lines = [var for var, _ in axes[:-1] if var in own and own[var] in inside]
        parts = [var for var, _ in axes if var not in own]
        host = self._host_variables(stage)
        if not parts:
            return block()
        after = host[host.index(parts[-1]) + 1 :] if parts[-1] in host else []
        tile: Index = 0
        tiles: Index = 1
        for var in after:
            extent = bounds[var].high + 1
            tile = tile * extent + var
            tiles = tiles * extent
        count: Index = prod((bounds[var].high + 1 for var in lines), start=1)
        each = (count + tiles - 1) // tiles
        share = Var(f"{tensor}_next")
        rest = tile * each + share
        place: dict[Var, Index] = {axes[-1][0]: 0, parts[-1]: parts[-1] + 1}
        for var in reversed(lines[1:]):
            extent = bounds[var].high + 1
            place[var] = rest % extent
            rest = rest // extent
        if lines:
            place[lines[0]] = rest
        indices = tuple(self.analysis.realise(substitute(var, place)) for var, _ in axes)
        if not any(decisions_of(index) for index in (each, *indices)):  # else it takes long
            wider = {**bounds, share: Range.of_extent(each)}
            indices = tuple(simplify(index, wider) for index in indices)
        ask = Prefetch(self.homes[tensor].buffer, indices, level=2)
        return For(share, each, ForKind.UNROLLED, ask)

    def _host_variables(self, stage: Stage) -> list[Var]:
        """The variables of the loops around a stage, outermost first, as before fusions."""
        if not isinstance(stage.placement, (At, After)):
            return []
        host = self.state.stage(stage.placement.stage)
        found: list[Var] = []
        for variable in self._leaf_variables(host, (stage.placement.loop,)):
            fused = [v for v, real in self.analysis.real.items() if variable in free_vars(real)]
            found += fused[::-1] or [variable]  # the innermost comes first in the table
        return found

    def _call(self, stage: Stage, meaning: Stmt) -> Stmt:
        """The nest as a call of an intrinsic on the windows where its operands begin."""
        assert stage.intrinsic is not None, "the caller has seen an intrinsic"
        loop, intrinsic = stage.intrinsic
        nest = self.analysis.nests[stage.name]
        inside = stage.loops[stage.loops.index(loop) :]
        first: dict[Var, Index] = {nest.variables[x]: 0 for x in inside if x in nest.variables}
        windows = [
            Window(
                self.homes[stage.name].buffer,
                tuple(substitute(i, first) for i in self._target(stage)),
            )
        ]
        windows += [
            Window(load.source, tuple(substitute(i, first) for i in load.indices))
            for load in loads_of(self._value(stage, stage.tensor.body))
        ]
        return Call(intrinsic, tuple(windows), meaning)


def _at_least_zero(index: Index) -> Condition:
    return index >= 0


def _below(index: Index, extent: Index) -> Condition:
    return index < extent
