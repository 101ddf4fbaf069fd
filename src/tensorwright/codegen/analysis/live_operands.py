"""How many operands wait in registers while a fold into a register tile is written out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeAlias

from tensorwright.codegen.analysis.facts import Facts
from tensorwright.codegen.analysis.indices import flat_index
from tensorwright.expr import Index, IndexExpr, Load, Var, free_vars, loads_of, terms_of
from tensorwright.loop import Block, Buffer, For, Prefetch, Stmt, Store, folded_operand
from tensorwright.schedule import ForKind, Scope

_MOST_COPIES = 1 << 10  # statements that are looked at

_Place: TypeAlias = tuple[str, object, int]  # buffer, what does not move here, position
_Access: TypeAlias = tuple[
    str, tuple[tuple[int, Var], ...], tuple[tuple[int, tuple[IndexExpr, ...], tuple[Var, ...]], ...]
]
"""A buffer, the variables that move an access with their strides, and its other terms."""
_Accesses: TypeAlias = tuple[_Access, ...]
_Step: TypeAlias = tuple[_Place, list[_Place]]  # the sum, the operands


def keeps_steps_apart(loop: For, facts: Facts) -> bool:
    """Whether each step of a fold that is written out shall load its operands anew.

    A window that slides along an image reads most of its elements again in the next step. A
    compiler that sees all the steps at once keeps those elements in registers, and where these run
    out it is the sums that go to memory and back at every step: each then waits for a store, and
    the loop takes 2.6 times as long.

    True where the sums of the tile and the elements that wait do not fit into the registers, and
    fewer wait within one step. Sums that need less than half of the registers are not what a
    compiler moves to memory.
    """
    if facts.kind(loop) is not ForKind.UNROLLED or facts.copies(loop) > _MOST_COPIES:
        return False
    if not _is_fold(loop.body, loop.var):
        return False
    steps = list(_steps(loop, facts))
    sums = len({place for place, _ in steps})
    waiting = _most_waiting(steps)
    registers = facts.target.vector_registers
    if not registers // 2 < sums <= registers or sums + waiting < registers:
        return False
    own = steps[: len(steps) // facts.extent(loop)]
    return _most_waiting(own) < waiting


def reads_by_lane(loop: For, facts: Facts) -> bool:
    """Whether elements that are spread over lanes shall come from vectors along a written-out loop:
    the steps of a fold, or the rows of a tile.

    True where multiply-adds take any lane of a register, and where those vectors fit beside the
    sums of the tile and the vectors of its columns.
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
    """Whether loops without a condition fold into sums in registers that `var` does not move."""
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
    statement: Stmt, facts: Facts, at: dict[Var, int], known: dict[int, _Accesses]
) -> Iterator[_Step]:
    """`at`: the variables of loops that are written out; `known`: the accesses of stores so far."""
    match statement:
        case Store():
            accesses = known.get(id(statement))
            if accesses is None:
                accesses = known[id(statement)] = _accesses(statement, at)
            stored, *read = [_place(access, at) for access in accesses]
            yield stored, read
        case Block(parts):
            for part in parts:
                yield from _steps_of(part, facts, at, known)
        case For(var, _, _, body):
            for place in _places(statement, facts):
                yield from _steps_of(body, facts, {**at, var: place}, known)


def _places(loop: For, facts: Facts) -> list[int]:
    """What the variable of a loop is in each copy of the body: of its first lane, for vectors."""
    if facts.kind(loop) is not ForKind.VECTOR:
        return list(range(facts.extent(loop)))
    chunks = facts.chunks(loop)
    whole = [number * chunks.width for number in range(chunks.count)]
    return whole + [start for start, _, _ in chunks.rests]


def _accesses(store: Store, at: Collection[Var]) -> _Accesses:
    """What a fold stores to, then what it loads, inside loops over some variables."""
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


def _place(access: _Access, at: dict[Var, int]) -> _Place:
    """A place in memory: what no loop that is written out moves, and how far these move it."""
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
    """How many operands at most have been used and will be used again."""
    last = {place: number for number, (_, operands) in enumerate(steps) for place in operands}
    waiting: set[_Place] = set()
    most = 0
    for number, (_, operands) in enumerate(steps):
        waiting.update(operands)
        waiting -= {place for place in operands if last[place] == number}
        most = max(most, len(waiting))
    return most
