"""Hardware instructions that a schedule may call by name; adding one is one record in the tuple."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tensorwright.base import CpuTarget
from tensorwright.codegen.llvm.text.builder import Function


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """An instruction on windows of buffers.

    `window_lanes`  how many contiguous elements each window has, in the order of the call
    `features`      what the target must have, in LLVM's names
    `emit`          writes the code, given the address of each window
    """

    name: str
    features: tuple[str, ...]
    window_lanes: tuple[int, ...]
    emit: Callable[[Function, tuple[str, ...]], None]


def _emit_dot4(function: Function, windows: tuple[str, ...]) -> None:
    """Write vpdpbusd as its text, because the types of LLVM's intrinsic vary by version."""
    total, data, weights = windows
    start = function.emit(f"load <16 x i32>, ptr {total}, align 4")
    group = function.emit(f"load i32, ptr {data}, align 1")
    spread = function.splat_name("i32", group, 16)
    matrix = function.emit(f"load <16 x i32>, ptr {weights}, align 1")
    result = function.emit(
        'call <16 x i32> asm "vpdpbusd $2, $1, $0", "=v,v,v,0"'
        f"(<16 x i32> {spread}, <16 x i32> {matrix}, <16 x i32> {start})"
    )
    function.effect(f"store <16 x i32> {result}, ptr {total}, align 4")


INTRINSICS: tuple[Intrinsic, ...] = (
    # total[16] i32 += sum over 4 of data[4] u8 * weights[16][4] i8
    Intrinsic("dot4_u8i8_i32", ("avx512f", "avx512vnni"), (16, 4, 64), _emit_dot4),
)


def intrinsics_of(target: CpuTarget) -> dict[str, Intrinsic]:
    """The intrinsics that a target has, by name; of others the meaning is to be used."""
    return {each.name: each for each in INTRINSICS if set(each.features) <= set(target.features)}
