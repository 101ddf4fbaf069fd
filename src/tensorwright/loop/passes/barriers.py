"""Let the threads of a group wait for each other where one needs what another one does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import count
from math import gcd

from tensorwright.expr import (
    Compare,
    Condition,
    Element,
    Index,
    IndexExpr,
    Mod,
    Range,
    Relation,
    Value,
    Var,
    atoms_of,
    condition_sides,
    conjuncts,
    floor_div,
    free_vars,
    has_element,
    interval,
    loads_of,
    of_terms,
    simplify,
    substitute,
    terms_of,
)
from tensorwright.loop.ir import (
    Allocate,
    Barrier,
    Block,
    Buffer,
    Call,
    For,
    If,
    LoopProgram,
    Prefetch,
    Stmt,
    Store,
    block,
)
from tensorwright.loop.traversal import has_barrier, map_children, walk
from tensorwright.schedule import THREADS, ForKind, Scope

_ORDERED = (ForKind.SERIAL, ForKind.UNROLLED)
_MOST_ROUNDS = 4


def place_barriers(program: LoopProgram) -> LoopProgram:
    """Put a barrier in front of each statement that must wait for what other threads did before.

    Rewrite:  for t @thread.x: for k: S[t] = A[k, t]; y[t] += S[n-1 - t]
                  ->  for t @thread.x: for k: barrier; S[t] = A[k, t]; barrier; y[t] += S[n-1 - t]
    Requires: loops over threads are outermost in their group, and what is in them runs in all
              threads alike but for guards of single statements (`lowering/groups.py`).
    Theorem:  two accesses of an element must be ordered if one of them stores it and different
              threads make them.  Those of one statement belong to iterations of a concurrent loop,
              which are valid in any order.  Going through the statements, and through the body of a
              loop once more after itself, a barrier is put where such a pair has none in between; a
              barrier in a loop that only orders what comes before the loop is put before it.  So no
              barrier can be left out alone.
    """
    if not any(isinstance(part, For) and part.kind in THREADS for part in walk(program.body)):
        return program
    return replace(program, body=_place_in(program.body))


def _place_in(statement: Stmt) -> Stmt:
    threads: list[For] = []
    body = statement
    while isinstance(body, For) and body.kind in THREADS:
        threads.append(body)
        body = body.body
    if not threads:
        return map_children(_place_in, statement)
    body = _Placement(threads, body).result
    for loop in reversed(threads):
        body = replace(loop, body=body)
    return body


@dataclass(frozen=True, slots=True)
class _Access:
    """One load or store of a buffer that threads see together.

    only    indices of threads that a guard fixes, and their values
    last    variables of loops that it has of the iteration before
    """

    buffer: Buffer
    indices: tuple[Index, ...]
    is_store: bool
    only: frozenset[tuple[Var, int]]
    last: frozenset[Var] = frozenset()


_Pending = tuple[_Access, ...]
"""What has been accessed since the last barrier."""


@dataclass(slots=True)
class _Result:
    """A statement with barriers, and what is pending behind it."""

    statement: Stmt
    pending: _Pending


@dataclass(slots=True)
class _Placement:
    """One group of threads; mutable: names of variables and their ranges."""

    threads: list[For]
    body: Stmt
    bounds: dict[Var, Range] = field(default_factory=dict)
    moving: set[Var] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def result(self) -> Stmt:
        """The body with its barriers."""
        for loop in self.threads:
            self.bounds[loop.var] = Range.of_extent(loop.extent)
        return self._place(self.body, ()).statement

    @property
    def _indices(self) -> tuple[Var, ...]:
        return tuple(loop.var for loop in self.threads)

    def _place(self, statement: Stmt, before: _Pending) -> _Result:
        match statement:
            case Block(statements):
                placed: list[Stmt] = []
                for part in statements:
                    result = self._place(part, before)
                    placed.append(result.statement)
                    before = result.pending
                return _Result(block(*placed), before)
            case Allocate(buffer, body):
                result = self._place(body, before)
                return _Result(Allocate(buffer, result.statement), result.pending)
            case For(_, _, kind, _) if kind in _ORDERED:
                return self._loop(statement, before)
            case _:
                made = tuple(self._accesses(statement, frozenset()))
                if any(self._must_wait(old, new) for old in before for new in made):
                    return _Result(block(Barrier(), statement), made)
                return _Result(statement, tuple(dict.fromkeys((*before, *made))))

    def _loop(self, loop: For, before: _Pending) -> _Result:
        """A loop: its body also waits for what its last iteration did."""
        self.bounds[loop.var] = Range.of_extent(loop.extent)
        made = self._renamed(tuple(self._accesses(loop.body, frozenset())), loop.var)
        is_met = any(self._must_wait(old, new) for old in before for new in made)
        if not any(self._must_wait(old, new) for old in made for new in made):
            if is_met:
                return _Result(block(Barrier(), loop), made)
            return _Result(loop, tuple(dict.fromkeys((*before, *made))))
        result = self._repeated(loop, ())
        result.statement = replace(loop, body=result.statement)
        result.pending = self._renamed(result.pending, loop.var)
        if is_met:
            met = self._repeated(loop, before)
            met.statement = replace(loop, body=met.statement)
            if _barriers(met.statement) > _barriers(result.statement):
                result.statement = block(Barrier(), result.statement)
            else:
                met.pending = self._renamed(met.pending, loop.var)
                return met
        elif not has_barrier(result.statement):
            result.pending = tuple(dict.fromkeys((*before, *result.pending)))
        return result

    def _repeated(self, loop: For, before: _Pending) -> _Result:
        """The body with the barriers that it needs after `before` and after itself.

        Theorem: what is pending at the end of a body with a barrier comes from this iteration, and
        no later than the first barrier of the next one; without one, from any iteration.
        """
        result = self._place(loop.body, before)
        for _ in range(_MOST_ROUNDS):
            last = result.pending
            again = self._place(loop.body, (*before, *self._of_last(last, loop.var)))
            if not has_barrier(again.statement):
                again = self._place(loop.body, (*before, *self._renamed(last, loop.var)))
            is_same = again.statement == result.statement
            result = again
            if is_same:
                break
        return result

    def _of_last(self, accesses: _Pending, var: Var) -> _Pending:
        """Accesses as those of the iteration before."""
        return tuple(replace(access, last=access.last | {var}) for access in accesses)

    def _renamed(self, accesses: _Pending, var: Var) -> _Pending:
        """Accesses of any iteration of a loop, seen from outside of it or from another one."""
        name = Var(f"{var}'{next(self.numbers)}")
        self.bounds[name] = self.bounds[var]
        self.moving.add(name)
        return tuple(dict.fromkeys(_replaced(access, {var: name}) for access in accesses))

    # what a statement touches

    def _accesses(self, statement: Stmt, only: frozenset[tuple[Var, int]]) -> Iterator[_Access]:
        match statement:
            case For(var, extent, _, body):
                self.bounds[var] = Range.of_extent(extent)
                self.moving.add(var)
                yield from self._reads(extent, only)
                yield from self._accesses(body, only)
            case If(condition, then):
                mine = only | frozenset(self._fixed(condition))
                for side in condition_sides(condition):
                    yield from self._reads(side, mine)
                yield from self._accesses(then, mine)
            case Store(buffer, indices, value):
                if buffer.scope is not Scope.LOCAL:
                    yield _Access(buffer, indices, True, only)
                for index in indices:
                    yield from self._reads(index, only)
                yield from self._loads(value, only)
            case Call(_, _, body) | Allocate(_, body):
                yield from self._accesses(body, only)
            case Block(statements):
                for part in statements:
                    yield from self._accesses(part, only)
            case Prefetch() | Barrier():
                return

    def _loads(self, value: Value, only: frozenset[tuple[Var, int]]) -> Iterator[_Access]:
        for load in loads_of(value):
            source = load.source
            if isinstance(source, Buffer) and source.scope is not Scope.LOCAL:
                yield _Access(source, load.indices, False, only)
            for index in load.indices:
                yield from self._reads(index, only)

    def _reads(self, index: Index, only: frozenset[tuple[Var, int]]) -> Iterator[_Access]:
        for atom in atoms_of(index):
            if isinstance(atom, Element) and isinstance(atom.source, Buffer):
                if atom.source.scope is not Scope.LOCAL:
                    yield _Access(atom.source, atom.indices, False, only)

    def _fixed(self, condition: Condition) -> Iterator[tuple[Var, int]]:
        for part in conjuncts(condition):
            if isinstance(part, Compare) and part.relation is Relation.EQ:
                if part.left in self._indices and isinstance(part.right, int):
                    assert isinstance(part.left, Var), "the index of a thread is a variable"
                    yield part.left, part.right

    # whether two accesses are made by one thread

    def _must_wait(self, old: _Access, new: _Access) -> bool:
        if old.buffer != new.buffer or not (old.is_store or new.is_store):
            return False
        before: dict[Var, Index] = {var: var - 1 for var in old.last}
        same: set[Index] = {var for var, _ in old.only & new.only}
        for one, other in zip(old.indices, new.indices, strict=True):
            moved = substitute(one, before)
            if self._differ(moved, other):
                return False
            same.update(self._same_digits(moved, other, self.moving))
            same.update(self._same_digits(one, other, set(self.bounds)))
        return not all(_is_determined(var, same) for var in self._indices)

    def _differ(self, one: Index, other: Index) -> bool:
        """Whether two indices, of any two threads, are never the same number."""
        if has_element(one) or has_element(other):
            return False
        own = free_vars(one) & self.moving.union(self._indices)
        names: dict[Var, Index] = {var: Var(f"{var}''") for var in own}
        apart = {Var(f"{var}''"): self.bounds[var] for var in own}
        moved = substitute(one, names)
        bounds = {**self.bounds, **apart}
        if isinstance(moved, Mod) and isinstance(other, Mod) and moved.divisor == other.divisor:
            step, divisor = moved.dividend - other.dividend, moved.divisor
            return isinstance(step, int) and isinstance(divisor, int) and step % divisor != 0
        difference = simplify(moved - other, bounds)
        moving = {var: bounds[var] for var in free_vars(difference) if var in bounds}
        reach = interval(difference, moving)
        if reach is None:
            return False
        low, high = reach.low, reach.high
        return (isinstance(low, int) and low > 0) or (isinstance(high, int) and high < 0)

    def _same_digits(self, one: Index, other: Index, moving: Set[Var]) -> Iterator[Index]:
        """What depends on the thread alone and is the same where two indices are."""
        first, second = (self._digits(index, moving) for index in (one, other))
        if first is None or second is None:
            return
        if (first.fixed, first.low) != (second.fixed, second.low):
            return
        for digit, below in first.digits.items():
            if digit in second.digits:
                repeated = gcd(below.repeated, second.digits[digit].repeated)
                width = max(below.width, second.digits[digit].width)
                if repeated == 0 or width <= repeated:
                    yield digit[1]

    def _digits(self, index: Index, moving: Set[Var]) -> _Digits | None:
        """The digits of an index that depend on the thread alone; None where it has another form.

        moving   variables that need not be the same for two threads
        """
        threads = set(self._indices)
        fixed: list[tuple[tuple[IndexExpr, ...], int]] = []
        parts: list[tuple[int, Index, bool, int]] = []
        low = 0
        for monomial, coefficient in terms_of(index):
            names = free_vars(*monomial)
            if any(map(has_element, monomial)):
                return None
            if not names & (threads | moving):
                fixed.append((monomial, coefficient))
                continue
            is_of_thread = bool(names & threads)
            if is_of_thread and (len(monomial) != 1 or not names <= threads):
                return None
            atom = of_terms(((monomial, 1),))
            reach = interval(atom, self.bounds)
            if reach is None or not isinstance(reach.low, int) or not isinstance(reach.high, int):
                return None
            low += min(coefficient * reach.low, coefficient * reach.high)
            is_digit = is_of_thread and coefficient > 0 and reach.low == 0
            parts.append((abs(coefficient), atom, is_digit, reach.high - reach.low))
        return _Digits.of(of_terms(fixed), low, parts)


@dataclass(frozen=True, slots=True)
class _Weight:
    """What is below a digit, with it: 0..width-1; what is above is a multiple of `repeated`."""

    width: int
    repeated: int


@dataclass(frozen=True, slots=True)
class _Digits:
    """fixed + low + sum of weight * digit; (weight, digit) of those that can be told.

    Theorem: a digit with weight w, below which all is less than w, is the number modulo r divided
    by w, if all above is a multiple of r and the digit with what is below it is less than r.
    """

    fixed: Index
    low: int
    digits: Mapping[tuple[int, Index], _Weight]

    @classmethod
    def of(cls, fixed: Index, low: int, parts: list[tuple[int, Index, bool, int]]) -> _Digits:
        """From (weight, digit, whether it depends on the thread alone, its greatest value)."""
        digits: dict[tuple[int, Index], _Weight] = {}
        parts = sorted(parts, key=lambda part: (part[0], part[2]))
        width = 1
        for n, (weight, digit, is_digit, most) in enumerate(parts):
            fits = weight >= width
            width += weight * most
            repeated = gcd(*(part[0] for part in parts[n + 1 :]))
            if is_digit and fits and (repeated == 0 or width <= repeated):
                digits[weight, digit] = _Weight(width, repeated)
        return cls(fixed, low, digits)


def _is_determined(number: Index, same: Set[Index]) -> bool:
    """Whether two values of a number are the same if those of some expressions of it are.

    Theorem: a number is told by its quotient and its rest.
    """
    if number in same:
        return True
    for each in same:
        if isinstance(each, Mod) and each.dividend == number:
            if _is_determined(floor_div(number, each.divisor), same):
                return True
    return False


def _replaced(access: _Access, mapping: Mapping[Var, Index]) -> _Access:
    indices = tuple(substitute(index, mapping) for index in access.indices)
    return replace(access, indices=indices, last=access.last.difference(mapping))


def _barriers(statement: Stmt) -> int:
    return sum(isinstance(part, Barrier) for part in walk(statement))
