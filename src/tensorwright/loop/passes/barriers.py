"""Where the threads of a group wait for each other.

What a statement loads and stores of the memory that threads see together.

Whether two accesses of an element are made by one thread.

An index such as k*64 + t*4 + i, where t is the index of a thread and i < 4, tells the thread: t is
a digit of it.  Of two accesses whose indices have the same digits, those of one element are made by
one thread.

Let the threads of a group wait for each other where one needs what another one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import count
from math import gcd
from typing import TypeAlias

from tensorwright import expr
from tensorwright.loop import ir
from tensorwright.loop.traversal import map_children, walk
from tensorwright.schedule import THREADS, ForKind, Scope


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store of an element.

    only    indices of threads that a guard fixes, and their values
    last    variables of loops that it has of the iteration before
    """

    buffer: ir.Buffer
    indices: tuple[expr.Index, ...]
    is_store: bool
    only: frozenset[tuple[expr.Var, int]] = frozenset()
    last: frozenset[expr.Var] = frozenset()


@dataclass(slots=True)
class Variables:
    """The variables of a group; mutable.

    threads   the indices of its threads
    bounds    the ranges of all
    moving    those that need not be the same where two accesses are compared
    """

    threads: tuple[expr.Var, ...]
    bounds: dict[expr.Var, expr.Range]
    moving: set[expr.Var] = field(default_factory=set)


def accesses_of(
    statement: ir.Stmt, variables: Variables, only: frozenset[tuple[expr.Var, int]] = frozenset()
) -> Iterator[Access]:
    """All accesses in a statement; the variables of its loops are noted as moving."""
    match statement:
        case ir.For(var, extent, _, body):
            variables.bounds[var] = expr.Range.of_extent(extent)
            variables.moving.add(var)
            yield from _elements(only, extent)
            yield from accesses_of(body, variables, only)
        case ir.If(condition, then):
            mine = only | frozenset(_fixed(condition, variables))
            yield from _elements(mine, *expr.condition_sides(condition))
            yield from accesses_of(then, variables, mine)
        case ir.Store(buffer, indices, value):
            if buffer.scope is not Scope.LOCAL:
                yield Access(buffer, indices, is_store=True, only=only)
            yield from _elements(only, *indices)
            yield from _loads(value, only)
        case ir.Call(_, _, body) | ir.Allocate(_, body):
            yield from accesses_of(body, variables, only)
        case ir.Block(statements):
            for part in statements:
                yield from accesses_of(part, variables, only)
        case ir.StartCopy(store):
            yield from accesses_of(store, variables, only)
        case ir.Prefetch() | ir.GroupStatement():
            return


def _loads(value: expr.Value, only: frozenset[tuple[expr.Var, int]]) -> Iterator[Access]:
    for load in expr.loads_of(value):
        yield from _load(load, only)
        yield from _elements(only, *load.indices)


def _elements(only: frozenset[tuple[expr.Var, int]], *indices: expr.Index) -> Iterator[Access]:
    """The elements that are read as numbers in index expressions."""
    for index in indices:
        for atom in expr.atoms_of(index):
            if isinstance(atom, expr.Element):
                yield from _load(atom, only)


def _load(
    load: expr.Load | expr.Element, only: frozenset[tuple[expr.Var, int]]
) -> Iterator[Access]:
    source = load.source
    if isinstance(source, ir.Buffer) and source.scope is not Scope.LOCAL:
        yield Access(source, load.indices, is_store=False, only=only)


def _fixed(condition: expr.Condition, variables: Variables) -> Iterator[tuple[expr.Var, int]]:
    """The indices of threads that a condition fixes."""
    for part in expr.conjuncts(condition):
        match part:
            case expr.Compare(expr.Relation.EQ, expr.Var() as index, int() as value):
                fixed = value
            case expr.Compare(expr.Relation.LT, expr.Var() as index, 1):
                fixed = 0
            case _:
                continue
        if index in variables.threads:
            yield index, fixed


