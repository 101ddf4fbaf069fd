"""Hardware instructions that a schedule may call by name; adding one is one record in the tuple."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from tensorwright.base import (
    BYTE_GROUPS,
    BYTE_PRODUCTS,
    BYTE_TERMS,
    BYTE_TILE,
    BYTE_TILES,
    CpuTarget,
)
from tensorwright.codegen.llvm.text.builder import Function
from tensorwright.machine_code import shuffle_text

Joined: TypeAlias = Set[tuple[int, int]]
Emitter: TypeAlias = Callable[[Function, tuple[str, ...], Joined], None]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """An instruction on windows of buffers.

    `window_lanes`  how many contiguous elements each window has, in the order of the call
    `features`      what the target must have, in LLVM's names
    `emit`          writes the code, given the address of each window, and the pairs of windows of
                    which the second begins where the first ends
    """

    name: str
    features: tuple[str, ...]
    window_lanes: tuple[int, ...]
    emit: Emitter


def _emit_vpdpbusd(function: Function, windows: tuple[str, ...], _: Joined) -> None:
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


def _emit_neon_dot(
    instruction: str, function: Function, windows: tuple[str, ...], _: Joined
) -> None:
    """Write sdot or usdot, which take the four bytes of one lane of the data for all lanes."""
    total, data, weights = windows
    group = function.emit(
        f"load float, ptr {data}, align 1"
    )  # an i32 would be spread as it is read
    first = function.pure(f"insertelement <4 x float> poison, float {group}, i64 0", group)
    lane = function.pure(f"bitcast <4 x float> {first} to <4 x i32>", first)
    spread = function.pure(shuffle_text("<4 x i32>", lane, "poison", (0,) * 4), lane)
    factors = function.pure(f"bitcast <4 x i32> {spread} to <16 x i8>", spread)
    _accumulate(function, instruction, total, factors, weights)


def _emit_neon_tile(
    instruction: str, function: Function, windows: tuple[str, ...], joined: Joined
) -> None:
    """Write smmla or usmmla: the data are two rows of two groups of four bytes, the weights two
    columns of eight bytes, and the sums lie row by row.
    """
    total, *data, weights = windows
    if {(1, 2), (3, 4)} <= joined:  # the groups of a row lie side by side
        factors = _gathered(function, "double", (data[0], data[2]))
    elif {(1, 3), (2, 4)} <= joined:  # the rows of a group do
        first, second = (_first_half(function, each) for each in data[:2])
        both = function.emit(shuffle_text("<4 x i32>", first, second, (0, 4, 1, 5)))
        factors = function.emit(f"bitcast <4 x i32> {both} to <16 x i8>")
    else:
        factors = _gathered(function, "float", tuple(data))
    _accumulate(function, instruction, total, factors, weights)


def _accumulate(
    function: Function, instruction: str, total: str, factors: str, weights: str
) -> None:
    """Add the products of sixteen bytes with as many weights to four sums."""
    start = function.emit(f"load <4 x i32>, ptr {total}, align 4")
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


def _first_half(function: Function, address: str) -> str:
    """Eight bytes as the first of four numbers; the others are not used."""
    half = function.emit(f"load double, ptr {address}, align 1")
    whole = function.emit(f"insertelement <2 x double> poison, double {half}, i64 0")
    return function.emit(f"bitcast <2 x double> {whole} to <4 x i32>")


def _gathered(function: Function, kind: str, addresses: tuple[str, ...]) -> str:
    """Elements from several addresses in one register; integers would pass through others."""
    vector = f"<{len(addresses)} x {kind}>"
    result = "poison"
    for lane, address in enumerate(addresses):
        part = function.emit(f"load {kind}, ptr {address}, align 1")
        result = function.emit(f"insertelement {vector} {result}, {kind} {part}, i64 {lane}")
    return function.emit(f"bitcast {vector} {result} to <16 x i8>")


_EMITTERS: dict[str, Emitter] = {
    "dot4_u8i8_i32": _emit_vpdpbusd,
    "dot4_u8i8_i32x4": partial(_emit_neon_dot, "usdot"),
    "dot4_i8i8_i32x4": partial(_emit_neon_dot, "sdot"),
    "mmla_u8i8_i32": partial(_emit_neon_tile, "usmmla"),
    "mmla_i8i8_i32": partial(_emit_neon_tile, "smmla"),
}

_DOTS = tuple(
    # total[lanes] i32 += sum over 4 of data[4] * weights[lanes][4] i8
    Intrinsic(
        product.intrinsic,
        product.features,
        (product.lanes, BYTE_TERMS, product.lanes * BYTE_TERMS),
        _EMITTERS[product.intrinsic],
    )
    for product in BYTE_PRODUCTS
)
_TILES = tuple(
    # total[2][2] i32 += sum over 8 of data[2][8] * weights[2][8] i8
    Intrinsic(
        product.intrinsic,
        product.features,
        (
            BYTE_TILE * BYTE_TILE,
            *(BYTE_TERMS,) * (BYTE_TILE * BYTE_GROUPS),
            BYTE_TILE * BYTE_GROUPS * BYTE_TERMS,
        ),
        _EMITTERS[product.intrinsic],
    )
    for product in BYTE_TILES
)
INTRINSICS: tuple[Intrinsic, ...] = (*_DOTS, *_TILES)


def intrinsics_of(target: CpuTarget) -> dict[str, Intrinsic]:
    """The intrinsics that a target has, by name; the meaning replaces all others."""
    return {each.name: each for each in INTRINSICS if set(each.features) <= set(target.features)}
