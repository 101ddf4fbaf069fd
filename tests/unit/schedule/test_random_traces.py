"""Random legal traces keep the meaning of random expressions, decisions bound early or late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.unit.schedule.expressions import ALL, Expression, check_program, finished
from tests.unit.schedule.small_expressions import SMALL

from tensorwright import schedule
from tensorwright.base import InternalError, ScheduleError
from tensorwright.expr import Decision, Index, decisions_of
from tensorwright.loop import For, launches_of, lower, verify, walk
from tensorwright_lab.loop_interpreter import bind_decisions, interpret

# No shrinking: it takes minutes, and the traces are short as they are.
_SETTINGS = {"phases": (Phase.generate,)}


class _Drawer:
    """Draws steps that name what exists; whether they are legal, their own check says."""

    def __init__(self, draw: st.DrawFn, *, symbolic: bool, on_card: bool = False) -> None:
        self.draw = draw
        self.on_card = on_card
        self.kinds = CARD_KINDS if on_card else KINDS
        self.symbolic = symbolic
        self.values: dict[str, int] = {}

    def pick(self, items: tuple[str, ...]) -> str:
        return self.draw(st.sampled_from(items))

    def factor(self) -> Index:
        number = self.draw(st.sampled_from((1, 2, 2, 3, 4, 5)))
        is_enough = len(self.values) >= 4  # simplifying takes long where many decisions multiply
        if not self.symbolic or is_enough or self.draw(st.booleans()):
            return number
        name = f"t{len(self.values)}"
        self.values[name] = number
        return Decision(name)

    def steps(self, state: schedule.ScheduleState) -> tuple[schedule.Primitive, ...]:
        """The next step; none where what was drawn names nothing.

        Some are hardly ever legal where they are drawn blindly: of these a legal one is drawn.
        """
        stage = self.draw(st.sampled_from(state.stages))
        if not stage.loops:
            return ()
        kind = self.draw(st.sampled_from(self.kinds))
        if kind is schedule.Tensorize:
            return _tensorized(stage)
        if kind is schedule.ShuffleReduce:
            return _over_lanes(self.draw, stage)
        if kind is schedule.Pipeline:
            pipelines = pipelines_of(state)
            return (self.draw(st.sampled_from(pipelines)),) if pipelines else ()
        if kind is schedule.ComputeAt and self.on_card:
            return _placed(self.draw, state)
        if kind in RARE:
            legal = [
                step
                for each in state.stages
                for step in _rare(kind, each)
                if _is_legal(step, state)
            ]
            return (self.draw(st.sampled_from(legal)),) if legal else ()
        step = self.step(kind, state, stage, self.pick(stage.loops))
        return (step,) if step is not None else ()

    def step(
        self, kind: type, state: schedule.ScheduleState, stage: schedule.Stage, loop: str
    ) -> schedule.Primitive | None:
        """A step of the loops of one stage."""
        name = stage.name
        if kind is schedule.Split:
            factors = (self.factor(),) if self.draw(st.integers(0, 3)) else (self.factor(),) * 2
            return schedule.Split(name, loop, factors, self.draw(st.sampled_from(schedule.Tail)))
        if kind is schedule.Fuse:
            at = stage.loops.index(loop)
            return schedule.Fuse(name, stage.loops[at : at + self.draw(st.integers(2, 3))])
        if kind is schedule.Reorder:
            return schedule.Reorder(name, tuple(self.draw(st.permutations(stage.loops))))
        if kind in (
            schedule.Unroll,
            schedule.Vectorize,
            schedule.Parallel,
            schedule.Rfactor,
            schedule.DecomposeReduction,
        ):
            return cast(schedule.Primitive, kind(name, loop))
        if kind is schedule.Bind:
            return schedule.Bind(name, loop, self.draw(st.sampled_from(INDICES)))
        if kind is schedule.SetScope:
            return schedule.SetScope(
                name, self.draw(st.sampled_from((schedule.Scope.SHARED, schedule.Scope.LOCAL)))
            )
        if kind is schedule.Cooperate:
            threads = tuple(self.factor() for _ in range(self.draw(st.integers(1, 2))))
            return schedule.Cooperate(name, threads, self.draw(st.sampled_from((1, 1, 2, 4))))
        if kind is schedule.Layout:
            kinds = st.sampled_from(tuple(schedule.LayoutKind))
            return schedule.Layout(
                name, self.draw(kinds), self.draw(st.sampled_from((0, 1, 4, 32, 64)))
            )
        if kind is schedule.SplitAxis:
            axis = self.pick(tuple(axis.name for axis in stage.tensor.axes) or (loop,))
            return schedule.SplitAxis(name, axis, (self.factor(),) * self.draw(st.integers(1, 2)))
        if kind is schedule.LaunchBounds:
            return schedule.LaunchBounds(name, self.draw(st.integers(1, 4)))
        if kind is schedule.SplitReduction:
            return schedule.SplitReduction(name, loop, self.factor())
        if kind is schedule.BlockOrder:
            return (
                schedule.BlockOrder(name, *stage.loops[:2], self.factor())
                if stage.loops[1:]
                else None
            )
        if kind in (schedule.ComputeAt, schedule.ReverseComputeAt):
            host = self.draw(st.sampled_from(state.stages))
            if not host.loops:
                return None
            return cast(schedule.Primitive, kind(name, host.name, self.pick(host.loops)))
        return self.of_operand(kind, state, stage, loop)

    def of_operand(
        self, kind: type, state: schedule.ScheduleState, stage: schedule.Stage, loop: str
    ) -> schedule.Primitive | None:
        """A step about a tensor or one that it reads."""
        name = stage.name
        read = self.pick(tuple(schedule.reads_of(stage.tensor)))
        if kind is schedule.CacheRead:
            tensors = (*state.inputs, *(s.tensor for s in state.stages))
            rank = next(len(t.shape) for t in tensors if t.name == read)
            order = tuple(self.draw(st.permutations(range(rank))))
            scope = self.draw(st.sampled_from((schedule.Scope.LOCAL, schedule.Scope.SHARED)))
            return schedule.CacheRead(read, name, scope, self.draw(st.sampled_from(((), order))))
        if kind is schedule.CacheWrite:
            return schedule.CacheWrite(name)
        if kind is schedule.PackConstant:
            return schedule.PackConstant(read, name)
        return (
            schedule.Prefetch(name, read, loop, self.factor())
            if kind is schedule.Prefetch
            else None
        )


WEIGHTS: dict[type, int] = {
    schedule.Split: 8,
    schedule.Fuse: 2,
    schedule.Reorder: 4,
    schedule.Unroll: 1,
    schedule.Vectorize: 1,
    schedule.Parallel: 1,
    schedule.Bind: 2,
    schedule.ComputeAt: 6,
    schedule.ReverseComputeAt: 6,
    schedule.ComputeInline: 1,
    schedule.ReverseComputeInline: 1,
    schedule.CacheRead: 2,
    schedule.CacheWrite: 1,
    schedule.Rfactor: 1,
    schedule.FactorOut: 1,
    schedule.DecomposeReduction: 1,
    schedule.PackConstant: 1,
    schedule.Tensorize: 1,
    schedule.Prefetch: 1,
    schedule.PrefetchNext: 1,
    schedule.UseAlgorithm: 1,
    schedule.FoldConstant: 1,
    schedule.SkipZeros: 1,
    schedule.EndAtMask: 2,
    schedule.SetScope: 1,
    schedule.Cooperate: 1,
    schedule.BlockOrder: 1,
    schedule.Layout: 1,
    schedule.LaunchBounds: 1,
    schedule.Pipeline: 1,
    schedule.SplitReduction: 1,
    schedule.SplitAxis: 1,
    schedule.ShuffleReduce: 1,
}
"""How often each kind of step is drawn."""
CARD_WEIGHTS = {
    **WEIGHTS,
    schedule.Split: 4,
    schedule.Bind: 8,
    schedule.CacheRead: 6,
    schedule.SetScope: 4,
    schedule.Cooperate: 6,
    schedule.BlockOrder: 3,
    schedule.Layout: 2,
    schedule.Pipeline: 6,
    schedule.SplitReduction: 2,
    schedule.SplitAxis: 2,
    schedule.ShuffleReduce: 3,
    schedule.Parallel: 0,
    schedule.PackConstant: 0,
    schedule.PrefetchNext: 0,
    schedule.Tensorize: 0,
}
"""The same for graphics processors."""
EXPRESSIONS = {**SMALL, **{f"larger_{name}": each for name, each in ALL.items()}}
INDICES = (
    schedule.ForKind.BLOCK_X,
    schedule.ForKind.BLOCK_Y,
    schedule.ForKind.THREAD_X,
    schedule.ForKind.THREAD_Y,
)


def _repeated(weights: Mapping[type, int]) -> tuple[type, ...]:
    return tuple(kind for kind, weight in weights.items() for _ in range(weight))


KINDS, CARD_KINDS = _repeated(WEIGHTS), _repeated(CARD_WEIGHTS)
RARE = (
    *(schedule.ComputeInline, schedule.ReverseComputeInline, schedule.PrefetchNext),
    *(schedule.UseAlgorithm, schedule.FoldConstant, schedule.SkipZeros, schedule.FactorOut),
)


def _rare(kind: type, stage: schedule.Stage) -> list[schedule.Primitive]:
    """All steps of a kind on a stage, legal or not."""
    name = stage.name
    if kind is schedule.UseAlgorithm:
        return [schedule.UseAlgorithm(name, "winograd2")]
    if kind is schedule.SkipZeros:
        taps = [axis.name for axis in stage.tensor.reduce_axes]
        places = product(schedule.reads_of(stage.tensor), taps, schedule.Skipped)
        return [schedule.SkipZeros(name, read, tap, of) for read, tap, of in places]
    if kind is schedule.PrefetchNext:
        return [
            kind(name, *place) for place in product(schedule.reads_of(stage.tensor), stage.loops)
        ]
    return [kind(name)]


def pipelines_of(state: schedule.ScheduleState) -> list[schedule.Primitive]:
    """All pipelines that loops of a state may have."""
    return [
        step
        for stage in state.stages
        for loop in stage.loops
        for stages, mechanism in (
            (2, schedule.CopyMechanism.REGISTERS),
            (2, schedule.CopyMechanism.CP_ASYNC),
            (3, schedule.CopyMechanism.CP_ASYNC),
        )
        for step in (schedule.Pipeline(stage.name, loop, stages, mechanism),)
        if _is_legal(step, state)
    ]


def _over_lanes(draw: st.DrawFn, stage: schedule.Stage) -> tuple[schedule.Primitive, ...]:
    """A fold over lanes of what is left of a reduction when it is split and factored."""
    if not stage.tensor.reduce_axes:
        return ()
    name, loop = stage.name, stage.tensor.reduce_axes[-1].name
    split = schedule.Split(name, loop, (draw(st.sampled_from((2, 4, 8))),))
    lanes = split.children[-1]
    factor, fold = schedule.Rfactor(name, lanes), schedule.ShuffleReduce(name, lanes)
    return (split, factor, fold, schedule.ComputeAt(factor.partial, name, lanes))


def _placed(draw: st.DrawFn, state: schedule.ScheduleState) -> tuple[schedule.Primitive, ...]:
    """A stage in a loop of its last reader, where it may be computed there."""
    legal = [
        schedule.ComputeAt(stage.name, reader.name, loop)
        for stage in state.stages
        for reader in state.readers(stage.name)[-1:]
        for loop in reader.loops
        if _is_legal(schedule.ComputeAt(stage.name, reader.name, loop), state)
    ]
    return (draw(st.sampled_from(legal)),) if legal else ()


def _is_legal(step: schedule.Primitive, state: schedule.ScheduleState) -> bool:
    try:
        step.check(state)
    except ScheduleError:
        return False
    return True


def _tensorized(stage: schedule.Stage) -> tuple[schedule.Primitive, ...]:
    """An intrinsic in the place of the innermost loops, made ready: legal for products of bytes."""
    name, loops = stage.name, stage.loops
    packed = tuple(schedule.PackConstant(read, name) for read in schedule.reads_of(stage.tensor))
    split = schedule.Split(name, loops[-2:][0], (16,)), schedule.Split(name, loops[-1], (4,))
    order = tuple(f"{loop}_{part}" for part in "oi" for loop in loops[-2:])
    place = schedule.Reorder(name, (*loops[:-2], *order))
    return (*packed, *split, place, schedule.Tensorize(name, order[-2], "dot4_u8i8_i32"))


def _bound(draw: st.DrawFn, stage: schedule.Stage) -> Iterator[schedule.Primitive]:
    """Blocks and threads for the outermost loops of a stage, where their tiles are whole or not."""
    loops = stage.loops[: draw(st.integers(0, 2))]
    axes = (
        (schedule.ForKind.BLOCK_Y, schedule.ForKind.THREAD_Y),
        (schedule.ForKind.BLOCK_X, schedule.ForKind.THREAD_X),
    )
    splits = [
        schedule.Split(stage.name, loop, (draw(st.sampled_from((2, 3, 4))),)) for loop in loops
    ]
    yield from splits
    order = tuple(loop for part in zip(*(s.children for s in splits), strict=True) for loop in part)
    if order:
        yield schedule.Reorder(stage.name, order)
    for split, (block_index, thread_index) in zip(splits, axes, strict=False):
        yield schedule.Bind(stage.name, split.children[0], block_index)
        yield schedule.Bind(stage.name, split.children[1], thread_index)


@st.composite
def schedules(
    draw: st.DrawFn, *, symbolic: bool = False, on_card: bool = False
) -> tuple[Expression, schedule.Trace, dict[str, int]]:
    """An expression, a legal trace for it and values of the trace's decisions."""
    expression = EXPRESSIONS[draw(st.sampled_from(sorted(EXPRESSIONS)))]
    drawer = _Drawer(draw, symbolic=symbolic, on_card=on_card)
    state = expression.state
    steps: list[schedule.Primitive] = []
    for stage in state.stages if on_card else ():
        for step in _bound(draw, stage):
            if _is_legal(step, state):
                state = step.apply(state)
                steps.append(step)
    for _ in range(draw(st.integers(1, 14))):
        for step in drawer.steps(state):
            if _is_legal(step, state):
                state = step.apply(state)
                steps.append(step)
    return expression, tuple(steps), drawer.values


