"""Where the elements of a buffer lie: a bijection of addresses, which changes no meaning.

An offset is the row-major number of an element, with the padding between rows.  Shared memory has
32 banks of 4 bytes; threads that ask one bank for different rows wait for each other.

How the iterations of a loop run, and where a tensor lives: one vocabulary for stages and loops.

A stage of a schedule marks its loops with a `ForKind`, and the loop nest that it becomes has it at
each `For`; the tensor of a stage and the buffer that holds it have a `Scope`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tensorwright.base import InternalError
from tensorwright.expr import Index, ceil_div


class Scope(Enum):
    """Where a tensor lives, and who sees it."""

    GLOBAL = "global"  # main memory: everybody, one per call
    LOCAL = "local"  # one iteration of the loops around it, or one thread: registers or stack
    SHARED = "shared"  # the threads of one group


class ForKind(Enum):
    """How the iterations of a loop run."""

    __hash__ = object.__hash__  # a member is one object; Enum hashes its name, each time in Python

    SERIAL = "serial"
    UNROLLED = "unroll"
    VECTOR = "vectorize"
    PARALLEL = "parallel"
    BLOCK_X = "block.x"
    BLOCK_Y = "block.y"
    BLOCK_Z = "block.z"
    THREAD_X = "thread.x"
    THREAD_Y = "thread.y"
    THREAD_Z = "thread.z"

    @property
    def note(self) -> str:
        """The note printed beside a loop; "" for a serial one."""
        return "" if self is ForKind.SERIAL else f"@{self.value}"


class CopyMechanism(Enum):
    """How what is fetched ahead comes into shared memory."""

    __hash__ = object.__hash__  # as ForKind

    REGISTERS = "registers"  # loaded before an iteration's arithmetic, stored after it
    CP_ASYNC = "cp_async"  # copies that need no registers and no waiting thread: from sm_80 on


BLOCKS = frozenset((ForKind.BLOCK_X, ForKind.BLOCK_Y, ForKind.BLOCK_Z))
"""Loops over groups of threads."""
THREADS = frozenset((ForKind.THREAD_X, ForKind.THREAD_Y, ForKind.THREAD_Z))
"""Loops over the threads of a group."""

_MAY_NOT_BE_INSIDE: dict[ForKind, frozenset[ForKind]] = {
    ForKind.PARALLEL: frozenset((ForKind.PARALLEL, ForKind.VECTOR)) | BLOCKS | THREADS,
    ForKind.VECTOR: frozenset((ForKind.VECTOR,)),
    **dict.fromkeys(BLOCKS, frozenset((ForKind.VECTOR, ForKind.PARALLEL)) | THREADS),
    **dict.fromkeys(THREADS, frozenset((ForKind.VECTOR, ForKind.PARALLEL))),
}


def may_not_be_inside(kind: ForKind) -> frozenset[ForKind]:
    """The kinds of loops that may not be around one of this kind.

    Threads do not start threads, and a lane of a vector has no lanes of its own.
    """
    return _MAY_NOT_BE_INSIDE.get(kind, frozenset())


_CHUNK_BYTES = 16
"""The bytes that one instruction moves at most. A swizzle keeps them together."""
SPANS = (32, 64, 128)
"""The lengths in bytes of the pieces in which a swizzle moves chunks."""


class LayoutKind(Enum):
    """How the rows of a buffer lie."""

    __hash__ = object.__hash__  # a member is one object; Enum hashes its name, each time in Python

    PLAIN = "plain"  # one behind the other
    PADDED = "padded"  # some elements behind each row stay free
    XOR = "xor"  # chunks of 16 bytes are permuted inside pieces, by the number of the piece


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    """A kind and its amount: 0, the elements behind each row, or the bytes of a piece.

    Source:  the swizzle is that of CuTe (NVIDIA CUTLASS 3, Swizzle<B, M, S> with S = 3).
    Raises:  InternalError for an amount that the kind does not have.
    """

    kind: LayoutKind = LayoutKind.PLAIN
    amount: int = 0

    def __post_init__(self) -> None:
        if not has_amount(self.kind, self.amount):
            raise InternalError(stage="loop", where=f"layout {self}", reason="no such amount")

    @property
    def padding(self) -> int:
        """The elements behind each row that stay free."""
        return self.amount if self.kind is LayoutKind.PADDED else 0

    def swizzle(self, element_bytes: int) -> tuple[int, int, int] | None:
        """(bits, base, shift): offset ^ (offset >> shift & (2**bits - 1) << base) in elements.

        None where the layout is not swizzled.
        """
        if self.kind is not LayoutKind.XOR or element_bytes > _CHUNK_BYTES:
            return None
        base = (_CHUNK_BYTES // element_bytes).bit_length() - 1
        bits = (self.amount // _CHUNK_BYTES).bit_length() - 1
        return bits, base, 3

    def moved(self, offset: int, element_bytes: int) -> int:
        """The offset at which the element with a row-major offset lies.

        Theorem: the bits from base + shift on stay, and the others are combined by xor with some of
        them: doing it again undoes it, so no two offsets meet.
        """
        swizzle = self.swizzle(element_bytes)
        if swizzle is None:
            return offset
        bits, base, shift = swizzle
        return offset ^ ((offset >> shift) & (((1 << bits) - 1) << base))

    def room(self, count: Index, element_bytes: int) -> Index:
        """The number of elements that a buffer needs for some offsets."""
        swizzle = self.swizzle(element_bytes)
        if swizzle is None:
            return count
        whole = 1 << (swizzle[1] + swizzle[2] + swizzle[0])
        return ceil_div(count, whole) * whole

    def __str__(self) -> str:
        return f"{self.kind.value}({self.amount})" if self.amount else self.kind.value


def has_amount(kind: LayoutKind, amount: int) -> bool:
    """Whether there is a layout of that kind with that amount."""
    match kind:
        case LayoutKind.PLAIN:
            return amount == 0
        case LayoutKind.PADDED:
            return amount >= 1
        case LayoutKind.XOR:
            return amount in SPANS


PLAIN = MemoryLayout()
