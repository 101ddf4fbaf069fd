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

from tensorwright.base import InternalError, ScheduleError
from tensorwright.expr import Decision, Index, decisions_of
from tensorwright.loop import For, launches_of, lower, verify, walk
from tensorwright.schedule import (
    PRIMITIVES,
    Bind,
    BlockOrder,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    Cooperate,
    CopyMechanism,
    DecomposeReduction,
    FactorOut,
    FoldConstant,
    ForKind,
    Fuse,
    LaunchBounds,
    Layout,
    LayoutKind,
    PackConstant,
    Parallel,
    Pipeline,
    Prefetch,
    PrefetchNext,
    Primitive,
    Reorder,
    ReverseComputeAt,
    ReverseComputeInline,
    Rfactor,
    ScheduleState,
    Scope,
    SetScope,
    ShuffleReduce,
    Skipped,
    SkipZeros,
    Split,
    SplitAxis,
    SplitReduction,
    Stage,
    Tail,
    Tensorize,
    Trace,
    Unroll,
    UseAlgorithm,
    Vectorize,
    analyse,
    bind,
    format_trace,
    parse_trace,
    reads_of,
    replay,
)
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

    def steps(self, state: ScheduleState) -> tuple[Primitive, ...]:
        """The next step; none where what was drawn names nothing.

        Some are hardly ever legal where they are drawn blindly: of these a legal one is drawn.
        """
        stage = self.draw(st.sampled_from(state.stages))
        if not stage.loops:
            return ()
        kind = self.draw(st.sampled_from(self.kinds))
        if kind is Tensorize:
            return _tensorized(stage)
        if kind is ShuffleReduce:
            return _over_lanes(self.draw, stage)
        if kind is Pipeline:
            pipelines = pipelines_of(state)
            return (self.draw(st.sampled_from(pipelines)),) if pipelines else ()
        if kind is ComputeAt and self.on_card:
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

    def step(self, kind: type, state: ScheduleState, stage: Stage, loop: str) -> Primitive | None:
        """A step of the loops of one stage."""
        name = stage.name
        if kind is Split:
            factors = (self.factor(),) if self.draw(st.integers(0, 3)) else (self.factor(),) * 2
            return Split(name, loop, factors, self.draw(st.sampled_from(Tail)))
        if kind is Fuse:
            at = stage.loops.index(loop)
            return Fuse(name, stage.loops[at : at + self.draw(st.integers(2, 3))])
        if kind is Reorder:
            return Reorder(name, tuple(self.draw(st.permutations(stage.loops))))
        if kind in (Unroll, Vectorize, Parallel, Rfactor, DecomposeReduction):
            return cast(Primitive, kind(name, loop))
        if kind is Bind:
            return Bind(name, loop, self.draw(st.sampled_from(INDICES)))
        if kind is SetScope:
            return SetScope(name, self.draw(st.sampled_from((Scope.SHARED, Scope.LOCAL))))
        if kind is Cooperate:
            threads = tuple(self.factor() for _ in range(self.draw(st.integers(1, 2))))
            return Cooperate(name, threads, self.draw(st.sampled_from((1, 1, 2, 4))))
        if kind is Layout:
            kinds = st.sampled_from(tuple(LayoutKind))
            return Layout(name, self.draw(kinds), self.draw(st.sampled_from((0, 1, 4, 32, 64))))
        if kind is SplitAxis:
            axis = self.pick(tuple(axis.name for axis in stage.tensor.axes) or (loop,))
            return SplitAxis(name, axis, (self.factor(),) * self.draw(st.integers(1, 2)))
        if kind is LaunchBounds:
            return LaunchBounds(name, self.draw(st.integers(1, 4)))
        if kind is SplitReduction:
            return SplitReduction(name, loop, self.factor())
        if kind is BlockOrder:
            return BlockOrder(name, *stage.loops[:2], self.factor()) if stage.loops[1:] else None
        if kind in (ComputeAt, ReverseComputeAt):
            host = self.draw(st.sampled_from(state.stages))
            if not host.loops:
                return None
            return cast(Primitive, kind(name, host.name, self.pick(host.loops)))
        return self.of_operand(kind, state, stage, loop)

    def of_operand(
        self, kind: type, state: ScheduleState, stage: Stage, loop: str
    ) -> Primitive | None:
        """A step about a tensor or one that it reads."""
        name = stage.name
        read = self.pick(tuple(reads_of(stage.tensor)))
        if kind is CacheRead:
            tensors = (*state.inputs, *(s.tensor for s in state.stages))
            rank = next(len(t.shape) for t in tensors if t.name == read)
            order = tuple(self.draw(st.permutations(range(rank))))
            scope = self.draw(st.sampled_from((Scope.LOCAL, Scope.SHARED)))
            return CacheRead(read, name, scope, self.draw(st.sampled_from(((), order))))
        if kind is CacheWrite:
            return CacheWrite(name)
        if kind is PackConstant:
            return PackConstant(read, name)
        return Prefetch(name, read, loop, self.factor()) if kind is Prefetch else None


