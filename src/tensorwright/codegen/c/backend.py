"""The back end `c`: C source, compiled by the system's compiler."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import CpuTarget
from tensorwright.codegen.c.compiler import compile_source, compiler_key, refusal
from tensorwright.codegen.c.kernel import emit
from tensorwright.codegen.source import Source
from tensorwright.loop import LoopProgram


@dataclass(frozen=True, slots=True)
class CBackend:
    """Processors of this machine's architecture; its code is a shared object.

    level   how much the compiler optimises
    """

    name: str = "c"
    suffix: str = "c"
    level: int = 3

    def supports(self, target: CpuTarget) -> str:
        """Why nothing can be compiled for a target here; "" if it can be."""
        return refusal(target)

    def key(self) -> str:
        """The compiler, its version and its flags."""
        return compiler_key()

    def emit(self, program: LoopProgram, target: CpuTarget) -> Source:
        """The text of one file."""
        return emit(program, target)

    def compile(self, source: Source, target: CpuTarget) -> bytes:
        """A shared object."""
        return compile_source(source, target, self.level)

    def listing(self, source: Source, target: CpuTarget) -> str:
        """The C source, which people read."""
        return source.text


BACKEND = CBackend()
