"""The back end `c`: C source, compiled by the system's compiler.

C source to code by the system's compiler.
"""

from __future__ import annotations

import functools
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tensorwright.base import CpuTarget, InternalError, MachineError, knobs
from tensorwright.codegen.backend import Source
from tensorwright.codegen.c.kernel import emit
from tensorwright.loop import LoopProgram

FLAGS = ("-std=gnu11", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")
"""Flags for kernels. Contraction makes a product and a sum one operation."""
WARNINGS = ("-Wall", "-Wextra", "-Wno-psabi")
"""Warnings, never errors: they differ from version to version of a compiler."""
_TIMEOUT_S = 600.0
_ARCHITECTURES = {"x86_64": "x86-64", "AMD64": "x86-64", "arm64": "aarch64"}


def refusal(target: CpuTarget) -> str:
    """Why nothing can be compiled for a target here; "" if it can be."""
    if _compiler() is None:
        return f"there is no C compiler {knobs.C_COMPILER.get()}"
    machine = _ARCHITECTURES.get(platform.machine(), platform.machine())
    return "" if target.arch == machine else f"the C compiler is for {machine}"


def compiler_key() -> str:
    """Name the compiler: object code of equal source, target and key is equal."""
    compiler = _compiler()
    return f"cc:{_version(compiler)}:{' '.join(FLAGS)}" if compiler else "cc:none"


def compile_source(source: Source, target: CpuTarget, level: int = 3) -> bytes:
    """Compile a kernel to a shared object; `level` says how much the compiler optimises.

    Raises:  MachineError if there is no compiler, or none for the target; InternalError if it
             refuses the text.
    """
    reason = refusal(target)
    if reason:
        raise MachineError(
            stage="codegen",
            where=f"target {target}",
            reason=reason,
            remedy="install gcc or clang, or name it by the setting c_compiler",
        )
    with tempfile.TemporaryDirectory() as folder:
        text, code = Path(folder, "kernel.c"), Path(folder, "kernel.so")
        text.write_text(source.text)
        command = [
            *(
                _compiler() or "cc",
                f"-O{level}",
                *FLAGS,
                *WARNINGS,
                *machine_flags(target),
                *_openmp_flags(),
            ),
            *("-shared", "-fPIC", str(text), "-o", str(code), "-lm"),
        ]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
        if done.returncode:
            raise InternalError(
                stage="codegen",
                where=f"kernel {source.signature.symbol}",
                reason=f"the C compiler refuses it\n{done.stderr[:4000]}",
            )
        return code.read_bytes()


def machine_flags(target: CpuTarget) -> tuple[str, ...]:
    """The flags that name the instructions of a target."""
    if target.arch == "x86-64":
        wide = ("-mprefer-vector-width=512",) if target.vector_bytes == 64 else ()
        return (*(f"-m{name}" for name in sorted(target.instructions)), *wide)
    return ()


@functools.cache
def _version(compiler: str) -> str:
    command = [compiler, "--version"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    return done.stdout.partition("\n")[0]


@functools.cache
def _openmp_flags() -> tuple[str, ...]:
    """The flags for threads, if the compiler supports OpenMP."""
    command = [_compiler() or "cc", "-fopenmp", "-x", "c", "-", "-shared", "-o", "/dev/null"]
    done = subprocess.run(
        command, check=False, input="#include <omp.h>\n", capture_output=True, text=True, timeout=60
    )
    return () if done.returncode else ("-fopenmp",)


def _compiler() -> str | None:
    return shutil.which(knobs.C_COMPILER.get())


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
