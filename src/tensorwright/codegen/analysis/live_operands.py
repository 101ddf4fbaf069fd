"""How many operands stay in registers while an unrolled fold into a register tile runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeAlias

from tensorwright.codegen.analysis.facts import Facts
from tensorwright.codegen.analysis.indices import flat_index
from tensorwright.expr import Index, IndexExpr, Load, Var, free_vars, loads_of, terms_of
from tensorwright.loop import Block, Buffer, For, Prefetch, Stmt, Store, folded_operand
from tensorwright.schedule import ForKind, Scope

_MOST_COPIES = 1 << 10  # statements that are examined

_Address: TypeAlias = tuple[str, object, int]  # buffer, the fixed part, position
_Access: TypeAlias = tuple[
    str, tuple[tuple[int, Var], ...], tuple[tuple[int, tuple[IndexExpr, ...], tuple[Var, ...]], ...]
]
"""A buffer, the variables that move an access with their strides, and its other terms."""
_Accesses: TypeAlias = tuple[_Access, ...]
_Step: TypeAlias = tuple[_Address, list[_Address]]  # the sum, the operands


def keeps_steps_apart(loop: For, facts: Facts) -> bool:
    """Whether each step of an unrolled fold must load its operands again.

    A window that slides along an image reads most of its elements again in the next step. A
    compiler that sees all the steps at once keeps these elements in registers. If registers run
    out, it moves the sums to memory and back at every step: each then waits for a store, and the
    loop takes 2.6 times as long.

    True if the sums of the tile and the elements that wait do not fit into the registers, and fewer
    wait within one step. A compiler does not move sums to memory that need less than half of the
    registers.
    """
    if facts.kind(loop) is not ForKind.UNROLLED or facts.copies(loop) > _MOST_COPIES:
        return False
    if not _is_fold(loop.body, loop.var):
        return False
    steps = list(_steps(loop, facts))
    sums = len({address for address, _ in steps})
    waiting = _most_waiting(steps)
    registers = facts.target.vector_registers
    if not registers // 2 < sums <= registers or sums + waiting < registers:
        return False
    own = steps[: len(steps) // facts.extent(loop)]
    return _most_waiting(own) < waiting


def reads_by_lane(loop: For, facts: Facts) -> bool:
    """Whether spread elements are taken from vectors along an unrolled loop.

    The loop is that of the steps of a fold, or of the rows of a tile. True if multiply-adds take
    any lane of a register, and if those vectors fit beside the sums of the tile and the vectors of
    its columns.
    """
    if not facts.target.multiplies_by_lane or facts.kind(loop) is not ForKind.UNROLLED:
        return False
    if facts.copies(loop) > _MOST_COPIES or not _is_fold(loop.body):
        return False
    steps = list(_steps(loop, facts))
    sums = {address for address, _ in steps}
    own = steps[: len(steps) // facts.extent(loop)]
    operands = {address for _, read in own for address in read}
    return len(sums) + len(operands) <= facts.target.vector_registers


def _is_fold(statement: Stmt, var: Var | None = None) -> bool:
    """Whether loops without a condition fold into sums in registers that do not move with `var`."""
    match statement:
        case Store(buffer, indices):
            is_local = buffer.scope is Scope.LOCAL and folded_operand(statement) is not None
            return is_local and var not in free_vars(*indices)
        case Block(parts):
            folds = [part for part in parts if not isinstance(part, Prefetch)]
            return bool(folds) and all(_is_fold(part, var) for part in folds)
        case For(_, _, kind, body):
            return kind in (ForKind.UNROLLED, ForKind.VECTOR) and _is_fold(body, var)
    return False


def _steps(loop: For, facts: Facts) -> Iterator[_Step]:
    """Every fold of one vector, in the order of the code."""
    return _steps_of(loop, facts, {}, {})


def _steps_of(
    statement: Stmt, facts: Facts, at: dict[Var, int], cached: dict[int, _Accesses]
) -> Iterator[_Step]:
    """The folds; `at` has the variables of unrolled loops, `cached` the accesses of stores."""
    match statement:
        case Store():
            accesses = cached.get(id(statement))
            if accesses is None:
                accesses = cached[id(statement)] = _accesses(statement, at)
            stored, *read = [_address(access, at) for access in accesses]
            yield stored, read
        case Block(parts):
            for part in parts:
                yield from _steps_of(part, facts, at, cached)
        case For(var, _, _, body):
            for position in _positions(statement, facts):
                yield from _steps_of(body, facts, {**at, var: position}, cached)


def _positions(loop: For, facts: Facts) -> list[int]:
    """The values of the loop variable in the copies of the body; for vectors, of the first lane."""
    if facts.kind(loop) is not ForKind.VECTOR:
        return list(range(facts.extent(loop)))
    chunks = facts.chunks(loop)
    whole = [number * chunks.width for number in range(chunks.count)]
    return whole + [start for start, _, _ in chunks.rests]


def _accesses(store: Store, at: Collection[Var]) -> _Accesses:
    """The access that a fold stores to, then those it loads, inside loops over some variables."""
    folded = folded_operand(store)
    assert folded is not None
    loads: tuple[Load, ...] = tuple(loads_of(folded[1]))
    reads = [_access(load.source, load.indices, at) for load in loads]
    return _access(store.buffer, store.indices, at), *reads


def _access(buffer: Buffer, indices: tuple[Index, ...], at: Collection[Var]) -> _Access:
    moves: list[tuple[int, Var]] = []
    others: list[tuple[int, tuple[IndexExpr, ...], tuple[Var, ...]]] = []
    for monomial, coefficient in terms_of(flat_index(buffer, indices)):
        if len(monomial) == 1 and isinstance(monomial[0], Var) and monomial[0] in at:
            moves.append((coefficient, monomial[0]))
        else:
            moving = (var for var in sorted(free_vars(*monomial), key=str) if var in at)
            others.append((coefficient, monomial, tuple(moving)))
    return buffer.name, tuple(moves), tuple(others)


def _address(access: _Access, at: dict[Var, int]) -> _Address:
    """An element: the part that unrolled loops do not move, and how far they move it."""
    buffer, moves, others = access
    position = sum([coefficient * at[var] for coefficient, var in moves])
    fixed = tuple(
        [
            (coefficient, each, tuple([at[var] for var in moving]))
            for coefficient, each, moving in others
        ]
    )
    return buffer, fixed, position


def _most_waiting(steps: list[_Step]) -> int:
    """The most operands at one time that have been used and will be used again."""
    last = {operand: number for number, (_, operands) in enumerate(steps) for operand in operands}
    waiting: set[_Address] = set()
    most = 0
    for number, (_, operands) in enumerate(steps):
        waiting.update(operands)
        waiting -= {operand for operand in operands if last[operand] == number}
        most = max(most, len(waiting))
    return most
