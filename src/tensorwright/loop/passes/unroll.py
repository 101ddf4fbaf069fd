"""Write out short loops whose iterations differ in guards."""

from __future__ import annotations

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

_MOST_COPIES = 4  # of a loop
_LARGEST_COPIES = 256  # statements of all copies
_MOST_STATEMENTS = 1024  # of copies, when what is unrolled inside is written out as well


def unroll_guarded(program: LoopProgram) -> LoopProgram:
    """Replace short loops by copies, where guards inside ask for them.

    Rewrite:  for t in 0..3: for k in 0..n: for i in 0..4 @unroll: if 1 <= i + t: S
                  ->  for k in 0..n: for i in 1..4 @unroll: S[t := 0];
                      for k in 0..n: for i in 0..4 @unroll: S[t := 1]; ...
    Each copy can be cut where its own guards change, and no guard is left in the innermost loops.

    Loops over a few tiles of lanes are unrolled, too: most of such tiles are at an end, and their
    guards are decided once their positions are numbers.
    """
    namer = Namer(program)

    def unroll(statement: Stmt) -> Stmt:
        moved = map_children(unroll, statement)
        if not isinstance(moved, For) or not isinstance(moved.extent, int):
            return moved
        if not _is_wanted(moved, moved.extent):
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


def _is_wanted(loop: For, copies: int) -> bool:
    """Whether a loop is short enough, and guards inside ask for it."""
    if loop.kind is not ForKind.SERIAL or copies > _MOST_COPIES:
        return False
    if copies * total_size((loop.body,)) > _LARGEST_COPIES:
        return False
    is_small = copies * _written_size(loop.body) <= _MOST_STATEMENTS
    return _is_asked_for(loop) or (is_small and _guards_lanes(loop))


def _is_asked_for(loop: For) -> bool:
    """Whether the variable of a loop is in a guard inside an unrolled loop, with that one's; and
    whether there is a loop between that no guard depends on.
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
