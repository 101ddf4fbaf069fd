"""The back end `cuda`: CUDA C++, compiled by NVRTC to the machine code of an architecture."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import GpuApi, GpuTarget, knobs
from tensorwright.codegen.c_family import emit_grid
from tensorwright.codegen.cuda.dialect import CUDA
from tensorwright.codegen.cuda.nvrtc import find_nvrtc, require_nvrtc
from tensorwright.codegen.source import Source
from tensorwright.loop import LoopProgram

_VERSION = 1


@dataclass(frozen=True, slots=True)
class CudaBackend:
    """NVIDIA's graphics processors; its code is a cubin."""

    name: str = "cuda"
    suffix: str = "cu"

    def supports(self, target: GpuTarget) -> str:
        """Why nothing can be compiled for a target; "" if it can be."""
        return "" if target.api is GpuApi.CUDA else "its driver does not take CUDA code"

    def key(self) -> str:
        """The version of NVRTC, and how functions are written."""
        nvrtc = find_nvrtc()
        version = "none" if nvrtc is None else ".".join(map(str, nvrtc.version))
        return f"nvrtc:{version}:{_VERSION}:{'fast' if knobs.FAST_MATH.get() else 'exact'}"

    def emit(self, program: LoopProgram, target: GpuTarget) -> Source:
        """The text of one file, with a function for each launch."""
        fast_math, has_copies = knobs.FAST_MATH.get(), target.copies_ahead
        return emit_grid(program, target, CUDA, fast_math=fast_math, has_copies=has_copies)

    def compile(self, source: Source, target: GpuTarget) -> bytes:
        """A cubin."""
        nvrtc = require_nvrtc()
        return nvrtc.machine_code(source.text, target.arch, source.signature.symbol)

    def listing(self, source: Source, target: GpuTarget) -> str:
        """The resources of each function, and the PTX."""
        nvrtc, symbol = require_nvrtc(), source.signature.symbol
        taken = nvrtc.resources(source.text, target.arch, symbol)
        lines = "".join(f"// {each}\n" for each in taken)
        return lines + nvrtc.assembly(source.text, target.arch, symbol)


BACKEND = CudaBackend()
