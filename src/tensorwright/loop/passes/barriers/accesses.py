"""What a statement loads and stores of the memory that threads see together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tensorwright.expr import (
    Compare,
    Condition,
    Element,
    Index,
    Load,
    Range,
    Relation,
    Value,
    Var,
    atoms_of,
    condition_sides,
    conjuncts,
    loads_of,
)
from tensorwright.loop.ir import (
    Allocate,
    Block,
    Buffer,
    Call,
    For,
    GroupStatement,
    If,
    Prefetch,
    StartCopy,
    Stmt,
    Store,
)
from tensorwright.schedule import Scope


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store of an element.

    only    indices of threads that a guard fixes, and their values
    last    variables of loops that it has of the iteration before
    """

    buffer: Buffer
    indices: tuple[Index, ...]
    is_store: bool
    only: frozenset[tuple[Var, int]] = frozenset()
    last: frozenset[Var] = frozenset()


@dataclass(slots=True)
class Variables:
    """The variables of a group; mutable.

    threads   the indices of its threads
    bounds    the ranges of all
    moving    those that need not be the same where two accesses are compared
    """

    threads: tuple[Var, ...]
    bounds: dict[Var, Range]
    moving: set[Var] = field(default_factory=set)


def accesses_of(
    statement: Stmt, variables: Variables, only: frozenset[tuple[Var, int]] = frozenset()
) -> Iterator[Access]:
    """All accesses in a statement; the variables of its loops are noted as moving."""
    match statement:
        case For(var, extent, _, body):
            variables.bounds[var] = Range.of_extent(extent)
            variables.moving.add(var)
            yield from _elements(only, extent)
            yield from accesses_of(body, variables, only)
        case If(condition, then):
            mine = only | frozenset(_fixed(condition, variables))
            yield from _elements(mine, *condition_sides(condition))
            yield from accesses_of(then, variables, mine)
        case Store(buffer, indices, value):
            if buffer.scope is not Scope.LOCAL:
                yield Access(buffer, indices, is_store=True, only=only)
            yield from _elements(only, *indices)
            yield from _loads(value, only)
        case Call(_, _, body) | Allocate(_, body):
            yield from accesses_of(body, variables, only)
        case Block(statements):
            for part in statements:
                yield from accesses_of(part, variables, only)
        case StartCopy(store):
            yield from accesses_of(store, variables, only)
        case Prefetch() | GroupStatement():
            return


def _loads(value: Value, only: frozenset[tuple[Var, int]]) -> Iterator[Access]:
    for load in loads_of(value):
        yield from _load(load, only)
        yield from _elements(only, *load.indices)


def _elements(only: frozenset[tuple[Var, int]], *indices: Index) -> Iterator[Access]:
    """The elements that are read as numbers in index expressions."""
    for index in indices:
        for atom in atoms_of(index):
            if isinstance(atom, Element):
                yield from _load(atom, only)


def _load(load: Load | Element, only: frozenset[tuple[Var, int]]) -> Iterator[Access]:
    source = load.source
    if isinstance(source, Buffer) and source.scope is not Scope.LOCAL:
        yield Access(source, load.indices, is_store=False, only=only)


def _fixed(condition: Condition, variables: Variables) -> Iterator[tuple[Var, int]]:
    """The indices of threads that a condition fixes."""
    for part in conjuncts(condition):
        match part:
            case Compare(Relation.EQ, Var() as index, int() as value):
                fixed = value
            case Compare(Relation.LT, Var() as index, 1):
                fixed = 0
            case _:
                continue
        if index in variables.threads:
            yield index, fixed
