"""The walk over statements that all back ends share; each says how a statement is written.

A loop is written out, as vectors, on threads, or one iteration after the other, as `Facts.kind`
says. Its variable has a value inside it, and a buffer its storage inside what allocates it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from tensorwright import loop
from tensorwright.codegen.analysis import MOST_ITERATIONS, Facts, IndexEvaluator, Linear
from tensorwright.expr import Condition
from tensorwright.schedule import ForKind

T = TypeVar("T")
Mask = TypeVar("Mask")


@contextmanager
def scoped(table: dict[str, T], name: str) -> Iterator[None]:
    """Let a name mean something else inside."""
    outer = table.get(name)
    yield
    if outer is None:
        table.pop(name, None)
    else:
        table[name] = outer


class StatementWalk(IndexEvaluator[Mask]):
    """Write statements into one function.

    is_parallel   a parallel loop inside is written as a serial one
    """

    facts: Facts
    storages: dict[str, Any]
    lanes: int
    is_parallel: bool = True

    def statement(self, statement: loop.Stmt) -> None:
        """Write one statement."""
        match statement:
            case loop.Store():
                self._store(statement)
            case loop.Block(statements):
                self._block(statements)
            case loop.For():
                with scoped(self.env, statement.var.name):
                    self._loop(statement)
            case loop.If(condition, then):
                self._if(condition, then)
            case loop.Allocate():
                with scoped(self.storages, statement.buffer.name):
                    self._allocate(statement)
            case loop.GroupStatement():
                self._of_group(statement)
            case loop.Prefetch():
                self._prefetch(statement)
            case loop.Call():
                self._call(statement)

    def _block(self, statements: tuple[loop.Stmt, ...]) -> None:
        for part in statements:
            self.statement(part)

    def _loop(self, nest: loop.For) -> None:
        extent, kind = self.evaluate(nest.extent), self.facts.kind(nest)
        if self.facts.is_once(nest):
            self._copy(nest, 0)
        elif not extent.terms and extent.const <= 0:
            pass
        elif kind is ForKind.UNROLLED:
            self._unrolled(nest, extent)
        elif kind is ForKind.VECTOR and not self._is_in_vector():
            self._vectors(nest)
        elif kind is ForKind.PARALLEL and not self.is_parallel and self.lanes == 1:
            self._parallel(nest, extent)
        else:
            self._plain(nest, extent)

    def _copy(self, nest: loop.For, value: int | Linear) -> None:
        """Write the body for one value of the variable."""
        self.env[nest.var.name] = value
        self.statement(nest.body)

    def _unrolled(self, nest: loop.For, extent: Linear) -> None:
        """Write the body once for each iteration."""
        for iteration in range(self.facts.extent(nest)):
            self._copy(nest, iteration)

    def serial(self, nest: loop.For, first: str, stop: str, extent: Linear) -> None:
        """Write a loop from a first iteration to the one before `stop`."""
        bounds = self.range_of(extent)
        last = MOST_ITERATIONS if bounds is None else bounds[1] - 1
        with self._counted(nest, first, stop, last) as name:
            self._copy(nest, Linear(0, ((name, 1),)))

    def _is_in_vector(self) -> bool:
        return self.lanes > 1

    def _vectors(self, nest: loop.For) -> None:
        """Full vectors, written out or in a loop, then the rests."""
        chunks = self.facts.chunks(nest)
        width = chunks.width
        if chunks.is_unrolled:
            for chunk in range(chunks.count):
                self._vector(nest, Linear(chunk * width), width, width)
        else:
            with self._counted(nest, "0", str(chunks.count), chunks.count - 1) as name:
                self._vector(nest, Linear(0, ((name, width),)), width, width)
        for start, lanes, active in chunks.rests:
            self._vector(nest, Linear(start), lanes, active)

    def _call(self, call: loop.Call) -> None:
        self.statement(call.meaning)

    @abstractmethod
    def _counted(
        self, nest: loop.For, first: str, stop: str, last: int
    ) -> AbstractContextManager[str]:
        """Put what is written inside into a loop; gives the name of what counts, up to `last`."""

    @abstractmethod
    def _vector(self, nest: loop.For, start: Linear, lanes: int, active: int) -> None:
        """Write the body for some lanes at once, from a first iteration."""

    @abstractmethod
    def _plain(self, nest: loop.For, extent: Linear) -> None:
        """Write a loop of one iteration after the other."""

    def _parallel(self, nest: loop.For, extent: Linear) -> None:
        """Write a loop that threads share."""
        raise AssertionError("no parallel loop is written here")

    @abstractmethod
    def _store(self, store: loop.Store) -> None: ...

    @abstractmethod
    def _if(self, condition: Condition, then: loop.Stmt) -> None: ...

    @abstractmethod
    def _allocate(self, allocate: loop.Allocate) -> None:
        """Give a buffer its storage, and write the statement that it is for."""

    def _of_group(self, statement: loop.GroupStatement) -> None:
        """Write a statement that only threads of a group do."""
        raise AssertionError("programs with groups of threads are refused before")

    @abstractmethod
    def _prefetch(self, prefetch: loop.Prefetch) -> None: ...
