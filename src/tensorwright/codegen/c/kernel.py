"""A bound loop program to the text of a C file with one kernel.

The kernel is `void NAME(void **args, void *workspace, int threads)`, as `codegen.Signature` says.
Where the compiler knows OpenMP, parallel loops run on `threads` threads.
"""

from __future__ import annotations

from collections.abc import Mapping

from tensorwright.base import CpuTarget
from tensorwright.codegen.analysis import (
    MOST_ITERATIONS,
    Facts,
    Linear,
    refuse_groups,
    size_name,
)
from tensorwright.codegen.c.dialect import C
from tensorwright.codegen.c.statements import Kernel, ThreadStatements, pointer_type
from tensorwright.codegen.c_family import Names, Piece, function_text
from tensorwright.codegen.source import Signature, Source
from tensorwright.expr import NamedSize
from tensorwright.loop import LoopProgram, Role, sizes_of_program


def emit(program: LoopProgram, target: CpuTarget) -> Source:
    """Write a program whose extents are ints, or expressions of named sizes; the target says how
    wide vectors are.

    Raises:  UnsupportedError for loops of graphics processors, and for functions of types that have
             none; InternalError for a program that is not well formed.
    """
    name = C.identifier(program.name)
    refuse_groups(program)
    names = Names(C.identifier)
    sizes = {size: names.fresh(size.name) for size in sizes_of_program(program)}
    listed_sizes = ", ".join(sizes.values())
    slice_bytes = f"{name}_slice_bytes({listed_sizes})"
    kernel = Kernel(name, target, Facts(target, masked_rests=False), slice_bytes)
    main = ThreadStatements(kernel, names, is_parallel=False)
    for size, own in sizes.items():
        main.env[size_name(size)] = Linear(0, ((own, 1),))
        main.ranges[own] = (size.least, size.most or MOST_ITERATIONS)
    pointers: dict[str, str] = {}
    for parameter in program.parameters:
        buffer = parameter.buffer
        is_input = parameter.role is not Role.OUTPUT
        piece = Piece(names.fresh(buffer.name), buffer.dtype, is_input)
        main.storages[buffer.name] = piece
        pointers[piece.pointer] = pointer_type(piece)
    main.statement(program.body)
    listed = "".join(f"{kind}{pointer}, " for pointer, kind in pointers.items())
    listed += "".join(f"int64_t {own}, " for own in sizes.values())
    arguments = "".join(f"args[{position}], " for position in range(len(pointers)))
    arguments += "".join(f"{own}, " for own in sizes.values())
    head = f"static void {name}_main({listed}char *workspace, char *slice, int threads)"
    parameters = (*pointers, *sizes.values(), "workspace", "slice", "threads")
    main_text = function_text(head, parameters, main.out, unused="threads")
    shared_bytes, own_bytes = kernel.workspace.shared.size, kernel.workspace.own.size
    own_text, shared_text = (main.sum(main.evaluate(each)) for each in (own_bytes, shared_bytes))
    entry = (
        f"void {name}(void **args, void *workspace, int threads);\n"
        f"void {name}(void **args, void *workspace, int threads) {{\n"
        f"{_read_sizes(sizes, len(pointers))}"
        f"    {name}_main({arguments}workspace, (char *)workspace + {shared_text}, threads);\n"
        "}\n"
    )
    own_entry = _slice_function(name, tuple(sizes.values()), own_text)
    is_asked = any(slice_bytes in each for each in (*kernel.functions, main_text))
    asked = (own_entry,) if is_asked else ()
    functions = "\n".join((*asked, *kernel.functions, main_text, entry))
    text = f"{C.head}{kernel.helpers.text()}\n{functions}"
    signature = Signature(name, program.parameters, shared_bytes, own_bytes, sizes=tuple(sizes))
    return Source(text, signature)


def _read_sizes(sizes: Mapping[NamedSize, str], position: int) -> str:
    """The named sizes from behind the addresses: each divided by its divisor."""
    lines = []
    for number, (size, own) in enumerate(sizes.items(), position):
        divided = f" / {size.divisor}" if size.divisor > 1 else ""
        lines.append(f"    const int64_t {own} = (int64_t)(intptr_t)args[{number}]{divided};\n")
    return "".join(lines)


def _slice_function(name: str, sizes: tuple[str, ...], own_bytes: str) -> str:
    """The function that gives the memory of each thread; a parallel loop calls it, if the compiler
    has OpenMP.
    """
    listed = ", ".join(f"int64_t {own}" for own in sizes) or "void"
    unused = "".join(f" (void){own};" for own in sizes)
    head = f"__attribute__((unused)) static inline int64_t {name}_slice_bytes({listed})"
    return f"{head} {{{unused} return {own_bytes}; }}\n"
