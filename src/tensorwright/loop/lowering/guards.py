"""The conditions under which an iteration of a stage runs."""

from __future__ import annotations

from collections.abc import Iterator, Set

from tensorwright.expr import (
    Bounds,
    Compare,
    Condition,
    FromIndex,
    Index,
    Load,
    Relation,
    Select,
    Value,
    ValueExpr,
    Var,
    all_of,
    children,
    compare,
    condition_sides,
    conjuncts,
    free_vars,
    has_element,
    interval,
    is_nonnegative,
    loads_of,
    simplify,
    simplify_condition,
    substitute,
    substitute_condition,
)
from tensorwright.loop.lowering.buffers import StageBuffers
from tensorwright.schedule import (
    At,
    CopyMechanism,
    ForKind,
    ScheduleState,
    Scope,
    Skipped,
    Stage,
    fetched_in,
)

_IN_TILES = (ForKind.UNROLLED, ForKind.VECTOR)


class Guards:
    """The guards of all stages of a state; caches which stages may overhang."""

    def __init__(self, buffers: StageBuffers) -> None:
        self.buffers = buffers
        self.analysis = buffers.analysis
        self.overhanging: dict[str, bool] = {}
        self._by_copies = frozenset(_fetched_by_copies(buffers.state))

    def of(self, stage: Stage, without: Set[Var] = frozenset()) -> Condition:
        """The guards of a stage in real variables, but for those that mention `without`."""
        nest = self.analysis.nests[stage.name]
        guards = nest.guards
        exists = self._exists(stage)
        if exists is not True and not self._may_overhang(stage):
            guards = all_of(guards, exists)
        parts = conjuncts(guards)
        real = [substitute_condition(part, self.analysis.real) for part in parts]
        return all_of(*(p for p in real if not free_vars(*condition_sides(p)) & without))

    def of_fill(self, stage: Stage) -> Condition:
        """The condition that an element of a cooperative fetch exists; otherwise it is zero.

        Readers of a tile then need no condition at the edge. Asynchronous copies (`cp.async`) fill
        no zeros.
        """
        buffer = self.buffers[stage.name].buffer
        is_fetched = buffer.scope is Scope.SHARED and isinstance(stage.placement, At)
        if not is_fetched or stage.tensor.reduction is not None or stage.name in self._by_copies:
            return True
        exists = self._exists(stage)
        if exists is True or self._reads_what_exists(stage):
            return True
        return substitute_condition(exists, self.analysis.real)

    def _exists(self, stage: Stage) -> Condition:
        """The condition that an element of the loops' box is read, also over virtual variables."""
        nest = self.analysis.nests[stage.name]
        if stage.inside is True:
            return nest.overhang
        inside = substitute_condition(stage.inside, nest.axis_values)
        bounds = {**self.analysis.bounds, **self.analysis.beyond}
        return all_of(nest.overhang, simplify_condition(inside, bounds))

    def of_terms(self, stage: Stage) -> Condition:
        """The condition that a term of a stage's sum has to be added.

        A skip of tiles holds for a whole tile if it holds for one position of it. If the body
        selects (inlined padding), the condition is of each position, and replaces the select.
        """
        nest, bounds = self.analysis.nests[stage.name], self.analysis.bounds
        is_selected = _selects(stage.tensor.body)
        tile = {
            nest.variables[loop]: bounds[nest.variables[loop]]
            for loop in stage.loops
            if not is_selected
            and loop in nest.variables
            and loop not in stage.reduce_loops
            and stage.kind(loop) in _IN_TILES
        }
        asked: list[Condition] = []
        for skip in stage.skips:
            condition = substitute_condition(skip.condition, nest.axis_values)
            asked.append(_anywhere(condition, tile) if skip.of is Skipped.TILES else condition)
        decided = (simplify_condition(each, bounds) for each in asked)
        return all_of(*(substitute_condition(each, self.analysis.real) for each in decided))

    def _may_overhang(self, stage: Stage) -> bool:
        """Whether elements beyond the tensor may be computed: there is memory for them, and what
        they read exists.

        Theorem: no reader uses them, since a reader's own guards keep it inside the tensor, or it
        overhangs itself.
        """
        if stage.name not in self.overhanging:
            has_room = self.buffers[stage.name].allocated_at is not None
            self.overhanging[stage.name] = has_room and (
                self._reads_what_exists(stage) or self.of_fill(stage) is not True
            )
        return self.overhanging[stage.name]

    def _reads_what_exists(self, stage: Stage) -> bool:
        """Whether everything exists that the stage reads for elements beyond the tensor."""
        return self._reads_what_is_computed(stage) and self._is_inside(
            self.buffers.value(stage), frozenset()
        )

    def _reads_what_is_computed(self, stage: Stage) -> bool:
        """Whether every element that the stage reads of a tile, overhanging or not, is computed.

        The guards of a stage that is placed `At` a loop keep it in its box.  Those of another one
        keep it in its tensor, and leave out what lies beyond the end.
        """
        bounds = self.analysis.bounds
        values = self.analysis.nests[stage.name].axis_values
        state = self.buffers.state
        for load in loads_of(stage.tensor.body):
            if not state.has_stage(load.source.name):
                continue
            source = state.stage(load.source.name)
            is_part = self.buffers[source.name].allocated_at is not None
            if not is_part and source.inside is True:
                continue
            guards = self.analysis.nests[source.name].guards
            is_whole = isinstance(source.placement, At) or guards is True
            if is_whole and (self._exists(source) is True or self._may_overhang(source)):
                continue
            if source.inside is not True:
                return False
            indices = tuple(simplify(substitute(i, values), bounds) for i in load.indices)
            for index, extent in zip(indices, source.tensor.shape, strict=True):
                if not (
                    is_nonnegative(index, bounds) and is_nonnegative(extent - 1 - index, bounds)
                ):
                    return False
        return True

    def _is_inside(self, value: Value, facts: frozenset[Condition]) -> bool:
        """Whether all loads of a lowered value are inside their buffers where `facts` hold."""
        match value:
            case Load(source, indices):
                return all(
                    condition is True or condition in facts
                    for index, extent in zip(indices, source.shape, strict=True)
                    for bound in (index >= 0, index < extent)
                    for condition in (simplify_condition(bound, self.analysis.bounds),)
                ) and not _has_element(*indices)
            case Select(condition, then, otherwise) if not isinstance(condition, ValueExpr):
                parts = conjuncts(condition)
                return (
                    not _has_element(*condition_sides(condition))
                    and self._is_inside(then, facts.union(parts))
                    and self._is_inside(otherwise, facts)
                )
            case FromIndex(index):
                return not _has_element(index)
            case _:
                return all(self._is_inside(child, facts) for child in children(value))


def _fetched_by_copies(state: ScheduleState) -> Iterator[str]:
    """The stages that asynchronous copies compute."""
    for stage in state.stages:
        asked = stage.pipeline
        if asked is not None and asked.mechanism is CopyMechanism.CP_ASYNC:
            for each in fetched_in(state, stage.name, asked.loop, asked.mechanism):
                yield each.name


def _selects(value: Value) -> bool:
    return isinstance(value, Select) or any(map(_selects, children(value)))


def _anywhere(condition: Condition, tile: Bounds) -> Condition:
    """A condition that holds if the given one holds for some position of a tile."""
    if not isinstance(condition, Compare) or condition.relation not in (Relation.LE, Relation.LT):
        return condition
    left, right = interval(condition.left, tile), interval(condition.right, tile)
    if left is None or right is None:
        return condition
    return compare(condition.relation, left.low, right.high)


def _has_element(*indices: Index) -> bool:
    """Whether an index depends on what is in memory."""
    return any(map(has_element, indices))
