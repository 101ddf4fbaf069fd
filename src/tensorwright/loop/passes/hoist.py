"""Move conditions out of the loops that do not change them."""

from __future__ import annotations

from dataclasses import replace

from tensorwright.expr import Condition, Var, all_of, conjuncts, free_vars, negate
from tensorwright.expr import condition_sides as sides_of
from tensorwright.loop.ir import Allocate, Block, Call, For, If, LoopProgram, Stmt, block
from tensorwright.loop.traversal import Namer, buffers_of_index, freshen, map_children
from tensorwright.schedule import ForKind

_HOST_KINDS = frozenset(
    (ForKind.SERIAL, ForKind.UNROLLED, ForKind.VECTOR, ForKind.PARALLEL)
)  # loops over blocks and threads cannot be skipped
_COPIED_KINDS = _HOST_KINDS - {ForKind.PARALLEL}  # a parallel loop is not divided


def hoist_conditions(program: LoopProgram) -> LoopProgram:
    """Test a condition once, outside the innermost loops that it does not depend on.

    Rewrite:  for j in 0..n: if c and d(j): S    ->    if c: for j in 0..n: if d(j): S
              local t: if c: S                   ->    if c: local t: S
              if c: S1; if c: S2                 ->    if c: S1; S2
              intrinsic that means: if c: S      ->    if c: intrinsic that means: S
              for j in 0..n: if c: S1; if not c: S2
                  ->    if c: for j in 0..n: S1;  if not c: for j_1 in 0..n: S2
    Theorem:  a condition on loop variables alone is a pure function of them, so it may be tested
              at any place inside the loops that bind them.  Conditions that read memory stay.
    """
    return LoopProgram(program.name, program.parameters, _hoist(program.body, Namer(program)))


def _hoist(statement: Stmt, namer: Namer) -> Stmt:
    moved = map_children(lambda child: _hoist(child, namer), statement)
    match moved:
        case Block(statements):
            return _merge(statements)
        case For(var, extent, kind, If(condition, then)) if kind in _HOST_KINDS:
            parts = conjuncts(condition)
            out = [p for p in parts if _is_pure(p) and var not in free_vars(*sides_of(p))]
            rest = all_of(*(part for part in parts if part not in out))
            body = then if rest is True else If(rest, then)
            return _guarded(all_of(*out), For(var, extent, kind, body))
        case For(var, _, kind, Block((If() as one, If() as other))) if kind in _COPIED_KINDS:
            if not _is_choice(one.condition, other.condition, var):
                return moved
            copy = freshen(replace(moved, body=other.then), namer)
            return block(
                If(one.condition, replace(moved, body=one.then)), If(other.condition, copy)
            )
        case Allocate(buffer, If(condition, then)):
            out = [part for part in conjuncts(condition) if _is_pure(part)]
            rest = all_of(*(part for part in conjuncts(condition) if part not in out))
            body = then if rest is True else If(rest, then)
            return _guarded(all_of(*out), Allocate(buffer, body))
        case Call(intrinsic, windows, If(condition, then)) if _is_pure(condition):
            return If(condition, Call(intrinsic, windows, then))
        case If(outer, If(condition, then)) if _is_pure(condition):
            return If(all_of(outer, condition), then)
        case _:
            return moved


def _is_choice(one: Condition, other: Condition, var: Var) -> bool:
    """Whether always exactly one of two conditions holds, whatever the variable is."""
    if other != negate(one) and one != negate(other):
        return False
    return _is_pure(one) and var not in free_vars(*sides_of(one))


def _is_pure(condition: Condition) -> bool:
    return not any(True for side in sides_of(condition) for _ in buffers_of_index(side))


def _guarded(condition: Condition, statement: Stmt) -> Stmt:
    return statement if condition is True else If(condition, statement)


def _merge(statements: tuple[Stmt, ...]) -> Stmt:
    """Join neighbours under the same condition."""
    merged: list[Stmt] = []
    for statement in statements:
        last = merged[-1] if merged else None
        if (
            isinstance(statement, If)
            and isinstance(last, If)
            and last.condition == statement.condition
            and _is_pure(statement.condition)
        ):
            merged[-1] = If(last.condition, block(last.then, statement.then))
        else:
            merged.append(statement)
    return block(*merged)
