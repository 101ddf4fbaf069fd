"""How addresses are built, counted: pointers that loops advance, and reloads from the stack."""

from __future__ import annotations

import re

import pytest
from tests.targets import AVX2, AVX512
from tests.unit.codegen.kernels import (
    F32,
    PARALLEL,
    SERIAL,
    TARGETS,
    UNROLLED,
    VECTOR,
    buffer,
    check,
    i,
    j,
    k,
    local,
    loops,
    m,
    n,
    program,
    q,
)

from tensorwright.base import CpuTarget
from tensorwright.codegen.llvm import emit
from tensorwright.expr import Load, Var, constant, floor_div, mod
from tensorwright.loop import Allocate, For, LoopProgram, Store, block
from tensorwright.machine_code.compilation import assembly

each_target = pytest.mark.parametrize("target", TARGETS, ids=str)
LANES, CHANNELS, KERNEL = 16, 16, 3


def tiled_convolution(
    rows: int, vectors: int, kind: object = SERIAL, lanes: int = LANES
) -> LoopProgram:
    """A register tile of `rows` places; the inner loop runs over the kernel, channels unrolled."""
    size = 2 * rows
    x = buffer("x", 2, size + KERNEL, 3, CHANNELS)
    w = buffer("w", 2, KERNEL, CHANNELS, vectors, lanes)
    y = buffer("y", vectors, size, 3, lanes)
    acc = local("acc", rows, vectors, lanes)
    block_of, place = Var("block"), (i, j, m)
    heads = (i, rows, UNROLLED), (j, vectors, UNROLLED), (m, lanes, VECTOR)
    product = Load(x, (block_of, q * rows + i + k, n, Var("c"))) * Load(
        w, (block_of, k, Var("c"), j, m)
    )
    body = block(
        loops(*heads, body=Store(acc, place, constant(0, F32))),
        loops(
            *((block_of, 2, SERIAL), (k, KERNEL, SERIAL), (Var("c"), CHANNELS, UNROLLED)),
            *heads,
            body=Store(acc, place, Load(acc, place) + product),
        ),
        loops(*heads, body=Store(y, (j, q * rows + i, n, m), Load(acc, place))),
    )
    outer = (q, 2, kind), (n, 3, SERIAL)
    return program(loops(*outer, body=Allocate(acc, body)), (x, w), y)  # type: ignore[arg-type]


def tile_in_memory() -> LoopProgram:
    """A tile that a serial loop indexes, deep in a nest: its rows are summed up over the kernel."""
    rows, vectors, size = 2, 4, 58
    x = buffer("x", 4, size, size, CHANNELS)
    w = buffer("w", 2, KERNEL, 2, KERNEL, CHANNELS, vectors, LANES)
    y = buffer("y", vectors, 56, 56, LANES)
    acc = local("acc", vectors, 8, 4, LANES)
    a, b, c, d, h, p = (Var(name) for name in "abcdhp")
    place = j, h * rows + i, n, m
    heads = (i, rows, UNROLLED), (j, vectors, UNROLLED), (m, LANES, VECTOR)
    left = Load(x, (a * 2 + d, floor_div(p, 14) * 8 + h * rows + i + k, mod(p, 14) * 4 + q + n, c))
    update = Load(acc, place) + left * Load(w, (a, q, d, k, c, j, m))
    tile = block(
        loops((n, 4, SERIAL), (h, 4, SERIAL), *heads, body=Store(acc, place, constant(0, F32))),
        loops(
            *((n, 4, SERIAL), (a, 2, SERIAL), (q, KERNEL, SERIAL), (h, 4, SERIAL)),
            *((d, 2, SERIAL), (k, KERNEL, SERIAL), (c, CHANNELS, UNROLLED)),
            *heads,
            body=Store(acc, place, update),
        ),
        loops(
            *((j, vectors, SERIAL), (b, 8, SERIAL), (n, 4, SERIAL), (m, LANES, VECTOR)),
            body=Store(
                y,
                (j, floor_div(p, 14) * 8 + b, mod(p, 14) * 4 + n, m),
                Load(acc, (j, b, n, m)),
            ),
        ),
    )
    return program(For(p, 98, PARALLEL, Allocate(acc, tile)), (x, w), y)


