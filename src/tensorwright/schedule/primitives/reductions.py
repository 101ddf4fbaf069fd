"""Choose where a reduction starts.

Make a loop of a reduction a spatial axis of partial results.

Take what a sum multiplies each of its terms by out of the sum.

Fold over the lanes of a warp, without memory.

Leave out what a mask leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import mul

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.masked_ends import ends_at_mask
from tensorwright.schedule.memory_layout import ForKind
from tensorwright.schedule.primitive import (
    Checks,
    Primitive,
    attached_stages,
    need_legal_nesting,
)
from tensorwright.schedule.primitives.loops import loop_extent
from tensorwright.schedule.sharing import has_threads
from tensorwright.schedule.state import After, AtRoot, ScheduleState, fresh_stage
from tensorwright.schedule.tails import need_whole_tiles


@dataclass(frozen=True, slots=True)
class DecomposeReduction(Primitive):
    """Start the reduction of all elements of a loop's body at once, before the loops that fold.

    Rewrite:  for i: for j: { C = 0; for k: C += .. }
              ->  for i: { for j: C = 0;  for j: for k: C += .. }
    Requires: the stage folds; no reduction loop is outside of the loop; no stage is placed after a
              tile of the loop's or an inner loop's body; the loop is not bound to a block.
    Without this step the reduction starts in front of the outermost reduction loop.
    """

    stage: str
    loop: str

    def _need(self, at: Checks) -> None:
        stage = at.loop_of(self.stage, self.loop)
        at.need_plain_loops(stage, self.loop)
        if stage.tensor.reduction is None:
            raise at.refuse(f"{self.stage} folds nothing", "", at.here)
        # Theorem: the start is right in front of any loop that no reduction loop encloses: inside
        # of one it would throw away what the earlier iterations folded.
        around = stage.loops[: stage.loops.index(self.loop)]
        late = [loop for loop in around if loop in stage.reduce_loops]
        if late:
            raise at.refuse(f"the reduction has begun in {late[0]}", "choose it", at.here)
        inside = stage.loops[len(around) :]
        for inner in attached_stages(at.state, self.stage):
            if isinstance(inner.placement, After) and inner.placement.loop in inside:
                reason = f"{inner.name} waits for a tile that would start outside of it"
                raise at.refuse(reason, f"choose a loop inside {inside[0]}", at.here)
        need_legal_nesting(at)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the start in front of the loop."""
        return state.with_stage(replace(state.stage(self.stage), init_at=self.loop))


