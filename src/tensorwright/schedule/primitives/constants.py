"""Constants: compute what depends on them alone, store them in the order in which they are read.

Skip terms of a sum that padding makes zero.

Compute a tensor by another algorithm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from tensorwright import expr
from tensorwright.schedule.algorithms import ALGORITHMS, Algorithm
from tensorwright.schedule.primitive import Checks, Primitive
from tensorwright.schedule.state import (
    Folded,
    ScheduleState,
    Skip,
    Skipped,
    Stage,
    fresh_stage,
    reads_of,
    redirect,
)


def _obstacle_to_packing(
    state: ScheduleState, stage: Stage, constant: str
) -> tuple[str, str] | None:
    """Why a constant cannot be stored in the order in which a stage reads it, and what to do; None
    where it can.

    A packed copy holds the element of each iteration where the loops find it, so what is read must
    follow from the loops: an index that holds an element of a tensor is known when the program
    runs, and any element may be read in any iteration, again and again.
    """
    body = stage.tensor.body
    places = {load for load in expr.loads_of(body) if load.source.name == constant}
    if len(places) != 1:
        return f"{stage.name} reads {constant} in {len(places)} places, not one", ""
    if constant in expr.index_tensors_of(body):
        return f"{stage.name} uses elements of {constant} as indices", ""
    (load,) = places
    if any(map(expr.has_element, load.indices)):
        return f"{stage.name} reads {constant} where elements of another tensor say", ""
    if len(state.readers(constant)) != 1:
        return f"{constant} has other readers", "cache_read it first"
    return None


@dataclass(frozen=True, slots=True)
class PackConstant(Primitive):
    """Store a constant operand in the order in which the loops of its reader read it.

    Rewrite:  for i: for j: .. W[g(i, j)] ..   ->   P[i, j] = W[g(i, j)], once, when the program is
              built;
                                                    for i: for j: .. P[i, j] ..
    Requires: the tensor is a constant, and the stage is its only reader, reads it in one place,
              where its loops alone say (no element of a tensor), and does not use its elements as
              indices.
    """

    tensor: str
    stage: str

    def _need(self, at: Checks) -> None:
        stage = at.stage_of(self.stage)
        if self.tensor not in at.state.constants:
            reason = f"{self.tensor} is not a constant"
            raise at.refuse(reason, "pack only what is known when compiling")
        if any(tensor == self.tensor for tensor, _ in at.state.packed):
            raise at.refuse(f"{self.tensor} is packed already")
        obstacle = _obstacle_to_packing(at.state, stage, self.tensor)
        if obstacle is not None:
            raise at.refuse(*obstacle, (self.stage, ""))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the constant packed."""
        return replace(state, packed=tuple(sorted((*state.packed, (self.tensor, self.stage)))))


@dataclass(frozen=True, slots=True)
class FoldConstant(Primitive):
    """Compute a tensor that depends on a constant alone when the program is built.

    Rewrite:  U[i] = f(W)  ->  the constant U takes the place of W: no loops, its values by the
              evaluator
    Requires: the stage is not scheduled and no output; it reads one constant and nothing else, and
              nothing else reads that constant; its extents are numbers.
    """

    stage: str

    def _need(self, at: Checks) -> None:
        stage = at.unscheduled(self.stage)
        at.need_no_output(self.stage, " and must be stored")
        read = sorted(reads_of(stage.tensor))
        if len(read) != 1 or read[0] not in at.state.constants:
            listed = ", ".join(read) or "nothing"
            reason = f"{self.stage} reads {listed}, not one constant"
            raise at.refuse(reason, "fold only what is known when compiling")
        if len(at.state.readers(read[0])) != 1:
            raise at.refuse(f"{read[0]} has other readers")
        sizes = expr.named_sizes_of(*stage.tensor.shape)
        if sizes:
            listed = ", ".join(size.name for size in sizes)
            raise at.refuse(f"how large {self.stage} is depends on the size {listed}")

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state without the stage, its tensor a constant in place of the one that it read."""
        tensor = state.stage(self.stage).tensor
        name = next(load.source.name for load in expr.loads_of(tensor.body))
        entry = state.source(name)
        former = next((each for each in state.folded if each.tensor.name == name), None)
        source: expr.Tensor = former.tensor if former is not None else entry
        made = redirect(tensor, {name: source})
        folded = Folded(former.source if former is not None else entry, made)
        stand_in = expr.Placeholder(tensor.name, tensor.shape, tensor.dtype)
        return replace(
            state,
            inputs=tuple(stand_in if each is entry else each for each in state.inputs),
            constants=(state.constants - {name}) | {tensor.name},
            stages=tuple(each for each in state.stages if each.name != self.stage),
            folded=(*(each for each in state.folded if each is not former), folded),
        )


@dataclass(frozen=True, slots=True)
class SkipZeros(Primitive):
    """Leave out the terms along an axis of a sum for which a padded factor is zero.

    The rows above an image are skipped instead of multiplied, where the loops of the row and of the
    tap are outside of the others.  A tap may lie outside the image for some positions of a tile
    only: near the border, code of its own may leave out each position by itself.

    Rewrite:  P[i] = select(c(i), x[i], 0);  for r: C += P[h + r] * e(r)
              ->  for r: if c(h + r) [for some h of the tile]: C += P[h + r] * e(r)
    Requires: the stage is a sum of products of floats with one factor of the tensor; the tensor is
              a stage that is zero unless a condition on its indices holds; the condition depends
              on the axis.  (A skipped term is 0 for every finite factor.)
    """

    stage: str
    tensor: str
    axis: str
    of: Skipped = Skipped.TILES

    def _need(self, at: Checks) -> None:
        stage = at.stage_of(self.stage)
        padded = at.stage_of(self.tensor)
        reduction = stage.tensor.reduction
        if reduction is None or reduction.combiner is not expr.Combiner.SUM:
            raise at.refuse(f"{self.stage} is not a sum")
        if self.axis not in {axis.name for axis in reduction.axes}:
            remedy = f"one of {', '.join(axis.name for axis in reduction.axes)}"
            raise at.refuse(f"{self.axis} is not an axis of the sum", remedy)
        if not stage.tensor.dtype.is_float or self._factor(stage) is None:
            raise at.refuse(f"{self.stage} is not a product with one {self.tensor}")
        if _inside(padded) is None:
            raise at.refuse(f"{self.tensor} has no border of zeros")
        if not self.conditions(at.state):
            raise at.refuse(f"no border of {self.tensor} lies along {self.axis}")

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the conditions noted."""
        stage = state.stage(self.stage)
        skips = (Skip(condition, self.of) for condition in self.conditions(state))
        return state.with_stage(replace(stage, skips=(*stage.skips, *skips)))

    def _factor(self, stage: Stage) -> expr.Load | None:
        factors = list(expr.factors_of(stage.tensor.body))
        loads = [f for f in factors if isinstance(f, expr.Load) and f.source.name == self.tensor]
        return loads[0] if len(factors) > 1 and len(loads) == 1 else None

    def conditions(self, state: ScheduleState) -> tuple[expr.Condition, ...]:
        """The conditions under which terms along the axis count, over the axes of the stage."""
        reduce_axes = state.stage(self.stage).tensor.reduce_axes
        (axis,) = (a.var for a in reduce_axes if a.name == self.axis)
        borders = self.borders(state)
        return tuple(
            part for part in borders if axis in expr.free_vars(*expr.condition_sides(part))
        )

    def borders(self, state: ScheduleState) -> tuple[expr.Condition, ...]:
        """The conditions under which terms count, along any axis, over the axes of the stage."""
        stage, padded = state.stage(self.stage), state.stage(self.tensor)
        load, inside = self._factor(stage), _inside(padded)
        if load is None or inside is None:
            return ()
        places = dict(zip((a.var for a in padded.tensor.axes), load.indices, strict=True))
        moved = (expr.substitute_condition(part, places) for part in inside)
        return tuple(part for part in moved if not isinstance(part, bool))


