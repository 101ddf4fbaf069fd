"""What is left of a loop after whole vectors, on a target whose stores have no masks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.backends import CPU_BACKENDS, LLVM
from tests.targets import AVX2, AVX512
from tests.unit.codegen.kernels import (
    F32,
    SERIAL,
    TARGETS,
    UNROLLED,
    VECTOR,
    buffer,
    check,
    i,
    k,
    local,
    loops,
    m,
    program,
    run,
    sample,
)

from tensorwright.base import CpuTarget, DType
from tensorwright.codegen import Backend
from tensorwright.codegen.llvm import emit
from tensorwright.expr import Fn, Index, Load, Select, Value, all_of, apply, constant
from tensorwright.loop import Allocate, LoopProgram, Stmt, Store, block, widen_local_buffers


@pytest.mark.parametrize("extent", [3, 5, 6, 7, 11, 13, 23])
def test_a_rest_is_computed_as_one_vector(extent: int) -> None:
    x, y = buffer("x", 2, extent), buffer("y", 2, 32)
    body = Store(y, (i, m), apply(Fn.EXP, Load(x, (i, m))))
    source = program(loops((i, 2, UNROLLED), (m, extent, VECTOR), body=body), (x,), y)
    text = emit(source, AVX2).text
    lanes = 8 if extent > 4 else 4
    assert text.count(f"@tw.exp.v{lanes}f32(<{lanes} x float> %v") == 2 * -(-extent // lanes)
    assert "masked.store" not in text
    given = {"x": sample((2, extent), F32, 0)}
    for target in TARGETS:
        found = run(source, given, target)["y"]
        np.testing.assert_allclose(found[:, :extent], np.exp(given["x"]), rtol=1e-6)
        assert (found[:, extent:] == 77).all()  # what no lane writes


def leaky(value: Value) -> Value:
    return Select(apply(Fn.LT, value, constant(0, F32)), value * constant(0.1, F32), value)


@pytest.mark.parametrize("columns", [3, 6, 7])
@pytest.mark.parametrize("stored", [lambda value: value, leaky], ids=["plain", "chosen by value"])
def test_a_tile_narrower_than_a_vector_lives_in_registers(
    columns: int, stored: Callable[[Value], Value]
) -> None:
    a, b = buffer("a", 4, 9), buffer("b", 9, columns)
    y, acc = buffer("y", 4, columns), local("acc", 4, columns)
    heads = (i, 4, UNROLLED), (m, columns, VECTOR)
    product = Load(a, (i, k)) * Load(b, (k, m))
    body = block(
        loops(*heads, body=Store(acc, (i, m), constant(0, F32))),
        loops((k, 9, SERIAL), *heads, body=Store(acc, (i, m), Load(acc, (i, m)) + product)),
        loops(*heads, body=Store(y, (i, m), stored(Load(acc, (i, m))))),
    )
    source = program(Allocate(acc, body), (a, b), y)
    assert "alloca [" not in emit(source, AVX2).text  # nor memory of its own
    for target in TARGETS:
        check(source, target)


@pytest.mark.parametrize(("columns", "row"), [(3, 4), (6, 8), (11, 16), (3, 8), (6, 24)])
def test_short_rows_are_as_wide_as_what_they_are_read_from(columns: int, row: int) -> None:
    """Six of eight sums: a vector of eight, as the sums are, and not of sixteen."""
    a, y, acc = buffer("a", 4, 24), buffer("y", 4, columns), local("acc", 4, row)
    body = block(
        loops((i, 4, UNROLLED), (m, row, VECTOR), body=Store(acc, (i, m), Load(a, (i, m)))),
        loops((i, 4, UNROLLED), (m, columns, VECTOR), body=Store(y, (i, m), Load(acc, (i, m)))),
    )
    source = program(Allocate(acc, body), (a,), y)
    for target in TARGETS:
        check(source, target)
    if row // 2 < columns:
        assert "alloca [" not in emit(source, AVX512).text
        assert f"<{row} x float>" in emit(source, AVX512).text


def rows_of_sums(lanes: int, rest: int, dtype: DType = F32) -> LoopProgram:
    """Sums in a local buffer, whose rows are a vector and a rest, and what is stored of them."""
    a, b = buffer("a", 3, 9, dtype=dtype), buffer("b", 9, 2, lanes, dtype=dtype)
    y = buffer("y", 3, lanes + rest, dtype=dtype)
    acc = local("acc", 3, lanes + rest, dtype=dtype)

    def parts(body: Callable[[int, Index], Stmt]) -> Stmt:
        heads = [((i, 3, UNROLLED), (m, n, VECTOR)) for n in (lanes, rest)]
        return block(*(loops(*h, body=body(n, m + n * lanes)) for n, h in enumerate(heads)))

    def added(part: int, place: Index) -> Stmt:
        product = Load(a, (i, k)) * Load(b, (k, part, m))
        return Store(acc, (i, place), Load(acc, (i, place)) + product)

    body = block(
        parts(lambda _, place: Store(acc, (i, place), constant(0, dtype))),
        loops((k, 9, SERIAL), body=parts(added)),
        parts(lambda _, place: Store(y, (i, place), Load(acc, (i, place)))),
    )
    return widen_local_buffers(program(Allocate(acc, body), (a, b), y))


@pytest.mark.parametrize("rest", [1, 2, 4, 5, 7])
@pytest.mark.parametrize("backend", CPU_BACKENDS, ids=lambda each: each.name)
def test_rows_of_vectors_and_a_rest_live_in_registers(
    rest: int, backend: Backend[CpuTarget]
) -> None:
    for target in (target for target in TARGETS if rest <= target.lanes(F32)):
        source = rows_of_sums(target.lanes(F32), rest)
        check(source, target, backend=backend)
        if backend is LLVM and (target.has_masks or rest & (rest - 1) == 0):
            assert "alloca [" not in emit(source, target).text, (rest, target)


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F64, DType.I32], ids=str)
@pytest.mark.parametrize("backend", CPU_BACKENDS, ids=lambda each: each.name)
def test_parts_of_registers_are_of_the_type_that_is_computed(
    dtype: DType, backend: Backend[CpuTarget]
) -> None:
    for target in TARGETS:
        for rest in (2, 3):
            source = rows_of_sums(target.lanes(F32), rest, dtype)
            check(source, target, backend=backend, tolerance=0.05)


def test_what_nothing_is_read_from_is_not_addressed() -> None:
    """Rows above and below an image: the address of a load that is not made stays in the image."""
    x, y = buffer("x", 3, 64), buffer("y", 5, 64)
    inside = all_of(i >= 1, i < 4)
    value = Select(inside, Load(x, (i - 1, m)), constant(0, F32))
    source = program(loops((i, 5, SERIAL), (m, 64, VECTOR), body=Store(y, (i, m), value)), (x,), y)
    for target in TARGETS:
        check(source, target)
        assert any(" select i1 " in row and ", ptr " in row for row in rows_of(source, target))


def test_one_of_two_operands_is_read() -> None:
    """Vectors of a concatenation: a choice that all lanes share is a branch."""
    x, z, y = buffer("x", 3, 64), buffer("z", 2, 64), buffer("y", 5, 64)
    value = Select(all_of(i < 3), Load(x, (i, m)), Load(z, (i - 3, m)))
    body = Store(y, (i, m), value)
    source = program(loops((i, 5, SERIAL), (m, 64, VECTOR), body=body), (x, z), y)
    for target in TARGETS:
        check(source, target)
        assert "masked.load" not in emit(source, target).text


def rows_of(source: LoopProgram, target: CpuTarget) -> list[str]:
    return emit(source, target).text.splitlines()
