"""Where the elements of a buffer lie in memory: what a back end writes for an access.

    address = moved(offset), where moved is the swizzle of the layout, or nothing

`offset_of` is an index expression. A swizzle needs `xor`, which index expressions do not have, so
the back end writes it, as `MemoryLayout.swizzle` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tensorwright.expr import Index
from tensorwright.loop.ir import Buffer


def offset_of(buffer: Buffer, indices: Sequence[Index]) -> Index:
    """The row-major number of an element, with the padding of its rows; before the swizzle."""
    offset: Index = 0
    extents = padded_extents(buffer)
    for index, extent in zip(indices, extents, strict=True):
        offset = offset * extent + index
    return offset


def padded_extents(buffer: Buffer) -> tuple[Index, ...]:
    """The shape with the padding of its rows."""
    padding = buffer.layout.padding
    if not buffer.shape or not padding:
        return buffer.shape
    return (*buffer.shape[:-1], buffer.shape[-1] + padding)


def room_of(buffer: Buffer) -> Index:
    """The number of elements of memory that a buffer takes."""
    count: Index = prod(padded_extents(buffer), start=1)
    return buffer.layout.room(count, buffer.dtype.size_bytes)