def _inside(padded: Stage) -> tuple[expr.Condition, ...] | None:
    """The conditions under all of which a tensor is not zero; None if it has no such border."""
    body = padded.tensor.body
    if padded.tensor.reduction is not None or not isinstance(body, expr.Select):
        return None
    is_zero = isinstance(body.otherwise, expr.Const) and body.otherwise.value == 0
    if isinstance(body.condition, expr.ValueExpr) or not is_zero:
        return None
    return expr.conjuncts(body.condition)


@dataclass(frozen=True, slots=True)
class UseAlgorithm(Primitive):
    """Compute a tensor by another tensor expression that means the same.

    Rewrite:  C = f(A, B)   ->   C_1 = f_1(A); C_2 = f_2(B, C_1); ...; C = f_n(.., C_n-1)
              the stages of the algorithm take the place of the stage, the last has its name
    Requires: the algorithm is known and applies; the stage is not scheduled; the names of the new
              stages are free.
    """

    stage: str
    algorithm: str

    def _need(self, at: Checks) -> None:
        stage = at.unscheduled(self.stage)
        algorithm = _find(self.algorithm)
        if algorithm is None:
            names = ", ".join(each.name for each in ALGORITHMS)
            raise at.refuse(f"there is no algorithm {self.algorithm}", f"one of {names}")
        parts = _parts(algorithm, stage.tensor)
        if parts is None:
            reason = f"{self.algorithm} does not compute what {self.stage} is"
            raise at.refuse(reason, "", (self.stage, ""))
        for part in parts[:-1]:
            at.need_new_stage(part.name)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the stages of the algorithm."""
        algorithm = _find(self.algorithm)
        assert algorithm is not None, "checked"
        parts = _parts(algorithm, state.stage(self.stage).tensor)
        assert parts is not None, "checked"
        return state.with_stages(self.stage, *map(fresh_stage, parts))


def uses_algorithm(steps: Iterable[Primitive]) -> bool:
    """Whether some steps compute a tensor by an algorithm that rounds otherwise."""
    used = [_find(step.algorithm) for step in steps if isinstance(step, UseAlgorithm)]
    return any(algorithm is None or algorithm.rounds for algorithm in used)


def _find(name: str) -> Algorithm | None:
    return next((each for each in ALGORITHMS if each.name == name), None)


@lru_cache(maxsize=16)
def _parts(algorithm: Algorithm, tensor: expr.Compute) -> tuple[expr.Compute, ...] | None:
    """The tensors of the algorithm, in order, reading each other by name; None if it does not
    apply.
    """
    result = algorithm.rewrite(tensor)
    if result is None:
        return None
    order = expr.topological_order(result)
    stand_ins = {each.name: expr.Placeholder(each.name, each.shape, each.dtype) for each in order}
    return tuple(redirect(each, stand_ins) for each in order if isinstance(each, expr.Compute))
