"""A partial sketch, which the generators read and extend.

A derivation visits the stages of a program from the last to the first.  It is a value: generators
return new ones.

The questions of the sketch generators about a stage, by name.

Source:  the conditions of Ansor's rules (Zheng et al., OSDI 2020, table 1).

Sketch generators, and those that users have registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from tensorwright import expr, schedule
from tensorwright.tuning.space.accesses import count_of, is_contiguous, loads_from
from tensorwright.tuning.space.register_tile import CPU_LIMITS
from tensorwright.tuning.space.sketch import Choice, Limit, Registered, SketchBuilder
from tensorwright.tuning.space.steps import is_cheap, takes_codes_apart

_LEAST_TERMS = 32  # a shorter reduction is not worth a stage of partial results


def is_strict_inlinable(state: schedule.ScheduleState, name: str) -> bool:
    """Whether a stage is always inlined into its readers.

    It is cheap, has no branch, and reads each operand at plain positions unless no reader folds; or
    it is read once, by a stage that folds nothing; or it takes constants apart.
    """
    stage = state.stage(name)
    if not can_inline(state, name):
        return False
    if takes_codes_apart(state, name):
        return True
    readers = state.readers(name)
    folding = any(reader.tensor.reduction is not None for reader in readers)
    reads = [load for reader in readers for load in loads_from(reader.tensor, name)]
    if len(reads) == 1 and not folding:
        return True
    if not is_cheap(stage.tensor.body) or _has_branch(stage.tensor.body):
        return False
    return not folding or all(_is_plain(load) for load in expr.loads_of(stage.tensor.body))


def can_inline(state: schedule.ScheduleState, name: str) -> bool:
    """Whether a stage may be inlined: it has readers, folds nothing, is not an output or index."""
    return bool(state.readers(name)) and schedule.is_legal(schedule.ComputeInline(name), state)


def _has_branch(value: expr.Value) -> bool:
    return isinstance(value, expr.Select) or any(
        _has_branch(child) for child in expr.children(value)
    )


def _is_plain(load: expr.Load) -> bool:
    """Whether every index is a number or a variable, none twice."""
    variables = [index for index in load.indices if isinstance(index, expr.Var)]
    plain = all(isinstance(index, (int, expr.Var)) for index in load.indices)
    return plain and len(set(variables)) == len(variables)


def has_data_reuse(state: schedule.ScheduleState, name: str) -> bool:
    """Whether a fold reads some operand again for other elements: then tiles pay.

    Some operand does not depend on an axis of the stage.
    """
    tensor = state.stage(name).tensor
    axes = {axis.var for axis in tensor.axes if axis.extent != 1}
    return tensor.reduction is not None and any(
        axes - expr.free_vars(*load.indices) for load in expr.loads_of(tensor.body)
    )


def fusable_consumer(state: schedule.ScheduleState, name: str) -> schedule.Stage | None:
    """The only reader of a stage, if it folds nothing and its elements are the stage's, one to one.

    The axes may be in another order.
    """
    readers = state.readers(name)
    if name in state.outputs or len(readers) != 1:
        return None
    (reader,) = readers
    loads = {*loads_from(reader.tensor, name)}
    if reader.tensor.reduction is not None or len(loads) != 1:
        return None
    used: list[expr.Index] = []
    (link,) = loads
    for index, axis in zip(link.indices, state.stage(name).tensor.axes, strict=True):
        if isinstance(index, expr.Var):
            used.append(index)
        elif index != 0 or axis.extent != 1:
            return None
    wanted = [axis.var for axis in reader.tensor.axes if axis.extent != 1]
    extents = {axis.var: axis.extent for axis in reader.tensor.axes}
    own = dict(zip(link.indices, state.stage(name).tensor.axes, strict=True))
    is_same = all(own[v].extent == extents[v] for v in used if isinstance(v, expr.Var))
    is_whole = len(set(used)) == len(used) and set(wanted) <= set(used)
    return reader if is_same and is_whole else None


def has_fusable_consumer(state: schedule.ScheduleState, name: str) -> bool:
    """Whether a stage can be computed in the tiles of its consumer."""
    return fusable_consumer(state, name) is not None


def free_consumer(state: schedule.ScheduleState, name: str) -> schedule.Stage | None:
    """The consumer in whose tiles a stage can be computed, if nothing has scheduled it."""
    consumer = fusable_consumer(state, name)
    return consumer if consumer is not None and is_untouched(state, consumer) else None


def has_more_reduction_parallelism(
    state: schedule.ScheduleState, name: str, iterations: int = CPU_LIMITS.iterations
) -> bool:
    """Whether a fold has few elements and many terms: then partial results pay.

    iterations   the number that keeps all threads busy
    """
    tensor = state.stage(name).tensor
    if tensor.reduction is None:
        return False
    elements = count_of(tensor.axes)
    terms = count_of(tensor.reduce_axes)
    return elements <= min(terms, iterations) and terms >= _LEAST_TERMS


def contiguous_axis(tensor: expr.Compute, axes: Iterable[expr.Axis]) -> expr.Axis | None:
    """The last of some axes along which every read is contiguous or the same; or None."""
    return next((axis for axis in reversed(tuple(axes)) if is_contiguous(tensor, axis)), None)


def is_untouched(state: schedule.ScheduleState, stage: schedule.Stage) -> bool:
    """Whether no generator has scheduled a stage."""
    own = tuple(axis.name for axis in (*stage.tensor.axes, *stage.tensor.reduce_axes))
    is_host = any(
        not isinstance(each.placement, schedule.AtRoot) and each.placement.stage == stage.name
        for each in state.stages
    )
    return not (
        stage.relations
        or stage.marks
        or not isinstance(stage.placement, schedule.AtRoot)
        or is_host
        or stage.loops != own
    )


@dataclass(frozen=True, slots=True)
class TiledStage:
    """A stage that a generator has tiled, for what is decided about it at the end.

    stage   computes the tiles                 host     stores them: the consumer, or the stage
    tile_loops   loops that hold a tile, largest first: (stage, loop)
    copies  whether its operands are copied as they lie, by steps that a card takes by itself
    """

    stage: str
    host: str
    tile_loops: tuple[tuple[str, str], ...]
    copies: bool = True


@dataclass(frozen=True, slots=True)
class Derivation:
    """A partial sketch and the stage that is visited.

    target    of the kind that the generators are for
    current   the name of the stage to be decided, "" when all are
    visited   the stages that have been decided
    notes     what the generators did that made a difference: the name of the sketch's family
    placements  of stages: with the notes, the name of the sketch
    tiles     the stages that have been tiled
    """

    target: Any
    state: schedule.ScheduleState
    current: str
    steps: tuple[schedule.Primitive, ...] = ()
    choices: tuple[Choice, ...] = ()
    limits: tuple[Limit, ...] = ()
    visited: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    placements: tuple[str, ...] = ()
    tiles: tuple[TiledStage, ...] = ()

    @classmethod
    def start(cls, state: schedule.ScheduleState, target: Any) -> Derivation:
        """Nothing decided, at the last stage."""
        return cls(target, state, state.stages[-1].name)

    @property
    def stage(self) -> schedule.Stage:
        """The stage that is visited."""
        return self.state.stage(self.current)

    @property
    def is_complete(self) -> bool:
        """Whether every stage has been decided."""
        return not self.current

    def grow(self) -> SketchBuilder:
        """A builder that goes on from here: do steps and open decisions, then call `then`."""
        builder = SketchBuilder(self.state)
        builder.steps = list(self.steps)
        builder.choices = list(self.choices)
        builder.limits = list(self.limits)
        return builder

    def then(
        self,
        builder: SketchBuilder,
        note: str = "",
        placement: str = "",
        tile: TiledStage | None = None,
    ) -> Derivation:
        """The derivation after the builder, with the current stage decided.

        The last undecided stage is next. A stage that has been scheduled counts as decided.
        """
        visited = self.visited | {self.current}
        state = builder.state
        open_stages = [
            s.name for s in state.stages if s.name not in visited and is_untouched(state, s)
        ]
        return replace(
            self,
            state=state,
            current=open_stages[-1] if open_stages else "",
            steps=tuple(builder.steps),
            choices=tuple(builder.choices),
            limits=tuple(builder.limits),
            visited=visited,
            notes=(*self.notes, note) if note else self.notes,
            placements=(*self.placements, placement) if placement else self.placements,
            tiles=(*self.tiles, tile) if tile is not None else self.tiles,
        )


class Verdict(Enum):
    """Whether a rule applies to the stage that is visited."""

    NO = "no"
    YES = "yes"
    YES_AND_SKIP_REST = "yes, and no rule after it"


Applies = Callable[[Derivation], "Verdict | bool"]
Derive = Callable[[Derivation], tuple[Derivation, ...]]


@dataclass(frozen=True, slots=True)
class SketchRule:
    """Decides about one stage. Rules hold no state: they are asked in any order, by any thread.

    name      for people, and to unregister it
    asked     whether it decides about `view.stage`; True is YES
    derive    the derivations that may come next; those of an illegal step are dropped silently
    is_last   whether True is YES_AND_SKIP_REST
    """

    name: str
    asked: Applies
    derive: Derive
    is_last: bool = False

    def applies(self, view: Derivation) -> Verdict:
        """What it answers about `view.stage`."""
        answer = self.asked(view)
        if isinstance(answer, Verdict):
            return answer
        yes = Verdict.YES_AND_SKIP_REST if self.is_last else Verdict.YES
        return yes if answer else Verdict.NO


def rule(name: str, asked: Applies, *, is_last: bool = False) -> Callable[[Derive], SketchRule]:
    """Make a function the rule of this name, which decides where `asked` says so."""
    return lambda derive: SketchRule(name, asked, derive, is_last)


_OWN: Registered[SketchRule] = Registered("sketch generator")


def register_sketch_rule(rule: SketchRule) -> SketchRule:
    """Register your own rule, which is asked before those of the package.

    Raises:  UsageError if one of that name is registered.
    """
    return _OWN.add(rule)


def unregister_sketch_rule(name: str) -> None:
    """Forget a registered rule.  Raises: UsageError if there is none of that name."""
    _OWN.remove(name)


def sketch_rule(applies: Applies) -> Callable[[Derive], SketchRule]:
    """Register a function as the rule for the stages for which `applies` returns true.

    Sketches without a note get the name of the rule.

    Example:  @sketch_rule(applies=lambda view: view.current == "scores")
              def keep_in_cache(view): ...
    """

    def register(derive: Derive) -> SketchRule:
        name = getattr(derive, "__name__", "rule")

        def noted(view: Derivation) -> tuple[Derivation, ...]:
            return tuple(
                replace(each, notes=(*each.notes, name)) if each.notes == view.notes else each
                for each in derive(view)
            )

        return register_sketch_rule(SketchRule(name, applies, noted))

    return register


def own_rules() -> tuple[SketchRule, ...]:
    """The rules that have been registered, in order."""
    return _OWN.all
