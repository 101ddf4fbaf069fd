"""The interpreter: what programs mean, and each check that it makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.loop.programs import (
    ZERO,
    arrays_for,
    buffer,
    filled,
    loop,
    matmul,
    padded_copy,
    program,
)

from tensorwright import expr
from tensorwright.base import DType, InternalError
from tensorwright.loop import (
    Allocate,
    Buffer,
    Call,
    For,
    LoopProgram,
    Packing,
    Parameter,
    Prefetch,
    Role,
    Store,
    Window,
    block,
)
from tensorwright.schedule import ForKind, Scope
from tensorwright_lab.loop_interpreter import interpret

i, j, k = expr.Var("i"), expr.Var("j"), expr.Var("k")


@pytest.mark.parametrize(("m", "tile"), [(8, 4), (7, 4), (3, 5), (1, 1)])
@pytest.mark.parametrize("kind", [ForKind.SERIAL, ForKind.PARALLEL])
def test_matmul(m: int, tile: int, kind: ForKind) -> None:
    nest = matmul(m, 5, 6, tile, kind)
    arrays = arrays_for(nest)
    np.testing.assert_array_equal(interpret(nest, arrays)["C"], arrays["A"] @ arrays["B"])


def test_a_guarded_load_is_not_executed_outside() -> None:
    nest = padded_copy(4, 2)
    arrays = arrays_for(nest)
    np.testing.assert_array_equal(interpret(nest, arrays)["P"], np.pad(arrays["X"], 2))


def test_decisions_are_bound_first() -> None:
    n, t = 12, expr.Decision("t")
    x, y = buffer("x", n), buffer("y", n)
    body = Store(y, (i * t + j,), expr.Load(x, (i * t + j,)))
    nest = program(loop(i, expr.exact_div(n, t), loop(j, t, body)), (y,), (x,))
    arrays = arrays_for(nest)
    for value in (1, 3, 12):
        found = interpret(nest, arrays, {t: value})["y"]
        np.testing.assert_array_equal(found, arrays["x"])
    with pytest.raises(InternalError, match="bind the decisions"):
        interpret(nest, arrays)
    with pytest.raises(InternalError, match="does not divide"):
        interpret(nest, arrays, {t: 5})


def test_packed_constants_come_in_their_source_shape() -> None:
    w, y = buffer("w", 3, 2, 2), buffer("y", 3, 2, 2)
    a, b, c = expr.Var("a"), expr.Var("b"), expr.Var("c")
    packing = Packing(((a, 3), (b, 2), (c, 2)), (b * 2 + c, a), b * 2 + c < 3, (3, 3))
    body = loop(i, 3, loop(j, 2, loop(k, 2, Store(y, (i, j, k), expr.Load(w, (i, j, k))))))
    parameters = (Parameter(w, Role.CONSTANT, packing, "weights"), Parameter(y, Role.OUTPUT))
    source = np.arange(9, dtype=np.float32).reshape(3, 3)
    found = interpret(LoopProgram("p", parameters, body), {"weights": source})["y"]
    np.testing.assert_array_equal(found[:, 0, 1], source[1])
    np.testing.assert_array_equal(found[:, 1, 1], np.zeros(3))


def test_elements_of_a_tensor_are_indices() -> None:
    n, x, y = buffer("n", 4, dtype=DType.I64), buffer("x", 9), buffer("y", 4)
    nest = program(loop(i, 4, Store(y, (i,), expr.Load(x, (expr.Element(n, (i,)),)))), (y,), (n, x))
    arrays = {"n": np.array([8, 0, 3, 3]), "x": np.arange(9, dtype=np.float32)}
    np.testing.assert_array_equal(interpret(nest, arrays)["y"], [8, 0, 3, 3])
    with pytest.raises(InternalError, match=r"index 0 of x is 9, outside 0\.\.9"):
        interpret(nest, {**arrays, "n": np.array([0, 9, 0, 0])})


def test_an_intrinsic_does_what_it_means_and_a_prefetch_nothing() -> None:
    y = buffer("y", 4)
    meaning = loop(i, 4, Store(y, (i,), expr.constant(3, DType.F32)))
    body = block(Prefetch(y, (100,)), Call("fill", (Window(y, (0,)),), meaning))
    np.testing.assert_array_equal(interpret(program(body, (y,)), {})["y"], [3, 3, 3, 3])


def test_the_trace_sees_every_access() -> None:
    x, y = buffer("x", 2), buffer("y", 2)
    nest = program(loop(i, 2, Store(y, (i,), expr.Load(x, (1 - i,)))), (y,), (x,))
    seen: list[tuple[str, str, int]] = []
    interpret(nest, arrays_for(nest), trace=lambda what, of, at: seen.append((what, of.name, at)))
    assert seen == [("load", "x", 1), ("store", "y", 0), ("load", "x", 0), ("store", "y", 1)]


# what is refused


def message(nest: LoopProgram, **arrays: Any) -> str:
    with pytest.raises(InternalError) as caught:
        interpret(nest, arrays)
    return str(caught.value)


def test_an_index_outside_is_shown_in_its_program() -> None:
    y = buffer("y", 4)
    assert message(program(loop(i, 5, Store(y, (i,), ZERO)), (y,))) == (
        "test with i = 4: index 0 of y is 4, outside 0..4\n"
        "test(out y: f32 (4)):\n"
        "  for i in 0..5:\n"
        "    y[i] = 0.0    <- here\n"
        "  try: report it, with the model or program"
    )


def test_undefined_elements_are_not_read() -> None:
    t, y = buffer("t", 2, scope=Scope.LOCAL), buffer("y", 2)
    once = block(Store(t, (j,), ZERO), Store(y, (j,), expr.Load(t, (0,))))
    nest = program(loop(j, 2, Allocate(t, once)), (y,))
    assert "t[0] is read and was never stored" in message(nest)  # the second t is a new one


def test_outputs_are_wholly_stored() -> None:
    y = buffer("y", 2, 3)
    body = loop(i, 2, loop(j, 2, Store(y, (i, j), ZERO)))
    assert "the output y[0, 2] is never stored" in message(program(body, (y,)))


def test_arrays_must_fit() -> None:
    nest = padded_copy(4, 1)
    assert "no array is given for X" in message(nest)
    assert "X: f32 (4, 4) gets an array float64 (4, 4)" in message(nest, X=np.zeros((4, 4)))
    assert "(4, 5)" in message(nest, X=np.zeros((4, 5), np.float32))


CONCURRENT = [kind for kind in ForKind if kind not in (ForKind.SERIAL, ForKind.UNROLLED)]


@pytest.mark.parametrize("kind", CONCURRENT)
def test_two_iterations_that_store_one_element_race(kind: ForKind) -> None:
    y = buffer("y", 3)
    store = Store(y, (0,), expr.FromIndex(i, DType.F32))
    body = loop(i, 3, block(Store(y, (i,), ZERO), store), kind)
    assert "race: y[0] is stored by two iterations" in message(program(body, (y,)))


@pytest.mark.parametrize("kind", CONCURRENT)
@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_iterations_may_store_one_element_with_one_value(kind: ForKind, value: float) -> None:
    y = buffer("y", 5)
    body = loop(i, 2, loop(j, 3, Store(y, (i * 2 + j,), expr.constant(value, DType.F32))), kind)
    np.testing.assert_array_equal(interpret(program(body, (y,)), {})["y"], [value] * 5)


def test_reading_what_two_iterations_stored_races() -> None:
    y, z = buffer("y", 1), buffer("z", 3)
    body = block(Store(y, (0,), ZERO), Store(z, (i,), expr.Load(y, (0,))))
    nest = program(loop(i, 3, body, ForKind.PARALLEL), (y, z))
    assert "race: y[0] is stored by one iteration and read by another" in message(nest)


def test_a_reduction_over_a_parallel_loop_races() -> None:
    y, x = buffer("y", 1), buffer("x", 4)
    update = Store(y, (0,), expr.Load(y, (0,)) + expr.Load(x, (k,)))
    body = block(filled(y), loop(k, 4, update, ForKind.PARALLEL))
    nest = program(body, (y,), (x,))
    assert "race: y[0]" in message(nest, **arrays_for(nest))
    assert interpret(nest, arrays_for(nest), check_races=False)["y"].shape == (1,)


def test_reading_what_a_neighbour_stores_races() -> None:
    y = buffer("y", 5)
    shift = Store(y, (i,), expr.Load(y, (i + 1,)))
    body = block(filled(y), loop(i, 4, shift, ForKind.VECTOR))
    assert "race: y[1] is stored by one iteration and read by another" in message(
        program(body, (y,))
    )


def test_buffers_of_an_iteration_do_not_race_and_shared_memory_does() -> None:
    y = buffer("y", 4)

    def nest(scope: Scope) -> LoopProgram:
        t = buffer("t", 1, scope=scope)
        inner = Allocate(t, block(Store(t, (0,), ZERO), Store(y, (i,), expr.Load(t, (0,)))))
        return program(loop(i, 4, inner, ForKind.PARALLEL), (y,))

    interpret(nest(Scope.LOCAL), {})
    assert "race: t[0]" in message(nest(Scope.GLOBAL))


def test_loops_after_each_other_do_not_race() -> None:
    y, z = buffer("y", 4), buffer("z", 4)
    body = block(
        loop(i, 4, Store(y, (i,), ZERO), ForKind.PARALLEL),
        loop(j, 4, Store(z, (j,), expr.Load(y, (3 - j,))), ForKind.PARALLEL),
    )
    interpret(program(loop(k, 2, body), (y, z)), {})


# values


def value_of(value: Any, **arrays: Any) -> Any:
    y = Buffer("y", (), value.dtype)
    inputs = {name: Buffer(name, (), DType.from_numpy(a.dtype)) for name, a in arrays.items()}
    nest = program(Store(y, (), value), (y,), tuple(inputs.values()))
    return interpret(nest, arrays)["y"][()]


def number(value: float, dtype: DType) -> Any:
    return expr.constant(value, dtype)


@pytest.mark.parametrize(
    ("fn", "a", "b", "dtype", "expected"),
    [
        (expr.Fn.DIV, -7, 2, DType.I32, -3),
        (expr.Fn.MOD, -7, 2, DType.I32, -1),
        (expr.Fn.FLOORMOD, -7, 2, DType.I32, 1),
        (expr.Fn.MOD, -7.5, 2.0, DType.F32, -1.5),
        (expr.Fn.FLOORMOD, -7.5, 2.0, DType.F32, 0.5),
        (expr.Fn.ADD, 127, 1, DType.I8, -128),
        (expr.Fn.SUB, 0, 1, DType.U8, 255),
        (expr.Fn.MUL, 1 << 62, 4, DType.I64, 0),
        (expr.Fn.POW, 3, 4, DType.I32, 81),
        (expr.Fn.SHL, 1, 7, DType.I8, -128),
        (expr.Fn.SHR, -8, 1, DType.I32, -4),
        (expr.Fn.MAX, float("nan"), 1.0, DType.F32, float("nan")),
        (expr.Fn.MIN, 1.0, float("nan"), DType.F32, float("nan")),
        (expr.Fn.DIV, 1.0, 0.0, DType.F32, float("inf")),
        (expr.Fn.LT, 1, 2, DType.I32, True),
    ],
)
def test_functions_of_two(fn: expr.Fn, a: float, b: float, dtype: DType, expected: float) -> None:
    one, two = number(a, dtype), number(b, dtype)
    np.testing.assert_equal(value_of(expr.apply(fn, one, two)), expected)


UNARY = [fn for fn in expr.Fn if fn.arity == 1 and not fn.gives_bool and fn is not expr.Fn.BITNOT]


@pytest.mark.parametrize("fn", UNARY)
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.BF16, DType.F16])
def test_every_float_function_keeps_its_type(fn: expr.Fn, dtype: DType) -> None:
    found = value_of(expr.apply(fn, number(0.5, dtype)))
    assert found.dtype == dtype.numpy


def test_a_float_becomes_an_int_towards_zero_and_anything_a_bool() -> None:
    assert value_of(expr.Cast(number(-2.7, DType.F32), DType.I32)) == -2
    assert value_of(expr.Cast(number(0.5, DType.F32), DType.BOOL)) == np.True_
    assert value_of(expr.Cast(number(300, DType.I32), DType.U8)) == 44
    assert value_of(expr.FromIndex(300, DType.U8)) == 44


def test_a_value_chosen_by_a_value_computes_both_branches() -> None:
    condition = expr.apply(expr.Fn.LT, number(1, DType.I32), number(2, DType.I32))
    x = buffer("x", 2)
    y = buffer("y")
    value = expr.Select(condition, expr.Load(x, (0,)), expr.Load(x, (5,)))
    nest = program(Store(y, (), value), (y,), (x,))
    assert "index 0 of x is 5" in message(nest, **arrays_for(nest))


def test_index_expressions_of_every_kind() -> None:
    y = buffer("y", 24, dtype=DType.I64)
    inner = expr.FromIndex(i * j + (i * 6 + j) // 5 + (j * 3) % 4, DType.I64)
    nest = program(loop(i, 4, loop(j, 6, Store(y, (i * 6 + j,), inner))), (y,))
    assert isinstance(inner.index, expr.Poly)
    assert isinstance((i * 6 + j) // 5, expr.FloorDiv)
    expected = [a * b + (a * 6 + b) // 5 + (b * 3) % 4 for a in range(4) for b in range(6)]
    np.testing.assert_array_equal(interpret(nest, {})["y"], expected)


def test_a_loop_of_no_iteration_runs_nothing() -> None:
    y = buffer("y", 0, 3)
    assert interpret(program(For(i, 0, ForKind.SERIAL, filled(y)), (y,)), {})["y"].shape == (0, 3)