WEIGHTS: dict[type, int] = {
    Split: 8,
    Fuse: 2,
    Reorder: 4,
    Unroll: 1,
    Vectorize: 1,
    Parallel: 1,
    Bind: 2,
    ComputeAt: 6,
    ReverseComputeAt: 6,
    ComputeInline: 1,
    ReverseComputeInline: 1,
    CacheRead: 2,
    CacheWrite: 1,
    Rfactor: 1,
    FactorOut: 1,
    DecomposeReduction: 1,
    PackConstant: 1,
    Tensorize: 1,
    Prefetch: 1,
    PrefetchNext: 1,
    UseAlgorithm: 1,
    FoldConstant: 1,
    SkipZeros: 1,
    SetScope: 1,
    Cooperate: 1,
    BlockOrder: 1,
    Layout: 1,
    LaunchBounds: 1,
    Pipeline: 1,
    SplitReduction: 1,
    SplitAxis: 1,
    ShuffleReduce: 1,
}
"""How often each kind of step is drawn."""
CARD_WEIGHTS = {
    **WEIGHTS,
    Split: 4,
    Bind: 8,
    CacheRead: 6,
    SetScope: 4,
    Cooperate: 6,
    BlockOrder: 3,
    Layout: 2,
    Pipeline: 6,
    SplitReduction: 2,
    SplitAxis: 2,
    ShuffleReduce: 3,
    Parallel: 0,
    PackConstant: 0,
    PrefetchNext: 0,
    Tensorize: 0,
}
"""The same for graphics processors."""
EXPRESSIONS = {**SMALL, **{f"larger_{name}": each for name, each in ALL.items()}}
INDICES = (ForKind.BLOCK_X, ForKind.BLOCK_Y, ForKind.THREAD_X, ForKind.THREAD_Y)


def _repeated(weights: Mapping[type, int]) -> tuple[type, ...]:
    return tuple(kind for kind, weight in weights.items() for _ in range(weight))


KINDS, CARD_KINDS = _repeated(WEIGHTS), _repeated(CARD_WEIGHTS)
RARE = (
    *(ComputeInline, ReverseComputeInline, PrefetchNext),
    *(UseAlgorithm, FoldConstant, SkipZeros, FactorOut),
)


def _rare(kind: type, stage: Stage) -> list[Primitive]:
    """All steps of a kind on a stage, legal or not."""
    name = stage.name
    if kind is UseAlgorithm:
        return [UseAlgorithm(name, "winograd2")]
    if kind is SkipZeros:
        taps = [axis.name for axis in stage.tensor.reduce_axes]
        places = product(reads_of(stage.tensor), taps, Skipped)
        return [SkipZeros(name, read, tap, of) for read, tap, of in places]
    if kind is PrefetchNext:
        return [kind(name, *place) for place in product(reads_of(stage.tensor), stage.loops)]
    return [kind(name)]


def pipelines_of(state: ScheduleState) -> list[Primitive]:
    """All pipelines that loops of a state may have."""
    return [
        step
        for stage in state.stages
        for loop in stage.loops
        for stages, mechanism in (
            (2, CopyMechanism.REGISTERS),
            (2, CopyMechanism.CP_ASYNC),
            (3, CopyMechanism.CP_ASYNC),
        )
        for step in (Pipeline(stage.name, loop, stages, mechanism),)
        if _is_legal(step, state)
    ]


def _over_lanes(draw: st.DrawFn, stage: Stage) -> tuple[Primitive, ...]:
    """A fold over lanes of what is left of a reduction when it is split and factored."""
    if not stage.tensor.reduce_axes:
        return ()
    name, loop = stage.name, stage.tensor.reduce_axes[-1].name
    split = Split(name, loop, (draw(st.sampled_from((2, 4, 8))),))
    lanes = split.children[-1]
    factor, fold = Rfactor(name, lanes), ShuffleReduce(name, lanes)
    return (split, factor, fold, ComputeAt(factor.partial, name, lanes))


def _placed(draw: st.DrawFn, state: ScheduleState) -> tuple[Primitive, ...]:
    """A stage in a loop of its last reader, where it may be computed there."""
    legal = [
        ComputeAt(stage.name, reader.name, loop)
        for stage in state.stages
        for reader in state.readers(stage.name)[-1:]
        for loop in reader.loops
        if _is_legal(ComputeAt(stage.name, reader.name, loop), state)
    ]
    return (draw(st.sampled_from(legal)),) if legal else ()


def _is_legal(step: Primitive, state: ScheduleState) -> bool:
    try:
        step.check(state)
    except ScheduleError:
        return False
    return True


