"""The back end `llvm`: LLVM IR, compiled by the LLVM that llvmlite brings along."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import CpuTarget
from tensorwright.codegen.llvm.kernel import emit
from tensorwright.codegen.source import Source
from tensorwright.loop import LoopProgram
from tensorwright.machine_code.compilation import assembly, compile_module, pipeline_key


@dataclass(frozen=True, slots=True)
class LlvmBackend:
    """Every processor; its code is an object file."""

    name: str = "llvm"
    suffix: str = "ll"

    def supports(self, target: CpuTarget) -> str:
        """Always "": LLVM itself refuses unknown targets when it compiles."""
        return ""

    def key(self) -> str:
        """LLVM's version, and that of our passes."""
        return pipeline_key()

    def emit(self, program: LoopProgram, target: CpuTarget) -> Source:
        """The text of a module."""
        return emit(program, target)

    def compile(self, source: Source, target: CpuTarget) -> bytes:
        """An object file."""
        return compile_module(source.text, target)

    def listing(self, source: Source, target: CpuTarget) -> str:
        """Assembly."""
        return assembly(source.text, target)


BACKEND = LlvmBackend()
