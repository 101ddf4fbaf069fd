"""Bounds and footprints: what a schedule state implies for the ranges of its loops.

For every stage: the region of its tensor that it computes each time it runs, the extents of its
loops, the value of each axis in terms of loop variables, and the guards that keep it inside the
tensor.  One analysis serves the legality checks, the lowering and (evaluated over columns of
candidates) the features.

Variables.  A leaf loop has a real variable.  The loops that went into a fusion have *virtual*
variables: the analysis speaks of them as if they were still loops, so that footprints stay
rectangular, and `real` says what each is in terms of real variables.  Where a fused loop was split
again and only a part of it is inside a footprint, the footprint is the bounding box of the real
expression: one stated bound, used wherever footprints are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from weakref import WeakKeyDictionary

from tensorwright import expr
from tensorwright.schedule.memory_layout import THREADS
from tensorwright.schedule.sharing import has_threads, is_shared
from tensorwright.schedule.state import (
    After,
    At,
    AtRoot,
    FuseRelation,
    LoopRelation,
    ScheduleState,
    SplitRelation,
    Stage,
    Tail,
    readers_among,
)


@dataclass(frozen=True, slots=True)
class Region:
    """A box of a tensor: its first element and its extents, per axis."""

    low: tuple[expr.Index, ...]
    extents: tuple[expr.Index, ...]


@dataclass(frozen=True, slots=True)
class Nest:
    """The analysis of one stage.

    region       what is computed each time the stage runs
    extents      of every loop, leaves and others
    variables    the variable of each leaf loop of more than one iteration
    axis_values  tensor axis -> its value, over real and virtual variables
    guards       conditions, over the same, under which an iteration is one of the loops' box
    overhang     conditions under which it is in the tensor: the region may reach beyond that
    """

    region: Region
    extents: Mapping[str, expr.Index]
    variables: Mapping[str, expr.Var]
    axis_values: Mapping[expr.Var, expr.Index]
    guards: expr.Condition
    overhang: expr.Condition


@dataclass(frozen=True, slots=True)
class Analysis:
    """The nests of all stages, the ranges of variables, and what virtual variables are.

    beyond   ranges of virtual variables where iterations are counted that a guard leaves out: a
             split of a fused loop that does not divide it goes beyond its end
    parts    what each stage adds to these, by name
    """

    nests: Mapping[str, Nest]
    bounds: Mapping[expr.Var, expr.Range]
    real: Mapping[expr.Var, expr.Index]
    beyond: Mapping[expr.Var, expr.Range]
    parts: Mapping[str, _Part]

    def realise(self, index: expr.Index) -> expr.Index:
        """The index with its virtual variables replaced by what they are."""
        return expr.substitute(index, self.real) if self.real else index


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of an analysis for one stage: its nest, and its variables with their ranges.

    shared   those of its loops whose names other stages have, too
    """

    nest: Nest
    shared: frozenset[str]
    bounds: Mapping[expr.Var, expr.Range]
    real: Mapping[expr.Var, expr.Index]
    beyond: Mapping[expr.Var, expr.Range]


