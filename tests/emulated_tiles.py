"""A processor with the tiles of AMX: their instructions are calls into Python.

Each thread has eight tiles. What the instructions refuse is remembered, and `check` raises it: work
without a configuration, rows beyond it, products of matrices that do not fit.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from tests.backends import LLVM
from tests.targets import native_target

from tensorwright import loop
from tensorwright.base import CpuTarget, cpu_target
from tensorwright.codegen import Source

NATIVE = native_target()
_TILE_FEATURES = tuple(x for x in cpu_target("x86-64-amx+amx-fp16").features if x.startswith("amx"))
TARGET = replace(NATIVE, features=(*NATIVE.features, *_TILE_FEATURES))
"""This processor with tiles."""

_SIGNATURES = {
    "ldtilecfg": (ctypes.c_void_p,),
    "tilerelease": (),
    "tilezero": (ctypes.c_uint8,),
    "tileloadd64": (ctypes.c_uint8, ctypes.c_void_p, ctypes.c_int64),
    "tilestored64": (ctypes.c_uint8, ctypes.c_void_p, ctypes.c_int64),
}
_PRODUCTS: dict[str, tuple[Any, Any, Any]] = {
    "tdpbf16ps": (bfloat16, bfloat16, np.float32),
    "tdpfp16ps": (np.float16, np.float16, np.float32),
    "tdpbssd": (np.int8, np.int8, np.int32),
    "tdpbsud": (np.int8, np.uint8, np.int32),
    "tdpbusd": (np.uint8, np.int8, np.int32),
    "tdpbuud": (np.uint8, np.uint8, np.int32),
}
_CALL = re.compile(r"call void @llvm\.x86\.(\w+)\(")
_DECLARED = re.compile(r"^declare void @llvm\.x86\.\w+\(.*\n", re.MULTILINE)


@dataclass(slots=True)
class _Tiles:
    """Of one thread: what `ldtilecfg` gave, and the bytes of each tile."""

    rows: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    held: list[NDArray[np.uint8]] = field(default_factory=list)


@dataclass(slots=True)
class EmulatedTiles:
    """A back end whose code for tiles runs here; `counts` says what they did."""

    threads: dict[int, _Tiles] = field(default_factory=dict)
    faults: list[Exception] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    callbacks: dict[str, Any] = field(default_factory=dict)

    def emit(self, program: loop.LoopProgram, target: CpuTarget) -> Source:
        source = LLVM.emit(program, TARGET)
        text = _CALL.sub(self._call, _DECLARED.sub("", source.text))
        return replace(source, text=text.replace("i8 immarg ", "i8 "))

    def compile(self, source: Source, target: CpuTarget) -> bytes:
        return LLVM.compile(source, NATIVE)

    def check(self) -> None:
        """Raise what an instruction refused; no thread leaves its tiles configured."""
        if self.faults:
            raise self.faults[0]
        assert not any(each.rows for each in self.threads.values())

    def _call(self, match: re.Match[str]) -> str:
        name = match[1]
        if name not in self.callbacks:
            kinds = _SIGNATURES.get(name, (ctypes.c_uint8,) * 3)
            self.callbacks[name] = ctypes.CFUNCTYPE(None, *kinds)(self._guarded(name))
        address = ctypes.cast(self.callbacks[name], ctypes.c_void_p).value
        return f"call void inttoptr (i64 {address} to ptr)("

    def _guarded(self, name: str) -> Callable[..., None]:
        does = getattr(self, f"_{name}", None)

        def run(*arguments: int) -> None:
            try:
                self.counts[name] = self.counts.get(name, 0) + 1
                tiles = self.threads.setdefault(threading.get_native_id(), _Tiles())
                if does is None:
                    self._multiply(tiles, name, *arguments)
                else:
                    does(tiles, *arguments)
            except (AssertionError, IndexError, ValueError) as error:
                self.faults.append(error)

        return run

    def _ldtilecfg(self, tiles: _Tiles, address: int) -> None:
        numbers = ctypes.string_at(address, 64)
        assert numbers[0] == 1, "palette"
        tiles.rows = [*numbers[48:56]]
        tiles.widths = [int.from_bytes(numbers[at : at + 2], "little") for at in range(16, 32, 2)]
        assert max(tiles.rows) <= 16, "rows"
        assert max(tiles.widths) <= 64, "bytes of a row"
        tiles.held = [
            np.zeros(shape, np.uint8) for shape in zip(tiles.rows, tiles.widths, strict=True)
        ]

    def _tilerelease(self, tiles: _Tiles) -> None:
        tiles.rows, tiles.widths, tiles.held = [], [], []

    def _tilezero(self, tiles: _Tiles, number: int) -> None:
        tiles.held[number][:] = 0

    def _tileloadd64(self, tiles: _Tiles, number: int, address: int, step: int) -> None:
        for row, own in enumerate(tiles.held[number]):
            own[:] = np.frombuffer(ctypes.string_at(address + row * step, own.size), np.uint8)

    def _tilestored64(self, tiles: _Tiles, number: int, address: int, step: int) -> None:
        for row, own in enumerate(tiles.held[number]):
            ctypes.memmove(address + row * step, own.tobytes(), own.size)

    def _multiply(self, tiles: _Tiles, name: str, sums: int, data: int, weights: int) -> None:
        kinds = _PRODUCTS[name]
        c, a, b = (
            tiles.held[each].view(kind)
            for each, kind in zip((sums, data, weights), (kinds[2], *kinds[:2]), strict=True)
        )
        terms = 4 // a.itemsize
        assert a.shape[1] == b.shape[0] * terms, "terms"
        assert c.shape == (a.shape[0], b.shape[1] // terms), "sums"
        columns = b.reshape(b.shape[0], -1, terms).transpose(0, 2, 1).reshape(a.shape[1], -1)
        wide = np.float64 if kinds[2] is np.float32 else np.int64
        c += (a.astype(wide) @ columns.astype(wide)).astype(kinds[2])
