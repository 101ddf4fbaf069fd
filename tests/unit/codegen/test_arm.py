"""What code for 64-bit ARM has of its own: multiplication by lane, products of bytes, halves."""

from __future__ import annotations

import re

import pytest
from tests.targets import NEON
from tests.unit.codegen.kernels import (
    F32,
    NATIVE,
    SERIAL,
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
    product_of_bytes,
    program,
    tile_of_bytes,
)

from tensorwright.base import SHORT_PRODUCTS, DType, ShortProduct, cpu_target
from tensorwright.codegen.llvm import emit
from tensorwright.expr import Load, constant
from tensorwright.loop import Allocate, For, LoopProgram, Store, block
from tensorwright.machine_code.compilation import assembly


@pytest.mark.parametrize(
    ("name", "number", "instruction"),
    [
        ("aarch64-neon+dotprod", 2, "sdot"),
        ("aarch64-neon+i8mm", 1, "sudot"),  # which takes the lane first, as usdot takes it last
        ("aarch64-neon+i8mm", 2, ""),
    ],
)
def test_dot_products_are_instructions(name: str, number: int, instruction: str) -> None:
    source = product_of_bytes(SHORT_PRODUCTS[number], is_tile=True)
    code = assembly(emit(source, cpu_target(name)).text, cpu_target(name))
    taken = re.findall(r"\t([us]*dot)\tv\d+\.4s, v\d+\.16b, v\d+\.(?:16b|4b\[0\])", code)
    assert {*taken} == ({instruction} if instruction else set())


@pytest.mark.parametrize(
    ("tile", "instruction"),
    [*zip([p for p in SHORT_PRODUCTS if p.rows == 2], ("usmmla", "smmla"), strict=True)],
)
@pytest.mark.parametrize("strides", [(24, 4), (4, 8), (40, 12)], ids=str)
def test_tiles_of_bytes_are_instructions(
    tile: ShortProduct, instruction: str, strides: tuple[int, int]
) -> None:
    """Whether the groups of a row, the rows of a group, or neither lie side by side."""
    source = tile_of_bytes(tile, *strides)
    target = cpu_target("aarch64-neon+i8mm")
    code = assembly(emit(source, target).text, target)
    taken = re.findall(r"\t([us]*mmla)\tv\d+\.4s, v\d+\.16b, v\d+\.16b", code)
    assert {*taken} == {instruction}
    assert ("ld1\t{ v" in code, ".s }[3]" in code) == {
        (24, 4): (True, False),
        (4, 8): (False, False),
        (40, 12): (True, True),
    }[strides]
    plain = assembly(emit(source, NEON).text, NEON)
    assert "mmla" not in plain
    check(source, NATIVE)


def product_by_rows(steps: int) -> LoopProgram:
    """A register tile of six rows by two vectors, some steps of its fold written out."""
    a, b = buffer("a", 6, 40), buffer("b", 40, 8)
    y, acc = buffer("y", 6, 8), local("acc", 6, 8)
    tile = ((i, 6, UNROLLED), (j, 2, UNROLLED), (n, 4, VECTOR))
    at = (i, j * 4 + n)
    term = Load(a, (i, k * steps + m)) * Load(b, (k * steps + m, j * 4 + n))
    update = Store(acc, at, Load(acc, at) + term)
    body = block(
        loops(*tile, body=Store(acc, at, constant(0, F32))),
        loops((k, 40 // steps, SERIAL), (m, steps, UNROLLED), *tile, body=update),
        loops(*tile, body=Store(y, at, Load(acc, at))),
    )
    return program(Allocate(acc, body), (a, b), y)


@pytest.mark.parametrize(("steps", "lanes"), [(2, "0"), (4, "0123"), (5, "0123"), (8, "0123")])
def test_multiply_adds_take_lanes_of_what_the_next_steps_read(steps: int, lanes: str) -> None:
    source = product_by_rows(steps)
    code = assembly(emit(source, NEON).text, NEON)
    by_lane = re.findall(r"fmla\tv\d+\.4s, v\d+\.4s, v\d+\.s\[(\d)\]", code)
    assert "".join(sorted({*by_lane})) == lanes
    spread = re.findall(r"load float, ptr", emit(source, NEON).text)
    assert len(spread) == 6 * (steps % 4), "the last steps fill no vector"
    check(source, NATIVE)


def test_no_lane_is_read_from_beyond_a_buffer() -> None:
    """The last rows of a column are no vector: they are read one by one."""
    a, y = buffer("a", 40, 6), buffer("y", 6, 4)
    acc = local("acc", 6, 4)
    tile = ((i, 6, UNROLLED), (n, 4, VECTOR))
    body = block(
        loops(*tile, body=Store(acc, (i, n), constant(0, F32))),
        loops(
            (k, 40, SERIAL),
            *tile,
            body=Store(acc, (i, n), Load(acc, (i, n)) + Load(a, (k, i)) * Load(a, (k, i))),
        ),
        loops(*tile, body=Store(y, (i, n), Load(acc, (i, n)))),
    )
    source = program(Allocate(acc, body), (a,), y)
    text = emit(source, NEON).text
    assert text.count("load float, ptr") == 2  # of six
    check(source, NATIVE)


@pytest.mark.parametrize("name", ["aarch64-neon", "aarch64-neon+fullfp16"])
def test_halves_are_computed_as_halves_where_a_processor_can(name: str) -> None:
    x, y = buffer("x", 16, dtype=DType.F16), buffer("y", 16, dtype=DType.F16)
    value = Load(x, (i,)) * Load(x, (i,)) + Load(x, (i,))
    source = program(For(i, 16, VECTOR, Store(y, (i,), value)), (x,), y)
    code = assembly(emit(source, cpu_target(name)).text, cpu_target(name))
    is_native = name.endswith("fullfp16")
    assert ("fadd\tv" in code and ".8h" in code and "fcvt" not in code) == is_native
    assert ("fcvtl" in code) == (not is_native)
    check(source, NATIVE)
