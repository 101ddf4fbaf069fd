"""Make a loop nest smaller without changing what it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tensorwright.expr import (
    And,
    Bounds,
    Condition,
    FloorDiv,
    Index,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Range,
    Var,
    all_of,
    any_of,
    conjuncts,
    interval,
    is_nonnegative,
    limited,
    limits_of,
    map_condition,
    narrowed,
    negate,
    replace_parts,
    simplify,
    simplify_condition,
)
from tensorwright.expr import condition_sides as _sides
from tensorwright.loop.ir import (
    Allocate,
    Block,
    Buffer,
    Call,
    For,
    GroupStatement,
    If,
    LaneFold,
    LoopProgram,
    Prefetch,
    StartCopy,
    Stmt,
    Store,
    Window,
    block,
)
from tensorwright.loop.passes.fold import fold_value
from tensorwright.loop.passes.guards import is_contradictory
from tensorwright.loop.traversal import (
    buffers_of_index,
    buffers_read,
    is_empty,
    is_used,
    map_children,
    map_statement,
    substitute_statement,
    walk,
)
from tensorwright.schedule import THREADS

EMPTY = Block(())


def simplify_loops(program: LoopProgram) -> LoopProgram:
    """Simplify indices, conditions and values; drop single iterations, dead branches, dead buffers.

    Rewrite:  for i in 0..1: S                               ->  S[i := 0]
              for i in 0..0: S                               ->  nothing
              for i in 0..8: if i < 8: S                     ->  for i in 0..8: S
              if c: if c and d: S                            ->  if c and d: S
              if 1 <= i and i <= 0: S                        ->  nothing
              for i in 0..8: if 7 <= i: S                    ->  for i in 0..8: if 7 <= i: S[i := 7]
              for i in 0..8: if i//4 < 1: S[i//4]            ->  for i in 0..8: if i//4 < 1: S[0]
              for i in 0..4: for j in 0..8: A[(i*8 + j)//8]  ->  for i in 0..4: for j in 0..8: A[i]
              local t: t[i] = x; A[i] = y   (t not read)     ->  A[i] = y
    Floats are folded only where the result is the same for every input: x*1, x/1, x-0, but not
    x+0 (it turns -0 to 0).
    """
    body = program.body
    while True:
        smaller = simplify_statement(_without_dead_buffers(body), {})
        if smaller == body:
            return LoopProgram(program.name, program.parameters, body)
        body = smaller


def simplify_statement(
    statement: Stmt, bounds: Bounds, facts: frozenset[Condition] = frozenset()
) -> Stmt:
    """Simplify a statement inside the ranges `bounds` where the conditions `facts` hold."""
    match statement:
        case Block(statements):
            return block(*(simplify_statement(part, bounds, facts) for part in statements))
        case For():
            return _loop(statement, bounds, facts)
        case If(condition, then):
            return _branch(condition, then, bounds, facts)
        case Allocate(buffer, body):
            inner = simplify_statement(body, bounds, facts)
            return Allocate(buffer, inner) if is_used(buffer, inner) else inner
        case Store(buffer, indices, value):
            folded = fold_value(value, bounds, lambda c, b: decide(c, b, facts))
            return Store(buffer, _indices(indices, bounds), folded)
        case LaneFold():
            return replace(statement, indices=_indices(statement.indices, bounds))
        case StartCopy():
            return map_children(lambda part: simplify_statement(part, bounds, facts), statement)
        case GroupStatement():
            return statement
        case Prefetch(buffer, indices, level):
            return Prefetch(buffer, _indices(indices, bounds), level)
        case Call(intrinsic, windows, meaning):
            moved = tuple(Window(w.buffer, _indices(w.indices, bounds)) for w in windows)
            return Call(intrinsic, moved, simplify_statement(meaning, bounds, facts))


def _indices(indices: tuple[Index, ...], bounds: Bounds) -> tuple[Index, ...]:
    return tuple(simplify(index, bounds) for index in indices)


def _loop(loop: For, bounds: Bounds, facts: frozenset[Condition]) -> Stmt:
    extent = simplify(loop.extent, bounds)
    if is_nonnegative(-extent, bounds):
        return EMPTY
    if extent == 1 and not _is_group(loop):
        return simplify_statement(substitute_statement(loop.body, {loop.var: 0}), bounds, facts)
    inside: dict[Var, Range] = {**bounds, loop.var: Range.of_extent(extent)}
    body = simplify_statement(loop.body, inside, facts)
    return body if is_empty(body) else For(loop.var, extent, loop.kind, body)


def _is_group(loop: For) -> bool:
    """Whether a loop over threads contains group statements: it stays, even with one iteration."""
    return loop.kind in THREADS and any(isinstance(x, GroupStatement) for x in walk(loop.body))


def _branch(condition: Condition, then: Stmt, bounds: Bounds, facts: frozenset[Condition]) -> Stmt:
    decided = decide(condition, bounds, facts)
    if isinstance(decided, bool):
        return simplify_statement(then, bounds, facts) if decided else EMPTY
    if is_contradictory(decided):
        return EMPTY
    holds = frozenset(part for part in conjuncts(decided) if not _reads_memory(part))
    inside = narrowed(bounds, conjuncts(decided))
    fixed = {var: r.low for var, r in inside.items() if r.low == r.high and bounds[var] != r}
    if fixed:
        then = substitute_statement(then, fixed)
    parts = _fixed_parts(bounds, conjuncts(decided))
    if parts:
        then = _replaced(then, parts)
    body = simplify_statement(then, inside, facts | holds)
    if is_empty(body):
        return EMPTY
    if isinstance(body, If) and not _reads_memory(body.condition):  # else it may need the guard
        return If(all_of(decided, body.condition), body.then)
    return If(decided, body)


def _fixed_parts(bounds: Bounds, holding: tuple[Condition, ...]) -> dict[Index, Index]:
    """The quotients, remainders, minima, maxima that have one value where a conjunction holds."""
    ranges: dict[Index, Range] = {}
    for atom, scale, rest in limits_of(holding):
        reach = ranges.get(atom) or interval(atom, bounds)
        if isinstance(atom, FloorDiv | Mod | Min | Max) and reach is not None:
            ranges[atom] = limited(reach, scale, rest)
    return {
        atom: reach.low
        for atom, reach in ranges.items()
        if isinstance(reach.low, int) and reach.low == reach.high
    }


def _replaced(statement: Stmt, parts: Mapping[Index, Index]) -> Stmt:
    def on_index(index: Index) -> Index:
        return replace_parts(index, parts)

    return map_statement(statement, on_index, lambda each: map_condition(each, on_index))


def _reads_memory(condition: Condition) -> bool:
    """Whether a condition may change when a buffer does."""
    return any(True for side in _sides(condition) for _ in buffers_of_index(side))


def decide(condition: Condition, bounds: Bounds, facts: frozenset[Condition]) -> Condition:
    """Simplify a condition where the conditions `facts` hold: its parts and negations, too."""
    simple = simplify_condition(condition, bounds)
    return _assume(simple, facts) if facts else simple


def _assume(condition: Condition, facts: frozenset[Condition]) -> Condition:
    if condition in facts:
        return True
    match condition:
        case And(parts):
            return all_of(*(_assume(part, facts) for part in parts))
        case Or(parts):
            return any_of(*(_assume(part, facts) for part in parts))
        case Not(part):
            return negate(_assume(part, facts))
        case _:
            return False if negate(condition) in facts else condition


def _without_dead_buffers(statement: Stmt) -> Stmt:
    """Drop allocated buffers that nothing reads, with the stores to them."""
    allocated = {part.buffer for part in walk(statement) if isinstance(part, Allocate)}
    dead = allocated - buffers_read(statement)
    dead -= {w.buffer for p in walk(statement) if isinstance(p, Call) for w in p.windows}
    return _drop(statement, dead) if dead else statement


def _drop(statement: Stmt, dead: set[Buffer]) -> Stmt:
    match statement:
        case Store(buffer, _, _) | Prefetch(buffer, _) if buffer in dead:
            return EMPTY
        case Allocate(buffer, body) if buffer in dead:
            return _drop(body, dead)
        case _:
            return map_children(lambda child: _drop(child, dead), statement)
