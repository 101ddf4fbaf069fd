"""What is left of a loop after whole vectors, on a target whose stores have no masks."""

from __future__ import annotations

import numpy as np
import pytest
from tests.targets import AVX2
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

from tensorwright.codegen.llvm import emit
from tensorwright.expr import Fn, Load, apply, constant
from tensorwright.loop import Allocate, Store, block


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


@pytest.mark.parametrize("columns", [3, 6, 7])
def test_a_tile_narrower_than_a_vector_lives_in_registers(columns: int) -> None:
    a, b = buffer("a", 4, 9), buffer("b", 9, columns)
    y, acc = buffer("y", 4, columns), local("acc", 4, columns)
    heads = (i, 4, UNROLLED), (m, columns, VECTOR)
    product = Load(a, (i, k)) * Load(b, (k, m))
    body = block(
        loops(*heads, body=Store(acc, (i, m), constant(0, F32))),
        loops((k, 9, SERIAL), *heads, body=Store(acc, (i, m), Load(acc, (i, m)) + product)),
        loops(*heads, body=Store(y, (i, m), Load(acc, (i, m)))),
    )
    source = program(Allocate(acc, body), (a, b), y)
    assert "alloca [" not in emit(source, AVX2).text  # nor memory of its own
    for target in TARGETS:
        check(source, target)