@settings(max_examples=37, **_SETTINGS)
@given(schedules())
def test_a_legal_trace_keeps_the_meaning(
    case: tuple[Expression, schedule.Trace, dict[str, int]],
) -> None:
    expression, trace, _ = case
    assert schedule.parse_trace(schedule.format_trace(trace)) == trace
    state = schedule.replay(expression.state, trace)
    assert schedule.analyse(state) == schedule.analyse(replace(state)), (
        "what steps left as it was is taken over"
    )
    check_program(expression, lower(state))


@pytest.mark.layer("interpreter")
@settings(max_examples=25, **_SETTINGS)
@given(schedules(on_card=True))
def test_a_trace_for_a_card_keeps_the_meaning(
    case: tuple[Expression, schedule.Trace, dict[str, int]],
) -> None:
    """With its barriers, it is right and has no races; so it has after all passes."""
    expression, trace, _ = case
    assert schedule.parse_trace(schedule.format_trace(trace)) == trace
    program = lower(schedule.replay(expression.state, trace))
    check_program(expression, program)
    launches_of(program)
    launches_of(finished(program))


def test_every_primitive_is_drawn() -> None:
    assert set(WEIGHTS) == set(schedule.PRIMITIVES)


def test_what_is_rarely_legal_is_legal_somewhere() -> None:
    legal: set[type] = set()
    packed = schedule.replay(ALL["matmul"].state, (schedule.PackConstant("b", "c"),))
    for state in (*(each.state for each in ALL.values()), packed):
        for stage in state.stages:
            steps = [step for kind in RARE for step in _rare(kind, stage)]
            legal.update(type(step) for step in steps if _is_legal(step, state))
    assert legal == set(RARE)
    state = ALL["bytes_product"].state
    *ready, last = _tensorized(state.stages[-1])
    for step in ready:
        state = step.apply(state) if _is_legal(step, state) else state
    last.check(state)


