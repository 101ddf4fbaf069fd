"""Write out unrolled loops."""

from __future__ import annotations

from tensorwright.loop.ir import For, LoopProgram, Stmt, block
from tensorwright.loop.passes.simplify import simplify_loops
from tensorwright.loop.traversal import (
    Namer,
    children_of,
    freshen,
    substitute_statement,
    total_size,
    with_children,
)
from tensorwright.schedule import ForKind


def unroll_loops(program: LoopProgram, max_statements: int = 4096) -> LoopProgram:
    """Replace each unrolled loop by copies of its body, one per iteration.

    Rewrite:  for i in 0..2 @unroll: S    ->    S[i := 0]; S[i := 1]
    A loop whose copies would be more than `max_statements` statements stays, and one whose extent
    is not an int.  The LLVM emitter unrolls by itself; this pass shows what it makes.
    """
    namer = Namer(program)

    def unroll(statement: Stmt) -> Stmt:
        inner = tuple(unroll(child) for child in children_of(statement))
        moved = with_children(statement, inner) if inner else statement
        if not isinstance(moved, For) or moved.kind is not ForKind.UNROLLED:
            return moved
        if not isinstance(moved.extent, int):
            return moved
        if moved.extent * total_size((moved.body,)) > max_statements:
            return moved
        copies = [
            substitute_statement(
                moved.body if n == 0 else freshen(moved.body, namer), {moved.var: n}
            )
            for n in range(moved.extent)
        ]
        return block(*copies)

    return simplify_loops(LoopProgram(program.name, program.parameters, unroll(program.body)))
