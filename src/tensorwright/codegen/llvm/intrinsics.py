"""Hardware instructions that a schedule may call by name; adding one is one record in the tuple."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tensorwright.base import BYTE_PRODUCTS, BYTE_TERMS, CpuTarget
from tensorwright.codegen.llvm.text.builder import Function
from tensorwright.machine_code import shuffle_text


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


def _emit_vpdpbusd(function: Function, windows: tuple[str, ...]) -> None:
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


def _emit_neon_dot(instruction: str, function: Function, windows: tuple[str, ...]) -> None:
    """Write sdot or usdot: the four bytes of the data are one lane of a register, which it takes
    for all lanes.
    """
    total, data, weights = windows
    start = function.emit(f"load <4 x i32>, ptr {total}, align 4")
    group = function.emit(
        f"load float, ptr {data}, align 1"
    )  # an i32 would be spread as it is read
    first = function.pure(f"insertelement <4 x float> poison, float {group}, i64 0", group)
    lane = function.pure(f"bitcast <4 x float> {first} to <4 x i32>", first)
    spread = function.pure(shuffle_text("<4 x i32>", lane, "poison", (0,) * 4), lane)
    factors = function.pure(f"bitcast <4 x i32> {spread} to <16 x i8>", spread)
    matrix = function.emit(f"load <16 x i8>, ptr {weights}, align 1")
    result = function.emit(
        function.call_text(
            "<4 x i32>",
            f"llvm.aarch64.neon.{instruction}.v4i32.v16i8",
            ("<4 x i32>", start),
            ("<16 x i8>", factors),
            ("<16 x i8>", matrix),
        )
    )
    function.effect(f"store <4 x i32> {result}, ptr {total}, align 4")


_EMITTERS: dict[str, Callable[[Function, tuple[str, ...]], None]] = {
    "dot4_u8i8_i32": _emit_vpdpbusd,
    "dot4_u8i8_i32x4": partial(_emit_neon_dot, "usdot"),
    "dot4_i8i8_i32x4": partial(_emit_neon_dot, "sdot"),
}

INTRINSICS: tuple[Intrinsic, ...] = tuple(
    # total[lanes] i32 += sum over 4 of data[4] * weights[lanes][4] i8
    Intrinsic(
        product.intrinsic,
        product.features,
        (product.lanes, BYTE_TERMS, product.lanes * BYTE_TERMS),
        _EMITTERS[product.intrinsic],
    )
    for product in BYTE_PRODUCTS
)


def intrinsics_of(target: CpuTarget) -> dict[str, Intrinsic]:
    """The intrinsics that a target has, by name; of others the meaning is to be used."""
    return {each.name: each for each in INTRINSICS if set(each.features) <= set(target.features)}
