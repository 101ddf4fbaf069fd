"""Steps of a fold are kept apart where the sums and what the next steps read again do not fit."""

from __future__ import annotations

import re

from tests.backends import LLVM
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
from tensorwright.codegen.analysis.facts import Facts
from tensorwright.codegen.analysis.tiles import keeps_steps_apart
from tensorwright.expr import Load, constant
from tensorwright.loop import Allocate, For, LoopProgram, Store, block, walk


def convolution(channels: int, rows: int, pixels: int, window: int) -> LoopProgram:
    """Vectors of channels times spread pixels, by two; the window is written out along its rows."""
    height, width = 2 * rows + window, 2 * pixels + 3
    x, w = buffer("x", height, width), buffer("w", 3, window, channels * 8)
    y, acc = buffer("y", rows, pixels, channels * 8), local("acc", rows, pixels, channels * 8)
    heads = (i, rows, UNROLLED), (j, pixels, UNROLLED), (n, channels, UNROLLED), (m, 8, VECTOR)
    at = (i, j, n * 8 + m)
    product = Load(x, (i * 2 + k, j * 2 + q)) * Load(w, (q, k, n * 8 + m))
    body = block(
        loops(*heads, body=Store(acc, at, constant(0, F32))),
        loops(
            (q, 3, SERIAL),
            (k, window, UNROLLED),
            *heads,
            body=Store(acc, at, Load(acc, at) + product),
        ),
        loops(*heads, body=Store(y, at, Load(acc, at))),
    )
    return program(Allocate(acc, body), (x, w), y)


def is_apart(source: LoopProgram, target: CpuTarget) -> bool:
    (window,) = (p for p in walk(source.body) if isinstance(p, For) and p.var == k)
    return keeps_steps_apart(window, Facts(target))


def test_a_window_by_two_whose_rows_come_again() -> None:
    assert is_apart(convolution(2, 2, 3, 7), AVX2)  # 12 sums, and 6 pixels and 2 weights wait


def test_what_fits_is_read_once() -> None:
    assert not is_apart(convolution(2, 2, 3, 7), AVX512)  # 32 registers
    assert not is_apart(convolution(2, 1, 6, 7), AVX2)  # no row comes again
    assert not is_apart(convolution(1, 2, 3, 7), AVX2)  # 6 sums are not what goes to memory
    assert not is_apart(convolution(2, 3, 4, 7), AVX2)  # more sums than registers, in any case


def test_code() -> None:
    source = convolution(2, 2, 3, 7)
    text = LLVM.emit(source, AVX2).text
    assert len(re.findall("~{memory}", text)) == 7 - 1
    for target in TARGETS:
        check(source, target)
