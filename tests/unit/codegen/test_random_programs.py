"""Random nests as machine code, alone and as the lanes or iterations of one more loop."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.codegen.kernels import NATIVE, PARALLEL, TARGETS, VECTOR, run
from tests.unit.loop.programs import arrays_for, loop_programs, same

from tensorwright import expr, loop
from tensorwright.base import CpuTarget
from tensorwright.codegen.llvm import emit
from tensorwright.machine_code.compilation import compile_module
from tensorwright.schedule import ForKind, Scope
from tensorwright_lab.loop_interpreter import interpret

each_target = pytest.mark.parametrize("target", TARGETS, ids=str)
LANE = expr.Var("lane")


class _Widened:
    """A program done for every value of LANE: each buffer gets it as one more dimension."""

    def __init__(self, extent: int, *, is_first: bool) -> None:
        self.extent = extent
        self.is_first = is_first  # of the dimensions: the lanes are then far apart

    def buffer(self, old: loop.Buffer) -> loop.Buffer:
        if old.scope is Scope.LOCAL:
            return old
        return loop.Buffer(old.name, self.with_lane(old.shape, self.extent), old.dtype, old.scope)

    def with_lane(self, items: tuple[expr.Index, ...], extra: expr.Index) -> tuple[expr.Index, ...]:
        return (extra, *items) if self.is_first else (*items, extra)

    def indices(
        self, buffer: loop.Buffer, indices: tuple[expr.Index, ...]
    ) -> tuple[expr.Index, ...]:
        if buffer.scope is Scope.LOCAL:
            return indices
        return self.with_lane(indices, LANE)

    def index(self, index: expr.Index) -> expr.Index:
        return expr.map_elements(
            index, lambda e: expr.Element(self.buffer(e.source), self.indices(e.source, e.indices))
        )

    def condition(self, condition: expr.Condition) -> expr.Condition:
        return expr.map_condition(condition, self.index)

    def load(self, load: expr.Load) -> expr.Value:
        return expr.Load(self.buffer(load.source), self.indices(load.source, load.indices))

    def statement(self, statement: loop.Stmt) -> loop.Stmt:
        match statement:
            case loop.Block(parts):
                return loop.block(*(self.statement(part) for part in parts))
            case loop.For(var, extent, kind, body):
                return loop.For(var, extent, kind, self.statement(body))
            case loop.If(condition, then):
                return loop.If(self.condition(condition), self.statement(then))
            case loop.Allocate(buffer, body):
                return loop.Allocate(buffer, self.statement(body))
            case loop.Store(buffer, indices, value):
                moved = tuple(self.index(index) for index in indices)
                new = expr.rebuild(value, self.load, self.index, self.condition)
                return loop.Store(self.buffer(buffer), self.indices(buffer, moved), new)
        raise TypeError(f"not drawn: {statement}")

    def program(self, source: loop.LoopProgram, kind: ForKind) -> loop.LoopProgram:
        parameters = tuple(loop.Parameter(self.buffer(p.buffer), p.role) for p in source.parameters)
        body = loop.For(LANE, self.extent, kind, self.statement(source.body))
        return loop.LoopProgram(source.name, parameters, body)


@each_target
@given(source=loop_programs())
@settings(max_examples=12)
def test_random_nests(target: CpuTarget, source: loop.LoopProgram) -> None:
    arrays = arrays_for(source)
    same(run(source, arrays, target), interpret(source, arrays))


@each_target
@given(source=loop_programs(), extent=st.sampled_from((2, 5, 8, 16, 19)), is_first=st.booleans())
@settings(max_examples=20)
def test_random_nests_in_lanes(
    target: CpuTarget, source: loop.LoopProgram, extent: int, is_first: bool
) -> None:
    wide = _Widened(extent, is_first=is_first).program(source, VECTOR)
    arrays = arrays_for(wide)
    same(run(wide, arrays, target), interpret(wide, arrays))


@given(source=loop_programs(), threads=st.integers(1, 3))
@settings(max_examples=8)
def test_random_nests_in_threads(source: loop.LoopProgram, threads: int) -> None:
    wide = _Widened(5, is_first=True).program(source, PARALLEL)
    arrays = arrays_for(wide)
    same(run(wide, arrays, NATIVE, threads), interpret(wide, arrays))


@given(source=loop_programs())
@settings(max_examples=5)
def test_the_text_is_the_same_each_time_and_compiles(source: loop.LoopProgram) -> None:
    wide = _Widened(19, is_first=False).program(source, VECTOR)
    text = emit(wide, NATIVE).text
    assert emit(wide, NATIVE).text == text
    assert compile_module(text, NATIVE)