def innermost_loops(text: str) -> list[str]:
    """The bodies of the loops of assembly text that contain no other loop."""
    lines = text.splitlines()
    labels = {line.split(":")[0]: at for at, line in enumerate(lines) if re.match(r"\.L\w+:", line)}
    found = []
    for at, line in enumerate(lines):
        jump = re.match(r"\s+j\w+\s+(\.L\w+)", line)
        if jump and labels.get(jump[1], at + 1) <= at:
            found.append((labels[jump[1]], at))
    return [
        "\n".join(lines[first : last + 1])
        for first, last in found
        if not any(f >= first and t <= last and (f, t) != (first, last) for f, t in found)
    ]


@each_target
@pytest.mark.parametrize("kind", [SERIAL, PARALLEL])
def test_a_tile_of_many_rows_is_right(target: CpuTarget, kind: object) -> None:
    check(tiled_convolution(2, 4, kind), target, threads=2, tolerance=1e-4)


@pytest.mark.parametrize(("rows", "vectors"), [(2, 4), (6, 2), (14, 1)])
def test_the_inner_loop_reads_nothing_back_from_the_stack(rows: int, vectors: int) -> None:
    text = assembly(emit(tiled_convolution(rows, vectors), AVX512).text, AVX512)
    (inner,) = [loop for loop in innermost_loops(text) if "vfmadd" in loop]
    assert inner.count("vfmadd") == CHANNELS * rows * vectors
    assert "(%rsp)" not in inner
    assert len(re.findall(r"\tadd|\tinc|\tlea", inner)) == 2  # two pointers, no counter


@pytest.mark.parametrize(("rows", "vectors"), [(4, 3), (6, 2), (14, 1)])
def test_a_tile_that_fills_sixteen_registers_is_not_spilled(rows: int, vectors: int) -> None:
    source = tiled_convolution(rows, vectors, lanes=8)
    text = assembly(emit(source, AVX2).text, AVX2)
    (inner,) = [loop for loop in innermost_loops(text) if "vfmadd" in loop]
    assert inner.count("vfmadd") == CHANNELS * rows * vectors
    assert "%ymm" in inner
    assert "(%rsp)" not in inner


@each_target
@pytest.mark.parametrize("lanes", [4, 8, 32])
def test_tiles_of_narrow_and_wide_vectors_are_right(target: CpuTarget, lanes: int) -> None:
    check(tiled_convolution(3, 2, lanes=lanes), target, tolerance=1e-4)


def test_nor_does_a_deep_nest_that_accumulates_in_memory() -> None:
    text = assembly(emit(tile_in_memory(), AVX512).text, AVX512)
    (inner,) = [loop for loop in innermost_loops(text) if "vfmadd" in loop]
    assert inner.count("vfmadd") == CHANNELS * 8
    assert "(%rsp)" not in inner


def test_a_loop_advances_one_pointer_for_each_buffer() -> None:
    text = emit(tiled_convolution(14, 2), AVX512).text
    inner = max(text.split("\nb"), key=lambda part: part.count("llvm.fma"))
    assert len(re.findall(r"phi ptr", inner)) == 2
    assert "phi i64" not in inner  # what it advances ends the loop: no counter
    assert " mul " not in inner


@each_target
def test_pointers_beyond_what_registers_hold_share_an_offset(target: CpuTarget) -> None:
    inputs = tuple(buffer(f"x{at}", 5, 7, LANES) for at in range(12))
    y = buffer("y", 5, 7, LANES)
    total = sum((Load(x, (i, j, m)) for x in inputs[1:]), Load(inputs[0], (i, j, m)))
    heads = (i, 5, SERIAL), (j, 7, SERIAL), (m, LANES, VECTOR)
    source = program(loops(*heads, body=Store(y, (i, j, m), total)), inputs, y)
    text = emit(source, target).text
    assert text.count("phi ptr") == 2 * 8
    assert text.count("phi i64") == 2
    check(source, target)
