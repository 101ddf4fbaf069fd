"""Which local buffers live in registers.

How many operands stay in registers while an unrolled fold into a register tile runs.

Partial tiles: unrolled loops whose last iterations are left out by a guard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple, TypeAlias

from tensorwright import expr, loop
from tensorwright.base import DType, multiplies_tiles
from tensorwright.codegen.analysis.facts import Facts
from tensorwright.codegen.analysis.indices import flat_index
from tensorwright.schedule import ForKind, Scope

_MOST_COPIES = 1 << 10  # statements that are examined

_Address: TypeAlias = tuple[str, object, int]  # buffer, the fixed part, position
_Access: TypeAlias = tuple[
    str,
    tuple[tuple[int, expr.Var], ...],
    tuple[tuple[int, tuple[expr.IndexExpr, ...], tuple[expr.Var, ...]], ...],
]
"""A buffer, the variables that move an access with their strides, and its other terms."""
_Accesses: TypeAlias = tuple[_Access, ...]
_Step: TypeAlias = tuple[_Address, list[_Address]]  # the sum, the operands


def keeps_steps_apart(nest: loop.For, facts: Facts) -> bool:
    """Whether each step of an unrolled fold must load its operands again.

    A window that slides along an image reads most of its elements again in the next step. A
    compiler that sees all the steps at once keeps these elements in registers. If registers run
    out, it moves the sums to memory and back at every step: each then waits for a store, and the
    loop takes 2.6 times as long.

    True if the sums of the tile and the elements that wait do not fit into the registers, and fewer
    wait within one step. A compiler does not move sums to memory that need less than half of the
    registers.
    """
    if facts.kind(nest) is not ForKind.UNROLLED or facts.copies(nest) > _MOST_COPIES:
        return False
    if not _is_fold(nest.body, nest.var):
        return False
    steps = list(_steps(nest, facts))
    sums = len({address for address, _ in steps})
    waiting = _most_waiting(steps)
    registers = facts.target.vector_registers
    if not registers // 2 < sums <= registers or sums + waiting < registers:
        return False
    own = steps[: len(steps) // facts.extent(nest)]
    return _most_waiting(own) < waiting


def reads_by_lane(nest: loop.For, facts: Facts) -> bool:
    """Whether spread elements are taken from vectors along an unrolled loop.

    The loop is that of the steps of a fold, or of the rows of a tile. True if multiply-adds take
    any lane of a register, and if those vectors fit beside the sums of the tile and the vectors of
    its columns.
    """
    if not facts.target.multiplies_by_lane or facts.kind(nest) is not ForKind.UNROLLED:
        return False
    if facts.copies(nest) > _MOST_COPIES or not _is_fold(nest.body):
        return False
    steps = list(_steps(nest, facts))
    sums = {address for address, _ in steps}
    own = steps[: len(steps) // facts.extent(nest)]
    operands = {address for _, read in own for address in read}
    return len(sums) + len(operands) <= facts.target.vector_registers


def _is_fold(statement: loop.Stmt, var: expr.Var | None = None) -> bool:
    """Whether loops without a condition fold into sums in registers that do not move with `var`."""
    match statement:
        case loop.Store(buffer, indices):
            is_local = buffer.scope is Scope.LOCAL and loop.folded_operand(statement) is not None
            return is_local and var not in expr.free_vars(*indices)
        case loop.Block(parts):
            folds = [part for part in parts if not isinstance(part, loop.Prefetch)]
            return bool(folds) and all(_is_fold(part, var) for part in folds)
        case loop.For(_, _, kind, body):
            return kind in (ForKind.UNROLLED, ForKind.VECTOR) and _is_fold(body, var)
    return False


def _steps(nest: loop.For, facts: Facts) -> Iterator[_Step]:
    """Every fold of one vector, in the order of the code."""
    return _steps_of(nest, facts, {}, {})


def _steps_of(
    statement: loop.Stmt, facts: Facts, at: dict[expr.Var, int], cached: dict[int, _Accesses]
) -> Iterator[_Step]:
    """The folds; `at` has the variables of unrolled loops, `cached` the accesses of stores."""
    match statement:
        case loop.Store():
            accesses = cached.get(id(statement))
            if accesses is None:
                accesses = cached[id(statement)] = _accesses(statement, at)
            stored, *read = [_address(access, at) for access in accesses]
            yield stored, read
        case loop.Block(parts):
            for part in parts:
                yield from _steps_of(part, facts, at, cached)
        case loop.For(var, _, _, body):
            for position in _positions(statement, facts):
                yield from _steps_of(body, facts, {**at, var: position}, cached)


def _positions(nest: loop.For, facts: Facts) -> list[int]:
    """The values of the loop variable in the copies of the body; for vectors, of the first lane."""
    if facts.kind(nest) is not ForKind.VECTOR:
        return list(range(facts.extent(nest)))
    chunks = facts.chunks(nest)
    whole = [number * chunks.width for number in range(chunks.count)]
    return whole + [start for start, _, _ in chunks.rests]


def _accesses(store: loop.Store, at: Collection[expr.Var]) -> _Accesses:
    """The access that a fold stores to, then those it loads, inside loops over some variables."""
    folded = loop.folded_operand(store)
    assert folded is not None
    loads: tuple[expr.Load, ...] = tuple(expr.loads_of(folded[1]))
    reads = [_access(load.source, load.indices, at) for load in loads]
    return _access(store.buffer, store.indices, at), *reads


def _access(
    buffer: loop.Buffer, indices: tuple[expr.Index, ...], at: Collection[expr.Var]
) -> _Access:
    moves: list[tuple[int, expr.Var]] = []
    others: list[tuple[int, tuple[expr.IndexExpr, ...], tuple[expr.Var, ...]]] = []
    for monomial, coefficient in expr.terms_of(flat_index(buffer, indices)):
        if len(monomial) == 1 and isinstance(monomial[0], expr.Var) and monomial[0] in at:
            moves.append((coefficient, monomial[0]))
        else:
            moving = (var for var in sorted(expr.free_vars(*monomial), key=str) if var in at)
            others.append((coefficient, monomial, tuple(moving)))
    return buffer.name, tuple(moves), tuple(others)


def _address(access: _Access, at: dict[expr.Var, int]) -> _Address:
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


_TILE_BYTES = 8 << 10  # the largest buffer kept in registers: four times their size
_MOST_FORCED = 512  # statements of a serial loop that is unrolled for a tile


class Access(NamedTuple):
    """So many elements from a multiple of `period`; with a loop variable, its whole loop's.

    is_part   they are read, and begin at a multiple of their width: if there are wider vectors, and
              these begin at multiples of theirs, they are a part of one
    """

    width: int
    period: int
    is_part: bool = False


_ONE = Access(1, 1)
_IN_MEMORY = Access(0, 0)  # an access that registers cannot have
_SERIAL = Access(0, 1)  # a variable of a serial loop
_Moves = Mapping[str, Access]  # by the names of variables; those from outside may be absent


def tile_width(
    allocate: loop.Allocate, env: Mapping[str, object], lanes: int, facts: Facts
) -> int | None:
    """The vector width in which a small local buffer lives in registers, or None.

    None unless every access is at an offset that is constant after unrolling, and any two vectors
    accessed are the same or have no element in common. Serial loops that stand in the way are
    unrolled if the buffer fits in the registers. `env` holds an int for the variables around that
    are unrolled; each of the `lanes` around has a buffer of its own.
    """
    fixed = frozenset(name for name, value in env.items() if isinstance(value, int))
    key = id(allocate), lanes, fixed
    if key not in facts.tiles:
        facts.tiles[key] = _find_width(allocate, fixed, lanes, facts)
    return facts.tiles[key]


def _find_width(
    allocate: loop.Allocate, fixed: frozenset[str], lanes: int, facts: Facts
) -> int | None:
    buffer, target = allocate.buffer, facts.target
    size = buffer.dtype.size_bytes * lanes
    for extent in buffer.shape:
        size *= extent if isinstance(extent, int) else _TILE_BYTES + 1
    if buffer.scope is not Scope.LOCAL or size > _TILE_BYTES:
        return None
    search = _Search(buffer, lanes, facts)
    accesses = set(search.accesses(allocate.body, dict.fromkeys(fixed, _ONE)))
    forced = search.needed.values()
    fits = size <= target.vector_registers * target.vector_bytes
    if forced and not (fits and all(_is_short(nest, facts) for nest in forced)):
        return None
    width = _common_width(accesses)
    if width is not None:
        for nest in forced:
            facts.unroll(nest)
    return width


def _is_short(nest: loop.For, facts: Facts) -> bool:
    """Whether a loop may be unrolled for a tile: it is short, with no open loop inside."""
    inside = (each for each in loop.walk(nest.body) if isinstance(each, loop.For))
    return facts.copies(nest) <= _MOST_FORCED and not any(map(facts.is_open, inside))


def _common_width(accesses: set[Access]) -> int | None:
    """The width of all vectors; single elements may be parts of them if there are no rests."""
    parts = {access._replace(is_part=False) for access in accesses if access.is_part}
    vectors = {access for access in accesses if not access.is_part} - {_ONE}
    if not vectors:
        vectors, parts = parts, set()
    if not vectors:
        return 1 if accesses else None
    if len(vectors) > 1 or _IN_MEMORY in vectors:
        return None
    width, period, _ = vector = next(iter(vectors))
    if any(part != vector and (width != period or part.width > width) for part in parts):
        return None
    return width if width == period or _ONE not in accesses else None


@dataclass(frozen=True, slots=True)
class _Search:
    """Finds the accesses of one buffer, and the serial loops that move them."""

    buffer: loop.Buffer
    lanes: int
    facts: Facts
    serial: dict[str, loop.For] = field(default_factory=dict)  # the loop around, by its variable
    needed: dict[int, loop.For] = field(default_factory=dict)  # serial loops that index the buffer

    def accesses(self, statement: loop.Stmt, moves: _Moves) -> Iterator[Access]:
        """Every access inside a statement."""
        match statement:
            case loop.For():
                yield from self._in_loop(statement, moves)
            case loop.Store(target, indices, value):
                if target.name == self.buffer.name:
                    yield self._access(indices, moves)
                yield from self._reads((*expr.loads_of(value), *_elements(indices)), moves)
            case loop.If(condition, then):
                yield from self._reads(_elements(expr.condition_sides(condition)), moves)
                yield from self.accesses(then, moves)
            case loop.Prefetch(target, _):
                if target.name == self.buffer.name:
                    yield _IN_MEMORY
            case loop.Call(name, windows) if multiplies_tiles(name):
                yield from (_IN_MEMORY for each in windows if each.buffer.name == self.buffer.name)
            case loop.Call(name, _, meaning):
                window_lanes = self.facts.intrinsics.get(name)
                if window_lanes is None or self.lanes > 1:
                    yield from self.accesses(meaning, moves)
                else:
                    yield from self._windows(statement, window_lanes, moves)
            case loop.Block() | loop.Allocate() | loop.GroupStatement():
                for part in loop.children_of(statement):
                    yield from self.accesses(part, moves)

    def _in_loop(self, nest: loop.For, moves: _Moves) -> Iterator[Access]:
        name = nest.var.name
        inner = {**moves, name: _IN_MEMORY}
        kind, is_once = self.facts.kind(nest), self.facts.is_once(nest)
        if is_once or kind is ForKind.UNROLLED:
            inner[name] = _ONE
        elif kind is ForKind.SERIAL:
            self.serial[name] = nest
            inner[name] = _SERIAL
        elif kind is ForKind.VECTOR and self.lanes == 1:
            chunks = self.facts.chunks(nest)
            widths = {width for _, width, _ in chunks.rests}
            if chunks.count:
                widths.add(chunks.width)
            if chunks.is_unrolled and len(widths) == 1:
                width = widths.pop()
                inner[name] = Access(width, self.facts.extent(nest) if chunks.rests else width)
        for access in self.accesses(nest.body, inner):
            yield _IN_MEMORY if kind is ForKind.PARALLEL and not is_once else access

    def _reads(self, loads: Iterable[expr.Load], moves: _Moves) -> Iterator[Access]:
        for load in loads:
            if load.source.name == self.buffer.name:
                yield self._access(load.indices, moves, is_read=True)

    def _windows(
        self, call: loop.Call, window_lanes: tuple[int, ...], moves: _Moves
    ) -> Iterator[Access]:
        for window, width in zip(call.windows, window_lanes, strict=True):
            if window.buffer.name == self.buffer.name:
                first = self._access(window.indices, moves, width)
                yield Access(width, width) if first == _ONE else _IN_MEMORY

    def _access(
        self,
        indices: tuple[expr.Index, ...],
        moves: _Moves,
        multiple: int = 1,
        *,
        is_read: bool = False,
    ) -> Access:
        """One access; without a vector variable its offset must be a multiple."""
        step = 0
        vector: Access | None = None
        for monomial, coefficient in expr.terms_of(flat_index(self.buffer, indices)):
            if not monomial:
                step = gcd(step, coefficient)
                continue
            move = None
            if len(monomial) == 1 and isinstance(monomial[0], expr.Var):
                name = monomial[0].name
                move = moves.get(name)
                if move == _SERIAL:
                    self.needed[id(self.serial[name])] = self.serial[name]
                    move = _ONE
            if move is None or move == _IN_MEMORY:
                return _IN_MEMORY
            if move == _ONE:
                step = gcd(step, coefficient)
            elif coefficient != 1 or vector is not None:
                return _IN_MEMORY
            else:
                vector = move
        if vector is None:
            return _IN_MEMORY if step % multiple else Access(self.lanes, self.lanes)
        is_whole = step % vector.period == 0
        if is_read and step % vector.width == 0:
            return Access(vector.width, vector.period if is_whole else 0, is_part=True)
        return vector if is_whole else _IN_MEMORY


def _elements(indices: Iterable[expr.Index]) -> Iterator[expr.Load]:
    for index in indices:
        yield from expr.loads_of(expr.FromIndex(index, DType.I64))


def ends_at_guard(nest: loop.For) -> bool:
    """Whether no iteration does anything after the first one whose guard fails.

        for i in 0..14 @unroll: if t*14 + i < n: S[i]

    Theorem:  a guard g - a*i >= 0 with a > 0 that fails for some i fails for all greater ones, and
              so does a conjunction with conditions that do not depend on i.
    """
    return isinstance(nest.body, loop.If) and all(
        _fails_for_good(part, nest.var) for part in expr.conjuncts(nest.body.condition)
    )


def _fails_for_good(condition: expr.Condition, var: expr.Var) -> bool:
    if var not in expr.free_vars(*expr.condition_sides(condition)):
        return True
    gap = expr.gap_of(condition) if isinstance(condition, expr.Compare) else None
    if gap is None:
        return False
    moving = [
        (atoms, scale) for atoms, scale in expr.terms_of(gap) if var in expr.free_vars(*atoms)
    ]
    return all(atoms == (var,) and scale < 0 for atoms, scale in moving)
