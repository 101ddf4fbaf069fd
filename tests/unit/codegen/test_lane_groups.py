"""Loads whose lanes have few elements between them, as resizing reads: each is loaded once."""

import pytest
from tests.unit.codegen.kernels import (
    PARALLEL,
    SERIAL,
    TARGETS,
    VECTOR,
    buffer,
    check,
    i,
    j,
    loops,
    m,
    program,
)

from tensorwright.base import CpuTarget, DType
from tensorwright.codegen.llvm import emit
from tensorwright.expr import Index, Load, floor_div, maximum, minimum, mod
from tensorwright.loop import LoopProgram, Store

each_target = pytest.mark.parametrize("target", TARGETS, ids=str)
ROWS, VECTORS = 3, 4


def copied(column: Index, lanes: int, dtype: DType = DType.F32, extent: int = 0) -> LoopProgram:
    """y[i, place] = x[i, column(place)] for places j*lanes + m, in whole vectors but for a rest."""
    x = buffer("x", ROWS, VECTORS * lanes + 1, dtype=dtype)
    y = buffer("y", ROWS, VECTORS, extent or lanes, dtype=dtype)
    heads = (i, ROWS, PARALLEL), (j, VECTORS, SERIAL), (m, extent or lanes, VECTOR)
    return program(loops(*heads, body=Store(y, (i, j, m), Load(x, (i, column)))), (x,), y)


def enlarged(lanes: int, scale: int) -> Index:
    """The left neighbour of a place in a row that is resized linearly, kept in the row."""
    left = floor_div(j * lanes + m + scale // 2, scale) - 1
    return minimum(maximum(left, 0), VECTORS * lanes // scale - 1)


@each_target
@pytest.mark.parametrize("dtype", [DType.F32, DType.BF16, DType.I64, DType.BOOL], ids=str)
def test_shared_elements_are_loaded_once_and_spread(target: CpuTarget, dtype: DType) -> None:
    lanes = target.lanes(DType.F32)
    for scale in (2, 4, lanes, 3 * lanes):
        source = copied(enlarged(lanes, scale), lanes, dtype)
        assert "masked.gather" not in emit(source, target).text, scale
        check(source, target)


@each_target
def test_lanes_far_from_each_other_may_share_an_element(target: CpuTarget) -> None:
    lanes = target.lanes(DType.F32)
    source = copied(mod(j + m, 3), lanes)
    assert "masked.gather" not in emit(source, target).text
    check(source, target)


@each_target
@pytest.mark.parametrize("rows", [2, 4])
def test_interleaved_rows_are_loaded_whole(target: CpuTarget, rows: int) -> None:
    """As an image whose phases lie one after the other, or channels that become pixels."""
    lanes = target.lanes(DType.F32)
    position = j * lanes + m
    column = mod(position, rows) * (VECTORS * lanes // rows) + floor_div(position, rows)
    source = copied(column, lanes)
    text = emit(source, target).text
    assert "masked.gather" not in text
    if rows <= lanes // 2:
        assert f"load <{lanes // rows} x float>" in text
    check(source, target)


@each_target
def test_lanes_that_share_little_are_gathered(target: CpuTarget) -> None:
    lanes = target.lanes(DType.F32)
    source = copied(mod((j + m) * 3, VECTORS * lanes + 1), lanes)
    assert "masked.gather" in emit(source, target).text
    check(source, target)


@each_target
def test_a_rest_reads_nothing_beyond_its_lanes(target: CpuTarget) -> None:
    lanes = target.lanes(DType.F32)
    for extent in (lanes - 1, 2 * lanes - 3):
        check(copied(enlarged(lanes, 4), lanes, extent=extent), target)