@settings(max_examples=20, **_SETTINGS)
@given(schedules(symbolic=True))
def test_decisions_bound_late_mean_the_same(
    case: tuple[Expression, schedule.Trace, dict[str, int]],
) -> None:
    """Where a tail promises to divide or to fit, the numbers must keep it: others are skipped."""
    check_bound_late(*case)


@settings(max_examples=8, **_SETTINGS)
@given(schedules(symbolic=True, on_card=True))
def test_decisions_for_a_card_bound_late_mean_the_same(
    case: tuple[Expression, schedule.Trace, dict[str, int]],
) -> None:
    check_bound_late(*case)


def check_bound_late(expression: Expression, trace: schedule.Trace, values: dict[str, int]) -> None:
    try:
        early = lower(schedule.replay(expression.state, schedule.bind(trace, values)))
    except ScheduleError:
        return
    decisions = {Decision(name): value for name, value in values.items()}
    late = lower(schedule.replay(expression.state, trace))
    verify(late, allow_decisions=True)
    arrays = expression.arrays()
    bound = bind_decisions(late, decisions)
    verify(bound)
    expected = interpret(early, arrays)
    check_program(expression, early)
    check_program(expression, bound)
    assert expected.keys() == interpret(late, arrays, decisions).keys()


def test_extents_contain_the_decisions() -> None:
    expression = ALL["matmul"]
    trace = (
        schedule.Split("c", "i", (Decision("t"),)),
        schedule.Split("c", "j", (Decision("u"), Decision("v"))),
    )
    program = lower(schedule.replay(expression.state, trace))
    loops = [each for each in walk(program.body) if isinstance(each, For)]
    extents = {each.var.name: str(each.extent) for each in loops}
    assert (extents["i_i"], extents["j_1"], extents["j_2"]) == ("?t", "?u", "?v")
    assert decisions_of(*(each.extent for each in loops)) == set(map(Decision, "tuv"))
    with pytest.raises(InternalError, match="is not bound"):
        verify(program)