def may_conflict(old: Access, new: Access, variables: Variables) -> bool:
    """Whether two threads may touch one element, and one of them store it."""
    if old.buffer != new.buffer or not (old.is_store or new.is_store):
        return False
    before: dict[expr.Var, expr.Index] = {var: var - 1 for var in old.last}
    same: set[expr.Index] = {var for var, _ in old.only & new.only}
    pairs = zip(_with_number(old, variables), _with_number(new, variables), strict=True)
    for one, other in pairs:
        moved = expr.substitute(one, before)
        if _differ(moved, other, variables):
            return False
        same.update(_same_digits(moved, other, variables, variables.moving))
        same.update(_same_digits(one, other, variables, set(variables.bounds)))
    return not all(_is_told(index, same) for index in variables.threads)


def _with_number(access: Access, variables: Variables) -> tuple[expr.Index, ...]:
    """The indices, and the number of the element: of n//6 and n%6, it is n."""
    if len(access.indices) < 2:
        return access.indices
    number: expr.Index = 0
    for index, extent in zip(access.indices, access.buffer.shape, strict=True):
        number = number * extent + index
    return (*access.indices, expr.simplify(number, variables.bounds))


def _differ(one: expr.Index, other: expr.Index, variables: Variables) -> bool:
    """Whether two indices, of any two threads, are never the same number."""
    if expr.has_element(one) or expr.has_element(other):
        return False
    own = expr.free_vars(one) & variables.moving.union(variables.threads)
    names: dict[expr.Var, expr.Index] = {var: expr.Var(f"{var}''") for var in own}
    apart = {expr.Var(f"{var}''"): variables.bounds[var] for var in own}
    moved = expr.substitute(one, names)
    bounds = {**variables.bounds, **apart}
    if (
        isinstance(moved, expr.Mod)
        and isinstance(other, expr.Mod)
        and moved.divisor == other.divisor
    ):
        step, divisor = moved.dividend - other.dividend, moved.divisor
        return isinstance(step, int) and isinstance(divisor, int) and step % divisor != 0
    difference = expr.simplify(moved - other, bounds)
    reach = expr.interval(
        difference, {v: bounds[v] for v in expr.free_vars(difference) if v in bounds}
    )
    if reach is None:
        return False
    low, high = reach.low, reach.high
    return (isinstance(low, int) and low > 0) or (isinstance(high, int) and high < 0)


