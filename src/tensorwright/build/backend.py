"""Back ends: from a bound loop program to code that can be called.

A back end is one record, and `BACKENDS` lists them all.  The conformance suite runs each of them on
the targets that it supports here; docs/howto/back_end.md says how to write one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tensorwright.base import MachineError, Target
from tensorwright.codegen import Source
from tensorwright.codegen.c import compile_source, compiler_key, load_shared_object, refusal
from tensorwright.codegen.c import emit as emit_c
from tensorwright.codegen.llvm import emit
from tensorwright.loop import LoopProgram
from tensorwright.machine_code import assembly, compile_module, pipeline_key
from tensorwright.runtime import load_object


class LoadedCode(Protocol):
    """Code in this process; whoever keeps an address must keep this object too."""

    def address(self, symbol: str) -> int:
        """The address of one of its symbols."""
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    """How loop programs become code.

    emit      the text of a program whose extents are numbers; UnsupportedError for what the machine
              or the language cannot do, InternalError for a program that is not well formed
    compile   object code of that text; MachineError where the compiler or the target is missing
    load      object code into this process, which can then ask for the addresses of its symbols
    listing   the code that the machine runs, for people: assembly
    key       names the compiler: object code of equal text, target and key is equal
    supports  "" for a target that it has code for, else why it has none
    suffix    of files with its text
    """

    name: str
    emit: Callable[[LoopProgram, Target], Source]
    compile: Callable[[Source, Target], bytes]
    load: Callable[[bytes, Sequence[str]], LoadedCode]
    listing: Callable[[Source, Target], str]
    key: Callable[[], str]
    supports: Callable[[Target], str]
    suffix: str = "txt"


LLVM = Backend(
    name="llvm",
    emit=emit,
    compile=lambda source, target: compile_module(source.text, target),
    load=load_object,
    listing=lambda source, target: assembly(source.text, target),
    key=pipeline_key,
    supports=lambda target: "",
    suffix="ll",
)
C = Backend(
    name="c",
    emit=emit_c,
    compile=compile_source,
    load=load_shared_object,
    listing=lambda source, target: source.text,
    key=compiler_key,
    supports=refusal,
    suffix="c",
)
BACKENDS: tuple[Backend, ...] = (LLVM, C)


def backend_of(target: Target) -> Backend:
    """The back end that kernels of a target are built with: the first one that supports it.

    Raises:  MachineError where there is none.
    """
    reasons: list[str] = []
    for backend in BACKENDS:
        reason = backend.supports(target)
        if not reason:
            return backend
        reasons.append(f"{backend.name}: {reason}")
    raise MachineError(
        stage="codegen",
        where=f"target {target}",
        reason="no back end has code for it (" + "; ".join(reasons) + ")",
    )
