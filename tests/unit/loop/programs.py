"""Loop nests for the tests: a few by hand, and random ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.loop import (
    Allocate,
    Buffer,
    For,
    If,
    LoopProgram,
    Parameter,
    Role,
    Stmt,
    Store,
    block,
)
from tensorwright.schedule import ForKind, Scope

F32 = DType.F32
ZERO = expr.constant(0, F32)


def buffer(
    name: str, *shape: expr.Index, scope: Scope = Scope.GLOBAL, dtype: DType = F32
) -> Buffer:
    return Buffer(name, shape, dtype, scope)


def loop(var: expr.Var, extent: expr.Index, body: Stmt, kind: ForKind = ForKind.SERIAL) -> For:
    return For(var, extent, kind, body)


def program(
    body: Stmt, outputs: tuple[Buffer, ...], inputs: tuple[Buffer, ...] = ()
) -> LoopProgram:
    parameters = [Parameter(b, Role.INPUT) for b in inputs]
    parameters += [Parameter(b, Role.OUTPUT) for b in outputs]
    return LoopProgram("test", tuple(parameters), body)


def filled(target: Buffer, value: expr.Value = ZERO) -> Stmt:
    """target[...] = value, in loops over all of it."""
    variables = tuple(expr.Var(f"{target.name}_{n}") for n in range(len(target.shape)))
    body: Stmt = Store(target, variables, value)
    for var, extent in reversed(tuple(zip(variables, target.shape, strict=True))):
        body = loop(var, extent, body)
    return body


def rows_of(nest: LoopProgram) -> list[str]:
    """The printed statements, without indentation."""
    return [row.strip() for row in str(nest).splitlines()[1:]]


def number(value: float, dtype: DType = F32) -> expr.Const:
    return expr.constant(value, dtype)


def arrays_for(of: LoopProgram, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Small whole numbers, so that every order of additions gives the same floats."""
    generator = np.random.default_rng(seed)
    return {
        p.buffer.name: generator.integers(-4, 5, p.buffer.shape).astype(p.buffer.dtype.numpy)
        for p in of.parameters
        if p.role is not Role.OUTPUT
    }


def same(left: Mapping[str, NDArray[Any]], right: Mapping[str, NDArray[Any]]) -> None:
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name])