@lru_cache(maxsize=1 << 12)
def _part_of(
    tensor: expr.Compute,
    loops: tuple[str, ...],
    relations: tuple[LoopRelation, ...],
    shared: frozenset[str],
    region: Region,
    around: tuple[tuple[expr.Var, expr.Range], ...],
) -> _Part:
    """The analysis of a stage's loops in a region: a step changes one stage, the others stay.

    shared   the loops whose names other stages have, too
    around   the ranges of the variables in the region
    """
    return _LoopsOfStage(tensor, shared, dict(around)).run(loops, relations, region)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The analysis of an earlier state, without that state: a state holds the next one."""

    stages: tuple[Stage, ...]
    analysis: Analysis

    def unchanged(self, state: ScheduleState) -> frozenset[str]:
        """The stages whose loops, placement and readers are still the same.

        There are none on a card, where threads decide regions, too.
        """
        if has_threads(state):
            return frozenset()
        own = {stage.name: stage for stage in self.stages}
        return frozenset(
            stage.name
            for stage in state.stages
            if stage.name in own and self._is_like(own[stage.name], stage, state)
        )

    def _is_like(self, own: Stage, stage: Stage, state: ScheduleState) -> bool:
        if own.tensor is not stage.tensor or own.loops != stage.loops:
            return False
        if own.relations != stage.relations or own.placement != stage.placement:
            return False
        if isinstance(own.placement, AtRoot):
            return True
        before = tuple(each.name for each in readers_among(self.stages, own.name))
        return before == tuple(each.name for each in state.readers(own.name))


_CACHE: WeakKeyDictionary[ScheduleState, Analysis] = WeakKeyDictionary()
_EARLIER: WeakKeyDictionary[ScheduleState, _Earlier] = WeakKeyDictionary()


def analyse(state: ScheduleState) -> Analysis:
    """The analysis of a state; remembered as long as the state lives."""
    analysis = _CACHE.get(state)
    if analysis is None:
        analysis = _CACHE[state] = _Analyser(state, _EARLIER.pop(state, None)).run()
    return analysis


def note_step(before: ScheduleState, after: ScheduleState) -> None:
    """Let `analyse` reuse the parts that one or several steps left unchanged."""
    analysis = None if has_threads(before) else _CACHE.get(before)
    earlier = _EARLIER.get(before) if analysis is None else _Earlier(before.stages, analysis)
    if earlier is not None and after not in _CACHE:
        _EARLIER[after] = earlier


class _LoopsOfStage:
    """Mutable working state: the loops of one stage, and what its axes are in terms of them."""

    def __init__(
        self, tensor: expr.Compute, shared: frozenset[str], bounds: dict[expr.Var, expr.Range]
    ) -> None:
        self.tensor = tensor
        self.shared = shared
        self.bounds = bounds
        self.real: dict[expr.Var, expr.Index] = {}
        self.beyond: dict[expr.Var, expr.Range] = {}

    def run(
        self, loops: tuple[str, ...], relations: tuple[LoopRelation, ...], region: Region
    ) -> _Part:
        extents: dict[str, expr.Index] = {}
        for axis, extent in zip(self.tensor.axes, region.extents, strict=True):
            extents[axis.name] = extent
        for axis in self.tensor.reduce_axes:
            extents[axis.name] = axis.extent
        for relation in relations:
            _add_extents(relation, extents)
        values: dict[str, expr.Index] = {}
        variables: dict[str, expr.Var] = {}
        for loop in loops:
            values[loop] = 0
            if extents[loop] != 1:
                variables[loop] = self._variable(loop)
                values[loop] = variables[loop]
                self.bounds[variables[loop]] = expr.Range.of_extent(extents[loop])
        guards: list[expr.Condition] = []
        for relation in reversed(relations):
            if isinstance(relation, SplitRelation):
                values[relation.parent] = self._split_value(relation, extents, values, guards)
            else:
                self._fuse_values(relation, extents, values)
        return self._part(region, extents, variables, values, guards)

    def _part(
        self,
        region: Region,
        extents: Mapping[str, expr.Index],
        variables: Mapping[str, expr.Var],
        values: Mapping[str, expr.Index],
        guards: list[expr.Condition],
    ) -> _Part:
        axis_values: dict[expr.Var, expr.Index] = {}
        overhang: list[expr.Condition] = []
        for axis, low in zip(self.tensor.axes, region.low, strict=True):
            axis_values[axis.var] = low + values[axis.name]
            if low != 0 or extents[axis.name] != axis.extent:
                overhang.append(axis_values[axis.var] < axis.extent)
                overhang.append(axis_values[axis.var] >= 0)
        for axis in self.tensor.reduce_axes:
            axis_values[axis.var] = values[axis.name]
        nest = Nest(region, extents, variables, axis_values, self._all(guards), self._all(overhang))
        return _Part(nest, self.shared, self.bounds, self.real, self.beyond)

    def _variable(self, loop: str) -> expr.Var:
        """The variable of a loop; its plain name where no other stage has it."""
        return expr.Var(f"{self.tensor.name}.{loop}" if loop in self.shared else loop)

    def _all(self, conditions: list[expr.Condition]) -> expr.Condition:
        return expr.all_of(*(expr.simplify_condition(each, self.bounds) for each in conditions))

    def _split_value(
        self,
        relation: SplitRelation,
        extents: Mapping[str, expr.Index],
        values: Mapping[str, expr.Index],
        guards: list[expr.Condition],
    ) -> expr.Index:
        inner: expr.Index = values[relation.children[-1]]
        stride: expr.Index = relation.factors[-1]
        for child, factor in zip(
            reversed(relation.children[1:-1]), reversed(relation.factors[:-1]), strict=True
        ):
            inner = inner + values[child] * stride
            stride = stride * factor
        outer = values[relation.children[0]] * stride
        extent = extents[relation.parent]
        if relation.tail is Tail.SHIFT:
            return expr.simplify(expr.minimum(outer, extent - stride), self.bounds) + inner
        value = outer + inner
        if relation.tail is Tail.GUARD:
            guards.append(value < extent)
        return value

    def _goes_beyond(self, value: expr.Index, extent: expr.Index) -> bool:
        """Whether a loop is split into tiles, the last of which may go beyond its end."""
        return not isinstance(value, expr.Var) or _may_be_less(extent - 1, self.bounds[value].high)

    def _fuse_values(
        self,
        relation: FuseRelation,
        extents: Mapping[str, expr.Index],
        values: dict[str, expr.Index],
    ) -> None:
        rest: expr.Index = values[relation.child]
        # A split by more than there are has no outer loop: its variable, too, goes beyond the end.
        is_split = self._goes_beyond(rest, extents[relation.child])
        for position in range(len(relation.parents) - 1, -1, -1):
            loop = relation.parents[position]
            if extents[loop] == 1:
                values[loop] = 0
                continue
            virtual = self._variable(loop)
            outermost = all(extents[p] == 1 for p in relation.parents[:position])
            value = rest if outermost else expr.mod(rest, extents[loop])
            if isinstance(value, expr.Var):  # the only parent of more than one iteration
                values[loop] = value
                continue
            rest = expr.floor_div(rest, extents[loop])
            values[loop] = virtual
            self.bounds[virtual] = expr.Range.of_extent(extents[loop])
            self.real[virtual] = expr.substitute(value, self.real)
            reach = expr.interval(self.real[virtual], self.bounds)
            whole = self.bounds[virtual]
            if reach is not None and is_split and _may_be_less(whole.high, reach.high):
                self.beyond[virtual] = reach


def _may_be_less(one: expr.Index, other: expr.Index) -> bool:
    """Whether one is less than another for some named sizes; decisions count as unknown."""
    if isinstance(one, int) and isinstance(other, int):
        return one < other
    return not expr.decisions_of(one) | expr.decisions_of(other) and not expr.is_nonnegative(
        one - other, {}
    )


class _Analyser:
    """Mutable working state of one analysis.

    taken_over   the stages whose parts are those of `earlier`
    """

    def __init__(self, state: ScheduleState, earlier: _Earlier | None = None) -> None:
        self.state = state
        self.earlier = {} if earlier is None else earlier.analysis.parts
        self.unchanged = frozenset() if earlier is None else earlier.unchanged(state)
        self.taken_over: set[str] = set()
        self.parts: dict[str, _Part] = {}
        self.nests: dict[str, Nest] = {}
        self.bounds: dict[expr.Var, expr.Range] = {}
        self.real: dict[expr.Var, expr.Index] = {}
        self.beyond: dict[expr.Var, expr.Range] = {}
        loops = Counter(loop for stage in state.stages for loop in stage.loop_names)
        self.shared = frozenset(loop for loop, count in loops.items() if count > 1)

    def run(self) -> Analysis:
        pending = list(reversed(self.state.stages))
        while pending:  # readers first, except that a stage placed After waits for its host
            ready = [stage for stage in pending if self._is_ready(stage)]
            for stage in ready:
                self._add_nest(stage)
            pending = [stage for stage in pending if stage.name not in self.nests]
            assert ready, "placements form a cycle: primitives refuse to build one"
        return Analysis(self.nests, self.bounds, self.real, self.beyond, self.parts)

    def _is_ready(self, stage: Stage) -> bool:
        match stage.placement:
            case AtRoot():
                return True
            case After(host, _):
                return host in self.nests
            case At(host, _):
                readers = self.state.readers(stage.name)
                return host in self.nests and all(r.name in self.nests for r in readers)

    def _add_nest(self, stage: Stage) -> None:
        shared = self.shared & stage.loop_names
        part = self._earlier_part(stage, shared)
        if part is None:
            part = self._new_part(stage, shared)
        else:
            self.taken_over.add(stage.name)
        self.parts[stage.name] = part
        self.nests[stage.name] = part.nest
        self.bounds |= part.bounds
        self.real |= part.real
        self.beyond |= part.beyond

    def _earlier_part(self, stage: Stage, shared: frozenset[str]) -> _Part | None:
        """The earlier part, where neither the stage nor what decides its region, its host and its
        readers, has changed since.
        """
        part = self.earlier[stage.name] if stage.name in self.unchanged else None
        if part is None or part.shared != shared:
            return None
        if isinstance(stage.placement, AtRoot):
            return part
        around = {stage.placement.stage}
        if isinstance(stage.placement, At):
            around.update(reader.name for reader in self.state.readers(stage.name))
        return part if around <= self.taken_over else None

    def _new_part(self, stage: Stage, shared: frozenset[str]) -> _Part:
        region = self._region(stage)
        around: dict[expr.Var, expr.Range] = {}
        for index in (*region.low, *region.extents):
            around |= expr.ranges_in(index, {**self.bounds, **self.beyond})
        return _part_of(
            stage.tensor, stage.loops, stage.relations, shared, region, tuple(around.items())
        )

    def _region(self, stage: Stage) -> Region:
        whole = Region((0,) * len(stage.tensor.axes), stage.tensor.shape)
        match stage.placement:
            case AtRoot():
                return whole
            case At(host, loop):
                together = is_shared(self.state, stage)
                fixed = enclosing_variables(self.state, self.nests, host, loop, together=together)
                boxes: list[list[expr.Range | None]] = []
                for reader in self.state.readers(stage.name):
                    boxes += self._reads(reader, stage.name, fixed)
                return self._union(stage, boxes)
            case After(host, loop):
                return self._determined(stage, host, loop)

    def _reads(
        self, reader: Stage, name: str, fixed: frozenset[expr.Var]
    ) -> list[list[expr.Range | None]]:
        values = self.nests[reader.name].axis_values
        boxes: list[list[expr.Range | None]] = []
        for load in expr.loads_of(reader.tensor.body):
            if load.source.name == name:
                indices = [
                    expr.simplify(expr.substitute(i, values), self.bounds) for i in load.indices
                ]
                boxes.append([self.moved(index, fixed) for index in indices])
        return boxes

    def moved(self, index: expr.Index, fixed: frozenset[expr.Var]) -> expr.Range | None:
        """The range of an index while every variable that is not fixed moves."""
        for _ in range(2):
            partly = {
                v: self.real[v]
                for v in expr.free_vars(index)
                if v in self.real
                and expr.free_vars(self.real[v]) & fixed
                and not expr.free_vars(self.real[v]) <= fixed
            }
            index = expr.simplify(expr.substitute(index, partly), self.bounds) if partly else index
        moving = {
            v: self.bounds[v]
            for v in expr.free_vars(index)
            if not (expr.free_vars(self.real[v]) if v in self.real else {v}) <= fixed
        }
        # an element of another tensor is known when the program runs, in its buffer
        return None if expr.has_element(index) else expr.interval(index, moving)

    def _union(self, stage: Stage, boxes: list[list[expr.Range | None]]) -> Region:
        low: list[expr.Index] = []
        extents: list[expr.Index] = []
        for position, axis in enumerate(stage.tensor.axes):
            ranges = [box[position] for box in boxes]
            first, count = self._join(ranges, axis.extent)
            low.append(first)
            extents.append(count)
        return Region(tuple(low), tuple(extents))

    def _join(
        self, ranges: list[expr.Range | None], extent: expr.Index
    ) -> tuple[expr.Index, expr.Index]:
        """The smallest stated range that holds all of them: (first, count)."""
        if not ranges or any(r is None for r in ranges):
            return 0, extent
        stated = [r for r in ranges if r is not None]
        first, last = stated[0].low, stated[0].high
        for other in stated[1:]:
            first, last = expr.minimum(first, other.low), expr.maximum(last, other.high)
        count = expr.simplify(last - first + 1, self.bounds)
        if expr.free_vars(count):
            narrow = _gap_of_quotients(count)
            if narrow is None:
                widest = expr.interval(count, {v: self.bounds[v] for v in expr.free_vars(count)})
                if widest is None or expr.free_vars(widest.high):
                    return 0, extent
                narrow = widest.high
            count = narrow
        if isinstance(count, int) and isinstance(extent, int) and count >= extent:
            return 0, extent
        return expr.simplify(first, self.bounds), count

    def _determined(self, stage: Stage, host: str, loop: str) -> Region:
        tile = tile_region(self.state, self, host, loop)
        low: list[expr.Index] = [0] * len(stage.tensor.axes)
        extents = list(stage.tensor.shape)
        positions = {axis.var: n for n, axis in enumerate(stage.tensor.axes)}
        for load in expr.loads_of(stage.tensor.body):
            if load.source.name != host:
                continue
            for dimension, index in enumerate(load.indices):
                if isinstance(index, expr.Var) and index in positions:
                    low[positions[index]] = tile.low[dimension]
                    extents[positions[index]] = tile.extents[dimension]
        return Region(tuple(low), tuple(extents))


def _gap_of_quotients(count: expr.Index) -> expr.Index | None:
    """The most that c*(a//g - b//g) + rest can be, if a - b and the rest hold no variable.

    Theorem: floor((b + w) / g) - floor(b / g) <= ceil(w / g), since floor(x + y) <= floor(x) +
    ceil(y).
    """
    moving = [(m, c) for m, c in expr.terms_of(count) if any(expr.free_vars(atom) for atom in m)]
    if len(moving) != 2:
        return None
    (one, c), (other, d) = sorted(moving, key=lambda term: -term[1])
    if len(one) != 1 or len(other) != 1 or c + d:
        return None
    first, second = one[0], other[0]
    if not isinstance(first, expr.FloorDiv) or not isinstance(second, expr.FloorDiv):
        return None
    if first.divisor != second.divisor or expr.free_vars(first.divisor):
        return None
    width = first.dividend - second.dividend
    if expr.free_vars(width):
        return None
    return count - c * first + c * second + c * expr.ceil_div(width, first.divisor)


def _add_extents(relation: SplitRelation | FuseRelation, extents: dict[str, expr.Index]) -> None:
    if isinstance(relation, FuseRelation):
        extents[relation.child] = prod((extents[parent] for parent in relation.parents), start=1)
        return
    extents |= zip(relation.children[1:], relation.factors, strict=True)
    divide = expr.exact_div if relation.tail is Tail.EXACT else expr.ceil_div
    extents[relation.children[0]] = divide(extents[relation.parent], relation.tile)


def enclosing_variables(
    state: ScheduleState,
    nests: Mapping[str, Nest],
    host: str,
    loop: str,
    *,
    together: bool = False,
) -> frozenset[expr.Var]:
    """The real variables of the loops around the body of `loop` of `host`, that loop included.

    together   without those over threads: what all threads of a group do in common
    """
    stage = state.stage(host)
    inside = stage.loops[: stage.loops.index(loop) + 1]
    variables = {
        nests[host].variables[name]
        for name in inside
        if name in nests[host].variables and not (together and stage.kind(name) in THREADS)
    }
    if isinstance(stage.placement, (At, After)):
        outer = stage.placement
        variables |= enclosing_variables(state, nests, outer.stage, outer.loop, together=together)
    return frozenset(variables)


def tile_region(
    state: ScheduleState,
    analysed: _Analyser | Analysis,
    host: str,
    loop: str,
    *,
    together: bool = False,
) -> Region:
    """The part of its own tensor that a stage writes in one iteration of one of its loops.

    together   what all threads of the group around write then
    """
    analyser = analysed if isinstance(analysed, _Analyser) else _resume(state, analysed)
    fixed = enclosing_variables(state, analyser.nests, host, loop, together=together)
    stage = state.stage(host)
    values = analyser.nests[host].axis_values
    ranges = [[analyser.moved(values[axis.var], fixed) for axis in stage.tensor.axes]]
    return analyser._union(stage, ranges)


def highest_value(
    state: ScheduleState, analysis: Analysis, index: expr.Index, fixed: frozenset[expr.Var]
) -> expr.Index | None:
    """The greatest value of an index while every variable that is not fixed moves, if known."""
    reach = _resume(state, analysis).moved(index, fixed)
    return None if reach is None else reach.high


def _resume(state: ScheduleState, analysis: Analysis) -> _Analyser:
    analyser = _Analyser(state)
    analyser.nests = dict(analysis.nests)
    analyser.bounds = dict(analysis.bounds)
    analyser.real = dict(analysis.real)
    return analyser