@dataclass(frozen=True, slots=True)
class Rfactor(Primitive):
    """Fold a reduction in two steps: partial results along one of its loops, then over these.

    Rewrite:  C[i] = sum over k_o, k_i of e(i, k)
              ->   C_rf[i, k_i] = sum over k_o of e(i, k);   C[i] = sum over k_i of C_rf[i, k_i]
    Requires: the loop carries the reduction, another reduction loop remains, and the stage is
              marked nowhere and at the root; the partial results have an axis `position`.  Both
              stages start with fresh loops.  Float sums are reassociated.
    The new axis of the partial results is the last (-1), or has another position: as the first,
    neighbours lie together that are neighbours in C.
    Source:   Suriana, Adams, Kamil: Parallel associative reductions in Halide, CGO 2017.
    """

    stage: str
    loop: str
    position: int = -1

    @property
    def partial(self) -> str:
        """The name of the stage of partial results."""
        return f"{self.stage}_rf"

    def _need(self, at: Checks) -> None:
        stage = at.loop_of(self.stage, self.loop)
        at.need_new_stage(self.partial)
        at.need_all_elements(stage)
        if self.loop not in stage.reduce_loops:
            raise at.refuse(f"loop {self.loop} carries no reduction", "", at.here)
        if sum(loop in stage.reduce_loops for loop in stage.loops) < 2:
            reason = f"{self.loop} is the only loop of the reduction"
            raise at.refuse(reason, "split it first", at.here)
        if not -1 <= self.position <= len(stage.tensor.axes):
            reason = f"{self.partial} has no axis {self.position}"
            raise at.refuse(reason, "-1 for the last, 0 for the first", at.here)
        hints = (
            stage.marks or stage.init_at or stage.prefetches or stage.intrinsic or stage.pipeline
        )
        is_packed = any(reader == self.stage for _, reader in at.state.packed)
        is_placed = not isinstance(stage.placement, AtRoot) or attached_stages(at.state, self.stage)
        if hints or is_packed or is_placed:
            raise at.refuse(f"{self.stage} is already scheduled", "rfactor first", at.here)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the stage of partial results before the stage."""
        stage = state.stage(self.stage)
        tensor = stage.tensor
        assert tensor.reduction is not None, "check() has seen a reduction"
        analysis = analyse(state)
        nest = analysis.nests[self.stage]
        values: dict[expr.Var, expr.Index] = {
            axis.var: analysis.realise(nest.axis_values[axis.var]) for axis in tensor.reduce_axes
        }
        names: dict[expr.Var, expr.Index] = {
            variable: expr.Var(loop) for loop, variable in nest.variables.items()
        }
        loops = [loop for loop in stage.loops if loop in stage.reduce_loops]
        axes = {loop: expr.Axis(expr.Var(loop), nest.extents[loop]) for loop in loops}
        body = expr.substitute_value(expr.substitute_value(tensor.body, values), names)
        combiner = tensor.reduction.combiner
        folding = frozenset(nest.variables[loop] for loop in loops if loop in nest.variables)
        guards = (expr.substitute_condition(x, analysis.real) for x in expr.conjuncts(nest.guards))
        guard = expr.all_of(
            *(part for part in guards if expr.free_vars(*expr.condition_sides(part)) <= folding)
        )
        if guard is not True:
            outside = expr.identity_of(combiner, tensor.dtype)
            body = expr.select(expr.substitute_condition(guard, names), body, outside)
        bounds = {
            axis.var: expr.Range.of_extent(axis.extent) for axis in (*tensor.axes, *axes.values())
        }
        body = expr.rebuild(
            body,
            lambda load: load,
            lambda index: expr.simplify(index, bounds),
            lambda condition: expr.simplify_condition(condition, bounds),
        )
        rest = tuple(axes[loop] for loop in loops if loop != self.loop)
        at = len(tensor.axes) if self.position == -1 else self.position
        spatial = (*tensor.axes[:at], axes[self.loop], *tensor.axes[at:])
        partial = expr.Compute(self.partial, spatial, body, expr.Reduction(combiner, rest))
        stand_in = expr.Placeholder(self.partial, partial.shape, partial.dtype)
        read = expr.Load(stand_in, tuple(axis.var for axis in spatial))
        folded = expr.Compute(
            self.stage, tensor.axes, read, expr.Reduction(combiner, (axes[self.loop],))
        )
        return state.with_stages(self.stage, fresh_stage(partial), fresh_stage(folded))


@dataclass(frozen=True, slots=True)
class FactorOut(Primitive):
    """Multiply a sum by a factor, not each of its terms.

    Rewrite:  C[i] = sum over k of a(i) * e(i, k)
              ->   C_sums[i] = sum over k of e(i, k);   C[i] = C_sums[i] * a(i)
    Requires: the tensor is a sum of f32 or f64 that is not scheduled; its terms are products, of
              which some factors depend on what is summed over and some do not.  Float products are
              reassociated: a sum may exceed the element type where its multiple does not.
    """

    stage: str

    @property
    def sums(self) -> str:
        """The name of the stage of sums."""
        return f"{self.stage}_sums"

    def _need(self, at: Checks) -> None:
        stage = at.unscheduled(self.stage)
        at.need_new_stage(self.sums)
        reduction = stage.tensor.reduction
        here = (self.stage, "")
        if reduction is None or reduction.combiner is not expr.Combiner.SUM:
            raise at.refuse(f"{self.stage} is not a sum", "", here)
        if stage.tensor.dtype not in (DType.F32, DType.F64):
            raise at.refuse(f"sums of {stage.tensor.dtype} are not reordered", "", here)
        # sum of a * e(k) = a * sum of e(k), where a does not depend on k
        fixed, moving = _factors(stage.tensor)
        if not fixed or not moving:
            reason = f"no factor of {self.stage} is the same for all of its terms"
            raise at.refuse(reason, "inline what it reads first", here)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the stage of sums before the stage."""
        tensor = state.stage(self.stage).tensor
        fixed, moving = _factors(tensor)
        sums = expr.Compute(self.sums, tensor.axes, reduce(mul, moving), tensor.reduction)
        stand_in = expr.Placeholder(self.sums, sums.shape, sums.dtype)
        read = expr.Load(stand_in, tuple(axis.var for axis in tensor.axes))
        result = expr.Compute(self.stage, tensor.axes, reduce(mul, fixed, read))
        return state.with_stages(self.stage, fresh_stage(sums), fresh_stage(result))


