"""Let the threads of a group wait for each other where one needs what another one does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeAlias

from tensorwright.expr import Index, Range, Var, substitute
from tensorwright.loop.ir import Allocate, Barrier, Block, For, LoopProgram, Stmt, block
from tensorwright.loop.passes.barriers.accesses import Access, Variables, accesses_of
from tensorwright.loop.passes.barriers.same_thread import may_conflict
from tensorwright.loop.traversal import map_children, walk
from tensorwright.schedule import THREADS, ForKind

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
    bounds = {loop.var: Range.of_extent(loop.extent) for loop in threads}
    body = _Placement(Variables(tuple(bounds), bounds)).with_barriers(body, ()).statement
    for loop in reversed(threads):
        body = replace(loop, body=body)
    return body


_Pending: TypeAlias = tuple[Access, ...]
"""What has been accessed since the last barrier."""


@dataclass(slots=True)
class _Result:
    """A statement with barriers, and what is pending behind it."""

    statement: Stmt
    pending: _Pending


@dataclass(slots=True)
class _Placement:
    """One group of threads; mutable."""

    variables: Variables
    numbers: Iterator[int] = field(default_factory=count)

    def with_barriers(self, statement: Stmt, before: _Pending) -> _Result:
        """A statement with the barriers that it needs after some accesses."""
        match statement:
            case Block(statements):
                placed: list[Stmt] = []
                for part in statements:
                    result = self.with_barriers(part, before)
                    placed.append(result.statement)
                    before = result.pending
                return _Result(block(*placed), before)
            case Allocate(buffer, body):
                result = self.with_barriers(body, before)
                return _Result(Allocate(buffer, result.statement), result.pending)
            case For(_, _, kind, _) if kind in _ORDERED:
                return self._loop(statement, before)
            case _:
                made = tuple(accesses_of(statement, self.variables))
                return self._in_one_part(statement, made, before)

    def _in_one_part(self, statement: Stmt, made: _Pending, before: _Pending) -> _Result:
        """A statement in which no thread needs another one."""
        if self._conflict(before, made):
            return _Result(block(Barrier(), statement), made)
        return _Result(statement, tuple(dict.fromkeys((*before, *made))))

    def _conflict(self, before: _Pending, after: _Pending) -> bool:
        return any(may_conflict(old, new, self.variables) for old in before for new in after)

    def _loop(self, loop: For, before: _Pending) -> _Result:
        """A loop: its body also waits for what its last iteration did."""
        self.variables.bounds[loop.var] = Range.of_extent(loop.extent)
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
            return _Result(block(Barrier(), alone.statement), alone.pending)
        return met

    def _repeated(self, loop: For, before: _Pending) -> _Result:
        """The loop with the barriers that it needs after `before` and after itself.

        Theorem: what is pending at the end of a body with a barrier comes from this iteration, and
        no later than the first barrier of the next one; without one, from any iteration.
        """
        result = self.with_barriers(loop.body, before)
        for _ in range(_MOST_ROUNDS):
            last = result.pending
            again = self.with_barriers(loop.body, (*before, *_of_last(last, loop.var)))
            if not _barriers(again.statement):
                again = self.with_barriers(loop.body, (*before, *self._of_any(last, loop.var)))
            is_same = again.statement == result.statement
            result = again
            if is_same:
                break
        whole = replace(loop, body=result.statement)
        return _Result(whole, self._of_any(result.pending, loop.var))

    def _of_any(self, accesses: _Pending, var: Var) -> _Pending:
        """Accesses of any iteration of a loop, seen from outside of it or from another one."""
        name = Var(f"{var}'{next(self.numbers)}")
        self.variables.bounds[name] = self.variables.bounds[var]
        self.variables.moving.add(name)
        return tuple(dict.fromkeys(_replaced(access, {var: name}) for access in accesses))


def _of_last(accesses: _Pending, var: Var) -> _Pending:
    """Accesses as those of the iteration before."""
    return tuple(replace(access, last=access.last | {var}) for access in accesses)


def _replaced(access: Access, mapping: Mapping[Var, Index]) -> Access:
    indices = tuple(substitute(index, mapping) for index in access.indices)
    return replace(access, indices=indices, last=access.last.difference(mapping))


def _barriers(statement: Stmt) -> int:
    return sum(isinstance(part, Barrier) for part in walk(statement))
