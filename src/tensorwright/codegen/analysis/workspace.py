"""The memory of a kernel's buffers that are not in registers: the call's workspace or the stack.

A workspace holds `shared` bytes for the whole call and then `own` bytes for each thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from tensorwright.base import InternalError
from tensorwright.expr import Index, decisions_of, maximum, room_for
from tensorwright.loop import Buffer, room_of
from tensorwright.schedule import Scope

BUFFER_ALIGN = 64
_STACK_BYTES = 32 << 10  # the largest local buffer on the stack
_FRAME_BYTES = 256 << 10  # of all of them in one function


class Arena:
    """Offsets in a workspace; the memory of a buffer is free again after its statement."""

    def __init__(self) -> None:
        self.top: Index = 0
        self.size: Index = 0

    def take(self, count_bytes: Index) -> Index:
        """The offset of new memory; give it back by setting `top` to what it was before."""
        offset = self.top
        room_bytes = room_for(count_bytes)  # the memory must hold all sizes up to the greatest
        self.top = -(-(offset + room_bytes) // BUFFER_ALIGN) * BUFFER_ALIGN
        self.size = maximum(self.size, self.top)
        return offset


class MemoryKind(Enum):
    """The memory that holds a buffer."""

    SHARED = "shared"  # one piece per call
    OWN = "own"  # one piece per thread
    STACK = "stack"


@dataclass(slots=True)
class Workspace:
    """The memory of one kernel while it is written."""

    shared: Arena = field(default_factory=Arena)  # one per call
    own: Arena = field(default_factory=Arena)  # one per thread

    def reserve(
        self, buffer: Buffer, count_bytes: Index, frame_bytes: int
    ) -> tuple[MemoryKind, Index]:
        """The memory for a buffer and its offset there; the stack holds `frame_bytes` already."""
        if buffer.scope is not Scope.LOCAL:
            return MemoryKind.SHARED, self.shared.take(count_bytes)
        is_short = isinstance(count_bytes, int) and count_bytes <= _STACK_BYTES
        if is_short and frame_bytes + count_bytes <= _FRAME_BYTES:
            return MemoryKind.STACK, frame_bytes
        return MemoryKind.OWN, self.own.take(count_bytes)

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Free memory that is reserved inside, afterwards."""
        tops = self.shared.top, self.own.top
        yield
        self.shared.top, self.own.top = tops


def element_count(buffer: Buffer) -> Index:
    """The number of elements that a buffer takes: a number, or an expression of named sizes."""
    count = room_of(buffer)
    if decisions_of(count):
        raise InternalError(
            stage="codegen",
            where=f"buffer {buffer}",
            reason="an extent has a decision",
            remedy="bind the decisions of the program first",
        )
    return count
