"""A bound loop program to the text of an LLVM module.

The kernel is called as its `Signature` says. It calls GOMP_parallel where a loop is parallel and
`threads` is more than one.
"""

from __future__ import annotations

import re

from tensorwright.base import CpuTarget
from tensorwright.codegen.analysis.facts import Facts, refuse_groups
from tensorwright.codegen.analysis.workspace import BUFFER_ALIGN, Workspace, element_count
from tensorwright.codegen.llvm.intrinsics import intrinsics_of
from tensorwright.codegen.llvm.memory.access import Piece
from tensorwright.codegen.llvm.parallel import write_entry
from tensorwright.codegen.llvm.statements import Kernel, Statements
from tensorwright.codegen.llvm.text.builder import LOOP_METADATA, Function
from tensorwright.codegen.source import Signature, Source
from tensorwright.loop import LoopProgram
from tensorwright.machine_code import LIBM_SYMBOLS, Kind, Module, NativeFunction, Number


def emit(program: LoopProgram, target: CpuTarget) -> Source:
    """Write a program whose extents are ints.

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
    head = (
        f"define internal void @{name}.main({listed}ptr %workspace, ptr %slice, i32 %threads) "
        "nounwind"
    )
    main = Statements(Function(module, head), kernel, is_parallel=False)
    for pointer, parameter in zip(pointers, program.parameters, strict=True):
        buffer = parameter.buffer
        size = element_count(buffer)
        main.storages[buffer.name] = Piece(pointer, buffer.dtype, size, BUFFER_ALIGN)
    main.statement(program.body)
    main.function.finish()
    for region in kernel.regions:
        write_entry(module, region, kernel.workspace.own.size)
    shared_bytes, own_bytes = kernel.workspace.shared.size, kernel.workspace.own.size
    _write_entry(module, name, len(pointers), shared_bytes)
    return Source(module.text(), Signature(name, program.parameters, shared_bytes, own_bytes))


def _symbol(name: str) -> str:
    """A name that object code may define."""
    safe = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not safe or safe[0].isdigit():
        safe = f"kernel_{safe}"
    return f"{safe}_kernel" if safe in LIBM_SYMBOLS else safe


def _write_entry(module: Module, name: str, pointers: int, shared_bytes: int) -> None:
    """Write the function that the caller sees."""
    entry = NativeFunction(module, name, (Kind.POINTER, Kind.POINTER, Kind.I32))
    arguments, workspace, threads = entry.parameters
    listed = [arguments.array(Kind.POINTER)[position] for position in range(pointers)]
    slices = workspace.array(Kind.I8).address(entry.number(shared_bytes))
    main = Number(entry, Kind.POINTER, f"@{name}.main")
    entry.do(main, *listed, workspace, slices, threads)
    entry.finish()
