"""Keep accumulators in registers while the loops run that add to them.

    for k: for i unrolled: C[i] = f(C[i], k, i)    ->    local t: for i unrolled: t[i] = C[i]
                                                         for k: for i unrolled: t[i] = f(t[i], k, i)
                                                         for i unrolled: C[i] = t[i]

Sums that a loop keeps in memory double the time of a convolution. A schedule has cache_write for
this; the pass is for schedules without it. Prefetches of the loops stay where they are.

Move conditions out of the loops that do not change them.

Expand calls of intrinsics whose loops are guarded: an intrinsic runs all iterations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright import expr
from tensorwright.base import CpuTarget, Target
from tensorwright.expr import condition_sides as sides_of
from tensorwright.loop import ir, traversal
from tensorwright.schedule import ForKind, Scope

_GRID_REGISTER_BYTES = 128 * 4  # half of what a thread of a graphics processor may have
_WRITTEN_OUT = (ForKind.UNROLLED, ForKind.VECTOR)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Loops and branches inside each other around one store, outermost first.

    whole   the outermost, with what is prefetched in it
    """

    heads: tuple[ir.For | ir.If, ...]
    store: ir.Store
    whole: ir.Stmt


def promote_accumulators(program: ir.LoopProgram, target: Target) -> ir.LoopProgram:
    """Rewrite every nest that adds to elements which do not move with its outermost loop."""
    body = _promote_in(program.body, target, traversal.Namer(program), frozenset())
    return program if body is program.body else replace(program, body=body)


def _promote_in(
    statement: ir.Stmt, target: Target, namer: traversal.Namer, lanes: frozenset[expr.Var]
) -> ir.Stmt:
    """The statement with its nests rewritten; `lanes` are the variables of vectors around it."""
    if isinstance(statement, ir.For):
        chain = _chain_of(statement)
        # lanes that add to one element fold what they add first: they have no element of their own
        if chain is not None and lanes <= expr.free_vars(*chain.store.indices):
            promoted = _promoted(chain, target, namer)
            if promoted is not None:
                return promoted
        if statement.kind is ForKind.VECTOR:
            lanes |= {statement.var}
    return traversal.map_children(lambda part: _promote_in(part, target, namer, lanes), statement)


def _chain_of(statement: ir.Stmt) -> _Chain | None:
    heads: list[ir.For | ir.If] = []
    whole = statement
    while isinstance(statement, (ir.For, ir.If, ir.Block)):
        if isinstance(statement, ir.Block):
            computing = [part for part in statement.statements if not _only_prefetches(part)]
            if len(computing) != 1:
                return None
            statement = computing[0]
            continue
        heads.append(statement)
        statement = statement.body if isinstance(statement, ir.For) else statement.then
    return _Chain(tuple(heads), statement, whole) if isinstance(statement, ir.Store) else None


def _only_prefetches(statement: ir.Stmt) -> bool:
    if isinstance(statement, ir.For):
        return _only_prefetches(statement.body)
    return isinstance(statement, ir.Prefetch)


def _promoted(chain: _Chain, target: Target, namer: traversal.Namer) -> ir.Stmt | None:
    """The rewritten nest, or None if the rewrite would be wrong or useless."""
    store, first = chain.store, chain.heads[0]
    index_vars = expr.free_vars(*store.indices)
    loops = [head for head in chain.heads if isinstance(head, ir.For)]
    tile = [loop for loop in loops if loop.var in index_vars]
    outer = [loop for loop in loops if loop.var not in index_vars]
    if not (isinstance(first, ir.For) and first in outer and first.extent != 1):
        return None
    if not _is_update(store) or not _is_one_to_one(store.indices, {loop.var for loop in tile}):
        return None
    if any(loop.kind not in _WRITTEN_OUT for loop in tile):
        return None
    if any(loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED) for loop in outer):
        return None
    moving = {loop.var for loop in outer}
    guards = [head for head in chain.heads if isinstance(head, ir.If)]
    if any(expr.free_vars(*expr.condition_sides(guard.condition)) & moving for guard in guards):
        return None
    size = _size(store.buffer, tuple(loop.extent for loop in tile))
    registers = _GRID_REGISTER_BYTES
    if isinstance(target, CpuTarget):
        registers = target.vector_registers * target.vector_bytes
    if size > registers or any(loop.extent == 0 for loop in loops):
        return None
    if store.buffer.scope is Scope.LOCAL and _size(store.buffer, store.buffer.shape) <= registers:
        return None  # registers hold it already
    return _rewritten(chain, tile, outer, namer)


def _size(buffer: ir.Buffer, shape: tuple[expr.Index, ...]) -> int:
    """The size of a part of a buffer in bytes."""
    size = buffer.dtype.size_bytes
    for extent in shape:
        size *= extent if isinstance(extent, int) else 1 << 30
    return size


def _rewritten(
    chain: _Chain, tile: list[ir.For], outer: list[ir.For], namer: traversal.Namer
) -> ir.Stmt | None:
    store = chain.store
    shape = tuple(loop.extent for loop in tile)
    kept = ir.Buffer(
        namer.free(f"{store.buffer.name}.kept"), shape, store.buffer.dtype, Scope.LOCAL
    )
    at = tuple(loop.var for loop in tile)
    still = [head for head in chain.heads if head not in outer]
    value = expr.map_loads(
        store.value, lambda load: expr.Load(kept, at) if load.source == store.buffer else load
    )
    if any(load.source.name == store.buffer.name for load in expr.loads_of(value)):
        return None  # an index depends on the buffer
    body = ir.block(
        traversal.nest_in(still, ir.Store(kept, at, expr.Load(store.buffer, store.indices))),
        _with_store(chain.whole, ir.Store(kept, at, value)),
        traversal.nest_in(still, ir.Store(store.buffer, store.indices, expr.Load(kept, at))),
    )
    return ir.Allocate(kept, body)


