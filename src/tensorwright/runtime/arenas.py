"""Memory for calls that run at once: an arena and scratch memory for each core.

The gate lets in as many calls at once as there are cores (`native/pool/gate.py`). So an executable
needs no more arenas than that, however many callers it has: a call takes the first free one when it
has passed the gate, in native code, and gives it back before it leaves.

    row     taken, arena, scratch       free where taken is 0
"""

from __future__ import annotations

import os
import threading
import weakref

from tensorwright.runtime.buffers import address_of, empty_bytes
from tensorwright.runtime.device import Device, Memory
from tensorwright.runtime.native.driver import ARENA, ROW_WORDS, SCRATCH, TAKEN
from tensorwright.runtime.native.pool import Pool, pool_memory

_WORD_BYTES = 8


class Arenas:
    """The arenas of an executable; each call that is prepared allocates one, up to one a core."""

    __slots__ = (
        "__weakref__",
        "_device",
        "_lock",
        "_memory",
        "_rows",
        "_sizes",
        "address",
        "count",
    )

    def __init__(self, device: Device, arena_bytes: int, scratch_bytes: int) -> None:
        """Prepare a row for each core; none has memory yet, so none is free."""
        self.count = int(pool_memory().words[Pool.CORES])
        self._device = device
        self._sizes = arena_bytes, scratch_bytes
        self._rows = empty_bytes(self.count * ROW_WORDS * _WORD_BYTES).view("i8")
        self._rows[:] = 1
        self._memory: list[tuple[Memory, Memory]] = []
        self._lock = threading.Lock()
        self.address = address_of(self._rows)
        _ALL.add(self)

    def add(self) -> None:
        """Allocate the arena of one more row, unless all rows have one.

        Raises:  MemoryError.
        """
        with self._lock:
            number = len(self._memory)
            if number == self.count:
                return
            arena, scratch = (self._device.allocate(size) for size in self._sizes)
            self._memory.append((arena, scratch))
            first = number * ROW_WORDS
            self._rows[first + ARENA] = arena.address
            self._rows[first + SCRATCH] = scratch.address
        with self._lock:  # a thread that sees the row free then sees its addresses, too
            self._rows[first + TAKEN] = 0

    def begin_again(self) -> None:
        """Free all rows in the child of a fork, where no call is under way."""
        self._lock = threading.Lock()
        for number in range(len(self._memory)):
            self._rows[number * ROW_WORDS + TAKEN] = 0


_ALL: weakref.WeakSet[Arenas] = weakref.WeakSet()


def _begin_again() -> None:
    for arenas in list(_ALL):
        arenas.begin_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
