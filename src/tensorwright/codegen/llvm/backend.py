"""The back end `llvm`: LLVM IR, compiled by the LLVM that llvmlite brings along.

A bound loop program to the text of an LLVM module.

The kernel is called as its `Signature` says. It calls GOMP_parallel where a loop is parallel and
`threads` is more than one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tensorwright import machine_code
from tensorwright.base import CpuTarget
from tensorwright.codegen.analysis import facts
from tensorwright.codegen.analysis.indices import Linear, size_name
from tensorwright.codegen.backend import Signature, Source
from tensorwright.codegen.llvm.access import Piece
from tensorwright.codegen.llvm.parallel import intrinsics_of, number_of, write_entry
from tensorwright.codegen.llvm.statements import Kernel, Statements
from tensorwright.codegen.llvm.text import LOOP_METADATA, Function
from tensorwright.expr import Index, NamedSize
from tensorwright.loop import LoopProgram, size_arguments, sizes_of_program
from tensorwright.machine_code.compilation import assembly, compile_module, pipeline_key


def emit(program: LoopProgram, target: CpuTarget) -> Source:
    """Write a program whose extents are ints, or expressions of named sizes.

    Raises:  UnsupportedError for loops of graphics processors, for functions of types that have
             none, and for f16 on a target without conversions;
             InternalError for a program that is not well formed.
    """
    name = _symbol(program.name)
    facts.refuse_groups(program)
    module = machine_code.Module(LOOP_METADATA)
    windows = {each.name: each.window_lanes for each in intrinsics_of(target).values()}
    kernel = Kernel(name, target, module, facts.Facts(target, windows), facts.Workspace(), [])
    pointers = [f"%p{position}" for position in range(len(program.parameters))]
    listed = "".join(f"ptr noalias align {facts.BUFFER_ALIGN} {pointer}, " for pointer in pointers)
    sizes = {size: f"%size{n}" for n, size in enumerate(sizes_of_program(program))}
    numbers = "".join(f"i64 {name}, " for name in sizes.values())
    head = (
        f"define internal void @{name}.main("
        f"{listed}{numbers}ptr %workspace, ptr %slice, i32 %threads) nounwind"
    )
    main = Statements(Function(module, head), kernel, is_parallel=False)
    for size, label in sizes.items():
        main.env[size_name(size)] = Linear(0, ((label, 1),))
        main.function.ranges[label] = (size.least, size.most or facts.MOST_ITERATIONS)
    for pointer, parameter in zip(pointers, program.parameters, strict=True):
        buffer = parameter.buffer
        count = facts.element_count(buffer)
        known_size = count if isinstance(count, int) else 0
        main.storages[buffer.name] = Piece(pointer, buffer.dtype, known_size, facts.BUFFER_ALIGN)
    main.statement(program.body)
    main.function.finish()
    for region in kernel.regions:
        write_entry(module, region, kernel.workspace.own.size, sizes)
    shared_bytes, own_bytes = kernel.workspace.shared.size, kernel.workspace.own.size
    _write_entry(module, name, len(pointers), tuple(sizes), shared_bytes)
    signature = Signature(
        name, program.parameters, shared_bytes, own_bytes, sizes=size_arguments(program)
    )
    return Source(module.text(), signature)


def _symbol(name: str) -> str:
    """A name that object code may define."""
    safe = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not safe or safe[0].isdigit():
        safe = f"kernel_{safe}"
    return f"{safe}_kernel" if safe in machine_code.LIBM_SYMBOLS else safe


def _write_entry(
    module: machine_code.Module,
    name: str,
    pointers: int,
    sizes: tuple[NamedSize, ...],
    shared_bytes: Index,
) -> None:
    """Write the function that the caller sees."""
    entry = machine_code.NativeFunction(
        module, name, (machine_code.Kind.POINTER, machine_code.Kind.POINTER, machine_code.Kind.I32)
    )
    arguments, workspace, threads = entry.parameters
    listed = [arguments.array(machine_code.Kind.POINTER)[position] for position in range(pointers)]
    words = arguments.array(machine_code.Kind.I64)
    numbers = {
        size: words[pointers + position].apply("udiv", size.divisor)
        for position, size in enumerate(sizes)
    }
    slices = workspace.array(machine_code.Kind.I8).address(number_of(entry, shared_bytes, numbers))
    main = machine_code.Number(entry, machine_code.Kind.POINTER, f"@{name}.main")
    entry.do(main, *listed, *numbers.values(), workspace, slices, threads)
    entry.finish()


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