def _tensorized(stage: Stage) -> tuple[Primitive, ...]:
    """An intrinsic in the place of the innermost loops, made ready: legal for products of bytes."""
    name, loops = stage.name, stage.loops
    packed = tuple(PackConstant(read, name) for read in reads_of(stage.tensor))
    split = Split(name, loops[-2:][0], (16,)), Split(name, loops[-1], (4,))
    order = tuple(f"{loop}_{part}" for part in "oi" for loop in loops[-2:])
    place = Reorder(name, (*loops[:-2], *order))
    return (*packed, *split, place, Tensorize(name, order[-2], "dot4_u8i8_i32"))


def _bound(draw: st.DrawFn, stage: Stage) -> Iterator[Primitive]:
    """Blocks and threads for the outermost loops of a stage, where their tiles are whole or not."""
    loops = stage.loops[: draw(st.integers(0, 2))]
    axes = (ForKind.BLOCK_Y, ForKind.THREAD_Y), (ForKind.BLOCK_X, ForKind.THREAD_X)
    splits = [Split(stage.name, loop, (draw(st.sampled_from((2, 3, 4))),)) for loop in loops]
    yield from splits
    order = tuple(loop for part in zip(*(s.children for s in splits), strict=True) for loop in part)
    if order:
        yield Reorder(stage.name, order)
    for split, (block_index, thread_index) in zip(splits, axes, strict=False):
        yield Bind(stage.name, split.children[0], block_index)
        yield Bind(stage.name, split.children[1], thread_index)


@st.composite
def schedules(
    draw: st.DrawFn, *, symbolic: bool = False, on_card: bool = False
) -> tuple[Expression, Trace, dict[str, int]]:
    """An expression, a legal trace for it and values of the trace's decisions."""
    expression = EXPRESSIONS[draw(st.sampled_from(sorted(EXPRESSIONS)))]
    drawer = _Drawer(draw, symbolic=symbolic, on_card=on_card)
    state = expression.state
    steps: list[Primitive] = []
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


@settings(max_examples=150, **_SETTINGS)
@given(schedules())
def test_a_legal_trace_keeps_the_meaning(case: tuple[Expression, Trace, dict[str, int]]) -> None:
    expression, trace, _ = case
    assert parse_trace(format_trace(trace)) == trace
    state = replay(expression.state, trace)
    assert analyse(state) == analyse(replace(state)), "what steps left as it was is taken over"
    check_program(expression, lower(state))


@pytest.mark.layer("interpreter")
@settings(max_examples=100, **_SETTINGS)
@given(schedules(on_card=True))
def test_a_trace_for_a_card_keeps_the_meaning(
    case: tuple[Expression, Trace, dict[str, int]],
) -> None:
    """With its barriers, it is right and has no races; so it has after all passes."""
    expression, trace, _ = case
    assert parse_trace(format_trace(trace)) == trace
    program = lower(replay(expression.state, trace))
    check_program(expression, program)
    launches_of(program)
    launches_of(finished(program))


def test_every_primitive_is_drawn() -> None:
    assert set(WEIGHTS) == set(PRIMITIVES)


def test_what_is_rarely_legal_is_legal_somewhere() -> None:
    legal: set[type] = set()
    packed = replay(ALL["matmul"].state, (PackConstant("b", "c"),))
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


@settings(max_examples=80, **_SETTINGS)
@given(schedules(symbolic=True))
def test_decisions_bound_late_mean_the_same(
    case: tuple[Expression, Trace, dict[str, int]],
) -> None:
    """Where a tail promises to divide or to fit, the numbers must keep it: others are skipped."""
    check_bound_late(*case)


@settings(max_examples=40, **_SETTINGS)
@given(schedules(symbolic=True, on_card=True))
def test_decisions_for_a_card_bound_late_mean_the_same(
    case: tuple[Expression, Trace, dict[str, int]],
) -> None:
    check_bound_late(*case)


def check_bound_late(expression: Expression, trace: Trace, values: dict[str, int]) -> None:
    try:
        early = lower(replay(expression.state, bind(trace, values)))
    except ScheduleError:
        return
    decisions = {Decision(name): value for name, value in values.items()}
    late = lower(replay(expression.state, trace))
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
    trace = (Split("c", "i", (Decision("t"),)), Split("c", "j", (Decision("u"), Decision("v"))))
    program = lower(replay(expression.state, trace))
    loops = [each for each in walk(program.body) if isinstance(each, For)]
    extents = {each.var.name: str(each.extent) for each in loops}
    assert (extents["i_i"], extents["j_1"], extents["j_2"]) == ("?t", "?u", "?v")
    assert decisions_of(*(each.extent for each in loops)) == set(map(Decision, "tuv"))
    with pytest.raises(InternalError, match="is not bound"):
        verify(program)