def matmul(m: int, n: int, k: int, tile: int, kind: ForKind = ForKind.SERIAL) -> LoopProgram:
    """A matmul whose rows come in tiles that need not divide, accumulated in a local buffer."""
    a, b, c = buffer("A", m, k), buffer("B", k, n), buffer("C", m, n)
    acc = buffer("acc", tile, scope=Scope.LOCAL)
    i_o, i_i, i_z, i_w, j, r = (expr.Var(v) for v in ("i_o", "i_i", "i_z", "i_w", "j", "k"))

    def guarded(inner: expr.Var, body: Stmt) -> Stmt:
        return loop(inner, tile, If(i_o * tile + inner < m, body))

    product = expr.Load(a, (i_o * tile + i_i, r)) * expr.Load(b, (r, j))
    body = block(
        guarded(i_z, Store(acc, (i_z,), ZERO)),
        loop(r, k, guarded(i_i, Store(acc, (i_i,), expr.Load(acc, (i_i,)) + product))),
        guarded(i_w, Store(c, (i_o * tile + i_w, j), expr.Load(acc, (i_w,)))),
    )
    nest = loop(i_o, -(-m // tile), loop(j, n, Allocate(acc, body)), kind)
    return program(nest, (c,), (a, b))


def padded_copy(size: int, pad: int, kind: ForKind = ForKind.SERIAL) -> LoopProgram:
    """P = X with a border of zeros in both dimensions."""
    x, p = buffer("X", size, size), buffer("P", size + 2 * pad, size + 2 * pad)
    h, w = expr.Var("h"), expr.Var("w")
    inside = expr.all_of(h - pad >= 0, h - pad < size, w - pad >= 0, w - pad < size)
    value = expr.Select(inside, expr.Load(x, (h - pad, w - pad)), ZERO)
    inner = loop(w, size + 2 * pad, Store(p, (h, w), value), kind)
    return program(loop(h, size + 2 * pad, inner), (p,), (x,))


_INPUT = buffer("x", 7, 9)
_OUTPUT = buffer("y", 8, 8)
_NUMBERS = buffer("m", 4, dtype=DType.I64)
_KINDS = (ForKind.SERIAL, ForKind.SERIAL, ForKind.UNROLLED)


class _Builder:
    """Draws one program; every index it makes is inside."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.count = 0
        self.locals: list[Buffer] = []

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    def affine(self, variables: list[tuple[expr.Var, int]]) -> expr.Index:
        result: expr.Index = self.draw(st.integers(-3, 6))
        for var, _ in variables:
            result = result + var * self.draw(st.sampled_from((0, 0, 1, 1, -1, 2, 4)))
        if self.draw(st.integers(0, 9)) == 0:  # memory, so conditions may change while a loop runs
            result = result + expr.Element(_NUMBERS, (result % 4,))
        shape = self.draw(st.integers(0, 5))
        if shape == 0:
            return result // self.draw(st.integers(1, 4))
        return result % self.draw(st.integers(1, 6)) if shape == 1 else result

    def inside(self, index: expr.Index, extent: int) -> expr.Index:
        return index % extent

    def condition(self, variables: list[tuple[expr.Var, int]]) -> expr.Condition:
        left, right = self.affine(variables), self.draw(st.integers(-2, 12))
        kind = self.draw(st.integers(0, 5))
        test: expr.Condition = left < right if isinstance(left, int) else left - right < 0
        if kind == 1:
            test = expr.negate(test)
        if kind == 2:
            test = expr.all_of(test, self.simple(variables))
        if kind == 3:
            test = expr.any_of(test, self.simple(variables))
        return test

    def simple(self, variables: list[tuple[expr.Var, int]]) -> expr.Condition:
        gap = self.affine(variables) - self.draw(st.integers(-2, 8))
        return gap >= 0

    def load(self, variables: list[tuple[expr.Var, int]]) -> expr.Value:
        source = self.draw(st.sampled_from([_INPUT, _OUTPUT, *self.locals]))
        indices = tuple(
            self.inside(self.affine(variables), extent)
            for extent in source.shape
            if isinstance(extent, int)
        )
        if source is _INPUT and self.draw(st.booleans()):  # a guarded load, outside elsewhere
            free = tuple(self.affine(variables) for _ in source.shape)
            holds = expr.all_of(
                *(i >= 0 for i in free),
                *(i < n for i, n in zip(free, source.shape, strict=True)),
            )
            guarded = expr.Load(source, free)
            return (
                guarded
                if holds is True
                else ZERO
                if holds is False
                else expr.Select(holds, guarded, ZERO)
            )
        return expr.Load(source, indices)

    def value(self, variables: list[tuple[expr.Var, int]]) -> expr.Value:
        kind = self.draw(st.integers(0, 4))
        if kind == 0:
            return self.load(variables) + expr.constant(self.draw(st.integers(0, 1)), F32)
        if kind == 1:
            return self.load(variables) * expr.constant(self.draw(st.integers(0, 2)), F32)
        if kind == 2:
            test = self.condition(variables)
            other = self.load(variables)
            return (
                other if isinstance(test, bool) else expr.Select(test, other, self.load(variables))
            )
        return self.load(variables) + self.load(variables)

    def store(self, variables: list[tuple[expr.Var, int]]) -> Stmt:
        if self.draw(st.integers(0, 5)) == 0:
            number = expr.FromIndex(self.affine(variables) % 7, DType.I64)
            return Store(_NUMBERS, (self.affine(variables) % 4,), number)
        target = self.draw(st.sampled_from([_OUTPUT, *self.locals]))
        indices = tuple(
            self.inside(self.affine(variables), extent)
            for extent in target.shape
            if isinstance(extent, int)
        )
        return Store(target, indices, self.value(variables))

    def statement(self, variables: list[tuple[expr.Var, int]], depth: int) -> Stmt:
        kind = self.draw(st.integers(0, 5)) if depth else 5
        if kind <= 1 and len(variables) < 3:
            var = expr.Var(self.name("i"))
            extent = self.draw(st.integers(0, 6))
            body = self.statement([*variables, (var, extent)], depth - 1)
            return loop(var, extent, body, self.draw(st.sampled_from(_KINDS)))
        if kind == 2:
            return If(self.condition(variables), self.statement(variables, depth - 1))
        if kind == 3:
            return block(self.statement(variables, depth - 1), self.statement(variables, depth - 1))
        if kind == 4:
            local = buffer(self.name("t"), self.draw(st.integers(1, 4)), scope=Scope.LOCAL)
            first = filled(local, expr.constant(self.draw(st.integers(0, 2)), F32))
            self.locals.append(local)
            body = self.statement(variables, depth - 1)
            self.locals.remove(local)
            return Allocate(local, block(first, body))
        return self.store(variables)


@st.composite
def loop_programs(draw: st.DrawFn) -> LoopProgram:
    """Small nests of serial and unrolled loops with guards, local buffers and updates in place."""
    builder = _Builder(draw)
    start = block(filled(_OUTPUT), filled(_NUMBERS, expr.constant(1, DType.I64)))
    body = block(start, builder.statement([], 5), builder.statement([], 4))
    return program(body, (_OUTPUT, _NUMBERS), (_INPUT,))
