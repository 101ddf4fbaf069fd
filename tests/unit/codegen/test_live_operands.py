"""Steps of a fold are kept apart where the sums and what the next steps read again do not fit."""

from __future__ import annotations

import re

from tests.backends import LLVM
from tests.targets import AVX2, AVX512
from tests.unit.codegen import kernels

from tensorwright.base import CpuTarget
from tensorwright.codegen.analysis.facts import Facts
from tensorwright.codegen.analysis.tiles import keeps_steps_apart
from tensorwright.expr import Load, constant
from tensorwright.loop import Allocate, For, LoopProgram, Store, block, walk


def convolution(channels: int, rows: int, pixels: int, window: int) -> LoopProgram:
    """Vectors of channels times spread pixels, by two; the window is written out along its rows."""
    height, width = 2 * rows + window, 2 * pixels + 3
    x, w = kernels.buffer("x", height, width), kernels.buffer("w", 3, window, channels * 8)
    y, acc = (
        kernels.buffer("y", rows, pixels, channels * 8),
        kernels.local("acc", rows, pixels, channels * 8),
    )
    heads = (
        (kernels.i, rows, kernels.UNROLLED),
        (kernels.j, pixels, kernels.UNROLLED),
        (kernels.n, channels, kernels.UNROLLED),
        (kernels.m, 8, kernels.VECTOR),
    )
    at = (kernels.i, kernels.j, kernels.n * 8 + kernels.m)
    product = Load(x, (kernels.i * 2 + kernels.k, kernels.j * 2 + kernels.q)) * Load(
        w, (kernels.q, kernels.k, kernels.n * 8 + kernels.m)
    )
    body = block(
        kernels.loops(*heads, body=Store(acc, at, constant(0, kernels.F32))),
        kernels.loops(
            (kernels.q, 3, kernels.SERIAL),
            (kernels.k, window, kernels.UNROLLED),
            *heads,
            body=Store(acc, at, Load(acc, at) + product),
        ),
        kernels.loops(*heads, body=Store(y, at, Load(acc, at))),
    )
    return kernels.program(Allocate(acc, body), (x, w), y)


def is_apart(source: LoopProgram, target: CpuTarget) -> bool:
    (window,) = (p for p in walk(source.body) if isinstance(p, For) and p.var == kernels.k)
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
    for target in kernels.TARGETS:
        kernels.check(source, target)
