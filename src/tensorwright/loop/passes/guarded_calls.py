"""Expand calls of intrinsics whose loops are guarded: an intrinsic runs all iterations."""

from __future__ import annotations

from tensorwright.loop.ir import Call, If, LoopProgram, Stmt
from tensorwright.loop.traversal import map_children, walk


def expand_guarded_calls(program: LoopProgram) -> LoopProgram:
    """Run the loops that a call stands for where a condition leaves some of them out.

    Rewrite:  intrinsic(&C, &A, &B), which means: for r in 0..2: if i + r < n: S
                  ->  for r in 0..2: if i + r < n: S
    Conditions that no loop of the call changes have been moved around it before.
    """
    return LoopProgram(program.name, program.parameters, _expand(program.body))


def _expand(statement: Stmt) -> Stmt:
    if isinstance(statement, Call):
        is_guarded = any(isinstance(part, If) for part in walk(statement.meaning))
        return statement.meaning if is_guarded else statement
    return map_children(_expand, statement)
