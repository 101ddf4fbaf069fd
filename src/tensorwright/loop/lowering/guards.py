"""The conditions under which an iteration of a stage runs.

Make one group of threads of all loops over threads in the nest of a root stage.

A lowered nest has a loop for each loop of a stage that is bound to a thread index: some are beside
each other, and those of one stage are inside those of another.  A card has one thread index in each
direction.  So the nest becomes

    for blocks: shared buffers; for threads: statements

in which a guard around each statement says which threads run it.  The first thread runs the
statements that were in no loop over threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from tensorwright import expr, schedule
from tensorwright.base import InternalError
from tensorwright.loop.ir import Allocate, Buffer, Call, For, If, LaneFold, Stmt, Store, block
from tensorwright.loop.lowering.buffers import StageBuffers
from tensorwright.loop.traversal import map_children, substitute_statement, walk

_ORDER = (schedule.ForKind.THREAD_Z, schedule.ForKind.THREAD_Y, schedule.ForKind.THREAD_X)


_Loops: TypeAlias = tuple[tuple[schedule.ForKind, expr.Index], ...]
"""The loops over threads around a statement, outermost first: their indices and extents."""


def join_threads(nest: Stmt, computed_together: Set[Buffer], first: Sequence[Stmt] = ()) -> Stmt:
    """The nest of a root stage with one loop for each thread index; others stay as they are.

    computed_together  shared buffers that all threads fill, whatever loops over threads are around
    first              what each thread begins with
    Rewrite:  for k: for t in 0..8 @thread.x:            ->  shared S
                shared S: for s in 0..32 @thread.x:          for t in 0..32 @thread.x: for k:
                  S[s] = e(s)                                  S[t] = e(t)
                C[t] += S[g(t)]                                if t < 8: C[t] += S[g(t)]
    Theorem:  what is stored in such a buffer does not depend on the threads around its allocation,
              so it is enough that each element is stored by one thread.  For all other statements,
              their iterations of the loops over threads are shared out in the same way as before.
              What has to wait for another thread, is left to `place_barriers`.
    """
    blocks: list[For] = []
    while isinstance(nest, For) and nest.kind in schedule.BLOCKS:
        blocks.append(nest)
        nest = nest.body
    loops = [part for part in walk(nest) if isinstance(part, For)]
    if any(loop.kind in schedule.BLOCKS for loop in loops):
        raise InternalError(
            stage="loop", where="lowering", reason="a loop over blocks is not among the outermost"
        )
    threads = [loop for loop in loops if loop.kind in schedule.THREADS]
    if threads:
        folds = [part.lanes for part in walk(nest) if isinstance(part, LaneFold)]
        joined = _Joined(threads, computed_together, max(folds, default=1))
        nest = joined.group(nest, first)
    else:  # those of one iteration have vanished
        nest = _of_one_thread(nest)
    for loop in reversed(blocks):
        nest = replace(loop, body=nest)
    return nest


def _of_one_thread(nest: Stmt) -> Stmt:
    """A nest whose shared buffers are local, because its group has one thread."""
    allocated = [part.buffer for part in walk(nest) if isinstance(part, Allocate)]
    shared = [buffer for buffer in allocated if buffer.scope is schedule.Scope.SHARED]
    own = {buffer: replace(buffer, scope=schedule.Scope.LOCAL) for buffer in shared}
    return substitute_statement(nest, {}, own) if own else nest


class _Joined:
    """The threads of one group; mutable: the shared buffers seen so far."""

    def __init__(self, threads: list[For], computed_together: Set[Buffer], lanes: int) -> None:
        self._together = computed_together
        self._shared: list[Buffer] = []
        self._starts: dict[Buffer, int] = {}
        self._extents: dict[schedule.ForKind, expr.Index] = {}
        self._indices: dict[schedule.ForKind, expr.Var] = {}
        for kind in _ORDER:
            extents = [loop.extent for loop in threads if loop.kind is kind]
            if extents:
                self._extents[kind] = reduce(expr.maximum, extents)
                if kind is schedule.ForKind.THREAD_X and lanes > 1:
                    # all lanes of a fold are in one warp, whichever row they are in
                    whole = expr.ceil_div(self._extents[kind], lanes) * lanes
                    self._extents[kind] = whole
                named = [loop.var for loop in threads if loop.kind is kind]
                self._indices[kind] = named[0]

    def group(self, nest: Stmt, first: Sequence[Stmt]) -> Stmt:
        """The shared buffers, the loops over threads, and what each thread does."""
        body = block(*first, self._of_thread(nest, ()))
        for kind in reversed(_ORDER):
            if kind in self._extents:
                body = For(self._indices[kind], self._extents[kind], kind, body)
        for buffer in reversed(self._shared):
            body = Allocate(buffer, body)
        return body

    def _of_thread(self, statement: Stmt, around: _Loops) -> Stmt:
        match statement:
            case For(var, extent, kind, body) if kind in schedule.THREADS:
                own = self._indices[kind]
                if own != var:
                    body = substitute_statement(body, {var: own})
                return self._of_thread(body, (*around, (kind, extent)))
            case Allocate(buffer, body) if buffer.scope is schedule.Scope.SHARED:
                self._shared.append(buffer)
                self._starts[buffer] = len(around) if buffer in self._together else 0
                return self._of_thread(body, around)
            case Store() | Call() | If():  # a branch is a guard of one statement
                stored = [part.buffer for part in walk(statement) if isinstance(part, Store)]
                start = max((self._starts.get(buffer, 0) for buffer in stored), default=0)
                mine = self._mine(around[start:])
                return statement if mine is True else If(mine, statement)
            case _:
                return map_children(lambda part: self._of_thread(part, around), statement)

    def _mine(self, loops: _Loops) -> expr.Condition:
        """The condition that a thread has an iteration of these loops; or that it is the first."""
        counted = dict(loops)  # of two loops over one index, the inner one counts
        parts: list[expr.Condition] = []
        for kind, extent in self._extents.items():
            index = self._indices[kind]
            if kind not in counted:
                parts.append(expr.compare(expr.Relation.EQ, index, 0))
            elif counted[kind] != extent:
                parts.append(index < counted[kind])
        return expr.all_of(*parts)


_IN_TILES = (schedule.ForKind.UNROLLED, schedule.ForKind.VECTOR)


class Guards:
    """The guards of all stages of a state; caches which stages may overhang."""

    def __init__(self, buffers: StageBuffers) -> None:
        self.buffers = buffers
        self.analysis = buffers.analysis
        self.overhanging: dict[str, bool] = {}
        self._by_copies = frozenset(_fetched_by_copies(buffers.state))

    def of(self, stage: schedule.Stage, without: Set[expr.Var] = frozenset()) -> expr.Condition:
        """The guards of a stage in real variables, but for those that mention `without`."""
        nest = self.analysis.nests[stage.name]
        guards = nest.guards
        exists = self._exists(stage)
        if exists is not True and not self._may_overhang(stage):
            guards = expr.all_of(guards, exists)
        parts = expr.conjuncts(guards)
        real = [expr.substitute_condition(part, self.analysis.real) for part in parts]
        return expr.all_of(
            *(p for p in real if not expr.free_vars(*expr.condition_sides(p)) & without)
        )

    def of_fill(self, stage: schedule.Stage) -> expr.Condition:
        """The condition that an element of a cooperative fetch exists; otherwise it is zero.

        Readers of a tile then need no condition at the edge. Asynchronous copies (`cp.async`) fill
        no zeros.
        """
        buffer = self.buffers[stage.name].buffer
        is_fetched = buffer.scope is schedule.Scope.SHARED and isinstance(
            stage.placement, schedule.At
        )
        if not is_fetched or stage.tensor.reduction is not None or stage.name in self._by_copies:
            return True
        exists = self._exists(stage)
        if exists is True or self._reads_what_exists(stage):
            return True
        return expr.substitute_condition(exists, self.analysis.real)

    def _exists(self, stage: schedule.Stage) -> expr.Condition:
        """The condition that an element of the loops' box is read, also over virtual variables."""
        nest = self.analysis.nests[stage.name]
        if stage.inside is True:
            return nest.overhang
        inside = expr.substitute_condition(stage.inside, nest.axis_values)
        bounds = {**self.analysis.bounds, **self.analysis.beyond}
        return expr.all_of(nest.overhang, expr.simplify_condition(inside, bounds))

    def of_terms(self, stage: schedule.Stage) -> expr.Condition:
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
        asked: list[expr.Condition] = []
        for skip in stage.skips:
            condition = expr.substitute_condition(skip.condition, nest.axis_values)
            asked.append(
                _anywhere(condition, tile) if skip.of is schedule.Skipped.TILES else condition
            )
        decided = (expr.simplify_condition(each, bounds) for each in asked)
        return expr.all_of(
            *(expr.substitute_condition(each, self.analysis.real) for each in decided)
        )

    def _may_overhang(self, stage: schedule.Stage) -> bool:
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

    def _reads_what_exists(self, stage: schedule.Stage) -> bool:
        """Whether everything exists that the stage reads for elements beyond the tensor."""
        return self._reads_what_is_computed(stage) and self._is_inside(
            self.buffers.value(stage), frozenset()
        )

    def _reads_what_is_computed(self, stage: schedule.Stage) -> bool:
        """Whether every element that the stage reads of a tile, overhanging or not, is computed.

        The guards of a stage that is placed `At` a loop keep it in its box.  Those of another one
        keep it in its tensor, and leave out what lies beyond the end.
        """
        bounds = self.analysis.bounds
        values = self.analysis.nests[stage.name].axis_values
        state = self.buffers.state
        for load in expr.loads_of(stage.tensor.body):
            if not state.has_stage(load.source.name):
                continue
            source = state.stage(load.source.name)
            is_part = self.buffers[source.name].allocated_at is not None
            if not is_part and source.inside is True:
                continue
            guards = self.analysis.nests[source.name].guards
            is_whole = isinstance(source.placement, schedule.At) or guards is True
            if is_whole and (self._exists(source) is True or self._may_overhang(source)):
                continue
            if source.inside is not True:
                return False
            indices = tuple(expr.simplify(expr.substitute(i, values), bounds) for i in load.indices)
            for index, extent in zip(indices, source.tensor.shape, strict=True):
                if not (
                    expr.is_nonnegative(index, bounds)
                    and expr.is_nonnegative(extent - 1 - index, bounds)
                ):
                    return False
        return True

    def _is_inside(self, value: expr.Value, facts: frozenset[expr.Condition]) -> bool:
        """Whether all loads of a lowered value are inside their buffers where `facts` hold."""
        match value:
            case expr.Load(source, indices):
                return all(
                    condition is True or condition in facts
                    for index, extent in zip(indices, source.shape, strict=True)
                    for bound in (index >= 0, index < extent)
                    for condition in (expr.simplify_condition(bound, self.analysis.bounds),)
                ) and not _has_element(*indices)
            case expr.Select(condition, then, otherwise) if not isinstance(
                condition, expr.ValueExpr
            ):
                parts = expr.conjuncts(condition)
                return (
                    not _has_element(*expr.condition_sides(condition))
                    and self._is_inside(then, facts.union(parts))
                    and self._is_inside(otherwise, facts)
                )
            case expr.FromIndex(index):
                return not _has_element(index)
            case _:
                return all(self._is_inside(child, facts) for child in expr.children(value))


def _fetched_by_copies(state: schedule.ScheduleState) -> Iterator[str]:
    """The stages that asynchronous copies compute."""
    for stage in state.stages:
        asked = stage.pipeline
        if asked is not None and asked.mechanism is schedule.CopyMechanism.CP_ASYNC:
            for each in schedule.fetched_in(state, stage.name, asked.loop, asked.mechanism):
                yield each.name


def _selects(value: expr.Value) -> bool:
    return isinstance(value, expr.Select) or any(map(_selects, expr.children(value)))


def _anywhere(condition: expr.Condition, tile: expr.Bounds) -> expr.Condition:
    """A condition that holds if the given one holds for some position of a tile."""
    if not isinstance(condition, expr.Compare) or condition.relation not in (
        expr.Relation.LE,
        expr.Relation.LT,
    ):
        return condition
    left, right = expr.interval(condition.left, tile), expr.interval(condition.right, tile)
    if left is None or right is None:
        return condition
    return expr.compare(condition.relation, left.low, right.high)


def _has_element(*indices: expr.Index) -> bool:
    """Whether an index depends on what is in memory."""
    return any(map(expr.has_element, indices))
