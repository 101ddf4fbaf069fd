"""A card on the processor: a driver of CUDA by g++, and code for it by the shim.

`compile_for_shim` takes the place of NVRTC: its "machine code" is a shared object, in which each
function has a launcher that the driver of `shims/cuda_driver.cpp` calls.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.grids import CUDA_ON_CPU, SHIM, missing_compiler

from tensorwright.base import GpuTarget
from tensorwright.codegen import Source
from tensorwright.codegen.c_family import emit_grid
from tensorwright.codegen.cuda import CudaBackend
from tensorwright.loop import LoopProgram
from tensorwright.runtime.cards import cuda, cuda_cards
from tensorwright.runtime.native.cuda_driver import Driver, open_driver

_COMMAND = ("g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC")


class ShimDriver:
    """What tests set and read of the driver: its numbers, by their names without `shim_`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def _at(self, name: str) -> Any:
        counts = ("memory", "allocated", "modules", "allowed", "graphs", "graph_launches", "copies")
        is_long = name in counts
        kind: Any = ctypes.c_longlong if is_long else ctypes.c_int
        return kind.in_dll(self._library, f"shim_{name}")

    def read(self, name: str) -> int:
        return int(self._at(name).value)

    def write(self, **values: int) -> None:
        for name, value in values.items():
            self._at(name).value = value


@functools.cache
def _built() -> Path:
    """The driver, compiled once for each process."""
    path = Path(tempfile.mkdtemp(prefix="tensorwright-cuda-"), "libcuda.so.1")
    subprocess.run([*_COMMAND, str(SHIM.parent / "cuda_driver.cpp"), "-o", str(path)], check=True)
    return path


def shim_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[ShimDriver]:
    """Put the driver and the compiler of the shim in the place of NVIDIA's; a fixture's body."""
    reason = missing_compiler()
    if reason:
        pytest.skip(reason)
    path = str(_built())
    driver = ShimDriver(ctypes.CDLL(path))
    before = {"major": 9, "minor": 0, "devices": 1, "version": 13000, "memory": 1 << 30}
    before |= {
        "init": 0,
        "load": 0,
        "wait": 0,
        "allowed": 0,
        "graph": 0,
        "graph_launches": 0,
        "context": 0,
    }
    driver.write(**before)

    def opened() -> Driver | None:
        return open_driver(path)

    monkeypatch.setattr(cuda_cards, "open_driver", opened)
    monkeypatch.setattr(CudaBackend, "emit", _emit)
    monkeypatch.setattr(CudaBackend, "compile", _compile)
    monkeypatch.setattr(CudaBackend, "key", lambda self: "shim")
    forget()
    yield driver
    driver.write(**before)
    forget()


def forget() -> None:
    """Forget what was asked of drivers and cards."""
    for cached in (cuda_cards.find_card, cuda._open, open_driver):
        cached.cache_clear()


def _emit(self: CudaBackend, program: LoopProgram, target: GpuTarget) -> Source:
    return emit_grid(program, target, CUDA_ON_CPU, has_copies=True)


def _compile(self: CudaBackend, source: Source, target: GpuTarget) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        text, code = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        text.write_text("\n".join(('#include "cuda.h"', source.text, *_launchers(source))))
        command = [*_COMMAND, f"-I{SHIM.parent}", str(text), "-o", str(code)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert not done.returncode, done.stderr[:3000]
        return code.read_bytes()


def _launchers(source: Source) -> Iterator[str]:
    """For each function, what calls it with its arguments, and how many it has."""
    signature = source.signature
    kinds = [f"{CUDA_ON_CPU.element(each.buffer.dtype)} *" for each in signature.parameters]
    kinds += [*("long long" for _ in signature.sizes), "char *"]
    arguments = ", ".join(f"({kind})p[{number}]" for number, kind in enumerate(kinds))
    for number in range(len(signature.launches)):
        symbol = f"{signature.symbol}_{number}" if number else signature.symbol
        yield (
            f"static void call_{number}(void **p) {{ {symbol}({arguments}); }}\n"
            f'extern "C" int arguments_{symbol} = {len(kinds)};\n'
            f'extern "C" void launch_{symbol}(void **p, const unsigned *grid, '
            "const unsigned *block) {\n"
            f"    shim_launch(call_{number}, p, grid, block);\n}}\n"
        )
