"""Copies that a thread has begun, and that end when it waits for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tensorwright.loop.ir import StartCopy
from tensorwright_lab.loop_interpreter.memory import Cell


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