def _with_store(statement: ir.Stmt, store: ir.Store) -> ir.Stmt:
    """A statement with another store instead of the only one in it."""
    if isinstance(statement, ir.Store):
        return store
    return traversal.map_children(lambda part: _with_store(part, store), statement)


def _is_update(store: ir.Store) -> bool:
    """Whether the value reads the buffer, only where it is stored, and no index depends on it."""
    name = store.buffer.name
    loads = [load for load in expr.loads_of(store.value) if load.source.name == name]
    if not loads or any(load.indices != store.indices for load in loads):
        return False
    atoms = (atom for index in store.indices for atom in expr.atoms_of(index))
    return not any(isinstance(atom, expr.Element) and atom.source.name == name for atom in atoms)


def _is_one_to_one(indices: tuple[expr.Index, ...], tile: set[expr.Var]) -> bool:
    """Whether the variables of the tile move different dimensions, each by a step."""
    seen: set[expr.Var] = set()
    for index in indices:
        here = expr.free_vars(index) & tile
        if len(here) > 1 or here & seen:
            return False
        seen |= here
        plain = {monomial[0] for monomial, _ in expr.terms_of(index) if len(monomial) == 1}
        mentions = [
            monomial for monomial, _ in expr.terms_of(index) if expr.free_vars(*monomial) & here
        ]
        if here and not (len(mentions) == 1 and here <= plain):
            return False
    return seen == tile


_HOST_KINDS = frozenset(
    (ForKind.SERIAL, ForKind.UNROLLED, ForKind.VECTOR, ForKind.PARALLEL)
)  # loops over blocks and threads cannot be skipped
_COPIED_KINDS = _HOST_KINDS - {ForKind.PARALLEL}  # a parallel loop is not divided


def hoist_conditions(program: ir.LoopProgram) -> ir.LoopProgram:
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
    return ir.LoopProgram(
        program.name, program.parameters, _hoist(program.body, traversal.Namer(program))
    )


def _hoist(statement: ir.Stmt, namer: traversal.Namer) -> ir.Stmt:
    moved = traversal.map_children(lambda child: _hoist(child, namer), statement)
    match moved:
        case ir.Block(statements):
            return _merge(statements)
        case ir.For(body=ir.If(condition, then)) | ir.Allocate(_, ir.If(condition, then)) if (
            isinstance(moved, ir.Allocate) or moved.kind in _HOST_KINDS
        ):
            own = {moved.var} if isinstance(moved, ir.For) else set()
            parts = expr.conjuncts(condition)
            out = [p for p in parts if _is_pure(p) and not own & expr.free_vars(*sides_of(p))]
            inside = _guarded(expr.all_of(*(part for part in parts if part not in out)), then)
            return _guarded(expr.all_of(*out), replace(moved, body=inside))
        case ir.For(var, _, kind, ir.Block((ir.If() as one, ir.If() as other))) if (
            kind in _COPIED_KINDS
        ):
            asked = one.condition  # always exactly one of the two holds, whatever the variable is
            is_choice = other.condition == expr.negate(asked) or asked == expr.negate(
                other.condition
            )
            if not is_choice or not _is_pure(asked) or var in expr.free_vars(*sides_of(asked)):
                return moved
            copy = traversal.freshen(replace(moved, body=other.then), namer)
            return ir.block(
                ir.If(one.condition, replace(moved, body=one.then)), ir.If(other.condition, copy)
            )
        case ir.Call(intrinsic, windows, ir.If(condition, then)) if _is_pure(condition):
            return ir.If(condition, ir.Call(intrinsic, windows, then))
        case ir.If(outer, ir.If(condition, then)) if _is_pure(condition):
            return ir.If(expr.all_of(outer, condition), then)
        case _:
            return moved


def _is_pure(condition: expr.Condition) -> bool:
    return not traversal.reads_memory(*sides_of(condition))


def _guarded(condition: expr.Condition, statement: ir.Stmt) -> ir.Stmt:
    return statement if condition is True else ir.If(condition, statement)


def _merge(statements: tuple[ir.Stmt, ...]) -> ir.Stmt:
    """Join neighbours under the same condition."""
    merged: list[ir.Stmt] = []
    for statement in statements:
        last = merged[-1] if merged else None
        if (
            isinstance(statement, ir.If)
            and isinstance(last, ir.If)
            and last.condition == statement.condition
            and _is_pure(statement.condition)
        ):
            merged[-1] = ir.If(last.condition, ir.block(last.then, statement.then))
        else:
            merged.append(statement)
    return ir.block(*merged)


def expand_guarded_calls(program: ir.LoopProgram) -> ir.LoopProgram:
    """Run the loops that a call stands for where a condition leaves some of them out.

    Rewrite:  intrinsic(&C, &A, &B), which means: for r in 0..2: if i + r < n: S
                  ->  for r in 0..2: if i + r < n: S
    Conditions that no loop of the call changes have been moved around it before.
    """
    return ir.LoopProgram(program.name, program.parameters, _expand(program.body))


def _expand(statement: ir.Stmt) -> ir.Stmt:
    if isinstance(statement, ir.Call):
        is_guarded = any(isinstance(part, ir.If) for part in traversal.walk(statement.meaning))
        return statement.meaning if is_guarded else statement
    return traversal.map_children(_expand, statement)
