"""A bound loop program to the text of a C file with one kernel.

The kernel is `void NAME(void **args, void *workspace, int threads)`, as `codegen.Signature` says.
Where the compiler knows OpenMP, parallel loops run on `threads` threads.
"""

from __future__ import annotations

from tensorwright.base import CpuTarget
from tensorwright.codegen.analysis import Facts, refuse_groups
from tensorwright.codegen.c.statements import Kernel, Statements, function_text, pointer_type
from tensorwright.codegen.c.text import Names, c_name
from tensorwright.codegen.c.values import Piece
from tensorwright.codegen.source import Signature, Source
from tensorwright.loop import LoopProgram, Role

_INCLUDES = """#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

"""


def emit(program: LoopProgram, target: CpuTarget) -> Source:
    """Write a program whose extents are ints; the target says how wide vectors are.

    Raises:  UnsupportedError for loops of graphics processors, and for functions of types that have
             none; InternalError for a program that is not well formed.
    """
    name = c_name(program.name)
    refuse_groups(program)
    kernel = Kernel(name, target, Facts(target, masked_rests=False))
    names = Names()
    main = Statements(kernel, names, is_parallel=False)
    pointers: dict[str, str] = {}
    for parameter in program.parameters:
        buffer = parameter.buffer
        is_input = parameter.role is not Role.OUTPUT
        piece = Piece(names.fresh(buffer.name), buffer.dtype, is_input)
        main.storages[buffer.name] = piece
        pointers[piece.pointer] = pointer_type(piece)
    main.statement(program.body)
    listed = "".join(f"{kind}{pointer}, " for pointer, kind in pointers.items())
    arguments = "".join(f"args[{position}], " for position in range(len(pointers)))
    head = f"static void {name}_main({listed}char *workspace, char *slice, int threads)"
    main_text = function_text(head, (*pointers, "workspace", "slice", "threads"), main.out)
    workspace = kernel.workspace
    slice_bytes = f"enum {{ {name}_slice_bytes = {workspace.own.size} }};\n"
    entry = (
        f"void {name}(void **args, void *workspace, int threads);\n"
        f"void {name}(void **args, void *workspace, int threads) {{\n"
        f"    {name}_main({arguments}workspace, "
        f"(char *)workspace + {workspace.shared.size}, threads);\n"
        "}\n"
    )
    functions = "\n".join((*kernel.functions, main_text, entry))
    text = f"{_INCLUDES}{kernel.helpers.text()}{slice_bytes}\n{functions}"
    signature = Signature(name, program.parameters, workspace.shared.size, workspace.own.size)
    return Source(text, signature)
