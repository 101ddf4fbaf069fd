"""Each requirement of a well-formed program, and the message where it does not hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.loop.programs import F32, ZERO, buffer, filled, loop, matmul, padded_copy, program

from tensorwright import expr
from tensorwright.base import DType, InternalError
from tensorwright.loop import (
    Allocate,
    Buffer,
    Call,
    If,
    LoopProgram,
    Packing,
    Parameter,
    Prefetch,
    Role,
    Stmt,
    Store,
    Window,
    block,
    verify,
)
from tensorwright.schedule import ForKind, Scope

i, j, k = expr.Var("i"), expr.Var("j"), expr.Var("k")
X, Y = buffer("x", 8), buffer("y", 8)
T = buffer("t", 4, scope=Scope.LOCAL)
PARALLEL, VECTOR = ForKind.PARALLEL, ForKind.VECTOR
THREAD, BLOCK = ForKind.THREAD_X, ForKind.BLOCK_X


def store(index: expr.Index, value: expr.Value = ZERO, into: Buffer = Y) -> Stmt:
    return Store(into, (index,), value)


def refused(body: Stmt | LoopProgram) -> str:
    nest = body if isinstance(body, LoopProgram) else program(body, (Y,), (X,))
    with pytest.raises(InternalError) as caught:
        verify(nest)
    assert caught.value.stage == "loop"
    return caught.value.reason


@pytest.mark.parametrize("nest", [matmul(7, 3, 4, 4), padded_copy(4, 1)])
def test_good_programs_pass(nest: LoopProgram) -> None:
    assert verify(nest) is nest


def test_the_message_marks_the_place() -> None:
    body = loop(i, 8, block(store(i), loop(j, 4, store(i + j))))
    assert refused(body) == (
        "index 0 of y, i + j, reaches 0..10, outside 0..8\n"
        "test(in x: f32 (8), out y: f32 (8)):\n"
        "  for i in 0..8:\n"
        "    y[i] = 0.0\n"
        "    for j in 0..4:\n"
        "      y[i + j] = 0.0    <- here"
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (Allocate(X, store(0)), "two buffers are called x"),
        (block(Allocate(T, store(0)), Allocate(T, store(0))), "two buffers are called t"),
        (store(0, expr.Load(T, (0,))), "t: f32 (4) is used where it is not allocated"),
        (block(Allocate(T, store(0)), store(0, into=T)), "is used where it is not allocated"),
        (Prefetch(T, (0,)), "is used where it is not allocated"),
        (Call("f", (Window(T, (0,)),), store(0)), "is used where it is not allocated"),
        (store(i), "the variable i is used outside its loop"),
        (If(i < 3, store(0)), "the variable i is used outside its loop"),
        (loop(i, 2, loop(i, 2, store(0))), "a loop inside the loop over i binds it"),
        (loop(i, 2, loop(j, i + 1, store(j), VECTOR)), "the extent i + 1 of j is not a number"),
        (Store(Y, (0, 0), ZERO), "y: f32 (8) is used with 2 indices"),
        (store(0, expr.Load(X, ())), "x: f32 (8) is used with 0 indices"),
        (loop(i, 9, store(i)), "index 0 of y, i, reaches 0..8, outside 0..8"),
        (loop(i, 8, store(0, expr.Load(X, (i - 1,)))), "index 0 of x, i - 1, reaches -1..6"),
        (loop(i, 8, store(i // 2 + 8)), "outside 0..8"),
        (store(0, into=X), "x is an input or a constant: no stores"),
        (store(0, expr.constant(1, DType.I32)), "a value of i32 goes into y: f32 (8)"),
        (store(0, expr.Apply(expr.Fn.ADD, (ZERO, expr.constant(1, DType.I32)))), "mixes dtypes"),
        (store(0, expr.Apply(expr.Fn.POW, (ZERO,))), "pow of 1 arguments"),
        (store(0, expr.Apply(expr.Fn.AND, (ZERO, ZERO))), "wants bools"),
        (store(0, expr.Select(ZERO, ZERO, ZERO)), "wants a bool"),
        (
            loop(i, 4, store(i, expr.Select(i < 3, ZERO, expr.constant(1, DType.F64)))),
            "mixes dtypes",
        ),
        (store(expr.Decision("t")), "?t is not bound"),
        (loop(i, expr.Decision("t"), store(0)), "?t is not bound"),
        (loop(i, 2, loop(j, 2, store(0), PARALLEL), PARALLEL), "@parallel inside a loop @parallel"),
        (loop(i, 2, loop(j, 2, store(0), PARALLEL), VECTOR), "@parallel inside a loop @vectorize"),
        (loop(i, 2, loop(j, 2, store(0), VECTOR), VECTOR), "@vectorize inside a loop @vectorize"),
        (loop(i, 2, loop(j, 2, store(0), THREAD), VECTOR), "@thread.x inside a loop @vectorize"),
        (loop(i, 2, loop(j, 2, store(0), BLOCK), THREAD), "@block.x inside a loop @thread.x"),
    ],
)
def test_each_requirement(body: Stmt, expected: str) -> None:
    assert expected in refused(body)


def test_guarded_indices_are_left_to_the_guard() -> None:
    guarded = If(i < 8, store(i, expr.Select(i < 7, expr.Load(X, (i + 1,)), ZERO)))
    verify(program(loop(i, 9, guarded), (Y,), (X,)))
    never = loop(i, 0, store(100))
    verify(program(never, (Y,)))


def test_elements_used_as_indices_are_checked_too() -> None:
    n = buffer("n", 4, dtype=DType.I32)
    reads = If(expr.Compare(expr.Relation.LT, expr.Element(n, (i,)), 3), store(0))
    assert "index 0 of n, i, reaches 0..4" in refused(program(loop(i, 5, reads), (Y,), (n,)))


def test_a_local_buffer_has_a_fixed_size() -> None:
    t = expr.Decision("t")
    body = Allocate(Buffer("acc", (t,), F32, Scope.LOCAL), store(0))
    assert "?t is not bound" in refused(body)
    verify(program(body, (Y,)), allow_decisions=True)


def test_packing_is_for_constants_and_gives_the_shape() -> None:
    nest = program(filled(Y), (Y,), (X,))
    packing = Packing(((k, 8),), (k,), True, (8,))
    packed = replace(nest.parameters[0], packing=packing)
    bad = replace(nest, parameters=(packed, nest.parameters[1]))
    assert "x: f32 (8) is packed but not a constant" in refused(bad)
    short = Parameter(X, Role.CONSTANT, replace(packing, axes=((k, 7),)))
    assert "is packed with axes (7,)" in refused(
        replace(nest, parameters=(short, nest.parameters[1]))
    )
