"""How the iterations of a loop run, and where a tensor lives: one vocabulary for stages and loops.

A stage of a schedule marks its loops with a `ForKind`, and the loop nest that it becomes has it at
each `For`; the tensor of a stage and the buffer that holds it have a `Scope`.
"""

from __future__ import annotations

from enum import Enum


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
