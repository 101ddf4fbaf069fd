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
    Bind,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    DecomposeReduction,
    ForKind,
    Fuse,
    PackConstant,
    Parallel,
    Prefetch,
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
    Trace,
    Unroll,
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

    def __init__(self, draw: st.DrawFn, *, symbolic: bool) -> None:
        self.draw = draw
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

    def step(self, state: ScheduleState) -> Primitive | None:
        stage = self.draw(st.sampled_from(state.stages))
        if not stage.loops:
            return None
        loop = self.pick(stage.loops)
        name = stage.name
        kind = self.draw(st.integers(0, 17))
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
        ahead = Prefetch(name, read, loop, self.factor())
        return self.draw(st.sampled_from((ahead, SkipZeros(name, read, loop))))


@st.composite
def schedules(
    draw: st.DrawFn, *, symbolic: bool = False
) -> tuple[Expression, Trace, dict[str, int]]:
    """An expression, a legal trace for it and values of the trace's decisions."""
    expression = ALL[draw(st.sampled_from(sorted(ALL)))]
    drawer = _Drawer(draw, symbolic=symbolic)
    state = expression.state
    steps: list[Primitive] = []
    for _ in range(draw(st.integers(1, 14))):
        step = drawer.step(state)
        if step is None:
            continue
        try:
            step.check(state)
        except ScheduleError:
            continue
        state = step.apply(state)
        steps.append(step)
    return expression, tuple(steps), drawer.values


@settings(max_examples=150, **_SETTINGS)
@given(schedules())
def test_a_legal_trace_keeps_the_meaning(case: tuple[Expression, Trace, dict[str, int]]) -> None:
    expression, trace, _ = case
    assert parse_trace(format_trace(trace)) == trace
    check_program(expression, lower(replay(expression.state, trace)))


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