def _is_told(number: expr.Index, same: Set[expr.Index]) -> bool:
    """Whether two values of a number are the same if those of some expressions of it are.

    Theorem: a number is told by its quotient and its rest.
    """
    return number in same or any(
        isinstance(each, expr.Mod)
        and each.dividend == number
        and _is_told(expr.floor_div(number, each.divisor), same)
        for each in same
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """weight * number, with the number in 0..most; whether the number depends on the thread alone
    and may be a digit.
    """

    weight: int
    number: expr.Index
    most: int
    is_digit: bool


@dataclass(frozen=True, slots=True)
class _Weight:
    """A digit with all below it is in 0..width-1; all above is a multiple of `repeated`, or 0."""

    width: int
    repeated: int


@dataclass(frozen=True, slots=True)
class _Number:
    """fixed + low + sum of weight * number; (weight, number) of those that can be told.

    Theorem: a digit with weight w, below which all is less than w, is the rest after division by r,
    divided by w, if all above is a multiple of r and the digit with all below is less than r.
    """

    fixed: expr.Index
    low: int
    digits: Mapping[tuple[int, expr.Index], _Weight]


def _same_digits(
    one: expr.Index, other: expr.Index, variables: Variables, moving: Set[expr.Var]
) -> Iterator[expr.Index]:
    """The parts that depend on the thread alone and are equal if the indices are."""
    first, second = (_number(index, variables, moving) for index in (one, other))
    if first is None or second is None:
        return
    if (first.fixed, first.low) != (second.fixed, second.low):
        return
    for digit, weight in first.digits.items():
        if digit in second.digits:
            repeated = gcd(weight.repeated, second.digits[digit].repeated)
            width = max(weight.width, second.digits[digit].width)
            if repeated == 0 or width <= repeated:
                yield digit[1]


def _number(index: expr.Index, variables: Variables, moving: Set[expr.Var]) -> _Number | None:
    """An index with its digits; None if it has another form.

    moving   variables that need not be the same for two threads
    """
    threads = set(variables.threads)
    fixed: list[tuple[tuple[expr.IndexExpr, ...], int]] = []
    parts: list[_Part] = []
    low = 0
    for monomial, coefficient in expr.terms_of(index):
        names = expr.free_vars(*monomial)
        if any(map(expr.has_element, monomial)):
            return None
        if not names & (threads | moving):
            fixed.append((monomial, coefficient))
            continue
        is_of_thread = bool(names & threads)
        if is_of_thread and not names <= threads:
            return None
        number = expr.of_terms(((monomial, 1),))
        reach = expr.interval(number, variables.bounds)
        if reach is None or not isinstance(reach.low, int) or not isinstance(reach.high, int):
            return None
        low += min(coefficient * reach.low, coefficient * reach.high)
        is_digit = is_of_thread and coefficient > 0 and reach.low == 0
        parts.append(_Part(abs(coefficient), number, reach.high - reach.low, is_digit))
    return _Number(expr.of_terms(fixed), low, _digits(parts))


def _digits(parts: list[_Part]) -> dict[tuple[int, expr.Index], _Weight]:
    digits: dict[tuple[int, expr.Index], _Weight] = {}
    parts = sorted(parts, key=lambda part: (part.weight, part.is_digit))
    width = 1
    for n, part in enumerate(parts):
        fits = part.weight >= width
        width += part.weight * part.most
        repeated = gcd(*(above.weight for above in parts[n + 1 :]))
        if part.is_digit and fits and (repeated == 0 or width <= repeated):
            digits[part.weight, part.number] = _Weight(width, repeated)
    return digits


_ORDERED = (ForKind.SERIAL, ForKind.UNROLLED)
_MOST_ROUNDS = 4


def place_barriers(program: ir.LoopProgram) -> ir.LoopProgram:
    """Put a barrier in front of each statement that must wait for what other threads did before.

    Rewrite:  for t @thread.x: for k: S[t] = A[k, t]; y[t] += S[n-1 - t]
                  ->  for t @thread.x: for k: barrier; S[t] = A[k, t]; barrier; y[t] += S[n-1 - t]
    Requires: loops over threads are outermost in their group, and what is in them runs in all
              threads alike but for guards of single statements (`lowering/guards.py`).
    Theorem:  two accesses of an element must be ordered if one of them stores it and different
              threads make them.  Those of one statement belong to iterations of a concurrent loop,
              which are valid in any order.  Going through the statements, and through the body of a
              loop once more after itself, a barrier is put where such a pair has none in between; a
              barrier in a loop that only orders what comes before the loop is put before it.  So no
              barrier can be left out alone.
    """
    if not any(isinstance(part, ir.For) and part.kind in THREADS for part in walk(program.body)):
        return program
    return replace(program, body=_place_in(program.body))


def _place_in(statement: ir.Stmt) -> ir.Stmt:
    threads: list[ir.For] = []
    body = statement
    while isinstance(body, ir.For) and body.kind in THREADS:
        threads.append(body)
        body = body.body
    if not threads:
        return map_children(_place_in, statement)
    bounds = {loop.var: expr.Range.of_extent(loop.extent) for loop in threads}
    body = _Placement(Variables(tuple(bounds), bounds)).with_barriers(body, ()).statement
    for loop in reversed(threads):
        body = replace(loop, body=body)
    return body


_Pending: TypeAlias = tuple[Access, ...]
"""What has been accessed since the last barrier."""


@dataclass(slots=True)
class _Result:
    """A statement with barriers, and what is pending behind it."""

    statement: ir.Stmt
    pending: _Pending


@dataclass(slots=True)
class _Placement:
    """One group of threads; mutable."""

    variables: Variables
    numbers: Iterator[int] = field(default_factory=count)

    def with_barriers(self, statement: ir.Stmt, before: _Pending) -> _Result:
        """A statement with the barriers that it needs after some accesses."""
        match statement:
            case ir.Block(statements):
                placed: list[ir.Stmt] = []
                for part in statements:
                    result = self.with_barriers(part, before)
                    placed.append(result.statement)
                    before = result.pending
                return _Result(ir.block(*placed), before)
            case ir.Allocate(buffer, body):
                result = self.with_barriers(body, before)
                return _Result(ir.Allocate(buffer, result.statement), result.pending)
            case ir.For(_, _, kind, _) if kind in _ORDERED:
                return self._loop(statement, before)
            case _:
                made = tuple(accesses_of(statement, self.variables))
                return self._in_one_part(statement, made, before)

    def _in_one_part(self, statement: ir.Stmt, made: _Pending, before: _Pending) -> _Result:
        """A statement in which no thread needs another one."""
        if self._conflict(before, made):
            return _Result(ir.block(ir.Barrier(), statement), made)
        return _Result(statement, tuple(dict.fromkeys((*before, *made))))

    def _conflict(self, before: _Pending, after: _Pending) -> bool:
        return any(may_conflict(old, new, self.variables) for old in before for new in after)

    def _loop(self, loop: ir.For, before: _Pending) -> _Result:
        """A loop: its body also waits for what its last iteration did."""
        self.variables.bounds[loop.var] = expr.Range.of_extent(loop.extent)
        made = self._of_any(tuple(accesses_of(loop.body, self.variables)), loop.var)
        if not self._conflict(made, made):
            return self._in_one_part(loop, made, before)
        self.variables.moving.discard(loop.var)
        alone = self._repeated(loop, ())
        if not self._conflict(before, made):
            if not _barriers(alone.statement):
                alone.pending = tuple(dict.fromkeys((*before, *alone.pending)))
            return alone
        met = self._repeated(loop, before)
        if _barriers(met.statement) > _barriers(alone.statement):
            return _Result(ir.block(ir.Barrier(), alone.statement), alone.pending)
        return met

    def _repeated(self, loop: ir.For, before: _Pending) -> _Result:
        """The loop with the barriers that it needs after `before` and after itself.

        Theorem: what is pending at the end of a body with a barrier comes from this iteration, and
        no later than the first barrier of the next one; without one, from any iteration.
        """
        result = self.with_barriers(loop.body, before)
        for _ in range(_MOST_ROUNDS):
            last = result.pending
            again = self.with_barriers(
                loop.body,
                (
                    *before,
                    *tuple(replace(access, last=access.last | {loop.var}) for access in last),
                ),
            )
            if not _barriers(again.statement):
                again = self.with_barriers(loop.body, (*before, *self._of_any(last, loop.var)))
            is_same = again.statement == result.statement
            result = again
            if is_same:
                break
        whole = replace(loop, body=result.statement)
        return _Result(whole, self._of_any(result.pending, loop.var))

    def _of_any(self, accesses: _Pending, var: expr.Var) -> _Pending:
        """Accesses of any iteration of a loop, seen from outside of it or from another one."""
        name = expr.Var(f"{var}'{next(self.numbers)}")
        self.variables.bounds[name] = self.variables.bounds[var]
        self.variables.moving.add(name)
        return tuple(dict.fromkeys(_replaced(access, {var: name}) for access in accesses))


def _replaced(access: Access, mapping: Mapping[expr.Var, expr.Index]) -> Access:
    indices = tuple(expr.substitute(index, mapping) for index in access.indices)
    return replace(access, indices=indices, last=access.last.difference(mapping))


def _barriers(statement: ir.Stmt) -> int:
    return sum(isinstance(part, ir.Barrier) for part in walk(statement))
