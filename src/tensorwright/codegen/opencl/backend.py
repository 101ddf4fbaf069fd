"""The back end `opencl`: OpenCL C, which the driver compiles when it is loaded.

The code of a kernel is its text: drivers have different machine codes, and each caches what it has
compiled.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import GpuApi, GpuTarget, knobs
from tensorwright.codegen.c_family import emit_grid
from tensorwright.codegen.opencl.dialect import OPENCL
from tensorwright.codegen.source import Source
from tensorwright.loop import LoopProgram

_VERSION = 1


@dataclass(frozen=True, slots=True)
class OpenClBackend:
    """Targets whose driver speaks OpenCL."""

    name: str = "opencl"
    suffix: str = "cl"

    def supports(self, target: GpuTarget) -> str:
        """Why nothing can be compiled for a target here; "" if it can be."""
        return "" if target.api is GpuApi.OPENCL else "its driver does not take OpenCL C"

    def key(self) -> str:
        """The language, and how functions are written."""
        return f"opencl:{_VERSION}:{'fast' if knobs.FAST_MATH.get() else 'exact'}"

    def emit(self, program: LoopProgram, target: GpuTarget) -> Source:
        """The text of one file, with a function for each launch."""
        return emit_grid(program, target, OPENCL, fast_math=knobs.FAST_MATH.get())

    def compile(self, source: Source, target: GpuTarget) -> bytes:
        """The text itself."""
        return source.text.encode()

    def listing(self, source: Source, target: GpuTarget) -> str:
        """The text itself, which people read."""
        return source.text


BACKEND = OpenClBackend()