def _factors(tensor: expr.Compute) -> tuple[list[expr.Value], list[expr.Value]]:
    """The factors of each term that are the same for all terms, and the others."""
    folded = {axis.var for axis in tensor.reduce_axes}
    fixed: list[expr.Value] = []
    moving: list[expr.Value] = []
    for factor in expr.factors_of(tensor.body):
        (moving if expr.variables_of(factor) & folded else fixed).append(factor)
    return fixed, moving


_FOLDS = frozenset((expr.Combiner.SUM, expr.Combiner.PROD, expr.Combiner.MAX, expr.Combiner.MIN))
MOST_LANES = 32


@dataclass(frozen=True, slots=True)
class ShuffleReduce(Primitive):
    """Let each lane of a warp have one term of a reduction, and the lanes exchange them.

    Rewrite:  for t in 0..32: C[i] += e(i, t)
              ->  for t in 0..32 @thread.x: v = e(i, t);  v = sum of the v of 32 lanes;
                  if t == 0: C[i] = v
    Requires: the loop is the innermost of the stage and its only one of a reduction, serial, not
              pipelined; it has 2, 4, 8, 16 or 32 iterations, each of them with a term; the
              reduction is a sum, product, maximum or minimum, which has no terms to skip and no
              intrinsic; no other loop of the stage is bound to thread.x.  Float sums are
              reassociated.
    Longer reductions are split and factored first (rfactor); the partial results are computed at
    the loop, so that each lane has its own in a register.
    Source:   NVIDIA, CUDA C++ Programming Guide, warp shuffle functions.
    """

    stage: str
    loop: str

    def _need(self, at: Checks) -> None:
        stage = at.loop_of(self.stage, self.loop)
        at.need_plain_loops(stage, self.loop)
        at.need_unpipelined(stage, self.loop)
        folding = [loop for loop in stage.loops if loop in stage.reduce_loops]
        if folding != [self.loop] or stage.loops[-1] != self.loop:
            reason = f"{self.loop} is not the innermost loop and the only one of the reduction"
            raise at.refuse(reason, "split and rfactor first", at.here)
        at.need_serial(stage, self.loop)
        if any(kind is ForKind.THREAD_X for _, kind in stage.marks):
            raise at.refuse("thread.x is bound already", "", at.here)
        extent = loop_extent(at.state, stage, self.loop)
        is_power = isinstance(extent, int) and extent & (extent - 1) == 0
        if not is_power or not isinstance(extent, int) or not 2 <= extent <= MOST_LANES:
            reason = f"{extent} lanes do not exchange numbers among themselves"
            raise at.refuse(reason, "split by 2, 4, 8, 16 or 32", at.here)
        reduction = stage.tensor.reduction
        if reduction is None or reduction.combiner not in _FOLDS or stage.skips:
            raise at.refuse(f"{self.stage} is not a plain fold", "", at.here)
        analysis = analyse(at.state)
        nest = analysis.nests[self.stage]
        for part in expr.conjuncts(nest.guards):
            real = expr.substitute_condition(part, analysis.real)
            if nest.variables[self.loop] in expr.free_vars(*expr.condition_sides(real)):
                reason = f"lanes have no term unless {real}"
                raise at.refuse(reason, "split by what divides, or rfactor first", at.here)
        # Theorem: a fold takes its terms in any order, so it may take those of the lanes as a tree,
        # where each of them has one.
        need_legal_nesting(at)
        need_whole_tiles(at)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loop bound to the lanes."""
        stage = state.stage(self.stage).with_mark(self.loop, ForKind.THREAD_X)
        return state.with_stage(replace(stage, lanes=self.loop))


@dataclass(frozen=True, slots=True)
class EndAtMask(Primitive):
    """End loops inside of a loop where a mask leaves out all later positions.

    Rewrite:  for i_o: for j in 0..n: C[i] += w[i, j]*v[j]      where w[i, j] = 0 if j > i
              ->  for i_o: for j in 0..min(n, the last i of i_o + 1): C[i] += w[i, j]*v[j]
    Requires: some stage inside of the loop ends there: it folds what a condition of its terms
              makes zero (of a maximum: minus infinity), or only such stages read it; no loop is
              bound to a thread.
    What is left out is zero for finite numbers.
    """

    stage: str
    loop: str

    def _need(self, at: Checks) -> None:
        at.loop_of(self.stage, self.loop)
        if has_threads(at.state):
            raise at.refuse("threads of a group do not end at one position", "", at.here)
        # Theorem: see `ends_at_mask`, which asks again for the final loops.
        if not ends_at_mask(at.state, analyse(at.state), self.stage, self.loop):
            raise at.refuse("no mask ends a loop inside", "", at.here)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loop noted."""
        return state.with_stage(replace(state.stage(self.stage), masked_in=self.loop))
