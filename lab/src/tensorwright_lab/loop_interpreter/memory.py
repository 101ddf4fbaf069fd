"""The memory of the interpreter: buffers that record which iteration stored which element.

Theorem behind the race check: iterations of concurrent loops form a series-parallel order, and the
interpreter visits it depth first.  There "not ordered" is transitive enough that one last writer
and one reader per element find a race if there is one (Feng and Leiserson, SPAA 1997, section 4).

Copies that a thread has begun, and that end when it waits for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.loop.ir import Buffer, StartCopy, Stmt
from tensorwright.schedule import Scope

Task: TypeAlias = tuple[tuple[int, int], ...]
_Access: TypeAlias = tuple[Task, Stmt | None]
"""Who touched an element last, and in which statement."""
Trace: TypeAlias = Callable[[str, Buffer, int], None]
"""Called with "load" or "store", the buffer and the element's row-major number."""


class Race(Exception):
    """Two iterations of one concurrent loop touch an element and one of them stores it.

    Both may store it if they store the same value and none reads it.
    `other` is the statement that touched it before.
    """

    def __init__(self, reason: str, other: Stmt | None) -> None:
        super().__init__(reason)
        self.other = other


class Iterations:
    """Which iteration of which concurrent loops runs now; mutable, one per interpretation."""

    def __init__(self) -> None:
        self.now: Task = ()
        self.around: Task = ()  # without the vector loop, where one is innermost
        self._loops = 0

    def enter(self) -> int:
        """A number for one execution of a concurrent loop."""
        self._loops += 1
        return self._loops


def _are_concurrent(one: Task, other: Task) -> bool:
    """Whether the two parts of the execution are iterations of one concurrent loop."""
    for (loop, iteration), (other_loop, other_iteration) in zip(one, other, strict=False):
        if loop != other_loop:
            return False
        if iteration != other_iteration:
            return True
    return False


def _is_same(one: Any, other: Any) -> bool:
    """Whether two numbers of one type are the same; NaNs are."""
    return bool(one == other or (one != one and other != other))


class Cell:
    """One buffer: flat elements, which of them are defined, who stored and who read them."""

    def __init__(self, buffer: Buffer, contents: NDArray[Any] | None = None) -> None:
        self.buffer = buffer
        self.shape = buffer.extents
        size = prod(self.shape)
        if contents is None:
            self.elements: NDArray[Any] = np.zeros(size, buffer.dtype.numpy)
            self.defined = bytearray(size)
        else:
            self.elements = np.ascontiguousarray(contents).reshape(-1)
            self.defined = bytearray(b"\x01") * size
        self.in_flight: dict[int, Stmt] = {}
        self._writers: dict[int, _Access] = {}
        self._readers: dict[int, _Access] = {}

    def start(self) -> None:
        """Begin the life of an allocated buffer: nothing is defined.

        A LOCAL or SHARED buffer is new memory; a GLOBAL one is the same piece for all iterations.
        """
        self.defined[:] = bytes(len(self.defined))
        self.in_flight.clear()
        if self.buffer.scope is not Scope.GLOBAL:
            self._writers.clear()
            self._readers.clear()

    def save(self) -> tuple[Any, ...]:
        """The contents of a private buffer of one thread, while other threads use it."""
        access = dict(self._writers), dict(self._readers)
        return self.elements.copy(), bytes(self.defined), *access

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Undo what others have done since `save`."""
        self.elements[:], self.defined[:], self._writers, self._readers = saved

    def check_load(self, element: int, task: Task, at: Stmt | None = None) -> None:
        """Note that the iteration reads an element, in a statement.

        Raises:  Race if a concurrent iteration stored it.
        """
        writer = self._writers.get(element)
        if writer is not None and writer[0] is not task and _are_concurrent(writer[0], task):
            reason = "read by one iteration and stored by another one of the same loop"
            raise Race(reason, writer[1])
        reader = self._readers.get(element)
        if reader is None or not _are_concurrent(reader[0], task):
            self._readers[element] = task, at

    def check_store(self, element: int, task: Task, value: Any, at: Stmt | None = None) -> None:
        """Note that the iteration stores a value in an element; call before it is stored.

        Raises:  Race if a concurrent iteration stored another value there, or read it.
        """
        writer = self._writers.get(element)
        is_second = (
            writer is not None and writer[0] is not task and _are_concurrent(writer[0], task)
        )
        if writer is not None and is_second and not _is_same(self.elements[element], value):
            reason = "stored by two iterations of the same loop, with two values"
            raise Race(reason, writer[1])
        reader = self._readers.get(element)
        if reader is not None and reader[0] is not task and _are_concurrent(reader[0], task):
            reason = "stored by one iteration and read by another one of the same loop"
            raise Race(reason, reader[1])
        self._writers[element] = task, at

    def array(self) -> NDArray[Any]:
        """The contents in the buffer's shape."""
        return self.elements.reshape(self.shape)


@dataclass(frozen=True, slots=True)
class Copy:
    """An element in flight; `ended` notes its store, by the thread that waits for it.

    Raises:  what `ended` raises for a race.
    """

    cell: Cell
    element: int
    value: Any
    at: StartCopy
    ended: Callable[[Copy], None]

    def end(self) -> None:
        """Store the element."""
        del self.cell.in_flight[self.element]
        self.ended(self)
        self.cell.elements[self.element] = self.value
        self.cell.defined[self.element] = 1


@dataclass(slots=True)
class CopyQueue:
    """The copies of one thread, the oldest first; mutable."""

    begun: list[Copy] = field(default_factory=list)
    batches: list[list[Copy]] = field(default_factory=list)

    def begin(self, copy: Copy) -> None:
        """One more copy of the next batch."""
        self.begun.append(copy)

    def commit(self) -> None:
        """Make a batch of what has begun since the last one."""
        self.batches.append(self.begun)
        self.begun = []

    def wait(self, batches: int) -> None:
        """End all batches but some last ones."""
        while len(self.batches) > batches:
            for copy in self.batches.pop(0):
                copy.end()
