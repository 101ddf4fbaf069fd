"""Keep accumulators in registers while the loops run that add to them.

    for k: for i unrolled: C[i] = f(C[i], k, i)    ->    local t: for i unrolled: t[i] = C[i]
                                                         for k: for i unrolled: t[i] = f(t[i], k, i)
                                                         for i unrolled: C[i] = t[i]

Sums that a loop keeps in memory double the time of a convolution. A schedule has cache_write for
this; the pass is for schedules without it. Prefetches of the loops stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.base import CpuTarget, Target
from tensorwright.expr import (
    Element,
    Index,
    Load,
    Var,
    atoms_of,
    condition_sides,
    free_vars,
    loads_of,
    map_loads,
    terms_of,
)
from tensorwright.loop.ir import (
    Allocate,
    Block,
    Buffer,
    For,
    If,
    LoopProgram,
    Prefetch,
    Stmt,
    Store,
    block,
)
from tensorwright.loop.traversal import Namer, map_children, nest_in
from tensorwright.schedule import ForKind, Scope

_GRID_REGISTER_BYTES = 128 * 4  # half of what a thread of a graphics processor may have
_WRITTEN_OUT = (ForKind.UNROLLED, ForKind.VECTOR)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Loops and branches inside each other around one store, outermost first.

    whole   the outermost, with what is prefetched in it
    """

    heads: tuple[For | If, ...]
    store: Store
    whole: Stmt


def promote_accumulators(program: LoopProgram, target: Target) -> LoopProgram:
    """Rewrite every nest that adds to elements which do not move with its outermost loop."""
    body = _promote_in(program.body, target, Namer(program), frozenset())
    return program if body is program.body else replace(program, body=body)


def _promote_in(statement: Stmt, target: Target, namer: Namer, lanes: frozenset[Var]) -> Stmt:
    """The statement with its nests rewritten; `lanes` are the variables of vectors around it."""
    if isinstance(statement, For):
        chain = _chain_of(statement)
        # lanes that add to one element fold what they add first: they have no element of their own
        if chain is not None and lanes <= free_vars(*chain.store.indices):
            promoted = _promoted(chain, target, namer)
            if promoted is not None:
                return promoted
        if statement.kind is ForKind.VECTOR:
            lanes |= {statement.var}
    return map_children(lambda part: _promote_in(part, target, namer, lanes), statement)


def _chain_of(statement: Stmt) -> _Chain | None:
    heads: list[For | If] = []
    whole = statement
    while isinstance(statement, (For, If, Block)):
        if isinstance(statement, Block):
            computing = [part for part in statement.statements if not _only_prefetches(part)]
            if len(computing) != 1:
                return None
            statement = computing[0]
            continue
        heads.append(statement)
        statement = statement.body if isinstance(statement, For) else statement.then
    return _Chain(tuple(heads), statement, whole) if isinstance(statement, Store) else None


def _only_prefetches(statement: Stmt) -> bool:
    if isinstance(statement, For):
        return _only_prefetches(statement.body)
    return isinstance(statement, Prefetch)


def _promoted(chain: _Chain, target: Target, namer: Namer) -> Stmt | None:
    """The rewritten nest, or None if the rewrite would be wrong or useless."""
    store, first = chain.store, chain.heads[0]
    index_vars = free_vars(*store.indices)
    loops = [head for head in chain.heads if isinstance(head, For)]
    tile = [loop for loop in loops if loop.var in index_vars]
    outer = [loop for loop in loops if loop.var not in index_vars]
    if not (isinstance(first, For) and first in outer and first.extent != 1):
        return None
    if not _is_update(store) or not _is_one_to_one(store.indices, {loop.var for loop in tile}):
        return None
    if any(loop.kind not in _WRITTEN_OUT for loop in tile):
        return None
    if any(loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED) for loop in outer):
        return None
    moving = {loop.var for loop in outer}
    guards = [head for head in chain.heads if isinstance(head, If)]
    if any(free_vars(*condition_sides(guard.condition)) & moving for guard in guards):
        return None
    size = _size(store.buffer, tuple(loop.extent for loop in tile))
    registers = _register_bytes(target)
    if size > registers or any(loop.extent == 0 for loop in loops):
        return None
    if store.buffer.scope is Scope.LOCAL and _size(store.buffer, store.buffer.shape) <= registers:
        return None  # registers hold it already
    return _rewritten(chain, tile, outer, namer)


def _register_bytes(target: Target) -> int:
    """The bytes of the registers of a thread."""
    if isinstance(target, CpuTarget):
        return target.vector_registers * target.vector_bytes
    return _GRID_REGISTER_BYTES


def _size(buffer: Buffer, shape: tuple[Index, ...]) -> int:
    """The size of a part of a buffer in bytes."""
    size = buffer.dtype.size_bytes
    for extent in shape:
        size *= extent if isinstance(extent, int) else 1 << 30
    return size


def _rewritten(chain: _Chain, tile: list[For], outer: list[For], namer: Namer) -> Stmt | None:
    store = chain.store
    shape = tuple(loop.extent for loop in tile)
    kept = Buffer(namer.free(f"{store.buffer.name}.kept"), shape, store.buffer.dtype, Scope.LOCAL)
    at = tuple(loop.var for loop in tile)
    still = [head for head in chain.heads if head not in outer]
    value = map_loads(
        store.value, lambda load: Load(kept, at) if load.source == store.buffer else load
    )
    if any(load.source.name == store.buffer.name for load in loads_of(value)):
        return None  # an index depends on the buffer
    body = block(
        nest_in(still, Store(kept, at, Load(store.buffer, store.indices))),
        _with_store(chain.whole, Store(kept, at, value)),
        nest_in(still, Store(store.buffer, store.indices, Load(kept, at))),
    )
    return Allocate(kept, body)


def _with_store(statement: Stmt, store: Store) -> Stmt:
    """A statement with another store instead of the only one in it."""
    if isinstance(statement, Store):
        return store
    return map_children(lambda part: _with_store(part, store), statement)


def _is_update(store: Store) -> bool:
    """Whether the value reads the buffer, only where it is stored, and no index depends on it."""
    name = store.buffer.name
    loads = [load for load in loads_of(store.value) if load.source.name == name]
    if not loads or any(load.indices != store.indices for load in loads):
        return False
    atoms = (atom for index in store.indices for atom in atoms_of(index))
    return not any(isinstance(atom, Element) and atom.source.name == name for atom in atoms)


def _is_one_to_one(indices: tuple[Index, ...], tile: set[Var]) -> bool:
    """Whether the variables of the tile move different dimensions, each by a step."""
    seen: set[Var] = set()
    for index in indices:
        here = free_vars(index) & tile
        if len(here) > 1 or here & seen:
            return False
        seen |= here
        plain = {monomial[0] for monomial, _ in terms_of(index) if len(monomial) == 1}
        mentions = [monomial for monomial, _ in terms_of(index) if free_vars(*monomial) & here]
        if here and not (len(mentions) == 1 and here <= plain):
            return False
    return seen == tile
