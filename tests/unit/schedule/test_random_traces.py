"""Random legal traces keep the meaning of random expressions, decisions bound early or late."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.unit.schedule.expressions import ALL, Expression, check_program

from tensorwright.base import InternalError, ScheduleError
from tensorwright.expr import Decision, Index, decisions_of
from tensorwright.loop import For, bind_decisions, interpret, lower, verify, walk
from tensorwright.schedule import (
    PRIMITIVES,
    Bind,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    DecomposeReduction,
    FoldConstant,
    ForKind,
    Fuse,
    PackConstant,
    Parallel,
    Prefetch,
    PrefetchNext,
    Primitive,
    Reorder,
    ReverseComputeAt,
    ReverseComputeInline,
    Rfactor,
    ScheduleState,
    SkipZeros,
    Split,
    Stage,
    Tail,
    Tensorize,
    Trace,
    Unroll,
    UseAlgorithm,
    Vectorize,
    bind,
    format_trace,
    parse_trace,
    reads_of,
    replay,
)

# No shrinking: it takes minutes, and the traces are short as they are.
_SETTINGS = {"deadline": None, "derandomize": True, "phases": (Phase.generate,)}


class _Drawer:
    """Draws steps that name what exists; whether they are legal, their own check says."""

    def __init__(self, draw: st.DrawFn, *, symbolic: bool, rare_share: int) -> None:
        self.draw = draw
        self.symbolic = symbolic
        self.rare_share = rare_share
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
        """The next step; none where what was drawn names nothing."""
        stage = self.draw(st.sampled_from(state.stages))
        if not stage.loops:
            return ()
        kind = self.draw(st.integers(0, 17 + self.rare_share))
        if kind >= 18:
            rare = [step for each in state.stages for step in _rare(state, each)]
            kinds = sorted({type(step) for step in rare}, key=str)
            if not kinds:
                return ()
            chosen = self.draw(st.sampled_from(kinds))
            return (self.draw(st.sampled_from([s for s in rare if type(s) is chosen])),)
        step = self.step(state, stage, self.pick(stage.loops), kind)
        return (step,) if step is not None else ()

    def step(self, state: ScheduleState, stage: Stage, loop: str, kind: int) -> Primitive | None:
        name = stage.name
        if kind <= 3:
            factors = (self.factor(),) if kind else (self.factor(), self.factor())
            return Split(name, loop, factors, self.draw(st.sampled_from(Tail)))
        if kind == 4:
            at = stage.loops.index(loop)
            return Fuse(name, stage.loops[at : at + self.draw(st.integers(2, 3))])
        if kind in (5, 6):
            return Reorder(name, tuple(self.draw(st.permutations(stage.loops))))
        if kind == 7:
            mark = self.draw(st.sampled_from((Unroll, Vectorize, Parallel)))
            step: Primitive = mark(name, loop)
            return step
        if kind == 8:
            return Bind(name, loop, self.draw(st.sampled_from((ForKind.BLOCK_X, ForKind.THREAD_X))))
        if kind in (9, 10, 11):
            host = self.draw(st.sampled_from(state.stages))
            return ComputeAt(name, host.name, self.pick(host.loops)) if host.loops else None
        return self.other(state, stage, loop, kind)

    def other(self, state: ScheduleState, stage: Stage, loop: str, kind: int) -> Primitive | None:
        name = stage.name
        read = self.pick(tuple(reads_of(stage.tensor)))
        if kind == 12:
            host = self.draw(st.sampled_from(state.stages))
            return ReverseComputeAt(name, host.name, self.pick(host.loops)) if host.loops else None
        if kind == 13:
            return self.draw(st.sampled_from((ComputeInline(name), ReverseComputeInline(name))))
        if kind == 14:
            tensors = (*state.inputs, *(s.tensor for s in state.stages))
            rank = next(len(t.shape) for t in tensors if t.name == read)
            order = tuple(self.draw(st.permutations(range(rank))))
            return CacheRead(read, name, order=self.draw(st.sampled_from(((), order))))
        if kind == 15:
            return self.draw(st.sampled_from((CacheWrite(name), PackConstant(read, name))))
        if kind == 16:
            return self.draw(st.sampled_from((Rfactor(name, loop), DecomposeReduction(name, loop))))
        return Prefetch(name, read, loop, self.factor())


def _rare(state: ScheduleState, stage: Stage) -> list[Primitive]:
    """The legal steps on a stage that are hardly ever legal where they are drawn blindly."""
    name = stage.name
    steps: list[Primitive] = [
        UseAlgorithm(name, "winograd2"),
        FoldConstant(name),
        ComputeInline(name),
        ReverseComputeInline(name),
        *(Rfactor(name, loop) for loop in stage.reduce_loops),
    ]
    for read in dict.fromkeys(reads_of(stage.tensor)):
        steps += [SkipZeros(name, read, axis.name) for axis in stage.tensor.reduce_axes]
        steps += [PrefetchNext(name, read, loop) for loop in stage.loops]
    return [step for step in steps if _is_legal(step, state)]


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


@st.composite
def schedules(
    draw: st.DrawFn, *, symbolic: bool = False, rare_share: int = 3
) -> tuple[Expression, Trace, dict[str, int]]:
    """An expression, a legal trace for it and values of the trace's decisions.

    rare_share   draws of steps that are seldom legal, for each 18 of others
    """
    expression = ALL[draw(st.sampled_from(sorted(ALL)))]
    drawer = _Drawer(draw, symbolic=symbolic, rare_share=rare_share)
    state = expression.state
    steps: list[Primitive] = []
    for number in range(draw(st.integers(1, 14))):
        is_tensorized = not number and not draw(st.integers(0, 3))
        for step in _tensorized(state.stages[-1]) if is_tensorized else drawer.steps(state):
            if _is_legal(step, state):
                state = step.apply(state)
                steps.append(step)
    return expression, tuple(steps), drawer.values


@settings(max_examples=150, **_SETTINGS)
@given(schedules())
def test_a_legal_trace_keeps_the_meaning(case: tuple[Expression, Trace, dict[str, int]]) -> None:
    expression, trace, _ = case
    assert parse_trace(format_trace(trace)) == trace
    check_program(expression, lower(replay(expression.state, trace)))


def test_every_primitive_is_drawn_where_it_is_legal() -> None:
    legal: set[type] = set()

    @settings(max_examples=400, **_SETTINGS)
    @given(schedules(rare_share=18))
    def collect(case: tuple[Expression, Trace, dict[str, int]]) -> None:
        legal.update(map(type, case[1]))

    collect()
    assert legal == set(PRIMITIVES)


@settings(max_examples=80, **_SETTINGS)
@given(schedules(symbolic=True))
def test_decisions_bound_late_mean_the_same(
    case: tuple[Expression, Trace, dict[str, int]],
) -> None:
    """Where a tail promises to divide or to fit, the numbers must keep it: others are skipped."""
    expression, trace, values = case
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
