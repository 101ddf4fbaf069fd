"""A bound loop program to the text of an LLVM module.

The kernel is called as its `Signature` says. It calls GOMP_parallel where a loop is parallel and
`threads` is more than one.
"""

from __future__ import annotations

import re

from tensorwright.base import CpuTarget
from tensorwright.codegen.analysis.facts import MOST_ITERATIONS, Facts, refuse_groups
from tensorwright.codegen.analysis.indices import size_name
from tensorwright.codegen.analysis.linear import Linear
from tensorwright.codegen.analysis.workspace import BUFFER_ALIGN, Workspace, element_count
from tensorwright.codegen.llvm.intrinsics import intrinsics_of
from tensorwright.codegen.llvm.memory.access import Piece
from tensorwright.codegen.llvm.parallel import write_entry
from tensorwright.codegen.llvm.sizes import number_of
from tensorwright.codegen.llvm.statements import Kernel, Statements
from tensorwright.codegen.llvm.text.builder import LOOP_METADATA, Function
from tensorwright.codegen.source import Signature, Source
from tensorwright.expr import Index, NamedSize
from tensorwright.loop import LoopProgram, sizes_of_program
from tensorwright.machine_code import LIBM_SYMBOLS, Kind, Module, NativeFunction, Number


def emit(program: LoopProgram, target: CpuTarget) -> Source:
    """Write a program whose extents are ints, or expressions of named sizes.

    Raises:  UnsupportedError for loops of graphics processors, for functions of types that have
             none, and for f16 on a target without conversions;
             InternalError for a program that is not well formed.
    """
    name = _symbol(program.name)
    refuse_groups(program)
    module = Module(LOOP_METADATA)
    windows = {each.name: each.window_lanes for each in intrinsics_of(target).values()}
    kernel = Kernel(name, target, module, Facts(target, windows), Workspace(), [])
    pointers = [f"%p{position}" for position in range(len(program.parameters))]
    listed = "".join(f"ptr noalias align {BUFFER_ALIGN} {pointer}, " for pointer in pointers)
    sizes = {size: f"%size{n}" for n, size in enumerate(sizes_of_program(program))}
    numbers = "".join(f"i64 {name}, " for name in sizes.values())
    head = (
        f"define internal void @{name}.main("
        f"{listed}{numbers}ptr %workspace, ptr %slice, i32 %threads) nounwind"
    )
    main = Statements(Function(module, head), kernel, is_parallel=False)
    for size, label in sizes.items():
        main.env[size_name(size)] = Linear(0, ((label, 1),))
        main.function.ranges[label] = (size.least, size.most or MOST_ITERATIONS)
    for pointer, parameter in zip(pointers, program.parameters, strict=True):
        buffer = parameter.buffer
        count = element_count(buffer)
        known_size = count if isinstance(count, int) else 0
        main.storages[buffer.name] = Piece(pointer, buffer.dtype, known_size, BUFFER_ALIGN)
    main.statement(program.body)
    main.function.finish()
    for region in kernel.regions:
        write_entry(module, region, kernel.workspace.own.size, sizes)
    shared_bytes, own_bytes = kernel.workspace.shared.size, kernel.workspace.own.size
    _write_entry(module, name, len(pointers), tuple(sizes), shared_bytes)
    signature = Signature(name, program.parameters, shared_bytes, own_bytes, sizes=tuple(sizes))
    return Source(module.text(), signature)


def _symbol(name: str) -> str:
    """A name that object code may define."""
    safe = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not safe or safe[0].isdigit():
        safe = f"kernel_{safe}"
    return f"{safe}_kernel" if safe in LIBM_SYMBOLS else safe


def _write_entry(
    module: Module, name: str, pointers: int, sizes: tuple[NamedSize, ...], shared_bytes: Index
) -> None:
    """Write the function that the caller sees."""
    entry = NativeFunction(module, name, (Kind.POINTER, Kind.POINTER, Kind.I32))
    arguments, workspace, threads = entry.parameters
    listed = [arguments.array(Kind.POINTER)[position] for position in range(pointers)]
    words = arguments.array(Kind.I64)
    numbers = {
        size: words[pointers + position].apply("udiv", size.divisor)
        for position, size in enumerate(sizes)
    }
    slices = workspace.array(Kind.I8).address(number_of(entry, shared_bytes, numbers))
    main = Number(entry, Kind.POINTER, f"@{name}.main")
    entry.do(main, *listed, *numbers.values(), workspace, slices, threads)
    entry.finish()
