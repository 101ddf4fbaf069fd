"""Write out loops: those that are unrolled, and short ones whose iterations differ in guards."""

from __future__ import annotations

from collections.abc import Callable

from tensorwright.expr import condition_sides, free_vars
from tensorwright.loop.ir import For, If, LoopProgram, Stmt, block
from tensorwright.loop.passes.guards import guards_of
from tensorwright.loop.passes.simplify import simplify_loops
from tensorwright.loop.traversal import (
    Namer,
    children_of,
    freshen,
    map_children,
    substitute_statement,
    total_size,
    walk,
)
from tensorwright.schedule import ForKind

_MOST_COPIES = 4  # of a loop that is not unrolled
_MOST_STATEMENTS = 1024  # of copies, when what is unrolled inside is written out as well


def unroll_loops(program: LoopProgram, max_statements: int = 4096) -> LoopProgram:
    """Replace each unrolled loop by copies of its body, one per iteration.

    Rewrite:  for i in 0..2 @unroll: S    ->    S[i := 0]; S[i := 1]
    A loop whose copies would be more than `max_statements` statements stays, and one whose extent
    is not an int.  The LLVM emitter unrolls by itself; this pass shows what it makes.
    """
    return _written_out(program, lambda loop: loop.kind is ForKind.UNROLLED, max_statements)


def unroll_guarded(program: LoopProgram, max_statements: int = 256) -> LoopProgram:
    """Replace short loops by copies, where guards inside ask for them.

    Rewrite:  for t in 0..3: for k in 0..n: for i in 0..4 @unroll: if 1 <= i + t: S
                  ->  for k in 0..n: for i in 1..4 @unroll: S[t := 0];
                      for k in 0..n: for i in 0..4 @unroll: S[t := 1]; ...
    Each copy can be cut where its own guards change, and none asks in the innermost loops.

    Likewise a few tiles of lanes: most are at an end, and what their lanes ask is known once their
    places are.
    """

    def is_wanted(loop: For) -> bool:
        copies = loop.extent
        if loop.kind is not ForKind.SERIAL or not isinstance(copies, int) or copies > _MOST_COPIES:
            return False
        is_small = copies * _written_size(loop.body) <= _MOST_STATEMENTS
        return _is_asked_for(loop) or (is_small and _guards_lanes(loop))

    return _written_out(program, is_wanted, max_statements)


def _written_out(
    program: LoopProgram, is_wanted: Callable[[For], bool], max_statements: int
) -> LoopProgram:
    namer = Namer(program)

    def unroll(statement: Stmt) -> Stmt:
        moved = map_children(unroll, statement)
        if not isinstance(moved, For) or not isinstance(moved.extent, int) or not is_wanted(moved):
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

    body = unroll(program.body)
    if body == program.body:  # as most often
        return program
    return simplify_loops(LoopProgram(program.name, program.parameters, body))


def _is_asked_for(loop: For) -> bool:
    """Whether the variable of a loop is in a guard inside an unrolled loop, with that one's; and
    whether there is a loop between that no guard asks for.
    """
    inside = tuple(walk(loop.body))
    loops = [each for each in inside if isinstance(each, For)]
    asked = [free_vars(*condition_sides(each.condition)) for each in inside if isinstance(each, If)]
    unrolled = {each.var for each in loops if each.kind is ForKind.UNROLLED}
    between = {each.var for each in loops if each.kind is ForKind.SERIAL}
    is_asked = any(loop.var in names and names & unrolled for names in asked)
    return is_asked and bool(between.difference(*asked))


def _guards_lanes(loop: For) -> bool:
    """Whether the variable of a loop is in a guard with that of a vectorised loop inside and that
    of an unrolled one: lanes of a window.
    """
    loops = [each for each in walk(loop.body) if isinstance(each, For)]
    lanes, taps = (
        {each.var for each in loops if each.kind is kind}
        for kind in (ForKind.VECTOR, ForKind.UNROLLED)
    )
    if not (lanes and taps):
        return False
    asked = (free_vars(guard.left, guard.right) for guard, _ in guards_of(loop.body, {}))
    return any(loop.var in names and names & lanes and names & taps for names in asked)


def _written_size(statement: Stmt) -> int:
    """How many statements there are when what is unrolled is written out."""
    inner = sum(_written_size(child) for child in children_of(statement)) or 1
    if not isinstance(statement, For) or statement.kind is not ForKind.UNROLLED:
        return inner
    return inner * statement.extent if isinstance(statement.extent, int) else inner
