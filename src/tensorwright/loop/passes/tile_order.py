"""The order of the loops in a register tile: which operand stays in registers for the other."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tensorwright.base import CpuTarget
from tensorwright.expr import Index, IndexExpr, Load, Var, free_vars, loads_of, terms_of
from tensorwright.loop.folds import folded_operand
from tensorwright.loop.ir import For, LoopProgram, Stmt, Store
from tensorwright.loop.traversal import map_children, nest_in
from tensorwright.schedule import ForKind, Scope


def order_tiles(program: LoopProgram, target: CpuTarget) -> LoopProgram:
    """Keep the operand with fewer vectors in registers if a tile and the other one do not fit.

    A tile multiplies vectors by single elements, each spread over a vector. What the outer loops
    move is loaded once, what the inner ones move is kept for all of them: with three channels and
    four vectors of pixels, twelve sums, three channels and one of the vectors fill sixteen
    registers, the four vectors and one channel do not fit.

    Rewrite:  for c: for r: for v @vectorize: t[c, r, v] += x[r, v] * w[c]    (all written out)
              ->  for r: for c: for v @vectorize: t[c, r, v] += x[r, v] * w[c]
    Theorem:  every iteration of the loops folds into elements of its own, so their order is free.
    Targets whose instructions spread an element themselves need no register for it: unchanged.
    """
    if target.spreads_operands:
        return program
    body = _ordered(program.body, target)
    return program if body is program.body else replace(program, body=body)


def _ordered(statement: Stmt, target: CpuTarget) -> Stmt:
    if isinstance(statement, For) and statement.kind is ForKind.UNROLLED:
        loops = _tile_of(statement)
        if loops is not None:
            order = _by_registers(loops, target)
            return statement if order is loops else nest_in(order, order[-1].body)
    return map_children(lambda child: _ordered(child, target), statement)


def _tile_of(outer: For) -> list[For] | None:
    """Unrolled loops and the vector loop in them, if they fold into a tile, each into elements of
    its own.
    """
    loops = [outer]
    while isinstance(loops[-1].body, For):
        loops.append(loops[-1].body)
    *unrolled, vector = loops
    store = vector.body
    if not isinstance(store, Store) or vector.kind is not ForKind.VECTOR:
        return None
    if store.buffer.scope is not Scope.LOCAL or folded_operand(store) is None:
        return None
    own = _is_one_to_one(store.indices, loops)
    plain = all(loop.kind is ForKind.UNROLLED for loop in unrolled)
    return loops if own and plain else None


def _is_one_to_one(indices: tuple[Index, ...], loops: list[For]) -> bool:
    """Whether every iteration of the loops has an element of its own.

    Theorem: sums of c*v differ for different v if each c is more than all the terms with smaller
    coefficients reach together.
    """
    extents = {loop.var: loop.extent for loop in loops}
    seen: set[Var] = set()
    for index in indices:
        reach = 0
        for (*others, last), step in sorted(_terms(index), key=lambda term: term[1]):
            extent = extents.get(last) if isinstance(last, Var) else None
            if others or not isinstance(last, Var) or not isinstance(extent, int):
                if extents.keys() & free_vars(last, *others):
                    return False
                continue
            if last in seen or step <= reach:
                return False
            seen.add(last)
            reach += step * (extent - 1)
    return seen == extents.keys()


def _terms(index: Index) -> list[tuple[tuple[IndexExpr, ...], int]]:
    return [(monomial, step) for monomial, step in terms_of(index) if monomial]


def _by_registers(loops: list[For], target: CpuTarget) -> list[For]:
    """The loops in the order that needs fewer registers, if those are not enough."""
    *unrolled, vector = loops
    store = vector.body
    assert isinstance(store, Store)
    lanes = target.vector_bytes // store.buffer.dtype.size_bytes
    folded = folded_operand(store)
    if folded is None or not isinstance(vector.extent, int) or vector.extent > lanes:
        return loops
    loads = tuple(loads_of(folded[1]))
    wide = [loop for loop in unrolled if _moves(loads, loop.var, vector.var, is_wide=True)]
    narrow = [loop for loop in unrolled if _moves(loads, loop.var, vector.var, is_wide=False)]
    is_product = len(loads) == 2 and len(wide) + len(narrow) == len(unrolled)
    if not is_product or any(loop in narrow for loop in wide):
        return loops
    vectors, elements = _count(wide), _count(narrow)
    fits = vectors * elements + vectors + 1 <= target.vector_registers
    return loops if fits or vectors <= elements else [*wide, *narrow, vector]


def _moves(loads: tuple[Load, ...], var: Var, lanes: Var, *, is_wide: bool) -> bool:
    """Whether a load moves along a loop; one that has lanes, or one that has none."""
    used = [free_vars(*load.indices) for load in loads]
    return any(var in each and (lanes in each) is is_wide for each in used)


def _count(loops: list[For]) -> int:
    return prod(loop.extent for loop in loops if isinstance(loop.extent, int))
