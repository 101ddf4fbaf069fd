"""How a device calls the functions of a kernel.

    Launch ::= Threads | Grid

A kernel has a tuple of launches, which run in order.  The first calls the kernel's symbol, number n
after it the symbol with `_n` at its end; all get the same arguments and the same scratch memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tensorwright.base.errors import InternalError
from tensorwright.base.tensors import OpenSize

Extents: TypeAlias = tuple[int, int, int]
GridExtents: TypeAlias = tuple[int | OpenSize, int | OpenSize, int | OpenSize]


@dataclass(frozen=True, slots=True)
class Threads:
    """One call of a C function, which shares out its loops over a team of threads by itself."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A call by a driver: blocks of threads, in x, y and z; each thread runs the function.

    grid           numbers of blocks; nothing runs where one of them is 0. With named sizes, they
                   are computed when the kernel is called
    shared_bytes   of memory for each block, besides what the code declares
    """

    grid: GridExtents
    block: Extents
    shared_bytes: int = 0

    def __post_init__(self) -> None:
        blocks = [each for each in self.grid if isinstance(each, int)]
        if min(blocks, default=0) < 0 or min(self.block) < 1 or self.shared_bytes < 0:
            raise InternalError(
                stage="codegen",
                where=f"launch {self}",
                reason="its block is empty, or its grid or its shared memory is negative",
            )

    def __str__(self) -> str:
        grid, block = ("x".join(map(str, each)) for each in (self.grid, self.block))
        shared = f", {self.shared_bytes} bytes shared" if self.shared_bytes else ""
        return f"grid {grid} of {block}{shared}"


Launch: TypeAlias = Threads | Grid

ON_THREADS: tuple[Launch, ...] = (Threads(),)
"""What kernels for processors have: one launch."""
